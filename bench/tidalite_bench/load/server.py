"""The server under load, and samples of it: memory, files, rows, counters of errors, its log."""

import http.client
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from .summary import WAITING

sys.path.insert(0, str(Path(__file__).parents[2]))
import systems  # noqa: E402

# Counters that stay 0 in a run without errors.
ERROR_COUNTERS = re.compile(r'(_errors_total|_failures_total|_refused_total|_failed_total|_dropped_total|_slow_uploads_total)(\{|$)|class="[45]xx"')
STATES = ("tidalite_live", "tidalite_ready", "tidalite_writable")
LEVEL = re.compile(r"^\S+\s+(ERROR|WARN)\s+(.*)")


class LoadServer(systems.Tidalite):
    """A server with all four ports; `settings` are those of the environment, {name: value}.

    The cache is small, so that it is full in the first quarter of a run and later growth of memory is not the cache.
    """

    def __init__(self, scratch, settings):
        super().__init__(scratch, {"TIDALITE_STAGING_BYTES": "256MiB", "TIDALITE_CACHE_BYTES": "256MiB", **settings})
        self.pg_port = None

    def command(self):
        self.pg_port = systems.free_port()
        return [self.binary, "serve", "--data", str(self.data), "--http", f"127.0.0.1:{self.http_port}", "--pg", f"127.0.0.1:{self.pg_port}",
                "--ilp", f"127.0.0.1:{self.ilp_port}", "--health", f"127.0.0.1:{self.health_port}"]

    def log(self):
        return (self.scratch / f"{self.name}.log").read_text(errors="replace")

    def end(self, seconds=120):
        """Stops the server as an operator does and returns its exit status, None if it had to be killed."""
        if self.process is None:
            return 0
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            status = None
        self.process = self._connection = None
        return status


def metric_values(text):
    """{name with labels: value} of the Prometheus text format."""
    pairs = (line.rsplit(" ", 1) for line in text.splitlines() if line and not line.startswith("#"))
    return {name: float(value) for name, value in pairs}


def metric_errors(metrics):
    """{name: value} of error counters that are not 0 and of states that are not 1."""
    wrong = {name: value for name, value in metrics.items() if ERROR_COUNTERS.search(name) and value}
    return wrong | {name: metrics[name] for name in STATES if name in metrics and metrics[name] != 1}


def log_lines(text):
    """(errors, warnings) of the server's log."""
    found = {"ERROR": [], "WARN": []}
    for line in text.splitlines():
        if match := LEVEL.match(line):
            found[match.group(1)].append(match.group(2))
    return found["ERROR"], found["WARN"]


def status_mib(text, name):
    """A line of /proc/PID/status such as VmRSS, in MiB."""
    match = re.search(rf"^{name}:\s+(\d+) kB", text, re.M)
    return int(match.group(1)) / 1024 if match else 0.0


def cpu_busy_seconds():
    """Processor seconds of all processes of the machine."""
    fields = list(map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]))
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def waiting_seconds(process):
    """Seconds that the living threads of a process were runnable and had no processor."""
    total = 0
    for task in (process / "task").iterdir():
        try:
            total += int((task / "schedstat").read_text().split()[1])
        except OSError:  # the thread has ended, or the kernel has no such statistics
            continue
    return total / 1e9


def sample(server, processes):
    """Samples the server and the processes of the generator, {name: process}; memory in MiB, times in seconds."""
    process = Path(f"/proc/{server.process.pid}")
    status = (process / "status").read_text()
    connection = http.client.HTTPConnection("127.0.0.1", server.health_port, timeout=10)
    try:
        connection.request("GET", "/metrics")
        metrics = metric_values(connection.getresponse().read().decode())
    finally:
        connection.close()
    cpu = {"server": server.cpu_seconds(), "machine": cpu_busy_seconds(), WAITING: waiting_seconds(process)}
    for name, child in processes.items():
        if child.is_alive():
            cpu[name] = systems.cpu_seconds_of(child.pid)
    gauge = lambda name: metrics.get(name, 0)  # noqa: E731
    return {
        "rss_mib": status_mib(status, "VmRSS"), "anonymous_mib": status_mib(status, "RssAnon"), "threads": int(re.search(r"^Threads:\s+(\d+)", status, re.M).group(1)),
        "open_files": len(os.listdir(process / "fd")), "cpu_s": cpu,
        "staged_rows": gauge("tidalite_staged_rows"), "staged_mib": gauge("tidalite_staged_bytes") / 2**20, "late_rows": gauge("tidalite_late_rows"),
        "segments": gauge("tidalite_segments"), "rows_committed": gauge("tidalite_rows_committed_total"),
        "connections": sum(value for name, value in metrics.items() if name.startswith("tidalite_connections{")),
        # Builds without these gauges have none.
        "memory": {name: value for name, value in metrics.items() if name.startswith("tidalite_memory")},
        "metric_errors": metric_errors(metrics),
    }
