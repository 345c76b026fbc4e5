"""No statement runs away: planning, describing and running end at the timeout, at a cancel and when the client leaves.

Each entry point gets work that never ends by itself, once in its plan (the columns of a PIVOT come from a sub-query) and
once in its rows.
"""

import threading
import time
from urllib.parse import quote

import psycopg
import pytest
from server import SqlError, eventually

# 10¹⁸ rows do not end on any machine.
ENDLESS = "SELECT DISTINCT (a.x + b.x) % 3 AS m FROM long_sequence(1000000000) a CROSS JOIN long_sequence(1000000000) b"
IN_PLAN = f"SELECT * FROM (SELECT a, m FROM {{t}}) PIVOT (sum(a) FOR m IN ({ENDLESS}))"
IN_CTE = f"WITH f AS ({IN_PLAN}) SELECT * FROM f"
IN_ROWS = f"SELECT m AS a FROM ({ENDLESS})"
QUERIES = {"plan": IN_PLAN, "cte": IN_CTE, "rows": IN_ROWS}

# How a query gets into the database. `{q}` is the query, `{t}` a table with columns ts, a and m.
STATEMENTS = {
    "select": "{q}",
    "explain": "EXPLAIN {q}",
    "explain analyze": "EXPLAIN ANALYZE {q}",
    "sub-query": "SELECT count(*) FROM ({q})",
    "value": "SELECT a FROM {t} WHERE a = (SELECT count(*) FROM ({q}))",
    "insert": "INSERT INTO {t} (ts, a) SELECT now(), 1 FROM ({q})",
    "create table as": "CREATE TABLE {t}_made AS ({q})",
    "create view": "CREATE VIEW {t}_view AS {q}",
    "update": "UPDATE {t} SET a = 2 WHERE a = (SELECT count(*) FROM ({q}))",
    "delete": "DELETE FROM {t} WHERE a = (SELECT count(*) FROM ({q}))",
    "merge": "MERGE INTO {t} USING (SELECT count(*) n FROM ({q})) s ON {t}.a = s.n WHEN MATCHED THEN DELETE",
    "copy": "COPY ({q}) TO STDOUT",
    "cursor": "DECLARE c CURSOR WITH HOLD FOR {q}",
    "with returning": "WITH i AS (INSERT INTO {t} (ts, a) SELECT now(), 1 FROM ({q}) RETURNING a) SELECT * FROM i",
}
# Entry points that do not read the rows of their query.
ENDS_AT_ONCE = {("explain", "rows"), ("create view", "rows"), ("cursor", "rows")}
CASES = [(how, where) for how in STATEMENTS for where in QUERIES if (how, where) not in ENDS_AT_ONCE]
LIMIT_S = 5


def connect(server, **options):
    return psycopg.connect(host="127.0.0.1", port=server.pg_port, user="u", dbname="d", autocommit=True, **options)


@pytest.fixture(scope="module")
def source(server):
    with connect(server) as c:
        c.execute("CREATE TABLE runaway (ts TIMESTAMP, a LONG, m LONG) TIMESTAMP(ts) PARTITION BY DAY")
        c.execute("INSERT INTO runaway VALUES ('2024-01-01', 1, 1)")
    yield "runaway"
    with connect(server) as c:
        c.execute("DROP TABLE runaway")


def statement(how, where, table):
    return STATEMENTS[how].format(q=QUERIES[where].format(t=table), t=table)


def running(server, client):
    """The statements of a client that are running, without this one."""
    with connect(server) as c:
        rows = c.execute("SELECT query FROM query_activity()").fetchall()
    return [query for (query,) in rows if client in query and "query_activity" not in query]


def execute(connection, sql):
    """Runs a statement by the simple protocol; returns its SQLSTATE."""
    result = connection.pgconn.exec_(sql.encode())
    if result.status == psycopg.pq.ExecStatus.COPY_OUT:
        try:
            while connection.pgconn.get_copy_data(0)[0] > 0:
                pass
        except psycopg.OperationalError:
            pass  # the error is that of the statement, which follows
        result = connection.pgconn.get_result()
        while connection.pgconn.get_result():
            pass
    state = result.error_field(psycopg.pq.DiagnosticField.SQLSTATE)
    return state.decode() if state else None


@pytest.mark.parametrize(("how", "where"), CASES)
def test_the_timeout_ends_it(server, source, how, where):
    with connect(server) as c:
        c.execute("SET statement_timeout = '200ms'")
        started = time.monotonic()
        state = execute(c, statement(how, where, source))
        took = time.monotonic() - started
    assert state == "57014", state
    assert took < LIMIT_S, took
    with connect(server) as c:
        assert c.execute(f"SELECT count(*) FROM {source}").fetchone() == (1,)


@pytest.mark.parametrize("where", QUERIES)
def test_the_timeout_ends_a_prepared_statement(server, source, where):
    """Describe plans the statement, with the timeout of the session."""
    with connect(server) as c:
        c.execute("SET statement_timeout = '200ms'")
        started = time.monotonic()
        with pytest.raises(psycopg.errors.QueryCanceled):
            c.execute(statement("select", where, source), prepare=True)
        assert time.monotonic() - started < LIMIT_S


@pytest.mark.parametrize("prepare", [False, True])
@pytest.mark.parametrize("where", QUERIES)
def test_a_cancel_ends_it(server, source, where, prepare):
    mark = f"cancelled_{where}_{prepare}".lower()
    with connect(server) as c:
        failed = []

        def run():
            try:
                c.execute(f"SELECT count(*) AS {mark} FROM ({statement('select', where, source)})", prepare=prepare)
            except psycopg.Error as error:
                failed.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        eventually(lambda: running(server, mark))
        c.cancel()
        thread.join(LIMIT_S)
        assert not thread.is_alive()
        assert isinstance(failed[0], psycopg.errors.QueryCanceled), failed


@pytest.mark.parametrize("where", QUERIES)
def test_it_ends_when_the_client_leaves(server, source, where):
    mark = f"left_{where}"
    c = connect(server)
    c.pgconn.send_query(f"SELECT count(*) AS {mark} FROM ({statement('select', where, source)})".encode())
    eventually(lambda: running(server, mark))
    c.pgconn.finish()
    eventually(lambda: not running(server, mark), LIMIT_S)


@pytest.mark.parametrize("path", ["/exec", "/exp"])
@pytest.mark.parametrize("where", QUERIES)
def test_the_timeout_of_a_request_ends_it(server, source, where, path):
    started = time.monotonic()
    sql = quote(statement("select", where, source))
    status, _, body = server.request("GET", f"{path}?query={sql}&timeout=200ms")
    assert time.monotonic() - started < LIMIT_S
    # Rows may have begun: then the error is at their end.
    assert status == 408 or b"timeout" in body.lower(), (status, body)


@pytest.mark.parametrize("levels", [5, 10, 11, 40, 100])
@pytest.mark.parametrize("query", ["SELECT {}", "SELECT 1 WHERE {} = {}", "VALUES ({})", "SELECT {} FROM long_sequence(2) GROUP BY 1"])
def test_rows_within_rows_are_planned_or_refused_at_once(server, levels, query):
    """The type of a row was derived twice at each level: 20 levels took minutes and the memory of the server."""
    nested = "row(" * levels + "1" + ")" * levels
    begun = time.monotonic()
    try:
        server.exec(query.format(*[nested] * query.count("{}")))
    except SqlError as error:
        assert levels > 10 and "more than 10 levels" in str(error), error
    assert time.monotonic() - begun < 10
