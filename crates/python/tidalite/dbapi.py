"""DB-API 2.0 (PEP 249), over either entrance.

::

    connection = tidalite.dbapi.connect("folder")                  # or "tidalite://host"
    pandas.read_sql("select * from trades", connection)

In this process a transaction begins with the first statement; ``commit`` and ``rollback`` end it, and closing a connection rolls
back. Over HTTP every statement commits by itself.
"""

from __future__ import annotations

import datetime as dt
import os
import threading
import time
from types import TracebackType
from typing import Any, Iterable, Iterator, Optional, Type, Union

from ._database import Database
from ._local import LocalDatabase, Transaction
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


STRING = _Type("VARCHAR", "SYMBOL", "JSON", "JSONB")
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


def connect(target: Union[str, Database], *, autocommit: Optional[bool] = None, **settings: Any) -> "Connection":
    """A connection to a folder, to a server by its ``tidalite://`` address, or to a database that is open already.

    :param autocommit: whether every statement commits by itself: so it is over HTTP, and by default not in this process
    """
    if isinstance(target, Database):
        return Connection(target, owns=False, autocommit=autocommit)
    import tidalite

    is_url = "://" in str(target)
    if is_url:
        return Connection(tidalite.connect(target, **settings), owns=True, autocommit=autocommit)
    return Connection(_Folders.open(os.path.abspath(target), settings), owns=True, autocommit=autocommit)


class _Folders:
    """Folders that connections of this process have open, each once, and by how many."""

    _lock = threading.Lock()
    _open: dict[str, tuple[LocalDatabase, int]] = {}

    @classmethod
    def open(cls, folder: str, settings: dict[str, Any]) -> LocalDatabase:
        import tidalite

        with cls._lock:
            database, count = cls._open.get(folder, (None, 0))
            if database is None:
                database = tidalite.open(folder, **settings)
            cls._open[folder] = (database, count + 1)
            return database

    @classmethod
    def close(cls, database: Database) -> bool:
        """False for one that was not opened here."""
        with cls._lock:
            for folder, (known, count) in cls._open.items():
                if known is database:
                    if count > 1:
                        cls._open[folder] = (known, count - 1)
                    else:
                        del cls._open[folder]
                        known.close()
                    return True
        return False


class Connection:
    Error, Warning, InterfaceError, DatabaseError = Error, Warning, InterfaceError, DatabaseError
    DataError, OperationalError, IntegrityError, InternalError = DataError, OperationalError, IntegrityError, InternalError
    ProgrammingError, NotSupportedError = ProgrammingError, NotSupportedError

    def __init__(self, database: Database, owns: bool, autocommit: Optional[bool] = None) -> None:
        self._database: Optional[Database] = database
        self._owns = owns
        #: Whether statements can be rolled back.
        self.has_transactions = isinstance(database, LocalDatabase)
        self._autocommit = not self.has_transactions
        self._transaction: Optional[Transaction] = None
        #: Of transactions to come, as :meth:`LocalDatabase.transaction` takes it.
        self.isolation = "read committed"
        if autocommit is not None:
            self.autocommit = autocommit

    @property
    def autocommit(self) -> bool:
        return self._autocommit

    @autocommit.setter
    def autocommit(self, value: bool) -> None:
        """As PEP 249 has it: turning it on commits what is open."""
        if not value and not self.has_transactions:
            raise NotSupportedError(
                "transactions are not supported over HTTP", hint="the PostgreSQL protocol has them, on port 8812",
            )
        if value:
            self.commit()
        self._autocommit = value

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
        """Commits what was executed since the last commit; over HTTP it is committed already."""
        self.database  # noqa: B018
        transaction, self._transaction = self._transaction, None
        if transaction is not None:
            transaction.commit()

    def rollback(self) -> None:
        """Undoes what was executed since the last commit; over HTTP it stays. Pools and tools call it when they give a
        connection back."""
        self.database  # noqa: B018
        self._roll_back()

    def _roll_back(self) -> None:
        transaction, self._transaction = self._transaction, None
        if transaction is not None:
            transaction.rollback()

    def _sql(self, sql: str, parameters: Parameters) -> Result:
        database = self.database
        if self._autocommit or not isinstance(database, LocalDatabase):
            return database.sql(sql, parameters)
        return self._open_transaction(database).sql(sql, parameters)

    def _open_transaction(self, database: LocalDatabase) -> Transaction:
        if self._transaction is None:
            self._transaction = database.transaction(self.isolation)
        return self._transaction

    def savepoint(self, name: str) -> None:
        """Notes what was executed so far under a name, in this process only."""
        database = self.database
        if not isinstance(database, LocalDatabase):
            raise NotSupportedError("savepoints are not supported over HTTP")
        self._open_transaction(database).savepoint(name)

    def rollback_to(self, name: str) -> None:
        if self._transaction is not None:
            self._transaction.rollback_to(name)

    def release(self, name: str) -> None:
        if self._transaction is not None:
            self._transaction.release(name)

    def close(self) -> None:
        if self._database is not None:
            self._roll_back()
        database, self._database = self._database, None
        if database is not None and self._owns and not _Folders.close(database):
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
        self._result = self.connection._sql(sql, parameters or None)
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
