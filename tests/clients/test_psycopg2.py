"""psycopg 2, which writes values into statements: the same tests on Tidalite and on PostgreSQL."""

import datetime as dt
import io
import select
import threading
import uuid
from decimal import Decimal

import kinds
import psycopg2
import psycopg2.errors
import psycopg2.extensions
import psycopg2.extras
import pytest

psycopg2.extras.register_uuid()


@pytest.fixture
def connection(side):
    connection = psycopg2.connect(dbname=side.database, **side.arguments)
    yield connection
    connection.close()


@pytest.fixture
def cursor(connection):
    return connection.cursor()


def fill(cursor, table):
    cursor.execute(kinds.create(table))
    for row in kinds.ROWS:
        cursor.execute(f"INSERT INTO {table} VALUES ({', '.join(['%s'] * len(row))})", row)
        assert cursor.rowcount == 1 and cursor.statusmessage == "INSERT 0 1"


def test_values_of_all_types(connection, cursor, table):
    fill(cursor, table)
    connection.commit()
    cursor.execute(f"SELECT * FROM {table} ORDER BY id")
    # The client writes -0.0 without quotes, which PostgreSQL reads as a NUMERIC.
    kinds.check_rows(cursor.fetchall(), has_signed_zero=False, is_json_parsed=True)
    described = {column.name: (column.type_code, column.internal_size, column.precision, column.scale) for column in cursor.description}
    assert described == {
        "id": (20, 8, None, None), "b": (16, 1, None, None), "i2": (21, 2, None, None), "i4": (23, 4, None, None), "i8": (20, 8, None, None), "f4": (700, 4, None, None), "f8": (701, 8, None, None),
        "n": (1700, 18, 18, 3), "at": (1114, 8, None, None), "d": (1082, 4, None, None), "t": (25, -1, None, None), "bin": (17, -1, None, None), "u": (2950, 16, None, None), "j": (114, -1, None, None), "arr": (1022, -1, None, None),
    }


@pytest.mark.parametrize("kind,value", kinds.PARAMETERS)
def test_values_of_casts(cursor, kind, value):
    cursor.execute(f"SELECT (%s)::{kind}", (value,))
    assert cursor.fetchone() == (value,)


def test_lists_ranges_and_literals(cursor, table):
    fill(cursor, table)
    one = lambda sql, *values: (cursor.execute(sql.replace("{t}", table), values), cursor.fetchone()[0])[1]
    assert one("SELECT count(*) FROM {t} WHERE id IN %s", (1, 2, 9)) == 2
    assert one("SELECT count(*) FROM {t} WHERE id = ANY(%s)", [1, 2, 9]) == 2
    assert one("SELECT count(*) FROM {t} WHERE t = %s", kinds.ODD) == 1
    assert one("SELECT count(*) FROM {t} WHERE bin = %s", bytes(range(256))) == 1
    assert one("SELECT count(*) FROM {t} WHERE u = %s", uuid.UUID(int=1)) == 1
    assert one("SELECT count(*) FROM {t} WHERE d > %s", dt.date(1969, 12, 31)) == 3
    assert one("SELECT count(*) FROM {t} WHERE at >= %s AND at < %s", dt.datetime(1970, 1, 1), dt.datetime(2025, 1, 1)) == 2
    assert one("SELECT count(*) FROM {t} WHERE f8 = %s", float("nan")) == 1
    assert one("SELECT count(*) FROM {t} WHERE n = %s", Decimal("-0.001")) == 1
    assert one("SELECT count(*) FROM {t} WHERE b IS NOT %s", None) == 4
    assert one("SELECT E'a\\'b\\\\c\\n\\x41\\u00e4'") == "a'b\\c\nA\u00e4"
    assert one("SELECT $tag$it's $1 $$ %% $tag$") == "it's $1 $$ % "


@pytest.mark.parametrize("sql,state", kinds.ERRORS)
def test_errors(connection, cursor, table, sql, state):
    cursor.execute(kinds.create(table))
    connection.commit()
    with pytest.raises(psycopg2.errors.lookup(state)) as caught:
        cursor.execute(sql.format(t=table))
    assert caught.value.pgcode == state and caught.value.diag.severity == "ERROR" and caught.value.diag.message_primary
    with pytest.raises(psycopg2.errors.InFailedSqlTransaction):
        cursor.execute("SELECT 1")
    connection.rollback()
    cursor.execute("SELECT 1")
    assert cursor.fetchone() == (1,)


def test_transactions(side, connection, cursor, table):
    cursor.execute(f"CREATE TABLE {table} (id int)")
    assert connection.info.transaction_status == psycopg2.extensions.TRANSACTION_STATUS_INTRANS
    connection.rollback()
    with pytest.raises(psycopg2.errors.UndefinedTable):
        cursor.execute(f"SELECT * FROM {table}")
    connection.rollback()
    cursor.execute(f"CREATE TABLE {table} (id int)")
    connection.commit()
    with pytest.raises(ZeroDivisionError), connection:
        cursor.execute(f"INSERT INTO {table} VALUES (1)")
        raise ZeroDivisionError
    with connection:
        cursor.execute(f"INSERT INTO {table} VALUES (2)")
        cursor.execute("SAVEPOINT a")
        cursor.execute(f"INSERT INTO {table} VALUES (3)")
        with pytest.raises(psycopg2.errors.DivisionByZero):
            cursor.execute("SELECT 1/0")
        cursor.execute("ROLLBACK TO SAVEPOINT a")
        cursor.execute("RELEASE SAVEPOINT a")
        cursor.execute(f"INSERT INTO {table} VALUES (4)")
    cursor.execute(f"SELECT array_agg(id ORDER BY id) FROM {table}")
    assert cursor.fetchone() == ([2, 4],)
    connection.commit()
    for level in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"]:
        connection.set_session(isolation_level=level)
        cursor.execute("SHOW transaction_isolation")
        assert cursor.fetchone() == (level.lower(),)
        connection.commit()
    connection.set_session(readonly=True)
    with pytest.raises(psycopg2.errors.ReadOnlySqlTransaction):
        cursor.execute(f"INSERT INTO {table} VALUES (5)")
    connection.rollback()


def test_copy(connection, cursor, table):
    fill(cursor, table)
    out = io.StringIO()
    cursor.copy_to(out, table, null="\\N")
    lines = out.getvalue().splitlines()
    assert len(lines) == len(kinds.ROWS) and lines[-1] == "6" + "\t\\N" * 14
    assert lines[0] == "1\tt\t-32768\t-2147483648\t-9223372036854775808\t-1e-45\t-1.7976931348623157e+308\t-999999999999999.999\t0001-01-01 00:00:00.000001\t0001-01-02\t\t\\\\x\t00000000-0000-0000-0000-000000000000\t{}\t{}"
    cursor.execute(kinds.create(table + "_b"))
    cursor.copy_from(io.StringIO(out.getvalue()), table + "_b", null="\\N")
    assert cursor.rowcount == len(kinds.ROWS)
    csv = io.StringIO()
    cursor.copy_expert(f"COPY (SELECT id, t, bin, arr, n FROM {table}_b ORDER BY id) TO STDOUT WITH (FORMAT csv, HEADER, NULL '-')", csv)
    # PostgreSQL writes quotes around an empty text only if NULL is an empty text.
    assert csv.getvalue().replace('""', "").splitlines()[:2] == ["id,t,bin,arr,n", "1,,\\x,{},-999999999999999.999"]
    cursor.execute(kinds.create(table + "_c"))
    cursor.copy_expert(f"COPY {table}_c (id, t, bin, arr, n) FROM STDIN WITH (FORMAT csv, HEADER, NULL '-')", io.StringIO(csv.getvalue()))
    cursor.execute(f"SELECT id, t, bin, arr, n FROM {table}_c ORDER BY id")
    kinds.check_rows(cursor.fetchall(), ("id", "t", "bin", "arr", "n"), has_signed_zero=False)
    with pytest.raises(psycopg2.errors.InvalidTextRepresentation) as caught:
        cursor.copy_from(io.StringIO("1\n2\nx\n"), table, columns=("id",))
    assert "line 3" in str(caught.value)
    connection.rollback()


def test_batches(connection, cursor, table):
    cursor.execute(f"CREATE TABLE {table} (id bigint, t text)")
    made = psycopg2.extras.execute_values(cursor, f"INSERT INTO {table} VALUES %s RETURNING id", [(n, f"t{n}") for n in range(1000)], page_size=300, fetch=True)
    assert made == [(n,) for n in range(1000)]
    psycopg2.extras.execute_batch(cursor, f"UPDATE {table} SET t = %s WHERE id = %s", [("x", n) for n in range(50)], page_size=20)
    cursor.executemany(f"DELETE FROM {table} WHERE id = %s", [(n,) for n in range(10)])
    cursor.execute(f"SELECT count(*), count(DISTINCT t), sum(id) FROM {table}")
    assert cursor.fetchone() == (990, 951, 499455)
    connection.commit()
    with connection.cursor("named") as named:
        named.itersize = 100
        named.execute(f"SELECT id FROM {table} ORDER BY id")
        assert sum(row[0] for row in named) == 499455
    with connection.cursor("back", scrollable=True) as named:
        named.execute(f"SELECT id FROM {table} ORDER BY id")
        named.scroll(5)
        assert named.fetchone() == (15,)
        named.scroll(-2)
        assert named.fetchmany(2) == [(14,), (15,)]


def test_cancellation(connection, cursor):
    timer = threading.Timer(0.2, connection.cancel)
    timer.start()
    with pytest.raises(psycopg2.errors.QueryCanceled) as caught:
        cursor.execute("SELECT pg_sleep(60)")
    assert caught.value.pgcode == "57014"
    connection.rollback()
    cursor.execute("SELECT 1")
    assert cursor.fetchone() == (1,)


def test_asynchronous_connection(side):
    def wait(connection):
        while True:
            state = connection.poll()
            if state == psycopg2.extensions.POLL_OK:
                return
            select.select([connection.fileno()] if state == psycopg2.extensions.POLL_READ else [], [connection.fileno()] if state == psycopg2.extensions.POLL_WRITE else [], [], 10)

    connection = psycopg2.connect(dbname=side.database, async_=True, **side.arguments)
    wait(connection)
    cursor = connection.cursor()
    cursor.execute("SELECT %s::int + 1; SELECT %s::text", (41, "ü"))
    wait(connection)
    assert cursor.fetchall() == [("ü",)]
    connection.close()


def test_rows_by_name_and_settings(connection):
    with connection.cursor(cursor_factory=psycopg2.extras.RealDictCursor) as cursor:
        cursor.execute('SELECT 1 AS "One", NULL::text AS nothing')
        assert cursor.fetchall() == [{"One": 1, "nothing": None}]
    assert connection.server_version >= 140000 and connection.encoding == "UTF8"
    assert connection.get_parameter_status("integer_datetimes") == "on" and connection.get_parameter_status("standard_conforming_strings") == "on"
