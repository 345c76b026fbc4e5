"""Where the peers come from: Python packages into an environment of our own, the rest by the environment's variables.

Everything lies in the cache folder ($TIDALITE_BENCH_CACHE, else ~/.cache/tidalite/bench); a second run installs nothing.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

CACHE = Path(os.environ.get("TIDALITE_BENCH_CACHE", Path.home() / ".cache/tidalite/bench"))
PACKAGES = ["duckdb==2.0.0", "chdb==4.4.0", "datafusion==55.0.0", "numpy==2.4.6", "pandas==3.1.1", "polars==2.1.0", "pyarrow==26.0.1", "questdb==6.0.0", "tableauhyperapi==0.0.26963"]
QUESTDB = "9.3.4"


def environment():
    """The interpreter that has the packages; made at first use."""
    python = CACHE / "venv/bin/python"
    ready = CACHE / "venv" / f"ready-{abs(hash_of(PACKAGES))}"
    if not ready.exists():
        print("installing the peers' packages into", CACHE / "venv", file=sys.stderr)
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", CACHE / "venv"], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES], check=True)
        ready.touch()
    return python


def hash_of(words):
    """The same in every run, unlike hash()."""
    value = 0
    for byte in " ".join(words).encode():
        value = (value * 257 + byte) % (1 << 61)
    return value


def questdb_jar():
    """Given by QDB_JAR, else fetched from Maven Central by Maven itself, if that is installed."""
    given = os.environ.get("QDB_JAR") or (os.environ.get("PEERS") and f"{os.environ['PEERS']}/qdb/lib/questdb-{QUESTDB}.jar")
    if given and Path(given).exists():
        return Path(given)
    jar = CACHE / f"questdb-{QUESTDB}.jar"
    if not jar.exists():
        if not shutil.which("mvn"):
            raise RuntimeError(f"no QuestDB: set QDB_JAR to questdb-{QUESTDB}.jar (org.questdb:questdb), or install Maven")
        subprocess.run(["mvn", "-q", "dependency:copy", f"-Dartifact=org.questdb:questdb:{QUESTDB}", f"-DoutputDirectory={CACHE}"], check=True)
    return jar


def influxd():
    """That of the path, else Debian's package laid out in the cache folder."""
    found = shutil.which("influxd") or str(CACHE / "influxdb/usr/bin/influxd")
    if not Path(found).exists():
        if not shutil.which("apt-get") or not shutil.which("dpkg"):
            raise RuntimeError("no InfluxDB: install influxd, or run where Debian's packages are to be had")
        folder = CACHE / "influxdb"
        folder.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(["apt-get", "download", "influxdb"], cwd=folder, capture_output=True, text=True)
        packages = sorted(folder.glob("influxdb_*.deb"))
        if done.returncode or not packages:
            raise RuntimeError(f"no InfluxDB: apt-get download influxdb: {done.stderr.strip()[:200]}")
        subprocess.run(["dpkg", "-x", packages[-1], folder], check=True)
    return found


def binary(name):
    """Of our own: TIDALITE_BIN or TIDALITE_GENERATE, else the release build."""
    target = Path(os.environ.get("CARGO_TARGET_DIR") or Path.home() / ".cache/tidalite/target")
    variable = {"tidalite": "TIDALITE_BIN", "tidalite-generate": "TIDALITE_GENERATE"}[name]
    found = Path(os.environ.get(variable) or target / "release" / name)
    if not found.exists():
        raise RuntimeError(f"no {found}: cargo build --release --workspace, or set {variable}")
    return found


def python_package():
    """Makes our Python package importable: TIDALITE_PYTHON, else what `make python` wrote."""
    target = Path(os.environ.get("CARGO_TARGET_DIR") or Path.home() / ".cache/tidalite/target")
    folder = Path(os.environ.get("TIDALITE_PYTHON") or target / "python")
    if not (folder / "tidalite").exists():
        raise RuntimeError(f"no package in {folder}: make python, or set TIDALITE_PYTHON")
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    return folder
