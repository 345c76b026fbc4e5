"""DuckDB's extension `postgres`, which attaches a database; the same tests on Tidalite and on PostgreSQL.

The newest DuckDB whose extension is in the package registry of Python is in a folder of its own (Makefile), so a process
of its own runs the statements.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(sys.prefix) / "duckdb1"
PROGRAM = """
import json, sys
from pathlib import Path
import duckdb
connection = duckdb.connect()
(extension,) = Path(sys.argv[1]).glob("duckdb_extension_postgres_scanner/extensions/v" + duckdb.__version__ + "/postgres_scanner.duckdb_extension")
connection.execute(f"LOAD '{extension}'")
for statement in json.load(sys.stdin):
    try:
        print(json.dumps([list(map(str, row)) for row in connection.execute(statement).fetchall()]), flush=True)
    except duckdb.Error as error:
        print(json.dumps(str(error)), flush=True)
"""


@pytest.fixture
def run(side):
    """Runs statements in a new DuckDB with the server attached as `pg`; returns rows of texts, or the error, of each."""
    if not FOLDER.exists():
        pytest.skip(f"no DuckDB with its extension for PostgreSQL in the virtual environment ({FOLDER.name}): `make` installs it")

    def run(*statements):
        # Tidalite has no addresses of rows, by which DuckDB divides a table among its threads.
        settings = "SET pg_use_ctid_scan = false"
        attach = f"ATTACH 'host={side.host} port={side.port} user={side.user} dbname={side.database}' AS pg (TYPE postgres)"
        ran = subprocess.run([sys.executable, "-c", PROGRAM, str(FOLDER)], input=json.dumps([settings, attach, *statements]), capture_output=True, encoding="utf-8", timeout=120, check=False, env={"PYTHONPATH": str(FOLDER)})
        assert ran.returncode == 0, ran.stderr
        found = [json.loads(line) for line in ran.stdout.splitlines()]
        assert found[:2] == [[], []], found[:2]
        return found[2:]

    return run


COLUMNS = "id BIGINT, b BOOLEAN, i2 SMALLINT, i4 INTEGER, f4 REAL, f8 DOUBLE, n DECIMAL(18,3), ts TIMESTAMP, d DATE, t VARCHAR, bin BLOB, u UUID, arr DOUBLE[]"
ROWS = """(1, true, -32768, -2147483648, 1.5, -1.7976931348623157e308, -999999999999999.999, '1969-12-31 23:59:59.999999', '0001-01-01', '', '\\x00\\xFF'::BLOB, '11111111-2222-3333-4444-555555555555', [1.0, NULL, 'inf'::DOUBLE]),
    (2, false, 32767, 2147483647, 'nan', '-inf', 0.001, '2024-02-29 12:34:56.789012', '9999-12-31', 'täxt 😀 ''', ''::BLOB, '00000000-0000-0000-0000-000000000000', []),
    (3, NULL, NULL, NULL, NULL, NULL, NULL, '1970-01-01', NULL, NULL, NULL, NULL, NULL)"""
EXPECTED = [
    ["1", "True", "-32768", "-2147483648", "1.5", "-1.7976931348623157e+308", "-999999999999999.999", "1969-12-31 23:59:59.999999", "0001-01-01", "", "b'\\x00\\xff'", "11111111-2222-3333-4444-555555555555", "[1.0, None, inf]"],
    ["2", "False", "32767", "2147483647", "nan", "-inf", "0.001", "2024-02-29 12:34:56.789012", "9999-12-31", "täxt 😀 '", "b''", "00000000-0000-0000-0000-000000000000", "[]"],
    ["3", *["None"] * 6, "1970-01-01 00:00:00", *["None"] * 5],
]


def test_values_of_all_types(run, table):
    create, insert, *found = run(
        f"CREATE TABLE pg.{table} ({COLUMNS})", f"INSERT INTO pg.{table} VALUES {ROWS}", f"SELECT * FROM pg.{table} ORDER BY id", f"SELECT typeof(COLUMNS(*)) FROM pg.{table} LIMIT 1",
        f"CREATE TABLE pg.{table}_b AS SELECT * FROM pg.{table}", f"SELECT * FROM pg.{table}_b ORDER BY id", f"SELECT column_name, column_type FROM (DESCRIBE pg.{table})",
        "SET pg_use_binary_copy = false", f"CREATE TABLE pg.{table}_c ({COLUMNS})", f"INSERT INTO pg.{table}_c SELECT * FROM pg.{table}", f"SELECT count(*), min(ts), max(n) FROM pg.{table}_c",
    )
    assert (create, insert) == ([], [["3"]])
    types = ["BIGINT", "BOOLEAN", "SMALLINT", "INTEGER", "FLOAT", "DOUBLE", "DECIMAL(18,3)", "TIMESTAMP", "DATE", "VARCHAR", "BLOB", "UUID", "DOUBLE[]"]
    assert found[:4] == [EXPECTED, [types], [["3"]], EXPECTED]
    assert [row[1] for row in found[4]] == types
    assert found[5:] == [[], [], [["3"]], [["3", "1969-12-31 23:59:59.999999", "0.001"]]]


def test_conditions_are_pushed_down(run, table):
    _, _, *found = run(
        f"CREATE TABLE pg.{table} (id BIGINT, k VARCHAR, ts TIMESTAMP, v DOUBLE)",
        f"INSERT INTO pg.{table} SELECT x, CASE WHEN x % 10 = 0 THEN NULL ELSE 'k' || x % 3 END, TIMESTAMP '2024-01-01' + INTERVAL (x) MINUTE, x / 4 FROM range(50000) t(x)",
        f"SELECT count(*), sum(id), min(v) FROM pg.{table}", f"SELECT count(*) FROM pg.{table} WHERE id >= 100 AND id < 200 AND k = 'k1'", f"SELECT count(*) FROM pg.{table} WHERE k IS NULL",
        f"SELECT count(*) FROM pg.{table} WHERE ts BETWEEN TIMESTAMP '2024-01-02' AND TIMESTAMP '2024-01-03' AND k IN ('k0', 'k2')", f"SELECT id FROM pg.{table} WHERE v = 2.5 OR v > 12499.5 ORDER BY id",
        f"SELECT k, count(*) FROM pg.{table} GROUP BY k ORDER BY k", f"SELECT max(a.id) FROM pg.{table} a JOIN (SELECT 77 AS id) b USING (id)",
        f"SELECT * FROM postgres_query('pg', 'SELECT count(*), max(ts) FROM {table} WHERE k LIKE ''k%''')",
    )
    assert found == [[["50000", "1249975000", "0.0"]], [["30"]], [["5000"]], [["864"]], [["10"], ["49999"]], [["k0", "15000"], ["k1", "15000"], ["k2", "15000"], ["None", "5000"]], [["77"]], [["45000", "2024-02-04 17:19:00"]]]


def test_changes_and_transactions(run, table):
    found = run(
        f"CREATE TABLE pg.{table} (id BIGINT, t VARCHAR)", f"INSERT INTO pg.{table} VALUES (1, 'a'), (2, 'b'), (3, NULL)", "BEGIN", f"INSERT INTO pg.{table} VALUES (4, 'd')", f"SELECT count(*) FROM pg.{table}", "ROLLBACK",
        f"SELECT count(*) FROM pg.{table}", "BEGIN", f"INSERT INTO pg.{table} SELECT x, 'many' FROM range(10, 20) t(x)", "COMMIT", f"SELECT count(*), count(t) FROM pg.{table}",
        f"CALL postgres_execute('pg', 'UPDATE {table} SET t = ''x'' WHERE id = 1')", f"SELECT t FROM pg.{table} WHERE id = 1", f"ALTER TABLE pg.{table} ADD COLUMN n INTEGER", f"SELECT count(n) FROM pg.{table}", f"DROP TABLE pg.{table}",
    )
    assert found == [[], [["3"]], [], [["1"]], [["4"]], [], [["3"]], [], [["10"]], [], [["13", "12"]], [], [["x"]], [], [["0"]], []]


def test_lists_of_tables(run, table):
    found = run(f"CREATE TABLE pg.{table} (id BIGINT, t VARCHAR)", f"SELECT table_name FROM duckdb_tables() WHERE database_name = 'pg' AND table_name = '{table}'", "SELECT count(*) FROM pg.no_such_table",
                f"SELECT column_name, data_type FROM information_schema.columns WHERE table_catalog = 'pg' AND table_name = '{table}' ORDER BY ordinal_position")
    assert found[1] == [[table]] and "no_such_table" in found[2] and found[3] == [["id", "BIGINT"], ["t", "VARCHAR"]]
