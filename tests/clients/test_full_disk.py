"""A disk that is full, or cannot be written: refusals that say why, queries that go on, and no help needed afterwards.

Needs a file system of its own, so the rights to mount one; without them the tests are skipped and say so.
"""

import os
import random
import subprocess

import lines
import pytest
from server import eventually

SIZE = 256 << 20
SMALL = {"TIDALITE_STAGING_BYTES": "8MiB", "TIDALITE_WAL_BYTES": "32MiB"}


@pytest.fixture
def disk(tmp_path):
    """A small file system in memory."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(place)], capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def fill(place, leave):
    """Takes all space but `leave` bytes."""
    size = 0
    with open(place / "ballast", "wb") as f:
        # The server takes and gives back space meanwhile.
        while (free := os.statvfs(place)).f_bavail * free.f_frsize > leave + (1 << 20):
            try:
                os.posix_fallocate(f.fileno(), size, 1 << 20)
                size += 1 << 20
            except OSError:
                return


def parts(first, count, rows=8000):
    for part in range(first, first + count):
        # Text that does not compress: a disk must get full.
        text = random.Random(part).randbytes(rows * 30).hex().encode()
        yield part, lines.blob([b"t,host=h%d part=%di,text=\"%s\" %d" % (k % 50, part, text[k * 60 : k * 60 + 60], lines.START_NS + (part * rows + k) * 10**9) for k in range(rows)])


def write_until_refused(server, first, most):
    taken = []
    for part, body in parts(first, most):
        status, answer = server.write(body)
        if status != 204:
            return taken, status, answer
        taken.append(part)
    raise AssertionError(f"{most} parts fit")


def counts(server):
    return {part: n for part, n in server.rows("select part, count(*) from t group by part")}


def test_a_full_disk_refuses_writes_and_nothing_else(servers, disk):
    server = servers(env=SMALL)
    server.data = disk / "data"
    server.start()
    taken, next_part = [], 0
    for _ in range(3):
        fill(disk, leave=2 << 20)
        more, status, answer = write_until_refused(server, next_part, 400)
        taken += more
        next_part = (taken[-1] if taken else -1) + 2  # the refused one is not sent again
        assert status in (500, 503), (status, answer)
        assert "space" in str(answer), answer
        # Queries see what was acknowledged, and more refusals change nothing.
        assert counts(server) == {part: 8000 for part in taken}
        for _ in range(5):
            assert server.write(next(iter(parts(next_part, 1, 20_000)))[1])[0] != 204
        assert counts(server) == {part: 8000 for part in taken}
        os.remove(disk / "ballast")
        # Nobody has to do anything: there is space, so writes are taken again.
        eventually(lambda: server.write(next(iter(parts(next_part, 1)))[1])[0] == 204, 30, "a write after space returned")
        taken.append(next_part)
        next_part += 1
        assert counts(server) == {part: 8000 for part in taken}
    eventually(lambda: server.metrics()["tidalite_staged_rows"] == 0, 60, "the merge")
    assert counts(server) == {part: 8000 for part in taken}
    server.kill()
    server.start()
    assert counts(server) == {part: 8000 for part in taken}
    assert server.stop() == 0


def test_a_folder_that_cannot_be_written_is_refused_with_its_name(servers, disk):
    server = servers()
    server.data = disk / "data"
    server.start()
    server.write_ok("t part=1i 1\n")
    assert server.stop() == 0
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    server.spawn()
    assert server.process.wait(30) != 0
    text = server.log_tail()
    assert "ead-only" in text and str(server.data) in text, text
    subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
    server.start()
    assert server.rows("select part from t") == [[1]]
