"""Unmodified client programs: psql meta-commands, SQLAlchemy with pandas, and cursors."""

import shutil
import subprocess

import pandas
import psycopg
import pytest

TABLE = "create table tool_trades (ts timestamp, symbol symbol, price double, size long, n decimal(10,2)) timestamp(ts) partition by day dedup upsert keys(ts, symbol)"

COMMANDS = r"""\d
\d tool_trades
\d nosuch
\dt
\dt+
\dt tool*
\dv
\dm
\di
\di+
\ds
\df
\da
\dT
\du
\dg
\db
\db+
\dn
\dn+
\dx
\dy
\dp
\dD
\dE
\dL
\dA
\dc
\dC
\des
\det
\deu
\dew
\dl
\dO
\dP
\drds
\dRp
\dRs
\dX
\l
\l+
\ddp
\conninfo
\encoding
"""


@pytest.fixture
def connection(server):
    with psycopg.connect(host="127.0.0.1", port=server.pg_port, user="admin", dbname="tidalite", autocommit=True) as connection:
        connection.execute("drop table if exists tool_trades")
        connection.execute(TABLE)
        connection.execute("insert into tool_trades values ('2024-01-01', 'a', 1.5, 7, 2.25), ('2024-01-02', 'b', 2.5, 8, null)")
        yield connection
        connection.execute("drop table if exists tool_trades")


def test_psql_meta_commands(server, connection):
    if not shutil.which("psql"):
        pytest.skip("no psql on this machine")
    command = ["psql", "-X", "-h", "127.0.0.1", "-p", str(server.pg_port), "-U", "admin", "tidalite", "-P", "pager=off"]
    ran = subprocess.run(command, input=COMMANDS, capture_output=True, encoding="utf-8", timeout=60, check=False)
    wrong = [line for line in ran.stderr.splitlines() if "ERROR" in line]
    assert not wrong, "\n".join(wrong)
    # As PostgreSQL shows a table with a primary key.
    for expected in ['Table "public.tool_trades"', "ts     | timestamp without time zone |", '"tool_trades_pkey" PRIMARY KEY, btree (ts, symbol)', 'Did not find any relation named "nosuch"']:
        assert expected in ran.stdout + ran.stderr, ran.stdout


def test_types_of_functions(connection):
    """The type numbers are those of PostgreSQL 15 for the same expressions."""
    int4, int8, float8, name, text, bool_ = 23, 20, 701, 19, 25, 16
    for sql, oid in [
        ("row_number() over ()", int8), ("rank() over (order by ts)", int8), ("dense_rank() over (order by ts)", int8), ("ntile(2) over (order by ts)", int4),
        ("percent_rank() over (order by ts)", float8), ("count(*) over ()", int8), ("array_length(array[1,2], 1)", int4), ("cardinality(array[1,2])", int4), ("array_ndims(array[1,2])", int4),
        ("array_position(array[1,2], 2)", int4), ("array_upper(array[1,2], 1)", int4), ("length('a')", int4), ("strpos('ab', 'b')", int4), ("ascii('a')", int4), ("octet_length('a')", int4),
        ("current_user", name), ("current_database()", name), ("version()", text), ("pg_is_in_recovery()", bool_), ("pg_backend_pid()", int4), ("1::float", float8), ("1::real", 700), ("1::float(24)", 700),
        ("1::float(25)", float8), ("'x'::name", name), ("1::oid", 26), ("'pg_class'::regclass", 2205), ("now()::timestamptz", 1184),
    ]:
        found = connection.execute(f"select {sql} as v from tool_trades limit 1").description[0].type_code
        assert found == oid, f"{sql}: {found} instead of {oid}"


def test_columns_are_described_by_their_table(connection):
    cursor = connection.execute("select ts, n, price * 2 as twice from tool_trades")
    oid = connection.execute("select 'tool_trades'::regclass::oid").fetchone()[0]
    result = cursor.pgresult
    assert [(result.ftable(i), result.ftablecol(i), result.fmod(i)) for i in range(3)] == [(oid, 1, -1), (oid, 5, ((10 << 16) | 2) + 4), (0, 0, -1)]


def test_parameters_have_the_types_of_their_casts(connection):
    import datetime
    import decimal

    for sql, value, expected in [
        ("select %s::numeric", decimal.Decimal("1.50"), decimal.Decimal("1.50")), ("select %s::int[]", [1, None, 3], [1, None, 3]), ("select %s::float8[]", [1.5, 2.5], [1.5, 2.5]),
        ("select %s::interval", datetime.timedelta(days=1, seconds=5), datetime.timedelta(days=1, seconds=5)), ("select %s::time", datetime.time(1, 2, 3), datetime.time(1, 2, 3)),
        ("select count(*) from tool_trades where symbol = any(%s)", ["a", None, "z"], 1), ("select count(*) from tool_trades where size in (%s)", [7, 8, None], 2),
        ("select count(*) from tool_trades where size = any(%s)", [7, 9], 1),
    ]:
        assert connection.execute(sql, [value]).fetchone()[0] == expected, sql
        assert connection.execute(sql, [value], prepare=True, binary=True).fetchone()[0] == expected, sql


def test_cursors(connection):
    with connection.transaction():
        with connection.cursor("forward") as cursor:
            cursor.execute("select x from long_sequence(5)")
            assert [row[0] for row in cursor.fetchmany(2)] == [1, 2]
            assert [row[0] for row in cursor.fetchall()] == [3, 4, 5]
        with connection.cursor("back", scrollable=True) as cursor:
            cursor.execute("select x from long_sequence(5)")
            assert cursor.fetchmany(3) == [(1,), (2,), (3,)]
            cursor.scroll(-2)
            assert cursor.fetchone() == (2,)
            cursor.scroll(0, mode="absolute")
            assert cursor.fetchall() == [(1,), (2,), (3,), (4,), (5,)]
    with pytest.raises(psycopg.errors.NoActiveSqlTransaction):
        connection.execute("declare c cursor for select 1")
    with connection.transaction():
        connection.execute("declare kept cursor with hold for select x from long_sequence(3)")
        connection.execute("declare gone cursor for select 1")
    assert connection.execute("fetch 2 from kept").fetchall() == [(1,), (2,)]
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        connection.execute("fetch prior from kept")
    connection.execute("close kept")
    with pytest.raises(psycopg.errors.InvalidCursorName):
        connection.execute("fetch from gone")


def test_settings_and_zones(connection):
    assert connection.execute("select set_config('timezone', 'Europe/Berlin', false), current_user").fetchone() == ("Europe/Berlin", "admin")
    assert connection.execute("show timezone").fetchone() == ("Europe/Berlin",)
    assert connection.execute("select current_setting('timezone')").fetchone() == ("Europe/Berlin",)
    # As PostgreSQL writes a timestamp with time zone in that zone.
    result = connection.pgconn.exec_(b"select '2024-07-01T00:00:00Z'::timestamp::timestamptz")
    assert result.get_value(0, 0) == b"2024-07-01 02:00:00+02"
    connection.execute("set time zone 'UTC'")


def test_pandas_writes_and_reads_tables(server):
    sqlalchemy = pytest.importorskip("sqlalchemy")
    engine = sqlalchemy.create_engine(f"postgresql+psycopg://admin@127.0.0.1:{server.pg_port}/tidalite")
    frame = pandas.DataFrame({"a": [1, 2, 3], "f": [1.5, 2.5, None], "t": pandas.to_datetime(["2024-01-01", "2024-01-02", "2024-01-03"]), "s": ["x", "y", None], "b": [True, False, True]})
    frame.to_sql("pandas_table", engine, index=False, if_exists="replace")
    frame.to_sql("pandas_table", engine, index=False, if_exists="append", method="multi")
    back = pandas.read_sql_table("pandas_table", engine)
    assert len(back) == 6 and back["f"].sum() == 8.0 and str(back["t"].dtype).startswith("datetime64")
    inspector = sqlalchemy.inspect(engine)
    assert "pandas_table" in inspector.get_table_names()
    assert [str(column["type"]) for column in inspector.get_columns("pandas_table")] == ["BIGINT", "DOUBLE PRECISION", "TIMESTAMP", "TEXT", "BOOLEAN"]
    with engine.begin() as connection:
        connection.exec_driver_sql("drop table pandas_table")
