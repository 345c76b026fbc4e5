"""How each system writes what the queries of the Time Series Benchmark Suite need: buckets of time, the last row of each, integer division.

A `Dialect` turns parts of a question into a system's own text; the questions themselves are in `devops_queries` and
`iot_queries`. What is chosen for a peer is the fastest of the forms that its documentation gives.
"""

from datetime import datetime, timezone

UNITS = {1: "minute", 60: "hour", 1440: "day"}


class Dialect:
    """Standard SQL, as DuckDB has it; the others say what differs."""

    time_format = "TIMESTAMP '%Y-%m-%d %H:%M:%S'"

    def time(self, ns):
        return datetime.fromtimestamp(ns // 10**9, timezone.utc).strftime(self.time_format)

    def before(self, ns):
        return f"timestamp < {self.time(ns)}"

    def one_of(self, column, names):
        return f"{column} IN (" + ", ".join(f"'{name}'" for name in names) + ")"

    def rows(self, table, where):
        return f"SELECT * FROM {table} WHERE {where}"

    def window(self, from_ns, to_ns, column="timestamp"):
        return f"{column} >= {self.time(from_ns)} AND {column} < {self.time(to_ns)}"

    def bucket(self, minutes, column="timestamp"):
        return f"time_bucket(INTERVAL {minutes} MINUTE, {column})"

    def sampled(self, minutes, keys, values, table, where="", column="timestamp"):
        """Aggregates by bucket and keys; the bucket is called `bucket`."""
        keys = [self.bucket(minutes, column) + " AS bucket", *keys]
        numbers = ", ".join(str(n + 1) for n in range(len(keys)))
        return f"SELECT {', '.join([*keys, *values])} FROM {table}{self.where(where)} GROUP BY {numbers}"

    def where(self, condition):
        return f" WHERE {condition}" if condition else ""

    def latest(self, columns, table, key, where="", column="timestamp"):
        return f"SELECT DISTINCT ON ({key}) {columns} FROM {table}{self.where(where)} ORDER BY {key}, {column} DESC"

    def latest_of(self, name, columns, table):
        """The last row of one that is named."""
        return f"SELECT {columns} FROM {table} WHERE name = '{name}' ORDER BY timestamp DESC LIMIT 1"

    def first(self, value, column="timestamp"):
        """Of the row of a group with the earliest time."""
        return f"arg_min({value}, {column})"

    def last(self, value, column="timestamp"):
        return f"arg_max({value}, {column})"

    def last_rows(self, count):
        return f"ORDER BY ts DESC LIMIT {count}"

    def mean(self, value):
        return f"avg({value})"

    def quotient(self, a, b):
        return f"{a} // {b}"

    def seconds(self, start, stop):
        return f"epoch({stop} - {start})"

    def shifted(self, function, column):
        return f"{function}({column})"

    def last_buckets(self, count, minutes, value, table, where):
        return f"{self.sampled(minutes, [], [value], table, where)} ORDER BY 1 DESC LIMIT {count}"


class Hyper(Dialect):
    def mean(self, value):
        # Of integers its mean is a decimal of six digits.
        return f"avg(cast({value} AS double precision))"

    def bucket(self, minutes, column="timestamp"):
        if minutes in UNITS:
            return f"date_trunc('{UNITS[minutes]}', {column})"
        return f"date_trunc('hour', {column}) + cast(floor(extract(minute FROM {column}) / {minutes}) AS integer) * INTERVAL '{minutes} minutes'"

    def latest(self, columns, table, key, where="", column="timestamp"):
        picked = ", ".join(f"t.{c.strip()}" for c in columns.split(","))
        more = f" AND {where}" if where else ""
        return (f"SELECT {picked} FROM {table} t JOIN (SELECT {key} AS k, max({column}) AS m FROM {table}{self.where(where)} GROUP BY {key}) l "
                f"ON t.{key} = l.k AND t.{column} = l.m" + (f" WHERE true{more}" if more else ""))

    def quotient(self, a, b):
        return f"cast(floor({a} / {b}) AS bigint)"

    def seconds(self, start, stop):
        return f"extract(epoch FROM {stop} - {start})"


class DataFusion(Dialect):
    def bucket(self, minutes, column="timestamp"):
        return f"date_trunc('{UNITS[minutes]}', {column})" if minutes in UNITS else f"date_bin(INTERVAL '{minutes} minutes', {column})"

    def quotient(self, a, b):
        return f"{a} / {b}"

    def seconds(self, start, stop):
        return f"(date_part('epoch', {stop}) - date_part('epoch', {start}))"


class ClickHouse(Dialect):
    time_format = "'%Y-%m-%d %H:%M:%S'"

    def first(self, value, column="timestamp"):
        return f"argMin({value}, {column})"

    def last(self, value, column="timestamp"):
        return f"argMax({value}, {column})"

    def bucket(self, minutes, column="timestamp"):
        named = {1: "toStartOfMinute", 10: "toStartOfTenMinutes", 60: "toStartOfHour", 1440: "toStartOfDay"}
        return f"{named[minutes]}({column})"

    def latest(self, columns, table, key, where="", column="timestamp"):
        more = f"{where} AND " if where else ""
        return f"SELECT {columns} FROM {table} WHERE {more}({key}, {column}) IN (SELECT {key}, max({column}) FROM {table}{self.where(where)} GROUP BY {key})"

    def quotient(self, a, b):
        return f"intDiv({a}, {b})"

    def seconds(self, start, stop):
        return f"(toUnixTimestamp({stop}) - toUnixTimestamp({start}))"

    def shifted(self, function, column):
        return f"{function}(toNullable({column}))"


class QuestDb(Dialect):
    time_format = "'%Y-%m-%dT%H:%M:%SZ'"

    def first(self, value, column="timestamp"):
        return f"first({value})"

    def last(self, value, column="timestamp"):
        return f"last({value})"

    def bucket(self, minutes, column="timestamp"):
        return f"timestamp_floor('{'d' if minutes == 1440 else f'{minutes}m'}', {column})"

    def sampled(self, minutes, keys, values, table, where="", column="timestamp"):
        step = f"{minutes // 60}h" if minutes % 60 == 0 else f"{minutes}m"
        return f"SELECT {', '.join([f'{column} AS bucket', *keys, *values])} FROM {table}{self.where(where)} SAMPLE BY {step}"

    def latest(self, columns, table, key, where="", column="timestamp"):
        return f"SELECT {columns} FROM {table}{self.where(where)} LATEST ON {column} PARTITION BY {key}"

    def last_rows(self, count):
        return f"LIMIT -{count}"

    def latest_of(self, name, columns, table):
        return self.latest(columns, table, "name", f"name = '{name}'")

    def quotient(self, a, b):
        return f"{a} / {b}"

    def seconds(self, start, stop):
        return f"datediff('s', {start}, {stop})"

    def last_buckets(self, count, minutes, value, table, where):
        return f"{self.sampled(minutes, [], [value], table, where)} ORDER BY bucket DESC LIMIT {count}"


class Influx(Dialect):
    """InfluxQL: devops only. Its answers have the time first, which `rows` and `latest` want last (see engines.InfluxServer)."""

    time_format = "'%Y-%m-%dT%H:%M:%SZ'"

    def window(self, from_ns, to_ns, column="time"):
        return f"time >= {self.time(from_ns)} AND time < {self.time(to_ns)}"

    def before(self, ns):
        return f"time < {self.time(ns)}"

    def one_of(self, column, names):
        return "(" + " OR ".join(f"{column} = '{name}'" for name in names) + ")"

    def mean(self, value):
        return f"mean({value})"

    def sampled(self, minutes, keys, values, table, where="", column="time"):
        groups = ", ".join([f"time({minutes}m)", *keys])
        return f"SELECT {', '.join(values)} FROM {table}{self.where(where)} GROUP BY {groups} fill(none)"

    def last_buckets(self, count, minutes, value, table, where):
        return f"{self.sampled(minutes, [], [value], table, where)} ORDER BY time DESC LIMIT {count}"

    def rows(self, table, where):
        return f"SELECT * FROM {table} WHERE {where}"

    def latest(self, columns, table, key, where="", column="time"):
        return f"SELECT {columns} FROM {table}{self.where(where)} GROUP BY * ORDER BY time DESC LIMIT 1"


DIALECTS = {"tidalite": QuestDb(), "tidalite-server": QuestDb(), "tidalite-process": QuestDb(), "questdb": QuestDb(), "duckdb": Dialect(), "clickhouse": ClickHouse(), "hyper": Hyper(),
            "datafusion": DataFusion(), "polars": Dialect(), "influxdb": Influx()}
