"""Frames in and results out, in process and over the network, beside DuckDB (and ClickHouse where chdb is installed).

    TIDALITE_BIN=… python bench/python_frames.py [ROWS] [RUNS]

In: ROWS rows of a time, a tag of 1,000 values, two doubles and an integer, as an Arrow table, written into an empty table;
the clock stops when a count sees all rows. Tidalite has synced its log by then; DuckDB's file database syncs its log at
commit; ClickHouse by its default does not. Out: the same rows to pandas and to polars; sums are compared. The
systems take turns, each when the one before has come to rest. Prints medians of wall time, and of the CPU seconds of this
process (the server's are not in them).
"""

import importlib.util
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import tidalite

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/clients"))
from server import Server  # noqa: E402


def table(rows):
    rng = np.random.default_rng(1)
    tags = pa.DictionaryArray.from_arrays(pa.array(rng.integers(0, 1000, rows), pa.int32()), pa.array([f"sensor-{i:04}" for i in range(1000)]))
    times = pa.array(1_767_225_600_000_000 + 100_000 * np.arange(rows), pa.timestamp("us"))
    return pa.table({"ts": times, "tag": tags, "a": rng.random(rows), "b": np.round(rng.normal(20, 5, rows), 2), "n": rng.integers(0, 10**6, rows)})


class Tidalite:
    name = "tidalite in process"

    def __init__(self, folder):
        self.db = tidalite.open(folder / "tidalite")
        self.made = 0

    def write(self, frame):
        self.made += 1
        self.table = f"t{self.made}"
        self.db.write(self.table, frame, at="ts", partition_by="MONTH")
        return self.db.sql(f"select count(*) from {self.table}").fetchone()[0]

    def settle(self):
        self.db.settle()

    def pandas(self):
        return self.db.sql(f"select * from {self.table}").pandas()

    def polars(self):
        return self.db.sql(f"select * from {self.table}").polars()

    def close(self):
        self.db.close()


class Remote(Tidalite):
    name = "tidalite over HTTP"

    def __init__(self, folder):
        self.server = Server(folder / "server").start()
        self.db = tidalite.connect(f"tidalite://127.0.0.1:{self.server.http_port}")
        self.made = 0

    def settle(self):
        while self.server.metrics()["tidalite_staged_rows"]:
            time.sleep(0.05)

    def close(self):
        self.server.stop()


class Duck:
    name = "duckdb in process"

    def __init__(self, folder):
        self.db = duckdb.connect(str(folder / "duck.db"))
        self.made = 0

    def write(self, frame):
        self.made += 1
        self.table = f"t{self.made}"
        self.db.register("frame", frame)
        self.db.execute(f"create table {self.table} as select * replace (tag::varchar as tag) from frame")
        self.db.unregister("frame")
        return self.db.execute(f"select count(*) from {self.table}").fetchone()[0]

    def settle(self):
        self.db.execute("checkpoint")

    def pandas(self):
        return self.db.execute(f"select * from {self.table}").df()

    def polars(self):
        return self.db.sql(f"select * from {self.table}").pl()

    def close(self):
        self.db.close()


class House:
    name = "clickhouse in process"

    def __init__(self, folder):
        from chdb import session

        self.db = session.Session(str(folder / "chdb"))
        self.file = folder / "frame.native"
        self.db.query("create database if not exists b")
        self.made = 0

    def prepare(self, frame):
        """Its own columnar format, beforehand: what its native insert reads."""
        import pyarrow.feather

        arrow = self.file.with_suffix(".arrow")
        pyarrow.feather.write_feather(frame.set_column(1, "tag", frame["tag"].cast(pa.string())), str(arrow), compression="uncompressed")
        self.db.query(f"insert into function file('{self.file}', Native) select * from file('{arrow}', Arrow)")

    def write(self, frame):
        self.made += 1
        self.table = f"b.t{self.made}"
        self.db.query(f"create table {self.table} (ts DateTime64(6), tag LowCardinality(String), a Float64, b Float64, n Int64) engine = MergeTree order by ts partition by toYYYYMM(ts)")
        self.db.query(f"insert into {self.table} select * from file('{self.file}', Native)")
        return int(str(self.db.query(f"select count() from {self.table}")))

    def settle(self):
        pass

    def pandas(self):
        return self.db.query(f"select * from {self.table}", "DataFrame")

    def close(self):
        self.db.close()


def wait_idle(seconds=60):
    """What a system goes on with behind an insert (ClickHouse merges parts) is no part of its neighbour's time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        before = time.process_time()
        time.sleep(0.2)
        if time.process_time() - before < 0.01:
            return


def clocked(work):
    wall, cpu = time.perf_counter(), time.process_time()
    answer = work()
    return answer, time.perf_counter() - wall, time.process_time() - cpu


def main():
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    frame = table(rows)
    folder = Path(tempfile.mkdtemp(prefix="frames", dir=sys.argv[3] if len(sys.argv) > 3 else None))
    kinds = [Tidalite, Remote, Duck] + ([House] if importlib.util.find_spec("chdb") else [])
    systems = [kind(folder) for kind in kinds]
    times = {}
    sums = (float(np.sum(frame["a"].to_numpy())), int(np.sum(frame["n"].to_numpy())))
    for system in systems:
        if hasattr(system, "prepare"):
            system.prepare(frame)
    for _ in range(runs):
        for system in systems:
            count, wall, cpu = clocked(lambda: system.write(frame))
            assert count == rows, (system.name, count)
            times.setdefault(("write", system.name), []).append((wall, cpu))
            system.settle()
            wait_idle()
    for _ in range(runs):
        for system in systems:
            for form in ("pandas", "polars"):
                if not hasattr(system, form):
                    continue
                made, wall, cpu = clocked(getattr(system, form))
                assert len(made) == rows and int(made["n"].sum()) == sums[1] and abs(float(made["a"].sum()) - sums[0]) < 1e-3
                times.setdefault((form, system.name), []).append((wall, cpu))
                del made
    print(f"{rows} rows x 5 columns, {runs} runs, tidalite {tidalite.__version__}, duckdb {duckdb.__version__}, polars {pl.__version__}, pyarrow {pa.__version__}")
    for (what, name), found in times.items():
        wall, cpu = (statistics.median(values) for values in zip(*found))
        print(f"{what:7} {name:22} {wall:7.3f} s  {rows / wall / 1e6:6.2f} M rows/s  CPU {cpu:6.2f} s   all: {' '.join(f'{w:.2f}' for w, _ in found)}")
    for system in systems:
        system.close()
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
