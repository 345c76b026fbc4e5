"""The clients of the ingest measurement, and a null server that shows what each of them can do at most.

In: a loaded file or frame, and the ports of a server. Out: seconds until the last byte was handed over.
Always: reading and generating happens before the clock; every client gets the same bytes or the same rows.
"""

import http.client
import itertools
import json
import multiprocessing
import os
import queue
import re
import socket
import subprocess
import threading
import time
from pathlib import Path

FORK = multiprocessing.get_context("fork")
BLOCK = 4 << 20
AGAIN_BYTES = 600 << 20


class LineFile:
    """A file of line protocol in memory, cut at line ends into blocks of about 4 MiB."""

    def __init__(self, path):
        self.path = Path(path)
        self.data = self.path.read_bytes()
        self.blocks = list(cut(self.data, BLOCK))
        self.tables = table_rows(self.data)
        self.rows = sum(self.tables.values())


def cut(data, block):
    at = 0
    while at < len(data):
        end = data.find(b"\n", min(len(data) - 1, at + block)) + 1 or len(data)
        yield at, end
        at = end


def table_rows(data):
    """Rows per table, trusting that the first 4 MiB show every table and that no value holds a line end."""
    names = {re.split(rb"[, ]", line, maxsplit=1)[0] for line in data[: data.find(b"\n", min(len(data) - 1, BLOCK)) + 1].splitlines()}
    counts = {n.decode(): data.count(b"\n" + n + b",") + data.startswith(n + b",") for n in names}
    assert sum(counts.values()) == data.count(b"\n"), f"lines of other tables than {sorted(counts)}"
    return counts


def renamed(data, suffix):
    """The first lines of `data` with every table name changed: warms a server up without leaving rows behind."""
    return b"\n".join(re.sub(rb"^([a-z]+)", rb"\1" + suffix, line) for line in data.splitlines()) + b"\n"


def send_raw(port, data, blocks, connections, host="127.0.0.1"):
    """Only pushes bytes: connection k sends every k-th block. Threads, since `sendall` releases the interpreter."""
    view = memoryview(data)

    def push(k):
        with socket.create_connection((host, port)) as s:
            for a, b in blocks[k::connections]:
                s.sendall(view[a:b])

    threads = [threading.Thread(target=push, args=(k,)) for k in range(connections)]
    start = time.monotonic()
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return time.monotonic() - start


def send_for(port, f, connections, seconds, ready):
    """Pushes a file once; with `seconds` its beginning so long, into four tables of other names in turns."""
    loads = [(f.data, f.blocks)]
    if seconds:
        part = b"\n" + f.data[:f.data.rindex(b"\n", 0, AGAIN_BYTES) + 1]
        loads = []
        for digit in b"0123":
            again = part
            for name in map(str.encode, f.tables):
                again = again.replace(b"\n" + name + b",", b"\n" + name[:-1] + bytes([digit]) + b",")
            loads.append((again[1:], list(cut(again[1:], BLOCK))))
    ready.set()
    end = time.monotonic() + seconds
    for data, blocks in itertools.cycle(loads):
        send_raw(port, data, blocks, connections)
        if time.monotonic() >= end:
            return


def send_stream(port, command, connections, host="127.0.0.1"):
    """What a command writes, as it writes it: blocks of whole lines go to the connections in turns, each as soon as one is
    free. Seconds from its first byte until the last one was sent."""
    waiting, failed = queue.Queue(2 * connections), []

    def push(s):
        # After a failure blocks are only taken, or the reader would wait for room for ever.
        while (piece := waiting.get()) is not None:
            try:
                if not failed:
                    s.sendall(piece)
            except OSError as error:
                failed.append(error)

    sockets = [socket.create_connection((host, port)) for _ in range(connections)]
    threads = [threading.Thread(target=push, args=(s,)) for s in sockets]
    for t in threads:
        t.start()
    try:
        start = None
        for piece in written_by(command):
            start = start or time.monotonic()
            waiting.put(piece)
    finally:
        for _ in threads:
            waiting.put(None)
        for t in threads:
            t.join()
        for s in sockets:
            s.close()
    if failed:
        raise failed[0]
    return time.monotonic() - start


def written_by(command, block=1 << 20):
    """Blocks of whole lines."""
    rest = b""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        while piece := process.stdout.read(block):
            end = piece.rfind(b"\n") + 1
            if end:
                yield rest + piece[:end]
                rest = piece[end:]
            else:
                rest += piece
    if process.returncode or rest:
        raise RuntimeError(f"{command[0]} ended with status {process.returncode}{' within a line' * bool(rest)}")


def send_tsbs(http_port, ilp_port, path, workers):
    """The official loader; its own duration, for it sleeps a second before it begins."""
    binary = Path(os.environ.get("TSBS_BIN", str(Path(os.environ.get("PEERS", "/tmp/peers")) / "bin")))
    if binary.is_dir():
        binary = binary / "tsbs_load_questdb"
    done = subprocess.run(
        [str(binary), f"--file={path}", f"--workers={workers}", "--reporting-period=0s",
         f"--url=http://127.0.0.1:{http_port}/", f"--ilp-bind-to=127.0.0.1:{ilp_port}"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )
    found = re.search(r"loaded (\d+) rows in ([\d.]+)sec", done.stdout)
    if done.returncode or not found:
        raise RuntimeError(f"tsbs_load_questdb failed: {done.stdout[-400:]}")
    return float(found.group(2))


FIELDS = ["usage_" + f for f in "user system idle nice iowait irq softirq steal guest guest_nice".split()]


def cpu_frame(hosts=4000, steps=1440):
    """TSBS cpu-only shaped: ten tags as categories, ten doubles, one row per host and step, in order of time."""
    import numpy as np
    import pandas as pd

    g = np.random.default_rng(123)
    host = np.tile(np.arange(hosts), steps)
    frame = {"hostname": pd.Categorical.from_codes(host, [f"host_{i}" for i in range(hosts)])}
    for tag, kinds in dict(region=9, datacenter=27, rack=100, os=3, arch=2, team=4, service=20,
                           service_version=2, service_environment=3).items():
        frame[tag] = pd.Categorical.from_codes(g.integers(0, kinds, hosts)[host], [f"{tag}-{i}" for i in range(kinds)])
    for field in FIELDS:
        walk = np.cumsum(g.normal(0, 1, (steps, hosts)), axis=0) + g.uniform(0, 100, hosts)
        walk = np.mod(walk, 200)
        frame[field] = np.minimum(walk, 200 - walk).ravel()
    frame["ts"] = np.datetime64("2016-01-01", "ns") + np.repeat(np.arange(steps), hosts) * np.timedelta64(10_000_000_000, "ns")
    return pd.DataFrame(frame)


def frame_parts(frame, order, processes):
    """One frame per process; `o3` shuffles within windows of ten minutes."""
    import numpy as np

    if order == "o3":
        window = 60 * frame.hostname.cat.categories.size
        g = np.random.default_rng(5)
        frame = frame.iloc[np.concatenate([a + g.permutation(min(window, len(frame) - a)) for a in range(0, len(frame), window)])]
    if processes == 1:
        return [frame.reset_index(drop=True)]
    return [frame[frame.hostname.cat.codes % processes == k].reset_index(drop=True) for k in range(processes)]


def frame_conf(protocol, http_port, ilp_port):
    if protocol == "http":
        return f"http::addr=127.0.0.1:{http_port};auto_flush_rows=75000;request_timeout=120000;"
    return f"tcp::addr=127.0.0.1:{ilp_port};protocol_version=2;auto_flush_rows=75000;"


def send_frames(conf, parts, table="cpu"):
    """The official client's `dataframe()`, one process per part; its serialisation is inside the clock."""
    from questdb import Sender

    symbols = [c for c in parts[0].columns if str(parts[0][c].dtype) == "category"]

    def go(part):
        with Sender.from_conf(conf) as sender:
            sender.dataframe(part, table_name=table, symbols=symbols, at="ts")

    start = time.monotonic()
    if len(parts) == 1:
        go(parts[0])
    else:
        workers = [FORK.Process(target=go, args=(part,)) for part in parts]
        for w in workers:
            w.start()
        for w in workers:
            w.join()
        if any(w.exitcode for w in workers):
            raise RuntimeError("a sender process failed")
    return time.monotonic() - start


COMPUTATION = 20_000


def acknowledgements(http_port, body, goes_on, pause):
    """Posts `body` again and again over one connection, at least once: the latency of each in ms, and how long a fixed
    computation took between them: that is the machine, which may be slower at times than at others."""
    connection = http.client.HTTPConnection("127.0.0.1", http_port, timeout=60)
    results, computations = [], []
    while not results or goes_on():
        start = time.monotonic()
        connection.request("POST", "/write", body)
        answer = connection.getresponse()
        text = answer.read()
        results.append((time.monotonic() - start) * 1e3)
        if answer.status != 204:
            raise RuntimeError(f"/write answered {answer.status}: {text[:300]}")
        time.sleep(pause / 2)
        start = time.monotonic()
        sum(range(COMPUTATION))
        computations.append((time.monotonic() - start) * 1e3)
        time.sleep(pause / 2)
    return results, computations


class NullServer:
    """Takes bytes over TCP and requests over HTTP and forgets them, in a process of its own.

    With `log`, a path: writes `LOG_BYTES` to that file and syncs it before it answers a write, the least that a durable
    server can do; with `sync_delay` a sync takes so many seconds longer."""

    FILE_BYTES, LOG_BYTES = 64 << 20, 24 << 10

    def __init__(self, log=None, sync_delay=0):
        self.log, self.sync_delay = log, sync_delay

    def __enter__(self):
        if self.log:
            Path(self.log).write_bytes(bytes(self.FILE_BYTES))
            os.sync()
        self.tcp = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.http = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.ilp_port, self.http_port = self.tcp.getsockname()[1], self.http.getsockname()[1]
        self.process = FORK.Process(target=self._run, daemon=True)
        self.process.start()
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.join()
        self.tcp.close()
        self.http.close()

    def _run(self):
        threads = [threading.Thread(target=self._accept, args=(self.tcp, self._swallow)),
                   threading.Thread(target=self._accept, args=(self.http, self._answer))]
        for t in threads:
            t.start()
        for t in threads:
            t.join()

    @staticmethod
    def _accept(listener, serve):
        while True:
            peer, _ = listener.accept()
            threading.Thread(target=serve, args=(peer,), daemon=True).start()

    @staticmethod
    def _swallow(peer):
        buffer = bytearray(1 << 20)
        while peer.recv_into(buffer):
            pass
        peer.close()

    def _answer(self, peer):
        log, at, block = self.log and os.open(self.log, os.O_WRONLY), 0, os.urandom(self.LOG_BYTES)
        settings = json.dumps({"config": {"line.proto.support.versions": [1, 2, 3], "cairo.max.file.name.length": 127}}).encode()
        tables = b'{"query":"SHOW TABLES","columns":[{"name":"table_name","type":"STRING"}],"timestamp":-1,"dataset":[],"count":0}'
        buffer, view, held = bytearray(1 << 20), None, b""
        view = memoryview(buffer)
        while True:
            while b"\r\n\r\n" not in held:
                got = peer.recv(65536)
                if not got:
                    return
                held += got
            head, held = held.split(b"\r\n\r\n", 1)
            length = re.search(rb"content-length: *(\d+)", head, re.I)
            left = (int(length.group(1)) if length else 0) - len(held)
            held = b"" if left >= 0 else held[left:]
            while left > 0:
                got = peer.recv_into(view[: min(left, len(buffer))])
                if not got:
                    return
                left -= got
            if b" /write" in head.split(b"\r\n")[0]:
                if log:
                    os.pwrite(log, block, at)
                    time.sleep(self.sync_delay)
                    os.fdatasync(log)
                    at = (at + self.LOG_BYTES) % (self.FILE_BYTES - self.LOG_BYTES)
                peer.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
            else:
                body = settings if b"/settings" in head.split(b"\r\n")[0] else tables
                peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
