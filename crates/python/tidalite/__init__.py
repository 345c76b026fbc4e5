"""Tidalite, a time-series database: in this process, or over the network.

Two entrances, one interface::

    db = tidalite.open("folder")                    # the engine in this process, no server
    db = tidalite.connect("tidalite://localhost")   # a server

    db.write("trades", frame, at="ts")              # pandas, polars, pyarrow, dict of numpy
    db.sql("select * from trades where price > $1", [100.0]).pandas()

Rows for any server that speaks line protocol: :class:`tidalite.Sender`. A DB-API 2.0 module: :mod:`tidalite.dbapi`.

Importing the package imports neither numpy nor pandas, polars or pyarrow; each is imported by what needs it.
"""

from __future__ import annotations

import os
from typing import Any, Optional, Union

from . import _loaded, errors  # noqa: F401
from ._database import Database
from ._local import LocalDatabase
from ._native import __version__
from ._remote import RemoteDatabase
from ._result import Result
from .errors import (
    DataError, DatabaseError, Error, IntegrityError, InterfaceError, InternalError, NotSupportedError,
    OperationalError, ProgrammingError,
)
from .sender import Sender, ServerTimestamp, TimestampMicros, TimestampNanos

__all__ = [
    "open", "connect", "Database", "Result", "Sender", "ServerTimestamp", "TimestampMicros", "TimestampNanos",
    "errors", "Error", "DatabaseError", "DataError", "IntegrityError", "InterfaceError", "InternalError",
    "NotSupportedError", "OperationalError", "ProgrammingError", "__version__",
]


def open(  # noqa: A001 - tidalite.open, as tarfile.open
    folder: Union[str, "os.PathLike[str]"],
    *,
    threads: Optional[int] = None,
    memory_bytes: Optional[int] = None,
    cache_bytes: Optional[int] = None,
    durability: str = "sync",
    timeout: Optional[float] = None,
) -> LocalDatabase:
    """Opens a database folder in this process; creates it when it does not exist.

    The files are the server's own: a folder can be served today and opened here tomorrow, but only by one process at
    a time.

    :param folder: the data folder
    :param threads: for queries, and again as many for merges; all cores by default
    :param memory_bytes: for the operators of one query (2 GiB); what does not fit spills to disk, or fails that query
    :param cache_bytes: for blocks read from disk (a quarter of the memory)
    :param durability: when a write is acknowledged: ``"sync"`` after the log is synced, ``"interval"`` at most a
        second before, ``"os"`` when the operating system likes
    :param timeout: seconds after which a statement is stopped; none by default
    :raises OperationalError: when another process has the folder open
    """
    return LocalDatabase(
        folder, threads=threads, memory_bytes=memory_bytes, cache_bytes=cache_bytes, durability=durability,
        timeout=timeout,
    )


def connect(
    url: str = "tidalite://localhost",
    *,
    user: Optional[str] = None,
    password: Optional[str] = None,
    token: Optional[str] = None,
    tls_ca: Optional[str] = None,
    tls_verify: bool = True,
    timeout: Optional[float] = None,
    request_timeout: float = 600.0,
) -> RemoteDatabase:
    """Connects to a server, over HTTP. Nothing is sent before the first statement.

    :param url: ``tidalite://[user:password@]host[:port]``, or ``tidalites://`` for TLS; ``http://`` and ``https://``
        mean the same. The port is 9000 unless said otherwise.
    :param token: sent as ``Authorization: Bearer``
    :param tls_ca: a file of certificates to trust besides the system's
    :param tls_verify: False takes any certificate: for tests only
    :param timeout: seconds after which the server stops a statement
    :param request_timeout: seconds without a byte of an answer after which a request fails
    """
    return RemoteDatabase(
        url, user=user, password=password, token=token, tls_ca=tls_ca, tls_verify=tls_verify, timeout=timeout,
        request_timeout=request_timeout,
    )
