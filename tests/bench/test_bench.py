"""What tidalite-bench computes of its measurements: when it compares, what agrees, the score."""

import ctypes
import math
import mmap
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

import senders  # noqa: E402
from tidalite_bench import __main__ as command  # noqa: E402
from tidalite_bench import engines, frames, hits, lines_to_parquet, machine, remote, tsbs  # noqa: E402
from tidalite_bench.measure import Disagreement, agree, beside, ratio, spread, turns  # noqa: E402


def test_systems_take_turns():
    assert list(turns(["a", "b"], 2)) == [(0, "a"), (0, "b"), (1, "a"), (1, "b")]


def test_no_ratio_is_given_where_the_spread_is_larger_than_the_difference():
    assert ratio([2.0, 2.1, 1.9], [1.0, 1.05, 0.95]) == 2.0
    assert ratio([2.0, 3.5, 1.9], [1.0, 1.05, 0.95]) is None
    assert ratio([2.0], [1.0]) is None, "one run has no spread to know"
    assert math.isclose(spread([1.0, 1.1, 0.9]), 0.2)


def test_ours_is_set_beside_the_best_of_the_others():
    groups = {"tidalite": [1.0, 1.0], "slow": [9.0, 9.0], "fast": [3.0, 3.0], "tidalite-server": [0.1, 0.1]}
    assert beside("tidalite", groups["tidalite"], groups) == "3.00×"
    assert beside("fast", groups["fast"], groups) == ""
    assert beside("tidalite", [1.0, 9.0], groups) == "not told apart"


def test_answers_agree_in_any_order_and_nearly():
    agree({"a": [[1, 2.0], [3, 4.0]], "b": [[3, 4.0 + 1e-12], [1, 2.0]]})
    with pytest.raises(Disagreement, match="a answers .* and b"):
        agree({"a": [[1, 2.0]], "b": [[1, 2.1]]})
    with pytest.raises(Disagreement):
        agree({"a": [[1]], "b": [[1], [1]]})


def test_the_score_is_the_official_one():
    # Twice: 10 ms + time over 10 ms + best; b fails at q1, which counts as 600 s.
    scores = hits.score({"a": {"q0": 0.01, "q1": 0.09}, "b": {"q0": 0.03, "q1": None}})
    assert math.isclose(scores["a"], 1.0)
    assert math.isclose(scores["b"], math.sqrt((0.04 / 0.02) * (600.01 / 0.1)))
    assert hits.score({"a": {"q0": None}, "b": {"q0": None}}) == {"a": None, "b": None}
    # Loads below 5 s count as equal, sizes below 1 GB as twice the least.
    assert math.isclose(hits.combined(1, 1e8, 2.0, 3.0, 1, 1e8), math.exp(.1 * math.log(2) + .2 * math.log(2) + .6 * math.log(3)))


def test_a_client_on_another_host_is_refused_where_there_are_no_namespaces(monkeypatch):
    monkeypatch.setattr(remote.subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 1, "", "Operation not permitted"))
    with pytest.raises(RuntimeError, match="two network namespaces, which cannot be had here: ip netns add .*Operation not permitted"):
        remote.TwoHosts().connect()
    assert remote.systems.HOST == "127.0.0.1" and remote.systems.BEFORE == []


def cached_pages(path):
    """How many pages of a file the page cache holds, as the kernel says."""
    size = path.stat().st_size
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), size) as mapped:
        pages, view = (ctypes.c_ubyte * -(-size // mmap.PAGESIZE))(), ctypes.c_char.from_buffer(mapped)
        assert ctypes.CDLL(None, use_errno=True).mincore(ctypes.c_void_p(ctypes.addressof(view)), ctypes.c_size_t(size), pages) == 0
        del view
        return sum(page & 1 for page in pages)


def test_what_is_forgotten_must_come_from_the_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("TIDALITE_BENCH_EVICT", "1")
    path = tmp_path / "a"
    path.write_bytes(b"x" * 500_000)
    assert cached_pages(path) == 123
    assert machine.forget(tmp_path) == "files evicted from the page cache"
    assert cached_pages(path) == 0 and path.read_bytes() == b"x" * 500_000


def test_the_columns_of_a_line_stand_as_in_it():
    assert engines.columns_of(b"cpu,hostname=host_0,rack=6 usage_user=58i,usage_system=2i 1451606400000000000") == ["hostname", "rack", "usage_user", "usage_system"]


def test_every_part_of_the_suite_has_a_small_form():
    assert {title for _, title, _ in command.SUITE} == set(command.SMALL)
    assert {workload for workload, _, _ in command.SUITE} == set(command.WORKLOADS)


def test_lines_become_columns_and_what_a_line_lacks_is_null(tmp_path, monkeypatch):
    monkeypatch.setattr(lines_to_parquet.data, "folder", lambda: tmp_path)
    path = tmp_path / "some.ilp"
    path.write_text("readings,name=truck_0,fleet=South velocity=1.5,load=2i 1451606400000000000\n"
                    "diagnostics,name=truck_0 status=3i 1451606400000000000\n"
                    "readings,fleet=West velocity=2 1451606460000000000\n")
    files = lines_to_parquet.tables(path, {"readings", "diagnostics"})
    rows = [list(row.values()) for row in pq.read_table(files["readings"]).to_pylist()]
    assert rows == [["truck_0", "South", 1.5, 2, datetime(2016, 1, 1)], [None, "West", 2.0, None, datetime(2016, 1, 1, 0, 1)]]
    # Where every line has all, the places are taken; here they are, for diagnostics.
    assert pq.read_table(files["diagnostics"]).to_pylist() == [{"name": "truck_0", "status": 3, "timestamp": datetime(2016, 1, 1)}]


def test_queries_of_hits_are_found_by_the_name_or_its_beginning(tmp_path):
    (tmp_path / "q").write_text("-- a note\nSELECT 1;\n\nSELECT 2;\n")
    assert hits.texts_of(f"tidalite={tmp_path}/q,duckdb=/nowhere", "tidalite-server") == ["SELECT 1", "SELECT 2"]
    assert hits.texts_of(f"duckdb={tmp_path}/q", "questdb") == [] and hits.texts_of(str(tmp_path / "q"), "anyone") == ["SELECT 1", "SELECT 2"]


class Notes:
    def __init__(self):
        self.said = []

    def skip(self, name, error):
        self.said.append(f"{name}: {error}")


def test_a_client_that_is_not_there_is_left_out_and_said(monkeypatch, tmp_path):
    monkeypatch.setenv("TIDALITE_PYTHON", str(tmp_path))
    notes = Notes()
    assert frames.usable(["questdb", "tidalite", "nobody"], notes) == ["questdb"]
    assert notes.said == [f"tidalite client: no package in {tmp_path}: make python, or set TIDALITE_PYTHON", "nobody client: no such client: questdb, tidalite"]


def test_a_system_that_takes_no_lines_is_left_out_and_said(tmp_path):
    notes = Notes()
    assert engines.made_for_lines("duckdb", str(tmp_path), notes) == []
    assert notes.said == ["duckdb: it takes no lines over a network"]


def test_one_frame_is_the_same_rows_for_either_way_of_sending():
    frame = frames.frame_of(7, 3, 1)
    whole, rows = frames.new_buffer("questdb"), frames.new_buffer("questdb")
    frames.fill(whole, frame, "dataframe", "questdb")
    frames.fill(rows, frame, "itertuples", "questdb")
    assert bytes(whole) == bytes(rows) and bytes(whole).count(b"\n") == 7


def writer(lines, status=0):
    return [sys.executable, "-c", f"import sys\nfor i in range({lines}): print(f't,h=h{{i % 7}} v={{i}}i {{i}}')\nsys.exit({status})"]


def test_what_a_command_writes_goes_out_once_and_in_whole_lines():
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(4) as pool:
        sent = pool.submit(senders.send_stream, server.getsockname()[1], writer(300_000), 3)
        read = lambda connection: b"".join(iter(lambda: connection.recv(1 << 20), b""))  # noqa: E731
        texts = list(pool.map(read, [server.accept()[0] for _ in range(3)]))
        assert sent.result() > 0
    assert all(text.endswith(b"\n") for text in texts), "nobody waits for the rest of a line"
    lines = sorted(int(line.rsplit(b" ", 1)[1]) for text in texts for line in text.splitlines())
    assert lines == list(range(300_000))
    rows, size, digest = tsbs.told_of(writer(300_000))
    assert (rows, size) == ({"t": 300_000}, sum(map(len, texts))) and len(digest) == 32


def test_a_stream_that_breaks_off_is_no_measurement():
    with socket.create_server(("127.0.0.1", 0)) as server:
        with pytest.raises(RuntimeError, match="status 3"):
            senders.send_stream(server.getsockname()[1], writer(5, status=3), 1)
        with ThreadPoolExecutor(1) as pool:
            sent = pool.submit(senders.send_stream, server.getsockname()[1], writer(3_000_000), 2)
            for _ in range(3):
                server.accept()[0].close()
            assert isinstance(sent.exception(), OSError), "and it does not wait for ever"


def test_machine_code_is_switched_off_where_there_is_a_switch(tmp_path, monkeypatch):
    monkeypatch.setattr(engines.install, "questdb_jar", lambda: "questdb.jar")
    monkeypatch.setattr(engines.install, "binary", lambda name: name)
    questdb, ours = (engines.make(name, tmp_path, 1) for name in ("questdb", "tidalite-server"))
    questdb.interpret()
    ours.interpret()
    assert questdb.system.extra_env["QDB_CAIRO_SQL_JIT_MODE"] == "off" and ours.system.extra_env["TIDALITE_QUERY_COMPILES"] == "false"
    with pytest.raises(RuntimeError, match="no switch"):
        engines.make("duckdb", tmp_path, 1).interpret()


def test_the_mean_over_types_is_by_the_best_other():
    record = lambda case, system, seconds: dict(case=case, system=system, seconds=seconds, queries=1)  # noqa: E731
    records = [record("a", "tidalite-server", 2.0), record("a", "questdb", 1.0), record("b", "tidalite-server", 2.0), record("b", "questdb", 4.0), record("b", "duckdb", 16.0)]
    means = tsbs.relative(records)
    assert math.isclose(means["tidalite-server"], math.sqrt(2 / 1 * 2 / 4)) and math.isclose(means["duckdb"], 8.0)
    assert tsbs.details(records)[1][-1][2:5] == ["1.00", "1.00", "8.00"]


def test_an_answer_that_is_not_parsed_is_an_error_where_its_status_says_so():
    server = object.__new__(engines.Server)
    server.name = "a server"
    server.system = type("Answers", (), {"answer": lambda self, sql: (200, b"no JSON") if sql == "good" else (400, b"it is not")})()
    assert server.time("good", unparsed=True) < 60
    with pytest.raises(RuntimeError, match="a server: status 400: b'it is not'"):
        server.time("bad", unparsed=True)
