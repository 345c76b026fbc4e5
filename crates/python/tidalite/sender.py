"""Line protocol for any server that speaks it: Tidalite, QuestDB, InfluxDB."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import http.client
import json
import os
import random
import socket
import struct
import time
from types import TracebackType
from typing import Any, Iterator, Mapping, Optional, Sequence, Type, Union

from . import _native
from ._frames import as_stream, column_names
from ._http import Endpoint, new_key, tls_context
from ._outbox import Outbox
from ._times import has_nanoseconds, is_numpy_time, of_numpy
from .errors import DataError, Error, InterfaceError, OperationalError, ProgrammingError

Symbols = Union[None, bool, str, Sequence[str]]


class ServerTimestampType:
    """The time at which the server reads the row."""

    def __repr__(self) -> str:
        return "ServerTimestamp"


ServerTimestamp = ServerTimestampType()


class TimestampNanos:
    """Nanoseconds since 1970-01-01 UTC."""

    __slots__ = ("value",)

    def __init__(self, value: int) -> None:
        self.value = int(value)

    @staticmethod
    def now() -> "TimestampNanos":
        return TimestampNanos(time.time_ns())

    @staticmethod
    def from_datetime(value: dt.datetime) -> "TimestampNanos":
        return TimestampNanos(_micros(value) * 1000 + getattr(value, "nanosecond", 0))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value})"


class TimestampMicros:
    """Microseconds since 1970-01-01 UTC."""

    __slots__ = ("value",)

    def __init__(self, value: int) -> None:
        self.value = int(value)

    @staticmethod
    def now() -> "TimestampMicros":
        return TimestampMicros(time.time_ns() // 1000)

    @staticmethod
    def from_datetime(value: dt.datetime) -> "TimestampMicros":
        return TimestampMicros(_micros(value))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value})"


At = Union[None, ServerTimestampType, TimestampNanos, TimestampMicros, dt.datetime, str]

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)


def _micros(value: dt.datetime) -> int:
    if value.tzinfo is None:
        value = value.replace(tzinfo=dt.timezone.utc)
    return (value - _EPOCH) // dt.timedelta(microseconds=1)


class Buffer:
    """Rows as text, in memory."""

    def __init__(self, protocol_version: int = 2) -> None:
        self._native = _native.Buffer(protocol_version)

    @property
    def protocol_version(self) -> int:
        return self._native.protocol_version

    @property
    def rows(self) -> int:
        """Rows in it."""
        return self._native.rows

    def __len__(self) -> int:
        """Bytes in it."""
        return len(self._native)

    def __bytes__(self) -> bytes:
        return bytes(self._native)

    def clear(self) -> None:
        self._native.clear()

    def row(
        self, table_name: str, *, symbols: Optional[Mapping[str, Optional[str]]] = None,
        columns: Optional[Mapping[str, Any]] = None, at: At,
    ) -> "Buffer":
        """Adds one row, see :meth:`Sender.row`."""
        version = self.protocol_version
        nanos, suffix = _row_time(at, version)
        made = {name: _cell(name, value, version) for name, value in columns.items()} if columns else None
        self._native.row(table_name, dict(symbols) if symbols else None, made, nanos, suffix)
        return self

    def dataframe(
        self, df: Any, *, table_name: Optional[str] = None, table_name_col: Union[None, int, str] = None,
        symbols: Union[Symbols, Sequence[int]] = "auto", at: Union[At, int], threads: int = 1,
    ) -> "Buffer":
        """Adds the rows of a frame, see :meth:`Sender.dataframe`."""
        self._native.frame(**_frame_arguments(df, table_name, table_name_col, symbols, at), threads=threads)
        return self


def _row_time(at: At, version: int) -> tuple[Optional[int], str]:
    if at is None or isinstance(at, ServerTimestampType):
        return None, ""
    if isinstance(at, TimestampNanos):
        return at.value, "" if version == 1 else "n"
    if isinstance(at, TimestampMicros):
        return (at.value * 1000, "") if version == 1 else (at.value, "t")
    if isinstance(at, dt.datetime):
        if has_nanoseconds(at):
            return _row_time(TimestampNanos.from_datetime(at), version)
        return _row_time(TimestampMicros(_micros(at)), version)
    if is_numpy_time(at):
        time = _numpy_time(at)
        if time is None:
            raise DataError("the time of a row cannot be NULL")
        return _row_time(time, version)
    raise ProgrammingError(f"at is a {type(at).__name__}", hint="a datetime, TimestampNanos, TimestampMicros or ServerTimestamp")


def _numpy_time(value: Any) -> Union[None, TimestampMicros, TimestampNanos]:
    found = of_numpy(value)
    if found is None:
        return None
    time, unit = found
    return TimestampNanos(time.astype("int64")) if unit == "ns" else TimestampMicros(time.astype("int64"))


def _cell(name: str, value: Any, version: int) -> Any:
    """What is no bool, int, float, str or None, in its form on the line."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, TimestampNanos):
        return b"%dn" % value.value if version >= 2 else b"%dt" % (value.value // 1000)
    if isinstance(value, TimestampMicros):
        return b"%dt" % value.value
    if isinstance(value, dt.datetime):
        if value != value:  # NaT
            return None
        made = TimestampNanos if has_nanoseconds(value) else TimestampMicros
        return _cell(name, made.from_datetime(value), version)
    if isinstance(value, decimal.Decimal):
        if version < 3:
            raise DataError(f'column "{name}": decimals need version 3 of the protocol, this is {version}', column=name)
        return f"{value:f}d".encode() if value.is_finite() else None
    if is_numpy_time(value):
        try:
            return _cell(name, _numpy_time(value), version)
        except DataError as refused:
            raise DataError(f'column "{name}": {refused.message}', column=name) from None
    shape = getattr(value, "shape", None)
    if shape is not None and value.dtype.kind in "mM":
        raise DataError(f'column "{name}": values of type {value.dtype} have no form in line protocol', column=name)
    if shape:
        if version < 2:
            raise DataError(f'column "{name}": arrays need version 2 of the protocol, this is {version}', column=name)
        import numpy

        doubles = numpy.ascontiguousarray(value, dtype="<f8")
        head = struct.pack(f"<cBBB{len(shape)}I", b"=", 14, 10, len(shape), *shape)
        return head + doubles.tobytes()
    if hasattr(value, "item"):
        return value.item()
    if isinstance(value, (bool, int, float, str)):
        return value
    raise DataError(f'column "{name}": values of {type(value).__name__} have no form in line protocol', column=name)


def _frame_arguments(
    df: Any, table_name: Optional[str], table_name_col: Union[None, int, str],
    symbols: Union[Symbols, Sequence[int]], at: Union[At, int],
) -> dict[str, Any]:
    names = column_names(df)

    def named(column: Union[int, str]) -> str:
        if isinstance(column, int) and names is not None:
            try:
                return names[column]
            except IndexError:
                raise ProgrammingError(f"there is no column {column}, the frame has {len(names)}") from None
        return str(column)

    if table_name is None and table_name_col is None:
        table_name = getattr(getattr(df, "index", None), "name", None)
        if table_name is None:
            raise ProgrammingError("the table is not said", hint="table_name, table_name_col, or the name of the index")
    arguments: dict[str, Any] = {"frame": as_stream(df), "table": table_name}
    if table_name_col is not None:
        arguments["table_column"] = named(table_name_col)
    if isinstance(symbols, (list, tuple)):
        symbols = [named(symbol) for symbol in symbols]
    arguments["symbols"] = symbols
    if isinstance(at, (int, str)) and not isinstance(at, bool):
        arguments["at"] = named(at)
    elif isinstance(at, TimestampMicros):
        arguments["at_nanos"] = at.value * 1000
    elif isinstance(at, TimestampNanos):
        arguments["at_nanos"] = at.value
    elif isinstance(at, dt.datetime):
        arguments["at_nanos"] = TimestampNanos.from_datetime(at).value
    return arguments


#: What ``tls_ca`` may say besides the name of a file; the system's certificates are always trusted.
_NO_FILES = (None, "webpki_roots", "os_roots", "webpki_and_os_roots", "pem_file")

_SWITCH = {"on": True, "off": False, "true": True, "false": False}

#: Every key a configuration may have, with how its text is read.
_KEYS = {
    "addr": str, "username": str, "password": str, "token": str, "token_x": str, "token_y": str,
    "protocol_version": str, "auto_flush": str, "auto_flush_rows": str, "auto_flush_bytes": str,
    "auto_flush_interval": str, "retry_timeout": float, "request_timeout": float, "request_min_throughput": float,
    "tls_verify": str, "tls_ca": str, "tls_roots": str, "init_buf_size": int, "max_name_len": int, "bind_interface": str,
    "auth_timeout": float, "threads": int,
}


class Sender:
    """Sends rows as line protocol.

    ::

        with Sender.from_conf("http::addr=localhost:9000;") as sender:
            sender.row("trades", symbols={"symbol": "BTC-USD"}, columns={"price": 42000.5}, at=TimestampNanos.now())
            sender.dataframe(frame, table_name="trades", at="ts")

    Over HTTP what :meth:`flush` returns from is acknowledged by the server, and a request is tried again when the
    server is away (``retry_timeout``, 10 s). A request of which only the answer was lost is known again by a server of
    ours, as long as it runs; other servers, and one that was started again meanwhile, write it twice, unless the table
    has upsert keys. Over TCP there is no acknowledgement: errors come late, as broken connections.

    Configuration, ``protocol::key=value;key=value;`` with ``;;`` for a semicolon in a value:

    ========================  ==========================================================================
    http, https, tcp, tcps    the protocol
    addr                      host:port, or host: port 9000 for HTTP, 9009 for TCP
    username, password        HTTP; over TCP ``username`` and ``token`` are a key pair
    token                     HTTP: bearer; TCP: the private key
    protocol_version          1, 2, 3 or auto: what the server says over HTTP, 1 over TCP
    auto_flush                on (the default) or off
    auto_flush_rows           75000 over HTTP, 600 over TCP, or off
    auto_flush_bytes          off, or a number
    auto_flush_interval       milliseconds, 1000, or off; looked at when a row is added
    retry_timeout             milliseconds, 10000
    request_timeout           milliseconds, 10000, besides what ``request_min_throughput`` (102400 B/s) allows
    tls_verify, tls_ca        on or unsafe_off; a file of certificates
    threads                   that frames are turned into text by, 1
    ========================  ==========================================================================
    """

    def __init__(self, protocol: str, host: str, port: Union[int, str, None] = None, **settings: Any) -> None:
        if protocol not in ("http", "https", "tcp", "tcps"):
            raise InterfaceError(f"protocol {protocol!r} is not one of http, https, tcp, tcps")
        unknown = set(settings) - set(_KEYS)
        if unknown:
            raise InterfaceError(f"there is no setting {sorted(unknown)[0]!r}", hint=", ".join(sorted(_KEYS)))
        self._is_http, self._is_tls = protocol.startswith("http"), protocol.endswith("s")
        self._host, self._port = host, int(port or (9000 if self._is_http else 9009))
        self._settings = settings
        self._endpoint: Optional[Endpoint] = None
        self._socket: Optional[socket.socket] = None
        self._buffer: Optional[Buffer] = None
        self._transaction: Optional[str] = None
        self._is_closed = False
        self._oldest = 0.0
        #: Of frames.
        self._outbox: Optional[Outbox] = None
        on = _SWITCH.get(str(settings.get("auto_flush", "on")).lower(), True)
        self._flush_rows = self._limit("auto_flush_rows", 75_000 if self._is_http else 600) if on else None
        self._flush_bytes = self._limit("auto_flush_bytes", None) if on else None
        interval = self._limit("auto_flush_interval", 1000) if on else None
        self._flush_interval = None if interval is None else interval / 1000
        self._threads = int(settings.get("threads", 1))
        version = str(settings.get("protocol_version", "auto"))
        if version not in ("auto", "1", "2", "3"):
            raise InterfaceError(f"protocol_version {version!r} is not one of 1, 2, 3, auto")
        self._version = version

    @staticmethod
    def from_conf(conf_str: str, **settings: Any) -> "Sender":
        """A sender by its configuration; keywords add to it, and may not repeat it."""
        protocol, separator, rest = conf_str.partition("::")
        if not separator:
            raise InterfaceError(f"{conf_str!r} is no configuration", hint="http::addr=localhost:9000;")
        found: dict[str, Any] = {}
        for key, value in _pairs(rest):
            if key not in _KEYS:
                raise InterfaceError(f"there is no setting {key!r}", hint=", ".join(sorted(_KEYS)))
            if key in found:
                raise InterfaceError(f"setting {key!r} is there twice")
            found[key] = value
        for key, value in settings.items():
            if key in found:
                raise InterfaceError(f"setting {key!r} is in the configuration and an argument")
            found[key] = _SWITCHED.get(value, value) if isinstance(value, bool) else value
        if "addr" not in found:
            raise InterfaceError("the configuration has no addr")
        host, port = _address(str(found.pop("addr")))
        return Sender(protocol, host, port, **found)

    @staticmethod
    def from_env() -> "Sender":
        """A sender by the configuration in TIDALITE_CLIENT_CONF or QDB_CLIENT_CONF."""
        for name in ("TIDALITE_CLIENT_CONF", "QDB_CLIENT_CONF"):
            if name in os.environ:
                return Sender.from_conf(os.environ[name])
        raise InterfaceError("neither TIDALITE_CLIENT_CONF nor QDB_CLIENT_CONF is set")

    @property
    def protocol_version(self) -> int:
        return self._rows.protocol_version

    def new_buffer(self) -> Buffer:
        """A buffer of one's own, for :meth:`flush`."""
        return Buffer(self.protocol_version)

    def establish(self) -> None:
        """Connects. Entering the sender as a context does the same."""
        if self._is_closed:
            raise InterfaceError("the sender is closed")
        if self._buffer is not None:
            return
        settings = self._settings
        verify = str(settings.get("tls_verify", "on")) != "unsafe_off"
        ca = settings.get("tls_roots")
        if ca is None and settings.get("tls_ca") not in _NO_FILES:
            ca = settings["tls_ca"]
        if self._is_http:
            self._endpoint = Endpoint(
                self._host, self._port, is_tls=self._is_tls, user=settings.get("username"),
                password=settings.get("password"), token=settings.get("token"), tls_ca=ca, tls_verify=verify,
            )
        else:
            self._socket = self._connected(tls_context(ca, verify) if self._is_tls else None)
        version = self._negotiated() if self._version == "auto" else int(self._version)
        self._buffer = Buffer(version)

    def row(
        self, table_name: str, *, symbols: Optional[Mapping[str, Optional[str]]] = None,
        columns: Optional[Mapping[str, Any]] = None, at: At,
    ) -> "Sender":
        """Adds a row, and sends what is due.

        :param symbols: text by column, None to leave it out
        :param columns: None, bool, int, float (what NaN means is the server's to say), str, datetime, TimestampNanos, TimestampMicros,
            Decimal (version 3), numpy scalars and arrays (version 2)
        :param at: the time of the row: a datetime (without a zone: UTC), TimestampNanos, TimestampMicros or
            ServerTimestamp
        """
        if self._transaction is not None:
            raise ProgrammingError("rows of a transaction are added to the transaction")
        buffer = self._rows
        if not buffer.rows:
            self._oldest = time.monotonic()
        buffer.row(table_name, symbols=symbols, columns=columns, at=at)
        if self._is_due(buffer):
            self.flush()
        return self

    def dataframe(
        self, df: Any, *, table_name: Optional[str] = None, table_name_col: Union[None, int, str] = None,
        symbols: Union[Symbols, Sequence[int]] = "auto", at: Union[At, int],
    ) -> "Sender":
        """Adds the rows of a frame, and sends them in parts of at most ``auto_flush_rows``: the next part becomes text
        while the last one is on its way, and frames that come meanwhile go together. :meth:`flush` waits until all are
        acknowledged; what is wrong with rows that were on their way is raised by it, by :meth:`close`, or by whatever
        sends next, and the rows that waited behind them are dropped.

        :param df: pandas, polars, pyarrow, a dict of numpy arrays, or anything with ``__arrow_c_stream__``
        :param table_name_col: the column (or its number) with the name of each row's table
        :param symbols: columns that are tags: "auto" for categoricals and dictionaries, True for all text, False for
            none, or names or numbers of columns
        :param at: the column (or its number) with the time of the rows, or one time for all of them
        """
        if self._transaction is not None:
            raise ProgrammingError("frames of a transaction are added to the transaction")
        arguments = _frame_arguments(df, table_name, table_name_col, symbols, at)
        buffer = self._rows
        if self._flush_rows is None and self._flush_bytes is None:
            buffer._native.frame(**arguments, threads=self._threads)
            return self
        lines = _native.Lines(buffer.protocol_version, **arguments)
        # What was added before goes before.
        if buffer.rows:
            self.flush()
        if self._outbox is None:
            self._outbox = Outbox(self._send)
        while (pieces := lines.next(self._flush_rows or 75_000, self._threads)) is not None:
            self._outbox.put(pieces)
        return self

    def transaction(self, table_name: str) -> "SenderTransaction":
        """Rows of one table that are sent as one request: all or none of them. Only over HTTP."""
        if not self._is_http:
            raise InterfaceError("transactions need HTTP")
        return SenderTransaction(self, table_name)

    def flush(self, buffer: Optional[Buffer] = None, clear: bool = True, transactional: bool = False) -> None:
        """Sends what is in the buffer, the sender's own unless one is given, when all that went before has arrived.

        When it cannot be sent over HTTP it stays in the buffer.
        """
        if self._transaction is not None and buffer is None:
            raise ProgrammingError("a transaction is open")
        if self._outbox is not None:
            self._outbox.arrived()
        native = (buffer if buffer is not None else self._rows)._native
        rows = native.rows
        pieces = native.take()
        if not pieces:
            return
        try:
            self._send(pieces)
        except BaseException:
            native.put_back(pieces, rows)
            raise
        if not clear:
            native.put_back(pieces, rows)

    def close(self, flush: bool = True) -> None:
        """Sends what is left, unless told not to, and disconnects."""
        if self._is_closed:
            return
        try:
            if flush and self._buffer is not None and self._transaction is None:
                self.flush()
        finally:
            self._is_closed = True
            if self._outbox is not None:
                self._outbox.close()
            if self._endpoint is not None:
                self._endpoint.close()
            if self._socket is not None:
                try:
                    self._socket.shutdown(socket.SHUT_WR)
                except OSError:
                    pass
                self._socket.close()

    def __len__(self) -> int:
        """Bytes not sent yet."""
        return 0 if self._buffer is None else len(self._buffer)

    def __bytes__(self) -> bytes:
        return b"" if self._buffer is None else bytes(self._buffer)

    def __enter__(self) -> "Sender":
        self.establish()
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType],
    ) -> None:
        self.close(flush=kind is None)

    @property
    def _rows(self) -> Buffer:
        if self._is_closed:
            raise InterfaceError("the sender is closed")
        if self._buffer is None:
            raise InterfaceError("the sender is not connected", hint="with Sender.from_conf(…) as sender:")
        return self._buffer

    def _limit(self, name: str, default: Optional[int]) -> Optional[int]:
        value = self._settings.get(name, default)
        if value is None or str(value).lower() == "off" or value is False:
            return None
        try:
            return int(value)
        except (TypeError, ValueError):
            raise InterfaceError(f"setting {name} is {value!r}; allowed is a number or off") from None

    def _is_due(self, buffer: Buffer) -> bool:
        if self._flush_rows is not None and buffer.rows >= self._flush_rows:
            return True
        if self._flush_bytes is not None and len(buffer) >= self._flush_bytes:
            return True
        return self._flush_interval is not None and time.monotonic() - self._oldest >= self._flush_interval

    def _negotiated(self) -> int:
        """The newest version of the protocol that both sides know."""
        if self._endpoint is None:
            return 1
        deadline = time.monotonic() + float(self._settings.get("retry_timeout", 10_000)) / 1000
        for pause in _pauses():
            try:
                connection, response = self._endpoint.request("GET", "/settings", timeout=10)
                answer = response.read()
            except (OSError, http.client.HTTPException) as error:
                if time.monotonic() + pause > deadline:
                    raise self._endpoint.unreachable(error) from error
                time.sleep(pause)
                continue
            self._endpoint.release(connection)
            if response.status != 200:
                return 1
            try:
                config = json.loads(answer).get("config", {})
            except (ValueError, AttributeError):
                return 1
            known = [v for v in config.get("line.proto.support.versions", [1]) if v in (1, 2, 3)]
            return max(known, default=1)
        raise AssertionError("the pauses never end")

    def _connected(self, tls: Any) -> socket.socket:
        try:
            connection = socket.create_connection((self._host, self._port), timeout=15)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if tls is not None:
                connection = tls.wrap_socket(connection, server_hostname=self._host)
            if "token" in self._settings:
                self._authenticate(connection)
            connection.settimeout(None)
            return connection
        except OSError as error:
            raise OperationalError(f"no connection to {self._host}:{self._port}: {error}") from error

    def _authenticate(self, connection: socket.socket) -> None:
        """Signs what the server asks to be signed."""
        key = {name: str(self._settings.get(name, "")) for name in ("username", "token", "token_x", "token_y")}
        missing = [name for name, value in key.items() if not value]
        if missing:
            raise InterfaceError(f"authentication over TCP needs {missing[0]}")
        connection.sendall(key["username"].encode() + b"\n")
        challenge = b""
        while not challenge.endswith(b"\n"):
            piece = connection.recv(4096)
            if not piece:
                raise OperationalError("the server refused the user")
            challenge += piece
        secret, x, y = (_unpadded(key[name]) for name in ("token", "token_x", "token_y"))
        signature = _native.sign(challenge[:-1], secret, x, y)
        connection.sendall(base64.b64encode(signature) + b"\n")

    def _send(self, pieces: list[_native.Piece]) -> None:
        if self._socket is not None:
            try:
                for piece in pieces:
                    self._socket.sendall(piece)
            except OSError as error:
                raise OperationalError(f"the connection to {self._host}:{self._port} broke: {error}") from error
            return
        endpoint = self._endpoint
        if endpoint is None:
            raise InterfaceError("the sender is not connected")
        size = sum(map(len, pieces))
        timeout = float(self._settings.get("request_timeout", 10_000)) / 1000
        throughput = float(self._settings.get("request_min_throughput", 102_400))
        timeout += size / throughput if throughput > 0 else 0
        deadline = time.monotonic() + float(self._settings.get("retry_timeout", 10_000)) / 1000
        # The same for every try: a server of ours that has written the rows does not write them again.
        key = new_key()
        for pause in _pauses():
            failed: Error
            try:
                connection, response = endpoint.request(
                    "POST", "/write?precision=n", body=pieces, content_type="text/plain; charset=utf-8", length=size,
                    timeout=timeout, key=key,
                )
                answer = response.read()
                endpoint.release(connection)
                if 200 <= response.status < 300:
                    return
                failed = _refused(response.status, answer)
                if response.status not in _RETRIED:
                    raise failed
            except (OSError, http.client.HTTPException) as error:
                failed = endpoint.unreachable(error)
            if time.monotonic() + pause > deadline:
                raise failed
            time.sleep(pause)


#: Statuses after which the same request may succeed.
_RETRIED = {500, 503, 504, 507, 509, 523, 524, 529, 599}
_SWITCHED = {True: "on", False: "off"}


def _pauses() -> Iterator[float]:
    """Seconds between two tries: from 10 ms doubling to one second, with some chance in it."""
    pause = 0.01
    while True:
        yield pause + random.uniform(0, pause)
        pause = min(pause * 2, 1.0)


def _refused(status: int, answer: bytes) -> Error:
    try:
        fields = json.loads(answer)
        message = str(fields["message"])
        line = fields.get("line")
    except (ValueError, KeyError, TypeError):
        message, line = answer.decode("utf-8", "replace").strip()[:500] or f"the server says {status}", None
    if status in (401, 403):
        return OperationalError(f"the server refused the credentials: {message}")
    if 400 <= status < 500:
        return DataError(message, row=line - 1 if isinstance(line, int) and line > 0 else None)
    return OperationalError(message)


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """``key=value;`` pairs, with ``;;`` for a semicolon in a value."""
    at = 0
    while at < len(text):
        equals = text.find("=", at)
        if equals < 0:
            raise InterfaceError(f"{text[at:]!r} in the configuration is no key=value;")
        value, end = [], equals + 1
        while end < len(text):
            if text[end] == ";":
                if text[end + 1:end + 2] != ";":
                    break
                end += 1
            value.append(text[end])
            end += 1
        yield text[at:equals], "".join(value)
        at = end + 1


def _address(text: str) -> tuple[str, Optional[str]]:
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        return host, rest.lstrip(":") or None
    host, _, port = text.partition(":")
    return host, port or None


def _unpadded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class SenderTransaction:
    """Rows of one table, sent as one request when the context ends well, thrown away when it does not."""

    def __init__(self, sender: Sender, table_name: str) -> None:
        self._sender, self._table = sender, table_name
        self._buffer: Optional[Buffer] = None

    def row(
        self, *, symbols: Optional[Mapping[str, Optional[str]]] = None, columns: Optional[Mapping[str, Any]] = None, at: At,
    ) -> "SenderTransaction":
        self._open.row(self._table, symbols=symbols, columns=columns, at=at)
        return self

    def dataframe(
        self, df: Any, *, symbols: Union[Symbols, Sequence[int]] = "auto", at: Union[At, int],
    ) -> "SenderTransaction":
        self._open.dataframe(df, table_name=self._table, symbols=symbols, at=at, threads=self._sender._threads)
        return self

    def commit(self) -> None:
        buffer, self._buffer = self._open, None
        self._sender._transaction = None
        self._sender.flush(buffer)

    def rollback(self) -> None:
        self._buffer, self._sender._transaction = None, None

    @property
    def _open(self) -> Buffer:
        if self._buffer is None:
            raise ProgrammingError("the transaction has ended")
        return self._buffer

    def __enter__(self) -> "SenderTransaction":
        if self._sender._transaction is not None:
            raise ProgrammingError("a transaction is open already")
        self._sender.flush()
        self._buffer, self._sender._transaction = self._sender.new_buffer(), self._table
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType],
    ) -> None:
        if self._buffer is None:
            return
        if kind is None:
            self.commit()
        else:
            self.rollback()
