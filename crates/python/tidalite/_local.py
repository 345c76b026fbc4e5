"""The engine in this process."""

from __future__ import annotations

import atexit
import os
import weakref
from typing import Any, Optional, Union

from . import _native
from ._database import Database, Symbols
from ._result import Answer

_OPEN: "weakref.WeakSet[LocalDatabase]" = weakref.WeakSet()


class LocalDatabase(Database):
    """A folder, opened by :func:`tidalite.open`."""

    def __init__(self, folder: Union[str, "os.PathLike[str]"], **settings: Any) -> None:
        self._folder = os.fspath(folder)
        self._native = _native.Database(self._folder, **settings)
        _OPEN.add(self)

    def register(self, name: str, frame: Any, *, at: Optional[str] = None) -> None:
        """Gives a frame a name that statements may use as a table; it hides a table of that name.

        Arrow data is shared, not copied, where the types are those of the engine. The frame must not change while it is
        registered.

        :param at: the column that is the time of the rows, for SAMPLE BY, LATEST ON, ASOF JOIN
        """
        from ._frames import as_stream

        self._native.register(name, as_stream(frame, keep_nan=False), at)

    def unregister(self, name: str) -> bool:
        """Forgets a registered frame; says whether there was one."""
        return self._native.unregister(name)

    def settle(self) -> None:
        """Merges everything committed so far into files ordered by time. Happens by itself, a little later."""
        self._native.settle()

    def close(self) -> None:
        self._native.close()

    def _execute(self, sql: str, values: list[tuple[Any, ...]], timeout: Optional[float]) -> Answer:
        answer = self._native.execute(sql, values, timeout)
        if isinstance(answer, tuple):
            return Answer.done(*answer)
        return Answer.of_rows(answer)

    def _write(
        self, table: str, stream: Any, at: Optional[str], symbols: Symbols, partition_by: str, atomic: bool,
    ) -> int:
        return self._native.write(table, stream, at, symbols, partition_by, atomic)

    def __repr__(self) -> str:
        return f"<tidalite.open({self._folder!r})>"


@atexit.register
def _close_all() -> None:
    for database in list(_OPEN):
        database.close()
