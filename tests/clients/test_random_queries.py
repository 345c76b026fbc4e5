"""Queries by chance over tables by chance, beside DuckDB.

`RANDOM_QUERIES=100000 RANDOM_SEED=7 pytest test_random_queries.py` asks more and others; without, they are the same each time. What docs/semantics.md lists
as different is not generated: integer division is written for each engine.
"""

import datetime as dt
import decimal
import math
import os
import random

import duckdb
import pytest
from server import SqlError

COLUMNS = {"a": "long", "b": "long", "x": "double", "s": "text", "f": "bool", "ts": "time"}
T0 = dt.datetime(2024, 1, 1)


def literal(value, kind):
    if value is None:
        return "NULL"
    if kind == "text":
        return f"'{value}'"
    return f"'{value.isoformat()}'" if kind == "time" else str(value).lower()


class Maker:
    """Both texts of a query: they differ where the engines' spellings do."""

    def __init__(self, r, tables):
        self.r, self.tables = r, tables

    def value(self, kind):
        r = self.r
        return {"long": lambda: r.randrange(-5, 20), "double": lambda: r.randrange(-8, 40) / 4, "text": lambda: r.choice(["", "a", "b", "ab", "B", "zz"]),
                "bool": lambda: r.random() < 0.5, "time": lambda: T0 + dt.timedelta(seconds=r.randrange(0, 200_000))}[kind]()

    def expr(self, kind, names, depth=2):
        """(ours, theirs)"""
        r = self.r
        columns = [n for n in names if COLUMNS[n.split(".")[-1]] == kind]
        if depth == 0 or r.random() < 0.35:
            if columns and r.random() < 0.8:
                return (c := r.choice(columns)), c
            text = literal(self.value(kind), kind)
            return (f"TIMESTAMP {text}",) * 2 if kind == "time" else (text, text)
        sub = lambda k: self.expr(k, names, depth - 1)
        both = lambda form, *parts: (form.format(*[p[0] for p in parts]), form.format(*[p[1] for p in parts]))
        if kind in ("long", "double"):
            forms = ["({} + {})", "({} - {})", "({} * {})", "coalesce({}, {})", "nullif({}, {})", "greatest({}, {})", "least({}, {})"]
            pick = r.randrange(len(forms) + 3)
            if pick < len(forms):
                return both(forms[pick], sub(kind), sub(kind))
            if pick == len(forms):
                return both("(CASE WHEN {} THEN {} ELSE {} END)", sub("bool"), sub(kind), sub(kind))
            if pick == len(forms) + 1:
                return both("abs({})", sub(kind))
            if kind == "double":
                return both("({} / 4)", sub(kind))
            a = sub("long")
            return f"({a[0]} / 3)", f"CAST(trunc({a[1]} / 3.0) AS BIGINT)"
        if kind == "text":
            return r.choice([lambda: both("upper({})", sub("text")), lambda: both("lower({})", sub("text")), lambda: both("coalesce({}, {})", sub("text"), sub("text")),
                             lambda: both("({} || {})", sub("text"), sub("text")), lambda: both("substring({}, 1, 1)", sub("text"))])()
        if kind == "time":
            return both("coalesce({}, {})", sub("time"), sub("time"))
        other = r.choice(["long", "double", "text", "time"])
        return r.choice([lambda: both("({} " + r.choice(["=", "<>", "<", "<=", ">", ">="]) + " {})", sub(other), sub(other)),
                         lambda: both("({} AND {})", sub("bool"), sub("bool")), lambda: both("({} OR {})", sub("bool"), sub("bool")),
                         lambda: both("(NOT {})", sub("bool")), lambda: both("({} IS NULL)", sub(other)), lambda: both("({} IS NOT DISTINCT FROM {})", sub(other), sub(other)),
                         lambda: both("({} BETWEEN {} AND {})", sub("long"), sub("long"), sub("long")), lambda: both("({} IN ({}, {}))", sub("long"), sub("long"), sub("long")),
                         lambda: both("({} LIKE 'a%')", sub("text"))])()

    def aggregate(self, names):
        kind = self.r.choice(["long", "double"])
        e = self.expr(kind, names, 1)
        form = self.r.choice(["count({})", "sum({})", "min({})", "max({})", "count(DISTINCT {})", "avg({})"] + (["median({})"] if kind == "double" else []))
        condition = self.expr("bool", names, 1) if self.r.random() < 0.3 else None
        return tuple(form.format(e[i]) + (f" FILTER (WHERE {condition[i]})" if condition else "") for i in (0, 1))

    def source(self):
        r = self.r
        t = r.choice(self.tables)
        if r.random() < 0.6:
            return t, t, list(COLUMNS)
        u, kind = r.choice(self.tables), r.choice(["JOIN", "LEFT JOIN", "FULL JOIN"])
        text = f"{t} l {kind} {u} r ON l.a = r.a AND l.s = r.s"
        return text, text, [f"{side}.{n}" for side in "lr" for n in COLUMNS]

    def several(self):
        """Two queries and an operation of sets."""
        r = self.r
        kinds = [r.choice(["long", "text", "bool"]) for _ in range(r.randrange(1, 3))]
        sides = []
        for _ in range(2):
            ours, theirs, names = self.source()
            where = self.expr("bool", names, 1)
            items = [self.expr(k, names, 1) for k in kinds]
            sides.append(["SELECT " + ", ".join(f"{e[i]} AS c{n}" for n, e in enumerate(items)) + f" FROM {(ours, theirs)[i]} WHERE {where[i]}" for i in (0, 1)])
        word = r.choice(["UNION", "UNION ALL", "EXCEPT", "INTERSECT"])
        return [f"{sides[0][i]} {word} {sides[1][i]}" for i in (0, 1)]

    def asked(self):
        """Sub-queries among what is selected and in WHERE."""
        r = self.r
        t, u = r.choice(self.tables), r.choice(self.tables)
        names = [f"o.{n}" for n in COLUMNS]
        inner = self.expr("bool", [f"i.{n}" for n in COLUMNS], 1)
        key = r.choice(["a", "s", "b"])
        forms = ["EXISTS (SELECT 1 FROM {u} i WHERE i.{key} = o.{key} AND {c})", "NOT EXISTS (SELECT 1 FROM {u} i WHERE i.{key} = o.{key} AND {c})",
                 "o.{key} IN (SELECT i.{key} FROM {u} i WHERE {c})", "o.{key} NOT IN (SELECT i.{key} FROM {u} i WHERE {c})",
                 "(SELECT max(i.a) FROM {u} i WHERE i.{key} = o.{key} AND {c}) > o.a", "(SELECT count(*) FROM {u} i WHERE i.{key} = o.{key}) > 2",
                 "(SELECT max(i.a) FROM {u} i WHERE i.{key} < o.{key} AND {c}) > o.a", "(SELECT count(*) FROM {u} i WHERE i.ts < o.ts AND {c}) > 3",
                 "EXISTS (SELECT 1 FROM {u} i WHERE i.{key} < o.{key} AND {c})", "o.a IN (SELECT i.a FROM {u} i WHERE i.{key} <> o.{key} AND {c})",
                 "(SELECT i.a FROM {u} i WHERE i.{key} = o.{key} AND {c} ORDER BY i.a LIMIT 1) > o.b",
                 "(SELECT sum(g.c) FROM (SELECT i.b, count(*) AS c FROM {u} i WHERE i.{key} <= o.{key} GROUP BY i.b) g WHERE g.b < o.b) > 1",
                 "(SELECT count(*) FROM (SELECT i.a FROM {u} i WHERE i.a < o.a UNION SELECT i.b FROM {u} i WHERE {c}) w) > o.b"]
        chosen = r.choice(forms)
        form = lambda i: chosen.replace("{u}", u).replace("{key}", key).replace("{c}", inner[i])
        if r.random() < 0.5:
            e = self.expr("long", names, 1)
            return [f"SELECT o.a, {e[i]} AS c, {form(i)} AS found FROM {t} o" for i in (0, 1)]
        where = self.expr("bool", names, 1)
        return [f"SELECT o.a, o.b, o.s FROM {t} o WHERE {form(i)} AND {where[i]}" for i in (0, 1)]

    def lateral(self):
        """Tables that look at the one before them."""
        r = self.r
        t, u = r.choice(self.tables), r.choice(self.tables)
        inner = self.expr("bool", [f"i.{n}" for n in COLUMNS] + [f"o.{n}" for n in COLUMNS], 2)
        value = self.expr("long", [f"i.{n}" for n in COLUMNS] + [f"o.{n}" for n in COLUMNS], 1)
        form = r.choice(["SELECT max({v}) AS v, count(*) AS n FROM {u} i WHERE {c}", "SELECT {v} AS v, 1 AS n FROM {u} i WHERE {c} AND i.a = o.a",
                         "SELECT {v} AS v, 1 AS n FROM {u} i WHERE {c} ORDER BY 1 NULLS LAST LIMIT 2", "SELECT i.s, count({v}) AS v, 2 AS n FROM {u} i WHERE {c} GROUP BY i.s"])
        join = r.choice(["CROSS JOIN LATERAL ({q}) l", "LEFT JOIN LATERAL ({q}) l ON true", ", LATERAL ({q}) l"])
        query = lambda i: join.replace("{q}", form.replace("{u}", u).replace("{v}", value[i]).replace("{c}", inner[i]))
        return [f"SELECT o.ts, o.a, l.v, l.n FROM {t} o {query(i)}" for i in (0, 1)]

    def limited(self):
        """Some rows of an order that is whole."""
        r = self.r
        ours, theirs, names = self.source()
        items = [self.expr(r.choice(["long", "double", "text", "bool", "time"]), names, 1) for _ in range(r.randrange(1, 4))]
        order = ", ".join(f"{n + 1} {r.choice(['', 'DESC'])} NULLS {r.choice(['FIRST', 'LAST'])}" for n in range(len(items)))
        tail = f" ORDER BY {order} LIMIT {r.randrange(0, 20)} OFFSET {r.randrange(0, 5)}"
        return ["SELECT " + ", ".join(f"{e[i]} AS c{n}" for n, e in enumerate(items)) + f" FROM {(ours, theirs)[i]}{tail}" for i in (0, 1)]

    def latest(self):
        """ASOF and LT JOIN; of rows of one time only the time is compared."""
        r = self.r
        t, u = r.choice(self.tables), r.choice(self.tables)
        where = self.expr("bool", [f"l.{n}" for n in COLUMNS], 1)
        inner = self.expr("bool", list(COLUMNS), 1)
        word, op = r.choice([("ASOF", ">="), ("LT", ">")])
        keyed = r.random() < 0.6
        on = " ON (s)" if keyed else ""
        and_on = "l.s = r.s AND " if keyed else ""
        return [f"SELECT l.ts, l.a, r.ts AS found FROM {t} l {word} JOIN (SELECT * FROM {u} WHERE {inner[0]}) r{on} WHERE {where[0]}",
                f"SELECT l.ts, l.a, r.ts AS found FROM {t} l ASOF LEFT JOIN (SELECT * FROM {u} WHERE {inner[1]}) r ON {and_on}l.ts {op} r.ts WHERE {where[1]}"]

    def sampled(self):
        r = self.r
        t = r.choice(self.tables)
        where = self.expr("bool", list(COLUMNS), 1)
        aggregates = [self.aggregate(list(COLUMNS)) for _ in range(r.randrange(1, 3))]
        stride, interval = r.choice([("15m", "15 minutes"), ("1h", "1 hour"), ("1d", "1 day"), ("7h", "7 hours"), ("1M", "1 month")])
        key = r.choice(["", "s, ", "f, "])
        lists = [", ".join(f"{e[i]} AS c{n}" for n, e in enumerate(aggregates)) for i in (0, 1)]
        bucket = f"time_bucket(INTERVAL '{interval}', ts, TIMESTAMP '1970-01-01')"
        return [f"SELECT ts, {key}{lists[0]} FROM {t} WHERE {where[0]} SAMPLE BY {stride}",
                f"SELECT {bucket} AS t, {key}{lists[1]} FROM {t} WHERE {where[1]} GROUP BY {', '.join(str(n + 1) for n in range(2 if key else 1))}"]

    def query(self):
        r = self.r
        ours, theirs, names = self.source()
        where = self.expr("bool", names) if r.random() < 0.7 else ("true", "true")
        tail = [f" FROM {ours} WHERE {where[0]}", f" FROM {theirs} WHERE {where[1]}"]
        shape = r.choice(["plain", "grouped", "distinct", "window", "total", "several", "asked", "lateral", "limited", "latest", "sampled"])
        if shape in ("several", "asked", "lateral", "limited", "latest", "sampled"):
            return getattr(self, shape)()
        kinds = [r.choice(["long", "double", "text", "bool", "time"]) for _ in range(r.randrange(1, 4))]
        items = [self.expr(k, names) for k in kinds]
        if shape in ("plain", "distinct"):
            word = "DISTINCT " if shape == "distinct" else ""
            return [f"SELECT {word}" + ", ".join(f"{e[i]} AS c{n}" for n, e in enumerate(items)) + tail[i] for i in (0, 1)]
        if shape == "total":
            aggregates = [self.aggregate(names) for _ in range(2)]
            return ["SELECT " + ", ".join(f"{e[i]} AS c{n}" for n, e in enumerate(aggregates)) + tail[i] for i in (0, 1)]
        if shape == "grouped":
            aggregates = [self.aggregate(names) for _ in range(r.randrange(1, 3))]
            keys = ", ".join(str(n + 1) for n in range(len(items)))
            having = " HAVING count(*) > 1" if r.random() < 0.3 else ""
            return ["SELECT " + ", ".join(f"{e[i]} AS c{n}" for n, e in enumerate(items + aggregates)) + tail[i] + f" GROUP BY {keys}{having}" for i in (0, 1)]
        order = ", ".join(names)
        frame = r.choice(["", " ROWS BETWEEN 2 PRECEDING AND CURRENT ROW", " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING"])
        part = self.expr(r.choice(["long", "text", "bool"]), names, 1)
        value = self.expr("long", names, 1)
        function = r.choice(["sum({})", "count({})", "min({})", "max({})", "lag({})", "first_value({})"])
        if function == "lag({})":
            frame = ""
        return ["SELECT " + ", ".join(f"{e[i]} AS c{n}" for n, e in enumerate(items)) +
                f", {function.format(value[i])} OVER (PARTITION BY {part[i]} ORDER BY {order}{frame}) AS w" + tail[i] for i in (0, 1)]


def comparable(rows):
    def of(value):
        if isinstance(value, bool) or value is None:
            return str(value)
        if isinstance(value, (int, float, decimal.Decimal)):
            if isinstance(value, float) and not math.isfinite(value):
                return None
            return "0" if abs(value) < 1e-12 else f"{float(value):.9g}"
        if isinstance(value, dt.datetime):
            return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return str(value)
    return sorted([tuple(map(str, map(of, row))) for row in rows])


def test_random_queries_beside_duckdb(server):
    seed = int(os.environ.get("RANDOM_SEED") or 1)
    count = int(os.environ.get("RANDOM_QUERIES") or 250)
    print(f"RANDOM_SEED={seed}")
    r = random.Random(seed)
    db = duckdb.connect()
    tables = []
    for number, rows in enumerate([0, 1, 40, 300]):
        name = f"random_{seed}_{number}"
        tables.append(name)
        server.exec(f"CREATE TABLE {name} (ts TIMESTAMP, a LONG, b LONG, x DOUBLE, s SYMBOL, f BOOLEAN) TIMESTAMP(ts) PARTITION BY DAY")
        db.execute(f"CREATE TABLE {name} (ts TIMESTAMP, a BIGINT, b BIGINT, x DOUBLE, s VARCHAR, f BOOLEAN)")
        maker = Maker(r, [])
        values = []
        for _ in range(rows):
            row = [maker.value("time")] + [None if r.random() < 0.15 else maker.value(k) for k in ("long", "long", "double", "text", "bool")]
            values.append("(" + ", ".join(literal(v, k) for v, k in zip(row, ("time", "long", "long", "double", "text", "bool"))) + ")")
        if values:
            server.exec(f"INSERT INTO {name} VALUES {', '.join(values)}")
            db.execute(f"INSERT INTO {name} VALUES {', '.join(values)}")
    maker = Maker(r, tables)
    compared = 0
    for number in range(count):
        ours, theirs = maker.query()
        try:
            expected = comparable(db.execute(theirs).fetchall())
        except duckdb.Error:
            continue
        try:
            found = comparable(server.rows(ours))
        except SqlError as error:
            pytest.fail(f"RANDOM_SEED={seed} query {number}: {ours}\n{error}")
        assert found == expected, f"RANDOM_SEED={seed} query {number}:\n{ours}\n{theirs}"
        compared += 1
    assert compared > count * 0.8, f"only {compared} of {count} queries ran in DuckDB"
    for name in tables:
        server.exec(f"DROP TABLE {name}")
