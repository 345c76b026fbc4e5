"""A server with `read_only`: every change of data is refused with the reason, and all reads work."""

import io

import psycopg
import pyarrow as pa
import pytest
from server import eventually

STATEMENTS = {
    "INSERT": "INSERT INTO t VALUES ('x', 1, '2024-01-01')",
    "INSERT … SELECT": "INSERT INTO t SELECT * FROM t",
    "INSERT … RETURNING": "INSERT INTO t VALUES ('x', 1, '2024-01-01') RETURNING v",
    "UPDATE": "UPDATE t SET v = 2",
    "DELETE": "DELETE FROM t WHERE v = 1",
    "MERGE": "MERGE INTO t USING (SELECT 1 AS w) s ON t.v = s.w WHEN MATCHED THEN DELETE",
    "WITH … DELETE": "WITH gone AS (DELETE FROM t RETURNING v) SELECT count(*) FROM gone",
    "CREATE TABLE": "CREATE TABLE n (v LONG)",
    "CREATE TABLE AS": "CREATE TABLE n AS (SELECT * FROM t)",
    "CREATE VIEW": "CREATE VIEW n AS SELECT * FROM t",
    "CREATE MATERIALIZED VIEW": "CREATE MATERIALIZED VIEW n AS SELECT timestamp, sum(v) s FROM t SAMPLE BY 1h",
    "REFRESH": "REFRESH MATERIALIZED VIEW m FULL",
    "DROP MATERIALIZED VIEW": "DROP MATERIALIZED VIEW m",
    "ALTER MATERIALIZED VIEW": "ALTER MATERIALIZED VIEW m RESUME WAL",
    "ALTER TABLE ADD": "ALTER TABLE t ADD COLUMN w LONG",
    "ALTER TABLE DROP COLUMN": "ALTER TABLE t DROP COLUMN v",
    "ALTER TABLE DROP PARTITION": "ALTER TABLE t DROP PARTITION LIST '2024-01-01'",
    "ALTER TABLE SET TTL": "ALTER TABLE t SET TTL 1 HOUR",
    "RENAME": "RENAME TABLE t TO u",
    "TRUNCATE": "TRUNCATE TABLE t",
    "DROP TABLE": "DROP TABLE t",
    "DROP VIEW": "DROP VIEW w",
    "DROP SCHEMA": "DROP SCHEMA s CASCADE",
    "COPY FROM": "COPY t FROM '/dev/null'",
}
WORDS = "the server is read-only (setting read_only)"


def arrow_rows():
    rows = pa.table({"v": [1]})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue()


HTTP_WRITES = {
    "/write": b"t,k=a v=2i 1\n",
    "/api/v2/write": b"t,k=a v=2i 1\n",
    "/api/v3/write_lp": b"t,k=a v=2i 1\n",
    "/write/arrow?table=t": arrow_rows(),
    "/imp?name=t": b"v\n1\n",
}


def connect(server):
    return psycopg.connect(host="127.0.0.1", port=server.pg_port, user="u", dbname="d", autocommit=True)


@pytest.fixture
def read_only(servers):
    server = servers().start()
    server.write_ok("t,k=a v=1i 1704067200000000000\n")
    server.exec("CREATE VIEW w AS SELECT v FROM t")
    server.exec("CREATE MATERIALIZED VIEW m AS SELECT timestamp, sum(v) s FROM t SAMPLE BY 1h")
    server.stop()
    server.env["TIDALITE_READ_ONLY"] = "true"
    return server.start()


def state(server):
    return server.rows("select k, v, timestamp from t"), sorted(row[0] for row in server.rows("show tables")), server.types("t")


def test_no_entry_point_changes_anything(read_only):
    server, refused = read_only, 0
    before = state(server)
    for what, sql in STATEMENTS.items():
        for path in ("/exec", "/exp"):
            status, _, body = server.request("POST", path, sql, {"Content-Type": "text/plain"})
            assert status == 403 and WORDS in body.decode(), (what, path, status, body)
            refused += 1
        with connect(server) as connection:
            for in_transaction in (False, True):
                with pytest.raises(psycopg.errors.ReadOnlySqlTransaction, match="read-only"):
                    if in_transaction:
                        connection.execute("BEGIN READ WRITE")
                    connection.execute(sql)
                refused += 1
                connection.execute("ROLLBACK")
    for path, body in HTTP_WRITES.items():
        status, _, answer = server.request("POST", path, body)
        assert status == 403 and WORDS in answer.decode(), (path, status, answer)
        refused += 1
    with connect(server) as connection:
        for setting in ("SET default_transaction_read_only = off", "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE"):
            connection.execute(setting)
            with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
                with connection.cursor().copy("COPY t FROM STDIN") as copy:
                    copy.write(b"a\t1\t2024-01-01\n")
            refused += 1
    # Line protocol over TCP has no responses: the connection is closed.
    with server.tcp() as lines:
        lines.sendall(b"t,k=a v=3i 1\n")
        try:
            assert lines.recv(1) == b""
        except ConnectionResetError:
            pass
    assert state(server) == before
    assert refused == 4 * len(STATEMENTS) + len(HTTP_WRITES) + 2
    assert server.metrics()["tidalite_rows_committed_total"] == 0


def test_reading_works_and_health_tells(read_only, tmp_path):
    server = read_only
    assert server.value("select count(*) from t") == 1
    with connect(server) as connection:
        assert connection.execute("SHOW default_transaction_read_only").fetchone() == ("on",)
        assert connection.execute("SELECT v FROM w").fetchone() == (1,)
    assert server.exec(f"BACKUP DATABASE TO '{tmp_path}/backup'")["count"] >= 1
    status, headers, _ = server.request("GET", "/ping")
    assert status == 204 and headers["x-tidalite-read-only"] == "true"
    assert server.request("GET", "/health")[0] == 200 and server.request("GET", "/health/ready")[0] == 200
    status, _, body = server.request("GET", "/health/writable")
    assert status == 503 and WORDS in body.decode()
    metrics = server.metrics()
    assert (metrics["tidalite_ready"], metrics["tidalite_writable"]) == (1, 0)
    server.stop()
    server.env["TIDALITE_READ_ONLY"] = "false"
    server.start()
    server.write_ok("t,k=a v=2i 1704067200000000001\n")
    eventually(lambda: server.count("t") == 2, 10, "a row after the restart")
