"""The dialect of SQLAlchemy, and pandas' read_sql and to_sql over it, with both entrances."""

import datetime as dt
import decimal
import uuid

import numpy as np
import pandas as pd
import pytest
import sqlalchemy as sa


@pytest.fixture(params=["folder", "server"])
def engine(request, tmp_path, server):
    url = f"tidalite:///{tmp_path / 'd'}" if request.param == "folder" else f"tidalite://127.0.0.1:{server.http_port}"
    made = sa.create_engine(url)
    yield made
    made.dispose()


def test_statements(engine, table):
    with engine.connect() as connection:
        connection.execute(sa.text(f"create table {table} (ts timestamp, s symbol, n long) timestamp(ts) partition by day"))
        connection.execute(sa.text(f"insert into {table} values (:ts, :s, :n)"), [{"ts": dt.datetime(2026, 1, day), "s": "ab"[day % 2], "n": day} for day in range(1, 6)])
        connection.commit()
        assert connection.execute(sa.text(f"select n from {table} where s = :s order by n"), {"s": "b"}).all() == [(1,), (3,), (5,)]
        connection.rollback()
        with pytest.raises(sa.exc.ProgrammingError):
            connection.execute(sa.text("select nosuch from nowhere"))
    # Given back to the pool, which rolls back.
    with engine.begin() as connection:
        assert connection.scalar(sa.text(f"select count(*) from {table}")) == 5


def test_tables(engine, table):
    metadata = sa.MetaData()
    made = sa.Table(
        table, metadata,
        sa.Column("ts", sa.DateTime, primary_key=True), sa.Column("s", sa.String(10), nullable=False, index=True), sa.Column("b", sa.Boolean, default=True),
        sa.Column("i", sa.Integer), sa.Column("l", sa.BigInteger), sa.Column("f", sa.Float), sa.Column("d", sa.Numeric(10, 2)), sa.Column("day", sa.Date),
        sa.Column("x", sa.LargeBinary), sa.Column("u", sa.Uuid), sa.Column("Name with spaces", sa.Text),
        tidalite_timestamp="ts", tidalite_partition_by="month",
    )
    metadata.create_all(engine)
    metadata.create_all(engine)
    row = (dt.datetime(2026, 1, 1, 5, 0, 0, 7), "a", True, 1, 2**60, 0.1, decimal.Decimal("1.25"), dt.date(2026, 1, 2), b"\0\xff", uuid.UUID(int=9), "x")
    names = [column.name for column in made.columns]
    with engine.connect() as connection:
        connection.execute(made.insert(), [dict(zip(names, row))] * 2500)
        connection.execute(made.insert().values(ts=dt.datetime(2026, 2, 1), s=None, b=None))
        assert connection.execute(sa.select(made).order_by(made.c.ts).limit(1)).one() == row
        assert connection.scalar(sa.select(sa.func.count()).select_from(made).where(made.c.l > 5, made.c.s == "a")) == 2500
        assert connection.execute(sa.select(made.c.s, made.c.u).order_by(made.c.ts.desc()).limit(1).offset(0)).one() == (None, None)
        assert connection.execute(made.update().where(made.c.s == "a").values(i=7)).rowcount == 2500
    inspector = sa.inspect(engine)
    assert inspector.has_table(table) and table in inspector.get_table_names() and not inspector.has_table("nosuch")
    found = sa.Table(table, sa.MetaData(), autoload_with=engine)
    assert [column.name for column in found.columns] == names
    assert isinstance(found.c.l.type, sa.BigInteger) and isinstance(found.c.ts.type, sa.DateTime)
    assert (found.c.d.type.precision, found.c.d.type.scale) == (10, 2)
    with pytest.raises(sa.exc.NoSuchTableError):
        sa.Table("nosuch", sa.MetaData(), autoload_with=engine)
    metadata.drop_all(engine)
    assert not sa.inspect(engine).has_table(table)


def test_pandas(engine, table):
    frame = pd.DataFrame({
        "ts": pd.to_datetime(["2026-01-01 00:00:00.000005", "2026-01-02"], format="ISO8601"), "n": np.array([1, 2**60]), "small": np.array([1, 2], np.int32),
        "v": [0.1, None], "t": ["a", None], "b": [True, False],
    })
    assert frame.to_sql(table, engine, index=False) in (-1, 2, None)
    back = pd.read_sql(f"select * from {table} order by ts", engine)
    pd.testing.assert_frame_equal(back.astype(frame.dtypes), frame)
    frame.to_sql(table, engine, index=False, if_exists="append")
    assert len(pd.read_sql_table(table, engine)) == 4
    with pytest.raises(ValueError, match="already exists"):
        frame.to_sql(table, engine)
    frame.to_sql(table, engine, if_exists="replace", index_label="row", method="multi")
    query = sa.text(f'select "row", n from {table} where v > :least')
    assert pd.read_sql(query, engine, params={"least": 0}).values.tolist() == [[0, 1]]


def test_many_rows(engine, table):
    frame = pd.DataFrame({"ts": pd.date_range("2026-01-01", periods=5000, freq="s", unit="us"), "n": range(5000)})
    frame.to_sql(table, engine, index=False)
    assert pd.read_sql(f"select count(*) c, sum(n) s from {table}", engine).iloc[0].tolist() == [5000, 4999 * 2500]


def test_addresses():
    dialect, tls = (sa.make_url(f"{scheme}://u:p%40@h:1234?timeout=5").get_dialect()() for scheme in ("tidalite", "tidalites"))
    url = sa.make_url("tidalite://u:p%40@h:1234?timeout=5")
    assert dialect.create_connect_args(url) == (["tidalite://h:1234"], {"user": "u", "password": "p@", "timeout": 5.0})
    assert tls.create_connect_args(url)[0] == ["tidalites://h:1234"]
    assert dialect.create_connect_args(sa.make_url("tidalite:////data/here"))[0] == ["/data/here"]
    with pytest.raises(sa.exc.ArgumentError):
        dialect.create_connect_args(sa.make_url("tidalite://"))
