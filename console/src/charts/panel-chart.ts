import type { Column, Row } from "../api/exec.ts";
import { chooseChart, CHART_KINDS, withKind, type ChartKind, type ChartSpec } from "./choose.ts";

export const PANEL_KINDS = ["auto", "value", "table", ...CHART_KINDS] as const;
export type PanelKind = (typeof PANEL_KINDS)[number];

/**
 * How a panel or a cell shows its rows.
 *
 * Columns are kept by name, because a changed statement may return them in another order. Columns that are left out or
 * that the rows do not have are chosen by the types.
 */
export interface PanelChart {
  kind: PanelKind;
  x?: string;
  ys?: string[];
  group?: string;
}

export function isChartKind(kind: PanelKind): kind is ChartKind {
  return (CHART_KINDS as readonly string[]).includes(kind);
}

/** Rows that decide which chart is chosen. */
const SAMPLE_ROWS = 2000;

/** Returns the columns that a chart draws; `undefined` if no column has numbers. */
export function specOf(chart: PanelChart, columns: Column[], rows: Row[], timestamp: number): ChartSpec | undefined {
  const chosen = chooseChart(columns, rows.slice(0, SAMPLE_ROWS), timestamp);
  if (!chosen) return undefined;
  const spec = isChartKind(chart.kind) ? withKind(chosen, chart.kind, columns) : chosen;
  const indexOf = (name: string | undefined): number => columns.findIndex((column) => column.name === name);
  const x = indexOf(chart.x);
  const ys = (chart.ys ?? []).map(indexOf).filter((index) => index >= 0);
  return {
    ...spec,
    x: x >= 0 && spec.kind !== "histogram" ? x : spec.x,
    ys: ys.length > 0 && spec.kind !== "candles" ? ys : spec.ys,
    group: chart.group === undefined || spec.kind === "candles" ? spec.group : indexOf(chart.group),
  };
}

/** Returns the chart that keeps the columns of a specification by name. */
export function chartOf(spec: ChartSpec, columns: Column[]): PanelChart {
  const nameOf = (index: number): string => columns[index]?.name ?? "";
  return { kind: spec.kind, x: nameOf(spec.x), ys: spec.ys.map(nameOf), group: nameOf(spec.group) };
}
