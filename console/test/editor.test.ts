import assert from "node:assert/strict";
import { test } from "node:test";
import { signaturesOf } from "../build/function-signatures.ts";
import { fuzzyScore } from "../src/palette/fuzzy.ts";
import { RowScroller } from "../src/results/scroller.ts";
import { movedBy } from "../src/results/selection.ts";
import { expectationAt, tableReferences } from "../src/sql/references.ts";

test("tables of a statement and their names", () => {
  assert.deepEqual(tableReferences('SELECT * FROM cpu c ASOF JOIN "my table" AS r ON (k) WHERE x'), [
    { table: "cpu", alias: "c" },
    { table: "my table", alias: "r" },
  ]);
  assert.deepEqual(tableReferences("cpu WHERE a = 1"), [{ table: "cpu", alias: "cpu" }]);
  assert.deepEqual(tableReferences("SELECT 1 FROM long_sequence(5)"), []);
  assert.deepEqual(tableReferences("INSERT INTO t VALUES (1)"), [{ table: "t", alias: "t" }]);
});

test("what completion expects", () => {
  const at = (sql: string): unknown => expectationAt(sql, sql.length);
  assert.deepEqual(at("SELECT * FROM "), { kind: "table" });
  assert.deepEqual(at("SELECT * FROM cp"), { kind: "table" });
  assert.deepEqual(at("SELECT c."), { kind: "member", of: "c" });
  assert.deepEqual(at("SELECT c.usa"), { kind: "member", of: "c" });
  assert.deepEqual(at("SELECT usa"), { kind: "expression" });
  assert.deepEqual(at("SELECT 'usa"), { kind: "none" });
  assert.deepEqual(at("SELECT 1 -- usa"), { kind: "none" });
  assert.deepEqual(at("SEL"), { kind: "table" });
});

test("signatures come from the tables of the documentation", () => {
  const page =
    "| function | is |\n|---|---|\n| `first(x)`, `last(x)` | by `ts` |\n| `a \\| b` | |\ntext `no(x)`\n| `first(y)` | again |";
  assert.deepEqual(signaturesOf(page), [
    ["first", "first(x)", "by ts"],
    ["last", "last(x)", "by ts"],
    ["a", "a | b", ""],
  ]);
});

test("fuzzy matches prefer beginnings of words", () => {
  assert.equal(fuzzyScore("xyz", "New tab"), undefined);
  assert.ok(fuzzyScore("nt", "New tab")! > fuzzyScore("nt", "Open the console tab")!);
});

test("every row of a million is reachable", () => {
  const scroller = new RowScroller(25, 1_000_000, 500);
  assert.equal(scroller.isScaled, true);
  scroller.moveTo(2_000_000);
  assert.deepEqual(scroller.visible(0), [999_980, 1_000_000]);
  assert.equal(scroller.scrollTop, scroller.contentHeight - 500);
  scroller.reveal(500_000);
  assert.equal(scroller.first, 500_000);
  assert.equal(scroller.topOf(500_001) - scroller.topOf(500_000), 25);
  scroller.scrolled(0);
  assert.equal(scroller.first, 0);
});

test("small results scroll by pixels", () => {
  const scroller = new RowScroller(25, 100, 500);
  scroller.scrolled(130);
  assert.equal(scroller.first, 5.2);
  assert.deepEqual(scroller.visible(2), [3, 28]);
});

test("keys move within the borders", () => {
  const extent = { rows: 10, columns: 3, pageRows: 4 };
  const key = (name: string, ctrlKey = false) =>
    movedBy({ key: name, ctrlKey, metaKey: false }, { row: 8, column: 1 }, extent);
  assert.deepEqual(key("PageDown"), { row: 9, column: 1 });
  assert.deepEqual(key("ArrowUp", true), { row: 0, column: 1 });
  assert.deepEqual(key("End"), { row: 8, column: 2 });
  assert.equal(key("x"), undefined);
});
