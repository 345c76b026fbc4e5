"""Health endpoints, slow statements, statement statistics, and the actions after a failed sync."""

import json
import os
import re
import subprocess
import time

import psycopg
import pytest
from server import SqlError, eventually

START_NS = 1_704_067_200_000_000_000
STUCK = {"TIDALITE_HEALTH_WATCHDOG_INTERVAL": "100ms"}


def health(server, path="/status"):
    status, _, body = server.request("GET", path)
    return status, body.decode()


def at_health_port(server, path):
    import http.client
    connection = http.client.HTTPConnection("127.0.0.1", server.health_port, timeout=30)
    connection.request("GET", path)
    answer = connection.getresponse()
    text = answer.status, answer.read().decode()
    connection.close()
    return text


def write_until_refused(server, first=0, most=10_000):
    """Returns the numbers of the acknowledged rows; one request per row."""
    taken = []
    for number in range(first, first + most):
        try:
            status, _ = server.write(f"t number={number}i {START_NS + number}\n")
        except OSError:
            return taken
        if status != 204:
            return taken
        taken.append(number)
    return taken


def numbers(server):
    return [row[0] for row in server.rows("select number from t order by number")]


def test_a_healthy_server_says_so(server):
    for path in ("/health", "/health/live", "/health/ready", "/health/writable", "/status", "/ready"):
        assert health(server, path)[0] == 200, path
        if path != "/ready":
            assert at_health_port(server, path)[0] == 200, path
    assert health(server, "/health/live")[1] == "live\n"
    answer = json.loads(health(server, "/health")[1])
    assert answer["status"] == "pass" and [c["name"] for c in answer["checks"]] == ["live", "ready", "writable"]
    metrics = server.metrics()
    assert (metrics["tidalite_live"], metrics["tidalite_ready"], metrics["tidalite_writable"]) == (1, 1, 1)


def test_a_failed_sync_is_told_while_queries_are_answered(servers, faults):
    server = servers(env={**faults.env, "TIDALITE_ON_SYNC_FAILURE": "refuse"}).start()
    before = write_until_refused(server, 0, 10)
    faults.begin("sync")
    assert server.write(f"t number=10i {START_NS}\n")[0] == 503
    eventually(lambda: health(server, "/ping")[0] == 503, 5, "the failure")
    faults.end("sync")
    # The failure is permanent, because the content of the file is unknown.
    assert write_until_refused(server, 11, 1) == []
    for path in ("/ping", "/health", "/health/writable", "/status"):
        status, text = health(server, path)
        assert status == 503 and "the log failed" in text and "sync" in text, (path, text)
    assert at_health_port(server, "/status")[0] == 503
    assert health(server, "/health/live")[0] == 200 and health(server, "/health/ready")[0] == 200
    assert server.metrics()["tidalite_writable"] == 0
    assert numbers(server) == before == list(range(10))
    server.stop()
    server.start()
    assert set(before) <= set(numbers(server)) <= set(before) | {10}
    server.write_ok(f"t number=12i {START_NS}\n")


def test_a_failed_sync_ends_the_server_for_its_supervisor(servers, faults):
    server = servers(env={**faults.env, "TIDALITE_ON_SYNC_FAILURE": "exit"}).start()
    before = write_until_refused(server, 0, 10)
    faults.begin("sync")
    assert write_until_refused(server, 10, 1) == []
    assert server.process.wait(30) == 3
    faults.end("sync")
    server.start()
    assert set(before) <= set(numbers(server)) <= set(before) | {10}


def test_after_a_failed_sync_the_server_goes_on_by_itself(servers, faults):
    """After each of three short failures the same process accepts writes within 20 seconds and has every acknowledged row."""
    server = servers(env=faults.env).start()
    pid, acknowledged, tried = server.pid(), [], 0
    for _ in range(3):
        more = write_until_refused(server, tried, 20)
        assert len(more) == 20
        acknowledged += more
        tried += 20
        faults.begin("sync")
        assert write_until_refused(server, tried, 1) == []
        tried += 1
        faults.end("sync")
        begun = time.monotonic()

        def writes_again():
            nonlocal tried
            try:
                status, _ = server.write(f"t number={tried}i {START_NS + tried}\n")
            except OSError:
                return False
            tried += 1
            if status == 204:
                acknowledged.append(tried - 1)
            return status == 204

        eventually(writes_again, 30, "writes after a failed sync")
        assert time.monotonic() - begun < 20
        assert server.process.poll() is None and server.pid() == pid
        found = numbers(server)
        assert set(acknowledged) <= set(found) <= set(range(tried)), set(acknowledged) - set(found)
    assert len(acknowledged) == 63
    assert health(server, "/ping")[0] == 204


def test_a_disk_that_stays_broken_ends_the_server_after_five_tries(servers, faults):
    server = servers(env={**faults.env, "TIDALITE_RESTARTS": f"4:{int(time.time())}"}).start()
    faults.begin("sync")
    assert write_until_refused(server, 0, 1) == []
    assert server.process.wait(60) == 3
    assert "again and again" in server.log_tail()


def test_a_full_disk_is_told_and_its_end_is_noticed(servers, tmp_path):
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={192 << 20}", "tmpfs", str(place)], capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    try:
        server = servers(env={**STUCK, "TIDALITE_STAGING_BYTES": "64MiB"})
        server.data = place / "data"
        server.start()
        server.write_ok(f"t number=0i {START_NS}\n")

        def fill():
            free = os.statvfs(place)
            with open(place / "ballast", "ab") as ballast:
                try:
                    os.posix_fallocate(ballast.fileno(), os.fstat(ballast.fileno()).st_size, max(4096, free.f_bavail * free.f_frsize - (1 << 20)))
                except OSError:
                    pass
            text = os.urandom(500_000).hex()
            return server.write(f't text="{text}" {START_NS}\n')[0] == 503

        eventually(fill, 60, "a full disk")
        for path in ("/ping", "/health", "/health/writable", "/status"):
            status, text = health(server, path)
            assert status == 503 and "no room for the log" in text and "pace" in text, (path, text)
        assert health(server, "/health/ready")[0] == 200 and server.metrics()["tidalite_writable"] == 0
        assert server.count("t") >= 1
        (place / "ballast").unlink()
        # No client writes in the meantime.
        eventually(lambda: health(server, "/ping")[0] == 204, 10, "an end of the alarm")
        server.write_ok(f"t number=1i {START_NS}\n")
        server.stop()
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def test_statements_that_do_not_progress_are_told(servers):
    """While the planners are busy the server is not ready; afterwards the server is ready again."""
    server = servers(env={**STUCK, "TIDALITE_HEALTH_WATCHDOG_DEADLINE": "300ms", "TIDALITE_QUERY_THREADS": "1", "TIDALITE_QUERY_TIMEOUT": "8s"}).start()
    server.write_ok(f"t v=1i {START_NS}\n")
    assert health(server, "/health/ready")[0] == 200
    # Constants are computed by the planner. A longer text is planned on other threads than the statement of the watchdog.
    slow = b"SELECT levenshtein(repeat('a', 15000), repeat('b', 15000))"
    sessions = [psycopg.connect(host="127.0.0.1", port=server.pg_port, user="u", dbname="d", autocommit=True) for _ in range(20)]
    for session in sessions:
        session.pgconn.send_query(slow)
    eventually(lambda: health(server, "/health/ready")[0] == 503, 20, "an alarm")
    status, text = health(server, "/status")
    assert (status, "statements do not progress" in text) == (503, True) or health(server, "/health/ready")[0] == 200, text
    for session in sessions:
        session.close()
    eventually(lambda: health(server, "/health/ready")[0] == 200, 60, "an end of the alarm")
    assert server.metrics()["tidalite_watchdog_seconds"] > 0
    # Statements of the watchdog are not listed.
    def listed():
        try:
            return server.rows("select query from query_activity()")
        except SqlError:
            return None

    assert not [row for row in eventually(listed, 60, "a list") if "watchdog" in row[0]]


def test_statistics_are_by_normalised_text(servers):
    """At most 1,000 of 1,500 texts are kept; 40 calls of one text with different constants are one entry."""
    server = servers().start()
    server.write_ok("".join(f"t,k=a v={n}i {START_NS + n}\n" for n in range(100)))
    for n in range(40):
        assert len(server.rows(f"select v from t where v < {n} and k = 'a'")) == n
    for n in range(3):
        with pytest.raises(Exception, match="nosuch"):
            server.exec(f"select nosuch{n} from t where v = {n}")
    answer = server.exec("select calls, errors, rows, bytes, total_ms, mean_ms, max_ms from statement_statistics() where query = 'select v from t where v < ? and k = ?'")
    [[calls, errors, rows, size, total, mean, longest]] = answer["dataset"]
    assert (calls, errors, rows) == (40, 0, sum(range(40))) and size >= 8 * rows
    assert 0 < mean <= longest <= total and abs(mean * 40 - total) < 0.01
    assert server.rows("select calls, errors from statement_statistics() where query like 'select nosuch1 from t%'") == [[1, 1]]
    server.exec("insert into t (k, v, timestamp) values ('b', 1, '2024-01-02'), ('c', 2, '2024-01-02')")
    assert server.rows("select calls, rows from statement_statistics() where query = 'insert into t (k, v, timestamp) values (?)'") == [[1, 2]]
    for n in range(1500):
        server.exec(f"select 1 as c{n}")
    assert 900 < server.value("select count(*) from statement_statistics()") <= 1000
    assert server.value("select calls from statement_statistics() where query like 'select v from t where v <%'") == 40


def test_slow_statements_are_logged(servers):
    server = servers(env={"TIDALITE_LOG_SLOW_STATEMENT": "50ms"}).start()
    server.exec("select 1")
    server.exec("select count(*) from long_sequence(100000) a, long_sequence(300) b where a.x + b.x = " + "1" * 10)
    eventually(lambda: server.metrics()["tidalite_slow_statements_total"] == 1, 10, "a slow statement")
    [line] = eventually(lambda: [line for line in server.log_tail().splitlines() if "slow statement" in line], 10, "its line")
    assert "long_sequence(100000)" in line and int(re.search(r"took_ms=(\d+)", re.sub(r"\x1b\[\d*m", "", line))[1]) >= 50
