"""SQLAlchemy over three drivers, and pandas; the same tests on Tidalite and on PostgreSQL."""

import asyncio
import datetime as dt
import math
import uuid
from decimal import Decimal

import kinds
import numpy
import pandas
import pytest
import sqlalchemy as sa
from sqlalchemy import orm
from sqlalchemy.dialects import postgresql as pg
from sqlalchemy.ext.asyncio import create_async_engine

DRIVERS = ["psycopg", "psycopg2"]
TYPES = {
    "id": sa.BigInteger, "b": sa.Boolean, "i2": sa.SmallInteger, "i4": sa.Integer, "i8": sa.BigInteger, "f4": sa.REAL, "f8": sa.Double, "n": sa.Numeric(18, 3), "at": sa.DateTime, "d": sa.Date,
    "t": sa.Text, "bin": sa.LargeBinary, "u": sa.Uuid, "j": sa.JSON, "arr": pg.ARRAY(sa.Double),
}


@pytest.fixture(params=DRIVERS)
def engine(side, request):
    engine = sa.create_engine(side.url(f"postgresql+{request.param}"))
    yield engine
    engine.dispose()


def defined(table, metadata=None):
    return sa.Table(table, metadata or sa.MetaData(), *[sa.Column(name, kind) for name, kind in TYPES.items()])


def parsed_rows():
    import json

    at = list(kinds.COLUMNS).index("j")
    return [dict(zip(kinds.COLUMNS, (*row[:at], sa.null() if row[at] is None else json.loads(row[at]), *row[at + 1 :]))) for row in kinds.ROWS]


def test_values_of_all_types(engine, table):
    t = defined(table)
    t.create(engine)
    with engine.begin() as connection:
        for row in parsed_rows():
            connection.execute(t.insert(), row)
    with engine.connect() as connection:
        rows = connection.execute(sa.select(t).order_by(t.c.id)).all()
        kinds.check_rows(rows, has_signed_zero=engine.driver != "psycopg2", is_json_parsed=True)
        found = connection.execute(sa.select(t.c.id).where(t.c.u == uuid.UUID(int=1), t.c.at < dt.datetime(2024, 1, 1), t.c.n.in_([Decimal("-0.001"), Decimal(5)]), t.c.id.in_(range(10)))).scalars().all()
        assert found == [4]
        assert connection.execute(sa.select(sa.func.count(), sa.func.max(t.c.d)).where(t.c.t.like("%täxt%") | t.c.bin.is_(None))).one() == (3, dt.date(9999, 12, 30))
    t.drop(engine)


def test_reflection(engine, table):
    defined(table).create(engine)
    metadata = sa.MetaData()
    metadata.reflect(engine, only=[table])
    assert {column.name: str(column.type.compile(engine.dialect)) for column in metadata.tables[table].columns} == {
        "id": "BIGINT", "b": "BOOLEAN", "i2": "SMALLINT", "i4": "INTEGER", "i8": "BIGINT", "f4": "REAL", "f8": "DOUBLE PRECISION", "n": "NUMERIC(18, 3)", "at": "TIMESTAMP WITHOUT TIME ZONE", "d": "DATE", "t": "TEXT",
        "bin": "BYTEA", "u": "UUID", "j": "JSON", "arr": "DOUBLE PRECISION[]",
    }
    inspector = sa.inspect(engine)
    assert table in inspector.get_table_names() and inspector.has_table(table) and not inspector.has_table("no_such_table")
    assert inspector.get_pk_constraint(table)["constrained_columns"] == [] and inspector.get_indexes(table) == [] and inspector.get_foreign_keys(table) == []
    assert {column["nullable"] for column in inspector.get_columns(table)} == {True} and {column["default"] for column in inspector.get_columns(table)} == {None}
    with engine.begin() as connection:
        connection.exec_driver_sql(f"CREATE VIEW {table}_v AS SELECT id, at FROM {table}")
    inspector = sa.inspect(engine)
    assert f"{table}_v" in inspector.get_view_names() and [column["name"] for column in inspector.get_columns(f"{table}_v")] == ["id", "at"]
    with pytest.raises(sa.exc.NoSuchTableError):
        inspector.get_columns("no_such_table")
    with engine.begin() as connection:
        connection.exec_driver_sql(f"DROP VIEW {table}_v")


def test_many_rows_in_one_statement(engine, table):
    """`insertmanyvalues` with RETURNING, in pages."""
    t = sa.Table(table, sa.MetaData(), sa.Column("id", sa.BigInteger), sa.Column("t", sa.Text), sa.Column("at", sa.DateTime))
    t.create(engine)
    rows = [{"id": n, "t": None if n % 3 == 0 else f"t{n}", "at": dt.datetime(2024, 1, 1) + dt.timedelta(seconds=n)} for n in range(2500)]
    with engine.begin() as connection:
        assert sorted(connection.execute(t.insert().returning(t.c.id), rows).scalars()) == list(range(2500))
        assert connection.execute(t.update().where(t.c.id < 10).values(t=t.c.t + "!")).rowcount == 10
        assert connection.execute(t.delete().where(t.c.id >= 2000)).rowcount == 500
        connection.execute(t.update().where(t.c.id == sa.bindparam("which")).values(t=sa.bindparam("text")), [{"which": 20, "text": "x"}, {"which": 21, "text": "y"}])
    with engine.connect() as connection:
        assert connection.execute(sa.select(sa.func.count(), sa.func.count(t.c.t), sa.func.sum(t.c.id))).one() == (2000, 1334, 1999000)
        assert connection.execute(sa.select(t.c.t).where(t.c.id.in_([1, 20, 21])).order_by(t.c.id)).scalars().all() == ["t1!", "x", "y"]
        streamed = connection.execution_options(yield_per=100).execute(sa.select(t.c.id).order_by(t.c.id))
        assert [len(part) for part in streamed.scalars().partitions()] == [100] * 20


def test_transactions(engine, table):
    t = sa.Table(table, sa.MetaData(), sa.Column("id", sa.BigInteger))
    t.create(engine)
    with engine.connect() as connection:
        connection.execute(t.insert(), {"id": 1})
        connection.rollback()
        connection.execute(t.insert(), {"id": 2})
        with pytest.raises(sa.exc.ProgrammingError) as caught, connection.begin_nested():
            connection.execute(t.insert(), {"id": 3})
            connection.execute(sa.text("SELECT * FROM no_such_table"))
        assert caught.value.orig.__class__.__name__ == "UndefinedTable"
        nested = connection.begin_nested()
        connection.execute(t.insert(), {"id": 4})
        nested.commit()
        connection.commit()
    with engine.connect().execution_options(isolation_level="SERIALIZABLE") as connection:
        assert connection.execute(sa.select(t.c.id).order_by(t.c.id)).scalars().all() == [2, 4]
        assert connection.get_isolation_level() == "SERIALIZABLE"
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(t.insert(), {"id": 5})
    with engine.connect() as connection:
        assert connection.execute(sa.select(sa.func.count()).select_from(t)).scalar() == 3


def test_objects(engine, table):
    class Base(orm.DeclarativeBase):
        pass

    class Reading(Base):
        __table__ = sa.Table(table, Base.metadata, sa.Column("id", sa.BigInteger), sa.Column("name", sa.Text), sa.Column("value", sa.Double), sa.Column("at", sa.DateTime))
        __mapper_args__ = {"primary_key": [__table__.c.id]}

    Base.metadata.create_all(engine)
    with orm.Session(engine) as session:
        session.add_all([Reading(id=n, name=f"n{n % 3}", value=n / 2, at=dt.datetime(2024, 1, 1 + n)) for n in range(10)])
        session.commit()
        changed = session.get(Reading, 4)
        changed.value = math.inf
        session.delete(session.get(Reading, 5))
        session.flush()
        with pytest.raises(ZeroDivisionError), session.begin_nested():
            session.add(Reading(id=100))
            session.flush()
            raise ZeroDivisionError
        session.commit()
    with orm.Session(engine) as session:
        assert session.scalars(sa.select(Reading.value).order_by(Reading.id)).all() == [0.0, 0.5, 1.0, 1.5, math.inf, 3.0, 3.5, 4.0, 4.5]
        grouped = session.execute(sa.select(Reading.name, sa.func.count().label("n")).group_by(Reading.name).having(sa.func.count() > 2).order_by(sa.desc("n"), Reading.name)).all()
        assert grouped == [("n0", 4), ("n1", 3)]
        rank = sa.func.row_number().over(partition_by=Reading.name, order_by=Reading.at.desc()).label("rank")
        latest = sa.select(Reading.id, rank).subquery()
        assert session.scalars(sa.select(latest.c.id).where(latest.c.rank == 1).order_by(latest.c.id)).all() == [7, 8, 9]


def test_asyncpg_engine(side, table):
    async def run():
        engine = create_async_engine(side.url("postgresql+asyncpg"))
        t = defined(table)
        async with engine.begin() as connection:
            await connection.run_sync(t.metadata.create_all)
            for row in parsed_rows():
                await connection.execute(t.insert(), row)
        async with engine.connect() as connection:
            rows = (await connection.execute(sa.select(t).order_by(t.c.id))).all()
        await engine.dispose()
        return rows

    kinds.check_rows(asyncio.run(run()), is_json_parsed=True)


def frame():
    return pandas.DataFrame({
        "i": numpy.array([1, -(2**63), 2**63 - 1], dtype="int64"), "small": numpy.array([1, -5, 7], dtype="int32"), "f": [1.5, math.inf, None], "single": numpy.array([0.5, 1.5, -2.5], dtype="float32"),
        "t": pandas.to_datetime(["1969-12-31T23:59:59.999999", None, "2024-02-29T12:00:00.000001"]), "s": ["täxt", None, ""], "b": [True, False, True], "d": [dt.date(2024, 1, 1), None, dt.date(1, 1, 1)],
        "missing": pandas.array([1, None, 3], dtype="Int64"), "kind": pandas.Categorical(["x", "y", "x"]),
    })


@pytest.mark.parametrize("options", [{}, {"method": "multi"}, {"chunksize": 2}])
def test_frames_round_trip(engine, table, options):
    sent = frame()
    sent.to_sql(table, engine, index=False, **options)
    with pytest.raises(ValueError):
        sent.to_sql(table, engine, index=False)
    types = {column["name"]: str(column["type"].compile(engine.dialect)) for column in sa.inspect(engine).get_columns(table)}
    assert types == {"i": "BIGINT", "small": "INTEGER", "f": "DOUBLE PRECISION", "single": "REAL", "t": "TIMESTAMP WITHOUT TIME ZONE", "s": "TEXT", "b": "BOOLEAN", "d": "DATE", "missing": "BIGINT", "kind": "TEXT"}
    back = pandas.read_sql_table(table, engine).sort_values("small", ignore_index=True)
    sent = sent.sort_values("small", ignore_index=True)
    assert back["i"].tolist() == sent["i"].tolist() and back["f"].tolist()[:2] == [math.inf, 1.5] and math.isnan(back["f"][2])
    assert back["t"].tolist()[1:] == sent["t"].tolist()[1:] and pandas.isna(back["t"][0]) and back["t"].dtype.kind == "M"
    assert [None if pandas.isna(value) else value for value in back["s"]] == [None, "täxt", ""] and back["b"].tolist() == [False, True, True]
    assert back["missing"].tolist()[1:] == [1, 3] and back["kind"].tolist() == ["y", "x", "x"] and back["single"].tolist() == [1.5, 0.5, -2.5]
    assert [None if pandas.isna(value) else pandas.Timestamp(value).date() for value in back["d"]] == [None, dt.date(2024, 1, 1), dt.date(1, 1, 1)]


def test_frames_by_query(engine, table):
    numbers = pandas.DataFrame({"n": range(1000), "at": pandas.date_range("2024-01-01", periods=1000, freq="min")})
    numbers.to_sql(table, engine, index=False, dtype={"n": sa.Integer})
    numbers.to_sql(table, engine, index=False, if_exists="append", method="multi", chunksize=300)
    found = pandas.read_sql_query(sa.text(f"SELECT n, count(*) AS c, max(at) AS at FROM {table} WHERE n >= :least GROUP BY n ORDER BY n"), engine, params={"least": 990}, index_col="n")
    assert found.index.tolist() == list(range(990, 1000)) and set(found["c"]) == {2} and found["at"].iloc[-1] == pandas.Timestamp("2024-01-01T16:39")
    parts = list(pandas.read_sql_table(table, engine, columns=["n"], chunksize=600))
    assert [len(part) for part in parts] == [600, 600, 600, 200] and sum(part["n"].sum() for part in parts) == 999000
    numbers.head(5).to_sql(table, engine, index_label="row", if_exists="replace")
    assert pandas.read_sql_table(table, engine, index_col="row").sort_index()["n"].tolist() == [0, 1, 2, 3, 4]
