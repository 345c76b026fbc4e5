import assert from "node:assert/strict";
import { test } from "node:test";
import { rangeLabel, rangeSeconds, resolveRange, resolveTime } from "../src/sql/time-range.ts";

const NOW = Date.parse("2024-03-31T12:30:00.500Z");

test("relative times", () => {
  assert.equal(resolveTime("now", NOW), "2024-03-31T12:30:00.500000Z");
  assert.equal(resolveTime("now-15m", NOW), "2024-03-31T12:15:00.500000Z");
  assert.equal(resolveTime(" now - 2d ", NOW), "2024-03-29T12:30:00.500000Z");
  assert.equal(resolveTime("now+1w", NOW), "2024-04-07T12:30:00.500000Z");
  assert.equal(resolveTime("now-1y", NOW), "2023-03-31T12:30:00.500000Z");
});

test("absolute times may end after any part", () => {
  const cases = {
    "2024": "2024-01-01T00:00:00.000000Z",
    "2024-02": "2024-02-01T00:00:00.000000Z",
    "2024-02-03": "2024-02-03T00:00:00.000000Z",
    "2024-02-03 04": "2024-02-03T04:00:00.000000Z",
    "2024-02-03T04:05Z": "2024-02-03T04:05:00.000000Z",
    "2024-02-03 04:05:06.7": "2024-02-03T04:05:06.700000Z",
    "2024-02-03T04:05:06.123456Z": "2024-02-03T04:05:06.123456Z",
  };
  for (const [text, wanted] of Object.entries(cases)) assert.equal(resolveTime(text, NOW), wanted, text);
});

test("texts that are no time", () => {
  for (const text of ["", "yesterday", "now-", "now-5", "now-1q", "2024-13-01", "2024-02-03'; DROP TABLE t", "12:30"]) {
    assert.equal(resolveTime(text, NOW), undefined, text);
  }
});

test("ranges without bounds and with wrong ones", () => {
  assert.deepEqual(resolveRange({ from: "", to: " " }, NOW), {
    from: "1970-01-01T00:00:00.000000Z",
    to: "2200-01-01T00:00:00.000000Z",
  });
  assert.deepEqual(resolveRange({ from: "now-1h", to: "soon" }, NOW), { invalid: "soon" });
  const range = resolveRange({ from: "2024-01-01", to: "2024-01-02" }, NOW);
  assert.ok(!("invalid" in range));
  assert.equal(rangeSeconds(range), 86_400);
});

test("ranges in words", () => {
  assert.equal(rangeLabel({ from: "", to: "" }), "All times");
  assert.equal(rangeLabel({ from: "now-15m", to: "now" }), "Last 15 minutes");
  assert.equal(
    rangeLabel({ from: "2024-01-01T10:00:00.000000Z", to: "2024-01-01T11:00:30.000000Z" }),
    "2024-01-01 10:00:00 – 2024-01-01 11:00:30",
  );
  assert.equal(rangeLabel({ from: "2024-01-01", to: "" }), "2024-01-01 – end");
});
