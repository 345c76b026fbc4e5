import assert from "node:assert/strict";
import { test } from "node:test";
import { objectAt, textAt } from "../src/documents/checks.ts";
import { exportText, importText } from "../src/documents/transfer.ts";

Object.assign(globalThis, { sessionStorage: { getItem: () => null } });
const { DocumentStore, freeName, isChanged } = await import("../src/documents/document-store.ts");

type Params = [string, string?][];
interface Stored {
  replaces: string;
  name: string;
  version: string;
  savedAt: string;
  body: string | null;
}

/** The statements of the console over a table in memory: a row whose key exists is not inserted. */
class FakeTable {
  rows: Stored[] = [];
  isCreated = false;

  answer = async (_: string, init: RequestInit): Promise<Response> => {
    const { query, params = [] } = JSON.parse(String(init.body)) as { query: string; params?: Params };
    const body = query.startsWith("CREATE")
      ? { ddl: "OK" }
      : this.select(
          query,
          params.map(([, value]) => value ?? null),
        );
    if (query.startsWith("CREATE")) this.isCreated = true;
    return new Response(JSON.stringify(body), { headers: { "Content-Type": "application/json" } });
  };

  private select(query: string, params: (string | null)[]): object {
    const dataset = query.startsWith("INSERT") ? this.insert(params) : this.read(query, params);
    return { columns: [], dataset, timestamp: -1, count: dataset.length };
  }

  private insert([replaces, , name, version, body]: (string | null)[]): unknown[][] {
    if (this.rows.some((row) => row.replaces === replaces && row.name === name)) return [];
    const savedAt = `2024-01-01T00:00:${String(this.rows.length).padStart(2, "0")}.000000Z`;
    this.rows.push({ replaces: replaces!, name: name!, version: version!, savedAt, body: body ?? null });
    return [[version, savedAt, "ann"]];
  }

  private read(query: string, params: (string | null)[]): unknown[][] {
    if (query.includes("tables()")) return this.isCreated ? [["console_documents"]] : [];
    const sorted = [...this.rows].sort((a, b) => (a.replaces < b.replaces ? 1 : -1));
    if (!query.includes("LATEST ON"))
      return sorted.filter((row) => row.name === params[1]).map((row) => [row.version, row.savedAt, "ann", row.body]);
    const newest = sorted.filter((row, i) => sorted.findIndex(({ name }) => name === row.name) === i);
    return newest.filter((row) => row.body !== null).map((row) => [row.name, row.version, row.savedAt, "ann"]);
  }
}

const parse = (json: unknown): { text: string } => ({ text: textAt(objectAt(json, "the note")["text"], "text", "") });

function browser(): InstanceType<typeof DocumentStore<{ text: string }>> {
  return new DocumentStore({ kind: "notebook", parse, empty: () => ({ text: "" }) });
}

test("documents are saved, versioned, listed, restored and deleted", async () => {
  const table = new FakeTable();
  globalThis.fetch = table.answer as typeof fetch;
  const store = browser();
  await store.refresh();
  assert.deepEqual(store.list.value, []);
  const name = store.create("a");
  store.edit(name, { text: "one" });
  assert.equal(isChanged(store.open.value.get(name)!), true);
  assert.equal(await store.save(name), true);
  assert.equal(isChanged(store.open.value.get(name)!), false);
  store.edit(name, { text: "two" });
  assert.equal(await store.save(name), true);
  assert.deepEqual(
    store.list.value?.map(({ name, version }) => [name, version]),
    [["a", 2]],
  );
  assert.equal(await store.restore({ name, version: 1, savedAt: "", author: "", body: '{"text":"one"}' }), true);
  assert.equal(store.open.value.get(name)?.base?.version, 3);
  assert.equal(table.rows.at(-1)?.body, '{"text":"one"}');
  assert.equal(await store.remove(name), true);
  assert.deepEqual([store.list.value, store.open.value.size], [[], 0]);
  // The name of a deleted document can be used again.
  store.create("a");
  assert.equal(await store.save("a"), true);
  assert.equal(store.open.value.get("a")?.base?.version, 5);
});

test("a save that does not replace the newest version reports a conflict", async () => {
  const table = new FakeTable();
  globalThis.fetch = table.answer as typeof fetch;
  const [ann, bob] = [browser(), browser()];
  ann.create("a");
  await ann.save("a");
  await bob.load("a");
  ann.edit("a", { text: "of ann" });
  bob.edit("a", { text: "of bob" });
  const saved = await Promise.all([ann.save("a"), bob.save("a")]);
  assert.deepEqual(saved.toSorted(), [false, true]);
  const [winner, loser] = saved[0] ? [ann, bob] : [bob, ann];
  assert.equal(winner.conflict.value, undefined);
  const conflict = loser.conflict.value;
  assert.equal(conflict?.newest.version, 2);
  assert.equal(isChanged(loser.open.value.get("a")!), true);
  assert.equal(await loser.save("a", conflict?.newest), true);
  assert.deepEqual(table.rows.length, 3);
  await winner.load("a");
  assert.equal(winner.open.value.get("a")?.base?.version, 3);
});

test("the newest version replaces the own changes on demand, other loads keep them", async () => {
  const table = new FakeTable();
  globalThis.fetch = table.answer as typeof fetch;
  const [ann, bob] = [browser(), browser()];
  ann.create("a", { text: "first" });
  await ann.save("a");
  await bob.load("a");
  bob.edit("a", { text: "of bob" });
  ann.edit("a", { text: "second" });
  await ann.save("a");
  await bob.load("a");
  assert.equal(bob.open.value.get("a")?.draft.text, "of bob");
  assert.equal(await bob.save("a"), false);
  bob.takeNewest(bob.conflict.value!);
  assert.equal(bob.open.value.get("a")?.draft.text, "second");
});

test("files of documents", () => {
  const file = exportText("notebook", "a", { text: "x" });
  assert.deepEqual(importText("notebook", file, parse), { name: "a", body: { text: "x" } });
  assert.throws(() => importText("dashboard", file, parse), /not a dashboard/);
  assert.throws(() => importText("notebook", "x", parse), /not JSON/);
  assert.throws(() => importText("notebook", '{"tidalite":"notebook","format":2}', parse), /format 2, not 1/);
  assert.throws(() => importText("notebook", exportText("notebook", "a", { text: 1 }), parse), /text is not a text/);
});

test("free names", () => {
  assert.equal(freeName("a", new Set()), "a");
  assert.equal(freeName("a", new Set(["a", "a 2"])), "a 3");
});
