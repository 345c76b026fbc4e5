"""Requests with an Idempotency-Key are done once, whatever their kind."""

import gzip
import io
import json
import threading
from urllib.parse import quote

import pyarrow as pa
import pytest
from server import Server


def ipc(count, first=0):
    out = io.BytesIO()
    table = pa.table({"n": range(first, first + count)})
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue()


def requests(table):
    """A request of each kind: path, body, and the rows it writes."""
    statement = f"insert into {table} values (1)"
    yield "/write", f"{table} n=1i 1\n{table} n=2i 1\n".encode(), 2
    yield f"/write/arrow?table={table}", ipc(3), 3
    yield f"/exec?query={quote(statement)}", b"", 1
    yield f"/exec?fmt=arrow&query={quote(statement)}", b"", 1


@pytest.mark.parametrize("kind", range(4))
def test_the_same_key_is_done_once(server, kind):
    table = f"once_{kind}"
    path, body, count = list(requests(table))[kind]
    if path.startswith("/exec"):
        server.exec(f"create table {table} (n long)")
    answers = {server.request("POST", path, body, {"Idempotency-Key": "k1-" + table})[::2] for _ in range(3)}
    assert len(answers) == 1 and answers.pop()[0] in (200, 204)
    assert server.count(table) == count
    server.request("POST", path, body, {"Idempotency-Key": "k2-" + table})
    server.request("POST", path, body)
    assert server.count(table) == 3 * count


def test_a_key_is_of_one_request(server):
    assert server.request("POST", "/write", b"one_key n=1i\n", {"Idempotency-Key": "same"})[0] == 204
    for other in (b"one_key n=1i,m=2i\n", b"one_key n=2i\n"):
        status, _, body = server.request("POST", "/write", other, {"Idempotency-Key": "same"})
        assert status == 422 and b"was used for another request" in body
    status, _, body = server.request("POST", "/write", b"one_key n=1i\n", {"Idempotency-Key": "x" * 200})
    assert status == 400 and b"Idempotency-Key" in body
    assert server.count("one_key") == 1


def test_what_was_refused_may_be_sent_again(server):
    path, headers = "/write/arrow?table=again", {"Idempotency-Key": "again"}
    server.exec("create table again (n uuid)")
    assert server.request("POST", path, ipc(3), headers)[0] == 400
    server.exec("drop table again")
    assert server.request("POST", path, ipc(3), headers)[0] == 200
    assert server.count("again") == 3


def test_queries_are_asked_again(server):
    headers = {"Idempotency-Key": "query"}
    server.request("POST", "/write", b"asked n=1i\n")
    first = server.request("GET", "/exec?query=select+count(*)+from+asked", None, headers)[2]
    server.request("POST", "/write", b"asked n=1i\n")
    second = server.request("GET", "/exec?query=select+count(*)+from+asked", None, headers)[2]
    assert [json.loads(answer)["dataset"] for answer in (first, second)] == [[[1]], [[2]]]


def test_at_the_same_time(server):
    body, statuses = b"".join(b"together n=%di\n" % i for i in range(20_000)), []

    def send():
        statuses.append(server.request("POST", "/write", body, {"Idempotency-Key": "together"})[0])

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [204] * 8 and server.count("together") == 20_000


@pytest.mark.parametrize("kind", range(4))
def test_another_body_of_the_same_length_is_refused(server, kind):
    """The second request has no effect, and the rows of the first are kept."""
    table = f"length_{kind}"
    path, body, count = list(requests(table))[kind]
    if path.startswith("/exec"):
        server.exec(f"create table {table} (n long)")
    other_path, other = path.replace("%281%29", "%282%29"), body.replace(b"n=1i", b"n=7i")
    if path.startswith("/write/arrow"):
        other = ipc(3, first=7)
    assert len(other) == len(body) and (other_path, other) != (path, body)
    headers = {"Idempotency-Key": "length-" + table}
    assert server.request("POST", path, body, headers)[0] in (200, 204)
    status, _, text = server.request("POST", other_path, other, headers)
    assert status == 422 and b"was used for another request" in text
    assert server.count(table) == count
    assert server.request("POST", other_path, other, {"Idempotency-Key": "other-" + table})[0] in (200, 204)
    assert server.count(table) == 2 * count


def test_compressed_bodies_are_told_apart_by_what_they_hold(server):
    headers = {"Idempotency-Key": "gzip", "Content-Encoding": "gzip"}
    for level in (1, 9):
        assert server.request("POST", "/write", gzip.compress(b"packed n=1i 1\n" * 500, level), headers)[0] == 204
    assert server.request("POST", "/write", gzip.compress(b"packed n=2i 1\n" * 500, 1), headers)[0] == 422
    assert server.count("packed") == 500


def test_keys_over_a_kill(tmp_path):
    """A killed server loses its keys: acknowledged rows are kept, and a different body is written, not dropped."""
    server = Server(tmp_path / "killed").start()
    try:
        headers = {"Idempotency-Key": "killed"}
        for number in range(3):
            body = b"killed n=%di %d\n" % (number, number)
            assert server.request("POST", "/write", body, headers)[0] == 204
            assert server.request("POST", "/write", b"killed n=9i 9\n", headers)[0] == 422
            server.kill()
            server.start()
            assert server.rows("select n from killed order by n") == [[n] for n in range(number + 1)]
    finally:
        server.stop()
