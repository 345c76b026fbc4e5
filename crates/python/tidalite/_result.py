"""What a statement answers."""

from __future__ import annotations

import html
import ipaddress
import uuid
from typing import TYPE_CHECKING, Any, Callable, Iterator, Optional

from ._progress import shown
from ._times import datetimes_of
from .errors import InterfaceError, ProgrammingError

if TYPE_CHECKING:
    import numpy
    import pandas
    import polars
    import pyarrow

#: Rows that a notebook shows.
_SHOWN = 10
#: Rows from which on pyarrow makes Python's values faster than we do.
_FEW = 1000
#: SQL types whose values are of a module of Python's own, beside the built-in ones.
_OF_MODULES = frozenset(("UUID", "IPV4"))


class Answer:
    """Rows, or what was done instead."""

    rows: Any
    tag: str
    changed: int

    def __init__(self, rows: Any, tag: str, changed: int) -> None:
        self.rows, self.tag, self.changed = rows, tag, changed

    @staticmethod
    def of_rows(rows: Any) -> "Answer":
        return Answer(rows, "SELECT", -1)

    @staticmethod
    def done(tag: str, changed: int) -> "Answer":
        return Answer(None, tag, changed)


class Result:
    """The answer of one statement.

    Rows are computed as they are read, once: what was read is not kept. A query is run again, with the same parameters,
    when its result is asked for a second time. So ``result.pandas()`` twice gives two frames, and each as of its own
    moment.

    Columns: :attr:`columns`. Times are UTC and without a zone.
    """

    def __init__(
        self, execute: Callable[[], Answer], progress: Optional[Callable[[], Optional[tuple[int, int]]]] = None
    ) -> None:
        self._execute = execute
        self._progress = progress
        self._answer: Optional[Answer] = self._run()
        self._columns = self._answer.rows.columns if self._answer.rows is not None else []
        self.statement = self._answer.tag
        #: How many rows the statement wrote or removed; -1 for a query.
        self.rowcount = self._answer.changed
        self._pending: list[tuple[Any, ...]] = []
        self._reading = False
        self._is_closed = False
        #: The rows that are being read, by whatever means.
        self._running: Any = None

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Name and SQL type of each column; empty for a statement without rows."""
        return list(self._columns)

    def arrow(self) -> "pyarrow.Table":
        """All rows as a pyarrow Table. Numbers and times are not copied; text neither (``string_view``)."""
        import pyarrow

        return pyarrow.table(self._collected())

    def pandas(self, *, dtype_backend: Optional[str] = None) -> "pandas.DataFrame":
        """All rows as a pandas frame.

        Times are ``datetime64`` of their own unit, without a zone, in UTC. Numbers with NULLs become float64 with NaN,
        text with NULLs has None or NaN, as pandas reads Arrow.

        :param dtype_backend: ``"pyarrow"`` keeps Arrow's types, NULLs and memory
        """
        import pandas

        table = _for_pandas(self.arrow())
        if dtype_backend == "pyarrow":
            return table.to_pandas(types_mapper=pandas.ArrowDtype)
        if dtype_backend is not None:
            raise InterfaceError(f'dtype_backend {dtype_backend!r} is not None or "pyarrow"')
        return table.to_pandas(split_blocks=True, self_destruct=True)

    def polars(self) -> "polars.DataFrame":
        """All rows as a polars frame, in Arrow's memory."""
        import polars

        return polars.DataFrame(self._collected())

    def numpy(self) -> "dict[str, numpy.ndarray[Any, Any]]":
        """All rows as one array for each column. Numbers with NULLs become float64 with NaN."""
        table = _for_pandas(self.arrow())
        return {name: table.column(at).to_numpy() for at, name in enumerate(table.column_names)}

    def fetchall(self) -> list[tuple[Any, ...]]:
        """The rows that were not fetched yet, as tuples of Python values."""
        return list(self)

    def fetchone(self) -> Optional[tuple[Any, ...]]:
        """The next row, None at the end."""
        return next(iter(self), None)

    def fetchmany(self, size: int = 1000) -> list[tuple[Any, ...]]:
        """At most so many rows more."""
        rows = []
        for row in self:
            rows.append(row)
            if len(rows) >= size:
                break
        return rows

    def batches(self) -> "Iterator[pyarrow.RecordBatch]":
        """The rows in pieces, as they are computed."""
        import pyarrow

        rows = self._rows()
        while (table := rows.next_batch()) is not None:
            yield from pyarrow.table(table).to_batches()

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Goes on where the last iteration stopped."""
        rows = self._rows(go_on=True)
        self._reading = True
        while True:
            try:
                row = self._pending.pop()
            except IndexError:
                # No row is left, or another thread has closed the result: reading on says which.
                pass
            else:
                yield row
                continue
            table = rows.next_batch()
            if table is None:
                return
            self._pending = _tuples(table, self._columns)
            self._pending.reverse()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._rows().__arrow_c_stream__(requested_schema)

    def _run(self) -> Answer:
        return self._shown(self._execute)

    def _shown(self, work: Callable[[], Any]) -> Any:
        return work() if self._progress is None else shown(work, self._progress)

    def close(self) -> None:
        """Stops the query, also one whose rows another thread is reading: that thread gets an error."""
        self._is_closed, self._pending = True, []
        for rows in (self._running, self._answer.rows if self._answer is not None else None):
            if rows is not None:
                rows.close()

    def _rows(self, go_on: bool = False) -> Any:
        """The rows of this run of the query, or of the next if this one's were taken."""
        if self.rowcount >= 0 or self.statement != "SELECT":
            raise ProgrammingError(f"{self.statement} returns no rows")
        if self._is_closed:
            raise InterfaceError("the result is closed")
        if self._reading and go_on and self._answer is not None:
            return self._answer.rows
        answer, self._answer = self._answer, None
        if answer is None or self._reading:
            answer = self._run()
        self._reading, self._pending = False, []
        if go_on:
            self._answer = answer
        self._running = answer.rows
        return answer.rows

    def _collected(self) -> Any:
        return self._shown(self._rows().collect)

    def _peeked(self, count: int) -> Any:
        if self._reading:
            # What is left of them belongs to the iteration.
            rows = self._run().rows
            try:
                return rows.peek(count)
            finally:
                rows.close()
        if self._answer is None:
            self._answer = self._run()
        self._running = self._answer.rows
        return self._answer.rows.peek(count)

    def __repr__(self) -> str:
        if self.statement != "SELECT":
            return f"<{self.statement}: {self.rowcount} rows>"
        if self._is_closed:
            return "<closed result>"
        table = self._peeked(_SHOWN + 1)
        names = [name for name, _ in self._columns]
        rows = [["NULL" if value is None else value for value in row] for row in table.head(_SHOWN).texts()]
        widths = [max([len(name), *(len(row[i]) for row in rows)]) for i, name in enumerate(names)]
        line = lambda cells: "  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip()  # noqa: E731
        lines = [line(names), line(["-" * width for width in widths]), *map(line, rows)]
        if table.num_rows > _SHOWN:
            lines.append("…")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The first rows, for notebooks. They are not lost for what reads the result afterwards."""
        if self.statement != "SELECT" or self._is_closed:
            return f"<pre>{html.escape(repr(self))}</pre>"
        table = self._peeked(_SHOWN + 1)
        head = "".join(f'<th title="{html.escape(kind)}">{html.escape(name)}</th>' for name, kind in self._columns)
        cell = lambda value: "<td><i>NULL</i></td>" if value is None else f"<td>{html.escape(value)}</td>"  # noqa: E731
        rows = "".join("<tr>" + "".join(map(cell, row)) + "</tr>" for row in table.head(_SHOWN).texts())
        more = "<caption style='caption-side:bottom'>and more rows</caption>" if table.num_rows > _SHOWN else ""
        return f"<table>{more}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _tuples(table: Any, types: list[tuple[str, str]]) -> list[tuple[Any, ...]]:
    """The rows as tuples of Python values."""
    columns = None
    if table.num_rows <= _FEW and not _OF_MODULES.intersection(kind for _, kind in types):
        # Of few rows most of the time would be that of importing pyarrow, and pandas with it.
        columns = table.values()
    if columns is None:
        import pyarrow

        columns = [_values(column, kind) for column, (_, kind) in zip(pyarrow.table(table).columns, types)]
    return list(zip(*columns)) if columns else [()] * table.num_rows


def _values(column: Any, kind: str) -> list[Any]:
    import pyarrow

    if pyarrow.types.is_timestamp(column.type) and column.type.unit == "ns":
        try:
            return column.to_pylist()
        except ValueError:
            # Python's datetime has no nanoseconds; pandas' Timestamp, where there is pandas, has.
            return column.cast(pyarrow.timestamp("us"), safe=False).to_pylist()
    values = datetimes_of(column) if pyarrow.types.is_timestamp(column.type) else column.to_pylist()
    if kind == "UUID":
        return [None if value is None else uuid.UUID(bytes=bytes(value)) for value in values]
    if kind == "IPV4":
        return [None if value is None else ipaddress.IPv4Address(value) for value in values]
    return values


def _for_pandas(table: Any) -> Any:
    """Text in the layout that pandas takes over as it is."""
    import pyarrow

    fields = [
        field.with_type(pyarrow.large_string()) if field.type == pyarrow.string_view()
        else field.with_type(pyarrow.binary()) if field.type == pyarrow.binary_view()
        else field
        for field in table.schema
    ]
    wanted = pyarrow.schema(fields)
    return table if wanted.equals(table.schema) else table.cast(wanted)
