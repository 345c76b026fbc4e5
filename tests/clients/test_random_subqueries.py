"""Statements with sub-queries by chance beside PostgreSQL, with fast operators and without: as text, prepared, with
parameters and over HTTP.

`RANDOM_STATEMENTS=5000 RANDOM_SEED=7 pytest --timeout=0 test_random_subqueries.py` asks more and others. Without, the seed is
the day. Statements come in rounds of 100, each with tables of its own, of the seed and those after it. With
`RANDOM_FINDINGS=file` what differs is written there and the rest is asked, too.
"""

import datetime as dt
import decimal
import os
import random

import duckdb
import psycopg
import pytest
from postgres import Postgres, programs
from random_subqueries import COLUMNS, Maker
from server import SqlError

ROUND = 100
SETTINGS = [{}, {"TIDALITE_QUERY_FAST_OPERATORS": "false"}]
SIZES = {"r0": 0, "r1": 1, "r2": 4, "r3": 7, "r4": 5}
TIMED = "r4"
"""The table with a designated timestamp."""


def comparable(rows, is_ordered):
    """Returns equal keys for equal rows, independent of the types and texts of the protocols."""
    def of(value):
        if value is None or isinstance(value, bool):
            return str(value)
        if isinstance(value, dt.datetime):
            return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        if isinstance(value, (int, float, decimal.Decimal)):
            return "0" if value == 0 else f"{float(value):.9g}"
        try:
            return of(float(value))
        except ValueError:
            return value
    out = [tuple(map(of, row)) for row in rows]
    return out if is_ordered else sorted(out)


def over_pgwire(cursor, statement, parameters=None, **options):
    cursor.execute(statement, parameters, **options)
    return cursor.fetchall() if cursor.description else []


class Engines:
    def __init__(self, servers, postgres):
        self.servers = servers
        self.cursors = [psycopg.connect(host="127.0.0.1", port=one.pg_port, user="u", dbname="d", autocommit=True).cursor() for one in servers]
        self.postgres = postgres.connect().cursor()
        self.duckdb = duckdb.connect(config={"threads": 1})

    def prepare(self, r):
        """New tables."""
        maker = Maker(r, list(SIZES))
        for name, count in {**SIZES, "changed": 0}.items():
            types = lambda n: ", ".join(f"{column} {of[n]}" for column, of in COLUMNS.items())
            timed = " TIMESTAMP(u) PARTITION BY DAY" if name == TIMED else ""
            rows = [[maker.value("time") if value is None and column == "u" and timed else value for value, column in zip(row, COLUMNS)] for row in maker.rows(count)]
            insert = maker.insert_of(name, rows) if rows else "SELECT 1"
            for one in [*self.cursors, self.postgres, self.duckdb]:
                one.execute(f"DROP TABLE IF EXISTS {name}")
                one.execute(f"CREATE TABLE {name} ({types(1)}){timed}" if one in self.cursors else f"CREATE TABLE {name} ({types(2)})")
                one.execute(insert)
        return maker

    def copied(self, one, statement):
        """Restores the rows that statements change; they are read again after the statement."""
        if statement.changes:
            one.execute(f"DELETE FROM {statement.changes}")
            one.execute(f"INSERT INTO {statement.changes} SELECT * FROM {statement.source}")

    def answer(self, one, statement, ask):
        try:
            self.copied(one, statement)
            rows = ask()
            if statement.changes:
                rows = one.execute(f"SELECT * FROM {statement.changes}").fetchall()
            return comparable(rows, statement.is_ordered)
        except (psycopg.Error, duckdb.Error, SqlError) as error:
            return str(error)

    def ways(self, number):
        """The ways to run a statement: (name, server, function that returns the answer)."""
        cursor, server = self.cursors[number], self.servers[number]
        return {
            "text": lambda s: self.answer(cursor, s, lambda: over_pgwire(cursor, s.text)),
            "prepared": lambda s: self.answer(cursor, s, lambda: over_pgwire(cursor, s.text, prepare=True)),
            "parameters": lambda s: self.answer(cursor, s, lambda: over_pgwire(cursor, *s.bound)),
            "http": lambda s: self.answer(cursor, s, lambda: server.exec(s.text, quoteNotFinite="true").get("dataset", [])),
        }


def test_random_subqueries_beside_postgres(servers):
    if programs() is None:
        pytest.skip("there is no PostgreSQL server here (initdb and postgres, package postgresql-15)")
    seed = int(os.environ.get("RANDOM_SEED") or dt.date.today().strftime("%Y%m%d"))
    count, path = int(os.environ.get("RANDOM_STATEMENTS") or 250), os.environ.get("RANDOM_FINDINGS")
    postgres = Postgres().start()
    try:
        running = [servers(env={"TIDALITE_QUERY_TIMEOUT": "20s", **settings}).start() for settings in SETTINGS]
        findings, compared = [], 0
        engines = Engines(running, postgres)
        for at in range(0, count, ROUND):
            compared += ask_round(engines, seed + at // ROUND, min(ROUND, count - at), findings)
            for text in findings[:]:
                if not path:
                    pytest.fail(text)
                with open(path, "a") as file:
                    file.write(text + "\n\n")
                findings.remove(text)
        print(f"{compared} statements compared from seed {seed} on")
        assert compared >= count * 0.95, f"only {compared} of {count} statements ran in PostgreSQL"
        for server in running:
            assert server.stop() == 0
    finally:
        postgres.stop()


def ask_round(engines, seed, count, findings):
    """Adds differences to `findings`; returns the number of compared statements."""
    r = random.Random(seed)
    maker, compared = engines.prepare(r), 0
    for number in range(count):
        statement = maker.statement()
        expected = engines.answer(engines.postgres, statement, lambda: over_pgwire(engines.postgres, statement.text))
        if isinstance(expected, str):
            continue
        compared += 1
        chosen = [(0, "text"), (1, "text"), (0, r.choice(["prepared", "parameters", "http"]))]
        for which, way in chosen:
            found = engines.ways(which)[way](statement)
            if found != expected:
                other = engines.answer(engines.duckdb, statement, lambda: engines.duckdb.execute(statement.text).fetchall())
                findings.append(f"RANDOM_SEED={seed} statement {number} {statement.shape} by {way} {SETTINGS[which] or ''}\n{statement.text}\n"
                                f"found:      {str(found)[:800]}\nPostgreSQL: {str(expected)[:800]}\nDuckDB:     {'the same' if other == expected else str(other)[:300]}")
                break
    return compared
