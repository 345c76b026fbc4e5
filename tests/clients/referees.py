"""Connections that return texts and SQLSTATEs instead of Python values, and the comparison of two answers.

Python has no year 10000, and its drivers hide the difference between `1` and `1.0`: the texts of the simple protocol are
compared instead. `Link.ask(sql)` never raises for an error of the server.
"""

import decimal
import math
import re
from dataclasses import dataclass, field

import psycopg
from psycopg import pq

BOOL, NUMERIC, TEXT, TIMESTAMP, TIMESTAMPTZ = 16, 1700, 25, 1114, 1184
INTEGERS = {20, 21, 23, 26}
FLOATS = {700, 701}
ARRAYS = {1000: BOOL, 1005: 21, 1007: 23, 1016: 20, 1021: 700, 1022: 701, 1231: NUMERIC, 1009: TEXT, 1015: TEXT}
FLOAT_ERROR, FLOAT_ZERO = 1e-9, 1e-12
"""Relative and absolute: the last digits depend on the order of operations and on the C library."""
INTERNAL_STATES = ("XX", "58")


@dataclass
class Answer:
    rows: list = field(default_factory=list)
    types: list = field(default_factory=list)
    """Object identifiers of the column types."""
    state: str = ""
    """SQLSTATE of an error."""
    message: str = ""
    tag: str = ""

    @property
    def is_error(self):
        return bool(self.state)

    @property
    def is_internal(self):
        return self.state[:2] in INTERNAL_STATES


def text_of(value):
    return None if value is None else value.decode(errors="replace")


def answer_of(result):
    if result.status == pq.ExecStatus.FATAL_ERROR:
        state = (result.error_field(pq.DiagnosticField.SQLSTATE) or b"?").decode()
        return Answer(state=state, message=result.error_message.decode(errors="replace").strip())
    columns = range(result.nfields)
    rows = [tuple(text_of(result.get_value(row, column)) for column in columns) for row in range(result.ntuples)]
    return Answer(rows, [result.ftype(column) for column in columns], tag=(result.command_status or b"").decode())


class Link:
    """A connection by libpq."""

    def __init__(self, port, user="u", database="d"):
        self.connection = psycopg.connect(host="127.0.0.1", port=port, user=user, dbname=database, autocommit=True)
        self.raw = self.connection.pgconn
        self.prepared = 0

    def ask(self, sql):
        return answer_of(self.raw.exec_(sql.encode()))

    def must(self, sql):
        answer = self.ask(sql)
        assert not answer.is_error, f"{answer.message}\n{sql}"
        return answer.rows

    def ask_prepared(self, sql):
        """By Parse, Describe, Bind and Execute."""
        self.prepared += 1
        name = f"s{self.prepared}".encode()
        parsed = answer_of(self.raw.prepare(name, sql.encode()))
        if parsed.is_error:
            return parsed
        answer = answer_of(self.raw.exec_prepared(name, []))
        self.raw.exec_(f"DEALLOCATE {name.decode()}".encode())
        return answer

    def ask_with(self, sql, values):
        """With the texts of parameters, whose types the server derives."""
        return answer_of(self.raw.exec_params(sql.encode(), [None if v is None else v.encode() for v in values]))

    def ask_all(self, statements):
        """The answers of several statements, sent at once; an error of one does not affect the next."""
        if not statements:
            return []
        self.raw.enter_pipeline_mode()
        for sql, values in (one if isinstance(one, tuple) else (one, []) for one in statements):
            self.raw.send_query_params(sql.encode(), [None if value is None else value.encode() for value in values])
            self.raw.pipeline_sync()
        answers = []
        while len(answers) < len(statements):
            result = self.raw.get_result()
            if result is None:
                continue
            assert result.status != pq.ExecStatus.PIPELINE_SYNC, "an answer without a result"
            answers.append(answer_of(result))
            while (result := self.raw.get_result()) is None or result.status != pq.ExecStatus.PIPELINE_SYNC:
                assert result is None, "two results of one statement"
        self.raw.exit_pipeline_mode()
        return answers

# Comparison of cells.


def elements(text):
    """The parts of an array's text, or None for nested and quoted ones, which are compared as texts."""
    inner = text[1:-1]
    if '"' in inner or "{" in inner:
        return None
    return inner.split(",") if inner else []


def number(text):
    try:
        return decimal.Decimal(text)
    except decimal.InvalidOperation:
        return None


def same_numbers(one, other, is_float):
    a, b = number(one), number(other)
    if a is None or b is None:
        return one == other
    if not a.is_finite() or not b.is_finite():
        return str(a) == str(b)
    if is_float:
        return math.isclose(a, b, rel_tol=FLOAT_ERROR, abs_tol=FLOAT_ZERO)
    # Decimals may have another number of digits, and then differ by one of the last.
    places = min(-a.as_tuple().exponent, -b.as_tuple().exponent)
    return abs(a - b) <= (decimal.Decimal(1).scaleb(-places) if a.as_tuple().exponent != b.as_tuple().exponent else 0)


def without_utc(text):
    """The text of a time without the offset of UTC at its end."""
    return re.sub(r"\+00(?= BC$|$)", "", text)


def same_cells(one, other, one_type, other_type):
    """Compares two texts; numbers of different types are compared as numbers."""
    if one == other:
        return True
    if one is None or other is None:
        return False
    if one_type in ARRAYS and other_type in ARRAYS:
        parts, others = elements(one), elements(other)
        if parts is None or others is None or len(parts) != len(others):
            return False
        return all(same_cells(a, b, ARRAYS[one_type], ARRAYS[other_type]) for a, b in zip(parts, others))
    types = {one_type, other_type}
    if types == {TIMESTAMP, TIMESTAMPTZ}:
        return without_utc(one) == without_utc(other)
    if types <= INTEGERS:
        return False
    if types <= INTEGERS | FLOATS | {NUMERIC}:
        return same_numbers(one, other, bool(types & FLOATS))
    return False


def sort_key(row, types):
    """A key under which equal rows of two engines are adjacent: numbers by six digits."""
    def of(text, oid):
        if text is None:
            return (0, "")
        if oid in INTEGERS | FLOATS | {NUMERIC} and (value := number(text)) is not None and value.is_finite():
            return (1, "0" if value == 0 else f"{float(value):.6g}")
        return (1, text)
    return [of(text, oid) for text, oid in zip(row, types)]


def difference(found, expected, is_ordered=False):
    """Describes the first difference of two answers without errors, or returns None."""
    if len(found.rows) != len(expected.rows):
        return f"{len(found.rows)} rows for {len(expected.rows)}: {found.rows[:6]} for {expected.rows[:6]}"
    if len(found.types) != len(expected.types):
        return f"{len(found.types)} columns for {len(expected.types)}"
    rows, others = found.rows, expected.rows
    if rows == others:
        return None
    if not is_ordered:
        rows = sorted(rows, key=lambda row: sort_key(row, found.types))
        others = sorted(others, key=lambda row: sort_key(row, expected.types))
    for row, other in zip(rows, others):
        if not all(map(same_cells, row, other, found.types, expected.types)):
            return f"row {row} for {other}"
    return None
