"""Writes postgres_times.slt: statements about times, intervals, zones and patterns, with the rows that PostgreSQL 15 gives.

Run by hand when a case is added: `python tests/slt/reference/postgres.py "host=… dbname=…"` with psycopg installed and a
PostgreSQL 15 with time zone UTC. Nothing in here asks Tidalite.
"""

import pathlib
import sys

import psycopg

HEADER = """# Times, intervals, zones and patterns, as in PostgreSQL 15.
# Written by reference/postgres.py: the expected rows are those of PostgreSQL.
"""

INTERVALS = ["1 day 04:05:06", "P1DT4H", "1-2", "3 4:05:06", "1 year 2 mons 3 days 04:05:06.789", "@ 1 day 2 hours ago", "-1-2", "1.5 days",
             "1.5 months", "P0001-02-03T04:05:06", "PT1.5H", "1 day -2 hours", "2 decades", "5", "12:34.5", "1d12h", "0.5 hours", "10 milliseconds"]
FIELDS = ["'1' DAY", "'1-2' YEAR TO MONTH", "'1 2:03' DAY TO MINUTE", "'1:02' MINUTE TO SECOND", "'90' MINUTE", "'1 day 04:05:06' DAY TO HOUR"]
COMPARED = ["interval '24 hours' = interval '1 day'", "interval '1 month' = interval '30 days'", "interval '1 year' > interval '360 days'",
            "interval '1 day' IN (interval '2 days', interval '24 hours')", "interval '1 day' BETWEEN interval '23 hours' AND interval '24 hours'",
            "CASE interval '24 hours' WHEN interval '1 day' THEN true ELSE false END"]
ARITHMETIC = ["date '2024-01-31' + interval '1 month'", "date '2024-01-01' + interval '1 hour'", "date '2024-01-01' - interval '1 second'",
              "interval '1 day' + date '2024-01-31'", "timestamp '0001-01-01' + interval '1 day'", "timestamp '9999-12-31' - interval '1 day'",
              "timestamp '2024-02-29' + interval '1 year'"]
DAYS = ["date '2024-01-01' + 5", "5 + date '2024-01-01'", "date '2024-01-01' - 5", "date '2024-03-01' - date '2024-02-01'"]
LENGTHS = ["interval '1 day' * 1.5", "interval '1 mon' / 2", "interval '1 mon' - interval '1 day'", "- interval '1 day 2 hours'",
           "timestamp '2024-03-01 12:00' - timestamp '2024-02-01 13:00'", "justify_hours(interval '27 hours')", "justify_days(interval '35 days')",
           "justify_interval(interval '1 mon -1 hour')", "age(timestamp '2001-04-10', timestamp '1957-06-13')", "make_interval(days => 10, secs => 1.5)",
           "date_trunc('hour', interval '3 days 28:11:12')"]
TIMES = ["2024-02-09 03:04:05.678901", "0001-01-03 01:02:03", "9999-12-31 23:59:59.999999", "1969-12-31 23:59:59.75"]
PARTS = ["century", "day", "decade", "dow", "doy", "epoch", "hour", "isodow", "isoyear", "julian", "microseconds", "millennium", "milliseconds",
         "minute", "month", "quarter", "second", "week", "year"]
TRUNCATED = ["microseconds", "milliseconds", "second", "minute", "hour", "day", "week", "month", "quarter", "year", "decade", "century", "millennium"]
PATTERNS = ["FMDD FMMonth YYYY", "Q", "SSSS", "WW", "Y,YYY", "MON", "Month", "mon", "DAY", "Dy", "D", "ID", "DDD", "IDDD", "IW", "IYYY", "J", "CC", "RM", "FMrm",
            "HH12 AM", "hh:mi:ss p.m.", "HH24:MI:SS.US", "MS", "FF3", "AD", "B.C.", "OF", "YYY", "YY", "Y", "W", "FMDDth", "DDTH", 'YYYY-MM-DD"T"HH24', "yyyy-mm-dd",
            "FMDay, FMDD", "FMIW"]
NUMBERS = ["999", "9999.99", "FM9999.99", "00000", "9,999.99", "S9999", "9999MI", "9999PR", "RN", "FM999990.0", "9999th", "9.99EEEE"]
ZONES = ["Europe/Berlin", "America/New_York", "CET", "EST", "+02:00", "UTC+3"]
CLOCKS = ["2024-07-01 22:30", "2024-03-31 02:30", "2024-10-27 02:30", "9999-12-31 12:00"]


def statements():
    """The statements, each with the types of its columns."""
    for text in INTERVALS:
        yield "TTT", f"SELECT (interval '{text}')::varchar, ('{text}'::text)::interval::varchar, timestamp '2024-01-31 12:00' + interval '{text}'"
    for literal in FIELDS:
        yield "T", f"SELECT (interval {literal})::varchar"
    yield "T" * len(COMPARED), f"SELECT {', '.join(COMPARED)}"
    yield "T" * len(ARITHMETIC), f"SELECT {', '.join(ARITHMETIC)}"
    yield "TTTI", f"SELECT {', '.join(DAYS)}"
    for length in LENGTHS:
        yield "T", f"SELECT ({length})::varchar"
    values = "(VALUES (interval '1 day', 1), (interval '25 hours', 2), (interval '1 mon', 3), (interval '-1 day', 4), (interval '23 hours', 5)) t(i, n)"
    yield "I", f"SELECT n FROM {values} ORDER BY i"
    yield "II", f"SELECT n, row_number() OVER (ORDER BY i) FROM {values} ORDER BY n"
    for time in TIMES:
        yield "R" * len(PARTS), f"SELECT {', '.join(f'extract({part} FROM ts)::float8' for part in PARTS)} FROM (SELECT timestamp '{time}' AS ts) t"
        yield "T" * len(TRUNCATED), f"SELECT {', '.join(f'date_trunc({part!r}, ts)' for part in TRUNCATED)} FROM (SELECT timestamp '{time}' AS ts) t"
        for stride in ["1 day", "15 minutes", "7 days"]:
            yield "T", f"SELECT date_bin(interval '{stride}', timestamp '{time}', timestamp '1970-01-01')"
    for pattern in PATTERNS:
        shown = [f"'[' || to_char(timestamp '{time}', '{pattern}') || ']'" for time in ["2024-02-09 03:04:05.678901", "1969-12-31 23:59:59.75"]]
        yield "TT", f"SELECT {', '.join(shown)}"
    for pattern in NUMBERS:
        yield "TTT", f"SELECT {', '.join(chr(39) + '[' + chr(39) + f' || to_char({n}, {pattern!r}) || ' + chr(39) + ']' + chr(39) for n in ['1234.5::decimal(10,1)', '-12', '485'])}"
    for time in CLOCKS:
        for zone in ZONES:
            yield "TT", (f"SELECT timestamp '{time}' AT TIME ZONE '{zone}' AT TIME ZONE 'UTC', "
                         f"timestamp '{time}' AT TIME ZONE 'UTC' AT TIME ZONE '{zone}'")
    yield "T", "SELECT date '2024-07-01' AT TIME ZONE 'Europe/Berlin'"
    yield "T", "SELECT t AT TIME ZONE 'Europe/Berlin' FROM (SELECT timestamp '2024-07-01 12:00' AT TIME ZONE 'UTC' AS t) x"
    yield "T", "SELECT (now() AT TIME ZONE 'Asia/Tokyo') - (now() AT TIME ZONE 'UTC') = interval '9 hours'"
    yield "TTT", "SELECT make_date(2024, 2, 29), make_timestamp(2013, 7, 15, 8, 15, 23.5), make_date(-44, 3, 15)::varchar IS NULL"
    yield "TTT", "SELECT to_date('05 Dec 2000', 'DD Mon YYYY'), to_date('2024-060', 'YYYY-DDD'), to_date('2024-09-4', 'IYYY-IW-ID')"
    yield "TT", "SELECT timestamp '1969-12-31 23:59:59.5'::date, date '1969-12-31'::timestamp"
    yield "TTT", "SELECT date '2024-01-01' < timestamp '2024-01-01 12:00', date '2024-01-01' = timestamp '2024-01-01 00:00', timestamp '2024-01-01' < date '2024-01-02'"
    yield "TTTTT", ("SELECT '{\"a\":1,\"b\":[1,2]}'::jsonb @> '{\"a\":1}'::jsonb, '[1,2,3]'::jsonb @> '[3,1]'::jsonb, '[1,2]'::jsonb @> '1'::jsonb, "
                    "'{\"a\":{\"b\":1}}'::jsonb @> '{\"a\":{}}'::jsonb, '{\"a\":1}'::jsonb @> '{\"a\":2}'::jsonb")


def shown(value):
    """A value of PostgreSQL's text protocol as the files have it."""
    if value is None:
        return "NULL"
    if value in ("t", "f"):
        return "true" if value == "t" else "false"
    if len(value) >= 19 and value[4] == "-" and value[10] == " " and value[13] == ":":
        whole, _, fraction = value.removesuffix("+00").replace(" ", "T", 1).partition(".")
        return f"{whole}.{fraction.ljust(-(-len(fraction) // 3) * 3, '0')}" if fraction else whole
    return value or "(empty)"


def main():
    connection = psycopg.connect(sys.argv[1], autocommit=True)
    parts = [HEADER]
    for types, sql in statements():
        result = connection.pgconn.exec_(sql.encode())
        assert not result.error_message, (sql, result.error_message)
        rows = [" ".join(shown(v and v.decode()) for v in (result.get_value(r, c) for c in range(result.nfields))) for r in range(result.ntuples)]
        ours = sql.replace("::jsonb", "::json")
        parts.append(f"query {types}\n{ours}\n----\n" + "\n".join(rows) + "\n")
    path = pathlib.Path(__file__).parent.parent / "postgres_times.slt"
    path.write_text("\n".join(parts))


if __name__ == "__main__":
    main()
