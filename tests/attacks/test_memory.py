"""Statements that ask for much memory: they spill or fail, alone and eight at once, and the server stays within its limit.

MEMORY_SEED chooses a share of the statements, MEMORY_SHARE how large it is (1 for all).
"""

import http.client
import json
import os
import random
import threading
import time
import urllib.parse
from pathlib import Path

import pytest
from server import eventually

MIB = 1 << 20
ROWS = 50_000_000
# The limits of the server.
STATEMENT_BYTES, PROCESS_BYTES = 256 * MIB, 1280 * MIB
# Live bytes besides those of the statement: code's own data, caches, sockets.
BASE_BYTES = 100 * MIB
# Rows of a table that are not merged yet belong to no statement: twice the setting `staging.bytes`.
STAGING_BYTES = 512 * MIB
# The allocator keeps freed pages for ten seconds, so the resident size of a statement that sorts or spills is up to
# three times its live bytes.
RESIDENT_MAX_ONE, RESIDENT_MAX = 1024 * MIB, 2048 * MIB

TEXTS = f"(SELECT x, md5(x::varchar) t FROM long_sequence({ROWS}))"
AGGREGATES = [
    "array_agg(t)", "array_agg(x)", "array_agg(DISTINCT t)", "string_agg(t, ',')", "string_agg(DISTINCT t, ',')",
    "count(DISTINCT t)", "count(DISTINCT x + 0.5)", "median(x)", "percentile_disc(0.5) WITHIN GROUP (ORDER BY t)",
    "percentile_cont(0.5) WITHIN GROUP (ORDER BY x)", "array_agg(t ORDER BY t)", "string_agg(t, ',' ORDER BY x DESC)",
    "mode() WITHIN GROUP (ORDER BY t)", "json_agg(t)", "array_agg(ARRAY[x, x])", "sum(DISTINCT x)",
]  # fmt: skip
GROUPED = ["min(t)", "max(t)", "first(t)", "last(t)", "array_agg(t)", "string_agg(t, ',')", "count(DISTINCT t)", "median(x)", "first_value(t ORDER BY x DESC)", "stddev(x)"]
WINDOWS = [
    "first_value(t) OVER (PARTITION BY x)", "lag(t) OVER (ORDER BY x)", "last_value(t) OVER ()", "sum(x) OVER ()",
    "row_number() OVER (ORDER BY t)", "rank() OVER (PARTITION BY x % 10 ORDER BY t)", "ntile(4) OVER (ORDER BY t)",
    "array_agg(t) OVER (ORDER BY x ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)", "count(*) OVER (PARTITION BY t)",
    "nth_value(t, 2) OVER (ORDER BY t)", "min(t) OVER (ORDER BY x ROWS BETWEEN 1000000 PRECEDING AND CURRENT ROW)",
    "percent_rank() OVER (ORDER BY t)", "lead(t, 1000000) OVER (ORDER BY x)",
    "string_agg(t, ',') OVER (ORDER BY x ROWS BETWEEN 1000000 PRECEDING AND CURRENT ROW)",
    "array_agg(t) OVER (ORDER BY x ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW)",
]  # fmt: skip
SETS = [
    "SELECT count(*) FROM (SELECT t, count(*) FROM {t} GROUP BY t)",
    "SELECT count(*) FROM (SELECT t, x, count(*) FROM {t} GROUP BY CUBE (t, x))",
    "SELECT count(*) FROM (SELECT t, x, count(*) FROM {t} GROUP BY ROLLUP (t, x))",
    "SELECT count(*) FROM (SELECT t, x, count(*) FROM {t} GROUP BY GROUPING SETS ((t), (x), (t, x)))",
    "SELECT count(*) FROM (SELECT DISTINCT t FROM {t})",
    "SELECT count(*) FROM (SELECT DISTINCT ON (t) t, x FROM {t} ORDER BY t, x)",
    "SELECT count(*) FROM (SELECT t FROM {t} UNION SELECT t FROM {t})",
    "SELECT count(*) FROM (SELECT t FROM {t} INTERSECT SELECT t FROM {t})",
    "SELECT count(*) FROM (SELECT t FROM {t} EXCEPT SELECT 'x')",
    "SELECT count(*) FROM {t} a JOIN {t} b ON a.t = b.t",
    "SELECT count(*) FROM {t} a LEFT JOIN {t} b ON a.t = b.t AND a.x < b.x",
    "SELECT count(*) FROM {t} a FULL JOIN {t} b ON a.t = b.t",
    "SELECT count(*) FROM {t} a WHERE EXISTS (SELECT 1 FROM {t} b WHERE b.t = a.t)",
    "SELECT count(*) FROM {t} a WHERE t NOT IN (SELECT t FROM {t} b)",
    "SELECT count(*) FROM (SELECT a.t FROM {t} a, {t} b ORDER BY a.t, b.t)",
    "SELECT max(t) FROM (SELECT * FROM {t} ORDER BY t LIMIT 40000000)",
    "SELECT * FROM (SELECT t FROM {t} ORDER BY t) LIMIT 5 OFFSET 49999990",
    "SELECT cardinality(ARRAY(SELECT t FROM {t}))",
    "SELECT length((SELECT string_agg(t, '') FROM {t}))",
    "WITH RECURSIVE r(n, s) AS (SELECT 1, 'x' UNION ALL SELECT n + 1, s || s FROM r WHERE n < 40) SELECT max(length(s)) FROM r",
    "WITH RECURSIVE r(n) AS (SELECT x FROM long_sequence(1000000) UNION ALL SELECT n + 1 FROM r WHERE n < 100000000) SELECT count(*) FROM r",
    "CREATE TABLE made AS (SELECT x, t, t || t u FROM {t})",
    "EXPLAIN ANALYZE SELECT t, count(*) FROM {t} GROUP BY t",
    "SELECT count(*) FROM (SELECT x, unnest(array_agg(x)) FROM (SELECT x % 3 x FROM long_sequence(20000000)) GROUP BY x)",
    "SELECT count(*) FROM (SELECT timestamp_sequence(0, 1000000) ts, x FROM long_sequence(2)) TIMESTAMP(ts) SAMPLE BY 1T FROM 0 TO '2100-01-01' FILL(0)",
    "SELECT count(*) FROM (SELECT sum(x) FROM (SELECT timestamp_sequence(0, 400000000000) ts, x FROM long_sequence(2)) TIMESTAMP(ts) SAMPLE BY 1U FILL(LINEAR))",
]
FUNCTIONS = [
    "repeat('x', 2000000000)", "lpad('x', 2000000000, 'y')", "rpad('x', 1000000000, 'yz')", "repeat(repeat('x', 10000), 100000)",
    "replace(repeat('x', 1000000), 'x', repeat('y', 10000))", "array_fill(1, ARRAY[1000000000])", "regexp_replace(repeat('x', 1000000), 'x', repeat('z', 5000), 'g')",
    "string_to_array(repeat('x,', 50000000), ',')", "format('%2000000000s', 'x')", "translate(repeat('x', 900000000), 'x', 'y')",
]  # fmt: skip
WIDE = ["max(length(repeat('y', 1000000)))", "max(length(lpad(x::varchar, 300000, 'z')))", "max(length(replace(repeat('ab', 50000), 'a', x::varchar)))", "count(DISTINCT repeat(md5(x::varchar), 1000))"]
LITERALS = [
    "SELECT count(*) FROM (VALUES " + ", ".join(f"({n}, 'a{n}')" for n in range(100_000)) + ") v(a, b)",
    "SELECT count(*) FROM long_sequence(1000) WHERE x IN (" + ", ".join(map(str, range(200_000))) + ")",
]

STATEMENTS = (
    [f"SELECT length(({a})::varchar) FROM {TEXTS}" for a in AGGREGATES]
    + [f"SELECT count(v) FROM (SELECT x % 20000000 g, {a} v FROM {TEXTS} GROUP BY g)" for a in GROUPED]
    + [f"SELECT count(v) FROM (SELECT {w} v FROM {TEXTS})" for w in WINDOWS]
    + [s.replace("{t}", TEXTS) for s in SETS]
    + [f"SELECT length(({f})::varchar)" for f in FUNCTIONS]
    + [f"SELECT {w} FROM long_sequence(1000000)" for w in WIDE]
    + LITERALS
)


def resident_bytes(server):
    """Gives the resident bytes of the server's process."""
    status = Path(f"/proc/{server.pid()}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) * 1024


class Peaks:
    """Samples the resident and the live bytes of a server until it is left."""

    def __init__(self, server):
        self.server, self.resident, self.live, self.done = server, 0, 0, threading.Event()
        self.thread = threading.Thread(target=self.sample)

    def sample(self):
        while not self.done.wait(0.01):
            self.resident = max(self.resident, resident_bytes(self.server))
            self.live = max(self.live, self.server.metrics()["tidalite_memory_bytes"])

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()


def run(server, statement, seconds=8):
    """Gives the error of a statement, or None."""
    connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=seconds + 60)
    try:
        connection.request("POST", "/exec?" + urllib.parse.urlencode({"timeout": seconds}), body=json.dumps({"query": statement}), headers={"Content-Type": "application/json"})
        answer = json.loads(connection.getresponse().read())
        return answer.get("error")
    finally:
        connection.close()


# All statements take about 25 minutes.
pytestmark = pytest.mark.timeout(3600)


@pytest.fixture
def small_server(servers):
    return servers(env={"TIDALITE_MEMORY_BYTES": str(PROCESS_BYTES), "TIDALITE_QUERY_MEMORY_BYTES": str(STATEMENT_BYTES), "TIDALITE_CACHE_BYTES": str(64 * MIB)}).start()


def chosen():
    share, seed = float(os.environ.get("MEMORY_SHARE", "0.1")), os.environ.get("MEMORY_SEED") or time.strftime("%Y-%m-%d")
    return random.Random(seed).sample(STATEMENTS, max(8, int(len(STATEMENTS) * share)))


def test_statements_stay_within_their_memory(small_server):
    for statement in chosen():
        with Peaks(small_server) as peaks:
            error = run(small_server, statement)
        seen = f"{peaks.live / MIB:.0f} MiB live, {peaks.resident / MIB:.0f} resident, {error}: {statement[:200]}"
        staged = STAGING_BYTES if statement.startswith("CREATE TABLE") else 0
        assert peaks.live <= 1.25 * STATEMENT_BYTES + BASE_BYTES + staged, seen
        assert peaks.resident <= RESIDENT_MAX_ONE, seen
        assert small_server.value("select 1") == 1


def test_eight_statements_at_once_stay_within_the_servers_memory(small_server):
    statements = chosen()
    errors = []
    with Peaks(small_server) as peaks:
        for at in range(0, len(statements), 8):
            some = statements[at : at + 8]
            threads = [threading.Thread(target=lambda s=s: errors.append((run(small_server, s), s))) for s in some]
            [thread.start() for thread in threads]
            while any(thread.is_alive() for thread in threads):
                assert small_server.value("select 1") == 1
                [thread.join(0.5) for thread in threads]
    assert len(errors) == len(statements)
    assert peaks.live <= 1.25 * PROCESS_BYTES, f"{peaks.live / MIB:.0f} MiB"
    assert peaks.resident <= RESIDENT_MAX, f"{peaks.resident / MIB:.0f} MiB"


def test_the_error_names_the_operation_and_the_setting(small_server):
    error = run(small_server, f"SELECT cardinality(array_agg(t)) FROM {TEXTS}", 60)
    assert "query.memory_bytes" in error and "aggregation" in error and "Exec" not in error


def test_a_sort_larger_than_its_limit_spills(small_server):
    """Merged runs reserve their own strings only, not the buffers of all runs."""
    rows, width = 4_000_000, 32 + 60
    texts = f"SELECT md5(x::varchar) || repeat('a', 60) s FROM long_sequence({rows})"
    assert rows * width > STATEMENT_BYTES
    total = small_server.value(f"SELECT sum(length(s) * r) FROM (SELECT s, row_number() OVER (ORDER BY s) r FROM ({texts}))")
    assert total == width * rows * (rows + 1) // 2
    # The rows of a large LIMIT do not fit a heap.
    total = small_server.value(f"SELECT sum(length(s)) FROM (SELECT s FROM ({texts}) ORDER BY s LIMIT {rows - 1})")
    assert total == width * (rows - 1)


def test_freed_memory_returns(small_server):
    """Most freed pages return after ten seconds, while other statements run."""
    before = resident_bytes(small_server)
    run(small_server, f"SELECT cardinality(array_agg(t)) FROM {TEXTS}", 60)

    def has_returned():
        small_server.value("select count(*) from long_sequence(100000)")
        return resident_bytes(small_server) < before + 160 * MIB

    eventually(has_returned, 30, "the memory")
