import { exec, type Column, type Row } from "../api/exec.ts";
import { numberOf, familyOf } from "../results/cells.ts";
import type { ResultPages } from "../results/pages.ts";
import type { ChartSpec } from "./choose.ts";
import { rangeQuery, reducedQuery, type Aggregate } from "./reduce.ts";

/** Rows of a chart and where they come from. */
export interface ChartRows {
  columns: Column[];
  rows: Row[];
  /** The specification for these columns. */
  spec: ChartSpec;
  /** The query that computed the rows at the server, if one did. */
  reducedSql: string | undefined;
  note: string | undefined;
}

/** Returns true if the server can compute the points: rows are missing here and the x axis is a time. */
export function isReducible(result: ResultPages, spec: ChartSpec): boolean {
  const hasTime = spec.x >= 0 && familyOf((result.columns[spec.x] as Column).type) === "time";
  return (
    !result.isComplete() && result.query.isRepeatable && hasTime && spec.kind !== "histogram" && spec.kind !== "scatter"
  );
}

function loadedRows(result: ResultPages): Row[] {
  return result.loadedIndexes().map((index) => result.row(index) as Row);
}

async function timeRange(
  result: ResultPages,
  spec: ChartSpec,
  signal: AbortSignal,
): Promise<[number, number] | undefined> {
  const sql = rangeQuery(result.query.sql, (result.columns[spec.x] as Column).name);
  const answer = await exec(sql, { params: result.query.params, signal });
  if (answer.kind !== "rows") return undefined;
  const [lo, hi] = (answer.rows[0] ?? []).map((cell) => numberOf(cell, "time"));
  return lo !== undefined && hi !== undefined && hi > lo ? [lo, hi] : undefined;
}

/**
 * Returns the rows that a chart draws.
 *
 * If all rows are loaded, they are drawn as they are. Otherwise the server computes one point for each pixel with
 * SAMPLE BY; what it cannot reduce is drawn from the loaded rows, with a note.
 */
export async function chartRows(
  result: ResultPages,
  spec: ChartSpec,
  aggregate: Aggregate,
  zoom: [number, number] | undefined,
  points: number,
  signal: AbortSignal,
): Promise<ChartRows> {
  const plain = (note: string | undefined): ChartRows => ({
    columns: result.columns,
    rows: loadedRows(result),
    spec,
    reducedSql: undefined,
    note,
  });
  if (result.isComplete()) return plain(undefined);
  const partial = `only the ${result.loadedCount()} loaded rows of ${result.isExact ? "" : "at least "}${result.rowCount}`;
  if (!isReducible(result, spec)) return plain(partial);
  const range = zoom ?? (await timeRange(result, spec, signal));
  if (!range) return plain(partial);
  const [from, to] = range;
  const sql = reducedQuery(result.query.sql, result.columns, { spec, aggregate, from, to, points });
  const answer = await exec(sql, { params: result.query.params, signal });
  if (answer.kind !== "rows") return plain(partial);
  const hasGroup = spec.group >= 0;
  const ys = spec.ys.map((_, i) => i + (hasGroup ? 2 : 1));
  return {
    columns: answer.columns,
    rows: answer.rows,
    spec: { ...spec, x: 0, group: hasGroup ? 1 : -1, ys },
    reducedSql: sql,
    note: undefined,
  };
}
