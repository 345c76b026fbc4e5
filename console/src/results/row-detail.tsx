import type { JSX } from "preact";
import { displayText, familyOf } from "./cells.ts";
import { gridRows, type GridState } from "./grid-state.ts";
import type { ResultPages } from "./pages.ts";

function pretty(text: string, type: string): string {
  if (type !== "JSON" && type !== "JSONB") return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** All values of the focused row, one below the other, in full. */
export function RowDetail({ result, state }: { result: ResultPages; state: GridState }): JSX.Element {
  const { focus } = state.selection.value;
  const index = gridRows(result, state.order.value).indexAt(focus.row);
  const values = result.row(index);
  return (
    <aside class="row-detail" aria-label="Row" tabIndex={0}>
      <h2>Row {index + 1}</h2>
      <dl>
        {result.columns.map((column, i) => {
          const value = values?.[i] ?? null;
          const isText = familyOf(column.type) === "text" || familyOf(column.type) === "json";
          return (
            <div key={i} class={i === focus.column ? "focused" : ""}>
              <dt>
                {column.name} <small>{column.type}</small>
              </dt>
              <dd class={value === null || value === "" ? "null" : isText ? "text" : ""}>
                {value === "" ? "empty" : pretty(displayText(value, column.type), column.type)}
              </dd>
            </div>
          );
        })}
      </dl>
    </aside>
  );
}
