import { signal } from "@preact/signals";
import { isRepeatable } from "../sql/statements.ts";
import { runAgain, runs } from "./run.ts";
import { activeTab } from "./tabs.ts";
import { view } from "./view.ts";

/** Intervals of live mode, in milliseconds. */
export const INTERVALS_MS = [750, 1000, 5000, 30_000] as const;

/** Interval of the tab that is repeated, `undefined` if none is. */
export const live = signal<{ tab: string; intervalMs: number } | undefined>(undefined);

let timer: ReturnType<typeof setTimeout> | undefined;

/** Repeats the query of the active tab; `undefined` ends the repetition. */
export function setLive(intervalMs: number | undefined): void {
  clearTimeout(timer);
  live.value = intervalMs === undefined ? undefined : { tab: activeTab.peek().id, intervalMs };
  if (live.value) schedule();
}

function schedule(): void {
  timer = setTimeout(() => void repeat(), live.peek()?.intervalMs);
}

/** A hidden page, another tab and another view send no requests. */
async function repeat(): Promise<void> {
  const current = live.peek();
  if (!current) return;
  const run = runs.peek().get(current.tab);
  const isVisible = !document.hidden && view.peek() === "query" && activeTab.peek().id === current.tab;
  if (run === undefined || !isRepeatable(run.sql) || run.state === "failed") {
    setLive(undefined);
    return;
  }
  if (isVisible) await runAgain(current.tab);
  if (live.peek() === current) schedule();
}
