"""The command: `python -m tidalite_bench ingress|filters|late|tsbs|frames|hits|all`.

Each workload gives records (lines of JSON in --out), a table on the terminal and a section of the page.
"""

import argparse
import importlib
import json
import os
import shutil
import sys
import tempfile
from datetime import date
from pathlib import Path

from . import install
from .measure import Disagreement

WORKLOADS = ["ingress", "filters", "late", "tsbs", "frames", "hits"]


class Out:
    """Where records go while it runs."""

    def __init__(self, path):
        self.path, self.notes = path, []

    def record(self, record):
        with open(self.path, "a") as file:
            file.write(json.dumps(record) + "\n")
        time = record.get("seconds")
        what = " ".join(str(record[key]) for key in ("workload", "case", "system", "threads", "run") if key in record)
        print(f"  {what}: {time:.3f} s" if time is not None else f"  {what}", file=sys.stderr, flush=True)

    def disagree(self, case, name, what):
        """An answer that the others do not give: no time of it, and a record that says so."""
        self.record({"workload": case.split()[0], "case": case, "system": name, "invalid": what})
        self.skip(f"{name}, {case},", what)

    def skip(self, name, error):
        note = f"{name} was not measured: {error}"
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


def small(options, workload):
    """What finishes on two cores within the quarter of an hour that all of it may take."""
    less = {"ingress": dict(runs=3, threads="2"), "filters": dict(rows=5_000_000, runs=3), "late": dict(runs=2, rows=1_440_000),
            "tsbs": dict(runs=2, hours=0.5, queries=20, workers="1,2"), "frames": dict(row_count=300_000, runs=2), "hits": dict(rows=300_000, runs=2)}
    for key, value in less[workload].items():
        setattr(options, key, value)


def main():
    parser = argparse.ArgumentParser(prog="tidalite-bench", description=__doc__)
    commands = parser.add_subparsers(dest="workload", required=True)
    modules = {}
    for name in [*WORKLOADS, "all"]:
        command = commands.add_parser(name)
        command.add_argument("--runs", type=int, default=3)
        command.add_argument("--scratch", help="where systems keep their data [default: a temporary folder]")
        command.add_argument("--out", default="results", help="where the records and the page go")
        command.add_argument("--small", action="store_true", help="less data and fewer runs")
        if name != "all":
            if not (Path(__file__).parent / f"{name}.py").exists():
                continue
            modules[name] = importlib.import_module(f".{name}", __package__)
            modules[name].arguments(command)
    options = parser.parse_args()
    in_environment()
    wanted = list(modules) if options.workload == "all" else [options.workload]
    from . import machine, page

    folder = Path(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / f"{date.today().isoformat()}-{options.workload}"
    records_path = stem.with_suffix(".jsonl")
    records_path.unlink(missing_ok=True)
    scratch = options.scratch or tempfile.mkdtemp(prefix="tidalite-bench-")
    described = machine.describe(scratch)
    sections = []
    try:
        for name in wanted:
            given = options
            if options.workload == "all":
                given = parser.parse_args([name, "--out", options.out, "--runs", str(options.runs)])
            given.scratch = scratch
            if options.small:
                small(given, name)
            out, module = Out(records_path), modules[name]
            print(f"{name}: {module.__doc__.splitlines()[0]}", file=sys.stderr)
            try:
                records = module.run(given, out)
            except Disagreement as error:
                out.record({"workload": name, "invalid": str(error)})
                raise
            if not records:
                continue
            head, rows = module.table(records)
            show(head, rows)
            about = " ".join(module.__doc__.split())
            versions = sorted({f"{r['system']}: {r['version']}; {r.get('settings', '')}" for r in records if r.get("version")})
            clocks = sorted({f"clock of {r['system']}: {r['clock']}" for r in records if r.get("clock")})
            sections.append((name, about, head, rows, module.charts(records), [*versions, *clocks, *out.notes]))
    finally:
        if not options.scratch:
            shutil.rmtree(scratch, ignore_errors=True)
    with open(records_path, "a") as file:
        file.write(json.dumps({"machine": described}) + "\n")
    stem.with_suffix(".html").write_text(page.page(described, sections))
    print(f"records: {records_path}\npage: {stem.with_suffix('.html')}")


if __name__ == "__main__":
    main()
