"""Computations of the load run: rows and their sums, answers of the protocols, stamps of the kernel, percentiles, slopes, the verdict."""

import asyncio
import random
import re
import socket
import struct
import sys
import threading
from array import array
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

from tidalite_bench import load  # noqa: E402
from tidalite_bench.load import clients, probe, readers, server, summary, writers  # noqa: E402
from tidalite_bench.load.record import Record  # noqa: E402

LINE = re.compile(r"load_(\d+),writer=w(\d+),host=h(\d+) seq=(\d+)i,v=(\d+)i,x=([\d.]+) (\d+)\n")
NOW = 1_700_000_000 * 10**9


def parsed(lines):
    found = LINE.findall(lines.decode())
    assert "".join(f"load_{t},writer=w{w},host=h{h} seq={s}i,v={v}i,x={x} {at}\n" for t, w, h, s, v, x, at in found).encode() == lines
    return [(int(t), int(w), int(s), int(v), int(at)) for t, w, _, s, v, _, at in found]


def test_sums_of_a_writer_are_those_of_its_lines():
    rows = writers.Rows(writer=19, batch_rows=125, period_s=0.5)
    seen = []
    for number in range(300):
        batch = rows.batch(NOW + number * 500_000_000)
        lines = parsed(batch.lines)
        assert batch.rows == len(lines) == 125 and batch.sums == (125, sum(r[2] for r in lines), sum(r[3] for r in lines))
        if number % 7:
            rows.acknowledge(batch.sums)
            seen += lines
    assert {(t, w) for t, w, *_ in seen} == {(19 % writers.TABLES, 19)}
    assert rows.acknowledged == [len(seen), sum(r[2] for r in seen), sum(r[3] for r in seen)]
    assert rows.sent == 300 * 125


def test_a_twentieth_of_the_rows_and_a_hundredth_of_the_batches_are_late():
    rows = writers.Rows(writer=3, batch_rows=100, period_s=0.4)
    late_rows = late_batches = 0
    for _ in range(1000):
        ages = [NOW - at for *_, at in parsed(rows.batch(NOW).lines)]
        in_order = [age for seq, age in enumerate(ages) if seq % writers.LATE_ROW_EVERY]
        assert in_order == sorted(in_order, reverse=True) and in_order[0] - in_order[-1] < 400_000_000
        # The newest row that is not late by itself is the last one of the batch.
        late_batches += in_order[-1] > 400_000_000
        late_rows += sum(age - in_order[-1] > 400_000_000 for age in ages)
        assert max(ages) <= writers.LATE_BATCH_NS_MAX + writers.LATE_ROW_NS_MAX + 400_000_000
    assert late_batches in (9, 10) and 4_800 <= late_rows <= 5_000


def test_lost_doubled_changed_and_unknown_rows_are_differences():
    rows = writers.Rows(writer=1, batch_rows=10, period_s=1)
    rows.acknowledge(rows.batch(NOW).sums)
    ledger, values = {"w1": rows.acknowledged}, [writers.value_of(1, seq) for seq in range(10)]
    right = [10, 45, sum(values), 0, 9]
    assert writers.differences(ledger, {"w1": right}) == []
    assert writers.differences({"w1": [0, 0, 0]}, {}) == []
    wrong = {
        "lost": [9, 36, sum(values[:9]), 0, 8], "doubled": [11, 54, sum(values) + values[9], 0, 9], "another in its place": [10, 44, sum(values), 0, 9],
        "changed": [10, 45, sum(values) + 1, 0, 9], "shifted": [10, 45, sum(values), 1, 10],
    }
    for what, found in wrong.items():
        assert len(writers.differences(ledger, {"w1": found})) == 1, what
    assert "w1: acknowledged" in writers.differences(ledger, {})[0]
    assert writers.differences(ledger, {"w1": right, "w7": [3, 3, 3, 0, 2]}) == ["w7: 3 rows of an unknown writer"]


def test_an_answer_of_http_is_complete_at_its_last_byte_only():
    sized = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde"
    chunked = b"HTTP/1.1 400 Bad Request\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1c\r\n0123456789\r\n0\r\n\r\n56789abcdef\r\n0\r\n\r\n"
    empty = b"HTTP/1.1 204 No Content\r\nx: y\r\n\r\n"
    for data, answer in [(sized, (200, b"abcde")), (chunked, (400, b"abc0123456789\r\n0\r\n\r\n56789abcdef")), (empty, (204, b""))]:
        assert clients.http_answer(bytearray(data)) == answer
        assert all(clients.http_answer(bytearray(data[:cut])) is None for cut in range(len(data)))


def test_an_answer_of_postgresql_ends_with_ready_for_query():
    message = lambda kind, body: kind + struct.pack("!i", len(body) + 4) + body  # noqa: E731
    rows = message(b"T", b"\0\0") + message(b"D", b"Z\0\0\0\5I") * 3 + message(b"C", b"SELECT 3\0") + message(b"Z", b"I")
    error = message(b"E", b"SERROR\0C42P01\0Mno such table\0\0") + message(b"Z", b"I")
    assert clients.pg_answer(rows) == (3, None) and clients.pg_answer(error) == (0, "42P01 no such table")
    assert all(clients.pg_answer(rows[:cut]) is None for cut in range(len(rows)))


def test_a_client_sees_an_answer_in_pieces_and_the_loss_of_its_connection():
    async def scenario():
        async def serve(reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            for piece in (b"HTTP/1.1 200 OK\r\nContent-", b"Length: 2\r\n\r\no", b"k"):
                writer.write(piece)
                await writer.drain()
            await reader.readuntil(b"\r\n\r\n")
            writer.close()

        listener = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with listener:
            client = await clients.HttpClient.connect(listener.sockets[0].getsockname()[1])
            assert await client.ask(clients.http_request("GET", "/")) == (200, b"ok")
            with pytest.raises(clients.Gone):
                await client.ask(clients.http_request("GET", "/"))
            with pytest.raises(clients.Gone):
                await client.ask(clients.http_request("GET", "/"))

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_a_lost_idle_connection_is_an_error():
    async def scenario():
        listener = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
        async with listener:
            port, record = listener.sockets[0].getsockname()[1], Record(None)
            client = await clients.LineClient.connect(port)
            client.on_loss = lambda error: record.failed("idle TCP", error)
            await client.closed
            return record.errors

    assert asyncio.run(asyncio.wait_for(scenario(), 30)) == Counter({"idle TCP: end of stream": 1})


def test_the_kernel_stamps_a_request_and_its_answer():
    """The time between both stamps is a part of what the process that asks measures."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        connection, _ = listener.accept()
        with connection:
            while connection.recv(100) != b"end":
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    client = probe.StampedSocket(listener.getsockname()[1])
    assert client.warm(clients.http_request("GET", "/"), clients.http_answer)
    for _ in range(20):
        answer, kernel, own = client.ask(clients.http_request("GET", "/"), clients.http_answer)
        assert answer == (200, b"ok") and kernel is not None and 0 < kernel <= own
    with pytest.raises(probe.ProbeError, match="connection closed by the server"):
        client.ask(b"end", clients.http_answer)
    thread.join(30)
    client.close()
    listener.close()


def test_percentiles_are_by_nearest_rank():
    hundred = [float(i) for i in range(1, 101)]
    assert [summary.percentile(hundred, p) for p in (0.5, 0.99, 1.0)] == [50.0, 99.0, 100.0]
    assert summary.percentile([7.0], 0.99) == 7.0 and summary.percentile([1.0, 2.0], 0.5) == 1.0


def test_latencies_of_several_processes_are_one_table():
    parts = [{"metadata": array("d", [0.003, 0.001]).tobytes()}, {"metadata": array("d", [0.002]).tobytes(), "panel": array("d", [1.0]).tobytes()}]
    latencies = summary.merged(parts)
    assert latencies == {"metadata": [0.001, 0.002, 0.003], "panel": [1.0]}
    assert summary.latency_table(latencies)[1] == [["metadata", 3, "2.00", "3.00", "3.00"], ["panel", 1, "1000.00", "1000.00", "1000.00"]]


def test_the_slope_of_a_line_is_exact_and_noise_has_an_error():
    assert summary.slope([(x, 3 * x + 1) for x in range(5)]) == (3.0, 0.0)
    assert summary.slope([]) == summary.slope([(1, 2)]) == summary.slope([(1, 2), (1, 4), (2, 3)]) == (0.0, 0.0)
    # Worked by hand: x 0..3, y 0 2 0 2: mean 1, Sxx 5, Sxy 2, residuals sum to 4 - 4/5, over 2 degrees of freedom and Sxx.
    found, error = summary.slope([(0, 0), (1, 2), (2, 0), (3, 2)])
    assert (round(found, 12), round(error, 12)) == (0.4, round(((4 - 0.8) / 2 / 5) ** 0.5, 12))


def sample_of(t, rss, server_cpu=0.0, machine_cpu=0.0, **memory):
    return {"t": t, "rss_mib": rss, "anonymous_mib": rss / 2, "memory": memory, "cpu_s": {"server": server_cpu, "machine": machine_cpu}}


def test_memory_is_judged_after_the_first_quarter():
    samples = [sample_of(t, 1000 if t >= 900 else t, tidalite_memory_bytes=(t << 20) / 3600, tidalite_memory_limit_bytes=1) for t in range(0, 3601, 100)]
    rows = {row[0]: row[-1] for row in summary.memory_table(samples)[1]}
    assert rows == {"RSS": "+0.0 ± 0.0", "RSS, anonymous": "+0.0 ± 0.0", "tidalite_memory_bytes": "+1.0 ± 0.0"}
    assert summary.missed_goals({"metadata": [0.05]}, samples, 50, 1) == []
    grown = [sample_of(t, t) for t in range(0, 3601, 100)]
    assert summary.missed_goals({"metadata": [0.0501]}, grown, 50, 100) == [
        "p99 of metadata is 50.10 ms, the limit is 50 ms", "resident memory grows by 3600.0 MiB/hour, the limit is 100"]
    assert summary.missed_goals({}, grown, 0, 0) == [] and len(summary.missed_goals({}, [], 50, 0)) == 1


def test_shares_of_the_processors_add_up():
    samples = [sample_of(0, 1, 10.0, 100.0), sample_of(10, 1, 15.0, 118.0)]
    for seen, used in zip(samples, (1.0, 5.0)):
        seen["cpu_s"] |= {"writers": used, summary.WAITING: used * 0.75}
    assert summary.cpu_table(samples, 2) == (["processors in use, of 2", "cores", "share"], [
        ["server", "0.50", "25%"], ["writers", "0.40", "20%"], ["the generator as a whole", "0.40", "20%"], ["other processes", "0.90", "45%"],
        [summary.WAITING, "0.30", ""]])


def test_counters_and_states_of_errors_are_found_in_metrics():
    text = ('# TYPE a counter\ntidalite_line_errors_total{protocol="tcp"} 2\ntidalite_pg_errors_total 0\ntidalite_http_responses_total{class="2xx"} 9\n'
            'tidalite_http_responses_total{class="5xx"} 1\ntidalite_merge_failures_total 3\ntidalite_ready 0\ntidalite_live 1\ntidalite_staged_rows 7\n')
    assert server.metric_errors(server.metric_values(text)) == {
        'tidalite_line_errors_total{protocol="tcp"}': 2, 'tidalite_http_responses_total{class="5xx"}': 1, "tidalite_merge_failures_total": 3, "tidalite_ready": 0}


def test_errors_and_warnings_of_the_log_are_told_apart():
    text = "2026-11-28T10:22:24Z  INFO ready ERROR=0\n2026-11-28T10:22:25Z ERROR merge failed table=\"t\"\n2026-11-28T10:22:26Z  WARN slow statement\n"
    assert server.log_lines(text) == (['merge failed table="t"'], ["slow statement"])


def test_kinds_of_errors_are_limited_and_counts_are_not():
    record = Record(None)
    for number in range(1000):
        record.failed("query", f"table t{number} is gone")
    assert record.errors.total() == 1000 and len(record.errors) == 201 and record.errors["query: other errors"] == 800


def test_panels_have_different_texts_at_each_refresh():
    first, second = (readers.panels(datetime(2026, 1, 1, 0, 0, s, tzinfo=timezone.utc), 2, 200) for s in (1, 2))
    assert len(first) == len(set(first)) == readers.PANELS and not set(first) & set(second)
    assert "BETWEEN '2025-12-31T23:55:01.000000Z' AND '2026-01-01T00:00:01.000000Z'" in first[0]


def test_busy_connections_ask_each_kind_of_query():
    chance = random.Random(1)
    kinds = {statement.split(" FROM ")[0] for statement in (readers.busy_statement(chance, 200) for _ in range(200))}
    assert len(kinds) == 4


def test_a_process_that_ends_early_is_an_error(monkeypatch):
    class Silent:
        @staticmethod
        def run(plan, record):
            record.snapshot()

    monkeypatch.setattr(load, "probe", Silent)
    monkeypatch.setattr(load.Generator, "ROLES", {"prober": Silent})
    generator = load.Generator(None)
    for _ in range(30):
        generator.receive(1)
    assert generator.is_done() and generator.errors() == Counter({"generator: the process prober ended early": 1})
    generator.stop()
