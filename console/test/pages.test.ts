import assert from "node:assert/strict";
import { test } from "node:test";

/** A server with a table of `rowCount` rows; counts the requests. */
class FakeServer {
  requests: string[] = [];
  failure: string | undefined;

  constructor(public rowCount: number) {}

  answer = async (_: string, init: RequestInit): Promise<Response> => {
    init.signal?.throwIfAborted();
    const { query } = JSON.parse(String(init.body)) as { query: string };
    this.requests.push(query);
    const json = (body: unknown): Response =>
      new Response(JSON.stringify(body), { headers: { "Content-Type": "application/json" } });
    if (this.failure) return json({ error: this.failure });
    const columns = [{ name: "x", type: "LONG" }];
    if (query.startsWith("SELECT count"))
      return json({ columns, dataset: [[String(this.rowCount)]], timestamp: -1, count: 1 });
    const [, lo = 0, hi = 0] = (/LIMIT (\d+), (\d+)$/.exec(query) ?? []).map(Number);
    const dataset = [];
    for (let x = lo; x < Math.min(hi, this.rowCount); x++) dataset.push([String(x)]);
    return json({ columns, dataset, timestamp: -1, count: dataset.length });
  };
}

Object.assign(globalThis, { sessionStorage: { getItem: () => null } });
const { openResult, ResultPages, FIRST_ROWS, PAGE_ROWS } = await import("../src/results/pages.ts");

async function open(server: FakeServer): Promise<InstanceType<typeof ResultPages>> {
  globalThis.fetch = server.answer as typeof fetch;
  const result = await openResult(
    { sql: "SELECT x FROM t", params: [], isRepeatable: true },
    new AbortController().signal,
  );
  assert.ok(result instanceof ResultPages);
  return result;
}

test("a small result is complete after one request", async () => {
  const server = new FakeServer(FIRST_ROWS);
  const result = await open(server);
  assert.deepEqual([result.rowCount, result.isExact, result.isComplete()], [FIRST_ROWS, true, true]);
  await result.countRows();
  assert.equal(server.requests.length, 1);
});

test("of a large result only a lower bound is known until the rows are counted", async () => {
  const result = await open(new FakeServer(1_000_000));
  assert.deepEqual([result.rowCount, result.isExact], [FIRST_ROWS + 1, false]);
  await result.countRows();
  assert.deepEqual([result.rowCount, result.isExact, result.isComplete()], [1_000_000, true, false]);
});

test("pages are read once and the farthest ones are removed", async () => {
  const server = new FakeServer(1_000_000);
  const result = await open(server);
  await result.loadRange(700_000, 700_500);
  await result.loadRange(700_000, 700_500);
  assert.equal(server.requests.length, 2);
  assert.deepEqual(result.row(700_123), ["700123"]);
  assert.equal(result.row(500_000), undefined);
  await result.loadRange(300_000, 599_999);
  assert.equal(result.loadedCount(), 200 * PAGE_ROWS);
  assert.deepEqual(result.row(599_999), ["599999"]);
});

test("a short page ends a result that was not counted", async () => {
  const result = await open(new FakeServer(FIRST_ROWS + 10));
  await result.loadRange(FIRST_ROWS, FIRST_ROWS);
  assert.deepEqual([result.rowCount, result.isExact], [FIRST_ROWS + 10, true]);
});

test("a page that cannot be read is reported and can be read later", async () => {
  const server = new FakeServer(1_000_000);
  const result = await open(server);
  server.failure = "the disk is full";
  await result.loadRange(10_000, 10_000);
  assert.equal(result.error, "the disk is full");
  server.failure = undefined;
  await result.loadRange(10_000, 10_000);
  assert.deepEqual([result.error, result.row(10_000)], [undefined, ["10000"]]);
});

test("a closed result sends nothing", async () => {
  const server = new FakeServer(1_000_000);
  const result = await open(server);
  result.close();
  await result.loadRange(10_000, 10_000);
  assert.equal(server.requests.length, 1);
});
