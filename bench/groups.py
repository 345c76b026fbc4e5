"""Aggregates, groups and latest rows: how fast rows become groups, beside DuckDB and ClickHouse on the same rows.

In and out as with scan.py, whose clocks and checks these are: `--binary now=PATH`. The table is 10 million rows in order
of time with two symbols, a key of a million values, one of as many as rows, and doubles that are whole numbers, so that
sums are the same in any order. ClickHouse is chDB in process with as many threads as there are processors. A binary named
`general` runs with `query.fast_operators` off: DataFusion's aggregation over our scan.
"""

import json
import os

import scan

COLUMNS = [
    ("fleet", "'fleet_' || ({h} % 5)", 48271, "SYMBOL"),
    ("host", "'host_' || ({h} % 1000)", 69621, "SYMBOL"),
    ("k", "({h} % 1000000)", 16807, "LONG"),
    ("big", "({h} * 3)", 40692, "LONG"),
    ("x", "({h} % 1000) * 1.0", 39373, "DOUBLE"),
    ("y", "({h} % 500) * 1.0", 742938, "DOUBLE"),
]
ROWS_A_SECOND = 100
SUMS = ", ".join(f"sum(k + {n})" for n in range(30))

QUERIES = [
    ("sum of a double", "SELECT sum(x) FROM trips", 8),
    ("five aggregates, filtered", "SELECT count(*), sum(x), avg(y), min(k), max(k) FROM trips WHERE x > 500", 24),
    ("30 sums of k + n", f"SELECT {SUMS} FROM trips", 8),
    ("by fleet", "SELECT fleet, count(*), avg(x) FROM trips GROUP BY fleet ORDER BY fleet", 0),
    ("by host", "SELECT host, sum(x), max(y) FROM trips GROUP BY host ORDER BY host", 0),
    ("by fleet and host", "SELECT fleet, host, avg(x) FROM trips GROUP BY fleet, host ORDER BY fleet, host", 0),
    ("by hour", "SELECT date_trunc('hour', ts) AS h, avg(x) FROM trips GROUP BY h ORDER BY h", 0),
    ("sample by hour and fleet", {
        "": "SELECT ts, fleet, avg(x), max(y) FROM trips SAMPLE BY 1h ORDER BY ts, fleet",
        **dict.fromkeys(["duckdb", "clickhouse"], "SELECT date_trunc('hour', ts) AS h, fleet, avg(x), max(y) FROM trips GROUP BY h, fleet ORDER BY h, fleet"),
    }, 0),
    ("latest of each host", {
        "": "SELECT * FROM (SELECT ts, host, k FROM trips LATEST ON ts PARTITION BY host) ORDER BY host",
        "duckdb": "SELECT max(ts), host, arg_max(k, ts) FROM trips GROUP BY host ORDER BY host",
        "clickhouse": "SELECT max(ts), host, argMax(k, ts) FROM trips GROUP BY host ORDER BY host",
    }, 0),
    ("by minute and host", "SELECT date_trunc('minute', ts) AS m, host, avg(x) AS a FROM trips GROUP BY m, host ORDER BY a DESC, m, host LIMIT 10", 0),
    ("1 M keys, top 10", "SELECT k, count(*) AS n FROM trips GROUP BY k ORDER BY n DESC, k LIMIT 10", 0),
    ("1 M keys, three aggregates", "SELECT k, count(*) AS n, sum(x) AS s, avg(y) AS a FROM trips GROUP BY k ORDER BY s DESC, k LIMIT 10", 0),
    ("all keys different, top 10", "SELECT big, sum(x) AS s FROM trips GROUP BY big ORDER BY s DESC, big LIMIT 10", 0),
    ("count distinct, 1 M", "SELECT count(DISTINCT k) FROM trips", 0),
    ("distinct by fleet", "SELECT fleet, count(DISTINCT host) FROM trips GROUP BY fleet ORDER BY fleet", 0),
]


def rows_sql(source, time_of):
    return f"SELECT {time_of} AS ts, {scan.computed(COLUMNS)} FROM {source}"


class Duck(scan.Duck):
    def load(self, rows):
        source = rows_sql(f"(SELECT range AS v FROM range({rows}))", f"TIMESTAMP '2024-01-01' + to_milliseconds(v * 1000 // {ROWS_A_SECOND})")
        self.connection.execute(f"CREATE TABLE trips AS {source}")
        self.connection.execute("CHECKPOINT")


class ClickHouse:
    def __init__(self, folder):
        from chdb import session
        self.session = session.Session(os.path.join(folder, "chdb"))

    def load(self, rows):
        types = {"SYMBOL": "LowCardinality(String)", "LONG": "Int64", "DOUBLE": "Float64"}
        columns = ", ".join(f"{name} {types[kind]}" for name, *_, kind in COLUMNS)
        self.session.query("CREATE DATABASE b ENGINE = Atomic")
        self.session.query("USE b")
        self.session.query(f"CREATE TABLE trips (ts DateTime64(6, 'UTC'), {columns}) ENGINE = MergeTree ORDER BY ts")
        source = rows_sql(f"(SELECT toInt64(number) AS v FROM numbers({rows}))", f"toDateTime64(1704067200, 6, 'UTC') + toIntervalMillisecond(intDiv(v * 1000, {ROWS_A_SECOND}))")
        self.session.query("INSERT INTO trips " + source.replace("' || (", "' || toString(").replace(" * 1.0", " * toFloat64(1)"))
        self.session.query("OPTIMIZE TABLE trips FINAL")

    def ask(self, sql):
        return json.loads(str(self.session.query(sql, "JSONCompact")))["data"]

    def stop(self):
        self.session.close()


class Tidalite(scan.Tidalite):
    def environment(self, name):
        return {"TIDALITE_QUERY_FAST_OPERATORS": "false"} if name == "general" else {}

    def load(self, rows):
        columns = ", ".join(f"{name} {kind}" for name, *_, kind in COLUMNS)
        micros = f"to_timestamp_micros(1704067200000000 + v * 1000000 / {ROWS_A_SECOND})"
        self.load_in_chunks("trips", columns, rows, lambda source: rows_sql(source, micros))


def plain(value):
    """The same value the same however a system writes it: whole numbers as such, times to the second."""
    if hasattr(value, "isoformat"):
        value = value.isoformat(sep=" ")
    if isinstance(value, str) and value[:2] == "20":
        return value.replace("T", " ").rstrip("Z").split(".")[0]
    try:
        return float(value)
    except (TypeError, ValueError):
        return value


def alike(rows):
    return [[plain(value) for value in row] for row in rows]


if __name__ == "__main__":
    scan.command(__doc__, [("duckdb", Duck), ("clickhouse", ClickHouse)], Tidalite, 10_000_000, 5, queries=QUERIES, alike=alike)
