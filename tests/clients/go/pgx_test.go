package clients

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"
)

var background = context.Background()

// pgxConnect opens a connection that cancels a statement, and stays open, when its context ends.
func pgxConnect(t *testing.T) *pgx.Conn {
	t.Helper()
	config := must(pgx.ParseConfig(url()))(t)
	config.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: c, DeadlineDelay: 20 * time.Second}
	}
	c := must(pgx.ConnectConfig(background, config))(t)
	t.Cleanup(func() { _ = c.Close(background) })
	return c
}

func exec(t *testing.T, c *pgx.Conn, statement string, arguments ...any) pgconn.CommandTag {
	t.Helper()
	return must(c.Exec(background, statement, arguments...))(t)
}

func state(err error) string {
	var found *pgconn.PgError
	if errors.As(err, &found) {
		return found.Code
	}
	return fmt.Sprint(err)
}

const insertKinds = " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)"

func (k kinds) values() []any {
	var n any
	if k.N != nil {
		var number pgtype.Numeric
		if err := number.Scan(*k.N); err != nil {
			panic(err)
		}
		n = number
	}
	return []any{k.ID, k.B, k.I2, k.I4, k.I8, k.F4, k.F8, n, k.At, k.D, k.T, k.Bin, k.U, k.J, k.Arr}
}

func scanKinds(row pgx.CollectableRow) (kinds, error) {
	var k kinds
	var n pgtype.Numeric
	err := row.Scan(&k.ID, &k.B, &k.I2, &k.I4, &k.I8, &k.F4, &k.F8, &n, &k.At, &k.D, &k.T, &k.Bin, &k.U, &k.J, &k.Arr)
	if n.Valid {
		value, _ := n.Value()
		k.N = to(value.(string))
	}
	return k, err
}

var modes = []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol}

func TestPgxTypes(t *testing.T) {
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			c, table := pgxConnect(t), unique(t)
			exec(t, c, "CREATE TABLE "+table+" ("+definition+")")
			for _, row := range rows() {
				equal(t, exec(t, c, "INSERT INTO "+table+insertKinds, append([]any{mode}, row.values()...)...).String(), "INSERT 0 1")
			}
			for range 3 {
				found := must(c.Query(background, "SELECT * FROM "+table+" WHERE id > $1 ORDER BY id", mode, int64(0)))(t)
				compare(t, must(pgx.CollectRows(found, scanKinds))(t))
			}
		})
	}
}

func TestPgxTextResults(t *testing.T) {
	c, table := pgxConnect(t), unique(t)
	exec(t, c, "CREATE TABLE "+table+" ("+definition+")")
	for _, row := range rows() {
		exec(t, c, "INSERT INTO "+table+insertKinds, row.values()...)
	}
	found := must(c.Query(background, "SELECT * FROM "+table+" ORDER BY id", pgx.QueryResultFormats{pgx.TextFormatCode}))(t)
	compare(t, must(pgx.CollectRows(found, scanKinds))(t))
}

func TestPgxParameters(t *testing.T) {
	c := pgxConnect(t)
	for _, mode := range modes[:3] {
		for _, one := range []struct {
			kind  string
			value any
		}{
			{"bool", true}, {"int2", int16(-5)}, {"int4", int32(7)}, {"int8", int64(1) << 60}, {"float4", float32(0.25)}, {"float8", 1e-300}, {"text", odd}, {"varchar", "ü"}, {"bytea", []byte{0, 255}},
			{"int[]", []int32{1, -2}}, {"bigint[]", []int64{1 << 60}}, {"text[]", []string{"a", `q"\,{}`, "", "NULL"}}, {"float8[]", []float64{0.1, 2}}, {"bool[]", []bool{true, false}},
			{"date", time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)}, {"timestamp", time.Date(2024, 2, 29, 12, 34, 56, 789012000, time.UTC)}, {"timestamp[]", []time.Time{time.Date(2024, 2, 29, 12, 34, 56, 789012000, time.UTC)}},
			{"interval", pgtype.Interval{Months: 1, Days: -2, Microseconds: 3500000, Valid: true}}, {"time", pgtype.Time{Microseconds: 86399999999, Valid: true}},
			{"uuid", pgtype.UUID{Bytes: [16]byte{1, 2, 3}, Valid: true}}, {"json", map[string]any{"a": []any{1.0, nil}}},
		} {
			target := reflect.New(reflect.TypeOf(one.value))
			var nothing *string
			for range 2 {
				err := c.QueryRow(background, "SELECT $1::"+one.kind+", NULL::"+one.kind+"::text", mode, one.value).Scan(target.Interface(), &nothing)
				if err != nil || !reflect.DeepEqual(target.Elem().Interface(), one.value) || nothing != nil {
					t.Errorf("%v %s: %v, not %v; %v", mode, one.kind, target.Elem().Interface(), one.value, err)
				}
			}
		}
	}
	var at time.Time
	if err := c.QueryRow(background, "SELECT $1::timestamptz", time.Date(2024, 7, 1, 12, 0, 0, 1000, time.FixedZone("", 7200))).Scan(&at); err != nil || !at.Equal(time.Date(2024, 7, 1, 10, 0, 0, 1000, time.UTC)) {
		t.Error(at, err)
	}
	var numeric pgtype.Numeric
	if err := c.QueryRow(background, "SELECT '1234567890123456789012345678.0123456789'::numeric(38,10)").Scan(&numeric); err != nil {
		t.Fatal(err)
	}
	value, _ := numeric.Value()
	equal(t, value.(string), "1234567890123456789012345678.0123456789")
}

func TestPgxConditions(t *testing.T) {
	c, table := pgxConnect(t), unique(t)
	exec(t, c, "CREATE TABLE "+table+" ("+definition+")")
	for _, row := range rows() {
		exec(t, c, "INSERT INTO "+table+insertKinds, row.values()...)
	}
	for _, one := range []struct {
		condition string
		value     any
		count     int
	}{
		{"id = $1", 3, 1}, {"id = ANY($1)", []int64{1, 2, 99}, 2}, {"t = $1", odd, 1}, {"t = ANY($1)", []string{"", "NULL"}, 2}, {"bin = $1", allBytes(), 1}, {"u = $1", "00000000-0000-0000-0000-000000000001", 1},
		{"at < $1", *moment("1970-01-01T00:00:00"), 1}, {"d = $1", *moment("9999-12-31T00:00:00"), 1}, {"f8 < $1", 0.0, 2}, {"i2 > $1", int16(0), 1}, {"b = $1", true, 2}, {"n = $1", "-0.001", 1}, {"$1::text IS NULL", nil, 5},
		{"arr = $1", []float64{}, 1}, {"id > $1::int + 1", 2, 2},
	} {
		for _, mode := range modes {
			var count int
			if mode == pgx.QueryExecModeExec && (one.condition == "n = $1" || one.condition == "u = $1") {
				continue // The client sends a text as the type text, which PostgreSQL compares with no number and no UUID.
			}
			if mode == pgx.QueryExecModeSimpleProtocol && (one.condition == "b = $1" || one.condition == "arr = $1") {
				continue // The client writes the value as a text in quotes.
			}
			if err := c.QueryRow(background, "SELECT count(*) FROM "+table+" WHERE "+one.condition, mode, one.value).Scan(&count); err != nil || count != one.count {
				t.Errorf("%s %v %v: %d, not %d; %v", one.condition, one.value, mode, count, one.count, err)
			}
		}
	}
}

func TestPgxErrors(t *testing.T) {
	c, table := pgxConnect(t), unique(t)
	exec(t, c, "CREATE TABLE "+table+" ("+definition+")")
	for _, one := range failures {
		for _, mode := range modes {
			_, err := c.Exec(background, strings.Replace(one.statement, "TABLE_", table, 1), mode)
			equal(t, state(err)+" "+one.statement+" "+mode.String(), one.state+" "+one.statement+" "+mode.String())
		}
	}
	var one int
	if err := c.QueryRow(background, "SELECT 1").Scan(&one); err != nil || one != 1 {
		t.Error(one, err)
	}
	var found *pgconn.PgError
	_, err := c.Exec(background, "SELECT nothing FROM "+table)
	if !errors.As(err, &found) || found.Severity != "ERROR" || found.Position != 8 {
		t.Errorf("%+v", found)
	}
}

func TestPgxBatch(t *testing.T) {
	c, table := pgxConnect(t), unique(t)
	exec(t, c, "CREATE TABLE "+table+" (id bigint, t text)")
	for _, mode := range modes[:4] {
		batch := &pgx.Batch{}
		for n := range 50 {
			batch.Queue("INSERT INTO "+table+" VALUES ($1, $2)", int64(n), fmt.Sprint("t", n))
		}
		count := int64(-1)
		batch.Queue("SELECT count(*) FROM " + table).QueryRow(func(row pgx.Row) error { return row.Scan(&count) })
		batch.Queue("DELETE FROM "+table+" WHERE id >= $1", int64(10)).Exec(func(tag pgconn.CommandTag) error { equal(t, tag.String(), "DELETE 40"); return nil })
		batch.Queue("DELETE FROM " + table)
		c2 := pgxConnect(t)
		c2.Config().DefaultQueryExecMode = mode
		if err := c2.SendBatch(background, batch).Close(); err != nil {
			t.Fatal(mode, err)
		}
		equal(t, count, 50)
	}
	batch := &pgx.Batch{}
	batch.Queue("INSERT INTO "+table+" VALUES ($1, 'lost')", 1)
	batch.Queue("SELECT 1/$1::int", 0)
	batch.Queue("INSERT INTO "+table+" VALUES ($1, 'lost')", 2)
	equal(t, state(c.SendBatch(background, batch).Close()), "22012")
	var count int
	if err := c.QueryRow(background, "SELECT count(*) FROM "+table).Scan(&count); err != nil || count != 0 {
		t.Error(count, err)
	}
}

func TestPgxCopy(t *testing.T) {
	c, table := pgxConnect(t), unique(t)
	exec(t, c, "CREATE TABLE "+table+" ("+definition+")")
	all := rows()
	columns := []string{"id", "b", "i2", "i4", "i8", "f4", "f8", "n", "at", "d", "t", "bin", "u", "j", "arr"}
	count := must(c.CopyFrom(background, pgx.Identifier{table}, columns, pgx.CopyFromSlice(len(all), func(n int) ([]any, error) { return all[n].values(), nil })))(t)
	equal(t, count, int64(len(all)))
	compare(t, must(pgx.CollectRows(must(c.Query(background, "SELECT * FROM "+table+" ORDER BY id"))(t), scanKinds))(t))
	for _, form := range []string{"text", "csv", "binary"} {
		var out strings.Builder
		tag := must(c.PgConn().CopyTo(background, &out, "COPY "+table+" TO STDOUT (FORMAT "+form+")"))(t)
		equal(t, tag.RowsAffected(), int64(len(all)))
		exec(t, c, "TRUNCATE TABLE "+table)
		must(c.PgConn().CopyFrom(background, strings.NewReader(out.String()), "COPY "+table+" FROM STDIN (FORMAT "+form+")"))(t)
		compare(t, must(pgx.CollectRows(must(c.Query(background, "SELECT * FROM "+table+" ORDER BY id"))(t), scanKinds))(t))
	}
	_, err := c.CopyFrom(background, pgx.Identifier{"no_such_table"}, []string{"id"}, pgx.CopyFromRows([][]any{{1}}))
	equal(t, state(err), "42P01")
}

func TestPgxTransactions(t *testing.T) {
	c, table := pgxConnect(t), unique(t)
	exec(t, c, "CREATE TABLE "+table+" (id int)")
	insert := func(tx pgx.Tx, id int) { must(tx.Exec(background, "INSERT INTO "+table+" VALUES ($1)", id))(t) }
	failed := errors.New("undone")
	equal(t, pgx.BeginFunc(background, c, func(tx pgx.Tx) error { insert(tx, 1); return failed }), failed)
	err := pgx.BeginTxFunc(background, c, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
		insert(tx, 2)
		equal(t, pgx.BeginFunc(background, tx, func(inner pgx.Tx) error { insert(inner, 3); return failed }), failed)
		nested := pgx.BeginFunc(background, tx, func(inner pgx.Tx) error { _, err := inner.Exec(background, "SELECT 1/0"); return err })
		equal(t, state(nested), "22012")
		return pgx.BeginFunc(background, tx, func(inner pgx.Tx) error { insert(inner, 4); return nil })
	})
	equal(t, err, nil)
	err = pgx.BeginTxFunc(background, c, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error { _, err := tx.Exec(background, "INSERT INTO "+table+" VALUES (5)"); return err })
	equal(t, state(err), "25006")
	tx := must(c.Begin(background))(t)
	_, err = tx.Exec(background, "SELECT * FROM no_such_table")
	equal(t, state(err), "42P01")
	_, err = tx.Exec(background, "SELECT 1")
	equal(t, state(err), "25P02")
	equal(t, errors.Is(tx.Commit(background), pgx.ErrTxCommitRollback), true)
	ids := must(pgx.CollectRows(must(c.Query(background, "SELECT id FROM "+table+" ORDER BY id"))(t), pgx.RowTo[int]))(t)
	equal(t, fmt.Sprint(ids), "[2 4]")
}

func TestPgxDescriptions(t *testing.T) {
	c, table := pgxConnect(t), unique(t)
	exec(t, c, "CREATE TABLE "+table+" ("+definition+")")
	described := must(c.Prepare(background, "by id", "SELECT * FROM "+table+" WHERE id = $1 AND at > $2 AND t = ANY($3)"))(t)
	equal(t, fmt.Sprint(described.ParamOIDs), "[20 1114 1009]")
	var fields []string
	for _, field := range described.Fields {
		fields = append(fields, fmt.Sprint(field.Name, " ", field.DataTypeOID, " ", field.DataTypeSize, " ", field.TypeModifier, " ", field.TableAttributeNumber, " ", field.TableOID != 0))
	}
	equal(t, strings.Join(fields, ", "), "id 20 8 -1 1 true, b 16 1 -1 2 true, i2 21 2 -1 3 true, i4 23 4 -1 4 true, i8 20 8 -1 5 true, f4 700 4 -1 6 true, f8 701 8 -1 7 true, n 1700 -1 1179655 8 true, at 1114 8 -1 9 true, "+
		"d 1082 4 -1 10 true, t 25 -1 -1 11 true, bin 17 -1 -1 12 true, u 2950 16 -1 13 true, j 114 -1 -1 14 true, arr 1022 -1 -1 15 true")
	type named struct {
		ID   int64
		Name *string `db:"t"`
	}
	exec(t, c, "INSERT INTO "+table+" (id, t) VALUES (1, 'a'), (2, NULL)")
	found := must(pgx.CollectRows(must(c.Query(background, "SELECT t, id FROM "+table+" ORDER BY id"))(t), pgx.RowToStructByName[named]))(t)
	equal(t, fmt.Sprint(found[0].ID, *found[0].Name, found[1].ID, found[1].Name), "1a2 <nil>")
}

func TestPgxCancellation(t *testing.T) {
	c := pgxConnect(t)
	limited, cancel := context.WithTimeout(background, 200*time.Millisecond)
	defer cancel()
	_, err := c.Exec(limited, "SELECT pg_sleep(60)")
	equal(t, state(err), "57014")
	var one int
	if err := c.QueryRow(background, "SELECT 1").Scan(&one); err != nil || one != 1 {
		t.Error(one, err)
	}
}

func TestPgxPool(t *testing.T) {
	pool := must(pgxpool.New(background, url()+"&pool_max_conns=4"))(t)
	defer pool.Close()
	found := make(chan error, 40)
	for n := range 40 {
		go func() {
			var value int
			err := pool.QueryRow(background, "SELECT $1::int * 2", n).Scan(&value)
			if err == nil && value != n*2 {
				err = fmt.Errorf("%d", value)
			}
			found <- err
		}()
	}
	for range 40 {
		equal(t, <-found, nil)
	}
}

func TestPgxDatabaseSQL(t *testing.T) {
	db := must(sql.Open("pgx", url()))(t)
	defer func() { _ = db.Close() }()
	standard(t, db, unique(t))
}

func TestPgxPipeline(t *testing.T) {
	c, table := pgxConnect(t), unique(t)
	exec(t, c, "CREATE TABLE "+table+" (id bigint)")
	pipeline := c.PgConn().StartPipeline(background)
	pipeline.SendPrepare("insert", "INSERT INTO "+table+" VALUES ($1)", nil)
	for n := range 3 {
		pipeline.SendQueryPrepared("insert", [][]byte{[]byte(fmt.Sprint(n))}, nil, nil)
	}
	pipeline.SendFlushRequest()
	pipeline.SendQueryParams("SELECT 1/$1::int", [][]byte{[]byte("0")}, nil, nil, nil)
	if err := pipeline.Sync(); err != nil {
		t.Fatal(err)
	}
	pipeline.SendQueryParams("SELECT count(*) FROM "+table, nil, nil, nil, nil)
	if err := pipeline.Sync(); err != nil {
		t.Fatal(err)
	}
	var seen []string
	for {
		result, err := pipeline.GetResults()
		if err != nil {
			seen = append(seen, state(err))
			continue
		}
		if result == nil {
			break
		}
		switch one := result.(type) {
		case *pgconn.StatementDescription:
			seen = append(seen, fmt.Sprint("described ", one.ParamOIDs))
		case *pgconn.ResultReader:
			read := one.Read()
			if read.Err != nil {
				seen = append(seen, state(read.Err))
			} else if len(read.Rows) > 0 {
				seen = append(seen, string(read.Rows[0][0]))
			} else {
				seen = append(seen, read.CommandTag.String())
			}
		case *pgconn.PipelineSync:
			seen = append(seen, "sync")
		}
	}
	if err := pipeline.Close(); err != nil {
		t.Log(err)
	}
	equal(t, strings.Join(seen, ", "), "described [20], INSERT 0 1, INSERT 0 1, INSERT 0 1, 22012, sync, 0, sync")
}
