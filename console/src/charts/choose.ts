import type { Column, Row } from "../api/exec.ts";
import { familyOf, numberOf } from "../results/cells.ts";

export const CHART_KINDS = ["line", "area", "bar", "candles", "scatter", "histogram"] as const;
export type ChartKind = (typeof CHART_KINDS)[number];

/** Which columns a chart draws, as indexes; -1 stands for none. */
export interface ChartSpec {
  kind: ChartKind;
  x: number;
  ys: number[];
  /** Column with one series for each of its values. */
  group: number;
}

/** Series that are chosen without being asked for. */
const SERIES_CHOSEN_MAX = 4;
/** Values of a column that may each have a series. */
const GROUPS_MAX = 24;

const OHLC = ["open", "high", "low", "close"];

function distinctCount(rows: Row[], column: number): number {
  return new Set(rows.map((row) => row[column])).size;
}

/** Returns the columns open, high, low and close, if all of them exist. */
export function ohlcColumns(columns: Column[]): number[] | undefined {
  const found = OHLC.map((name) =>
    columns.findIndex((c) => c.name.toLowerCase() === name && familyOf(c.type) === "number"),
  );
  return found.includes(-1) ? undefined : found;
}

/** Chooses a chart by the types and values of the columns; `undefined` if no column has numbers. */
export function chooseChart(columns: Column[], rows: Row[], timestamp: number): ChartSpec | undefined {
  const indexesOf = (family: string): number[] => columns.flatMap((c, i) => (familyOf(c.type) === family ? [i] : []));
  const numbers = indexesOf("number");
  const texts = indexesOf("text");
  const time = timestamp >= 0 ? timestamp : (indexesOf("time")[0] ?? -1);
  if (numbers.length === 0) return undefined;
  const group = texts.find((i) => distinctCount(rows, i) > 1 && distinctCount(rows, i) <= GROUPS_MAX) ?? -1;
  const [first = -1, second = -1] = numbers;
  if (time >= 0) {
    const ohlc = ohlcColumns(columns);
    if (ohlc) return { kind: "candles", x: time, ys: ohlc, group: -1 };
    const hasOneTime = distinctCount(rows, time) <= 1 && rows.length > 1;
    const isSeries = group >= 0 && distinctCount(rows, time) < rows.length;
    if (!hasOneTime)
      return {
        kind: "line",
        x: time,
        ys: isSeries ? [first] : numbers.slice(0, SERIES_CHOSEN_MAX),
        group: isSeries ? group : -1,
      };
  }
  const category = texts[0];
  if (category !== undefined) return { kind: "bar", x: category, ys: numbers.slice(0, 2), group: -1 };
  if (second < 0) return { kind: "histogram", x: -1, ys: [first], group: -1 };
  return { kind: "scatter", x: first, ys: [second], group: -1 };
}

/** Returns the specification for another kind, with columns that the kind can draw. */
export function withKind(spec: ChartSpec, kind: ChartKind, columns: Column[]): ChartSpec {
  const numbers = columns.flatMap((c, i) => (familyOf(c.type) === "number" ? [i] : []));
  if (kind === "candles") return { ...spec, kind, ys: ohlcColumns(columns) ?? spec.ys, group: -1 };
  if (kind === "histogram") return { ...spec, kind, ys: spec.ys.slice(0, 1), group: -1 };
  if (kind === "scatter" && spec.x < 0)
    return { ...spec, kind, x: numbers.find((i) => !spec.ys.includes(i)) ?? numbers[0] ?? -1 };
  return { ...spec, kind };
}

/** Factor between the greatest values of two series above which one would look flat beside the other. */
const SCALE_FACTOR_MAX = 30;

/** Returns true if the values of the columns are too different for one axis. */
export function differInScale(columns: Column[], rows: Row[], ys: number[]): boolean {
  const greatest = ys
    .map((y) =>
      rows.reduce(
        (most, row) => Math.max(most, Math.abs(numberOf(row[y], familyOf((columns[y] as Column).type))) || 0),
        0,
      ),
    )
    .filter((value) => value > 0);
  return greatest.length > 1 && Math.max(...greatest) / Math.min(...greatest) > SCALE_FACTOR_MAX;
}
