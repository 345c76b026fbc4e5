import { parseChart } from "../charts/panel-chart-json.ts";
import type { PanelChart } from "../charts/panel-chart.ts";
import { listAt, objectAt, oneOf, textAt } from "../documents/checks.ts";

export const CELL_KINDS = ["markdown", "sql", "chart"] as const;
export type CellKind = (typeof CELL_KINDS)[number];

/** A text in Markdown, or a statement with its rows as a grid or a chart. */
export interface Cell {
  id: string;
  kind: CellKind;
  text: string;
  /** View of the rows of a chart cell. */
  chart: PanelChart;
}

export interface Notebook {
  cells: Cell[];
}

const CELLS_MAX = 500;

export function emptyNotebook(): Notebook {
  return { cells: [] };
}

function parseCell(json: unknown, i: number): Cell {
  const place = `cells[${i}]`;
  const cell = objectAt(json, place);
  return {
    id: textAt(cell["id"], `${place}.id`, `c${i + 1}`),
    kind: oneOf(cell["kind"], `${place}.kind`, CELL_KINDS, "sql"),
    text: textAt(cell["text"], `${place}.text`, ""),
    chart: parseChart(cell["chart"], `${place}.chart`),
  };
}

/** Reads a notebook from JSON; throws an error that names the wrong place. */
export function parseNotebook(json: unknown): Notebook {
  const list = listAt(objectAt(json, "the notebook")["cells"], "cells");
  if (list.length > CELLS_MAX) throw new Error(`a notebook has at most ${CELLS_MAX} cells`);
  const cells = list.map(parseCell);
  if (new Set(cells.map(({ id }) => id)).size < cells.length) throw new Error("two cells have the same id");
  return { cells };
}

/** Inserts an empty cell at a position. */
export function withNewCell(cells: Cell[], index: number, kind: CellKind): Cell[] {
  const numbers = cells.map(({ id }) => Number(/^c(\d+)$/.exec(id)?.[1] ?? 0));
  const cell: Cell = { id: `c${Math.max(0, ...numbers) + 1}`, kind, text: "", chart: { kind: "auto" } };
  return cells.toSpliced(index, 0, cell);
}

/** Moves a cell up (-1) or down (1). */
export function withMovedCell(cells: Cell[], id: string, step: 1 | -1): Cell[] {
  const at = cells.findIndex((cell) => cell.id === id);
  const to = at + step;
  const [cell, other] = [cells[at], cells[to]];
  return cell && other ? cells.with(at, other).with(to, cell) : cells;
}
