import { resultView, type ResultView } from "../state/view.ts";
import { familyOf } from "./cells.ts";
import type { ResultPages } from "./pages.ts";

/** Returns true if a chart can draw the result: charts need a column with numbers. */
export function hasChart(result: ResultPages): boolean {
  return result.columns.some((column) => familyOf(column.type) === "number");
}

/** The view of a result: the chosen one, or the grid if there is nothing to draw. */
export function shownView(result: ResultPages): ResultView {
  return hasChart(result) ? resultView.value : "grid";
}
