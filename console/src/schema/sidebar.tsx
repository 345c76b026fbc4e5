import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { JSX } from "preact";
import { insertText } from "../editor/editor.tsx";
import { quoteName } from "../sql/statements.ts";
import { SavedList } from "../queries/saved-list.tsx";
import { history, type HistoryEntry } from "../state/history.ts";
import { columnsByTable, columnsOf, loadSchema, schemaError, tables, type Table } from "../state/schema.ts";
import { runStatements } from "../state/run.ts";
import { activeTab, openTab } from "../state/tabs.ts";
import { showTable } from "../state/view.ts";
import { formatAgo, formatCount, formatMs } from "../ui/format.ts";
import { Icon } from "../ui/icons.tsx";
import { SearchField } from "../ui/search-field.tsx";

/** Opens the first rows of a table in a tab. */
export function previewTable(table: Table): void {
  const sql = `SELECT * FROM ${quoteName(table.name)}`;
  openTab(`${sql};\n`, table.name);
  void runStatements(activeTab.peek().id, [{ text: sql, from: 0 }]);
}

function Columns({ table }: { table: Table }): JSX.Element {
  const columns = columnsByTable.value.get(table.name.toLowerCase());
  useEffect(() => void columnsOf(table.name), [table.name]);
  if (!columns) return <p class="tree-note">Loading …</p>;
  return (
    <ul class="columns">
      {columns.map((column) => (
        <li key={column.name}>
          <button class="tree-column" title="Insert the name" onClick={() => insertText(quoteName(column.name))}>
            <span class={column.isDesignated ? "designated" : ""}>{column.name}</span>
            <small>{column.type.toLowerCase()}</small>
          </button>
        </li>
      ))}
    </ul>
  );
}

function TableEntry({ table, isOpen, onToggle }: { table: Table; isOpen: boolean; onToggle: () => void }): JSX.Element {
  return (
    <li>
      <div class="tree-row">
        <button class="tree-table" aria-expanded={isOpen} onClick={onToggle}>
          <span class={isOpen ? "twist open" : "twist"}>
            <Icon name="chevron" size={12} />
          </span>
          <Icon name={table.kind === "table" ? "table" : "view"} size={14} />
          <span class="tree-name">{table.name}</span>
          <small>{table.kind === "view" ? "view" : formatCount(table.rows)}</small>
        </button>
        <button
          class="tree-action"
          title={`Rows of ${table.name}`}
          aria-label={`Rows of ${table.name}`}
          onClick={() => previewTable(table)}
        >
          <Icon name="play" size={12} />
        </button>
        <button
          class="tree-action"
          title={`Details of ${table.name}`}
          aria-label={`Details of ${table.name}`}
          onClick={() => showTable(table.name)}
        >
          <Icon name="schema" size={13} />
        </button>
      </div>
      {isOpen && <Columns table={table} />}
    </li>
  );
}

function TableTree(): JSX.Element {
  const filter = useSignal("");
  const open = useSignal(new Set<string>());
  const toggle = (name: string): void => {
    const changed = new Set(open.peek());
    if (!changed.delete(name)) changed.add(name);
    open.value = changed;
  };
  const shown = tables.value.filter((table) => table.name.toLowerCase().includes(filter.value.toLowerCase()));
  return (
    <>
      <SearchField label="Find a table" filter={filter}>
        <button
          class="icon-button"
          aria-label="Read the schema again"
          title="Read the schema again"
          onClick={() => void loadSchema()}
        >
          <Icon name="refresh" size={13} />
        </button>
      </SearchField>
      <ul class="tree">
        {schemaError.value && <li class="tree-note error-text">{schemaError.value}</li>}
        {shown.length === 0 && !schemaError.value && <li class="tree-note">No tables</li>}
        {shown.map((table) => (
          <TableEntry
            key={table.name}
            table={table}
            isOpen={open.value.has(table.name)}
            onToggle={() => toggle(table.name)}
          />
        ))}
      </ul>
    </>
  );
}

function HistoryItem({ entry }: { entry: HistoryEntry }): JSX.Element {
  const outcome = entry.error ?? (entry.rows === undefined ? "done" : `${formatCount(entry.rows)} rows`);
  return (
    <li>
      <button class="history-entry" title={entry.sql} onClick={() => openTab(`${entry.sql};\n`)}>
        <code>{entry.sql.replace(/\s+/g, " ").slice(0, 120)}</code>
        <small>
          <span class={`dot ${entry.error ? "failed" : "done"}`} /> {outcome} · {formatMs(entry.elapsedMs)} ·{" "}
          {formatAgo(entry.at)}
        </small>
      </button>
    </li>
  );
}

function HistoryList(): JSX.Element {
  const filter = useSignal("");
  const shown = history.value
    .filter((entry) => entry.sql.toLowerCase().includes(filter.value.toLowerCase()))
    .slice(0, 100);
  return (
    <>
      <SearchField label="Find a statement" filter={filter} />
      <ul class="tree">
        {shown.length === 0 && <li class="tree-note">No statements yet</li>}
        {shown.map((entry) => (
          <HistoryItem key={entry.at} entry={entry} />
        ))}
      </ul>
    </>
  );
}

type List = "tables" | "saved" | "history";

/** The list beside the editor: tables with their columns, saved queries, or the statements that ran. */
export function Sidebar(): JSX.Element {
  const list = useSignal<List>("tables");
  const choose = (name: List) => (): void => void (list.value = name);
  return (
    <aside class="sidebar" aria-label="Tables, saved queries and history">
      <div class="sidebar-tabs" role="group" aria-label="List">
        <button aria-pressed={list.value === "tables"} onClick={choose("tables")}>
          Tables
        </button>
        <button aria-pressed={list.value === "saved"} onClick={choose("saved")}>
          Saved
        </button>
        <button aria-pressed={list.value === "history"} onClick={choose("history")}>
          History
        </button>
      </div>
      {list.value === "tables" && <TableTree />}
      {list.value === "saved" && <SavedList />}
      {list.value === "history" && <HistoryList />}
    </aside>
  );
}
