"""Statements see whole commits, and one state of all tables, whatever is written, sealed and merged meanwhile.

Every commit leaves each group of rows with a sum of zero, and two tables with the same rows. `SNAPSHOT_READS=20000` asks more.
"""

import os
import random
import threading

import psycopg

READS = int(os.environ.get("SNAPSHOT_READS") or 400)
GROUP = 10
GROUPS_MAX = 1500
BROKEN = [
    # A part of a commit.
    f"SELECT g, sum(v), count(*) FROM one GROUP BY g HAVING sum(v) <> 0 OR count(*) <> {GROUP}",
    f"SELECT count(*) FROM one HAVING count(*) % {GROUP} <> 0",
    "SELECT sum(v) FROM one HAVING sum(v) <> 0",
    "SELECT g, s FROM (SELECT g, sum(v) OVER (PARTITION BY g) AS s FROM one) w WHERE s <> 0 LIMIT 1",
    # Another state of a table read twice.
    "SELECT a.id FROM one a FULL JOIN one b USING (id) WHERE a.id IS NULL OR b.id IS NULL OR a.v <> b.v LIMIT 1",
    "SELECT 1 FROM long_sequence(1) WHERE (SELECT count(*) FROM one) <> (SELECT count(*) FROM one)",
    "(SELECT id, v FROM one EXCEPT SELECT id, v FROM one) LIMIT 1",
    # What is there once.
    "SELECT id FROM one GROUP BY id HAVING count(*) > 1",
]
"""Each gives no row, ever."""


class Writer(threading.Thread):
    """Adds, changes and removes groups of its own, and sees what it did."""

    def __init__(self, server, number, done):
        super().__init__(name=f"writer {number}")
        self.server, self.number, self.done = server, number, done
        self.r = random.Random(number)
        self.own = f"g BETWEEN {number * 1_000_000} AND {number * 1_000_000 + 999_999}"
        self.problem, self.commits = None, 0

    def run(self):
        try:
            self.write()
        except Exception as error:
            self.problem = error
            self.done.set()

    def write(self):
        r, live, at = self.r, [], 0
        while not self.done.is_set():
            pick = r.random()
            if pick < 0.6 or not live:
                at += 1
                group = self.number * 1_000_000 + at
                values = [r.randrange(-1000, 1000) for _ in range(GROUP - 1)]
                rows = ", ".join(f"('2024-01-0{r.randrange(1, 8)}T{r.randrange(24):02}:00:00Z', {group}, {group * GROUP + n}, {v})" for n, v in enumerate([*values, -sum(values)]))
                self.server.exec(f"INSERT INTO one VALUES {rows}")
                live.append(group)
            elif pick < 0.75:
                self.server.exec(f"UPDATE one SET v = -v WHERE g = {r.choice(live)}")
            elif pick < 0.8:
                self.server.exec(f"UPDATE one SET v = -v WHERE g % 2 = {r.randrange(2)} AND {self.own}")
                self.server.exec(f"UPDATE one SET v = 0 WHERE g = {r.choice(live)}")
            else:
                group = live.pop(r.randrange(len(live)))
                self.server.exec(f"DELETE FROM one WHERE g = {group}")
                assert self.server.exec(f"SELECT count(*) FROM one WHERE g = {group}")["dataset"] == [[0]]
            if len(live) > GROUPS_MAX:
                self.server.exec(f"DELETE FROM one WHERE g IN ({', '.join(map(str, live[::2]))})")
                live = live[1::2]
            if r.random() < 0.02:
                self.server.exec("ALTER TABLE one SEAL")
            self.commits += 1
        expected = len(live) * GROUP
        found = self.server.exec(f"SELECT count(*) FROM one WHERE {self.own}")["dataset"][0][0]
        assert found == expected, f"{found} rows of writer {self.number}, which left {expected}"


def test_statements_see_whole_commits_and_one_state(servers):
    server = servers().start()
    server.exec("CREATE TABLE one (ts TIMESTAMP, g LONG, id LONG, v LONG) TIMESTAMP(ts) PARTITION BY DAY")
    done = threading.Event()
    writers = [Writer(server, number, done) for number in (1, 2)]
    for writer in writers:
        writer.start()
    r, seen = random.Random(7), 0
    try:
        with psycopg.connect(host="127.0.0.1", port=server.pg_port, user="u", dbname="d", autocommit=True) as connection:
            while seen < READS or min(writer.commits for writer in writers) < 50:
                statement = r.choice(BROKEN)
                found = connection.execute(statement).fetchall()
                assert found == [], f"read {seen}: {statement}\n{found[:5]}"
                seen += 1
                if done.is_set():
                    break
    finally:
        done.set()
        for writer in writers:
            writer.join()
    assert [writer.problem for writer in writers] == [None, None]
    assert server.stop() == 0
