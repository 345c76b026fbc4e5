package clients

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lib/pq"
)

// The driver writes parameters as text, or those of some types in binary form.
var pqOptions = []string{"", "&binary_parameters=yes"}

func pqOpen(t *testing.T, options string) *sql.DB {
	t.Helper()
	db := must(sql.Open("postgres", url()+options))(t)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func pqState(err error) string {
	var found *pq.Error
	if errors.As(err, &found) {
		return string(found.Code)
	}
	return fmt.Sprint(err)
}

func (k kinds) pqValues() []any {
	array := any(nil)
	if k.Arr != nil {
		values := make([]sql.NullFloat64, len(k.Arr))
		for n, value := range k.Arr {
			if value != nil {
				values[n] = sql.NullFloat64{Float64: *value, Valid: true}
			}
		}
		array = pq.Array(values)
	}
	bin := any(nil)
	if k.Bin != nil {
		bin = k.Bin
	}
	single := any(nil)
	if k.F4 != nil {
		single = float64(*k.F4)
	}
	return []any{k.ID, k.B, k.I2, k.I4, k.I8, single, k.F8, k.N, k.At, k.D, k.T, bin, k.U, k.J, array}
}

func pqRows(t *testing.T, found *sql.Rows) []kinds {
	t.Helper()
	var all []kinds
	for found.Next() {
		var k kinds
		var array []sql.NullFloat64
		var single *float64
		if err := found.Scan(&k.ID, &k.B, &k.I2, &k.I4, &k.I8, &single, &k.F8, &k.N, &k.At, &k.D, &k.T, &k.Bin, &k.U, &k.J, pq.Array(&array)); err != nil {
			t.Fatal(err)
		}
		if single != nil {
			k.F4 = to(float32(*single))
		}
		if array != nil {
			k.Arr = []*float64{}
		}
		for _, value := range array {
			if value.Valid {
				k.Arr = append(k.Arr, to(value.Float64))
			} else {
				k.Arr = append(k.Arr, nil)
			}
		}
		all = append(all, k)
	}
	equal(t, found.Err(), nil)
	return all
}

func TestPqTypes(t *testing.T) {
	for _, options := range pqOptions {
		db, table := pqOpen(t, options), unique(t)
		must(db.Exec("CREATE TABLE " + table + " (" + definition + ")"))(t)
		insert := must(db.Prepare("INSERT INTO " + table + insertKinds))(t)
		for _, row := range rows() {
			result := must(insert.Exec(row.pqValues()...))(t)
			equal(t, must(result.RowsAffected())(t), 1)
		}
		compare(t, pqRows(t, must(db.Query("SELECT * FROM "+table+" ORDER BY id"))(t)))
		selected := must(db.Prepare("SELECT * FROM " + table + " WHERE id > $1 ORDER BY id"))(t)
		for range 3 {
			compare(t, pqRows(t, must(selected.Query(0))(t)))
		}
	}
}

func TestPqConditions(t *testing.T) {
	for _, options := range pqOptions {
		db, table := pqOpen(t, options), unique(t)
		must(db.Exec("CREATE TABLE " + table + " (" + definition + ")"))(t)
		for _, row := range rows() {
			must(db.Exec("INSERT INTO "+table+insertKinds, row.pqValues()...))(t)
		}
		for _, one := range []struct {
			condition string
			value     any
			count     int
		}{
			{"id = $1", 3, 1}, {"id = ANY($1)", pq.Array([]int64{1, 2, 99}), 2}, {"t = $1", odd, 1}, {"t = ANY($1)", pq.Array([]string{"", "NULL", `"\{}`}), 2}, {"bin = $1", allBytes(), 1}, {"n = $1", "-0.001", 1},
			{"u = $1", "00000000-0000-0000-0000-000000000001", 1}, {"at < $1", *moment("1970-01-01T00:00:00"), 1}, {"d = $1", *moment("9999-12-31T00:00:00"), 1}, {"f8 < $1", 0.0, 2}, {"i2 > $1", 0, 1}, {"b = $1", true, 2},
			{"$1::text IS NULL", nil, 5}, {"arr = $1", pq.Array([]float64{}), 1},
		} {
			var count int
			if err := db.QueryRow("SELECT count(*) FROM "+table+" WHERE "+one.condition, one.value).Scan(&count); err != nil || count != one.count {
				t.Errorf("%s %v: %d, not %d; %v", one.condition, one.value, count, one.count, err)
			}
		}
	}
}

func TestPqErrors(t *testing.T) {
	db, table := pqOpen(t, ""), unique(t)
	must(db.Exec("CREATE TABLE " + table + " (" + definition + ")"))(t)
	for _, one := range failures {
		statement := strings.Replace(one.statement, "TABLE_", table, 1)
		_, err := db.Exec(statement)
		equal(t, pqState(err)+" "+one.statement, one.state+" "+one.statement)
		prepared, err := db.Prepare(statement)
		if err == nil {
			_, err = prepared.Exec()
		}
		equal(t, pqState(err)+" "+one.statement, one.state+" "+one.statement)
	}
	_, err := db.Exec("SELECT nothing FROM " + table)
	var found *pq.Error
	if !errors.As(err, &found) || found.Severity != "ERROR" || found.Position != "8" || found.Code.Name() != "undefined_column" {
		t.Errorf("%+v", found)
	}
}

func TestPqCopy(t *testing.T) {
	db, table := pqOpen(t, ""), unique(t)
	must(db.Exec("CREATE TABLE " + table + " (id bigint, name text, value double precision, at timestamp, bin bytea)"))(t)
	tx := must(db.Begin())(t)
	into := must(tx.Prepare(pq.CopyIn(table, "id", "name", "value", "at", "bin")))(t)
	for n := range 1000 {
		name := any(odd)
		if n%4 == 0 {
			name = nil
		}
		must(into.Exec(n, name, float64(n)/4, moment("2024-02-29T12:34:56.789012").Add(time.Duration(n)*time.Microsecond), []byte{0, byte(n)}))(t)
	}
	must(into.Exec())(t)
	equal(t, into.Close(), nil)
	equal(t, tx.Commit(), nil)
	var count, named int
	var total float64
	var last time.Time
	var bin []byte
	equal(t, db.QueryRow("SELECT count(*), count(CASE WHEN name = $1 THEN 1 END), sum(value), max(at) FROM "+table, odd).Scan(&count, &named, &total, &last), nil)
	equal(t, db.QueryRow("SELECT bin FROM "+table+" WHERE id = 513").Scan(&bin), nil)
	equal(t, fmt.Sprintln(count, named, total, last.Format(time.RFC3339Nano), bin), "1000 750 124875 2024-02-29T12:34:56.790011Z [0 1]\n")
}

func TestPqCancellation(t *testing.T) {
	db := pqOpen(t, "")
	limited, cancel := context.WithTimeout(background, 200*time.Millisecond)
	defer cancel()
	_, err := db.ExecContext(limited, "SELECT pg_sleep(60)")
	equal(t, err == nil, false)
	equal(t, pqState(err) == "57014" || errors.Is(err, context.DeadlineExceeded), true)
	var one int
	if err := db.QueryRow("SELECT 1").Scan(&one); err != nil || one != 1 {
		t.Error(one, err)
	}
}

func TestPqDatabaseSQL(t *testing.T) {
	for _, options := range pqOptions {
		standard(t, pqOpen(t, options), unique(t))
	}
}

// standard does what programs do by database/sql, with any driver.
func standard(t *testing.T, db *sql.DB, table string) {
	t.Helper()
	must(db.Exec("CREATE TABLE " + table + " (id bigint, n numeric(18,3), t text, at timestamp, f8 double precision)"))(t)
	tx := must(db.BeginTx(background, &sql.TxOptions{Isolation: sql.LevelSerializable}))(t)
	insert := must(tx.Prepare("INSERT INTO " + table + " VALUES ($1, $2, $3, $4, $5)"))(t)
	for n := range 10 {
		must(insert.Exec(n, "-1.500", sql.NullString{String: "x", Valid: n%2 == 0}, time.Date(2024, 1, 1, n, 0, 0, 0, time.UTC), 0.5))(t)
	}
	must(tx.Exec("SAVEPOINT a"))(t)
	must(tx.Exec("DELETE FROM " + table))(t)
	must(tx.Exec("ROLLBACK TO SAVEPOINT a"))(t)
	equal(t, tx.Commit(), nil)
	undone := must(db.Begin())(t)
	must(undone.Exec("DELETE FROM " + table))(t)
	equal(t, undone.Rollback(), nil)
	reading := must(db.BeginTx(background, &sql.TxOptions{ReadOnly: true}))(t)
	_, err := reading.Exec("DELETE FROM " + table)
	equal(t, strings.Contains(err.Error(), "25006") || strings.Contains(pqState(err), "25006"), true)
	_ = reading.Rollback()
	result := must(db.Exec("UPDATE "+table+" SET t = $1 WHERE id < $2", "y", 4))(t)
	equal(t, must(result.RowsAffected())(t), 4)
	found := must(db.Query("SELECT id, n, t, at, f8 FROM "+table+" WHERE at >= $1 AND id = $2", time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC), 5))(t)
	var kinds []string
	for _, column := range must(found.ColumnTypes())(t) {
		precision, scale, sized := column.DecimalSize()
		kinds = append(kinds, fmt.Sprint(column.Name(), " ", column.DatabaseTypeName(), " ", sized && column.Name() == "n", " ", precision%1000, " ", scale%1000))
	}
	var id int64
	var n string
	var text sql.NullString
	var at sql.NullTime
	var f8 float64
	for found.Next() {
		equal(t, found.Scan(&id, &n, &text, &at, &f8), nil)
	}
	equal(t, found.Err(), nil)
	equal(t, fmt.Sprintln(id, n, text.Valid, at.Time.UTC(), f8), "5 -1.500 false 2024-01-01 05:00:00 +0000 UTC 0.5\n")
	equal(t, strings.Join(kinds, ", "), "id INT8 false 0 0, n NUMERIC true 18 3, t TEXT false 0 0, at TIMESTAMP false 0 0, f8 FLOAT8 false 0 0")
}
