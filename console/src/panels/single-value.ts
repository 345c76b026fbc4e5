import type { Cell, Column, Row } from "../api/exec.ts";
import { familyOf } from "../results/cells.ts";

/**
 * Returns the value that stands for a result: of the last row, the first column with numbers, otherwise the first
 * column. The last row is the newest one of a result in the order of time.
 */
export function singleValue(columns: Column[], rows: Row[]): { column: Column; cell: Cell } | undefined {
  const row = rows.at(-1);
  const number = columns.findIndex((column) => familyOf(column.type) === "number");
  const index = Math.max(0, number);
  const column = columns[index];
  return row && column && { column, cell: row[index] ?? null };
}
