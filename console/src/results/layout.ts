import type { Cell } from "../api/exec.ts";
import { columnWidth } from "./cells.ts";
import type { ResultPages } from "./pages.ts";

/** Rows whose values decide the width of a column. */
const SAMPLE_ROWS = 100;
/** Width of a character of the grid's font in pixels. */
const CHAR_WIDTH = 7.3;
export const COLUMN_WIDTH_MIN = 48;

/** Left edges and widths of the columns. */
export interface ColumnLayout {
  lefts: number[];
  widths: number[];
  total: number;
}

const measured = new WeakMap<ResultPages, number[]>();

function naturalWidths(result: ResultPages): number[] {
  const known = measured.get(result);
  if (known) return known;
  const widths = result.columns.map((column, i) => {
    const values: Cell[] = [];
    for (let row = 0; row < Math.min(SAMPLE_ROWS, result.reachable); row++) values.push(result.row(row)?.[i] ?? null);
    return columnWidth(column, values, CHAR_WIDTH);
  });
  measured.set(result, widths);
  return widths;
}

export function columnLayout(result: ResultPages, changed: Map<number, number>): ColumnLayout {
  const widths = naturalWidths(result).map((width, i) => changed.get(i) ?? width);
  const lefts: number[] = [];
  let total = 0;
  for (const width of widths) {
    lefts.push(total);
    total += width;
  }
  return { lefts, widths, total };
}

/** Returns the first visible column and the one after the last. */
export function visibleColumns(layout: ColumnLayout, scrollLeft: number, width: number): [lo: number, hi: number] {
  let lo = 0;
  while (lo < layout.lefts.length - 1 && (layout.lefts[lo + 1] as number) <= scrollLeft) lo++;
  let hi = lo;
  while (hi < layout.lefts.length && (layout.lefts[hi] as number) < scrollLeft + width) hi++;
  return [lo, hi];
}
