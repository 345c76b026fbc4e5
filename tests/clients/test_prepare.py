"""PREPARE, EXECUTE and DEALLOCATE in SQL, by psycopg, asyncpg and psql."""

import asyncio
import datetime as dt
import shutil
import subprocess

import asyncpg
import psycopg
import pytest
from server import SqlError

ROWS = [(dt.datetime(2024, 1, 1, 0, 0, n), f"s{n % 3}", n, n / 2) for n in range(10)]


@pytest.fixture
def filled(server, table):
    with connect(server) as c:
        c.execute(f"CREATE TABLE {table} (ts TIMESTAMP, sym SYMBOL, l LONG, d DOUBLE) TIMESTAMP(ts) PARTITION BY DAY")
        with c.cursor() as cursor:
            cursor.executemany(f"INSERT INTO {table} VALUES (%s, %s, %s, %s)", ROWS)
    return table


def connect(server, **options):
    return psycopg.connect(host="127.0.0.1", port=server.pg_port, user="u", dbname="d", autocommit=True, **options)


def simple(connection, sql):
    """By the simple protocol: the rows as text, or the command's tag."""
    result = connection.pgconn.exec_(sql.encode())
    if result.error_message:
        raise AssertionError(result.error_message.decode())
    if not result.nfields:
        return result.command_status.decode()
    cell = lambda row, column: (result.get_value(row, column) or b"NULL").decode()
    return [tuple(cell(row, column) for column in range(result.nfields)) for row in range(result.ntuples)]


def test_queries_in_both_protocols(server, filled):
    with connect(server) as c:
        assert simple(c, f"PREPARE newest (text, int) AS SELECT l, d FROM {filled} WHERE sym = $1 ORDER BY ts DESC LIMIT $2") == "PREPARE"
        assert simple(c, "EXECUTE newest('s1', 2)") == [("7", "3.5"), ("4", "2")]
        assert simple(c, "execute NEWEST ('s' || 2, 1 + 0)") == [("8", "4")]
        assert simple(c, "EXECUTE newest(NULL, 2)") == []
        # Of values no SQL is made.
        assert simple(c, "EXECUTE newest('s1'' OR ''1'' = ''1', 9)") == []
        assert c.execute("EXECUTE newest('s1', 2)").fetchall() == [(7, 3.5), (4, 2.0)]
        assert c.cursor(binary=True).execute("EXECUTE newest('s0', 1)", prepare=True).fetchall() == [(9, 4.5)]
        assert simple(c, "DEALLOCATE newest") == "DEALLOCATE"
        with pytest.raises(psycopg.errors.InvalidSqlStatementName, match="newest"):
            c.execute("EXECUTE newest('s1', 2)")


def test_types_are_given_or_found(server, filled):
    with connect(server) as c:
        simple(c, f"PREPARE since AS SELECT count(*) FROM {filled} WHERE ts >= $1 AND d < $2")
        assert simple(c, "EXECUTE since('2024-01-01T00:00:06', 4.5)") == [("3",)]
        assert simple(c, "EXECUTE since(dateadd('s', 2, '2024-01-01T00:00:05Z'), 100)") == [("3",)]
        simple(c, 'PREPARE "Any" (long[]) AS SELECT sum(l) FROM ' + filled + " WHERE l = ANY($1)")
        assert simple(c, 'EXECUTE "Any"(ARRAY[2, 5])') == [("7",)]
        simple(c, "PREPARE sums (double precision, numeric(10,2), timestamp without time zone, boolean) AS SELECT $1 + 1, $2, $3, $4")
        assert simple(c, "EXECUTE sums(0.5, 1.25, '1969-12-31', true)") == [("1.5", "1.25", "1969-12-31 00:00:00", "t")]
        simple(c, "PREPARE nothing AS SELECT 1")
        assert simple(c, "EXECUTE nothing") == [("1",)]


def test_changes_of_rows(server, filled):
    with connect(server) as c:
        simple(c, f"PREPARE put AS INSERT INTO {filled} VALUES ($1, $2, $3, $4)")
        assert simple(c, "EXECUTE put('2024-01-02', 'new', 100, NULL)") == "INSERT 0 1"
        assert c.execute("EXECUTE put('2024-01-03', 'it''s', 101, 0.5)").rowcount == 1
        assert simple(c, f"SELECT sym, l, d FROM {filled} WHERE l >= 100") == [("new", "100", "NULL"), ("it's", "101", "0.5")]
        simple(c, f"PREPARE gone (long) AS DELETE FROM {filled} WHERE l >= $1")
        assert simple(c, "EXECUTE gone(100)") == "DELETE 2"


def test_what_is_explained_is_the_statement(server, filled):
    with connect(server) as c:
        simple(c, f"PREPARE point (text) AS SELECT d FROM {filled} WHERE sym = $1")
        for sql in ("EXPLAIN EXECUTE point('s1')", "EXPLAIN ANALYZE EXECUTE point('s1')"):
            plan = "\n".join(row[0] for row in simple(c, sql))
            assert filled in plan and "s1" in plan, plan
        assert c.execute("EXPLAIN EXECUTE point('s2')").fetchall()


@pytest.mark.parametrize("sql, state, words", [
    ("PREPARE p", "42601", "PREPARE name"),
    ("PREPARE p AS", "42601", "PREPARE name"),
    ("PREPARE p (int AS SELECT 1", "42601", "PREPARE name"),
    ("PREPARE p (nosuch) AS SELECT $1", "42704", "nosuch"),
    ("PREPARE p AS SELECT nosuch", "42703", "nosuch"),
    ("PREPARE p AS PREPARE q AS SELECT 1", "42601", "queries"),
    ("PREPARE p AS BEGIN", "42601", "queries"),
    ("PREPARE p AS COPY t FROM STDIN", "42601", "queries"),
    ("PREPARE known AS SELECT 1", "42P05", "known"),
    ("EXECUTE", "42601", "EXECUTE name"),
    ("EXECUTE known(1", "42601", "EXECUTE name"),
    ("EXECUTE known(1, 2) 3", "42601", "EXECUTE name"),
    ("EXECUTE known", "42601", "expected 2 parameters but got 0"),
    ("EXECUTE known(1, 2, 3)", "42601", "expected 2 parameters but got 3"),
    ("EXECUTE known('x', 2)", "22P02", "x"),
    ("EXECUTE known(1 FROM t, 2)", "42601", ""),
    ("EXECUTE nosuch(1)", "26000", "nosuch"),
    ("EXPLAIN EXECUTE nosuch(1)", "26000", "nosuch"),
])
def test_what_is_wrong_is_said(server, sql, state, words):
    with connect(server) as c:
        simple(c, "PREPARE known (int, int) AS SELECT $1 + $2")
        with pytest.raises(psycopg.Error) as refused:
            c.execute(sql)
        assert refused.value.sqlstate == state, refused.value
        assert words in str(refused.value) + str(refused.value.diag.message_hint)
        assert simple(c, "EXECUTE known(1, 2)") == [("3",)]


@pytest.mark.parametrize("sql, word, position", [
    ("PREPARE p (int) AS SELECT $1", "PREPARE", 0),
    ("EXECUTE p(1)", "EXECUTE", 0),
    ("EXPLAIN ANALYZE EXECUTE p", "EXECUTE", 16),
])
def test_over_http_it_is_said_where_to_do_that(server, sql, word, position):
    with pytest.raises(SqlError) as refused:
        server.exec(sql)
    answer = refused.value.answer
    assert (answer["error"], answer["position"]) == (f"{word} is of sessions of the PostgreSQL protocol", position)


def test_in_a_transaction_that_failed_it_is_refused(server):
    with connect(server) as c:
        simple(c, "PREPARE p AS SELECT 1")
        simple(c, "BEGIN")
        with pytest.raises(psycopg.errors.UndefinedTable):
            c.execute("SELECT * FROM nosuch_table")
        for sql in ("EXECUTE p", "PREPARE q AS SELECT 1"):
            with pytest.raises(psycopg.errors.InFailedSqlTransaction):
                c.execute(sql)
        simple(c, "ROLLBACK")
        assert simple(c, "EXECUTE p") == [("1",)]


def test_asyncpg_fetches_what_is_executed(server, filled):
    async def run():
        c = await asyncpg.connect(host="127.0.0.1", port=server.pg_port, user="u", database="d")
        await c.execute(f"PREPARE of_symbol (text) AS SELECT l FROM {filled} WHERE sym = $1 ORDER BY l")
        rows = await c.fetch("EXECUTE of_symbol('s2')")
        await c.close()
        return [row["l"] for row in rows]

    assert asyncio.run(run()) == [2, 5, 8]


@pytest.mark.skipif(not shutil.which("psql"), reason="there is no psql")
def test_psql_prepares(server, filled):
    commands = [f"PREPARE p AS SELECT d FROM {filled} WHERE l = $1", "EXECUTE p(3)", "EXPLAIN EXECUTE p(3)", "DEALLOCATE ALL"]
    arguments = [word for command in commands for word in ("-c", command)]
    done = subprocess.run(["psql", "-X", "-t", "-A", "-h", "127.0.0.1", "-p", str(server.pg_port), "-U", "u", "d", *arguments], capture_output=True, text=True)
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and lines[:2] == ["PREPARE", "1.5"] and lines[-1] == "DEALLOCATE ALL", done
