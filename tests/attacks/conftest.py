"""The fixtures of tests/clients, and a library that injects failures of system calls into a server."""

import importlib.util
import subprocess
from pathlib import Path

import pytest

_clients = importlib.util.spec_from_file_location("clients_conftest", Path(__file__).parent.parent / "clients/conftest.py")
_fixtures = importlib.util.module_from_spec(_clients)
_clients.loader.exec_module(_fixtures)

pytest_report_header = _fixtures.pytest_report_header
pytest_sessionstart = _fixtures.pytest_sessionstart
server, servers, still_up, table = _fixtures.server, _fixtures.servers, _fixtures.still_up, _fixtures.table


class Faults:
    """Injects failures of system calls into servers that run with `env`."""

    def __init__(self, folder, library):
        self.folder = folder
        self.env = {"LD_PRELOAD": str(library), "TEST_FAULTS": str(folder)}

    def begin(self, name):
        (self.folder / name).touch()

    def end(self, name):
        (self.folder / name).unlink()


@pytest.fixture(scope="session")
def fault_library(tmp_path_factory):
    library = tmp_path_factory.mktemp("faults") / "faults.so"
    source = Path(__file__).with_name("faults.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"], check=True)
    return library


@pytest.fixture
def faults(tmp_path, fault_library):
    folder = tmp_path / "faults"
    folder.mkdir()
    return Faults(folder, fault_library)
