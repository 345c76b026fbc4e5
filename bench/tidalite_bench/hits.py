"""ClickBench-like: 105 columns of made-up hits, the queries of a file, three runs of each, the official score.

The data are synthetic (or the Parquet file given), so the numbers compare the systems of this run only and never those
published. Queries come from a file with one a line, which is given: `--queries system=FILE,…` or one FILE for all. The hot
time of a query is the better of its second and third run, the cold one the first (lukewarm: nothing is restarted). A query that
fails counts as twice the longest time of the system, 300 s or more. The score is the geometric mean over the queries of (10 ms +
time) / (10 ms + the best of all systems here); Combined weighs load 0.1, size 0.1, cold 0.2 and hot 0.6.
"""

import math
from pathlib import Path

from . import data, engines
from .measure import middle

SYSTEMS = ["tidalite-server", "duckdb", "clickhouse"]


def arguments(parser):
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--data", help="a Parquet file instead, with times and dates typed as such")
    parser.add_argument("--queries", help="FILE, or system=FILE,system=FILE; without it only load and size are measured")
    parser.add_argument("--threads", default="2")


def made(rows):
    from . import hits_data

    return data.made(data.folder() / f"hits-{rows}-62.parquet", lambda path: hits_data.write(path, rows))


def texts_of(given, name):
    """The queries of a system, by its name or by what its name begins with."""
    if not given:
        return []
    files = dict(part.split("=", 1) for part in given.split(",")) if "=" in given else {}
    file = files.get(name) or files.get(name.split("-")[0]) or (None if files else given)
    if not file:
        return []
    return [line.strip().rstrip(";") for line in Path(file).read_text().splitlines() if line.strip()]


def run(options, out):
    path = Path(options.data) if options.data else made(options.rows)
    records = []
    for name in options.systems.split(","):
        try:
            system = engines.make(name, options.scratch, int(options.threads))
        except RuntimeError as error:
            out.skip(name, error)
            continue
        try:
            system.open()
            load_s, rows = system.import_parquet("hits", path, "EventTime")
            if hasattr(system, "settle"):
                # The score counts the load: all of its work.
                seconds, _ = engines.seconds_of(lambda: system.settle({"hits": rows}))
                load_s += seconds
            common = dict(workload="hits", system=name, rows=int(rows), version=system.version(), settings=system.settings, clock=system.clock)
            record = dict(common, case="load", run=0, seconds=load_s, disk=system.disk())
            records.append(record)
            out.record(record)
            for number, sql in enumerate(texts_of(options.queries, name)):
                try:
                    times = [system.query(sql)[0] for _ in range(3)]
                except RuntimeError as error:
                    out.skip(f"{name}, query {number},", error)
                    times = [None, None, None]
                record = dict(common, case=f"q{number}", run=0, seconds=times[0], times=times)
                records.append(record)
                out.record(record)
        except (RuntimeError, OSError, TimeoutError) as error:
            out.skip(name, error)
        finally:
            system.close()
    return records


def hot(times):
    return min(times[1], times[2]) if times[1] is not None and times[2] is not None else None


def score(times):
    """{system: {query: seconds or None}} → {system: geometric mean of the ratios}."""
    systems = list(times)
    queries = sorted({q for found in times.values() for q in found})
    best = {q: min((times[s][q] for s in systems if times[s].get(q) is not None), default=None) for q in queries}
    scores = {}
    for system in systems:
        longest = max((t for t in times[system].values() if t is not None), default=0)
        ratios = []
        for query in (q for q in queries if best[q] is not None):
            time = times[system].get(query)
            time = 2 * max(300, longest) if time is None else time
            ratios.append(math.log((0.01 + time) / (0.01 + best[query])))
        scores[system] = math.exp(sum(ratios) / len(ratios)) if ratios else None
    return scores


def combined(load, size, cold, hot_score, least_load, least_size):
    load = 1 if load < 5 else load / max(least_load, 5)
    size = 2 if size < 1e9 else size / least_size
    return math.exp(.1 * math.log(load) + .1 * math.log(size) + .2 * math.log(cold) + .6 * math.log(hot_score))


def table(records):
    loads = {r["system"]: r for r in records if r["case"] == "load"}
    times = {s: {r["case"]: r["times"] for r in records if r["system"] == s and "times" in r} for s in loads}
    colds = score({s: {q: t[0] for q, t in found.items()} for s, found in times.items()})
    hots = score({s: {q: hot(t) for q, t in found.items()} for s, found in times.items()})
    sizes = {s: r["disk"]["data"] for s, r in loads.items()}
    least_load, least_size = min(r["seconds"] for r in loads.values()), min(sizes.values())
    rows = []
    for system, load in loads.items():
        both = colds[system] and hots[system]
        whole = combined(load["seconds"], sizes[system], colds[system], hots[system], least_load, least_size) if both else None
        failed = sum(1 for t in times[system].values() if t[0] is None)
        show = lambda value: f"{value:.2f}" if value else "–"  # noqa: E731
        rows.append([system, f"{load['rows']:,}", f"{load['seconds']:.1f} s", f"{sizes[system] / 2**20:.0f} MiB", show(hots[system]), show(colds[system]), show(whole), failed])
    return ["system", "rows", "load", "on disk", "hot × best", "cold × best", "combined", "failed"], rows


def charts(records):
    from .page import bars

    out = [bars("Load, s", {r["system"]: r["seconds"] for r in records if r["case"] == "load"}, less_is_better=True)]
    sums = {}
    for record in (r for r in records if "times" in r and hot(r["times"]) is not None):
        sums.setdefault(record["system"], []).append(hot(record["times"]))
    if sums:
        out.append(bars("Hot time of a query, ms, median", {s: middle(v) * 1e3 for s, v in sums.items()}, less_is_better=True))
    return out
