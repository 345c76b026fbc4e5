"""Many, silent or slow connections and password guessing: other clients are served."""

import base64
import http.client
import socket
import struct
import time
import urllib.parse
from contextlib import ExitStack

import psycopg
import pytest
from server import eventually


def connect(server, **more):
    return psycopg.connect(host="127.0.0.1", port=server.pg_port, dbname="d", autocommit=True, connect_timeout=20, **{"user": "u", **more})


def silent(port, count, source="127.0.0.1"):
    return [socket.create_connection(("127.0.0.1", port), timeout=30, source_address=(source, 0)) for _ in range(count)]


def is_closed(client):
    client.setblocking(False)
    try:
        return client.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def startup(user):
    body = struct.pack("!i", 3 << 16) + b"user\0" + user + b"\0\0"
    return struct.pack("!i", len(body) + 4) + body


def test_silent_sockets_make_room(servers):
    """1,030 silent sockets on each port of 300; a statement over HTTP or the PostgreSQL protocol is answered within two seconds."""
    server = servers(env={"TIDALITE_HTTP_CONNECTIONS_MAX": "300", "TIDALITE_PG_CONNECTIONS_MAX": "300", "TIDALITE_ILP_CONNECTIONS_MAX": "300"}).start()
    with ExitStack() as stack:
        for port in (server.http_port, server.pg_port, server.ilp_port):
            for client in silent(port, 1030):
                stack.enter_context(client)

        def answered(ask):
            try:
                return ask()
            except (OSError, http.client.HTTPException, psycopg.OperationalError):
                return False

        def session():
            with connect(server) as connection:
                return connection.execute("SELECT 1").fetchone() == (1,)

        asked = {
            "a statement": lambda: server.request("GET", "/exec?query=select+1")[0] == 200,
            "a ping": lambda: server.request("GET", "/ping")[0] == 204,
            "a session": session,
        }
        for _ in range(5):
            for what, ask in asked.items():
                begun = time.monotonic()
                eventually(lambda: answered(ask), 10, what)
                assert time.monotonic() - begun <= 2, what
        metrics = server.metrics()
        assert metrics['tidalite_connections{protocol="http"}'] <= 316


def test_heads_and_handshakes_have_a_second(servers):
    """With a limit of one second, 40 incomplete handshakes are closed within five; a session and an idle connection stay open."""
    server = servers(env={"TIDALITE_HANDSHAKE_TIMEOUT": "1s"}).start()
    kept = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=30)
    kept.request("GET", "/exec?query=select+1")
    kept.getresponse().read()
    session = connect(server)
    begun = time.monotonic()
    beginnings = silent(server.http_port, 10) + silent(server.pg_port, 10)
    for client in silent(server.http_port, 10):
        client.sendall(b"GET /exec?query=select+1 HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
        beginnings.append(client)
    for client in silent(server.pg_port, 10):
        client.sendall(startup(b"u")[:9])
        beginnings.append(client)

    def drip():
        # Single bytes must not extend the time.
        for client in beginnings[20:30]:
            try:
                client.send(b"x")
            except OSError:
                pass
        return all(is_closed(client) for client in beginnings)

    eventually(drip, 5, "the end of connections that do not begin")
    assert len(beginnings) == 40 and time.monotonic() - begun >= 0.9
    assert session.execute("SELECT 1").fetchone() == (1,)
    kept.request("GET", "/exec?query=select+1")
    assert kept.getresponse().status == 200
    session.close()


def test_postgres_clients_beyond_the_limit_are_told(servers):
    """At a limit of 8, twelve of 20 connections are refused with 53300 and the setting; a cancel request still works."""
    server = servers(env={"TIDALITE_PG_CONNECTIONS_MAX": "8", "TIDALITE_CONNECTIONS_PER_ADDRESS_MAX": "8"}).start()
    sessions, refused = [], 0
    for _ in range(20):
        try:
            sessions.append(connect(server))
        except psycopg.OperationalError as error:
            assert "sorry, too many clients already" in str(error) and "_max" in str(error), error
            refused += 1
    assert (len(sessions), refused) == (8, 12)
    # psycopg does not report the SQLSTATE of a failed connection.
    with socket.create_connection(("127.0.0.1", server.pg_port), timeout=30) as client:
        client.sendall(startup(b"u"))
        assert b"C53300\0" in client.recv(4096)
    busy = sessions[0]
    busy.pgconn.send_query(b"select count(*) from long_sequence(200000) a, long_sequence(200000) b where a.x + b.x = 3")
    eventually(lambda: any("200000" in row[0] for row in server.rows("select query from query_activity() where query not like '%query_activity%'")), 20)
    busy.cancel()
    eventually(lambda: not (busy.pgconn.consume_input() or busy.pgconn.is_busy()), 20, "the end of the statement")
    assert b"canceling" in busy.pgconn.get_result().error_message
    assert server.metrics()['tidalite_connections_refused_total{protocol="pg"}'] >= 13
    for session in sessions[1:]:
        session.close()

    def fits():
        try:
            return connect(server).close() is None
        except psycopg.OperationalError:
            return False

    eventually(fits, 10, "a place")


def test_administrators_have_a_reserve(servers):
    server = servers(env={"TIDALITE_PG_CONNECTIONS_MAX": "2", "TIDALITE_PG_USER": "me", "TIDALITE_PG_PASSWORD": "secret"}).start()
    me = {"user": "me", "password": "secret"}
    sessions = [connect(server, **me) for _ in range(3)]
    assert sessions[2].execute("SELECT 1").fetchone() == (1,)
    with pytest.raises(psycopg.OperationalError, match="authentication failed"):
        connect(server, user="me", password="wrong")
    for session in sessions:
        session.close()


def test_a_full_http_port_answers_for_health(servers):
    """Four running statements fill a port of four; 20 health requests are answered, other requests with 503."""
    server = servers(env={"TIDALITE_HTTP_CONNECTIONS_MAX": "4", "TIDALITE_CONNECTIONS_PER_ADDRESS_MAX": "4"}).start()
    slow = "select count(*) from long_sequence(200000) a, long_sequence(200000) b where a.x + b.x = 3"
    # Connections of the server start may still be open, so that some of these requests are refused.
    request = f"GET /exec?{urllib.parse.urlencode({'query': slow})} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    busy = []

    def are_four(count):
        if count < 4:
            busy.extend(silent(server.http_port, 1))
            busy[-1].sendall(request)
        return count >= 4

    def status_of(path):
        status, headers, body = server.request("GET", path)
        return status, headers.get("connection"), body

    with connect(server) as session:
        running = "SELECT count(*) FROM query_activity() WHERE username LIKE 'http%'"
        eventually(lambda: are_four(session.execute(running).fetchone()[0]), 20, "four statements")
    for _ in range(20):
        assert status_of("/ping")[0] == 204 and status_of("/health/ready")[0] == 200
    status, connection, body = status_of("/exec?query=select+1")
    assert (status, connection) == (503, "close") and b"http.connections_max" in body
    for client in busy:
        client.close()
    eventually(lambda: status_of("/exec?query=select+1")[0] == 200, 30, "room again")


def test_one_address_leaves_places_to_others(servers):
    server = servers(env={"TIDALITE_CONNECTIONS_PER_ADDRESS_MAX": "5"}).start()
    mine = [connect(server) for _ in range(5)]
    with pytest.raises(psycopg.OperationalError, match="connections.per_address_max"):
        connect(server)
    with socket.create_connection(("127.0.0.1", server.pg_port), timeout=30, source_address=("127.0.0.2", 0)) as other:
        other.sendall(startup(b"u"))
        assert other.recv(4096)[:1] == b"R"
    for session in mine:
        session.close()


def basic(user, password):
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def tries(server, count, headers, source="127.0.0.1"):
    connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=30, source_address=(source, 0))
    statuses = []
    for number in range(count):
        connection.request("GET", "/exec?query=select+1", headers=headers(number))
        answer = connection.getresponse()
        answer.read()
        statuses.append(answer.status)
    connection.close()
    return statuses


def test_guessing_passwords_is_slow_and_quiet(servers):
    """At most 15 of 3,000 guesses over HTTP are checked, and at most 25 log lines are written; another address can log in."""
    server = servers(env={"TIDALITE_HTTP_USER": "me", "TIDALITE_HTTP_PASSWORD": "secret"}).start()
    before = server.log.stat().st_size
    statuses = tries(server, 3000, lambda n: basic("me", f"guess {n}"))
    metrics = server.metrics()
    assert metrics["tidalite_logins_failed_total"] <= 15
    assert statuses.count(429) >= 2980 and statuses.count(401) <= 15 and statuses.count(200) == 0
    assert metrics["tidalite_logins_refused_total"] >= 2980
    assert server.log.read_bytes()[before:].count(b"authentication failed") <= 25
    # The correct password must wait at this address, and not at another.
    status, headers, _ = server.request("GET", "/exec?query=select+1", headers=basic("me", "secret"))
    assert status == 429 and int(headers["retry-after"]) >= 1
    assert tries(server, 1, lambda _: basic("me", "secret"), "127.0.0.2") == [200]
    # Requests without credentials do not count as failures.
    assert tries(server, 100, lambda _: {}, "127.0.0.3") == [401] * 100
    assert tries(server, 1, lambda _: basic("me", "secret"), "127.0.0.3") == [200]


def test_guessing_is_slow_by_postgres_too_and_long_names_are_cut(servers):
    """300 guesses, half of them with a name of 9,000 bytes, write less than 16 KiB of log."""
    server = servers(env={"TIDALITE_PG_USER": "me", "TIDALITE_PG_PASSWORD": "secret"}).start()
    before = server.log.stat().st_size
    waits = 0
    for number in range(300):
        with pytest.raises(psycopg.OperationalError) as caught:
            connect(server, user="x" * 9000 if number % 2 else "me", password=f"guess {number}")
        waits += "too many failed logins" in str(caught.value)
        assert len(str(caught.value)) < 1000
    assert waits >= 280
    log = server.log.read_bytes()[before:]
    assert len(log) < 16 << 10 and max(map(len, log.splitlines())) < 400, len(log)
    assert server.metrics()["tidalite_logins_failed_total"] <= 20
    status, _, body = server.request("GET", "/" + "y" * 20_000)
    assert status == 404 and len(body) < 300


def test_stalled_uploads_give_way(servers):
    """Four stalled uploads hold the memory of all bodies; a write of 3 MiB is committed within five seconds."""
    server = servers(env={"TIDALITE_HTTP_BODIES_BYTES_MAX": "8MiB", "TIDALITE_HTTP_BODY_BYTES_MAX": "4MiB"}).start()
    line = b"t v=1i 1704067200000000000\n"
    part = line * ((2 << 20) // len(line))
    stalled = silent(server.http_port, 4)
    for client in stalled:
        client.sendall(b"POST /write HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % (len(part) + 100))
        client.sendall(part)
    eventually(lambda: server.metrics()["tidalite_http_bodies_bytes"] >= 4 * len(part), 20, "four stalled uploads")
    begun = time.monotonic()
    rows = (3 << 20) // len(line)
    eventually(lambda: server.write(line * rows)[0] == 204, 20, "a write")
    assert time.monotonic() - begun <= 5
    # Small requests are never revoked.
    server.write_ok(line)
    assert server.count("t") == rows + 1
    answers = [client.recv(4096) for client in stalled if not is_closed_or_silent(client)]
    assert 1 <= len(answers) <= 2 and all(answer.startswith(b"HTTP/1.1 408") and b"other requests needed its memory" in answer for answer in answers)
    assert server.metrics()["tidalite_slow_uploads_total"] == len(answers)
    for client in stalled:
        client.close()


def is_closed_or_silent(client):
    client.settimeout(1)
    try:
        return client.recv(1, socket.MSG_PEEK) == b""
    except (TimeoutError, ConnectionError):
        return True


def test_pages_cannot_talk_to_other_ports(servers):
    """HTTP requests to the ports of other protocols have no effect."""
    server = servers().start()
    lines = b"t v=1i 1704067200000000000\n" * 10
    request = b"POST /t%20v=1i HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\nContent-Type: text/plain\r\nContent-Length: " + str(len(lines)).encode() + b"\r\n\r\n" + lines
    for port in (server.ilp_port, server.pg_port, server.health_port):
        with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
            client.sendall(request)
            try:
                while client.recv(4096) and port != server.health_port:
                    pass
            except ConnectionError:
                pass
    assert server.rows("show tables") == []
