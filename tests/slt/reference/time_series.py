"""Writes intervals.slt, sample_by.slt, latest_on.slt and time_joins.slt: the expected rows come from pandas, DuckDB and zoneinfo.

Run by hand when a case is added: `python tests/slt/reference/time_series.py` with pandas and duckdb installed. Nothing in
here asks Tidalite.
"""

import datetime as dt
import pathlib
import random
import zoneinfo

import duckdb
import pandas as pd

HERE = pathlib.Path(__file__).resolve().parent.parent
UTC = dt.timezone.utc


def text(value):
    if value is None or value is pd.NaT or (isinstance(value, float) and value != value):
        return "NULL"
    if isinstance(value, (pd.Timestamp, dt.datetime)):
        value = pd.Timestamp(value)
        if value.tzinfo is not None:
            value = value.tz_convert("UTC").tz_localize(None)
        base = value.strftime("%Y-%m-%dT%H:%M:%S")
        nanos = value.microsecond * 1000 + value.nanosecond
        if nanos == 0:
            return base
        digits = f"{nanos:09d}"
        return f"{base}.{digits[:3] if digits.endswith('000000') else digits[:6] if digits.endswith('000') else digits}"
    if isinstance(value, float):
        return repr(float(value))
    return "(empty)" if value == "" else str(value)


def literal(value):
    shown = text(value)
    if shown == "NULL" or isinstance(value, (int, float)):
        return shown
    return f"'{shown}'"


class File:
    def __init__(self, name, header):
        self.path = HERE / name
        self.parts = [f"# {header}\n# Written by reference/time_series.py: the expected rows are those of other engines.\n"]

    def statement(self, sql):
        self.parts.append(f"statement ok\n{sql}\n")

    def insert(self, table, rows):
        values = ",\n ".join("(" + ", ".join(literal(v) for v in row) + ")" for row in rows)
        self.parts.append(f"statement count {len(rows)}\nINSERT INTO {table} VALUES\n {values}\n")

    def query(self, types, sql, rows, comment=None):
        lines = [" ".join(text(v) for v in row) for row in rows]
        note = f"# {comment}\n" if comment else ""
        self.parts.append(f"{note}query {types}\n{sql}\n----\n" + "".join(f"{line}\n" for line in lines))

    def error(self, message, sql):
        self.parts.append(f"statement error {message}\n{sql}\n")

    def write(self):
        self.path.write_text("\n".join(self.parts))


def ts(s):
    return pd.Timestamp(s)


# ---------------------------------------------------------------- intervals

def intervals():
    f = File("intervals.slt", "Intervals after IN, BETWEEN in either order, dateadd: ranges of the designated timestamp.")
    f.statement("CREATE TABLE t (ts TIMESTAMP, x LONG) TIMESTAMP(ts) PARTITION BY MONTH")
    start = ts("2016-01-01")
    times = [start + pd.Timedelta(hours=6 * i) for i in range(5844)]
    f.parts.append("statement count 5844\nINSERT INTO t SELECT to_timestamp_micros(1451606400000000 + value * 21600000000), value FROM generate_series(0, 5843) AS value\n")

    def check(condition, *ranges, lo_open=False):
        count = sum(any(ts(lo) <= t <= ts(hi) for lo, hi in ranges) for t in times)
        f.query("I", f"SELECT count() FROM t WHERE {condition}", [(count,)])
        f.query("I", f"SELECT count() FROM t WHERE NOT ({condition})", [(len(times) - count,)])

    end = "T23:59:59.999999"
    check("ts IN '2018'", ("2018-01-01", "2018-12-31" + end))
    check("ts IN '2018-02'", ("2018-02-01", "2018-02-28" + end))
    check("ts IN '2018-01-01T12'", ("2018-01-01T12:00", "2018-01-01T12:59:59.999999"))
    check("ts IN '2018-01-01T12:00:00.000000Z'", ("2018-01-01T12:00", "2018-01-01T12:00"))
    check("ts IN '2018-01;-3d'", ("2018-01-01", "2018-01-28" + end))
    check("ts IN '2018;1M'", ("2018-01-01", "2019-01-31" + end))
    check("ts IN '2016-06-13;1M;1y;3'", ("2016-06-13", "2016-07-13" + end), ("2017-06-13", "2017-07-13" + end), ("2018-06-13", "2018-07-13" + end))
    check("ts IN '2018-06-13;1M;1y;-3'", ("2016-06-13", "2016-07-13" + end), ("2017-06-13", "2017-07-13" + end), ("2018-06-13", "2018-07-13" + end))
    check("ts IN '2018-06-13;1d;-1y;2'", ("2018-06-13", "2018-06-14" + end), ("2017-06-13", "2017-06-14" + end))
    check("ts IN '2018-01-[01,10..12]'", ("2018-01-01", "2018-01-01" + end), ("2018-01-10", "2018-01-12" + end))
    check("ts IN '2018-01-[01..31]T06@America/New_York#workday;7h'", *[
        (f"2018-01-{d:02}T11:00", f"2018-01-{d:02}T18:59:59.999999") for d in range(1, 32) if dt.date(2018, 1, d).weekday() < 5])
    check("ts IN ('2018-01-01', '2018-01-02T06:00', '2018-01-02T07:00')", ("2018-01-01", "2018-01-01"), ("2018-01-02T06:00", "2018-01-02T06:00"))
    check("ts IN interval('2018-01-05', '2018-01-01')", ("2018-01-01", "2018-01-05"))
    check("ts BETWEEN '2018-01-01' AND '2018-01-05'", ("2018-01-01", "2018-01-05"))
    check("ts BETWEEN '2018-01-05' AND '2018-01-01'", ("2018-01-01", "2018-01-05"))
    check("ts NOT BETWEEN '2018-01-05' AND '2018-01-01'", ("2016-01-01", "2017-12-31T23:59:59"), ("2018-01-05T00:00:01", "2030-01-01"))
    check("dateadd('d', 2, ts) < '2016-01-05'", ("2016-01-01", "2016-01-02" + end))
    check("'2016-01-05' > dateadd('h', 48, ts)", ("2016-01-01", "2016-01-02" + end))
    check("ts >= dateadd('M', -1, '2019-12-31')", ("2019-11-30", "2030-01-01"))
    check("ts IN '2018' AND ts IN '2018-12-31;1d'", ("2018-12-31", "2018-12-31" + end))
    check("ts IN '2018-03' OR ts IN '2018-05'", ("2018-03-01", "2018-03-31" + end), ("2018-05-01", "2018-05-31" + end))
    check("ts IN today()")
    check("ts IN yesterday()")
    check("ts IN tomorrow()")
    check("ts IN '$now - 1h..$now'")
    f.query("I", "SELECT count() FROM t WHERE ts NOT IN '2018'", [(sum(t.year != 2018 for t in times),)])
    f.query("I", "DECLARE @year := '2018', @least := 3000 SELECT count() FROM t WHERE ts IN @year AND x >= @least", [(sum(t.year == 2018 and i >= 3000 for i, t in enumerate(times)),)])
    f.query("I", "DECLARE @a := 1 + 1, @b := @a * 3 SELECT @b", [(6,)])
    f.query("B", "SELECT now() IS NOT NULL AND now() > '2026' AND current_timestamp = now()", [("true",)])
    f.query("T", "SELECT dateadd('M', 1, '2024-01-31'::timestamp)", [(ts("2024-02-29"),)])
    f.query("T", "SELECT dateadd('s', -1, '1970-01-01'::timestamp_ns)", [(ts("1969-12-31T23:59:59"),)])
    f.query("TT", "SELECT timestamp_floor('5m', '2024-01-31T10:13:07'::timestamp), timestamp_ceil('5m', '2024-01-31T10:13:07'::timestamp)", [(ts("2024-01-31T10:10"), ts("2024-01-31T10:15"))])
    f.query("TT", "SELECT timestamp_floor('1w', '2024-01-31T10:13:07'::timestamp), timestamp_ceil('1d', '2024-01-31'::timestamp)", [(ts("2024-01-29"), ts("2024-01-31"))])
    f.query("T", "SELECT timestamp_floor('5d', '2024-01-31'::timestamp, '2024-01-02T05'::timestamp)", [(ts("2024-01-27T05:00"),)])

    # Text that is in no list, and other columns.
    f.query("I", "SELECT count() FROM t WHERE x::varchar IN '17'", [(1,)])
    f.query("I", "SELECT position('b' IN 'abc')", [(2,)])
    f.error('invalid interval: "soon"', "SELECT * FROM t WHERE ts IN 'soon'")
    f.error("today\\(\\) is an interval and stands after IN", "SELECT today()")
    f.error('"q" is no unit of time', "SELECT dateadd('q', 1, ts) FROM t")
    f.error("timestamp out of range", "SELECT dateadd('y', 300000, ts) FROM t")
    f.error("syntax error: expected @name", "DECLARE @a := 1, 2 SELECT @a")

    # GROUP BY where it is left out.
    f.query("II", "SELECT x % 3 AS k, count() FROM t ORDER BY k", [(k, sum(i % 3 == k for i in range(5844))) for k in range(3)])
    f.query("II", "SELECT x % 3, count() FROM t GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 1", [(0, 1948)])
    f.query("III", "SELECT count(), 7, max(x) FROM t WHERE x < 0", [(0, 7, None)], "No column outside of aggregates: one group.")
    f.query("II", "SELECT x, (SELECT max(u.x) FROM t u WHERE u.ts = t.ts) FROM t WHERE x = 5", [(5, 5)], "An aggregate of a sub-query is not one of the query.")
    f.query("II", "SELECT x, sum(x) OVER (ORDER BY x) FROM t WHERE x < 3", [(0, 0), (1, 1), (2, 3)])
    f.query("II", "SELECT max(x), min(x) FROM (SELECT x, x AS x2 FROM t) q WHERE x2 < 10", [(9, 0)])
    f.write()


# ---------------------------------------------------------------- SAMPLE BY

def trades():
    dice = random.Random(7)
    rows = []
    at = ts("2024-02-27T22:10:00")
    for i in range(60):
        at += pd.Timedelta(minutes=dice.choice([0, 1, 7, 30, 45, 90, 400]))
        symbol = dice.choice(["BTC", "ETH", "ADA", None])
        price = dice.choice([None, float(dice.randrange(1, 400)) / 4])
        rows.append((at, symbol, price, dice.randrange(1, 100)))
    return rows


def frame(rows, names):
    return pd.DataFrame(rows, columns=names)


def agg(group):
    price = group["price"].dropna()
    return (len(group), float(price.mean()) if len(price) else None, float(price.max()) if len(price) else None, int(group["amount"].sum()))


def next_start(start, stride):
    return start + stride


def buckets_of(df, freq, **how):
    """(start, rows) of each bucket that has rows, by pandas."""
    out = []
    for start, group in df.resample(freq, on="ts", closed="left", label="left", **how):
        if len(group):
            out.append((start, group))
    return out


def shifted(df, by):
    """Days that begin so much after midnight."""
    return [(start + by, rows) for start, rows in buckets_of(df.assign(ts=df["ts"] - by), "1D")]


def sample_by():
    f = File("sample_by.slt", "SAMPLE BY: buckets of time, with and without keys, filled, aligned to calendars and to the first row.")
    rows = trades()
    df = frame(rows, ["ts", "symbol", "price", "amount"])
    f.statement("CREATE TABLE trades (ts TIMESTAMP, symbol SYMBOL, price DOUBLE, amount LONG) TIMESTAMP(ts) PARTITION BY DAY")
    f.insert("trades", rows)
    what = "count(), avg(price), max(price), sum(amount)"
    for stride, freq, how in [
        ("1h", "1h", {}), ("90m", "90min", {"origin": "epoch"}), ("7200s", "7200s", {"origin": "epoch"}), ("1d", "1D", {}), ("3d", "3D", {"origin": "epoch"}),
        ("1w", "W-MON", {}), ("1M", "MS", {}), ("1y", "YS", {}), ("h", "1h", {}),
    ]:
        expected = [(start, *agg(g)) for start, g in buckets_of(df, freq, **how)]
        f.query("TIRRI", f"SELECT ts, {what} FROM trades SAMPLE BY {stride}", expected)
    expected = []
    for start, g in buckets_of(df, "1D"):
        for symbol in ["ADA", "BTC", "ETH", None]:
            part = g[g["symbol"].isna()] if symbol is None else g[g["symbol"] == symbol]
            if len(part):
                expected.append((start, symbol, *agg(part)))
    f.query("TTIRRI", f"SELECT ts, symbol, {what} FROM trades SAMPLE BY 1d", expected, "Keys: within a bucket in their order, NULL last.")
    f.query("TI", "SELECT symbol, count() FROM trades WHERE symbol = 'BTC' SAMPLE BY 1M", [
        ("BTC", len(g)) for _, g in buckets_of(df[df["symbol"] == "BTC"], "MS")], "The time need not be selected.")
    filtered = df[df["amount"] > 50]
    f.query("TI", "SELECT ts, sum(amount) AS total FROM trades WHERE amount > 50 SAMPLE BY 1d ORDER BY total DESC, ts LIMIT 2", sorted(
        [(s, int(g["amount"].sum())) for s, g in buckets_of(filtered, "1D")], key=lambda r: (-r[1], r[0]))[:2])
    daily = [(s, agg(g)) for s, g in buckets_of(df, "1D")]
    f.query("TI", "SELECT ts, count() FROM trades SAMPLE BY 1d HAVING count() > 10", [(s, a[0]) for s, a in daily if a[0] > 10])
    f.query("TI", "SELECT ts, count() FROM trades SAMPLE BY 1d LIMIT -2", [(s, a[0]) for s, a in daily][-2:])
    f.query("TR", "SELECT ts, max(price) - min(price) FROM trades SAMPLE BY 1d", [
        (s, float(g["price"].max() - g["price"].min()) if g["price"].notna().any() else None) for s, g in buckets_of(df, "1D")])
    f.query("R", "SELECT max(total) FROM (SELECT ts, sum(amount) AS total FROM trades SAMPLE BY 1d)", [(max(a[3] for _, a in daily),)], "In a sub-query, and over one.")
    f.query("TI", "SELECT ts, count() FROM (SELECT * FROM trades WHERE amount > 50) SAMPLE BY 1d", [(s, len(g)) for s, g in buckets_of(filtered, "1D")])
    f.query("TI", "SELECT ts, count() FROM (SELECT ts, sum(amount) a FROM trades SAMPLE BY 1h) SAMPLE BY 1d", [
        (s, len(g)) for s, g in buckets_of(frame([(s, 1) for s, _ in buckets_of(df, "1h")], ["ts", "a"]), "1D")])
    f.query("TI", "WITH x AS (SELECT ts, symbol FROM trades) SELECT ts, count() FROM x SAMPLE BY 1M UNION ALL SELECT ts, 0 FROM trades WHERE false", [
        (s, len(g)) for s, g in buckets_of(df, "MS")])

    # FILL, unkeyed.
    hours = buckets_of(df[df["ts"] < ts("2024-02-29")], "1h")
    first, last = hours[0][0], hours[-1][0]
    known = {s: float(g["amount"].sum()) for s, g in hours}
    grid = list(pd.date_range(first, last, freq="1h"))
    series = pd.Series({s: known.get(s) for s in grid}, dtype="float64")
    linear = series.interpolate(method="time")
    previous = series.ffill()
    where = "WHERE ts < '2024-02-29' SAMPLE BY 1h"
    select = f"SELECT ts, sum(amount::double) AS a FROM trades {where}"
    f.query("TR", f"{select} FILL(NULL)", [(s, series[s]) for s in grid])
    f.query("TR", f"{select} FILL(PREV)", [(s, previous[s]) for s in grid])
    f.query("TR", f"SELECT ts, round(a, 9) FROM ({select} FILL(LINEAR))", [(s, round(float(linear[s]), 9)) for s in grid])
    f.query("TR", f"{select} FILL(-1.5)", [(s, known.get(s, -1.5)) for s in grid])
    f.query("TR", f"{select} FILL(NONE)", [(s, known[s]) for s in grid if s in known])
    counts = {s: len(g) for s, g in hours}
    prev_count, rows_out = None, []
    for s in grid:
        here = s in known
        prev_count = counts[s] if here else prev_count
        rows_out.append((s, known.get(s), prev_count, counts.get(s, 0), round(float(linear[s]), 9)))
    f.query("TRIIR", f"SELECT ts, a, b, c, round(d, 9) FROM (SELECT ts, sum(amount::double) a, count() b, count() c, sum(amount::double) d FROM trades {where} FILL(NULL, PREV, 0, LINEAR))", rows_out,
            "One fill for each aggregate.")

    # FILL, keyed.
    part = df[(df["ts"] < ts("2024-02-29")) & df["symbol"].isin(["BTC", "ETH"])]
    groups = {(s, k): float(g["amount"].sum()) for s, bucket in buckets_of(part, "6h") for k, g in bucket.groupby("symbol")}
    starts = sorted({s for s, _ in groups})
    grid6 = list(pd.date_range(starts[0], starts[-1], freq="6h"))
    keyed = {k: pd.Series({s: groups.get((s, k)) for s in grid6}, dtype="float64") for k in ["BTC", "ETH"]}
    select = "SELECT ts, symbol, sum(amount::double) AS a FROM trades WHERE ts < '2024-02-29' AND symbol IN ('BTC', 'ETH') SAMPLE BY 6h"
    for fill, made in [("NULL", lambda s: s), ("PREV", lambda s: s.ffill()), ("LINEAR", lambda s: s.interpolate(method="time", limit_area="inside")), ("0", lambda s: s.fillna(0.0))]:
        done = {k: made(s) for k, s in keyed.items()}
        f.query("TTR", f"SELECT ts, symbol, round(a, 9) FROM ({select} FILL({fill}))", [(s, k, round(float(done[k][s]), 9)) for s in grid6 for k in ["BTC", "ETH"]])

    # FROM and TO.
    days = {s: a for s, a in daily}
    span = list(pd.date_range("2024-02-25", "2024-03-06", freq="1D", inclusive="left"))
    f.query("TI", "SELECT ts, count() FROM trades SAMPLE BY 1d FROM '2024-02-25' TO '2024-03-06' FILL(0)", [(s, days[s][0] if s in days else 0) for s in span])
    odd = list(pd.date_range("2024-02-26T05:00", "2024-03-02T05:00", freq="2D", inclusive="left"))
    f.query("TI", "SELECT ts, count() FROM trades SAMPLE BY 2d FROM '2024-02-26T05' TO '2024-03-02T05' FILL(NULL)", [
        (s, len(df[(df["ts"] >= s) & (df["ts"] < min(s + pd.Timedelta(days=2), ts("2024-03-02T05")))])) for s in odd], "Buckets begin at FROM.")
    symbols = ["ADA", "BTC", "ETH", None]
    within = df[(df["ts"] >= ts("2024-02-27")) & (df["ts"] < ts("2024-03-01"))]
    keyed_span = list(pd.date_range("2024-02-27", "2024-03-01", freq="1D", inclusive="left"))
    is_in = lambda d, k: d[d["symbol"].isna()] if k is None else d[d["symbol"] == k]
    present = [k for k in symbols if len(is_in(within, k))]
    f.query("TTI", "SELECT ts, symbol, count() FROM trades SAMPLE BY 1d FROM '2024-02-27' TO '2024-03-01' FILL(0)", [
        (s, k, len(is_in(within[(within["ts"] >= s) & (within["ts"] < s + pd.Timedelta(days=1))], k))) for s in keyed_span for k in present])

    # Time zones: a row every half hour around each change of the clock.
    f.statement("CREATE TABLE ticks (ts TIMESTAMP, v LONG) TIMESTAMP(ts) PARTITION BY MONTH")
    edges = [("Europe/London", "2021-03-28"), ("Europe/London", "2021-10-31"), ("America/New_York", "2021-03-14"), ("America/New_York", "2021-11-07"),
             ("Australia/Lord_Howe", "2021-04-04"), ("Australia/Lord_Howe", "2021-10-03")]
    all_ticks = []
    for _, day in edges:
        around = pd.date_range(ts(day) - pd.Timedelta(days=2), ts(day) + pd.Timedelta(days=2), freq="30min", inclusive="left")
        all_ticks += [(t, i) for i, t in enumerate(around)]
    all_ticks.sort()
    f.insert("ticks", all_ticks)
    tick_frame = frame(all_ticks, ["ts", "v"])
    for zone, day in edges:
        lo, hi = ts(day) - pd.Timedelta(days=2), ts(day) + pd.Timedelta(days=2)
        here = tick_frame[(tick_frame["ts"] >= lo) & (tick_frame["ts"] < hi)].copy()
        local = here.copy()
        local["ts"] = local["ts"].dt.tz_localize("UTC").dt.tz_convert(zone)
        bounds = f"FROM ticks WHERE ts >= '{text(lo)}' AND ts < '{text(hi)}'"
        f.query("TI", f"SELECT ts, count() {bounds} SAMPLE BY 1d ALIGN TO CALENDAR TIME ZONE '{zone}'", [(s, len(g)) for s, g in buckets_of(local, "1D")],
                "Days of 23, 24 and 25 hours (of 23.5 and 24.5 on Lord Howe).")
        full = local.resample("1D", on="ts").count()["v"]
        f.query("TI", f"SELECT ts, count() {bounds} SAMPLE BY 1d FILL(NULL) ALIGN TO CALENDAR TIME ZONE '{zone}'", list(full.items()))
        f.query("TI", f"SELECT ts, count() {bounds} SAMPLE BY 1M ALIGN TO CALENDAR TIME ZONE '{zone}'", [(s, len(g)) for s, g in buckets_of(local, "MS")])
        f.query("TI", f"SELECT ts, count() {bounds} SAMPLE BY 1w ALIGN TO CALENDAR TIME ZONE '{zone}'", [(s, len(g)) for s, g in buckets_of(local, "W-MON")])
        # Less than a day: even buckets in step with standard time.
        place, even = zoneinfo.ZoneInfo(zone), {}
        for t in here["ts"]:
            stamp = t.to_pydatetime().replace(tzinfo=UTC)
            there = stamp.astimezone(place)
            shift = int((there.utcoffset() - there.dst()).total_seconds())
            seconds = int(stamp.timestamp())
            start = (seconds + shift) // 21600 * 21600 - shift
            even[start] = even.get(start, 0) + 1
        f.query("TI", f"SELECT ts, count() {bounds} SAMPLE BY 6h ALIGN TO CALENDAR TIME ZONE '{zone}'", [
            (pd.Timestamp(s, unit="s"), n) for s, n in sorted(even.items())])

    # The examples of QuestDB's documentation of alignment.
    seven = [("2021-05-31T23:10:00", 100.5), ("2021-06-01T01:10:00", 101.2), ("2021-06-01T07:20:00", 100.8), ("2021-06-01T13:20:00", 101.0),
             ("2021-06-01T19:20:00", 102.1), ("2021-06-02T01:10:00", 101.5), ("2021-06-02T07:20:00", 100.9)]
    f.statement("CREATE TABLE seven (ts TIMESTAMP, price DOUBLE) TIMESTAMP(ts)")
    f.insert("seven", seven)
    seven = frame([(ts(t), p) for t, p in seven], ["ts", "price"])
    f.query("TI", "SELECT ts, count() FROM seven SAMPLE BY 1d ALIGN TO FIRST OBSERVATION", [(s, len(g)) for s, g in buckets_of(seven, "24h", origin="start")])
    f.query("TI", "SELECT ts, count() FROM seven SAMPLE BY 5h FILL(0) ALIGN TO FIRST OBSERVATION", list(seven.resample("5h", on="ts", origin="start").count()["price"].items()))
    berlin = seven.copy()
    berlin["ts"] = berlin["ts"].dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin")
    f.query("TI", "SELECT ts, count() FROM seven SAMPLE BY 1d ALIGN TO CALENDAR TIME ZONE 'Europe/Berlin'", [(s, len(g)) for s, g in buckets_of(berlin, "1D")])
    f.query("TI", "SELECT ts, count() FROM seven SAMPLE BY 1d ALIGN TO CALENDAR TIME ZONE 'Europe/Berlin' WITH OFFSET '00:45'", [
        (s, len(g)) for s, g in shifted(berlin, pd.Timedelta(minutes=45))])
    f.query("TI", "SELECT ts, count() FROM seven SAMPLE BY 1d ALIGN TO CALENDAR WITH OFFSET '-02:00'", [(s, len(g)) for s, g in shifted(seven, pd.Timedelta(hours=-2))])
    f.query("TI", "SELECT ts, count() FROM seven SAMPLE BY 12h ALIGN TO CALENDAR TIME ZONE '+05:30'", [
        (s, len(g)) for s, g in buckets_of(seven, "12h", origin="epoch", offset="-5h30min")])

    # Empty, one row, the ends of time.
    f.statement("CREATE TABLE none (ts TIMESTAMP, s SYMBOL, x LONG) TIMESTAMP(ts)")
    f.query("TI", "SELECT ts, count() FROM none SAMPLE BY 1h FILL(PREV)", [])
    f.query("TI", "SELECT ts, sum(x) FROM none SAMPLE BY 1h FROM '2024-01-01' TO '2024-01-01T03' FILL(0)", [(ts(f"2024-01-01T0{h}:00:00"), 0) for h in range(3)])
    f.query("TTI", "SELECT ts, s, sum(x) FROM none SAMPLE BY 1h FROM '2024-01-01' TO '2024-01-01T03' FILL(0)", [], "Without rows there are no keys.")
    f.query("TI", "SELECT ts, count() FROM none SAMPLE BY 1h FILL(NULL) ALIGN TO FIRST OBSERVATION", [])
    f.statement("CREATE TABLE ends (ts TIMESTAMP_NS, x LONG) TIMESTAMP(ts) PARTITION BY YEAR")
    f.insert("ends", [(ts("1969-12-31T23:59:59.999999999"), 1), (ts("1970-01-01T00:00:00"), 2), (ts("2262-04-11T23:47:16.854775806"), 3)])
    f.query("TI", "SELECT ts, sum(x) FROM ends SAMPLE BY 1h", [(ts("1969-12-31T23:00"), 1), (ts("1970-01-01T00:00"), 2), (ts("2262-04-11T23:00"), 3)])
    f.query("TI", "SELECT ts, sum(x) FROM ends SAMPLE BY 1y", [(ts("1969-01-01"), 1), (ts("1970-01-01"), 2), (ts("2262-01-01"), 3)])
    f.query("TI", "SELECT ts, sum(x) FROM ends WHERE ts > '2000' SAMPLE BY 1n FILL(0)", [(ts("2262-04-11T23:47:16.854775806"), 3)], "One row.")
    f.query("TI", "SELECT ts, sum(x) FROM ends SAMPLE BY 100y FILL(0)", [(ts("1870-01-01"), 1), (ts("1970-01-01"), 2), (ts("2070-01-01"), 0), (ts("2170-01-01"), 3)])

    # What is refused.
    f.error("SAMPLE BY needs a designated timestamp", "SELECT count() FROM (SELECT price FROM trades) SAMPLE BY 1h")
    f.error("syntax error: expected a length of time such as 15m", "SELECT ts, count() FROM trades SAMPLE BY soon")
    f.error("SAMPLE BY takes a length of at least one unit", "SELECT ts, count() FROM trades SAMPLE BY 0h")
    f.error('time zone "Mars/Olympus" not recognized', "SELECT ts, count() FROM trades SAMPLE BY 1h ALIGN TO CALENDAR TIME ZONE 'Mars/Olympus'")
    f.error("invalid offset: \"soon\"", "SELECT ts, count() FROM trades SAMPLE BY 1h ALIGN TO CALENDAR WITH OFFSET 'soon'")
    f.error("FILL has 3 values for 1 aggregates", "SELECT ts, count() FROM trades SAMPLE BY 1h FILL(1, 2, 3)")
    f.error("FILL\\(LINEAR\\) needs numbers", "SELECT ts, max(symbol) FROM trades SAMPLE BY 1h FILL(LINEAR)")
    f.error('column "price" must be used in an aggregate function', "SELECT ts, price - avg(price) FROM trades SAMPLE BY 1h")
    f.error("SAMPLE BY needs its columns named", "SELECT * FROM trades SAMPLE BY 1h")
    f.error("expected TO CALENDAR or TO FIRST OBSERVATION", "SELECT ts, count() FROM trades SAMPLE BY 1h ALIGN TO MONDAY")
    f.error('column "prise" does not exist', "SELECT ts, avg(prise) FROM trades SAMPLE BY 1h")
    f.write()


# ---------------------------------------------------------------- LATEST ON

def latest_on():
    f = File("latest_on.slt", "LATEST ON: the last row of each key.")
    rows = trades()
    f.statement("CREATE TABLE trades (ts TIMESTAMP, symbol SYMBOL, price DOUBLE, amount LONG) TIMESTAMP(ts) PARTITION BY DAY")
    f.insert("trades", rows)
    duck = duckdb.connect()
    duck.execute("CREATE TABLE trades (ts TIMESTAMP, symbol VARCHAR, price DOUBLE, amount BIGINT)")
    duck.executemany("INSERT INTO trades VALUES (?, ?, ?, ?)", rows)

    def latest(where, keys, columns="ts, symbol, price, amount"):
        sql = f"""SELECT {columns} FROM (SELECT *, rowid r, row_number() OVER (PARTITION BY {keys} ORDER BY ts DESC, rowid DESC) n
            FROM trades WHERE {where}) WHERE n = 1 ORDER BY ts, r"""
        return duck.execute(sql).fetchall()

    f.query("TTRI", "SELECT * FROM trades LATEST ON ts PARTITION BY symbol", latest("true", "symbol"), "NULL is a key.")
    f.query("TTRI", "SELECT * FROM trades WHERE amount < 40 LATEST ON ts PARTITION BY symbol", latest("amount < 40", "symbol"))
    f.query("TTRI", "SELECT * FROM trades WHERE symbol IN ('BTC', 'ETH') AND price > 20 LATEST ON ts PARTITION BY symbol",
            latest("symbol IN ('BTC', 'ETH') AND price > 20", "symbol"))
    f.query("TTRI", "SELECT * FROM trades WHERE ts IN '2024-02-28' LATEST ON ts PARTITION BY symbol",
            latest("ts >= '2024-02-28' AND ts < '2024-02-29'", "symbol"))
    f.query("TR", "SELECT symbol, price FROM trades LATEST ON ts PARTITION BY symbol ORDER BY symbol",
            sorted(latest("true", "symbol", "symbol, price"), key=lambda r: (r[0] is None, r[0] or "")))
    f.query("TI", "SELECT symbol, amount FROM trades LATEST ON ts PARTITION BY symbol, price LIMIT -3", latest("true", "symbol, price", "symbol, amount")[-3:])
    f.query("TTRI", "SELECT * FROM (SELECT * FROM trades LATEST ON ts PARTITION BY symbol) WHERE price > 50",
            [r for r in latest("true", "symbol") if r[2] is not None and r[2] > 50], "A filter around it chooses among the latest.")
    f.query("TTRI", "SELECT * FROM (SELECT * FROM trades LATEST ON ts PARTITION BY symbol) WHERE symbol = 'ETH'", [r for r in latest("true", "symbol") if r[1] == "ETH"])
    f.query("I", "SELECT count() FROM trades WHERE symbol IN (SELECT symbol FROM trades WHERE amount > 50 LATEST ON ts PARTITION BY symbol)",
            duck.execute("SELECT count(*) FROM trades WHERE symbol IN (SELECT symbol FROM trades WHERE amount > 50)").fetchall())
    f.query("I", "SELECT count() FROM trades LATEST BY symbol", [(len(latest("true", "symbol")),)], "The older form.")
    f.query("R", "SELECT sum(t.amount) FROM trades t WHERE t.price IS NOT NULL LATEST ON t.ts PARTITION BY t.symbol",
            [(sum(r[3] for r in latest("price IS NOT NULL", "symbol")),)])
    f.statement("CREATE TABLE same (ts TIMESTAMP, k LONG, v LONG) TIMESTAMP(ts)")
    f.insert("same", [(ts("2024-01-01"), 1, 1), (ts("2024-01-01"), 1, 2), (ts("2024-01-01"), 2, 3), (ts("2023-12-31"), 1, 4)])
    f.insert("same", [(ts("2024-01-01"), 2, 5), (ts("1969-12-31T23:59:59"), 3, 6)])
    f.query("TII", "SELECT * FROM same LATEST ON ts PARTITION BY k", [(ts("1969-12-31T23:59:59"), 3, 6), (ts("2024-01-01"), 1, 2), (ts("2024-01-01"), 2, 5)],
            "Of equal times the one that came last.")
    f.statement("CREATE TABLE none (ts TIMESTAMP, k LONG) TIMESTAMP(ts)")
    f.query("TI", "SELECT * FROM none LATEST ON ts PARTITION BY k", [])
    f.error("LATEST ON comes after WHERE", "SELECT * FROM trades LATEST ON ts PARTITION BY symbol WHERE price > 1")
    f.error("expected PARTITION BY", "SELECT * FROM trades LATEST ON ts")
    f.error('column "price" is not a timestamp', "SELECT * FROM trades LATEST ON price PARTITION BY symbol")
    f.error('column "nosuch" does not exist', "SELECT * FROM trades LATEST ON ts PARTITION BY nosuch")
    f.write()


# ---------------------------------------------------------------- ASOF, LT, SPLICE

def joins():
    f = File("time_joins.slt", "ASOF, LT and SPLICE JOIN.")
    dice = random.Random(11)

    def side(count, start, value):
        at, rows = ts(start), []
        for i in range(count):
            at += pd.Timedelta(seconds=dice.choice([0, 1, 5, 20, 60, 240]))
            rows.append((at, dice.choice(["BTC", "ETH", "ADA"]), value(i)))
        return rows

    left = side(30, "2024-03-01T10:00:00", lambda i: i)
    right = side(40, "2024-03-01T09:58:00", lambda i: float(i) + 0.5)
    f.statement("CREATE TABLE trades (ts TIMESTAMP, symbol SYMBOL, n LONG) TIMESTAMP(ts) PARTITION BY DAY")
    f.statement("CREATE TABLE quotes (ts TIMESTAMP, symbol SYMBOL, bid DOUBLE) TIMESTAMP(ts) PARTITION BY HOUR")
    f.insert("trades", left)
    f.insert("quotes", right)
    l, r = frame(left, ["ts", "symbol", "n"]), frame(right, ["ts", "symbol", "bid"])
    r["rts"] = r["ts"]

    def asof(lt=False, by="symbol", tolerance=None, left=l, right=r):
        if by is None:
            left, right = left, right.rename(columns={"symbol": "rsymbol"})
        return pd.merge_asof(left, right, on="ts", by=by, allow_exact_matches=not lt, tolerance=tolerance)

    def rows(df, *columns):
        return [tuple(None if pd.isna(v) else v for v in row) for row in df[list(columns)].itertuples(index=False)]

    duck = duckdb.connect()
    duck.execute("CREATE TABLE t (ts TIMESTAMP, symbol VARCHAR, n BIGINT)")
    duck.execute("CREATE TABLE q (ts TIMESTAMP, symbol VARCHAR, bid DOUBLE)")
    duck.executemany("INSERT INTO t VALUES (?, ?, ?)", left)
    # DuckDB chooses any of equal times: it is shown the one that came last.
    last_of = {(t, s): b for t, s, b in right}
    duck.executemany("INSERT INTO q VALUES (?, ?, ?)", [(t, s, b) for (t, s), b in last_of.items()])
    both = duck.execute("SELECT t.n, q.bid FROM t ASOF LEFT JOIN q ON t.symbol = q.symbol AND t.ts >= q.ts ORDER BY t.n").fetchall()
    assert both == rows(asof().sort_values("n"), "n", "bid"), "pandas and DuckDB agree"

    f.query("TTITR", "SELECT t.ts, t.symbol, n, q.ts, bid FROM trades t ASOF JOIN quotes q ON (symbol)", rows(asof(), "ts", "symbol", "n", "rts", "bid"))
    f.query("IR", "SELECT n, bid FROM trades t ASOF JOIN quotes q ON t.symbol = q.symbol WHERE n % 2 = 0", [row for row in rows(asof(), "n", "bid") if row[0] % 2 == 0])
    f.query("IR", "SELECT n, bid FROM trades t LT JOIN quotes q ON (symbol)", rows(asof(lt=True), "n", "bid"))
    f.query("ITR", "SELECT n, q.symbol, bid FROM trades ASOF JOIN quotes q", rows(asof(by=None), "n", "rsymbol", "bid"))
    f.query("IR", "SELECT n, bid FROM trades t LT JOIN quotes", rows(asof(lt=True, by=None), "n", "bid"))
    f.query("IR", "SELECT n, bid FROM trades t ASOF JOIN quotes q ON (symbol) TOLERANCE 30s", rows(asof(tolerance=pd.Timedelta("30s")), "n", "bid"))
    f.query("IR", "SELECT n, bid FROM trades t ASOF JOIN quotes q TOLERANCE 1s WHERE t.symbol = 'BTC'", rows(
        asof(by=None, tolerance=pd.Timedelta("1s"), left=l[l["symbol"] == "BTC"]), "n", "bid"))
    few = r[r["bid"] < 15]
    f.query("IR", "SELECT n, bid FROM trades t ASOF JOIN (SELECT * FROM quotes WHERE bid < 15) q ON (symbol)", rows(asof(right=few), "n", "bid"), "A filtered right side.")
    f.query("IR", "SELECT n, q.bid FROM (SELECT * FROM trades WHERE n > 20) t ASOF JOIN quotes q ON (symbol)", rows(asof(left=l[l["n"] > 20]), "n", "bid"), "Any left side.")
    f.query("IR", "SELECT n, bid FROM trades t ASOF JOIN quotes q ON (symbol) WHERE bid > 20 ORDER BY n DESC LIMIT 3",
            sorted([row for row in rows(asof(), "n", "bid") if row[1] is not None and row[1] > 20], reverse=True)[:3])
    first = asof().rename(columns={"rts": "r1", "bid": "b1"})
    twice = pd.merge_asof(first, r, on="ts", by="symbol", allow_exact_matches=False)
    f.query("IRR", "SELECT n, a.bid, b.bid FROM trades t ASOF JOIN quotes a ON (symbol) LT JOIN quotes b ON (t.symbol = b.symbol)", rows(twice, "n", "b1", "bid"), "One after the other.")
    f.query("II", "SELECT count(), count(bid) FROM trades ASOF JOIN quotes ON (symbol)", [(len(l), int(asof()["bid"].notna().sum()))])
    hourly = asof().dropna(subset=["bid"])
    minutes = [(s, float(g["bid"].max())) for s, g in hourly.resample("10min", on="ts") if len(g)]
    f.query("TR", "SELECT t.ts, max(bid) FROM trades t ASOF JOIN quotes q ON (symbol) WHERE bid IS NOT NULL SAMPLE BY 10m", minutes, "Sampled.")

    # SPLICE: every row of either side with the latest of the other; one row where both have one of a time and a key.
    small_l = [(ts("2024-01-01T00:00:01"), "A", 1), (ts("2024-01-01T00:00:03"), "B", 2), (ts("2024-01-01T00:00:05"), "A", 3)]
    small_r = [(ts("2024-01-01T00:00:00"), "A", 10), (ts("2024-01-01T00:00:02"), "B", 20), (ts("2024-01-01T00:00:05"), "A", 30), (ts("2024-01-01T00:00:06"), "C", 40),
               (ts("2024-01-01T00:00:07"), "B", 50)]
    f.statement("CREATE TABLE a (ts TIMESTAMP, k SYMBOL, x LONG) TIMESTAMP(ts)")
    f.statement("CREATE TABLE b (ts TIMESTAMP_NS, k VARCHAR, y LONG) TIMESTAMP(ts)")
    f.insert("a", small_l)
    f.insert("b", small_r)
    f.query("II", "SELECT x, y FROM a SPLICE JOIN b ON (k)", [(None, 10), (1, 10), (None, 20), (2, 20), (3, 30), (None, 40), (2, 50)],
            "By hand: the rows in order of time, each with the latest of its key. Units of time may differ.")
    f.query("II", "SELECT x, y FROM a SPLICE JOIN b", [(None, 10), (1, 10), (1, 20), (2, 20), (3, 30), (3, 40), (3, 50)])

    # NULL keys, equal times, nothing on a side.
    f.insert("a", [(ts("2024-01-02"), None, 4), (ts("2024-01-02"), "D", 5)])
    f.insert("b", [(ts("2024-01-01T12:00"), None, 60), (ts("2024-01-01T13:00"), "D", 70), (ts("2024-01-01T13:00"), "D", 80)])
    f.query("II", "SELECT x, y FROM a ASOF JOIN b ON (k) WHERE x > 3", [(4, None), (5, 80)], "NULL equals nothing; of equal times the one that came last.")
    f.statement("CREATE TABLE none (ts TIMESTAMP, k SYMBOL, z LONG) TIMESTAMP(ts)")
    f.query("II", "SELECT x, z FROM a ASOF JOIN none ON (k) WHERE x < 3", [(1, None), (2, None)])
    f.query("II", "SELECT z, x FROM none ASOF JOIN a ON (k)", [])
    f.query("II", "SELECT z, y FROM none SPLICE JOIN b ON (k) WHERE y < 25", [(None, 10), (None, 20)])
    f.query("II", "SELECT y, x FROM (SELECT k, y, ts FROM b ORDER BY ts DESC) b ASOF JOIN a ON (k) WHERE y < 40", [(10, None), (20, None), (30, 3)],
            "A left side in another order is put in order of time.")
    f.query("TITTI", "SELECT * FROM a ASOF JOIN b ON (k) LIMIT 1".replace("*", "a.k, x, a.ts, b.ts, y"), [("A", 1, ts("2024-01-01T00:00:01"), ts("2024-01-01T00:00:00"), 10)])
    f.query("TTITTI", "SELECT * FROM a ASOF JOIN b ON (k) LIMIT 1", [(ts("2024-01-01T00:00:01"), "A", 1, ts("2024-01-01T00:00:00"), "A", 10)])

    f.error("ASOF JOIN ON takes equalities of columns", "SELECT * FROM a ASOF JOIN b ON a.k > b.k")
    f.error('column "nosuch" specified in ON clause does not exist on both sides', "SELECT * FROM a ASOF JOIN b ON (nosuch)")
    f.error("the right side of ASOF JOIN needs a designated timestamp", "SELECT * FROM a ASOF JOIN (SELECT k, y FROM b) c ON (k)")
    f.error("invalid TOLERANCE 1M", "SELECT * FROM a ASOF JOIN b ON (k) TOLERANCE 1M")
    f.error("SPLICE JOIN has no TOLERANCE", "SELECT * FROM a SPLICE JOIN b ON (k) TOLERANCE 1m")
    f.error("syntax error: expected a length of time such as 5m", "SELECT * FROM a ASOF JOIN b ON (k) TOLERANCE soon")
    f.write()


if __name__ == "__main__":
    intervals()
    sample_by()
    latest_on()
    joins()
