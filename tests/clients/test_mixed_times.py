"""Joins by time between tables of different time units, with merged, staged and late rows, beside a model.

The model holds times as integers of nanoseconds and looks at every pair of rows. `RANDOM_STATEMENTS=100000 RANDOM_SEED=7`
compares more and others; without, the seed is the day.
"""

import datetime as dt
import os
import random
from dataclasses import dataclass, field

import pytest
from referees import Link

UNITS = {"TIMESTAMP": 1_000, "TIMESTAMP_NS": 1, "TIMESTAMP_MS": 1_000_000}
"""Nanoseconds of a time unit."""
ROUND = 25
# Nanoseconds since 1970: the start, the last moment before it, a day, the least and greatest times in nanoseconds.
BASES = [0, -2_000_000, 1_711_846_800_000_000_000, -9_223_372_035_000_000_000, 9_223_371_000_000_000_000]
KEYS = ["a", "b", None]


@dataclass
class Table:
    name: str
    unit: str
    rows: list = field(default_factory=list)
    """(time in nanoseconds, id, key, value) in order of arrival."""

    def by_time(self):
        """Rows with equal times keep the order of arrival."""
        return sorted(self.rows, key=lambda row: row[0])


def time_text(nanos):
    seconds, rest = divmod(nanos, 10**9)
    moment = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=seconds)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{rest:09}Z" if moment.year >= 1000 else f"{moment.year:04}-{moment:%m-%dT%H:%M:%S}.{rest:09}Z"


def time_of(r, base, unit):
    """A time near `base` that the unit represents exactly."""
    step = UNITS[unit]
    offset = r.choice([0, 0, 1, 2, 3, 5]) * r.choice([1_000, 1_000_000, 60_000_000_000]) + r.choice([0, 0, 1, 999, -1, 500_000])
    return (base + offset) // step * step


class Maker:
    def __init__(self, r, link):
        self.r, self.link = r, link

    def table(self, name, base):
        """A new table: rows in several INSERTs, late ones among them, some merged and some staged."""
        r, unit = self.r, self.r.choice(list(UNITS))
        table = Table(name, unit)
        self.link.must(f"DROP TABLE IF EXISTS {name}")
        self.link.must(f"CREATE TABLE {name} (ts {unit}, id LONG, k {r.choice(['SYMBOL', 'VARCHAR'])}, v LONG) TIMESTAMP(ts) PARTITION BY {r.choice(['DAY', 'HOUR', 'MONTH', 'NONE'])}")
        for _ in range(r.choice([0, 1, 2, 3])):
            rows = [(time_of(r, base, unit), len(table.rows) + n, r.choice(KEYS), r.randrange(-3, 9)) for n in range(r.choice([1, 4, 8]))]
            if rows:
                values = ", ".join(f"('{time_text(ts)}', {number}, {'NULL' if key is None else repr(key)}, {value})" for ts, number, key, value in rows)
                self.link.must(f"INSERT INTO {name} VALUES {values}")
                table.rows += rows
            if r.random() < 0.5:
                self.link.must(f"ALTER TABLE {name} SEAL")
        return table

    def statement(self, one, other):
        """(SQL, expected rows)"""
        return self.r.choice([self.by_time, self.by_time, self.window, self.equal, self.compared])(one, other)

    def keys(self):
        """(ON clause, whether two keys match)"""
        if self.r.random() < 0.5:
            return "", lambda a, b: True
        return " ON (k)", lambda a, b: a is not None and a == b

    def by_time(self, one, other):
        r = self.r
        word = r.choice(["ASOF", "LT"])
        on, matches = self.keys()
        nanos, text = r.choice([(None, ""), (None, ""), (2_000_000, " TOLERANCE 2T"), (1_000, " TOLERANCE 1U"), (60_000_000_000, " TOLERANCE 1m"), (0, "")])
        nanos = nanos if text else None
        expected = []
        for ts, number, key, _ in one.rows:
            before = [row for row in other.by_time() if matches(key, row[2]) and (row[0] < ts or word == "ASOF" and row[0] == ts)]
            found = before[-1] if before and (nanos is None or ts - before[-1][0] <= nanos) else None
            expected.append((number, found and found[1]))
        return f"SELECT a.id, b.id FROM {one.name} a {word} JOIN {other.name} b{on}{text}", expected

    def window(self, one, other):
        r = self.r
        on, matches = self.keys()
        low, low_text = r.choice([(0, "CURRENT ROW"), (1_000, "1 microsecond PRECEDING"), (2_000_000, "2 milliseconds PRECEDING"), (60_000_000_000, "1 minute PRECEDING")])
        high, high_text = r.choice([(0, "CURRENT ROW"), (1_000, "1 microsecond FOLLOWING"), (3_000_000, "3 milliseconds FOLLOWING")])
        is_prevailing = r.random() < 0.5
        expected = []
        for ts, number, key, _ in one.rows:
            candidates = [row for row in other.by_time() if matches(key, row[2])]
            inside = [row for row in candidates if ts - low <= row[0] <= ts + high]
            earlier = [row for row in candidates if row[0] < ts - low]
            if is_prevailing and earlier and not any(row[0] == ts - low for row in inside):
                inside = [earlier[-1], *inside]
            values = [row[3] for row in inside]
            expected.append((number, len(values), sum(values) if values else None, max(values, default=None)))
        prevailing = "INCLUDE" if is_prevailing else "EXCLUDE"
        return f"SELECT a.id, count(), sum(b.v), max(b.v) FROM {one.name} a WINDOW JOIN {other.name} b{on} RANGE BETWEEN {low_text} AND {high_text} {prevailing} PREVAILING", expected

    def equal(self, one, other):
        expected = [(row[1], found[1]) for row in one.rows for found in other.rows if row[0] == found[0]]
        return f"SELECT a.id, b.id FROM {one.name} a JOIN {other.name} b ON a.ts = b.ts", expected

    def compared(self, one, other):
        word, holds = self.r.choice([("<", lambda a, b: a < b), ("<=", lambda a, b: a <= b), (">", lambda a, b: a > b), ("<>", lambda a, b: a != b)])
        if self.r.random() < 0.5:
            expected = [(row[1], found[1]) for row in one.rows for found in other.rows if holds(row[0], found[0])]
            return f"SELECT a.id, b.id FROM {one.name} a JOIN {other.name} b ON a.ts {word} b.ts", expected
        times = {row[0] for row in other.rows}
        return f"SELECT a.id FROM {one.name} a WHERE a.ts IN (SELECT b.ts FROM {other.name} b)", [(row[1],) for row in one.rows if row[0] in times]



def sorted_rows(rows):
    return sorted(rows, key=lambda row: [(cell is None, cell or "") for cell in row])


def test_times_of_different_units(server):
    seed, count = int(os.environ.get("RANDOM_SEED") or dt.date.today().strftime("%Y%m%d")), int(os.environ.get("RANDOM_STATEMENTS") or 1000)
    link, compared = Link(server.pg_port), 0
    for at in range(0, count, ROUND):
        r = random.Random(seed + at // ROUND)
        maker, base = Maker(r, link), r.choice(BASES)
        tables = [maker.table(f"mixed_{name}", base) for name in "abc"]
        for _ in range(min(ROUND, count - at)):
            sql, expected = maker.statement(*r.sample(tables, 2))
            answer = link.ask(sql)
            expected = [tuple(None if cell is None else str(cell) for cell in row) for row in expected]
            compared += 1
            if answer.is_error or sorted_rows(answer.rows) != sorted_rows(expected):
                content = "\n".join(f"{table.name} {table.unit}: {[(time_text(row[0]), *row[1:]) for row in table.rows]}" for table in tables if table.name in sql)
                pytest.fail(f"RANDOM_SEED={seed + at // ROUND}\n{sql}\n{answer.message or sorted_rows(answer.rows)}\nfor {sorted_rows(expected)}\n{content}")
    print(f"{compared} joins compared, seed {seed}")
    for name in "abc":
        link.must(f"DROP TABLE IF EXISTS mixed_{name}")
