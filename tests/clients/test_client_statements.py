"""Statements of clients, on Tidalite and PostgreSQL: types of columns and parameters, portals, COPY, notices, codes of errors."""

import asyncio
import datetime as dt
import uuid

import adbc_driver_postgresql.dbapi as adbc
import asyncpg
import psycopg
import pyarrow as pa
import pytest
from psycopg import errors


@pytest.fixture
def connection(side):
    with psycopg.connect(dbname=side.database, autocommit=True, **side.arguments) as connection:
        yield connection


def run(side, function):
    async def connected():
        connection = await asyncpg.connect(database=side.database, **side.arguments)
        try:
            return await function(connection)
        finally:
            await connection.close()

    return asyncio.run(connected())


@pytest.mark.parametrize("binary", [False, True])
def test_jsonb_has_its_type(connection, table, binary):
    connection.execute(f"CREATE TABLE {table} (id int, j jsonb, t json)")
    cursor = connection.cursor(binary=binary)
    document = {"b": [1, None], "a": "é"}
    for place in ("%t", "%b"):
        cursor.execute(f"INSERT INTO {table} VALUES (1, {place}, {place})", (psycopg.types.json.Jsonb(document), psycopg.types.json.Json(document)))
    cursor.execute(f"SELECT j, t, j -> 'b', t -> 'b', j ->> 'a', ARRAY[j], '{{\"{{}}\"}}'::jsonb[] FROM {table}")
    assert [column.type_code for column in cursor.description] == [3802, 114, 3802, 114, 25, 3807, 3807]
    assert cursor.fetchall() == [(document, document, [1, None], [1, None], "é", [document], [{}])] * 2
    cursor.execute("SELECT %b::text", (psycopg.types.json.Jsonb(document),))
    assert cursor.description[0].type_code == 25
    assert cursor.fetchone() == ('{"a": "é", "b": [1, null]}',)
    cursor.execute(f"SELECT count(*) FROM {table} WHERE j = %b", (psycopg.types.json.Jsonb(document),))
    assert cursor.fetchone() == (2,)


def test_jsonb_in_binary_copies(connection, table):
    connection.execute(f"CREATE TABLE {table} (j jsonb)")
    with connection.cursor().copy(f"COPY {table} FROM STDIN (FORMAT binary)") as copy:
        copy.set_types(["jsonb"])
        copy.write_row((psycopg.types.json.Jsonb({"b": 1, "a": 2}),))
    with connection.cursor().copy(f"COPY {table} TO STDOUT (FORMAT binary)") as copy:
        copy.set_types(["jsonb"])
        assert list(copy.rows()) == [({"a": 2, "b": 1},)]
    with connection.cursor().copy(f"COPY {table} TO STDOUT") as copy:
        assert b"".join(map(bytes, copy)) == b'{"a": 2, "b": 1}\n'


def test_jsonb_of_asyncpg(side, table):
    async def documents(connection):
        await connection.execute(f"CREATE TABLE {table} (j jsonb)")
        await connection.execute(f"INSERT INTO {table} VALUES ($1)", '{"b":1,"a":2}')
        await connection.copy_records_to_table(table, records=[('{"c":  1}',)])
        statement = await connection.prepare(f"SELECT j, $1::jsonb, $2::jsonb[] FROM {table} WHERE j @> '{{\"a\": 2}}'")
        row = tuple(await statement.fetchrow("[1]", ["{}", None]))
        return [p.name for p in statement.get_parameters()], [a.type.name for a in statement.get_attributes()], row

    kinds = (["jsonb", "jsonb[]"], ["jsonb", "jsonb", "jsonb[]"])
    assert run(side, documents) == (*kinds, ('{"a": 2, "b": 1}', "[1]", ["{}", None]))


def test_quoted_types_of_parameters(side):
    async def types(connection):
        names = ['"int8"', '"pg_catalog"."int8"', '"float8"', '"text"', '"timestamp"', '"int4"[]', '"_int4"', 'pg_catalog."bool"', '"uuid"']
        statement = await connection.prepare("SELECT " + ", ".join(f"${n}::{name}" for n, name in enumerate(names, 1)))
        return [parameter.name for parameter in statement.get_parameters()], [a.type.name for a in statement.get_attributes()]

    expected = ["int8", "int8", "float8", "text", "timestamp", "int4[]", "int4[]", "bool", "uuid"]
    assert run(side, types) == (expected, expected)


def test_queries_with_parameters_are_copied(side, tmp_path):
    async def copied(connection):
        path = tmp_path / "rows"
        await connection.copy_from_query("SELECT x FROM generate_series(1, 5) x WHERE x > $1", 3, output=path)
        return path.read_text()

    assert run(side, copied) == "4\n5\n"


def test_cursors_that_skip_rows(side):
    async def cursors(connection):
        async with connection.transaction():
            cursor = await connection.cursor("SELECT x FROM generate_series($1::int, $2::int) AS x", 1, 100_000)
            assert await cursor.forward(2) == 2
            assert [row[0] for row in await cursor.fetch(3)] == [3, 4, 5]
            assert await cursor.forward(10) == 10
            first = (await cursor.fetchrow())[0]
            skipped = await cursor.forward(90_000)
            last = [row[0] for row in await cursor.fetch(20_000)]
            return first, skipped, last[0], last[-1], len(last), await cursor.forward(1), await cursor.fetch(1)

    assert run(side, cursors) == (16, 90_000, 90_017, 100_000, 9_984, 0, [])


def test_portals_are_cursors(side):
    """FETCH, MOVE and CLOSE take a portal that Bind made."""
    async def portals(connection):
        async with connection.transaction():
            cursor = await connection.cursor("SELECT x FROM generate_series(1, 10) AS x")
            assert await cursor.fetchrow() == (1,)
            name = cursor._portal_name
            rows = [tuple(row) for row in await connection.fetch(f'FETCH 2 FROM "{name}"')]
            rows += [tuple(row) for row in await connection.fetch(f'FETCH ALL FROM "{name}"')]
            tags = [await connection.execute(f'MOVE 1 FROM "{name}"'), await connection.execute(f'CLOSE "{name}"')]
            codes = []
            with pytest.raises(asyncpg.PostgresError) as error:
                async with connection.transaction():
                    await connection.execute(f'MOVE 1 FROM "{name}"')
            codes.append(error.value.sqlstate)
            cursor = await connection.cursor("SELECT x FROM generate_series(1, 10) AS x")
            with pytest.raises(asyncpg.PostgresError) as error:
                async with connection.transaction():
                    await connection.execute(f'FETCH BACKWARD 1 FROM "{cursor._portal_name}"')
            codes.append(error.value.sqlstate)
            return rows, tags, codes

    assert run(side, portals) == ([(n,) for n in range(2, 11)], ["MOVE 0", "CLOSE CURSOR"], ["34000", "55000"])


def test_lists_of_adbc(side, table):
    with adbc.connect(side.url()) as c, c.cursor() as cursor:
        cursor.adbc_ingest(table, pa.table({"a": pa.array([[1.0, None], None], pa.list_(pa.float64()))}), mode="create")
        cursor.execute(f"SELECT a FROM {table}")
        assert cursor.fetchall() == [([1.0, None],), (None,)]


@pytest.mark.parametrize("kind", ["float8 ARRAY", "float8 ARRAY[3]", "float8[3]", "double precision ARRAY", "float8[][2]"])
def test_names_of_array_types(connection, table, kind):
    connection.execute(f"CREATE TABLE {table} (a {kind})")
    assert connection.execute(f"SELECT a FROM {table}").description[0].type_code == 1022
    assert connection.execute("SELECT CAST('{1,2}' AS int ARRAY), '{1}'::int[5]").fetchone() == ([1, 2], [1])


@pytest.mark.parametrize("text", [
    "00000000000000000000000000000007", "{00000000-0000-0000-0000-000000000007}", "{00000000000000000000000000000007}",
    "0000-0000-0000-0000-0000-0000-0000-0007", "00000000-0000-0000-0000-000000000007",
])
def test_forms_of_uuid(connection, table, text):
    connection.execute(f"CREATE TABLE {table} (u uuid)")
    for form in ("text", "csv"):
        with connection.cursor().copy(f"COPY {table} FROM STDIN (FORMAT {form})") as copy:
            copy.write(text + "\n")
    connection.execute(f"INSERT INTO {table} VALUES ('{text}')")
    connection.execute(f"INSERT INTO {table} VALUES (%s)", (text,))
    connection.execute(f"INSERT INTO {table} VALUES (%s::uuid)", (text,))
    assert connection.execute(f"SELECT u, '{text}'::uuid, '{text}'::text::uuid, u = '{text}' FROM {table}").fetchall() == [(uuid.UUID(int=7),) * 3 + (True,)] * 5
    with pytest.raises(errors.InvalidTextRepresentation):
        connection.execute(f"SELECT '{text}0'::uuid")


def test_conflicts_of_selected_constants(side, connection, table):
    if side.name == "postgres":
        connection.execute(f"CREATE TABLE {table} (ts timestamp, k int, n int, PRIMARY KEY (ts, k))")
    else:
        connection.execute(f"CREATE TABLE {table} (ts timestamp, k int, n int) TIMESTAMP(ts) PARTITION BY DAY DEDUP UPSERT KEYS(ts, k)")
    row = "'2024-01-01'::timestamp, 1"
    for statement in [
        f"INSERT INTO {table} SELECT {row}, 1 ON CONFLICT DO NOTHING",
        f"INSERT INTO {table} SELECT {row}, 2 ON CONFLICT DO NOTHING",
        f"INSERT INTO {table} SELECT {row}, 3 AS n ON CONFLICT (ts, k) DO UPDATE SET n = excluded.n + 10",
        f"INSERT INTO {table} (ts, k) SELECT '2024-01-02'::timestamp, 7 RETURNING k",
    ]:
        connection.execute(statement)
    assert connection.execute(f"SELECT k, n FROM {table} ORDER BY ts").fetchall() == [(1, 13), (7, None)]


@pytest.mark.parametrize("statement,expected", [
    ("DROP TABLE IF EXISTS no_such_table", [("00000", 'table "no_such_table" does not exist, skipping')]),
    ("DROP VIEW IF EXISTS no_such_view", [("00000", 'view "no_such_view" does not exist, skipping')]),
    ("DROP MATERIALIZED VIEW IF EXISTS no_such_view", [("00000", 'materialized view "no_such_view" does not exist, skipping')]),
    ("DROP INDEX IF EXISTS no_such_index", [("00000", 'index "no_such_index" does not exist, skipping')]),
    ("DROP SCHEMA IF EXISTS no_such_schema CASCADE", [("00000", 'schema "no_such_schema" does not exist, skipping')]),
    ("DROP TABLE IF EXISTS no_a, {t}, no_b", [("00000", 'table "no_a" does not exist, skipping'), ("00000", 'table "no_b" does not exist, skipping')]),
    ("CREATE TABLE IF NOT EXISTS {t} (id int)", [("42P07", 'relation "{t}" already exists, skipping')]),
    ("ALTER TABLE {t} ADD COLUMN IF NOT EXISTS id int", [("42701", 'column "id" of relation "{t}" already exists, skipping')]),
    ("DROP TABLE IF EXISTS {t}", []),
])
def test_notices(connection, table, statement, expected):
    connection.execute(f"CREATE TABLE {table} (id int)")
    seen = []
    connection.add_notice_handler(lambda notice: seen.append((notice.sqlstate, notice.message_primary)))
    connection.execute(statement.format(t=table))
    assert seen == [(code, message.format(t=table)) for code, message in expected]
    seen.clear()
    connection.execute("SET client_min_messages = warning")
    connection.execute("DROP TABLE IF EXISTS no_such_table")
    assert seen == []


def test_notices_in_transactions(connection):
    seen = []
    connection.add_notice_handler(lambda notice: seen.append(notice.message_primary))
    with connection.transaction():
        connection.execute("DROP TABLE IF EXISTS no_such_table")
    assert seen == ['table "no_such_table" does not exist, skipping']


@pytest.mark.parametrize("null,expected", [("-", b'1,,"-",x\n'), ("", b'1,"",-,x\n'), ("x", b'1,,-,"x"\n')])
def test_quotes_in_csv(connection, null, expected):
    with connection.cursor().copy(f"COPY (SELECT 1 AS id, '' AS e, '-' AS d, 'x' AS x) TO STDOUT (FORMAT csv, NULL '{null}')") as copy:
        assert b"".join(map(bytes, copy)) == expected


def test_empty_texts_of_csv_come_back(connection, table):
    connection.execute(f"CREATE TABLE {table} (id int, t text)")
    for null in ("-", ""):
        connection.execute(f"DELETE FROM {table}")
        connection.execute(f"INSERT INTO {table} VALUES (1, ''), (2, NULL), (3, '-')")
        options = f"(FORMAT csv, NULL '{null}')"
        with connection.cursor().copy(f"COPY {table} TO STDOUT {options}") as copy:
            written = b"".join(map(bytes, copy))
        connection.execute(f"DELETE FROM {table}")
        with connection.cursor().copy(f"COPY {table} FROM STDIN {options}") as copy:
            copy.write(written)
        assert connection.execute(f"SELECT id, t FROM {table} ORDER BY id").fetchall() == [(1, ""), (2, None), (3, "-")]


@pytest.mark.parametrize("column,value", [("i2", 40_000), ("i2", -32_769), ("i4", 3_000_000_000), ("i8", 30_000_000_000_000_000_000)])
@pytest.mark.parametrize("statement", [
    "INSERT INTO {t} ({c}) VALUES ({v})", "INSERT INTO {t} ({c}) VALUES ('{v}')", "INSERT INTO {t} ({c}) VALUES ({v} * 2)",
    "INSERT INTO {t} ({c}) SELECT {v}", "UPDATE {t} SET {c} = {v}", "UPDATE {t} SET {c} = '{v}'", "SELECT {v}::{k}", "SELECT '{v}'::{k}",
    "SELECT '{v}'::text::{k}",
])
def test_integers_out_of_range(connection, table, column, value, statement):
    connection.execute(f"CREATE TABLE {table} (i2 smallint, i4 integer, i8 bigint)")
    connection.execute(f"INSERT INTO {table} VALUES (1, 1, 1)")
    kind = {"i2": "smallint", "i4": "integer", "i8": "bigint"}[column]
    with pytest.raises(errors.NumericValueOutOfRange):
        connection.execute(statement.format(t=table, c=column, v=value, k=kind))


def test_other_values_out_of_range(connection, table):
    connection.execute(f"CREATE TABLE {table} (i2 smallint, f4 real)")
    with pytest.raises(errors.NumericValueOutOfRange), connection.cursor().copy(f"COPY {table} (i2) FROM STDIN") as copy:
        copy.write("40000\n")
    for place in ("%t", "%b"):
        with pytest.raises(errors.NumericValueOutOfRange):
            connection.execute(f"INSERT INTO {table} (i2) VALUES ({place})", (40_000,))
    for statement in ("INSERT INTO {t} (i2) VALUES ('NaN'::float8)", "INSERT INTO {t} (i2) VALUES (1e10)", "INSERT INTO {t} (f4) VALUES (1e300)"):
        with pytest.raises(errors.NumericValueOutOfRange):
            connection.execute(statement.format(t=table))


@pytest.mark.parametrize("statement,position", [("SELECT '{'::json", 8), ("SELECT '{'::jsonb", 8), ("SELECT json '{'", 13), ("SELECT 1, '[1,]'::json", 11)])
def test_texts_that_are_no_json(connection, statement, position):
    with pytest.raises(errors.InvalidTextRepresentation) as error:
        connection.execute(statement)
    assert int(error.value.diag.statement_position) == position
    with pytest.raises(errors.InvalidTextRepresentation):
        connection.execute("SELECT t::json FROM (SELECT '{'::text AS t) AS texts")


def test_infinite_times_are_named(server):
    """PostgreSQL has infinite times; Tidalite refuses them by name."""
    with psycopg.connect(host="127.0.0.1", port=server.pg_port, user="u", dbname="d", autocommit=True) as connection:
        for statement in ("SELECT 'infinity'::timestamp", "SELECT '-infinity'::date", "SELECT 'Infinity'::timestamptz", "SELECT t::timestamp FROM (SELECT 'infinity' AS t) s"):
            with pytest.raises(errors.FeatureNotSupported, match="(?i)infinity"):
                connection.execute(statement)

    async def greatest():
        connection = await asyncpg.connect(host="127.0.0.1", port=server.pg_port, user="u", database="d")
        try:
            with pytest.raises(asyncpg.FeatureNotSupportedError, match="infinity"):
                await connection.fetchval("SELECT $1::timestamp", dt.datetime.max)
        finally:
            await connection.close()

    asyncio.run(greatest())


def test_row_addresses_are_named(server, table):
    server.exec(f"create table {table} (id int)")
    with psycopg.connect(host="127.0.0.1", port=server.pg_port, user="u", dbname="d", autocommit=True) as connection:
        for statement in (f"SELECT ctid FROM {table}", f"SELECT t.ctid FROM {table} t", f"DELETE FROM {table} WHERE ctid = '(0,1)'"):
            with pytest.raises(errors.UndefinedColumn, match='column "ctid" does not exist') as error:
                connection.execute(statement)
            assert "pg_use_ctid_scan" in error.value.diag.message_hint
