"""Answers of queries: in every form, over both entrances; parameters, errors, cancelling."""

import datetime as dt
import decimal
import ipaddress
import math
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import tidalite
from server import eventually
from tidalite._parameters import tagged

COLUMNS = """
    ts timestamp, b boolean, i1 byte, i2 short, i4 int, i8 long, f4 float, f8 double, d decimal(10,2), day date,
    s symbol, t varchar, x binary, u uuid, ip ipv4, a double[], ns timestamp_ns
"""
FIRST = (
    dt.datetime(2026, 1, 1, 0, 0, 0, 5), True, 1, -2, 3, -4, 1.5, 0.1, decimal.Decimal("1.25"), dt.date(2020, 2, 29), "sym", "a text that is longer",
    b"\x00\xff", uuid.UUID(int=7), ipaddress.IPv4Address("10.0.0.1"), [1.0, 2.5], dt.datetime(2026, 1, 1, 0, 0, 0, 5),
)


@pytest.fixture(scope="module", params=["local", "remote"])
def rows(request):
    """A table of every type with a row of values and one of NULLs."""
    db = request.getfixturevalue(request.param)
    db.sql("drop table if exists every")
    db.sql(f"create table every ({COLUMNS}) timestamp(ts) partition by day")
    places = ", ".join(f"${n}" for n in range(1, len(FIRST) + 1))
    assert db.sql(f"insert into every values ({places})", list(FIRST)).rowcount == 1
    db.sql("insert into every (ts) values ($1)", [dt.datetime(2026, 1, 2)])
    return db


def test_python_values_come_back(rows):
    first, second = rows.sql("select * from every order by ts").fetchall()
    assert first == FIRST
    assert second == (dt.datetime(2026, 1, 2), *[None] * 16)


def test_times_of_all_years(rows):
    values = "('0001-01-01'::timestamp), (null), ('1969-12-31T23:59:59.999'), ('9999-12-31T23:59:59.999')"
    late = dict(hour=23, minute=59, second=59, microsecond=999_000)
    times = [dt.datetime(1, 1, 1), None, dt.datetime(1969, 12, 31, **late), dt.datetime(9999, 12, 31, **late)]
    assert rows.sql(f"select t, t::timestamp_ms from (values {values}) v(t)").fetchall() == [(t, t) for t in times]
    with pytest.raises(OverflowError):
        rows.sql("select t + '1s'::interval from (values (null), ('9999-12-31T23:59:59'::timestamp)) v(t)").fetchall()


def test_small_answers_are_as_large_ones_are(rows, monkeypatch):
    query = "select ts, b, i1, i2, i4, i8, f4, f8, s, t, ts::timestamp_ms as ms, null as nothing from every order by ts"
    few = rows.sql(query).fetchall()
    monkeypatch.setattr(tidalite._result, "_FEW", 0)
    many = rows.sql(query).fetchall()
    assert few == many and [list(map(type, row)) for row in few] == [list(map(type, row)) for row in many]


def test_small_answers_import_no_library(rows):
    code = """
import sys, tidalite
with tidalite.open(sys.argv[1]) as db:
    db.sql("create table t (ts timestamp, v double, s symbol) timestamp(ts) partition by day")
    db.sql("insert into t values ('2026-01-01', 1.5, 'a'), ('2026-01-02', null, null)")
    assert len(db.sql("select * from t").fetchall()) == 2
print(sorted({"pyarrow", "pandas", "numpy", "polars"} & set(sys.modules)))
"""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_arrow(rows):
    table = rows.sql("select * from every order by ts").arrow()
    assert table.num_rows == 2 and table.column_names[:3] == ["ts", "b", "i1"]
    assert table.schema.field("ts").type == pa.timestamp("us") and table.schema.field("d").type == pa.decimal128(10, 2)
    assert table.column("t").to_pylist() == ["a text that is longer", None]


def test_pandas(rows):
    frame = rows.sql("select ts, i8, f8, s, b, day from every order by ts").pandas()
    assert frame["ts"].dtype == "datetime64[us]" and frame["i8"].isna().tolist() == [False, True]
    assert frame["f8"].iloc[0] == 0.1 and frame["s"].iloc[0] == "sym"
    kept = rows.sql("select i8 from every order by ts").pandas(dtype_backend="pyarrow")
    assert kept["i8"].tolist() == [-4, pd.NA] and str(kept["i8"].dtype) == "int64[pyarrow]"


def test_polars(rows):
    frame = rows.sql("select ts, i4, t, s, f8 from every order by ts").polars()
    assert frame.schema["ts"] == pl.Datetime("us") and frame["t"].to_list() == ["a text that is longer", None]
    assert frame["i4"].to_list() == [3, None] and frame["s"].to_list() == ["sym", None]


def test_numpy(rows):
    arrays = rows.sql("select i8, f8, ts, t from every order by ts").numpy()
    assert arrays["i8"][0] == -4 and math.isnan(arrays["i8"][1]) and arrays["ts"].dtype == np.dtype("datetime64[us]")
    assert rows.sql("select i8 from every where i8 is not null").numpy()["i8"].dtype == np.int64


def test_other_readers_of_arrow(rows):
    import duckdb

    result = rows.sql("select i8, t from every")  # noqa: F841 - duckdb finds it by its name
    assert duckdb.sql("select count(*), max(t) from result").fetchall() == [(2, "a text that is longer")]
    assert pa.table(rows.sql("select i8 from every")).num_rows == 2
    assert pl.DataFrame(rows.sql("select i8 from every")).height == 2


def test_iteration_goes_on_where_it_stopped(db):
    result = db.sql("select x from long_sequence(200000)")
    assert result.fetchone() == (1,) and result.fetchmany(3) == [(2,), (3,), (4,)]
    assert sum(x for (x,) in result) == sum(range(5, 200_001))
    assert result.fetchone() is None and result.fetchall() == []
    assert result.arrow().num_rows == 200_000
    assert sum(b.num_rows for b in db.sql("select x from long_sequence(200000)").batches()) == 200_000


def test_a_result_is_asked_again(db):
    result = db.sql("select x, $1 from long_sequence(3)", ["p"])
    assert result.fetchall() == [(1, "p"), (2, "p"), (3, "p")]
    assert len(result.pandas()) == len(result.polars()) == 3


def test_what_is_shown_is_not_lost(db):
    result = db.sql("select x, null n, '<b>' t from long_sequence(12)")
    html = result._repr_html_()
    assert html.count("<tr>") == 11 and "&lt;b&gt;" in html and "and more rows" in html and "<i>NULL</i>" in html
    assert repr(result).splitlines()[0].split() == ["x", "n", "t"] and repr(result).endswith("…")
    assert len(result.fetchall()) == 12


def test_what_is_shown_is_not_lost_while_iterating(db):
    result = db.sql("select x from long_sequence(12)")
    assert result.fetchone() == (1,)
    assert repr(result).splitlines()[2].strip() == "1" and "<td>1</td>" in result._repr_html_()
    assert result.fetchall() == [(x,) for x in range(2, 13)]
    assert repr(result).endswith("…")


def test_no_rows_and_no_columns(db):
    result = db.sql("select x from long_sequence(5) where x > 9")
    assert result.columns == [("x", "LONG")]
    assert result.arrow().num_rows == 0 and result.pandas().empty and result.polars().is_empty() and result.fetchall() == []
    done = db.sql("create table if not exists no_rows (n int)")
    assert (done.statement, done.columns) == ("CREATE TABLE", []) and "CREATE TABLE" in repr(done)
    with pytest.raises(tidalite.ProgrammingError, match="returns no rows"):
        done.fetchall()


def test_parameters(db):
    values = db.sql("select ?, ?, ?", [1, "it's; -- \"quoted\" $1", None]).fetchall()
    assert values == [(1, "it's; -- \"quoted\" $1", None)]
    assert db.sql("select $b, '$b :a ?', $a, $b::int", {"a": 2.5, "b": 7}).fetchall() == [(7, "$b :a ?", 2.5, 7)]
    assert db.sql("select :a + 1 -- :b?\n", {"a": 1}).fetchall() == [(2,)]
    assert db.sql("select count(*) from long_sequence(9) where x in ($1, $2)", [3, np.int64(4)]).fetchall() == [(2,)]
    moment = dt.datetime(2026, 1, 1, 2, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    assert db.sql("select $1", [moment]).fetchall() == [(dt.datetime(2026, 1, 1),)]
    assert db.sql("select $1", [pd.Timestamp("2026-01-01 00:00:00.000000007")]).numpy().popitem()[1][0] == np.datetime64("2026-01-01T00:00:00.000000007")
    early = dt.datetime(999, 1, 1)
    assert db.sql("select $1, $2", [early, np.datetime64("2026-01-01T05", "h")]).fetchall() == [(early, dt.datetime(2026, 1, 1, 5))]
    assert db.sql("select $1, $2", [np.datetime64("2026-02"), np.datetime64("NaT")]).fetchall() == [(dt.datetime(2026, 2, 1), None)]
    assert db.sql("select $1", [np.datetime64(1, "ns")]).columns[0][1] == "TIMESTAMP_NS"
    times = np.array(["2026-01-01", "2026-01-02"], "datetime64[ns]")
    assert tagged(times) == ("list", [("TIMESTAMP_NS", f"2026-01-0{day}T00:00:00.000000000Z") for day in (1, 2)])
    with pytest.raises(tidalite.DataError, match="timedelta64 cannot be"):
        db.sql("select $1", [np.timedelta64(5, "s")])
    with pytest.raises(tidalite.DataError, match="has no place in a TIMESTAMP"):
        db.sql("select $1", [np.datetime64(10**9, "Y")])
    with pytest.raises(tidalite.ProgrammingError, match="there is no parameter c"):
        db.sql("select $c", {"a": 1})
    with pytest.raises(tidalite.ProgrammingError, match="2 parameters, 1 values"):
        db.sql("select ?, ?", [1])
    with pytest.raises(tidalite.DataError, match="type object cannot be"):
        db.sql("select $1", [object()])


def test_errors_have_place_and_hint(db):
    with pytest.raises(tidalite.ProgrammingError) as wrong:
        db.sql("select 'ä', nosuch\nfrom long_sequence(1)")
    assert (wrong.value.position, wrong.value.sql[12:18]) == (12, "nosuch")
    assert str(wrong.value).splitlines()[1:3] == ["  select 'ä', nosuch", " " * 14 + "^"]
    with pytest.raises(tidalite.ProgrammingError) as near:
        db.sql("select y from long_sequences(1)")
    assert near.value.hint and "long_sequence" in str(near.value)
    with pytest.raises(tidalite.Error, match="division by zero|divide by zero"):
        db.sql("select 1 / (x - 5) from long_sequence(9)").fetchall()


def test_a_timeout_stops_a_statement(db):
    with pytest.raises(tidalite.OperationalError, match="timeout"):
        db.sql("select count(*) from long_sequence(100000) a, long_sequence(1000000) b where a.x * b.x = 7", timeout=0.2).fetchall()


def test_close_stops_a_query(db):
    result = db.sql("select a.x from long_sequence(100000) a, long_sequence(1000000) b")
    result.fetchone()
    result.close()
    assert db.sql("select 1").fetchall() == [(1,)]


def test_what_is_closed_is_not_read(db):
    result = db.sql("select x from long_sequence(100000)")
    result.fetchone()
    result.close()
    for read in (result.fetchall, result.arrow, result.polars, lambda: list(result.batches())):
        with pytest.raises(tidalite.InterfaceError, match="closed"):
            read()
    assert repr(result) == "<closed result>"


@pytest.mark.parametrize("read", ["fetchall", "arrow", "polars", "stream"])
def test_close_stops_what_another_thread_reads(db, read):
    # A server answers when it has the first rows.
    is_local = type(db).__name__ == "LocalDatabase"
    result = db.sql(ENDLESS if is_local else "select a.x from long_sequence(100000) a, long_sequence(10000000) b")
    reads = {"stream": lambda: pa.table(result)}.get(read) or getattr(result, read)
    said = []

    def run():
        try:
            reads()
        except Exception as error:
            said.append(error)

    reader = threading.Thread(target=run)
    reader.start()
    eventually(lambda: result._running is not None, 20, "rows are read")
    result.close()
    reader.join(20)
    assert not reader.is_alive() and "the result is closed" in str(said[0])
    assert isinstance(said[0], tidalite.InterfaceError) or read in ("polars", "stream")
    assert db.sql("select 1").fetchall() == [(1,)]


def test_streams_are_read_as_they_come(db):
    """Nobody waits for the last row to see the first."""
    result = db.sql("select a.x from long_sequence(100000) a, long_sequence(100000) b")
    reader = pa.RecordBatchReader.from_stream(result)
    assert reader.read_next_batch().num_rows > 0
    result.close()


ENDLESS = "select a.x from long_sequence(100000) a, long_sequence(10000000) b where a.x * b.x = 7"
LONG = "select count(*) from long_sequence(100000) a, long_sequence(10000000) b where a.x * b.x = 7"


@pytest.mark.parametrize("read", ["result.arrow()", "list(result.batches())", "pyarrow.table(result)", "db.write('t', result)", "db.write('t', {'n': [1]}); db.sql('insert into t ' + sql)"])
def test_ctrl_c_cancels(tmp_path, read):
    script = f"""
import sys, tidalite, pandas, pyarrow
db = tidalite.open({str(tmp_path / "d")!r})
sql = {LONG!r}
result = db.sql(sql)
print("ready", flush=True)
try:
    {read}
except KeyboardInterrupt:
    print("interrupted", db.sql("select 1").fetchall(), flush=True)
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    # It has to be waiting: a thread is in the query once the process computes. What pyarrow imports when it is first asked
    # was imported before, and is not what is interrupted.
    started, computed = time.monotonic(), cpu_seconds(process.pid)
    while cpu_seconds(process.pid) < computed + 1.0 and time.monotonic() - started < 30:
        threading.Event().wait(0.05)
    os.kill(process.pid, signal.SIGINT)
    assert process.stdout.readline() == "interrupted [(1,)]\n"
    assert process.wait(30) == 0


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_other_threads_run_meanwhile(local):
    """The interpreter's lock is free while a query runs."""
    query = "select count(*) from long_sequence(3000) a, long_sequence(100000) b where a.x * b.x = 7"
    done = threading.Event()
    counted = []

    def count():
        while not done.is_set():
            counted.append(1)
            done.wait(0.001)

    other = threading.Thread(target=count)
    other.start()
    started = time.monotonic()
    local.sql(query).fetchall()
    took = time.monotonic() - started
    done.set()
    other.join()
    assert len(counted) > took * 20


def test_frames_as_tables(db, table):
    db.write(table, pd.DataFrame({"ts": pd.to_datetime(["2026-01-01", "2026-01-02"]), "k": ["a", "b"]}), at="ts")
    for frame in (pd.DataFrame({"K": ["b"], "n": [7]}), pl.DataFrame({"K": ["b"], "n": [7]}), pa.table({"K": pa.array(["b"]).dictionary_encode(), "n": [7]})):
        db.register("other", frame)
        assert db.sql(f"select n from {table} t join OTHER o on t.k = o.k").fetchall() == [(7,)]
    assert db.sql("select * from other").columns[0][0] == "K"
    assert db.unregister("Other") and not db.unregister("other")
    with pytest.raises(tidalite.ProgrammingError, match='"other" does not exist'):
        db.sql("select * from other")


def test_a_registered_frame_has_null_where_it_would_be_written(db):
    frame = pd.DataFrame({"k": ["a", "b", "c"], "v": [1.0, np.nan, 3.0], "f": np.array([1, np.nan, 3], "float32")})
    query = "select count(v), sum(v), count(f), max(v) from nans"
    db.register("nans", frame)
    assert db.sql(query).fetchall() == [(2, 4.0, 2, 3.0)]
    db.register("nans", frame, keep_nan=True)
    count, total, *_ = db.sql(query).fetchall()[0]
    assert count == 3 and math.isnan(total)
    db.unregister("nans")


def test_a_registered_frame_has_a_time(db):
    times = pd.to_datetime(["2026-01-01 00:00:30", "2026-01-01 00:00:10", "2026-01-01 00:01:10"]).tz_localize("UTC")
    db.register("ticks", pd.DataFrame({"at": times, "v": [1.0, 2.0, 4.0]}), at="at")
    assert [v for _, v in db.sql("select at, sum(v) from ticks sample by 1m").fetchall()] == [3.0, 4.0]
    with pytest.raises(tidalite.Error, match='column "at": the frame does not have it'):
        db.register("ticks", pd.DataFrame({"v": [1.0]}), at="at")
    with pytest.raises(tidalite.Error, match="TIMESTAMP"):
        db.register("ticks", pd.DataFrame({"v": [1.0]}), at="v")
    db.unregister("ticks")


def test_what_is_closed_says_so(tmp_path):
    db = tidalite.open(tmp_path / "d")
    assert repr(db) == f"<tidalite.open({str(tmp_path / 'd')!r})>"
    db.close()
    db.close()
    with pytest.raises(tidalite.InterfaceError, match="closed"):
        db.sql("select 1")


def test_importing_imports_nothing_else():
    script = "import sys, tidalite; print([m for m in ('numpy', 'pandas', 'polars', 'pyarrow') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_importing_imports_all_of_ours(tmp_path):
    """A process that forks while one of its threads imports a module has a child in which that module can not be imported."""
    script = f"""
import sys, tidalite
ours = lambda: {{m for m in sys.modules if m.startswith("tidalite")}}
before, db = ours(), tidalite.open({str(tmp_path / "d")!r})
db.write("t", {{"a": [1, 2]}})
assert db.sql("select a from t").fetchall() == [(1,), (2,)]
db.register("f", {{"a": [3]}})
print(ours() - before)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "set()\n", done.stderr


@pytest.mark.parametrize("given", [None, "5"])
def test_importing_leaves_the_environment_as_it_was(given):
    """How long the allocator keeps freed memory is said in the environment, while it is loaded and no longer."""
    script = "import os; before = dict(os.environ); import tidalite; print(before == dict(os.environ), os.environ.get('MIMALLOC_PURGE_DELAY'))"
    environment = {name: value for name, value in os.environ.items() if name != "MIMALLOC_PURGE_DELAY"} | ({"MIMALLOC_PURGE_DELAY": given} if given else {})
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == f"True {given}\n"
