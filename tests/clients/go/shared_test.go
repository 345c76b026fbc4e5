// Package clients tests the drivers pgx and lib/pq on a server.
//
// TEST_PORT is the port of the PostgreSQL protocol on 127.0.0.1.
package clients

import (
	"fmt"
	"math"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func url() string {
	return "postgres://postgres@127.0.0.1:" + os.Getenv("TEST_PORT") + "/tidalite?sslmode=disable"
}

var numbers atomic.Int64

// unique returns a table name that no other test uses.
func unique(t *testing.T) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToLower(t.Name()))
	if len(name) > 80 {
		name = name[:80]
	}
	return fmt.Sprintf("go_%s_%d_%d", name, os.Getpid(), numbers.Add(1))
}

const definition = "id bigint, b boolean, i2 smallint, i4 integer, i8 bigint, f4 real, f8 double precision, n numeric(18,3), at timestamp, " +
	"d date, t text, bin bytea, u uuid, j json, arr double precision[]"

const odd = "täxt 😀 \u202e 'q' \"d\" \\ \\n \n\r\t %s $1 :x ? {,} NULL"

// kinds is a row of all types; nil is NULL. Numeric, UUID and JSON are texts.
type kinds struct {
	ID  int64
	B   *bool
	I2  *int16
	I4  *int32
	I8  *int64
	F4  *float32
	F8  *float64
	N   *string
	At  *time.Time
	D   *time.Time
	T   *string
	Bin []byte
	U   *string
	J   *string
	Arr []*float64
}

func to[T any](value T) *T { return &value }

func moment(text string) *time.Time {
	value, err := time.Parse("2006-01-02T15:04:05.999999", text)
	if err != nil {
		panic(err)
	}
	return &value
}

func allBytes() []byte {
	all := make([]byte, 256)
	for n := range all {
		all[n] = byte(n)
	}
	return all
}

func rows() []kinds {
	return []kinds{
		{1, to(true), to[int16](math.MinInt16), to[int32](math.MinInt32), to[int64](math.MinInt64), to[float32](-math.SmallestNonzeroFloat32), to(-math.MaxFloat64), to("-999999999999999.999"),
			moment("1969-12-31T23:59:59.999999"), moment("0001-01-01T00:00:00"), to(""), []byte{}, to("00000000-0000-0000-0000-000000000000"), to("{}"), []*float64{}},
		{2, to(false), to[int16](math.MaxInt16), to[int32](math.MaxInt32), to[int64](math.MaxInt64), to[float32](math.MaxFloat32), to(math.SmallestNonzeroFloat64), to("999999999999999.999"),
			moment("9999-12-31T23:59:59.999999"), moment("9999-12-31T00:00:00"), to(odd), allBytes(), to("ffffffff-ffff-ffff-ffff-ffffffffffff"), to(`{"a":  [1, null, "ü"]}`),
			[]*float64{to(1.0), nil, to(math.Copysign(0, -1)), to(0.1)}},
		{3, to(true), to[int16](0), to[int32](0), to[int64](0), to(float32(math.NaN())), to(math.NaN()), to("0.125"), moment("1970-01-01T00:00:00"), moment("1970-01-01T00:00:00"), to("NULL"), []byte(`\x00`),
			to("11111111-2222-3333-4444-555555555555"), to("[1.50]"), []*float64{to(math.NaN()), to(math.Inf(1)), to(math.Inf(-1))}},
		{4, nil, nil, nil, nil, to(float32(math.Inf(1))), to(math.Inf(-1)), to("-0.001"), moment("2024-02-29T12:34:56.789012"), moment("2024-02-29T00:00:00"), to(strings.Repeat("a", 3000)), make([]byte, 3000),
			to("00000000-0000-0000-0000-000000000001"), to(`"x"`), nil},
		{ID: 5},
	}
}

// text is a form of a row in which NaN equals NaN and −0 differs from 0.
func (k kinds) text() string {
	number := func(value *float64) string {
		if value == nil {
			return "nil"
		}
		if math.IsNaN(*value) {
			return "NaN"
		}
		return fmt.Sprintf("%x", math.Float64bits(*value))
	}
	var parts []string
	add := func(value any) { parts = append(parts, fmt.Sprint(value)) }
	single := (*float64)(nil)
	if k.F4 != nil {
		single = to(float64(*k.F4))
	}
	add(k.ID)
	add(optional(k.B))
	add(optional(k.I2))
	add(optional(k.I4))
	add(optional(k.I8))
	add(number(single))
	add(number(k.F8))
	add(optional(k.N))
	for _, value := range []*time.Time{k.At, k.D} {
		if value == nil {
			add("nil")
		} else {
			add(value.UTC().Format(time.RFC3339Nano))
		}
	}
	add(optional(k.T))
	add(fmt.Sprintf("%v %x", k.Bin == nil, k.Bin))
	add(optional(k.U))
	add(optional(k.J))
	add(fmt.Sprintf("%v", k.Arr == nil))
	for _, value := range k.Arr {
		add(number(value))
	}
	return strings.Join(parts, "|")
}

func optional[T any](value *T) string {
	if value == nil {
		return "nil"
	}
	return fmt.Sprint(*value)
}

func compare(t *testing.T, found []kinds) {
	t.Helper()
	expected := rows()
	if len(found) != len(expected) {
		t.Fatalf("%d rows, not %d", len(found), len(expected))
	}
	for n := range expected {
		if a, b := found[n].text(), expected[n].text(); a != b {
			t.Errorf("row %d is\n%.1000s\nnot\n%.1000s", n+1, a, b)
		}
	}
}

type failing struct{ statement, state string }

// failures are statements with their SQLSTATE; TABLE_ is a table with the columns of `definition`.
var failures = []failing{
	{"SELECT nothing FROM TABLE_", "42703"}, {"SELECT * FROM no_such_table", "42P01"}, {"SELEC 1", "42601"}, {"SELECT 1/0", "22012"}, {"SELECT no_such_function(1)", "42883"},
	{"SELECT 9223372036854775807 + 1", "22003"}, {"SELECT 'x'::integer", "22P02"}, {"CREATE TABLE TABLE_ (x int)", "42P07"}, {"INSERT INTO TABLE_ (id, nothing) VALUES (1, 2)", "42703"},
	{"DROP TABLE no_such_table", "42P01"},
}

func equal[T comparable](t *testing.T, found, expected T) {
	t.Helper()
	if found != expected {
		t.Errorf("%v, not %v", found, expected)
	}
}

func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}
