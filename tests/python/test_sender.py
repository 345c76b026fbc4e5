"""Our sender against our server in every version of the protocol, and against the official client byte for byte."""

import datetime as dt
import decimal
import http.server
import json
import threading

import numpy as np
import pandas as pd
import polars as pl
import pytest
import questdb.ingress
import tidalite
from server import eventually
from tidalite import Sender, ServerTimestamp, TimestampMicros, TimestampNanos
from tidalite.sender import Buffer

T0 = 1_767_225_600 * 10**9
VERSIONS = [1, 2, 3]
TRANSPORTS = [("tcp", 1), ("tcp", 2), ("tcp", 3), ("http", 1), ("http", 2), ("http", 3), ("http", "auto")]


def sender(server, transport, version, extra=""):
    port = server.http_port if transport == "http" else server.ilp_port
    return Sender.from_conf(f"{transport}::addr=127.0.0.1:{port};protocol_version={version};{extra}")


def stored(remote, table, count):
    def rows():
        try:
            found = remote.sql(f'select * from "{table}" order by timestamp').fetchall()
        except tidalite.ProgrammingError:
            return None
        return found if len(found) >= count else None

    return eventually(rows, 20, f"{count} rows of {table}")


@pytest.mark.parametrize("transport,version", TRANSPORTS)
def test_rows(server, remote, table, transport, version):
    text = "quo\"te back\\slash, comma = and ünï 🚀\nnew line\ttab"
    with sender(server, transport, version) as s:
        s.row(table, symbols={"sy m": "a b,c=d\\e\nf", "gone": None}, columns={"f": 0.1, "i": -(2**63), "b": True, "t": text,
              "us": TimestampMicros(T0 // 1000 + 1), "d": dt.datetime(2024, 1, 2, 3, 4, 5, 6)}, at=TimestampNanos(T0))
        s.row(table, columns={"f": np.float64(5e-324), "i": np.int32(7)}, at=dt.datetime(2027, 1, 1, tzinfo=dt.timezone.utc))
    first, second = stored(remote, table, 2)
    assert first[:-1] == ("a b,c=d\\e\nf", 0.1, -(2**63), True, text, dt.datetime(2026, 1, 1, 0, 0, 0, 1), dt.datetime(2024, 1, 2, 3, 4, 5, 6))
    assert second[1:3] == (5e-324, 7)


@pytest.mark.parametrize("transport,version", [t for t in TRANSPORTS if t[1] in (3, "auto")])
def test_decimals_and_arrays(server, remote, table, transport, version):
    remote.sql(f"create table {table} (d decimal(20,4), a double[][], timestamp timestamp) timestamp(timestamp) partition by day")
    grid = np.arange(6.0).reshape(2, 3).T
    with sender(server, transport, version) as s:
        s.row(table, columns={"d": decimal.Decimal("-12.5"), "a": grid}, at=TimestampNanos(T0))
        s.dataframe(pl.DataFrame({"d": [decimal.Decimal("0.0625")], "a": [[[1.0], [2.0]]], "at": [dt.datetime(2027, 1, 1)]}), table_name=table, at="at")
    (d1, a1, _), (d2, a2, _) = stored(remote, table, 2)
    assert (d1, a1) == (decimal.Decimal("-12.5"), grid.tolist()) and (d2, a2) == (decimal.Decimal("0.0625"), [[1.0], [2.0]])


@pytest.mark.parametrize("transport,version", TRANSPORTS)
def test_frames(server, remote, table, transport, version):
    count = 5_000
    rng = np.random.default_rng(7)
    frame = pd.DataFrame({"ts": pd.to_datetime(np.arange(count) * 10**6 + T0), "tag": pd.Categorical(rng.choice(["a", "b c", "d,e"], count)),
                          "v": rng.random(count), "n": rng.integers(-(2**62), 2**62, count), "note": [f'say "{i}"\\' if i % 3 else None for i in range(count)]})
    with sender(server, transport, version, "auto_flush_rows=1000;") as s:
        s.dataframe(frame, table_name=table, at="ts")
    rows = stored(remote, table, count)
    assert len(rows) == count
    expected = zip(frame["tag"], frame["v"], frame["n"], (None if pd.isna(n) else n for n in frame["note"]))
    assert [row[:4] for row in rows] == list(expected)


def test_frames_follow_each_other_and_what_is_refused_is_said(server, remote, table):
    """A frame is on its way when the call returns; whatever comes next waits for it and says what became of it."""
    frame = lambda value, at: pl.DataFrame({"n": [value], "at": [dt.datetime(2027, 1, 1, 0, 0, at)]})
    with sender(server, "http", 2) as s:
        for at in range(5):
            s.dataframe(frame(at, at), table_name=table, at="at")
        s.row(table, columns={"n": 5}, at=dt.datetime(2027, 1, 1, 0, 0, 5, tzinfo=dt.timezone.utc))
        s.flush()
        assert remote.sql(f"select n from {table} order by n").fetchall() == [(n,) for n in range(6)]
        s.dataframe(frame("text", 6), table_name=table, at="at")
        with pytest.raises(tidalite.DataError, match="n"):
            s.flush()
        s.dataframe(frame(9, 9), table_name=table, at="at")
    assert remote.sql(f"select n from {table} where n > 5").fetchall() == [(9,)]
    failing = sender(server, "http", 2).__enter__()
    failing.dataframe(frame("text", 10), table_name=table, at="at")
    with pytest.raises(tidalite.DataError, match="n"):
        failing.close()


def test_the_server_sets_the_time(server, remote, table):
    with sender(server, "http", 2) as s:
        s.row(table, symbols={"a": "b"}, at=ServerTimestamp)
        s.dataframe(pl.DataFrame({"n": [1]}), table_name=table, at=ServerTimestamp)
    assert len(stored(remote, table, 2)) == 2


FRAME = pd.DataFrame({
    "sym": pd.Categorical(["a", "b c", None, "d=e"]), "f": [0.1, np.nan, -0.0, 1e300], "i": np.array([1, -2, 3, 2**62]), "u": np.array([1, 2, 3, 4], np.uint8),
    "b": [True, False, True, True], "s": pd.Series(["x", None, 'q"\\', "ünï\n"], dtype="string[pyarrow]"), "t": pd.to_datetime([T0, None, T0 + 1000, T0 + 5000]),
    "f32": np.array([0.5, 1.25, 2.5, 3.75], np.float32), "ts": pd.to_datetime([T0, T0 + 1, T0 + 2, T0 + 3]),
})


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("symbols", ["auto", False, ["sym", "s"]])
def test_frames_are_the_official_clients_text(version, symbols):
    official = questdb.ingress.Buffer(protocol_version=version)
    official.dataframe(FRAME, table_name="my table", symbols=symbols, at="ts")
    ours = Buffer(version).dataframe(FRAME, table_name="my table", symbols=symbols, at="ts")
    assert normal(bytes(ours)) == normal(bytes(official))
    assert len(ours) == len(bytes(ours)) and ours.rows == 4


def normal(text):
    """Doubles may be written in other ways: 1e300 and 1e+300."""
    return text.replace(b"e+", b"e")


@pytest.mark.parametrize("version", VERSIONS)
def test_rows_are_the_official_clients_text(version):
    official, ours = questdb.ingress.Buffer(protocol_version=version), Buffer(version)
    grid = {"grid": np.arange(4.0).reshape(2, 2)} if version > 1 else {}
    for buffer, nanos, micros in ((official, questdb.ingress.TimestampNanos, questdb.ingress.TimestampMicros), (ours, TimestampNanos, TimestampMicros)):
        buffer.row("t", symbols={"a": "x y", "b": None}, columns={"f": 0.1, "i": 5, "yes": True, "s": 'a"b', "m": micros(17), "none": None, **grid}, at=nanos(T0))
        buffer.row("t", columns={"n": 1}, at=micros(T0 // 1000))
    assert bytes(ours) == bytes(official)


def test_threads_write_the_same_text():
    count = 50_000
    frame = pl.DataFrame({"s": [f"s{i % 7}" for i in range(count)], "v": np.random.default_rng(3).random(count), "ts": pl.Series(np.arange(count)).cast(pl.Datetime("ns"))})
    one, four = (bytes(Buffer(1).dataframe(frame, table_name="t", symbols=True, at="ts", threads=n)) for n in (1, 4))
    assert one == four and one.count(b"\n") == count


def test_table_names_from_a_column():
    frame = pd.DataFrame({"which": ["a", "b"], "v": [1, 2]})
    assert bytes(Buffer(1).dataframe(frame, table_name_col="which", at=TimestampNanos(5))) == b"a v=1i 5\nb v=2i 5\n"
    assert bytes(Buffer(1).dataframe(frame.rename_axis(index="t")[["v"]], at=ServerTimestamp)) == b"t v=1i\nt v=2i\n"
    assert bytes(Buffer(1).dataframe(frame, table_name_col=0, symbols=[], at=TimestampNanos(5))).startswith(b"a v")


def test_what_cannot_be_sent_is_named():
    with pytest.raises(tidalite.DataError, match='column "v": arrays need version 2') as refused:
        Buffer(1).dataframe(pl.DataFrame({"v": [[1.0]]}), table_name="t", at=ServerTimestamp)
    assert refused.value.column == "v"
    buffer = Buffer(2)
    for bad in (dict(columns={"v": object()}), dict(columns={"a\tb": 1}), dict(symbols={"s": 1}), dict(columns={"n": 2**63}), dict()):
        with pytest.raises((tidalite.DataError, TypeError)):
            buffer.row("t", **bad, at=ServerTimestamp)
    assert len(buffer) == 0 and buffer.rows == 0
    with pytest.raises(tidalite.ProgrammingError, match="table is not said"):
        buffer.dataframe(pl.DataFrame({"v": [1]}), at=ServerTimestamp)


def test_times_of_numpy_and_pandas():
    """Each in the unit it has; what has no form is an error, not a number."""
    def line(value, version=2):
        buffer = Buffer(protocol_version=version)
        buffer.row("t", columns={"c": value, "x": 1}, at=TimestampNanos(5))
        return bytes(buffer).decode().removesuffix(" 5n\n" if version > 1 else " 5\n")

    nanos = np.datetime64("2026-01-01T00:00:00.000000001")
    assert line(nanos) == f"t c={T0 + 1}n,x=1i" and line(nanos, 1) == f"t c={T0 // 1000}t,x=1i"
    for micros in (np.datetime64("2026-01-01"), np.datetime64("2026-01-01T00", "h"), np.datetime64("2026-01-01", "us"), pd.Timestamp("2026-01-01").as_unit("us"), pd.Timestamp("2026-01-01", tz="UTC").as_unit("s")):
        assert line(micros) == f"t c={T0 // 1000}t,x=1i"
    assert line(pd.Timestamp(T0 + 7)) == f"t c={T0 + 7}n,x=1i" and line(pd.Timestamp(T0)) == f"t c={T0}n,x=1i"
    assert line(np.datetime64("NaT")) == line(pd.NaT) == line(None) == "t x=1i"
    for wrong in (np.timedelta64(5, "s"), np.array([nanos]), np.datetime64(10**9, "Y"), dt.timedelta(1), pd.Timedelta(5)):
        with pytest.raises(tidalite.DataError, match='column "c"'):
            line(wrong)

    def at(value):
        buffer = Buffer(protocol_version=2)
        buffer.row("t", columns={"x": 1}, at=value)
        return bytes(buffer).decode().rsplit(" ", 1)[1]

    assert at(nanos) == f"{T0 + 1}n\n" and at(np.datetime64("2026-01-01")) == f"{T0 // 1000}t\n" and at(pd.Timestamp(T0)) == f"{T0}n\n"
    with pytest.raises(tidalite.DataError, match="cannot be NULL"):
        at(np.datetime64("NaT"))


def test_tables_and_tags_of_any_layout():
    frame = pd.DataFrame({"t": pd.Categorical(["a", "b"]), "s": pd.Categorical([5, 6]), "v": [1.5, 2.5]})
    buffer = Buffer(protocol_version=1)
    buffer.dataframe(frame, table_name_col="t", at=ServerTimestamp)
    assert bytes(buffer) == b"a s=5i,v=1.5\nb s=6i,v=2.5\n"


def test_configurations():
    s = Sender.from_conf("http::addr=localhost:1;username=u;password=a;;b=c;", auto_flush=False)
    assert s._settings["password"] == "a;b=c" and s._flush_rows is None
    for bad in ("http", "ftp::addr=x;", "http::host=x;", "http::addr=x;addr=y;", "http::addr=x;protocol_version=9;", "http::addr=x;auto_flush_rows=many;", "http::username=u;"):
        with pytest.raises(tidalite.InterfaceError):
            Sender.from_conf(bad)
    with pytest.raises(tidalite.InterfaceError, match="not connected"):
        s.row("t", columns={"v": 1}, at=ServerTimestamp)


def test_transactions(server, remote, table):
    with sender(server, "http", 2) as s:
        with s.transaction(table) as rows:
            rows.row(columns={"v": 1}, at=TimestampNanos(T0))
            rows.dataframe(pl.DataFrame({"v": [2], "at": [dt.datetime(2026, 1, 2)]}), at="at")
            assert remote_count(remote, table) is None
        assert remote_count(remote, table) == 2
        with pytest.raises(RuntimeError):
            with s.transaction(table) as rows:
                rows.row(columns={"v": 3}, at=TimestampNanos(T0))
                raise RuntimeError
        assert remote_count(remote, table) == 2


def remote_count(remote, table):
    try:
        return remote.sql(f"select count(*) from {table}").fetchall()[0][0]
    except tidalite.ProgrammingError:
        return None


def test_refused_rows_stay_in_the_buffer(server, remote, table):
    remote.sql(f"create table {table} (v int, timestamp timestamp) timestamp(timestamp) partition by day")
    with sender(server, "http", 2, "auto_flush=off;") as s:
        s.row(table, columns={"v": "text"}, at=TimestampNanos(T0))
        with pytest.raises(tidalite.DataError, match="text") as refused:
            s.flush()
        assert refused.value.row == 0 and len(s) > 0
        s._buffer.clear()
    assert remote_count(remote, table) == 0


class Moody(http.server.BaseHTTPRequestHandler):
    """Refuses the first requests, then takes them."""

    answers, bodies = [], []
    #: Released once for each request that has come; requests are answered while the other is set.
    come, go_on = threading.Semaphore(0), threading.Event()

    def do_GET(self):
        self.answer(200, json.dumps({"config": {"line.proto.support.versions": [1, 2]}}).encode())

    def do_POST(self):
        self.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.come.release()
        self.go_on.wait()
        status = self.answers.pop(0) if self.answers else 204
        self.answer(status, b"" if status == 204 else b'{"message":"no","line":1}')

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def moody():
    Moody.answers, Moody.bodies = [], []
    Moody.come, Moody.go_on = threading.Semaphore(0), threading.Event()
    Moody.go_on.set()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Moody) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield f"http::addr=127.0.0.1:{serving.server_address[1]};"
        serving.shutdown()


def test_a_server_that_is_away_is_asked_again(moody):
    Moody.answers = [503, 500]
    with Sender.from_conf(moody) as s:
        assert s.protocol_version == 2
        s.row("t", columns={"v": 1}, at=TimestampNanos(5))
    assert Moody.bodies == [b"t v=1i 5n\n"] * 3


def test_it_is_not_asked_for_ever(moody):
    Moody.answers = [503] * 1000
    with pytest.raises(tidalite.OperationalError, match="no"):
        with Sender.from_conf(moody + "retry_timeout=100;") as s:
            s.row("t", columns={"v": 1}, at=TimestampNanos(5))
            s.flush()
    Moody.answers = [400]
    before = len(Moody.bodies)
    with pytest.raises(tidalite.DataError):
        with Sender.from_conf(moody) as s:
            s.row("t", columns={"v": 1}, at=TimestampNanos(5))
            s.flush()
    assert len(Moody.bodies) == before + 1


def one_row(value):
    return pl.DataFrame({"v": [value], "at": [dt.datetime(2027, 1, 1)]}, schema={"v": pl.Int64, "at": pl.Datetime("ns")})


def test_frames_that_wait_for_the_server_go_together(moody):
    with Sender.from_conf(moody) as s:
        Moody.go_on.clear()
        s.dataframe(one_row(1), table_name="t", at="at")
        Moody.come.acquire()
        s.dataframe(one_row(2), table_name="t", at="at")
        s.dataframe(one_row(3), table_name="u", at="at")
        Moody.go_on.set()
        s.flush()
    assert [[line.split(b" ")[:2] for line in body.splitlines()] for body in Moody.bodies] == [
        [[b"t", b"v=1i"]],
        [[b"t", b"v=2i"], [b"u", b"v=3i"]],
    ]


def test_frames_that_wait_behind_a_refused_one_are_dropped(moody):
    Moody.answers = [400]
    with Sender.from_conf(moody) as s:
        Moody.go_on.clear()
        s.dataframe(one_row(1), table_name="t", at="at")
        Moody.come.acquire()
        s.dataframe(one_row(2), table_name="t", at="at")
        Moody.go_on.set()
        with pytest.raises(tidalite.DataError):
            s.flush()
        s.dataframe(one_row(3), table_name="t", at="at")
    assert [body.split(b" ")[1] for body in Moody.bodies] == [b"v=1i", b"v=3i"]


def test_text_is_cut_where_it_is_too_much_for_one_request(moody, monkeypatch):
    monkeypatch.setattr("tidalite._outbox.JOINED_BYTES_MAX", 100)
    with Sender.from_conf(moody) as s:
        for value in range(50):
            s.dataframe(one_row(value), table_name="t", at="at")
    assert max(map(len, Moody.bodies)) <= 100
    assert [line.split(b" ")[1] for line in b"".join(Moody.bodies).splitlines()] == [b"v=%di" % value for value in range(50)]


def test_rows_are_flushed_when_they_are_due(moody):
    with Sender.from_conf(moody + "auto_flush_rows=3;auto_flush_interval=off;") as s:
        for i in range(7):
            s.row("t", columns={"v": i}, at=TimestampNanos(5))
        assert [b.count(b"\n") for b in Moody.bodies] == [3, 3] and len(s) > 0
    assert [b.count(b"\n") for b in Moody.bodies] == [3, 3, 1]
    with pytest.raises(KeyError):
        with Sender.from_conf(moody) as s:
            s.row("t", columns={"v": 1}, at=TimestampNanos(5))
            raise KeyError
    assert len(Moody.bodies) == 3


def test_the_signature_of_tcp_is_verified():
    """What the challenge of a server is signed with, checked by another library."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    numbers = key.private_numbers()
    x, y = (getattr(numbers.public_numbers, n).to_bytes(32, "big") for n in "xy")
    signature = tidalite._native.sign(b"challenge", numbers.private_value.to_bytes(32, "big"), x, y)
    key.public_key().verify(signature, b"challenge", ec.ECDSA(hashes.SHA256()))
    with pytest.raises(tidalite.InterfaceError, match="key"):
        tidalite._native.sign(b"challenge", b"\x01" * 32, x, y)
