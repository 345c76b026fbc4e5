import assert from "node:assert/strict";
import { test } from "node:test";
import { parseExact } from "../src/api/json.ts";
import { parameterValue } from "../src/api/parameters.ts";
import { compareCells, displayText, numberOf, timeText } from "../src/results/cells.ts";
import { filterTest, nextSort, orderedIndexes } from "../src/results/order.ts";
import { formatRows } from "../src/results/text-formats.ts";

test("integers beyond 2^53 keep all digits", () => {
  assert.deepEqual(parseExact("[9223372036854775807,-9223372036854775808,9007199254740991,5]"), [
    "9223372036854775807",
    "-9223372036854775808",
    9007199254740991,
    5,
  ]);
  assert.deepEqual(parseExact('["9223372036854775807 \\" 9223372036854775806",0.1234567890123456789,1.0E300]'), [
    '9223372036854775807 " 9223372036854775806',
    0.1234567890123456789,
    1e300,
  ]);
  assert.deepEqual(parseExact('{"a":[1,{"b":null}],"c":""}'), { a: [1, { b: null }], c: "" });
});

test("parameters have the type of their text", () => {
  assert.deepEqual(["5", "-1.5", "true", "NULL", "abc", "'5'", "'it''s'", "2024-01-01"].map(parameterValue), [
    ["long", "5"],
    ["double", "-1.5"],
    ["boolean", true],
    ["null"],
    ["text", "abc"],
    ["text", "5"],
    ["text", "it's"],
    ["text", "2024-01-01"],
  ]);
});

test("cells of display", () => {
  assert.equal(displayText(1, "DOUBLE"), "1.0");
  assert.equal(displayText(1, "INT"), "1");
  assert.equal(displayText([1.5, 2], "DOUBLE[]"), "[1.5,2]");
  assert.equal(timeText("2024-01-01T00:00:00.120000Z"), "2024-01-01 00:00:00.12");
  assert.equal(timeText("2024-01-01T00:00:00.000000Z"), "2024-01-01 00:00:00");
  assert.equal(numberOf("2024-01-01T00:00:00.123456Z", "time"), 1704067200.123);
  assert.ok(Number.isNaN(numberOf(null, "number")));
});

test("order of values", () => {
  assert.ok(compareCells("9223372036854775806", "9223372036854775807", "number") < 0);
  assert.ok(compareCells("9", "10", "number") < 0);
  assert.ok(compareCells(null, "z", "text") > 0);
  assert.ok(compareCells("NaN", "1", "number") > 0);
});

const columns = [
  { name: "host", type: "SYMBOL" },
  { name: "value", type: "LONG" },
  { name: "ts", type: "TIMESTAMP" },
];
const rows = [
  ["b", "10", "2024-01-01T00:00:00Z"],
  ["a", "9", "2024-01-02T00:00:00Z"],
  ["", null, null],
  [null, "9223372036854775807", null],
];

test("filters", () => {
  const kept = (filter: string): number[] =>
    rows.flatMap((row, i) => ((filterTest(columns, filter)?.(row) ?? true) ? [i] : []));
  assert.deepEqual(kept(""), [0, 1, 2, 3]);
  assert.deepEqual(kept("value > 9"), [0, 3]);
  assert.deepEqual(kept("value = 9223372036854775807"), [3]);
  assert.deepEqual(kept("host = null"), [3]);
  assert.deepEqual(kept("value <> null; ts = 2024-01-02"), [1]);
  assert.deepEqual(kept("2024-01-01"), [0]);
  assert.deepEqual(kept("host ~ B"), [0]);
});

test("sorting keeps equal rows in place and cycles by header", () => {
  const order = (column: number, isDescending: boolean): number[] =>
    orderedIndexes(columns, [0, 1, 2, 3], (i) => rows[i], { sort: { column, isDescending }, filter: "" });
  assert.deepEqual(order(1, false), [1, 0, 3, 2]);
  assert.deepEqual(order(0, true), [3, 0, 1, 2]);
  assert.deepEqual(order(2, false), [0, 1, 2, 3]);
  assert.deepEqual(nextSort(undefined, 1), { column: 1, isDescending: false });
  assert.equal(nextSort({ column: 1, isDescending: true }, 1), undefined);
});

test("rows as text", () => {
  assert.equal(formatRows("TSV", columns, rows.slice(0, 1)), "b\t10\t2024-01-01T00:00:00Z");
  assert.equal(formatRows("CSV", columns, [['a,"b"', null, ""]]), 'host,value,ts\r\n"a,""b""",,""');
  assert.equal(
    formatRows("JSON", columns, [["x", "9223372036854775807", null]]),
    '[\n  {"host":"x","value":9223372036854775807,"ts":null}\n]',
  );
  assert.equal(
    formatRows("Markdown", columns, [["a|b", "1", null]]),
    "| host | value | ts |\n| --- | ---: | --- |\n| a\\|b | 1 |  |",
  );
  assert.equal(
    formatRows("SQL values", columns, [["it's", "1", null]]),
    "INSERT INTO t (host, value, ts) VALUES\n  ('it''s', 1, NULL);",
  );
});
