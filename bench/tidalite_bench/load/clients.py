"""Small asyncio clients of HTTP, the PostgreSQL protocol and line protocol over TCP.

They are minimal, because the load generator shares its processors with the server. Each client has at most one request in flight.
"""

import asyncio
import struct
import time
from urllib.parse import quote

TIMEOUT_S = 60


class Gone(Exception):
    """The server closed the connection."""


class Refused(Exception):
    """The server answered with an error."""


def http_request(method, path, body=b""):
    length = f"Content-Length: {len(body)}\r\n" if method == "POST" else ""
    return f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{length}\r\n".encode() + body


def http_answer(data):
    """(status, body) of a complete answer, None of an incomplete one."""
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return None
    status, head, body = int(data[9:12]), bytes(data[:end]).lower(), data[end + 4:]
    if status == 204:
        return status, b""
    if b"\r\ntransfer-encoding: chunked" in head:
        content = unchunked(body)
        return None if content is None else (status, content)
    length = int(head.split(b"\r\ncontent-length:", 1)[1].split(b"\r\n", 1)[0])
    return (status, bytes(body)) if len(body) >= length else None


def unchunked(body):
    """The content of a body in chunks, None of an incomplete one."""
    content, at = bytearray(), 0
    while (end := body.find(b"\r\n", at)) >= 0:
        size = int(body[at:end], 16)
        if end + 4 + size > len(body):
            return None
        if size == 0:
            return bytes(content)
        content += body[end + 2:end + 2 + size]
        at = end + 4 + size
    return None


def pg_startup(user="load"):
    body = struct.pack("!i", 3 << 16) + b"user\0" + user.encode() + b"\0database\0tidalite\0\0"
    return struct.pack("!i", len(body) + 4) + body


def pg_message(kind, body):
    return kind + struct.pack("!i", len(body) + 4) + body


def pg_query(sql):
    return pg_message(b"Q", sql.encode() + b"\0")


def pg_prepare(name, sql):
    return pg_message(b"P", name.encode() + b"\0" + sql.encode() + b"\0" + struct.pack("!h", 0)) + pg_message(b"S", b"")


def pg_execute(name, value):
    """Binds one text parameter to a prepared statement and executes it."""
    text = value.encode()
    bind = b"\0" + name.encode() + b"\0" + struct.pack("!hhi", 0, 1, len(text)) + text + struct.pack("!h", 0)
    return pg_message(b"B", bind) + pg_message(b"E", b"\0" + struct.pack("!i", 0)) + pg_message(b"S", b"")


def pg_answer(data):
    """(rows, error text or None) of an answer up to ReadyForQuery, None of an incomplete one."""
    at, rows, error = 0, 0, None
    while at + 5 <= len(data):
        kind, (length,) = data[at], struct.unpack_from("!i", data, at + 1)
        end = at + 1 + length
        if end > len(data):
            return None
        if kind == ord("D"):
            rows += 1
        elif kind == ord("E"):
            fields = bytes(data[at + 5:end]).split(b"\0")
            error = " ".join(f[1:].decode(errors="replace") for f in fields if f[:1] in (b"C", b"M"))
        elif kind == ord("Z"):
            return rows, error
        at = end
    return None


class Client(asyncio.Protocol):
    """A connection with at most one request in flight; subclasses decide when an answer is complete."""

    def __init__(self):
        self.data, self.waiter, self.transport, self.closed = bytearray(), None, None, None
        self.writable = asyncio.Event()
        self.writable.set()
        # Called when the connection is lost while no request is in flight.
        self.on_loss = None

    @classmethod
    async def connect(cls, port):
        _, client = await asyncio.get_running_loop().create_connection(cls, "127.0.0.1", port)
        return client

    def connection_made(self, transport):
        self.transport, self.closed = transport, asyncio.get_running_loop().create_future()

    def connection_lost(self, error):
        self.writable.set()
        self.closed.set_result(error)
        if self.waiter and not self.waiter.done():
            self.waiter.set_exception(Gone(f"connection closed by the server: {error or 'end of stream'}"))
        elif self.on_loss:
            self.on_loss(error or "end of stream")

    def pause_writing(self):
        self.writable.clear()

    def resume_writing(self):
        self.writable.set()

    def answer(self):
        """The answer in `data`, None while it is incomplete."""
        raise NotImplementedError

    def data_received(self, data):
        self.data += data
        if self.waiter and not self.waiter.done():
            answer = self.answer()
            if answer is not None:
                self.data.clear()
                self.waiter.set_result(answer)

    async def ask(self, request):
        if self.closed.done():
            raise Gone("connection closed by the server")
        self.waiter = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        try:
            return await asyncio.wait_for(self.waiter, TIMEOUT_S)
        except TimeoutError:
            raise Refused(f"no answer within {TIMEOUT_S} s") from None
        finally:
            self.waiter = None

    def close(self):
        self.on_loss = None
        self.transport.close()


class HttpClient(Client):
    def answer(self):
        return http_answer(self.data)

    async def run(self, sql):
        """Runs a statement by /exec and returns the body; raises `Refused` if the answer is an error."""
        status, body = await self.ask(http_request("GET", "/exec?query=" + quote(sql)))
        if status != 200 or b'"error":' in body[-2000:]:
            raise Refused(f"HTTP {status}: {body[-300:].decode(errors='replace')}")
        return body


class PgClient(Client):
    @classmethod
    async def connect(cls, port):
        client = await super().connect(port)
        await client.run_bytes(pg_startup())
        return client

    def answer(self):
        return pg_answer(self.data)

    async def run_bytes(self, request):
        rows, error = await self.ask(request)
        if error:
            raise Refused(error)
        return rows

    async def run(self, sql):
        return await self.run_bytes(pg_query(sql))


class LineClient(Client):
    """Line protocol over TCP: the server never answers, it only closes."""

    def answer(self):
        return None

    async def send(self, lines):
        if self.closed.done():
            raise Gone("connection closed by the server")
        self.transport.write(lines)
        try:
            await asyncio.wait_for(self.writable.wait(), TIMEOUT_S)
        except TimeoutError:
            raise Refused(f"the server read nothing for {TIMEOUT_S} s") from None

    async def finish(self):
        """Ends the stream and waits until the server has taken all lines and closes its side."""
        self.on_loss = None
        self.transport.write_eof()
        try:
            error = await asyncio.wait_for(asyncio.shield(self.closed), TIMEOUT_S)
        except TimeoutError:
            raise Refused(f"the server did not close the connection within {TIMEOUT_S} s after the end of the stream") from None
        if error:
            raise Gone(f"connection closed by the server: {error}")


async def until(moment):
    """Waits for a moment of `time.monotonic`, a clock that all processes share."""
    delay = moment - time.monotonic()
    if delay > 0:
        await asyncio.sleep(delay)
