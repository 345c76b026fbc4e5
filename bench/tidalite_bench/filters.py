"""The filter queries of "4 billion rows a second", scaled: a narrow filter over all columns, the last ten matches, a count.

Readings of moving trucks from one Parquet file for all. A query runs once to warm up and then --repeats times in a row; its
time is the client's, with the whole answer read: servers over HTTP, engines within their process. Answers are compared before
a time counts, and who answers otherwise than most is not timed. "Cold" is the first time after a restart of the system with
the page cache dropped (or its files evicted from it, where that is not allowed); starting it is not counted. --shapes adds
what is asked of such data daily: sums, groups, buckets of time, the first of an order, last positions. --threads 1,2 and
--jit on,off do it all again with other numbers of threads, and without machine code for conditions in the servers that make
some.
"""

from . import answers as answers_of
from . import data, dialects, engines
from .measure import beside, middle, spread, turns

SYSTEMS = ["tidalite-server", "tidalite-process", "questdb", "duckdb", "clickhouse", "hyper"]
NARROW = "velocity > 90.0 AND latitude >= 7.75 AND latitude <= 7.80 AND longitude >= 14.90 AND longitude <= 14.95"
MATCHES = "velocity > 75.0 AND fuel_consumption < 10.0"
LAST = "2 last ten matches"
# A day in seconds since 1970, within the data.
DAY = 1_704_067_200 * 10**9, 1_704_153_600 * 10**9

FILTERS = {
    "1 narrow filter, all columns": lambda d: f"SELECT * FROM readings WHERE {NARROW}",
    LAST: lambda d: f"SELECT * FROM readings WHERE {MATCHES} {d.last_rows(10)}",
    "3 count": lambda d: f"SELECT count(*) FROM readings WHERE {MATCHES}",
}
SHAPES = {
    "sum": lambda d: "SELECT sum(velocity) AS s FROM readings",
    "seven maxima": lambda d: "SELECT max(latitude), max(longitude), max(elevation), max(velocity), max(heading), max(grade), max(fuel_consumption) FROM readings",
    "group by fleet": lambda d: "SELECT fleet, avg(velocity) AS a, count(*) AS n FROM readings GROUP BY fleet",
    "group by name": lambda d: "SELECT name, avg(velocity) AS a, count(*) AS n FROM readings GROUP BY name",
    "one truck": lambda d: "SELECT avg(velocity) AS a, max(fuel_consumption) AS m FROM readings WHERE name = 'truck_77'",
    "a day's average": lambda d: f"SELECT avg(velocity) AS a FROM readings WHERE {d.window(*DAY, column='ts')}",
    "hours by fleet": lambda d: d.sampled(60, ["fleet"], ["avg(velocity) AS a"], "readings", column="ts"),
    "candles by truck and day": lambda d: d.sampled(1440, ["name"], [f"{d.first('velocity', 'ts')} AS o", "max(velocity) AS h", "min(velocity) AS l", f"{d.last('velocity', 'ts')} AS c", "sum(grade) AS v"], "readings", column="ts"),
    "first ten by velocity": lambda d: "SELECT * FROM readings ORDER BY velocity DESC, ts, name LIMIT 10",
    "last of each truck": lambda d: d.latest("name, ts, longitude, latitude", "readings", "name", column="ts"),
}


def arguments(parser):
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--threads", default="2", help="of a query; several as 1,2")
    parser.add_argument("--jit", default="on", help="on, off or on,off: conditions as machine code, of servers that have it")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cold-runs", type=int, default=3, help="after a restart with the page cache dropped; 0 for none")
    parser.add_argument("--shapes", action="store_true", help="sums, groups, buckets, last positions as well")
    parser.add_argument("--silent-truck", action="store_true", help="one truck is silent after the first day: its last position is far from the end")
    parser.add_argument("--unparsed", action="store_true", help="answers end with their last byte, or as Arrow in process: without what Python takes to read them")
    parser.add_argument("--only", help="queries with this in their name, others are not asked")


def run(options, out):
    path = data.readings(options.rows, silent=options.silent_truck)
    asked = {case: text for case, text in (FILTERS | SHAPES if options.shapes else FILTERS).items() if (options.only or "") in case}
    records, counts = [], options.threads.split(",")
    for jit in options.jit.split(","):
        # Loaded with the most threads, then asked with each number of them.
        with engines.loaded("filters", "readings", path, options, out, threads=max(map(int, counts)), compiles={"on": True, "off": False}[jit]) as opened:
            for threads in counts:
                # Said where there is more than one.
                variant = [f"{threads} thread{'s' * (threads != '1')}"] * (len(counts) > 1) + [f"JIT {jit}"] * ("," in options.jit)
                for system in opened:
                    system.go_on_with(int(threads))
                for done, (case, text) in enumerate(asked.items()):
                    out.progress(case, done, len(asked))
                    records += measure(", ".join([case, *variant]), text, opened, options, out)
    return records


def measure(case, text, opened, options, out):
    texts = {system.name: text(dialects.DIALECTS[system.name]) for system in opened}
    answers, records = {}, []
    for system in opened:
        try:
            answers[system.name] = comparable(case, system.query(texts[system.name])[1])
        except RuntimeError as error:
            out.skip(f"{system.name}, query {case},", error)
    kept = answers_of.majority(answers)
    for name in (n for n in answers if n not in kept):
        out.disagree(f"filters {case}", name, f"{str(answers[name])[:200]} where {kept[0] if kept else 'another'} has {str(answers[kept[0]] if kept else answers)[:200]}; {texts[name]}")
    timed = [system for system in opened if system.name in kept]
    for number, system in turns(timed, options.runs):
        hot = [system.time(texts[system.name], options.unparsed) for _ in range(options.repeats + 1)][1:]
        records.append(about(case, system, number, opened, texts) | dict(seconds=middle(hot), hot_s=hot, clock=system.clock + (", not parsed" if options.unparsed else ""), answer_rows=len(answers[system.name])))
        out.record(records[-1])
    for number, system in turns(timed, options.cold_runs):
        how = system.restart()
        records.append(about(case, system, number, opened, texts) | dict(seconds=system.time(texts[system.name]), cold=how))
        out.record(records[-1])
    return records


def about(case, system, number, opened, texts):
    return dict(workload="filters", case=case, system=system.name, run=number, rows=opened[system], version=system.version(), clock=system.clock,
                settings=system.settings, threads=system.threads, sql=texts[system.name])


def comparable(case, rows):
    """Of the last rows of one timestamp any may be the answer: their times are compared, whatever column they are."""
    rows = answers_of.plain(rows)
    return [[value for value in row if isinstance(value, str) and answers_of.TIME.fullmatch(value[:16])][:1] for row in rows] if case.startswith(LAST) else rows


def table(records):
    rows = []
    for case in dict.fromkeys(r["case"] for r in records):
        hot, cold = grouped(records, case, False), grouped(records, case, True)
        size = next(r["rows"] for r in records if r["case"] == case)
        for name, seconds in sorted(hot.items(), key=lambda item: middle(item[1])):
            after = cold.get(name)
            rows.append([case, name, f"{middle(seconds) * 1e3:.2f} ms", f"{spread(seconds):.0%}", f"{size / middle(seconds) / 1e6:,.0f} M rows/s", beside(name, seconds, hot),
                         f"{middle(after) * 1e3:.1f} ms" if after else "", f"{spread(after):.0%}" if after else "", beside(name, after, cold) if after else ""])
    return ["query", "system", "hot", "spread", "rows of the table by time", "as fast as the best other", "cold", "spread", "as fast as the best other"], rows


def grouped(records, case, cold):
    found = {}
    for record in (r for r in records if r["case"] == case and ("cold" in r) == cold):
        found.setdefault(record["system"], []).append(record["seconds"])
    return found


def charts(records):
    from .page import bars, pairs

    out = []
    for case in dict.fromkeys(r["case"] for r in records):
        hot, cold = ({n: middle(v) * 1e3 for n, v in grouped(records, case, c).items()} for c in (False, True))
        out.append(pairs(f"Query {case}, ms", {"hot": hot, "cold": cold}) if cold else bars(f"Query {case}, ms hot", hot, less_is_better=True))
    return out
