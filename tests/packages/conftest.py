"""Fixtures of the package tests: the repository, and commands that must succeed."""

import os
import subprocess
from pathlib import Path

import pytest
from server import binary

ROOT = Path(__file__).parent.parent.parent
PACKAGING = ROOT / "packaging"


def pytest_report_header():
    return f"server: {binary()}"


def pytest_sessionstart():
    if not binary().exists():
        pytest.exit(f"no server at {binary()}: build it (cargo build --release --workspace) or set TIDALITE_BIN", returncode=2)


def run(*command, **variables):
    """Runs a command with additional environment variables and returns its output."""
    environment = {**os.environ, **{name: str(value) for name, value in variables.items()}}
    ended = subprocess.run([str(word) for word in command], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert ended.returncode == 0, f"{command} ended with {ended.returncode}:\n{ended.stdout}"
    return ended.stdout


def unit_values(unit):
    """Keys and last values of a systemd unit."""
    return dict(line.split("=", 1) for line in unit.read_text().splitlines() if "=" in line and not line.startswith("#"))


@pytest.fixture
def needs_root():
    if os.geteuid() != 0:
        pytest.skip("root is missing: the test installs a package or changes the root folder")


@pytest.fixture(scope="session")
def stripped(tmp_path_factory):
    """The server without debug information: less to copy."""
    program = tmp_path_factory.mktemp("stripped") / "tidalite"
    run("strip", "--strip-unneeded", "-o", program, binary())
    yield program
    program.unlink()


@pytest.fixture(scope="session")
def stub(tmp_path_factory):
    """A small program that knows its version only, in place of the server where its size would take time."""
    folder = tmp_path_factory.mktemp("stub")
    version = next(line.split('"')[1] for line in (ROOT / "Cargo.toml").read_text().splitlines() if line.startswith("version = "))
    (folder / "stub.c").write_text(
        "#include <stdio.h>\n#include <string.h>\n"
        f'int main(int n, char **a) {{ if (n != 2 || strcmp(a[1], "--version")) return 2; puts("tidalite {version}"); return 0; }}\n'
    )
    run("cc", "-g", "-o", folder / "tidalite", folder / "stub.c")
    return folder / "tidalite"
