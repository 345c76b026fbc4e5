"""DB-API 2.0 (PEP 249), over either entrance.

::

    connection = tidalite.dbapi.connect("folder")                  # or "tidalite://host"
    pandas.read_sql("select * from trades", connection)

Every statement commits by itself: ``commit`` and ``rollback`` do nothing.
"""

from __future__ import annotations

import datetime as dt
import time
from types import TracebackType
from typing import Any, Iterable, Iterator, Optional, Type, Union

from ._database import Database
from ._parameters import Parameters
from ._result import Result
from .errors import (  # noqa: F401 - the interface asks for them here
    DatabaseError, DataError, Error, IntegrityError, InterfaceError, InternalError, NotSupportedError, OperationalError,
    ProgrammingError, Warning,
)

apilevel = "2.0"
#: Threads may share the module and connections.
threadsafety = 2
#: ``?``; ``$1``, ``$name`` and ``:name`` are understood, too.
paramstyle = "qmark"


class _Type:
    """Equal to the SQL types it stands for."""

    def __init__(self, *names: str) -> None:
        self.names = frozenset(names)

    def __eq__(self, other: object) -> bool:
        return other in self.names if isinstance(other, str) else self is other

    def __hash__(self) -> int:
        return hash(self.names)


STRING = _Type("VARCHAR", "SYMBOL", "JSON")
BINARY = _Type("BINARY")
NUMBER = _Type("BYTE", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE", "DECIMAL")
DATETIME = _Type("TIMESTAMP", "TIMESTAMP_MS", "TIMESTAMP_NS", "DATE")
ROWID = _Type()

Date, Time, Timestamp, Binary = dt.date, dt.time, dt.datetime, bytes


def DateFromTicks(ticks: float) -> dt.date:
    return dt.date(*time.gmtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> dt.time:
    return dt.time(*time.gmtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> dt.datetime:
    return dt.datetime.fromtimestamp(ticks, dt.timezone.utc).replace(tzinfo=None)


def connect(target: Union[str, Database], **settings: Any) -> "Connection":
    """A connection to a folder, to a server by its ``tidalite://`` address, or to a database that is open already."""
    if isinstance(target, Database):
        return Connection(target, owns=False)
    import tidalite

    is_url = "://" in str(target)
    return Connection(tidalite.connect(target, **settings) if is_url else tidalite.open(target, **settings), owns=True)


class Connection:
    Error, Warning, InterfaceError, DatabaseError = Error, Warning, InterfaceError, DatabaseError
    DataError, OperationalError, IntegrityError, InternalError = DataError, OperationalError, IntegrityError, InternalError
    ProgrammingError, NotSupportedError = ProgrammingError, NotSupportedError

    def __init__(self, database: Database, owns: bool) -> None:
        self._database: Optional[Database] = database
        self._owns = owns

    @property
    def database(self) -> Database:
        if self._database is None:
            raise InterfaceError("the connection is closed")
        return self._database

    def cursor(self) -> "Cursor":
        self.database  # noqa: B018 - closed connections have no cursors
        return Cursor(self)

    def execute(self, sql: str, parameters: Parameters = None) -> "Cursor":
        return self.cursor().execute(sql, parameters)

    def commit(self) -> None:
        """Does nothing: what was executed is committed."""
        self.database  # noqa: B018

    def rollback(self) -> None:
        """Does nothing: there is never a transaction open, and what was executed stays. Pools and tools call it when they
        give a connection back."""
        self.database  # noqa: B018

    def close(self) -> None:
        database, self._database = self._database, None
        if database is not None and self._owns:
            database.close()

    def __enter__(self) -> "Connection":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType],
    ) -> None:
        self.close()


class Cursor:
    arraysize = 1

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._result: Optional[Result] = None
        self._is_closed = False
        self.rowcount = -1

    @property
    def description(self) -> Optional[list[tuple[Any, ...]]]:
        if self._result is None or not self._result.columns:
            return None
        return [(name, kind.partition("(")[0], None, None, None, None, True) for name, kind in self._result.columns]

    def execute(self, sql: str, parameters: Parameters = None) -> "Cursor":
        if self._is_closed:
            raise InterfaceError("the cursor is closed")
        self._result = None
        # An empty sequence is what many tools pass for none.
        self._result = self.connection.database.sql(sql, parameters or None)
        self.rowcount = self._result.rowcount
        return self

    def executemany(self, sql: str, parameters: Iterable[Parameters]) -> "Cursor":
        changed = 0
        for row in parameters:
            self.execute(sql, row)
            changed += max(self.rowcount, 0)
        self.rowcount = changed
        return self

    def fetchone(self) -> Optional[tuple[Any, ...]]:
        return self._rows.fetchone()

    def fetchmany(self, size: Optional[int] = None) -> list[tuple[Any, ...]]:
        return self._rows.fetchmany(self.arraysize if size is None else size)

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self._rows.fetchall()

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self._rows)

    def setinputsizes(self, sizes: Any) -> None:
        """Does nothing."""

    def setoutputsize(self, size: int, column: Optional[int] = None) -> None:
        """Does nothing."""

    def close(self) -> None:
        if self._result is not None:
            self._result.close()
        self._result, self._is_closed = None, True

    @property
    def _rows(self) -> Result:
        if self._is_closed:
            raise InterfaceError("the cursor is closed")
        if self._result is None:
            raise ProgrammingError("nothing was executed")
        return self._result

    def __enter__(self) -> "Cursor":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType],
    ) -> None:
        self.close()
