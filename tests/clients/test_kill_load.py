"""kill -9 during INSERT … SELECT and CREATE TABLE AS with more than 64 MiB of rows: all rows or none.

`KILL_ROUNDS` sets the number of rounds (4 by default), `KILL_SEED` repeats one.
"""

import os
import random
import threading
import time

import psycopg
import pytest

ROUNDS = int(os.environ.get("KILL_ROUNDS", "4"))
# 40 bytes each: three parts of a load.
ROWS = 4_000_000
SELECT = f"SELECT (x * 1000)::timestamp AS ts, {{round}}::long AS r, x, x * 2 AS y, 's' || (x % 50) AS s FROM long_sequence({ROWS})"


def segments(server):
    return set((server.data / "segments").glob("*/*.seg"))


def wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


class Loader(threading.Thread):
    """Runs one statement and records if it was acknowledged."""

    def __init__(self, server, statement):
        super().__init__()
        self.port, self.statement = server.pg_port, statement
        self.is_done, self.problem = False, None

    def run(self):
        try:
            with psycopg.connect(host="127.0.0.1", port=self.port, user="u", dbname="d", autocommit=True) as connection:
                connection.execute(self.statement)
                self.is_done = True
        except psycopg.OperationalError:
            pass  # killed: committed or not
        except Exception as problem:
            self.problem = problem


@pytest.mark.timeout(120 + 60 * ROUNDS)
def test_loads_survive_kill_9_whole_or_not_at_all(servers):
    seed = int(os.environ.get("KILL_SEED") or random.randrange(2**32))
    print(f"KILL_SEED={seed}")
    r = random.Random(seed)
    server, took, outcomes = servers(), 3.0, set()
    server.start()
    with psycopg.connect(host="127.0.0.1", port=server.pg_port, user="u", dbname="d", autocommit=True) as connection:
        connection.execute("CREATE TABLE t (ts TIMESTAMP, r LONG, x LONG, y LONG, s SYMBOL) TIMESTAMP(ts) PARTITION BY DAY")
    loaded = set()
    for number in range(ROUNDS):
        creates = number % 2 == 1
        select = SELECT.format(round=number)
        loader = Loader(server, f"CREATE TABLE u{number} AS ({select}) TIMESTAMP(ts) PARTITION BY DAY" if creates else f"INSERT INTO t {select}")
        started = time.monotonic()
        loader.start()
        # The first round runs to its end and shows how long that takes; every third ends at its first file.
        files = segments(server)
        if number % 3 == 1:
            wait_for(lambda: segments(server) - files)
        else:
            loader.join(r.uniform(0, took) if number else None)
        if number == 0:
            took = time.monotonic() - started
            assert loader.is_done, "the first statement failed"
        server.kill()
        loader.join()
        assert loader.problem is None, loader.problem
        server.start()
        if creates:
            is_there = server.has_table(f"u{number}")
            count = tuple(server.rows(f"SELECT count(*), sum(x) FROM u{number}")[0]) if is_there else None
            assert count in (None, (ROWS, ROWS * (ROWS + 1) // 2)), count
        else:
            counts = {row[0]: tuple(row[1:]) for row in server.rows("SELECT r, count(*), sum(x), count(DISTINCT s) FROM t GROUP BY r")}
            assert set(counts) - loaded <= {number}
            assert loaded <= set(counts)
            assert all(found == (ROWS, ROWS * (ROWS + 1) // 2, 50) for found in counts.values()), counts
            is_there = number in counts
            loaded = set(counts)
        assert is_there or not loader.is_done, f"round {number} was acknowledged and is gone"
        outcomes.add(is_there)
    # The second round ends at its first file.
    assert outcomes == ({True, False} if ROUNDS > 1 else {True})
