import { persisted } from "./storage.ts";

export interface HistoryEntry {
  sql: string;
  /** Milliseconds since 1970. */
  at: number;
  elapsedMs: number;
  rows: number | undefined;
  error: string | undefined;
}

const ENTRIES_MAX = 300;
const SQL_CHARS_MAX = 20_000;

export const history = persisted<HistoryEntry[]>("history", []);

export function clearHistory(): void {
  history.value = [];
}

/** Adds a statement; a repetition of the newest statement replaces it. */
export function addToHistory(entry: HistoryEntry): void {
  if (entry.sql.length > SQL_CHARS_MAX) return;
  const rest = history.peek();
  const isRepetition = rest[0]?.sql === entry.sql;
  history.value = [entry, ...(isRepetition ? rest.slice(1) : rest)].slice(0, ENTRIES_MAX);
}
