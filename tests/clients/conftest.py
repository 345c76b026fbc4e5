"""Fixtures: one server for all tests that leave it usable, fresh ones for those that end it."""

import itertools
import re
import shutil

import pytest
from kinds import Side
from postgres import Postgres, programs
from server import Server, binary

_numbers = itertools.count(1)


def pytest_report_header():
    return f"server: {binary()}"


def pytest_sessionstart():
    if not binary().exists():
        pytest.exit(f"no server at {binary()}: build it (cargo build --release --workspace) or set TIDALITE_BIN", returncode=2)


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    running = Server(tmp_path_factory.mktemp("server")).start()
    yield running
    if running.process and running.process.poll() is None:
        running.stop()
    shutil.rmtree(running.folder, ignore_errors=True)


@pytest.fixture(autouse=True)
def still_up(request):
    """No test may take the shared server down."""
    yield
    if "server" in request.fixturenames:
        running = request.getfixturevalue("server")
        assert running.process.poll() is None, f"the server is gone:\n{running.log_tail()}"
        assert running.request("GET", "/ping")[0] == 204


@pytest.fixture
def servers(tmp_path):
    """Makes servers of this test's own."""
    made = []

    def make(**options):
        made.append(Server(tmp_path / f"server{len(made)}", **options))
        return made[-1]

    yield make
    for one in made:
        if one.process and one.process.poll() is None:
            one.kill()
        shutil.rmtree(one.folder, ignore_errors=True)


@pytest.fixture
def table(request):
    """A name no other test uses."""
    return re.sub(r"\W+", "_", request.node.name.removeprefix("test_"))[:50].strip("_").lower() + f"_{next(_numbers)}"


@pytest.fixture(scope="session")
def referee():
    """A PostgreSQL server, which confirms expected values."""
    if programs() is None:
        pytest.skip("no PostgreSQL on this machine: nothing confirms the expected values")
    running = Postgres().start()
    yield running
    running.stop()


@pytest.fixture(params=["tidalite", "postgres"])
def side(request):
    """Runs the test twice: on Tidalite and on PostgreSQL."""
    if request.param == "tidalite":
        return Side("tidalite", request.getfixturevalue("server").pg_port)
    return Side("postgres", request.getfixturevalue("referee").port)
