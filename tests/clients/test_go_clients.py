"""Clients written in Go: pgx and lib/pq, whose tests are in `go/` and run on Tidalite and on PostgreSQL, and Telegraf's outputs."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "go"
TIMEOUT = 900


def version(text, pattern):
    return tuple(map(int, re.search(pattern, text, re.M)[1].split(".")))


def build(folder, target, *command):
    """Builds a program once per session; Go keeps what it compiled in its cache."""
    if not shutil.which("go"):
        pytest.skip("no go on this machine: clients written in Go are not tested")
    installed = version(subprocess.run(["go", "env", "GOVERSION"], cwd=folder.parent, capture_output=True, encoding="utf-8", check=True).stdout, r"^go([\d.]+)")
    needed = version((folder / "go.mod").read_text(encoding="utf-8"), r"^go ([\d.]+)$")
    if installed < needed:
        pytest.skip(f"this Go is older than {'.'.join(map(str, needed))}: clients written in Go are not tested")
    ran = subprocess.run(["go", *command, "-o", str(target), "."], cwd=folder, capture_output=True, encoding="utf-8", timeout=TIMEOUT, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return target


@pytest.fixture(scope="session")
def drivers(tmp_path_factory):
    return build(FOLDER, tmp_path_factory.mktemp("go") / "drivers", "test", "-c")


@pytest.fixture(scope="session")
def telegraf(tmp_path_factory):
    return build(FOLDER / "telegraf", tmp_path_factory.mktemp("go") / "telegraf", "build", "-trimpath")


@pytest.mark.timeout(TIMEOUT)
@pytest.mark.parametrize("driver", ["Pgx", "Pq"])
def test_driver(side, drivers, driver):
    ran = subprocess.run([str(drivers), "-test.v", f"-test.run=^Test{driver}", "-test.timeout=120s"], capture_output=True, encoding="utf-8", timeout=150, check=False, env={**os.environ, "TEST_PORT": str(side.port), "TZ": "UTC"})
    assert ran.returncode == 0, ran.stdout + ran.stderr
    declared = re.findall(rf"^func (Test{driver}\w+)", "".join(path.read_text(encoding="utf-8") for path in FOLDER.glob("*_test.go")), re.M)
    assert declared and sorted(re.findall(r"^--- PASS: (\w+)", ran.stdout, re.M)) == sorted(declared)


OUTPUTS = {
    "influxdb": ['skip_database_creation = false', 'database = "metrics"', 'username = "me"', 'password = "secret"'],
    "influxdb_gzip": ['content_encoding = "gzip"', 'database = "metrics"'],
    "influxdb_v2": ['token = "any"', 'organization = "o"', 'bucket = "b"', 'content_encoding = "identity"'],
    "influxdb_v2_gzip_unsigned": ['token = "any"', 'organization = "o"', 'bucket_tag = "host"', "exclude_bucket_tag = false", "influx_uint_support = true", 'content_encoding = "gzip"'],
}


@pytest.mark.timeout(TIMEOUT)
@pytest.mark.parametrize("output", OUTPUTS)
def test_output_of_telegraf(servers, telegraf, output):
    server = servers().start()
    plugin = "influxdb_v2" if "v2" in output else "influxdb"
    settings = "\n".join(["[agent]", "metric_batch_size = 1000", f"[[outputs.{plugin}]]", f'urls = ["http://127.0.0.1:{server.http_port}"]', *OUTPUTS[output]])
    ran = subprocess.run([str(telegraf), settings], capture_output=True, encoding="utf-8", timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    # The metric of another type is refused for good, so that it does not hold up those after it.
    assert [line.split()[0] for line in ran.stdout.splitlines()] == ["0", "0", "0"], ran.stdout + ran.stderr
    assert '"f"' in ran.stderr, "the log names the column"
    answer = server.exec("select * from \"all.kinds\" where host = 'a b,c=d'")
    row = dict(zip([column["name"] for column in answer["columns"]], answer["dataset"][0]))
    # Telegraf drops a backslash at the end of a tag, empty tags, and fields that are NaN or infinite.
    assert row == {
        "host": "a b,c=d", "path": "C:\\dir", "odd": "ü😀", "f": 0.1, "least": 5e-324, "most": -1.7976931348623157e308, "i": -(2**63), "u": 2**63 - 1, "yes": True, "no": False,
        "text": 'it\'s "quoted" \\ and\ntwo lines ü😀', "none": "", "with space": 1, "com,ma=": 1.0, "timestamp": "2024-02-29T12:34:56.789012Z",
    }
    assert server.rows('select f, timestamp from "all.kinds" order by timestamp') == [[0.1, "2024-02-29T12:34:56.789012Z"], [2.0, "2024-02-29T12:34:57.789012Z"], [3.0, "2024-02-29T12:34:59.789012Z"]]
    assert server.rows("select count(*), sum(n), count_distinct(k) from many") == [[1500, 1124250, 7]]
