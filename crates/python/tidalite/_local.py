"""The engine in this process."""

from __future__ import annotations

import atexit
import itertools
import os
import weakref
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any, Optional, Type, Union

from . import _native
from ._database import Database, Symbols
from ._frames import as_stream
from ._parameters import Parameters, bound
from ._result import Answer, Result
from .errors import InterfaceError

_OPEN: "weakref.WeakSet[LocalDatabase]" = weakref.WeakSet()


class Transaction:
    """Statements and rows that become visible together, or never.

    ::

        with db.transaction():
            db.sql("update accounts set balance = balance - 10 where id = 1")
            db.sql("update accounts set balance = balance + 10 where id = 2")

    Within ``with``, ``db.sql`` and ``db.write`` of the same thread (or asyncio task) are part of it; other threads are not,
    and see nothing of it before it is committed. Within another transaction of the same database it is a savepoint.

    Without ``with``, ``sql`` and ``write`` of the transaction itself are used, and ``commit`` or ``rollback`` ends it.
    """

    _numbers = itertools.count(1)

    def __init__(self, database: "LocalDatabase", isolation: str) -> None:
        self._database, self._isolation = database, isolation
        self._native: Optional[_native.Transaction] = None
        self._outer: Optional[Transaction] = None
        self._savepoint = ""
        self._token: Optional[Token[Optional[Transaction]]] = None

    def sql(self, sql: str, params: Parameters = None, *, timeout: Optional[float] = None) -> Result:
        """As :meth:`Database.sql`, as a part of the transaction."""
        text, values = bound(sql, params)
        return Result(lambda: self._execute(text, values, timeout), lambda: None)

    def write(
        self,
        table: str,
        frame: Any,
        *,
        at: Optional[str] = None,
        symbols: Symbols = None,
        partition_by: str = "DAY",
        keep_nan: bool = False,
        index: bool = False,
    ) -> int:
        """As :meth:`Database.write`, as a part of the transaction. Columns that the table does not have are refused."""
        return self._write(table, as_stream(frame, keep_nan=keep_nan, index=index), at, symbols, partition_by)

    def commit(self) -> None:
        """Makes all that was done durable and visible.

        :raises IntegrityError: when another transaction changed the same rows: nothing is committed then
        """
        native, self._native = self._open, None
        native.commit()

    def rollback(self) -> None:
        """Undoes all that was done. Does nothing when the transaction has ended or never began."""
        native, self._native = self._native, None
        if native is not None:
            native.roll_back()

    def savepoint(self, name: str) -> None:
        self._open.savepoint(name)

    def rollback_to(self, name: str) -> None:
        self._open.roll_back_to(name)

    def release(self, name: str) -> None:
        self._open.release(name)

    @property
    def _open(self) -> _native.Transaction:
        if self._native is None:
            self._native = self._database._open.begin(self._isolation)
        return self._native

    def _execute(self, sql: str, values: list[tuple[Any, ...]], timeout: Optional[float]) -> Answer:
        return _answer(self._open.execute(sql, values, timeout))

    def _write(self, table: str, stream: Any, at: Optional[str], symbols: Symbols, partition_by: str) -> int:
        return self._open.write(table, stream, at, symbols, partition_by)

    def __enter__(self) -> "Transaction":
        self._outer = self._database._current.get()
        if self._outer is None:
            self._token = self._database._current.set(self)
            return self
        self._savepoint = f"tidalite_{next(self._numbers)}"
        self._outer.savepoint(self._savepoint)
        return self._outer

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType],
    ) -> None:
        if self._outer is not None:
            if kind is not None:
                self._outer.rollback_to(self._savepoint)
            self._outer.release(self._savepoint)
            return
        if self._token is not None:
            self._database._current.reset(self._token)
        if kind is not None:
            self.rollback()
        elif self._native is not None:
            self.commit()


def _answer(answer: Any) -> Answer:
    return Answer.done(*answer) if isinstance(answer, tuple) else Answer.of_rows(answer)


class LocalDatabase(Database):
    """A folder, opened by :func:`tidalite.open`."""

    def __init__(self, folder: Union[str, "os.PathLike[str]"], **settings: Any) -> None:
        self._folder = os.fspath(folder)
        self._native = _native.Database(self._folder, **settings)
        self._process = os.getpid()
        self._current: ContextVar[Optional[Transaction]] = ContextVar("tidalite transaction", default=None)
        _OPEN.add(self)

    def transaction(self, isolation: str = "repeatable read") -> Transaction:
        """A transaction, for ``with``: committed at its end, rolled back when an exception leaves it.

        :param isolation: ``"repeatable read"``: all statements see one snapshot; ``"read committed"``: each sees what was
            committed before it, until the transaction writes; ``"serializable"``: refused, too, when what it read has changed
        """
        return Transaction(self, isolation)

    def register(self, name: str, frame: Any, *, at: Optional[str] = None, keep_nan: bool = False) -> None:
        """Gives a frame a name that statements may use as a table; it hides a table of that name.

        Arrow data is shared, not copied, where the types are those of the engine. The frame must not change while it is
        registered.

        :param at: the column that is the time of the rows, for SAMPLE BY, LATEST ON, ASOF JOIN
        :param keep_nan: NaN of pandas' numpy columns stays NaN instead of being NULL
        """
        self._open.register(name, as_stream(frame, keep_nan=keep_nan, mark_nan=False), at)

    def unregister(self, name: str) -> bool:
        """Forgets a registered frame; says whether there was one."""
        return self._open.unregister(name)

    def settle(self) -> None:
        """Merges everything committed so far into files ordered by time. Happens by itself, a little later."""
        self._open.settle()

    def close(self) -> None:
        if self._process == os.getpid():
            self._native.close()

    @property
    def _open(self) -> _native.Database:
        if self._process != os.getpid():
            raise InterfaceError(
                "the database was opened by another process",
                hint="a process that forks opens its own, when the first has closed it",
            )
        return self._native

    def _execute(self, sql: str, values: list[tuple[Any, ...]], timeout: Optional[float]) -> Answer:
        current = self._current.get()
        if current is not None:
            return current._execute(sql, values, timeout)
        return _answer(self._open.execute(sql, values, timeout))

    def _write(
        self, table: str, stream: Any, at: Optional[str], symbols: Symbols, partition_by: str, atomic: bool,
    ) -> int:
        current = self._current.get()
        if current is not None:
            return current._write(table, stream, at, symbols, partition_by)
        return self._open.write(table, stream, at, symbols, partition_by, atomic)

    def __repr__(self) -> str:
        return f"<tidalite.open({self._folder!r})>"


@atexit.register
def _close_all() -> None:
    for database in list(_OPEN):
        database.close()


def _after_fork() -> None:
    # The threads of these are not in this process: nothing of them may be ended here.
    for database in _OPEN:
        database._native.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
