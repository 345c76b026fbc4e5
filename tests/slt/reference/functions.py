"""Writes statistics.slt, civil.slt, series.slt, window_join.slt and pivot.slt: the expected rows come from DuckDB, pandas and zoneinfo.

Run by hand when a case is added: `python tests/slt/reference/functions.py` with pandas and duckdb installed. Nothing in
here asks Tidalite.
"""

import datetime as dt
import math
import random
import zoneinfo

import duckdb
import pandas as pd
from time_series import UTC, File, ts

WRITTEN = "# Written by reference/functions.py: the expected rows are those of other engines.\n"


def file(name, header):
    f = File(name, header)
    f.parts = [f"# {header}\n{WRITTEN}"]
    return f


def rounded(rows):
    return [tuple(round(v, 9) if isinstance(v, float) else v for v in row) for row in rows]


# ---------------------------------------------------------------- aggregates

def statistics():
    f = file("statistics.slt", "Aggregates of numbers, beside DuckDB's and pandas'.")
    r = random.Random(11)
    start = ts("2024-03-01")
    rows = []
    for i in range(400):
        k = r.choice(["a", "b", "c", None])
        x = None if r.random() < 0.1 else round(r.gauss(10, 4), 3)
        w = None if r.random() < 0.1 else r.randrange(1, 9)
        rows.append((start + pd.Timedelta(seconds=60 * i + r.randrange(60)), k, x, w))
    rows.append((start + pd.Timedelta(days=1), "one", 5.0, 2))
    rows.append((start + pd.Timedelta(days=1, seconds=5), "two", 5.0, 2))
    rows.append((start + pd.Timedelta(days=1, seconds=9), "two", 7.0, 1))
    rows.append((start + pd.Timedelta(days=2), "none", None, None))
    f.statement("CREATE TABLE t (ts TIMESTAMP, k SYMBOL, x DOUBLE, w LONG) TIMESTAMP(ts) PARTITION BY DAY")
    f.insert("t", rows)
    db = duckdb.connect()
    frame = pd.DataFrame(rows, columns=["ts", "k", "x", "w"])
    db.register("frame", frame)
    db.execute("CREATE TABLE t AS SELECT ts::TIMESTAMP AS ts, k::VARCHAR AS k, CASE WHEN isnan(x) THEN NULL ELSE x END::DOUBLE AS x, "
               "CASE WHEN isnan(w) THEN NULL ELSE w END::BIGINT AS w FROM frame")

    def check(types, ours, theirs=None, where=""):
        names = [f"round(({e})::double, 9)" if t == "R" else e for t, e in zip(types, ours)]
        theirs = [f"round(({e})::double, 9)" if t == "R" else e for t, e in zip(types, theirs or ours)]
        tail = f" FROM t {where} GROUP BY k ORDER BY k NULLS LAST"
        f.query("T" + types, f"SELECT k, {', '.join(names)}{tail}", db.execute(f"SELECT k, {', '.join(theirs)}{tail}").fetchall())
        tail = f" FROM t {where}"
        f.query(types, f"SELECT {', '.join(names)}{tail}", db.execute(f"SELECT {', '.join(theirs)}{tail}").fetchall())

    check("RR", ["skewness(x)", "skewness(w)"])
    check("RR", ["kurtosis(x)", "kurtosis_pop(x)"], where="WHERE k NOT IN ('one', 'two', 'none')")
    check("RRRR", ["variance(x)", "stddev(x)", "var_pop(x)", "stddev_pop(x)"])
    check("RRR", ["covar_samp(x, w)", "covar_pop(x, w)", "corr(x, w)"], where="WHERE k NOT IN ('one')")
    check("RRI", ["regr_slope(x, w)", "regr_intercept(x, w)", "regr_count(x, w)"], where="WHERE k NOT IN ('one')")
    check("RRR", ["median(x)", "percentile_cont(x, 0.9)", "percentile_cont(0.25) WITHIN GROUP (ORDER BY x)"],
          ["median(x)", "quantile_cont(x, 0.9)", "quantile_cont(x, 0.25)"])
    check("RR", ["geomean(x)", "geomean(w)"], ["geomean(x)", "geomean(w)"], where="WHERE x > 0")
    check("RRR", ["weighted_avg(x, w)", "vwap(x, w)", "ksum(x)"],
          ["sum(x * w) / sum(w) FILTER (x IS NOT NULL)"] * 2 + ["kahan_sum(x)"])
    check("IIII", ["bit_and(w)", "bit_or(w)", "bit_xor(w)", "count_distinct(w)"],
          ["bit_and(w)", "bit_or(w)", "bit_xor(w)", "count(DISTINCT w)"])
    check("TTT", ["bool_and(x > 0)", "bool_or(x > 15)", "every(x > 0 OR w > 8)"],
          [f"lower(({e})::varchar)" for e in ["bool_and(x > 0)", "bool_or(x > 15)", "bool_and(x > 0 OR w > 8)"]])
    check("RR", ["arg_min(x, w * 1000 + x)", "arg_max(x, w * 1000 + x)"])
    f.query("I", "SELECT mode(w) FROM t", [(frame.w.mode().min().astype(int),)], "pandas: of the values that come most often the least.")
    f.query("TI", "SELECT k, mode(w) FROM t GROUP BY k ORDER BY k", [
        (k, None if g.w.mode().empty else int(g.w.mode().min())) for k, g in frame.groupby("k", dropna=False)])
    f.query("T", "SELECT mode(k) FROM t", [(frame.k.mode().min(),)])
    f.query("T", "SELECT mode() WITHIN GROUP (ORDER BY k) FROM t", [(frame.k.mode().min(),)])
    f.query("R", "SELECT round(weighted_avg(x, w) FILTER (WHERE w > 4), 9) FROM t",
            db.execute("SELECT round(sum(x * w) / sum(w) FILTER (x IS NOT NULL), 9) FROM t WHERE w > 4").fetchall())

    # As a step function, worked out in Python.
    def twap(group):
        group = group.dropna(subset=["x"]).sort_values("ts")
        if group.empty:
            return None
        span = (group.ts.iloc[-1] - group.ts.iloc[0]).total_seconds()
        if span == 0:
            return float(group.x.mean())
        return float((group.x[:-1].to_numpy() * group.ts.diff().dt.total_seconds().to_numpy()[1:]).sum() / span)

    grouped = rounded([(k, twap(g)) for k, g in frame.groupby("k", dropna=False)])
    f.query("TR", "SELECT k, round(twap(x), 9) FROM t GROUP BY k ORDER BY k", [(None if k != k else k, v) for k, v in grouped])
    f.query("TR", "SELECT k, round(twap(x, ts), 9) FROM t GROUP BY k ORDER BY k", [(None if k != k else k, v) for k, v in grouped])

    # Sums that rounding spoils: the exact ones are math.fsum's.
    f.statement("CREATE TABLE sums (i LONG, v DOUBLE)")
    f.statement("INSERT INTO sums SELECT i, CASE i % 4 WHEN 0 THEN 1e16 WHEN 1 THEN 1.0 WHEN 2 THEN -1e16 ELSE 1.0 END FROM generate_series(0, 9999) i")
    exact = math.fsum([1e16, 1.0, -1e16, 1.0][i % 4] for i in range(10000))
    f.query("R", "SELECT nsum(v) FROM sums", [(exact,)])
    f.query("R", "SELECT ksum(0.1) FROM sums", [(math.fsum([0.1] * 10000),)])
    window = [math.fsum([1e16, 1.0, -1e16, 1.0][j % 4] for j in range(max(0, i - 3), i + 1)) for i in range(8)]
    f.query("IR", "SELECT i, nsum(v) OVER (ORDER BY i ROWS 3 PRECEDING) FROM sums ORDER BY i LIMIT 8", list(enumerate(window)))
    f.error("skewness takes a number", "SELECT skewness(k) FROM t")
    f.error("DISTINCT is not supported by ksum", "SELECT ksum(DISTINCT x) FROM t")
    f.error("twap needs the time of its rows", "SELECT twap(v) FROM sums")
    f.write()


# ---------------------------------------------------------------- parts of timestamps

def civil():
    f = file("civil.slt", "Parts of timestamps, differences, zones and patterns.")
    r = random.Random(5)
    times = [dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(2000, 2, 29), dt.datetime(2262, 4, 11, 23, 47, 16), dt.datetime(1900, 3, 1, 12),
             dt.datetime(2021, 1, 3), dt.datetime(2020, 12, 31, 1, 2, 3, 456789)]
    times += [dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=r.randrange(-2 * 10**15, 4 * 10**15)) for _ in range(30)]
    f.statement("CREATE TABLE t (i LONG, ts TIMESTAMP)")
    f.insert("t", [(i, t) for i, t in enumerate(times)])
    f.query("IIIIIIIII", "SELECT i, year(ts), month(ts), day(ts), hour(ts), minute(ts), second(ts), millis(ts), micros(ts) FROM t ORDER BY i",
            [(i, t.year, t.month, t.day, t.hour, t.minute, t.second, t.microsecond // 1000, t.microsecond % 1000) for i, t in enumerate(times)])
    f.query("IIIIIIT", "SELECT i, day_of_week(ts), day_of_week_sunday_first(ts), week_of_year(ts), day_of_year(ts), days_in_month(ts), is_leap_year(ts) FROM t ORDER BY i",
            [(i, t.isoweekday(), t.isoweekday() % 7 + 1, t.isocalendar().week, t.timetuple().tm_yday, pd.Timestamp(t).days_in_month,
              str(pd.Timestamp(t).is_leap_year).lower()) for i, t in enumerate(times)])
    db = duckdb.connect()
    db.execute("CREATE TABLE t AS SELECT * FROM (VALUES " + ", ".join(f"({i}, TIMESTAMP '{t}')" for i, t in enumerate(times)) + ") v(i, ts)")
    parts = ["century", "decade", "millennium", "quarter", "week", "isodow", "doy", "epoch"]
    f.query("I" * 7 + "R", f"SELECT {', '.join(f'extract({p} FROM ts)' for p in parts)} FROM t ORDER BY i",
            db.execute(f"SELECT {', '.join(f'extract({p} FROM ts)' for p in parts)} FROM t ORDER BY i").fetchall())
    f.query("T", "SELECT to_str(ts, 'EEE dd MMM yyyy HH:mm:ss.SSSUUU') FROM t ORDER BY i", [(t.strftime("%a %d %b %Y %H:%M:%S.%f"),) for t in times])
    f.query("T", "SELECT count() FROM t WHERE to_timestamp(to_str(ts, 'dd/MM/yyyy hh:mm:ss a SSSUUU'), 'dd/MM/yyyy hh:mm:ss a SSSUUU') = ts", [(len(times),)])
    f.query("T", "SELECT to_timestamp('20240229 0730', 'yyyyMMdd HHmm')", [(ts("2024-02-29T07:30"),)])
    for zone in ["Europe/London", "America/New_York", "Australia/Lord_Howe"]:
        tz = zoneinfo.ZoneInfo(zone)
        recent = [(i, t) for i, t in enumerate(times) if 1971 < t.year < 2037]
        local = [(i, t.replace(tzinfo=UTC).astimezone(tz).replace(tzinfo=None)) for i, t in recent]
        f.query("IT", f"SELECT i, to_timezone(ts, '{zone}') FROM t WHERE ts >= '1972' AND ts < '2037' ORDER BY i", local)
        back = [(i, t.replace(tzinfo=tz).astimezone(UTC).replace(tzinfo=None)) for i, t in recent]
        f.query("IT", f"SELECT i, to_utc(ts, '{zone}') FROM t WHERE ts >= '1972' AND ts < '2037' ORDER BY i", back)
    # The hours of the two changes of a clock.
    f.query("TT", "SELECT to_timezone('2021-10-31T00:30', 'Europe/London'), to_timezone('2021-10-31T01:30', 'Europe/London')",
            [(ts("2021-10-31T01:30"), ts("2021-10-31T01:30"))])
    f.query("TT", "SELECT to_utc('2021-10-31T01:30', 'Europe/London'), to_utc('2021-03-28T01:30', 'Europe/London')",
            [(ts("2021-10-31T00:30"), ts("2021-03-28T01:30"))])

    pairs = [(r.choice(times), r.choice(times)) for _ in range(25)]
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
    for a, b in pairs:
        lo, hi = min(a, b), max(a, b)
        whole = [(hi - lo) // dt.timedelta(seconds=s) for s in units.values()]
        months = (hi.year - lo.year) * 12 + hi.month - lo.month
        if months > 0 and pd.Timestamp(lo).to_pydatetime() + pd.DateOffset(months=months) > hi:
            months -= 1
        f.query("IIIIIII", "SELECT " + ", ".join(f"datediff('{u}', '{a.isoformat()}', '{b.isoformat()}')" for u in [*units, "M", "y"]),
                [(*whole, months, months // 12)])
    f.query("TT", "SELECT interval_start(interval('2024-05-06', '2024-01-02')), interval_end(interval('2024-05-06', '2024-01-02'))",
            [(ts("2024-01-02"), ts("2024-05-06"))])
    f.query("T", "SELECT interval_end(today()) - interval_start(today()) < interval '1 day' AND interval_start(tomorrow()) > interval_end(today())", [("true",)])
    f.error("datediff takes a unit and two timestamps", "SELECT datediff('d', now())")
    f.error('"q" is no unit of time', "SELECT datediff('q', now(), now())")
    f.error("time zone .* not recognized", "SELECT to_utc(now(), 'Nowhere/Land')")
    f.error("is no timestamp of the pattern", "SELECT to_timestamp('2024-13-01', 'yyyy-MM-dd')")
    f.write()


# ---------------------------------------------------------------- series

def series():
    f = file("series.slt", "Rows made of nothing: generate_series, range, long_sequence, values by chance.")
    db = duckdb.connect()
    for call in ["generate_series(1, 10)", "generate_series(10, 1, -3)", "generate_series(1, 10, 4)", "generate_series(5, 1)", "generate_series(3)", "range(3)",
                 "range(2, 5)", "range(5, 2, -1)", "generate_series(NULL::BIGINT, 3)"]:
        theirs = db.execute(f"SELECT * FROM {call}").fetchall()
        f.query("I", f"SELECT * FROM {call}", theirs)
    for call in ["generate_series(TIMESTAMP '2024-01-31', TIMESTAMP '2024-05-31', INTERVAL '1 month')",
                 "generate_series(TIMESTAMP '2024-01-01', TIMESTAMP '2024-01-02', INTERVAL '7 hours')",
                 "generate_series(TIMESTAMP '2024-01-02', TIMESTAMP '2024-01-01', INTERVAL '-12 hours')",
                 "range(TIMESTAMP '2024-01-01', TIMESTAMP '2024-01-03', INTERVAL '1 day')"]:
        f.query("T", f"SELECT * FROM {call}", db.execute(f"SELECT * FROM {call}").fetchall())
    f.query("T", "SELECT * FROM generate_series('2024-02-28', '2024-03-01', '1d')", [(ts("2024-02-28"),), (ts("2024-02-29"),), (ts("2024-03-01"),)])
    f.query("II", "SELECT g, count() OVER () FROM generate_series(1, 3) AS g ORDER BY g", [(1, 3), (2, 3), (3, 3)])
    f.query("II", "SELECT sum(generate_series), count(*) FROM generate_series(1, 100000)", [(5000050000, 100000)])
    f.query("I", "SELECT count(*) FROM generate_series(1, 100000)", [(100000,)])
    f.query("I", "SELECT x FROM long_sequence(3)", [(1,), (2,), (3,)])
    f.query("I", "long_sequence(2)", [(1,), (2,)])
    f.query("I", "SELECT count() FROM long_sequence(0)", [(0,)])
    f.query("I", "SELECT max(x) FROM long_sequence(1000000) WHERE x % 7 = 0", [(999999 // 7 * 7,)])
    f.query("I", "SELECT x FROM long_sequence(20000) WHERE x > 19997", [(19998,), (19999,), (20000,)], "In order, whatever threads do.")
    f.query("TI", "SELECT timestamp_sequence('2024-01-01', 1000000) AS t, x FROM long_sequence(3)",
            [(ts("2024-01-01") + pd.Timedelta(seconds=i), i + 1) for i in range(3)])
    f.query("I", "SELECT count() FROM (SELECT timestamp_sequence('2024-01-01', rnd_long(1, 5, 0) * 1000) AS t, x FROM long_sequence(1000, 3, 4)) "
            "WHERE t BETWEEN dateadd('T', x - 1, '2024-01-01') AND dateadd('T', 5 * (x - 1), '2024-01-01')", [(1000,)])

    # The same seeds give the same values, others others; the rows have their own.
    both = "SELECT {} AS v FROM long_sequence(100, {}, {})"
    for call in ["rnd_int()", "rnd_double()", "rnd_str(3, 8, 4)", "rnd_timestamp('2024-01-01', '2024-12-31', 0)", "rnd_uuid4()", "rnd_ipv4()"]:
        f.query("I", f"SELECT count() FROM ({both.format(call, 1, 2)} EXCEPT {both.format(call, 1, 2)})", [(0,)])
        f.query("T", f"SELECT count() > 50 FROM ({both.format(call, 1, 2)} EXCEPT {both.format(call, 2, 1)})", [("true",)])
        f.query("T", f"SELECT count_distinct(v) > 40 FROM ({both.format(call, 1, 2)})", [("true",)])
    f.query("TTTT", "SELECT min(v) >= 3, max(v) <= 9, count_distinct(v) = 7, count() = 1000 FROM (SELECT rnd_int(3, 9, 0) AS v FROM long_sequence(1000, 1, 1))", [("true",) * 4])
    f.query("TT", "SELECT count(v) BETWEEN 400 AND 600, max(v) < 1 FROM (SELECT rnd_double(2) AS v FROM long_sequence(1000, 1, 1))", [("true",) * 2])
    f.query("T", "SELECT string_agg(v, ',' ORDER BY v) FROM (SELECT DISTINCT rnd_symbol('a', 'b', NULL) AS v FROM long_sequence(100, 1, 1)) WHERE v IS NOT NULL", [("a,b",)])
    f.query("I", "SELECT count_distinct(v) FROM (SELECT rnd_str(7, 3, 3, 0) AS v FROM long_sequence(1000, 1, 1))", [(7,)], "A pool of 7 texts.")
    f.query("TT", "SELECT v << '10.1.0.0/16', count() FROM (SELECT rnd_ipv4('10.1.0.0/16', 0) AS v FROM long_sequence(50, 1, 1)) GROUP BY 1", [("true", 50)])
    f.query("T", "SELECT count_distinct(v) > 1 FROM (SELECT rnd_long() AS v FROM long_sequence(100))", [("true",)])
    f.statement("CREATE TABLE made AS (SELECT rnd_symbol('x', 'y') AS s, rnd_double() AS d, timestamp_sequence('2024-01-01', 3600000000) AS ts FROM long_sequence(48, 5, 6)) TIMESTAMP(ts) PARTITION BY DAY")
    f.query("TI", "SELECT ts, count() FROM made SAMPLE BY 1d", [(ts("2024-01-01"), 24), (ts("2024-01-02"), 24)])
    f.error("step size cannot equal zero", "SELECT * FROM generate_series(1, 2, 0)")
    f.error("generate_series\\(\\) takes", "SELECT * FROM generate_series('a', 'b', 'c')")
    f.error("long_sequence\\(\\) takes a number of rows", "SELECT * FROM long_sequence('a')")
    f.error("timestamp_sequence needs FROM long_sequence", "SELECT timestamp_sequence('2024-01-01', 1)")
    f.error("rnd_int takes", "SELECT rnd_int(9, 3, 0)")
    f.write()


# ---------------------------------------------------------------- WINDOW JOIN

def window_join():
    f = file("window_join.slt", "WINDOW JOIN: aggregates of the rows around each row.")
    r = random.Random(23)
    t0 = ts("2024-01-01")
    left = [(t0 + pd.Timedelta(milliseconds=r.randrange(60_000)), r.choice(["a", "b", "c", None]), i, r.randrange(0, 9)) for i in range(60)]
    left.sort(key=lambda row: row[0])
    right = [(t0 + pd.Timedelta(milliseconds=r.randrange(60_000) // 500 * 500), r.choice(["a", "b", None]), None if r.random() < 0.1 else r.randrange(100)) for i in range(150)]
    right.sort(key=lambda row: row[0])
    f.statement("CREATE TABLE l (ts TIMESTAMP, k SYMBOL, i LONG, back LONG) TIMESTAMP(ts) PARTITION BY DAY")
    f.statement("CREATE TABLE r (ts TIMESTAMP, k SYMBOL, v LONG) TIMESTAMP(ts) PARTITION BY DAY")
    f.insert("l", left)
    f.insert("r", right)

    def windows(lo, hi, keyed, prevailing):
        out = []
        for t, k, i, back in left:
            lower, upper = t + lo(back), t + hi(back)
            own = [(rt, v) for rt, rk, v in right if not keyed or (k is not None and rk == k)]
            rows = [(rt, v) for rt, v in own if lower <= rt <= upper]
            if prevailing and lower <= upper and not any(rt == lower for rt, _ in rows):
                before = [row for row in own if row[0] < lower]
                rows = before[-1:] + rows
            out.append((i, [v for _, v in rows]))
        return sorted(out)

    def summed(groups):
        def of(i, values):
            known = [v for v in values if v is not None]
            return (i, len(values), len(known), sum(known) if known else None, min(known, default=None), max(known, default=None))
        return [of(i, values) for i, values in groups]

    sec = lambda s: (lambda back: pd.Timedelta(seconds=s))
    cases = [("RANGE BETWEEN 2 seconds PRECEDING AND 1 second FOLLOWING", sec(-2), sec(1)),
             ("RANGE BETWEEN 1500 milliseconds PRECEDING AND CURRENT ROW", sec(-1.5), sec(0)),
             ("RANGE BETWEEN 5 seconds PRECEDING AND 3 seconds PRECEDING", sec(-5), sec(-3)),
             ("RANGE BETWEEN 1s FOLLOWING AND 1m FOLLOWING", sec(1), sec(60)),
             ("RANGE BETWEEN l.back seconds PRECEDING AND 2 * l.back - 4 seconds FOLLOWING", lambda b: pd.Timedelta(seconds=-b), lambda b: pd.Timedelta(seconds=2 * b - 4)),
             ("RANGE BETWEEN 500000 PRECEDING AND 500000 FOLLOWING", sec(-0.5), sec(0.5))]
    for clause, lo, hi in cases:
        for on, keyed in [(" ON (k)", True), ("", False), (" ON l.k = r.k", True)][: 3 if clause == cases[0][0] else 2]:
            for words, prevailing in [(" EXCLUDE PREVAILING", False), (" INCLUDE PREVAILING", True), ("", True)][: 3 if clause == cases[0][0] else 2]:
                f.query("IIIIII", f"SELECT i, count(), count(r.v), sum(r.v), min(r.v), max(v) FROM l WINDOW JOIN r{on} {clause}{words} ORDER BY i",
                        summed(windows(lo, hi, keyed, prevailing)))

    by_row = lambda lo, hi, values: [(i, [v for v in vs if v is not None]) for i, vs in windows(lo, hi, True, False)]
    f.query("IR", "SELECT i, avg(r.v) FROM l WINDOW JOIN r ON (k) RANGE BETWEEN 3 seconds PRECEDING AND 3 seconds FOLLOWING EXCLUDE PREVAILING WHERE l.k = 'a' AND i < 30 ORDER BY i",
            [(i, sum(vs) / len(vs) if vs else None) for i, vs in by_row(sec(-3), sec(3), None) if i < 30 and dict((x[2], x[1]) for x in left)[i] == "a"],
            "WHERE is about the left side.")
    # Of each time one row, so that the first and the last are certain.
    single = pd.DataFrame(right, columns=["ts", "k", "v"]).groupby("ts").v.max().reset_index()
    inside = lambda t: single[(single.ts >= t - pd.Timedelta(seconds=20)) & (single.ts <= t - pd.Timedelta(seconds=10))].v.tolist()
    value = lambda v: None if v != v else int(v)
    f.query("III", "SELECT i, first(q.v), last(q.v) FROM l WINDOW JOIN (SELECT ts, max(v) AS v FROM r GROUP BY ts ORDER BY ts) q RANGE BETWEEN 20 seconds PRECEDING AND 10 seconds PRECEDING EXCLUDE PREVAILING WHERE i % 10 = 0 ORDER BY i",
            [(i, value(inside(t)[0]) if inside(t) else None, value(inside(t)[-1]) if inside(t) else None) for t, k, i, b in sorted(left, key=lambda row: row[2]) if i % 10 == 0],
            "first and last go by the time of the right side.")
    f.query("II", "SELECT i, sum(r.v) + back AS s FROM l WINDOW JOIN r ON (k) RANGE BETWEEN 1 second PRECEDING AND 1 second FOLLOWING EXCLUDE PREVAILING ORDER BY i LIMIT 5",
            [(i, sum(vs) + dict((x[2], x[3]) for x in left)[i] if vs else None) for i, vs in by_row(sec(-1), sec(1), None)][:5])
    two = windows(sec(-1), sec(1), True, False), windows(sec(-4), sec(0), False, True)
    f.query("III", "SELECT i, count(a.v), sum(b.v) FROM l WINDOW JOIN r a ON (k) RANGE BETWEEN 1 second PRECEDING AND 1 second FOLLOWING EXCLUDE PREVAILING "
            "WINDOW JOIN r b RANGE BETWEEN 4 seconds PRECEDING AND CURRENT ROW INCLUDE PREVAILING ORDER BY i",
            [(i, len([v for v in vs if v is not None]), (lambda known: sum(known) if known else None)([v for v in ws if v is not None])) for (i, vs), (_, ws) in zip(*two)],
            "Two of them: each has its own rows.")
    f.query("I", "SELECT max(n) FROM (SELECT i, count() AS n FROM l WINDOW JOIN r RANGE BETWEEN 1 minute PRECEDING AND 1 minute FOLLOWING EXCLUDE PREVAILING) x", [(150,)])
    f.query("TI", "SELECT l.ts, count() FROM l WINDOW JOIN (SELECT * FROM r WHERE v > 200) q RANGE BETWEEN 1 minute PRECEDING AND 1 minute FOLLOWING LIMIT 2",
            [(row[0], 0) for row in left[:2]], "Nothing on the right.")
    f.statement("CREATE TABLE none (ts TIMESTAMP, k SYMBOL) TIMESTAMP(ts)")
    f.query("TI", "SELECT none.ts, count() FROM none WINDOW JOIN r ON (k) RANGE BETWEEN 1 minute PRECEDING AND 1 minute FOLLOWING", [])
    f.error("syntax error: expected RANGE BETWEEN", "SELECT count() FROM l WINDOW JOIN r")
    f.error("syntax error: expected a length of time and PRECEDING or FOLLOWING, found UNBOUNDED", "SELECT count() FROM l WINDOW JOIN r RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW")
    f.error('column "v" must be used in an aggregate function', "SELECT i, r.v FROM l WINDOW JOIN r RANGE BETWEEN 1s PRECEDING AND CURRENT ROW")
    f.error("GROUP BY, HAVING, DISTINCT and QUALIFY go around WINDOW JOIN", "SELECT k, count() FROM l WINDOW JOIN r RANGE BETWEEN 1s PRECEDING AND CURRENT ROW GROUP BY k")
    f.write()


# ---------------------------------------------------------------- PIVOT

def pivot():
    f = file("pivot.slt", "PIVOT and UNPIVOT.")
    r = random.Random(31)
    rows = [(ts("2024-01-01") + pd.Timedelta(hours=i), r.choice(["BTC", "ETH", "SOL"]), r.choice(["buy", "sell"]), r.randrange(100), r.randrange(10)) for i in range(60)]
    f.statement("CREATE TABLE t (ts TIMESTAMP, symbol SYMBOL, side SYMBOL, price LONG, amount LONG) TIMESTAMP(ts) PARTITION BY DAY")
    f.insert("t", rows)
    db = duckdb.connect()
    frame = pd.DataFrame(rows, columns=["ts", "symbol", "side", "price", "amount"])
    db.register("frame", frame)
    db.execute("CREATE TABLE t AS SELECT * FROM frame")

    def check(types, sql, theirs=None, comment=None):
        f.query(types, sql, db.execute(theirs or sql).fetchall(), comment)

    check("TII", "SELECT * FROM t PIVOT (sum(price) FOR symbol IN ('BTC', 'ETH') GROUP BY side) ORDER BY side")
    check("TIIII", "SELECT * FROM t PIVOT (sum(price) AS total, count(*) AS n FOR symbol IN ('BTC', 'ETH') GROUP BY side) ORDER BY side")
    check("III", "SELECT \"BTC\", sol, \"nosuch\" FROM t PIVOT (max(price) FOR symbol IN ('BTC', 'SOL' AS sol, 'nosuch'))",
          "SELECT max(price) FILTER (symbol = 'BTC'), max(price) FILTER (symbol = 'SOL'), NULL FROM t", "Without GROUP BY there is one row.")
    check("IIII", "t PIVOT (max(price) FOR symbol IN ('BTC', 'ETH') side IN ('buy', 'sell'))",
          "SELECT max(price) FILTER (symbol = 'BTC' AND side = 'buy'), max(price) FILTER (symbol = 'BTC' AND side = 'sell'), "
          "max(price) FILTER (symbol = 'ETH' AND side = 'buy'), max(price) FILTER (symbol = 'ETH' AND side = 'sell') FROM t")
    f.query("II", "SELECT \"BTC_buy\", eth_sell FROM t PIVOT (max(price) FOR symbol IN ('BTC', 'ETH' AS eth) side IN ('buy', 'sell'))",
            db.execute("SELECT max(price) FILTER (symbol = 'BTC' AND side = 'buy'), max(price) FILTER (symbol = 'ETH' AND side = 'sell') FROM t").fetchall())
    check("TIII", "SELECT * FROM t PIVOT (sum(amount) FOR symbol IN (SELECT DISTINCT symbol FROM t ORDER BY symbol) GROUP BY side) ORDER BY side",
          "SELECT side, sum(amount) FILTER (symbol = 'BTC'), sum(amount) FILTER (symbol = 'ETH'), sum(amount) FILTER (symbol = 'SOL') FROM t GROUP BY side ORDER BY side")
    check("TIII", "PIVOT t ON symbol USING sum(price) GROUP BY side ORDER BY side")
    check("TII", "PIVOT t ON symbol IN ('ETH', 'BTC') USING max(price) GROUP BY side ORDER BY side")
    check("TIII", "PIVOT (SELECT symbol, side, price FROM t WHERE price > 20) ON symbol USING count(*) ORDER BY side", comment="Without GROUP BY by all that is left.")
    check("TIII", "WITH few AS (SELECT symbol, side, price FROM t WHERE price > 50) PIVOT few ON symbol USING sum(price) ORDER BY side")
    check("III", "SELECT \"BTC\" + 1, x.\"ETH\", amount FROM (SELECT symbol, amount, price FROM t) PIVOT (sum(price) FOR symbol IN ('BTC', 'ETH') GROUP BY amount) x ORDER BY amount")
    check("TI", "SELECT side, \"2\" FROM t PIVOT (count(*) FOR amount IN (1, 2) GROUP BY side) ORDER BY side")
    f.error("PIVOT takes aggregates", "SELECT * FROM t PIVOT (price FOR symbol IN ('BTC'))")
    f.error("the query for the values of a PIVOT gives none", "SELECT * FROM t PIVOT (sum(price) FOR symbol IN (SELECT symbol FROM t WHERE false))")

    f.statement("CREATE TABLE wide (id LONG, jan LONG, feb LONG, mar DOUBLE)")
    f.insert("wide", [(1, 10, None, 1.5), (2, 20, 5, None)])
    db.execute("CREATE TABLE wide (id BIGINT, jan BIGINT, feb BIGINT, mar DOUBLE)")
    db.execute("INSERT INTO wide VALUES (1, 10, NULL, 1.5), (2, 20, 5, NULL)")
    check("ITR", "SELECT * FROM wide UNPIVOT (v FOR month IN (jan, feb, mar)) ORDER BY id, month")
    check("ITR", "SELECT * FROM wide UNPIVOT INCLUDE NULLS (v FOR month IN (jan, feb, mar)) ORDER BY id, month")
    check("ITR", "UNPIVOT wide ON jan, feb, mar INTO NAME month VALUE v ORDER BY id, month")
    check("TI", "SELECT month, sum(v) FROM (SELECT jan, feb FROM wide) UNPIVOT (v FOR month IN (jan, feb)) GROUP BY month ORDER BY month")
    f.write()


if __name__ == "__main__":
    statistics()
    civil()
    series()
    window_join()
    pivot()
