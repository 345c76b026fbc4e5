"""The ten group-by questions of db-benchmark ("h2o"), over its table G1: three texts, three integers, three values.

The generator is written anew after the published description (seed 108, K = 100, no missing values, not sorted), with a row
number as time for systems that want one. A question is asked twice in a run, as there: the first and the second time are both
reported; answers are compared first. Where a system has no function for a question it is left out of that and said.
"""

from . import answers as answers_of
from . import data, engines
from .measure import beside, middle, told, turns

SYSTEMS = ["tidalite-server", "tidalite-process", "questdb", "duckdb", "clickhouse", "hyper", "datafusion", "polars"]
STANDARD = {
    "1 sum v1 by id1": "SELECT id1, sum(v1) AS v1 FROM x GROUP BY id1",
    "2 sum v1 by id1, id2": "SELECT id1, id2, sum(v1) AS v1 FROM x GROUP BY id1, id2",
    "3 sum v1, mean v3 by id3": "SELECT id3, sum(v1) AS v1, avg(v3) AS v3 FROM x GROUP BY id3",
    "4 mean v1 to v3 by id4": "SELECT id4, avg(v1) AS v1, avg(v2) AS v2, avg(v3) AS v3 FROM x GROUP BY id4",
    "5 sum v1 to v3 by id6": "SELECT id6, sum(v1) AS v1, sum(v2) AS v2, sum(v3) AS v3 FROM x GROUP BY id6",
    "6 median, deviation v3 by id4, id5": "SELECT id4, id5, median(v3) AS m, stddev_samp(v3) AS d FROM x GROUP BY id4, id5",
    "7 max v1 - min v2 by id3": "SELECT id3, max(v1) - min(v2) AS r FROM x GROUP BY id3",
    "8 largest two v3 by id6": "SELECT id6, v3 FROM (SELECT id6, v3, row_number() OVER (PARTITION BY id6 ORDER BY v3 DESC) AS n FROM x) t WHERE n <= 2",
    "9 correlation v1, v2 by id2, id4": "SELECT id2, id4, power(corr(v1, v2), 2) AS r2 FROM x GROUP BY id2, id4",
    "10 sum v3, count by all": "SELECT id1, id2, id3, id4, id5, id6, sum(v3) AS v3, count(*) AS n FROM x GROUP BY id1, id2, id3, id4, id5, id6",
}
# What a system writes otherwise.
OTHERWISE = {
    "clickhouse": [("median(v3)", "quantileExactInclusive(0.5)(v3)"), ("stddev_samp", "stddevSamp")],
    "hyper": [("median(v3)", "percentile_cont(0.5) WITHIN GROUP (ORDER BY v3)"), ("avg(v1)", "avg(cast(v1 AS double precision))"), ("avg(v2)", "avg(cast(v2 AS double precision))")],
}


def arguments(parser):
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--k", type=int, default=100, help="groups of id1, id2, id4, id5; id3 and id6 have rows / k")
    parser.add_argument("--threads", default="2")


def text(question, name):
    sql = STANDARD[question]
    for ours, theirs in OTHERWISE.get(name, []):
        sql = sql.replace(ours, theirs)
    return sql


def made(rows, k):
    return data.made(data.folder() / f"h2o-{rows}-{k}-108.parquet", lambda path: write(path, rows, k))


def write(path, rows, k, seed=108):
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    chance, many = np.random.default_rng(seed), max(1, rows // k)
    writer = None
    for first in range(0, rows, 1_000_000):
        n = min(1_000_000, rows - first)
        small = lambda: pa.DictionaryArray.from_arrays(pa.array(chance.integers(0, k, n).astype(np.int32)), pa.array([f"id{i + 1:03}" for i in range(k)]))  # noqa: E731
        columns = {"ts": pa.array(np.arange(first, first + n) * 1_000_000, pa.timestamp("us")), "id1": small(), "id2": small(),
                   "id3": pa.array([f"id{i:010}" for i in (chance.integers(0, many, n) + 1).tolist()]),
                   "id4": chance.integers(1, k + 1, n), "id5": chance.integers(1, k + 1, n), "id6": chance.integers(1, many + 1, n),
                   "v1": chance.integers(1, 6, n), "v2": chance.integers(1, 16, n), "v3": np.round(chance.uniform(0, 100, n), 6)}
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, table.schema, compression="zstd", compression_level=1, use_dictionary=["id1", "id2"])
        writer.write_table(table, row_group_size=1_000_000)
    writer.close()


def run(options, out):
    path = made(options.rows, options.k)
    records = []
    with engines.loaded("h2o", "x", path, options, out) as opened:
        for done, question in enumerate(STANDARD):
            out.progress(question, done, len(STANDARD))
            records += ask(question, opened, options, out)
    return records


def ask(question, opened, options, out):
    answers, records = {}, []
    for system in opened:
        try:
            answers[system.name] = answers_of.plain(system.query(text(question, system.name))[1])
        except RuntimeError as error:
            out.skip(f"{system.name}, {question},", str(error)[:200])
    kept = answers_of.majority(answers)
    for name in (n for n in answers if n not in kept):
        out.disagree(f"h2o {question}", name, f"{str(answers[name])[:150]}, not as most: {str(answers[kept[0]])[:150] if kept else ''}; {text(question, name)}")
    for number, system in turns([s for s in opened if s.name in kept], options.runs):
        first, second = (system.time(text(question, system.name)) for _ in range(2))
        record = dict(workload="h2o", case=question, system=system.name, run=number, seconds=second, first_s=first, rows=options.rows, sql=text(question, system.name),
                      version=system.version(), clock=system.clock, settings=system.settings)
        records.append(record)
        out.record(record)
    return records


def table(records):
    systems, rows = list(dict.fromkeys(r["system"] for r in records)), []
    for question in STANDARD:
        seconds = {}
        for record in (r for r in records if r["case"] == question):
            seconds.setdefault(record["system"], []).append(record["seconds"])
        cells = [told(seconds[n]) if n in seconds else "–" for n in systems]
        rows.append([question, *cells, " ".join(beside(n, s, seconds) for n, s in seconds.items() if n.startswith("tidalite"))])
    return ["question, ms of the second time", *systems, "ours as fast as the best other"], rows


def charts(records):
    from .page import bars

    sums = {}
    for record in records:
        sums.setdefault(record["system"], {}).setdefault(record["case"], []).append(record["seconds"])
    asked = {case for found in sums.values() for case in found}
    whole = {name: sum(middle(v) for v in found.values()) * 1e3 for name, found in sums.items() if set(found) == asked}
    return [bars(f"All {len(asked)} questions together, ms (systems that answer all)", whole, less_is_better=True)] if whole else []
