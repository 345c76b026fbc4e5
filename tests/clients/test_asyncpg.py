"""asyncpg, which sends and reads every value in binary form; the same tests on Tidalite and on PostgreSQL."""

import asyncio
import csv
import datetime as dt
import io
import json
import uuid
from decimal import Decimal

import asyncpg
import kinds
import pytest


@pytest.fixture
def run(side):
    """Runs a function of a connection."""

    def run(function, **options):
        async def connected():
            connection = await asyncpg.connect(database=side.database, **side.arguments, **options)
            try:
                return await function(connection)
            finally:
                await connection.close()

        return asyncio.run(connected())

    return run


async def fill(connection, table):
    await connection.execute(kinds.create(table))
    await connection.executemany(f"INSERT INTO {table} VALUES ({', '.join(f'${n + 1}' for n in range(len(kinds.COLUMNS)))})", kinds.ROWS)




def test_values_of_all_types(run, table):
    async def values(connection):
        await fill(connection, table)
        statement = await connection.prepare(f"SELECT * FROM {table} WHERE id > $1 ORDER BY id")
        assert [attribute.type.name for attribute in statement.get_attributes()] == ["int8", "bool", "int2", "int4", "int8", "float4", "float8", "numeric", "timestamp", "date", "text", "bytea", "uuid", "json", "float8[]"]
        for _ in range(3):
            kinds.check_rows([tuple(row) for row in await statement.fetch(0)])
        return [parameter.name for parameter in (await connection.prepare(f"INSERT INTO {table} VALUES ({', '.join(f'${n + 1}' for n in range(15))})")).get_parameters()]

    assert run(values) == ["int8", "bool", "int2", "int4", "int8", "float4", "float8", "numeric", "timestamp", "date", "text", "bytea", "uuid", "json", "float8[]"]


@pytest.mark.parametrize("kind,value", kinds.PARAMETERS)
def test_values_of_casts(run, kind, value):
    async def values(connection):
        statement = await connection.prepare(f"SELECT $1::{kind} AS v, NULL::{kind} AS n")
        return [tuple(await statement.fetchrow(value)) for _ in range(2)]

    assert run(values) == [(value, None)] * 2


@pytest.mark.parametrize("statement,state", kinds.ERRORS)
def test_errors(run, table, statement, state):
    async def fail(connection):
        await connection.execute(kinds.create(table))
        for call in (connection.execute, connection.fetch, connection.prepare):
            try:
                prepared = await call(statement.format(t=table))
                await prepared.fetch()
            except asyncpg.PostgresError as error:
                assert error.sqlstate == state, call
            else:
                raise AssertionError("no error")
        return await connection.fetchval("SELECT 1")

    assert run(fail) == 1


def test_expressions_have_types(run, table):
    async def types(connection):
        await fill(connection, table)
        statement = await connection.prepare(f"""
            SELECT count(*) AS a, sum(i4) AS b, sum(f8) AS c, avg(f8) AS d, max(at) AS e, min(d) AS f, bool_and(b) AS g, string_agg(t, ',') AS h, array_agg(id) AS i, max(at) - min(at) AS j,
                   date_trunc('day', max(at)) AS k, max(id) = 6 AS l, max(u::text) AS m, max(i2) AS n, max(f4) AS o, current_user AS p
            FROM {table} WHERE id BETWEEN $1 AND $2""")
        return {attribute.name: attribute.type.name for attribute in statement.get_attributes()}, [parameter.name for parameter in statement.get_parameters()]

    assert run(types) == ({"a": "int8", "b": "int8", "c": "float8", "d": "float8", "e": "timestamp", "f": "date", "g": "bool", "h": "text", "i": "int8[]", "j": "interval", "k": "timestamp", "l": "bool", "m": "text",
                           "n": "int2", "o": "float4", "p": "name"}, ["int8", "int8"])


def test_transactions(run, table):
    async def steps(connection):
        await connection.execute(f"CREATE TABLE {table} (id bigint)")
        insert = lambda n: connection.execute(f"INSERT INTO {table} VALUES ($1)", n)
        async with connection.transaction():
            assert await insert(1) == "INSERT 0 1"
            with pytest.raises(ZeroDivisionError):
                async with connection.transaction():
                    await insert(2)
                    raise ZeroDivisionError
            with pytest.raises(asyncpg.DivisionByZeroError):
                async with connection.transaction():
                    await insert(3)
                    await connection.execute("SELECT 1/0")
            await insert(4)
        for isolation in ["serializable", "repeatable_read", "read_committed"]:
            async with connection.transaction(isolation=isolation):
                assert await connection.fetchval("SHOW transaction_isolation") == isolation.replace("_", " ")
        with pytest.raises(asyncpg.ReadOnlySQLTransactionError):
            async with connection.transaction(readonly=True):
                await insert(5)
        with pytest.raises(asyncpg.InFailedSQLTransactionError):
            async with connection.transaction():
                with pytest.raises(asyncpg.UndefinedTableError):
                    await connection.fetch("SELECT * FROM no_such_table")
                await insert(6)
        return await connection.fetchval(f"SELECT array_agg(id ORDER BY id) FROM {table}")

    assert run(steps) == [1, 4]


def test_executemany_is_atomic(run, table):
    async def many(connection):
        await connection.execute(f"CREATE TABLE {table} (id bigint, n numeric(10,2))")
        insert = f"INSERT INTO {table} VALUES ($1, $2)"
        await connection.executemany(insert, [(n, Decimal(n)) for n in range(2000)])
        with pytest.raises(asyncpg.NumericValueOutOfRangeError):
            await connection.executemany(insert, [(1, Decimal(1)), (2, Decimal(10) ** 12)])
        with pytest.raises(asyncpg.DataError):
            await connection.executemany(insert, [(1, Decimal(1)), ("x", Decimal(1))])
        assert [row[0] for row in await connection.fetchmany(f"UPDATE {table} SET n = $2 WHERE id = $1 RETURNING id", [(5, Decimal(-1)), (7, Decimal(-2))])] == [5, 7]
        return tuple(await connection.fetchrow(f"SELECT count(*), sum(n) FROM {table}"))

    assert run(many) == (2000, Decimal(1999000 - 12 - 3))


def test_copy(run, table):
    async def copies(connection):
        await connection.execute(kinds.create(table))
        assert await connection.copy_records_to_table(table, records=kinds.ROWS) == f"COPY {len(kinds.ROWS)}"
        kinds.check_rows([tuple(row) for row in await connection.fetch(f"SELECT * FROM {table} ORDER BY id")])
        for options in [{"format": "csv", "header": True}, {"format": "binary"}, {"format": "text"}]:
            out = io.BytesIO()
            assert await connection.copy_from_table(table, output=out, **options) == f"COPY {len(kinds.ROWS)}"
            if options["format"] == "csv":
                assert next(csv.reader(io.StringIO(out.getvalue().decode(), newline=""))) == list(kinds.COLUMNS)
            out.seek(0)
            await connection.execute(f"TRUNCATE TABLE {table}")
            await connection.copy_to_table(table, source=out, **options)
            kinds.check_rows([tuple(row) for row in await connection.fetch(f"SELECT * FROM {table} ORDER BY id")])
        out = io.BytesIO()
        await connection.copy_from_query(f"SELECT id, t FROM {table} WHERE id = 3", output=out, format="csv")
        with pytest.raises(asyncpg.UndefinedColumnError):
            await connection.copy_records_to_table(table, records=[(1,)], columns=["nothing"])
        assert await connection.fetchval("SELECT 1") == 1
        return out.getvalue()

    assert run(copies) == b"3,NULL\n"


def test_cursors(run):
    async def cursors(connection):
        async with connection.transaction():
            cursor = await connection.cursor("SELECT x FROM generate_series($1::int, $2::int) AS x", 1, 100)
            assert [row[0] for row in await cursor.fetch(3)] == [1, 2, 3]
            assert (await cursor.fetchrow())[0] == 4
            return [row[0] async for row in connection.cursor("SELECT x FROM generate_series(1, 1000) AS x", prefetch=33)]

    assert run(cursors) == list(range(1, 1001))


def test_cancellation(run):
    async def cancelled(connection):
        with pytest.raises(asyncio.TimeoutError):
            await connection.fetch("SELECT pg_sleep(60)", timeout=0.2)
        task = asyncio.ensure_future(connection.fetch("SELECT pg_sleep(60)"))
        await asyncio.wait([task], timeout=0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await connection.fetchval("SELECT 1")

    assert run(cancelled) == 1


def test_codecs(run):
    async def codecs(connection):
        await connection.set_type_codec("json", encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
        found = [await connection.fetchval("SELECT $1::json", {"a": [1, None, "ü"]})]
        await connection.set_type_codec("numeric", encoder=str, decoder=float, schema="pg_catalog", format="text")
        found.append(await connection.fetchval("SELECT $1::numeric", 1.5))
        await connection.set_type_codec("uuid", encoder=lambda value: value.bytes, decoder=lambda value: value.hex(), schema="pg_catalog", format="binary")
        found.append(await connection.fetchval("SELECT $1::uuid", uuid.UUID(int=10)))
        return found

    assert run(codecs) == [{"a": [1, None, "ü"]}, 1.5, "0" * 31 + "a"]


def test_columns_that_change_under_a_prepared_statement(run, table):
    """The client prepares again after PostgreSQL's error, which it knows by its code and its routine."""

    async def changed(connection):
        await connection.execute(f"CREATE TABLE {table} (id bigint)")
        await connection.execute(f"INSERT INTO {table} VALUES (1)")
        assert tuple(await connection.fetchrow(f"SELECT * FROM {table} WHERE id = $1", 1)) == (1,)
        await connection.execute(f"ALTER TABLE {table} ADD COLUMN at timestamp")
        await connection.execute(f"UPDATE {table} SET at = '2024-01-01'")
        return tuple(await connection.fetchrow(f"SELECT * FROM {table} WHERE id = $1", 1))

    assert run(changed) == (1, dt.datetime(2024, 1, 1))


def test_pool(side, table):
    async def pooled():
        async with asyncpg.create_pool(database=side.database, min_size=2, max_size=4, **side.arguments) as pool:
            await pool.execute(f"CREATE TABLE {table} (id bigint)")
            await asyncio.gather(*[pool.execute(f"INSERT INTO {table} VALUES ($1)", n) for n in range(50)])
            async with pool.acquire() as connection:
                await connection.execute("SET statement_timeout = '5s'")
            settings = {await pool.fetchval("SHOW statement_timeout") for _ in range(10)}
            assert "5s" not in settings, "the pool resets a session"
            return await pool.fetchval(f"SELECT sum(id) FROM {table}")

    assert asyncio.run(pooled()) == 1225


def test_nanoseconds_of_tidalite(server, table):
    """The binary form has microseconds, rounded down."""
    server.exec(f"create table {table} (ts timestamp_ns) timestamp(ts) partition by day")
    server.exec(f"insert into {table} values ('1969-12-31T23:59:59.999999999Z'), ('2024-01-01T00:00:00.123456789Z')")

    async def read():
        connection = await asyncpg.connect(host="127.0.0.1", port=server.pg_port, user="u", database="d")
        await connection.executemany(f"INSERT INTO {table} VALUES ($1)", [(dt.datetime(2024, 1, 2, 0, 0, 0, 1),)])
        rows = await connection.fetch(f"SELECT ts, ts::text AS digits FROM {table} WHERE ts < $1 OR ts > $2", dt.datetime(1970, 1, 1), dt.datetime(2024, 1, 1))
        await connection.close()
        return [tuple(row) for row in rows]

    found = asyncio.run(read())
    assert [row[0] for row in found] == [dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(2024, 1, 1, 0, 0, 0, 123456), dt.datetime(2024, 1, 2, 0, 0, 0, 1)]
    assert found[1][1].endswith("00:00:00.123456789")


def test_settings_and_version(run):
    async def asked(connection):
        version, settings = connection.get_server_version(), connection.get_settings()
        return version.major >= 14, settings.client_encoding, settings.server_encoding, settings.TimeZone, await connection.fetchval("SHOW application_name")

    assert run(asked, server_settings={"application_name": "me", "timezone": "UTC"}) == (True, "UTF8", "UTF8", "UTC", "me")
