"""Times of numpy, pandas and Arrow, which count in units of their own."""

from __future__ import annotations

from typing import Any, Optional

from .errors import DataError


def is_numpy_time(value: Any) -> bool:
    """Whether it is one datetime64."""
    return getattr(getattr(value, "dtype", None), "kind", None) == "M" and not getattr(value, "shape", ())


def of_numpy(value: Any) -> Optional[tuple[Any, str]]:
    """A datetime64 in microseconds or, where it is finer, in nanoseconds, and which; None for NaT.

    :raises DataError: when neither has a number for it
    """
    import numpy

    if numpy.isnat(value):
        return None
    unit = "ns" if numpy.datetime_data(value.dtype)[0] in ("ns", "ps", "fs", "as") else "us"
    try:
        made = value.astype(f"datetime64[{unit}]")
        is_same = made.astype(value.dtype) == value
    except (OverflowError, ValueError):
        is_same = False
    if not is_same:
        raise DataError(f"time {value} of type {value.dtype} has no place in a TIMESTAMP")
    return made, unit


def has_nanoseconds(value: Any) -> bool:
    """Whether a datetime is one of pandas that counts nanoseconds."""
    return getattr(value, "unit", None) == "ns" or bool(getattr(value, "nanosecond", 0))


def datetimes_of(column: Any) -> list[Any]:
    """What ``to_pylist`` gives for a column of Arrow's times without nanoseconds, in a fiftieth of its time."""
    try:
        values = column.to_numpy().tolist()
    except ImportError:
        return column.to_pylist()
    # numpy gives a number where Python's datetime has no such year; pyarrow says so.
    return column.to_pylist() if int in map(type, values) else values
