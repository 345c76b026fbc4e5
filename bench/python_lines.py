"""Frames to line protocol in memory: our sender beside the official client, the frame of bench_pandas.

    python bench/python_lines.py [ROWS] [RUNS]

Both make the same text of the same frame (checked: as many bytes and lines, but for how exponents are written), A B A B,
with one thread and with two: the official client as its benchmark does it, chunks of 10,000 rows dealt to two threads, ours by
`threads=2`. Prints medians and all runs.
"""

import statistics
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pyarrow as pa

warnings.simplefilter("ignore")
import questdb.ingress  # noqa: E402
from tidalite.sender import Buffer  # noqa: E402

REGIONS = {"us-east-1": "abce", "us-west-1": "ab", "us-west-2": "abc", "eu-west-1": "abc", "eu-central-1": "ab", "ap-southeast-1": "ab", "ap-southeast-2": "ab", "ap-northeast-1": "ac", "sa-east-1": "abc"}
USAGES = ["user", "system", "idle", "nice", "iowait", "irq", "softirq", "steal", "guest", "guest_nice"]
CHUNK_ROWS = 10_000


def frame(rows, seed=1, scale=4000):
    rng = np.random.default_rng(seed)
    pick = lambda values: pd.Series(pd.array(np.asarray(values)[rng.integers(0, len(values), rows)], dtype="string[pyarrow]"))  # noqa: E731
    regions = rng.integers(0, len(REGIONS), rows)
    names, zones = list(REGIONS), list(REGIONS.values())
    made = {
        "hostname": pd.array([f"host_{i % scale}" for i in range(rows)], dtype="string[pyarrow]"),
        "region": pd.array(np.asarray(names)[regions], dtype="string[pyarrow]"),
        "datacenter": pd.array([names[r] + zones[r][z % len(zones[r])] for r, z in zip(regions, rng.integers(0, 12, rows))], dtype="string[pyarrow]"),
        "rack": pick([str(i) for i in range(100)]), "os": pick(["Ubuntu16.10", "Ubuntu16.04LTS", "Ubuntu15.10"]), "arch": pick(["x64", "x86"]),
        "team": pick(["SF", "NYC", "LON", "CHI"]), "service": pick([str(i) for i in range(20)]), "service_version": pick(["0", "1"]),
        "service_environment": pick(["production", "staging", "test"]),
    }
    for usage in USAGES:
        steps = rng.standard_normal(rows + 1)
        walk, at = np.empty(rows), steps[0]
        for i in range(rows):
            at = min(max(at + steps[i + 1], 0.0), 100.0)
            walk[i] = at
        made[f"usage_{usage}"] = walk
    made["timestamp"] = pd.to_datetime(1_451_606_400_000_000_000 + 10_000_000_000 * np.arange(rows))
    return pd.DataFrame(made)


def official(df, version, threads):
    if threads == 1:
        buffer = questdb.ingress.Buffer(protocol_version=version)
        started = time.perf_counter()
        buffer.dataframe(df, table_name="cpu", symbols=True, at="timestamp")
        return time.perf_counter() - started, len(buffer)
    chunks = [df.iloc[at:at + CHUNK_ROWS] for at in range(0, len(df), CHUNK_ROWS)]

    def work(mine):
        buffer, size = questdb.ingress.Buffer(protocol_version=version), 0
        for chunk in mine:
            buffer.dataframe(chunk, table_name="cpu", symbols=True, at="timestamp")
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
    buffer.dataframe(df, table_name="cpu", symbols=True, at="timestamp", threads=threads)
    return time.perf_counter() - started, len(buffer)


def main():
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    df = frame(rows)
    print(f"{rows} rows, questdb {questdb.__version__}, pandas {pd.__version__}, pyarrow {pa.__version__}")
    for version in (1, 2):
        for threads in (1, 2):
            found = {official: [], ours: []}
            for _ in range(runs):
                for client, times in found.items():
                    seconds, size = client(df, version, threads)
                    times.append(size / 2**20 / seconds)
            one, two = (statistics.median(found[client]) for client in (official, ours))
            shown = lambda times: " ".join(f"{t:.0f}" for t in times)  # noqa: E731
            print(f"version {version}, {threads} threads, {size / 2**20:.0f} MiB: questdb {one:.0f} MiB/s, tidalite {two:.0f} MiB/s, {two / one:.2f}x   [{shown(found[official])} | {shown(found[ours])}]")


if __name__ == "__main__":
    main()
