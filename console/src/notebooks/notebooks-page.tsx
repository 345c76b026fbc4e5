import { useEffect } from "preact/hooks";
import type { JSX } from "preact";
import { DocumentBar } from "../documents/document-bar.tsx";
import { DocumentList } from "../documents/document-list.tsx";
import type { OpenDocument } from "../documents/document-store.ts";
import { PanelQuery } from "../panels/panel-query.ts";
import { openedNames } from "../state/view.ts";
import { loadSchema } from "../state/schema.ts";
import { Icon } from "../ui/icons.tsx";
import { CellView } from "./cell-view.tsx";
import { withMovedCell, withNewCell, type Cell, type CellKind, type Notebook } from "./model.ts";
import { notebooks } from "./store.ts";
import "../styles/dashboards.css";
import "../styles/notebooks.css";

/** Results by notebook and cell. They last as long as the page of the browser. */
const queries = new Map<string, PanelQuery>();

function queryOf(notebook: string, cell: Cell): PanelQuery {
  const key = `${notebook}\n${cell.id}`;
  const query = queries.get(key) ?? new PanelQuery();
  queries.set(key, query);
  return query;
}

async function runCell(notebook: string, cell: Cell): Promise<boolean> {
  const query = queryOf(notebook, cell);
  if (cell.text.trim() === "") return true;
  await query.restart(cell.text.replace(/;\s*$/, ""));
  const { done, error } = query.state.peek();
  if (done) void loadSchema();
  return error === undefined;
}

/** Runs all statements from the first to the last; an error ends the run. */
async function runAll(notebook: string, cells: Cell[]): Promise<void> {
  for (const cell of cells) {
    if (cell.kind !== "markdown" && !(await runCell(notebook, cell))) return;
  }
}

const KIND_TITLES: [CellKind, string][] = [
  ["markdown", "Text"],
  ["sql", "SQL"],
  ["chart", "Chart"],
];

function NotebookView({ open }: { open: OpenDocument<Notebook> }): JSX.Element {
  const { name, draft } = open;
  const { cells } = draft;
  const change = (edit: (cells: Cell[]) => Cell[]): void => {
    const current = notebooks.open.peek().get(name)?.draft ?? draft;
    notebooks.edit(name, { ...current, cells: edit(current.cells) });
  };
  return (
    <div class="page-body notebook">
      <header class="page-head">
        <DocumentBar store={notebooks} page="notebooks" open={open} />
        <span class="spacer" />
        <button class="button" onClick={() => void runAll(name, cells)}>
          <Icon name="play" size={12} /> Run all
        </button>
      </header>
      {cells.map((cell, i) => (
        <CellView
          key={cell.id}
          cell={cell}
          number={i + 1}
          isLast={i === cells.length - 1}
          query={queryOf(name, cell)}
          onChange={(changed) => change((all) => all.map((c) => (c.id === changed.id ? changed : c)))}
          onRun={() => void runCell(name, cell)}
          onMove={(step) => change((all) => withMovedCell(all, cell.id, step))}
          onRemove={() => change((all) => all.filter(({ id }) => id !== cell.id))}
        />
      ))}
      <p class="cell-line" role="group" aria-label="Add a cell">
        {KIND_TITLES.map(([kind, title]) => (
          <button key={kind} class="button" onClick={() => change((all) => withNewCell(all, all.length, kind))}>
            <Icon name="plus" size={12} /> {title}
          </button>
        ))}
      </p>
    </div>
  );
}

/** The list of notebooks, and the opened one. */
export function NotebooksPage(): JSX.Element {
  const name = openedNames.value.notebooks;
  const open = name === undefined ? undefined : notebooks.open.value.get(name);
  useEffect(() => {
    if (name !== undefined) void notebooks.load(name);
  }, [name, open === undefined]);
  return (
    <div class="page two">
      <DocumentList store={notebooks} page="notebooks" title="Notebooks" />
      {open ? (
        <NotebookView key={name} open={open} />
      ) : (
        <div class="empty-panel">
          {name === undefined
            ? "A notebook has texts, statements with their rows, and charts, one below the other."
            : (notebooks.error.value ?? "Loading …")}
        </div>
      )}
    </div>
  );
}
