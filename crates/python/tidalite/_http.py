"""Requests to a server over connections that are kept."""

from __future__ import annotations

import base64
import http.client
import os
import select
import socket
import ssl
import threading
from typing import Any, Optional
from urllib.parse import unquote, urlsplit

from .errors import InterfaceError, OperationalError

#: How a connection breaks that the other side has closed, or that a restart took away.
_BROKEN = (
    http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError, ConnectionAbortedError, ssl.SSLEOFError,
    ssl.SSLZeroReturnError,
)

#: Schemes and whether they are encrypted.
SCHEMES = {"tidalite": False, "tidalites": True, "http": False, "https": True}
PORT = 9000


class Endpoint:
    """Where a server is, and how to show oneself to it. Threads may share it."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        is_tls: bool = False,
        user: Optional[str] = None,
        password: Optional[str] = None,
        token: Optional[str] = None,
        tls_ca: Optional[str] = None,
        tls_verify: bool = True,
        timeout: float = 600.0,
    ) -> None:
        self.host, self.port, self.is_tls, self.timeout = host, port, is_tls, timeout
        self.headers = {"User-Agent": "tidalite-python"}
        if token is not None:
            self.headers["Authorization"] = f"Bearer {token}"
        elif user is not None:
            pair = f"{user}:{password or ''}".encode()
            self.headers["Authorization"] = "Basic " + base64.b64encode(pair).decode()
        self.tls = tls_context(tls_ca, tls_verify) if is_tls else None
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()

    @staticmethod
    def of_url(url: str, **settings: Any) -> "Endpoint":
        parts = urlsplit(url if "://" in url else f"tidalite://{url}")
        if parts.scheme not in SCHEMES or not parts.hostname:
            raise InterfaceError(f"{url!r} is no address of a server", hint="tidalite://host:port, tidalites:// for TLS")
        settings.setdefault("user", None)
        if settings["user"] is None and parts.username is not None:
            settings["user"], settings["password"] = unquote(parts.username), unquote(parts.password or "")
        return Endpoint(parts.hostname, parts.port or PORT, is_tls=SCHEMES[parts.scheme], **settings)

    def request(
        self, method: str, path: str, body: Any = None, content_type: Optional[str] = None,
        length: Optional[int] = None, timeout: Optional[float] = None, key: Optional[str] = None,
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """Sends a request; the connection is given back by :meth:`release` when the answer was read to its end.

        When the connection breaks before anything of an answer came, the request goes once more over a new one, if it
        may: it was not sent whole, or it is a GET, or it has a key by which the server knows it again.

        :param body: bytes, or a list of them
        :param key: sent as ``Idempotency-Key``, see :func:`new_key`
        :raises OSError, http.client.HTTPException: when it could not be sent or answered
        """
        headers = dict(self.headers)
        if content_type is not None:
            headers["Content-Type"] = content_type
        if length is not None:
            headers["Content-Length"] = str(length)
        if key is not None:
            headers["Idempotency-Key"] = key
        connection, is_second = self._take(), False
        while True:
            is_sent = False
            if connection is None:
                connection = self._connect()
            if connection.sock is not None:
                connection.sock.settimeout(timeout or self.timeout)
            else:
                connection.timeout = timeout or self.timeout
            try:
                connection.request(method, path, body=body, headers=headers)
                is_sent = True
                return connection, connection.getresponse()
            except _BROKEN:
                connection.close()
                connection = None
                if is_second or (is_sent and method != "GET" and key is None):
                    raise
                is_second = True
            except BaseException:
                connection.close()
                raise

    def release(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            self._idle.append(connection)

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _take(self) -> Optional[http.client.HTTPConnection]:
        """A connection that was kept, and that the server has not closed meanwhile."""
        while True:
            with self._lock:
                if not self._idle:
                    return None
                connection = self._idle.pop()
            if _is_open(connection):
                return connection
            connection.close()

    def _connect(self) -> http.client.HTTPConnection:
        if self.tls is not None:
            return http.client.HTTPSConnection(self.host, self.port, timeout=self.timeout, context=self.tls)
        return http.client.HTTPConnection(self.host, self.port, timeout=self.timeout)

    def unreachable(self, error: BaseException) -> OperationalError:
        return OperationalError(f"no answer from {self.host}:{self.port}: {error or type(error).__name__}")


def new_key() -> str:
    """For one request and its repetitions: the server does what has the same key once."""
    return os.urandom(16).hex()


def stop_reading(connection: http.client.HTTPConnection) -> None:
    """Ends what another thread waits for on a connection; closing it alone would leave that thread waiting."""
    sock = connection.sock
    if sock is not None:
        try:
            socket.socket.shutdown(sock, socket.SHUT_RDWR)
        except OSError:
            pass


def _is_open(connection: http.client.HTTPConnection) -> bool:
    """Whether nothing came on a connection that nothing was asked on: it would be its end."""
    if connection.sock is None:
        return False
    if not hasattr(select, "poll"):
        return not select.select([connection.sock], [], [], 0)[0]
    poll = select.poll()
    poll.register(connection.sock, select.POLLIN | select.POLLHUP | select.POLLERR)
    return not poll.poll(0)


def tls_context(ca: Optional[str], verify: bool) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=ca)
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
