"""The Time Series Benchmark Suite: cpu-only, devops or iot by line protocol with W connections, then its queries.

The lines are those of the original generator, byte for byte (its seed 123). They are in memory before the clock starts.
Each system keeps what the last load left for the queries: windows and hosts are the original's, too; both systems get the
same text over HTTP, the answers are compared, and a query's time is the client's with the whole answer read.
"""

import json
import subprocess

from . import data, engines, install, late
from .measure import Disagreement, beside, close, middle, spread, turns

SYSTEMS = ["tidalite-server", "questdb"]
START = 1451606400
METRICS = [f"usage_{name}" for name in "user system idle nice iowait irq softirq steal guest guest_nice".split()]


def arguments(parser):
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--use-case", default="cpu-only", choices=["cpu-only", "devops", "iot"])
    parser.add_argument("--scale", type=int, default=4000)
    parser.add_argument("--hours", type=float, default=4)
    parser.add_argument("--interval", type=int, default=10, help="seconds between two readings of a host")
    parser.add_argument("--workers", default="1,2,4")
    parser.add_argument("--queries", type=int, default=100, help="of each type; 0 for none")
    parser.add_argument("--types", default="", help="only these, e.g. lastpoint,high-cpu-1")


def kinds():
    """{type: (metrics, hosts, hours, SQL of one query)}; hosts 0 are all, hours 0 is no window."""
    maxima = lambda n: ", ".join(f"max({m}) AS max_{m}" for m in METRICS[:n])  # noqa: E731
    means = lambda n: ", ".join(f"avg({m}) AS avg_{m}" for m in METRICS[:n])  # noqa: E731
    window = "timestamp >= '{start}' AND timestamp < '{end}'"
    hosts = "hostname IN ({hosts}) AND "
    found = {}
    for name in ("1-1-1", "1-1-12", "1-8-1", "5-1-1", "5-1-12", "5-8-1"):
        metrics, count, hours = map(int, name.split("-"))
        found[f"single-groupby-{name}"] = (count, hours, f"SELECT timestamp, {maxima(metrics)} FROM cpu WHERE {hosts}{window} SAMPLE BY 1m")
    for name, count, hours in (("1", 1, 8), ("8", 8, 8), ("32-24", 32, 24)):
        found[f"cpu-max-all-{name}"] = (count, hours, f"SELECT timestamp, {maxima(10)} FROM cpu WHERE {hosts}{window} SAMPLE BY 1h")
    for name, metrics in (("1", 1), ("5", 5), ("all", 10)):
        found[f"double-groupby-{name}"] = (0, 12, f"SELECT timestamp, hostname, {means(metrics)} FROM cpu WHERE {window} SAMPLE BY 1h")
    found["groupby-orderby-limit"] = (0, 1, "SELECT timestamp, max(usage_user) FROM cpu WHERE timestamp < '{end}' SAMPLE BY 1m ORDER BY timestamp DESC LIMIT 5")
    found["high-cpu-1"] = (1, 12, f"SELECT * FROM cpu WHERE usage_user > 90.0 AND {hosts}{window}")
    found["high-cpu-all"] = (0, 12, f"SELECT * FROM cpu WHERE usage_user > 90.0 AND {window}")
    found["lastpoint"] = (0, 0, "SELECT * FROM cpu LATEST ON timestamp PARTITION BY hostname")
    return found


def texts(hosts, hours, sql, options, end_s):
    """The queries of one type. A window longer than the data is all of them."""
    window = min(hours, options.hours)
    command = [install.binary("tidalite-generate"), "queries", "--scale", options.scale, "--start-s", START, "--end-s", end_s + 1,
               "--window-s", int(window * 3600), "--hosts", hosts, "--count", options.queries]
    drawn = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True).stdout
    from datetime import datetime, timezone

    time = lambda ns: datetime.fromtimestamp(ns // 10**9, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")  # noqa: E731
    for query in map(json.loads, drawn.splitlines()):
        names = ", ".join(f"'host_{i}'" for i in query["hosts"])
        yield sql.format(start=time(query["from_ns"]), end=time(query["to_ns"]), hosts=names)


def run(options, out):
    import senders

    end_s = START + int(options.hours * 3600)
    path = data.tsbs(options.use_case, options.scale, START, end_s, options.interval)
    text, digest = path.read_bytes(), data.md5(path)
    blocks, expected = list(senders.cut(text, 4 << 20)), senders.table_rows(text)
    records, made = [], engines.made(options.systems, options.scratch, 2, out)
    plan = [(workers, number, system) for workers in map(int, options.workers.split(",")) for number, system in turns(made, options.runs)]
    last = {system.name: i for i, (_, _, system) in enumerate(plan)}
    loaded = []
    try:
        for i, (workers, number, system) in enumerate(plan):
            keeps = i == last[system.name] and options.use_case == "cpu-only" and options.queries > 0
            try:
                system.open()
                record = load(system, senders, text, blocks, expected, workers)
                record |= dict(workload="tsbs", case=options.use_case, run=number, workers=workers, bytes=len(text), md5=digest)
                records.append(record)
                out.record(record)
                if keeps:
                    loaded.append(system)
            except (RuntimeError, OSError, TimeoutError) as error:
                out.skip(system.name, error)
            finally:
                if system not in loaded:
                    system.close()
        if loaded:
            records += ask(loaded, options, end_s, out)
    finally:
        for system in loaded:
            system.close()
    return records


def load(system, senders, text, blocks, expected, workers):
    import time

    system.warm()
    start = time.monotonic()
    sent = senders.send_raw(system.system.ilp_port, text, blocks, workers)
    for name, count in expected.items():
        while system.system.count(name) < count:
            if time.monotonic() - start > 600:
                raise TimeoutError(f"{system.name} shows {system.system.count(name)} of {count} rows of {name}")
            time.sleep(0.01)
    visible = time.monotonic() - start
    settled = max(visible, system.system.wait_settled(expected, 600) - start)
    rows = sum(expected.values())
    return dict(system=system.name, rows=rows, sent_s=sent, seconds=visible, settled_s=settled, rows_s=rows / visible, version=system.version(),
                durability=system.durability, settings=system.settings, clock="from the first byte until counts over HTTP show all rows", disk=system.disk())


def ask(loaded, options, end_s, out):
    records = []
    wanted = set(filter(None, options.types.split(",")))
    for kind, (hosts, hours, sql) in kinds().items():
        if wanted and kind not in wanted:
            continue
        queries = list(texts(hosts, hours, sql, options, end_s))
        answers = {}
        for system in loaded:
            system.query(queries[-1])
        for number in range(options.runs):
            for system in loaded:
                times = []
                for i, query in enumerate(queries):
                    seconds, rows = system.query(query)
                    times.append(seconds)
                    if number == 0:
                        answers.setdefault(system.name, []).extend([i, *(v for v in row if isinstance(v, (int, float)))] for row in rows)
                record = dict(workload="tsbs", case=kind, system=system.name, run=number, seconds=middle(times), p95_s=sorted(times)[int(len(times) * 0.95)],
                              queries=len(queries), answer_rows=len(answers[system.name]))
                records.append(record)
                out.record(record)
        first = next(iter(answers))
        for name, answer in answers.items():
            if not close(sorted(answers[first]), sorted(answer), 1e-9):
                raise Disagreement(f"{kind}: {first} and {name} answer differently: {str(sorted(answers[first]))[:200]} and {str(sorted(answer))[:200]}")
    return records


def table(records):
    loads = [r for r in records if "workers" in r]
    head, rows = late.table(loads)
    asked = {}
    for record in (r for r in records if "queries" in r):
        asked.setdefault(record["case"], {}).setdefault(record["system"], []).append(record)
    for case, groups in asked.items():
        for name, group in groups.items():
            seconds = [r["seconds"] for r in group]
            compared = beside(name, seconds, {n: [r["seconds"] for r in g] for n, g in groups.items()})
            row = [case, "", name, len(group), f"{middle(seconds) * 1e3:.2f} ms", f"{spread(seconds):.0%}", f"{group[0]['queries']} queries, p95 {middle([r['p95_s'] for r in group]) * 1e3:.2f} ms"]
            rows.append(row + [""] * (len(head) - len(row) - 2) + [compared, ""])
    return head, rows


def charts(records):
    from .page import bars, lines

    series = {}
    for record in (r for r in records if "workers" in r):
        series.setdefault(record["system"], {}).setdefault(record["workers"], []).append(record["rows_s"] / 1e6)
    out = [lines("Ingest by connections, million rows a second until visible", {n: {w: middle(v) for w, v in s.items()} for n, s in series.items()}, "connections")]
    values = {}
    for record in (r for r in records if "queries" in r):
        values.setdefault(record["case"], {}).setdefault(record["system"], []).append(record["seconds"] * 1e3)
    return out + [bars(f"{case}, ms", {n: middle(v) for n, v in found.items()}, less_is_better=True) for case, found in values.items()]
