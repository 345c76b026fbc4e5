import { parseChart } from "../charts/panel-chart-json.ts";
import type { PanelChart } from "../charts/panel-chart.ts";
import { integerAt, listAt, objectAt, oneOf, textAt } from "../documents/checks.ts";
import type { TimeRange } from "../sql/time-range.ts";
import { COLUMNS, HEIGHT_MIN, WIDTH_MIN, freePlace, type Place } from "./layout.ts";

export interface Panel extends Place {
  id: string;
  title: string;
  sql: string;
  chart: PanelChart;
}

/** A value that the user chooses, as the parameter `:name` of the panels. */
export interface Variable {
  name: string;
  kind: "text" | "list";
  /** The value at first; an empty one of a list is its first value. */
  value: string;
  /** Query whose first column is the list. */
  sql: string;
}

export interface Dashboard {
  panels: Panel[];
  variables: Variable[];
  range: TimeRange;
  /** Milliseconds between two refreshes, 0 without. */
  refreshMs: number;
}

export const REFRESH_MS = [0, 750, 1000, 5000, 30_000] as const;
const PANELS_MAX = 100;
const VARIABLES_MAX = 20;
const ROWS_MAX = 10_000;
/** Names that have a meaning of their own. */
const RESERVED = new Set(["from", "to", "interval"]);

export function emptyDashboard(): Dashboard {
  return { panels: [], variables: [], range: { from: "now-1h", to: "now" }, refreshMs: 0 };
}

/** Returns the reason why a variable cannot have a name, if there is one. */
export function nameProblem(name: string, others: string[]): string | undefined {
  if (!/^[A-Za-z_]\w*$/.test(name)) return "a name has letters, digits and _, and does not begin with a digit";
  if (RESERVED.has(name.toLowerCase())) return `:${name} is the time range of the dashboard`;
  const isTaken = others.some((other) => other.toLowerCase() === name.toLowerCase());
  return isTaken ? `there are two variables named ${name}` : undefined;
}

function parsePanel(json: unknown, i: number): Panel {
  const place = `panels[${i}]`;
  const panel = objectAt(json, place);
  const w = integerAt(panel["w"], `${place}.w`, [WIDTH_MIN, COLUMNS], 6);
  return {
    id: textAt(panel["id"], `${place}.id`, `p${i + 1}`),
    title: textAt(panel["title"], `${place}.title`, ""),
    sql: textAt(panel["sql"], `${place}.sql`, ""),
    chart: parseChart(panel["chart"], `${place}.chart`),
    x: integerAt(panel["x"], `${place}.x`, [0, COLUMNS - w], 0),
    y: integerAt(panel["y"], `${place}.y`, [0, ROWS_MAX], 0),
    w,
    h: integerAt(panel["h"], `${place}.h`, [HEIGHT_MIN, ROWS_MAX], 8),
  };
}

function parseVariable(json: unknown, i: number): Variable {
  const place = `variables[${i}]`;
  const variable = objectAt(json, place);
  return {
    name: textAt(variable["name"], `${place}.name`, ""),
    kind: oneOf(variable["kind"], `${place}.kind`, ["text", "list"] as const, "text"),
    value: textAt(variable["value"], `${place}.value`, ""),
    sql: textAt(variable["sql"], `${place}.sql`, ""),
  };
}

function checkLengths(panels: unknown[], variables: unknown[]): void {
  if (panels.length > PANELS_MAX) throw new Error(`a dashboard has at most ${PANELS_MAX} panels`);
  if (variables.length > VARIABLES_MAX) throw new Error(`a dashboard has at most ${VARIABLES_MAX} variables`);
}

/** Reads a dashboard from JSON; throws an error that names the wrong place. */
export function parseDashboard(json: unknown): Dashboard {
  const body = objectAt(json, "the dashboard");
  const range = objectAt(body["range"] ?? {}, "range");
  const [panelList, variableList] = [listAt(body["panels"], "panels"), listAt(body["variables"], "variables")];
  checkLengths(panelList, variableList);
  const panels = panelList.map(parsePanel);
  const ids = new Set(panels.map(({ id }) => id));
  if (ids.size < panels.length) throw new Error("two panels have the same id");
  const variables = variableList.map(parseVariable);
  const names = variables.map(({ name }) => name);
  names.forEach((name, i) => {
    const problem = nameProblem(name, names.slice(0, i));
    if (problem) throw new Error(`variables[${i}]: ${problem}`);
  });
  return {
    panels,
    variables,
    range: { from: textAt(range["from"], "range.from", "now-1h"), to: textAt(range["to"], "range.to", "now") },
    refreshMs: oneOf(body["refreshMs"], "refreshMs", REFRESH_MS, 0),
  };
}

/** Returns a panel in the first free place. */
export function newPanel(panels: Panel[]): Panel {
  const numbers = panels.map(({ id }) => Number(/^p(\d+)$/.exec(id)?.[1] ?? 0));
  const size = { w: 6, h: 8 };
  return {
    id: `p${Math.max(0, ...numbers) + 1}`,
    title: "",
    sql: "",
    chart: { kind: "auto" },
    ...size,
    ...freePlace(panels, size),
  };
}
