"""The Time Series Benchmark Suite: cpu-only, devops or iot by line protocol with W connections, then its queries.

The lines are those of the original generator, byte for byte (its seed 123). They are in memory before the clock starts; with
--stream they are generated while they are sent, and no file is made.
Systems that read no lines import the same rows as Parquet, and take no part in the curve over W. Each keeps what the last
load left for the queries: windows, hosts and fleets are the original's, too, the text is each system's own (`tsbs_queries`).
All answers of a type, names and times as well as numbers, agree before it is timed; its time is the client's with the whole
answer read, over HTTP or within the process (said below).
"""

import hashlib
import json
import math
import subprocess

from . import answers as answers_of
from . import data, dialects, engines, install, late, lines_to_parquet, tsbs_queries
from .measure import beside, middle, told, turns

SYSTEMS = ["tidalite-server", "tidalite-process", "questdb", "duckdb", "clickhouse", "hyper"]
START = 1451606400
# Of what each system orders its rows by, where it is told: as the suite's loader for it does.
KEYS = {"cpu": "hostname", "readings": "name", "diagnostics": "name"}


def arguments(parser):
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--use-case", default="cpu-only", choices=["cpu-only", "devops", "iot"])
    parser.add_argument("--scale", type=int, default=4000)
    parser.add_argument("--hours", type=float, default=4)
    parser.add_argument("--interval", type=int, default=10, help="seconds between two readings of a host")
    parser.add_argument("--workers", default="1,2,4,8,14")
    parser.add_argument("--stream", action="store_true", help="lines go to the connections as they are generated; for servers, and loads of any size")
    parser.add_argument("--queries", type=int, default=100, help="of each type; 0 for none (types without anything drawn: at most 5)")
    parser.add_argument("--types", default="", help="only these, e.g. lastpoint,high-cpu-1")


def drawn(kind, options, end_s):
    """What the original draws for the queries of one type. A window longer than the data is all of them."""
    hours = min(kind.hours, options.hours)
    fleet = kind.hosts == tsbs_queries.FLEET
    # A fleet is drawn like a host of four.
    scale, hosts = (len(tsbs_queries.FLEETS), 1) if fleet else (options.scale, kind.hosts)
    command = [install.binary("tidalite-generate"), "queries", "--scale", scale, "--start-s", START, "--end-s", end_s + 1,
               "--window-s", int(hours * 3600), "--hosts", hosts, "--count", options.queries]
    lines = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True).stdout.splitlines()
    prefix = "truck" if options.use_case == "iot" else "host"
    for query in map(json.loads, lines):
        names = [] if fleet else [f"{prefix}_{i}" for i in query["hosts"]]
        yield tsbs_queries.Drawn(query["from_ns"], query["to_ns"], names, tsbs_queries.FLEETS[query["hosts"][0]] if fleet else None, hours)


def run(options, out):
    import senders

    end_s = START + int(options.hours * 3600)
    of = (options.use_case, options.scale, START, end_s, options.interval)
    if options.stream:
        path, command = None, [str(install.binary("tidalite-generate")), *map(str, data.tsbs_arguments(*of))]
        expected, size, digest = told_of(command)
    else:
        path = data.tsbs(*of)
        text, digest = path.read_bytes(), data.md5(path)
        blocks, expected, size = list(senders.cut(text, 4 << 20)), senders.table_rows(text), len(text)

    def send(system, workers):
        return system.stream(command, workers) if options.stream else system.send(text, blocks, workers)

    records, made = [], engines.made(options.systems, options.scratch, 2, out)
    asked = options.queries > 0
    plan = [(workers, number, system) for workers in map(int, options.workers.split(",")) for number, system in turns([s for s in made if s.reads_lines], options.runs)]
    last = {system.name: i for i, (_, _, system) in enumerate(plan)}
    loaded = []
    try:
        for i, (workers, number, system) in enumerate(plan):
            keeps = i == last[system.name] and asked
            try:
                system.open()
                record = load(system, lambda: send(system, workers), expected)
                record |= dict(workload="tsbs", case=options.use_case + ", as generated" * options.stream, run=number, workers=workers, bytes=size, md5=digest)
                records.append(record)
                out.record(record)
                if keeps:
                    loaded.append(system)
            except (RuntimeError, OSError, TimeoutError) as error:
                out.skip(system.name, error)
            finally:
                if system not in loaded:
                    system.close()
        text = blocks = None
        for system in made if asked else []:
            if not system.reads_lines and options.stream:
                out.skip(system.name, "it reads no lines, and there is no file")
            elif not system.reads_lines:
                loaded += import_tables(system, path, expected, options, out)
        if loaded:
            records += ask([s for s in made if s in loaded], options, end_s, out)
    finally:
        for system in loaded:
            system.close()
    return records


def told_of(command):
    """Rows by table, bytes and md5 of what a command writes."""
    import senders

    rows, size, digest = {}, 0, hashlib.md5()
    for piece in senders.written_by(command, 4 << 20):
        for name, count in senders.table_rows(piece).items():
            rows[name] = rows.get(name, 0) + count
        size += len(piece)
        digest.update(piece)
    return rows, size, digest.hexdigest()


def import_tables(system, path, expected, options, out):
    try:
        system.open()
        seconds = 0.0
        for name, file in lines_to_parquet.tables(path, KEYS).items():
            took, rows = system.import_parquet(name, file, "timestamp", KEYS.get(name))
            seconds += took
            if rows != expected[name]:
                raise RuntimeError(f"{rows} rows of {name}, not {expected[name]}")
        out.record(dict(workload="tsbs", case=f"{options.use_case} as Parquet", system=system.name, run=0, seconds=seconds, rows=sum(expected.values()), disk=system.disk()))
        return [system]
    except (RuntimeError, OSError, TimeoutError) as error:
        out.skip(system.name, error)
        system.close()
        return []


def load(system, send, expected):
    import time

    system.warm()
    start = time.monotonic()
    sent = send()
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
    """All types, the systems in turns; a type that a system cannot answer is left out for it and said."""
    records = []
    wanted = set(filter(None, options.types.split(",")))
    kinds = {name: kind for name, kind in tsbs_queries.of(options.use_case).items() if not wanted or name in wanted}
    for done, (name, kind) in enumerate(kinds.items()):
        out.progress(name, done, len(kinds))
        questions = list(drawn(kind, options, end_s))
        if kind.hosts == 0 and kind.hours == 0:
            # Nothing is drawn: the same text every time.
            questions = questions[:max(1, min(len(questions), 5))]
        if name in tsbs_queries.LARGE:
            questions = questions[:3]
        texts, answers = {}, {}
        for system in loaded:
            if system.name == "influxdb" and options.use_case == "iot":
                out.skip("influxdb", "the suite's own questions for it mean something else, and InfluxQL cannot ask these")
                continue
            texts[system.name] = [kind.text(dialect(system.name), question) for question in questions]
            try:
                answers[system.name] = [answers_of.plain(system.query(sql)[1]) for sql in texts[system.name]]
            except RuntimeError as error:
                out.skip(f"{system.name}, {name},", error)
        kept = agreeing(name, answers, texts, out)
        for number, system in turns([s for s in loaded if s.name in kept], options.runs):
            times = [system.time(sql) for sql in texts[system.name]]
            record = dict(workload="tsbs", case=name, system=system.name, run=number, seconds=middle(times), p95_s=sorted(times)[int(len(times) * 0.95)],
                          queries=len(times), answer_rows=sum(map(len, answers[system.name])), sql=texts[system.name][0], version=system.version(),
                          clock=system.clock, settings=system.settings)
            records.append(record)
            out.record(record)
    return records


def dialect(name):
    return dialects.DIALECTS[name]


def agreeing(name, answers, texts, out):
    """The systems that may be timed: those whose answers to all texts are the same; what another says is a line of the report."""
    kept = answers_of.majority(answers, lambda a, b: all(map(answers_of.same, a, b)))
    for other in (n for n in answers if n not in kept):
        first = kept[0] if kept else next(n for n in answers if n != other)
        i = next(i for i, (a, b) in enumerate(zip(answers[first], answers[other])) if not answers_of.same(a, b))
        ours, theirs = answers[first][i], answers[other][i]
        where = next((pair for pair in zip(sorted(ours, key=str), sorted(theirs, key=str)) if not answers_of.same(*pair)), "")
        out.disagree(f"tsbs {name}", other, f"it answers {len(theirs)} rows where {first} has {len(ours)}, first unlike: {str(where)[:300]}; {texts[other][i]}")
    return kept


def table(records):
    return late.table([r for r in records if "workers" in r])


def asked_of(records):
    """{type: {system: [seconds of each run]}}"""
    found = {}
    for record in (r for r in records if "queries" in r):
        found.setdefault(record["case"], {}).setdefault(record["system"], []).append(record["seconds"])
    return found


def relative(records, by_clock=False):
    """{system: geometric mean over the types that it answers of its time by the best other's}

    Tidalite's two entrances are no others to each other. With `by_clock` the others are those measured the same way, over
    HTTP or within their process; a system that has no such other is left out.
    """
    clocks = {r["system"]: r.get("clock") for r in records if "queries" in r}
    logs = {}
    for seconds in asked_of(records).values():
        for name in seconds:
            others = [middle(s) for n, s in seconds.items() if is_other(name, n) and (not by_clock or clocks[n] == clocks[name])]
            if others:
                logs.setdefault(name, []).append(math.log(middle(seconds[name]) / min(others)))
    return {name: math.exp(sum(found) / len(found)) for name, found in logs.items()}


def is_other(name, other):
    return other != name and not (name.startswith("tidalite") and other.startswith("tidalite"))


def details(records):
    """The queries: a row a type, and at the end the geometric means."""
    systems = list(dict.fromkeys(r["system"] for r in records if "queries" in r))
    counts = {r["case"]: r["queries"] for r in records if "queries" in r}
    rows = []
    for case, seconds in asked_of(records).items():
        cells = [told(seconds[n]) if n in seconds else "–" for n in systems]
        rows.append([case, counts[case], *cells, " ".join(beside(n, s, seconds) for n, s in seconds.items() if n.startswith("tidalite"))])
    for what, means in (("", relative(records)), (" with the same clock", relative(records, by_clock=True))) if rows else ():
        rows.append([f"geometric mean, × the best other{what}", "", *(f"{means[n]:.2f}" if n in means else "" for n in systems), ""])
    return ["type", "queries", *(f"{name}, ms" for name in systems), "ours as fast as the best other"], rows


def charts(records):
    from .page import bars, lines

    series = {}
    for record in (r for r in records if "workers" in r):
        series.setdefault(record["system"], {}).setdefault(record["workers"], []).append(record["rows_s"] / 1e6)
    out = [lines("Ingest by connections, million rows a second until visible", {n: {w: middle(v) for w, v in s.items()} for n, s in series.items()}, "connections")]
    means = relative(records)
    if means:
        out.append(bars("All questions: time by the best other's, geometric mean", means, less_is_better=True))
    return out + [bars(f"{case}, ms", {n: middle(v) * 1e3 for n, v in found.items()}, less_is_better=True) for case, found in asked_of(records).items()]
