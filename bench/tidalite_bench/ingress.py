"""CSV ingress by QuasarDB's method: one file through each system's own importer, until it is durable and verified.

The clock runs from the importer's start until its last row is stored as the system's durability says (stated beside the
number); count and sums are then asked of each and compared before a time is reported; then it compacts, and its size is
taken. The whole system starts afresh for every run. CPU seconds are
those of the system's process (QuestDB's with its warm-up); they tell more than the clock where others use the machine.
"""

import sys

from . import data, engines, machine
from .measure import agree, beside, middle, spread, turns

SYSTEMS = ["tidalite", "duckdb", "clickhouse", "questdb", "tidalite-server"]


def arguments(parser):
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--data", default="walk", choices=["walk", "bars"], help="walk: 2,030,000 rows of four decimals, 118 MiB; bars: sessions of a share, 110 MiB")
    parser.add_argument("--times", type=int, default=1, help="the file so many times as large")
    parser.add_argument("--threads", default="2", help="threads of each importer, e.g. 1,2")
    parser.add_argument("--rows", type=int, default=2_030_000, help="of walk")


def checks(table, timestamp, name):
    """Count, range and sums as each writes them; times as seconds since 1970."""
    seconds = {"duckdb": "epoch({})", "clickhouse": "toUnixTimestamp({})", "hyper": "extract(epoch from {})"}
    as_seconds = seconds.get(name, "cast({} as long) / 1000000")
    ends = ", ".join(as_seconds.format(f"{end}({timestamp})") for end in ("min", "max"))
    return f"select count(*), {ends}, sum(volume), sum(close), min(low), max(high) from {table}"


def numbers(row):
    return [float(value) for value in row]


def run(options, out):
    path = data.walk(options.rows * options.times) if options.data == "walk" else data.bars((110 << 20) * options.times)
    size, digest = path.stat().st_size, data.md5(path)
    timestamp = "timestamp" if options.data == "walk" else "ts"
    columns = [[timestamp, "TIMESTAMP"], *([name, "DOUBLE"] for name in ("open", "high", "low", "close")), ["volume", "LONG"]]
    path.read_bytes()  # in the page cache for all, or for none
    records = []
    for threads in map(int, options.threads.split(",")):
        made = engines.made(options.systems, options.scratch, threads, out)
        answers = {}
        for number, system in turns(made, options.runs):
            busy, own = machine.busy_seconds(), machine.own_seconds()
            try:
                system.open()
                cpu = system.cpu_seconds()
                seconds, rows = system.import_csv("bars_t", path, columns)
                cpu = system.cpu_seconds() - cpu
                answer = numbers(system.query(checks("bars_t", timestamp, system.name))[1][0])
                agree({f"{system.name} before": answers.setdefault(system.name, answer), system.name: answer})
                disk = system.disk()
                record = dict(workload="ingress", data=options.data, md5=digest, bytes=size, rows=int(rows), threads=threads, run=number,
                              system=system.name, version=system.version(), seconds=seconds, rows_s=rows / seconds, mib_s=size / seconds / 2**20,
                              disk=disk, durability=system.durability, clock=system.clock, settings=system.settings, cpu_s=cpu,
                              all_cpu_s=machine.busy_seconds() - busy, own_cpu_s=machine.own_seconds() - own, whole_s=getattr(system, "whole_s", None))
                records.append(record)
                out.record(record)
            except (RuntimeError, OSError) as error:
                out.skip(system.name, error)
            finally:
                system.close()
        agree(answers)
    return records


def table(records):
    """Rows of the report: one per system and threads."""
    groups = {}
    for record in records:
        groups.setdefault((record["threads"], record["system"]), []).append(record)
    rows = []
    for (threads, system), group in sorted(groups.items(), key=lambda item: (item[0][0], middle([r["seconds"] for r in item[1]]))):
        seconds = [r["seconds"] for r in group]
        compared = beside(system, seconds, {n: [r["seconds"] for r in g] for (t, n), g in groups.items() if t == threads})
        wholes = [r["whole_s"] for r in group if r["whole_s"] is not None]
        rows.append([threads, system, len(group), f"{middle(seconds):.2f} s", f"{middle(wholes):.2f} s" if wholes else "", f"{spread(seconds):.0%}", f"{group[0]['rows'] / middle(seconds) / 1e6:.2f} M rows/s",
                     f"{group[0]['bytes'] / middle(seconds) / 2**20:.0f} MiB/s", f"{middle([r['cpu_s'] for r in group]):.2f} s", f"{middle([r['disk']['data'] for r in group]) / 2**20:.1f} MiB",
                     f"{middle([r['disk'].get('log', 0) for r in group]) / 2**20:.0f} MiB",
                     compared, group[0]["durability"]])
    return ["threads", "system", "runs", "until durable", "whole command", "spread", "rate", "text", "CPU", "on disk", "log and checkpoint beside it", "as fast as the best other", "durability"], rows


def charts(records):
    from .page import bars

    def by_system(value):
        found = {}
        for record in records:
            found.setdefault(f"{record['system']} ({record['threads']} thr.)", []).append(value(record))
        return {name: middle(values) for name, values in found.items()}

    return [bars("CSV until durable, million rows a second", by_system(lambda r: r["rows_s"] / 1e6)),
            bars("Size on disk, MiB", by_system(lambda r: r["disk"]["data"] / 2**20), less_is_better=True)]


if __name__ == "__main__":
    sys.exit("python -m tidalite_bench ingress")
