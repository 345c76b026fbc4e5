"""Clients that want too much, are slow, or stay: everybody else is served, and what they held is given back."""

import socket
import struct
import time
import urllib.parse
from pathlib import Path

import psycopg
import pytest
from server import eventually


def resident_mib(server):
    status = Path(f"/proc/{server.pid()}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def message(tag, body):
    return tag + struct.pack("!i", len(body) + 4) + body


def started(server):
    """A connection of the PostgreSQL protocol after its greeting."""
    connection = socket.create_connection(("127.0.0.1", server.pg_port), timeout=30)
    body = struct.pack("!i", 3 << 16) + b"user\0u\0\0"
    connection.sendall(struct.pack("!i", len(body) + 4) + body)
    return connection


def until(connection, tag):
    """Reads messages up to one with the tag; gives its body."""
    return first_of(connection, tag)[1]


def first_of(connection, tags):
    """Reads messages up to one with one of the tags; gives it and its body."""
    stream = connection.makefile("rb")
    while True:
        found, length = struct.unpack("!ci", stream.read(5))
        body = stream.read(length - 4)
        if found in tags:
            return found, body


def test_a_stranger_may_say_little(servers):
    server = servers(env={"TIDALITE_PG_USER": "me", "TIDALITE_PG_PASSWORD": "secret"}).start()
    with started(server) as connection:
        assert until(connection, b"R")[:4] == struct.pack("!i", 10)
        # Only the length is sent: it is enough to be refused.
        connection.sendall(b"p" + struct.pack("!i", (64 << 10) + 5))
        assert b"longer than any before authentication, 65536" in until(connection, b"E")


def test_long_messages_share_their_memory(servers):
    server = servers(env={"TIDALITE_PG_MESSAGES_BYTES_MAX": "8MiB", "TIDALITE_PG_MESSAGE_BYTES_MAX": "4MiB"}).start()
    waiting = []
    # Of each the last byte is missing.
    for _ in range(2):
        connection = started(server)
        until(connection, b"Z")
        connection.sendall(message(b"Q", b"x" * ((4 << 20) - 100))[:-1])
        waiting.append(connection)
    small = psycopg.connect(host="127.0.0.1", port=server.pg_port, user="u", dbname="d", autocommit=True)
    assert small.execute("SELECT 1").fetchone() == (1,)

    def is_refused():
        with started(server) as third:
            until(third, b"Z")
            try:
                third.sendall(message(b"Q", b"SELECT '" + b"x" * (3 << 20) + b"'\0"))
                # It is not while the server has yet to see how long the other two are.
                tag, body = first_of(third, b"EZ")
                return tag == b"E" and b"C53200" in body
            except (ConnectionError, struct.error):
                # The refusal came before the rest was sent, and was lost with it.
                return True

    eventually(is_refused, 30, "a refusal")
    for connection in waiting:
        connection.close()
    eventually(lambda: fits(server), 30, "room for a long statement")
    small.close()


def fits(server):
    with psycopg.connect(host="127.0.0.1", port=server.pg_port, user="u", dbname="d", autocommit=True) as connection:
        try:
            return connection.execute("SELECT length('" + "x" * (3 << 20) + "')").fetchone() == (3 << 20,)
        except psycopg.errors.OutOfMemory:
            return False


def test_prepared_statements_share_it_too(servers):
    server = servers(env={"TIDALITE_PG_MESSAGES_BYTES_MAX": "4MiB", "TIDALITE_PG_MESSAGE_BYTES_MAX": "4MiB"}).start()
    with psycopg.connect(host="127.0.0.1", port=server.pg_port, user="u", dbname="d", autocommit=True) as connection:
        prepare = lambda n: connection.pgconn.prepare(f"s{n}".encode(), f"SELECT {n} AS x{'x' * (1 << 20)}".encode())
        results = [prepare(n) for n in range(6)]
        refused = [r for r in results if r.error_message]
        assert 1 <= len(refused) <= 4 and all(b"pg.messages_bytes_max" in r.error_message for r in refused)
        connection.execute("DEALLOCATE ALL")
        assert not prepare(10).error_message


@pytest.mark.parametrize("protocol", ["http", "pg"])
def test_a_reader_that_stops_and_leaves_takes_little_and_gives_it_back(servers, protocol):
    server = servers().start()
    query = "SELECT value, value * 2 AS y, 'some text of a row' AS z FROM generate_series(1, 20000000) AS value"
    assert server.value("select count(*) from generate_series(1, 1000000)") == 1_000_000
    before = resident_mib(server)
    readers = []
    for _ in range(8):
        if protocol == "http":
            reader = socket.create_connection(("127.0.0.1", server.http_port), timeout=30)
            reader.sendall(f"GET /exp?{urllib.parse.urlencode({'query': query})} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        else:
            reader = started(server)
            until(reader, b"Z")
            reader.sendall(message(b"Q", query.encode() + b"\0"))
        assert reader.recv(1000)
        readers.append(reader)
    running = lambda: server.value("select count(*) from query_activity()") - 1
    eventually(lambda: running() == 8, 30, "eight queries")
    assert server.value("select count(*) from generate_series(1, 1000000)") == 1_000_000
    assert resident_mib(server) < before + 400, "rows wait in memory for who does not read them"
    for reader in readers:
        reader.close()
    eventually(lambda: running() == 0, 30, "the end of queries nobody reads")


def test_a_body_that_does_not_come_is_given_up(servers):
    server = servers(env={"TIDALITE_HTTP_BODY_TIMEOUT": "500ms"}).start()
    with socket.create_connection(("127.0.0.1", server.http_port), timeout=30) as stalled:
        stalled.sendall(b"POST /write HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nt v=1i 1\n")
        answer = stalled.recv(10_000)
        assert answer.startswith(b"HTTP/1.1 408") and b"http.body_timeout" in answer
    # Slow is not stalled.
    with socket.create_connection(("127.0.0.1", server.http_port), timeout=30) as slow:
        slow.sendall(b"POST /write HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n")
        for byte in b"t v=2i 2\n":
            server.value("select 1")
            slow.sendall(bytes([byte]))
        assert slow.recv(10_000).startswith(b"HTTP/1.1 204")
    assert server.count("t") == 1


def test_a_thousand_idle_connections_are_no_burden(servers):
    server = servers().start()
    before = resident_mib(server)
    idle = [socket.create_connection(("127.0.0.1", port), timeout=30) for port in (server.http_port, server.ilp_port) for _ in range(500)]
    for connection in idle[:500:2]:
        # Half a request.
        connection.sendall(b"GET /exec?query=sel")
    sessions = [started(server) for _ in range(500)]
    for session in sessions:
        until(session, b"Z")
    server.write_ok("t v=1i 1\n")
    assert server.value("select count(*) from t") == 1
    assert resident_mib(server) < before + 150
    for connection in idle + sessions:
        connection.close()
    gone = lambda: all(value == 0 for name, value in server.metrics().items() if name.startswith("tidalite_connections{"))
    eventually(gone, 30, "the end of all connections")


def doubled(times, body):
    names = [f"c{n}" for n in range(times + 1)]
    queries = ", ".join(f"{name} AS ({body(before)})" for before, name in zip(names, names[1:]))
    return f"WITH c0 AS (SELECT 1 x), {queries} SELECT count(*) FROM {names[-1]}"


def nested(times):
    return "SELECT (" * times + "SELECT 1" + " GROUP BY 1)" * times + " GROUP BY 1"


# The planner would be busy with each of them for minutes, or for ever.
TOO_LARGE = {
    "additions": "SELECT " + " + ".join(["v"] * 1900) + " FROM t",
    "many additions": "SELECT " + ", ".join([" + ".join(["v"] * 150)] * 20) + " FROM t",
    "calls": "SELECT " + "abs(" * 180 + "v" + ")" * 180 + " FROM t",
    "joins of WITH": doubled(40, lambda of: f"SELECT a.x FROM {of} a, {of} b"),
    "unions of WITH": doubled(40, lambda of: f"SELECT x FROM {of} UNION ALL SELECT x FROM {of}"),
    "joins": "SELECT count(*) FROM t t0 " + " ".join(f"JOIN t t{n} ON t{n}.v = t{n - 1}.v" for n in range(1, 400)),
    "products": "SELECT count(*) FROM " + ", ".join(f"t t{n}" for n in range(400)),
    "sub-queries": "SELECT " + ", ".join(f"(SELECT max(u.v) FROM t u WHERE u.v = t.v + {n}) s{n}" for n in range(200)) + " FROM t",
    "sub-queries in GROUP BY": nested(40),
    "memberships": "SELECT 1 IN (" * 30 + "SELECT 1" + ")" * 30,
    "grouping sets": "SELECT count(*) FROM t GROUP BY CUBE(" + ", ".join(f"v + {n}" for n in range(20)) + ")",
    "declarations": "DECLARE @a0 := 1, " + ", ".join(f"@a{n} := @a{n - 1} + @a{n - 1}" for n in range(1, 40)) + " SELECT @a39",
}


@pytest.mark.parametrize("what", TOO_LARGE)
def test_a_statement_too_large_to_plan_is_refused_at_once(server, what):
    server.write_ok("too_large v=1i 1\n")
    started = time.monotonic()
    status, _, body = server.request("GET", "/exec?" + urllib.parse.urlencode({"query": TOO_LARGE[what].replace("FROM t", "FROM too_large").replace("JOIN t ", "JOIN too_large ").replace(", t t", ", too_large t")}))
    assert status == 400 and any(word in body for word in (b"too large", b"grows too long", b"operators in a row")), body[-300:]
    assert time.monotonic() - started < 30


def test_what_can_be_planned_is_planned_in_seconds(server):
    server.write_ok("planned v=1i 1\n")
    large = {
        "additions": ("SELECT " + " + ".join(["v"] * 180) + " FROM t", 180),
        "alternatives": ("SELECT count(*) FROM t WHERE " + " OR ".join(f"v = {n}" for n in range(900)), 1),
        "unions": ("SELECT sum(v) FROM (SELECT v FROM t" + " UNION ALL SELECT v FROM t" * 1499 + ")", 1500),
        "joins": ("SELECT count(*) FROM t t0 " + " ".join(f"JOIN t t{n} ON t{n}.v = t{n - 1}.v" for n in range(1, 60)), 1),
        "list": ("SELECT count(*) FROM t WHERE v IN (" + ", ".join(str(n) for n in range(2000)) + ")", 1),
    }
    for what, (query, answer) in large.items():
        started = time.monotonic()
        with psycopg.connect(host="127.0.0.1", port=server.pg_port, user="u", dbname="d", autocommit=True) as connection:
            query = query.replace("FROM t", "FROM planned").replace("JOIN t ", "JOIN planned ")
            assert connection.execute(query).fetchone() == (answer,), what
        assert time.monotonic() - started < 60, what


def test_a_timeout_comes_at_once_while_planners_are_busy(servers):
    server = servers(env={"TIDALITE_QUERY_TIMEOUT": "100ms"}).start()
    server.write_ok("t v=1i 1\n")
    slow = ("SELECT " + " + ".join(["v"] * 190) + " FROM t").encode()
    connections = [started(server) for _ in range(20)]
    for connection in connections:
        until(connection, b"Z")
    begun = time.monotonic()
    for connection in connections:
        connection.sendall(message(b"Q", slow + b"\0"))
    answers = [first_of(connection, b"TE") for connection in connections]
    waited = time.monotonic() - begun
    timeouts = [body for tag, body in answers if tag == b"E"]
    assert all(b"statement timeout of 100 ms" in body for body in timeouts)
    assert len(timeouts) >= 10 and waited < 10, (len(timeouts), waited)
    for connection in connections:
        connection.close()
    eventually(lambda: server.request("GET", "/exec?query=select+1")[0] == 200, 60, "a planner")


def cpu_seconds(server):
    fields = Path(f"/proc/{server.pid()}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


@pytest.mark.parametrize("query", [
    "select count(*) from long_sequence(200000) a, long_sequence(200000) b where a.x + b.x = 3",
    "select count(*) from long_sequence(1000000) a join long_sequence(1000000) b on a.x % 2 = b.x % 2 where a.x + b.x = 3",
    "select count(a.x + b.x) from long_sequence(1000000) a, long_sequence(1000000) b",
])
def test_a_join_without_end_lets_others_run_and_ends_when_it_is_cancelled(servers, query):
    server = servers(env={"TIDALITE_QUERY_TIMEOUT": "10s"}).start()
    with started(server) as connection:
        until(connection, b"Z")
        connection.sendall(message(b"Q", query.encode() + b"\0"))
        eventually(lambda: server.value("select count(*) from query_activity()") == 2, 10, "the join")
        for _ in range(5):
            assert server.value("select count(*) from long_sequence(10)") == 10
        until(connection, b"E")

    def is_idle():
        before = cpu_seconds(server)
        time.sleep(0.3)
        return cpu_seconds(server) - before < 0.1
    eventually(is_idle, 30, "threads that have nothing to do")


def test_many_rows_of_a_product_are_gathered_in_seconds(server):
    assert server.value("select cardinality(array_agg(a.x)) from long_sequence(200000) a, long_sequence(2)") == 400_000
