// node-postgres, with its cursors, COPY streams and pools.
import assert from "node:assert/strict";
import test from "node:test";
import { pipeline } from "node:stream/promises";
import { Readable, Writable } from "node:stream";
import pg from "pg";
import { from as copyFrom, to as copyTo } from "pg-copy-streams";
import Cursor from "pg-cursor";
import { config, DEFINITION, ERRORS, failure, ODD, ROWS, unique } from "./common.mjs";

// Times and dates as their texts: Date has milliseconds.
for (const oid of [1082, 1114, 1184]) pg.types.setTypeParser(oid, (text) => text);
const raw = { getTypeParser: (oid, format) => (oid === 114 ? (text) => text : pg.types.getTypeParser(oid, format)) };

const places = ROWS[0].map((_, n) => `$${n + 1}`).join(", ");

async function connected(work, options = {}) {
  const client = new pg.Client({ ...config, ...options });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

const create = (client, table) => client.query(`CREATE TABLE ${table} (${DEFINITION})`);

test("values of all types", () => connected(async (client) => {
  const table = unique("types");
  await create(client, table);
  for (const row of ROWS) {
    const { rowCount, command } = await client.query({ name: "insert", text: `INSERT INTO ${table} VALUES (${places})`, values: row });
    assert.deepEqual([rowCount, command], [1, "INSERT"]);
  }
  for (const query of [{}, { name: "select" }, { name: "select" }]) {
    const found = await client.query({ ...query, text: `SELECT * FROM ${table} WHERE id > $1 ORDER BY id`, values: [0], rowMode: "array", types: raw });
    assert.deepEqual(found.rows, ROWS);
    assert.deepEqual(found.fields.map((field) => field.dataTypeID), [20, 16, 21, 23, 20, 700, 701, 1700, 1114, 1082, 25, 17, 2950, 114, 1022]);
  }
  const literal = await client.query({ text: `SELECT * FROM ${table} ORDER BY id`, rowMode: "array", types: raw });
  assert.deepEqual(literal.rows, ROWS);
  assert.deepEqual((await client.query(`SELECT j FROM ${table} WHERE id = 2`)).rows, [{ j: { a: [1, null, "ü"] } }]);
}));

test("results in binary form", () => connected(async (client) => {
  const { rows: [row] } = await client.query("SELECT 7::int AS i4, 1.5::float8 AS f8, true AS b, 'ü'::text AS t, NULL::int AS nothing, 5::smallint AS i2, '{1,2}'::int[] AS a, 12.50::numeric(10,2) AS n");
  assert.deepEqual({ ...row, i4: Number(row.i4), a: [...row.a].map(Number), n: Number(row.n) }, { i4: 7, f8: 1.5, b: true, t: "ü", nothing: null, i2: 5, a: [1, 2], n: 12.5 });
}, { binary: true }));

test("parameters are compared with columns", () => connected(async (client) => {
  const table = unique("compared");
  await create(client, table);
  for (const row of ROWS) await client.query(`INSERT INTO ${table} VALUES (${places})`, row);
  const columns = DEFINITION.replace(/\([^)]*\)/g, "").split(", ").map((column) => column.split(" ")[0]);
  for (const [n, column] of columns.entries()) {
    if (column === "j" || column === "f4") continue;
    for (const row of ROWS) {
      const { rows } = await client.query({ name: `by ${column}`, text: `SELECT id FROM ${table} WHERE ${column} = $1`, values: [row[n]] });
      const same = ROWS.filter((other) => other[n] !== null && JSON.stringify(other[n]) === JSON.stringify(row[n]) && Object.is(typeof other[n] === "number" ? other[n] : 0, typeof row[n] === "number" ? row[n] : 0));
      assert.deepEqual(rows.map((one) => one.id).sort(), same.map((one) => one[0]).sort(), `${column} ${row[n]}`);
    }
  }
  const one = async (sql, ...values) => Object.values((await client.query(sql.replace("TABLE_", table), values)).rows[0])[0];
  assert.equal(await one("SELECT count(*) FROM TABLE_ WHERE id = ANY($1)", [1, 2, 99]), "2");
  assert.equal(await one("SELECT count(*) FROM TABLE_ WHERE t = ANY($1::text[])", [ODD, "", "x\"'\\"]), "2");
  assert.equal(await one("SELECT ($1::int + 1)::int", 41), 42);
  assert.equal(await one("SELECT $1::text || $2", "a", "b"), "ab");
  assert.deepEqual(await one("SELECT $1::interval", "1 day 02:03:04.5"), Object.assign(pg.types.getTypeParser(1186)("1 day 02:03:04.5"), {}));
  assert.deepEqual(await one("SELECT $1::int[]", [1, null, 3]), [1, null, 3]);
  assert.equal(await one("SELECT $1::timestamptz AT TIME ZONE 'UTC'", new Date("2024-07-01T12:00:00.123Z")), "2024-07-01 12:00:00.123");
  assert.deepEqual(await one("SELECT $1::json", { a: [1, null] }), { a: [1, null] });
  assert.equal(await one("SELECT count(*) FROM TABLE_ WHERE id > $1 LIMIT $2", "2", 1), "3");
}));

for (const [statement, code] of ERRORS) {
  test(`error ${code}: ${statement}`, () => connected(async (client) => {
    const table = unique("errors");
    await create(client, table);
    const text = statement.replace("TABLE_", table);
    for (const query of [text, { text, values: [] }, { text, name: "failing" }]) {
      const error = await failure(client.query(query));
      assert.ok(error instanceof pg.DatabaseError);
      assert.deepEqual([error.code, error.severity], [code, "ERROR"]);
    }
    assert.deepEqual((await client.query("SELECT 1::int AS one")).rows, [{ one: 1 }]);
  }));
}

test("transactions with savepoints", () => connected(async (client) => {
  const table = unique("transactions");
  await client.query(`CREATE TABLE ${table} (id int)`);
  const ids = async () => (await client.query(`SELECT id FROM ${table} ORDER BY id`)).rows.map((row) => row.id);
  await client.query("BEGIN");
  await client.query(`INSERT INTO ${table} VALUES ($1), ($2)`, [1, 2]);
  await client.query("ROLLBACK");
  assert.deepEqual(await ids(), []);
  await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ");
  await client.query(`INSERT INTO ${table} VALUES ($1)`, [3]);
  await client.query("SAVEPOINT a");
  await client.query(`INSERT INTO ${table} VALUES ($1)`, [4]);
  assert.equal((await failure(client.query("SELECT 1/0"))).code, "22012");
  assert.equal((await failure(client.query("SELECT 1"))).code, "25P02");
  await client.query("ROLLBACK TO SAVEPOINT a");
  await client.query(`INSERT INTO ${table} VALUES ($1)`, [5]);
  assert.equal((await client.query("COMMIT")).command, "COMMIT");
  assert.deepEqual(await ids(), [3, 5]);
  await client.query("BEGIN READ ONLY");
  assert.equal((await failure(client.query(`INSERT INTO ${table} VALUES (6)`))).code, "25006");
  assert.equal((await client.query("COMMIT")).command, "ROLLBACK");
}));

test("several statements in one text", () => connected(async (client) => {
  const results = await client.query("SELECT 1::int AS a; SELECT 'x' AS b, NULL AS c; SELECT 2::int AS d WHERE false");
  assert.deepEqual(results.map((result) => [result.command, result.rows]), [["SELECT", [{ a: 1 }]], ["SELECT", [{ b: "x", c: null }]], ["SELECT", []]]);
  const [first, second] = [client.query("SELECT 1/0"), client.query("SELECT 2::int AS n")];
  assert.equal((await failure(first)).code, "22012");
  assert.deepEqual((await second).rows, [{ n: 2 }]);
}));

test("pipelined statements", () => connected(async (client) => {
  const table = unique("pipelined");
  await client.query(`CREATE TABLE ${table} (id int)`);
  const inserts = Array.from({ length: 200 }, (_, n) => client.query({ name: "insert", text: `INSERT INTO ${table} VALUES ($1)`, values: [n] }));
  const bad = failure(client.query(`INSERT INTO ${table} VALUES ($1)`, ["x"]));
  const count = client.query(`SELECT count(*)::int AS n, sum(id)::int AS s FROM ${table}`);
  assert.equal((await Promise.all(inserts)).length, 200);
  assert.equal((await bad).code, "22P02");
  assert.deepEqual((await count).rows, [{ n: 200, s: 19900 }]);
}, { pipeline: true }));

test("cursors", () => connected(async (client) => {
  const cursor = client.query(new Cursor("SELECT x::int AS x FROM generate_series(1, $1::int) AS x", [250]));
  const sizes = [];
  let total = 0;
  for (;;) {
    const rows = await cursor.read(100);
    if (rows.length === 0) break;
    sizes.push(rows.length);
    total += rows.reduce((sum, row) => sum + row.x, 0);
  }
  assert.deepEqual([sizes, total], [[100, 100, 50], 31375]);
  const closed = client.query(new Cursor("SELECT x FROM generate_series(1, 1000000) AS x"));
  assert.equal((await closed.read(10)).length, 10);
  await closed.close();
  assert.deepEqual((await client.query("SELECT 3::int AS n")).rows, [{ n: 3 }]);
}));

test("COPY", () => connected(async (client) => {
  const table = unique("copied");
  await client.query(`CREATE TABLE ${table} (id bigint, t text, at timestamp)`);
  const lines = Array.from({ length: 5000 }, (_, n) => `${n}\t${n % 7 === 0 ? "\\N" : `t\\t${n}`}\t2024-01-01 00:00:00.00000${n % 10}\n`);
  await pipeline(Readable.from(lines), client.query(copyFrom(`COPY ${table} FROM STDIN`)));
  assert.deepEqual((await client.query(`SELECT count(*)::int AS n, count(t)::int AS t, max(at) AS at FROM ${table}`)).rows, [{ n: 5000, t: 4285, at: "2024-01-01 00:00:00.000009" }]);
  const parts = [];
  await pipeline(client.query(copyTo(`COPY (SELECT * FROM ${table} ORDER BY id) TO STDOUT`)), new Writable({ write(part, _, done) { parts.push(part); done(); } }));
  assert.equal(Buffer.concat(parts).toString(), lines.join("").replaceAll(/\.00000(\d)\n/g, (_, digit) => (digit === "0" ? "\n" : `.00000${digit}\n`)));
  assert.equal((await failure(pipeline(Readable.from(["x\n"]), client.query(copyFrom(`COPY ${table} (id) FROM STDIN`))))).code, "22P02");
}));

test("cancellation", () => connected(async (client) => {
  const query = new pg.Query("SELECT pg_sleep(60)");
  const ended = new Promise((done) => query.once("error", done));
  client.query(query);
  await connected((other) => other.query("SELECT 1"));
  new pg.Client(config).cancel(client, query);
  assert.equal((await ended).code, "57014");
  assert.deepEqual((await client.query("SELECT 4::int AS n")).rows, [{ n: 4 }]);
}));

test("a pool", async () => {
  const pool = new pg.Pool({ ...config, max: 5 });
  const found = await Promise.all(Array.from({ length: 50 }, (_, n) => pool.query("SELECT $1::int AS n", [n])));
  assert.deepEqual(found.map((result) => result.rows[0].n), Array.from({ length: 50 }, (_, n) => n));
  await pool.end();
});
