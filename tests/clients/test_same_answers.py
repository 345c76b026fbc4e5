"""The same query over the same rows gives the same answer, however they are partitioned, came in, are stored and read.

Tables of every kind hold the rows of one table, and servers of several settings hold them all. Queries by chance, and
those of time-series clauses, are asked of all. `RANDOM_QUERIES=5000 RANDOM_SEED=7` asks more and others.
"""

import os
import random

from server import SqlError
from random_queries import COLUMNS, TYPES, Maker, literal
from test_random_queries import comparable

KINDS = list(COLUMNS.values())
# Name, partitions, type of the text, whether rows come in order, rows of one INSERT, whether they are merged in between.
TABLES = [("by_day", "DAY", "SYMBOL", True, 1000, False), ("by_hour", "HOUR", "SYMBOL", False, 37, True), ("by_none", "NONE", "VARCHAR", False, 1000, True),
          ("by_month", "MONTH", "SYMBOL", False, 11, False), ("by_week", "WEEK", "VARCHAR", True, 100, True)]
SETTINGS = [{}, {"TIDALITE_QUERY_THREADS": "1"}, {"TIDALITE_QUERY_THREADS": "5", "TIDALITE_CACHE_BYTES": "1MiB", "TIDALITE_STAGING_BYTES": "1MiB"}]
CLAUSES = [
    "SELECT ts, count(), sum(a), min(x), max(x) FROM {t} SAMPLE BY {stride} {fill} {align}",
    "SELECT ts, s, count(), sum(a) FROM {t} WHERE a > {n} SAMPLE BY {stride} {fill}",
    "SELECT ts, s, a FROM {t} WHERE b < {n} LATEST ON ts PARTITION BY s",
    "SELECT l.ts, l.a, r.b FROM {t} l ASOF JOIN {t} r ON (s) TOLERANCE 1h WHERE l.a > {n}",
    "SELECT l.ts, l.a, r.ts FROM {t} l LT JOIN (SELECT * FROM {t} WHERE a < {n}) r",
    "SELECT l.ts, l.a, count(), sum(r.a), min(r.x) FROM {t} l WINDOW JOIN {t} r ON (s) RANGE BETWEEN 2 hours PRECEDING AND CURRENT ROW EXCLUDE PREVAILING",
    "SELECT * FROM {t} WHERE ts IN '2024-01-0{d};3h' AND (a > {n} OR s = 'a')",
    "SELECT ts, a FROM {t} WHERE ts BETWEEN '2024-01-02' AND '2024-01-0{d}T07' ORDER BY ts DESC, a, b, x LIMIT 20",
    "SELECT count(), count(DISTINCT s), min(ts), max(ts) FROM {t} WHERE dateadd('h', {d}, ts) > '2024-01-02'",
    "SELECT * FROM {t} PIVOT (sum(a) FOR s IN ('a', 'b') GROUP BY f)",
]


def clause(r):
    form = r.choice(CLAUSES)
    fill = r.choice(["", "FILL(NULL)", "FILL(PREV)", "FILL(0)"])
    align = r.choice(["", "ALIGN TO CALENDAR TIME ZONE 'Europe/London'", "ALIGN TO CALENDAR WITH OFFSET '00:15'"])
    return form.replace("{stride}", r.choice(["15m", "1h", "1d", "1w"])).replace("{fill}", fill).replace("{align}", align).replace("{n}", str(r.randrange(-3, 12))).replace("{d}", str(r.randrange(1, 4)))


def fill(server, rows, table):
    name, partitions, text, is_ordered, size, is_settled = table
    columns = ", ".join(f"{c} {text if c == 's' else TYPES[c]}" for c in COLUMNS)
    server.exec(f"CREATE TABLE {name} ({columns}) TIMESTAMP(ts) PARTITION BY {partitions}")
    rows = list(rows)
    if not is_ordered:
        random.Random(5).shuffle(rows)
    for at in range(0, len(rows), size):
        values = ", ".join("(" + ", ".join(literal(v, k) for v, k in zip(row, KINDS)) + ")" for row in rows[at: at + size])
        server.exec(f"INSERT INTO {name} VALUES {values}")
        if is_settled and at % (3 * size) == 0:
            server.exec(f"ALTER TABLE {name} SEAL")


def test_answers_do_not_hang_on_how_rows_are_kept(servers):
    seed, count = int(os.environ.get("RANDOM_SEED") or 1), int(os.environ.get("RANDOM_QUERIES") or 120)
    r = random.Random(seed)
    maker = Maker(r, [])
    # Times differ, so that there is one latest row and one order.
    times = sorted({maker.value("time") for _ in range(400)})
    rows = [(n, ts, *[None if r.random() < 0.15 else maker.value(k) for k in KINDS[2:]]) for n, ts in enumerate(times)]
    running = [servers(env=settings).start() for settings in SETTINGS]
    for server in running:
        for table in TABLES:
            fill(server, rows, table)
    queries = Maker(r, ["{t}"])
    for number in range(count):
        query = queries.query().ours if r.random() < 0.6 else clause(r)
        answers = {}
        for place, server in enumerate(running):
            # All tables on one server, one on each of the others.
            for name, *_ in TABLES if place == number % len(running) else r.sample(TABLES, 1):
                try:
                    answers[place, name] = comparable(server.rows(query.replace("{t}", name)))
                except SqlError as error:
                    answers[place, name] = str(error.answer.get("error")).replace(name, "{t}")
        first = next(iter(answers.values()))
        for where, answer in answers.items():
            assert answer == first, f"RANDOM_SEED={seed} query {number} on {where}, not as on {next(iter(answers))}:\n{query}\n{answer[:5]}\n{first[:5]}"
    for server in running:
        assert server.stop() == 0
