"""Load for a long time: idle and busy connections, writers, dashboards, and probes of metadata, all at once, on one server.

The run fails, with exit status 1, on any error of a client, of the server's counters or of its log, on an acknowledged row that is not there
at the end or after a restart, and on a missed goal. The load has fixed rates; it is not a measurement of the highest rate.
"""

import asyncio
import json
import multiprocessing
import multiprocessing.connection
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from . import probe, readers, summary, writers
from .record import Record

FORK = multiprocessing.get_context("fork")
# Time for all connections to open before the load begins.
LEAD_S = 3.0
SAMPLE_S = 5.0
# Seconds for the generator to end its streams after the load, and for the server to show all rows.
END_S, FOUND_S = 150, 60
SHOWN = 20
IDLE_TABLES = 40


@dataclass
class Plan:
    """The load. Times are those of `time.monotonic`, rates are totals per second."""

    http_port: int
    pg_port: int
    ilp_port: int
    start: float
    end: float
    idle: int
    busy: int
    query_rate: float
    writers: int
    batch_rows: int
    write_period_s: float
    dashboards: int
    refresh_s: float


def arguments(parser):
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--idle", type=int, default=1000, help="idle connections, a third each over HTTP, the PostgreSQL protocol and TCP")
    parser.add_argument("--busy", type=int, default=100, help="connections with small queries, half over HTTP, half over the PostgreSQL protocol")
    parser.add_argument("--query-rate", type=float, default=100, help="queries per second of all busy connections")
    parser.add_argument("--writers", type=int, default=200, help="line protocol, half over HTTP, half over TCP")
    parser.add_argument("--row-rate", type=float, default=50_000, help="rows per second of all writers")
    parser.add_argument("--batch-rows", type=int, default=125)
    parser.add_argument("--dashboards", type=int, default=4, help=f"each of {readers.PANELS} panels")
    parser.add_argument("--refresh-ms", type=float, default=750)
    parser.add_argument("--metadata-p99-max-ms", type=float, default=50, help="the goal for metadata; 0 for none")
    parser.add_argument("--memory-slope-max", type=float, default=0, help="the goal for resident memory after the first quarter, MiB per hour; 0 for none")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the server, as TIDALITE_CACHE_BYTES=512MiB")
    parser.add_argument("--scratch", help="where the server keeps its data [default: a temporary folder]")
    parser.add_argument("--out", default="results", help="where the samples (JSON lines) and the report (Markdown) go")


def child(role, plan, pipe):
    """The body of a process of the generator. An interrupt from the terminal ends the command, which ends the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    record = Record(pipe)
    try:
        if role is probe:
            role.run(plan, record)
        else:
            asyncio.run(role.run(plan, record))
    except Exception as error:  # a fault of the generator must not look like a run without errors
        record.failed("generator", "".join(traceback.format_exception(error)[-3:]).replace("\n", " "))
        record.end()


class Generator:
    """The processes of the generator and their reports."""

    ROLES = {"writers": writers, "readers": readers, "prober": probe}

    def __init__(self, plan):
        self.reports, self.longest, self.processes, self.pipes = {}, {}, {}, {}
        for name, role in self.ROLES.items():
            ours, theirs = FORK.Pipe(duplex=False)
            process = FORK.Process(target=child, args=(role, plan, theirs), name=name, daemon=True)
            process.start()
            theirs.close()
            self.processes[name], self.pipes[name] = process, ours

    def receive(self, seconds):
        """Reads reports until the time is over or all processes have ended."""
        deadline = time.monotonic() + seconds
        while self.pipes and (left := deadline - time.monotonic()) > 0:
            for pipe in multiprocessing.connection.wait(list(self.pipes.values()), left):
                name = next(n for n, p in self.pipes.items() if p is pipe)
                try:
                    report = pipe.recv()
                except EOFError:
                    if "latencies" not in self.reports.get(name, {}):
                        report = {"errors": {f"generator: the process {name} ended early": 1}, "latencies": {}}
                        self.reports[name] = self.reports.get(name, {}) | report
                    del self.pipes[name]
                    continue
                self.reports[name] = report
                for what, value in report["longest"].items():
                    self.longest[what] = max(self.longest.get(what, 0.0), value)

    def is_done(self):
        return not self.pipes

    def errors(self):
        return sum((Counter(r.get("errors", {})) for r in self.reports.values()), Counter())

    def counts(self):
        return sum((Counter(r.get("counts", {})) for r in self.reports.values()), Counter())

    def stop(self):
        for process in self.processes.values():
            process.terminate()
            process.join()


def prepare(server):
    """Creates the tables of the load, and some more for the size of metadata."""
    for table in range(writers.TABLES):
        server.sql(writers.CREATE.format(table=table))
    for table in range(IDLE_TABLES):
        server.sql(f"CREATE TABLE quiet_{table} (ts TIMESTAMP, name SYMBOL, v DOUBLE) TIMESTAMP(ts) PARTITION BY DAY")
    server.sql("CREATE TABLE load_visible (ts TIMESTAMP, seq LONG) TIMESTAMP(ts) PARTITION BY DAY")
    server.sql("CREATE TABLE load_idle (ts TIMESTAMP, number LONG) TIMESTAMP(ts) PARTITION BY DAY")


def found_rows(server):
    """{writer: [rows, sum of seq, sum of v, min seq, max seq]} as the server has them."""
    found = {}
    for table in range(writers.TABLES):
        for name, *sums in server.sql(writers.CHECK.format(table=table))["dataset"]:
            found[name] = sums
    return found


def check_rows(server, ledger, idle_tcp, seconds):
    """Differences between acknowledged rows and rows of the server that remain after the time."""
    deadline = time.monotonic() + seconds
    while True:
        wrong = writers.differences(ledger, found_rows(server))
        seen = server.count("load_idle")
        wrong += [f"idle TCP connections: {idle_tcp} sent a row, {seen} found"] if seen != idle_tcp else []
        if not wrong or time.monotonic() > deadline:
            return wrong
        time.sleep(0.1)


def watch(server, generator, began, deadline, write_sample):
    """Samples until the generator is done, the server has ended or the deadline is over; returns (samples, errors)."""
    from .server import sample

    samples, errors, due = [], Counter(), began
    while not generator.is_done():
        generator.receive(max(0.0, due - time.monotonic()))
        due = max(due + SAMPLE_S, time.monotonic())
        if server.process.poll() is not None:
            return samples, errors + Counter([f"server: ended with status {server.process.returncode}"])
        try:
            seen = {"t": round(time.monotonic() - began, 3), **sample(server, generator.processes)}
        except (OSError, ValueError) as error:
            errors[f"sample: {error or type(error).__name__}"] += 1
            continue
        longest, generator.longest = generator.longest, {}
        seen |= {"errors": generator.errors().total(), "counts": dict(generator.counts()), "longest_ms": {n: round(v * 1e3, 2) for n, v in longest.items()}}
        samples.append(seen)
        write_sample(seen)
        if time.monotonic() > deadline:
            return samples, errors + Counter([f"generator: {sorted(generator.pipes)} did not end within {END_S} s after the load"])
    return samples, errors


def show_sample(seen):
    print(f"  {seen['t']:7.1f} s  rss {seen['rss_mib']:7.1f} MiB  staged {seen['staged_rows']:9.0f}  rows {seen['rows_committed']:11.0f}  files {seen['open_files']}  "
          f"connections {seen['connections']:.0f}  metadata max {seen['longest_ms'].get('metadata', 0):.1f} ms  errors {seen['errors']}", file=sys.stderr, flush=True)


def collected_errors(server, generator, samples):
    """(errors of clients, of the server's counters and of its log, warnings of its log)."""
    from .server import log_lines

    errors = generator.errors()
    for seen in samples:
        for name, value in seen["metric_errors"].items():
            errors[f"metric {name}"] = max(errors[f"metric {name}"], int(abs(value)) or 1)
    logged, warnings = log_lines(server.log())
    errors.update(f"server log: {text[:300]}" for text in logged)
    return errors, warnings


def limits():
    """As many open files as the system allows this process."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def run(options):
    """The `load` command; returns its exit status."""
    from .server import LoadServer

    limits()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    stem = Path(options.out) / f"{date.today().isoformat()}-load"
    stem.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(options.scratch or tempfile.mkdtemp(prefix="tidalite-load-"))
    scratch.mkdir(parents=True, exist_ok=True)
    server = LoadServer(scratch, dict(text.split("=", 1) for text in options.set))
    generator = None
    try:
        server.start()
        prepare(server)
        generator, began = started(server, options)
        with open(stem.with_suffix(".jsonl"), "w") as file:

            def write_sample(seen):
                file.write(json.dumps(seen) + "\n")
                file.flush()
                show_sample(seen)

            samples, errors = watch(server, generator, began, began + options.minutes * 60 + END_S, write_sample)
        outcome = finished(server, generator, samples, errors)
    finally:
        if generator:
            generator.stop()
        server.end()
        if not options.scratch:
            shutil.rmtree(scratch, ignore_errors=True)
    text, has_failed = report(options, server, generator, samples, *outcome)
    stem.with_suffix(".md").write_text(text)
    print(f"{text}\nsamples: {stem.with_suffix('.jsonl')}\nreport: {stem.with_suffix('.md')}")
    return 1 if has_failed else 0


def started(server, options):
    """The generator under way and the moment at which its load begins."""
    begin = time.monotonic() + LEAD_S + options.idle / 1000
    plan = Plan(server.http_port, server.pg_port, server.ilp_port, begin, begin + options.minutes * 60, options.idle, options.busy, options.query_rate,
                options.writers, options.batch_rows, options.batch_rows * options.writers / options.row_rate, options.dashboards, options.refresh_ms / 1e3)
    return Generator(plan), begin


def finished(server, generator, samples, errors):
    """Checks the rows, and again after a restart; returns (errors, warnings, rows acknowledged)."""
    ledger = generator.reports.get("writers", {}).get("ledger", {})
    idle_tcp = generator.reports.get("readers", {}).get("idle_tcp", 0)
    if ledger and server.process.poll() is None:
        errors.update(f"rows: {text}" for text in check_rows(server, ledger, idle_tcp, FOUND_S))
    found, warnings = collected_errors(server, generator, samples)
    errors += found
    status = server.process.poll()
    status = server.end() if status is None else status
    if status != 0:
        errors[f"server: exit status {status}"] += 1
    elif ledger:
        server.start(fresh=False)
        errors.update(f"rows after a restart: {text}" for text in check_rows(server, ledger, idle_tcp, 0))
    if not ledger:
        errors["rows: no writer reported"] += 1
    return errors, warnings, sum(sums[0] for sums in ledger.values())


def markdown(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines) + "\n"


def during_load(options, samples):
    """Samples without those at the end, when connections close."""
    return [seen for seen in samples if seen["t"] <= options.minutes * 60]


def report(options, server, generator, samples, errors, warnings, rows):
    """(text, whether the run failed)."""
    latencies = summary.merged(r.get("latencies", {}) for r in generator.reports.values())
    counts, missed = generator.counts(), summary.missed_goals(latencies, during_load(options, samples), options.metadata_p99_max_ms, options.memory_slope_max)
    stamps = "the kernel's stamps of the packets, last byte of the request to first of the answer"
    if counts[probe.WITHOUT_STAMPS] and options.metadata_p99_max_ms:
        missed.append(f"{counts[probe.WITHOUT_STAMPS]} probes of metadata have no stamps of the kernel")
    seconds = options.minutes * 60
    verdict = "failed" if errors or missed else "passed"
    parts = [
        f"# Load, {options.minutes:g} minutes: {verdict}\n",
        f"{server.version()} with {' '.join(f'{k}={v}' for k, v in sorted(server.extra_env.items()))}. {counts['idle connections']} idle and {options.busy} busy connections, "
        f"{options.writers} writers, {options.dashboards} dashboards of {readers.PANELS} panels every {options.refresh_ms:g} ms. `metadata` is by {stamps}; "
        f"the other latencies are by the clock of the generator, which shares {os.cpu_count()} processors with the server.\n",
        markdown(*summary.latency_table(latencies)), markdown(*summary.memory_table(during_load(options, samples))), markdown(*summary.cpu_table(during_load(options, samples), os.cpu_count())),
        markdown(["count", "value"], [
            ["rows acknowledged and found, also after a restart" if not any(e.startswith("rows") for e in errors) else "rows acknowledged", rows],
            ["rows per second", f"{rows / seconds:.0f}"], *sorted(counts.items()),
            ["open files, most", max((s["open_files"] for s in samples), default=0)], ["staged rows, most", f"{max((s['staged_rows'] for s in samples), default=0):.0f}"],
            ["warnings in the server's log", len(warnings)], ["errors", errors.total()]]),
    ]
    parts += [f"Missed: {text}\n" for text in missed]
    parts += [f"Error, {count} times: {text}\n" for text, count in sorted(errors.items(), key=lambda item: item[0].startswith("rows"))[:SHOWN]]
    parts += [f"{len(errors) - SHOWN} more kinds of errors\n"] if len(errors) > SHOWN else []
    parts += [f"Warning, {count} times: {text}\n" for text, count in Counter(w[:200] for w in warnings).most_common(5)]
    return "\n".join(parts), bool(errors or missed)
