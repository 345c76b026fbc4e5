import { useEffect, useState } from "preact/hooks";
import type { JSX } from "preact";
import { select } from "../api/exec.ts";
import { quoteName, quoteText } from "../sql/statements.ts";
import { tables, type Table } from "../state/schema.ts";
import { openTab } from "../state/tabs.ts";
import { openedTable, showTable, view } from "../state/view.ts";
import { DataTable, type DataColumn, type RowObject } from "../ui/data-table.tsx";
import { formatBytes, formatCount } from "../ui/format.ts";
import { Icon } from "../ui/icons.tsx";
import { previewTable } from "./sidebar.tsx";

interface Details {
  ddl: string;
  columns: RowObject[];
  partitions: RowObject[];
  storage: RowObject[];
}

async function rowsOrNone(sql: string): Promise<RowObject[]> {
  try {
    return await select(sql);
  } catch {
    return [];
  }
}

async function readDetails(table: Table): Promise<Details> {
  const text = quoteText(table.name);
  const isView = table.kind === "view";
  const definition = isView
    ? `SELECT 'CREATE VIEW ' || view_name || ' AS ' || view_sql AS ddl FROM views() WHERE view_name = ${text}`
    : `SHOW CREATE TABLE ${quoteName(table.name)}`;
  const [ddl, columns, partitions, storage] = await Promise.all([
    rowsOrNone(definition),
    rowsOrNone(`table_columns(${text})`),
    isView ? [] : rowsOrNone(`table_partitions(${text})`),
    isView
      ? []
      : rowsOrNone(
          `SELECT "column", sum(bytes) AS bytes, sum("logicalBytes") AS logical, string_agg(DISTINCT encoding, ', ') AS encodings FROM storage() WHERE table_name = ${text} GROUP BY "column"`,
        ),
  ]);
  return { ddl: String(ddl[0]?.["ddl"] ?? ""), columns, partitions, storage };
}

/** Adds bytes and encodings to the rows of the columns. */
function withStorage({ columns, storage }: Details): RowObject[] {
  const byColumn = new Map(storage.map((row) => [row["column"], row]));
  return columns.map((column) => {
    const stored = byColumn.get(column["column"] ?? null);
    const [bytes, logical] = [Number(stored?.["bytes"] ?? 0), Number(stored?.["logical"] ?? 0)];
    const role =
      column["designated"] === true ? "designated timestamp" : column["upsertKey"] === true ? "upsert key" : "";
    return {
      ...column,
      role,
      bytes: bytes || null,
      ratio: bytes ? `${(logical / bytes).toFixed(1)} ×` : null,
      encodings: stored?.["encodings"] ?? null,
    };
  });
}

const COLUMN_FIELDS: DataColumn[] = [
  { field: "column", title: "Column" },
  { field: "type", title: "Type" },
  { field: "role", title: "Role" },
  { field: "bytes", title: "On disk", as: "bytes" },
  { field: "ratio", title: "Ratio" },
  { field: "encodings", title: "Encodings" },
];

const PARTITION_FIELDS: DataColumn[] = [
  { field: "name", title: "Partition" },
  { field: "minTimestamp", title: "First row", as: "time" },
  { field: "maxTimestamp", title: "Last row", as: "time" },
  { field: "numRows", title: "Rows", as: "count" },
  { field: "diskSize", title: "On disk", as: "bytes" },
  { field: "segments", title: "Segments", as: "count" },
  { field: "stagedRows", title: "Staged rows", as: "count" },
];

function Fact({ name, value }: { name: string; value: string }): JSX.Element {
  return (
    <div class="fact">
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

function TableDetails({ table }: { table: Table }): JSX.Element {
  const [details, setDetails] = useState<Details | undefined>(undefined);
  useEffect(() => {
    let isCurrent = true;
    setDetails(undefined);
    void readDetails(table).then((read) => isCurrent && setDetails(read));
    return () => void (isCurrent = false);
  }, [table.name]);
  const sum = (field: string): number =>
    (details?.partitions ?? []).reduce((total, row) => total + Number(row[field] ?? 0), 0);
  const query = (): void => {
    view.value = "query";
    previewTable(table);
  };
  const openDdl = (): void => {
    view.value = "query";
    openTab(`${details?.ddl ?? ""}\n`, `${table.name} definition`);
  };
  return (
    <div class="page-body">
      <header class="page-head">
        <h1>{table.name}</h1>
        <span class="badge">{table.kind}</span>
        <span class="spacer" />
        <button class="button" onClick={query}>
          <Icon name="play" size={12} /> Show rows
        </button>
      </header>
      <dl class="facts">
        <Fact name="Rows" value={formatCount(details ? sum("numRows") || table.rows : table.rows)} />
        <Fact name="On disk" value={formatBytes(sum("diskSize"))} />
        <Fact name="Partitions" value={formatCount(details?.partitions.length ?? 0)} />
        <Fact name="Partition by" value={table.partitionBy} />
        <Fact name="Designated timestamp" value={table.timestamp ?? "none"} />
      </dl>
      <h2>Columns</h2>
      <DataTable
        label="Columns"
        columns={COLUMN_FIELDS}
        rows={details ? withStorage(details) : []}
        empty={details ? "No columns." : "Loading …"}
      />
      {table.kind !== "view" && (
        <>
          <h2>Partitions</h2>
          <DataTable
            label="Partitions"
            columns={PARTITION_FIELDS}
            rows={details?.partitions ?? []}
            empty={details ? "No partitions yet." : "Loading …"}
          />
        </>
      )}
      <h2>
        Definition{" "}
        <button class="link" onClick={openDdl}>
          Open in the editor
        </button>
      </h2>
      <pre class="ddl" role="region" tabIndex={0} aria-label="Definition">
        {details?.ddl}
      </pre>
    </div>
  );
}

/** Tables and views, and the details of one of them. */
export function SchemaPage(): JSX.Element {
  const all = tables.value;
  const table = all.find(({ name }) => name === openedTable.value) ?? all[0];
  return (
    <div class="page two">
      <nav class="page-list" aria-label="Tables">
        {all.map((entry) => (
          <button
            key={entry.name}
            aria-current={entry === table ? "true" : undefined}
            onClick={() => showTable(entry.name)}
          >
            <Icon name={entry.kind === "table" ? "table" : "view"} size={14} />
            <span>{entry.name}</span>
            <small>{entry.kind === "view" ? "view" : formatCount(entry.rows)}</small>
          </button>
        ))}
        {all.length === 0 && <p class="tree-note">No tables</p>}
      </nav>
      {table ? (
        <TableDetails key={table.name} table={table} />
      ) : (
        <div class="empty-panel">There are no tables yet: import a file or run CREATE TABLE.</div>
      )}
    </div>
  );
}
