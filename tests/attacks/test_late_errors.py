"""Errors after the first rows reach the client, for any number of preceding rows and any reading speed."""

import http.client
import json
import socket
import urllib.parse
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pyarrow as pa
import pytest

# Around the ends of batches (8,192 rows), of vectors and blocks, and of the chunks that are sent.
FAILS_AT = [2, 100, 1023, 1025, 4096, 8191, 8192, 8193, 8194, 16384, 16385, 20000, 24577, 65536, 65537, 100_001]
BEHIND = [0, 1, 10, 8192]


def query(fails_at, behind):
    return f"select x, cast(case when x = {fails_at} then 'boom' else '1' end as long) v from long_sequence({fails_at + behind})"


def raw(server, path, pieces=None):
    """Returns the bytes of a response, read at once or in small pieces through a small receive buffer."""
    with socket.socket() as client:
        if pieces:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(60)
        client.connect(("127.0.0.1", server.http_port))
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        out = bytearray()
        while piece := client.recv(pieces or 1 << 20):
            out += piece
        return bytes(out)


def unchunked(answer):
    """Returns status, body, and True if the last chunk is present."""
    head, _, rest = answer.partition(b"\r\n\r\n")
    status = int(head.split()[1])
    if b"transfer-encoding: chunked" not in head.lower():
        return status, rest, True
    body = b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        if int(size, 16) == 0:
            return status, body, True
        body += rest[: int(size, 16)]
        rest = rest[int(size, 16) + 2 :]
    return status, body, False


def test_json_ends_with_the_error(server):
    arrived = late = 0
    cases = [(f, b, p) for f in FAILS_AT for b in BEHIND for p in (None, 997)]

    def ask(case):
        fails_at, behind, pieces = case
        path = "/exec?" + urllib.parse.urlencode({"query": query(fails_at, behind)})
        return unchunked(raw(server, path, pieces if fails_at < 30_000 else None))

    with ThreadPoolExecutor(4) as pool:
        for case, (status, body, is_whole) in zip(cases, pool.map(ask, cases)):
            answer = json.loads(body)
            assert "boom" in answer["error"] and isinstance(answer["position"], int), (case, body[-300:])
            assert is_whole and status in (200, 400), case
            if status == 200:
                late += 1
                assert answer["count"] == len(answer["dataset"]) < case[0]
                assert [row[0] for row in answer["dataset"]] == list(range(1, answer["count"] + 1))
            arrived += 1
    assert arrived == len(cases) == 128 and late >= 40


@pytest.mark.parametrize("path", ["/exp?", "/exp?fmt=arrow&", "/exec?fmt=arrow&"])
def test_csv_and_arrow_break_off_behind_the_rows_before(server, path):
    late = 0
    for fails_at in FAILS_AT:
        for pieces in (None, 997):
            asked = path + urllib.parse.urlencode({"query": query(fails_at, 10)})
            status, body, is_whole = unchunked(raw(server, asked, pieces if fails_at < 30_000 else None))
            if status == 400:
                assert "boom" in json.loads(body)["error"] and is_whole
                continue
            late += 1
            assert not is_whole, (fails_at, pieces)
            if "arrow" in path:
                # All received batches are complete; the end-of-stream marker is missing.
                reader, rows = pa.ipc.open_stream(body), 0
                for batch in reader:
                    rows += batch.num_rows
                assert rows >= 8192, (fails_at, rows)
            else:
                rows = body.decode().splitlines()[1:]
                assert rows == [f"{n},1" for n in range(1, len(rows) + 1)] and 0 < len(rows) < fails_at
    assert late >= 10
    # http.client reports the aborted response.
    connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=60)
    connection.request("GET", path + urllib.parse.urlencode({"query": query(20000, 10)}))
    with pytest.raises(http.client.IncompleteRead):
        connection.getresponse().read()
    connection.close()


def test_postgres_clients_get_an_error_response(server):
    errors = 0
    with psycopg.connect(host="127.0.0.1", port=server.pg_port, user="u", dbname="d", autocommit=True) as connection:
        for fails_at in FAILS_AT:
            sql = query(fails_at, 10)
            for way in ("simple", "binary", "portal", "cursor", "copy"):
                with pytest.raises(psycopg.Error, match="boom"):
                    if way == "simple":
                        connection.cursor(binary=False).execute(sql, prepare=False).fetchall()
                    elif way == "binary":
                        connection.cursor(binary=True).execute(sql, prepare=True).fetchall()
                    elif way == "portal":
                        sum(1 for _ in connection.cursor().stream(sql))
                    elif way == "cursor":
                        with connection.transaction():
                            connection.execute(f"DECLARE c CURSOR FOR {sql}")
                            while connection.execute("FETCH 1000 FROM c").fetchall():
                                pass
                    else:
                        with connection.cursor().copy(f"COPY ({sql}) TO STDOUT") as copy:
                            for _ in copy:
                                pass
                errors += 1
                assert connection.execute("SELECT 1").fetchone() == (1,)
    assert errors == 5 * len(FAILS_AT)
