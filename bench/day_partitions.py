"""10 million rows over 1,158 day partitions of 8,640 rows: files, bytes and the time of a scan.

    python bench/day_partitions.py target/release/tidalite
"""

import os
import socket
import statistics
import sys
import tempfile
import time
import shutil

import many_tables as server_of

DAYS, ROWS_A_DAY = 1_158, 8_640


def lines(day):
    start = 1_500_000_000 + day * 86_400
    return "".join(f"frame,id={i % 10} a={i * 7919 % 1000}i,b={(i * 104729 % 100000) / 100} {(start + i * 10) * 10**9}\n"
                   for i in range(ROWS_A_DAY)).encode()


def main():
    data = tempfile.mkdtemp(prefix="day-partitions-")
    server, _ = server_of.start(sys.argv[1], data)
    try:
        began = time.monotonic()
        connection = socket.create_connection(("127.0.0.1", server_of.ILP))
        for day in range(DAYS):
            connection.sendall(lines(day))
        connection.close()
        rows = DAYS * ROWS_A_DAY
        while server_of.metrics()["tidalite_rows_committed_total"] < rows:
            time.sleep(0.05)
        while server_of.metrics()["tidalite_staged_rows"] > 0:
            time.sleep(0.05)
        print(f"{rows} rows settled in {time.monotonic() - began:.1f} s")
        files = [os.path.join(folder, name) for folder, _, names in os.walk(os.path.join(data, "segments")) for name in names]
        print(f"{len(files)} files, {sum(map(os.path.getsize, files)) / 2**20:.1f} MiB")
        for sql in ("select count(*), sum(a), avg(b) from frame", "select id, sum(b) from frame group by id",
                    "select max(b) from frame where a = 500"):
            times = []
            for _ in range(5):
                began = time.monotonic()
                server_of.count(sql)
                times.append((time.monotonic() - began) * 1e3)
            print(f"{sql}: first {times[0]:.0f} ms, median {statistics.median(times):.0f} ms")
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(data)


if __name__ == "__main__":
    main()
