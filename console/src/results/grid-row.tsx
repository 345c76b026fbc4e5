import type { JSX } from "preact";
import type { Cell, Column, Row } from "../api/exec.ts";
import { px } from "../ui/px.ts";
import { cellText, displayText, familyOf, timeText } from "./cells.ts";
import type { ColumnLayout } from "./layout.ts";
import type { Bounds, CellPosition } from "./selection.ts";

export interface GridRowProps {
  row: number;
  /** Index of the row in the result. */
  index: number;
  top: number;
  values: Row | undefined;
  columns: Column[];
  layout: ColumnLayout;
  range: [number, number];
  selected: Bounds;
  focus: CellPosition;
  focusId: string;
  gutter: number;
}

const TEXT_CHARS_MAX = 400;

function content(value: Cell, type: string): string {
  if (value === null) return "NULL";
  if (value === "") return "empty";
  const text = familyOf(type) === "time" ? timeText(cellText(value)) : displayText(value, type);
  return text.length > TEXT_CHARS_MAX ? `${text.slice(0, TEXT_CHARS_MAX)}…` : text;
}

function cellClass(value: Cell | undefined, type: string, isSelected: boolean, isFocus: boolean): string {
  const kind = value === null ? "null" : value === "" ? "empty" : familyOf(type);
  return `cell ${kind}${familyOf(type) === "number" ? " right" : ""}${isSelected ? " selected" : ""}${isFocus ? " focus" : ""}`;
}

export function GridRow(props: GridRowProps): JSX.Element {
  const { row, index, top, values, columns, layout, range, selected, focus, focusId, gutter } = props;
  const isInRows = row >= selected.top && row <= selected.bottom;
  const cells: JSX.Element[] = [];
  for (let i = range[0]; i < range[1]; i++) {
    const column = columns[i] as Column;
    const value = values?.[i];
    const isSelected = isInRows && i >= selected.left && i <= selected.right;
    const isFocus = focus.row === row && focus.column === i;
    cells.push(
      <div
        key={i}
        id={isFocus ? focusId : undefined}
        role="gridcell"
        aria-colindex={i + 2}
        aria-selected={isSelected}
        data-column={i}
        class={values ? cellClass(value, column.type, isSelected, isFocus) : "cell loading"}
        style={{ left: px(gutter + (layout.lefts[i] as number)), width: px(layout.widths[i] as number) }}
      >
        {values ? content(value ?? null, column.type) : ""}
      </div>,
    );
  }
  return (
    <div
      class={index % 2 ? "grid-row odd" : "grid-row"}
      role="row"
      aria-rowindex={row + 2}
      data-row={row}
      style={{ transform: `translateY(${top}px)` }}
    >
      <div class="row-number" role="rowheader" aria-colindex={1} style={{ width: px(gutter) }}>
        {index + 1}
      </div>
      {cells}
    </div>
  );
}
