import type { JSX } from "preact";
import type { Column } from "../api/exec.ts";
import { Icon } from "../ui/icons.tsx";
import { px } from "../ui/px.ts";
import { familyOf } from "./cells.ts";
import type { GridState } from "./grid-state.ts";
import { COLUMN_WIDTH_MIN, type ColumnLayout } from "./layout.ts";
import { nextSort } from "./order.ts";

interface GridHeadProps {
  columns: Column[];
  timestamp: number;
  layout: ColumnLayout;
  range: [number, number];
  state: GridState;
  gutter: number;
  width: number;
}

/** Changes the width of a column while the pointer moves. */
function resize(event: PointerEvent, column: number, layout: ColumnLayout, state: GridState): void {
  const handle = event.currentTarget as HTMLElement;
  const start = event.clientX - (layout.widths[column] as number);
  handle.setPointerCapture(event.pointerId);
  const move = (e: PointerEvent): void => {
    const width = Math.max(COLUMN_WIDTH_MIN, e.clientX - start);
    state.widths.value = new Map(state.widths.peek()).set(column, width);
  };
  handle.addEventListener("pointermove", move);
  handle.addEventListener("pointerup", () => handle.removeEventListener("pointermove", move), { once: true });
  event.preventDefault();
  event.stopPropagation();
}

export function GridHead({ columns, timestamp, layout, range, state, gutter, width }: GridHeadProps): JSX.Element {
  const { sort } = state.order.value;
  const toggle = (column: number): void => {
    state.order.value = { ...state.order.peek(), sort: nextSort(sort, column) };
  };
  const heads: JSX.Element[] = [];
  for (let i = range[0]; i < range[1]; i++) {
    const column = columns[i] as Column;
    const isSorted = sort?.column === i;
    const direction = isSorted ? (sort.isDescending ? "descending" : "ascending") : "none";
    heads.push(
      <div
        key={i}
        role="columnheader"
        aria-colindex={i + 2}
        aria-sort={direction}
        class={familyOf(column.type) === "number" ? "head right" : "head"}
        style={{ left: px(gutter + (layout.lefts[i] as number)), width: px(layout.widths[i] as number) }}
      >
        <button
          class="head-button"
          tabIndex={-1}
          title={`${column.name} ${column.type}: sort the loaded rows`}
          onClick={() => toggle(i)}
        >
          <span class="head-name">{column.name}</span>
          {isSorted && <Icon name={sort.isDescending ? "down" : "up"} size={11} />}
          <span class="head-type">
            {column.type}
            {i === timestamp && " · designated"}
          </span>
        </button>
        <span class="head-handle" onPointerDown={(event) => resize(event, i, layout, state)} />
      </div>,
    );
  }
  return (
    <div class="grid-head" role="row" aria-rowindex={1} style={{ width: px(width) }}>
      <div class="row-number corner" role="columnheader" aria-colindex={1} style={{ width: px(gutter) }}>
        #
      </div>
      {heads}
    </div>
  );
}
