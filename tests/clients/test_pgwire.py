"""The PostgreSQL protocol with its real clients: psycopg 3 and asyncpg."""

import asyncio
import datetime as dt
import decimal
import threading
import time
import uuid

import asyncpg
import psycopg
import pytest
from server import eventually

ALL = """CREATE TABLE {t} (ts TIMESTAMP, b BOOLEAN, b8 BYTE, s SHORT, i INT, l LONG, f REAL, d DOUBLE, dec DECIMAL(18,3),
  ns TIMESTAMP_NS, day DATE, sym SYMBOL, v VARCHAR, bin BINARY, u UUID, ip IPV4, a DOUBLE[], a2 DOUBLE[][], j JSON)
  TIMESTAMP(ts) PARTITION BY YEAR"""
ID = uuid.UUID("11111111-2222-3333-4444-555555555555")
ROW = (dt.datetime(1969, 12, 31, 23, 59, 59, 999999), True, -128, 32767, -(2**31), 2**63 - 1, 1.5, 1e300, decimal.Decimal("-0.001"),
       dt.datetime(2262, 4, 11, 23, 47, 16, 854775), dt.date(1969, 12, 31), "sym", "täxt", b"\x00\xff", ID, "10.0.0.1",
       [1.0, 2.5], [[1.0, 2.0], [3.0, 4.0]], {"a": [1, 2]})


def connect(server, **options):
    return psycopg.connect(host="127.0.0.1", port=server.pg_port, user="u", dbname="d", autocommit=True, **options)


def arguments(server):
    return dict(host="127.0.0.1", port=server.pg_port, user="u", database="d")


@pytest.mark.parametrize("binary", [False, True])
def test_types_come_back_as_they_went_in(server, table, binary):
    with connect(server) as c:
        c.execute(ALL.format(t=table))
        values = ROW[:-1] + ('{"a": [1, 2]}',)
        c.execute(f"INSERT INTO {table} VALUES ({', '.join(['%s'] * len(ROW))})", values)
        c.execute(f"INSERT INTO {table} (ts) VALUES (%s)", ("2262-01-01T00:00:00Z",))
        rows = c.cursor(binary=binary).execute(f"SELECT * FROM {table}").fetchall()
    assert rows[0] == ROW
    assert rows[1] == (dt.datetime(2262, 1, 1),) + (None,) * (len(ROW) - 1)


def test_nanoseconds_are_in_the_text(server, table):
    with connect(server) as c:
        c.execute(f"CREATE TABLE {table} (ts TIMESTAMP_NS) TIMESTAMP(ts)")
        c.execute(f"INSERT INTO {table} VALUES ('2024-01-01T00:00:00.123456789Z')")
        result = c.pgconn.exec_(f"SELECT ts FROM {table}".encode())
        assert result.get_value(0, 0) == b"2024-01-01 00:00:00.123456789"


def test_parameters_find_their_types(server, table):
    with connect(server) as c:
        c.execute(f"CREATE TABLE {table} (ts TIMESTAMP, sym SYMBOL, l LONG, d DOUBLE) TIMESTAMP(ts) PARTITION BY DAY")
        rows = [(dt.datetime(2024, 1, 1, 0, 0, n), "'; --" if n == 3 else f"s{n}", n, n / 2) for n in range(10)]
        with c.cursor() as cursor:
            cursor.executemany(f"INSERT INTO {table} VALUES (%s, %s, %s, %s)", rows)
        one = lambda sql, *values: c.execute(sql.replace(" T", " " + table, 1), values).fetchone()[0]
        assert one("SELECT count(*) FROM T WHERE l > %s", 5) == 4
        assert one("SELECT count(*) FROM T WHERE l > %s", "5") == 4
        assert one("SELECT l FROM T WHERE sym = %s", "'; --") == 3
        assert one("SELECT sum(l) FROM T WHERE sym = ANY(%s)", ["s1", "'; --", 'a "b", {}', "s9"]) == 13
        assert one("SELECT count(*) FROM T WHERE sym = ANY(%s)", []) == 0
        assert one("SELECT sum(l) FROM T WHERE l = ANY(%s)", [2, 5]) == 7
        assert one("SELECT count(*) FROM T WHERE sym <> ALL(%s)", ["s1", "s2"]) == 8
        assert one("SELECT count(*) FROM T WHERE ts IN %s", "2024-01-01T00:00:03") == 1
        assert one("SELECT count(*) FROM T WHERE ts >= %s", dt.datetime(2024, 1, 1, 0, 0, 8)) == 2
        assert one("SELECT count(*) FROM T WHERE ts >= %s", "2024-01-01T00:00:08") == 2
        assert one("SELECT count(*) FROM T WHERE d = %s", 1.5) == 1
        assert one("SELECT count(*) FROM (SELECT * FROM T LIMIT %s)", 3) == 3
        assert one("SELECT count(*) FROM T WHERE %s IS NULL", None) == 10
        assert c.execute(f"UPDATE {table} SET d = %s WHERE l = %s", (7.5, 3)).rowcount == 1
        assert c.execute(f"DELETE FROM {table} WHERE l < %s", (3,)).rowcount == 3


@pytest.mark.parametrize("prepare", [False, True])
def test_bounds_of_limit_are_parameters(server, prepare):
    cases = [("LIMIT %s, %s", (2, 5), [3, 4, 5]), ("LIMIT %s, %s", (2, -6), [3, 4]), ("LIMIT %s, %s", (-4, -2), [7, 8]), ("LIMIT %s, %s", (0, -8), [1, 2]),
             ("LIMIT %s, %s", (None, 2), [1, 2]), ("LIMIT %s, %s", (8, None), [9, 10]), ("LIMIT %s, %s", ("7", "9"), [8, 9]), ("LIMIT 8, %s", (10,), [9, 10]),
             ("LIMIT %s", (-2,), [9, 10]), ("LIMIT %s", (None,), list(range(1, 11))), ("LIMIT %s OFFSET %s", (2, 3), [4, 5]), ("OFFSET %s", (8,), [9, 10])]
    with connect(server) as c:
        for limit, values, expected in cases:
            for sql in (f"SELECT x FROM long_sequence(10) ORDER BY x {limit}", f"SELECT x FROM (SELECT x FROM long_sequence(10) ORDER BY x {limit}) t ORDER BY x"):
                # The plan of a statement is kept, and its bounds are not part of the plan.
                for _ in range(3):
                    assert [row[0] for row in c.execute(sql, values, prepare=prepare)] == expected, (sql, values)
        with pytest.raises(psycopg.Error, match="LIMIT -n is supported only without OFFSET"):
            c.execute("SELECT x FROM long_sequence(10) ORDER BY x LIMIT %s OFFSET %s", (-2, 3), prepare=prepare)
        with pytest.raises(psycopg.Error, match="LIMIT lo, hi takes two numbers"):
            c.execute("SELECT x FROM long_sequence(10) ORDER BY x LIMIT %s, %s", (-2, 3), prepare=prepare)


def test_asyncpg_prepares_and_fetches(server, table):
    async def run():
        c = await asyncpg.connect(**arguments(server))
        await c.execute(f"CREATE TABLE {table} (ts TIMESTAMP, sym SYMBOL, d DOUBLE, a DOUBLE[]) TIMESTAMP(ts) PARTITION BY DAY")
        rows = [(dt.datetime(2024, 1, 1, 0, n), f"s{n}", n / 2, [float(n)]) for n in range(50)]
        await c.executemany(f"INSERT INTO {table} VALUES ($1, $2, $3, $4)", rows)
        assert await c.fetchval(f"SELECT count(*) FROM {table} WHERE sym = $1 AND d < $2", "s3", 2.0) == 1
        assert [tuple(r) for r in await c.fetch(f"SELECT * FROM {table} WHERE ts < $1", dt.datetime(2024, 1, 1, 0, 3))] == rows[:3]
        statement = await c.prepare(f"SELECT d, sym FROM {table} WHERE ts = $1 LIMIT $2")
        assert [p.name for p in statement.get_parameters()] == ["timestamp", "int8"]
        assert [a.type.name for a in statement.get_attributes()] == ["float8", "text"]
        async with c.transaction():
            assert [r[0] async for r in c.cursor(f"SELECT d FROM {table}", prefetch=7)] == [r[2] for r in rows]
        await c.close()

    asyncio.run(run())


def test_a_write_of_another_protocol_is_seen(server, table):
    with connect(server) as c:
        for n in range(1, 30):
            status, _ = server.request("POST", "/write", f"{table} v={n}i {n}000000000\n".encode())[:2]
            assert status == 204
            assert c.execute(f"SELECT count(*) FROM {table}").fetchone() == (n,)


def test_errors_have_code_position_and_hint(server, table):
    with connect(server) as c:
        c.execute(f"CREATE TABLE {table} (ts TIMESTAMP, price DOUBLE) TIMESTAMP(ts)")
        with pytest.raises(psycopg.errors.UndefinedColumn) as error:
            c.execute(f"SELECT 'ä', prise FROM {table}")
        assert error.value.diag.statement_position == "13"
        assert "price" in error.value.diag.message_hint
        with pytest.raises(psycopg.errors.UndefinedTable):
            c.execute("SELECT * FROM nosuchtable")
        with pytest.raises(psycopg.errors.SyntaxError):
            c.execute("SELEC 1")
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="notifications are not supported"):
            c.execute("LISTEN x")
        assert c.execute("SELECT 1; SELECT 2").fetchone() == (1,)


def test_session_settings(server):
    with connect(server, application_name="me") as c:
        assert c.execute("SHOW application_name").fetchone() == ("me",)
        assert c.execute("SHOW server_version").fetchone() == ("14.0",)
        c.execute("SET statement_timeout = '100ms'")
        with pytest.raises(psycopg.errors.QueryCanceled):
            c.execute("SELECT count(*) FROM generate_series(1, 100000000000)").fetchone()
        # On a busy machine what follows could take as long.
        c.execute("SET statement_timeout = 0")
        assert "PostgreSQL 14" in c.execute("SELECT version()").fetchone()[0]
        assert c.execute("SELECT current_schema(), current_database()").fetchone() == ("public", "tidalite")


def test_cancel_by_key(server):
    with connect(server) as c:
        timer = threading.Timer(0.3, c.cancel)
        timer.start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            c.execute("SELECT count(*) FROM generate_series(1, 100000000000)").fetchone()
        assert c.execute("SELECT 1").fetchone() == (1,)


def test_a_client_that_leaves_stops_its_statement(server):
    async def run():
        c = await asyncpg.connect(**arguments(server))
        task = asyncio.ensure_future(c.fetch("SELECT count(*) FROM generate_series(1, 77000000000)"))
        await asyncio.sleep(0.3)
        c._transport.abort()
        with pytest.raises(Exception):
            await task

    asyncio.run(run())
    with connect(server) as c:
        listed = "SELECT count(*) FROM query_activity() WHERE query LIKE '%77000000000%' AND query NOT LIKE '%activity%'"
        eventually(lambda: c.execute(listed).fetchone() == (0,), 30, "the end of the statement")


def test_many_connections_and_rows(server):
    connections = [connect(server) for _ in range(100)]
    for n, c in enumerate(connections):
        assert c.execute("SELECT %s::LONG + 1", (n,)).fetchone() == (n + 1,)
    rows = connections[0].execute("SELECT value, value * 2 FROM generate_series(1, 300000) AS value ORDER BY value").fetchall()
    assert len(rows) == 300000 and rows[-1] == (300000, 600000)
    for c in connections:
        c.close()


def test_the_catalog_answers_clients(server, table):
    with connect(server) as c:
        c.execute(f"CREATE TABLE {table} (ts TIMESTAMP, price DOUBLE) TIMESTAMP(ts)")
        sql = ("SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod) FROM pg_catalog.pg_class c"
               " JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid WHERE c.relname = %s ORDER BY a.attnum")
        assert c.execute(sql, (table,)).fetchall() == [("ts", "timestamp without time zone"), ("price", "double precision")]
        assert c.execute("SELECT typname FROM pg_type WHERE oid = 701").fetchone() == ("float8",)


def test_passwords(servers):
    own = servers(env={"TIDALITE_PG_USER": "admin", "TIDALITE_PG_PASSWORD": "s:cret"}).start()
    at = dict(host="127.0.0.1", port=own.pg_port, dbname="d")
    with psycopg.connect(user="admin", password="s:cret", **at) as c:
        assert c.execute("SELECT 1").fetchone() == (1,)
    for user, password in [("admin", "wrong"), ("other", "s:cret")]:
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(user=user, password=password, **at)


def test_a_restart_keeps_what_was_written(servers, table):
    own = servers().start()
    with connect(own) as c:
        c.execute(f"CREATE TABLE {table} (ts TIMESTAMP, v LONG) TIMESTAMP(ts)")
        c.execute(f"INSERT INTO {table} VALUES (%s, %s)", ("2024-01-01", 5))
        own.kill()
        with pytest.raises(psycopg.OperationalError):
            c.execute("SELECT 1")
    own.start()
    with connect(own) as c:
        assert c.execute(f"SELECT v FROM {table}").fetchone() == (5,)


def test_a_plan_serves_all_values(server, table):
    """Each statement with values as parameters, and as constants, three times over, beside the same with values in parentheses, which are planned as they are."""
    day = lambda n: dt.datetime(2024, 1, n)
    forms = [("k = %s", [("a",), ("b",), ("z",), (None,)]), ("n = %s", [(2,), (3,), (2.0,), (99999999999,), (2.5,)]),
             ("ts >= %s AND ts < %s", [(day(1), day(2)), ("2024", "2024-01-01T02"), ("2024-01-02", "2025")]),
             ("ts BETWEEN %s AND %s", [("2024-01-01", "2024-01-01T02"), ("2024-01-01T02", "2024-01-01"), (day(2), day(3))]),
             ("v > %s", [(1,), (0,), (1.5,), (-0.0,), (2,), (float("inf"),)]), ("n IN (%s, %s)", [(2, 3), (1, 1), (7, 8)]), ("k IN (%s)", [("a",), ("b",), ("z",)]), ("b = %s", [(True,), (False,)]),
             ("n > (%s) AND k = (%s)", [(1, "b"), (0, "a"), (9, "b")])]
    written = lambda v: {None: "NULL"}.get(v, str(v).lower() if isinstance(v, bool) else f"'{v}'::double" if v == float("inf") else repr(v) if isinstance(v, (int, float)) else f"'{v}'")
    with connect(server) as c:
        c.execute(f"CREATE TABLE {table} (ts TIMESTAMP, k SYMBOL, v DOUBLE, n INT, b BOOLEAN) TIMESTAMP(ts) PARTITION BY DAY")
        c.execute(f"INSERT INTO {table} VALUES ('2024-01-01', 'a', 1.5, 1, true), ('2024-01-01T01', 'b', 0, 2, false), ('2024-01-02', 'a', NULL, 3, NULL), ('2024-01-03', NULL, 4.5, NULL, true)")
        for condition, all_values in forms:
            sql = f"SELECT count(*), max(n) FROM {table} WHERE {condition}"
            for _ in range(3):
                for values in all_values:
                    constants = tuple(map(written, values))
                    expected = c.execute(sql % tuple(f"({constant})" for constant in constants)).fetchall()
                    assert c.execute(sql, values, prepare=True).fetchall() == expected, (condition, values)
                    assert c.execute(sql % constants).fetchall() == expected, (condition, values)
        c.execute(f"INSERT INTO {table} VALUES ('2024-01-04', 'c', 1, 77, true)")
        rows = lambda: c.execute(f"SELECT * FROM {table} WHERE n = %s", (77,)).fetchall()
        assert [rows() for _ in range(4)] == [[(day(4), "c", 1.0, 77, True)]] * 4
        c.execute(f"ALTER TABLE {table} ADD COLUMN z INT")
        assert rows() == [(day(4), "c", 1.0, 77, True, None)]


def test_lists_and_arguments_are_described(server, table):
    async def asked():
        c = await asyncpg.connect(**arguments(server))
        await c.execute(f"CREATE TABLE {table} (ts TIMESTAMP, k SYMBOL, n INT) TIMESTAMP(ts) PARTITION BY DAY")
        await c.execute(f"INSERT INTO {table} VALUES ('2024-01-01', 'a', 1), ('2024-01-02', 'b', 2), ('2024-01-03', 'c', 3)")
        one = lambda sql, *values: c.fetchval(sql.replace(" T", " " + table, 1), *values)
        found = [await one("SELECT count(*) FROM T WHERE k = ANY($1)", ["a", "c"]), await one("SELECT count(*) FROM T WHERE n = ANY($1)", [1, 2, 9]),
                 await one("SELECT count(*) FROM T WHERE n <> ALL($1)", [1, 2]), await one("SELECT substring('abcd', $1, $2)", 2, 2), await one("SELECT round(1.256, $1)", 1),
                 await one("SELECT n FROM T ORDER BY ts LIMIT $1", -1), await one("SELECT dateadd('d', $1, ts) FROM T WHERE n = 1", 2),
                 await one("SELECT nth_value($1 || $2, 1) OVER (ORDER BY ts) FROM T", "x", "y"), await one("SELECT length(q.c || $2) FROM (SELECT $1 AS c) q", "it's", "ab"), await one("SELECT n FROM T WHERE n = - $1", -3),
                 await one("SELECT sum(coalesce(n, $1)) FROM T", 0), await one("SELECT sum(CASE WHEN n > $1 then $2 ELSE n END) FROM T", 1, 10), await one("SELECT count(*) FROM T WHERE $1 AND n > 1", True),
                 await one("SELECT lag(n, 1, $1) OVER (ORDER BY ts) FROM T LIMIT 1", 7), await one("SELECT max(n / nullif($1, 2)) FROM T", 3), await one("SELECT count(*) FROM T WHERE ts >= $1 - INTERVAL '1 day'", dt.datetime(2024, 1, 2))]
        await c.close()
        return found
    assert asyncio.run(asked()) == [2, 2, 1, "bc", 1.3, 3, dt.datetime(2024, 1, 3), "xy", 6, 3, 6, 21, 2, 7, 1, 3]


def test_what_becomes_of_rows_that_are_there_has_types(server, table):
    async def run():
        c = await asyncpg.connect(**arguments(server))
        await c.execute(f"CREATE TABLE {table} (ts TIMESTAMP, k SYMBOL, n LONG, d DOUBLE) TIMESTAMP(ts) PARTITION BY DAY DEDUP UPSERT KEYS(ts, k)")
        insert = await c.prepare(f"INSERT INTO {table} AS t VALUES ($1, $2, $3) ON CONFLICT DO UPDATE SET n = t.n + $4, d = $5 WHERE EXCLUDED.n > $6 RETURNING n, d")
        assert [p.name for p in insert.get_parameters()] == ["timestamp", "text", "int8", "int8", "float8", "int8"]
        at = dt.datetime(2024, 1, 1)
        fetched = lambda *values: insert.fetch(at, "a", *values)
        assert [tuple(row) for row in await fetched(1, 10, 0.5, 0)] == [(1, None)]
        assert [tuple(row) for row in await fetched(2, 10, 0.5, 0)] == [(11, 0.5)]
        assert await fetched(2, 10, 0.5, 5) == []
        await c.close()

    asyncio.run(run())


@pytest.mark.parametrize("function", [
    "sum(x) OVER (ORDER BY x ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW)",
    "length(string_agg(x::varchar, ',') OVER (ORDER BY x ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING))",
    "arg_max(x, x) OVER (ORDER BY x ROWS BETWEEN 500000 PRECEDING AND CURRENT ROW)",
])  # fmt: skip
def test_a_window_that_is_computed_anew_for_each_frame_is_cancelled(server, function):
    with connect(server) as c:
        c.execute("SET statement_timeout = '300ms'")
        with pytest.raises(psycopg.errors.QueryCanceled):
            c.execute(f"SELECT max(s) FROM (SELECT {function} AS s FROM long_sequence(1000000)) t")
    # Its thread is free again: others are not kept waiting by it.
    with connect(server) as c:
        busy = lambda: c.execute("SELECT count(*) FROM query_activity() WHERE query LIKE 'SELECT max(s)%'").fetchone()[0]
        eventually(lambda: busy() == 0, 10, "the end of the window")
        assert c.execute("SELECT count(*) FROM long_sequence(1000000) WHERE x % 2 = 0").fetchone() == (500000,)


@pytest.mark.parametrize("opening", ["NOT(", "CAST(", "CASE WHEN x THEN ", "ARRAY[", "(("])
def test_nested_sql_with_an_error_is_refused_at_once(server, opening):
    """Described, prepared, explained and run: four such statements at once took every thread of the planner."""
    sql = "SELECT " + opening * 40

    def refused(statement, prepare):
        with connect(server) as c:
            with pytest.raises(psycopg.Error) as caught:
                c.execute(statement, prepare=prepare)
            assert caught.value.sqlstate in ("42601", "22023", "54001") and caught.value.diag.statement_position

    threads = [threading.Thread(target=refused, args=(text, prepare))
               for text in [sql, "EXPLAIN " + sql, "PREPARE p AS " + sql] for prepare in [False, True]]
    started = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert time.monotonic() - started < 10
    with connect(server) as c:
        assert c.execute("SELECT 1").fetchone() == (1,)
