"""Many small tables: each gets a row a second. Shows memory, open files, the log, and how long a restart takes.

    python bench/many_tables.py target/release/tidalite --tables 10000 --seconds 600
"""

import argparse
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request

HTTP, ILP, HEALTH = 19200, 19209, 19203


def start(binary, data):
    command = [binary, "serve", "--data", data]
    command += ["--http", f"127.0.0.1:{HTTP}", "--pg", "off", "--ilp", f"127.0.0.1:{ILP}", "--health", f"127.0.0.1:{HEALTH}"]
    began = time.monotonic()
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while True:
        if server.poll() is not None:
            raise SystemExit("the server stopped")
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{HTTP}/ping", timeout=5).read()
            return server, time.monotonic() - began
        except OSError:
            time.sleep(0.02)


def metrics():
    text = urllib.request.urlopen(f"http://127.0.0.1:{HEALTH}/metrics").read().decode()
    pairs = (line.split() for line in text.splitlines() if line.startswith("tidalite_") and "{" not in line)
    return {name: float(value) for name, value in pairs}


def resident_mib(pid):
    with open(f"/proc/{pid}/status") as status:
        return int(next(line for line in status if line.startswith("VmRSS")).split()[1]) / 1024


def sample(pid, data):
    log = os.path.join(data, "wal")
    return (
        resident_mib(pid),
        len(os.listdir(f"/proc/{pid}/fd")),
        sum(os.path.getsize(os.path.join(log, name)) for name in os.listdir(log)) / 2**20,
    )


def send(args, pid, data):
    connection = socket.create_connection(("127.0.0.1", ILP))
    worst = (0.0, 0, 0.0)
    began = time.monotonic()
    for second in range(args.seconds):
        stamp = (1_700_000_000 + second) * 10**9
        rows = (f"t{table},host=h{table % 100} value={second}.5,count={second}i {stamp}\n" for table in range(args.tables))
        connection.sendall("".join(rows).encode())
        rest = began + second + 1 - time.monotonic()
        if rest > 0:
            time.sleep(rest)
        worst = tuple(max(pair) for pair in zip(worst, sample(pid, data)))
    connection.close()
    return worst, time.monotonic() - began


def count(sql):
    query = urllib.parse.urlencode({"query": sql})
    return urllib.request.urlopen(f"http://127.0.0.1:{HTTP}/exp?{query}").read().decode().split()[-1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--tables", type=int, default=10_000)
    parser.add_argument("--seconds", type=int, default=600)
    args = parser.parse_args()
    data = tempfile.mkdtemp(prefix="many-tables-")
    server, _ = start(args.binary, data)
    try:
        (resident, files, log), took = send(args, server.pid, data)
        rows = args.tables * args.seconds
        while metrics()["tidalite_rows_committed_total"] < rows:
            time.sleep(0.1)
        found = metrics()
        print(f"{args.tables} tables, {args.seconds} s of a row a second each, sent in {took:.0f} s")
        print(f"resident at most {resident:.0f} MiB, open files {files}, log {log:.0f} MiB")
        print(f"staged rows {found['tidalite_staged_rows']:.0f}, merges {found['tidalite_merges_total']:.0f}, "
              f"segments {found['tidalite_segments']:.0f}")
        server.send_signal(signal.SIGKILL)
        server.wait()
        server, seconds = start(args.binary, data)
        print(f"restart after kill -9: {seconds:.2f} s, rows of the last table: {count(f'select count(*) from t{args.tables - 1}')}")
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(data)


if __name__ == "__main__":
    main()
