"""Transactions over the PostgreSQL protocol: atomic, isolated, rolled back by errors and by disconnects.

Expected values are PostgreSQL 15's, unless a test says that Tidalite has a rule of its own. `TRANSACTION_STEPS` sets how long the
random schedules are.
"""

import asyncio
import datetime as dt
import os
import random
import socket
import struct
import threading

import asyncpg
import psycopg
import pytest
from server import eventually

STEPS = int(os.environ.get("TRANSACTION_STEPS") or 400)
DAY = "2024-01-0"


def connect(server, **options):
    return psycopg.connect(host="127.0.0.1", port=server.pg_port, user="u", dbname="d", autocommit=True, **options)


@pytest.fixture
def filled(server, table):
    with connect(server) as c:
        c.execute(f"CREATE TABLE {table} (ts TIMESTAMP, k LONG, s SYMBOL, v LONG) TIMESTAMP(ts) PARTITION BY DAY")
        c.execute(f"INSERT INTO {table} VALUES ('{DAY}1', 1, 'a', 10), ('{DAY}2', 2, 'b', 20), ('{DAY}3', 3, NULL, 30)")
    return table


def run(connection, sql):
    """By the simple protocol: (SQLSTATE or the last tag or rows, status of the transaction)."""
    result = connection.pgconn.exec_(sql.encode())
    status = {0: "I", 2: "T", 3: "E"}[connection.pgconn.transaction_status]
    error = result.error_field(psycopg.pq.DiagnosticField.SQLSTATE)
    if error:
        return error.decode(), status
    if not result.nfields:
        return (result.command_status or b"").decode(), status
    cell = lambda row, column: None if result.get_value(row, column) is None else result.get_value(row, column).decode()
    return [tuple(cell(row, column) for column in range(result.nfields)) for row in range(result.ntuples)], status


def notices(connection):
    seen = []
    connection.add_notice_handler(lambda diagnostic: seen.append(diagnostic.sqlstate))
    return seen


def keys(connection, table):
    return [int(k) for (k,) in run(connection, f"SELECT k FROM {table} ORDER BY k")[0]]


SCRIPTS = {
    "commit": [("BEGIN", "BEGIN", "T"), ("INSERT INTO t VALUES ('2024-01-05', 5, 'e', 50)", "INSERT 0 1", "T"), ("COMMIT", "COMMIT", "I"), ("SELECT count(*) FROM t", [("4",)], "I")],
    "rollback": [("BEGIN", "BEGIN", "T"), ("DELETE FROM t", "DELETE 3", "T"), ("SELECT count(*) FROM t", [("0",)], "T"), ("ROLLBACK", "ROLLBACK", "I"), ("SELECT count(*) FROM t", [("3",)], "I")],
    "own rows": [
        ("BEGIN", "BEGIN", "T"),
        ("INSERT INTO t VALUES ('2024-01-05', 5, 'new', 50)", "INSERT 0 1", "T"),
        ("UPDATE t SET v = v + 1 WHERE k IN (2, 5)", "UPDATE 2", "T"),
        ("SELECT k, s, v FROM t WHERE s IN ('new', 'b') ORDER BY k", [("2", "b", "21"), ("5", "new", "51")], "T"),
        ("DELETE FROM t WHERE k IN (1, 5)", "DELETE 2", "T"),
        ("SELECT k, v FROM t ORDER BY k", [("2", "21"), ("3", "30")], "T"),
        ("COMMIT", "COMMIT", "I"),
        ("SELECT k, v FROM t ORDER BY k", [("2", "21"), ("3", "30")], "I"),
    ],
    "errors abort": [
        ("BEGIN", "BEGIN", "T"), ("INSERT INTO t VALUES ('2024-01-05', 5, 'e', 50)", "INSERT 0 1", "T"), ("SELECT * FROM nosuch", "42P01", "E"),
        ("SELECT 1", "25P02", "E"), ("INSERT INTO t VALUES ('2024-01-06', 6, 'e', 50)", "25P02", "E"), ("SAVEPOINT a", "25P02", "E"),
        ("BEGIN", "25P02", "E"), ("COMMIT", "ROLLBACK", "I"), ("SELECT count(*) FROM t", [("3",)], "I"),
    ],
    "savepoints": [
        ("BEGIN", "BEGIN", "T"), ("SAVEPOINT a", "SAVEPOINT", "T"), ("INSERT INTO t VALUES ('2024-01-05', 5, 'e', 50)", "INSERT 0 1", "T"),
        ("SAVEPOINT b", "SAVEPOINT", "T"), ("DELETE FROM t", "DELETE 4", "T"), ("SELECT 1/0", "22012", "E"), ("ROLLBACK TO b", "ROLLBACK", "T"),
        ("SELECT count(*) FROM t", [("4",)], "T"), ("UPDATE t SET v = 0 WHERE k = 1", "UPDATE 1", "T"), ("ROLLBACK TO SAVEPOINT b", "ROLLBACK", "T"),
        ("SELECT v FROM t WHERE k = 1", [("10",)], "T"), ("RELEASE a", "RELEASE", "T"), ("ROLLBACK TO b", "3B001", "E"), ("ROLLBACK", "ROLLBACK", "I"),
        ("SELECT count(*) FROM t", [("3",)], "I"),
    ],
    "savepoint of the same name": [
        ("BEGIN", "BEGIN", "T"), ("SAVEPOINT a", "SAVEPOINT", "T"), ("DELETE FROM t WHERE k = 1", "DELETE 1", "T"), ("SAVEPOINT a", "SAVEPOINT", "T"),
        ("DELETE FROM t WHERE k = 2", "DELETE 1", "T"), ("ROLLBACK TO a", "ROLLBACK", "T"), ("SELECT count(*) FROM t", [("2",)], "T"),
        ("RELEASE SAVEPOINT a", "RELEASE", "T"), ("ROLLBACK TO a", "ROLLBACK", "T"), ("SELECT count(*) FROM t", [("3",)], "T"), ("COMMIT", "COMMIT", "I"),
    ],
    "savepoints outside of blocks": [("SAVEPOINT a", "25P01", "I"), ("ROLLBACK TO a", "25P01", "I"), ("RELEASE a", "25P01", "I"), ("COMMIT AND CHAIN", "25P01", "I")],
    "chain": [
        ("BEGIN READ ONLY", "BEGIN", "T"), ("COMMIT AND CHAIN", "COMMIT", "T"), ("SHOW transaction_read_only", [("on",)], "T"),
        ("ROLLBACK AND CHAIN", "ROLLBACK", "T"), ("DELETE FROM t", "25006", "E"), ("ROLLBACK AND NO CHAIN", "ROLLBACK", "I"),
    ],
    "several statements of one message": [
        ("INSERT INTO t VALUES ('2024-01-05', 5, 'e', 50); SELECT 1/0", "22012", "I"), ("SELECT count(*) FROM t", [("3",)], "I"),
        ("INSERT INTO t VALUES ('2024-01-05', 5, 'e', 50); DELETE FROM t WHERE k = 1; SELECT count(*) FROM t", [("3",)], "I"), ("SELECT count(*) FROM t", [("3",)], "I"),
        ("DELETE FROM t WHERE k = 2; COMMIT; DELETE FROM t; SELECT 1/0", "22012", "I"), ("SELECT count(*) FROM t", [("2",)], "I"),
        ("BEGIN; DELETE FROM t; SELECT 1/0; COMMIT", "22012", "E"), ("ROLLBACK", "ROLLBACK", "I"), ("SELECT count(*) FROM t", [("2",)], "I"),
        ("DELETE FROM t; ROLLBACK; SELECT count(*) FROM t", [("2",)], "I"), ("SAVEPOINT a; SELECT 1", "25P01", "I"),
        ("DELETE FROM t WHERE k = 3; BEGIN; DELETE FROM t", "DELETE 1", "T"), ("ROLLBACK", "ROLLBACK", "I"), ("SELECT count(*) FROM t", [("2",)], "I"),
    ],
    "read only": [
        ("BEGIN READ ONLY", "BEGIN", "T"), ("SELECT count(*) FROM t", [("3",)], "T"), ("INSERT INTO t VALUES ('2024-01-05', 5, 'e', 50)", "25006", "E"), ("ROLLBACK", "ROLLBACK", "I"),
        ("START TRANSACTION READ ONLY", "START TRANSACTION", "T"), ("UPDATE t SET v = 1", "25006", "E"), ("ROLLBACK", "ROLLBACK", "I"),
        ("BEGIN", "BEGIN", "T"), ("DELETE FROM t WHERE k = 1", "DELETE 1", "T"), ("SET TRANSACTION READ ONLY", "SET", "T"), ("DELETE FROM t", "25006", "E"), ("ROLLBACK", "ROLLBACK", "I"),
        ("BEGIN READ ONLY", "BEGIN", "T"), ("SET TRANSACTION READ WRITE", "SET", "T"), ("DELETE FROM t WHERE k = 1", "DELETE 1", "T"), ("ROLLBACK", "ROLLBACK", "I"),
        ("BEGIN READ ONLY", "BEGIN", "T"), ("SELECT 1", [("1",)], "T"), ("SET TRANSACTION READ WRITE", "25001", "E"), ("ROLLBACK", "ROLLBACK", "I"),
        ("SET default_transaction_read_only = on", "SET", "I"), ("DELETE FROM t", "25006", "I"), ("SHOW transaction_read_only", [("on",)], "I"),
        ("BEGIN READ WRITE", "BEGIN", "T"), ("DELETE FROM t WHERE k = 1", "DELETE 1", "T"), ("ROLLBACK", "ROLLBACK", "I"),
        ("SET default_transaction_read_only TO DEFAULT", "SET", "I"), ("SHOW default_transaction_read_only", [("off",)], "I"),
        ("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", "SET", "I"), ("DELETE FROM t; SELECT 1", "25006", "I"), ("SHOW default_transaction_read_only", [("on",)], "I"),
        ("SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE", "SET", "I"), ("SET default_transaction_read_only = maybe", "22023", "I"),
    ],
    "read only since a savepoint": [
        ("BEGIN", "BEGIN", "T"), ("SAVEPOINT a", "SAVEPOINT", "T"), ("SET TRANSACTION READ ONLY", "SET", "T"), ("DELETE FROM t", "25006", "E"), ("ROLLBACK TO a", "ROLLBACK", "T"), ("SHOW transaction_read_only", [("off",)], "T"),
        ("DELETE FROM t WHERE k = 1", "DELETE 1", "T"), ("BEGIN READ ONLY", "BEGIN", "T"), ("RELEASE a", "RELEASE", "T"), ("DELETE FROM t WHERE k = 2", "DELETE 1", "T"), ("ROLLBACK", "ROLLBACK", "I"),
        ("SET application_name = 'x'", "SET", "I"), ("BEGIN", "BEGIN", "T"), ("SAVEPOINT a", "SAVEPOINT", "T"), ("SET application_name = 'y'", "SET", "T"), ("ROLLBACK TO a", "ROLLBACK", "T"), ("SHOW application_name", [("x",)], "T"), ("COMMIT", "COMMIT", "I"),
    ],
    "isolation": [
        ("BEGIN ISOLATION LEVEL SERIALIZABLE, READ ONLY", "BEGIN", "T"), ("SHOW transaction_isolation", [("serializable",)], "T"), ("SHOW TRANSACTION ISOLATION LEVEL", [("serializable",)], "T"), ("COMMIT", "COMMIT", "I"),
        ("BEGIN", "BEGIN", "T"), ("SET TRANSACTION ISOLATION LEVEL READ COMMITTED", "SET", "T"), ("SHOW transaction_isolation", [("read committed",)], "T"), ("SELECT 1", [("1",)], "T"),
        ("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", "25001", "E"), ("ROLLBACK", "ROLLBACK", "I"),
        ("SET default_transaction_isolation = 'serializable'", "SET", "I"), ("BEGIN", "BEGIN", "T"), ("SHOW transaction_isolation", [("serializable",)], "T"), ("COMMIT", "COMMIT", "I"),
        ("SET default_transaction_isolation = 'chaos'", "22023", "I"), ("BEGIN ISOLATION LEVEL CHAOS", "42601", "I"), ("RESET default_transaction_isolation", "RESET", "I"),
    ],
    "settings are rolled back": [
        ("SET application_name = 'one'", "SET", "I"), ("BEGIN", "BEGIN", "T"), ("SET application_name = 'two'", "SET", "T"), ("ROLLBACK", "ROLLBACK", "I"), ("SHOW application_name", [("one",)], "I"),
        ("BEGIN", "BEGIN", "T"), ("SET LOCAL application_name = 'three'", "SET", "T"), ("SHOW application_name", [("three",)], "T"), ("COMMIT", "COMMIT", "I"), ("SHOW application_name", [("one",)], "I"),
        ("BEGIN", "BEGIN", "T"), ("SET application_name = 'four'", "SET", "T"), ("COMMIT", "COMMIT", "I"), ("SHOW application_name", [("four",)], "I"),
    ],
    "tables": [
        ("BEGIN", "BEGIN", "T"), ("CREATE TABLE new_t (a int, b varchar)", "CREATE TABLE", "T"), ("INSERT INTO new_t VALUES (1, 'x'), (2, 'y')", "INSERT 0 2", "T"),
        ("ALTER TABLE new_t ADD COLUMN c int", "ALTER TABLE", "T"), ("UPDATE new_t SET c = a * 2", "UPDATE 2", "T"), ("SELECT a, b, c FROM new_t ORDER BY a", [("1", "x", "2"), ("2", "y", "4")], "T"),
        ("ROLLBACK", "ROLLBACK", "I"), ("SELECT * FROM new_t", "42P01", "I"),
        ("BEGIN", "BEGIN", "T"), ("CREATE TABLE new_t (a int)", "CREATE TABLE", "T"), ("CREATE TABLE new_t (a int)", "42P07", "E"), ("ROLLBACK", "ROLLBACK", "I"),
        ("BEGIN", "BEGIN", "T"), ("DROP TABLE t", "DROP TABLE", "T"), ("SELECT * FROM t", "42P01", "E"), ("ROLLBACK", "ROLLBACK", "I"), ("SELECT count(*) FROM t", [("3",)], "I"),
        ("BEGIN", "BEGIN", "T"), ("TRUNCATE TABLE t", "TRUNCATE TABLE", "T"), ("SELECT count(*) FROM t", [("0",)], "T"), ("ROLLBACK", "ROLLBACK", "I"), ("SELECT count(*) FROM t", [("3",)], "I"),
        ("BEGIN", "BEGIN", "T"), ("ALTER TABLE t RENAME TO t_other", "ALTER TABLE", "T"), ("SELECT count(*) FROM t_other", [("3",)], "T"), ("SELECT * FROM t", "42P01", "E"), ("ROLLBACK", "ROLLBACK", "I"),
        ("BEGIN", "BEGIN", "T"), ("CREATE VIEW v_t AS SELECT k FROM t", "CREATE VIEW", "T"), ("SELECT count(*) FROM v_t", [("3",)], "T"), ("ROLLBACK", "ROLLBACK", "I"),
        ("BEGIN", "BEGIN", "T"), ("CREATE TABLE new_t AS SELECT k FROM t WHERE k > 1", "SELECT 2", "T"), ("COMMIT", "COMMIT", "I"), ("SELECT count(*) FROM new_t", [("2",)], "I"), ("DROP TABLE new_t", "DROP TABLE", "I"),
    ],
    "words that do not belong": [("BEGIN IMMEDIATE", "42601", "I"), ("COMMIT NOW", "42601", "I"), ("SET TRANSACTION", "42601", "I"), ("COMMIT AND CHAIN NOW", "42601", "I")],
    "deferrable": [("BEGIN TRANSACTION ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE", "BEGIN", "T"), ("END", "COMMIT", "I"), ("BEGIN WORK NOT DEFERRABLE", "BEGIN", "T"), ("ABORT WORK", "ROLLBACK", "I")],
}
"""Statements, the responses of PostgreSQL 15, and the transaction status after each."""


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_as_postgresql(server, filled, name):
    with connect(server) as c:
        for step, (sql, answer, status) in enumerate(SCRIPTS[name]):
            found = run(c, own(sql, filled))
            assert found == (answer, status), f"step {step}: {sql}"
        assert keys(c, filled) is not None


def own(sql, table):
    """The statement with names of this test's own."""
    names = {"t": table, "new_t": f"{table}_new", "t_other": f"{table}_other", "v_t": f"{table}_view"}
    return " ".join("".join(names.get(w.rstrip(";"), w.rstrip(";")) + ";" * (len(w) - len(w.rstrip(";")))) for w in sql.split(" "))


def test_warnings_as_postgresql(server):
    with connect(server) as c:
        seen = notices(c)
        run(c, "COMMIT")
        run(c, "ROLLBACK")
        run(c, "BEGIN")
        run(c, "BEGIN")
        run(c, "COMMIT")
        run(c, "SET TRANSACTION READ ONLY")
        run(c, "SET LOCAL application_name = 'x'")
        assert seen == ["25P01", "25P01", "25001", "25P01", "25P01"]


def test_others_see_nothing_before_the_commit(server, filled):
    with connect(server) as a, connect(server) as b:
        run(a, "BEGIN")
        run(a, f"INSERT INTO {filled} VALUES ('{DAY}5', 5, 'only here', 50)")
        run(a, f"UPDATE {filled} SET s = 'only here, too' WHERE k = 1")
        assert keys(b, filled) == [1, 2, 3] and keys(a, filled) == [1, 2, 3, 5]
        assert run(b, f"SELECT count(*) FROM {filled} WHERE s LIKE 'only%'")[0] == [("0",)]
        # Symbols inserted by other sessions have different ids.
        run(b, f"INSERT INTO {filled} VALUES ('{DAY}6', 6, 'brought by b', 60)")
        assert run(a, f"SELECT s FROM {filled} WHERE k IN (1, 5) ORDER BY k")[0] == [("only here, too",), ("only here",)]
        run(a, "COMMIT")
        assert run(b, f"SELECT k, s FROM {filled} ORDER BY k")[0] == [("1", "only here, too"), ("2", "b"), ("3", None), ("5", "only here"), ("6", "brought by b")]


def test_one_snapshot_for_all_statements(server, filled):
    with connect(server) as a, connect(server) as b:
        run(a, "BEGIN")
        run(b, f"INSERT INTO {filled} VALUES ('{DAY}4', 4, 'd', 40)")
        # The snapshot is taken at the first statement, not at BEGIN.
        assert keys(a, filled) == [1, 2, 3, 4]
        run(b, f"INSERT INTO {filled} VALUES ('{DAY}5', 5, 'e', 50)")
        run(b, f"DELETE FROM {filled} WHERE k = 1")
        run(b, f"CREATE TABLE {filled}_later (a int)")
        run(b, f"ALTER TABLE {filled} SEAL")
        assert keys(a, filled) == [1, 2, 3, 4]
        assert run(a, f"SELECT * FROM {filled}_later") == ("42P01", "E")
        run(a, "ROLLBACK")
        assert keys(a, filled) == [2, 3, 4, 5]


def test_read_committed_sees_newer_commits_until_it_writes(server, filled):
    """A rule of Tidalite's own, which the standard allows."""
    with connect(server) as a, connect(server) as b:
        run(a, "BEGIN ISOLATION LEVEL READ COMMITTED")
        assert keys(a, filled) == [1, 2, 3]
        run(b, f"INSERT INTO {filled} VALUES ('{DAY}4', 4, 'd', 40)")
        assert keys(a, filled) == [1, 2, 3, 4]
        assert run(a, f"UPDATE {filled} SET v = 0 WHERE k = 4") == ("UPDATE 1", "T")
        run(b, f"INSERT INTO {filled} VALUES ('{DAY}5', 5, 'e', 50)")
        assert keys(a, filled) == [1, 2, 3, 4]
        run(a, "COMMIT")
        assert keys(a, filled) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("second", ["UPDATE {} SET v = v + 1 WHERE k = 1", "DELETE FROM {} WHERE k = 1", "UPDATE {} SET v = v + 1"])
@pytest.mark.parametrize("merges", [False, True], ids=["staged", "merged"])
def test_of_two_that_change_a_row_the_first_to_commit_wins(server, filled, second, merges):
    with connect(server) as a, connect(server) as b:
        run(a, "BEGIN")
        run(b, "BEGIN")
        assert run(a, f"UPDATE {filled} SET v = v + 5 WHERE k = 1") == ("UPDATE 1", "T")
        assert run(b, second.format(filled))[1] == "T"
        if merges:
            server.exec(f"ALTER TABLE {filled} SEAL")
        assert run(a, "COMMIT") == ("COMMIT", "I")
        assert run(b, "COMMIT") == ("40001", "I")
        assert run(b, f"SELECT v FROM {filled} ORDER BY k")[0] == [("15",), ("20",), ("30",)]
        # A change of a row that is already changed fails immediately.
        run(b, "BEGIN")
        keys(b, filled)
        run(a, f"UPDATE {filled} SET v = 7 WHERE k = 2")
        assert run(b, f"UPDATE {filled} SET v = 8 WHERE k = 2") == ("40001", "E")
        run(b, "ROLLBACK")


def test_rows_are_found_again_after_merges(server, filled):
    with connect(server) as a, connect(server) as b:
        run(b, f"INSERT INTO {filled} SELECT dateadd('s', x::int, '{DAY}1'), 100 + x, 's' || (x % 7), x FROM long_sequence(5000)")
        # Rows that are equal in every column.
        run(b, f"INSERT INTO {filled} VALUES ('{DAY}1', 7, 'twin', 7), ('{DAY}1', 7, 'twin', 7), ('{DAY}1', 7, 'twin', 7)")
        run(a, "BEGIN")
        assert run(a, f"UPDATE {filled} SET v = -v WHERE k % 2 = 0")[0] == "UPDATE 2501"
        assert run(a, f"DELETE FROM {filled} WHERE k = 7")[0] == "DELETE 3"
        run(a, f"INSERT INTO {filled} VALUES ('{DAY}1', 7, 'twin', 7)")
        run(b, f"INSERT INTO {filled} VALUES ('{DAY}1', 8, 'late', 8)")
        server.exec(f"ALTER TABLE {filled} SEAL")
        run(b, f"INSERT INTO {filled} VALUES ('{DAY}1', 9, 'later', 9)")
        server.exec(f"ALTER TABLE {filled} SEAL")
        assert run(a, "COMMIT") == ("COMMIT", "I")
        assert run(b, f"SELECT count(*), sum(v) FROM {filled}")[0] == [("5006", str(sum(x * (1 if x % 2 else -1) for x in range(1, 5001)) + 10 - 20 + 30 + 7 + 8 + 9))]


def test_tables_without_a_timestamp(server, table):
    with connect(server) as a, connect(server) as b:
        run(a, f"CREATE TABLE {table} (k LONG, s VARCHAR)")
        run(a, f"INSERT INTO {table} SELECT x, 'text ' || x FROM long_sequence(1000)")
        run(a, "BEGIN")
        run(a, f"UPDATE {table} SET s = 'changed' WHERE k > 990")
        server.exec(f"ALTER TABLE {table} SEAL")
        assert run(a, "COMMIT") == ("COMMIT", "I")
        assert run(b, f"SELECT count(*) FROM {table} WHERE s = 'changed'")[0] == [("10",)]


def test_serializable_is_refused_when_what_it_read_has_changed(server, filled):
    """Write skew: each reads what the other changes."""
    with connect(server) as a, connect(server) as b:
        run(b, f"CREATE TABLE {filled}_2 (n LONG)")
        for level, answer in (("REPEATABLE READ", "COMMIT"), ("SERIALIZABLE", "40001")):
            run(a, f"BEGIN ISOLATION LEVEL {level}")
            run(b, f"BEGIN ISOLATION LEVEL {level}")
            run(a, f"INSERT INTO {filled}_2 SELECT count(*) FROM {filled}")
            run(b, f"INSERT INTO {filled} SELECT '{DAY}7', count(*), NULL, 0 FROM {filled}_2")
            assert run(a, "COMMIT") == ("COMMIT", "I")
            assert run(b, "COMMIT") == (answer, "I")
        # A transaction that only reads never fails with a conflict.
        run(a, "BEGIN ISOLATION LEVEL SERIALIZABLE")
        keys(a, filled)
        run(b, f"DELETE FROM {filled} WHERE k = 1")
        assert run(a, "COMMIT") == ("COMMIT", "I")


@pytest.fixture
def upserts(server, table):
    with connect(server) as c:
        c.execute(f"CREATE TABLE {table} (ts TIMESTAMP, k SYMBOL, v LONG) TIMESTAMP(ts) PARTITION BY DAY DEDUP UPSERT KEYS(ts, k)")
        c.execute(f"INSERT INTO {table} VALUES ('{DAY}1', 'a', 1), ('{DAY}1', 'b', 2)")
    return table


def test_upserts(server, upserts):
    """Tables with upsert keys follow the same rule as outside of transactions: the last commit wins."""
    values = lambda c: run(c, f"SELECT k, v FROM {upserts} ORDER BY k")[0]
    with connect(server) as a, connect(server) as b:
        run(a, "BEGIN")
        run(a, f"INSERT INTO {upserts} VALUES ('{DAY}1', 'a', 10), ('{DAY}1', 'c', 30)")
        run(a, f"INSERT INTO {upserts} VALUES ('{DAY}1', 'a', 11)")
        assert values(a) == [("a", "11"), ("b", "2"), ("c", "30")]
        run(b, f"INSERT INTO {upserts} VALUES ('{DAY}1', 'a', 5), ('{DAY}1', 'c', 6)")
        assert run(a, "COMMIT") == ("COMMIT", "I")
        assert values(b) == [("a", "11"), ("b", "2"), ("c", "30")]
        # A DELETE of a row that replaced another row deletes both rows.
        run(a, "BEGIN")
        run(a, f"INSERT INTO {upserts} VALUES ('{DAY}1', 'a', 12)")
        run(a, f"DELETE FROM {upserts} WHERE k = 'a'")
        server.exec(f"ALTER TABLE {upserts} SEAL")
        run(a, "COMMIT")
        assert values(b) == [("b", "2"), ("c", "30")]


@pytest.mark.parametrize("clause", ["DO NOTHING", "DO UPDATE SET v = t.v + EXCLUDED.v", "DO NOTHING RETURNING k"])
@pytest.mark.parametrize("merges", [False, True], ids=["staged", "merged"])
def test_on_conflict_is_refused_when_others_brought_the_row(server, upserts, clause, merges):
    with connect(server) as a, connect(server) as b:
        for key, answer in (("new", "40001"), ("other", "COMMIT")):
            run(a, "BEGIN")
            assert run(a, f"INSERT INTO {upserts} AS t VALUES ('{DAY}1', 'new{merges}', 1) ON CONFLICT {clause}")[1] == "T"
            run(b, f"INSERT INTO {upserts} VALUES ('{DAY}1', '{key}{merges}', 2)")
            if merges:
                server.exec(f"ALTER TABLE {upserts} SEAL")
            assert run(a, "COMMIT") == (answer, "I")
            run(b, f"DELETE FROM {upserts} WHERE k = 'new{merges}'")


def test_a_client_that_leaves_has_done_nothing(server, filled):
    with connect(server) as watcher:
        left = connect(server)
        run(left, "BEGIN")
        run(left, f"DELETE FROM {filled}")
        left.close()
        # The connection is reset without a Terminate message.
        broken = connect(server)
        run(broken, "BEGIN")
        run(broken, f"INSERT INTO {filled} VALUES ('{DAY}5', 5, 'e', 50)")
        sock = socket.socket(fileno=os.dup(broken.fileno()))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.shutdown(socket.SHUT_RDWR)
        sock.close()
        assert keys(watcher, filled) == [1, 2, 3]
        run(watcher, f"INSERT INTO {filled} VALUES ('{DAY}6', 6, 'f', 60)")
        assert keys(watcher, filled) == [1, 2, 3, 6]
        broken.close()


def test_copy_is_part_of_it(server, filled):
    with connect(server) as a, connect(server) as b:
        run(a, "BEGIN")
        with a.cursor().copy(f"COPY {filled} FROM STDIN") as copy:
            for n in range(10, 2010):
                copy.write_row((dt.datetime(2024, 1, 8), n, f"s{n}", n))
        assert run(a, f"SELECT count(*) FROM {filled}")[0] == [("2003",)] and len(keys(b, filled)) == 3
        run(a, "SAVEPOINT s")
        with pytest.raises(psycopg.Error):
            with a.cursor().copy(f"COPY {filled} FROM STDIN") as copy:
                copy.write_row((dt.datetime(2024, 1, 8), 1, "x", 1))
                copy.write_row((dt.datetime(2024, 1, 8), "no number", "x", 1))
        run(a, "ROLLBACK TO s")
        run(a, "COMMIT")
        assert len(keys(b, filled)) == 2003
        run(a, "BEGIN READ ONLY")
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            with a.cursor().copy(f"COPY {filled} FROM STDIN") as copy:
                copy.write_row((dt.datetime(2024, 1, 8), 1, "x", 1))
        run(a, "ROLLBACK")


WRITES = [
    "INSERT INTO {} VALUES ('2024-01-05', 5, 'e', 50)", "INSERT INTO {} SELECT * FROM {}", "INSERT BATCH 10 INTO {} SELECT * FROM {}", "UPDATE {} SET v = 1", "DELETE FROM {}", "TRUNCATE TABLE {}",
    "CREATE TABLE {}_x (a int)", "CREATE TABLE {}_x AS SELECT 1 AS a", "CREATE VIEW {}_x AS SELECT 1 AS a", "CREATE MATERIALIZED VIEW {}_x AS SELECT ts, count() FROM {} SAMPLE BY 1d",
    "ALTER TABLE {} ADD COLUMN x int", "ALTER TABLE {} DROP COLUMN v", "ALTER TABLE {} RENAME COLUMN v TO w", "ALTER TABLE {} RENAME TO {}_x", "ALTER TABLE {} SET TTL 1 WEEK", "ALTER TABLE {} SEAL",
    "ALTER TABLE {} DROP PARTITION LIST '2024-01-01'", "RENAME TABLE {} TO {}_x", "DROP TABLE {}", "DROP VIEW IF EXISTS nosuch_view", "DROP SCHEMA IF EXISTS nosuch_schema", "BACKUP DATABASE TO '/nowhere'",
    "UPDATE {} SET v = 1 RETURNING v", "DELETE FROM {} RETURNING k", "INSERT INTO {} VALUES ('2024-01-05', 5, 'e', 50) RETURNING k",
]


@pytest.mark.parametrize("sql", WRITES)
def test_nothing_that_writes_passes_where_nothing_may(server, filled, sql):
    sql = sql.replace("{}", filled)
    with connect(server) as c:
        for before in ("SET default_transaction_read_only = on", "BEGIN READ ONLY", "BEGIN; SET TRANSACTION READ ONLY", "BEGIN; SET transaction_read_only = on"):
            run(c, before)
            assert run(c, sql)[0] == "25006", before
            run(c, "ROLLBACK")
            # Also as a prepared statement.
            run(c, before)
            with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
                c.cursor(binary=True).execute(sql, prepare=True)
            run(c, "ROLLBACK")
            run(c, "RESET ALL")
        assert keys(c, filled) == [1, 2, 3]
    with connect(server, options="-c default_transaction_read_only=on") as c:
        assert run(c, sql)[0] == "25006"


@pytest.mark.parametrize("sql", ["ALTER TABLE {} SEAL", "ALTER TABLE {} DROP PARTITION LIST '2024-01-01'", "BACKUP DATABASE TO '/nowhere'", "CREATE MATERIALIZED VIEW {}_x AS SELECT ts, count() FROM {} SAMPLE BY 1d"])
def test_what_commits_by_itself_is_refused_in_a_block(server, filled, sql):
    sql = sql.replace("{}", filled)
    with connect(server) as c:
        run(c, "BEGIN")
        assert run(c, sql) == ("25001", "E")
        run(c, "ROLLBACK")
        assert run(c, f"DELETE FROM {filled} WHERE k = 1; {sql}") == ("25001", "I")
        assert keys(c, filled) == [1, 2, 3]


def test_pipelines_are_one_transaction(server, filled):
    with connect(server) as c:
        with pytest.raises(psycopg.errors.DivisionByZero):
            with c.pipeline():
                c.execute(f"INSERT INTO {filled} VALUES ('{DAY}5', 5, 'e', 50)")
                c.execute(f"DELETE FROM {filled} WHERE k = 1")
                c.execute("SELECT 1 / 0")
        assert keys(c, filled) == [1, 2, 3]
        with c.pipeline():
            c.execute(f"INSERT INTO {filled} VALUES ('{DAY}5', 5, 'e', 50)")
            c.execute(f"DELETE FROM {filled} WHERE k = 1")
            seen = c.execute(f"SELECT k FROM {filled} ORDER BY k")
        assert seen.fetchall() == [(2,), (3,), (5,)] and keys(c, filled) == [2, 3, 5]
        # A statement that commits by itself may be the only statement of a pipeline.
        with c.pipeline():
            c.execute(f"ALTER TABLE {filled} SEAL")


def test_asyncpg(server, filled):
    async def work():
        c = await asyncpg.connect(host="127.0.0.1", port=server.pg_port, user="u", database="d")
        with pytest.raises(ZeroDivisionError):
            async with c.transaction():
                await c.execute(f"DELETE FROM {filled}")
                raise ZeroDivisionError
        async with c.transaction(isolation="serializable"):
            await c.execute(f"INSERT INTO {filled} VALUES ($1, 5, 'e', 50)", dt.datetime(2024, 1, 5))
            with pytest.raises(ZeroDivisionError):
                async with c.transaction():
                    await c.execute(f"DELETE FROM {filled}")
                    raise ZeroDivisionError
        with pytest.raises(asyncpg.ReadOnlySQLTransactionError):
            async with c.transaction(readonly=True):
                await c.execute(f"DELETE FROM {filled}")
        # One refused row of a batch rejects the whole batch.
        with pytest.raises(asyncpg.PostgresError):
            await c.executemany(f"INSERT INTO {filled} SELECT '{DAY}6', $1::long, 'f', 1 / $1::long", [(n,) for n in (3, 2, 1, 0)])
        # Rows by a portal within a transaction.
        async with c.transaction():
            assert [r["k"] async for r in c.cursor(f"SELECT k FROM {filled} ORDER BY k", prefetch=2)] == [1, 2, 3, 5]
        found = [r["k"] for r in await c.fetch(f"SELECT k FROM {filled} ORDER BY k")]
        await c.close()
        return found

    assert asyncio.run(work()) == [1, 2, 3, 5]


def test_psycopg_without_autocommit(server, filled):
    with psycopg.connect(host="127.0.0.1", port=server.pg_port, user="u", dbname="d") as c:
        c.execute(f"DELETE FROM {filled} WHERE k = %s", (1,))
        c.rollback()
        c.execute(f"DELETE FROM {filled} WHERE k = %s", (2,))
        c.commit()
        with pytest.raises(RuntimeError):
            with c.transaction():
                c.execute(f"DELETE FROM {filled}")
                raise RuntimeError
        with c.transaction(), c.transaction():
            c.execute(f"DELETE FROM {filled} WHERE k = 3")
        c.read_only = True
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            c.execute(f"DELETE FROM {filled}")
        c.rollback()
        assert c.execute(f"SELECT k FROM {filled}").fetchall() == [(1,)]


def test_memory_is_bounded(servers):
    server = servers(env={"TIDALITE_TRANSACTION_BYTES_MAX": "4MiB"}).start()
    with connect(server) as a, connect(server) as b:
        run(a, "CREATE TABLE t (ts TIMESTAMP, v LONG) TIMESTAMP(ts)")
        insert = "INSERT INTO t SELECT dateadd('s', x::int, '2024-01-01'), x FROM long_sequence(100000)"
        run(a, "BEGIN")
        run(b, "BEGIN")
        run(a, "SAVEPOINT s")
        assert run(a, insert) == ("INSERT 0 100000", "T")
        assert run(a, insert) == ("INSERT 0 100000", "T")
        # All transactions share the memory limit.
        assert run(b, insert) == ("53200", "E")
        assert run(a, insert) == ("53200", "E")
        run(a, "ROLLBACK TO s")
        run(b, "ROLLBACK")
        run(b, "BEGIN")
        assert run(b, insert) == ("INSERT 0 100000", "T")
        run(b, "COMMIT")
        # A statement outside of a transaction does not count against the limit.
        run(a, "ROLLBACK")
        assert run(a, insert.replace("100000", "1000000")) == ("INSERT 0 1000000", "I")
        assert run(a, "SELECT count(*) FROM t")[0] == [("1100000",)]


def test_forgotten_transactions_end(server, filled):
    with connect(server) as c:
        run(c, "SET idle_in_transaction_session_timeout = '50ms'")
        run(c, "BEGIN")
        run(c, f"DELETE FROM {filled}")
        assert eventually(lambda: ended(c), 10, "the end of the connection")
    with connect(server) as c:
        assert keys(c, filled) == [1, 2, 3]


def ended(connection):
    # The check sends no statement: a session that runs a statement is not idle.
    try:
        connection.pgconn.consume_input()
    except psycopg.OperationalError:
        return True
    return connection.pgconn.status == psycopg.pq.ConnStatus.BAD


def test_views_are_told(server, filled):
    view = f"{filled}_mv"
    server.exec(f"CREATE MATERIALIZED VIEW {view} WITH BASE {filled} REFRESH IMMEDIATE AS SELECT ts, sum(v) AS v FROM {filled} SAMPLE BY 1d")
    with connect(server) as c:
        run(c, "BEGIN")
        run(c, f"UPDATE {filled} SET v = v + 1 WHERE k = 1")
        run(c, f"DELETE FROM {filled} WHERE k = 2")
        run(c, f"INSERT INTO {filled} VALUES ('{DAY}4', 4, 'd', 40)")
        run(c, "COMMIT")
        eventually(lambda: run(c, f"SELECT v FROM {view} ORDER BY ts")[0] == [("11",), ("30",), ("40",)], 20, "the view")


class Model:
    """Rows by key, and since which commit each is as it is."""

    def __init__(self):
        self.rows, self.changed, self.commit = {}, {}, 0


class Session:
    """One connection beside its model: a snapshot with changes on top, first committer wins."""

    def __init__(self, server, table, model, number):
        self.c, self.table, self.model, self.number = connect(server), table, model, number
        self.state = None

    def begin(self):
        assert run(self.c, "BEGIN") == ("BEGIN", "T")
        assert run(self.c, f"SELECT count(*) FROM {self.table}")[0] == [(str(len(self.model.rows)),)]
        self.state, self.points = {"rows": dict(self.model.rows), "hit": set()}, []
        self.seen = self.model.commit

    def conflicts(self):
        return any(self.model.changed.get(k, 0) > self.seen for k in self.state["hit"])

    def statement(self, r):
        rows, hit = self.state["rows"], self.state["hit"]
        pick = r.random()
        if pick < 0.3:
            new = {self.number * 10**6 + r.randrange(10**6): r.randrange(100) for _ in range(r.choice([1, 3]))}
            new = {k: v for k, v in new.items() if k not in rows and k not in self.model.changed}
            if not new:
                return
            values = ", ".join(f"('2024-01-0{1 + k % 7}', {k}, 's{v}', {v})" for k, v in new.items())
            sql, answer = f"INSERT INTO {self.table} VALUES {values}", f"INSERT 0 {len(new)}"
            rows.update(new)
        elif pick < 0.55:
            m, at = r.choice([(5, 1), (11, 3), (37, 5)])
            found = [k for k in rows if k % m == at]
            sql, answer = f"UPDATE {self.table} SET v = v + 1, s = 's' || (v + 1) WHERE k % {m} = {at}", f"UPDATE {len(found)}"
            hit.update(found)
            rows.update({k: rows[k] + 1 for k in found})
        elif pick < 0.7:
            m, at = r.choice([(13, 4), (41, 7)])
            found = [k for k in rows if k % m == at]
            sql, answer = f"DELETE FROM {self.table} WHERE k % {m} = {at}", f"DELETE {len(found)}"
            hit.update(found)
            for k in found:
                del rows[k]
        else:
            expected = [(str(k), f"s{v}", str(v)) for k, v in sorted(rows.items())]
            found, status = run(self.c, f"SELECT k, s, v FROM {self.table} ORDER BY k")
            assert (found, status) == (expected, "T")
            return
        found = run(self.c, sql)
        if found == ("40001", "E"):
            assert self.conflicts(), sql
            self.end("ROLLBACK")
        else:
            assert found == (answer, "T"), sql

    def savepoint(self, r):
        if self.points and r.random() < 0.5:
            at = r.randrange(len(self.points))
            assert run(self.c, f"ROLLBACK TO p{at}") == ("ROLLBACK", "T")
            rows, hit = self.points[at]
            self.state, self.points = {"rows": dict(rows), "hit": set(hit)}, self.points[: at + 1]
        else:
            assert run(self.c, f"SAVEPOINT p{len(self.points)}") == ("SAVEPOINT", "T")
            self.points.append((dict(self.state["rows"]), set(self.state["hit"])))

    def end(self, how):
        model, state = self.model, self.state
        self.state = None
        if how == "ROLLBACK":
            assert run(self.c, how) == ("ROLLBACK", "I")
            return
        found = run(self.c, how)
        hit = state["hit"]
        own = {k for k in state["rows"] if k // 10**6 == self.number and k not in model.changed}
        conflicts = any(model.changed.get(k, 0) > self.seen for k in hit)
        assert found == (("40001", "I") if conflicts else ("COMMIT", "I")), (found, conflicts)
        if not conflicts:
            model.commit += 1
            for k in hit | own:
                model.changed[k] = model.commit
                model.rows.pop(k, None)
                if k in state["rows"]:
                    model.rows[k] = state["rows"][k]
        rows = run(self.c, f"SELECT k, v FROM {self.table} ORDER BY k")[0]
        assert rows == [(str(k), str(v)) for k, v in sorted(model.rows.items())]


def test_random_schedules(server, table):
    seed = int(os.environ.get("TRANSACTION_SEED") or random.randrange(2**32))
    print(f"TRANSACTION_SEED={seed}")
    r, model = random.Random(seed), Model()
    with connect(server) as c:
        c.execute(f"CREATE TABLE {table} (ts TIMESTAMP, k LONG, s SYMBOL, v LONG) TIMESTAMP(ts) PARTITION BY DAY")
    sessions = [Session(server, table, model, number) for number in range(1, 4)]
    for _ in range(STEPS):
        session = r.choice(sessions)
        if session.state is None:
            session.begin()
        elif r.random() < 0.1:
            session.end("COMMIT" if r.random() < 0.8 else "ROLLBACK")
        elif r.random() < 0.15:
            session.savepoint(r)
        else:
            session.statement(r)
        if r.random() < 0.03:
            server.exec(f"ALTER TABLE {table} SEAL")
    for session in sessions:
        if session.state is not None:
            session.end("COMMIT")
        session.c.close()


def test_transactions_beside_each_other(server, table):
    """Transfers between rows of two tables: the sum is constant at all times."""
    first, second = f"{table}_1", f"{table}_2"
    with connect(server) as c:
        for name in (first, second):
            c.execute(f"CREATE TABLE {name} (ts TIMESTAMP, k LONG, v LONG) TIMESTAMP(ts) PARTITION BY DAY")
            c.execute(f"INSERT INTO {name} SELECT dateadd('h', x::int, '2024-01-01'), x, 100 FROM long_sequence(50)")
    problems, moved, done = [], [], threading.Event()

    def move(number):
        r = random.Random(number)
        try:
            with connect(server) as c:
                while len(moved) < 60 and not problems:
                    a, b, n = r.randrange(1, 51), r.randrange(1, 51), r.randrange(10)
                    run(c, "BEGIN")
                    done_a = run(c, f"UPDATE {first} SET v = v - {n} WHERE k = {a}")[0]
                    done_b = run(c, f"UPDATE {second} SET v = v + {n} WHERE k = {b}")[0]
                    ended = run(c, r.choice(["COMMIT", "COMMIT", "ROLLBACK"]))[0]
                    assert done_a in ("UPDATE 1", "40001") and ended in ("COMMIT", "ROLLBACK", "40001"), (done_a, done_b, ended)
                    if ended == "COMMIT":
                        moved.append(n)
        except Exception as problem:
            problems.append(problem)

    def seal():
        while not done.is_set():
            server.exec(f"ALTER TABLE {first} SEAL")

    movers = [threading.Thread(target=move, args=(number,)) for number in range(3)]
    sealer = threading.Thread(target=seal)
    for thread in (*movers, sealer):
        thread.start()
    with connect(server) as c:
        while any(mover.is_alive() for mover in movers):
            total = run(c, f"SELECT (SELECT sum(v) FROM {first}) + (SELECT sum(v) FROM {second})")[0]
            assert total == [("10000",)]
            run(c, "BEGIN")
            parts = [int(run(c, f"SELECT sum(v) FROM {name}")[0][0][0]) for name in (first, second)]
            run(c, "COMMIT")
            assert sum(parts) == 10000
    done.set()
    for thread in (*movers, sealer):
        thread.join()
    assert not problems, problems


QUERIES = [
    "SELECT s, count(*), sum(v), min(k), max(k) FROM {t} GROUP BY s ORDER BY s",
    "SELECT count(*), count(s), count(DISTINCT s), count(DISTINCT k) FROM {t}",
    "SELECT k, s, v FROM {t} LATEST ON ts PARTITION BY s ORDER BY s, k",
    # Several rows have the last time of a group: `last(v)` is any of them (docs/semantics.md).
    "SELECT ts, s, last(ts), min(v), max(v) FROM {t} SAMPLE BY 6h ORDER BY ts, s",
    "SELECT ts, sum(v) FROM {t} SAMPLE BY 1d FILL(0)",
    "SELECT s, count(*) FROM {t} WHERE s IN ('s1', 'own1', 'nosuch') OR s LIKE '%2' GROUP BY s ORDER BY s",
    "SELECT a.s, count(*) FROM {t} a JOIN {t}_2 b ON a.s = b.s GROUP BY a.s ORDER BY a.s",
    "SELECT a.k, b.v FROM {t} a ASOF JOIN {t}_2 b ON (s) ORDER BY a.ts, a.k LIMIT 200",
    "SELECT s, k FROM (SELECT s, k, row_number() OVER (PARTITION BY s ORDER BY v DESC, k) AS n FROM {t}) w WHERE n <= 2 ORDER BY s, k",
    "SELECT * FROM {t} ORDER BY s DESC, ts, k, v LIMIT 50",
    "SELECT * FROM {t} WHERE ts >= '2024-01-02' AND ts < '2024-01-04' AND v % 3 = 1 ORDER BY ts, k, v LIMIT 100",
    "SELECT * FROM {t} ORDER BY ts, k, v LIMIT -20",
    "SELECT max(ts), min(ts), first(k), last(k) FROM {t}",
    "SELECT s FROM {t} EXCEPT SELECT s FROM {t}_2 ORDER BY 1",
    "SELECT table_name FROM information_schema.tables WHERE table_name LIKE '{t}%' ORDER BY 1",
]


@pytest.mark.parametrize("seed", range(2))
def test_what_a_transaction_sees_is_what_is_there_after_its_commit(server, table, seed):
    r, t = random.Random(seed), table
    with connect(server) as a, connect(server) as b:
        for name in (t, f"{t}_2"):
            keys = " DEDUP UPSERT KEYS(ts, k)" if seed % 2 else ""
            run(a, f"CREATE TABLE {name} (ts TIMESTAMP, k LONG, s SYMBOL, v LONG) TIMESTAMP(ts) PARTITION BY DAY{keys}")
            run(a, f"INSERT INTO {name} SELECT dateadd('s', (x * 50)::int, '2024-01-01'), x, CASE WHEN x % 10 = 0 THEN NULL ELSE 's' || (x % 13) END, x FROM long_sequence(6000)")
            server.exec(f"ALTER TABLE {name} SEAL")
            run(a, f"INSERT INTO {name} SELECT dateadd('s', (x * 70)::int, '2024-01-01'), 10000 + x, 's' || (x % 17), x FROM long_sequence(500)")
        run(a, "BEGIN")
        for step in range(12):
            name, m = r.choice([t, f"{t}_2"]), r.choice([3, 7, 50])
            change = r.choice([
                f"INSERT INTO {name} SELECT dateadd('s', (x * 90)::int, '2024-01-02'), {step} * 1000 + x, 'own' || (x % 5), x FROM long_sequence(300)",
                f"UPDATE {name} SET s = 'own' || (k % 4), v = v + 1 WHERE k % {m} = 1",
                f"UPDATE {name} SET v = -v WHERE s = 's{step}'",
                f"DELETE FROM {name} WHERE k % {m} = 2",
                f"INSERT INTO {name} SELECT ts, k, s, v + 1 FROM {name} WHERE k % {m} = 0",
            ])
            assert run(a, change)[1] == "T", change
            # Other sessions continue to insert, with different symbols.
            assert run(b, f"INSERT INTO {t} VALUES ('2024-01-02', -1, 'other {step}', 0)")[0] == "INSERT 0 1"
            assert run(b, f"DELETE FROM {t} WHERE k = -1")[0] == "DELETE 1"
        inside = [run(a, query.format(t=t))[0] for query in QUERIES]
        assert [query for query, seen in zip(QUERIES, inside) if not isinstance(seen, list)] == []
        server.exec(f"ALTER TABLE {t} SEAL")
        assert run(a, "COMMIT") == ("COMMIT", "I")
        for query, seen in zip(QUERIES, inside):
            assert run(b, query.format(t=t))[0] == seen, query
        server.exec(f"ALTER TABLE {t} SEAL")
        for query, seen in zip(QUERIES, inside):
            assert run(b, query.format(t=t))[0] == seen, f"sealed: {query}"
