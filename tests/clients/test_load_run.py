"""The load run in small: a quarter of a minute, all kinds of clients, no goal for latencies, since tests share the machine."""

import json
import os
import subprocess
import sys
from pathlib import Path

from server import binary

BENCH = Path(__file__).parents[2] / "bench"
SMALL = ["--minutes", "0.25", "--idle", "90", "--busy", "10", "--query-rate", "20", "--writers", "20", "--row-rate", "5000", "--dashboards", "1", "--metadata-p99-max-ms", "0"]


def run(tmp_path, *more):
    command = [sys.executable, "-m", "tidalite_bench", "load", *SMALL, "--scratch", str(tmp_path / "data"), "--out", str(tmp_path), *more]
    return subprocess.run(command, cwd=BENCH, env={**os.environ, "TIDALITE_BIN": str(binary())}, capture_output=True, text=True, timeout=170, check=False)


def test_a_quarter_of_a_minute_has_no_error_and_keeps_all_rows(tmp_path):
    done = run(tmp_path)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert "0.25 minutes: passed" in done.stdout and "| errors | 0 |" in done.stdout
    counts = dict(line.strip("| ").split(" | ") for line in done.stdout.splitlines() if line.count("|") == 3)
    assert counts["idle connections used at the end"] == "90"
    assert 0 < int(counts["rows acknowledged and found, also after a restart"]) == int(counts["rows HTTP"]) + int(counts["rows TCP"])
    samples = [json.loads(line) for line in next(tmp_path.glob("*.jsonl")).read_text().splitlines()]
    assert len(samples) >= 3 and max(s["connections"] for s in samples) >= 90 + 10 + 20 and all(s["rss_mib"] > 0 for s in samples)


def test_a_limit_of_the_server_that_is_reached_fails_the_run(tmp_path):
    """Refused connections are errors of clients and of the server's counters, and the run ends by itself."""
    done = run(tmp_path, "--minutes", "0.05", "--set", "TIDALITE_PG_CONNECTIONS_MAX=20")
    assert done.returncode == 1 and "0.05 minutes: failed" in done.stdout
    assert "idle, at its opening" in done.stdout or "idle PG: connection lost" in done.stdout, done.stdout[-5000:]
    assert 'metric tidalite_connections_refused_total{protocol="pg"}' in done.stdout, done.stdout[-5000:]
