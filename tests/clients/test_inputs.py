"""Hostile input: claimed sizes take no memory, and SQL has confined access to files and hosts. Memory is the peak resident size."""

import functools
import gzip
import http.server
import io
import json
import os
import struct
import subprocess
import threading
from pathlib import Path

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from server import SqlError, binary
from test_files import Ranged

CONFINED = {"TIDALITE_FILES_ROOTS": "", "TIDALITE_FILES_HOSTS": "", "TIDALITE_FILES_PRIVATE_ADDRESSES": "false"}


def peak_mib(server):
    status = Path(f"/proc/{server.pid()}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def reset_peak(server):
    Path(f"/proc/{server.pid()}/clear_refs").write_text("5")
    return peak_mib(server)


def stream(batch, codec=None):
    out = io.BytesIO()
    with pa.ipc.new_stream(out, batch.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
        writer.write_batch(batch)
    return out.getvalue()


def claiming(codec, claim):
    """Returns a stream whose compressed column claims a decompressed length of `claim` bytes."""
    bytes_ = bytearray(stream(pa.record_batch({"n": pa.array([0] * 100, pa.int64())}), codec))
    at = bytes(bytes_).index({"lz4": b"\x04\x22\x4d\x18", "zstd": b"\x28\xb5\x2f\xfd"}[codec]) - 8
    bytes_[at:at + 8] = struct.pack("<q", claim)
    return bytes(bytes_)


def as_frame(server, bytes_, query="SELECT count(*) FROM f"):
    """The answer to a query that brings the stream as a table."""
    form = f"query={query}&frames={json.dumps([['f', None, len(bytes_)]])}".replace(" ", "+").encode()
    body = struct.pack("<I", len(form)) + form + bytes_
    return server.request("POST", "/exec", body, {"Content-Type": "application/vnd.tidalite.frames"})


def write(server, table, bytes_):
    return server.request("POST", f"/write/arrow?table={table}", bytes_)


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_a_claimed_length_takes_no_memory(server, table, codec):
    before = reset_peak(server)
    for claim in [1 << 31, 1 << 40, 1 << 62, -5]:
        status, _, answer = write(server, table, claiming(codec, claim))
        assert status in (400, 413), (claim, answer)
        assert as_frame(server, claiming(codec, claim))[0] == 400, claim
    assert peak_mib(server) < before + 64
    assert write(server, table, stream(pa.record_batch({"n": pa.array([1, 2])}), codec))[0] == 200
    assert as_frame(server, stream(pa.record_batch({"n": pa.array([1, 2])}), codec))[0] == 200


def test_a_bomb_is_refused_before_it_is_decompressed(server, table):
    """The stream has zstd columns of 512 MiB, with true lengths."""
    zeros = pa.array([0] * (1 << 20), pa.int64())
    bomb = stream(pa.record_batch({f"c{i}": zeros for i in range(64)}), "zstd")
    assert len(bomb) < 200 << 10
    before = reset_peak(server)
    status, _, answer = write(server, table, bomb)
    assert status == 413 and b"larger than" in answer, answer
    assert as_frame(server, bomb)[0] == 400
    assert peak_mib(server) < before + 300, "64 MiB of them are decompressed at most, twice"


def test_counts_of_rows_take_no_memory(server, table):
    nulls = stream(pa.record_batch({"x": pa.nulls(1000)}))
    before = reset_peak(server)
    for claim in [1 << 31, 1 << 60, -1]:
        bytes_ = nulls.replace(struct.pack("<q", 1000), struct.pack("<q", claim))
        assert as_frame(server, bytes_)[0] == 400
        assert write(server, table, bytes_)[0] == 400
    # The most that an array may have: what its rows would take is more than all bodies may.
    status, _, answer = as_frame(server, nulls.replace(struct.pack("<q", 1000), struct.pack("<q", (1 << 31) - 1)))
    assert status == 503, answer
    assert peak_mib(server) < before + 64
    assert server.rows("SELECT 1") == [[1]]


def test_many_at_once_do_not_end_the_server(server, table):
    reset_peak(server)
    bombs = [claiming("zstd", 200 << 20), claiming("lz4", 200 << 20), claiming("zstd", 1 << 62)] * 4
    answers = []
    threads = [threading.Thread(target=lambda b=b: answers.append(write(server, table, b)[0])) for b in bombs]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert len(answers) == len(bombs) and set(answers) <= {400, 413, 503}
    assert peak_mib(server) < 1500


def test_files_that_grow_without_end_are_refused(servers):
    server = servers(env={"TIDALITE_HTTP_BODY_BYTES_MAX": "1MiB"}).start()
    text = "a,b\n" + "1,2\n" * (24 << 20)
    before = reset_peak(server)
    zstd = pa.compress(text.encode(), codec="zstd", asbytes=True)
    status, _, answer = server.request("POST", "/imp?name=t&fmt=json", zstd)
    assert status == 400 and b"times as many bytes of text" in answer, answer
    assert peak_mib(server) < before + 700
    assert server.request("POST", "/imp?name=u", b"x" * (2 << 20))[0] == 413
    body = gzip.compress(b"t n=1i\n" * 1_000_000)
    assert len(body) < 1 << 20
    assert server.request("POST", "/write", body, {"Content-Encoding": "gzip"})[0] == 413


def test_corrupt_parquet_is_an_error_of_its_file(server, tmp_path):
    good = tmp_path / "good.parquet"
    pq.write_table(pa.table({"n": list(range(10_000)), "t": [f"text {i % 50}" for i in range(10_000)]}), good)
    data = good.read_bytes()
    before = reset_peak(server)
    for at in range(4, len(data), max(1, len(data) // 60)):
        for value in (0x00, 0x7f, 0xff):
            bad = tmp_path / "bad.parquet"
            bad.write_bytes(data[:at] + bytes([value] * 4) + data[at + 4:])
            status, _, answer = server.request("GET", f"/exec?query=SELECT+sum(n),max(t)+FROM+read_parquet('{bad}')")
            assert status in (200, 400, 503), (at, value, answer)
    assert peak_mib(server) < before + 512


def test_files_are_confined_to_roots(servers, tmp_path):
    root, other = tmp_path / "root", tmp_path / "other"
    for folder in (root, other, root / "sub"):
        folder.mkdir()
    for path in (root / "a.csv", root / "sub" / "b.csv", other / "secret.csv"):
        path.write_text("x\n1\n")
    (root / "out").symlink_to(other)
    (root / "link.csv").symlink_to(other / "secret.csv")
    server = servers(env={**CONFINED, "TIDALITE_FILES_ROOTS": str(root), "TIDALITE_QUERY_WRITES_FILES": "true"}).start()
    assert server.rows(f"SELECT x FROM read_csv('{root}/a.csv')") == [[1]]
    assert server.rows(f"SELECT count() FROM read_csv('{root}/sub/../sub/*.csv')") == [[1]]
    assert server.rows(f"SELECT count() FROM read_csv('{root}/sub/')") == [[1]]
    server.exec("CREATE TABLE t (x LONG)")
    server.exec(f"COPY t FROM '{root}/a.csv' (HEADER)")
    server.exec(f"COPY t TO '{root}/sub/new.csv'")
    assert (root / "sub/new.csv").exists()
    for bad in ["/etc/passwd", f"{other}/secret.csv", f"{root}/../other/secret.csv", f"{root}/out/secret.csv", f"{root}/link.csv",
                f"{root}/*.csv", f"{root}/**/*.csv", f"{root}/", "/proc/self/environ", f"{other}/not there", "file:///etc/passwd"]:
        with pytest.raises(SqlError, match="outside of the folders"):
            server.exec(f"SELECT * FROM read_csv('{bad}')")
    for bad in [f"{other}/new.csv", f"{root}/out/new.csv", f"{root}/../new.csv", f"{root}/link.csv"]:
        with pytest.raises(SqlError, match="outside of the folders"):
            server.exec(f"COPY t TO '{bad}'")
        with pytest.raises(SqlError, match="outside of the folders"):
            server.exec(f"COPY t FROM '{bad}'")
    with pytest.raises(SqlError, match="outside of the folders"):
        server.exec(f"BACKUP DATABASE TO '{other}/backup'")
    server.exec(f"BACKUP DATABASE TO '{root}/backup'")
    with psycopg.connect(f"host=127.0.0.1 port={server.pg_port} user=u", autocommit=True) as c, pytest.raises(psycopg.errors.InsufficientPrivilege, match="files.roots"):
        c.execute("SELECT * FROM read_csv('/etc/passwd')")


def test_a_server_reaches_nothing_by_itself(servers, tmp_path):
    (tmp_path / "a.csv").write_text("x\n1\n")
    server = servers(env=CONFINED).start()
    for statement in [f"SELECT * FROM read_csv('{tmp_path}/a.csv')", f"BACKUP DATABASE TO '{tmp_path}/b'", f"COPY t FROM '{tmp_path}/a.csv'"]:
        with pytest.raises(SqlError, match="outside of the folders"):
            server.exec(statement)
    for url in ["http://169.254.169.254/latest", "s3://bucket/x.parquet", "http://localhost:1/a.csv", "https://example.com/a.csv"]:
        with pytest.raises(SqlError, match="not among the hosts"):
            server.exec(f"SELECT * FROM read_csv('{url}')")
    with pytest.raises(SqlError, match="not among the hosts"):
        server.exec("BACKUP DATABASE TO 's3://bucket/x'")
    # The shell on the data folder has no limits.
    server.stop()
    shown = subprocess.run([binary(), "sql", "--data", server.data, f"SELECT x FROM read_csv('{tmp_path}/a.csv')"], capture_output=True, text=True, timeout=60)
    assert shown.returncode == 0 and "1" in shown.stdout, shown


class Redirecting(Ranged):
    def do_GET(self):
        if self.path.startswith("/to/"):
            self.send_response(302)
            self.send_header("Location", f"http://{self.path[4:]}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        super().do_GET()


def test_names_and_redirects_lead_to_no_private_address(servers, tmp_path):
    (tmp_path / "a.csv").write_text("x\n1\n")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Redirecting, directory=tmp_path)) as web:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        port = web.server_address[1]
        url = f"http://localhost:{port}/a.csv"
        allowed = {**CONFINED, "TIDALITE_FILES_HOSTS": f"localhost:{port}"}
        private = servers(env={**allowed, "TIDALITE_FILES_PRIVATE_ADDRESSES": "true"}).start()
        assert private.rows(f"SELECT x FROM read_csv('{url}')") == [[1]]
        for bad in [f"http://127.0.0.1:{port}/a.csv", f"http://localhost:{port + 1}/a.csv"]:
            with pytest.raises(SqlError, match="not among the hosts"):
                private.exec(f"SELECT * FROM read_csv('{bad}')")
        # The redirect leads to another host.
        with pytest.raises(SqlError):
            private.exec(f"SELECT * FROM read_csv('http://localhost:{port}/to/127.0.0.1:{port}/a.csv')")
        public = servers(env=allowed).start()
        with pytest.raises(SqlError):
            public.exec(f"SELECT * FROM read_csv('{url}')")
        web.shutdown()


def test_spills_have_a_place_and_a_limit(servers, tmp_path):
    folder = tmp_path / "spills"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    stale = folder / "tidalite-spill-1-1"
    stale.mkdir()
    (stale / "lock").touch()
    (stale / "spill-0").write_bytes(b"x" * 1000)
    env = {"TIDALITE_SPILL_FOLDER": str(folder), "TIDALITE_SPILL_BYTES_MAX": "8MiB", "TIDALITE_QUERY_MEMORY_BYTES": "96MiB", "TIDALITE_QUERY_FAST_OPERATORS": "false"}
    server = servers(env=env).start()
    assert sorted(os.listdir(folder)) == ["notes.txt"]
    ordered = "SELECT max(r) FROM (SELECT row_number() OVER (ORDER BY m) r FROM (SELECT md5(x::varchar) m FROM long_sequence(3000000)))"
    with psycopg.connect(f"host=127.0.0.1 port={server.pg_port} user=u", autocommit=True) as c:
        with pytest.raises(psycopg.errors.DiskFull, match="spill.bytes_max") as error:
            c.execute(ordered)
        assert str(folder) in str(error.value)
        assert c.execute("SELECT 1").fetchone() == (1,)
    server.stop()
    assert sorted(os.listdir(folder)) == ["notes.txt"]
    # By default the spill files are in the data folder.
    default = servers(env={**env, "TIDALITE_SPILL_FOLDER": ""}).start()
    with pytest.raises(SqlError, match=f"{default.data}/spill"):
        default.exec(ordered)
    # The next start removes the files of a killed server.
    assert len(os.listdir(default.data / "spill")) == 1
    default.kill()
    default.start()
    assert os.listdir(default.data / "spill") == []


def test_an_end_of_the_log_that_is_gone_is_noticed(servers):
    server = servers().start()
    for n in range(50):
        server.request("POST", "/write", f"t n={n}i {n + 1}000000000\n".encode())
    server.stop()
    log = sorted(p for p in (server.data / "wal").iterdir() if not p.name.startswith("spare"))
    assert log and (server.data / "wal-mark").exists()
    content = log[-1].read_bytes()

    def check():
        shown = subprocess.run([binary(), "check", "--data", server.data, "--json"], capture_output=True, text=True, timeout=120)
        return shown.returncode, json.loads(shown.stdout)

    assert check()[0] == 0
    log[-1].unlink()
    code, report = check()
    assert code == 1 and report["problems"][0]["file"] == f"wal/{log[-1].name}", report
    server.spawn()
    assert server.process.wait(60) != 0
    assert f"wal/{log[-1].name}" in server.log_tail() and "missing" in server.log_tail()
    log[-1].write_bytes(bytes(len(content)))
    assert check()[0] == 1
    log[-1].write_bytes(content)
    assert check()[0] == 0
    server.process = None
    server.start()
    assert server.rows("SELECT count() FROM t") == [[50]]


def test_newer_and_foreign_folders_are_named(servers, tmp_path):
    server = servers().start()
    server.exec("CREATE TABLE t (x LONG)")
    server.stop()
    manifest = next(server.data.glob("manifest-*"))
    content = manifest.read_bytes()
    manifest.write_bytes(content[:7] + b"9" + content[8:])
    server.spawn()
    assert server.process.wait(60) != 0
    assert "another release of Tidalite (format 9" in server.log_tail() and "corrupt" not in server.log_tail()
    shown = subprocess.run([binary(), "check", "--data", server.data], capture_output=True, text=True, timeout=60)
    assert shown.returncode == 2 and "format 9" in shown.stderr, shown
    server.process = None
    foreign = servers()
    foreign.data.mkdir(parents=True)
    (foreign.data / "holiday.jpg").write_bytes(b"x")
    foreign.spawn()
    assert foreign.process.wait(60) != 0
    assert "not a data folder of Tidalite" in foreign.log_tail() and "holiday.jpg" in foreign.log_tail()
    assert (foreign.data / "holiday.jpg").exists()
    foreign.process = None


def test_a_backup_verifies_what_it_builds_on(servers, tmp_path):
    server, to = servers().start(), tmp_path / "backups"
    server.request("POST", "/write", b"".join(f"t n={n}i {n + 1}000000000\n".encode() for n in range(2000)))
    server.stop()
    server.start()
    server.exec(f"BACKUP DATABASE TO '{to}'")
    server.exec("ALTER TABLE t SEAL")
    server.exec(f"BACKUP DATABASE TO '{to}'")

    def verify():
        shown = subprocess.run([binary(), "backup", "--verify", to, "--json"], capture_output=True, text=True, timeout=120)
        return shown.returncode, json.loads(shown.stdout)

    code, report = verify()
    assert code == 0 and report["backups"] == 2 and report["files"] > 4, report
    segment = max(to.glob("segments/*/*.seg"), key=lambda p: p.stat().st_mtime)
    content = segment.read_bytes()
    name = str(segment.relative_to(to))
    for damage in (None, content[:100], content[:70] + bytes([content[70] ^ 1]) + content[71:]):
        segment.unlink(missing_ok=True)
        if damage is not None:
            segment.write_bytes(damage)
        with pytest.raises(SqlError, match=name):
            server.exec(f"BACKUP DATABASE TO '{to}'")
        code, report = verify()
        assert code == 1 and name in report["problems"][0], report
    segment.write_bytes(content)
    server.exec(f"BACKUP DATABASE TO '{to}'")
    assert verify()[0] == 0
