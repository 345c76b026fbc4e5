import { request, saveBlob } from "../api/http.ts";
import { queryError } from "../api/exec.ts";
import type { Json } from "../api/json.ts";
import { notify } from "../ui/notice.tsx";
import type { ResultPages } from "./pages.ts";
import { formatRows } from "./text-formats.ts";

/** Formats that the server writes for all rows of the statement. */
export type ExportFormat = "CSV" | "Parquet" | "Arrow" | "JSON";

const FORMATS: Record<ExportFormat, { path: string; form: Record<string, string>; extension: string }> = {
  CSV: { path: "/exp", form: {}, extension: "csv" },
  Parquet: { path: "/exp", form: { fmt: "parquet" }, extension: "parquet" },
  Arrow: { path: "/exec", form: { fmt: "arrow" }, extension: "arrows" },
  JSON: { path: "/exec", form: { count: "true", quoteNotFinite: "true" }, extension: "json" },
};

let parquetKnown: Promise<boolean> | undefined;

/** Returns true if the server can write Parquet. */
export function exportsParquet(): Promise<boolean> {
  parquetKnown ??= send("Parquet", "SELECT 1 AS x", []).then(
    (response) => response.ok,
    () => false,
  );
  return parquetKnown;
}

function send(format: ExportFormat, sql: string, params: unknown[]): Promise<Response> {
  const { path, form } = FORMATS[format];
  return request(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ query: sql, ...(params.length > 0 ? { params } : {}), ...form }),
  });
}

function fileName(extension: string): string {
  const now = new Date().toISOString().slice(0, 19).replaceAll(":", "").replace("T", "-");
  return `tidalite-${now}.${extension}`;
}

/** Runs the statement again and saves all of its rows as a file. */
export async function exportRows(format: ExportFormat, result: ResultPages): Promise<void> {
  notify(`Exporting as ${format} …`);
  try {
    const response = await send(format, result.query.sql, result.query.params);
    if (!response.ok) throw queryError((await response.json()) as { [key: string]: Json });
    const blob = await response.blob();
    saveBlob(blob, fileName(FORMATS[format].extension));
    notify(`Exported as ${format}`);
  } catch (error) {
    notify(`The export failed: ${error instanceof Error ? error.message : String(error)}`, true);
  }
}

/** Saves the loaded rows as a file, without the server. */
export function exportLoaded(format: "CSV" | "JSON" | "Markdown", result: ResultPages): void {
  const rows = result.loadedIndexes().map((index) => result.row(index) ?? []);
  const text = formatRows(format, result.columns, rows);
  saveBlob(new Blob([text]), fileName({ CSV: "csv", JSON: "json", Markdown: "md" }[format]));
  notify(`Exported ${rows.length}${result.isComplete() ? "" : " loaded"} rows as ${format}`);
}
