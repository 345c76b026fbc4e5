"""Transactions of the engine in this process, by `with`, DB-API and SQLAlchemy."""

import threading

import pandas as pd
import pytest
import sqlalchemy as sa
import sqlalchemy.orm
import tidalite
import tidalite.dbapi as dbapi


@pytest.fixture
def db(tmp_path):
    with tidalite.open(tmp_path / "d") as db:
        db.sql("create table t (ts timestamp, s symbol, n long) timestamp(ts) partition by day")
        db.sql("insert into t values ('2026-01-01', 'a', 1), ('2026-01-02', 'b', 2)")
        yield db


def numbers(db):
    return [n for (n,) in db.sql("select n from t order by n").fetchall()]


def in_another_thread(work):
    found = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]


def test_with(db):
    with db.transaction():
        db.sql("insert into t values ('2026-01-03', 'c', 3)")
        assert db.sql("update t set n = n * 10 where n < 3").rowcount == 2
        assert numbers(db) == [3, 10, 20]
        assert in_another_thread(lambda: numbers(db)) == [1, 2]
    assert numbers(db) == [3, 10, 20]
    with pytest.raises(RuntimeError):
        with db.transaction():
            db.sql("delete from t")
            db.write("t", pd.DataFrame({"ts": pd.to_datetime(["2026-01-05"]), "s": ["x"], "n": [5]}))
            assert numbers(db) == [5]
            raise RuntimeError
    assert numbers(db) == [3, 10, 20]


def test_one_within_another_is_a_savepoint(db):
    with db.transaction():
        db.sql("delete from t where n = 1")
        with pytest.raises(tidalite.ProgrammingError):
            with db.transaction():
                db.sql("delete from t")
                db.sql("select nosuch from t")
        assert numbers(db) == [2]
        with db.transaction():
            db.sql("insert into t values ('2026-01-03', 'c', 3)")
    assert numbers(db) == [2, 3]


def test_frames_and_new_tables(db):
    frame = pd.DataFrame({"ts": pd.to_datetime(["2026-01-05", "2026-01-06"]), "x": [1.5, 2.5]})
    with pytest.raises(RuntimeError):
        with db.transaction():
            assert db.write("made", frame, at="ts") == 2
            raise RuntimeError
    assert db.tables() == ["t"]
    with db.transaction():
        db.write("made", frame, at="ts")
        assert db.sql("select sum(x) from made").fetchall() == [(4.0,)]
    assert db.sql("select sum(x) from made").fetchall() == [(4.0,)]


def test_without_with(db):
    one, two = db.transaction(), db.transaction()
    one.sql("update t set n = 100 where n = 1")
    two.sql("update t set n = 200 where n = 1")
    one.commit()
    with pytest.raises(tidalite.IntegrityError, match="serialize"):
        two.commit()
    assert numbers(db) == [2, 100]
    one.sql("delete from t")
    one.rollback()
    one.rollback()
    assert numbers(db) == [2, 100]


def test_over_http_there_are_none(remote):
    with pytest.raises(tidalite.NotSupportedError):
        remote.transaction()
    with pytest.raises(tidalite.NotSupportedError):
        dbapi.connect(remote, autocommit=False)
    assert dbapi.connect(remote).autocommit


def test_dbapi(tmp_path):
    folder = tmp_path / "d"
    with dbapi.connect(folder) as a, dbapi.connect(folder) as b:
        a.execute("create table t (ts timestamp, n long) timestamp(ts)")
        with pytest.raises(dbapi.ProgrammingError):
            b.execute("select * from t")
        b.rollback()
        a.commit()
        a.execute("insert into t values ('2026-01-01', 1)")
        assert b.execute("select count(*) from t").fetchall() == [(0,)]
        a.rollback()
        a.execute("insert into t values ('2026-01-01', 2)")
        a.commit()
        assert b.execute("select n from t").fetchall() == [(2,)]
        a.execute("delete from t")
    with dbapi.connect(folder, autocommit=True) as c:
        assert c.execute("select n from t").fetchall() == [(2,)]
        c.execute("insert into t values ('2026-01-01', 3)")
    with dbapi.connect(folder) as c:
        assert c.execute("select count(*) from t").fetchall() == [(2,)]


def test_sqlalchemy(tmp_path):
    engine = sa.create_engine(f"tidalite:///{tmp_path / 'd'}")
    table = sa.Table("t", sa.MetaData(), sa.Column("ts", sa.DateTime), sa.Column("n", sa.BigInteger), tidalite_timestamp="ts")
    with engine.begin() as connection:
        table.create(connection)
        connection.execute(sa.text("insert into t values ('2026-01-01', 1)"))
    with pytest.raises(RuntimeError):
        with engine.begin() as connection:
            connection.execute(sa.text("delete from t"))
            raise RuntimeError
    with engine.connect() as connection:
        connection.execute(sa.text("delete from t"))
    with sa.orm.Session(engine) as session:
        assert session.execute(sa.text("select n from t")).all() == [(1,)]
        with session.begin_nested() as point:
            session.execute(sa.text("delete from t"))
            point.rollback()
        session.execute(sa.text("insert into t values ('2026-01-02', 2)"))
        session.commit()
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(sa.text("insert into t values ('2026-01-03', 3)"))
    with engine.connect().execution_options(isolation_level="SERIALIZABLE") as connection:
        assert connection.scalar(sa.text("select count(*) from t")) == 3
    engine.dispose()
    # The database is closed, so another process may open the folder.
    with tidalite.open(tmp_path / "d") as db:
        assert db.sql("select count(*) from t").fetchall() == [(3,)]
