import type { Column, Row } from "../api/exec.ts";
import { cellText, compareCells, familyOf } from "./cells.ts";

export interface Sort {
  column: number;
  isDescending: boolean;
}

/** Order and filter of the grid, applied to the loaded rows. */
export interface Order {
  sort: Sort | undefined;
  filter: string;
}

export const NO_ORDER: Order = { sort: undefined, filter: "" };

/** Returns the next state of a column's header: ascending, descending, none. */
export function nextSort(sort: Sort | undefined, column: number): Sort | undefined {
  if (sort?.column !== column) return { column, isDescending: false };
  return sort.isDescending ? undefined : { column, isDescending: true };
}

type Test = (row: Row) => boolean;

const COMPARISON = /^([^<>=!~]+?)\s*(<=|>=|<>|!=|=|<|>|~)\s*(.*)$/;

function comparison(columns: Column[], term: string): Test | undefined {
  const [, name = "", operator = "", wanted = ""] = COMPARISON.exec(term) ?? [];
  const index = columns.findIndex((column) => column.name.toLowerCase() === name.trim().toLowerCase());
  const column = columns[index];
  if (!column) return undefined;
  if (/^null$/i.test(wanted)) return (row) => (row[index] === null) === (operator === "=");
  if (operator === "~")
    return (row) =>
      cellText(row[index] ?? null)
        .toLowerCase()
        .includes(wanted.toLowerCase());
  const family = familyOf(column.type);
  const value = family === "boolean" ? wanted.toLowerCase() === "true" : wanted;
  const isPrefix = family === "time" && operator === "=";
  return (row) => {
    const cell = row[index] ?? null;
    if (cell === null) return false;
    if (isPrefix) return cellText(cell).replace("T", " ").startsWith(wanted.replace("T", " "));
    const order = compareCells(cell, value, family);
    switch (operator) {
      case "=":
        return order === 0;
      case "<>":
      case "!=":
        return order !== 0;
      case "<":
        return order < 0;
      case "<=":
        return order <= 0;
      case ">":
        return order > 0;
      default:
        return order >= 0;
    }
  };
}

/**
 * Returns the test of a filter text.
 *
 * Terms are separated by `;` and must all hold. `name = value` (also `<`, `>`, `<>`, `~` for "contains", `= null`)
 * compares a column; every other term is searched in all columns without regard to case.
 */
export function filterTest(columns: Column[], text: string): Test | undefined {
  const terms = text
    .split(";")
    .map((term) => term.trim())
    .filter((term) => term !== "");
  if (terms.length === 0) return undefined;
  const tests = terms.map((term): Test => {
    const needle = term.toLowerCase();
    return (
      comparison(columns, term) ??
      ((row) => row.some((cell) => cell !== null && cellText(cell).toLowerCase().includes(needle)))
    );
  });
  return (row) => tests.every((test) => test(row));
}

/** Returns the indexes of the rows that the filter leaves, in the order of the sort. */
export function orderedIndexes(
  columns: Column[],
  indexes: number[],
  rowAt: (index: number) => Row | undefined,
  order: Order,
): number[] {
  const test = filterTest(columns, order.filter);
  const kept = test ? indexes.filter((index) => test(rowAt(index) ?? [])) : [...indexes];
  const { sort } = order;
  const column = sort && columns[sort.column];
  if (!column) return kept;
  const family = familyOf(column.type);
  const sign = sort.isDescending ? -1 : 1;
  const key = (index: number): Row[number] => rowAt(index)?.[sort.column] ?? null;
  return kept.sort((a, b) => sign * compareCells(key(a), key(b), family) || a - b);
}
