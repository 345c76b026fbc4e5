import { computed, effect, signal } from "@preact/signals";
import { QueryError, type Done } from "../api/exec.ts";
import { isAbort } from "../api/http.ts";
import { parameterValue } from "../api/parameters.ts";
import { openResult, ResultPages } from "../results/pages.ts";
import { isRepeatable, positionalParameters, withTimeRange } from "../sql/statements.ts";
import { ALL_TIMES, resolveRange, type TimeRange } from "../sql/time-range.ts";
import { formatCount } from "../ui/format.ts";
import { addToHistory } from "./history.ts";
import { loadSchema } from "./schema.ts";
import { persisted } from "./storage.ts";
import { activeTab, tabs } from "./tabs.ts";

export interface RunError {
  message: string;
  /** In characters of the statement, from 0. */
  position: number | undefined;
  hint: string | undefined;
}

export interface Run {
  id: number;
  /** The statement as it stands in the editor. */
  sql: string;
  /** Offset of the statement in the text of the tab. */
  offset: number;
  state: "running" | "done" | "failed" | "cancelled";
  /** Time of `performance.now()`. */
  startedAt: number;
  elapsedMs: number;
  result: ResultPages | undefined;
  /** Outcome of a statement without rows. */
  message: string | undefined;
  error: RunError | undefined;
}

/** What to run: a statement and its place in the text of the tab. */
export interface Runnable {
  text: string;
  from: number;
}

/** The shown run of each tab. */
export const runs = signal<Map<string, Run>>(new Map());
/** The runs of the statements that were last run together, by tab. */
export const sequences = signal<Map<string, Run[]>>(new Map());
export const activeRun = computed(() => runs.value.get(activeTab.value.id));
/** Values of `$1`, `$2`, … as they were entered. */
export const parameterTexts = persisted<Record<string, string>>("parameters", {});

/** `:from` and `:to` by tab, as they were entered; without a value all times. */
export const timeRanges = signal<Map<string, TimeRange>>(new Map());

const running = new Map<string, AbortController>();
let lastRunId = 0;

export function timeRangeOf(tab: string): TimeRange {
  return timeRanges.peek().get(tab) ?? ALL_TIMES;
}

/** Sets `:from` and `:to` of a tab; `undefined` stands for all times. */
export function setTimeRange(tab: string, range: TimeRange | undefined): void {
  const changed = new Map(timeRanges.peek());
  if (range) changed.set(tab, range);
  else changed.delete(tab);
  timeRanges.value = changed;
}

function setRun(tab: string, run: Run): void {
  runs.value = new Map(runs.peek()).set(tab, run);
}

/** Runs statements one after another in a tab; an error ends the sequence. */
export async function runStatements(tab: string, statements: Runnable[]): Promise<void> {
  cancelRun(tab);
  closeResults(tab);
  for (const statement of statements) {
    const run = await runStatement(tab, statement);
    const isReplaced = !sequences.peek().get(tab)?.includes(run);
    if (run.state !== "done" || isReplaced) return;
  }
}

/** Shows another run of the sequence of a tab. */
export function showRun(tab: string, run: Run): void {
  setRun(tab, run);
}

/** Forgets the runs of a tab and ends their requests. */
function closeResults(tab: string): void {
  sequences
    .peek()
    .get(tab)
    ?.forEach((run) => run.result?.close());
  setSequence(tab, []);
}

function setSequence(tab: string, sequence: Run[]): void {
  sequences.value = new Map(sequences.peek()).set(tab, sequence);
}

/** Runs the statement of the last run of a tab again and keeps its rows until the new ones arrive. */
export async function runAgain(tab: string): Promise<void> {
  const run = runs.peek().get(tab);
  if (run && run.state !== "running") await runStatement(tab, { text: run.sql, from: run.offset }, true);
}

export function cancelRun(tab: string): void {
  running.get(tab)?.abort();
}

async function runStatement(tab: string, statement: Runnable, isLive = false): Promise<Run> {
  const controller = new AbortController();
  running.set(tab, controller);
  const before = runs.peek().get(tab);
  const run: Run = {
    id: (lastRunId += 1),
    sql: statement.text,
    offset: statement.from,
    state: "running",
    startedAt: performance.now(),
    elapsedMs: 0,
    result: isLive ? before?.result : undefined,
    message: undefined,
    error: undefined,
  };
  if (!isLive) setRun(tab, run);
  const outcome = await outcomeOf(tab, statement.text, controller.signal);
  const ended: Run = { ...run, result: undefined, ...outcome, elapsedMs: performance.now() - run.startedAt };
  if (running.get(tab) === controller) running.delete(tab);
  const isCurrent = isLive ? runs.peek().get(tab) === before : runs.peek().get(tab)?.id === run.id;
  if (isCurrent) {
    if (isLive) closeResults(tab);
    setSequence(tab, [...(sequences.peek().get(tab) ?? []), ended]);
    setRun(tab, ended);
  }
  afterRun(ended, isLive);
  return ended;
}

function afterRun(run: Run, isLive: boolean): void {
  // A repeated query is not run a second time for its number of rows.
  if (!isLive) void run.result?.countRows();
  if (isLive || run.state === "cancelled") return;
  addToHistory({
    sql: run.sql,
    at: Date.now(),
    elapsedMs: Math.round(run.elapsedMs),
    rows: run.result?.rowCount,
    error: run.error?.message,
  });
  const changesSchema = /\b(create|drop|alter|rename|truncate|insert|copy)\b/i.test(run.sql);
  if (run.state === "done" && changesSchema) void loadSchema();
}

/** How a time may be written, as a hint of an error. */
export const TIME_HINT = "write now, now-15m, 2024-01-31 or 2024-01-31 12:30:00";

/** Outcome of a statement without rows, in words. */
export function doneText({ changed, verb }: Done): string {
  return changed === undefined ? "Done" : `Done: ${formatCount(changed)} ${changed === 1 ? "row" : "rows"} ${verb}`;
}

type Outcome = Pick<Run, "state" | "message" | "error"> & Partial<Run>;

async function outcomeOf(tab: string, text: string, signal: AbortSignal): Promise<Outcome> {
  try {
    const range = resolveRange(timeRangeOf(tab), Date.now());
    if ("invalid" in range) throw new QueryError(`${range.invalid} is not a time`, undefined, TIME_HINT);
    const sql = withTimeRange(text, range.from, range.to);
    const params = positionalParameters(sql).map((n) => parameterValue(parameterTexts.peek()[n] ?? "null"));
    const result = await openResult({ sql, params, isRepeatable: isRepeatable(sql) }, signal);
    if (result instanceof ResultPages) return { state: "done", result, message: undefined, error: undefined };
    return { state: "done", message: doneText(result), error: undefined };
  } catch (error) {
    if (isAbort(error)) return { state: "cancelled", message: undefined, error: undefined };
    return { state: "failed", message: undefined, error: runError(error) };
  }
}

export function runError(error: unknown): RunError {
  if (error instanceof QueryError) return { message: error.message, position: error.position, hint: error.hint };
  const isNetwork = error instanceof TypeError;
  const message = isNetwork ? "the server cannot be reached" : String(error);
  return { message, position: undefined, hint: undefined };
}

/** Ends the requests of tabs that were closed. */
effect(() => {
  const open = new Set(tabs.value.map((tab) => tab.id));
  for (const tab of runs.peek().keys()) {
    if (open.has(tab)) continue;
    cancelRun(tab);
    closeResults(tab);
    const rest = new Map(runs.peek());
    rest.delete(tab);
    runs.value = rest;
  }
});
