import { signal } from "@preact/signals";
import { exec, QueryError, type Column, type Done, type ExecOptions, type Row, type Rows } from "../api/exec.ts";
import { isAbort } from "../api/http.ts";

/** Rows that a panel reads; the rest is left out with a note. */
export const PANEL_ROWS = 10_000;

export interface PanelRows {
  columns: Column[];
  rows: Row[];
  timestamp: number;
  /** True if the statement has more rows than `PANEL_ROWS`. */
  isCut: boolean;
}

export interface PanelState {
  /** The last rows; they stay while a request runs and after an error. */
  result: PanelRows | undefined;
  /** Outcome of a statement without rows. */
  done: Done | undefined;
  error: { message: string; hint: string | undefined } | undefined;
  isRunning: boolean;
  elapsedMs: number;
  /** Refreshes that were left out because the last request had not ended. */
  skipped: number;
}

type Exec = (sql: string, options: ExecOptions) => Promise<Rows | Done>;

const EMPTY: PanelState = {
  result: undefined,
  done: undefined,
  error: undefined,
  isRunning: false,
  elapsedMs: 0,
  skipped: 0,
};

/** Repeats the statement of a panel, with at most one request in flight. */
export class PanelQuery {
  readonly state = signal<PanelState>(EMPTY);
  private inFlight: AbortController | undefined;

  constructor(private readonly run: Exec = exec) {}

  /** Repeats the statement; a refresh during a request is counted and left out. */
  async refresh(sql: string): Promise<void> {
    if (this.inFlight) this.set({ skipped: this.state.peek().skipped + 1 });
    else await this.send(sql);
  }

  /** Runs a changed statement; a request for the previous one is cancelled. */
  async restart(sql: string): Promise<void> {
    this.cancel();
    await this.send(sql);
  }

  cancel(): void {
    this.inFlight?.abort();
    this.inFlight = undefined;
    this.set({ isRunning: false });
  }

  /** Shows an error without a request. */
  fail(message: string, hint?: string): void {
    this.cancel();
    this.set({ error: { message, hint } });
  }

  private async send(sql: string): Promise<void> {
    const controller = new AbortController();
    this.inFlight = controller;
    const started = performance.now();
    this.set({ isRunning: true });
    let change: Partial<PanelState>;
    try {
      const answer = await this.run(sql, { limit: [1, PANEL_ROWS + 1], signal: controller.signal });
      change = { error: undefined, ...outcomeOf(answer) };
    } catch (error) {
      change = isAbort(error) ? {} : { error: errorOf(error) };
    }
    if (this.inFlight !== controller) return;
    this.inFlight = undefined;
    this.set({ ...change, isRunning: false, elapsedMs: performance.now() - started });
  }

  private set(change: Partial<PanelState>): void {
    this.state.value = { ...this.state.peek(), ...change };
  }
}

function outcomeOf(answer: Rows | Done): Partial<PanelState> {
  if (answer.kind === "done") return { result: undefined, done: answer };
  const { columns, timestamp, rows } = answer;
  const isCut = rows.length > PANEL_ROWS;
  return { result: { columns, timestamp, rows: isCut ? rows.slice(0, PANEL_ROWS) : rows, isCut }, done: undefined };
}

function errorOf(error: unknown): PanelState["error"] {
  if (error instanceof QueryError) return { message: error.message, hint: error.hint };
  return { message: error instanceof TypeError ? "the server cannot be reached" : String(error), hint: undefined };
}
