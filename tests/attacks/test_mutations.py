"""Mutated messages over real sockets: the server stays up, answers, does not panic, and takes bounded memory.

Each day sends others, a quarter of 1,200 per protocol. `MUTATIONS=20000` sends so many, `MUTATION_SEED=2026-11-28` those
of a day.
"""

import gzip
import io
import json
import os
import random
import re
import socket
import struct
import time

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_inputs import peak_mib, reset_peak

MUTATIONS = int(os.environ.get("MUTATIONS", "300"))
SEED = os.environ.get("MUTATION_SEED") or time.strftime("%Y-%m-%d")
GROWTH_MIB_MAX = 512
# A client that says nothing more is answered or closed within this time.
PATIENCE_S = 20
NUMBERS = [0, 1, 2, 3, 7, 8, 16, 127, 128, 255, 256, 1023, 32767, 32768, 65535, 65536, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 32) - 1]


def mutated(rng, data):
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        at = rng.randrange(len(data) + 1)
        width = rng.choice([1, 2, 4, 4])
        kind = rng.randrange(8)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1 and at < len(data):
            data[at] = rng.choice(b"\0\x01\x7f\x80\xff \"'\\;=,:&%{}[]\r\n0")
        elif kind == 2:
            number = rng.choice(NUMBERS) & ((1 << 8 * width) - 1)
            data[at:at + width] = number.to_bytes(width, rng.choice(["big", "little"]))
        elif kind == 3:
            del data[at:at + rng.randrange(1, 20)]
        elif kind == 4:
            start = rng.randrange(len(data) + 1)
            data[at:at] = data[start:start + rng.randrange(1, 60)]
        elif kind == 5:
            data[at:at] = rng.randbytes(rng.randrange(1, 9))
        elif kind == 6:
            data[at:at] = bytes([rng.choice(b"\0\xff(\"[{0 ")]) * rng.choice([3, 100, 3000])
        else:
            del data[rng.randrange(len(data) + 1):]
        if not data:
            data = bytearray(b"\0")
    return bytes(data)


def exchange(port, data, is_whole=False):
    """What the server answers. After bytes that may be no whole request the client says that nothing follows."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as client:
        answer = b""
        try:
            client.sendall(data)
            if not is_whole:
                client.shutdown(socket.SHUT_WR)
            while piece := client.recv(65536):
                answer += piece
        except TimeoutError:
            raise
        except OSError:
            pass  # The server closed the connection before it read everything.
        return answer


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    from server import Server

    running = Server(tmp_path_factory.mktemp("server"), env={"TIDALITE_HTTP_BODY_TIMEOUT": "5s"}).start()
    yield running
    running.stop()


class Watched:
    """Sends mutations and looks after the server between them."""

    def __init__(self, server, name, allowed=None):
        self.server, self.rng = server, random.Random(f"{SEED} {name}")
        # A pattern for the places of panics that are caught.
        self.allowed = allowed
        server.rows("SELECT 1")
        self.before = reset_peak(server)
        self.log_start = server.log.stat().st_size

    def __iter__(self):
        for number in range(MUTATIONS):
            yield number
            if number % 100 == 99:
                self.check(number)
        self.check(MUTATIONS)

    def check(self, number):
        server, at = self.server, f"MUTATION_SEED={SEED}, before {number}"
        assert server.process.poll() is None, f"the server is gone, {at}:\n{server.log_tail()}"
        assert server.rows("SELECT 1 + 1") == [[2]]
        with psycopg.connect(host="127.0.0.1", port=server.pg_port, dbname="d", user="u", connect_timeout=20) as connection:
            assert connection.execute("SELECT %s + 1", [1]).fetchone() == (2,)
        log = server.log.read_bytes()[self.log_start:].decode(errors="replace")
        panics = [line for line in log.splitlines() if "a thread panicked" in line]
        unknown = [line for line in panics if not (self.allowed and re.search(f'location="[^"]*{self.allowed}', line))]
        assert not unknown, f"{at}: {unknown[0][:3000]}"
        assert peak_mib(server) < self.before + GROWTH_MIB_MAX, at


# The PostgreSQL protocol


def message(tag, *parts):
    body = b"".join(parts)
    return tag + struct.pack("!i", len(body) + 4) + body


STARTUP = message(b"", struct.pack("!i", 3 << 16), b"user\0u\0database\0d\0application_name\0x\0\0")
SYNC = message(b"S")
END = SYNC + message(b"X")


def field(value):
    return struct.pack("!i", -1) if value is None else struct.pack("!i", len(value)) + value


def bound(name, formats, values):
    formats = struct.pack(f"!h{len(formats)}h", len(formats), *formats)
    return b"\0" + name + b"\0" + formats + struct.pack("!h", len(values)) + b"".join(map(field, values)) + struct.pack("!hh", 1, 1)


def extended(sql, oids, formats, values):
    parse = b"s\0" + sql + b"\0" + struct.pack(f"!h{len(oids)}i", len(oids), *oids)
    return [(b"P", parse), (b"B", bound(b"s", formats, values)), (b"D", b"P\0"), (b"E", b"\0\0\0\0\x05"), (b"C", b"Ss\0"), (b"S", b"")]


def copy_rows():
    array = struct.pack("!iiiiiid", 1, 0, 701, 1, 1, 8, 1.5)
    row = struct.pack("!h", 4) + field(struct.pack("!q", 7)) + field(b"text \xc3\xa9") + field(struct.pack("!d", 2.5)) + field(array)
    return b"PGCOPY\n\xff\r\n\0" + bytes(8) + row + row + b"\xff\xff"


NUMERIC = struct.pack("!hhHhhhh", 3, 1, 0x4000, 2, 12, 3400, 5600)
LISTS = struct.pack("!iiiiiiiqiq", 1, 0, 20, 2, 1, 8, 0, 1, 8, 2)[:-12]
SESSIONS = [
    [(b"Q", b"SELECT x, x * 2.5, 'a' || x FROM generate_series(1, 3) t(x)\0")],
    extended(b"SELECT $1 + 1, $2::double precision, $3", [20, 701, 25], [1, 1, 0], [struct.pack("!q", 5), struct.pack("!d", 0.5), b"text"]),
    extended(b"SELECT $1, $2, $3, $4", [1700, 1114, 1186, 2950], [1], [NUMERIC, struct.pack("!q", 1 << 50), struct.pack("!qii", 5, 1, 2), bytes(16)]),
    extended(b"SELECT $1, $2, $3, $4, $5", [1022, 1082, 1083, 17, 16], [1], [struct.pack("!iiiiiid", 1, 0, 701, 1, 1, 8, 1.5), struct.pack("!i", 9), struct.pack("!q", 99), b"\0\xff", b"\x01"]),
    extended(b"SELECT $1, $2, $3", [1007, 1184, 0], [0], [b"{1,{2,NULL},\"a\"}", b"2024-01-02T03:04:05Z", b"x"]),
    [(b"Q", b"COPY copied FROM STDIN (FORMAT binary)\0"), (b"d", copy_rows()), (b"c", b"")],
    [(b"Q", b"COPY copied FROM STDIN (FORMAT csv)\0"), (b"d", b"1,a,2.5,\"{1,2}\"\n2,\"b\"\"\",,\n"), (b"c", b"")],
    [(b"Q", b"COPY copied FROM STDIN\0"), (b"d", b"1\ta\\tb\t2.5\t\\N\n\\.\n"), (b"f", b"no\0")],
]


def test_messages_of_postgresql(server):
    """Bodies with lengths that are right, and whole sessions of any bytes."""
    server.exec("CREATE TABLE IF NOT EXISTS copied (n BIGINT, k TEXT, v DOUBLE, a DOUBLE[])")
    watched = Watched(server, "pg")
    rng, answered = watched.rng, 0
    for number in watched:
        session = rng.choice(SESSIONS)
        startup = STARTUP
        if number % 3 == 0:
            startup, session = mutated(rng, startup + b"".join(message(*m) for m in session)), []
        elif number % 40 == 1:
            startup = message(b"", mutated(rng, startup[4:]))
        at = rng.randrange(len(session) + 1)
        messages = [message(tag, mutated(rng, body) if i == at or rng.random() < 0.2 else body) for i, (tag, body) in enumerate(session)]
        answer = exchange(server.pg_port, startup + b"".join(messages) + END)
        answered += answer.startswith(b"R")
        assert b"CXX000\0" not in answer, (number, messages, answer)
    assert answered > MUTATIONS / 2, "most sessions begin"


# HTTP


HEADS = [
    b"GET /exec?query=SELECT%201&limit=1,2&count=true HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n",
    b"POST /write?precision=ms&db=d HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 12\r\nConnection: close\r\n\r\nhead,a=b c=1",
    b"POST /api/v2/write?bucket=b&org=o HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nAuthorization: Token abc\r\nConnection: close\r\n\r\n5\r\nhead \r\n4\r\nc=1i\r\n0\r\n\r\n",
    b"POST /exec HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 20\r\nConnection: close\r\n\r\nquery=SELECT+1+%2B+2",
    b"POST /exec HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 24\r\nIdempotency-Key: k1\r\nConnection: close\r\n\r\n{\"query\": \"SELECT 1, 2\"}",
    b"GET /query?q=SHOW+DATABASES&epoch=ns HTTP/1.1\r\nHost: x\r\nOrigin: http://x\r\nSec-Fetch-Site: same-origin\r\nConnection: close\r\n\r\n",
    b"GET /exp?query=SELECT+1&fmt=parquet HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nUpgrade: websocket\r\nConnection: close\r\n\r\n",
    b"OPTIONS /chk?f=json&j=t HTTP/1.1\r\nHost: x\r\nAuthorization: Basic dTpw\r\nCookie: a=b\r\nConnection: close\r\n\r\n",
]


def status(answer):
    return int(answer[9:12]) if answer.startswith(b"HTTP/1.") else None


def test_heads_of_http(server):
    watched = Watched(server, "http")
    answered = 0
    for number in watched:
        request = mutated(watched.rng, watched.rng.choice(HEADS))
        code = status(exchange(server.http_port, request))
        answered += code is not None
        assert code != 500, (number, request)
    assert answered > MUTATIONS / 2, "most requests get an answer"


def post(server, path, body, headers=b""):
    head = b"POST %s HTTP/1.1\r\nHost: x\r\n%sContent-Length: %d\r\nConnection: close\r\n\r\n" % (path, headers, len(body))
    return exchange(server.http_port, head + body, is_whole=True)


def uploads():
    part = b"--x\r\nContent-Disposition: form-data; name=\"%s\"%s\r\n\r\n%s\r\n"
    schema = json.dumps([{"name": "a", "type": "SYMBOL"}, {"name": "t", "type": "TIMESTAMP", "pattern": "yyyy-MM-ddTHH:mm:ss"}, {"name": "v", "type": "DOUBLE"}])
    data = b"a,t,v\r\nx,2024-01-02T03:04:05,1.5\r\n\"y\"\"\",2024-01-02T03:04:06,-2e3\r\n"
    whole = part % (b"data", b"; filename=\"a;b.csv\"\r\nContent-Type: text/csv; charset=utf-8", data)
    return [part % (b"schema", b"", schema.encode()) + whole + b"--x--\r\n", whole + b"--x--\r\n"]


def test_uploads(server):
    """Forms with parts, their heads and schemas."""
    watched = Watched(server, "uploads")
    rng, forms = watched.rng, uploads()
    codes = set()
    for number in watched:
        body, kind = rng.choice(forms), b"multipart/form-data; boundary=\"x\""
        if number % 8 == 0:
            kind = bytes(b for b in mutated(rng, kind) if b >= 32)
        else:
            body = mutated(rng, body)
        path = b"/imp?name=up%d&fmt=json&overwrite=true%s" % (number % 5, rng.choice([b"", b"&skipLev=true", b"&atomicity=abort", b"&timestamp=t&partitionBy=DAY"]))
        answer = post(server, path, body, b"Content-Type: " + kind + b"\r\n")
        codes.add(status(answer))
        assert status(answer) not in (None, 500), (number, path, kind, body, answer)
    assert {200, 400} <= codes, codes


def test_compressed_bodies(server):
    """gzip of line protocol, and gzip, zstd and bzip-like magic numbers of uploads."""
    watched = Watched(server, "compressed")
    rng = watched.rng
    lines = b"\n".join(b"packed,host=h%d usage=%d.5,text=\"a b\" %d" % (i % 9, i, 1_700_000_000_000_000_000 + i) for i in range(200))
    table = b"a,b,t\n" + b"".join(b"%d,text %d,2024-01-02T03:04:%02dZ\n" % (i, i % 7, i % 60) for i in range(300))
    zstd = pa.compress(table, codec="zstd", asbytes=True)
    codes = set()
    for number in watched:
        if number % 2:
            body = mutated(rng, gzip.compress(lines) + (gzip.compress(b"packed usage=1") if number % 4 == 1 else b""))
            answer = post(server, b"/write", body, b"Content-Encoding: gzip\r\n")
        else:
            body = mutated(rng, rng.choice([zstd, zstd + zstd, gzip.compress(table)]))
            answer = post(server, b"/imp?name=pack%d&fmt=json&overwrite=true" % (number % 5), body)
        codes.add(status(answer))
        assert status(answer) not in (None, 500), (number, body, answer)
    assert 400 in codes and codes & {200, 204}, codes


def parquet(rng):
    rows = 50
    table = pa.table({
        "n": pa.array([i % 7 if i % 5 else None for i in range(rows)], pa.int64()),
        "t": pa.array([f"text {i % 4}" for i in range(rows)]).dictionary_encode(),
        "at": pa.array([1_700_000_000_000_000 + i for i in range(rows)], pa.timestamp("us")),
        "d": pa.array([i / 3 for i in range(rows)], pa.float64()),
        "l": pa.array([[1.0] * (i % 3) for i in range(rows)], pa.list_(pa.float64())),
        "b": pa.array([i % 2 == 0 for i in range(rows)]),
    })
    files = []
    for options in ({"compression": "snappy"}, {"compression": "zstd", "use_dictionary": False}, {"compression": "gzip", "data_page_version": "2.0"},
                    {"compression": "none", "use_dictionary": ["t"], "column_encoding": {"n": "DELTA_BINARY_PACKED", "at": "DELTA_BINARY_PACKED", "d": "BYTE_STREAM_SPLIT"}},
                    {"compression": "lz4", "row_group_size": 10, "write_page_index": True}, {"compression": "brotli"}):
        out = io.BytesIO()
        pq.write_table(table, out, **options)
        files.append(out.getvalue())
    return files


def test_parquet_files(server, tmp_path):
    """Files with mutated pages and footers, read in place.

    The decoder of the crate `parquet` panics for some of them: the statement fails as for any damaged file.
    """
    watched = Watched(server, "parquet", allowed=r"/(parquet|arrow[a-z-]*|bytes)-[0-9.]+/src/")
    rng, files, path = watched.rng, parquet(watched.rng), tmp_path / "bad.parquet"
    codes = set()
    for number in watched:
        whole = rng.choice(files)
        if number % 2:
            # Pages alone, so that the footer can be read.
            footer_at = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
            at, end = sorted(rng.randrange(4, footer_at) for _ in range(2))
            piece = mutated(rng, whole[at:end + 1])[:end + 1 - at].ljust(end + 1 - at, b"\0")
            bad = whole[:at] + piece + whole[end + 1:]
        else:
            bad = whole[:4] + mutated(rng, whole[4:-8]) + whole[-8:]
        path.write_bytes(bad)
        query = rng.choice(["SELECT sum(n), max(t), max(at), sum(d), count(l), count(b) FROM", "SELECT * FROM", "SELECT n FROM"])
        code, _, answer = server.request("GET", f"/exec?query={query} read_parquet('{path}')".replace(" ", "+"), timeout=PATIENCE_S)
        codes.add(code)
        assert code in (200, 400, 503), (number, query, answer)
    assert {200, 400} <= codes, codes
