"""COPY: from and to files, and over the PostgreSQL protocol with psycopg, asyncpg and psql."""

import asyncio
import datetime as dt
import io
import shutil
import subprocess
from decimal import Decimal
from uuid import UUID

import asyncpg
import psycopg
import pytest

ROWS = [(dt.datetime(2024, 1, 1, 0, 0, n), text, n if n % 3 else None, n / 4) for n, text in
        enumerate(["plain", "a\tb", "a,b", 'say "x"', "line\nbreak", "back\\slash", "", None, "\\N", "ü"])]
CREATE = "CREATE TABLE {} (ts TIMESTAMP, s VARCHAR, n LONG, d DOUBLE) TIMESTAMP(ts) PARTITION BY DAY"


def connect(server):
    return psycopg.connect(host="127.0.0.1", port=server.pg_port, user="u", dbname="d", autocommit=True)


def all_rows(connection, table):
    return connection.execute(f"SELECT * FROM {table}").fetchall()


@pytest.fixture
def writes(servers, tmp_path):
    return servers(env={"TIDALITE_QUERY_WRITES_FILES": "true"}).start()


def test_psycopg_copies_rows_in_and_out(server, table):
    with connect(server) as c:
        c.execute(CREATE.format(table))
        with c.cursor() as cursor:
            with cursor.copy(f"COPY {table} FROM STDIN") as copy:
                for row in ROWS:
                    copy.write_row(row)
            assert cursor.rowcount == len(ROWS) and cursor.statusmessage == f"COPY {len(ROWS)}"
            assert all_rows(c, table) == ROWS
            with cursor.copy(f"COPY (SELECT * FROM {table} WHERE d >= 0) TO STDOUT") as copy:
                copy.set_types(["timestamp", "text", "int8", "float8"])
                assert list(copy.rows()) == ROWS
            with cursor.copy(f"COPY {table} (s, n) TO STDOUT WITH (FORMAT csv, HEADER, NULL 'nix')") as copy:
                lines = b"".join(copy).decode()
        assert lines.startswith('s,n\nplain,nix\na\tb,1\n"a,b",2\n"say ""x""",nix\n"line\nbreak",4\n')
        assert '\n,nix\nnix,7\n' in lines
        # The connection goes on.
        assert c.execute("SELECT 1").fetchone() == (1,)


def test_what_goes_out_comes_in_again(server, table):
    with connect(server) as c:
        c.execute(CREATE.format(table))
        c.execute(CREATE.format(table + "_2"))
        with c.cursor().copy(f"COPY {table} FROM STDIN") as copy:
            for row in ROWS:
                copy.write_row(row)
        for options in ["", "(FORMAT csv)", "(FORMAT csv, HEADER true, DELIMITER ';', NULL 'NA')", "(DELIMITER '|', NULL '~')"]:
            with c.cursor().copy(f"COPY {table} TO STDOUT {options}") as copy:
                text = b"".join(copy)
            c.execute(f"TRUNCATE TABLE {table}_2")
            with c.cursor().copy(f"COPY {table}_2 FROM STDIN {options}") as copy:
                # In pieces that end anywhere.
                for at in range(0, len(text), 7):
                    copy.write(text[at:at + 7])
            assert all_rows(c, table + "_2") == ROWS, options


def test_columns_by_position_and_by_name(server, table):
    with connect(server) as c:
        c.execute(CREATE.format(table))
        with c.cursor().copy(f"COPY {table} (n, ts) FROM STDIN (FORMAT csv)") as copy:
            copy.write("7,2024-01-01T00:00:00Z\n")
        with c.cursor().copy(f"COPY {table} FROM STDIN (FORMAT csv, HEADER)") as copy:
            copy.write("d,ts\n0.5,2024-01-02\n")
        assert all_rows(c, table) == [(dt.datetime(2024, 1, 1), None, 7, None), (dt.datetime(2024, 1, 2), None, None, 0.5)]
        with c.cursor().copy(f"COPY {table} FROM STDIN") as copy:
            pass
        assert len(all_rows(c, table)) == 2


def test_a_copy_that_fails_has_copied_nothing(server, table):
    with connect(server) as c:
        c.execute(CREATE.format(table))
        with pytest.raises(psycopg.errors.InvalidTextRepresentation, match='line 3, .*column "n"') as error:
            with c.cursor().copy(f"COPY {table} FROM STDIN (FORMAT csv)") as copy:
                copy.write("2024-01-01,a,1,1\n2024-01-01,a,2,1\n2024-01-01,a,x,1\n")
        assert table in str(error.value)
        with pytest.raises(ZeroDivisionError):
            with c.cursor().copy(f"COPY {table} FROM STDIN") as copy:
                copy.write_row(ROWS[0])
                1 / 0
        with pytest.raises(psycopg.errors.UndefinedTable):
            with c.cursor().copy("COPY nowhere FROM STDIN") as copy:
                copy.write_row(ROWS[0])
        with pytest.raises(psycopg.errors.UndefinedColumn):
            with c.cursor().copy(f"COPY {table} (ts, colour) FROM STDIN") as copy:
                copy.write_row(ROWS[0][:2])
        with pytest.raises(psycopg.errors.UndefinedTable):
            with c.cursor().copy("COPY (SELECT * FROM nowhere) TO STDOUT") as copy:
                list(copy)
        assert c.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
        with c.cursor().copy(f"COPY {table} FROM STDIN (FORMAT csv, ON_ERROR ignore)") as copy:
            copy.write("2024-01-01,a,1,1\n2024-01-01,a,x,1\n")
        assert c.execute(f"SELECT count(*) FROM {table}").fetchone() == (1,)


def test_more_than_is_held(server, table):
    with connect(server) as c:
        c.execute(CREATE.format(table))
        line = "2024-01-01T00:00:00Z,some text that takes a little room,{},0.25\n"
        text = "".join(line.format(n) for n in range(20_000))
        with c.cursor().copy(f"COPY {table} FROM STDIN (FORMAT csv)") as copy:
            for _ in range(50):
                copy.write(text)
        assert c.execute(f"SELECT count(*), sum(n) FROM {table}").fetchone() == (1_000_000, 50 * sum(range(20_000)))
        count = 0
        with c.cursor().copy(f"COPY {table} TO STDOUT") as copy:
            for data in copy:
                count += bytes(data).count(b"\n")
        assert count == 1_000_000


def test_asyncpg_copies(server, table):
    async def run():
        c = await asyncpg.connect(host="127.0.0.1", port=server.pg_port, user="u", database="d")
        await c.execute(CREATE.format(table))
        text = b"2024-01-01T00:00:00Z,a,1,0.5\n2024-01-01T00:00:01Z,,2,\n"
        assert await c.copy_to_table(table, source=io.BytesIO(text), format="csv") == "COPY 2"
        out = io.BytesIO()
        assert await c.copy_from_query(f"SELECT s, n FROM {table} WHERE n < 10", output=out, format="csv", header=True) == "COPY 2"
        assert out.getvalue() == b"s,n\na,1\n,2\n"
        await c.close()

    asyncio.run(run())


TYPES = "ts TIMESTAMP, b BOOLEAN, h SHORT, n INT, l LONG, f REAL, d DOUBLE, m DECIMAL(10,2), t DATE, k SYMBOL, s VARCHAR, r BINARY, u UUID, a DOUBLE[], aa DOUBLE[][]"
BINARY_AS = ["timestamp", "bool", "int2", "int4", "int8", "float4", "float8", "numeric", "date", "text", "text", "bytea", "uuid", "float8[]", "float8[]"]
TYPED_ROWS = [
    (dt.datetime(2024, 1, 1, 0, 0, 0, 5), True, -7, 2**31 - 1, -(2**63) + 1, 0.5, 1e300, Decimal("12345678.25"), dt.date(1969, 12, 31), "k1", 'a,"b"\n\\N', b"\x00\xff", UUID(int=7), [1.5, -2.0], [[1.0, 2.0], [3.0, 4.0]]),
    (dt.datetime(2024, 1, 2), *[None] * 14),
    (dt.datetime(2024, 1, 3), False, 0, 0, 0, -0.0, 0.1, Decimal("-0.01"), dt.date(2024, 2, 29), "", "\\N", b"", UUID(int=0), [], [[0.25]]),
]


def test_binary_rows_go_in_and_out(server, table):
    with connect(server) as c:
        c.execute(f"CREATE TABLE {table} ({TYPES}) TIMESTAMP(ts) PARTITION BY DAY")
        c.execute(f"CREATE TABLE {table}_2 ({TYPES}) TIMESTAMP(ts) PARTITION BY DAY")
        with c.cursor() as cursor:
            with cursor.copy(f"COPY {table} FROM STDIN (FORMAT binary)") as copy:
                copy.set_types(BINARY_AS)
                for row in TYPED_ROWS:
                    copy.write_row(row)
            assert cursor.statusmessage == "COPY 3"
            assert all_rows(c, table) == TYPED_ROWS
            with cursor.copy(f"COPY {table} TO STDOUT (FORMAT binary)") as copy:
                copy.set_types(BINARY_AS)
                assert list(copy.rows()) == TYPED_ROWS
            with cursor.copy(f"COPY {table} TO STDOUT (FORMAT binary)") as copy:
                sent = b"".join(copy)
            # In pieces that end anywhere; text goes the same way.
            with cursor.copy(f"COPY {table}_2 FROM STDIN BINARY") as copy:
                for at in range(0, len(sent), 5):
                    copy.write(sent[at:at + 5])
            assert all_rows(c, table + "_2") == TYPED_ROWS
            for options in ["", "(FORMAT csv)"]:
                with cursor.copy(f"COPY {table} TO STDOUT {options}") as copy:
                    text = b"".join(copy)
                c.execute(f"TRUNCATE TABLE {table}_2")
                with cursor.copy(f"COPY {table}_2 FROM STDIN {options}") as copy:
                    copy.write(text)
                assert all_rows(c, table + "_2") == TYPED_ROWS, options


def test_binary_rows_that_are_none_copy_nothing(server, table):
    with connect(server) as c:
        c.execute(CREATE.format(table))
        head = b"PGCOPY\n\xff\r\n\0" + bytes(8)
        row = b"\0\x02" + b"\0\0\0\x08" + (5).to_bytes(8, "big") + b"\0\0\0\x01a"
        for sent, what in [(b"a,b\n", "signature"), (head + b"\0\x03", "field count is 3, expected 2"), (head + row[:9], "unexpected end"),
                           (head + b"\0\x02\0\0\0\x07" + bytes(7) + row[14:], 'column "ts"')]:
            with pytest.raises(psycopg.Error, match=what):
                with c.cursor().copy(f"COPY {table} (ts, s) FROM STDIN (FORMAT binary)") as copy:
                    copy.write(sent)
            assert all_rows(c, table) == []
        with c.cursor().copy(f"COPY {table} (ts, s) FROM STDIN (FORMAT binary)") as copy:
            copy.write(head + row + b"\xff\xff")
        assert all_rows(c, table) == [(dt.datetime(2000, 1, 1, 0, 0, 0, 5), "a", None, None)]


def test_asyncpg_copies_records(server, table):
    async def run():
        c = await asyncpg.connect(host="127.0.0.1", port=server.pg_port, user="u", database="d")
        await c.execute(CREATE.format(table))
        done = await c.copy_records_to_table(table, records=ROWS)
        assert done == f"COPY {len(ROWS)}"
        found = await c.fetch(f"SELECT * FROM {table}")
        await c.close()
        return [tuple(row) for row in found]

    assert asyncio.run(run()) == ROWS


@pytest.mark.skipif(not shutil.which("psql"), reason="there is no psql")
def test_psql_copies(server, table, tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("ts,s,n,d\n2024-01-01T00:00:00Z,a,1,0.5\n")
    commands = [CREATE.format(table), f"\\copy {table} from '{file}' csv header", f"\\copy {table} to '{tmp_path / 'out.csv'}' csv header"]
    arguments = [word for command in commands for word in ("-c", command)]
    done = subprocess.run(["psql", "-h", "127.0.0.1", "-p", str(server.pg_port), "-U", "u", "d", *arguments], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.count("COPY 1") == 2, done
    assert (tmp_path / "out.csv").read_text() == "ts,s,n,d\n2024-01-01 00:00:00,a,1,0.5\n"


def test_files(writes, tmp_path):
    with connect(writes) as c:
        csv, parquet = tmp_path / "rows.csv", tmp_path / "rows.parquet"
        c.execute("CREATE TABLE t (ts TIMESTAMP, s SYMBOL, n INT, u UUID, ip IPV4, j JSON) TIMESTAMP(ts) PARTITION BY DAY")
        c.execute("INSERT INTO t VALUES ('2024-01-01', 'a,b', 1, '11111111-2222-3333-4444-555555555555', '10.0.0.1', '{\"a\": 1}'), ('2024-01-02T00:00:00.5Z', NULL, NULL, NULL, NULL, NULL)")
        for file in (csv, parquet):
            assert c.execute(f"COPY t TO '{file}'").statusmessage == "COPY 2"
            c.execute("CREATE TABLE u AS (SELECT * FROM t LIMIT 0) TIMESTAMP(ts) PARTITION BY DAY")
            assert c.execute(f"COPY u FROM '{file}'").statusmessage == "COPY 2"
            assert all_rows(c, "u") == all_rows(c, "t"), file
            c.execute("DROP TABLE u")
            # A table that is not there is made.
            assert c.execute(f"COPY u FROM '{file}' WITH TIMESTAMP 'ts' PARTITION BY DAY").statusmessage == "COPY 2"
            assert [row[:3] for row in all_rows(c, "u")] == [row[:3] for row in all_rows(c, "t")]
            c.execute("DROP TABLE u")
        assert c.execute(f"COPY (SELECT s, count() c FROM t GROUP BY s ORDER BY s) TO '{csv}' (HEADER false, DELIMITER ';', NULL '-')").statusmessage == "COPY 2"
        assert csv.read_text() == "a,b;1\n-;1\n"
        assert c.execute(f"SELECT count() FROM read_parquet('{parquet}')").fetchone() == (2,)
        # A file is whole or not there.
        with pytest.raises(psycopg.errors.DivisionByZero):
            c.execute(f"COPY (SELECT 1 / (x - 90000) FROM long_sequence(100000)) TO '{tmp_path / 'broken.csv'}'")
        with pytest.raises(psycopg.Error, match="could not be written"):
            c.execute(f"COPY t TO '{tmp_path / 'none' / 'x.csv'}'")
        with pytest.raises(psycopg.Error, match="could not be read"):
            c.execute(f"COPY t FROM '{tmp_path / 'none.csv'}'")
        assert sorted(file.name for file in tmp_path.iterdir() if file.is_file()) == ["rows.csv", "rows.parquet"]


def test_a_server_says_which_files_it_touches(server, servers, table, tmp_path):
    with connect(server) as c, pytest.raises(psycopg.Error, match="(?s)COPY to files is turned off on this server.*query.writes_files"):
        c.execute(f"COPY (SELECT 1) TO '{tmp_path / 'x.csv'}'")
    closed = servers(env={"TIDALITE_QUERY_READS_FILES": "false"}).start()
    with connect(closed) as c:
        c.execute("CREATE TABLE t (n INT)")
        for file in ("x.csv", "x.parquet"):
            with pytest.raises(psycopg.Error, match="COPY from files is turned off on this server"):
                c.execute(f"COPY t FROM '{file}'")


def test_over_http_there_is_no_client_to_copy_from(server, table):
    status, _, body = server.request("GET", "/exec?query=copy+" + table + "+from+stdin")
    assert status == 400 and "PostgreSQL protocol" in str(body)


def test_a_column_of_binary_rows_that_does_not_exist_is_named(server, table):
    with connect(server) as c:
        c.execute(f"CREATE TABLE {table} (ts TIMESTAMP, n LONG) TIMESTAMP(ts)")
        for form in ["binary", "text"]:
            with pytest.raises(psycopg.errors.UndefinedColumn, match=f'column "m" of table "{table}" does not exist'):
                with c.cursor().copy(f"COPY {table} (ts, m) FROM STDIN (FORMAT {form})") as copy:
                    copy.write_row([dt.datetime(2024, 1, 1), 1])
