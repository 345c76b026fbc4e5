import type { Column } from "../api/exec.ts";
import { quoteName } from "../sql/statements.ts";
import type { ChartSpec } from "./choose.ts";

export const AGGREGATES = ["avg", "min", "max", "sum", "first", "last"] as const;
export type Aggregate = (typeof AGGREGATES)[number];

/** Lengths of SAMPLE BY in seconds, ascending. */
const STEPS: [seconds: number, text: string][] = [
  [1e-6, "1U"],
  [1e-5, "10U"],
  [1e-4, "100U"],
  [1e-3, "1T"],
  [1e-2, "10T"],
  [0.1, "100T"],
  [1, "1s"],
  [2, "2s"],
  [5, "5s"],
  [10, "10s"],
  [15, "15s"],
  [30, "30s"],
  [60, "1m"],
  [120, "2m"],
  [300, "5m"],
  [600, "10m"],
  [900, "15m"],
  [1800, "30m"],
  [3600, "1h"],
  [7200, "2h"],
  [14_400, "4h"],
  [21_600, "6h"],
  [43_200, "12h"],
  [86_400, "1d"],
  [172_800, "2d"],
  [604_800, "1w"],
  [2_592_000, "1M"],
  [7_776_000, "3M"],
  [31_536_000, "1y"],
];

/** Returns the shortest length of SAMPLE BY that gives at most `points` buckets. */
export function sampleStep(seconds: number, points: number): string {
  const wanted = seconds / Math.max(1, points);
  return (STEPS.find(([length]) => length >= wanted) ?? (STEPS.at(-1) as [number, string]))[1];
}

/** Seconds since 1970 as a timestamp of SQL with microseconds. */
export function timestampText(seconds: number): string {
  const ms = Math.floor(seconds * 1000);
  const micros = Math.round((seconds * 1000 - ms) * 1000);
  return new Date(ms).toISOString().replace("Z", `${String(Math.min(999, micros)).padStart(3, "0")}Z`);
}

/** Returns the query for the first and last time of a statement. */
export function rangeQuery(sql: string, time: string): string {
  const name = quoteName(time);
  return `SELECT min(${name}) AS lo, max(${name}) AS hi FROM (\n${sql}\n) q`;
}

export interface Reduction {
  spec: ChartSpec;
  aggregate: Aggregate;
  /** Seconds since 1970. */
  from: number;
  to: number;
  points: number;
}

const OHLC_AGGREGATES = ["first", "max", "min", "last"];

/** Returns a query with one row for each pixel of the chart, over the rows of the statement in a time range. */
export function reducedQuery(sql: string, columns: Column[], { spec, aggregate, from, to, points }: Reduction): string {
  const name = (index: number): string => quoteName((columns[index] as Column).name);
  const time = name(spec.x);
  const step = sampleStep(to - from, points);
  const values = spec.ys.map(
    (y, i) => `${spec.kind === "candles" ? OHLC_AGGREGATES[i] : aggregate}(${name(y)}) AS ${name(y)}`,
  );
  const selected = [time, ...(spec.group < 0 ? [] : [name(spec.group)]), ...values].join(", ");
  return (
    `SELECT ${selected}\nFROM (\n${sql}\n) TIMESTAMP(${time})\n` +
    `WHERE ${time} BETWEEN '${timestampText(from)}' AND '${timestampText(to)}'\nSAMPLE BY ${step}`
  );
}
