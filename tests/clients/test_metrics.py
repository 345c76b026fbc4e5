"""What the health port counts, where it steers the server: rows and bytes that wait for the merge."""

import threading

from server import eventually

T0 = 1704067200 * 10**9


def test_nothing_staged_is_no_bytes(servers):
    """A count of staged bytes that drifts would sooner or later hold all writers back, or none."""
    server = servers().start()

    def post(client):
        for k in range(60):
            server.write_ok("".join(
                f"{table},host=h{n} v={k * n}i{',odd=' + str(n) + '.5' if (k + n) % 3 else ''},text=\"{'x' * (n % 40)}\" {T0 + k * 10**9 + n}\n"
                for table in ("one", "two") for n in range(1 + (k * client) % 50)))

    threads = [threading.Thread(target=post, args=(client,)) for client in (1, 2, 3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    eventually(lambda: server.metrics()["tidalite_staged_rows"] == 0, 60, "the merge of all rows")
    assert server.metrics()["tidalite_staged_bytes"] == 0
    server.write_ok(f"one v=1i {T0}\n")
    for table in ("one", "two"):
        server.exec(f"drop table {table}")
    metrics = server.metrics()
    assert metrics["tidalite_staged_rows"] == metrics["tidalite_staged_bytes"] == 0
    server.write_ok(f"one v=1i {T0}\n")
    assert server.count("one") == 1


def test_metrics_count_rows(servers):
    server = servers().start()
    server.write_ok(f"t v=1i {T0}\nt v=2i {T0}\n")
    with server.tcp() as s:
        s.sendall(f"t v=3i {T0}\n".encode())
    server.wait_count("t", 3)
    metrics = server.metrics()
    assert metrics["tidalite_rows_committed_total"] == 3
    assert metrics["tidalite_log_syncs_total"] >= 2


def test_slow_syncs_that_overlap_are_counted_too(servers):
    server = servers(env={"TIDALITE_SYNC_DELAY_MS": "3"}).start()
    for k in range(5):
        server.write_ok(f"t v={k}i {T0 + k}\n")
    assert server.metrics()["tidalite_log_syncs_total"] >= 5
