"""Fixtures: a database in this process, a server, and both behind one interface."""

import itertools
import re
import shutil

import pytest
import tidalite
from server import Server, binary

_numbers = itertools.count(1)


def pytest_report_header():
    return f"package: {tidalite.__file__}, server: {binary()}"


@pytest.fixture(scope="session")
def local(tmp_path_factory):
    with tidalite.open(tmp_path_factory.mktemp("local")) as db:
        yield db


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    running = Server(tmp_path_factory.mktemp("server")).start()
    yield running
    running.stop()
    shutil.rmtree(running.folder, ignore_errors=True)


@pytest.fixture(scope="session")
def remote(server):
    with tidalite.connect(f"tidalite://127.0.0.1:{server.http_port}") as db:
        yield db


@pytest.fixture(params=["local", "remote"])
def db(request):
    """Each test with it runs over both entrances."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def table(request):
    """A name no other test uses."""
    name = re.sub(r"\W+", "_", request.node.name.removeprefix("test_"))[:60].strip("_").lower()
    return f"{name}_{next(_numbers)}"
