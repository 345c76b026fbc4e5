"""Backups of a server at work, its death, and what comes back.

In: a server that a writer never stops sending to. Out: every backup restores to the rows of its commit, and whatever was
acknowledged before a backup began is in it; damage is named, answered around, and repaired.
"""

import json
import random
import subprocess
import threading

import pytest
from server import Server, SqlError, binary, eventually


def tidalite(*arguments, code=0):
    done = subprocess.run([str(binary()), *map(str, arguments)], capture_output=True, text=True, timeout=120)
    assert done.returncode == code, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


class Writer(threading.Thread):
    """Sends requests of ten rows, over two tables, one after the other; counts those acknowledged."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.acknowledged, self.is_over = server, 0, False

    def lines(self, request):
        rows = range(request * 10, request * 10 + 10)
        # Three days, some rows late.
        at = lambda n: (1704067200 + (n * 7919) % 259200) * 10**9 + n
        return "".join(f"{table},s=s{n % 50} x={n}i,y={n}.5 {at(n)}\n" for n in rows for table in ("a", "b"))

    def run(self):
        while not self.is_over:
            try:
                status, _, _ = self.server.request("POST", "/write", self.lines(self.acknowledged), timeout=10)
            except OSError:
                return
            if status != 204:
                return
            self.acknowledged += 1


def numbers(server, table):
    return [int(row[0]) for row in server.rows(f"select x from {table} order by x")]


def test_backups_under_load_restore_after_kill(tmp_path):
    server = Server(tmp_path / "one").start()
    writer = Writer(server)
    writer.start()
    made = []
    while len(made) < 6:
        before = writer.acknowledged
        if before < 20 * (len(made) + 1):
            continue
        row = server.rows(f"BACKUP DATABASE TO '{tmp_path}/backups'")[0]
        made.append((row[0], before, writer.acknowledged + 1, row[1]))
    server.kill()
    writer.join(30)
    listed = json.loads(tidalite("backups", tmp_path / "backups", "--json"))
    assert [b["name"] for b in listed] == [m[0] for m in made]
    for index, (name, least, most, txn) in enumerate(made):
        data = tmp_path / f"restored{index}" / "data"
        tidalite("restore", "--from", tmp_path / "backups", "--at", name, "--data", data)
        assert "no problems" in tidalite("check", "--data", data)
        again = Server(data.parent).start()
        found = numbers(again, "a")
        assert found == numbers(again, "b") == list(range(len(found))), "a commit in part, or rows lost or doubled"
        assert least * 10 <= len(found) <= most * 10
        if index + 1 < len(made):
            assert len(found) % 10 == 0
        again.stop()
    # Any commit between two backups: one request is one commit.
    first, last = made[0][3], made[-1][3]
    for txn in random.Random(5).sample(range(first, last + 1), 4):
        data = tmp_path / f"at{txn}" / "data"
        tidalite("restore", "--from", tmp_path / "backups", "--at", txn, "--data", data)
        again = Server(data.parent).start()
        assert numbers(again, "a") == numbers(again, "b") == list(range(txn * 10))
        again.stop()
    # The one that was killed goes on, and its next backup shares what the others have.
    server.start()
    assert server.count("a") >= writer.acknowledged * 10
    server.stop()
    out = tidalite("backup", "--data", server.data, "--to", tmp_path / "backups")
    assert "shared with earlier backups" in out
    tidalite("restore", "--from", tmp_path / "backups", "--data", server.data, code=1)


def test_destinations_that_cannot_be(tmp_path):
    server = Server(tmp_path / "one").start()
    server.request("POST", "/write", "a x=1i 1704067200000000000\n")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("dear diary")
    for to, why in [
        (tmp_path / "full", "no backups"),
        (server.data / "inside", "inside of the data folder"),
        ("relative/path", "absolute"),
        ("ftp://host/db", "no destination that this build can reach"),
        ("/dev/null/x", "could not"),
    ]:
        with pytest.raises(SqlError, match=why):
            server.exec(f"BACKUP DATABASE TO '{to}'")
    assert server.count("a") == 1
    server.stop()
    tidalite("restore", "--from", tmp_path / "nowhere", "--data", tmp_path / "x", code=1)


def test_a_destination_that_fails_is_an_error_and_no_more(tmp_path):
    server = Server(tmp_path / "one").start()
    writer = Writer(server)
    for _ in range(5):
        server.request("POST", "/write", writer.lines(writer.acknowledged))
        writer.acknowledged += 1
    # A file stands where a folder has to be made.
    to = tmp_path / "backups"
    (to / "backups").mkdir(parents=True)
    (to / "rows").write_text("in the way")
    with pytest.raises(SqlError, match="could not create"):
        server.exec(f"BACKUP DATABASE TO '{to}'")
    assert list((to / "backups").iterdir()) == []
    assert server.count("a") == 50
    (to / "rows").unlink()
    server.exec(f"BACKUP DATABASE TO '{to}'")
    assert len(list((to / "backups").iterdir())) == 1
    server.stop()


def test_damage_is_named_answered_around_and_repaired(tmp_path):
    server = Server(tmp_path / "one").start()
    writer = Writer(server)
    for _ in range(30):
        server.request("POST", "/write", writer.lines(writer.acknowledged))
        writer.acknowledged += 1
    tidalite("check", "--data", server.data, code=2)
    server.stop()
    server.start()
    eventually(lambda: all(r[-1] == 0 for r in server.rows("show partitions from a")), 30, "the merge")
    assert server.rows("CHECK DATABASE") == []
    server.stop()
    assert "no problems" in tidalite("check", "--data", server.data)
    segments = sorted((server.data / "segments").glob("*/*.seg"))
    victim = segments[0]
    content = bytearray(victim.read_bytes())
    content[64] ^= 0x10
    victim.write_bytes(content)
    report = json.loads(tidalite("check", "--data", server.data, "--json", code=1))
    [problem] = report["problems"]
    assert problem["file"].endswith(victim.name) and problem["partition"] == "2024-01-01" and problem["column"]
    server.start()
    table, column = problem["table"], problem["column"]
    with pytest.raises(SqlError, match=f'table \\\\?"{table}.*partition 2024-01-01.*column .*{column}.* is damaged at byte'):
        server.exec(f"select {column} from {table}")
    other = "b" if table == "a" else "a"
    assert server.count(other) == 300
    assert [r[:3] for r in server.rows(f"CHECK TABLE {table}")] == [[table, "2024-01-01", column]]
    server.stop()
    dry = tidalite("repair", "--data", server.data, "--dry-run")
    assert "gone: " in dry and "dry run" in dry and not (server.data / "quarantine").exists()
    out = tidalite("repair", "--data", server.data)
    assert f'table "{table}", partition 2024-01-01' in out
    assert len(list((server.data / "quarantine").glob("*/segments/*/*.seg"))) == 1
    assert "no problems" in tidalite("check", "--data", server.data)
    assert "nothing is damaged" in tidalite("repair", "--data", server.data)
    server.start()
    assert server.count(other) == 300
    assert 0 < len(numbers(server, table)) < 300
    server.stop()
