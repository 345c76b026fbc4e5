"""Clients that ask for large results and do not read them: each holds a few mebibytes, and other clients are served.

The bounds are those that docs/http.md states: 4 MiB for each connection, portal or cursor, and `results.bytes_max` for all.
"""

import hashlib
import io
import json
import socket
import struct
import time
import urllib.parse
from contextlib import ExitStack, suppress
from pathlib import Path

import psycopg
import pyarrow
import pytest
from server import Server, SqlError, eventually

MIB = 1 << 20
# Bytes that a client that does not read may hold.
PER_CLIENT = 4 * MIB
# Operators, threads, buffers of statements that are being planned, and one slice of each thread that comes out too wide.
FIXED = 128 * MIB

WIDE = "select x, repeat('y', 20000) z from long_sequence(10000000)"
LONG = "select x, repeat('y', 1000) z from long_sequence(10000000)"
NARROW = "select x, x + 1 y from long_sequence(100000000)"
FORMATS = {"json": ("/exec", {}), "csv": ("/exp", {}), "arrow": ("/exec", {"fmt": "arrow"})}


def memory(server, key):
    """VmRSS or VmHWM in bytes."""
    lines = Path(f"/proc/{server.pid()}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(key + ":"))


def processor_ticks(server):
    fields = Path(f"/proc/{server.pid()}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def idle(server):
    """Waits until the server computes nothing: all statements are paused."""
    state = {"ticks": -1, "since": 0.0}

    def is_idle():
        ticks = processor_ticks(server)
        if ticks > state["ticks"] + 2:
            state.update(ticks=ticks, since=time.monotonic())
        return time.monotonic() - state["since"] > 0.4

    eventually(is_idle, 60, "a pause of all statements")


def running(server, query):
    """Number of statements with this text."""
    return sum(row[0] == query for row in server.rows("select query from query_activity()"))


def ask(server, query, form="json"):
    path, parameters = FORMATS[form]
    client = socket.create_connection(("127.0.0.1", server.http_port), timeout=60)
    client.sendall(f"GET {path}?{urllib.parse.urlencode({'query': query, **parameters})} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    return client


def body(client):
    """The body of a chunked response."""
    file = client.makefile("rb")
    while file.readline() not in (b"\r\n", b""):
        pass
    parts = []
    while size := int(file.readline() or b"0", 16):
        parts.append(file.read(size))
        file.readline()
    return b"".join(parts)


class Session:
    """A session of the PostgreSQL protocol whose messages are read only when a test wants them."""

    def __init__(self, server):
        self.socket = socket.create_connection(("127.0.0.1", server.pg_port), timeout=60)
        self.file = self.socket.makefile("rb")
        start = struct.pack("!i", 3 << 16) + b"user\0u\0database\0d\0\0"
        self.socket.sendall(struct.pack("!i", len(start) + 4) + start)
        self.until(b"Z")

    def send(self, *messages):
        self.socket.sendall(b"".join(tag + struct.pack("!i", len(text) + 4) + text for tag, text in messages))

    def until(self, tags):
        """Messages up to the first with one of the tags."""
        found = []
        while True:
            head = self.file.read(5)
            if len(head) < 5:
                raise ConnectionError("the server closed the connection")
            found.append((head[:1], self.file.read(struct.unpack("!i", head[1:])[0] - 4)))
            if found[-1][0] in tags:
                return found

    def query(self, sql):
        self.send((b"Q", sql.encode() + b"\0"))

    def run(self, sql):
        self.query(sql)
        return self.until(b"Z")

    def portal(self, name, sql, rows):
        """Opens a portal and takes rows; returns the messages up to its suspension, end or error."""
        name = name.encode() + b"\0"
        self.send((b"P", name + sql.encode() + b"\0\0\0"), (b"B", name + name + b"\0\0\0\0\0\0"))
        return self.more(name, rows)

    def more(self, name, rows):
        self.send((b"E", name + struct.pack("!i", rows)), (b"H", b""))
        return self.until(b"sCE")

    def close(self):
        self.file.close()
        self.socket.close()


def rows_of(messages):
    """The text values of DataRow messages."""
    rows = []
    for tag, text in messages:
        if tag == b"D":
            values, at = [], 2
            for _ in range(struct.unpack("!h", text[:2])[0]):
                size = struct.unpack("!i", text[at : at + 4])[0]
                values.append(text[at + 4 : at + 4 + size].decode())
                at += 4 + size
            rows.append(tuple(values))
    return rows


def bounded(server, open_clients, count):
    """Opens clients; the memory of the server stays within the bound, and another client is answered."""
    server.value("select 1")
    before = memory(server, "VmRSS")
    with ExitStack() as stack:
        for client in open_clients():
            stack.callback(client.close)
        idle(server)
        most = memory(server, "VmHWM") - before
        assert most <= count * PER_CLIENT + FIXED, f"{most / count / MIB:.1f} MiB for each of {count} clients"
        begun = time.monotonic()
        assert server.value("select count(*) from long_sequence(1000)") == 1000
        with psycopg.connect(host="127.0.0.1", port=server.pg_port, user="u", dbname="d") as session:
            assert session.execute("SELECT 1").fetchone() == (1,)
        assert time.monotonic() - begun < 10


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(("query", "count"), [(WIDE, 25), (NARROW, 25)], ids=["wide", "narrow"])
def test_http_clients_that_do_not_read(servers, form, query, count):
    server = servers().start()
    bounded(server, lambda: [ask(server, query, form) for _ in range(count)], count)
    eventually(lambda: running(server, query) == 0, 10, "the end of statements whose clients left")


def test_three_hundred_http_clients_that_do_not_read(servers):
    server = servers().start()
    bounded(server, lambda: [ask(server, LONG) for _ in range(300)], 300)


@pytest.mark.parametrize("query", ["{}", "COPY ({}) TO STDOUT", "COPY ({}) TO STDOUT (FORMAT binary)"], ids=["query", "copy", "binary"])
def test_postgres_clients_that_do_not_read(servers, query):
    server = servers().start()

    def sessions():
        for _ in range(25):
            session = Session(server)
            session.query(query.format(WIDE))
            yield session

    bounded(server, sessions, 25)


@pytest.mark.parametrize("query", [WIDE, NARROW], ids=["wide", "narrow"])
def test_suspended_portals(servers, query):
    server = servers().start()

    def portals():
        session = Session(server)
        yield session
        session.run("BEGIN")
        for number in range(60):
            assert session.portal(f"p{number}", query, 1)[-1][0] == b"s"

    bounded(server, portals, 60)


def test_open_cursors(servers):
    server = servers().start()

    def cursors():
        session = Session(server)
        yield session
        session.run("BEGIN")
        for number in range(60):
            session.run(f"DECLARE c{number} CURSOR FOR {WIDE}")
            assert len(rows_of(session.run(f"FETCH 3 FROM c{number}"))) == 3

    bounded(server, cursors, 60)


@pytest.mark.parametrize(
    "query",
    [
        "select x, case when x > 1000 then repeat('y', 20000) else 'y' end z from long_sequence(1000000)",
        "select x, repeat('y', 20000) z from long_sequence(1000000) union all select x, repeat('z', 30000) from long_sequence(1000000)",
    ],
    ids=["case", "union"],
)
def test_wide_rows_of_other_operators(servers, query):
    server = servers().start()
    bounded(server, lambda: [ask(server, query) for _ in range(10)], 10)


# Live bytes of a client that does not read rows of a wide table: batches in operators and the channel, encoded rows.
PER_READER = 12 * MIB
# A block of the table has 65,536 rows of 4 kB, 256 MiB; the block cache has no room for one.
WIDE_TABLE = {
    "as stored": "SELECT * FROM wide",
    "latest first": "SELECT * FROM wide ORDER BY ts DESC",
    "some": "SELECT * FROM wide WHERE x % 3 = 0 LIMIT 100000",
    "few": "SELECT * FROM wide WHERE x % 97 = 0",
    "computed": "SELECT x, upper(s) u FROM wide",
    "a part of each": "SELECT x, left(s, 10) l FROM wide",
    "filter": "SELECT * FROM wide WHERE length(reverse(s)) > 3",
    "join": "SELECT w.*, n.k FROM wide w JOIN (VALUES (0), (1)) n(k) ON w.x % 2 = n.k",
    "cross join": "SELECT w.s, n.k FROM (VALUES (0), (1), (2)) n(k) CROSS JOIN wide w",
    "unnested": "SELECT s, unnest(array[x, x + 1]) u FROM wide",
    "union": "SELECT x, s FROM wide UNION ALL SELECT x, s FROM wide",
}


@pytest.fixture(scope="module")
def wide_table(tmp_path_factory):
    """A server with a merged table, and its live bytes."""
    server = Server(tmp_path_factory.mktemp("wide"), env={"TIDALITE_CACHE_BYTES": "64MiB"})
    try:
        server.start()
        server.exec("CREATE TABLE wide (ts TIMESTAMP, x LONG, s VARCHAR) TIMESTAMP(ts) PARTITION BY MONTH")
        for before in range(0, 70_000, 10_000):
            rows = f"SELECT ('2024-01-01'::timestamp + x * 1000000)::timestamp ts, x, repeat(md5(x::varchar), 125) s FROM (SELECT x + {before} x FROM long_sequence(10000))"
            server.exec(f"INSERT INTO wide {rows}")
        eventually(lambda: server.metrics()["tidalite_staged_rows"] == 0, 120, "a merge")
        idle(server)
        yield server, live(server)
    finally:
        server.stop()


def live(server):
    return server.metrics()["tidalite_memory_bytes"]


@pytest.mark.parametrize("name", WIDE_TABLE)
def test_clients_that_do_not_read_a_wide_table(wide_table, name):
    (server, before), query = wide_table, WIDE_TABLE[name]
    with ExitStack() as stack:
        sockets = []
        for number in range(10):
            form = [*FORMATS, "pg"][number % 4]
            client = Session(server) if form == "pg" else ask(server, query, form)
            stack.callback(client.close)
            sockets.append(client.socket if form == "pg" else client)
            if form == "pg":
                client.query(query)
        assert all(client.recv(1, socket.MSG_PEEK) for client in sockets)
        idle(server)
        # Pieces are dropped after a second.
        held = []
        with suppress(AssertionError):
            eventually(lambda: held.append(live(server) - before) or held[-1] <= 10 * PER_READER, 10)
        print(f"\n  {name}: {held[-1] / 10 / MIB:.1f} MiB for each client")
        assert held[-1] <= 10 * PER_READER
        # Each goes on where it stopped.
        for client in sockets[-4:]:
            assert len(client.makefile("rb").read(MIB)) == MIB
    eventually(lambda: running(server, query) == 0, 30, "the end of the statements")
    eventually(lambda: live(server) - before <= 10 * MIB, 30, "the release of their memory")


@pytest.mark.parametrize("order", ["", " ORDER BY ts DESC"], ids=["as stored", "latest first"])
def test_a_wide_table_that_is_read_after_a_pause_is_complete(wide_table, order):
    server, _ = wide_table
    client = ask(server, f"SELECT x, s FROM wide{order}", "csv")
    assert client.recv(1, socket.MSG_PEEK)
    idle(server)
    rest = body(client).split(b"\r\n")[1:-1]
    client.close()
    assert len(rest) == 70000
    numbers = [int(line.split(b",")[0]) for line in rest]
    assert numbers == sorted(range(1, 70001), reverse=bool(order))
    for line in (rest[0], rest[35_000], rest[-1]):
        x, text = line.split(b",")
        assert text.strip(b'"') == hashlib.md5(x).hexdigest().encode() * 125


def expected(count):
    return [(x, f"{x:07}" * 300) for x in range(1, count + 1)]


NUMBERED = "select x, repeat(lpad(x::varchar, 7, '0'), 300) z from long_sequence({})"


@pytest.mark.parametrize("form", FORMATS)
def test_a_client_that_goes_on_reading_gets_all_rows(server, form):
    """20,000 rows of 2,100 bytes, 42 MB: more than buffers of sockets take."""
    client = ask(server, NUMBERED.format(20_000), form)
    idle(server)
    answer = body(client)
    client.close()
    if form == "json":
        rows = [tuple(row) for row in json.loads(answer)["dataset"]]
    elif form == "csv":
        lines = answer.decode().split("\r\n")
        assert lines[0] == '"x","z"' or lines[0] == "x,z"
        rows = [(int(x), z.strip('"')) for x, z in (line.split(",") for line in lines[1:-1])]
    else:
        table = pyarrow.ipc.open_stream(io.BytesIO(answer)).read_all()
        rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    assert rows == expected(20_000)


@pytest.mark.parametrize("query", ["{}", "COPY ({}) TO STDOUT"], ids=["query", "copy"])
def test_a_session_that_goes_on_reading_gets_all_rows(server, query):
    session = Session(server)
    session.query(query.format(NUMBERED.format(20_000)))
    idle(server)
    messages = session.until(b"Z")
    session.close()
    if query == "{}":
        rows = [(int(x), z) for x, z in rows_of(messages)]
    else:
        rows = [(int(x), z) for x, z in (text.decode().rstrip("\n").split("\t") for tag, text in messages if tag == b"d")]
    assert rows == expected(20_000)


def test_portals_go_on_where_they_were(server):
    session = Session(server)
    session.run("BEGIN")
    rows = {name: rows_of(session.portal(name.decode(), NUMBERED.format(3_000), 7)) for name in (b"a", b"b")}
    for name, size in [(b"a\0", 1_000), (b"b\0", 1), (b"a\0", 0), (b"b\0", 0)]:
        rows[name[:1]] += rows_of(session.more(name, size))
    session.close()
    for taken in rows.values():
        assert [(int(x), z) for x, z in taken] == expected(3_000)


def test_a_client_that_takes_nothing_is_disconnected(servers):
    """With a limit of one second statements of clients that do not read end; a client that reads slowly stays."""
    server = servers(env={"TIDALITE_WRITE_TIMEOUT": "1s"}).start()
    silent = [ask(server, LONG, form) for form in FORMATS for _ in range(3)]
    for query in (LONG, f"COPY ({LONG}) TO STDOUT"):
        silent.append(Session(server))
        silent[-1].query(query)
    slow = ask(server, NARROW)
    reader = slow.makefile("rb")
    suspended = Session(server)
    suspended.run("BEGIN")
    assert suspended.portal("p", NARROW, 1)[-1][0] == b"s"

    def is_over():
        # A megabyte at a time, so that the window of the connection opens.
        assert len(reader.read(MIB)) == MIB
        return server.metrics()["tidalite_slow_readers_total"] >= len(silent)

    begun = time.monotonic()
    eventually(is_over, 20, "the end of clients that do not read")
    assert time.monotonic() - begun >= 0.9
    assert running(server, LONG) == 0 and running(server, f"COPY ({LONG}) TO STDOUT") == 0
    # The portal and the client that reads are still there.
    assert running(server, NARROW) == 2
    assert len(rows_of(suspended.more(b"p\0", 5))) == 5
    assert server.metrics()["tidalite_slow_readers_total"] == len(silent)
    for client in [*silent, slow, suspended]:
        client.close()


def test_results_share_a_limit(servers):
    """Within 16 MiB portals are refused with 53200, then clients that do not read are disconnected for others."""
    server = servers(env={"TIDALITE_RESULTS_BYTES_MAX": "16MiB"}).start()
    session = Session(server)
    session.run("BEGIN")
    refused = next(last for last in (session.portal(f"p{number}", WIDE, 1)[-1] for number in range(100)) if last[0] != b"s")
    assert refused[0] == b"E" and b"C53200\0" in refused[1] and b"results.bytes_max" in refused[1]
    held = server.metrics()["tidalite_results_bytes"]
    assert 12 * MIB <= held <= 16 * MIB
    session.close()
    eventually(lambda: server.metrics()["tidalite_results_bytes"] == 0, 10, "the release of the portals")
    silent = [ask(server, WIDE) for _ in range(60)]
    idle(server)
    assert server.metrics()["tidalite_results_bytes"] <= 16 * MIB

    def answered():
        try:
            return len(server.rows("select x, repeat('y', 20000) z from long_sequence(200)")) == 200
        except SqlError as error:
            assert error.status == 503 and "results.bytes_max" in str(error.answer), error
            return False

    eventually(answered, 10, "a result of another client")
    assert server.metrics()["tidalite_slow_readers_total"] >= 1
    for client in silent:
        client.close()
