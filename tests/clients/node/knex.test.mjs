// knex: schema, queries, transactions, and migrations over tables that exist.
//
// knex makes its own tables of migrations with a SERIAL column, which Tidalite rejects (docs/sql/ddl.md), so they are created before.
import assert from "node:assert/strict";
import test from "node:test";
import knex from "knex";
import { config, failure, ODD, side, unique } from "./common.mjs";

async function connected(work) {
  const db = knex({ client: "pg", connection: config, pool: { min: 0, max: 4 } });
  try {
    return await work(db);
  } finally {
    await db.destroy();
  }
}

const columns = (t) => {
  t.bigInteger("id");
  t.string("name", 40);
  t.text("note");
  t.integer("n");
  t.smallint("small");
  t.double("value");
  t.float("single");
  t.decimal("price", 18, 3);
  t.boolean("ok");
  t.datetime("at", { useTz: false });
  t.date("day");
  t.uuid("u");
  t.binary("bin");
  t.json("j");
  t.specificType("arr", "double precision[]");
};

test("a schema", () => connected(async (db) => {
  const table = unique("schema");
  assert.equal(await db.schema.hasTable(table), false);
  await db.schema.createTable(table, columns);
  assert.equal(await db.schema.hasTable(table), true);
  assert.equal(await db.schema.hasColumn(table, "price"), true);
  const info = await db(table).columnInfo();
  assert.deepEqual(Object.fromEntries(Object.entries(info).map(([name, column]) => [name, column.type])), {
    id: "bigint", name: side === "postgres" ? "character varying" : "text", note: "text", n: "integer", small: "smallint", value: "double precision", single: "real", price: "numeric", ok: "boolean", at: "timestamp without time zone", day: "date", u: "uuid",
    bin: "bytea", j: "json", arr: "ARRAY",
  });
  await db.schema.alterTable(table, (t) => { t.bigInteger("extra"); t.dropColumn("single"); t.renameColumn("note", "remark"); });
  assert.deepEqual([await db.schema.hasColumn(table, "extra"), await db.schema.hasColumn(table, "single"), await db.schema.hasColumn(table, "remark")], [true, false, true]);
  await db.schema.renameTable(table, `${table}_b`);
  assert.deepEqual([await db.schema.hasTable(table), await db.schema.hasTable(`${table}_b`)], [false, true]);
  await db.schema.createViewOrReplace(`${table}_v`, (view) => view.as(db(`${table}_b`).select("id", "name")));
  assert.deepEqual(await db(`${table}_v`).select(), []);
  await db.schema.dropView(`${table}_v`);
  await db.schema.dropTableIfExists(`${table}_b`);
  await db.schema.dropTableIfExists(`${table}_b`);
  assert.equal((await failure(db.schema.dropTable(table))).code, "42P01");
}));

const row = (id) => ({
  id, name: `n${id % 3}`, note: id === 7 ? ODD : null, n: id, small: -id, value: id / 4, single: 0.5, price: `${id}.125`, ok: id % 2 === 0, at: `2024-01-0${1 + (id % 5)} 00:00:00.000001`, day: "2024-02-29",
  u: "11111111-2222-3333-4444-555555555555", bin: Buffer.from([0, 255]), j: JSON.stringify({ id }), arr: [id, null],
});

test("queries", () => connected(async (db) => {
  const table = unique("queries");
  await db.schema.createTable(table, columns);
  assert.deepEqual(await db(table).insert(row(1)).returning("id"), [{ id: "1" }]);
  // knex writes DEFAULT for what an object lacks.
  await db(table).insert([row(2), { id: 3 }]);
  await db.batchInsert(table, Array.from({ length: 100 }, (_, n) => row(n + 4)), 30);
  const [seven] = await db(table).where({ id: 7 }).select("note", "small", "value", "price", "ok", "u", "bin", "j", "arr");
  assert.deepEqual(seven, { note: ODD, small: -7, value: 1.75, price: "7.125", ok: false, u: row(7).u, bin: Buffer.from([0, 255]), j: { id: 7 }, arr: [7, null] });
  assert.deepEqual(await db(table).first("name", "note", "value").where("id", 3), { name: null, note: null, value: null });
  assert.deepEqual(await db(table).count("* as all").countDistinct("name as names").sum("n as total").min("at as first").then(([one]) => ({ ...one, first: one.first.toISOString() })), { all: "103", names: "3", total: "5353", first: "2024-01-01T00:00:00.000Z" });
  assert.deepEqual(await db(table).whereIn("id", [1, 2, 999]).orWhereNull("name").orderBy("id").pluck("id"), ["1", "2", "3"]);
  assert.deepEqual(await db(table).whereBetween("id", [10, 14]).whereNot("ok", true).whereLike("name", "n%").orderBy("id", "desc").limit(2).offset(1).pluck("n"), [11]);
  assert.deepEqual(await db(table).select("name").count("id as c").whereNotNull("name").groupBy("name").having(db.raw("count(id)"), ">", 33).orderBy("name"), [{ name: "n0", c: "33" }, { name: "n1", c: "35" }, { name: "n2", c: "34" }].filter((one) => one.c > 33));
  assert.deepEqual(await db.with("few", db(table).where("id", "<", 3)).from("few").join(`${table} as o`, "o.id", "few.id").select("o.n").orderBy("o.n"), [{ n: 1 }, { n: 2 }]);
  assert.deepEqual(await db(table).select("id").where("id", 1).union(db(table).select("id").where("id", 2)).orderBy("id"), [{ id: "1" }, { id: "2" }]);
  assert.deepEqual(await db(table).where("id", "<=", 2).update({ value: db.raw("value + ?", [100]), note: null }).returning(["id", "value"]).then((rows) => rows.map((one) => one.value).sort()), [100.25, 100.5]);
  assert.equal(await db(table).where("id", 1).increment("n", 5), 1);
  assert.equal(await db(table).where("id", ">", 50).del(), 53);
  assert.deepEqual((await db.raw("SELECT ?::int AS a, ?::text AS b, ?? FROM ?? WHERE id = ?", [1, "x", "n", table, 1])).rows, [{ a: 1, b: "x", n: 6 }]);
  const seen = [];
  for await (const one of db(table).select("id").orderBy("id").stream()) seen.push(one.id);
  assert.equal(seen.length, 50);
  assert.equal((await failure(db(table).select("nothing"))).code, "42703");
  await db(table).del();
  assert.deepEqual(await db(table).select(), []);
}));

test("transactions with savepoints", () => connected(async (db) => {
  const table = unique("transactions");
  await db.schema.createTable(table, (t) => { t.integer("id"); });
  await assert.rejects(db.transaction(async (outer) => { await outer(table).insert({ id: 1 }); throw new RangeError("undone"); }), RangeError);
  await db.transaction(async (outer) => {
    await outer(table).insert({ id: 2 });
    await assert.rejects(outer.transaction(async (inner) => { await inner(table).insert({ id: 3 }); await inner.raw("SELECT 1/0"); }), { code: "22012" });
    await outer.transaction((inner) => inner(table).insert({ id: 4 }));
  }, { isolationLevel: "repeatable read" });
  await assert.rejects(db.transaction((outer) => outer(table).insert({ id: 5 }), { readOnly: true }), { code: "25006" });
  assert.deepEqual(await db(table).orderBy("id").pluck("id"), [2, 4]);
}));

test("migrations", () => connected(async (db) => {
  const [table, log] = [unique("migrated"), unique("migrations")];
  await db.schema.createTable(log, (t) => { t.integer("id"); t.string("name"); t.integer("batch"); t.datetime("migration_time", { useTz: false }); });
  await db.schema.createTable(`${log}_lock`, (t) => { t.integer("index"); t.integer("is_locked"); });
  const steps = {
    "1_create": { up: (on) => on.schema.createTable(table, columns), down: (on) => on.schema.dropTable(table) },
    "2_fill": { up: (on) => on(table).insert([row(1), row(2)]), down: (on) => on(table).del() },
    "3_alter": { up: (on) => on.schema.alterTable(table, (t) => { t.double("added"); t.dropColumn("small"); }), down: (on) => on.schema.alterTable(table, (t) => { t.dropColumn("added"); t.smallint("small"); }) },
    "4_fails": { up: async (on) => { await on.schema.dropTable(table); await on.raw("SELECT 1/0"); }, down: () => {} },
  };
  const source = (names) => ({ tableName: log, migrationSource: { getMigrations: async () => names, getMigrationName: (name) => name, getMigration: async (name) => steps[name] } });
  const three = source(["1_create", "2_fill", "3_alter"]);
  assert.deepEqual(await db.migrate.latest(three), [1, ["1_create", "2_fill", "3_alter"]]);
  assert.deepEqual(await db.migrate.latest(three), [1, []]);
  // The column would have numbers of the server; a rollback is in their order.
  for (const [n, name] of Object.keys(steps).entries()) await db(log).where({ name }).update({ id: n + 1 });
  assert.deepEqual((await db.migrate.list(three)).map((part) => part.length), [3, 0]);
  assert.equal(await db.schema.hasColumn(table, "added"), true);
  // A migration is one transaction: the table is not dropped.
  assert.equal((await failure(db.migrate.latest(source(Object.keys(steps))))).code, "22012");
  assert.deepEqual(await db(table).orderBy("id").pluck("id"), ["1", "2"]);
  assert.deepEqual(await db(log).orderBy("name").pluck("name"), ["1_create", "2_fill", "3_alter"]);
  assert.deepEqual((await db.migrate.rollback(three))[0], 1);
  assert.equal(await db.schema.hasTable(table), false);
}));
