"""The official Python client, over TCP and HTTP, in every version of the protocol it speaks."""

import datetime as dt
import decimal
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from questdb import QuestDBError, Sender, ServerTimestamp, TimestampMicros, TimestampNanos
from server import nanos

warnings.filterwarnings("ignore", message=".*burst of reconnections.*")

T0 = 1704067200 * 10**9
TRANSPORTS = [("tcp", 1), ("tcp", 2), ("tcp", 3), ("http", 1), ("http", 2), ("http", 3), ("http", "auto")]
ARRAYS = [t for t in TRANSPORTS if t[1] != 1]
# `auto` takes the newest version that /settings names.
DECIMALS = [t for t in TRANSPORTS if t[1] in (3, "auto")]
name_of = "-".join


def each(transports):
    return pytest.mark.parametrize("transport,version", transports, ids=[f"{t}-v{v}" for t, v in transports])


def sender(server, transport, version, extra=""):
    port = server.http_port if transport == "http" else server.ilp_port
    return Sender.from_conf(f"{transport}::addr=127.0.0.1:{port};protocol_version={version};{extra}")


def stored(server, table, count):
    """Rows as dicts, in order of the designated timestamp, timestamps as nanoseconds."""
    server.wait_count(table, count)
    answer = server.exec(f'select * from "{table}" order by timestamp')
    names = [c["name"] for c in answer["columns"]]
    times = {c["name"] for c in answer["columns"] if c["type"].startswith("TIMESTAMP")}
    return [{n: nanos(v) if n in times and v is not None else v for n, v in zip(names, row)} for row in answer["dataset"]]


@each(TRANSPORTS)
def test_rows_of_every_type(server, table, transport, version):
    text = "quo\"te back\\slash, comma = and ünï 🚀\nnew line\ttab"
    with sender(server, transport, version) as s:
        s.row(table, symbols={"sy m": "a b,c=d\\e\nf", "other": "x"},
              columns={"f": 1.5, "neg": -0.1, "tiny": 5e-324, "huge": 1.7976931348623157e308, "i": 42, "big": 2**63 - 1, "yes": True, "no": False, "text": text,
                       "empty": "", "us": TimestampMicros(T0 // 1000 + 1), "date": dt.datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=dt.timezone.utc)},
              at=TimestampNanos(T0))
        s.row(table, symbols={"sy m": None}, columns={"f": None, "i": -7, "later": "only here"}, at=TimestampNanos(T0 + 1_000_000))
    first, second = stored(server, table, 2)
    assert first == {"sy m": "a b,c=d\\e\nf", "other": "x", "f": 1.5, "neg": -0.1, "tiny": 5e-324, "huge": 1.7976931348623157e308, "i": 42, "big": 2**63 - 1,
                     "yes": True, "no": False, "text": text, "empty": "", "us": T0 + 1000, "date": nanos("2024-01-02T03:04:05.000006Z"), "timestamp": T0, "later": None}
    assert second == {**dict.fromkeys(first), "i": -7, "later": "only here", "timestamp": T0 + 1_000_000}
    types = server.types(table)
    assert types["sy m"] == types["other"] == "SYMBOL"
    assert [types[c] for c in ("f", "i", "yes", "text", "us")] == ["DOUBLE", "LONG", "BOOLEAN", "VARCHAR", "TIMESTAMP"]
    # Version 1 sends a number without a suffix, over HTTP with precision=n.
    assert types["timestamp"] == ("TIMESTAMP" if (transport, version) == ("tcp", 1) else "TIMESTAMP_NS")


@each(TRANSPORTS)
def test_floats_that_are_not_numbers(server, table, transport, version):
    with sender(server, transport, version) as s:
        for k, x in enumerate([float("nan"), 1.0, float("inf"), float("-inf"), -0.0]):
            s.row(table, columns={"x": x, "k": k}, at=TimestampNanos(T0 + k * 1000))
    server.wait_count(table, 5)
    # Senders mean "missing" by NaN.
    assert server.value(f"select count(*) from {table} where x is null") == 1
    assert server.value(f"select k from {table} where x is null") == 0
    assert server.rows(f"select k from {table} where x = 1.0") == [[1]]
    assert server.rows(f"select k from {table} where x > 1e308") == [[2]]
    assert server.rows(f"select k from {table} where x < -1e308") == [[3]]


@each([t for t in TRANSPORTS if t[1] != 1])
def test_nanosecond_columns(server, table, transport, version):
    with sender(server, transport, version) as s:
        s.row(table, columns={"t": TimestampNanos(T0 + 123)}, at=TimestampNanos(T0 + 1))
    (row,) = stored(server, table, 1)
    assert row == {"t": T0 + 123, "timestamp": T0 + 1}
    assert server.types(table)["t"] == "TIMESTAMP_NS"


@each(TRANSPORTS)
def test_timestamps_in_micros(server, table, transport, version):
    """Version 1 always sends nanoseconds; from version 2 on the unit is the sender's."""
    with sender(server, transport, version) as s:
        s.row(table, columns={"i": 1}, at=TimestampMicros(T0 // 1000 + 1))
        s.row(table, columns={"i": 2}, at=dt.datetime(2024, 1, 1, 0, 0, 0, 2, tzinfo=dt.timezone.utc))
    assert [(r["i"], r["timestamp"]) for r in stored(server, table, 2)] == [(1, T0 + 1000), (2, T0 + 2000)]
    assert server.types(table)["timestamp"] == ("TIMESTAMP_NS" if (transport, version) == ("http", 1) else "TIMESTAMP")


@each(TRANSPORTS)
def test_the_server_sets_the_time(server, table, transport, version):
    before = dt.datetime.now(dt.timezone.utc).timestamp()
    with sender(server, transport, version) as s:
        s.row(table, symbols={"a": "b"}, columns={"i": 1}, at=ServerTimestamp)
    (row,) = stored(server, table, 1)
    assert before - 1 <= row["timestamp"] / 1e9 <= dt.datetime.now(dt.timezone.utc).timestamp() + 1


@each(TRANSPORTS)
def test_rows_of_symbols_alone(server, table, transport, version):
    with sender(server, transport, version) as s:
        s.row(table, symbols={"a": "b"}, at=TimestampNanos(T0))
    assert stored(server, table, 1) == [{"a": "b", "timestamp": T0}]


@each(ARRAYS)
def test_arrays(server, table, transport, version):
    arrays = [np.array([1.0, 2.5, -3.25]), np.array([]), np.arange(12.0)[::2], np.array([0.1, 1e300])]
    grids = [np.array([[1.0, 2.0], [3.0, 4.0]]), np.arange(6.0).reshape(2, 3).T, np.zeros((1, 1)), np.arange(8.0).reshape(4, 2)]
    cubes = [np.arange(24.0).reshape(2, 3, 4), np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1), np.ones((1, 2, 1)), np.arange(8.0).reshape(2, 2, 2)]
    with sender(server, transport, version) as s:
        for k, (a, g, c) in enumerate(zip(arrays, grids, cubes)):
            s.row(table, columns={"a": a, "g": g, "c": c, "k": k}, at=TimestampNanos(T0 + k * 1000))
    rows = stored(server, table, len(arrays))
    for row, a, g, c in zip(rows, arrays, grids, cubes):
        assert row["a"] == a.tolist()
        assert row["g"] == g.tolist()
        assert row["c"] == c.tolist()
    types = server.types(table)
    assert [types[c] for c in "agc"] == ["DOUBLE[]", "DOUBLE[][]", "DOUBLE[][][]"]


@each(DECIMALS)
def test_decimals(server, table, transport, version):
    values = ["0", "-1.50", "12345678901234567890.12", "100000", "-99999999999999999999.99", "0.01"]
    server.exec(f'create table "{table}" (d decimal(38, 2), k long, timestamp timestamp_ns) timestamp(timestamp) partition by day')
    with sender(server, transport, version) as s:
        for k, v in enumerate(values):
            s.row(table, columns={"d": decimal.Decimal(v), "k": k}, at=TimestampNanos(T0 + k * 1000))
        s.row(table, columns={"d": decimal.Decimal("NaN"), "k": len(values)}, at=TimestampNanos(T0 + len(values) * 1000))
    rows = stored(server, table, len(values) + 1)
    assert [decimal.Decimal(r["d"]) for r in rows[:-1]] == [decimal.Decimal(v) for v in values]
    assert rows[-1]["d"] is None
    assert server.types(table)["d"] == "DECIMAL(38,2)"


@each(DECIMALS)
def test_decimal_columns_made_on_the_fly(server, table, transport, version):
    with sender(server, transport, version) as s:
        s.row(table, columns={"d": decimal.Decimal("12.345")}, at=TimestampNanos(T0))
        s.row(table, columns={"d": decimal.Decimal("-7.5")}, at=TimestampNanos(T0 + 1000))
    rows = stored(server, table, 2)
    assert [decimal.Decimal(r["d"]) for r in rows] == [decimal.Decimal("12.345"), decimal.Decimal("-7.5")]
    assert server.types(table)["d"].startswith("DECIMAL(")


@each(TRANSPORTS)
def test_pandas_frame(server, table, transport, version):
    n = 1000
    frame = pd.DataFrame({
        "cat": pd.Categorical([f"c{k % 7}" for k in range(n)]),
        "text": [None if k % 5 == 0 else f'text "{k}"' for k in range(n)],
        "f": [float("nan") if k % 3 == 0 else k / 7 for k in range(n)],
        "f32": np.arange(n, dtype="f4") / 4,
        "i": np.arange(n) - 500,
        "u8": (np.arange(n) % 256).astype("u1"),
        "maybe": pd.array([None if k % 4 == 0 else k for k in range(n)], "Int64"),
        "b": [k % 2 == 0 for k in range(n)],
        "when": pd.date_range("2020-01-01", periods=n, freq="min"),
        "ts": pd.date_range("2024-01-01", periods=n, freq="s", tz="UTC").as_unit("ns"),
    })
    with sender(server, transport, version, "auto_flush_rows=100;") as s:
        s.dataframe(frame, table_name=table, symbols=["cat"], at="ts")
    rows = stored(server, table, n)
    assert [r["cat"] for r in rows] == frame["cat"].tolist()
    assert [r["text"] for r in rows] == [None if k % 5 == 0 else f'text "{k}"' for k in range(n)]
    assert [r["f"] for r in rows] == [None if k % 3 == 0 else k / 7 for k in range(n)]
    assert [r["f32"] for r in rows] == (np.arange(n) / 4).tolist()
    assert [r["i"] for r in rows] == list(range(-500, n - 500))
    assert [r["u8"] for r in rows] == [k % 256 for k in range(n)]
    assert [r["maybe"] for r in rows] == [None if k % 4 == 0 else k for k in range(n)]
    assert [r["b"] for r in rows] == [k % 2 == 0 for k in range(n)]
    start = nanos("2020-01-01T00:00:00Z")
    assert [r["when"] for r in rows] == [start + k * 60 * 10**9 for k in range(n)]
    assert [r["timestamp"] for r in rows] == [T0 + k * 10**9 for k in range(n)]
    types = server.types(table)
    assert (types["cat"], types["text"], types["maybe"]) == ("SYMBOL", "VARCHAR", "LONG")


@each(TRANSPORTS)
def test_arrow_backed_frame(server, table, transport, version):
    n = 500
    arrow = pd.ArrowDtype
    frame = pd.DataFrame({
        "sym": pd.Series([f"s{k % 3}" for k in range(n)], dtype=arrow(pa.string())),
        "text": pd.Series([None if k % 2 else f"ü{k}" for k in range(n)], dtype=arrow(pa.string())),
        "large": pd.Series([f"l{k}" for k in range(n)], dtype=arrow(pa.large_string())),
        "i": pd.Series([None if k % 3 == 0 else k for k in range(n)], dtype=arrow(pa.int64())),
        "f": pd.Series([None if k % 3 == 1 else k / 3 for k in range(n)], dtype=arrow(pa.float64())),
        "b": pd.Series([k % 2 == 0 for k in range(n)], dtype=arrow(pa.bool_())),
        "us": pd.Series([None if k % 4 == 0 else T0 // 1000 + k for k in range(n)], dtype=arrow(pa.timestamp("us"))),
        "ts": pd.Series([T0 + k * 1000 for k in range(n)], dtype=arrow(pa.timestamp("ns"))),
    })
    with sender(server, transport, version) as s:
        s.dataframe(frame, table_name=table, symbols=["sym"], at="ts")
    rows = stored(server, table, n)
    assert [r["sym"] for r in rows] == [f"s{k % 3}" for k in range(n)]
    assert [r["text"] for r in rows] == [None if k % 2 else f"ü{k}" for k in range(n)]
    assert [r["large"] for r in rows] == [f"l{k}" for k in range(n)]
    assert [r["i"] for r in rows] == [None if k % 3 == 0 else k for k in range(n)]
    assert [r["f"] for r in rows] == [None if k % 3 == 1 else k / 3 for k in range(n)]
    assert [r["b"] for r in rows] == [k % 2 == 0 for k in range(n)]
    assert [r["us"] for r in rows] == [None if k % 4 == 0 else T0 + k * 1000 for k in range(n)]
    assert [r["timestamp"] for r in rows] == [T0 + k * 1000 for k in range(n)]


@each(ARRAYS)
def test_frame_of_arrays(server, table, transport, version):
    arrays = [np.arange(float(k % 5)) for k in range(100)]
    grids = [np.full((2, 1 + k % 3), float(k)) for k in range(100)]
    frame = pd.DataFrame({"a": arrays, "g": grids, "k": range(100)})
    with sender(server, transport, version) as s:
        for k in range(100):
            s.dataframe(frame.iloc[k : k + 1].reset_index(drop=True), table_name=table, at=TimestampNanos(T0 + k * 1000))
    rows = stored(server, table, 100)
    assert [r["a"] for r in rows] == [a.tolist() for a in arrays]
    assert [r["g"] for r in rows] == [g.tolist() for g in grids]


@each(DECIMALS)
def test_frame_of_decimals(server, table, transport, version):
    values = [decimal.Decimal(k).scaleb(-2) for k in range(-50, 50)]
    frame = pd.DataFrame({
        "plain": values,
        "arrow": pd.Series([None if k % 3 == 0 else v for k, v in enumerate(values)], dtype=pd.ArrowDtype(pa.decimal128(10, 2))),
        "ts": pd.Series([T0 + k * 1000 for k in range(100)], dtype=pd.ArrowDtype(pa.timestamp("ns"))),
    })
    server.exec(f'create table "{table}" (plain decimal(18, 3), arrow decimal(9, 2), timestamp timestamp_ns) timestamp(timestamp) partition by day')
    with sender(server, transport, version) as s:
        s.dataframe(frame, table_name=table, at="ts")
    rows = stored(server, table, 100)
    assert [decimal.Decimal(r["plain"]) for r in rows] == values
    assert [r["arrow"] and decimal.Decimal(r["arrow"]) for r in rows] == [None if k % 3 == 0 else v for k, v in enumerate(values)]


def test_http_negotiates_by_settings(server):
    with sender(server, "http", "auto") as s:
        assert s.protocol_version == 3


def test_http_error_reaches_the_client(server, table):
    with sender(server, "http", "auto") as s:
        s.row(table, columns={"x": 1}, at=TimestampNanos(T0))
        s.flush()
        with pytest.raises(QuestDBError) as caught:
            s.row(table, columns={"x": "text"}, at=TimestampNanos(T0))
            s.flush()
    text = str(caught.value)
    assert "x" in text and "line: 1" in text.lower().replace("line 1", "line: 1")
    server.wait_count(table, 1)


def test_http_transaction_is_one_commit(server, table):
    with sender(server, "http", "auto", "auto_flush=off;") as s:
        with pytest.raises(QuestDBError):
            with s.transaction(table) as t:
                for k in range(100):
                    t.row(columns={"x": k}, at=TimestampNanos(T0 + k))
                t.row(columns={"x": "text"}, at=TimestampNanos(T0))
        with s.transaction(table) as t:
            for k in range(10):
                t.row(columns={"x": k}, at=TimestampNanos(T0 + k))
    server.wait_count(table, 10)


@each(TRANSPORTS)
def test_many_tables_and_auto_flush(server, table, transport, version):
    with sender(server, transport, version, "auto_flush_rows=7;") as s:
        for k in range(200):
            s.row(f"{table}_{k % 5}", symbols={"s": str(k)}, columns={"k": k}, at=TimestampNanos(T0 + k))
    for m in range(5):
        server.wait_count(f"{table}_{m}", 40)
        assert server.value(f"select sum(k) from {table}_{m}") == sum(range(m, 200, 5))
