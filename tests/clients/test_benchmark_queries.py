"""The queries of the Time Series Benchmark Suite and of finance's daily work, as QuestDB's users write them, beside DuckDB.

Ours on the left, DuckDB's on the right; rows are compared without regard to order unless the query says one.
"""

import datetime as dt
import random

import duckdb
import psycopg
import pytest
from test_random_queries import comparable

T0 = dt.datetime(2016, 1, 1)
HOSTS = [f"host_{n}" for n in range(12)]
FIELDS = ["usage_user", "usage_system", "usage_idle"]

TSBS = {
    "single-groupby": ("SELECT timestamp AS minute, max(usage_user) FROM cpu WHERE hostname IN ('host_1', 'host_7') AND timestamp >= '2016-01-01T02:16:22Z' AND timestamp < '2016-01-01T03:16:22Z' SAMPLE BY 1m ALIGN TO CALENDAR",
                       "SELECT time_bucket(INTERVAL '1 minute', timestamp) AS minute, max(usage_user) FROM cpu WHERE hostname IN ('host_1', 'host_7') AND timestamp >= '2016-01-01T02:16:22' AND timestamp < '2016-01-01T03:16:22' GROUP BY 1"),
    "cpu-max-all": ("SELECT timestamp AS hour, max(usage_user), max(usage_system), max(usage_idle) FROM cpu WHERE hostname IN ('host_3') AND timestamp IN '2016-01-01T00;8h' SAMPLE BY 1h",
                    "SELECT time_bucket(INTERVAL '1 hour', timestamp), max(usage_user), max(usage_system), max(usage_idle) FROM cpu WHERE hostname = 'host_3' AND timestamp >= '2016-01-01' AND timestamp < '2016-01-01T09:00' GROUP BY 1"),
    "double-groupby": ("SELECT timestamp AS hour, hostname, avg(usage_user), avg(usage_system) FROM cpu WHERE timestamp >= '2016-01-01' AND timestamp < '2016-01-01T12' SAMPLE BY 1h",
                       "SELECT time_bucket(INTERVAL '1 hour', timestamp), hostname, avg(usage_user), avg(usage_system) FROM cpu WHERE timestamp < '2016-01-01T12:00' GROUP BY 1, 2"),
    "high-cpu": ("SELECT * FROM cpu WHERE usage_user > 90.0 AND hostname IN ('host_2', 'host_5') AND timestamp >= '2016-01-01T01' AND timestamp < '2016-01-01T13'",
                 "SELECT * FROM cpu WHERE usage_user > 90.0 AND hostname IN ('host_2', 'host_5') AND timestamp >= '2016-01-01T01:00' AND timestamp < '2016-01-01T13:00'"),
    "lastpoint": ("SELECT * FROM cpu LATEST ON timestamp PARTITION BY hostname",
                  "SELECT * FROM cpu QUALIFY row_number() OVER (PARTITION BY hostname ORDER BY timestamp DESC) = 1"),
    "groupby-orderby-limit": ("SELECT timestamp AS minute, max(usage_user) FROM cpu WHERE timestamp < '2016-01-01T08:16:22Z' SAMPLE BY 1m LIMIT -5",
                              "SELECT time_bucket(INTERVAL '1 minute', timestamp) AS m, max(usage_user) FROM cpu WHERE timestamp < '2016-01-01T08:16:22' GROUP BY 1 ORDER BY 1 DESC LIMIT 5"),
}

FINANCE = {
    "candles": ("SELECT timestamp, symbol, first(price) AS open, max(price) AS high, min(price) AS low, last(price) AS close, sum(amount) AS volume FROM trades SAMPLE BY 15m",
                "SELECT time_bucket(INTERVAL '15 minutes', timestamp), symbol, arg_min(price, timestamp), max(price), min(price), arg_max(price, timestamp), sum(amount) FROM trades GROUP BY 1, 2"),
    "vwap": ("SELECT timestamp, vwap(price, amount) FROM trades WHERE symbol = 'BTC' SAMPLE BY 1h",
             "SELECT time_bucket(INTERVAL '1 hour', timestamp), sum(price * amount) / sum(amount) FROM trades WHERE symbol = 'BTC' GROUP BY 1"),
    "slippage": ("SELECT t.timestamp, t.symbol, t.price - mid(q.bid, q.ask) AS slip FROM trades t ASOF JOIN quotes q ON (symbol)",
                 "SELECT t.timestamp, t.symbol, t.price - (q.bid + q.ask) / 2 FROM trades t ASOF LEFT JOIN quotes q ON t.symbol = q.symbol AND t.timestamp >= q.timestamp"),
    "spread": ("SELECT symbol, avg(spread_bps(bid, ask)) FROM quotes", "SELECT symbol, avg((ask - bid) / ((bid + ask) / 2) * 10000) FROM quotes GROUP BY 1"),
    "around": ("SELECT t.timestamp, t.symbol, count(), min(q.bid) FROM trades t WINDOW JOIN quotes q ON (symbol) RANGE BETWEEN 30 seconds PRECEDING AND 30 seconds FOLLOWING EXCLUDE PREVAILING",
               "SELECT t.timestamp, t.symbol, count(q.bid), min(q.bid) FROM trades t LEFT JOIN quotes q ON t.symbol = q.symbol AND q.timestamp BETWEEN t.timestamp - INTERVAL '30 seconds' AND t.timestamp + INTERVAL '30 seconds' GROUP BY ALL"),
    "moving": ("SELECT timestamp, avg(price) OVER (PARTITION BY symbol ORDER BY timestamp ROWS 4 PRECEDING) AS m, symbol FROM trades",
               "SELECT timestamp, avg(price) OVER (PARTITION BY symbol ORDER BY timestamp ROWS 4 PRECEDING), symbol FROM trades"),
    "returns": ("SELECT timestamp, symbol, price / lag(price) OVER (PARTITION BY symbol ORDER BY timestamp) - 1 AS r FROM trades",
                "SELECT timestamp, symbol, price / lag(price) OVER (PARTITION BY symbol ORDER BY timestamp) - 1 FROM trades"),
    "columns": ("SELECT * FROM trades PIVOT (avg(price) FOR symbol IN ('BTC', 'ETH'))",
                "SELECT avg(price) FILTER (symbol = 'BTC'), avg(price) FILTER (symbol = 'ETH') FROM trades"),
    "largest": ("SELECT symbol, timestamp, amount FROM (SELECT symbol, timestamp, amount, rank() OVER (PARTITION BY symbol ORDER BY amount DESC) AS r FROM trades) WHERE r <= 3",
                "SELECT symbol, timestamp, amount FROM (SELECT symbol, timestamp, amount, rank() OVER (PARTITION BY symbol ORDER BY amount DESC) AS r FROM trades) WHERE r <= 3"),
}


@pytest.fixture(scope="module")
def both(server):
    r, db = random.Random(11), duckdb.connect()
    cpu = [(T0 + dt.timedelta(seconds=30 * i, milliseconds=h), host, *(round(r.random() * 100, 2) for _ in FIELDS)) for i in range(1800) for h, host in enumerate(HOSTS)]
    symbols = ["BTC", "ETH", "SOL"]
    trades = [(T0 + dt.timedelta(seconds=7 * i), r.choice(symbols), round(100 + r.random(), 4), r.randrange(1, 500) / 4) for i in range(3000)]
    quotes = [(T0 + dt.timedelta(seconds=3 * i + 1), r.choice(symbols), bid := round(100 + r.random(), 4), bid + r.randrange(1, 9) / 64) for i in range(5000)]
    tables = {"cpu": ("hostname", FIELDS, cpu), "trades": ("symbol", ["price", "amount"], trades), "quotes": ("symbol", ["bid", "ask"], quotes)}
    for name, (key, numbers, rows) in tables.items():
        columns = ", ".join(f"{n} DOUBLE" for n in numbers)
        server.exec(f"DROP TABLE IF EXISTS {name}")
        server.exec(f"CREATE TABLE {name} (timestamp TIMESTAMP, {key} SYMBOL, {columns}) TIMESTAMP(timestamp) PARTITION BY HOUR")
        db.execute(f"CREATE TABLE {name} (timestamp TIMESTAMP, {key} VARCHAR, {columns})")
        # Late ones among them.
        shuffled = rows[:]
        r.shuffle(shuffled)
        for at in range(0, len(rows), 700):
            values = ", ".join(f"('{t.isoformat()}', '{k}', {', '.join(map(str, v))})" for t, k, *v in shuffled[at: at + 700])
            insert(server, f"INSERT INTO {name} VALUES {values}")
            db.execute(f"INSERT INTO {name} VALUES {values}")
    yield server, db
    for name in tables:
        server.exec(f"DROP TABLE {name}")


def insert(server, sql):
    with psycopg.connect(host="127.0.0.1", port=server.pg_port, user="u", dbname="d", autocommit=True) as connection:
        connection.execute(sql)


@pytest.mark.parametrize("name", [*TSBS, *FINANCE])
def test_queries_as_they_are_written(both, name):
    server, db = both
    ours, theirs = {**TSBS, **FINANCE}[name]
    found, expected = comparable(server.rows(ours)), comparable(db.execute(theirs).fetchall())
    assert len(expected) > 0 and found == expected, f"{ours}\n{found[:3]}\n{expected[:3]}"
