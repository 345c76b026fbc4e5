import assert from "node:assert/strict";
import { test } from "node:test";

Object.assign(globalThis, {
  sessionStorage: { getItem: () => null },
  location: { hash: "" },
  addEventListener: () => undefined,
});
const { Session } = await import("../src/dashboards/session.ts");
const { emptyDashboard, parseDashboard } = await import("../src/dashboards/model.ts");

/** Answers every statement with the values of a list, and keeps the statements. */
function serve(valuesOf: (sql: string) => string[]): string[] {
  const asked: string[] = [];
  globalThis.fetch = (async (_: string, init: RequestInit) => {
    const { query } = JSON.parse(String(init.body)) as { query: string };
    asked.push(query);
    const dataset = valuesOf(query).map((value) => [value]);
    const body = { columns: [{ name: "v", type: "SYMBOL" }], dataset, timestamp: -1, count: dataset.length };
    return new Response(JSON.stringify(body), { headers: { "Content-Type": "application/json" } });
  }) as typeof fetch;
  return asked;
}

const LISTS = parseDashboard({
  variables: [
    { name: "Region", kind: "list", sql: "SELECT region FROM t" },
    { name: "host", kind: "list", sql: "SELECT host FROM t WHERE region = :region AND ts > :from" },
  ],
});

/** Lets the requests of lists end. */
async function settled(session: InstanceType<typeof Session>, lists: number): Promise<void> {
  for (let i = 0; i < 50 && session.lists.value.size < lists; i++) await new Promise((done) => setImmediate(done));
  await new Promise((done) => setImmediate(done));
}

test("a list that depends on another one is read after it, and again when the other value changes", async () => {
  const asked = serve((sql) => (sql.includes("host") ? ["h1"] : ["eu", "us"]));
  const session = new Session(LISTS);
  assert.equal(session.literals.value.get("region"), undefined);
  session.readLists();
  assert.equal(asked.length, 1);
  await settled(session, 1);
  assert.equal(session.literals.value.get("region"), "'eu'");
  session.readLists();
  await settled(session, 2);
  assert.match(asked[1] ?? "", /region = 'eu' AND ts > '\d{4}-/);
  session.readLists();
  assert.equal(asked.length, 2);
  session.choose("Region", "us");
  session.readLists();
  await settled(session, 2);
  assert.match(asked[2] ?? "", /region = 'us'/);
  assert.equal(asked.length, 3);
});

test("a list that cannot be read has an error, a statement that writes is not sent", async () => {
  const asked = serve(() => []);
  const session = new Session(parseDashboard({ variables: [{ name: "v", kind: "list", sql: "DELETE FROM t" }] }));
  session.readLists();
  await settled(session, 1);
  assert.deepEqual(session.lists.value.get("v"), { error: "the list of a variable must be a query" });
  assert.equal(asked.length, 0);
});

test("choices become the initial ones with a save", () => {
  const dashboard = parseDashboard({ variables: [{ name: "v", kind: "text", value: "1" }] });
  const session = new Session(dashboard);
  assert.equal(session.literals.value.get("v"), "1");
  session.choose("v", "it's");
  session.refreshMs.value = 750;
  session.setRange({ from: "", to: "" });
  assert.equal(session.literals.value.get("v"), "'it''s'");
  const { variables, range, refreshMs } = session.applied(dashboard);
  assert.deepEqual([variables[0]?.value, range, refreshMs], ["it's", { from: "", to: "" }, 750]);
});

test("choices of a link", () => {
  const dashboard = parseDashboard({ variables: [{ name: "v", kind: "text", value: "1" }, { name: "w" }] });
  const session = new Session(dashboard);
  session.choose("v", "a&b=c");
  session.setRange({ from: "2024-01-01", to: "now" });
  const linked = new Session(dashboard, new URLSearchParams(session.choices().toString()));
  assert.equal(linked.literals.value.get("v"), "'a&b=c'");
  assert.equal(linked.literals.value.get("w"), "''");
  assert.deepEqual(linked.range.value, { from: "2024-01-01", to: "now" });
});

test("a zoom is undone to the range before the first one", () => {
  const session = new Session({ ...emptyDashboard(), range: { from: "now-1h", to: "now" } });
  session.zoom("SELECT 1", [1, 2]);
  assert.equal(session.range.value.from, "now-1h");
  session.zoom("SELECT :from", [1, 2]);
  session.zoom("SELECT :from", [1, 1.5]);
  assert.deepEqual(session.range.value, { from: "1970-01-01T00:00:01.000000Z", to: "1970-01-01T00:00:01.500000Z" });
  session.zoom("SELECT :from", undefined);
  assert.deepEqual(session.range.value, { from: "now-1h", to: "now" });
});
