"""The ADBC driver for PostgreSQL, which reads results by COPY in binary form; the same tests on Tidalite and on PostgreSQL."""

import datetime as dt
import threading

import adbc_driver_manager
import adbc_driver_postgresql.dbapi as adbc
import kinds
import pyarrow as pa
import pytest

SCHEMA = pa.schema([
    ("id", pa.int64()), ("b", pa.bool_()), ("i2", pa.int16()), ("i4", pa.int32()), ("i8", pa.int64()), ("f4", pa.float32()), ("f8", pa.float64()), ("at", pa.timestamp("us")), ("d", pa.date32()),
    ("t", pa.string()), ("bin", pa.binary()),
])
AT = [list(kinds.COLUMNS).index(name) for name in SCHEMA.names]


@pytest.fixture
def connection(side):
    with adbc.connect(side.url()) as connection:
        yield connection


def arrow_table():
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, [row[n] for n in AT])) for row in kinds.ROWS], SCHEMA)


def rows_of(table):
    return [tuple(row.values()) for row in table.to_pylist()]


def test_ingestion(connection, table):
    with connection.cursor() as cursor:
        assert cursor.adbc_ingest(table, arrow_table(), mode="create") == len(kinds.ROWS)
        connection.commit()
        for mode in ["append", "create_append"]:
            cursor.adbc_ingest(table, arrow_table(), mode=mode)
        cursor.adbc_ingest(table, arrow_table().to_reader(max_chunksize=2), mode="replace")
        connection.commit()
        cursor.execute(f"SELECT * FROM {table} ORDER BY id")
        found = cursor.fetch_arrow_table()
        kinds.check_rows(rows_of(found), SCHEMA.names)
        assert found.schema.remove_metadata().types == SCHEMA.types
        with pytest.raises(adbc.ProgrammingError):
            cursor.adbc_ingest(table, arrow_table(), mode="create")


def test_values_of_all_types(connection, table):
    with connection.cursor() as cursor:
        cursor.execute(kinds.create(table))
        cursor.adbc_ingest(table, arrow_table(), mode="append")
        cursor.execute(f"UPDATE {table} SET arr = ARRAY[1.5, NULL], n = -999999999999999.999, u = '11111111-2222-3333-4444-555555555555', j = '[1, null]' WHERE id = 1")
        for copies in ["true", "false"]:
            cursor.adbc_statement.set_options(**{"adbc.postgresql.use_copy": copies})
            cursor.execute(f"SELECT n, u, j, at, arr, bin FROM {table} WHERE id IN (1, 6) ORDER BY id")
            found = cursor.fetch_arrow_table()
            assert [str(n) if n is not None else None for n in found["n"].to_pylist()] == ["-999999999999999.999", None]
            assert found["j"].to_pylist() == ["[1, null]", None] and found["at"].to_pylist() == [dt.datetime(1, 1, 1, 0, 0, 0, 1), None] and found["arr"].to_pylist() == [[1.5, None], None]
            assert [bytes(u) if u is not None else None for u in map(lambda u: getattr(u, "bytes", u), found["u"].to_pylist())] == [bytes.fromhex("11111111222233334444555555555555"), None]
            cursor.execute("SELECT interval '1 month 2 days 3.5 seconds' AS i, ARRAY['a', NULL] AS a, '2024-07-01T12:00:00Z'::timestamptz AS z, time '01:02:03' AS c")
            (row,) = cursor.fetch_arrow_table().to_pylist()
            assert tuple(row["i"]) == (1, 2, 3_500_000_000) and row["a"] == ["a", None] and row["z"] == dt.datetime(2024, 7, 1, 12, tzinfo=dt.timezone.utc) and row["c"] == dt.time(1, 2, 3)


def test_parameters(connection, table):
    with connection.cursor() as cursor:
        cursor.execute(kinds.create(table))
        names = ", ".join(SCHEMA.names)
        places = ", ".join(f"${n + 1}" for n in range(len(SCHEMA.names)))
        cursor.executemany(f"INSERT INTO {table} ({names}) VALUES ({places})", arrow_table())
        cursor.execute(f"SELECT {names} FROM {table} ORDER BY id")
        kinds.check_rows(rows_of(cursor.fetch_arrow_table()), SCHEMA.names)
        for name, value, count in [("id", 3, 1), ("b", True, 2), ("i2", -(2**15), 1), ("f8", 5e-324, 1), ("t", kinds.ODD, 1), ("bin", b"\\x00", 1), ("at", dt.datetime(1970, 1, 1), 1), ("d", dt.date(9999, 12, 30), 1)]:
            for _ in range(2):
                cursor.execute(f"SELECT count(*) FROM {table} WHERE {name} = $1", (value,))
                assert cursor.fetchone() == (count,), name
        assert cursor.adbc_prepare(f"SELECT * FROM {table} WHERE id = $1 AND at > $2").types == [pa.int64(), pa.timestamp("us")]


def test_metadata(connection, table):
    with connection.cursor() as cursor:
        cursor.execute(kinds.create(table))
        connection.commit()
        schema = connection.adbc_get_table_schema(table)
        assert {name: str(schema.field(name).type) for name in SCHEMA.names} == {name: str(SCHEMA.field(name).type) for name in SCHEMA.names}
        objects = connection.adbc_get_objects(depth="all", catalog_filter="tidalite", db_schema_filter="public", table_name_filter=table).read_all().to_pylist()
        (schemas,) = [entry["catalog_db_schemas"] for entry in objects if entry["catalog_name"] == "tidalite"]
        (public,) = [entry for entry in schemas if entry["db_schema_name"] == "public"]
        (one,) = public["db_schema_tables"]
        assert one["table_name"] == table and one["table_type"] == "table"
        assert {column["column_name"]: column["ordinal_position"] for column in one["table_columns"]} == {name: n for n, name in enumerate(kinds.COLUMNS, 1)}
        assert connection.adbc_get_info()["vendor_name"] == "PostgreSQL" and "table" in connection.adbc_get_table_types()
        with pytest.raises(adbc.ProgrammingError):
            connection.adbc_get_table_schema("no_such_table")


@pytest.mark.parametrize("statement,state", kinds.ERRORS)
def test_errors(connection, table, statement, state):
    with connection.cursor() as cursor:
        cursor.execute(kinds.create(table))
        connection.commit()
        with pytest.raises(adbc.Error) as caught:
            cursor.execute(statement.format(t=table))
            cursor.fetchall()
        assert caught.value.sqlstate == state
        connection.rollback()
        cursor.execute("SELECT 1")
        assert cursor.fetchone() == (1,)


def test_transactions(side, connection, table):
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {table} (id bigint)")
        connection.commit()
        cursor.execute(f"INSERT INTO {table} VALUES (1)")
        connection.rollback()
        cursor.adbc_ingest(table, pa.table({"id": [2]}), mode="append")
        connection.rollback()
        cursor.execute(f"INSERT INTO {table} VALUES (3)")
        cursor.execute("SAVEPOINT a")
        cursor.execute(f"INSERT INTO {table} VALUES (4)")
        cursor.execute("ROLLBACK TO SAVEPOINT a")
        connection.commit()
        cursor.execute(f"SELECT id FROM {table}")
        assert cursor.fetchall() == [(3,)]
    with adbc.connect(side.url(), autocommit=True) as other, other.cursor() as cursor:
        cursor.execute(f"INSERT INTO {table} VALUES (5)")
        cursor.execute(f"SELECT count(*) FROM {table}")
        assert cursor.fetchone() == (2,)


def test_large_results(connection):
    with connection.cursor() as cursor:
        cursor.execute("SELECT x, x * 0.5::float8 AS half, 'row ' || x AS t FROM generate_series(1, 200000) AS x")
        found = cursor.fetch_record_batch()
        rows, total = 0, 0
        for batch in found:
            rows += batch.num_rows
            total += sum(batch.column("half").to_pylist())
        assert (rows, total) == (200000, 10000050000.0)


def test_cancellation(connection):
    with connection.cursor() as cursor:
        timer = threading.Timer(0.2, cursor.adbc_cancel)
        timer.start()
        with pytest.raises(adbc.Error) as caught:
            cursor.execute("SELECT pg_sleep(60)")
            cursor.fetchall()
        assert caught.value.sqlstate == "57014" or caught.value.status_code == adbc_driver_manager.AdbcStatusCode.CANCELLED
        connection.rollback()
        cursor.execute("SELECT 1")
        assert cursor.fetchone() == (1,)


def test_nanoseconds_of_tidalite(server, table):
    """The binary form has microseconds, rounded down; a parameter as text has all digits."""
    server.exec(f"create table {table} (ts timestamp_ns, n int) timestamp(ts) partition by day")
    server.exec(f"insert into {table} values ('1969-12-31T23:59:59.999999999Z', 1), ('2024-01-01T00:00:00.123456789Z', 2)")
    with adbc.connect(f"postgresql://u@127.0.0.1:{server.pg_port}/tidalite") as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT ts FROM {table}")
        assert cursor.fetchall() == [(dt.datetime(1969, 12, 31, 23, 59, 59, 999999),), (dt.datetime(2024, 1, 1, 0, 0, 0, 123456),)]
        for condition, value, found in [("ts = $1::timestamp_ns", "2024-01-01T00:00:00.123456789Z", [2]), ("ts > $1", dt.datetime(2024, 1, 1, 0, 0, 0, 123456), [2]), ("ts = $1", dt.datetime(2024, 1, 1, 0, 0, 0, 123456), [])]:
            cursor.execute(f"SELECT n FROM {table} WHERE {condition}", (value,))
            assert [row[0] for row in cursor.fetchall()] == found, condition
        cursor.execute(f"INSERT INTO {table} VALUES ($1, 3)", (dt.datetime(2024, 1, 2, 0, 0, 0, 1),))
        connection.commit()
    assert server.rows(f"select ts from {table} where n = 3") == [["2024-01-02T00:00:00.000001000Z"]]
