"""The Debian package on this machine: installation, the server as its user, an upgrade, removal, purge.

The package is installed for real and purged at the end. The test does not run on a machine that has a Tidalite of
its own.
"""

import pwd
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import PACKAGING, run, unit_values
from server import Server

SETTINGS = Path("/etc/tidalite/tidalite.toml")
DATA = Path("/var/lib/tidalite")
UNIT = Path("/lib/systemd/system/tidalite.service")
BUILD = PACKAGING / "debian/build.sh"
OLD, NEW = "0.0.1~test1", "0.0.1~test2"
APT = ("apt-get", "-y", "-q", "-o", "DPkg::Lock::Timeout=120", "-o", "APT::Sandbox::User=root", "-o", "DPkg::Options::=--force-unsafe-io")


def installed_version():
    ended = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "tidalite"], capture_output=True, text=True, check=False)
    return ended.stdout if ended.returncode == 0 else ""


def apt(*words):
    return run(*APT, *words, DEBIAN_FRONTEND="noninteractive")


def user_exists():
    try:
        return bool(pwd.getpwnam("tidalite"))
    except KeyError:
        return False


def purge(deletes_user):
    # A record without a version is that of a package that is not installed.
    if installed_version():
        apt("purge", "tidalite")
    if deletes_user and user_exists():
        run("deluser", "--quiet", "--system", "tidalite")


@pytest.fixture
def clean_machine(needs_root):
    if installed_version().startswith("0.0.1~test"):
        purge(deletes_user=True)
    own = [str(path) for path in (SETTINGS, DATA, Path("/usr/bin/tidalite")) if path.exists()]
    assert not own, f"this machine has a Tidalite of its own: {own}"
    had_user = user_exists()
    yield
    purge(deletes_user=not had_user)


class Service(Server):
    """The server as its unit starts it: command, user, working directory; without systemd."""

    def spawn(self):
        unit = unit_values(UNIT)
        user = pwd.getpwnam(unit["User"])
        self.folder.mkdir(parents=True, exist_ok=True)
        drop = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", "--no-new-privs", "--bounding-set=-all"]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [*drop, *unit["ExecStart"].split()], cwd=unit["WorkingDirectory"], env={}, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        return self

    def write_settings(self):
        lines = [f'{name}.listen = "127.0.0.1:{port}"' for name, port in (("http", self.http_port), ("pg", self.pg_port), ("ilp", self.ilp_port), ("health", self.health_port))]
        SETTINGS.write_text(SETTINGS.read_text() + "\n".join(["", *lines, ""]))


@pytest.fixture(scope="module")
def packages(stripped, tmp_path_factory):
    folder = tmp_path_factory.mktemp("packages")
    run(BUILD, folder, BINARY=stripped, VERSION=OLD, DEB_COMPRESSION="none")
    run(BUILD, folder, BINARY=stripped, VERSION=NEW, DEB_COMPRESSION="none", DEPENDS="libc6")
    yield {version: next(folder.glob(f"tidalite_{version}_*.deb")) for version in (OLD, NEW)}
    shutil.rmtree(folder)


@pytest.mark.timeout(600)
def test_life_of_the_package(clean_machine, packages, tmp_path):
    depends = run("dpkg-deb", "--field", packages[OLD], "Depends")
    assert depends.startswith("libc6 (>= 2.") and "adduser" in depends
    apt("install", "--no-install-recommends", packages[OLD])
    assert installed_version() == OLD
    user = pwd.getpwnam("tidalite")
    assert (user.pw_dir, user.pw_shell) == ("/var/lib/tidalite", "/usr/sbin/nologin")
    assert (DATA.owner(), DATA.group(), DATA.stat().st_mode & 0o777) == ("tidalite", "tidalite", 0o750)
    assert (SETTINGS.owner(), SETTINGS.group(), SETTINGS.stat().st_mode & 0o777) == ("root", "tidalite", 0o640)
    if shutil.which("systemd-analyze"):
        assert run("systemd-analyze", "verify", "--man=no", UNIT) == ""

    service = Service(tmp_path / "service")
    service.write_settings()
    service.start()
    try:
        assert Path(f"/proc/{service.process.pid}").owner() == "tidalite"
        assert service.request("POST", "/write", body=b"t,a=b x=1i 1700000000000000000")[0] == 204

        # The running server keeps its program while the package replaces the file; a restart runs the new one.
        apt("install", "--no-install-recommends", packages[NEW])
        assert installed_version() == NEW
        assert str(service.http_port) in SETTINGS.read_text()
        assert service.exec("SELECT x FROM t")["dataset"] == [[1]]
        service.stop()
        service.start()
        assert service.exec("SELECT a, x FROM t")["dataset"] == [["b", 1]]
        service.stop()
    finally:
        if service.process:
            service.kill()

    apt("remove", "tidalite")
    assert not Path("/usr/bin/tidalite").exists() and not UNIT.exists()
    assert SETTINGS.exists() and any(DATA.iterdir())

    apt("purge", "tidalite")
    assert not SETTINGS.parent.exists() and not DATA.exists() and installed_version() == ""


def test_same_inputs_give_the_same_package(stub, tmp_path):
    if not shutil.which("dpkg-deb") or not shutil.which("dpkg-shlibdeps"):
        pytest.fail("dpkg-deb and dpkg-shlibdeps are missing: apt-get install dpkg-dev")
    made = []
    for name in ("a", "b"):
        run(BUILD, tmp_path / name, BINARY=stub, VERSION="9.8.7", SOURCE_DATE_EPOCH="1700000000")
        made.append(next((tmp_path / name).iterdir()))
    assert made[0].name == made[1].name == f"tidalite_9.8.7_{run('dpkg', '--print-architecture').strip()}.deb"
    assert made[0].read_bytes() == made[1].read_bytes()
    owners = {line.split()[1] for line in run("dpkg-deb", "--contents", made[0]).splitlines()}
    assert owners == {"root/root"}
    assert run("dpkg-deb", "--field", made[0], "Version").strip() == "9.8.7"
    assert run("dpkg-deb", "--info", made[0], "conffiles") == "/etc/tidalite/tidalite.toml\n"
