"""Joins by time: each trade with the latest quote of its symbol, a million trades and ten million quotes of one day.

Two tables from Parquet files for all. What is asked is counted and averaged, so that no client has a million rows to read. A
query runs once to warm up and then --repeats times in a row; its time is the client's, with the whole answer read: servers
over HTTP, engines within their process. Answers are compared before a time counts, and who answers otherwise than most is
not timed. QuestDB is asked twice: as it chooses by itself, and with its hint `asof_linear`. Peers without a word for the
tolerance join first and count afterwards what is within it; those without LT JOIN compare with `>`.
"""

from . import answers as answers_of
from . import data, engines
from .filters import charts as charts_of
from .filters import table as table_of
from .measure import middle, turns

SYSTEMS = ["tidalite-server", "tidalite-process", "questdb", "duckdb", "clickhouse"]
HINT = "questdb, asof_linear"
HOUR = "2024-01-01T12:00:00", "2024-01-01T13:00:00"


class Words:
    """Of Tidalite and QuestDB, which have the same."""

    hint = ""

    def asked(self, kind, left, tolerance=None, hour=False):
        within = f" TOLERANCE {tolerance}T" if tolerance else ""
        where = f" WHERE t.ts >= '{HOUR[0]}' AND t.ts < '{HOUR[1]}'" if hour else ""
        joined = f"SELECT {self.hint}q.bid FROM {left} t {kind} JOIN quotes q ON (symbol){within}{where}"
        return f"SELECT count(*) AS n, count(bid) AS m, avg(bid) AS a FROM ({joined})"


class Hinted(Words):
    hint = "/*+ asof_linear(t q) */ "


class Standard:
    """Of DuckDB and ClickHouse."""

    times = "epoch_us(t.ts) - epoch_us(q.ts)"
    there = "q.bid IS NOT NULL"

    def asked(self, kind, left, tolerance=None, hour=False):
        sign = ">" if kind == "LT" else ">="
        kept = f" FILTER (WHERE {self.times} <= {tolerance * 1000})" if tolerance else f" FILTER (WHERE {self.there})"
        where = f" WHERE t.ts >= '{self.time(HOUR[0])}' AND t.ts < '{self.time(HOUR[1])}'" if hour else ""
        return (f"SELECT count(*) AS n, count(q.bid){kept} AS m, avg(q.bid){kept} AS a "
                f"FROM {left} t ASOF LEFT JOIN quotes q ON t.symbol = q.symbol AND t.ts {sign} q.ts{where}")

    def time(self, text):
        return text.replace("T", " ")


class ClickHouse(Standard):
    # A row without a partner has the default of every type.
    times = "toUnixTimestamp64Micro(t.ts) - toUnixTimestamp64Micro(q.ts)"
    there = "q.bid > 0"


WORDS = {"tidalite-server": Words(), "tidalite-process": Words(), "tidalite": Words(), "questdb": Words(), HINT: Hinted(),
         "duckdb": Standard(), "clickhouse": ClickHouse()}
QUERIES = {
    "ASOF, trades and quotes": dict(kind="ASOF", left="trades"),
    "ASOF, at most 10 ms older": dict(kind="ASOF", left="trades", tolerance=10),
    "ASOF, an hour of the trades": dict(kind="ASOF", left="trades", hour=True),
    "LT, quotes and those before": dict(kind="LT", left="quotes"),
}


def arguments(parser):
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--rows", type=int, default=10_000_000, help="quotes; trades are a tenth of them")
    parser.add_argument("--symbols", type=int, default=100)
    parser.add_argument("--threads", default="2", help="of engines within their process")
    parser.add_argument("--repeats", type=int, default=5)


def run(options, out):
    tables = {"trades": data.ticks("trades", options.rows // 10, options.symbols), "quotes": data.ticks("quotes", options.rows, options.symbols)}
    records = []
    with engines.loaded_all("joins", tables, options, out) as opened:
        for done, (case, what) in enumerate(QUERIES.items()):
            out.progress(case, done, len(QUERIES))
            records += measure(case, what, opened, options, out)
    return records


def asked_of(opened, what):
    """{name: (system, statement)}: QuestDB under two names."""
    found = {}
    for system in opened:
        for name in [system.name] + [HINT] * (system.name == "questdb"):
            found[name] = system, WORDS[name].asked(**what)
    return found


def measure(case, what, opened, options, out):
    asked, answers, records = asked_of(opened, what), {}, []
    for name, (system, sql) in asked.items():
        try:
            answers[name] = answers_of.plain(system.query(sql)[1])
        except RuntimeError as error:
            out.skip(f"{name}, {case},", error)
    kept = answers_of.majority(answers)
    for name in (n for n in answers if n not in kept):
        out.disagree(f"joins {case}", name, f"{answers[name]} where {kept[0] if kept else 'another'} has {answers[kept[0]] if kept else answers}; {asked[name][1]}")
    for number, name in turns(kept, options.runs):
        system, sql = asked[name]
        hot = [system.time(sql) for _ in range(options.repeats + 1)][1:]
        records.append(dict(workload="joins", case=case, system=name, run=number, rows=opened[system], version=system.version(), clock=system.clock,
                            settings=system.settings, threads=system.threads, sql=sql, seconds=middle(hot), hot_s=hot, answer_rows=len(answers[name])))
        out.record(records[-1])
    return records


def table(records):
    """As of `filters`, without cold times."""
    head, rows = table_of(records)
    return head[:6], [row[:6] for row in rows]


charts = charts_of
