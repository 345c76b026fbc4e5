#!/usr/bin/env python3
"""The resident size of builds of Tidalite while statements need more memory than the server may use.

    python3 bench/resident.py before=PATH after=PATH [--memory 512MiB] [--rounds 3]

Each build runs eight statements one after another and then at once, under `memory.bytes`. The sizes are the greatest of
50 ms samples of all rounds in MiB: anonymous memory (`RssAnon`) and the resident size (`VmRSS`), which includes the
pages of the program file. The number of refused statements is the greatest of a round.
"""

import argparse
import http.client
import json
import socket
import subprocess
import tempfile
import threading
import time
from urllib.parse import quote

TEXTS = "SELECT md5(x::varchar) || repeat('a', 60) s FROM long_sequence(3000000)"
STATEMENTS = {
    "sort for a window": f"SELECT sum(length(s) * r) FROM (SELECT s, row_number() OVER (ORDER BY s) r FROM ({TEXTS}))",
    "array_agg by group": "SELECT count(*) FROM (SELECT x % 2000000 k, array_agg(x) a FROM long_sequence(4000000) GROUP BY 1)",
    "string_agg by group": "SELECT max(length(a)) FROM (SELECT x % 10 k, string_agg(md5(x::varchar), ',') a FROM long_sequence(3000000) GROUP BY 1)",
    "DISTINCT texts": "SELECT count(*) FROM (SELECT DISTINCT md5(x::varchar) FROM long_sequence(5000000))",
    "join of texts": "SELECT count(*) FROM (SELECT md5(x::varchar) k FROM long_sequence(2000000)) a JOIN (SELECT md5(x::varchar) k FROM long_sequence(2000000)) b USING (k)",
    "median": "SELECT median(x) FROM long_sequence(30000000)",
    "moving mean": "SELECT max(v) FROM (SELECT avg(x) OVER (PARTITION BY x % 1000 ORDER BY x DESC ROWS BETWEEN 100 PRECEDING AND CURRENT ROW) v FROM long_sequence(2000000))",
    "sort with LIMIT": "SELECT count(*) FROM (SELECT x, md5(x::varchar) s FROM long_sequence(3000000) ORDER BY s LIMIT 2900000)",
}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def run(port, sql, errors):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    connection.request("GET", "/exec?query=" + quote(sql))
    if "error" in json.loads(connection.getresponse().read()):
        errors.append(sql)


def peak(process, port, statements):
    """Returns the greatest anonymous and resident size in MiB while statements run at once, and the number that failed."""
    errors, anonymous, resident = [], 0, 0
    threads = [threading.Thread(target=run, args=(port, sql, errors)) for sql in statements]
    [thread.start() for thread in threads]
    while any(thread.is_alive() for thread in threads):
        with open(f"/proc/{process.pid}/status") as status:
            kib = {line.split(":")[0]: int(line.split()[1]) for line in status if line.startswith(("VmRSS", "RssAnon"))}
        anonymous, resident = max(anonymous, kib.get("RssAnon", 0)), max(resident, kib.get("VmRSS", 0))
        time.sleep(0.05)
    return anonymous >> 10, resident >> 10, len(errors)


def measure(binary, memory):
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        off = [part for name in ("--pg", "--ilp", "--health") for part in (name, "off")]
        process = subprocess.Popen([binary, "serve", "--data", folder, "--http", f"127.0.0.1:{port}", "--memory-bytes", memory, *off], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_for(port)
            alone = {name: peak(process, port, [sql]) for name, sql in STATEMENTS.items()}
            return {**alone, "all at once": peak(process, port, list(STATEMENTS.values()))}
        finally:
            process.terminate()
            process.wait()


def wait_for(port):
    end = time.monotonic() + 30
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.05)
    raise SystemExit("the server did not start")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("builds", nargs="+", metavar="NAME=PATH")
    parser.add_argument("--memory", default="512MiB")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    builds = dict(build.split("=", 1) for build in options.builds)
    rounds = [{name: measure(binary, options.memory) for name, binary in builds.items()} for _ in range(options.rounds)]
    print("| statements | " + " | ".join(f"{name}: anonymous, resident" for name in builds) + " |\n|---|" + "--:|" * len(builds))
    for statement in [*STATEMENTS, "all at once"]:
        cells = []
        for name in builds:
            anonymous, resident, failed = (max(sizes) for sizes in zip(*(one[name][statement] for one in rounds)))
            cells.append(f"{anonymous}, {resident}{f' ({failed} refused)' if failed else ''}")
        print(f"| {statement} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
