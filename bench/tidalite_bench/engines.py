"""The systems under measurement behind one face: fresh folder, open, import, ask, size, close.

Servers are those of ../systems.py; engines within a process live in a worker of their own, so that none has the memory or
the threads of another. What is loaded is gone after `close`.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.parse
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
import systems  # noqa: E402

from . import install, machine  # noqa: E402
from .worker import ENGINES, parquet_columns  # noqa: E402


class System:
    def interpret(self):
        """Makes no machine code of conditions from the next start on."""
        raise RuntimeError("it has no switch for machine code")


class Engine(System):
    """In a process of its own, over a pipe."""

    clock = "within its process"
    reads_lines = False

    def __init__(self, name, scratch, threads):
        self.name, self.threads = name, threads
        self.folder = Path(scratch) / f"{name}-data"
        self.durability, self.settings = ENGINES[name].durability, ENGINES[name].settings
        self.process = None

    def open(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        return self.start()

    def start(self):
        command = [str(install.environment()), str(Path(__file__).parent / "worker.py"), self.name, str(self.folder), str(self.threads)]
        log = open(self.folder.parent / f"{self.name}.log", "wb")
        env = os.environ | ({"PYTHONPATH": str(install.python_package())} if self.name == "tidalite-process" else {})
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=env)
        log.close()
        self.version_text = self.call("version")["value"]
        return self

    def call(self, op, **more):
        self.process.stdin.write(json.dumps({"op": op, **more}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended, see {self.folder.parent}/{self.name}.log")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(f"{self.name}: {answer['error']}")
        return answer

    def version(self):
        return self.version_text

    def import_csv(self, table, path, columns):
        answer = self.call("import_csv", table=table, path=str(path), columns=columns)
        return answer["seconds"], answer["value"]

    def import_parquet(self, table, path, timestamp="ts", key=None):
        """`key`: what rows are ordered by before the timestamp, in systems that are told an order."""
        answer = self.call("import_parquet", table=table, path=str(path), timestamp=timestamp, key=key)
        return answer["seconds"], answer["value"]

    def query(self, sql):
        """(seconds, rows)."""
        answer = self.call("query", sql=sql)
        return answer["seconds"], answer["value"]

    def time(self, sql, unparsed=False):
        """Seconds alone: the rows are read, but do not come over the pipe. Unparsed: as Arrow, where the engine has it."""
        return self.call("read" if unparsed else "query", sql=sql, unsaid=True)["seconds"]

    def cpu_seconds(self):
        """Of the process and of those that it started: Hyper is a server of its own."""
        pids = [self.process.pid]
        for tasks in Path(f"/proc/{self.process.pid}/task").glob("*/children"):
            pids += map(int, tasks.read_text().split())
        return sum(systems.cpu_seconds_of(pid) for pid in pids)

    def disk(self):
        return {"data": self.call("disk")["value"]}

    def end(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait(60)
            self.process = None

    def restart(self):
        """A new process over the same folder, and nothing of that in the page cache; says how that was done."""
        self.end()
        how = machine.forget(self.folder)
        self.start()
        return how

    def go_on_with(self, threads):
        """A new process with so many, if it has others."""
        if threads != self.threads:
            self.end()
            self.threads = threads
            self.start()

    def close(self):
        self.end()
        shutil.rmtree(self.folder, ignore_errors=True)


def seconds_of(function):
    start = time.perf_counter()
    value = function()
    return time.perf_counter() - start, value


class TidaliteFolder(System):
    """The command, into a folder: the engine within the process of `tidalite import`."""

    name = "tidalite"
    clock = ("within the process of `tidalite import`: from opening the file until the last commit is synced; rows are in the log then, and "
             "merged into segments later. Starting it, opening and closing the folder are outside (whole_s)")
    durability = "every commit synced (fdatasync of the log) before it counts"
    settings = "defaults; size after ALTER TABLE … SEAL"

    def __init__(self, scratch, threads):
        self.threads, self.whole_s = threads, None
        self.folder = Path(scratch) / "tidalite-folder"
        self.binary = install.binary("tidalite")

    def open(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        return self

    def version(self):
        return subprocess.run([self.binary, "--version"], capture_output=True, text=True).stdout.strip()

    def import_csv(self, table, path, columns):
        command = [self.binary, "import", path, "--data", self.folder, "--table", table, "--json", "--quiet", "--threads", str(self.threads)]
        self.whole_s, done = seconds_of(lambda: subprocess.run(command, capture_output=True, text=True))
        if done.returncode:
            raise RuntimeError(done.stderr)
        report = json.loads(done.stdout)
        return report["seconds_until_durable"], report["rows"]

    def query(self, sql):
        command = [self.binary, "sql", "--data", self.folder, "--format", "json", sql]
        seconds, done = seconds_of(lambda: subprocess.run(command, capture_output=True, text=True))
        if done.returncode:
            raise RuntimeError(done.stderr)
        return seconds, json.loads(done.stdout)["dataset"]

    def cpu_seconds(self):
        """Of all commands that have ended."""
        times = os.times()
        return times.children_user + times.children_system

    def disk(self):
        for (table,) in [row[:1] for row in self.query("show tables")[1]]:
            command = [self.binary, "sql", "--data", self.folder, f'alter table "{table}" seal']
            subprocess.run(command, capture_output=True, check=True)
        # The next opening removes what the seal replaced.
        self.query("show tables")
        return parts_of(self.folder)

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)


def parts_of(folder):
    """Data, and apart the log with its checkpoint: a log file is allocated before it is needed and used again, and a
    checkpoint holds rows that segments have by now until the next one."""
    parts = {"data": 0, "log": 0}
    for entry in Path(folder).iterdir():
        size = systems.folder_bytes(entry) if entry.is_dir() else entry.stat().st_blocks * 512
        parts["log" if entry.name in ("log", "wal", "checkpoint") else "data"] += size
    return parts


class Server(System):
    """A server over HTTP, which reads line protocol."""

    reads_lines = True
    # What the warm-up's lines span: 1,000 hosts every ten seconds.
    warm_seconds = 1500

    clock = "over HTTP, kept alive, the whole answer read"

    def __init__(self, scratch, threads):
        self.threads = threads
        self.system = self.kind(scratch)
        self.durability = self.system.durability
        self.use(threads)

    def use(self, threads):
        """From the next start on."""

    def go_on_with(self, threads):
        """Started again with so many, if it has others."""
        if threads != self.threads:
            self.system.stop(keep=True)
            self.threads = threads
            self.use(threads)
            self.system.start(fresh=False)

    def open(self):
        self.system.start()
        return self

    def version(self):
        return self.system.version()

    def cpu_seconds(self):
        return self.system.cpu_seconds()

    def query(self, sql):
        seconds, answer = seconds_of(lambda: self.system.sql(sql))
        if "error" in answer:
            raise RuntimeError(f"{self.name}: {answer['error']}")
        return seconds, answer.get("dataset")

    def time(self, sql, unparsed=False):
        """Unparsed: until the last byte of the answer is there."""
        if not unparsed:
            return self.query(sql)[0]
        seconds, (status, body) = seconds_of(lambda: self.system.answer(sql))
        if status != 200:
            raise RuntimeError(f"{self.name}: status {status}: {body[:500]}")
        return seconds

    def send(self, text, blocks, workers):
        """Lines over plain connections; seconds until the last byte is out."""
        import senders

        return senders.send_raw(self.system.ilp_port, text, blocks, workers, systems.HOST)

    def stream(self, command, workers):
        """The same of lines that a command writes meanwhile."""
        import senders

        return senders.send_stream(self.system.ilp_port, command, workers, systems.HOST)

    def warm(self):
        """As a server is that has run for a while: lines of other tables, which are gone when the clock starts."""
        import ingest

        from . import data

        text = data.tsbs("cpu-only", 1000, 1451606400, 1451606400 + self.warm_seconds, 10).read_bytes()
        ingest.warm_up(self.system, text)

    def picked(self, path):
        return "*"

    # What CREATE TABLE ends with, and what stands behind INSERT.
    create_end = insert_as = ""

    def readable(self, path):
        """The file as the server is to call it."""
        return path

    def import_parquet(self, table, path, timestamp="ts", key=None):
        source = self.readable(path)

        def load():
            self.query(f"create table {table} ({parquet_columns(path)}) timestamp({timestamp}) partition by day{self.create_end}")
            self.query(f"insert {self.insert_as}into {table} select {self.picked(path)} from read_parquet('{source}')")

        seconds, _ = seconds_of(load)
        return seconds, self.query(f"select count(*) from {table}")[1][0][0]

    def restart(self):
        self.system.stop(keep=True)
        how = machine.forget(self.system.data)
        self.system.start(fresh=False)
        return how

    def close(self):
        self.system.stop()


class TidaliteServer(Server):
    name = "tidalite-server"
    kind = systems.Tidalite
    settings = "defaults; tables sealed (ALTER TABLE … SEAL) before sizes and queries"
    insert_as = "batch 1000000 "

    def __init__(self, scratch, threads):
        super().__init__(scratch, threads)
        self.system.name = "tidalite-server"
        self.system.binary = str(install.binary("tidalite"))
        self.system.extra_env.pop("TIDALITE_STAGING_BYTES", None)
        self.durability = "every commit synced before the answer"

    def use(self, threads):
        self.system.extra_env |= {"TIDALITE_QUERY_THREADS": str(threads), "TIDALITE_MERGE_THREADS": str(threads)}

    def import_csv(self, table, path, columns):
        self.warm()
        command = [self.system.binary, "import", path, "--server", f"http://{systems.HOST}:{self.system.http_port}", "--table", table, "--json", "--quiet", "--threads", str(self.threads)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr)
        report = json.loads(done.stdout)
        return report["seconds_until_durable"], report["rows"]

    def settle(self, tables):
        self.system.wait_settled(tables, 300)

    def interpret(self):
        self.system.extra_env["TIDALITE_QUERY_COMPILES"] = "false"

    def disk(self):
        for row in self.query("show tables")[1]:
            self.query(f'alter table "{row[0]}" seal')
        # What the seal replaced is removed in the background.
        parts, deadline = parts_of(self.system.data), time.monotonic() + 30
        while time.monotonic() < deadline:
            time.sleep(1)
            before, parts = parts, parts_of(self.system.data)
            if parts["data"] == before["data"]:
                break
        return parts


class QuestDbServer(Server):
    name = "questdb"
    kind = systems.QuestDB
    settings = "defaults (threads, too, unless fewer are asked for), 2 GiB heap; CSV by /imp, not COPY"
    create_end = " bypass wal"

    def __init__(self, scratch, threads):
        super().__init__(scratch, threads)
        self.system.jar = str(install.questdb_jar())
        self.durability = "never synced (its default)"

    def use(self, threads):
        self.system.extra_env.pop("QDB_SHARED_WORKER_COUNT", None)
        if threads < (os.cpu_count() or 1):
            self.system.extra_env["QDB_SHARED_WORKER_COUNT"] = str(threads)

    def import_csv(self, table, path, columns):
        """/imp with curl, as its documentation has it, until all rows are seen."""
        timestamp = next(name for name, kind in columns if kind == "TIMESTAMP")
        with open(path) as file:
            file.readline()
            first = file.readline()
        rows = sum(chunk.count(b"\n") for chunk in iter(open(path, "rb").read, b"")) - 1
        self.warm()
        pattern = "yyyy-MM-ddTHH:mm:ssZ" if "T" in first else "yyyy-MM-dd HH:mm:ss"
        schema = json.dumps([{"name": timestamp, "type": "TIMESTAMP", "pattern": pattern}])
        query = urllib.parse.urlencode(dict(fmt="json", overwrite="true", name=table, timestamp=timestamp, partitionBy="MONTH", maxUncommittedRows=500000))
        start = time.perf_counter()
        command = ["curl", "-s", "-F", f"schema={schema}", "-F", f"data=@{path}", f"http://{systems.HOST}:{self.system.http_port}/imp?{query}"]
        subprocess.run(command, capture_output=True, check=True)
        while self.system.count(table) < rows:
            if time.perf_counter() - start > 300:
                raise TimeoutError(f"questdb shows {self.system.count(table)} of {rows} rows")
            time.sleep(0.01)
        return time.perf_counter() - start, rows

    def readable(self, path):
        """It reads below a folder of its own only."""
        root = self.system.data / "import"
        root.mkdir(exist_ok=True)
        shutil.copy(path, root / path.name)
        return path.name

    def picked(self, path):
        """It has no text without characters in mind: its queries take such for NULL, as its entry of ClickBench does."""
        import pyarrow.parquet as pq

        return ", ".join(f"nullif({f.name}, '')" if str(f.type) == "string" else f.name for f in pq.read_schema(path))

    def settle(self, tables):
        """What import_parquet made bypasses the log: nothing is left to do when the statement ends."""

    def interpret(self):
        self.system.extra_env["QDB_CAIRO_SQL_JIT_MODE"] = "off"

    def disk(self):
        total, parts = self.system.disk([row[0] for row in self.query("select table_name from tables()")[1]])
        return {"data": total - parts["of it WAL"], "log": parts["of it WAL"]}


class InfluxServer(Server):
    """InfluxDB 1.x: devops questions only, and lines by HTTP in posts of 10,000, as its loader in the suite does."""

    name = "influxdb"
    kind = systems.InfluxDB
    settings = "index tsi1, cache of 4 GiB, else defaults; 10,000 lines a post"

    def __init__(self, scratch, threads):
        super().__init__(scratch, threads)
        self.system.binary = install.influxd()

    def warm(self):
        """Its folder is fresh and has nothing to compile."""

    def stream(self, command, workers):
        raise RuntimeError("its lines are posted from memory only")

    def send(self, text, blocks, workers):
        """Seconds until the last post is answered."""
        import http.client
        from concurrent.futures import ThreadPoolExecutor

        lines = text.splitlines(keepends=True)
        self.system.columns = columns_of(lines[0])
        posts = [b"".join(lines[at:at + 10_000]) for at in range(0, len(lines), 10_000)]

        def one(worker):
            connection = http.client.HTTPConnection(systems.HOST, self.system.http_port, timeout=600)
            for post in posts[worker::workers]:
                connection.request("POST", "/write?db=bench", post)
                answer = connection.getresponse()
                body = answer.read()
                if answer.status != 204:
                    raise RuntimeError(f"influxdb: {answer.status} {body[:200]}")

        start = time.monotonic()
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(one, range(workers)))
        return time.monotonic() - start

    def disk(self):
        total, parts = self.system.disk([])
        return {"data": total - parts["of it WAL"], "log": parts["of it WAL"]}

    def import_parquet(self, table, path, timestamp="ts", key=None):
        raise RuntimeError("influxdb imports no Parquet")


def columns_of(line):
    """Tags and fields of a line, as they stand there."""
    head, fields, _ = line.decode().rsplit(" ", 2)
    return [part.split("=", 1)[0] for part in [*head.split(",")[1:], *fields.split(",")]]


def timescaledb(scratch, threads):
    raise RuntimeError("there is no driver: neither PyPI nor Debian has TimescaleDB, so that none could be tried")


KINDS = {"tidalite": TidaliteFolder, "tidalite-server": TidaliteServer, "questdb": QuestDbServer, "influxdb": InfluxServer, "timescaledb": timescaledb}


def made(names, scratch, threads, out):
    """Those of the systems that can be had here."""
    found = []
    for name in names.split(","):
        try:
            found.append(make(name, scratch, threads))
        except RuntimeError as error:
            out.skip(name, error)
    return found


def made_for_lines(names, scratch, out):
    """Those that are servers which take lines."""
    found = []
    for system in made(names, scratch, 2, out):
        if hasattr(system, "warm"):
            found.append(system)
        else:
            out.skip(system.name, "it takes no lines over a network")
    return found


def loaded(workload, table, path, options, out, **how):
    """Systems that have taken a Parquet file and are at rest, each with its rows; closed at the end."""
    return loaded_all(workload, {table: path}, options, out, **how)


@contextlib.contextmanager
def loaded_all(workload, tables, options, out, threads=None, compiles=True):
    """The same of several files, one a table; the rows are those of all together. Without `compiles` only those that can do
    without machine code for conditions."""
    found = {}
    try:
        for system in made(options.systems, options.scratch, threads or int(options.threads), out):
            try:
                if not compiles:
                    system.interpret()
                system.open()
                taken = {table: system.import_parquet(table, path) for table, path in tables.items()}
                if hasattr(system, "settle"):
                    system.settle({table: rows for table, (_, rows) in taken.items()})
                seconds, found[system] = sum(s for s, _ in taken.values()), sum(int(rows) for _, rows in taken.values())
                out.record(dict(workload=workload, case="load", system=system.name, run=0, seconds=seconds, rows=found[system], disk=system.disk()))
            except (RuntimeError, OSError, TimeoutError) as error:
                out.skip(system.name, error)
                system.close()
        yield found
    finally:
        for system in found:
            system.close()


def make(name, scratch, threads):
    return KINDS[name](scratch, threads) if name in KINDS else Engine(name, scratch, threads)
