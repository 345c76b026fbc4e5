"""Limits and signals of the operating system, and a clock that is wrong."""

import http.client
import os
import re
import signal
import socket
import time
from contextlib import ExitStack
from pathlib import Path

import psycopg
from server import eventually

DAY_NS = 86_400 * 10**9
START_NS = 1_704_067_200_000_000_000


def limited(servers, limits, **more):
    return servers(prefix=["bash", "-c", f'{limits}; "$@"; exit $?', "limited"], **more)


def open_files_limit(server):
    line = next(line for line in Path(f"/proc/{server.pid()}/limits").read_text().splitlines() if line.startswith("Max open files"))
    return [int(n) for n in line.split()[3:5]]


def partitions(server, count):
    server.write_ok("".join(f"t v={n}i {START_NS + n * DAY_NS}\n" for n in range(count)))


def pinged(server):
    try:
        return server.request("GET", "/ping")[0] == 204
    except (OSError, http.client.HTTPException):
        return False


def answered(server):
    try:
        return server.request("GET", "/exec?query=select+1")[0] == 200
    except (OSError, http.client.HTTPException):
        return False


def settled(server):
    """Waits until all rows are merged into segments."""
    eventually(lambda: server.value("select sum(stagedRows) from table_metrics()") == 0, 180, "a merge")


def test_the_soft_limit_of_handles_is_raised(servers):
    server = limited(servers, "ulimit -Sn 300; ulimit -Hn 4096").start()
    assert open_files_limit(server) == [4096, 4096]
    with ExitStack() as stack:
        sessions = [stack.enter_context(psycopg.connect(host="127.0.0.1", port=server.pg_port, user="u", dbname="d", autocommit=True)) for _ in range(400)]
        assert sum(session.execute("SELECT 1").fetchone()[0] for session in sessions) == 400


def test_few_handles_suffice(servers):
    """At 256 handles, scans of 600 partitions, 150 clients of each protocol, and health requests succeed."""
    server = limited(servers, "ulimit -Sn 256; ulimit -Hn 256").start()
    partitions(server, 600)
    settled(server)
    server.stop()
    server.start()
    assert server.value("select sum(v) from t") == sum(range(600))
    with ExitStack() as stack:
        clients = [stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30)) for port in (server.http_port, server.ilp_port, server.pg_port) for _ in range(150)]
        time_of_health = []
        for _ in range(20):
            begun = time.monotonic()
            assert server.metrics()["tidalite_ready"] == 1
            time_of_health.append(time.monotonic() - begun)
        assert max(time_of_health) < 1
        eventually(lambda: pinged(server), 10, "an answer")
        assert len(os.listdir(f"/proc/{server.pid()}/fd")) < 250
        assert len(clients) == 450
    # Scans while most of the permitted connections are open.
    with ExitStack() as stack:
        for _ in range(60):
            stack.enter_context(socket.create_connection(("127.0.0.1", server.http_port), timeout=30))
        # Earlier connections may still be open.
        eventually(lambda: answered(server), 10, "an answer")
        for _ in range(10):
            assert server.rows("select sum(v), count(*) from t") == [[179_700, 600]]
    assert "Too many open files" not in server.log.read_text(errors="replace")


def test_a_thousand_handles_for_partitions_and_clients(servers):
    """At 1,024 handles, 1,500 partitions are scanned while 600 connections are open."""
    server = limited(servers, "ulimit -Sn 1024; ulimit -Hn 1024").start()
    partitions(server, 1500)
    settled(server)
    with ExitStack() as stack:
        sessions = [stack.enter_context(psycopg.connect(host="127.0.0.1", port=server.pg_port, user="u", dbname="d", autocommit=True)) for _ in range(600)]
        for session in sessions[::100]:
            assert session.execute("SELECT sum(v), count(*) FROM t").fetchone() == (sum(range(1500)), 1500)
        assert server.metrics()["tidalite_ready"] == 1
    assert "Too many open files" not in server.log.read_text(errors="replace")


def test_hangups_do_not_end_the_server(servers):
    server = servers().start()
    server.write_ok("t v=1i 1704067200000000000\n")
    for number in range(1, 21):
        os.kill(server.pid(), signal.SIGHUP)
        eventually(lambda: server.log.read_text().count("SIGHUP") >= 1, 10, "a line about the signal")
        assert server.process.poll() is None and server.count("t") == 1, number


def test_a_limit_of_file_size_is_an_error(servers):
    """With files of at most 32 MiB the next log file does not fit; the server refuses writes and continues."""
    server = limited(servers, "ulimit -f 32768", env={"TIDALITE_ON_SYNC_FAILURE": "refuse"}).start()
    refused = taken = 0
    for number in range(40):
        text = os.urandom(200_000).hex()
        status, answer = server.write(f't number={number}i,text="{text}" {START_NS + number}\n')
        taken += status == 204
        if status != 204:
            assert status == 503 and re.search("large|space", str(answer)), (status, answer)
            refused += 1
    assert server.process.poll() is None
    assert taken >= 1 and server.count("t") == taken
    assert refused == 0 or server.request("GET", "/ping")[0] == 503


def test_a_clock_before_1970_is_an_error(servers, faults):
    server = servers(env=faults.env).start()
    server.write_ok(f"t v=1i {START_NS}\n")
    assert server.value("select count(*) from t where timestamp < now()") == 1
    faults.begin("clock")
    for query in ("select now()", "select count(*) from t", "insert into t (v, timestamp) values (1, now())", "select * from query_activity()"):
        status, _, body = server.request("POST", "/exec", query, {"Content-Type": "text/plain"})
        assert status == 503 and b"the system clock is before 1970" in body, (query, status, body)
    with psycopg.connect(host="127.0.0.1", port=server.pg_port, user="u", dbname="d", autocommit=True) as connection:
        try:
            connection.execute("SELECT now()")
            raise AssertionError("a time before 1970")
        except psycopg.OperationalError as error:
            assert "before 1970" in str(error)
    assert server.request("GET", "/ping")[0] == 204
    assert server.metrics()["tidalite_live"] == 1
    faults.end("clock")
    assert server.value("select count(*) from t where timestamp < now()") == 1
    server.stop()
    faults.begin("clock")
    server.spawn()
    assert server.process.wait(30) == 1
    assert "the system clock is before 1970" in server.log_tail()
    assert "panicked" not in server.log.read_text(errors="replace")
