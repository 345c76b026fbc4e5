"""What both entrances have in common."""

from __future__ import annotations

import abc
from types import TracebackType
from typing import Any, Optional, Sequence, Type, Union

from ._frames import as_stream
from ._parameters import Parameters, bound
from ._result import Answer, Result
from .errors import Error, NotSupportedError

Symbols = Union[None, bool, str, Sequence[str]]


class Database(abc.ABC):
    """A database; threads may share it. As a context manager it closes itself."""

    def sql(self, sql: str, params: Parameters = None, *, timeout: Optional[float] = None) -> Result:
        """Runs one statement.

        The statement is planned at once, so that what is wrong with it is said here; the rows of a query are computed
        as the result is read. Statements that write have done so when this returns.

        :param sql: one statement
        :param params: a list for ``$1``, ``$2``, … or ``?``; a dict for ``$name`` or ``:name``. Values are bound, never
            pasted: None, bool, int, float, str, bytes, datetime (without a zone: UTC), date, Decimal, UUID,
            IPv4Address, numpy's scalars, lists of these.
        :param timeout: seconds after which the statement is stopped
        :raises ProgrammingError: with the position of what is wrong, and a hint where there is one
        """
        text, values = bound(sql, params)
        return Result(lambda: self._execute(text, values, timeout), lambda: self._rows_read(text))

    def _rows_read(self, text: str) -> Optional[tuple[int, int]]:
        """Of a statement under way, rows read and rows to read; None when it reads none, or nobody answers in time."""
        asked = "SELECT sum(rows_read), sum(rows_total) FROM query_activity() WHERE query = $1"
        asked, values = bound(asked, [text])
        try:
            found = Result(lambda: self._execute(asked, values, 1.0)).fetchone()
        except Error:
            return None
        return found if found and found[1] else None

    def write(
        self,
        table: str,
        frame: Any,
        *,
        at: Optional[str] = None,
        symbols: Symbols = None,
        partition_by: str = "DAY",
        atomic: bool = False,
        keep_nan: bool = False,
        index: bool = False,
    ) -> int:
        """Writes the rows of a frame; they are durable, and visible to every query, when this returns.

        The table and its columns are created if they do not exist; see docs/python.md for the type each dtype gets.

        :param table: its name
        :param frame: pandas (2 or 3), polars, a pyarrow Table, RecordBatch or RecordBatchReader, a dict of numpy arrays
            or lists, or anything with ``__arrow_c_stream__``
        :param at: the column with the time of the rows; that of the table by its own name if it is left out
        :param symbols: columns to store as SYMBOL when the table is created: None for categoricals and dictionaries,
            True for all text, False for none, or their names
        :param partition_by: of a new table: HOUR, DAY, WEEK, MONTH, YEAR or NONE
        :param atomic: all rows in one commit (up to 512 MiB). Otherwise more than about 64 MiB are several commits, in
            order, and an error leaves those before it.
        :param keep_nan: NaN of pandas' numpy columns stays NaN instead of becoming NULL
        :param index: write the index of a pandas frame, too
        :returns: how many rows were written
        :raises DataError: names the column, the row (counted from 0) and the value that has no place
        """
        return self._write(
            table, as_stream(frame, keep_nan=keep_nan, index=index), at, symbols, partition_by, atomic,
        )

    def tables(self) -> list[str]:
        """Names of all tables."""
        return [name for (name,) in self.sql("select table_name from tables() order by table_name").fetchall()]

    def transaction(self, isolation: str = "repeatable read") -> Any:
        """A transaction, for ``with``: committed at its end, rolled back when an exception leaves it.

        :raises NotSupportedError: over HTTP, where every statement commits by itself
        """
        raise NotSupportedError(
            "transactions are not supported over HTTP", hint="the PostgreSQL protocol has them, on port 8812",
        )

    @abc.abstractmethod
    def register(self, name: str, frame: Any, *, at: Optional[str] = None, keep_nan: bool = False) -> None: ...

    @abc.abstractmethod
    def unregister(self, name: str) -> bool: ...

    @abc.abstractmethod
    def _execute(self, sql: str, values: list[tuple[Any, ...]], timeout: Optional[float]) -> Answer: ...

    @abc.abstractmethod
    def _write(
        self, table: str, stream: Any, at: Optional[str], symbols: Symbols, partition_by: str, atomic: bool,
    ) -> int: ...

    @abc.abstractmethod
    def close(self) -> None:
        """Ends it. What is read of results that are not whole yet ends, too."""

    def __enter__(self) -> "Database":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType],
    ) -> None:
        self.close()
