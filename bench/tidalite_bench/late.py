"""Rows out of order: the same lines in order, shuffled within ten minutes, and shuffled as a whole.

TSBS cpu-only lines over plain TCP connections. Visible is when a count shows all rows; settled when the system has no work
left (as ../systems.py says of each). Every run has a fresh server and a fresh folder; count, range and a sum are compared.
"""

import itertools
import random

from . import data, engines
from .measure import agree, beside, middle, spread, turns

SYSTEMS = ["tidalite-server", "questdb"]
ORDERS = ["ordered", "within 10 minutes", "random"]
HOSTS = 4000


def arguments(parser):
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--rows", type=int, default=5_760_000)
    parser.add_argument("--connections", type=int, default=2)
    parser.add_argument("--lag", default="", help="how late rows may be, seconds, as the table is told; several as 0,600; without it the system finds out")


def shuffled(lines, order):
    chance = random.Random(5)
    window = {"ordered": 1, "within 10 minutes": 60 * HOSTS, "random": len(lines)}[order]
    if window > 1:
        for first in range(0, len(lines), window):
            piece = lines[first:first + window]
            chance.shuffle(piece)
            lines[first:first + window] = piece
    return lines


def run(options, out):
    import senders

    epochs = max(1, options.rows // HOSTS)
    path = data.tsbs("cpu-only", HOSTS, 1451606400, 1451606400 + 10 * epochs, 10)
    records = []
    for order, lag in itertools.product(ORDERS, options.lag.split(",")):
        lines = shuffled(path.read_bytes().splitlines(keepends=True), order)
        count, text = len(lines), b"".join(lines)
        del lines
        blocks = list(senders.cut(text, 4 << 20))
        made = engines.made_for_lines(options.systems, options.scratch, out)
        answers = {}
        for number, system in turns(made, options.runs):
            try:
                system.open()
                if lag:
                    told_lag(system, text, int(lag))
                record = ingest(system, text, blocks, count, options.connections)
                row = system.query("select count(*), sum(usage_user), sum(usage_guest_nice) from cpu")[1][0]
                answer = [float(v) for v in row]
                agree({f"{system.name} before": answers.setdefault(system.name, answer), system.name: answer})
                record |= dict(workload="late", case=f"{order}, lag {lag} s" if lag else order, run=number, bytes=len(text), md5=data.md5(path), connections=options.connections)
                records.append(record)
                out.record(record)
            except (RuntimeError, OSError, TimeoutError) as error:
                out.skip(system.name, error)
            finally:
                system.close()
        agree(answers)
    return records


def told_lag(system, text, seconds):
    """Makes the table and tells it."""
    tags, fields = text[:text.index(b"\n")].decode().split(" ")[:2]
    columns = [f"{tag.split('=')[0]} symbol" for tag in tags.split(",")[1:]] + [f"{field.split('=')[0]} long" for field in fields.split(",")] + ["timestamp timestamp"]
    for sql in (f"create table cpu ({', '.join(columns)}) timestamp(timestamp) partition by day wal", f"alter table cpu set param o3MaxLag = {seconds}s"):
        system.query(sql)


def ingest(system, text, blocks, count, connections):
    import time

    system.warm()
    start = time.monotonic()
    sent = system.send(text, blocks, connections)
    while system.system.count("cpu") < count:
        if time.monotonic() - start > 300:
            raise TimeoutError(f"{system.name} shows {system.system.count('cpu')} of {count} rows")
        time.sleep(0.01)
    visible = time.monotonic() - start
    settled = max(visible, system.system.wait_settled({"cpu": count}, 300) - start)
    return dict(system=system.name, rows=count, sent_s=sent, seconds=visible, settled_s=settled, rows_s=count / visible, version=system.version(),
                durability=system.durability, settings=system.settings, clock="from the first byte until a count over HTTP shows all rows", disk=system.disk())


def table(records):
    rows = []
    groups = {}
    for record in records:
        groups.setdefault((record["case"], record.get("workers", 0), record["system"]), []).append(record)
    for (case, workers, name), group in groups.items():
        seconds = [r["seconds"] for r in group]
        compared = beside(name, seconds, {n: [r["seconds"] for r in g] for (c, w, n), g in groups.items() if (c, w) == (case, workers)})
        rows.append([case, *([workers] if workers else []), name, len(group), f"{middle(seconds):.2f} s", f"{spread(seconds):.0%}", f"{group[0]['rows'] / middle(seconds) / 1e6:.2f} M rows/s",
                     f"{middle([r['sent_s'] for r in group]):.2f} s", f"{middle([r['settled_s'] for r in group]):.2f} s",
                     f"{middle([r['disk']['data'] for r in group]) / 2**20:.0f} MiB", compared, group[0]["durability"]])
    workers = ["workers"] if any("workers" in r for r in records) else []
    return ["rows", *workers, "system", "runs", "visible", "spread", "rate", "sent", "settled", "on disk", "as fast as the best other", "durability"], rows


def charts(records):
    from .page import bars

    out = []
    for case in dict.fromkeys(record["case"] for record in records):
        values = {}
        for record in (r for r in records if r["case"] == case):
            values.setdefault(record["system"], []).append(record["rows_s"] / 1e6)
        if values:
            out.append(bars(f"{case}: million rows a second until visible", {n: middle(v) for n, v in values.items()}))
    return out
