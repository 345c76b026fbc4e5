import { isPlainInsert } from "../sql/statements.ts";
import { request } from "./http.ts";
import { parseExact, type Json } from "./json.ts";

export interface Column {
  name: string;
  /** SQL type, such as `LONG` or `DOUBLE[]`. */
  type: string;
}

/** A value as the server sends it; LONG and DECIMAL are strings with all digits. */
export type Cell = Json;
export type Row = Cell[];

export interface Rows {
  kind: "rows";
  columns: Column[];
  rows: Row[];
  /** Index of the designated timestamp, -1 without. */
  timestamp: number;
  /** Number of rows of the statement; with `count` without the limit. */
  count: number;
}

export interface Done {
  kind: "done";
  /** Number of rows that the statement wrote, if the server reports the number. */
  changed: number | undefined;
  /** The verb for messages about the rows. */
  verb: "inserted" | "changed";
}

export interface ExecOptions {
  /** First and last row, counted from 1. */
  limit?: [lo: number, hi: number];
  count?: boolean;
  params?: ParameterValue[];
  signal?: AbortSignal;
}

/** Type and text of a parameter, as `/exec` reads it. */
export type ParameterValue = ["null"] | ["long" | "double" | "text" | "TIMESTAMP", string] | ["boolean", boolean];

export class QueryError extends Error {
  override name = "QueryError";
  constructor(
    message: string,
    /** In characters of the statement, from 0. */
    readonly position: number | undefined,
    readonly hint: string | undefined,
  ) {
    super(message);
  }
}

type Body = { [key: string]: Json };

/** Separates the hint that the server appends to a message. */
export function queryError(body: Body): QueryError {
  const text = String(body["error"] ?? body["message"] ?? "unknown error");
  const [message = text, appended] = text.split(/; hint: (.*)$/s);
  const hint = typeof body["hint"] === "string" ? body["hint"] : appended;
  const position = typeof body["position"] === "number" ? body["position"] : undefined;
  return new QueryError(message, position, hint);
}

/** Runs a statement. */
export async function exec(sql: string, options: ExecOptions = {}): Promise<Rows | Done> {
  const body = {
    query: sql,
    // An INSERT without RETURNING has no rows. In this format its response has the number of rows.
    fmt: isPlainInsert(sql) ? "arrow" : undefined,
    quoteLargeNum: "true",
    quoteNotFinite: "true",
    limit: options.limit?.join(","),
    count: options.count === true ? "true" : undefined,
    params: options.params,
  };
  const response = await request("/exec", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
    signal: options.signal ?? null,
  });
  return answerOf(await bodyOf(response));
}

async function bodyOf(response: Response): Promise<Body> {
  const text = await response.text();
  if (!(response.headers.get("Content-Type") ?? "").includes("json")) {
    throw new QueryError(text.trim() || `the server answered ${response.status}`, undefined, undefined);
  }
  return parseExact(text) as Body;
}

/** An error may follow rows that were sent before it, so every response is checked for one. */
function answerOf(body: Body): Rows | Done {
  if (body["error"] !== undefined) throw queryError(body);
  if (!Array.isArray(body["dataset"])) {
    const isInsert = body["tag"] === "INSERT";
    const changed = isInsert ? body["rows"] : body["updated"];
    return {
      kind: "done",
      changed: typeof changed === "number" ? changed : undefined,
      verb: isInsert ? "inserted" : "changed",
    };
  }
  const rows = body["dataset"] as Row[];
  return {
    kind: "rows",
    columns: ((body["columns"] ?? []) as Body[]).map(columnOf),
    rows,
    timestamp: Number(body["timestamp"] ?? -1),
    count: Number(body["count"] ?? rows.length),
  };
}

function columnOf(column: Body): Column {
  const isArray = column["type"] === "ARRAY";
  const type = isArray ? `${String(column["elemType"])}${"[]".repeat(Number(column["dim"] ?? 1))}` : column["type"];
  return { name: String(column["name"]), type: String(type) };
}

/** Runs a query of the console itself and returns its rows as objects by column name. */
export async function select(sql: string, signal?: AbortSignal): Promise<Record<string, Cell>[]> {
  const answer = await exec(sql, signal ? { signal } : {});
  if (answer.kind !== "rows") return [];
  return answer.rows.map((row) => Object.fromEntries(answer.columns.map((c, i) => [c.name, row[i] ?? null])));
}

export interface SyntaxProblem {
  message: string;
  /** In characters, from 0. */
  position: number;
  hint: string | undefined;
}

/** Checks the syntax of a statement without running it; `undefined` if the syntax is correct. */
export async function validate(sql: string, signal: AbortSignal): Promise<SyntaxProblem | undefined> {
  const response = await request("/api/v1/sql/validate", {
    method: "POST",
    headers: { "Content-Type": "text/plain" },
    body: sql,
    signal,
  });
  if (response.status !== 400) return undefined;
  const error = queryError(await bodyOf(response));
  return { message: error.message, position: error.position ?? 0, hint: error.hint };
}
