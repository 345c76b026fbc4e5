"""The databases under measurement: a fresh data folder, start, ask, wait until settled, stop.

In: where their binaries are (environment). Out: a `System` with the same face for each of them.
Always: servers bind to loopback (or to a network namespace of ours, `HOST`) on free ports, live in a scratch folder, and are stopped by their own process id.
"""

import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.parse
from pathlib import Path

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", Path.home() / ".cache/tidalite/target"))


# Where servers listen, and what their commands begin with: `tidalite_bench.remote` puts them on a host of their own.
HOST = "127.0.0.1"
BEFORE = []


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def folder_bytes(root, only=lambda path: True):
    """Allocated bytes, not apparent size: sparse and preallocated files count for what they take."""
    total = 0
    for folder, _, files in os.walk(root):
        if only(folder):
            for name in files:
                try:
                    total += os.stat(os.path.join(folder, name)).st_blocks * 512
                except FileNotFoundError:  # purged meanwhile
                    pass
    return total


def cpu_seconds_of(pid):
    """Of all its threads since it began."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def thread_seconds_of(pid):
    """{thread: (name, seconds)} of those that live."""
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            head, fields = (task / "stat").read_text().rsplit(")", 1)
        except OSError:  # it has ended meanwhile
            continue
        ticks = fields.split()[11:13]
        found[task.name] = head.split("(", 1)[1], sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
    return found


@contextlib.contextmanager
def on_processors(count):
    """What is started within runs on the first `count` of them; 0 for all."""
    bound = ["taskset", "--cpu-list", f"0-{count - 1}"] if count else []
    BEFORE.extend(bound)
    try:
        yield
    finally:
        del BEFORE[len(BEFORE) - len(bound):]


class System:
    name = ""
    settled_means = ""
    durability = ""

    def __init__(self, scratch, extra_env=None):
        self.scratch = Path(scratch)
        self.data = self.scratch / f"{self.name}-data"
        self.extra_env = extra_env or {}
        self.process = None

    def command(self):
        raise NotImplementedError

    def start(self, fresh=True):
        """`fresh`: over an empty folder, not over what an earlier one left."""
        if fresh:
            shutil.rmtree(self.data, ignore_errors=True)
        self.data.mkdir(parents=True, exist_ok=True)
        self.http_port, self.ilp_port, self.health_port = free_port(), free_port(), free_port()
        log = open(self.scratch / f"{self.name}.log", "wb")
        self.process = subprocess.Popen(
            [*BEFORE, *self.command()], stdout=log, stderr=log, stdin=subprocess.DEVNULL, env={**{k: v for k, v in os.environ.items() if k != "TIDALITE_BIN"}, **self.extra_env}
        )
        log.close()
        deadline = time.monotonic() + 60
        while True:
            try:
                if self.sql("select 1")["dataset"] == [[1]]:
                    return self
            except (OSError, http.client.HTTPException):
                pass
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.name} ended at start, see {self.scratch}/{self.name}.log")
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.name} does not answer")
            time.sleep(0.05)

    def stop(self, keep=False):
        if self.process is None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None
        self._connection = None
        if not keep:
            shutil.rmtree(self.data, ignore_errors=True)

    _connection = None

    def sql(self, query):
        return json.loads(self.answer(query)[1])

    def answer(self, query):
        """(status, bytes). One kept-alive connection: a poll must not cost a handshake."""
        for again in (True, False):
            if self._connection is None:
                self._connection = http.client.HTTPConnection(HOST, self.http_port, timeout=120)
            try:
                self._connection.request("GET", "/exec?" + urllib.parse.urlencode({"query": query}))
                answer = self._connection.getresponse()
                return answer.status, answer.read()
            except (OSError, http.client.HTTPException):
                self._connection = None
                if not again:
                    raise

    def count(self, table):
        answer = self.sql(f'select count(*) from "{table}"')
        return answer["dataset"][0][0] if "dataset" in answer else 0

    def cpu_seconds(self):
        return cpu_seconds_of(self.process.pid)

    def thread_seconds(self):
        return thread_seconds_of(self.process.pid)

    def resident_mib(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+)", status).group(1)) // 1024

    def written_bytes(self):
        return int(re.search(r"^write_bytes: (\d+)", Path(f"/proc/{self.process.pid}/io").read_text(), re.M).group(1))

    def is_settled(self, tables):
        raise NotImplementedError

    def wait_settled(self, tables, timeout=120):
        """The moment from which `is_settled` held."""
        deadline = time.monotonic() + timeout
        while not self.is_settled(tables):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.name} does not settle")
            time.sleep(0.02)
        return time.monotonic()

    def disk(self, tables):
        """(bytes that hold the tables, {part: bytes} of the whole data folder)."""
        raise NotImplementedError

    def version(self):
        raise NotImplementedError


class Tidalite(System):
    name = "tidalite"
    settled_means = "gauges tidalite_staged_rows and tidalite_late_rows are 0: every row is woven into synced segments"

    def __init__(self, scratch, extra_env=None):
        super().__init__(scratch, extra_env)
        self.binary = os.environ.get("TIDALITE_BIN", str(TARGET / "release/tidalite"))
        # Less than the default, so that what is loaded is more than three times the limit and merges are measured, too.
        self.extra_env.setdefault("TIDALITE_STAGING_BYTES", "224MiB")
        if HOST != "127.0.0.1":
            # Nobody but this machine sees that address.
            self.extra_env["TIDALITE_INSECURE_BIND"] = "true"
        delay = self.extra_env.get("TIDALITE_SYNC_DELAY_MS")
        self.durability = "sync (the default): acknowledged rows are synced; staging limit 224 MiB" + (f", {delay} ms added to every sync" if delay else "")

    def command(self):
        return [self.binary, "serve", "--data", str(self.data), "--files-roots", "/", "--http", f"{HOST}:{self.http_port}",
                "--pg", "off", "--ilp", f"{HOST}:{self.ilp_port}", "--health", f"{HOST}:{self.health_port}"]

    def metrics(self):
        connection = http.client.HTTPConnection(HOST, self.health_port, timeout=60)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        pairs = (line.rsplit(" ", 1) for line in text.splitlines() if line and not line.startswith("#"))
        return {name: float(value) for name, value in pairs}

    def is_settled(self, tables):
        metrics = self.metrics()
        # Builds of before have no late rows.
        return metrics["tidalite_staged_rows"] == 0 and metrics.get("tidalite_late_rows", 0) == 0

    def disk(self, tables):
        parts = {}
        for entry in sorted(self.data.iterdir()):
            size = folder_bytes(entry) if entry.is_dir() else entry.stat().st_blocks * 512
            parts[entry.name] = size
        return folder_bytes(self.data), parts

    def version(self):
        return subprocess.run([self.binary, "--version"], capture_output=True, text=True).stdout.strip()


class QuestDB(System):
    name = "questdb"
    settled_means = "wal_tables(): sequencerTxn = writerTxn, none suspended, and the process wrote nothing to disk for 0.3 s (not synced)"
    durability = "default: never synced (cairo.commit.mode=nosync)"

    def __init__(self, scratch, extra_env=None):
        super().__init__(scratch, extra_env)
        peers = Path(os.environ.get("PEERS", "/tmp/peers"))
        self.jar = os.environ.get("QDB_JAR", str(peers / "qdb/lib/questdb-9.3.4.jar"))
        self.heap = os.environ.get("QDB_HEAP", "2g")

    def command(self):
        conf = self.data / "conf"
        conf.mkdir(exist_ok=True)
        (conf / "server.conf").write_text(
            f"http.net.bind.to={HOST}:{self.http_port}\nline.tcp.net.bind.to={HOST}:{self.ilp_port}\n"
            "http.min.enabled=false\nline.udp.enabled=false\npg.enabled=false\ntelemetry.enabled=false\n"
        )
        return [os.environ.get("JAVA", "java"), "-XX:+UnlockExperimentalVMOptions", "-XX:+AlwaysPreTouch",
                "-XX:+UseParallelGC", f"-Xms{self.heap}", f"-Xmx{self.heap}",
                "-p", self.jar, "-m", "io.questdb/io.questdb.ServerMain", "-d", str(self.data), "-n"]

    def is_settled(self, tables):
        answer = self.sql("select name, suspended, writerTxn, sequencerTxn from wal_tables()")
        rows = {row[0]: row[1:] for row in answer["dataset"]}
        return all(t in rows and not rows[t][0] and rows[t][1] == rows[t][2] for t in tables)

    def wait_settled(self, tables, timeout=120):
        while True:
            settled = super().wait_settled(tables, timeout)
            before = self.written_bytes()
            time.sleep(0.3)
            if self.written_bytes() == before and self.is_settled(tables):
                return settled

    def disk(self, tables):
        names = tuple(f"{os.sep}{t}~" for t in tables)
        # A table with a log lies in "name~7", one without in "name".
        parts = {t: folder_bytes(self.data / "db", lambda folder, t=t: f"/{t}~" in folder + "~" or f"/{t}/" in folder + "/") for t in tables}
        parts["of it WAL"] = folder_bytes(self.data / "db", lambda folder: any(n in folder for n in names) and "/wal" in folder)
        return sum(parts[t] for t in tables), parts

    def version(self):
        return Path(self.jar).stem + ", " + subprocess.run(
            [os.environ.get("JAVA", "java"), "-version"], capture_output=True, text=True).stderr.splitlines()[0] + f", heap {self.heap}"


class InfluxDB(System):
    """InfluxDB 1.x: lines over HTTP, questions in InfluxQL; `ilp_port` is None, for there is no plain connection."""

    name = "influxdb"
    settled_means = "the last write is acknowledged; compactions go on behind it"
    durability = "write-ahead log synced before each answer (its default)"
    binary = "influxd"
    columns = ()

    def command(self):
        conf = self.data / "influxdb.conf"
        conf.write_text(
            f'reporting-disabled = true\nbind-address = "{HOST}:{self.health_port}"\n[meta]\n  dir = "{self.data}/meta"\n'
            f'[data]\n  dir = "{self.data}/data"\n  wal-dir = "{self.data}/wal"\n  index-version = "tsi1"\n  query-log-enabled = false\n'
            f'  max-series-per-database = 0\n  cache-max-memory-size = "4g"\n[http]\n  bind-address = "{HOST}:{self.http_port}"\n  log-enabled = false\n'
            f'  max-body-size = 0\n[monitor]\n  store-enabled = false\n'
        )
        return [self.binary, "run", "-config", str(conf)]

    def request(self, method, path, body=None):
        for again in (True, False):
            if self._connection is None:
                self._connection = http.client.HTTPConnection(HOST, self.http_port, timeout=600)
            try:
                self._connection.request(method, path, body)
                answer = self._connection.getresponse()
                return answer.status, answer.read()
            except (OSError, http.client.HTTPException):
                self._connection = None
                if not again:
                    raise

    def sql(self, query):
        """In the shape of the others' answers. A series' tags stand between time and values; of `SELECT *` the columns are those that
        `columns` says, the time last."""
        if query == "select 1":
            self.request("POST", "/query?" + urllib.parse.urlencode({"q": "create database bench"}))
            return {"dataset": [[1]]}
        status, body = self.request("GET", "/query?" + urllib.parse.urlencode({"q": query, "db": "bench"}))
        answer = json.loads(body)
        error = answer.get("error") or next((r["error"] for r in answer["results"] if "error" in r), None)
        if status != 200 or error:
            return {"error": error or f"status {status}"}
        rows = []
        for series in (s for r in answer["results"] for s in r.get("series", [])):
            names, tags = series["columns"], series.get("tags", {})
            for row in series["values"]:
                if query.startswith("SELECT *"):
                    found = dict(zip(names, row)) | tags
                    rows.append([found.get(name) for name in self.columns] + [found["time"]])
                else:
                    rows.append([row[0], *tags.values(), *row[1:]])
        return {"dataset": rows}

    def count(self, table):
        return max((row[1] for row in self.sql(f"select count(usage_user) from {table}").get("dataset", [])), default=0)

    def is_settled(self, tables):
        return True

    def disk(self, tables):
        return folder_bytes(self.data), {"of it WAL": folder_bytes(self.data / "wal")}

    def version(self):
        return subprocess.run([self.binary, "version"], capture_output=True, text=True).stdout.strip()


SYSTEMS = {"questdb": QuestDB, "tidalite": Tidalite}
