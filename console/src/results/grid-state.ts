import { signal, type Signal } from "@preact/signals";
import type { Column } from "../api/exec.ts";
import { NO_ORDER, orderedIndexes, type Order } from "./order.ts";
import type { ResultPages } from "./pages.ts";
import type { Selection } from "./selection.ts";

/** Order, selection and widths of the grid of a tab. They are kept while the columns stay the same. */
export interface GridState {
  key: string;
  /** Id of the element of the focused cell. */
  focusId: string;
  order: Signal<Order>;
  selection: Signal<Selection>;
  widths: Signal<Map<number, number>>;
  /** First visible row. */
  first: number;
  /** First visible row and the one after the last. */
  visible: Signal<[lo: number, hi: number]>;
}

const states = new Map<string, GridState>();

function keyOf(columns: Column[]): string {
  return columns.map((column) => `${column.name}:${column.type}`).join("\n");
}

export function gridStateOf(tab: string, result: ResultPages): GridState {
  const key = keyOf(result.columns);
  const known = states.get(tab);
  if (known?.key === key) return known;
  const state = newGridState(key);
  states.set(tab, state);
  return state;
}

let stateCount = 0;

/** Returns the initial state of a grid. */
export function newGridState(key: string): GridState {
  const origin = { row: 0, column: 0 };
  stateCount += 1;
  return {
    key,
    focusId: `focused-cell-${stateCount}`,
    order: signal(NO_ORDER),
    selection: signal({ anchor: origin, focus: origin }),
    widths: signal(new Map()),
    first: 0,
    visible: signal([0, 0]),
  };
}

/** The rows of the grid from top to bottom, as indexes of the result. */
export interface GridRows {
  count: number;
  indexAt: (row: number) => number;
  /** True if only loaded rows are sorted or filtered and others exist. */
  isPartial: boolean;
  isOrdered: boolean;
}

let computed: { result: ResultPages; version: number; order: Order; rows: GridRows } | undefined;

/** Returns the rows that the grid shows; the last answer is kept until rows or order change. */
export function gridRows(result: ResultPages, order: Order): GridRows {
  const version = result.version.value;
  if (computed?.result === result && computed.version === version && computed.order === order) return computed.rows;
  const rows = rowsOf(result, order);
  computed = { result, version, order, rows };
  return rows;
}

function rowsOf(result: ResultPages, order: Order): GridRows {
  if (!order.sort && order.filter.trim() === "") {
    return { count: result.reachable, indexAt: (row) => row, isPartial: false, isOrdered: false };
  }
  const indexes = orderedIndexes(result.columns, result.loadedIndexes(), (index) => result.row(index), order);
  return {
    count: indexes.length,
    indexAt: (row) => indexes[row] ?? -1,
    isPartial: !result.isComplete(),
    isOrdered: true,
  };
}
