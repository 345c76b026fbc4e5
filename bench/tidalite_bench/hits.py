"""ClickBench-like: 105 columns of made-up hits, the queries of a file, three runs of each, the official score.

The data are synthetic (or the Parquet file given), so the numbers compare the systems of this run only and never those
published. Queries come from a file with one a line, which is given: `--queries system=FILE,…` or one FILE for all. All systems
are loaded, then every query is asked of one after the other. The hot time of a query is the better of its second and third run,
the cold one the first: with --cold after a restart of the system with the page cache dropped, else lukewarm. A query that
fails counts as twice the longest time of the system, 300 s or more. The score is the geometric mean over the queries of (10 ms +
time) / (10 ms + the best of all systems here); Combined weighs load 0.1, size 0.1, cold 0.2 and hot 0.6. Answers are compared
with those that most systems give: all of it, or, where rows of equal rank may be cut off by a LIMIT, a column or the count of
rows. A time whose answer does not agree so far is a failed query.
"""

import math
from pathlib import Path

from . import answers as answers_of
from . import data, engines
from .measure import Disagreement, middle

SYSTEMS = ["tidalite-server", "tidalite-process", "questdb", "duckdb", "clickhouse", "hyper"]


def arguments(parser):
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--data", help="a Parquet file instead, with times and dates typed as such")
    parser.add_argument("--queries", help="FILE, or system=FILE,system=FILE; without it only load and size are measured")
    parser.add_argument("--threads", default="2")
    parser.add_argument("--cold", action="store_true", help="restarts a system and drops the page cache before the first run of each query")
    parser.add_argument("--only", default="", help="numbers of queries, e.g. 0,5,12")


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
    return [line.strip().rstrip(";") for line in Path(file).read_text().splitlines() if line.strip() and not line.startswith("--")]


def run(options, out):
    path = Path(options.data) if options.data else made(options.rows)
    records, loaded, counts = [], [], {}
    try:
        for system in engines.made(options.systems, options.scratch, int(options.threads), out):
            try:
                system.open()
                load_s, rows = system.import_parquet("hits", path, "EventTime", "CounterID")
                if hasattr(system, "settle"):
                    # The score counts the load: all of its work.
                    seconds, _ = engines.seconds_of(lambda: system.settle({"hits": rows}))
                    load_s += seconds
                record = dict(about(system, rows), case="load", run=0, seconds=load_s, disk=system.disk(), durability=system.durability)
                records.append(record)
                out.record(record)
                loaded.append(system)
                counts[system.name] = int(rows)
            except (RuntimeError, OSError, TimeoutError) as error:
                out.skip(system.name, error)
                system.close()
        if len(set(counts.values())) > 1:
            raise Disagreement(f"not all have the same rows: {counts}")
        texts = {system.name: texts_of(options.queries, system.name) for system in loaded}
        wanted = [int(n) for n in options.only.split(",") if n] or range(max(map(len, texts.values()), default=0))
        for number in wanted:
            out.progress(f"query {number}", number, 43)
            records += ask(number, [(s, texts[s.name][number]) for s in loaded if number < len(texts[s.name])], counts, options, out)
    finally:
        for system in loaded:
            system.close()
    return records


def about(system, rows):
    return dict(workload="hits", system=system.name, rows=int(rows), version=system.version(), settings=system.settings, clock=system.clock)


def ask(number, asked, counts, options, out):
    """Three runs of one query by each system, and what of its answers agrees."""
    found = {}
    for system, sql in asked:
        record = dict(about(system, counts[system.name]), case=f"q{number}", run=0, sql=sql, cold="lukewarm")
        try:
            if options.cold:
                record["cold"] = system.restart()
            runs = [system.query(sql) for _ in range(3)]
            found[system.name] = (record | dict(times=[seconds for seconds, _ in runs]), answers_of.plain(runs[2][1]))
        except RuntimeError as error:
            out.skip(f"{system.name}, query {number},", error)
            found[system.name] = (record | dict(times=[None] * 3, error=str(error)), None)
    answers = {name: answer for name, (_, answer) in found.items() if answer is not None}
    groups = answers_of.majority(answers) or answers_of.majority(answers, lambda a, b: answers_of.agreement(a, b) == "a column") or answers_of.majority(answers, lambda a, b: len(a) == len(b))
    for name, (record, answer) in found.items():
        if answer is not None and groups:
            record["agrees"] = answers_of.agreement(answers[groups[0]], answer)
            if record["agrees"] == "nothing":
                out.disagree(f"hits q{number}", name, f"{len(answer)} rows {str(answer)[:150]} where {groups[0]} has {len(answers[groups[0]])} {str(answers[groups[0]])[:150]}; {record['sql'][:300]}")
                record["times"] = [None] * 3
        record["seconds"] = hot(record["times"])
        out.record(record)
    return [record for record, _ in found.values()]


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
    show = lambda value: f"{value:.2f}" if value else "–"  # noqa: E731
    rows = []
    for system, load in loads.items():
        both = colds[system] and hots[system]
        whole = combined(load["seconds"], sizes[system], colds[system], hots[system], least_load, least_size) if both else None
        failed = sum(1 for t in times[system].values() if t[0] is None)
        agreed = [r.get("agrees") for r in records if r["system"] == system and "times" in r]
        told = ", ".join(f"{agreed.count(what)} {what}" for what in ("all", "a column", "count") if agreed.count(what))
        rows.append([system, f"{load['rows']:,}", f"{load['seconds']:.1f} s", f"{sizes[system] / 2**20:.0f} MiB", show(hots[system]), show(colds[system]), show(whole), failed, told])
    return ["system", "rows", "load", "on disk", "hot × best", "cold × best", "combined", "failed", "answers agree in"], rows


def details(records):
    """A row a query: its hot time by each system, ms."""
    systems = [r["system"] for r in records if r["case"] == "load"]
    cases = list(dict.fromkeys(r["case"] for r in records if "times" in r))
    found = {(r["case"], r["system"]): hot(r["times"]) for r in records if "times" in r}
    rows = []
    for case in cases:
        times = [found.get((case, s)) for s in systems]
        best = min((t for s, t in zip(systems, times) if t is not None and not s.startswith("tidalite")), default=None)
        ours = min((t for s, t in zip(systems, times) if t is not None and s.startswith("tidalite")), default=None)
        shown = [f"{t * 1e3:.1f}" if t is not None else "–" for t in times]
        rows.append([case, *shown, f"{ours / best:.2f}" if ours is not None and best else ""])
    return ["query, hot ms", *systems, "ours / best other"], rows


def charts(records):
    from .page import bars

    out = [bars("Load, s", {r["system"]: r["seconds"] for r in records if r["case"] == "load"}, less_is_better=True)]
    times = {}
    for record in (r for r in records if "times" in r):
        times.setdefault(record["system"], {})[record["case"]] = record["times"]
    for name, picked in (("hot", hot), ("cold", lambda t: t[0])):
        scores = {s: v for s, v in score({s: {q: picked(t) for q, t in found.items()} for s, found in times.items()}).items() if v}
        if scores:
            out.append(bars(f"Relative {name} time over all queries, × the best of each", scores, less_is_better=True))
    return out
