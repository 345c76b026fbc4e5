"""What goes wrong, as the exceptions of DB-API 2.0 (PEP 249).

Every exception has, as far as it is known: ``message``; ``hint``; ``position``, the character of ``sql`` it is about,
counted from 0; ``column`` and ``row`` of the frame it is about, rows counted from 0.
"""

from __future__ import annotations

import re
from typing import Any, Optional


class Warning(Exception):  # noqa: A001 - the name is PEP 249's
    """Never raised."""


class Error(Exception):
    """Whatever the database refuses or fails at."""

    message: str
    hint: Optional[str]
    position: Optional[int]
    sql: Optional[str]
    column: Optional[str]
    row: Optional[int]

    def __init__(
        self,
        message: str,
        *,
        hint: Optional[str] = None,
        position: Optional[int] = None,
        sql: Optional[str] = None,
        column: Optional[str] = None,
        row: Optional[int] = None,
    ) -> None:
        super().__init__(message)
        if column is None and row is not None:
            named = re.search(r'column "([^"]+)"', message)
            column = named.group(1) if named else None
        self.message, self.hint, self.position, self.sql = message, hint, position, sql
        self.column, self.row = column, row

    def __str__(self) -> str:
        lines = [self.message]
        if self.sql is not None and self.position is not None:
            lines += _pointed_at(self.sql, self.position)
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


class InterfaceError(Error):
    """The package is used wrongly: what is closed is used, an argument has no meaning."""


class DatabaseError(Error):
    """The database itself refuses."""


class DataError(DatabaseError):
    """A value, a column, a row has no place."""


class OperationalError(DatabaseError):
    """Not now: the server is away, the folder in use, the disk full, the time over. Trying again may help."""


class IntegrityError(DatabaseError):
    """What shall be made is there already, or changed meanwhile."""


class InternalError(DatabaseError):
    """A bug, or damage on disk."""


class ProgrammingError(DatabaseError):
    """The statement is wrong: its syntax, or a name in it."""


class NotSupportedError(DatabaseError):
    """The statement asks for what this database does not do."""


_KINDS = {
    "invalid": ProgrammingError,
    "not found": ProgrammingError,
    "conflict": IntegrityError,
    "unavailable": OperationalError,
    "corrupt": InternalError,
    "internal": InternalError,
    "data": DataError,
    "interface": InterfaceError,
}


def of_kind(kind: str, message: str, **fields: Any) -> Error:
    """The exception for a kind of error of the engine."""
    made = _KINDS.get(kind, InternalError)
    if made is ProgrammingError and "not supported" in message:
        made = NotSupportedError
    elif made is ProgrammingError and fields.get("row") is not None:
        made = DataError
    return made(message, **fields)


def _pointed_at(sql: str, position: int) -> list[str]:
    """The line of a statement with a mark below the character."""
    position = min(position, len(sql))
    start = sql.rfind("\n", 0, position) + 1
    end = sql.find("\n", position)
    line = sql[start:] if end < 0 else sql[start:end]
    column = position - start
    if len(line) > 120:
        cut = max(0, column - 60)
        line, column = line[cut:cut + 120], column - cut
    return ["  " + line, "  " + " " * column + "^"]
