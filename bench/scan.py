"""Filters: how fast rows are found, and the other columns of those that are found, beside DuckDB on the same rows.

In: binaries of Tidalite by name, `--binary now=PATH --binary before=PATH`. Out: a table in Markdown. Every system makes
the same rows by the same integer arithmetic and its answers are compared. Queries run in turns, system after system, hot;
medians of wall-clock time as the client sees it: HTTP for Tidalite (`SELECT 1` shows what that and planning take),
in process for DuckDB, whose table is in a file, checkpointed, with as many threads as there are processors.
"""

import argparse
import os
import statistics
import tempfile
import time

import duckdb
import systems
from tidalite_bench.measure import ratio

# Multiplied, modulo a prime: as good as random, and the same everywhere.
HASH = "(v * {} % 2147483647)"
COLUMNS = [
    ("latitude", "({h} % 18000000) / 100000.0 - 90.0", 48271),
    ("longitude", "({h} % 36000000) / 100000.0 - 180.0", 69621),
    ("elevation", "({h} % 5000) * 1.0", 39373),
    ("velocity", "({h} % 101) * 1.0", 16807),
    ("heading", "({h} % 360) * 1.0", 40692),
    ("grade", "({h} % 100) * 1.0", 40014),
    ("fuel_consumption", "({h} % 500) / 10.0", 742938),
]
HOSTS = 4000
ALL = ", ".join(f"max({name})" for name, *_ in COLUMNS)


def computed(columns):
    """As they are selected of a number v."""
    return ", ".join(f"{text.format(h=HASH.format(factor))} AS {name}" for name, text, factor, *_ in columns)


def rows_sql(source, time_of):
    return f"SELECT {time_of} AS ts, v AS id, 'host_' || (v % {HOSTS}) AS host, {computed(COLUMNS)} FROM {source}"


QUERIES = [
    ("two doubles, count", "SELECT count(*) FROM readings WHERE velocity > 75 AND fuel_consumption < 10", 16),
    ("host, count", "SELECT count(*) FROM readings WHERE host = 'host_7'", 4),
    ("host, all columns", f"SELECT {ALL} FROM readings WHERE host = 'host_7'", 0),
    ("two hosts and a double", f"SELECT {ALL} FROM readings WHERE host IN ('host_7', 'host_8') AND velocity > 50", 0),
    ("point by id, in order", f"SELECT {ALL} FROM readings WHERE id = 2718281", 0),
    ("point by latitude, no order", f"SELECT {ALL} FROM readings WHERE latitude = 12.34567", 8),
    ("five minutes, one double", f"SELECT {ALL} FROM readings WHERE ts >= '2024-01-01 01:00:00' AND ts < '2024-01-01 01:05:00' AND velocity > 75", 0),
    ("1 %, count", "SELECT count(*) FROM readings WHERE velocity > 99", 8),
    ("1 %, all columns", f"SELECT {ALL} FROM readings WHERE velocity > 99", 0),
    ("10 %, all columns", f"SELECT {ALL} FROM readings WHERE velocity > 90", 0),
    ("50 %, count", "SELECT count(*) FROM readings WHERE velocity > 50", 8),
    ("50 %, all columns", f"SELECT {ALL} FROM readings WHERE velocity > 50", 0),
    ("not equal, count", "SELECT count(*) FROM readings WHERE velocity <> 50", 8),
    ("all columns, no filter", f"SELECT {ALL} FROM readings", 0),
]


class Duck:
    def __init__(self, folder):
        self.connection = duckdb.connect(os.path.join(folder, "duck.db"))

    def load(self, rows):
        source = rows_sql(f"(SELECT range AS v FROM range({rows}))", "TIMESTAMP '2024-01-01' + to_seconds(v // 4000 * 10)")
        self.connection.execute(f"CREATE TABLE readings AS {source} ORDER BY id")
        self.connection.execute("CHECKPOINT")

    def ask(self, sql):
        return [list(row) for row in self.connection.execute(sql).fetchall()]

    def stop(self):
        self.connection.close()


class Tidalite:
    def __init__(self, name, binary, folder):
        os.makedirs(os.path.join(folder, name))
        self.system = systems.Tidalite(os.path.join(folder, name), {"TIDALITE_PG_LISTEN": "off", **self.environment(name)})
        self.system.binary = binary
        self.system.start()

    def environment(self, name):
        return {}

    def load(self, rows):
        columns = ", ".join(f"{name} DOUBLE" for name, *_ in COLUMNS)
        micros = "to_timestamp_micros(1704067200000000 + v / 4000 * 10000000)"
        self.load_in_chunks("readings", f"id LONG, host SYMBOL, {columns}", rows, lambda source: rows_sql(source, micros))

    def load_in_chunks(self, table, columns, rows, select, chunk=400_000):
        self.run(f"CREATE TABLE {table} (ts TIMESTAMP, {columns}) TIMESTAMP(ts) PARTITION BY DAY")
        for first in range(0, rows, chunk):
            source = f"(SELECT value AS v FROM generate_series({first}, {min(rows, first + chunk) - 1}) AS value)"
            self.run(f"INSERT INTO {table} {select(source)}")
        self.system.wait_settled([table], timeout=600)

    def run(self, sql):
        answer = self.system.sql(sql)
        if "error" in answer:
            raise RuntimeError(f"{sql}: {answer['error']}")
        return answer

    def ask(self, sql):
        return self.run(sql)["dataset"]

    def stop(self):
        self.system.stop()


def timed(system, sql):
    start = time.perf_counter()
    answer = system.ask(sql)
    return time.perf_counter() - start, answer


def command(description, peers, tidalite, rows, runs, **how):
    """A benchmark of this kind: `peers` are names and classes, the first of which is the one to be compared with."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--binary", action="append", required=True, metavar="NAME=PATH")
    parser.add_argument("--rows", type=int, default=rows)
    parser.add_argument("--runs", type=int, default=runs)
    parser.add_argument("--settle-seconds", type=float, default=0, help="wait so long after the load, for sealing")
    parser.add_argument("--scratch", default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
        found = {name: system(folder) for name, system in peers}
        for pair in options.binary:
            name, binary = pair.split("=", 1)
            found[name] = tidalite(name, binary, folder)
        try:
            for name, system in found.items():
                start = time.perf_counter()
                system.load(options.rows)
                print(f"loaded {name} in {time.perf_counter() - start:.1f} s", flush=True)
            time.sleep(options.settle_seconds)
            measure(found, options, ours=options.binary[0].split("=", 1)[0], peers=[name for name, _ in peers], **how)
        finally:
            for system in found.values():
                system.stop()


def said_to(name, sql):
    """A query that is not the same to all is a text for each system and, under "", for the others."""
    return sql if isinstance(sql, str) else sql.get(name.split()[0], sql[""])


def measure(found, options, ours, peers, queries=QUERIES, alike=lambda rows: rows):
    names = list(found)
    print(f"\nload average before {os.getloadavg()}, {options.rows:,} rows, medians of {options.runs} runs in ms (spread: least to greatest)\n")
    print("| query | " + " | ".join(names) + f" | {ours}: times as fast as the best other | GB/s of plain values, {ours} |")
    print("|---|" + "--:|" * (len(names) + 2))
    floor = ("SELECT 1", "SELECT 1", 0)
    for title, sql, row_bytes in [floor, *queries]:
        times = {name: [] for name in names}
        answers = {}
        for run in range(options.runs + 2):
            for name in names:
                seconds, answers[name] = timed(found[name], said_to(name, sql))
                if run >= 2:
                    times[name].append(seconds * 1000)
        if any(alike(answer) != alike(answers[names[0]]) for answer in answers.values()):
            raise RuntimeError(f"answers differ for {sql}: {answers}")
        medians = {name: statistics.median(times[name]) for name in names}
        cells = [f"{medians[name]:.2f} ({min(times[name]):.2f} to {max(times[name]):.2f})" for name in names]
        best = min((times[name] for name in peers), key=statistics.median)
        found_ratio = ratio(best, times[ours])
        rate = f"{row_bytes * options.rows / medians[ours] / 1e6:.1f}" if row_bytes else ""
        print(f"| {title} | " + " | ".join(cells) + f" | {f'{found_ratio:.2f}×' if found_ratio else 'not told apart'} | {rate} |", flush=True)
    print(f"\nload average after {os.getloadavg()}")


if __name__ == "__main__":
    command(__doc__, [("duckdb " + duckdb.__version__, Duck)], Tidalite, 4_800_000, 9)
