"""The engine in this process."""

from __future__ import annotations

import atexit
import os
import weakref
from typing import Any, Optional, Union

from . import _native
from ._database import Database, Symbols
from ._frames import as_stream
from ._result import Answer
from .errors import InterfaceError

_OPEN: "weakref.WeakSet[LocalDatabase]" = weakref.WeakSet()


class LocalDatabase(Database):
    """A folder, opened by :func:`tidalite.open`."""

    def __init__(self, folder: Union[str, "os.PathLike[str]"], **settings: Any) -> None:
        self._folder = os.fspath(folder)
        self._native = _native.Database(self._folder, **settings)
        self._process = os.getpid()
        _OPEN.add(self)

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
        answer = self._open.execute(sql, values, timeout)
        if isinstance(answer, tuple):
            return Answer.done(*answer)
        return Answer.of_rows(answer)

    def _write(
        self, table: str, stream: Any, at: Optional[str], symbols: Symbols, partition_by: str, atomic: bool,
    ) -> int:
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
