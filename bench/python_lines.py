"""Frames to line protocol in memory: our sender beside the official client, the frame of bench_pandas.

    python bench/python_lines.py [ROWS] [RUNS]

Both make the same text of the same frame (checked: as many bytes, but for how exponents are written), A B A B,
with one thread and with two: the official client as its benchmark does it, chunks of 10,000 rows dealt to two threads, ours by
`threads=2`. Prints medians and all runs.
"""

import statistics
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pyarrow as pa

warnings.simplefilter("ignore")
import questdb.ingress  # noqa: E402
from tidalite.sender import Buffer  # noqa: E402
from tidalite_bench.frames import TAGS, frame_of  # noqa: E402

CHUNK_ROWS = 10_000


def official(df, version, threads):
    if threads == 1:
        buffer = questdb.ingress.Buffer(protocol_version=version)
        started = time.perf_counter()
        buffer.dataframe(df, table_name="cpu", symbols=TAGS, at="timestamp")
        return time.perf_counter() - started, len(buffer)
    chunks = [df.iloc[at:at + CHUNK_ROWS] for at in range(0, len(df), CHUNK_ROWS)]

    def work(mine):
        buffer, size = questdb.ingress.Buffer(protocol_version=version), 0
        for chunk in mine:
            buffer.dataframe(chunk, table_name="cpu", symbols=TAGS, at="timestamp")
            size += len(buffer)
            buffer.clear()
        return size

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(abs, range(threads)))
        started = time.perf_counter()
        size = sum(pool.map(work, [chunks[i::threads] for i in range(threads)]))
        return time.perf_counter() - started, size


def ours(df, version, threads):
    buffer = Buffer(version)
    started = time.perf_counter()
    buffer.dataframe(df, table_name="cpu", symbols=TAGS, at="timestamp", threads=threads)
    return time.perf_counter() - started, len(buffer)


def main():
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    df = frame_of(rows, 4000, 1)
    print(f"{rows} rows, questdb {questdb.__version__}, pandas {pd.__version__}, pyarrow {pa.__version__}")
    for version in (1, 2):
        for threads in (1, 2):
            found, sizes = {official: [], ours: []}, {}
            for _ in range(runs):
                for client, times in found.items():
                    seconds, size = client(df, version, threads)
                    sizes[client] = size
                    times.append(size / 2**20 / seconds)
            assert abs(sizes[official] - sizes[ours]) <= size // 1000, sizes
            one, two = (statistics.median(found[client]) for client in (official, ours))
            shown = lambda times: " ".join(f"{t:.0f}" for t in times)  # noqa: E731
            print(f"version {version}, {threads} threads, {size / 2**20:.0f} MiB: questdb {one:.0f} MiB/s, tidalite {two:.0f} MiB/s, {two / one:.2f}x   [{shown(found[official])} | {shown(found[ours])}]")


if __name__ == "__main__":
    main()
