"""psycopg 3: parameters and results in both formats, pipelines, COPY, transactions; the same tests on Tidalite and on PostgreSQL."""

import asyncio
import datetime as dt
import threading
import uuid
from decimal import Decimal

import kinds
import psycopg
import pytest
from psycopg import errors, pq, sql
from psycopg.types import TypeInfo
from psycopg.types.json import Json

FORMATS = {"text": "%t", "binary": "%b", "automatic": "%s"}


@pytest.fixture
def connection(side):
    with psycopg.connect(dbname=side.database, autocommit=True, **side.arguments) as connection:
        yield connection


def with_json(rows):
    """The rows with JSON as the type of the client."""
    at = list(kinds.COLUMNS).index("j")
    return [(*row[:at], None if row[at] is None else Json(row[at], dumps=str), *row[at + 1 :]) for row in rows]


def fill(connection, table, place="%s"):
    connection.execute(kinds.create(table))
    with connection.cursor() as cursor:
        cursor.executemany(f"INSERT INTO {table} VALUES ({', '.join([place] * len(kinds.COLUMNS))})", with_json(kinds.ROWS))
        assert cursor.rowcount == len(kinds.ROWS)


@pytest.mark.parametrize("sent", FORMATS)
@pytest.mark.parametrize("binary", [False, True])
def test_values_of_all_types(connection, table, sent, binary):
    fill(connection, table, FORMATS[sent])
    for prepare in [None, True, True, False]:
        cursor = connection.cursor(binary=binary).execute(f"SELECT * FROM {table} WHERE id > {FORMATS[sent]} ORDER BY id", (0,), prepare=prepare)
        kinds.check_rows(cursor.fetchall(), is_json_parsed=True)
    described = {column.name: (column.type_code, column.type_display, column.internal_size, column.precision, column.scale) for column in cursor.description}
    assert described == {
        "id": (20, "int8", 8, None, None), "b": (16, "bool", 1, None, None), "i2": (21, "int2", 2, None, None), "i4": (23, "int4", 4, None, None), "i8": (20, "int8", 8, None, None),
        "f4": (700, "float4", 4, None, None), "f8": (701, "float8", 8, None, None), "n": (1700, "numeric(18,3)", None, 18, 3), "at": (1114, "timestamp", 8, None, None),
        "d": (1082, "date", 4, None, None), "t": (25, "text", None, None, None), "bin": (17, "bytea", None, None, None), "u": (2950, "uuid", 16, None, None), "j": (114, "json", None, None, None),
        "arr": (1022, "float8[]", None, None, None),
    }


@pytest.mark.parametrize("name", [name for name in kinds.COLUMNS if name != "j"])
@pytest.mark.parametrize("sent", FORMATS)
def test_parameters_are_compared_with_columns(connection, table, sent, name):
    """Each value finds its own row, by a statement that is prepared once."""
    fill(connection, table)
    at = list(kinds.COLUMNS).index(name)
    values = [row[at] for row in kinds.ROWS]
    for _ in range(2):
        for value in values:
            found = connection.execute(f"SELECT count(*) FROM {table} WHERE {name} = {FORMATS[sent]}", (value,), prepare=True).fetchone()[0]
            same = [other for other in values if value is not None and other is not None and (other == value or kinds.plain(other) == kinds.plain(value))]
            # A parameter of a double that is no number of four bytes equals no REAL in PostgreSQL.
            assert found == len(same), value


@pytest.mark.parametrize("kind,value", kinds.PARAMETERS)
@pytest.mark.parametrize("sent", FORMATS)
@pytest.mark.parametrize("binary", [False, True])
def test_values_of_casts(connection, kind, value, sent, binary):
    cursor = connection.cursor(binary=binary)
    for prepare in [None, True, True]:
        assert cursor.execute(f"SELECT {FORMATS[sent]}::{kind}, NULL::{kind}", (value,), prepare=prepare).fetchone() == (value, None)


@pytest.mark.parametrize("statement,state", kinds.ERRORS)
@pytest.mark.parametrize("prepare", [False, True])
def test_errors(connection, table, statement, state, prepare):
    connection.execute(kinds.create(table))
    with pytest.raises(errors.lookup(state)) as caught:
        connection.execute(statement.format(t=table), prepare=prepare)
    assert caught.value.sqlstate == state and caught.value.diag.severity == "ERROR"
    assert connection.info.transaction_status == pq.TransactionStatus.IDLE
    assert connection.execute("SELECT 1").fetchone() == (1,)


def test_pipeline(connection, table):
    connection.execute(f"CREATE TABLE {table} (id bigint, t text)")
    with connection.pipeline() as pipeline:
        cursors = [connection.execute(f"INSERT INTO {table} VALUES (%s, %s)", (n, f"t{n}")) for n in range(100)]
        count = connection.execute(f"SELECT count(*) FROM {table}")
        pipeline.sync()
        assert count.fetchone() == (100,) and all(cursor.rowcount == 1 for cursor in cursors)
        with pytest.raises(errors.DivisionByZero):
            connection.execute(f"INSERT INTO {table} VALUES (1000, 'lost')")
            connection.execute("SELECT 1/%s", (0,))
            pipeline.sync()
    # The rows before the error are of the same implicit transaction.
    assert connection.execute(f"SELECT count(*), max(id) FROM {table}").fetchone() == (100, 99)
    with connection.pipeline(), connection.transaction():
        connection.execute(f"DELETE FROM {table} WHERE id < %s", (50,))
        assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (50,)
    assert connection.execute(f"SELECT min(id) FROM {table}").fetchone() == (50,)


def test_batches(connection, table):
    connection.execute(f"CREATE TABLE {table} (id bigint, t text)")
    with connection.cursor() as cursor:
        cursor.executemany(f"INSERT INTO {table} VALUES (%s, %s) RETURNING id * 2", [(n, None if n % 2 else "x") for n in range(5)], returning=True)
        found = [cursor.fetchone()[0]]
        while cursor.nextset():
            found.append(cursor.fetchone()[0])
        assert found == [0, 2, 4, 6, 8]
        with pytest.raises(errors.DivisionByZero):
            cursor.executemany(f"INSERT INTO {table} VALUES (6 / %s, 'y')", [(1,), (2,), (0,)])
    # Outside of a transaction the client sends all rows before one Sync.
    assert connection.execute(f"SELECT count(*), count(t) FROM {table}").fetchone() == (5, 3)


@pytest.mark.parametrize("form", ["text", "csv", "binary"])
def test_copy(connection, table, form):
    types = ["int8", "bool", "int2", "int4", "int8", "float4", "float8", "numeric", "timestamp", "date", "text", "bytea", "uuid", "json", "float8[]"]
    connection.execute(kinds.create(table))
    connection.execute(kinds.create(table + "_b"))
    cursor = connection.cursor()
    with cursor.copy(f"COPY {table} FROM STDIN (FORMAT {'binary' if form == 'binary' else 'text'})") as copy:
        copy.set_types([kind if form == "binary" else kind.replace("uuid", "text") for kind in types])
        for row in with_json(kinds.ROWS):
            # The client writes a UUID as text without hyphens.
            copy.write_row(row if form == "binary" else [str(value) if isinstance(value, uuid.UUID) else value for value in row])
    assert cursor.rowcount == len(kinds.ROWS)
    kinds.check_rows(cursor.execute(f"SELECT * FROM {table} ORDER BY id").fetchall(), is_json_parsed=True)
    if form != "csv":
        with cursor.copy(f"COPY (SELECT * FROM {table} ORDER BY id) TO STDOUT (FORMAT {form})") as copy:
            copy.set_types(types)
            kinds.check_rows(list(copy.rows()), is_json_parsed=True)
    with cursor.copy(f"COPY {table} TO STDOUT (FORMAT {form})") as out, psycopg.connect(connection.info.dsn, autocommit=True).cursor().copy(f"COPY {table}_b FROM STDIN (FORMAT {form})") as into:
        for data in out:
            into.write(data)
    kinds.check_rows(cursor.execute(f"SELECT * FROM {table}_b ORDER BY id").fetchall(), is_json_parsed=True)


def test_copy_fails_as_a_whole(connection, table):
    connection.execute(f"CREATE TABLE {table} (id bigint)")
    with pytest.raises(errors.InvalidTextRepresentation), connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:
        copy.write("1\n2\nx\n")
    with pytest.raises(ZeroDivisionError), connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:
        copy.write("1\n")
        raise ZeroDivisionError
    assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)


def test_transactions(connection, table):
    connection.execute(f"CREATE TABLE {table} (id bigint)")
    insert = lambda n: connection.execute(f"INSERT INTO {table} VALUES (%s)", (n,))
    with connection.transaction():
        insert(1)
        with pytest.raises(ZeroDivisionError), connection.transaction("named"):
            insert(2)
            with connection.transaction():
                insert(3)
            raise ZeroDivisionError
        with pytest.raises(errors.UndefinedTable), connection.transaction():
            connection.execute("SELECT * FROM no_such_table")
        with connection.transaction() as inner:
            insert(4)
            raise psycopg.Rollback(inner)
        insert(5)
    with pytest.raises(errors.InFailedSqlTransaction), connection.transaction():
        with pytest.raises(errors.DivisionByZero):
            connection.execute("SELECT 1/0")
        connection.execute("SELECT 1")
    with connection.transaction(force_rollback=True):
        insert(6)
    assert connection.execute(f"SELECT array_agg(id ORDER BY id) FROM {table}").fetchone() == ([1, 5],)
    connection.autocommit = False
    connection.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
    connection.read_only = True
    assert connection.execute("SHOW transaction_isolation").fetchone() == ("serializable",)
    with pytest.raises(errors.ReadOnlySqlTransaction):
        insert(7)
    connection.rollback()


def test_cancellation(connection):
    for cancel in [connection.cancel, connection.cancel_safe]:
        timer = threading.Timer(0.2, cancel)
        timer.start()
        with pytest.raises(errors.QueryCanceled):
            connection.execute("SELECT pg_sleep(60)")
        timer.join()
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_rows_one_by_one(connection):
    stream = lambda **options: list(connection.cursor().stream("SELECT x, x::text FROM generate_series(1, %s) AS x", (1000,), **options))
    assert stream() == stream(size=64) == stream(binary=True) == [(n, str(n)) for n in range(1, 1001)]
    with connection.transaction(), connection.cursor("named") as cursor:
        cursor.itersize = 7
        cursor.execute("SELECT x FROM generate_series(1, 100) AS x")
        assert [row[0] for row in cursor] == list(range(1, 101))


def test_several_results(connection):
    cursor = connection.execute("SELECT 1 AS a; SELECT 'x' AS b, 2 AS c")
    assert cursor.fetchall() == [(1,)] and cursor.nextset() and cursor.fetchall() == [("x", 2)] and [column.name for column in cursor.description] == ["b", "c"] and not cursor.nextset()


def test_types_are_known(connection):
    for name, oid, array in [("uuid", 2950, 2951), ("numeric", 1700, 1231), ("timestamp", 1114, 1115), ("json", 114, 199), ("float8", 701, 1022), ("text", 25, 1009), ("bytea", 17, 1001)]:
        info = TypeInfo.fetch(connection, name)
        assert (info.oid, info.array_oid) == (oid, array)
    assert TypeInfo.fetch(connection, "no_such_type") is None


def test_other_cursors(connection, table):
    connection.execute(f"CREATE TABLE {table} (id bigint, t text, at timestamp, u uuid)")
    values = (1, kinds.ODD, dt.datetime(2024, 1, 1, 0, 0, 0, 1), uuid.UUID(int=5))
    psycopg.RawCursor(connection).execute(f"INSERT INTO {table} VALUES ($1, $2, $3, $4)", values)
    psycopg.ClientCursor(connection).execute(f"INSERT INTO {table} VALUES (%s, %s, %s, %s)", values)
    assert psycopg.ClientCursor(connection).execute(f"SELECT * FROM {table} WHERE t = %s AND u = %s", (kinds.ODD, uuid.UUID(int=5))).fetchall() == [values] * 2
    composed = sql.SQL("SELECT {column} FROM {table} WHERE {column} = {value} LIMIT 1").format(column=sql.Identifier("t"), table=sql.Identifier(table), value=sql.Literal(kinds.ODD))
    assert connection.execute(composed).fetchone() == (kinds.ODD,)


def test_columns_that_change_under_a_prepared_statement(connection, table):
    connection.execute(f"CREATE TABLE {table} (id bigint)")
    connection.execute(f"INSERT INTO {table} VALUES (1)")
    for _ in range(3):
        assert connection.execute(f"SELECT * FROM {table} WHERE id = %s", (1,), prepare=True).fetchone() == (1,)
    connection.execute(f"ALTER TABLE {table} ADD COLUMN t text")
    assert connection.execute(f"SELECT * FROM {table} WHERE id = %s", (1,), prepare=True).fetchone() == (1, None)


def test_asynchronous_connection(side, table):
    async def run():
        async with await psycopg.AsyncConnection.connect(dbname=side.database, **side.arguments) as connection:
            await connection.execute(f"CREATE TABLE {table} (id bigint, n numeric(10,2))")
            async with connection.cursor() as cursor:
                await cursor.executemany(f"INSERT INTO {table} VALUES (%s, %s)", [(n, Decimal(n) / 4) for n in range(10)])
                async with cursor.copy(f"COPY {table} (id) FROM STDIN") as copy:
                    await copy.write_row((10,))
                await cursor.execute(f"SELECT count(*), sum(n) FROM {table}")
                return await cursor.fetchone()

    assert asyncio.run(run()) == (11, Decimal("11.25"))
