// A server to test, and values that both servers share.
//
// TEST_PORT      the port of the PostgreSQL protocol on 127.0.0.1
// TEST_SIDE      `tidalite` or `postgres`
import { randomUUID } from "node:crypto";

export const config = { host: "127.0.0.1", port: Number(process.env.TEST_PORT), user: "postgres", database: "tidalite" };
export const side = process.env.TEST_SIDE;

/** A name that no other test uses. */
export const unique = (name) => `${name}_${randomUUID().slice(0, 8)}`;

/** Columns of all types that are types of columns in both databases. */
export const DEFINITION =
  "id bigint, b boolean, i2 smallint, i4 integer, i8 bigint, f4 real, f8 double precision, n numeric(18,3), at timestamp, " +
  "d date, t text, bin bytea, u uuid, j json, arr double precision[]";

export const ODD = "täxt 😀 \u202e 'q' \"d\" \\ \\n \n\r\t %s $1 :x ? {,} NULL";

/** Rows as texts of PostgreSQL; `bin` is a Buffer, `j` the text of JSON, `arr` an array. */
export const ROWS = [
  ["1", true, -32768, -2147483648, "-9223372036854775808", -1.5, -1.7976931348623157e308, "-999999999999999.999",
    "1969-12-31 23:59:59.999999", "0001-01-01", "", Buffer.from([]), "00000000-0000-0000-0000-000000000000", "{}", []],
  ["2", false, 32767, 2147483647, "9223372036854775807", 0.25, 5e-324, "999999999999999.999", "9999-12-31 23:59:59.999999",
    "9999-12-31", ODD, Buffer.from(Array.from({ length: 256 }, (_, n) => n)), "ffffffff-ffff-ffff-ffff-ffffffffffff",
    '{"a": [1, null, "ü"]}', [1, null, 0.1]],
  ["3", true, 0, 0, "0", NaN, NaN, "0.000", "1970-01-01 00:00:00", "1970-01-01", "NULL", Buffer.from("\\x00"),
    "11111111-2222-3333-4444-555555555555", "[1.50]", [NaN, Infinity, -Infinity]],
  ["4", null, null, null, null, Infinity, -Infinity, "-0.001", "2024-02-29 12:34:56.789012", "2024-02-29", "a".repeat(3000),
    Buffer.alloc(3000), "00000000-0000-0000-0000-000000000001", '"x"', Array(500).fill(1e300)],
  ["5", ...Array(14).fill(null)],
];

/** [statement, SQLSTATE]; TABLE_ is a table with the columns of `DEFINITION`. */
export const ERRORS = [
  ["SELECT nothing FROM TABLE_", "42703"], ["SELECT * FROM no_such_table", "42P01"], ["SELEC 1", "42601"], ["SELECT 1/0", "22012"],
  ["SELECT no_such_function(1)", "42883"], ["SELECT 9223372036854775807 + 1", "22003"], ["SELECT 'x'::integer", "22P02"],
  ["CREATE TABLE TABLE_ (x int)", "42P07"], ["INSERT INTO TABLE_ (id, nothing) VALUES (1, 2)", "42703"], ["DROP TABLE no_such_table", "42P01"],
];

/** A promise of the error that `promise` ends with. */
export const failure = (promise) => promise.then(() => { throw new Error("no error"); }, (error) => error);

export const after = (milliseconds, action) => new Promise((done) => setTimeout(() => done(action()), milliseconds));
