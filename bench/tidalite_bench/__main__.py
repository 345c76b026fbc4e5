"""The command: `python -m tidalite_bench ingress|filters|joins|late|tsbs|frames|hits|h2o|all|load`.

Each workload gives records (lines of JSON in --out), a table on the terminal and a section of the page. `load` compares nothing: it runs one
server under a mixed load and writes a report of its own.
"""

import argparse
import importlib
import json
import os
import shutil
import signal
import sys
import tempfile
from datetime import date
from pathlib import Path
from time import monotonic

from . import install, load
from .measure import Disagreement

WORKLOADS = ["ingress", "filters", "joins", "late", "tsbs", "frames", "hits", "h2o"]
# What `all` runs: the workload, the name of its section, and flags of its own.
SUITE = [("frames", "frames", {}), ("tsbs", "tsbs cpu-only", {}), ("tsbs", "tsbs iot", {"use_case": "iot", "scale": 1000, "hours": 24, "interval": 60, "workers": "1,2,4"}),
         ("filters", "filters", {"shapes": True}), ("joins", "joins", {}), ("hits", "hits", {}), ("ingress", "ingress", {}), ("late", "late", {}), ("h2o", "h2o", {})]
# And with --small, within a quarter of an hour on two cores.
SMALL = {
    "ingress": dict(runs=2, threads="2", rows=1_000_000), "filters": dict(rows=1_000_000, runs=2, repeats=3, cold_runs=1, shapes=False),
    "joins": dict(rows=1_000_000, runs=2, repeats=3), "late": dict(runs=2, rows=480_000), "tsbs cpu-only": dict(runs=2, hours=0.5, queries=3, workers="1,4", scale=1000),
    "tsbs iot": dict(runs=2, queries=3, scale=200, workers="2"), "frames": dict(row_count=100_000, runs=2), "hits": dict(rows=100_000),
    "h2o": dict(rows=100_000, runs=2)}


class Out:
    """Where records go while it runs."""

    def __init__(self, path):
        self.path, self.notes = path, []

    def record(self, record):
        self.clear()
        with open(self.path, "a") as file:
            file.write(json.dumps(record) + "\n")
        time = record.get("seconds")
        what = " ".join(str(record[key]) for key in ("workload", "case", "system", "threads", "run") if key in record)
        print(f"  {what}: {time:.3f} s" if time is not None else f"  {what}", file=sys.stderr, flush=True)

    def progress(self, what, done, total):
        """A bar at a terminal, nothing elsewhere."""
        if sys.stderr.isatty():
            filled = 30 * done // max(total, 1)
            print(f"\r\x1b[K  [{'#' * filled}{'.' * (30 - filled)}] {done} of {total} {what}", end="", file=sys.stderr, flush=True)

    def clear(self):
        if sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr)

    def disagree(self, case, name, what):
        """An answer that the others do not give: no time of it, and a record that says so."""
        self.record({"workload": case.split()[0], "case": case, "system": name, "invalid": what})
        self.skip(f"{name}, {case},", what)

    def skip(self, name, error):
        # Some add pages of advice to what is wrong.
        note = f"{name} was not measured: {(str(error).splitlines() or [repr(error)])[0][:400]}"
        if note not in self.notes:
            self.notes.append(note)
            print("  " + note, file=sys.stderr, flush=True)


def in_environment():
    """Goes on under the interpreter that has the packages."""
    python = install.environment()
    if Path(sys.prefix) != python.parent.parent and not os.environ.get("TIDALITE_BENCH_INSIDE"):
        env = {**os.environ, "TIDALITE_BENCH_INSIDE": "1"}
        os.chdir(Path(__file__).parent.parent)
        os.execve(python, [str(python), "-m", "tidalite_bench", *sys.argv[1:]], env)


def show(head, rows):
    cells = [[str(cell) for cell in row] for row in [head, *rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    for row in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def main():
    parser = argparse.ArgumentParser(prog="tidalite-bench", description=__doc__)
    commands = parser.add_subparsers(dest="workload", required=True)
    modules = {}
    for name in [*WORKLOADS, "all"]:
        command = commands.add_parser(name)
        command.add_argument("--runs", type=int, default=3)
        command.add_argument("--scratch", help="where systems keep their data [default: a temporary folder]")
        command.add_argument("--out", default="results", help="where the records and the page go")
        command.add_argument("--remote", action="store_true", help="servers on a host of their own: a network namespace behind a virtual cable (needs root)")
        command.add_argument("--delay-ms", type=float, default=0.0, help="with --remote: what the cable adds to every packet, each way")
        command.add_argument("--small", action="store_true", help="less data and fewer runs")
        if name == "all":
            command.add_argument("--queries", help="of hits: FILE, or system=FILE,system=FILE; without it only load and size are measured")
        if name != "all":
            if not (Path(__file__).parent / f"{name}.py").exists():
                continue
            modules[name] = importlib.import_module(f".{name}", __package__)
            modules[name].arguments(command)
    load.arguments(commands.add_parser("load", description=load.__doc__))
    options = parser.parse_args()
    if options.workload == "load":
        return load.run(options)
    in_environment()
    # What is stopped from outside stops its servers and clears its folders, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    from . import engines, machine, page, remote

    if options.small:
        engines.Server.warm_seconds = 300

    folder = Path(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / f"{date.today().isoformat()}-{options.workload}"
    records_path = stem.with_suffix(".jsonl")
    records_path.unlink(missing_ok=True)
    # Each workload's options name it from here on, so whose it is must be known before.
    passing = not options.scratch
    scratch = options.scratch or tempfile.mkdtemp(prefix="tidalite-bench-")
    Path(scratch).mkdir(parents=True, exist_ok=True)
    described = machine.describe(scratch)
    plan, sections, failed = planned(parser, options), [], []
    began, other_host = monotonic(), None
    try:
        if options.remote:
            try:
                other_host = remote.TwoHosts(options.delay_ms).connect()
            except RuntimeError as error:
                sys.exit(f"tidalite-bench: {error}")
            described["client"] = other_host.described
        for number, (workload, title, given) in enumerate(plan):
            given.scratch = scratch
            out, module = Out(records_path), modules[workload]
            print(f"[{number + 1}/{len(plan)}] {title}: {module.__doc__.splitlines()[0]}", file=sys.stderr)
            started = monotonic()
            try:
                records = module.run(given, out)
            except Exception as error:  # the others are measured all the same; the end says that this one was not
                if options.workload != "all" and not isinstance(error, Disagreement):
                    raise
                out.record({"workload": workload, "invalid": f"{type(error).__name__}: {error}"})
                failed.append(f"{title}: {error}")
                continue
            out.clear()
            if not records:
                continue
            tables = [module.table(records), *([module.details(records)] if hasattr(module, "details") else [])]
            for head, rows in tables:
                show(head, rows)
            print(f"  {title} took {monotonic() - started:.0f} s, {monotonic() - began:.0f} s so far", file=sys.stderr)
            about = " ".join(module.__doc__.split())
            versions = sorted({f"{r['system']}: {r['version']}; {r.get('settings', '')}" for r in records if r.get("version")})
            clocks = sorted({f"clock of {r['system']}: {r['clock']}" for r in records if r.get("clock")})
            sections.append(page.Section(workload, title, about, tables, module.charts(records), [*versions, *clocks, *out.notes]))
    finally:
        if other_host:
            other_host.close()
        if passing:
            shutil.rmtree(scratch, ignore_errors=True)
    with open(records_path, "a") as file:
        file.write(json.dumps({"machine": described}) + "\n")
    stem.with_suffix(".html").write_text(page.page(described, sections, failed))
    print(f"records: {records_path}\npage: {stem.with_suffix('.html')}")
    return "\n".join(f"not measured, {what}" for what in failed) or None


def planned(parser, options):
    """[(workload, title, its options)]"""
    wanted = SUITE if options.workload == "all" else [(options.workload, title_of(options), None)]
    found = []
    for workload, title, flags in wanted:
        given = options if flags is None else parser.parse_args([workload, "--out", options.out, "--runs", str(options.runs)])
        if options.workload == "all" and workload == "hits":
            given.queries = options.queries
        less = SMALL[title] if options.small else {}
        for key, value in ((flags or {}) | less).items():
            setattr(given, key, value)
        found.append((workload, title, given))
    return found


def title_of(options):
    return "tsbs iot" if getattr(options, "use_case", "") == "iot" else "tsbs cpu-only" if options.workload == "tsbs" else options.workload


if __name__ == "__main__":
    sys.exit(main())
