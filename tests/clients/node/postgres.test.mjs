// postgres.js, which describes each statement and sends parameters by the described types.
import assert from "node:assert/strict";
import test from "node:test";
import { pipeline } from "node:stream/promises";
import { Readable } from "node:stream";
import postgres from "postgres";
import { after, config, DEFINITION, ERRORS, failure, ODD, ROWS, unique } from "./common.mjs";

/** The client reads NULL in an array of numbers as NaN. */
const READ = ROWS.map((row) => [...row.slice(0, -1), row.at(-1)?.map((value) => value ?? NaN) ?? null]);

async function connected(work, options = {}) {
  const sql = postgres({
    ...config, max: 1, onnotice: () => {},
    // Times, dates and JSON as their texts.
    types: { text_times: { to: 1114, from: [1082, 1114, 1184, 114], serialize: (value) => value, parse: (text) => text } },
    ...options,
  });
  try {
    return await work(sql);
  } finally {
    await sql.end({ timeout: 5 });
  }
}

const names = DEFINITION.replace(/\([^)]*\)/g, "").split(", ").map((column) => column.split(" ")[0]);
const create = (sql, table) => sql.unsafe(`CREATE TABLE ${table} (${DEFINITION})`);
const insert = (sql, table, row) => sql`INSERT INTO ${sql(table)} VALUES (${row[0]}, ${row[1]}, ${row[2]}, ${row[3]}, ${row[4]}, ${row[5]}, ${row[6]}, ${row[7]}, ${row[8]}, ${row[9]}, ${row[10]}, ${row[11]}, ${row[12]}, ${row[13] === null ? null : sql.typed(row[13], 25)}::json, ${row[14]})`;

test("values of all types", () => connected(async (sql) => {
  const table = unique("types");
  await create(sql, table);
  for (const row of ROWS) assert.equal((await insert(sql, table, row)).count, 1);
  for (let round = 0; round < 3; round++) {
    const found = await sql`SELECT * FROM ${sql(table)} WHERE id > ${round - 5} ORDER BY id`;
    assert.deepEqual([...found].map((row) => Object.values(row)), READ);
    assert.deepEqual(found.columns.map((column) => [column.name, column.type]), names.map((name, n) => [name, [20, 16, 21, 23, 20, 700, 701, 1700, 1114, 1082, 25, 17, 2950, 114, 1022][n]]));
  }
  assert.deepEqual([...(await sql.unsafe(`SELECT * FROM ${table} ORDER BY id`).values())], READ);
  const described = await sql`SELECT t FROM ${sql(table)} WHERE id = ${1} AND at > ${"2024-01-01"}`.describe();
  assert.deepEqual([described.types, described.columns.map((column) => column.type)], [[20, 1114], [25]]);
}));

test("parameters", () => connected(async (sql) => {
  const table = unique("parameters");
  await create(sql, table);
  for (const row of ROWS) await insert(sql, table, row);
  const ids = async (condition) => [...(await sql`SELECT id FROM ${sql(table)} WHERE ${condition} ORDER BY id`.values())].flat();
  assert.deepEqual(await ids(sql`id IN ${sql([1, 3, 99])}`), ["1", "3"]);
  assert.deepEqual(await ids(sql`id = ANY(${[2, 4]})`), ["2", "4"]);
  assert.deepEqual(await ids(sql`t = ${ODD} AND n = ${"999999999999999.999"} AND u = ${"ffffffff-ffff-ffff-ffff-ffffffffffff"}`), ["2"]);
  assert.deepEqual(await ids(sql`bin = ${ROWS[1][11]} OR f8 = ${-Infinity}`), ["2", "4"]);
  assert.deepEqual(await ids(sql`arr = ${[1, null, 0.1]} OR b = ${true}`), ["1", "2", "3"]);
  assert.deepEqual(await ids(sql`at BETWEEN ${"1970-01-01"} AND ${"2025-01-01"} AND d < ${"2024-01-01"}`), ["3"]);
  const one = async (query) => Object.values((await query)[0])[0];
  assert.equal(await one(sql`SELECT (${41}::int + 1)::int AS v`), 42);
  assert.deepEqual(await one(sql`SELECT ${[1, -2, 3]}::int[] AS v`), [1, -2, 3]);
  assert.deepEqual(await one(sql`SELECT ${["a", 'q"\\,{}', "NULL", ""]}::text[] AS v`), ["a", 'q"\\,{}', "NULL", ""]);
  assert.equal(await one(sql`SELECT ${"2024-07-01T12:00:00Z"}::timestamptz AT TIME ZONE 'UTC' AS v`), "2024-07-01 12:00:00");
  assert.equal(await one(sql`SELECT ${"1 day 02:00:00"}::interval AS v`), "1 day 02:00:00");
  assert.equal(await one(sql`SELECT ${sql.json({ a: [1, null] })}::json->'a'->>0 AS v`), "1");
}));

test("objects as rows", () => connected(async (sql) => {
  const table = unique("objects");
  await sql.unsafe(`CREATE TABLE ${table} (id int, name text, at timestamp)`);
  const rows = Array.from({ length: 100 }, (_, n) => ({ id: n, name: n % 4 ? `n${n}` : null, at: `2024-01-01 00:00:${String(n % 60).padStart(2, "0")}` }));
  const made = await sql`INSERT INTO ${sql(table)} ${sql(rows, "id", "name", "at")} RETURNING id`;
  assert.deepEqual([made.count, made.map((row) => row.id)], [100, rows.map((row) => row.id)]);
  await sql`UPDATE ${sql(table)} SET ${sql({ name: "changed", at: "2025-01-01" }, "name", "at")} WHERE id = ${8}`;
  assert.deepEqual([...(await sql`SELECT ${sql(["name", "at"])} FROM ${sql(table)} WHERE id = ${8}`)], [{ name: "changed", at: "2025-01-01 00:00:00" }]);
  assert.equal((await sql`DELETE FROM ${sql(table)} WHERE name IS NULL`).count, 24);
}));

for (const [statement, code] of ERRORS) {
  test(`error ${code}: ${statement}`, () => connected(async (sql) => {
    const table = unique("errors");
    await create(sql, table);
    for (const query of [sql.unsafe(statement.replace("TABLE_", table)), sql.unsafe(statement.replace("TABLE_", table), [], { prepare: true })]) {
      const error = await failure(query);
      assert.deepEqual([error.name, error.code, error.severity], ["PostgresError", code, "ERROR"]);
    }
    assert.deepEqual([...(await sql`SELECT 1::int AS one`)], [{ one: 1 }]);
  }));
}

test("transactions with savepoints", () => connected(async (sql) => {
  const table = unique("transactions");
  await sql.unsafe(`CREATE TABLE ${table} (id int)`);
  const add = (on, id) => on`INSERT INTO ${sql(table)} VALUES (${id})`;
  await assert.rejects(sql.begin(async (inside) => { await add(inside, 1); throw new RangeError("undone"); }), RangeError);
  await sql.begin("isolation level repeatable read", async (inside) => {
    await add(inside, 2);
    await assert.rejects(inside.savepoint(async (deeper) => { await add(deeper, 3); await deeper`SELECT 1/0`; }), { code: "22012" });
    await inside.savepoint("named", (deeper) => add(deeper, 4));
  });
  await sql.begin((inside) => [add(inside, 5), add(inside, 6)]);
  await assert.rejects(sql.begin("read only", (inside) => add(inside, 7)), { code: "25006" });
  await assert.rejects(sql.begin((inside) => [add(inside, 8), inside`SELECT * FROM no_such_table`, add(inside, 9)]), { code: "42P01" });
  assert.deepEqual([...(await sql`SELECT id FROM ${sql(table)} ORDER BY id`.values())].flat(), [2, 4, 5, 6]);
}));

test("pipelined statements", () => connected(async (sql) => {
  const found = await Promise.allSettled(Array.from({ length: 100 }, (_, n) => (n === 50 ? sql`SELECT 1/${0}::int AS v` : sql`SELECT ${n}::int AS v`)));
  assert.deepEqual(found.map((one, n) => (one.status === "fulfilled" ? one.value[0].v === n : n === 50 && one.reason.code === "22012")), Array(100).fill(true));
}));

test("cursors", () => connected(async (sql) => {
  const sizes = [];
  await sql`SELECT x FROM generate_series(1, ${250}::int) AS x`.cursor(100, (rows) => { sizes.push(rows.length); });
  let rows = 0;
  for await (const [row] of sql`SELECT x::int AS x FROM generate_series(1, 1000) AS x`.cursor()) if (rows++, row.x === 10) break;
  const each = [];
  await sql`SELECT x::int AS x FROM generate_series(1, 10) AS x`.forEach((row) => { each.push(row.x); });
  assert.deepEqual([sizes, rows, each.length, (await sql`SELECT 1::int AS v`)[0].v], [[100, 100, 50], 10, 10, 1]);
}));

test("COPY", () => connected(async (sql) => {
  const table = unique("copied");
  await sql.unsafe(`CREATE TABLE ${table} (id int, t text)`);
  await pipeline(Readable.from(Array.from({ length: 1000 }, (_, n) => `${n}\t${n % 2 ? "\\N" : "x"}\n`)), await sql`COPY ${sql(table)} FROM STDIN`.writable());
  const parts = [];
  for await (const part of await sql`COPY (SELECT * FROM ${sql(table)} WHERE id < 3 ORDER BY id) TO STDOUT`.readable()) parts.push(part);
  assert.equal(Buffer.concat(parts).toString(), "0\tx\n1\t\\N\n2\tx\n");
  assert.deepEqual([...(await sql`SELECT count(*)::int AS n, count(t)::int AS t FROM ${sql(table)}`)], [{ n: 1000, t: 500 }]);
}));

test("cancellation", () => connected(async (sql) => {
  const query = sql`SELECT pg_sleep(60)`;
  const ended = failure(query.execute());
  await after(300, () => query.cancel());
  assert.equal((await ended).code, "57014");
  assert.equal((await sql`SELECT 5::int AS v`)[0].v, 5);
}));

test("simple protocol and several connections", () => connected(async (sql) => {
  assert.deepEqual((await sql`SELECT 1::int AS a; SELECT 'x' AS b`.simple()).map((result) => [...result]), [[{ a: 1 }], [{ b: "x" }]]);
  const found = await Promise.all(Array.from({ length: 30 }, (_, n) => sql`SELECT ${n}::bigint AS v`));
  assert.deepEqual(found.map((rows) => rows[0].v), Array.from({ length: 30 }, (_, n) => String(n)));
  const reserved = await sql.reserve();
  await reserved`SET application_name = 'reserved'`;
  assert.equal((await reserved`SHOW application_name`)[0].application_name, "reserved");
  reserved.release();
}, { max: 4 }));
