"""Clients of Node.js: node-postgres, postgres.js, knex. `node/` has their tests, which run on Tidalite and on PostgreSQL."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "node"


@pytest.fixture(scope="session")
def packages():
    """The packages of node/package-lock.json, installed once."""
    for program in ["node", "npm"]:
        if not shutil.which(program):
            pytest.skip(f"no {program} on this machine: clients of Node.js are not tested")
    installed = FOLDER / "node_modules/.package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < (FOLDER / "package-lock.json").stat().st_mtime:
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline"], cwd=FOLDER, check=True, capture_output=True, timeout=600)


@pytest.mark.timeout(700)
@pytest.mark.parametrize("client", ["pg", "postgres", "knex"])
def test_client(side, packages, client):
    environment = {**os.environ, "TEST_PORT": str(side.port), "TEST_SIDE": side.name, "TZ": "UTC"}
    command = ["node", "--test", "--test-reporter=tap", "--test-timeout=60000", f"{client}.test.mjs"]
    ran = subprocess.run(command, cwd=FOLDER, capture_output=True, encoding="utf-8", timeout=170, check=False, env=environment)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    counts = dict(re.findall(r"^# (\w+) (\d+)$", ran.stdout, re.M))
    assert int(counts["pass"]) == len(re.findall(r"^(?:# Subtest|    # Subtest)", ran.stdout, re.M)) > 0 and counts["skipped"] == counts["todo"] == "0", ran.stdout
