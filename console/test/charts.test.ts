import assert from "node:assert/strict";
import { test } from "node:test";
import { chooseChart, differInScale } from "../src/charts/choose.ts";
import { reducedQuery, sampleStep, timestampText } from "../src/charts/reduce.ts";
import { chartData, histogram } from "../src/charts/series.ts";
import { axisText, timeLabels, valueText } from "../src/charts/labels.ts";

const time = { name: "ts", type: "TIMESTAMP" };
const symbol = { name: "k", type: "SYMBOL" };
const number = { name: "v", type: "DOUBLE" };
const at = (hour: number): string => `2024-01-01T0${hour}:00:00.000000Z`;

test("a time and numbers are lines", () => {
  assert.deepEqual(
    chooseChart(
      [time, number],
      [
        [at(0), 1],
        [at(1), 2],
      ],
      0,
    ),
    { kind: "line", x: 0, ys: [1], group: -1 },
  );
});

test("several rows of a time have one series for each symbol", () => {
  const rows = [
    [at(0), "a", 1],
    [at(0), "b", 2],
    [at(1), "a", 3],
  ];
  const spec = chooseChart([time, symbol, number], rows, 0);
  assert.deepEqual(spec, { kind: "line", x: 0, ys: [2], group: 1 });
  const data = chartData([time, symbol, number], rows, spec!);
  assert.equal(data.xs.length, 2);
  assert.deepEqual(data.series, [
    { name: "a", values: [1, 3] },
    { name: "b", values: [2, null] },
  ]);
});

test("open, high, low and close are candles", () => {
  const columns = [time, ...["close", "Open", "low", "high"].map((name) => ({ name, type: "DOUBLE" }))];
  assert.deepEqual(chooseChart(columns, [], 0), { kind: "candles", x: 0, ys: [2, 4, 3, 1], group: -1 });
});

test("categories are bars, one number is a histogram, two are points, none is no chart", () => {
  assert.equal(
    chooseChart(
      [symbol, number],
      [
        ["a", 1],
        ["b", 2],
      ],
      -1,
    )?.kind,
    "bar",
  );
  assert.equal(chooseChart([number], [[1], [2]], -1)?.kind, "histogram");
  assert.deepEqual(chooseChart([number, { name: "w", type: "LONG" }], [[1, 2]], -1), {
    kind: "scatter",
    x: 0,
    ys: [1],
    group: -1,
  });
  assert.equal(chooseChart([symbol, time], [["a", at(0)]], 1), undefined);
});

test("bins of a histogram have round bounds and all values", () => {
  const { xs, counts, width } = histogram([0, 1, 2, 3, 9, 10], 5);
  assert.equal(width, 2);
  assert.deepEqual(xs, [0, 2, 4, 6, 8, 10]);
  assert.deepEqual(counts, [2, 2, 0, 0, 1, 1]);
  assert.deepEqual(histogram([], 5).counts, []);
  assert.deepEqual(histogram([3, 3], 5), { xs: [3], counts: [2], width: 1 });
});

test("SAMPLE BY has at most one bucket for each pixel", () => {
  assert.equal(sampleStep(86_400, 1440), "1m");
  assert.equal(sampleStep(86_400, 1000), "2m");
  assert.equal(sampleStep(1, 1000), "1T");
  const spec = { kind: "line" as const, x: 0, ys: [2], group: 1 };
  const sql = reducedQuery("SELECT * FROM t -- all", [time, symbol, number], {
    spec,
    aggregate: "max",
    from: 1704067200,
    to: 1704070800.5,
    points: 60,
  });
  assert.equal(
    sql,
    "SELECT ts, k, max(v) AS v\nFROM (\nSELECT * FROM t -- all\n) TIMESTAMP(ts)\nWHERE ts BETWEEN '2024-01-01T00:00:00.000000Z' AND '2024-01-01T01:00:00.500000Z'\nSAMPLE BY 2m",
  );
});

test("times of charts have microseconds and 24 hours", () => {
  assert.equal(timestampText(1704067200.123456), "2024-01-01T00:00:00.123456Z");
  const midnight = 1704067200;
  assert.deepEqual(timeLabels([midnight - 3600, midnight, midnight + 3600], 3600), [
    "23:00\n2023-12-31",
    "00:00\n2024-01-01",
    "01:00",
  ]);
  assert.deepEqual(timeLabels([midnight], 86_400), ["2024-01-01"]);
});

test("values of axes are short, values below the chart have eight digits", () => {
  assert.deepEqual([0, 12.5, 20_000_000, -1_500_000, 0.00002].map(axisText), ["0", "12.5", "20M", "-1.5M", "2.0e-5"]);
  assert.deepEqual([1234567.5, 0.1 + 0.2].map(valueText), ["1,234,567.5", "0.3"]);
});

test("series of different scales are drawn apart", () => {
  const columns = [number, { name: "w", type: "LONG" }];
  assert.equal(
    differInScale(
      columns,
      [
        [0.1, "20000000"],
        [0.9, "1"],
      ],
      [0, 1],
    ),
    true,
  );
  assert.equal(
    differInScale(
      columns,
      [
        [10, "20"],
        [5, "3"],
      ],
      [0, 1],
    ),
    false,
  );
  assert.equal(differInScale(columns, [[null, "20"]], [0, 1]), false);
});
