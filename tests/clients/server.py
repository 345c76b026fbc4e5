"""A real server under test: a process of its own on free ports, with a data folder.

In: the binary (TIDALITE_BIN, else the release build in the cargo target folder). Out: `Server`, to start, ask, stop and kill it.
Always: it binds to loopback, and only processes started here are signalled.
"""

import csv
import http.client
import io
import json
import os
import signal
import socket
import ssl
import subprocess
import time
import urllib.parse
from datetime import datetime, timezone
from pathlib import Path


def binary():
    target = Path(os.environ.get("CARGO_TARGET_DIR") or Path.home() / ".cache/tidalite/target")
    return Path(os.environ.get("TIDALITE_BIN") or target / "release/tidalite")


def free_ports(count):
    probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [p.getsockname()[1] for p in probes]
    finally:
        for p in probes:
            p.close()


def eventually(check, seconds=30.0, what="the condition"):
    """Polls until `check` returns something true and returns that."""
    deadline = time.monotonic() + seconds
    while True:
        found = check()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come within {seconds} s")
        time.sleep(0.01)


class SqlError(Exception):
    def __init__(self, status, answer):
        super().__init__(f"{status}: {answer}")
        self.status, self.answer = status, answer


# Tests read and write files where they like; what a server allows by itself is what `env` says otherwise.
ANY_FILE = {"TIDALITE_FILES_ROOTS": "/", "TIDALITE_FILES_HOSTS": "*", "TIDALITE_FILES_PRIVATE_ADDRESSES": "true"}


class Server:
    def __init__(self, folder, prefix=(), env=None, authority=None):
        self.folder = Path(folder)
        self.data = self.folder / "data"
        self.log = self.folder / "server.log"
        self.prefix, self.env = list(prefix), {**ANY_FILE, **(env or {})}
        # A file of certificates to trust: then HTTP is encrypted.
        self.authority = authority
        self.process = None
        self.http_port, self.pg_port, self.ilp_port, self.health_port = free_ports(4)

    def command(self):
        return [*self.prefix, str(binary()), "serve", "--data", str(self.data), "--http", f"127.0.0.1:{self.http_port}",
                "--pg", f"127.0.0.1:{self.pg_port}", "--ilp", f"127.0.0.1:{self.ilp_port}", "--health", f"127.0.0.1:{self.health_port}"]

    def spawn(self):
        """Starts the process and does not wait for it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=log, stdin=subprocess.DEVNULL, env={**{k: v for k, v in os.environ.items() if k != "TIDALITE_BIN"}, **self.env})
        return self

    def start(self):
        self.spawn()
        eventually(self.is_ready, 60, "/ping")
        return self

    def is_ready(self):
        assert self.process.poll() is None, f"the server ended at start with {self.process.returncode}:\n{self.log_tail()}"
        try:
            return self.request("GET", "/ping")[0] == 204
        except OSError:
            return False

    def pid(self):
        """Of the server itself, under whatever prefix it runs."""
        pid = self.process.pid
        for _ in self.prefix[:1]:
            children = eventually(lambda: Path(f"/proc/{pid}/task/{pid}/children").read_text().split(), 10, "the child process")
            pid = int(children[0])
        return pid

    def stop(self, seconds=30):
        """As an operator would; returns the exit status."""
        if self.process is None:
            return None
        if self.process.poll() is None:
            os.kill(self.pid(), signal.SIGTERM)
            try:
                self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.kill()
                raise AssertionError(f"the server did not stop:\n{self.log_tail()}") from None
        status, self.process = self.process.returncode, None
        return status

    def kill(self):
        os.kill(self.pid(), signal.SIGKILL)
        self.process.wait()
        self.process = None

    def log_tail(self, size=4000):
        return self.log.read_bytes()[-size:].decode(errors="replace")

    def connection(self, timeout=60):
        if self.authority is None:
            return http.client.HTTPConnection("127.0.0.1", self.http_port, timeout=timeout)
        context = ssl.create_default_context(cafile=self.authority)
        return http.client.HTTPSConnection("127.0.0.1", self.http_port, timeout=timeout, context=context)

    def request(self, method, path, body=None, headers=None, timeout=60):
        """(status, headers, body) over a connection of its own."""
        connection = self.connection(timeout)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, dict((k.lower(), v) for k, v in answer.getheaders()), answer.read()
        finally:
            connection.close()

    def exec(self, query, **parameters):
        """The JSON of /exec; raises `SqlError` when the answer is one."""
        form = urllib.parse.urlencode({"query": query, **parameters})
        if len(form) < 32_000:
            status, _, body = self.request("GET", f"/exec?{form}")
        else:
            status, _, body = self.request("POST", "/exec", form, {"Content-Type": "application/x-www-form-urlencoded"})
        answer = json.loads(body)
        if status != 200 or "error" in answer:
            raise SqlError(status, answer)
        return answer

    def rows(self, query):
        return self.exec(query)["dataset"]

    def value(self, query):
        return self.rows(query)[0][0]

    def types(self, table):
        """{column: type} as SHOW COLUMNS has it."""
        answer = self.exec(f'show columns from "{table}"')
        names = [c["name"] for c in answer["columns"]]
        return {row[names.index("column")]: row[names.index("type")] for row in answer["dataset"]}

    def has_table(self, table):
        return table in [row[0] for row in self.rows("show tables")]

    def count(self, table):
        """-1 while there is no such table."""
        query = f'select count(*) from "{table}"'
        try:
            return self.value(query)
        except SqlError:
            # It may have come meanwhile, and then there is no excuse.
            return self.value(query) if self.has_table(table) else -1

    def wait_count(self, table, rows, seconds=60):
        eventually(lambda: self.count(table) >= rows, seconds, f"{rows} rows in {table}, {self.count(table)} at first,")
        assert self.count(table) == rows

    def write(self, lines, path="/write", headers=None):
        """(status, answer): the answer parsed as JSON when there is one."""
        data = lines.encode() if isinstance(lines, str) else lines
        status, _, body = self.request("POST", path, data, headers)
        return status, json.loads(body) if body else None

    def write_ok(self, lines, **more):
        assert self.write(lines, **more) == (204, None)

    def tcp(self):
        return socket.create_connection(("127.0.0.1", self.ilp_port), timeout=30)

    def export(self, query):
        """The bytes of /exp."""
        status, headers, body = self.request("GET", "/exp?" + urllib.parse.urlencode({"query": query}), timeout=120)
        assert status == 200, body[:500]
        assert headers["content-type"].startswith("text/csv")
        return body

    def export_rows(self, query):
        return list(csv.reader(io.StringIO(self.export(query).decode(), newline="")))

    def metrics(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.health_port, timeout=30)
        try:
            connection.request("GET", "/metrics")
            text = connection.getresponse().read().decode()
        finally:
            connection.close()
        pairs = (line.rsplit(" ", 1) for line in text.splitlines() if line and not line.startswith("#"))
        return {name: float(value) for name, value in pairs}


def nanos(text):
    """`2024-01-01T00:00:00.000000001Z` as nanoseconds since 1970, whatever the number of its decimals."""
    whole, _, fraction = text.rstrip("Z").partition(".")
    seconds = int(datetime.fromisoformat(whole).replace(tzinfo=timezone.utc).timestamp())
    return seconds * 10**9 + int(fraction.ljust(9, "0")[:9] or 0)
