#!/usr/bin/env python3
"""Compares builds of Tidalite: one server of each with the same rows, the same statements in turns.

    python3 bench/builds.py before=PATH after=PATH [--rounds 7] [--rows 4000000] [--out PAGE.md]

The first build is the base of all ratios. A second server of the base runs beside it: its ratio is the noise of the
measurement. Answers must agree (doubles to nine digits) before a time counts. A time is the median of the rounds'
shortest times; the order of the servers changes with each round.
"""

import argparse
import http.client
import itertools
import json
import math
import os
import shutil
import socket
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

SETUP = [
    "CREATE TABLE readings (ts TIMESTAMP, truck SYMBOL, fleet SYMBOL, speed DOUBLE, load DOUBLE, fuel DOUBLE, status INT, odometer LONG) TIMESTAMP(ts) PARTITION BY DAY",
    "INSERT BATCH 1000000 INTO readings SELECT timestamp_sequence('2025-01-01', 200000) ts, 'truck_' || (x * 7919 % 1000), 'fleet_' || (x * 7919 % 1000 % 8), (x * 48271 % 10007) / 100.0, (x * 69621 % 30011) / 10.0, (x * 16807 % 1009) / 1000.0, (x * 31 % 7)::int, x * 3 FROM long_sequence({rows})",
    "CREATE TABLE hits (ts TIMESTAMP, user_id LONG, region INT, width SHORT, url VARCHAR, phrase VARCHAR, price DOUBLE) TIMESTAMP(ts) PARTITION BY DAY",
    "INSERT BATCH 1000000 INTO hits SELECT timestamp_sequence('2025-01-01', 400000) ts, x * 2654435761 % 170003, (x * 40503 % 5003)::int, (x * 17 % 1900)::short, 'https://example.com/' || (x * 2654435761 % 60013) || '/page?id=' || (x % 97), CASE WHEN x % 5 = 0 THEN 'phrase ' || (x * 7919 % 30011) ELSE '' END, (x * 48271 % 100003) / 7.0 FROM long_sequence({rows})",
    "CREATE TABLE written (ts TIMESTAMP, k SYMBOL, n LONG, d DOUBLE, s VARCHAR) TIMESTAMP(ts) PARTITION BY DAY",
    "CREATE TABLE orders (id LONG, customer LONG, product INT, amount DOUBLE)",
    "INSERT INTO orders SELECT x, x * 7919 % 10007, (x * 31 % 997)::int, x % 1000 / 10.0 FROM long_sequence(300000)",
]

VALUES = ", ".join(f"('2024-01-01T00:{n // 60:02}:{n % 60:02}', 'k{n % 7}', {n}, {n}.25, 'text {n}')" for n in range(300))

# (group, statement); `{n}` is another number each time, so that the statement is planned.
QUERIES = [
    ("writes", f"INSERT INTO written VALUES {VALUES}"),
    ("writes", "INSERT INTO written VALUES ('2024-01-01', 'k', {n}, 1.5, 'text')"),
    ("writes", "UPDATE written SET d = {n} WHERE n < 0"),
    ("unseen", "SELECT {n}"),
    ("unseen", "SELECT * FROM readings WHERE truck = 'truck_77' AND odometer > {n} LIMIT -1"),
    ("unseen", "SELECT ts, avg(speed), max(load) FROM readings WHERE ts IN '2025-01-02T10' AND odometer <> {n} SAMPLE BY 10m"),
    ("unseen", "WITH a AS (SELECT customer, sum(amount) s FROM orders WHERE id < 100 GROUP BY customer) SELECT o.id, a.s FROM orders o JOIN a ON a.customer = o.customer WHERE o.id < 5 AND a.s > -{n} ORDER BY o.id"),
    ("small", "SELECT 1"),
    ("small", "SELECT * FROM readings WHERE truck = 'truck_77' LIMIT -1"),
    ("small", "SELECT ts, speed FROM readings WHERE truck = 'truck_500' AND ts IN '2025-01-02T10:15'"),
    ("small", "SELECT count(*) FROM readings"),
    ("small", "SELECT max(ts) FROM readings"),
    ("small", "SHOW TABLES"),
    ("small", "SELECT truck, last(speed) FROM readings WHERE ts IN '2025-01-03T01' GROUP BY truck ORDER BY truck LIMIT 5"),
    ("readings", "SELECT avg(speed), max(load) FROM readings"),
    ("readings", "SELECT count(*) FROM readings WHERE speed > 50 AND load < 1000 AND fuel < 0.2"),
    ("readings", "SELECT truck, avg(speed) FROM readings GROUP BY truck"),
    ("readings", "SELECT fleet, truck, max(load), min(fuel) FROM readings WHERE status = 3 GROUP BY fleet, truck"),
    ("readings", "SELECT ts, avg(speed), max(load) FROM readings SAMPLE BY 1h"),
    ("readings", "SELECT ts, truck, avg(speed) FROM readings WHERE fleet = 'fleet_3' SAMPLE BY 1h"),
    ("readings", "SELECT * FROM readings LATEST ON ts PARTITION BY truck"),
    ("readings", "SELECT date_trunc('hour', ts) h, fleet, avg(fuel) FROM readings GROUP BY h, fleet ORDER BY h, fleet"),
    ("readings", "SELECT sum(odometer), sum(odometer + status), sum(odometer * 2 - status) FROM readings"),
    ("readings", "SELECT count(*) FROM readings WHERE odometer % 7 = 3 AND odometer + status > 1000"),
    ("readings", "SELECT corr(speed, load), covar_pop(speed, fuel), regr_slope(load, fuel) FROM readings"),
    ("readings", "SELECT fleet, stddev(speed), var_pop(load) FROM readings GROUP BY fleet"),
    ("readings", "SELECT sum(s) FROM (SELECT stddev(speed) OVER (ORDER BY ts ROWS BETWEEN 20 PRECEDING AND CURRENT ROW) s FROM readings WHERE fleet = 'fleet_1')"),
    ("readings", "SELECT sum(s) FROM (SELECT avg(speed) OVER (PARTITION BY truck ORDER BY ts ROWS BETWEEN 10 PRECEDING AND CURRENT ROW) s FROM readings WHERE fleet = 'fleet_1')"),
    ("readings", "SELECT sum(d) FROM (SELECT speed - lag(speed) OVER (PARTITION BY truck ORDER BY ts) d FROM readings WHERE fleet = 'fleet_2')"),
    ("readings", "SELECT count(*) FROM (SELECT * FROM readings WHERE fleet = 'fleet_1') a ASOF JOIN (SELECT * FROM readings WHERE fleet = 'fleet_1' AND status = 2) b ON (truck)"),
    ("readings", "SELECT * FROM readings ORDER BY speed DESC, ts LIMIT 20"),
    ("readings", "SELECT ts, speed, load FROM readings WHERE ts IN '2025-01-02' AND speed > 99"),
    ("hits", "SELECT count(DISTINCT user_id) FROM hits"),
    ("hits", "SELECT region, count(*) c, sum(width), avg(price), count(DISTINCT user_id) FROM hits GROUP BY region ORDER BY c DESC, region LIMIT 10"),
    ("hits", "SELECT phrase, count(*) c FROM hits WHERE phrase <> '' GROUP BY phrase ORDER BY c DESC, phrase LIMIT 10"),
    ("hits", "SELECT url, count(*) c FROM hits GROUP BY url ORDER BY c DESC, url LIMIT 10"),
    ("hits", "SELECT user_id, phrase, count(*) c FROM hits GROUP BY user_id, phrase ORDER BY c DESC, user_id, phrase LIMIT 10"),
    ("hits", "SELECT count(*) FROM hits WHERE url LIKE '%google%' OR url LIKE '%/777/%'"),
    ("hits", "SELECT min(url), count(*) FROM hits WHERE url LIKE '%com/5%' AND phrase <> ''"),
    ("hits", "SELECT avg(length(url)), max(length(phrase)) FROM hits"),
    ("hits", "SELECT regexp_replace(url, '^https?://([^/]+)/.*$', '\\1') host, count(*) FROM hits WHERE region < 200 GROUP BY host"),
    ("hits", "SELECT user_id, count(*) c FROM hits GROUP BY user_id ORDER BY c DESC, user_id LIMIT 10"),
    ("hits", "SELECT sum(width), sum(width + 1), sum(width + 2), sum(width + 3), sum(width + 4), sum(width + 5) FROM hits"),
    ("hits", "SELECT width, region, count(*) c FROM hits WHERE user_id = 435 GROUP BY width, region ORDER BY c DESC, width, region LIMIT 10"),
    ("general", "SELECT o.product, sum(o.amount) s FROM orders o JOIN hits h ON h.user_id = o.customer WHERE h.region < 50 GROUP BY o.product ORDER BY s DESC, o.product LIMIT 10"),
    ("general", "SELECT count(*) FROM orders o WHERE EXISTS (SELECT 1 FROM hits h WHERE h.user_id = o.customer AND h.region = 7)"),
    ("general", "SELECT count(*), sum(x) FROM long_sequence(20000000) WHERE x % 3 = 1"),
    ("general", "SELECT sum(length(md5(x::varchar))) FROM long_sequence(300000)"),
    ("general", "SELECT count(*) FROM (SELECT user_id, row_number() OVER (PARTITION BY region ORDER BY price) r FROM hits WHERE region < 500) WHERE r <= 3"),
    ("general", "SELECT cardinality(array_agg(user_id)) FROM hits"),
    ("output", "SELECT ts, truck, speed, load FROM readings LIMIT 300000"),
    ("output", "SELECT ts, user_id, url FROM hits LIMIT 200000"),
]  # fmt: skip

NUMBERS = itertools.count(1)


class Server:
    def __init__(self, binary, folder):
        probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(4)]
        addresses = [f"127.0.0.1:{probe.getsockname()[1]}" for probe in probes]
        self.port = probes[0].getsockname()[1]
        [probe.close() for probe in probes]
        command = [binary, "serve", "--data", str(folder), "--http", addresses[0], "--pg", addresses[1], "--ilp", addresses[2]]
        # Older builds do not know the setting and ignore the variable.
        environment = {**os.environ, "TIDALITE_HEALTH_LISTEN": addresses[3]}
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
        self.connection = None

    def get(self, statement):
        """Gives the seconds to the last byte, and the answer."""
        for attempt in range(600):
            try:
                self.connection = self.connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
                began = time.perf_counter()
                self.connection.request("GET", "/exec?query=" + quote(statement))
                answer = self.connection.getresponse()
                body = answer.read()
                return time.perf_counter() - began, answer.status, body
            except OSError:
                self.connection = None
                time.sleep(0.05)
        raise SystemExit("the server does not answer")

    def rows(self, statement):
        seconds, status, body = self.get(statement)
        answer = json.loads(body)
        if status != 200:
            raise SystemExit(f"{statement}: {answer.get('error')}")
        return answer.get("dataset")

    def stop(self):
        self.process.terminate()
        self.process.wait(60)


def plain(value):
    if isinstance(value, float):
        return float(f"{value:.9g}")
    return [plain(v) for v in value] if isinstance(value, list) else value


def settle(server):
    while server.rows("SELECT sum(stagedRows) FROM table_metrics()")[0][0]:
        time.sleep(0.2)


def shortest(server, statement, least_seconds):
    """Gives the shortest of some times: at least 3, more if they are short."""
    times, total = [], 0.0
    while len(times) < 3 or (total < least_seconds and len(times) < 50):
        seconds, status, body = server.get(statement.replace("{n}", str(next(NUMBERS))))
        if status != 200:
            raise SystemExit(f"{statement}: {body[:300]}")
        times.append(seconds)
        total += seconds
    return min(times)


def measure(servers, options):
    """Gives {statement: {name: [seconds of each round]}}."""
    found = {}
    for group, statement in QUERIES:
        if options.only and options.only not in group:
            continue
        if statement.startswith("SELECT") and "{n}" not in statement:
            answers = {name: plain(server.rows(statement)) for name, server in servers.items()}
            differing = [name for name, rows in answers.items() if sorted(map(str, rows)) != sorted(map(str, answers[next(iter(servers))]))]
            if differing:
                print(f"ANSWERS DIFFER ({', '.join(differing)}): {statement}", flush=True)
                continue
        times = found[group, statement] = {name: [] for name in servers}
        names = list(servers)
        for turn in range(options.rounds):
            for name in names[turn % len(names) :] + names[: turn % len(names)]:
                times[name].append(shortest(servers[name], statement, 0.05))
    return found


def report(found, names):
    base, lines, logs = names[0], [], {}
    lines.append("| group | statement | " + f"{base}, ms | " + " | ".join(f"{name} / {base}" for name in names[1:]) + " |")
    lines.append("|---|---|--:|" + "--:|" * (len(names) - 1))
    for (group, statement), times in found.items():
        first = statistics.median(times[base])
        ratios = [statistics.median(times[name]) / first for name in names[1:]]
        for name, value in zip(names[1:], ratios):
            logs.setdefault((group, name), []).append(math.log(value))
            logs.setdefault(("all", name), []).append(math.log(value))
        text = statement.replace("|", "\\|")
        lines.append(f"| {group} | `{text[:110]}` | {first * 1e3:.2f} | " + " | ".join(f"{r:.3f}" for r in ratios) + " |")
    lines += ["", "| geometric mean of | " + " | ".join(f"{name} / {base}" for name in names[1:]) + " |", "|---|" + "--:|" * (len(names) - 1)]
    for group in dict.fromkeys(group for group, _ in logs):
        lines.append(f"| {group} | " + " | ".join(f"{math.exp(statistics.mean(logs[group, name])):.3f}" for name in names[1:]) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("builds", nargs="+", metavar="NAME=PATH")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--only", help="only groups with this in their name")
    parser.add_argument("--out", help="a page for the table")
    options = parser.parse_args()
    builds = dict(build.split("=", 1) for build in options.builds)
    first = next(iter(builds))
    builds = {first: builds[first], f"{first} again": builds[first], **builds}
    folder = Path(tempfile.mkdtemp(prefix="tidalite-builds-"))
    servers = {}
    try:
        for name, binary in builds.items():
            servers[name] = Server(binary, folder / name.replace(" ", "-"))
            for statement in SETUP:
                servers[name].rows(statement.format(rows=options.rows))
        for server in servers.values():
            settle(server)
        page = report(measure(servers, options), list(builds))
        print(page)
        if options.out:
            Path(options.out).write_text(page + "\n")
    finally:
        for server in servers.values():
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
