"""10 million rows over 1,158 day partitions of 8,640 rows: files, bytes and the time of a scan, beside QuestDB and DuckDB.

    PEERS=… TIDALITE_BIN=target/release/tidalite QDB_JAR=… python bench/day_partitions.py

Tidalite and QuestDB get the same lines over TCP and are asked over HTTP; DuckDB, which has no partitions, has the same rows in one file and
is asked in process. Systems are asked in turns, five times; answers have to agree. Once more when Tidalite's partitions are at rest.
"""

import os
import socket
import statistics
import tempfile
import time
from pathlib import Path

import duckdb
import systems
from tidalite_bench.answers import plain, same

DAYS, ROWS_A_DAY, START = 1_158, 8_640, 1_500_000_000
QUERIES = [
    "select count(*), sum(a), avg(b) from frame",
    "select id, sum(b) from frame group by id order by id",
    "select max(b) from frame where a = 500",
]


def lines(day):
    start = START + day * 86_400
    return "".join(f"frame,id={i % 10} a={i * 7919 % 1000}i,b={(i * 104729 % 100000) / 100} {(start + i * 10) * 10**9}\n"
                   for i in range(ROWS_A_DAY)).encode()


def load(system):
    began = time.monotonic()
    with socket.create_connection((systems.HOST, system.ilp_port)) as connection:
        for day in range(DAYS):
            connection.sendall(lines(day))
    while system.count("frame") < DAYS * ROWS_A_DAY:
        time.sleep(0.05)
    print(f"{system.name}: settled after {system.wait_settled(['frame'], 300) - began:.1f} s")


def load_duckdb(path):
    connection = duckdb.connect(str(path), config={"threads": 2})
    connection.execute(f"""create table frame as select (i % 10)::varchar as id, i * 7919 % 1000 as a, (i * 104729 % 100000) / 100 as b,
        make_timestamp(({START} + d * 86400 + i * 10) * 1000000) as timestamp from range({DAYS}) days(d), range({ROWS_A_DAY}) rows(i) order by d, i""")
    connection.execute("checkpoint")
    return connection


def size(*folders):
    files = sum(len(names) for folder in folders for _, _, names in os.walk(folder))
    return files, sum(map(systems.folder_bytes, folders)) / 2**20


def measure(asked):
    for query in QUERIES:
        times, answers = {name: [] for name in asked}, {}
        for _ in range(6):
            for name, ask in asked.items():
                began = time.monotonic()
                rows = ask(query)
                times[name].append((time.monotonic() - began) * 1e3)
                answers[name] = plain(rows)
        first = next(iter(answers.values()))
        assert all(same(rows, first) for rows in answers.values()), answers
        print(f"{query}: " + ", ".join(f"{name} {statistics.median(own[1:]):.1f} ms" for name, own in times.items()))


def main():
    with tempfile.TemporaryDirectory(prefix="day-partitions-", dir=os.environ.get("PEERS")) as scratch:
        tidalite, questdb = (systems.SYSTEMS[name](scratch) for name in ("tidalite", "questdb"))
        database = load_duckdb(Path(scratch) / "frame.duckdb")
        try:
            for system in (tidalite.start(), questdb.start()):
                load(system)
            asked = {system.name: lambda query, system=system: system.sql(query)["dataset"] for system in (tidalite, questdb)}
            asked["duckdb"] = lambda query: [list(row) for row in database.execute(query).fetchall()]
            print("tidalite: {} files, {:.1f} MiB".format(*size(tidalite.data / "segments")))
            print("questdb: {} files, {:.1f} MiB".format(*size(*(questdb.data / "db").glob("frame*"))))
            print("duckdb: 1 file, {:.1f} MiB".format((Path(scratch) / "frame.duckdb").stat().st_blocks * 512 / 2**20))
            measure(asked)
            tidalite.sql("alter table frame seal")
            print("at rest")
            measure(asked)
            print("tidalite: {} files, {:.1f} MiB".format(*size(tidalite.data / "segments")))
        finally:
            tidalite.stop()
            questdb.stop()


if __name__ == "__main__":
    main()
