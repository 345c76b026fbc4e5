"""MERGE, and queries whose WITH changes rows: each is one commit, and all parts read the same rows.

Expected values are PostgreSQL 15's. The statements run over HTTP, too, where each is a commit by itself.
"""

import random
import re
import threading

import psycopg
import pytest
from server import SqlError
from test_transactions import connect, run


@pytest.fixture
def stock(server, table):
    with connect(server) as c:
        c.execute(f"CREATE TABLE {table} (ts TIMESTAMP, item SYMBOL, n LONG) TIMESTAMP(ts) PARTITION BY DAY")
        c.execute(f"INSERT INTO {table} VALUES ('2024-01-01', 'a', 10), ('2024-01-02', 'b', 20), ('2024-01-03', 'c', 30)")
        c.execute(f"CREATE TABLE {table}_2 (item VARCHAR, n LONG)")
        c.execute(f"INSERT INTO {table}_2 VALUES ('a', 1), ('b', -20), ('d', 4)")
    return table


MERGES = [
    ("MERGE INTO t USING t_2 AS s ON t.item = s.item WHEN MATCHED THEN UPDATE SET n = t.n + s.n", "MERGE 2", "a 11, b 0, c 30"),
    ("MERGE INTO t AS x USING t_2 s ON x.item = s.item WHEN MATCHED AND x.n + s.n <= 0 THEN DELETE WHEN MATCHED THEN UPDATE SET n = x.n + s.n "
     "WHEN NOT MATCHED AND s.n > 100 THEN DO NOTHING WHEN NOT MATCHED THEN INSERT (ts, item, n) VALUES ('2024-01-04', s.item, s.n)", "MERGE 3", "a 11, c 30, d 4"),
    ("MERGE INTO t USING t_2 s ON t.item = s.item WHEN MATCHED THEN DO NOTHING WHEN NOT MATCHED THEN INSERT VALUES ('2024-01-04', s.item, s.n * 2)", "MERGE 1", "a 10, b 20, c 30, d 8"),
    ("MERGE INTO t USING (SELECT item, sum(n) AS total FROM t_2 GROUP BY item) AS s ON t.item = s.item AND s.total > 0 WHEN MATCHED THEN DELETE", "MERGE 1", "b 20, c 30"),
    ("MERGE INTO t USING (VALUES ('c', 1), ('e', 5)) AS s(item, n) ON s.item = t.item WHEN NOT MATCHED THEN INSERT (ts, item, n) VALUES ('2024-01-05', s.item, CASE WHEN s.n > 3 THEN 55 ELSE 0 END) WHEN MATCHED THEN UPDATE SET n = s.n", "MERGE 2", "a 10, b 20, c 1, e 55"),
    ("MERGE INTO t USING t_2 s ON t.item = s.item WHEN MATCHED AND s.n > 1000 THEN DELETE", "MERGE 0", "a 10, b 20, c 30"),
    # Each part reads the rows as of the start of the statement.
    ("WITH gone AS (DELETE FROM t WHERE n > 10 RETURNING item, n) SELECT count(*), sum(n), (SELECT count(*) FROM t) FROM gone", [("2", "50", "3")], "a 10"),
    ("WITH moved AS (UPDATE t SET n = n + 1 WHERE item <> 'a' RETURNING *), b AS (SELECT max(n) AS most FROM moved) SELECT most FROM b", [("31",)], "a 10, b 21, c 31"),
    ("WITH made(k, v) AS (INSERT INTO t VALUES ('2024-01-06', 'x', 7) RETURNING item, n) SELECT v, k FROM made", [("7", "x")], "a 10, b 20, c 30, x 7"),
    ("WITH gone AS (DELETE FROM t WHERE item = 'a' RETURNING *) INSERT INTO t_2 SELECT item, n FROM gone", "INSERT 0 1", "b 20, c 30"),
    ("WITH s AS (SELECT item FROM t_2 WHERE n > 0), gone AS (DELETE FROM t USING s WHERE t.item = s.item) UPDATE t SET n = 0 WHERE item = 'c'", "UPDATE 1", "b 20, c 0"),
]


def own(sql, table):
    return re.sub(r"\bt\b", table, re.sub(r"\bt_2\b", f"{table}_2", sql))


@pytest.mark.parametrize("within", [False, True], ids=["alone", "in a transaction"])
@pytest.mark.parametrize("number", range(len(MERGES)))
def test_they_do_as_postgresql(server, stock, number, within):
    sql, answer, left = MERGES[number]
    content = f"SELECT string_agg(item || ' ' || n, ', ' ORDER BY item) FROM {stock}"
    with connect(server) as c, connect(server) as other:
        if within:
            run(c, "BEGIN")
        found = run(c, own(sql, stock))
        assert found == (answer, "T" if within else "I")
        assert run(c, content)[0] == [(left,)]
        if within:
            assert run(other, content)[0] == [("a 10, b 20, c 30",)]
            run(c, "COMMIT")
        assert run(other, content)[0] == [(left,)]


def test_drivers_bind_parameters(server, stock):
    with connect(server) as c:
        sql = f"WITH gone AS (DELETE FROM {stock} WHERE n > %s::long RETURNING n) SELECT sum(n)::long FROM gone WHERE n < %s::long"
        assert c.execute(sql, (15, 25)).fetchone() == (20,)
        assert c.execute(f"MERGE INTO {stock} USING (SELECT 'a' AS item, %s::long AS n) AS s ON {stock}.item = s.item WHEN MATCHED THEN UPDATE SET n = s.n", (99,)).rowcount == 1
    assert server.exec(f"SELECT n FROM {stock}")["dataset"] == [[99]]
    assert server.exec(f"WITH x AS (UPDATE {stock} SET n = 1 RETURNING n) SELECT * FROM x")["dataset"] == [[1]]


@pytest.mark.parametrize(("sql", "state"), [
    ("MERGE INTO t USING (VALUES ('a', 1), ('a', 2)) AS s(item, n) ON t.item = s.item WHEN MATCHED THEN UPDATE SET n = s.n", "21000"),
    ("MERGE INTO t USING t_2 s ON t.item = s.item", "42601"),
    ("MERGE INTO t USING t_2 s ON t.item = s.item WHEN MATCHED THEN INSERT VALUES (1)", "42601"),
    ("MERGE INTO nosuch USING t_2 s ON true WHEN MATCHED THEN DELETE", "42P01"),
    ("WITH x AS (DELETE FROM t RETURNING n) SELECT 1 / 0 FROM x", "22012"),
    ("WITH x AS (DELETE FROM t RETURNING nosuch) SELECT * FROM x", "42703"),
])
def test_what_is_refused_changes_nothing(server, stock, sql, state):
    with connect(server) as c:
        assert run(c, own(sql, stock)) == (state, "I")
        assert run(c, f"SELECT count(*) FROM {stock}")[0] == [("3",)]
        run(c, "BEGIN READ ONLY")
        if state in ("21000", "22012"):
            assert run(c, own(sql, stock)) == ("25006", "E")
        run(c, "ROLLBACK")


def test_merges_beside_each_other(server, table):
    """Several clients increment counters concurrently: no increment is lost."""
    server.exec(f"CREATE TABLE {table} (ts TIMESTAMP, k LONG, n LONG) TIMESTAMP(ts) PARTITION BY DAY")
    server.exec(f"INSERT INTO {table} SELECT '2024-01-01', x, 0 FROM long_sequence(3)")
    problems = []

    def raise_them(number):
        r = random.Random(number)
        try:
            for _ in range(20):
                k = r.randrange(1, 4)
                server.exec(f"MERGE INTO {table} USING (SELECT {k} AS k) AS s ON {table}.k = s.k WHEN MATCHED THEN UPDATE SET n = {table}.n + 1")
        except (SqlError, OSError) as problem:
            problems.append(problem)

    threads = [threading.Thread(target=raise_them, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems and server.exec(f"SELECT sum(n) FROM {table}")["dataset"] == [[60]]
