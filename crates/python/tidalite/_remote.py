"""A server, over HTTP."""

from __future__ import annotations

import http.client
import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Optional
from urllib.parse import urlencode

from . import _native
from ._database import Database, Symbols
from ._frames import as_stream
from ._http import Endpoint, new_key, stop_reading
from ._parameters import as_json
from ._result import Answer
from .errors import OperationalError, of_kind

_ARROW = "application/vnd.apache.arrow.stream"
_FORM, _FRAMES = "application/x-www-form-urlencoded", "application/vnd.tidalite.frames"
#: Of an answer that is read at a time, and of a request that rows are sent in.
_READ_BYTES, _BODY_BYTES = 4 << 20, 32 << 20
#: Of a commit at most.
_COMMIT_BYTES = 512 << 20

_STATUS_KINDS = {401: "unavailable", 403: "unavailable", 404: "interface", 413: "data", 503: "unavailable"}


class RemoteDatabase(Database):
    """A server, connected to by :func:`tidalite.connect`."""

    def __init__(
        self,
        url: str,
        *,
        user: Optional[str],
        password: Optional[str],
        token: Optional[str],
        tls_ca: Optional[str],
        tls_verify: bool,
        timeout: Optional[float],
        request_timeout: float,
    ) -> None:
        self._endpoint = Endpoint.of_url(
            url, user=user, password=password, token=token, tls_ca=tls_ca, tls_verify=tls_verify,
            timeout=request_timeout,
        )
        self._timeout = timeout
        self._closed = False
        #: Registered: name, column of the time, and the frame as it is sent, by the name in lower case.
        self._frames: dict[str, tuple[str, Optional[str], bytes]] = {}

    def register(self, name: str, frame: Any, *, at: Optional[str] = None, keep_nan: bool = False) -> None:
        """Gives a frame a name that statements of this connection may use as a table; it hides a table of that name.

        The frame is copied now, and sent along with each statement in which its name occurs: it should be small.

        :param at: the column that is the time of the rows, for SAMPLE BY, LATEST ON, ASOF JOIN
        :param keep_nan: NaN of pandas' numpy columns stays NaN instead of being NULL
        """
        encoder = _native.IpcEncoder(as_stream(frame, keep_nan=keep_nan, mark_nan=False), _COMMIT_BYTES)
        body = encoder.next()
        if encoder.next() is not None:
            raise of_kind("data", "the frame is larger than one request may be", hint="write it to a table")
        before = self._frames.copy()
        self._frames = {**before, name.lower(): (name, at, body)}
        try:
            # What is wrong with it is said here.
            self.sql('select 1 from "{}" limit 0'.format(name.replace('"', '""')))
        except BaseException:
            self._frames = before
            raise

    def unregister(self, name: str) -> bool:
        """Forgets a registered frame; says whether there was one."""
        return self._frames.pop(name.lower(), None) is not None

    def close(self) -> None:
        self._closed = True
        self._endpoint.close()

    def _execute(self, sql: str, values: list[tuple[Any, ...]], timeout: Optional[float]) -> Answer:
        fields = {"query": sql, "fmt": "arrow"}
        if values:
            fields["params"] = json.dumps(as_json(values))
        timeout = self._timeout if timeout is None else timeout
        if timeout is not None:
            fields["timeout"] = f"{max(1, round(timeout * 1000))}ms"
        frames = [frame for name, frame in self._frames.items() if re.search(re.escape(name), sql, re.IGNORECASE)]
        if frames:
            fields["frames"] = json.dumps([(name, at, len(frame)) for name, at, frame in frames])
        body, kind = urlencode(fields).encode(), _FORM
        if frames:
            body, kind = b"".join([len(body).to_bytes(4, "little"), body, *(frame for *_, frame in frames)]), _FRAMES
        connection, response = self._request("/exec", body, kind)
        if response.status != 200:
            raise _refused(self._read(connection, response), response.status, sql)
        if response.getheader("Content-Type") == _ARROW:
            return Answer.of_rows(RemoteRows(self, connection, response))
        done = json.loads(self._read(connection, response))
        return Answer.done(done.get("tag", "OK"), done.get("rows", 0))

    def _write(
        self, table: str, stream: Any, at: Optional[str], symbols: Symbols, partition_by: str, atomic: bool,
    ) -> int:
        fields = {"table": table, "partition_by": partition_by}
        if at is not None:
            fields["at"] = at
        if symbols is not None:
            named = [symbols] if isinstance(symbols, str) and symbols != "auto" else symbols
            fields["symbols"] = json.dumps(named if isinstance(named, (bool, str)) else list(named))
        encoder = _native.IpcEncoder(stream, _COMMIT_BYTES if atomic else _BODY_BYTES)
        if atomic:
            body = encoder.next()
            if encoder.next() is not None:
                raise of_kind("data", "the rows are more than one commit may have", hint="leave atomic out")
            self._post("/write/arrow?" + urlencode(fields), body)
            return encoder.rows
        # The next rows are encoded while the last ones are on their way; never more, so that they arrive in order.
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="tidalite-write") as sending:
            first_row, last = 0, None
            while True:
                try:
                    body = encoder.next()
                except BaseException:
                    # What is on its way was there first, and so is its error.
                    if last is not None:
                        last.result()
                    raise
                if last is not None:
                    last.result()
                if body is None:
                    return encoder.rows
                fields["first_row"] = str(first_row)
                last = sending.submit(self._post, "/write/arrow?" + urlencode(fields), body)
                first_row = encoder.rows

    def _post(self, path: str, body: bytes) -> None:
        connection, response = self._request(path, body, _ARROW)
        answer = self._read(connection, response)
        if response.status != 200:
            raise _refused(answer, response.status, None, invalid="data")

    def _request(self, path: str, body: bytes, content_type: str) -> Any:
        if self._closed:
            raise of_kind("interface", "the connection is closed")
        try:
            return self._endpoint.request("POST", path, body, content_type, key=new_key())
        except (OSError, http.client.HTTPException) as error:
            raise self._endpoint.unreachable(error) from error

    def _read(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> bytes:
        try:
            answer = response.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise self._endpoint.unreachable(error) from error
        self._endpoint.release(connection)
        return answer

    def __repr__(self) -> str:
        scheme = "tidalites" if self._endpoint.is_tls else "tidalite"
        return f"<tidalite.connect('{scheme}://{self._endpoint.host}:{self._endpoint.port}')>"


class RemoteRows:
    """The rows of an answer, read as they come. Closing it before its end stops the query on the server."""

    def __init__(
        self, database: RemoteDatabase, connection: http.client.HTTPConnection, response: http.client.HTTPResponse,
    ) -> None:
        self._database, self._connection, self._response = database, connection, response
        self._decoder = _native.IpcDecoder()
        self._ahead: list[Any] = []
        self._ended = False
        self._closed = False
        self._schema: Any = None
        while self._schema is None and not self._ended:
            self._pull()
        if self._schema is None:
            raise OperationalError("the answer ended before its first byte")
        self.columns: list[tuple[str, str]] = self._schema.sql_types()

    def next_batch(self) -> Any:
        while not self._ahead and (self._closed or not self._ended):
            self._pull()
        return self._ahead.pop(0) if self._ahead else None

    def collect(self) -> Any:
        while self._closed or not self._ended:
            self._pull()
        ahead, self._ahead = self._ahead, []
        return self._schema.joined(ahead)

    def peek(self, count: int) -> Any:
        while not self._ended and sum(table.num_rows for table in self._ahead) < count:
            self._pull()
        return self._schema.joined(self._ahead)

    def close(self) -> None:
        self._closed = True
        if not self._ended:
            stop_reading(self._connection)
            self._give_up()
        self._ahead = []

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return _native.stream(self._schema, self.next_batch, requested_schema)

    def _give_up(self) -> None:
        self._ended = True
        self._connection.close()

    def _pull(self) -> None:
        try:
            piece = b"" if self._closed else self._response.read1(_READ_BYTES)
        except (OSError, http.client.HTTPException, AttributeError, ValueError) as error:
            self._give_up()
            if self._closed:
                raise of_kind("interface", "the result is closed") from None
            raise OperationalError(f"the answer broke off: {error or type(error).__name__}") from error
        except BaseException:
            self._give_up()
            raise
        if self._closed:
            raise of_kind("interface", "the result is closed")
        if piece:
            self._decoder.feed(piece)
        else:
            self._ended = True
            self._decoder.finish()
            self._database._endpoint.release(self._connection)
        table = self._decoder.take()
        if table is not None:
            if self._schema is None:
                self._schema = table.head(0)
            if table.num_rows:
                self._ahead.append(table)

    def __del__(self) -> None:
        if not getattr(self, "_ended", True):
            self._connection.close()


def _refused(answer: bytes, status: int, sql: Optional[str], invalid: str = "invalid") -> Exception:
    """The exception for an answer that is none."""
    kind = invalid if status == 400 else _STATUS_KINDS.get(status, "internal")
    try:
        fields = json.loads(answer)
    except ValueError:
        text = answer.decode("utf-8", "replace").strip()
        return of_kind(kind, f"the server says {status}: {text[:500]}")
    message = str(fields.get("error") or fields.get("message") or f"the server says {status}")
    message, _, hint = message.partition("; hint: ")
    details = {"hint": fields.get("hint") or hint or None, "column": fields.get("column"), "row": fields.get("row")}
    if fields.get("code") in ("not found", "conflict"):
        kind = fields["code"]
    if sql is not None and fields.get("position"):
        details.update(sql=sql, position=fields["position"])
    return of_kind(kind, message, **details)
