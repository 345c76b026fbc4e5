import { signal } from "@preact/signals";
import { select, type Cell } from "../api/exec.ts";
import { quoteText } from "../sql/statements.ts";

export interface Table {
  name: string;
  kind: "table" | "view" | "materialized view";
  timestamp: string | undefined;
  partitionBy: string;
  /** Approximate while rows are being written. */
  rows: number;
}

export interface TableColumn {
  name: string;
  type: string;
  isDesignated: boolean;
  isUpsertKey: boolean;
}

export const tables = signal<Table[]>([]);
export const schemaError = signal<string | undefined>(undefined);
export const functions = signal<{ name: string; type: string }[]>([]);
export const keywords = signal<string[]>([]);
/** Columns by lower-case table name. */
export const columnsByTable = signal<Map<string, TableColumn[]>>(new Map());

const loading = new Map<string, Promise<TableColumn[]>>();

function tableOf(row: Record<string, Cell>): Table {
  const isView = row["table_type"] === "V";
  return {
    name: String(row["table_name"]),
    kind: row["matView"] === true ? "materialized view" : isView ? "view" : "table",
    timestamp: row["designatedTimestamp"] ? String(row["designatedTimestamp"]) : undefined,
    partitionBy: String(row["partitionBy"] ?? "NONE"),
    rows: Number(row["rowCount"] ?? 0),
  };
}

/** Reads the list of tables and the names of functions and keywords. */
export async function loadSchema(): Promise<void> {
  try {
    tables.value = (await select("SELECT * FROM tables() ORDER BY table_name")).map(tableOf);
    schemaError.value = undefined;
    columnsByTable.value = new Map();
    loading.clear();
    if (functions.peek().length === 0) await loadNames();
  } catch (error) {
    schemaError.value = error instanceof Error ? error.message : String(error);
  }
}

async function loadNames(): Promise<void> {
  const [names, words] = await Promise.all([select("functions()"), select("keywords()")]);
  functions.value = names.map((row) => ({ name: String(row["name"]), type: String(row["type"]) }));
  keywords.value = words.map((row) => String(row["keyword"]).toUpperCase());
}

/** Returns the columns of a table; an unknown table has none. */
export function columnsOf(name: string): Promise<TableColumn[]> {
  const key = name.toLowerCase();
  const known = columnsByTable.peek().get(key);
  if (known) return Promise.resolve(known);
  const table = tables.peek().find((table) => table.name.toLowerCase() === key);
  if (!table) return Promise.resolve([]);
  const running = loading.get(key) ?? readColumns(table.name);
  loading.set(key, running);
  return running;
}

async function readColumns(name: string): Promise<TableColumn[]> {
  try {
    const rows = await select(`table_columns(${quoteText(name)})`);
    const columns = rows.map((row) => ({
      name: String(row["column"]),
      type: String(row["type"]),
      isDesignated: row["designated"] === true,
      isUpsertKey: row["upsertKey"] === true,
    }));
    columnsByTable.value = new Map(columnsByTable.peek()).set(name.toLowerCase(), columns);
    return columns;
  } finally {
    loading.delete(name.toLowerCase());
  }
}
