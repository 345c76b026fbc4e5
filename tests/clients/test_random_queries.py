"""Queries by chance over tables by chance, beside DuckDB, with fast operators and without, these with materialized views
that may answer. Some are asked again, as they were or with other constants, after rows have come, changed and gone: plans and
operators that were kept of them have to hold.

`RANDOM_QUERIES=100000 RANDOM_SEED=7 pytest --timeout=0 test_random_queries.py` asks more and others; without, they are the same each
time. Queries come in rounds of 1,000, each with tables of its own, of the seed and those after it. `RANDOM_ROWS=600000` makes the
largest table so large. With
`RANDOM_FINDINGS=file` what differs is written there and the rest is asked, too.
"""

import collections
import datetime as dt
import decimal
import os
import random
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import duckdb
import psycopg
import pytest
from random_queries import COLUMNS, DUCKDB, TYPES, Maker

ROUND = 1000
ROWS = int(os.environ.get("RANDOM_ROWS") or 2500)
"""Of the largest table."""
ROWS_MAX = 4096
QUERY_SECONDS = 30
KEPT = 60
"""So many queries may be asked again: fewer than plans are kept."""
SETTINGS = [{}, {"TIDALITE_QUERY_FAST_OPERATORS": "false", "TIDALITE_QUERY_USE_MATERIALIZED_VIEWS": "true"}]


def comparable(rows, is_ordered=False):
    """The same for rows that are the same, whatever types the engines' numbers have, and in whatever order they came."""
    def of(value):
        if value is None or isinstance(value, (bool, str)):
            return str(value)
        if isinstance(value, (int, float, decimal.Decimal)):
            return "0" if abs(value) < 1e-12 else f"{float(value):.9g}"
        if isinstance(value, dt.datetime):
            return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return str(value)
    out = [tuple(map(of, row)) for row in rows]
    return out if is_ordered else sorted(out)


class Engines:
    """Both databases, with the same statements behind them."""

    def __init__(self, running):
        connect = lambda server: psycopg.connect(host="127.0.0.1", port=server.pg_port, user="u", dbname="d", autocommit=True)
        self.ours = [connect(server).cursor() for server in running]
        self.theirs = duckdb.connect(config={"threads": 1, "default_null_order": "nulls_last_on_asc_first_on_desc"})
        self.threads = ThreadPoolExecutor(len(self.ours))
        self.since = None
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self):
        """What takes DuckDB too long is not compared."""
        while True:
            threading.Event().wait(1)
            if (since := self.since) and time.monotonic() - since > QUERY_SECONDS:
                self.theirs.interrupt()

    def exec(self, ours, theirs=None):
        for cursor in self.ours:
            cursor.execute(ours)
        self.theirs.execute(theirs or ours)

    def tell(self, cursor, statement, is_ordered):
        try:
            return comparable(cursor.execute(*statement).fetchall(), is_ordered)
        except psycopg.Error as error:
            return str(error)

    def ask(self, query, is_bound=False):
        """(the answers of ours, DuckDB's); the latter is None when it has none."""
        statement = query.bound if is_bound else (query.ours,)
        asked = [self.threads.submit(self.tell, cursor, statement, query.is_ordered) for cursor in self.ours]
        self.since = time.monotonic()
        try:
            expected = comparable(self.theirs.execute(query.theirs).fetchall(), query.is_ordered)
        except (duckdb.Error, RuntimeError):  # the latter when interrupted
            expected = None
        self.since = None
        return [one.result() for one in asked], expected


def view_of(table, stride):
    """Up to date, or not, as changes go. No sums of doubles, whose last digits depend on their order."""
    keys = [name for name, kind in COLUMNS.items() if kind in ("text", "bool")]
    values = [f"count({name}) AS count_{name}, min({name}) AS min_{name}, max({name}) AS max_{name}" for name, kind in COLUMNS.items() if name != "ts" and kind != "bool"]
    values += [f"sum({name}) AS sum_{name}" for name, kind in COLUMNS.items() if kind == "long"]
    return f"CREATE MATERIALIZED VIEW {table}_view REFRESH MANUAL AS (SELECT ts, {', '.join(keys)}, count() AS n, {', '.join(values)} FROM {table} SAMPLE BY {stride})"


def prepare(engines, seed, r):
    """Tables of several sizes and kinds; the last one is large. Some rows are merged, some staged, some were deleted."""
    tables = []
    start = r.choice([dt.datetime(2024, 1, 1), dt.datetime(1969, 12, 30, 20), dt.datetime(2024, 3, 30, 12)])
    maker = Maker(r, [], start)
    for number, count in enumerate([0, 1, 12, 40, 200, ROWS]):
        name = f"random_{seed}_{number}"
        tables.append(name)
        text, partitions = r.choice(["SYMBOL", "VARCHAR"]), r.choice(["DAY", "HOUR", "MONTH", "NONE", "WEEK"])
        columns = lambda of: ", ".join(f"{c} {of(c)}" for c in COLUMNS)
        ours = columns(lambda c: text if c == "s" else TYPES[c])
        engines.exec(f"CREATE TABLE {name} ({ours}) TIMESTAMP(ts) PARTITION BY {partitions}", f"CREATE TABLE {name} ({columns(lambda c: DUCKDB.get(TYPES[c], TYPES[c]))})")
        rows = list(maker.rows(0, count, number == 3, number == 5))
        size = 10_000 if count > ROWS_MAX else r.choice([10_000, 400, 70])
        for at in range(0, len(rows), size):
            engines.exec(maker.insert(name, rows[at: at + size]))
            if r.random() < 0.3:
                for cursor in engines.ours:
                    cursor.execute(f"ALTER TABLE {name} SEAL")
        engines.ours[1].execute(view_of(name, "1h" if number % 2 else "15m"))
    return Maker(r, tables, start, large=1)


def change(engines, maker, number, ids):
    """Rows of a table come, change or go; (the table, how large an `id` may be now)."""
    r, table = maker.r, maker.r.choice(maker.tables)
    if number % 40 == 39:
        # More than all before it: rows that were changed later come later, and among those of one statement those that did before.
        changed = maker.change(table, ids + 1)
        engines.exec(changed.ours, changed.theirs)
        ids += ids + 1
        if number % 80 == 79:
            engines.ours[1].execute(f"REFRESH MATERIALIZED VIEW {table}_view")
    elif r.random() < 0.15:
        engines.exec(f"TRUNCATE TABLE {table}")
    elif r.random() < 0.15:
        # A column that no query names comes or goes.
        for cursor in engines.ours:
            names = {row[0] for row in cursor.execute(f"SELECT column_name FROM information_schema.columns WHERE table_name = '{table}'")}
            cursor.execute(f"ALTER TABLE {table} {'DROP' if 'other' in names else 'ADD'} COLUMN other{'' if 'other' in names else ' LONG'}")
    else:
        count = r.choice([1, 3, 50])
        engines.exec(maker.insert(table, maker.rows(ids + 1, count, r.random() < 0.2)))
        ids += count
        if r.random() < 0.2:
            for cursor in engines.ours:
                cursor.execute(f"ALTER TABLE {table} SEAL")
    return table, ids


def ask_round(engines, seed, count, tell):
    """(how many were compared, shapes that were not)"""
    r = random.Random(seed)
    maker = prepare(engines, seed, r)
    compared, refused, before, ids = 0, collections.Counter(), collections.deque(maxlen=KEPT), max(ROWS, ROWS_MAX)

    def ask(query):
        nonlocal compared
        is_bound = bool(query.kinds) and query.shape != "distinct_on" and r.random() < 0.2  # there two parameters may have to be one
        found, expected = engines.ask(query, is_bound)
        if expected is None:
            refused[query.shape] += 1
            return
        compared += 1
        for answer, settings in zip(found, SETTINGS):
            if answer != expected:
                tell(f"RANDOM_SEED={seed} query {number} {query.shape} {settings or ''}{' bound' if is_bound else ''}\n{query.ours}\n{query.theirs}\n{difference(answer, expected)}")
                break

    for number in range(count):
        if number % 10 == 9:
            table, ids = change(engines, maker, number, ids)
            of_table = [query for query in before if re.search(rf"\b{table}\b", query.ours)]
            for query in r.sample(of_table, min(len(of_table), 4)):
                ask(query)
                ask(maker.varied(query))
        query = maker.query()
        ask(query)
        if r.random() < 0.3:
            ask(maker.varied(query))
        before.append(query)
    for name in maker.tables:
        engines.ours[1].execute(f"DROP MATERIALIZED VIEW {name}_view")
        engines.exec(f"DROP TABLE {name}")
    return compared, refused


def difference(answer, expected):
    if isinstance(answer, str):
        return answer
    if sorted(answer) == sorted(expected):
        at = next(n for n, (a, b) in enumerate(zip(answer, expected)) if a != b)
        return f"in another order, from row {at} on: {answer[at]} for {expected[at]}"
    ours, theirs = collections.Counter(answer), collections.Counter(expected)
    return f"{len(answer)} rows for {len(expected)}; only ours: {list((ours - theirs).elements())[:3]}; only theirs: {list((theirs - ours).elements())[:3]}"


def test_random_queries_beside_duckdb(servers):
    seed, count = int(os.environ.get("RANDOM_SEED") or 1), int(os.environ.get("RANDOM_QUERIES") or 250)
    running = [servers(env={"TIDALITE_QUERY_TIMEOUT": f"{QUERY_SECONDS}s", **settings}).start() for settings in SETTINGS]
    engines = Engines(running)
    path, findings = os.environ.get("RANDOM_FINDINGS"), []

    def tell(text):
        if not path:
            pytest.fail(text)
        findings.append(text)
        with open(path, "a") as file:
            file.write(text + "\n\n")

    compared, refused, started = 0, collections.Counter(), time.monotonic()
    for number in range(0, count, ROUND):
        here, not_here = ask_round(engines, seed + number // ROUND, min(ROUND, count - number), tell)
        compared += here
        refused += not_here
        print(f"{compared} queries compared, seeds {seed} to {seed + number // ROUND}, {len(findings)} differ, {compared / (time.monotonic() - started):.0f}/s", flush=True)
    assert not findings
    asked = compared + refused.total()
    assert asked >= count and compared > asked * 0.8, f"only {compared} of {asked} queries ran in DuckDB: {refused}"
    for server in running:
        assert server.stop() == 0
