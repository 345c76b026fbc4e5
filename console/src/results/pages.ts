import { signal } from "@preact/signals";
import { exec, QueryError, type Column, type Done, type ParameterValue, type Row, type Rows } from "../api/exec.ts";
import { isAbort } from "../api/http.ts";
import { countQuery, limitedQuery } from "../sql/limit.ts";

export const PAGE_ROWS = 1000;
/** Rows of the first request. */
export const FIRST_ROWS = 5 * PAGE_ROWS;
/** Rows of statements that cannot be sent again. */
export const UNREPEATABLE_ROWS = 100_000;
/** Pages in memory; the pages farthest from the visible rows are removed first. */
const PAGES_MAX = 200;
/** Time in which scrolling must pause before rows are requested, in milliseconds. */
const SETTLE_MS = 60;

export interface Query {
  sql: string;
  params: ParameterValue[];
  isRepeatable: boolean;
}

/** The rows of a statement, of which pages are requested when they become visible. */
export class ResultPages {
  /** Changes when pages arrive or the number of rows becomes known. */
  readonly version = signal(0);
  readonly columns: Column[];
  readonly timestamp: number;
  /** Number of rows, or a lower bound. */
  rowCount: number;
  isExact: boolean;
  /** Reason why a page could not be read. */
  error: string | undefined;

  private readonly pages = new Map<number, Row[]>();
  private readonly abort = new AbortController();
  private readonly requested = new Set<number>();
  private settle: ReturnType<typeof setTimeout> | undefined;

  constructor(
    readonly query: Query,
    first: Rows,
    isExact: boolean,
  ) {
    this.columns = first.columns;
    this.timestamp = first.timestamp;
    this.rowCount = first.count;
    this.isExact = isExact;
    for (let at = 0; at < first.rows.length; at += PAGE_ROWS) {
      this.pages.set(at / PAGE_ROWS, first.rows.slice(at, at + PAGE_ROWS));
    }
  }

  /** Number of rows that can be scrolled to. */
  get reachable(): number {
    return this.query.isRepeatable ? this.rowCount : Math.min(this.rowCount, this.loadedCount());
  }

  row(index: number): Row | undefined {
    return this.pages.get(Math.floor(index / PAGE_ROWS))?.[index % PAGE_ROWS];
  }

  loadedCount(): number {
    let count = 0;
    for (const page of this.pages.values()) count += page.length;
    return count;
  }

  isComplete(): boolean {
    return this.isExact && this.loadedCount() === this.rowCount;
  }

  /** Indexes of all loaded rows, in order. */
  loadedIndexes(): number[] {
    const indexes: number[] = [];
    for (const page of [...this.pages.keys()].sort((a, b) => a - b)) {
      (this.pages.get(page) as Row[]).forEach((_, i) => indexes.push(page * PAGE_ROWS + i));
    }
    return indexes;
  }

  /** Requests the rows of a range that are not loaded, once scrolling pauses. */
  want(lo: number, hi: number): void {
    clearTimeout(this.settle);
    const missing = this.missingPages(lo, hi);
    if (missing.length === 0) return;
    this.settle = setTimeout(() => missing.forEach((page) => void this.load(page)), SETTLE_MS);
  }

  /** Loads all rows of a range, for copies. */
  async loadRange(lo: number, hi: number): Promise<void> {
    await Promise.all(this.missingPages(lo, hi).map((page) => this.load(page)));
  }

  private missingPages(lo: number, hi: number): number[] {
    if (!this.query.isRepeatable) return [];
    const missing: number[] = [];
    for (let page = Math.floor(lo / PAGE_ROWS); page <= Math.floor(Math.max(lo, hi) / PAGE_ROWS); page++) {
      if (!this.pages.has(page) && !this.requested.has(page)) missing.push(page);
    }
    return missing;
  }

  private async load(page: number): Promise<void> {
    const lo = page * PAGE_ROWS;
    this.requested.add(page);
    try {
      const answer = await execRows(this.query, lo, lo + PAGE_ROWS, this.abort.signal);
      if (answer.kind === "rows") this.take(page, answer.rows);
      this.removeFarPages(page);
      this.error = undefined;
    } catch (error) {
      if (isAbort(error)) return;
      this.error = error instanceof Error ? error.message : String(error);
    } finally {
      this.requested.delete(page);
      this.version.value += 1;
    }
  }

  /** Keeps a page; a page that is not full ends a result of which only a lower bound was known. */
  private take(page: number, rows: Row[]): void {
    this.pages.set(page, rows);
    if (this.isExact) return;
    const end = page * PAGE_ROWS + rows.length;
    this.isExact = rows.length > 0 && rows.length < PAGE_ROWS;
    this.rowCount = this.isExact ? end : Math.max(this.rowCount, rows.length === 0 ? 0 : end + 1);
  }

  private removeFarPages(near: number): void {
    const far = [...this.pages.keys()].sort((a, b) => Math.abs(b - near) - Math.abs(a - near));
    far.slice(0, Math.max(0, this.pages.size - PAGES_MAX)).forEach((page) => this.pages.delete(page));
  }

  /** Asks for the number of rows if only a lower bound is known. */
  async countRows(): Promise<void> {
    if (this.isExact || !this.query.isRepeatable) return;
    try {
      this.rowCount = await rowCountOf(this.query, this.abort.signal);
      this.isExact = true;
      this.version.value += 1;
    } catch {
      // The lower bound stays.
    }
  }

  /** Stops all requests for pages. */
  close(): void {
    clearTimeout(this.settle);
    this.abort.abort();
  }
}

/**
 * Runs a query for its rows after `lo` up to `hi`.
 *
 * A LIMIT in the statement lets the server stop early. Where the statement takes none, the server computes all rows and
 * sends the wanted ones.
 */
async function execRows(query: Query, lo: number, hi: number, signal: AbortSignal): Promise<Rows | Done> {
  const options = { params: query.params, signal };
  const limited = limitedQuery(query.sql, lo, hi);
  if (limited === undefined) return exec(query.sql, { ...options, limit: [lo + 1, hi] });
  try {
    return await exec(limited, options);
  } catch (error) {
    // The message of an incomplete statement would name the LIMIT.
    if (!(error instanceof QueryError) || !error.message.startsWith("syntax error")) throw error;
    return exec(query.sql, { ...options, limit: [lo + 1, hi] });
  }
}

async function rowCountOf(query: Query, signal: AbortSignal): Promise<number> {
  const options = { params: query.params, signal };
  try {
    const answer = await exec(countQuery(query.sql), options);
    if (answer.kind === "rows") return Number(answer.rows[0]?.[0]);
  } catch (error) {
    if (!(error instanceof QueryError)) throw error;
  }
  const answer = await exec(query.sql, { ...options, limit: [1, 1], count: true });
  return answer.kind === "rows" ? answer.count : 0;
}

/** Runs a query and returns its first rows, or the answer of a statement without rows. */
export async function openResult(query: Query, signal: AbortSignal): Promise<ResultPages | Done> {
  const { sql, params } = query;
  if (!query.isRepeatable) {
    const answer = await exec(sql, { params, signal, limit: [1, UNREPEATABLE_ROWS], count: true });
    return answer.kind === "rows" ? new ResultPages(query, answer, true) : answer;
  }
  const answer = await execRows(query, 0, FIRST_ROWS + 1, signal);
  if (answer.kind !== "rows") return answer;
  const isExact = answer.rows.length <= FIRST_ROWS;
  const count = answer.rows.length;
  return new ResultPages(query, { ...answer, count, rows: answer.rows.slice(0, FIRST_ROWS) }, isExact);
}
