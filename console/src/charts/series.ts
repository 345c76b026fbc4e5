import type { Column, Row } from "../api/exec.ts";
import { cellText, familyOf, numberOf } from "../results/cells.ts";
import type { ChartSpec } from "./choose.ts";

export interface Series {
  name: string;
  values: (number | null)[];
}

export interface ChartData {
  xs: number[];
  xName: string;
  /** True if `xs` are seconds since 1970. */
  isTime: boolean;
  /** Names of the positions 0, 1, … of a chart over categories. */
  labels: string[] | undefined;
  series: Series[];
  /** Says which values the chart leaves out, if any. */
  note: string | undefined;
}

const SERIES_MAX = 24;
const CATEGORIES_MAX = 200;
const HISTOGRAM_BINS = 40;

function valueOf(row: Row, column: number, columns: Column[]): number | null {
  const value = numberOf(row[column], familyOf((columns[column] as Column).type));
  return Number.isFinite(value) ? value : null;
}

/** Returns the least of 1, 2 and 5 times a power of ten that is not below `width`. */
function roundWidth(width: number): number {
  const power = 10 ** Math.floor(Math.log10(width));
  return ([1, 2, 5, 10].find((factor) => factor * power >= width * (1 - 1e-9)) ?? 10) * power;
}

/** Counts values in bins of equal, round width, at most `bins` and one more; `xs` are the lower bounds of the bins. */
export function histogram(values: number[], bins = HISTOGRAM_BINS): { xs: number[]; counts: number[]; width: number } {
  if (values.length === 0) return { xs: [], counts: [], width: 1 };
  const [lo, hi] = values.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, -Infinity]);
  const width = hi > lo ? roundWidth((hi - lo) / bins) : 1;
  const first = Math.floor(lo / width);
  const counts = new Array<number>(Math.floor(hi / width) - first + 1).fill(0);
  for (const value of values) counts[Math.floor(value / width) - first]! += 1;
  return { xs: counts.map((_, i) => (first + i) * width), counts, width };
}

function histogramData(columns: Column[], rows: Row[], spec: ChartSpec): ChartData {
  const column = spec.ys[0] as number;
  const values = rows.map((row) => valueOf(row, column, columns)).filter((value) => value !== null);
  const { xs, counts } = histogram(values);
  const name = "rows";
  return {
    xs,
    xName: (columns[column] as Column).name,
    isTime: false,
    labels: undefined,
    series: [{ name, values: counts }],
    note: undefined,
  };
}

function categoryData(columns: Column[], rows: Row[], spec: ChartSpec): ChartData {
  const shown = rows.slice(0, CATEGORIES_MAX);
  const series = spec.ys.map((y) => ({
    name: (columns[y] as Column).name,
    values: shown.map((row) => valueOf(row, y, columns)),
  }));
  const note = rows.length > shown.length ? `first ${CATEGORIES_MAX} of ${rows.length} rows` : undefined;
  return {
    xs: shown.map((_, i) => i),
    xName: (columns[spec.x] as Column).name,
    isTime: false,
    labels: shown.map((row) => cellText(row[spec.x] ?? null)),
    series,
    note,
  };
}

/** Positions on the x axis in ascending order, each once. */
function sortedPositions(rows: Row[], x: number, columns: Column[]): number[] {
  const family = familyOf((columns[x] as Column).type);
  const positions = new Set(rows.map((row) => numberOf(row[x], family)).filter((value) => Number.isFinite(value)));
  return [...positions].sort((a, b) => a - b);
}

function groupNames(rows: Row[], group: number): string[] {
  return [...new Set(rows.map((row) => cellText(row[group] ?? null)))].sort();
}

function groupedSeries(columns: Column[], rows: Row[], spec: ChartSpec, indexOfX: Map<number, number>): Series[] {
  const family = familyOf((columns[spec.x] as Column).type);
  const names = spec.group < 0 ? [""] : groupNames(rows, spec.group).slice(0, SERIES_MAX);
  const several = spec.ys.length > 1 || spec.group < 0;
  const series = names.flatMap((group) =>
    spec.ys.map((y) => ({
      name: [group, several ? (columns[y] as Column).name : ""].filter((part) => part !== "").join(" "),
      values: new Array<number | null>(indexOfX.size).fill(null),
    })),
  );
  const indexOfGroup = new Map(names.map((name, i) => [name, i]));
  for (const row of rows) {
    const at = indexOfX.get(numberOf(row[spec.x], family));
    const group = spec.group < 0 ? 0 : indexOfGroup.get(cellText(row[spec.group] ?? null));
    if (at === undefined || group === undefined) continue;
    spec.ys.forEach((y, i) => ((series[group * spec.ys.length + i] as Series).values[at] = valueOf(row, y, columns)));
  }
  return series;
}

/** Points one by one, in order of x: several rows may have the same x. */
function scatterData(columns: Column[], rows: Row[], spec: ChartSpec): ChartData {
  const sorted = rows
    .map((row) => ({ row, x: valueOf(row, spec.x, columns) }))
    .filter((point): point is { row: Row; x: number } => point.x !== null)
    .sort((a, b) => a.x - b.x);
  const series = spec.ys.map((y) => ({
    name: (columns[y] as Column).name,
    values: sorted.map(({ row }) => valueOf(row, y, columns)),
  }));
  const isTime = familyOf((columns[spec.x] as Column).type) === "time";
  return {
    xs: sorted.map((point) => point.x),
    xName: (columns[spec.x] as Column).name,
    isTime,
    labels: undefined,
    series,
    note: undefined,
  };
}

/** Returns the values that a chart draws. */
export function chartData(columns: Column[], rows: Row[], spec: ChartSpec): ChartData {
  if (spec.kind === "histogram") return histogramData(columns, rows, spec);
  const family = spec.x < 0 ? "text" : familyOf((columns[spec.x] as Column).type);
  if (family !== "time" && family !== "number") return categoryData(columns, rows, spec);
  if (spec.kind === "scatter") return scatterData(columns, rows, spec);
  const xs = sortedPositions(rows, spec.x, columns);
  const series = groupedSeries(columns, rows, spec, new Map(xs.map((x, i) => [x, i])));
  const groups = spec.group < 0 ? 0 : groupNames(rows, spec.group).length;
  const note =
    groups > SERIES_MAX
      ? `first ${SERIES_MAX} of ${groups} values of ${(columns[spec.group] as Column).name}`
      : undefined;
  return { xs, xName: (columns[spec.x] as Column).name, isTime: family === "time", labels: undefined, series, note };
}
