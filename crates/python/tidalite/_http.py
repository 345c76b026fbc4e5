"""Requests to a server over connections that are kept."""

from __future__ import annotations

import base64
import http.client
import ssl
import threading
from typing import Any, Optional
from urllib.parse import unquote, urlsplit

from .errors import InterfaceError, OperationalError

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
        length: Optional[int] = None, timeout: Optional[float] = None,
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """Sends a request; the connection is given back by :meth:`release` when the answer was read to its end.

        A kept connection may have been closed by the server meanwhile: then, and only if nothing of an answer came, the
        request goes once more over a new one.

        :raises OSError, http.client.HTTPException: when it could not be sent or answered
        """
        headers = dict(self.headers)
        if content_type is not None:
            headers["Content-Type"] = content_type
        if length is not None:
            headers["Content-Length"] = str(length)
        connection = self._take()
        while True:
            is_kept = connection is not None
            if connection is None:
                connection = self._connect()
            if connection.sock is not None:
                connection.sock.settimeout(timeout or self.timeout)
            else:
                connection.timeout = timeout or self.timeout
            try:
                connection.request(method, path, body=body, headers=headers)
                return connection, connection.getresponse()
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                connection.close()
                connection = None
                if not is_kept:
                    raise
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
        with self._lock:
            return self._idle.pop() if self._idle else None

    def _connect(self) -> http.client.HTTPConnection:
        if self.tls is not None:
            return http.client.HTTPSConnection(self.host, self.port, timeout=self.timeout, context=self.tls)
        return http.client.HTTPConnection(self.host, self.port, timeout=self.timeout)

    def unreachable(self, error: BaseException) -> OperationalError:
        return OperationalError(f"no answer from {self.host}:{self.port}: {error or type(error).__name__}")


def tls_context(ca: Optional[str], verify: bool) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=ca)
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
