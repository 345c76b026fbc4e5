"""Every function that may have a frame over every kind of frame, beside PostgreSQL and DuckDB.

`tests/slt/frames.slt` has a part of these queries with their results.
"""

import sys
from pathlib import Path

import duckdb
import psycopg
import pytest
from postgres import Postgres, programs

sys.path.insert(0, str(Path(__file__).parent.parent / "slt" / "reference"))
import frames  # noqa: E402

SETTINGS = [{}, {"TIDALITE_QUERY_FAST_OPERATORS": "false"}]


def comparable(rows, types):
    return sorted([frames.shown(value, kind) for value, kind in zip(row, types)] for row in rows)


def loaded(engine, table):
    values = ", ".join("(" + ", ".join("NULL" if v is None else str(v) if n == 1 else repr(v) for n, v in enumerate(row)) + ")" for row in frames.ROWS)
    engine.execute(f"CREATE TABLE {table}")
    engine.execute(f"INSERT INTO f VALUES {values}")
    return engine


@pytest.mark.skipif(programs() is None, reason="no PostgreSQL")
def test_every_function_over_every_frame(servers):
    postgres = Postgres().start()
    try:
        theirs = frames.TABLE.replace("DOUBLE", "DOUBLE PRECISION")
        peers = [loaded(postgres.connect(), theirs), loaded(duckdb.connect(), theirs)]
        running = [servers(env=env).start() for env in SETTINGS]
        ours = [loaded(psycopg.connect(host="127.0.0.1", port=one.pg_port, user="u", dbname="d", autocommit=True), frames.TABLE) for one in running]
        found = []
        for window in frames.frames():
            for peer, types, own, their in frames.both(window):
                expected = comparable(peers[peer].execute(their).fetchall(), types)
                for engine in ours:
                    try:
                        answer = comparable(engine.execute(own).fetchall(), types)
                    except psycopg.Error as error:
                        answer = str(error)
                    if answer != expected:
                        found.append(f"{own}\n  found {answer}\n  expected {expected}")
        assert not found, f"{len(found)} differ:\n" + "\n".join(found[:10])
    finally:
        postgres.stop()
