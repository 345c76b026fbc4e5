import assert from "node:assert/strict";
import { test } from "node:test";
import { chartOf, specOf } from "../src/charts/panel-chart.ts";
import { COLUMNS, freePlace, overlaps, placeByKey, placePanel, type Place } from "../src/dashboards/layout.ts";
import { newPanel, parseDashboard, type Variable } from "../src/dashboards/model.ts";
import { boundStatement, literalOf, unknownParameters, variableLiteral } from "../src/dashboards/parameters.ts";
import { singleValue } from "../src/panels/single-value.ts";

const at = (id: string, x: number, y: number, w = 6, h = 4): Place & { id: string } => ({ id, x, y, w, h });

function assertApart(panels: Place[]): void {
  panels.forEach((a, i) => panels.slice(i + 1).forEach((b) => assert.equal(overlaps(a, b), false)));
}

test("panels in the way move down, the moved one stays", () => {
  const panels = [at("a", 0, 0), at("b", 6, 0), at("c", 0, 4, 12)];
  const moved = placePanel(panels, "c", at("c", 0, 1, 12));
  assertApart(moved);
  assert.deepEqual(
    moved.map(({ id, y }) => [id, y]),
    [
      ["a", 5],
      ["b", 5],
      ["c", 1],
    ],
  );
});

test("any move leaves panels apart and within the grid", () => {
  let seed = 7;
  const random = (n: number): number => {
    seed = (seed * 1103515245 + 12345) % 2 ** 31;
    return seed % n;
  };
  let panels = Array.from({ length: 8 }, (_, i) => ({ id: `p${i}`, x: 0, y: i * 4, w: 6, h: 4 }));
  for (let i = 0; i < 300; i++) {
    const place = { x: random(16) - 2, y: random(20) - 2, w: random(15), h: random(8) };
    panels = placePanel(panels, `p${random(8)}`, place);
    assertApart(panels);
    assert.ok(panels.every(({ x, y, w }) => x >= 0 && y >= 0 && x + w <= COLUMNS));
  }
});

test("the first free place", () => {
  assert.deepEqual(freePlace([], { w: 6, h: 4 }), { x: 0, y: 0 });
  assert.deepEqual(freePlace([at("a", 0, 0)], { w: 6, h: 4 }), { x: 6, y: 0 });
  assert.deepEqual(freePlace([at("a", 0, 0), at("b", 6, 0)], { w: 6, h: 4 }), { x: 0, y: 4 });
});

test("arrow keys move, with Shift they resize", () => {
  assert.deepEqual(placeByKey(at("a", 6, 0), "ArrowRight", false), { x: 6, y: 0, w: 6, h: 4 });
  assert.deepEqual(placeByKey(at("a", 5, 1), "ArrowUp", false), { x: 5, y: 0, w: 6, h: 4 });
  assert.deepEqual(placeByKey(at("a", 5, 1), "ArrowRight", true), { x: 5, y: 1, w: 7, h: 4 });
  assert.deepEqual(placeByKey(at("a", 6, 1), "ArrowRight", true), { x: 6, y: 1, w: 6, h: 4 });
  assert.deepEqual(placeByKey(at("a", 5, 1), "ArrowUp", true), { x: 5, y: 1, w: 6, h: 3 });
  assert.equal(placeByKey(at("a", 5, 1), "Enter", false), undefined);
});

test("JSON of dashboards is checked and completed", () => {
  const dashboard = parseDashboard({
    panels: [{ sql: "SELECT 1", w: 99, x: 50 }],
    variables: [{ name: "host", kind: "list", sql: "SELECT 1" }],
  });
  const [panel] = dashboard.panels;
  assert.deepEqual([panel?.id, panel?.x, panel?.w, panel?.chart], ["p1", 0, 12, { kind: "auto" }]);
  assert.deepEqual(dashboard.range, { from: "now-1h", to: "now" });
  assert.equal(newPanel(dashboard.panels).id, "p2");
  const wrong: [unknown, RegExp][] = [
    [[], /the dashboard is not an object/],
    [{ panels: {} }, /panels is not a list/],
    [{ panels: [{ chart: { kind: "pie" } }] }, /panels\[0\]\.chart\.kind is not one of/],
    [{ panels: [{ id: "a" }, { id: "a" }] }, /two panels have the same id/],
    [{ refreshMs: 1 }, /refreshMs is not one of/],
    [{ variables: [{ name: "from" }] }, /:from is the time range/],
    [{ variables: [{ name: "a b" }] }, /letters, digits/],
    [{ variables: [{ name: "a" }, { name: "A" }] }, /two variables named A/],
  ];
  for (const [json, message] of wrong) assert.throws(() => parseDashboard(json), message);
});

test("values of variables are literals, never SQL", () => {
  const text: Variable = { name: "v", kind: "text", value: "", sql: "" };
  const list: Variable = { ...text, kind: "list" };
  assert.equal(literalOf("5"), "5");
  assert.equal(literalOf("'5'"), "'5'");
  assert.equal(literalOf("null"), "NULL");
  assert.equal(literalOf("a'; DROP TABLE t --"), "'a''; DROP TABLE t --'");
  assert.equal(variableLiteral(text, "true", undefined), "true");
  assert.equal(variableLiteral(list, "5", { values: ["5"], type: "SYMBOL" }), "'5'");
  assert.equal(variableLiteral(list, "5", { values: ["5"], type: "LONG" }), "5");
  assert.equal(variableLiteral(list, "5 OR true", { values: [], type: "LONG" }), "'5 OR true'");
});

test("parameters of a panel are bound", () => {
  const range = { from: "2024-01-01T00:00:00.000000Z", to: "2024-01-02T00:00:00.000000Z" };
  const literals = new Map([
    ["host", "'h'"],
    ["rack", undefined],
  ]);
  const context = { literals, range, points: 1440 };
  assert.deepEqual(
    boundStatement("SELECT ':host' WHERE h = :Host AND ts > :from AND x::text = '' SAMPLE BY :interval", context),
    { sql: `SELECT ':host' WHERE h = 'h' AND ts > '${range.from}' AND x::text = '' SAMPLE BY 1m` },
  );
  assert.deepEqual(boundStatement("SELECT :rack", context), { waiting: "waiting for the list of :rack" });
  assert.deepEqual(unknownParameters("SELECT :host, :to, :interval, :other, '@x'", literals), ["other"]);
});

test("columns of a chart are kept by name", () => {
  const columns = ["ts", "k", "a", "b"].map((name, i) => ({ name, type: ["TIMESTAMP", "SYMBOL", "LONG", "LONG"][i]! }));
  const rows = [
    ["2024-01-01T00:00:00Z", "x", "1", "2"],
    ["2024-01-01T00:00:00Z", "y", "1", "2"],
  ];
  const spec = { kind: "area" as const, x: 0, ys: [3], group: -1 };
  const chart = chartOf(spec, columns);
  assert.deepEqual(specOf(chart, columns, rows, 0), spec);
  const turned = [3, 2, 1, 0].map((i) => columns[i]!);
  assert.deepEqual(
    specOf(
      chart,
      turned,
      rows.map((row) => [...row].reverse()),
      3,
    ),
    { kind: "area", x: 3, ys: [0], group: -1 },
  );
  assert.equal(specOf({ kind: "line" }, columns.slice(0, 2), rows, 0), undefined);
  assert.equal(specOf({ kind: "bar", ys: ["gone"] }, columns, rows, 0)?.ys[0], 2);
});

test("the single value is the first number of the last row", () => {
  const columns = [
    { name: "ts", type: "TIMESTAMP" },
    { name: "v", type: "DOUBLE" },
  ];
  assert.deepEqual(
    singleValue(columns, [
      ["a", 1],
      ["b", 2],
    ])?.cell,
    2,
  );
  assert.equal(singleValue(columns.slice(0, 1), [["a"]])?.cell, "a");
  assert.equal(singleValue(columns, []), undefined);
});
