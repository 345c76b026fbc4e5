"""kill -9 in the middle of writing, many times over: what was acknowledged is there once, what was not is there whole or not at all.

A kill leaves the page cache alone, so this shows the order of commit and acknowledgement and the recovery, not the syncs:
those are shown by `test_sync_trace.py` and by the crash tests of the storage crates.
KILL_ROUNDS sets the number of rounds (10 by default), KILL_SEED repeats one.
"""

import http.client
import os
import random
import threading
import time

import pytest

ROUNDS = int(os.environ.get("KILL_ROUNDS", "10"))
CLIENTS = 3
SECOND_NS = 10**9
DAY_NS = 86400 * SECOND_NS
T0 = 1704067200 * SECOND_NS
SMALL = {"TIDALITE_STAGING_BYTES": "1MiB", "TIDALITE_WAL_BYTES": "1MiB"}
SLOW = {"TIDALITE_SYNC_DELAY_MS": "3"}


class Client(threading.Thread):
    """Posts requests one after the other until the server is gone; every row is sent once."""

    def __init__(self, port, numbers, seed):
        super().__init__()
        self.port, self.numbers, self.random = port, numbers, random.Random(seed)
        self.sent, self.acknowledged, self.refused = {}, set(), []
        self.has_sent = threading.Event()

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        while True:
            request = next(self.numbers)
            rows = self.random.choice([1, 2, 10, 100, 1000])
            # Some in order, some late, over a few days: recovery and merge meet all of them.
            lines = []
            for k in range(rows):
                ts = T0 + self.random.randrange(5 * DAY_NS) if request % 3 else T0 + request * SECOND_NS + k
                for table in ("left", "right"):
                    lines.append(f'{table},request=r{request},host=h{k % 10} id={request * 10_000 + k}i,v={k / 7},text="text {request} {k}" {ts}')
            self.sent[request] = rows
            try:
                connection.request("POST", "/write", "\n".join(lines) + "\n")
                answer = connection.getresponse()
                body = answer.read()
            except (OSError, http.client.HTTPException):
                return  # killed: nothing is known about this request
            finally:
                self.has_sent.set()
            if answer.status == 204:
                self.acknowledged.add(request)
            else:
                self.refused.append((request, answer.status, body[:300]))
                return


class Numbers:
    """Request numbers, each given once."""

    def __init__(self):
        self.lock, self.last = threading.Lock(), 0

    def __next__(self):
        with self.lock:
            self.last += 1
            return self.last


def found(server, table):
    """{request: (rows, different ids)}"""
    if not server.has_table(table):
        return {}
    rows = server.rows(f'select request, count(*), count(distinct id), min(id), max(id) from "{table}" group by request')
    for request, n, _, low, high in rows:
        number = int(request[1:])
        assert (low, high) == (number * 10_000, number * 10_000 + n - 1), f"{table}: ids of {request} are not its own"
    return {int(request[1:]): (n, different) for request, n, different, _, _ in rows}


def check(server, sent, acknowledged):
    left, right = found(server, "left"), found(server, "right")
    for request, rows in sent.items():
        whole = (rows, rows)
        if request in acknowledged:
            assert left.get(request) == whole and right.get(request) == whole, (
                f"acknowledged request {request} of {rows} rows: {left.get(request)} in left, {right.get(request)} in right")
        else:
            both = (left.get(request), right.get(request))
            assert both in [(None, None), (whole, whole)], f"request {request} of {rows} rows, not acknowledged, is torn: {both}"
    assert set(left) <= set(sent) and set(right) <= set(sent)


@pytest.mark.timeout(60 + 20 * ROUNDS)
def test_acknowledged_rows_survive_kill_9_exactly_once(servers):
    seed = int(os.environ.get("KILL_SEED") or random.randrange(2**32))
    print(f"KILL_SEED={seed}")
    r = random.Random(seed)
    server, numbers = servers(), Numbers()
    sent, acknowledged = {}, set()
    for round_number in range(ROUNDS):
        # Every other round small limits, so that checkpoints and merges are under way at the kill; and two of four slow
        # syncs, so that several are.
        server.env = [{}, SMALL, SLOW, SMALL | SLOW][round_number % 4]
        server.start()
        check(server, sent, acknowledged)
        clients = [Client(server.http_port, numbers, r.randrange(2**32)) for _ in range(CLIENTS)]
        for c in clients:
            c.start()
        assert clients[0].has_sent.wait(60)
        time.sleep(r.uniform(0, 0.3))
        server.kill()
        for c in clients:
            c.join()
            assert not c.refused, c.refused
            sent |= c.sent
            acknowledged |= c.acknowledged
        if r.random() < 0.25:  # recovery itself is killed, too
            server.spawn()
            time.sleep(r.uniform(0, 0.1))
            server.kill()
    server.start()
    check(server, sent, acknowledged)
    assert server.stop() == 0
    server.start()
    check(server, sent, acknowledged)
    print(f"{ROUNDS} rounds, {len(sent)} requests sent, {len(acknowledged)} acknowledged")
    assert len(acknowledged) >= ROUNDS


def test_an_orderly_stop_commits_what_arrived_over_tcp(servers):
    server = servers().start()
    with server.tcp() as s:
        for k in range(1000):
            s.sendall(b"t,host=a k=%di %d\n" % (k, T0 + k))
        server.wait_count("t", 1000)
        s.sendall(b"t,host=a k=1000i %d\n" % (T0 + 1000))
    # Closed by us: everything sent is committed soon, and survives a kill once it is visible.
    server.wait_count("t", 1001)
    server.kill()
    server.start()
    server.wait_count("t", 1001)
    with server.tcp() as s:
        s.sendall(b"".join(b"t,host=b k=%di %d\n" % (k, T0 + k) for k in range(5000)))
        s.shutdown(1)
        while s.recv(4096):
            pass
    assert server.stop() == 0
    server.start()
    server.wait_count("t", 6001)


def test_a_second_process_is_kept_out(servers):
    server = servers().start()
    second = servers()
    second.data = server.data
    second.spawn()
    assert second.process.wait(30) != 0
    assert server.write("t x=1i\n") == (204, None)
    text = second.log_tail().lower()
    assert "lock" in text or "in use" in text or "another process" in text, text
