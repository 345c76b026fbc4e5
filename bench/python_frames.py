"""Frames in and results out, in process and over the network, beside DuckDB (and ClickHouse where chdb is installed).

    TIDALITE_BIN=… python bench/python_frames.py [--rows N] [--runs N] [--lines FILE] [--scratch FOLDER]

In: rows of a time, a tag of 1,000 values, two doubles and an integer, or those of a file of lines (TSBS's: read by a Tidalite
beforehand), as an Arrow table, written into an empty table; the clock stops when a count sees all rows. Tidalite has synced its log by then; DuckDB's file database syncs its log at
commit; ClickHouse by its default does not. Out: the same rows to pandas and to polars; sums are compared. The
systems take turns, each when the one before has come to rest. Prints medians of wall time, and of the CPU seconds of this
process (the server's are not in them).
"""

import argparse
import importlib.util
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import tidalite

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/clients"))
from server import Server, binary  # noqa: E402


def table(rows):
    rng = np.random.default_rng(1)
    tags = pa.DictionaryArray.from_arrays(pa.array(rng.integers(0, 1000, rows), pa.int32()), pa.array([f"sensor-{i:04}" for i in range(1000)]))
    times = pa.array(1_767_225_600_000_000 + 100_000 * np.arange(rows), pa.timestamp("us"))
    return pa.table({"ts": times, "tag": tags, "a": rng.random(rows), "b": np.round(rng.normal(20, 5, rows), 2), "n": rng.integers(0, 10**6, rows)})


def table_of_lines(lines, folder):
    """The one table of a file of lines, its texts as dictionaries; its time comes first, named ts."""
    subprocess.run([binary(), "import", "--data", folder / "lines", "-q", lines], check=True)
    with tidalite.open(folder / "lines") as db:
        ((name,),) = db.sql("select table_name from tables()").fetchall()
        frame = db.sql(f"select * from {name}").arrow()
    shutil.rmtree(folder / "lines")
    text = lambda column: pa.chunked_array(column.cast(pa.string())).dictionary_encode() if pa.types.is_string_view(column.type) else column  # noqa: E731
    columns = {"ts" if name == "timestamp" else name: text(frame[name]) for name in sorted(frame.column_names, key=lambda c: c != "timestamp")}
    return pa.table(columns).combine_chunks()


def texts_of(frame):
    return [f.name for f in frame.schema if pa.types.is_dictionary(f.type)]


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
        texts = ", ".join(f"{name}::varchar as {name}" for name in texts_of(frame))
        self.db.execute(f"create table {self.table} as select * replace ({texts}) from frame")
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
        plain = frame
        for name in texts_of(frame):
            plain = plain.set_column(plain.column_names.index(name), name, plain[name].cast(pa.string()))
        pyarrow.feather.write_feather(plain, str(arrow), compression="uncompressed")
        self.db.query(f"insert into function file('{self.file}', Native) select * from file('{arrow}', Arrow)")

    def write(self, frame):
        self.made += 1
        self.table = f"b.t{self.made}"
        columns = ", ".join(f"{field.name} {self.type_of(field.type)}" for field in frame.schema)
        self.db.query(f"create table {self.table} ({columns}) engine = MergeTree order by ts partition by toYYYYMM(ts)")
        self.db.query(f"insert into {self.table} select * from file('{self.file}', Native)")
        return int(str(self.db.query(f"select count() from {self.table}")))

    @staticmethod
    def type_of(arrow):
        if pa.types.is_timestamp(arrow):
            return {"us": "DateTime64(6)", "ns": "DateTime64(9)"}[arrow.unit]
        return "LowCardinality(String)" if pa.types.is_dictionary(arrow) else {pa.float64(): "Float64", pa.int64(): "Int64"}[arrow]

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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--lines", help="line protocol of one table, instead of made rows")
    parser.add_argument("--scratch", help="where data folders are made")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="frames", dir=options.scratch))
    frame = table_of_lines(options.lines, folder) if options.lines else table(options.rows)
    rows, runs = len(frame), options.runs
    kinds = [Tidalite, Remote, Duck] + ([House] if importlib.util.find_spec("chdb") else [])
    systems = [kind(folder) for kind in kinds]
    times = {}
    sums = {f.name: pc.sum(frame[f.name]).as_py() for f in frame.schema if f.type in (pa.int64(), pa.float64())}
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
                assert len(made) == rows and all(abs(float(made[name].sum()) - value) < 1e-3 for name, value in sums.items()), system.name
                times.setdefault((form, system.name), []).append((wall, cpu))
                del made
    print(f"{rows} rows x {frame.num_columns} columns, {runs} runs, tidalite {tidalite.__version__}, duckdb {duckdb.__version__}, polars {pl.__version__}, pyarrow {pa.__version__}")
    for (what, name), found in times.items():
        wall, cpu = (statistics.median(values) for values in zip(*found))
        print(f"{what:7} {name:22} {wall:7.3f} s  {rows / wall / 1e6:6.2f} M rows/s  CPU {cpu:6.2f} s   all: {' '.join(f'{w:.2f}' for w, _ in found)}")
    for system in systems:
        system.close()
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
