"""PEP 249, and what builds on it."""

import pandas as pd
import pytest
import tidalite
import tidalite.dbapi as dbapi


@pytest.fixture
def connection(db, table):
    with dbapi.connect(db) as connection:
        connection.execute(f"create table {table} (ts timestamp, s symbol, n long) timestamp(ts) partition by day")
        connection.cursor().executemany(f"insert into {table} values (?, ?, ?)", [(f"2026-01-0{i}", "ab"[i % 2], i) for i in range(1, 6)])
        yield connection


def test_the_module():
    assert (dbapi.apilevel, dbapi.threadsafety, dbapi.paramstyle) == ("2.0", 2, "qmark")
    assert issubclass(dbapi.DataError, dbapi.DatabaseError) and issubclass(dbapi.DatabaseError, dbapi.Error) and dbapi.Error is tidalite.Error
    assert dbapi.NUMBER == "LONG" and dbapi.STRING == "SYMBOL" and dbapi.NUMBER != "SYMBOL"
    assert str(dbapi.DateFromTicks(0)) == "1970-01-01" and str(dbapi.TimestampFromTicks(0)) == "1970-01-01 00:00:00"


def test_a_cursor(connection, table):
    cursor = connection.cursor()
    assert cursor.description is None
    with pytest.raises(dbapi.ProgrammingError):
        cursor.fetchone()
    cursor.execute(f"select s, n from {table} where n > ? order by n", (1,))
    assert [column[0] for column in cursor.description] == ["s", "n"] and cursor.description[1][1] == dbapi.NUMBER
    assert cursor.fetchone() == ("a", 2) and cursor.fetchmany(2) == [("b", 3), ("a", 4)] and cursor.fetchall() == [("b", 5)] and cursor.fetchone() is None
    assert list(cursor.execute(f"select n from {table} order by n")) == [(1,), (2,), (3,), (4,), (5,)]
    cursor.executemany(f"insert into {table} values ($1, $2, $3)", [["2026-02-01", "c", 9], ["2026-02-02", "c", 10]])
    assert cursor.rowcount == 2
    cursor.close()
    with pytest.raises(dbapi.InterfaceError):
        cursor.execute("select 1")


def test_transactions_are_statements(connection):
    connection.commit()
    connection.rollback()


@pytest.mark.filterwarnings("ignore:pandas only supports SQLAlchemy")
def test_pandas_read_sql(connection, table):
    frame = pd.read_sql(f"select ts, s, n from {table} where s = ? order by ts", connection, params=["b"])
    assert frame["n"].tolist() == [1, 3, 5] and frame["ts"].iloc[0] == pd.Timestamp("2026-01-01")


def test_a_connection_of_its_own(tmp_path, table):
    with dbapi.connect(tmp_path / "d") as connection:
        assert connection.execute("select 1").fetchall() == [(1,)]
    with pytest.raises(dbapi.InterfaceError):
        connection.cursor()
