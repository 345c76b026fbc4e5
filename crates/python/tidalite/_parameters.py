"""Values bound to the parameters of a statement, and the places they have in it.

A value becomes a tagged tuple, which the engine (in process) or the server (as JSON) turns into one constant. None is
ever pasted into the text of a statement.
"""

from __future__ import annotations

import datetime as dt
import decimal
import ipaddress
import re
import uuid
from typing import Any, Iterator, Mapping, Sequence, Union

from ._times import is_numpy_time, of_numpy
from .errors import DataError, ProgrammingError

Parameters = Union[Sequence[Any], Mapping[str, Any], None]

_LONG = range(-(2**63), 2**63)

#: What placeholders are never looked for in: strings, quoted names, comments; and casts, whose colons are not names.
_SKIPPED = r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|/\*.*?\*/|::|\$\$.*?\$\$"""
_PLACES = re.compile(rf"({_SKIPPED})|(\?)|\$([A-Za-z_]\w*)|(?<![\w\]\)'\"]):([A-Za-z_]\w*)", re.DOTALL)


def bound(sql: str, parameters: Parameters) -> tuple[str, list[tuple[Any, ...]]]:
    """The statement with ``$1``, ``$2``, … as its only placeholders, and their values, tagged.

    A sequence fills ``$1``, ``$2`` or ``?``; a mapping fills ``$name`` or ``:name``.
    """
    if parameters is None:
        return sql, []
    if isinstance(parameters, (str, bytes)):
        raise ProgrammingError("parameters are a list or a dict, not text", hint="write [value] for one value")
    if isinstance(parameters, Mapping):
        names = list(parameters)
        numbers = {name: number for number, name in enumerate(names, 1)}

        def named(match: re.Match[str]) -> str:
            name = match.group(3) or match.group(4)
            if not name:
                return match.group(0)
            if name not in numbers:
                raise ProgrammingError(f"there is no parameter {name}", position=match.start(), sql=sql)
            return f"${numbers[name]}"

        return _PLACES.sub(named, sql), [tagged(parameters[name]) for name in names]
    values = list(parameters)
    count = 0

    def numbered(match: re.Match[str]) -> str:
        nonlocal count
        if not match.group(2):
            return match.group(0)
        count += 1
        return f"${count}"

    renamed = _PLACES.sub(numbered, sql)
    if count and count != len(values):
        raise ProgrammingError(f"the statement has {count} parameters, {len(values)} values are given")
    return renamed, [tagged(value) for value in values]


def tagged(value: Any) -> tuple[Any, ...]:
    """A value as the engine takes it: its kind and what there is of it."""
    if value is None:
        return ("null",)
    if isinstance(value, bool):
        return ("boolean", value)
    if isinstance(value, int):
        return ("long", int(value)) if value in _LONG else ("decimal", str(value))
    if isinstance(value, float):
        return ("double", float(value))
    if isinstance(value, str):
        return ("text", str(value))
    if isinstance(value, (bytes, bytearray, memoryview)):
        return ("bytes", bytes(value))
    if isinstance(value, dt.datetime):
        return _time(value)
    if isinstance(value, dt.date):
        return ("DATE", value.isoformat())
    if isinstance(value, decimal.Decimal):
        if not value.is_finite():
            raise DataError(f"value {value} has no place in a DECIMAL")
        return ("decimal", format(value, "f"))
    if isinstance(value, uuid.UUID):
        return ("UUID", str(value))
    if isinstance(value, ipaddress.IPv4Address):
        return ("IPV4", str(value))
    if isinstance(value, (list, tuple)):
        return ("list", [tagged(item) for item in value])
    return _of_numpy(value)


def _time(value: dt.datetime) -> tuple[Any, ...]:
    if value != value:  # NaT
        return ("null",)
    if value.tzinfo is not None:
        value = value.astimezone(dt.timezone.utc).replace(tzinfo=None)
    nanosecond = getattr(value, "nanosecond", 0)
    # Years have four digits here, which strftime leaves to the platform.
    text = value.isoformat(timespec="microseconds")
    return ("TIMESTAMP_NS", f"{text}{nanosecond:03}Z") if nanosecond else ("TIMESTAMP", f"{text}Z")


def _of_numpy(value: Any) -> tuple[Any, ...]:
    if is_numpy_time(value):
        found = of_numpy(value)
        if found is None:
            return ("null",)
        time, unit = found
        return ("TIMESTAMP_NS" if unit == "ns" else "TIMESTAMP", f"{time}Z")
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    if kind == "M":
        return ("list", [tagged(item) for item in value])
    if kind is not None and kind != "m" and hasattr(value, "tolist"):
        return tagged(value.tolist())
    if type(value).__name__ in ("NAType", "NaTType"):
        return ("null",)
    raise DataError(f"values of type {type(value).__name__} cannot be parameters")


def as_json(values: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Tagged values as JSON can carry them."""
    def carried(value: tuple[Any, ...]) -> list[Any]:
        tag = value[0]
        if tag == "list":
            return [tag, as_json(value[1])]
        if tag == "bytes":
            return [tag, value[1].hex()]
        if tag in ("double", "long"):
            return [tag, repr(value[1])]
        return list(value)

    return [carried(value) for value in values]
