import { request } from "../api/http.ts";
import type { Json } from "../api/json.ts";

/** How a file is sent, chosen by the end of its name. */
export type FileKind = "csv" | "lines" | "arrow" | "unsupported";

export function kindOf(name: string): FileKind {
  const plain = name.toLowerCase().replace(/\.(gz|zst)$/, "");
  if (/\.(csv|tsv|txt|psv)$/.test(plain)) return "csv";
  if (/\.(ilp|lp)$/.test(plain)) return "lines";
  if (/\.(arrows|arrow|ipc)$/.test(plain)) return "arrow";
  return /\.(parquet|ndjson|jsonl|json|xlsx|zip)$/.test(plain) ? "unsupported" : "csv";
}

/** Returns a table name for a file. */
export function tableNameOf(file: string): string {
  const stem = file.replace(/\.(gz|zst)$/i, "").replace(/\.[^.]*$/, "");
  const name = stem
    .toLowerCase()
    .replace(/[^a-z0-9_]+/g, "_")
    .replace(/^_+|_+$/g, "");
  return /^[a-z_]/.test(name) ? name : `t_${name}`;
}

export interface ImportColumn {
  name: string;
  type: string;
  errors: number;
}

export interface Rejected {
  line: number;
  column: string | null;
  reason: string;
  record: string | null;
}

/** Response of `/imp`. */
export interface ImportReport {
  status: string;
  rowsImported: number;
  rowsRejected: number;
  valuesNulled: number;
  columns: ImportColumn[];
  rejected: Rejected[];
  nulled: Rejected[];
  timestamp: string | null;
  partitionBy: string;
  /** Findings of a dry run, as name and text. */
  found: [string, string][];
  statement: string | undefined;
}

export interface ImportOptions {
  table: string;
  /** Types that replace the found ones, as the parameter `columns`. */
  columns: string;
  timestamp: string;
  partitionBy: string;
  atomicity: "skipCol" | "skipRow" | "abort";
  isDryRun: boolean;
}

/** Bytes of a file that a dry run reads. */
const SAMPLE_BYTES = 4 << 20;

export async function importCsv(file: File, options: ImportOptions, signal: AbortSignal): Promise<ImportReport> {
  const query = new URLSearchParams({ name: options.table, fmt: "json", atomicity: options.atomicity });
  if (options.columns) query.set("columns", options.columns);
  if (options.timestamp) query.set("timestamp", options.timestamp);
  if (options.partitionBy) query.set("partitionBy", options.partitionBy);
  if (options.isDryRun) query.set("dryRun", "true");
  const isCompressed = /\.(gz|zst)$/i.test(file.name);
  const body = options.isDryRun && !isCompressed ? await wholeLines(file) : file;
  const response = await request(`/imp?${query}`, {
    method: "POST",
    body,
    headers: { "Content-Type": "text/csv" },
    signal,
  });
  const report = await jsonOf(response);
  if (!response.ok || (report["status"] !== undefined && report["status"] !== "OK")) {
    throw new Error(String(report["status"] ?? report["error"] ?? report["message"] ?? `status ${response.status}`));
  }
  return { found: [], rejected: [], nulled: [], columns: [], ...report } as unknown as ImportReport;
}

/** Returns the beginning of a file, up to the end of a line. */
async function wholeLines(file: File): Promise<Blob> {
  if (file.size <= SAMPLE_BYTES) return file;
  const sample = await file.slice(0, SAMPLE_BYTES).text();
  return new Blob([sample.slice(0, sample.lastIndexOf("\n") + 1)]);
}

async function jsonOf(response: Response): Promise<{ [key: string]: Json }> {
  if (response.status === 413) {
    return {
      status:
        "the file is larger than a request may be (http.body_bytes_max); tidalite import --server sends files of any size",
    };
  }
  const text = await response.text();
  try {
    return JSON.parse(text) as { [key: string]: Json };
  } catch {
    return { status: text.trim() || `status ${response.status}` };
  }
}

/** Sends line protocol or an Arrow stream; returns a summary. */
export async function importOther(file: File, table: string, signal: AbortSignal): Promise<string> {
  const isArrow = kindOf(file.name) === "arrow";
  const path = isArrow ? `/write/arrow?${new URLSearchParams({ table })}` : "/write";
  const headers: Record<string, string> = {
    "Content-Type": isArrow ? "application/vnd.apache.arrow.stream" : "text/plain",
  };
  if (/\.gz$/i.test(file.name)) headers["Content-Encoding"] = "gzip";
  const response = await request(path, { method: "POST", body: file, headers, signal });
  if (response.status === 204) return "All lines were written.";
  const answer = await jsonOf(response);
  if (!response.ok) throw new Error(String(answer["message"] ?? answer["status"] ?? `status ${response.status}`));
  return `${String(answer["rows"] ?? "All")} rows were written.`;
}
