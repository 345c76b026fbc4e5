"""What the numbers were made on: machine, kernel, memory bandwidth, disk, versions, command."""

import os
import platform
import re
import subprocess
import sys
import time
from datetime import datetime, timezone
from pathlib import Path


def text(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def memory_gb_s(threads):
    """Read by summing doubles, the best of three: numpy lets go of the lock while it adds."""
    from concurrent.futures import ThreadPoolExecutor

    import numpy as np

    parts = [np.ones(32 << 20) for _ in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        best = 0.0
        for _ in range(3):
            start = time.perf_counter()
            list(pool.map(np.sum, parts))
            best = max(best, sum(p.nbytes for p in parts) / (time.perf_counter() - start) / 1e9)
    return best


def sync_ms(folder):
    """A 4 KiB append and fdatasync, the median of 100."""
    path = Path(folder) / "sync-speed"
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    try:
        times = []
        for _ in range(100):
            start = time.perf_counter()
            os.write(fd, bytes(4096))
            os.fdatasync(fd)
            times.append((time.perf_counter() - start) * 1e3)
        return sorted(times)[50]
    finally:
        os.close(fd)
        path.unlink()


TOUCH = """
import mmap, sys
held = mmap.mmap(-1, int(sys.argv[1]) << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
held.madvise(mmap.MADV_HUGEPAGE)
for at in range(0, len(held), 4096):
    held[at] = 1
"""


def touch_memory(gib):
    """Makes a virtual machine's host back so much free memory, for every system alike.

    Some hosts take free memory back within seconds (free page reporting) and give it again at 0.4 GB/s. What a system
    does with memory then takes as long as the host does; the memory of a machine of one's own is there.
    """
    if gib:
        subprocess.run([sys.executable, "-c", TOUCH, str(gib)], check=True)


def describe(folder):
    info = Path("/proc/cpuinfo").read_text()
    model = re.search(r"model name\s*: (.*)", info)
    memory = re.search(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text())
    cores = os.cpu_count()
    here = Path(__file__).parent
    return {
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "cpu": model.group(1) if model else platform.processor(),
        "cores": cores,
        "avx512": "avx512f" in info,
        "memory GiB": round(int(memory.group(1)) / 2**20, 1) if memory else None,
        "memory GB/s, 1 thread": round(memory_gb_s(1), 1),
        f"memory GB/s, {cores} threads": round(memory_gb_s(cores), 1),
        "kernel": platform.release(),
        "file system": text("stat", "-f", "-c", "%T", str(folder)),
        "fdatasync ms": round(sync_ms(folder), 3),
        "load when it began": os.getloadavg()[0],
        "commit": text("git", "-C", str(here), "describe", "--always", "--dirty"),
        "command": " ".join(["tidalite-bench", *sys.argv[1:]]),
    }


def busy_seconds():
    """CPU seconds of all processes, for telling how much of a measurement others had."""
    fields = list(map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]))
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def own_seconds():
    return sum(os.times()[:4])


def forget(folder):
    """Takes what lies below the folder out of the page cache; says how. TIDALITE_BENCH_EVICT=1 leaves all other files in it,
    for machines on which others work."""
    if not os.environ.get("TIDALITE_BENCH_EVICT"):
        os.sync()
        try:
            Path("/proc/sys/vm/drop_caches").write_text("3")
            return "page cache dropped"
        except OSError:
            pass
    for root, _, files in os.walk(folder):
        for name in files:
            try:
                fd = os.open(Path(root) / name, os.O_RDONLY)
            except OSError:
                continue
            try:
                # What is not written yet would stay.
                os.fsync(fd)
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(fd)
    return "files evicted from the page cache"
