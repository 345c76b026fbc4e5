import assert from "node:assert/strict";
import { test } from "node:test";
import * as sql from "../src/sql/statements.ts";

const texts = (text: string): string[] => sql.splitStatements(text).map((statement) => statement.text);

test("statements end at semicolons outside of strings, names and comments", () => {
  assert.deepEqual(texts("SELECT 1; SELECT ';' ; -- a;b\nSELECT \";\" /* ; */ ;;"), [
    "SELECT 1",
    "SELECT ';'",
    'SELECT ";"',
  ]);
  assert.deepEqual(texts("SELECT 'it''s; one'; SELECT $$a;b$$; SELECT $x$ $$; $x$"), [
    "SELECT 'it''s; one'",
    "SELECT $$a;b$$",
    "SELECT $x$ $$; $x$",
  ]);
  assert.deepEqual(texts("/* a /* nested; */ b; */ SELECT 1"), ["SELECT 1"]);
  assert.deepEqual(texts("  \n-- nothing\n"), []);
});

test("an unterminated string ends with the text", () => {
  assert.deepEqual(texts("SELECT 'a; b"), ["SELECT 'a; b"]);
});

test("the statement at the cursor", () => {
  const text = "SELECT 1;\n\nSELECT 2;  \n\nSELECT 3";
  const at = (position: number): string | undefined => sql.statementAt(text, position)?.text;
  assert.equal(at(0), "SELECT 1");
  assert.equal(at(9), "SELECT 1");
  assert.equal(at(10), "SELECT 2");
  assert.equal(at(21), "SELECT 2");
  assert.equal(at(text.length), "SELECT 3");
  assert.equal(sql.statementAt("  ", 1), undefined);
});

test("only queries without side effects and random values may be sent again", () => {
  for (const query of [
    "SELECT 1",
    "cpu LIMIT 5",
    "FROM t SELECT x",
    "WITH a AS (SELECT 1) TABLE a",
    "EXPLAIN SELECT 1",
    "SHOW TABLES",
    "SELECT 'insert'",
    'SELECT "update" FROM t',
    "(SELECT 1)",
  ]) {
    assert.equal(sql.isRepeatable(query), true, query);
  }
  for (const statement of [
    "INSERT INTO t VALUES (1) RETURNING x",
    "DELETE FROM t",
    "WITH a AS (INSERT INTO t VALUES (1)) SELECT 1",
    "EXPLAIN ANALYZE DELETE FROM t",
    "WITH a AS (SELECT 1) DELETE FROM t",
    "DECLARE @x := 1 UPDATE t SET v = @x",
    "SELECT rnd_int()",
    "CREATE TABLE t (x INT)",
    "BACKUP DATABASE TO '/x'",
    "",
  ]) {
    assert.equal(sql.isRepeatable(statement), false, statement);
  }
});

test("parameters by number and by time range", () => {
  assert.deepEqual(sql.positionalParameters("SELECT $2, '$3', $10, $2 -- $4"), [2, 10]);
  assert.equal(sql.hasTimeRange("SELECT ':from' FROM t WHERE ts > :from"), true);
  assert.equal(sql.hasTimeRange("SELECT x::from_type, ':to' FROM t"), false);
  assert.equal(
    sql.withTimeRange("a BETWEEN :from AND :TO, ':to'", "2024", "2025"),
    "a BETWEEN '2024' AND '2025', ':to'",
  );
});

test("positions count characters, not UTF-16 units", () => {
  assert.equal(sql.indexOfCharacter("a😀b", 2), 3);
  assert.equal(sql.indexOfCharacter("abc", 9), 3);
});

test("names and texts are quoted", () => {
  assert.equal(sql.quoteName("cpu_1"), "cpu_1");
  assert.equal(sql.quoteName('a "b"'), '"a ""b"""');
  assert.equal(sql.quoteText("it's"), "'it''s'");
});

test("parameters by name", () => {
  assert.deepEqual(sql.namedParameters("SELECT :a, ':b', x::c, :A, @d -- :e"), ["a"]);
  assert.equal(
    sql.withNamedParameters("SELECT :a, :b, ':a'", (name) => (name === "a" ? "'x'" : undefined)),
    "SELECT 'x', :b, ':a'",
  );
});

test("statements that write and statements that only read", () => {
  assert.equal(sql.isReadOnly("SELECT rnd_double() FROM t"), true);
  assert.equal(sql.isRepeatable("SELECT rnd_double() FROM t"), false);
  assert.equal(sql.isReadOnly("WITH x AS (DELETE FROM t RETURNING a) SELECT * FROM x"), false);
  assert.equal(sql.isPlainInsert("-- a\ninsert into t values (1)"), true);
  assert.equal(sql.isPlainInsert("INSERT INTO t VALUES (1) RETURNING x"), false);
  assert.equal(sql.isPlainInsert("INSERT INTO t SELECT ' returning '"), true);
});
