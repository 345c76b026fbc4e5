"""A private PostgreSQL server that provides expected answers for tests.

In: the server's programs, on the path or where Debian puts them. Out: `Postgres`, with a connection. `programs()` is None where
there is no server to run.
"""

import glob
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import psycopg
from server import free_ports


def programs():
    """Returns the folder that contains `initdb` and `postgres`, or None."""
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else []
    folders += sorted((Path(p) for p in glob.glob("/usr/lib/postgresql/*/bin")), key=lambda p: int(p.parent.name), reverse=True)
    return next((folder for folder in folders if (folder / "initdb").exists() and (folder / "postgres").exists()), None)


class Postgres:
    """A PostgreSQL server. PostgreSQL refuses to run as root: in that case it runs as the user `postgres`."""

    def __init__(self):
        self.programs = programs()
        self.user = "postgres" if os.getuid() == 0 else None
        self.port, = free_ports(1)
        # Other users cannot read the temporary folders of pytest.
        self.folder = Path(tempfile.mkdtemp(prefix="tidalite-postgres-"))
        self.process = None

    def start(self):
        if self.user:
            shutil.chown(self.folder, self.user)
        data = self.folder / "data"
        self.run("initdb", "-D", data, "-U", "referee", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        log = open(self.folder / "log", "ab")
        settings = {"listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": "", "fsync": "off", "full_page_writes": "off", "jit": "off", "statement_timeout": "20s"}
        arguments = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        self.process = subprocess.Popen([self.programs / "postgres", "-D", data, *arguments], stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=self.folder, **self.as_user())
        return self

    def as_user(self):
        if not self.user:
            return {}
        entry = pwd.getpwnam(self.user)
        return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}

    def run(self, program, *arguments):
        subprocess.run([self.programs / program, *map(str, arguments)], check=True, stdout=subprocess.DEVNULL, cwd=self.folder, **self.as_user())

    def connect(self):
        return psycopg.connect(host="127.0.0.1", port=self.port, user="referee", dbname="postgres", autocommit=True)

    def is_ready(self):
        assert self.process.poll() is None, (self.folder / "log").read_text()
        try:
            self.connect().close()
            return True
        except psycopg.OperationalError:
            return False

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)  # ends connections, too
            self.process.wait(30)
        shutil.rmtree(self.folder, ignore_errors=True)
