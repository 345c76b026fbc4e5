import { listAt, objectAt, oneOf, textAt } from "../documents/checks.ts";
import { PANEL_KINDS, type PanelChart } from "./panel-chart.ts";

/** Reads the chart of a panel or a cell from JSON. */
export function parseChart(json: unknown, place: string): PanelChart {
  if (json === undefined) return { kind: "auto" };
  const { kind, x, ys, group } = objectAt(json, place);
  const chart: PanelChart = { kind: oneOf(kind, `${place}.kind`, PANEL_KINDS, "auto") };
  if (x !== undefined) chart.x = textAt(x, `${place}.x`, "");
  if (group !== undefined) chart.group = textAt(group, `${place}.group`, "");
  if (ys !== undefined) chart.ys = listAt(ys, `${place}.ys`).map((y, i) => textAt(y, `${place}.ys[${i}]`, ""));
  return chart;
}
