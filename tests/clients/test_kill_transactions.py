"""kill -9 during transactions: each transaction is then complete or absent, and acknowledged ones are complete.

`KILL_ROUNDS` sets the number of rounds (5 by default), `KILL_SEED` repeats one.
"""

import os
import random
import threading
import time

import psycopg
import pytest
from test_kill import SMALL

ROUNDS = int(os.environ.get("KILL_ROUNDS", "5"))
TABLES = 3


class Owner(threading.Thread):
    """Changes its own tables in consecutive transactions and records the expected rows after each."""

    def __init__(self, server, number, state, seed):
        super().__init__()
        self.port, self.number, self.random = server.pg_port, number, random.Random(seed)
        # {table: {k: v}}, and how that is after the transaction under way.
        self.state, self.next_state = state, None
        self.transactions, self.problem = 0, None

    def name(self, table):
        return f"owned{self.number}_{table}"

    def run(self):
        try:
            with psycopg.connect(host="127.0.0.1", port=self.port, user="u", dbname="d", autocommit=True) as connection:
                while True:
                    self.transaction(connection)
        except psycopg.OperationalError:
            pass  # killed: committed or not
        except Exception as problem:
            self.problem = problem

    def transaction(self, connection):
        r, state = self.random, {table: dict(rows) for table, rows in self.state.items()}
        connection.execute("BEGIN")
        for _ in range(r.choice([1, 2, 3, 8])):
            table = r.randrange(TABLES)
            name = self.name(table)
            if table not in state:
                connection.execute(f"CREATE TABLE {name} (ts TIMESTAMP, k LONG, s SYMBOL, v LONG) TIMESTAMP(ts) PARTITION BY DAY")
                state[table] = {}
            rows, pick, m = state[table], r.random(), r.choice([2, 3, 5])
            if pick < 0.55:
                first = max((k for rows in state.values() for k in rows), default=0) + 1
                new = {first + n: r.randrange(1000) for n in range(r.choice([1, 3, 50]))}
                values = ", ".join(f"('2024-01-0{1 + k % 5}', {k}, 's{v}', {v})" for k, v in new.items())
                connection.execute(f"INSERT INTO {name} VALUES {values}")
                rows.update(new)
            elif pick < 0.75:
                connection.execute(f"UPDATE {name} SET v = v + 1, s = 's' || (v + 1) WHERE k % {m} = 1")
                rows.update({k: v + 1 for k, v in rows.items() if k % m == 1})
            elif pick < 0.9:
                connection.execute(f"DELETE FROM {name} WHERE k % {m} = 0")
                state[table] = {k: v for k, v in rows.items() if k % m}
            elif pick < 0.95:
                connection.execute(f"TRUNCATE TABLE {name}")
                state[table] = {}
            else:
                connection.execute(f"DROP TABLE {name}")
                del state[table]
        if r.random() < 0.15:
            connection.execute("ROLLBACK")
            return
        self.next_state = state
        connection.execute("COMMIT")
        self.state, self.next_state = state, None
        self.transactions += 1


def content(server, owner):
    state = {}
    for table in range(TABLES):
        if server.has_table(owner.name(table)):
            rows = server.rows(f"SELECT k, s, v FROM {owner.name(table)}")
            assert all(s == f"s{v}" for _, s, v in rows)
            state[table] = {k: v for k, _, v in rows}
            assert len(state[table]) == len(rows)
    return state


@pytest.mark.timeout(60 + 20 * ROUNDS)
def test_transactions_survive_kill_9_whole_or_not_at_all(servers):
    seed = int(os.environ.get("KILL_SEED") or random.randrange(2**32))
    print(f"KILL_SEED={seed}")
    r = random.Random(seed)
    server, states, transactions = servers(), {number: {} for number in range(2)}, 0
    for round_number in range(ROUNDS):
        server.env = SMALL if round_number % 2 else {}
        server.start()
        owners = [Owner(server, number, state, r.randrange(2**32)) for number, state in states.items()]
        for owner in owners:
            owner.start()
        time.sleep(r.uniform(0.2, 0.6))
        server.kill()
        for owner in owners:
            owner.join()
        server.start()
        for owner in owners:
            assert owner.problem is None, owner.problem
            found = content(server, owner)
            assert found in (owner.state, owner.next_state), f"{found} instead of {owner.state} or {owner.next_state}"
            states[owner.number] = found
            transactions += owner.transactions
        server.kill()
    print(f"{ROUNDS} rounds, {transactions} transactions")
    assert transactions >= ROUNDS
