"""The filter queries of "4 billion rows a second", scaled: a narrow filter over all columns, the last ten matches, a count.

Readings of moving trucks from one Parquet file for all. A query runs once to warm up and then --repeats times in a row; its
time is the client's, with the whole answer read: servers over HTTP, engines within their process. Answers are compared
before a time counts. "First" is the first time after the load. Not measured here: the page cache dropped.
"""

from . import data, engines
from .measure import Disagreement, beside, close, middle, spread

SYSTEMS = ["tidalite-server", "questdb", "duckdb", "clickhouse", "hyper"]
NARROW = "velocity > 90.0 AND latitude >= 7.75 AND latitude <= 7.80 AND longitude >= 14.90 AND longitude <= 14.95"
MATCHES = "velocity > 75.0 AND fuel_consumption < 10.0"
QUERIES = {
    "1 narrow filter, all columns": f"SELECT * FROM readings WHERE {NARROW}",
    "2 last ten matches": f"SELECT * FROM readings WHERE {MATCHES} ORDER BY ts DESC LIMIT 10",
    "3 count": f"SELECT count(*) FROM readings WHERE {MATCHES}",
}


def arguments(parser):
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--threads", default="2", help="of engines within their process")
    parser.add_argument("--repeats", type=int, default=5)


def run(options, out):
    path = data.readings(options.rows)
    records, answers, times = [], {}, {}
    made = engines.made(options.systems, options.scratch, int(options.threads), out)
    opened = []
    try:
        for system in made:
            try:
                system.open()
                load_s, rows = system.import_parquet("readings", path)
                if hasattr(system, "settle"):
                    system.settle({"readings": rows})
                opened.append((system, load_s, int(rows)))
                out.record(dict(workload="filters", case="load", system=system.name, run=0, seconds=load_s, rows=int(rows), disk=system.disk()))
            except (RuntimeError, OSError, TimeoutError) as error:
                out.skip(system.name, error)
                system.close()
        for case, sql in QUERIES.items():
            for number in range(options.runs):
                for system, load_s, rows in opened:
                    query = sql.replace("ORDER BY ts DESC LIMIT 10", "LIMIT -10") if system.name == "questdb" else sql
                    try:
                        first, answer = system.query(query)
                        hot = [system.time(query) for _ in range(options.repeats)]
                    except RuntimeError as error:
                        out.skip(f"{system.name}, query {case},", error)
                        continue
                    # Times of equal rows and types of text differ between systems: numbers are compared.
                    # Ten of many rows of one timestamp may be any: of the last ones the times are.
                    compared = [str(row[0]).replace("T", " ")[:19] for row in answer] if "last" in case else [[float(v) for v in row if isinstance(v, (int, float))] for row in answer]
                    answers.setdefault(case, {})[system.name] = compared
                    times.setdefault((case, system.name), []).append(first)
                    record = dict(workload="filters", case=case, system=system.name, run=number, seconds=middle(hot), first_s=first, hot_s=hot, rows=rows,
                                  version=system.version(), clock=system.clock, settings=system.settings, threads=system.threads, answer_rows=len(answer))
                    records.append(record)
                    out.record(record)
        for case, found in answers.items():
            check(case, found)
    finally:
        for system, _, _ in opened:
            system.close()
    return records


def check(case, found):
    names = list(found)
    for name in names[1:]:
        a, b = found[names[0]], found[name]
        if sorted(a) != sorted(b) if "last" in case else not close(a, b, 1e-9):
            raise Disagreement(f"{case}: {names[0]} and {name} do not agree: {str(a)[:200]} and {str(b)[:200]}")


def table(records):
    rows = []
    for case in QUERIES:
        groups = {}
        for record in (r for r in records if r["case"] == case):
            groups.setdefault(record["system"], []).append(record)
        for name, group in sorted(groups.items(), key=lambda item: middle([r["seconds"] for r in item[1]])):
            seconds = [r["seconds"] for r in group]
            compared = beside(name, seconds, {n: [r["seconds"] for r in g] for n, g in groups.items()})
            rows.append([case, name, f"{middle(seconds) * 1e3:.2f} ms", f"{spread(seconds):.0%}", f"{group[0]['first_s'] * 1e3:.1f} ms",
                         f"{group[0]['rows'] / middle(seconds) / 1e6:,.0f} M rows/s", compared])
    return ["query", "system", "hot", "spread", "first", "rows of the table by time", "as fast as the best other"], rows


def charts(records):
    from .page import bars

    out = []
    for case in QUERIES:
        values = {}
        for record in (r for r in records if r["case"] == case):
            values.setdefault(record["system"], []).append(record["seconds"] * 1e3)
        if values:
            out.append(bars(f"Query {case}, ms hot", {name: middle(v) for name, v in values.items()}, less_is_better=True))
    return out
