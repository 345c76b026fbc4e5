import type { Row } from "../api/exec.ts";
import { notify } from "../ui/notice.tsx";
import { formatCount } from "../ui/format.ts";
import { gridRows, type GridState } from "./grid-state.ts";
import type { ResultPages } from "./pages.ts";
import { boundsOf } from "./selection.ts";
import { formatRows, type TextFormat } from "./text-formats.ts";

/** Rows that one copy may have; larger selections are refused with a hint at the export. */
const COPY_ROWS_MAX = 50_000;

/** Writes the selected cells to the clipboard; rows that are not loaded are requested first. */
export async function copySelection(format: TextFormat, result: ResultPages, state: GridState): Promise<void> {
  const { top, bottom, left, right } = boundsOf(state.selection.peek());
  const count = bottom - top + 1;
  if (count > COPY_ROWS_MAX) {
    notify(
      `${formatCount(count)} rows are more than the clipboard takes (${formatCount(COPY_ROWS_MAX)}): use Export`,
      true,
    );
    return;
  }
  const rows = gridRows(result, state.order.peek());
  if (!rows.isOrdered) await result.loadRange(top, bottom);
  const picked: Row[] = [];
  for (let row = top; row <= bottom; row++) {
    const values = result.row(rows.indexAt(row));
    if (!values) {
      notify("not all selected rows could be read", true);
      return;
    }
    picked.push(values.slice(left, right + 1));
  }
  await navigator.clipboard.writeText(formatRows(format, result.columns.slice(left, right + 1), picked));
  const isCell = count === 1 && left === right;
  notify(isCell ? "Copied the value" : `Copied ${formatCount(count)} ${count === 1 ? "row" : "rows"} as ${format}`);
}
