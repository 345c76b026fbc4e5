"""A private PostgreSQL server for expected answers: on a free port, with a temporary data folder.

It needs PostgreSQL's programs (`.ci/run` installs them); as root they run as the user `postgres`.
"""

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

import psycopg
from server import free_ports


def programs():
    """Returns the folder of `initdb` and `pg_ctl` of the newest installed version, or None."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3].split(".")[0]))
    if found:
        return found[-1].parent
    found = shutil.which("initdb")
    return Path(found).parent if found else None


class Postgres:
    USER, DATABASE = "postgres", "tidalite"

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="referee"))
        (self.port,) = free_ports(1)
        if os.getuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(self.folder, user.pw_uid, user.pw_gid)

    def run(self, program, *arguments):
        command = [str(programs() / program), *arguments]
        if os.getuid() == 0:
            command = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups", *command]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=120, cwd=self.folder)

    def start(self):
        data = str(self.folder / "data")
        self.run("initdb", "-D", data, "-U", self.USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--lc-ctype=C.UTF-8", "--no-sync")
        settings = {
            "port": self.port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": self.folder,
            "fsync": "off",
            "full_page_writes": "off",
            "jit": "off",
            "statement_timeout": "20s",
            "timezone": "UTC",
        }
        options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        self.run("pg_ctl", "-D", data, "-l", str(self.folder / "log"), "-o", options, "-w", "start")
        self.run("createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", self.USER, self.DATABASE)
        return self

    def connect(self):
        return psycopg.connect(host="127.0.0.1", port=self.port, user=self.USER, dbname=self.DATABASE, autocommit=True)

    def stop(self):
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-m", "immediate", "stop")
        shutil.rmtree(self.folder, ignore_errors=True)
