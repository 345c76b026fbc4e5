"""What is particular to a server: credentials, errors of the transport, large answers."""

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import tidalite
from server import Server


def test_large_answers_and_bodies(remote, table):
    count = 700_000
    values = np.random.default_rng(1).random((8, count))
    frame = pl.DataFrame({"ts": pl.Series(np.arange(count)).cast(pl.Datetime("us")), **{f"v{i}": v for i, v in enumerate(values)}})
    assert remote.write(table, frame, at="ts") == count
    back = remote.sql(f"select * from {table} order by ts").polars()
    assert back.equals(frame)


def test_what_is_too_much_for_one_commit_is_not_sent(remote, table, monkeypatch):
    monkeypatch.setattr("tidalite._remote._COMMIT_BYTES", 100_000)
    frame = pl.DataFrame({"n": range(100_000)})
    with pytest.raises(tidalite.DataError, match="one commit"):
        remote.write(table, frame, atomic=True)
    assert table not in remote.tables()
    assert remote.write(table, frame.head(1000), atomic=True) == 1000


def test_rows_are_numbered_over_all_requests(remote, table, monkeypatch):
    monkeypatch.setattr("tidalite._remote._BODY_BYTES", 50_000)
    frame = pl.DataFrame({"n": [*range(50_000), 2**63]}, schema={"n": pl.UInt64})
    with pytest.raises(tidalite.DataError, match="row 50000: value 9223372036854775808") as refused:
        remote.write(table, frame)
    assert (refused.value.column, refused.value.row) == ("n", 50_000)


def test_few_rows_of_a_large_block_are_small(server, remote, table):
    text = ["x" * 500 + str(i) for i in range(20_000)]
    remote.write(table, pl.DataFrame({"n": range(20_000), "t": text}))
    query = f"select t from {table} where n = 7"
    assert remote.sql(query).fetchall() == [(text[7],)]
    status, headers, body = server.request("POST", "/exec", f"fmt=arrow&query={query}".replace(" ", "+"), {"Content-Type": "application/x-www-form-urlencoded"})
    assert status == 200 and headers["content-type"] == "application/vnd.apache.arrow.stream" and len(body) < 5_000


def test_bodies_have_the_text_of_their_rows_only(monkeypatch):
    """A part of a frame of text views is not sent with the text of all of it."""
    from tidalite import _native

    text = [f"{i:0500}" for i in range(20_000)]
    frame = pl.DataFrame({"t": text, "n": range(20_000)})
    encoder = _native.IpcEncoder(frame, 1 << 20)
    sizes = []
    while (body := encoder.next()) is not None:
        sizes.append(len(body))
    assert sum(sizes) < 11 << 20 and max(sizes) < 1.5 * (1 << 20) and len(sizes) < 20
    assert encoder.rows == 20_000
    # Rows that are larger than a body go one by one.
    encoder = _native.IpcEncoder(pl.DataFrame({"t": ["x" * 100_000] * 5}), 50_000)
    sizes = []
    while (body := encoder.next()) is not None:
        sizes.append(len(body))
    assert len(sizes) == 5 and max(sizes) < 110_000


def test_bodies_that_are_no_rows(server):
    for body in (b"", b"hello", b"\xff" * 100, b"\xff\xff\xff\xff\x10\x00\x00\x00" + b"\x01" * 100):
        status, _, answer = server.request("POST", "/write/arrow?table=nothing", body)
        assert status == 400 and b"Arrow" in answer, answer
    assert server.request("POST", "/write/arrow", b"")[0] == 400
    assert server.request("GET", "/write/arrow")[0] == 405


def test_no_server(unused_port):
    db = tidalite.connect(f"tidalite://127.0.0.1:{unused_port}")
    with pytest.raises(tidalite.OperationalError, match="no answer from"):
        db.sql("select 1")
    with pytest.raises(tidalite.InterfaceError, match="is no address"):
        tidalite.connect("ftp://host")


@pytest.fixture
def unused_port():
    import socket

    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    return port


def test_credentials(tmp_path):
    server = Server(tmp_path / "s", env={"TIDALITE_HTTP_USER": "u", "TIDALITE_HTTP_PASSWORD": "p@ss"}).start()
    try:
        with pytest.raises(tidalite.OperationalError, match="401"):
            tidalite.connect(f"tidalite://127.0.0.1:{server.http_port}").sql("select 1")
        for db in (tidalite.connect(f"tidalite://u:p%40ss@127.0.0.1:{server.http_port}"), tidalite.connect(f"127.0.0.1:{server.http_port}", user="u", password="p@ss")):
            assert db.sql("select 1").fetchall() == [(1,)]
    finally:
        server.stop()


def test_a_server_that_starts_again(tmp_path):
    server = Server(tmp_path / "s").start()
    db = tidalite.connect(f"tidalite://127.0.0.1:{server.http_port}")
    db.write("t", {"n": [1, 2]})
    server.kill()
    with pytest.raises(tidalite.OperationalError):
        db.sql("select 1")
    server.start()
    try:
        assert db.sql("select sum(n) from t").fetchall() == [(3,)]
    finally:
        server.stop()


def test_registered_frames_are_of_a_connection(server, remote, table):
    frames = {f"{table}_{n}": pl.DataFrame({"n": [n] * 1000, "s": ["x"] * 1000}) for n in range(3)}
    for name, frame in frames.items():
        remote.register(name, frame)
    first, second, third = frames
    query = f"select a.n, b.n, count(*) from {first} a, {third} b where a.s = $1 group by 1, 2"
    assert remote.sql(query, ["x"]).fetchall() == [(0, 2, 1_000_000)]
    with tidalite.connect(f"tidalite://127.0.0.1:{server.http_port}") as other:
        with pytest.raises(tidalite.ProgrammingError, match="does not exist"):
            other.sql(f"select * from {second}")
    remote.sql(f"create table {table} as (select n from {second})")
    assert remote.sql(f"select sum(n) from {table}").fetchall() == [(1000,)]
    assert all(remote.unregister(name) for name in frames) and not remote.unregister(first)


def test_frames_of_few_bytes_and_many_rows(server, remote, table):
    many = pa.DictionaryArray.from_arrays(pa.array(np.zeros(20_000, np.int8)), pa.array(["x" * 100_000]))
    remote.register(table, pa.table({"t": many}))
    assert remote.sql(f"select count(*), max(length(t)) from {table}").fetchall() == [(20_000, 100_000)]
    with pytest.raises(tidalite.OperationalError, match="http.bodies_bytes_max"):
        remote.register(table, pa.table({"t": pa.nulls(2**27), "n": pa.nulls(2**27)}))
    assert remote.unregister(table)


def test_frames_that_are_none(server):
    kind = {"Content-Type": "application/vnd.tidalite.frames"}
    form = b"query=select+1&frames=" + b"%5B%5B%22f%22%2Cnull%2C5%5D%5D"
    for body in (b"", b"\xff\xff\xff\xff", len(form).to_bytes(4, "little") + form, len(form).to_bytes(4, "little") + form + b"hello"):
        status, _, answer = server.request("POST", "/exec", body, kind)
        assert status == 400, answer
    assert server.request("POST", "/exec", len(b"query=select+1").to_bytes(4, "little") + b"query=select+1", kind)[0] == 200


def test_what_it_is_called(remote):
    assert repr(remote).startswith("<tidalite.connect('tidalite://127.0.0.1:")
