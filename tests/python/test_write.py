"""Frames into tables: every dtype of every library, over both entrances, and what each of them comes back as."""

import datetime as dt
import decimal
import os
import subprocess
import sys
import uuid
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import tidalite

TIMES = pd.to_datetime(["2026-01-01 00:00:00", "2026-01-01 00:00:01", "2026-01-01 00:00:02"]).as_unit("us")


def types(db, table):
    return dict(db.sql(f"select * from {table}").columns)


def column(db, table, name="c"):
    return [value for (value,) in db.sql(f"select {name} from {table} order by ts").fetchall()]


def written(db, table, values, **options):
    """Writes a column `c` beside the time, and gives its type and what is read of it."""
    frame = pd.DataFrame({"ts": TIMES[: len(values)]})
    frame["c"] = values
    assert db.write(table, frame, at="ts", **options) == len(values)
    return types(db, table)["c"], column(db, table)


PANDAS = [
    ("bool", pd.Series([True, False, True]), "BOOLEAN", [True, False, True]),
    ("boolean", pd.Series([True, None, False], dtype="boolean"), "BOOLEAN", [True, None, False]),
    *[(t, pd.Series([1, 2, 3], dtype=t), kind, [1, 2, 3]) for t, kind in [
        ("int8", "BYTE"), ("int16", "SHORT"), ("int32", "INT"), ("int64", "LONG"), ("uint8", "SHORT"), ("uint16", "INT"), ("uint32", "LONG"), ("uint64", "LONG")]],
    ("Int64", pd.Series([1, None, -3], dtype="Int64"), "LONG", [1, None, -3]),
    ("UInt8", pd.Series([255, None, 0], dtype="UInt8"), "SHORT", [255, None, 0]),
    ("float32", pd.Series([1.5, np.nan, np.inf], dtype="float32"), "FLOAT", [1.5, None, np.inf]),
    ("float64", pd.Series([0.1, np.nan, -np.inf]), "DOUBLE", [0.1, None, -np.inf]),
    ("Float64", pd.Series([0.1, None, 3.0], dtype="Float64"), "DOUBLE", [0.1, None, 3.0]),
    ("str", pd.Series(["a", None, "ünï"]), "VARCHAR", ["a", None, "ünï"]),
    ("string", pd.Series(["a", pd.NA, ""], dtype="string"), "VARCHAR", ["a", None, ""]),
    ("pyarrow", pd.Series(["a", None, "b"], dtype="string[pyarrow]"), "VARCHAR", ["a", None, "b"]),
    ("category", pd.Series(["x", None, "x"], dtype="category"), "SYMBOL", ["x", None, "x"]),
    ("int_category", pd.Series([5, 6, 5], dtype="category"), "LONG", [5, 6, 5]),
    ("object_text", pd.Series(["a", None, "b"], dtype=object), "VARCHAR", ["a", None, "b"]),
    ("object_bytes", pd.Series([b"\x00", None, b"ab"], dtype=object), "BINARY", [b"\x00", None, b"ab"]),
    ("object_int", pd.Series([1, None, 2], dtype=object), "LONG", [1, None, 2]),
    ("object_date", pd.Series([dt.date(2020, 1, 2), None, dt.date(1969, 1, 1)], dtype=object), "DATE", [dt.date(2020, 1, 2), None, dt.date(1969, 1, 1)]),
    ("decimal", pd.Series([decimal.Decimal("1.50"), None, decimal.Decimal("-2.25")], dtype=object), "DECIMAL(3,2)", [decimal.Decimal("1.50"), None, decimal.Decimal("-2.25")]),
    ("uuid", pd.Series([uuid.UUID(int=5), None, uuid.UUID(int=2**127)], dtype=object), "UUID", [uuid.UUID(int=5), None, uuid.UUID(int=2**127)]),
    ("datetime_us", pd.Series(pd.to_datetime(["2020-01-01 00:00:00.000001", None, "1960-01-01"], format="ISO8601")).astype("datetime64[us]"), "TIMESTAMP",
     [dt.datetime(2020, 1, 1, 0, 0, 0, 1), None, dt.datetime(1960, 1, 1)]),
    ("datetime_ms", pd.Series(pd.to_datetime(["2020-01-01", None, "1960-01-01"])).astype("datetime64[ms]"), "TIMESTAMP_MS",
     [dt.datetime(2020, 1, 1), None, dt.datetime(1960, 1, 1)]),
    ("zone", pd.Series(pd.to_datetime(["2020-07-01 12:00", None, "2020-01-01 12:00"])).dt.tz_localize("Europe/Berlin").astype("datetime64[us, Europe/Berlin]"), "TIMESTAMP",
     [dt.datetime(2020, 7, 1, 10), None, dt.datetime(2020, 1, 1, 11)]),
    ("arrays", pd.Series([np.array([1.0, 2.0]), None, np.array([])], dtype=object), "DOUBLE[]", [[1.0, 2.0], None, []]),
    ("sparse", pd.Series(pd.arrays.SparseArray([1.0, np.nan, 2.0])), "DOUBLE", [1.0, None, 2.0]),
    ("arrow_ext", pd.Series([1, None, 3], dtype=pd.ArrowDtype(pa.int16())), "SHORT", [1, None, 3]),
]


@pytest.mark.parametrize("values,kind,expected", [case[1:] for case in PANDAS], ids=[case[0] for case in PANDAS])
def test_pandas(db, table, values, kind, expected):
    assert written(db, table, values) == (kind, expected)


def test_nanoseconds_are_kept(db, table):
    times = pd.to_datetime(["2026-01-01 00:00:00.123456789"]).as_unit("ns")
    db.write(table, pd.DataFrame({"ts": times, "v": [1]}), at="ts")
    assert types(db, table)["ts"] == "TIMESTAMP_NS"
    assert db.sql(f"select ts from {table}").numpy()["ts"][0] == np.datetime64("2026-01-01T00:00:00.123456789")


def test_nan_is_kept_where_asked_for(db, table):
    kind, values = written(db, table, pd.Series([np.nan, 1.0]), keep_nan=True)
    assert kind == "DOUBLE" and np.isnan(values[0]) and values[1] == 1.0


def test_the_index_is_written_where_asked_for(db, table):
    frame = pd.DataFrame({"c": [1, 2]}, index=pd.Index(TIMES[:2], name="ts"))
    db.write(table, frame, at="ts", index=True)
    assert column(db, table) == [1, 2]


POLARS = [
    ("u64", pl.Series([1, None, 3], dtype=pl.UInt64), "LONG", [1, None, 3]),
    ("i8", pl.Series([-128, None, 127], dtype=pl.Int8), "BYTE", [-128, None, 127]),
    ("f64", pl.Series([0.1, None, 2.0]), "DOUBLE", [0.1, None, 2.0]),
    ("text", pl.Series(["a text of more than twelve bytes", None, ""]), "VARCHAR", ["a text of more than twelve bytes", None, ""]),
    ("categorical", pl.Series(["x", None, "y"], dtype=pl.Categorical), "SYMBOL", ["x", None, "y"]),
    ("enum", pl.Series(["x", None, "y"], dtype=pl.Enum(["y", "x"])), "SYMBOL", ["x", None, "y"]),
    ("binary", pl.Series([b"a", None, b""]), "BINARY", [b"a", None, b""]),
    ("date", pl.Series([dt.date(2020, 1, 1), None, dt.date(1900, 1, 1)]), "DATE", [dt.date(2020, 1, 1), None, dt.date(1900, 1, 1)]),
    ("datetime", pl.Series([dt.datetime(2020, 1, 1), None, dt.datetime(1900, 1, 1)]).cast(pl.Datetime("us", "UTC")), "TIMESTAMP",
     [dt.datetime(2020, 1, 1), None, dt.datetime(1900, 1, 1)]),
    ("decimal", pl.Series([decimal.Decimal("1.25"), None, decimal.Decimal("-3.50")], dtype=pl.Decimal(10, 2)), "DECIMAL(10,2)", [decimal.Decimal("1.25"), None, decimal.Decimal("-3.50")]),
    ("list", pl.Series([[1.0, 2.0], None, []], dtype=pl.List(pl.Float64)), "DOUBLE[]", [[1.0, 2.0], None, []]),
    ("array", pl.Series([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], dtype=pl.Array(pl.Float64, 2)), "DOUBLE[]", [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]),
    ("bool", pl.Series([True, None, False]), "BOOLEAN", [True, None, False]),
]


@pytest.mark.parametrize("values,kind,expected", [case[1:] for case in POLARS], ids=[case[0] for case in POLARS])
def test_polars(db, table, values, kind, expected):
    frame = pl.DataFrame({"ts": pl.Series(TIMES.to_pydatetime().tolist()).cast(pl.Datetime("us")), "c": values})
    assert db.write(table, frame, at="ts") == 3
    assert (types(db, table)["c"], column(db, table)) == (kind, expected)


def test_polars_keeps_nan(db, table):
    frame = pl.LazyFrame({"ts": pl.Series(TIMES.to_pydatetime()[:2].tolist()), "c": [float("nan"), None]})
    db.write(table, frame, at="ts")
    first, second = column(db, table)
    assert np.isnan(first) and second is None


ARROW = [
    ("large", pa.array(["a", None, "b"], pa.large_string()), "VARCHAR", ["a", None, "b"]),
    ("view", pa.array(["a", None, "a text of more than twelve bytes"], pa.string_view()), "VARCHAR", ["a", None, "a text of more than twelve bytes"]),
    ("dictionary", pa.array(["a", None, "a"]).dictionary_encode(), "SYMBOL", ["a", None, "a"]),
    ("runs", pa.array([1, 1, 2]), "LONG", [1, 1, 2]),
    ("half", pa.array(np.array([1.5, 2.0, -0.5], np.float16)), "FLOAT", [1.5, 2.0, -0.5]),
    ("seconds", pa.array([0, None, -1], pa.timestamp("s")), "TIMESTAMP_MS", [dt.datetime(1970, 1, 1), None, dt.datetime(1969, 12, 31, 23, 59, 59)]),
    ("date64", pa.array([dt.date(2020, 1, 1), None, dt.date(1960, 1, 1)], pa.date64()), "DATE", [dt.date(2020, 1, 1), None, dt.date(1960, 1, 1)]),
    ("fixed", pa.array([b"abc", None, b"xyz"], pa.binary(3)), "BINARY", [b"abc", None, b"xyz"]),
    ("decimal256", pa.array([decimal.Decimal("1.5"), None, decimal.Decimal("-7.0")], pa.decimal256(20, 1)), "DECIMAL(20,1)", [decimal.Decimal("1.5"), None, decimal.Decimal("-7.0")]),
    ("nested", pa.array([[[1.0], [2.0]], None, [[3.0], [4.0]]]), "DOUBLE[][]", [[[1.0], [2.0]], None, [[3.0], [4.0]]]),
    ("floats", pa.array([[1, 2], None, []], pa.list_(pa.float32())), "DOUBLE[]", [[1.0, 2.0], None, []]),
]


@pytest.mark.parametrize("values,kind,expected", [case[1:] for case in ARROW], ids=[case[0] for case in ARROW])
def test_pyarrow(db, table, values, kind, expected):
    times = pa.array(TIMES.to_pydatetime().tolist(), pa.timestamp("us"))
    frame = pa.table({"ts": times, "c": values.run_end_encode() if hasattr(values, "run_end_encode") and kind == "LONG" else values})
    assert db.write(table, frame, at="ts") == 3
    assert (types(db, table)["c"], column(db, table)) == (kind, expected)


def test_columns_without_values_are_left_out(db, table):
    times = TIMES.to_pydatetime().tolist()
    for n, frame in enumerate([pl.DataFrame({"ts": times, "c": [None] * 3}), pa.table({"ts": times, "c": pa.nulls(3)}), pd.DataFrame({"ts": times, "c": [None] * 3})]):
        assert db.write(f"{table}_{n}", frame, at="ts") == 3
        assert list(types(db, f"{table}_{n}")) == ["ts"]


def test_streams_of_batches(db, table):
    batches = [pa.record_batch({"ts": pa.array([i * 1000 + k for k in range(1000)], pa.timestamp("us")), "n": pa.array(range(1000))}) for i in range(20)]
    reader = pa.RecordBatchReader.from_batches(batches[0].schema, iter(batches))
    assert db.write(table, reader, at="ts") == 20_000
    assert db.sql(f"select count(*), sum(n), max(ts) from {table}").fetchall() == [(20_000, 20 * 499_500, dt.datetime(1970, 1, 1, 0, 0, 0, 19_999))]
    assert db.write(table, batches[0].slice(0, 7), at="ts") == 7


def test_dict_of_numpy(db, table):
    assert db.write(table, {"ts": TIMES.to_numpy(), "c": np.array([1.0, np.nan, 3.0]), "s": ["a", None, "b"]}, at="ts", symbols=["s"]) == 3
    values = column(db, table)
    assert values[0] == 1.0 and np.isnan(values[1])
    assert types(db, table)["s"] == "SYMBOL" and column(db, table, "s") == ["a", None, "b"]


def test_symbols_are_chosen(db, table):
    frame = pd.DataFrame({"ts": TIMES, "a": ["x", "y", None], "b": pd.Categorical(["p", "q", "p"])})
    for n, (symbols, expected) in enumerate([(None, ("VARCHAR", "SYMBOL")), (True, ("SYMBOL", "SYMBOL")), (False, ("VARCHAR", "VARCHAR")), (["a"], ("SYMBOL", "VARCHAR"))]):
        name = f"{table}_{n}"
        db.write(name, frame, at="ts", symbols=symbols)
        assert (types(db, name)["a"], types(db, name)["b"]) == expected
        assert column(db, name, "a") == ["x", "y", None] and column(db, name, "b") == ["p", "q", "p"]


def test_a_table_that_exists_decides(db, table):
    db.sql(f"create table {table} (time timestamp, s symbol, d double, i int) timestamp(time) partition by day")
    frame = pd.DataFrame({"when": TIMES, "s": ["x", "y", "x"], "d": [1, 2, 3], "i": np.array([1, 2, 3], np.int64)})
    db.write(table, frame, at="when")
    assert types(db, table) == {"time": "TIMESTAMP", "s": "SYMBOL", "d": "DOUBLE", "i": "INT"}
    with pytest.raises(tidalite.DataError, match=r'column "i".*3000000000.*row 1') as refused:
        db.write(table, pd.DataFrame({"time": TIMES[:2], "i": [1, 3_000_000_000]}))
    assert (refused.value.column, refused.value.row) == ("i", 1)
    assert db.sql(f"select count(*) from {table}").fetchall() == [(3,)]
    with pytest.raises(tidalite.DataError, match='is ordered by "time"'):
        db.write(table, pd.DataFrame({"i": [1]}))
    db.write(table, pd.DataFrame({"time": TIMES[:1], "new": [1.5]}))
    assert types(db, table)["new"] == "DOUBLE"


REFUSED = [
    ({"v": np.array([1, 2**63], np.uint64)}, "v", 1, "9223372036854775808 is out of range"),
    ({"v": [1, "two"]}, "v", 1, "'two' is of type str"),
    ({"v": [decimal.Decimal("1e39"), 1]}, "v", None, "DECIMAL|decimal|digits|Decimal"),
    ({"v": pd.to_timedelta([1, 2], unit="s")}, "v", None, "has no place"),
    ({"v": [dt.time(1), dt.time(2)]}, "v", None, "has no place"),
    ({"v": pd.period_range("2026-01", periods=2, freq="M")}, "v", None, "has no place"),
    ({"v": [object(), object()]}, "v", None, "objects of type object"),
    ({"v": [[1.0], ["x"]]}, "v", None, "objects of type list"),
    ({"ts": pd.to_datetime(["2026-01-01", None])}, "ts", 1, "cannot be NULL"),
    ({"ts": [1, 2]}, "ts", None, "cannot be of type"),
]


@pytest.mark.parametrize("columns,name,row,message", REFUSED)
def test_what_has_no_place_is_named(db, table, columns, name, row, message):
    columns = {"ts": TIMES[:2], **{k: pd.Series(v) if not isinstance(v, list) else pd.Series(v, dtype=object) if k == "v" else v for k, v in columns.items()}}
    with pytest.raises(tidalite.DataError, match=message) as refused:
        db.write(table, pd.DataFrame(columns), at="ts")
    assert refused.value.column == name
    assert row is None or refused.value.row == row
    with pytest.raises(tidalite.ProgrammingError):
        db.sql(f"select * from {table}").fetchall()


def test_what_is_no_frame(db, table):
    with pytest.raises(tidalite.InterfaceError, match="builtins.int is no frame"):
        db.write(table, 5)
    with pytest.raises(tidalite.DataError, match='column "time"'):
        db.write(table, pd.DataFrame({"ts": TIMES}), at="time")
    with pytest.raises(tidalite.Error, match="partition_by"):
        db.write(table, pd.DataFrame({"ts": TIMES}), at="ts", partition_by="fortnight")


def test_a_table_without_time(db, table):
    db.write(table, pl.DataFrame({"k": ["a", "b"], "v": [1, 2]}))
    assert db.sql(f"select v from {table} where k = 'b'").fetchall() == [(2,)]


def test_many_rows_in_parts_or_at_once(db, table):
    count = 1_500_000
    frame = pl.DataFrame({"ts": pl.Series(np.arange(count)).cast(pl.Datetime("us")), **{f"v{i}": np.random.default_rng(i).random(count) for i in range(6)}})
    assert db.write(table, frame, at="ts") == count
    assert db.write(table, frame.slice(0, 1000), at="ts", atomic=True) == 1000
    rows, total = db.sql(f"select count(*), sum(v3) from {table}").fetchall()[0]
    assert rows == count + 1000 and total == pytest.approx(frame["v3"].sum() + frame["v3"][:1000].sum())


def test_a_refused_commit_is_the_last(db, table, monkeypatch):
    """Rows after a refused one are not there, whatever was on its way already."""
    monkeypatch.setattr("tidalite._remote._BODY_BYTES", 8 << 20)
    db.sql(f"create table {table} (n int)")
    rows = 26_000_000 if type(db).__name__ == "LocalDatabase" else 3_000_000
    values = np.zeros(rows, np.int64)
    values[10] = 2**40
    with pytest.raises(tidalite.DataError, match=f"{2**40}.*row 10") as refused:
        db.write(table, pa.table({"n": values}))
    assert refused.value.row == 10
    assert db.sql(f"select count(*) from {table}").fetchall() == [(0,)]


def test_the_first_error_is_the_one_that_is_said(db, table, monkeypatch):
    """Rows that do not become a commit do not hide that the commit before them was refused."""
    monkeypatch.setattr("tidalite._remote._BODY_BYTES", 8 << 20)
    db.sql(f"create table {table} (n long, m int)")
    rows = 12_000_000
    n, m = np.zeros(rows, np.uint64), np.zeros(rows, np.int64)
    m[5], n[-1] = 2**40, 2**63
    with pytest.raises(tidalite.DataError, match="row 5"):
        db.write(table, pa.table({"n": n, "m": m}))


@pytest.mark.parametrize("when", [253_402_300_800, 2**62 // 10**6], ids=["year 10000", "far"])
def test_no_table_for_times_that_it_cannot_have(db, table, when):
    with pytest.raises(tidalite.DataError, match="outside the years|out of range") as refused:
        db.write(table, pa.table({"ts": pa.array([0, when], pa.timestamp("s"))}), at="ts")
    assert (refused.value.column, refused.value.row) == ("ts", 1)
    assert table not in db.tables()
    with pytest.raises(tidalite.DataError, match="value 213520000 is out of range"):
        db.write(table, pa.table({"ts": pa.array([213_520_000], pa.date32())}), at="ts")
    assert table not in db.tables()


def test_few_bytes_that_stand_for_many(db, table):
    """A dictionary of one text, and rows of nothing."""
    db.sql(f"create table {table} (t varchar)")
    many = pa.DictionaryArray.from_arrays(pa.array(np.zeros(20_000, np.int8)), pa.array(["x" * 100_000]))
    with pytest.raises(tidalite.DataError, match="one commit may have 512 MiB"):
        db.write(table, pa.table({"t": many}), atomic=True)
    assert db.write(table, pa.table({"t": many.slice(0, 100)})) == 100
    assert db.sql(f"select count(*), max(length(t)) from {table}").fetchall() == [(100, 100_000)]
    with pytest.raises(tidalite.DataError, match="no column"):
        db.write(table, pa.table({"t": pa.nulls(2**27)}))


MIXED = [
    ([dt.date(2026, 1, 1), dt.datetime(2026, 1, 1, 5)], "datetime, those before it of type date"),
    ([dt.datetime(2026, 1, 1, 5), dt.date(2026, 1, 1)], "date, those before it of type datetime"),
    (["a", None, b"b"], "bytes, those before it of type str"),
    ([dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc)], "datetime with a time zone, those before it of type datetime"),
    ([True, 1], "int, those before it of type bool"),
    ([1, "1"], "str, those before it of type int"),
]


@pytest.mark.parametrize("values,message", MIXED)
def test_objects_of_two_kinds_are_refused(db, table, values, message):
    for column in (pd.Series(values, dtype=object), values):
        with pytest.raises(tidalite.DataError, match=message) as refused:
            db.write(table, {"v": column} if isinstance(column, list) else pd.DataFrame({"v": column}))
        assert (refused.value.column, refused.value.row) == ("v", len(values) - 1)


def test_objects_that_go_together(db, table):
    assert written(db, table, pd.Series([1, 2.5, None], dtype=object)) == ("DOUBLE", [1.0, 2.5, None])
    assert written(db, table + "d", pd.Series([1, decimal.Decimal("2.5"), None], dtype=object))[1] == [1, decimal.Decimal("2.5"), None]
    assert written(db, table + "n", pd.Series([np.int64(1), 2, None], dtype=object)) == ("LONG", [1, 2, None])
    fine = pd.Timestamp("2026-01-01 00:00:00.000000001")
    assert written(db, table + "t", pd.Series([fine, None, dt.datetime(2026, 1, 2)], dtype=object))[0] == "TIMESTAMP_NS"


def test_a_category_without_values_is_no_column(db, table):
    frame = pd.DataFrame({"ts": TIMES, "c": pd.Categorical([None, None, None]), "f": pd.array([None] * 3, "Float64")})
    db.write(table, frame, at="ts")
    assert types(db, table) == {"ts": "TIMESTAMP", "f": "DOUBLE"}


def test_numbers_of_arrays_are_not_rounded(db, table):
    with pytest.raises(tidalite.DataError, match=f"row 1: value {2**53 + 1} has more digits"):
        db.write(table, pa.table({"a": [[1, 2**53], [2**53 + 1]]}))


def test_written_is_durable(tmp_path):
    """Rows acknowledged before a process ends without closing anything are there for the next."""
    script = f"""
import os, tidalite, polars as pl, datetime as dt
db = tidalite.open({str(tmp_path / "d")!r})
db.write("t", pl.DataFrame({{"ts": [dt.datetime(2026, 1, 1)] * 1000, "n": range(1000)}}), at="ts")
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", script], check=True)
    with tidalite.open(tmp_path / "d") as db:
        assert db.sql("select count(*), sum(n) from t").fetchall() == [(1000, 499_500)]
        with pytest.raises(tidalite.OperationalError):
            tidalite.open(tmp_path / "d")


def test_a_process_that_forks(tmp_path):
    """The child ends without touching what its parent has open, and says what is wrong when it uses it."""
    script = f"""
import os, tidalite
db = tidalite.open({str(tmp_path / "d")!r})
db.write("t", {{"n": [1]}})
child = os.fork()
if not child:
    try:
        db.sql("select 1")
    except tidalite.InterfaceError as refused:
        print(refused.message, flush=True)
    raise SystemExit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), db.sql("select n from t").fetchall())
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == ["the database was opened by another process", "7 [(1,)]"], done.stderr
    assert done.stderr == ""


def test_children_of_a_process_at_work(tmp_path):
    """They have databases of their own, whatever threads of the parent were in the middle of when it forked."""
    script = f"""
import os, threading, tidalite
GROUPS = "select count(*) from (select value % 20000 as k, count(*) from generate_series(1, 100000) as value group by k)"
db, over = tidalite.open({str(tmp_path / "d")!r}, threads=2), threading.Event()
def work():
    while not over.is_set():
        assert db.sql(GROUPS).fetchall() == [(20000,)]
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
ends = []
for number in range(15):
    child = os.fork()
    if not child:
        own = tidalite.open({str(tmp_path)!r} + f"/{{number}}", threads=2)
        os._exit(7 if own.sql(GROUPS).fetchall() == [(20000,)] else 8)
    ends.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
over.set()
for thread in threads:
    thread.join()
print(ends)
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, timeout=120)
    assert done.stdout == f"{[7] * 15}\n", done.stderr


def test_pandas_2():
    """The same tests of pandas under its last version 2, in a process of its own."""
    folder = Path(sys.prefix) / "pandas2"
    if pd.__version__.startswith("2."):
        pytest.skip("this is that process")
    assert (folder / "pandas").exists(), "make puts it there"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", __file__, "-k", "(test_pandas or symbols or no_place) and local"], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:]
