import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { JSX } from "preact";
import { px } from "../ui/px.ts";
import { copySelection } from "./copy.ts";
import { GridHead } from "./grid-head.tsx";
import { GridRow } from "./grid-row.tsx";
import { gridRows, type GridState } from "./grid-state.ts";
import { columnLayout, visibleColumns } from "./layout.ts";
import { nextSort } from "./order.ts";
import type { ResultPages } from "./pages.ts";
import { RowScroller } from "./scroller.ts";
import { boundsOf, movedBy, type CellPosition } from "./selection.ts";

export const ROW_HEIGHT = 25;
export const HEAD_HEIGHT = 40;
const OVERSCAN_ROWS = 6;

interface GridProps {
  result: ResultPages;
  state: GridState;
  onOpenRow: () => void;
}

function cellAt(event: Event): CellPosition | undefined {
  const cell = (event.target as HTMLElement).closest<HTMLElement>("[data-column]");
  const row = (event.target as HTMLElement).closest<HTMLElement>("[data-row]");
  if (!row) return undefined;
  return { row: Number(row.dataset["row"]), column: Number(cell?.dataset["column"] ?? -1) };
}

/** A grid of which only the visible rows and columns are elements. */
export function Grid({ result, state, onOpenRow }: GridProps): JSX.Element {
  const host = useRef<HTMLDivElement>(null);
  const size = useSignal({ width: 800, height: 300 });
  const position = useSignal({ top: 0, left: 0 });
  const rows = gridRows(result, state.order.value);
  const layout = columnLayout(result, state.widths.value);
  const gutter = Math.max(44, String(result.rowCount).length * 7.5 + 22);
  const scroller = useRef(new RowScroller(ROW_HEIGHT, rows.count, 300)).current;
  scroller.rowCount = rows.count;
  scroller.viewHeight = Math.max(ROW_HEIGHT, size.value.height - HEAD_HEIGHT);
  const top = position.value.top;
  const [lo, hi] = scroller.visible(OVERSCAN_ROWS);
  const range = visibleColumns(layout, position.value.left, size.value.width - gutter);
  const selection = state.selection.value;

  useEffect(() => {
    const element = host.current as HTMLDivElement;
    const measure = (): void => void (size.value = { width: element.clientWidth, height: element.clientHeight });
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    measure();
    scroller.moveTo(state.first);
    element.scrollTop = scroller.scrollTop;
    return () => observer.disconnect();
  }, [state]);
  useLayoutEffect(() => {
    if (!rows.isOrdered) result.want(lo, hi - 1);
    state.visible.value = scroller.visible(0);
  }, [result, lo, hi, rows.isOrdered, rows.count]);

  function refresh(): void {
    const element = host.current as HTMLDivElement;
    state.first = scroller.first;
    position.value = { top: scroller.scrollTop, left: element.scrollLeft };
  }
  const scrollTo = (): void => {
    (host.current as HTMLDivElement).scrollTop = scroller.scrollTop;
    refresh();
  };
  const onScroll = (): void => {
    scroller.scrolled((host.current as HTMLDivElement).scrollTop);
    refresh();
  };
  const onWheel = (event: WheelEvent): void => {
    if (!scroller.isScaled || event.deltaY === 0 || event.ctrlKey) return;
    event.preventDefault();
    scroller.moveTo(scroller.first + event.deltaY / ROW_HEIGHT);
    scrollTo();
  };
  const select = (focus: CellPosition, extend: boolean): void => {
    state.selection.value = { anchor: extend ? state.selection.peek().anchor : focus, focus };
    revealColumn(host.current as HTMLDivElement, focus.column, layout, gutter);
    scroller.reveal(focus.row);
    scrollTo();
  };
  const onPointerDown = (event: PointerEvent): void => {
    const cell = cellAt(event);
    if (!cell || event.button !== 0) return;
    if (cell.column < 0) {
      const anchor = event.shiftKey ? state.selection.peek().anchor.row : cell.row;
      state.selection.value = {
        anchor: { row: anchor, column: 0 },
        focus: { row: cell.row, column: result.columns.length - 1 },
      };
    } else state.selection.value = { anchor: event.shiftKey ? state.selection.peek().anchor : cell, focus: cell };
  };
  const onPointerMove = (event: PointerEvent): void => {
    if (event.buttons !== 1) return;
    const cell = cellAt(event);
    if (cell && cell.column >= 0) state.selection.value = { ...state.selection.peek(), focus: cell };
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const pageRows = Math.max(1, Math.floor(scroller.viewHeight / ROW_HEIGHT) - 1);
    const target = movedBy(event, selection.focus, { rows: rows.count, columns: result.columns.length, pageRows });
    const isCommand = event.ctrlKey || event.metaKey;
    if (target) select(target, event.shiftKey);
    else if (isCommand && event.key === "a") {
      state.selection.value = {
        anchor: { row: 0, column: 0 },
        focus: { row: rows.count - 1, column: result.columns.length - 1 },
      };
    } else if (isCommand && event.key === "c") void copySelection("TSV", result, state);
    else if (event.key === "Enter") onOpenRow();
    else if (event.key === "s" && !isCommand) {
      state.order.value = { ...state.order.peek(), sort: nextSort(state.order.peek().sort, selection.focus.column) };
    } else return;
    event.preventDefault();
  };

  const visible: JSX.Element[] = [];
  const selected = boundsOf(selection);
  for (let row = lo; row < hi; row++) {
    const index = rows.indexAt(row);
    const y = top + (row - scroller.first) * ROW_HEIGHT;
    visible.push(
      <GridRow
        key={row}
        row={row}
        index={index}
        top={y}
        values={result.row(index)}
        columns={result.columns}
        layout={layout}
        range={range}
        selected={selected}
        focus={selection.focus}
        focusId={state.focusId}
        gutter={gutter}
      />,
    );
  }
  const width = gutter + layout.total + 60;
  return (
    <div
      class="grid"
      ref={host}
      role="grid"
      tabIndex={0}
      aria-label="Rows"
      aria-rowcount={rows.count + 1}
      aria-colcount={result.columns.length + 1}
      aria-activedescendant={state.focusId}
      aria-multiselectable="true"
      onScroll={onScroll}
      onWheel={onWheel}
      onPointerDown={onPointerDown}
      onPointerMove={onPointerMove}
      onKeyDown={onKeyDown}
      onDblClick={onOpenRow}
    >
      <GridHead
        columns={result.columns}
        timestamp={result.timestamp}
        layout={layout}
        range={range}
        state={state}
        gutter={gutter}
        width={width}
      />
      <div class="grid-body" role="rowgroup" style={{ height: px(scroller.contentHeight), width: px(width) }}>
        {visible}
      </div>
    </div>
  );
}

function revealColumn(
  element: HTMLDivElement,
  column: number,
  layout: ReturnType<typeof columnLayout>,
  gutter: number,
): void {
  const left = layout.lefts[column] ?? 0;
  const right = left + (layout.widths[column] ?? 0);
  if (left < element.scrollLeft) element.scrollLeft = left;
  else if (right + gutter > element.scrollLeft + element.clientWidth)
    element.scrollLeft = right + gutter - element.clientWidth;
}
