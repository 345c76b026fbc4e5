import assert from "node:assert/strict";
import { test } from "node:test";
import type { Rows } from "../src/api/exec.ts";

Object.assign(globalThis, { sessionStorage: { getItem: () => null } });
const { PANEL_ROWS, PanelQuery } = await import("../src/panels/panel-query.ts");
const { QueryError } = await import("../src/api/exec.ts");

function rowsOf(count: number): Rows {
  const rows = Array.from({ length: count }, (_, i) => [i]);
  return { kind: "rows", columns: [{ name: "x", type: "INT" }], rows, timestamp: -1, count };
}

/** Requests that the test ends one by one. */
class Requests {
  readonly all: { sql: string; signal: AbortSignal; end: (rows: Rows) => void; fail: (error: Error) => void }[] = [];

  run = (sql: string, { signal }: { signal?: AbortSignal }): Promise<Rows> =>
    new Promise((end, fail) => {
      signal?.addEventListener("abort", () => fail(new DOMException("aborted", "AbortError")));
      this.all.push({ sql, signal: signal as AbortSignal, end, fail });
    });
}

test("refreshes during a request are left out and counted", async () => {
  const requests = new Requests();
  const query = new PanelQuery(requests.run);
  const first = query.refresh("a");
  await query.refresh("a");
  await query.refresh("a");
  assert.equal(requests.all.length, 1);
  assert.equal(query.state.value.skipped, 2);
  requests.all[0]?.end(rowsOf(3));
  await first;
  assert.equal(query.state.value.result?.rows.length, 3);
  assert.equal(query.state.value.isRunning, false);
  void query.refresh("a");
  assert.equal(requests.all.length, 2);
});

test("a changed statement cancels the request in flight", async () => {
  const requests = new Requests();
  const query = new PanelQuery(requests.run);
  const first = query.restart("a");
  const second = query.restart("b");
  assert.equal(requests.all[0]?.signal.aborted, true);
  requests.all[1]?.end(rowsOf(1));
  await Promise.all([first, second]);
  assert.equal(query.state.value.result?.rows.length, 1);
  assert.equal(query.state.value.error, undefined);
  assert.equal(query.state.value.skipped, 0);
});

test("an error keeps the last rows, the next rows remove the error", async () => {
  const requests = new Requests();
  const query = new PanelQuery(requests.run);
  const run = async (end: (request: Requests["all"][number]) => void): Promise<void> => {
    const ended = query.refresh("a");
    end(requests.all.at(-1)!);
    await ended;
  };
  await run((request) => request.end(rowsOf(2)));
  await run((request) => request.fail(new QueryError("no such table", 1, "perhaps t")));
  assert.deepEqual(query.state.value.error, { message: "no such table", hint: "perhaps t" });
  assert.equal(query.state.value.result?.rows.length, 2);
  await run((request) => request.fail(new TypeError("fetch failed")));
  assert.equal(query.state.value.error?.message, "the server cannot be reached");
  await run((request) => request.end(rowsOf(PANEL_ROWS + 1)));
  assert.equal(query.state.value.error, undefined);
  assert.deepEqual([query.state.value.result?.rows.length, query.state.value.result?.isCut], [PANEL_ROWS, true]);
});
