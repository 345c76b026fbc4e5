"""An engine within a process of its own: `python worker.py duckdb FOLDER THREADS`, requests and answers as lines of JSON.

A request is {"op": …, …}; an answer {"seconds": …, "value": …} or {"error": …}. The clock is this process's, around the
engine's own call with the whole result read.
"""

import json
import os
import sys
import time
from pathlib import Path


class DuckDb:
    durability = "checkpoint (fsync) before the clock stops"
    settings = "native file, defaults"

    def __init__(self, folder, threads):
        import duckdb

        self.module, self.path = duckdb, folder / "duck.db"
        self.connection = duckdb.connect(str(self.path))
        self.connection.execute(f"set threads to {threads}")
        self.connection.execute("set TimeZone = 'UTC'")

    def version(self):
        return f"DuckDB {self.module.__version__}"

    def query(self, sql):
        return [list(row) for row in self.connection.execute(sql).fetchall()]

    def read(self, sql):
        return self.connection.execute(sql).to_arrow_table()

    def import_csv(self, table, path, columns):
        self.connection.execute(f"create table {table} as select * from read_csv('{path}')")
        self.connection.execute("checkpoint")
        return self.query(f"select count(*) from {table}")[0][0]

    def import_parquet(self, table, path, timestamp, key=None):
        self.connection.execute(f"create table {table} as select * from read_parquet('{path}')")
        self.connection.execute("checkpoint")
        return self.query(f"select count(*) from {table}")[0][0]

    def disk(self):
        return sum(p.stat().st_blocks * 512 for p in self.path.parent.iterdir())


class ChDb:
    durability = "fsync_after_insert = 1"
    settings = "MergeTree ordered by the timestamp (in tsbs by host or truck before it), LZ4, no condition cache; size after OPTIMIZE FINAL"

    def __init__(self, folder, threads):
        import chdb
        from chdb import session

        self.module = chdb
        self.session = session.Session(str(folder / "ch"))
        for sql in ("create database if not exists b", "use b", "set use_query_condition_cache = 0", f"set max_threads = {threads}", f"set max_insert_threads = {threads}"):
            self.session.query(sql)

    def version(self):
        return f"ClickHouse {str(self.session.query('select version()')).strip()} (chDB {self.module.__version__})"

    def query(self, sql):
        text = str(self.session.query(sql, "JSONCompactEachRow"))
        return [json.loads(line) for line in text.splitlines()]

    def read(self, sql):
        return self.session.query(sql, "Arrow").bytes()

    def import_csv(self, table, path, columns):
        types = {"TIMESTAMP": "DateTime('UTC')", "DOUBLE": "Float64", "LONG": "Int64", "SYMBOL": "LowCardinality(String)"}
        listed = ", ".join(f"{name} {types[kind]}" for name, kind in columns)
        timestamp = next(name for name, kind in columns if kind == "TIMESTAMP")
        quoted = listed.replace("'", "''")
        self.session.query(f"create table {table} ({listed}) engine = MergeTree order by {timestamp} settings fsync_after_insert = 1")
        self.session.query(f"insert into {table} select * from file('{path}', CSVWithNames, '{quoted}') settings date_time_input_format = 'best_effort'")
        return self.query(f"select toInt64(count()) from {table} settings output_format_json_quote_64bit_integers = 0")[0][0]

    def import_parquet(self, table, path, timestamp, key=None):
        order = f"({key}, {timestamp})" if key else timestamp
        listed = ", ".join(f"{name} {kind}" for name, kind in clickhouse_types(path))
        self.session.query(f"create table {table} ({listed}) engine = MergeTree order by {order} settings fsync_after_insert = 1, allow_nullable_key = 1")
        self.session.query(f"insert into {table} select * from file('{path}', Parquet)")
        return int(str(self.session.query(f"select count() from {table}")))

    def disk(self):
        tables = str(self.session.query("show tables")).split()
        for table in tables:
            self.session.query(f"optimize table {table} final")
        return int(str(self.session.query("select sum(bytes_on_disk) from system.parts where active and database = 'b'")))


class Tidalite:
    """The Python package: the engine within this process, on a folder."""

    durability = "every commit synced before it counts"
    settings = "defaults; tables sealed (ALTER TABLE … SEAL) before sizes and queries"

    def __init__(self, folder, threads):
        import tidalite

        self.module, self.folder = tidalite, folder / "data"
        self.database = tidalite.open(self.folder, threads=threads)

    def version(self):
        return f"Tidalite {self.module.__version__} in process"

    def query(self, sql):
        return [list(row) for row in self.database.sql(sql).fetchall()]

    def read(self, sql):
        return self.database.sql(sql).arrow()

    def import_csv(self, table, path, columns):
        listed = ", ".join(f"{name} {kind}" for name, kind in columns)
        timestamp = next(name for name, kind in columns if kind == "TIMESTAMP")
        self.database.sql(f"create table {table} ({listed}) timestamp({timestamp}) partition by month")
        self.database.sql(f"copy {table} from '{path}' with (format csv, header true)")
        return self.query(f"select count(*) from {table}")[0][0]

    def import_parquet(self, table, path, timestamp, key=None):
        self.database.sql(f"create table {table} ({parquet_columns(path)}) timestamp({timestamp}) partition by day")
        self.database.sql(f"insert batch 1000000 into {table} select * from read_parquet('{path}')")
        return self.query(f"select count(*) from {table}")[0][0]

    def disk(self):
        for table in self.query("show tables"):
            self.database.sql(f'alter table "{table[0]}" seal')
        # What the seal replaced is removed in the background: as long as it gets less, wait.
        size, deadline = sum(sizes(self.folder)), time.monotonic() + 30
        while time.monotonic() < deadline:
            time.sleep(1)
            before, size = size, sum(sizes(self.folder))
            if size == before:
                break
        return size


def sizes(folder):
    """Of the files but the log and its checkpoint, which are allocated before they are needed."""
    for path in folder.rglob("*"):
        if path.is_file() and path.relative_to(folder).parts[0] not in ("log", "wal", "checkpoint"):
            yield path.stat().st_blocks * 512


class Hyper:
    durability = "none stated; a file of its own, closed at the end"
    settings = "hyperd over its local socket"

    def __init__(self, folder, threads):
        import tableauhyperapi as api

        self.api, self.path = api, folder / "hyper.hyper"
        settings = {"default_database_version": "2", "log_dir": str(folder)}
        self.process = api.HyperProcess(api.Telemetry.DO_NOT_SEND_USAGE_DATA_TO_TABLEAU, parameters=settings)
        self.connection = api.Connection(self.process.endpoint, str(self.path), api.CreateMode.CREATE_IF_NOT_EXISTS)

    def version(self):
        return f"Hyper, tableauhyperapi {self.api.__version__}"

    def query(self, sql):
        with self.connection.execute_query(sql) as rows:
            return [list(row) for row in rows]

    # It has no other form.
    read = query

    def import_csv(self, table, path, columns):
        types = {"TIMESTAMP": "timestamp", "DOUBLE": "double precision", "LONG": "bigint", "SYMBOL": "text"}
        listed = ", ".join(f'"{name}" {types[kind]}' for name, kind in columns)
        self.connection.execute_command(f"create table {table} ({listed})")
        self.connection.execute_command(f"copy {table} from '{path}' with (format csv, delimiter ',', header)")
        return self.query(f"select count(*) from {table}")[0][0]

    def import_parquet(self, table, path, timestamp, key=None):
        import pyarrow.parquet as pq

        # Names in small letters, so that queries need no quotes.
        columns = ", ".join(f'"{name}" as "{name.lower()}"' for name in pq.read_schema(path).names)
        self.connection.execute_command(f"create table {table} as (select {columns} from external('{path}'))")
        return self.query(f"select count(*) from {table}")[0][0]

    def disk(self):
        return self.path.stat().st_blocks * 512


def parquet_columns(path):
    """For CREATE TABLE: text with a dictionary is a SYMBOL."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def kind(given):
        if pa.types.is_dictionary(given):
            return "symbol"
        return "timestamp" if pa.types.is_timestamp(given) else {"double": "double", "int64": "long", "int32": "int", "int16": "short", "date32[day]": "date"}.get(str(given), "varchar")

    return ", ".join(f"{field.name} {kind(field.type)}" for field in pq.read_schema(path))


def clickhouse_types(path):
    """Of a Parquet file's columns: texts with a dictionary have one, and only what lacks values may lack them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)
    groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
    plain = {"int64": "Int64", "int32": "Int32", "int16": "Int16", "double": "Float64", "date32[day]": "Date32"}
    for i, field in enumerate(file.schema_arrow):
        known = [g.column(i).statistics for g in groups]
        whole = all(s is not None and s.null_count == 0 for s in known)
        if pa.types.is_dictionary(field.type):
            yield field.name, "LowCardinality(String)" if whole else "LowCardinality(Nullable(String))"
        else:
            kind = "DateTime64(6, 'UTC')" if pa.types.is_timestamp(field.type) else plain.get(str(field.type), "String")
            yield field.name, kind if whole else f"Nullable({kind})"


class OnParquet:
    """Nothing is loaded: what is asked is asked of the file that the others load."""

    durability = "nothing is stored"

    def __init__(self, folder, threads):
        self.threads, self.list = threads, folder / "files.json"
        self.files = json.loads(self.list.read_text()) if self.list.exists() else {}
        self.begin()
        for table, path in self.files.items():
            self.register(table, path)

    def import_csv(self, table, path, columns):
        raise NotImplementedError("it stores nothing")

    def import_parquet(self, table, path, timestamp, key=None):
        self.files[table] = path
        self.list.write_text(json.dumps(self.files))
        self.register(table, path)
        import pyarrow.parquet as pq

        return pq.read_metadata(path).num_rows

    def read(self, sql):
        return self.query(sql)

    def disk(self):
        return sum(os.stat(path).st_blocks * 512 for path in self.files.values())


class DataFusion(OnParquet):
    settings = "on the Parquet file, defaults"

    def begin(self):
        import datafusion

        self.module = datafusion
        self.context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(self.threads))

    def version(self):
        return f"DataFusion {self.module.__version__} on Parquet"

    def register(self, table, path):
        import pyarrow.parquet as pq

        self.context.register_parquet(f"{table}_file", path)
        columns = ", ".join(f'"{name}" as {name.lower()}' for name in pq.read_schema(path).names)
        self.context.sql(f"create view {table} as select {columns} from {table}_file").collect()

    def query(self, sql):
        columns = self.context.sql(sql).to_arrow_table().columns
        return [list(row) for row in zip(*(column.to_pylist() for column in columns))]


class Polars(OnParquet):
    settings = "lazily on the Parquet file, its SQL, streaming engine"

    def begin(self):
        os.environ["POLARS_MAX_THREADS"] = str(self.threads)
        import polars

        self.module, self.context = polars, polars.SQLContext()

    def version(self):
        return f"Polars {self.module.__version__} on Parquet"

    def register(self, table, path):
        self.context.register(table, self.module.scan_parquet(path))

    def query(self, sql):
        return [list(row) for row in self.context.execute(sql).collect(engine="streaming").rows()]


ENGINES = {"tidalite-process": Tidalite, "duckdb": DuckDb, "clickhouse": ChDb, "hyper": Hyper, "datafusion": DataFusion, "polars": Polars}


def plain(value):
    """As JSON has it."""
    return value if isinstance(value, (int, float, str, type(None), list)) else str(value)


def main():
    name, folder, threads = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)
    # What libraries print must not come between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    engine = ENGINES[name](folder, threads)
    for line in sys.stdin:
        request = json.loads(line)
        operation, unsaid = getattr(engine, request.pop("op")), request.pop("unsaid", False)
        try:
            start = time.perf_counter()
            value = operation(**request)
            answer = {"seconds": time.perf_counter() - start, "value": None if unsaid else value}
        except BaseException as error:  # whatever an engine throws is its answer, panics of Rust, too
            answer = {"error": f"{type(error).__name__}: {error}"[:500]}
        print(json.dumps(answer, default=plain), file=answers, flush=True)


if __name__ == "__main__":
    main()
