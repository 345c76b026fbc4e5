import assert from "node:assert/strict";
import { test } from "node:test";
import { countQuery, limitedQuery } from "../src/sql/limit.ts";

test("a LIMIT is added to queries without one", () => {
  assert.equal(limitedQuery("SELECT * FROM t -- all", 0, 10), "SELECT * FROM t -- all\nLIMIT 0, 10");
  assert.equal(limitedQuery("cpu", 5, 10), "cpu\nLIMIT 5, 10");
  assert.equal(limitedQuery("SELECT * FROM (SELECT * FROM t LIMIT 5)", 0, 10)?.endsWith("LIMIT 0, 10"), true);
  for (const sql of [
    "SELECT 1 LIMIT 5",
    "SELECT 1 OFFSET 2",
    "SELECT 1 FETCH FIRST ROW ONLY",
    "EXPLAIN SELECT 1",
    "SHOW TABLES",
  ]) {
    assert.equal(limitedQuery(sql, 0, 10), undefined, sql);
  }
});

test("late rows of an order are not kept by a LIMIT", () => {
  assert.notEqual(limitedQuery("SELECT * FROM t ORDER BY v", 0, 100_000), undefined);
  assert.equal(limitedQuery("SELECT * FROM t ORDER BY v", 100_000, 101_000), undefined);
  assert.notEqual(limitedQuery("SELECT v, sum(v) OVER (ORDER BY v) FROM t", 100_000, 101_000), undefined);
});

test("rows are counted without reading them here", () => {
  assert.equal(countQuery("SELECT 1 -- x"), "SELECT count(*) AS n FROM (\nSELECT 1 -- x\n) q");
});
