"""kill -9 in the middle of mixed work: rows over HTTP and TCP, tables made, changed, emptied and dropped by SQL.

Rows over HTTP are there once when acknowledged. Of rows over TCP, which nobody acknowledges, a connection's first ones are
there, each once, and at least those that a query saw. A table that one client changes by statements is as after its last
acknowledged statement or as after the one under way at the kill.
KILL_ROUNDS sets the number of rounds (5 by default), KILL_SEED repeats one.
"""

import copy
import http.client
import json
import os
import random
import threading
import time
import urllib.parse

import pytest
from test_kill import SMALL, T0, Client, Numbers, check

ROUNDS = int(os.environ.get("KILL_ROUNDS", "5"))
DAY_NS = 86400 * 10**9
DAY0 = 1704067200


class TcpClient(threading.Thread):
    """Sends numbered rows until the connection breaks; every connection has a tag of its own."""

    def __init__(self, server, name, seed):
        super().__init__()
        self.server, self.name_, self.random, self.sent = server, name, random.Random(seed), 0

    def run(self):
        try:
            with self.server.tcp() as s:
                while True:
                    rows = [self.row(self.sent + k) for k in range(self.random.choice([1, 5, 50, 500]))]
                    self.sent += len(rows)
                    s.sendall(b"".join(rows))
                    time.sleep(self.random.choice([0, 0, 0.001, 0.01]))
        except OSError:
            pass  # killed

    def row(self, n):
        ts = T0 + (n * 10**6 if n % 4 else self.random.randrange(3 * DAY_NS))
        return b"stream,connection=%s n=%di %d\n" % (self.name_.encode(), n, ts)


class Watcher(threading.Thread):
    """Counts what queries see of the streams: that much is durable."""

    def __init__(self, server):
        super().__init__()
        self.server, self.seen = server, {}

    def run(self):
        try:
            while True:
                self.seen |= stream(self.server)
                time.sleep(0.01)
        except (OSError, http.client.HTTPException, json.JSONDecodeError):
            pass  # killed


def stream(server):
    """{connection: rows}"""
    if not server.has_table("stream"):
        return {}
    found = {}
    for name, rows, different, low, high in server.rows("select connection, count(*), count(distinct n), min(n), max(n) from stream group by connection"):
        assert (rows, low, high) == (different, 0, rows - 1), f"rows of {name} are not its first ones: {rows} rows, {different} different, {low} to {high}"
        found[name] = rows
    return found


class Owner(threading.Thread):
    """One table changed by one statement after another, and what it should be after each."""

    def __init__(self, server, table, columns, rows, seed):
        super().__init__()
        self.port, self.table, self.random = server.http_port, table, random.Random(seed)
        # What is known: None for no table, else the columns beside ts and id, and {id: [day, values…]}.
        self.state, self.next_state = (columns, rows), None
        self.statements, self.refused = 0, []

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        while True:
            sql, self.next_state = self.draw()
            try:
                connection.request("GET", "/exec?" + urllib.parse.urlencode({"query": sql}))
                answer = connection.getresponse()
                body = answer.read()
            except (OSError, http.client.HTTPException):
                return  # killed: done or not
            if answer.status != 200:
                self.refused.append((sql, answer.status, body[:300]))
                return
            self.statements += 1
            self.state, self.next_state = self.next_state, None

    def draw(self):
        columns, rows = copy.deepcopy(self.state)
        name, r = self.table, self.random
        if columns is None:
            return f'create table "{name}" (id long, ts timestamp) timestamp(ts) partition by day', ([], {})
        choice = r.random()
        if choice < 0.5:
            first = max(rows, default=0) + 1
            new = {first + k: [r.randrange(5), *(r.randrange(100) for _ in columns)] for k in range(r.choice([1, 3, 20]))}
            values = ", ".join(f"({id}, '{self.day(v[0])}'{''.join(f', {x}' for x in v[1:])})" for id, v in new.items())
            names = "".join(f', "{c}"' for c in columns)
            return f'insert into "{name}" (id, ts{names}) values {values}', (columns, rows | new)
        if choice < 0.58 and len(columns) < 6:
            new = f"c{r.randrange(10**9)}"
            return f'alter table "{name}" add column "{new}" long', (columns + [new], {id: [*v, None] for id, v in rows.items()})
        if choice < 0.63 and columns:
            at = r.randrange(len(columns))
            return f'alter table "{name}" drop column "{columns[at]}"', (columns[:at] + columns[at + 1:], {id: v[: at + 1] + v[at + 2:] for id, v in rows.items()})
        if choice < 0.67 and columns:
            at, new = r.randrange(len(columns)), f"r{r.randrange(10**9)}"
            return f'alter table "{name}" rename column "{columns[at]}" to "{new}"', (columns[:at] + [new] + columns[at + 1:], rows)
        if choice < 0.72 and rows:
            day = r.choice([v[0] for v in rows.values()])
            return f"alter table \"{name}\" drop partition list '{self.day(day)[:10]}'", (columns, {id: v for id, v in rows.items() if v[0] != day})
        if choice < 0.75:
            return f'truncate table "{name}"', (columns, {})
        if choice < 0.78:
            return f'drop table "{name}"', (None, {})
        return self.more(columns, rows)

    def more(self, columns, rows):
        """Rows changed or deleted by a predicate."""
        name, r, m = self.table, self.random, self.random.choice([2, 3, 7])
        if columns and r.random() < 0.6:
            at = r.randrange(len(columns))
            changed = {id: [*v[: at + 1], (v[at + 1] or 0) + 1, *v[at + 2:]] if id % m == 1 else v for id, v in rows.items()}
            return f'update "{name}" set "{columns[at]}" = coalesce("{columns[at]}", 0) + 1 where id % {m} = 1', (columns, changed)
        return f'delete from "{name}" where id % {m} = 0', (columns, {id: v for id, v in rows.items() if id % m})

    @staticmethod
    def day(n):
        return time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(DAY0 + n * 86400 + 3600))


def content(server, table):
    if not server.has_table(table):
        return None, {}
    answer = server.exec(f'select * from "{table}"')
    names = [c["name"] for c in answer["columns"]]
    columns = [n for n in names if n not in ("id", "ts")]
    places = [names.index(c) for c in columns]
    rows = {}
    for row in answer["dataset"]:
        id, ts = row[names.index("id")], row[names.index("ts")]
        assert id not in rows, f"row {id} of {table} is there twice"
        days = [n for n in range(5) if Owner.day(n) == ts]
        rows[id] = [days[0] if days else ts, *(row[p] for p in places)]
    return columns, rows


@pytest.mark.timeout(60 + 20 * ROUNDS)
def test_mixed_work_survives_kill_9(servers):
    seed = int(os.environ.get("KILL_SEED") or random.randrange(2**32))
    print(f"KILL_SEED={seed}")
    r = random.Random(seed)
    server, numbers = servers(), Numbers()
    sent, acknowledged, streams, owned, statements = {}, set(), {}, {f"own{k}": (None, {}) for k in range(2)}, 0
    for round_number in range(ROUNDS):
        server.env = SMALL if round_number % 2 else {}
        server.start()
        check(server, sent, acknowledged)
        clients = [Client(server.http_port, numbers, r.randrange(2**32)) for _ in range(2)]
        tcp = [TcpClient(server, f"s{round_number}_{k}", r.randrange(2**32)) for k in range(2)]
        owners = [Owner(server, name, *owned[name], r.randrange(2**32)) for name in owned]
        watcher = Watcher(server)
        threads = [*clients, *tcp, *owners, watcher]
        for t in threads:
            t.start()
        assert clients[0].has_sent.wait(60)
        time.sleep(r.uniform(0, 0.4))
        server.kill()
        for t in threads:
            t.join()
        if r.random() < 0.25:  # recovery itself is killed, too
            server.spawn()
            time.sleep(r.uniform(0, 0.1))
            server.kill()
        for c in clients:
            assert not c.refused, c.refused
            sent |= c.sent
            acknowledged |= c.acknowledged
        server.start()
        seen = stream(server)
        for name, rows in {**streams, **watcher.seen}.items():
            assert seen.get(name, 0) >= rows, f"{name} had {rows} rows and now {seen.get(name)}"
        for t in tcp:
            assert seen.get(t.name_, 0) <= t.sent
        streams = seen
        for o in owners:
            assert not o.refused, o.refused
            found = content(server, o.table)
            assert found in (o.state, o.next_state), f"{o.table} is {found} instead of {o.state} or {o.next_state}"
            owned[o.table] = found
            statements += o.statements
        check(server, sent, acknowledged)
        server.kill()
    server.start()
    check(server, sent, acknowledged)
    assert stream(server) == streams
    assert {name: content(server, name) for name in owned} == owned
    print(f"{ROUNDS} rounds, {len(acknowledged)} of {len(sent)} requests acknowledged, {sum(streams.values())} rows by TCP, {statements} statements")
    assert len(acknowledged) >= ROUNDS and statements >= ROUNDS
