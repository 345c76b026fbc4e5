"""Input nobody should send: each gets a clear error, nothing else is lost, the server stays up."""

import errno
import gzip
import http.client
import re
import socket
import struct
import threading
import time
import urllib.parse

import pytest
from server import Server, SqlError, eventually

T0 = 1704067200 * 10**9


def good(table, k=0):
    return f"{table},host=a v={k}i {T0 + k}\n".encode()


def refused(answer, *words):
    """A refusal of a write: 4xx, and an explanation in the form clients read."""
    status, body = answer
    assert 400 <= status < 500, (status, body)
    assert set(body) >= {"code", "message", "line", "errorId"}, body
    assert body["code"] and body["errorId"] and body["message"]
    for word in words:
        assert word in body["message"], body
    return body


BINARY = {
    "unknown binary type": b"x==\x63\x00\x00\x00\x00\x00\x00\x00\x00",
    "double cut short": b"x==\x10\x00\x00",
    "array of ints": b"x==\x0e\x05\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
    "array of 33 dimensions": b"x==\x0e\x0a\x21" + struct.pack("<33I", *[1] * 33) + b"\0" * 8,
    "array of 2^64 elements": b"x==\x0e\x0a\x04" + struct.pack("<4I", *[0xFFFF] * 4),
    "array longer than the request": b"x==\x0e\x0a\x01" + struct.pack("<I", 1 << 28) + b"\0" * 64,
    "decimal of scale 255": b"x==\x17\xff\x01\x05",
    "decimal longer than the request": b"x==\x17\x02\xff\x05",
}

LINES = {
    "unterminated string": (b'T s="never closed 1\n', ()),
    "no fields": (b"T\n", ()),
    "a field without a value": (b"T v\n", ()),
    "a tag without a value": (b"T,a v=1i\n", ()),
    "no table name": (b",a=b v=1i\n", ()),
    "no column name": (b"T =1i\n", ()),
    "a word for a value": (b"T v=abc\n", ()),
    "a number with two points": (b"T v=1.2.3\n", ()),
    "an integer too large": (b"T v=99999999999999999999i\n", ()),
    "a timestamp too large": (b"T v=1i 99999999999999999999\n", ()),
    "a timestamp that is a word": (b"T v=1i yesterday\n", ()),
    "something after the timestamp": (b"T v=1i 1 2\n", ()),
    "a table name with a tab": (b"T\tx v=1i 1\n", ()),
    "a column name with a control character": (b"T a\x1bb=1i 1\n", ()),
    "a table name too long": (b"T" + b"x" * 200 + b" v=1i 1\n", ()),
    "a column name too long": (b"T " + b"x" * 200 + b"=1i 1\n", ()),
    "invalid UTF-8 in a table name": (b"T\xff v=1i 1\n", ()),
    "invalid UTF-8 in a column name": (b"T \xff=1i 1\n", ()),
    "invalid UTF-8 in a symbol": (b"T,host=\xc3\x28 v=1i 1\n", ()),
    "invalid UTF-8 in a string": (b'T s="\xed\xa0\x80" 1\n', ()),
    "a zero byte in a table name": (b"T\x00 v=1i 1\n", ()),
    "a symbol where a number is": (b"T,v=text w=1i 1\n", ("v",)),
    "text where a number is": (b'T v="text" 1\n', ("v",)),
    "a fraction where an integer is": (b"T v=1.5 1\n", ("v",)),
    "text where the time is": (b'T timestamp="x" 1\n', ()),
    "5,000 columns": (b"T " + b",".join(b"c%d=1i" % k for k in range(5000)) + b" 1\n", ("column",)),
    **{name: (b"T " + field + b" 1\n", ()) for name, field in BINARY.items()},
}
# A line cut by the end of the request is one thing, by further lines another.
ids = [name.replace(" ", "-") for name in LINES]


@pytest.mark.parametrize("bad,words", LINES.values(), ids=ids)
def test_http_refuses_the_whole_request(server, table, bad, words):
    server.write_ok(good(table))
    bad = bad.replace(b"T", table.encode(), 1)
    body = refused(server.write(good(table, 1) + good(table + "_other") + bad + good(table, 2)), *words)
    assert body["line"] == 3 or (body["line"] > 3 and b"\n" in bad[:-1]), body
    assert server.count(table) == 1
    assert not server.has_table(table + "_other")
    assert set(server.types(table)) == {"host", "v", "timestamp"}
    server.write_ok(good(table, 3))
    assert server.count(table) == 2


def send_and_end(s, lines):
    """All of it and the end of it, or as much as the other side takes before it closes."""
    try:
        s.sendall(lines)
        s.shutdown(socket.SHUT_WR)
    except ConnectionError:
        pass
    except OSError as error:  # closed between the two, which has no class of its own
        if error.errno != errno.ENOTCONN:
            raise


def closes(s, seconds=30):
    """The other side closes; a reset will do."""
    s.settimeout(seconds)
    try:
        while s.recv(4096):
            pass
    except ConnectionError:
        pass


def error_count(server):
    return sum(v for name, v in server.metrics().items() if "error" in name)


@pytest.mark.parametrize("bad", [v[0] for v in LINES.values()], ids=ids)
def test_tcp_keeps_the_rows_before_and_closes(server, table, bad):
    bad = bad.replace(b"T", table.encode(), 1)
    server.write_ok(good(table))
    errors = error_count(server)
    with server.tcp() as other:
        with server.tcp() as s:
            send_and_end(s, good(table, 1) + good(table, 2) + bad + good(table, 3))
            closes(s)
        server.wait_count(table, 3, seconds=20)
        other.sendall(good(table, 4))
        server.wait_count(table, 4)
    eventually(lambda: error_count(server) > errors, what="a counted error")
    assert server.rows(f'select v from "{table}" order by v') == [[0], [1], [2], [4]]
    assert re.search(r"line[ =]3\b", server.log_tail(20_000)), "the log names the line"


def whole_or_refused(server, table, line, query, value):
    """What a limit decides: either an error that leaves nothing, or exactly what was sent."""
    server.write_ok(good(table))
    status, body = server.write(line)
    if status == 204:
        assert server.value(query) == value
    else:
        refused((status, body))
        assert server.count(table) == 1
    server.write_ok(good(table, 9))


def test_a_line_of_10_mb(server, table):
    text = "x" * 10_000_000
    whole_or_refused(server, table, f'{table} s="{text}" {T0}\n', f'select max(length(s)) from "{table}"', len(text))
    with server.tcp() as s:
        send_and_end(s, good(table, 20) + f'{table} s="{text}" {T0}\n'.encode())
        closes(s)
    eventually(lambda: server.rows(f'select v from "{table}" where v = 20') == [[20]], what="the row before the long line")


def test_a_symbol_of_1_mb(server, table):
    text = "y" * (1 << 20)
    whole_or_refused(server, table, f"{table},sym={text} v=5i {T0}\n", f'select max(length(sym)) from "{table}"', len(text))


@pytest.mark.parametrize("year,seconds", [(1500, -14831769600), (3000, 32503680000), (9999, 253402214400), (-200000, -6373503187200)])
@pytest.mark.parametrize("form", ["t", "s"])
def test_years_far_away(server, table, year, seconds, form):
    """Nanoseconds end in 2262: there the answer is an error. In microseconds it is the time itself or an error."""
    server.write_ok(f"{table} v=0i {T0}n\n")
    line, path = (f"{table} v=7i {seconds * 10**6}t\n", "/write") if form == "t" else (f"{table} v=7i {seconds}\n", "/write?precision=s")
    refused(server.write(line, path))
    assert server.count(table) == 1
    status, body = server.write(line.replace(table, table + "_us"), path)
    if status == 204:
        assert str(server.value(f'select timestamp from "{table}_us"')).startswith(f"{year}-")
    else:
        refused((status, body))
    with server.tcp() as s:
        send_and_end(s, good(table, 1) + f"{table} v=7i {seconds * 10**6}t\n".encode())
        closes(s)
    server.wait_count(table, 2)


def test_two_clients_create_one_column_with_different_types(server, table):
    lines = ["a=1i", 'a="text"', "a=t", "a=1.5", f"a={T0 // 1000}t"]
    for k in range(10):
        name, answers = f"{table}_{k}", {}
        start = threading.Barrier(len(lines))

        def post(line, name=name, start=start, answers=answers):
            start.wait()
            answers[line] = server.write(f"{name} {line} {T0}\n" * 20)

        threads = [threading.Thread(target=post, args=(line,)) for line in lines]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        taken = [line for line, answer in answers.items() if answer[0] == 204]
        assert taken
        for line, answer in answers.items():
            if line not in taken:
                refused(answer, "a")
        assert server.count(name) == 20 * len(taken)
        assert server.types(name)["a"] in ("LONG", "VARCHAR", "BOOLEAN", "DOUBLE", "TIMESTAMP")


def test_two_connections_create_one_column_with_different_types(server, table):
    for k in range(10):
        name = f"{table}_{k}"
        with server.tcp() as one, server.tcp() as two:
            one.sendall(f"{name} a=1i {T0}\n".encode())
            two.sendall(f'{name} a="text" {T0}\n'.encode())
            for s in (one, two):
                s.shutdown(1)
                closes(s)
        count = server.count(name)
        assert count in (1, 2), count
        server.write_ok(f"{name} b=1i {T0}\n")


def test_one_byte_a_second(server, table):
    """A connection that trickles keeps nobody waiting, and its row counts in the end."""
    line = f"{table}_slow v=1i {T0}\n".encode()
    with server.tcp() as slow:
        slow.sendall(line[:-4])
        for k, byte in enumerate(line[-4:]):
            due = time.monotonic() + 1
            while time.monotonic() < due:
                start = time.monotonic()
                server.write_ok(good(table))
                assert time.monotonic() - start < 1
            slow.sendall(bytes([byte]))
            assert server.count(table + "_slow") in ((-1,) if k < 3 else (-1, 1))
        server.wait_count(table + "_slow", 1)


def test_many_idle_connections(server, table):
    idle = [server.tcp() for _ in range(200)]
    try:
        for s in idle:
            s.sendall(table.encode())
        server.write_ok(good(table))
        assert server.count(table) == 1
    finally:
        for s in idle:
            s.close()


def test_half_a_gzip_stream(server, table):
    body = gzip.compress(b"".join(good(table, k) for k in range(10_000)))
    gzipped = {"Content-Encoding": "gzip"}
    refused(server.write(body[: len(body) // 2], headers=gzipped))
    refused(server.write(body[:-4], headers=gzipped))
    refused(server.write(b"not gzip at all", headers=gzipped))
    flipped = bytearray(body)
    flipped[len(body) // 2] ^= 0xFF
    refused(server.write(bytes(flipped), headers=gzipped))
    assert not server.has_table(table)
    server.write_ok(body, headers=gzipped)
    assert server.count(table) == 10_000


def test_bodies_together_larger_than_their_budget(tmp_path):
    """While one client holds most of the budget another is refused; when it is done, the other's rows go in."""
    limits = {"TIDALITE_HTTP_BODY_BYTES_MAX": "64KiB", "TIDALITE_HTTP_BODIES_BYTES_MAX": "100KiB"}
    server = Server(tmp_path, env=limits).start()
    try:
        body = b"".join(good("held", k) for k in range(10_000))
        body = body[: body.rindex(b"\n", 0, 60_000) + 1]
        rows = body.count(b"\n")
        slow = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=60)
        slow.putrequest("POST", "/write")
        slow.putheader("Content-Length", str(len(body)))
        slow.endheaders()
        slow.send(body[:-1])
        # Only once all of it is held: of two that come together, either may be the one that is refused.
        eventually(lambda: server.metrics()["tidalite_http_bodies_bytes"] >= len(body) - 1, what="the slow body")
        status, answer = server.write(body.replace(b"held", b"late"))
        assert status == 503 and "http.bodies_bytes_max" in answer["message"], answer
        slow.send(body[-1:])
        assert slow.getresponse().status == 204
        server.write_ok(body.replace(b"held", b"late"))
        assert server.count("held") == rows
    finally:
        server.stop()


def test_a_gzip_bomb_is_not_unpacked_at_once(server, table):
    """200 MB of zeros in 200 KB: refused or swallowed line by line, never held whole."""
    server.write_ok(good(table))
    bomb = gzip.compress(b"\0" * 200_000_000, 9)
    refused(server.write(bomb, headers={"Content-Encoding": "gzip"}))
    server.write_ok(good(table, 1))


def test_an_encoding_nobody_knows(server, table):
    status, _ = server.write(good(table), headers={"Content-Encoding": "brotli"})
    assert status in (400, 415)
    assert not server.has_table(table)


def test_a_precision_nobody_knows(server, table):
    refused(server.write(good(table), "/write?precision=fortnight"), "precision")
    assert not server.has_table(table)


@pytest.mark.parametrize("form", ["length", "chunked"])
def test_half_a_request_leaves_nothing(server, table, form):
    lines = b"".join(good(table, k) for k in range(20_000))
    with socket.create_connection(("127.0.0.1", server.http_port)) as s:
        head = f"POST /write HTTP/1.1\r\nHost: x\r\n{f'Content-Length: {2 * len(lines)}' if form == 'length' else 'Transfer-Encoding: chunked'}\r\n\r\n"
        s.sendall(head.encode())
        s.sendall(lines if form == "length" else b"%x\r\n%s\r\n" % (len(lines), lines))
    # The next request on another connection shows that the server got over it.
    server.write_ok(good(table + "_next"))
    assert not server.has_table(table)
    with socket.create_connection(("127.0.0.1", server.http_port)) as s:
        s.sendall(b"POST /write HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc")
        s.shutdown(1)
        closes(s)
    assert not server.has_table(table)


def test_lines_that_are_no_lines(server, table):
    """Empty lines and comments are nothing; the last line needs no end; CRLF is an end, too."""
    server.write_ok(b"")
    server.write_ok(b"\n\n\n")
    server.write_ok(b"\n" + good(table, 1) + b"\n\n" + good(table, 2)[:-1])
    server.wait_count(table, 2)


@pytest.mark.parametrize("query", [
    "select " + "(" * 5000 + "1" + ")" * 5000,
    "select " + "-(" * 3000 + "1" + ")" * 3000,
    "select 1 where " + " and ".join(["1=1"] * 2000),
    "select " + "+".join(["1"] * 1000),
    "select " + "case when true then " * 1000 + "1" + " end" * 1000,
    "select * from " + "(select * from " * 500 + "(select 1)" + ")" * 500,
    "select '" + "x" * 1_000_000,
    "select \x00",
    "(" * 10_000,
], ids=["parentheses", "minus", "and", "plus", "case", "sub-queries", "unterminated", "zero", "open"])
def test_sql_that_goes_too_deep(server, query):
    status, _, body = server.request("POST", "/exec", urllib.parse.urlencode({"query": query}),
                                     {"Content-Type": "application/x-www-form-urlencoded"}, timeout=120)
    assert status in (200, 400, 413), (status, body[:300])
    assert server.value("select 1") == 1


# An error within nested expressions took the stock parser 2^n time, and a thread of the planner for ever.
NESTED = ["NOT(", "CAST(", "CASE WHEN x THEN ", "ARRAY[", "((((", "EXISTS (SELECT "]


def test_nested_sql_with_an_error_leaves_the_server_answering(server):
    started = time.monotonic()
    for opening in NESTED:
        for count in [30, 60, 5_000]:
            body = urllib.parse.urlencode({"query": "select " + opening * count})
            for path in ["/exec", "/exp", "/api/v1/sql/validate"]:
                status, _, answer = server.request("POST", path, body, {"Content-Type": "application/x-www-form-urlencoded"}, timeout=30)
                assert status == 400 and b"position" in answer, (status, answer[:300])
    assert time.monotonic() - started < 20
    assert server.value("select 1") == 1


def test_refused_sql_changes_nothing(server, table):
    server.exec(f"create table {table} (a int, ts timestamp) timestamp(ts) partition by day")
    for query in [f"insert into {table} values (1, '2024-01-01'), ('x', '2024-01-01')", f"insert into {table} values (1)",
                  f"insert into {table} (nosuch) values (1)", f"alter table {table} add column a int", f"create table {table} (b int)"]:
        with pytest.raises(SqlError) as caught:
            server.exec(query)
        assert caught.value.status == 400 and caught.value.answer["error"] and caught.value.answer["query"] == query
    assert server.count(table) == 0
    assert list(server.types(table)) == ["a", "ts"]
