"""The PostgreSQL protocol with the JDBC driver. Needs Java (17 or later, to run a program from its source) and the driver:
TIDALITE_JDBC_JAR names it, else it is looked for where Maven keeps what it fetched, else Maven fetches it."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

DRIVER = "42.7.4"
JAR = Path.home() / f".m2/repository/org/postgresql/postgresql/{DRIVER}/postgresql-{DRIVER}.jar"


def driver():
    if os.environ.get("TIDALITE_JDBC_JAR"):
        return Path(os.environ["TIDALITE_JDBC_JAR"])
    if not JAR.exists() and shutil.which("mvn"):
        get = ["mvn", "-q", "-B", "dependency:get", f"-Dartifact=org.postgresql:postgresql:{DRIVER}", "-Dtransitive=false"]
        subprocess.run(get, check=False, timeout=240, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return JAR if JAR.exists() else None


def java_version():
    if not shutil.which("java"):
        return 0
    said = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', said)
    return int(found.group(1)) if found else 0


def output_of(program, *arguments):
    """The lines that a program of the folder `jdbc` prints."""
    if java_version() < 17:
        pytest.skip("no Java 17 on this machine: the JDBC driver is not tried")
    jar = driver()
    if jar is None:
        pytest.skip("no JDBC driver: neither TIDALITE_JDBC_JAR nor Maven has it")
    options = ["-Duser.timezone=UTC", "-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8", "-cp", str(jar)]
    command = ["java", *options, str(Path(__file__).parent / "jdbc" / program), *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=180, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout.splitlines()


def test_metadata_equals_that_of_postgresql(server, referee, table):
    found = output_of("Metadata.java", server.pg_port, table)
    assert found == output_of("Metadata.java", referee.port, table) and len(found) > 60


def test_jdbc_does_what_java_programs_do(server):
    lines = output_of("Check.java", server.pg_port)
    row = ("2024-02-29T12:34:56.789012|true|-2147483648|9223372036854775807|0.1|-12.345|1969-12-31|sym'; --|täxt|[0, -1]"
           "|11111111-2222-3333-4444-555555555555")
    nulls = "2024-03-01T00:00|" + "|".join(["null"] * 11)
    expected = []
    for mode in ["extended", "-1", "simple"]:
        array = "null" if mode == "simple" else "[1.0, 2.5]"
        expected += [f"{mode} inserted 1"] * 2 + [f"{mode}|{row}|{array}", f"{mode}|{nulls}"] * 2
    expected += ["batch 1000", "batch k0 334 166833", "batch k1 333 166167", "batch k2 333 166500"]
    expected += ["updated 10", "deleted 10", "pages 990 489555", "product PostgreSQL", "table public.many",
                 "column ts timestamp 93", "column k text 12", "column n int8 -5", "described ts int8 text int8",
                 "error 42703", "error 42P01", "error 42601", "error 22012", "goes on 1", "cancelled 57014"]
    assert lines == expected
