"""Whatever holds columns, as an Arrow stream.

Nothing is copied that Arrow can share: polars, pyarrow and everything else with ``__arrow_c_stream__`` pass through;
pandas and numpy go by pyarrow, column by column, so that what cannot be converted is named with its row.
"""

from __future__ import annotations

import datetime as dt
import sys
import uuid
from typing import Any, Iterable, Mapping, Optional

from .errors import DataError, InterfaceError

#: Metadata of a field in which NaN means that there is no value.
NAN_IS_NULL = {b"tidalite.nan_is_null": b"1"}


def as_stream(frame: Any, *, keep_nan: bool = False, index: bool = False, mark_nan: bool = True) -> Any:
    """An object with ``__arrow_c_stream__`` for what is given.

    :param keep_nan: NaN of pandas' numpy columns stays a value instead of becoming NULL
    :param mark_nan: instead of making it NULL, columns with NaN say that it means NULL; for readers who know
    :param index: whether the index of a pandas frame is a column
    """
    pandas = sys.modules.get("pandas")
    if pandas is not None:
        if isinstance(frame, pandas.Series):
            frame = frame.to_frame()
        if isinstance(frame, pandas.DataFrame):
            return _of_pandas(frame, keep_nan, index, mark_nan)
    polars = sys.modules.get("polars")
    if polars is not None and isinstance(frame, (polars.LazyFrame, polars.DataFrame)):
        frame = frame.lazy().collect()
        # polars gives columns without a type a buffer that Arrow says they have not. Nothing would be written of them.
        empty = [name for name, dtype in frame.schema.items() if dtype == polars.Null]
        return frame.drop(empty) if empty else frame
    if isinstance(frame, Mapping):
        return _of_columns(frame.items(), keep_nan=True)
    if hasattr(frame, "__arrow_c_stream__"):
        return frame
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is not None and isinstance(frame, pyarrow.RecordBatch):
        return pyarrow.Table.from_batches([frame])
    if hasattr(frame, "__dataframe__"):
        _pyarrow("a frame of another library")
        import pyarrow.interchange

        return pyarrow.interchange.from_dataframe(frame)
    raise InterfaceError(
        f"{type(frame).__module__}.{type(frame).__qualname__} is no frame",
        hint="frames are pandas, polars, pyarrow, a dict of numpy arrays, or have __arrow_c_stream__",
    )


def _pyarrow(what: str) -> Any:
    try:
        import pyarrow
    except ImportError as missing:
        raise InterfaceError(f"{what} needs the package pyarrow", hint="pip install pyarrow") from missing
    return pyarrow


def _of_pandas(frame: Any, keep_nan: bool, index: bool, mark_nan: bool) -> Any:
    if index:
        names = [name if name is not None else "index" for name in frame.index.names]
        frame = frame.reset_index(names=names)
    return _of_columns(frame.items(), keep_nan, mark_nan)


def _of_columns(columns: Iterable[tuple[Any, Any]], keep_nan: bool, mark_nan: bool = True) -> Any:
    pa = _pyarrow("a frame of pandas or numpy")
    fields, arrays, rows = [], [], None
    for name, values in columns:
        array, nan_is_null = _array(pa, str(name), values, keep_nan, mark_nan)
        if rows is not None and len(array) != rows:
            raise DataError(f'column "{name}" has {len(array)} rows, those before it have {rows}', column=str(name))
        rows = len(array)
        fields.append(pa.field(str(name), array.type, metadata=NAN_IS_NULL if nan_is_null else None))
        arrays.append(array)
    return pa.table(arrays, schema=pa.schema(fields))


def _array(pa: Any, name: str, values: Any, keep_nan: bool, mark_nan: bool) -> tuple[Any, bool]:
    """The column, and whether NaN in it means NULL."""
    numpy = sys.modules.get("numpy")
    dtype = getattr(values, "dtype", None)
    if numpy is not None and dtype is not None and dtype == numpy.float64 and (keep_nan or mark_nan):
        # The kind of column that large frames are made of, without the questions below.
        plain = numpy.asarray(values)
        if plain.ndim == 1:
            return _converted(pa, name, plain, from_pandas=False), not keep_nan
    backing = getattr(values, "array", None)
    if hasattr(backing, "__arrow_array__"):
        # An extension type of pandas: pyarrow would go through Python objects where it holds Arrow data already.
        return _plain(pa, name, _whole(pa, backing.__arrow_array__())), False
    dtype = getattr(values, "dtype", None)
    if hasattr(backing, "codes") and hasattr(dtype, "categories"):
        return _categories(pa, name, backing, dtype), False
    if type(dtype).__name__ == "SparseDtype":
        values = values.sparse.to_dense()
        dtype = values.dtype
    kind = getattr(dtype, "kind", None)
    numpy = getattr(values, "to_numpy", None)
    if kind in tuple("biuf") and type(dtype).__module__.startswith("numpy"):
        plain = numpy() if numpy is not None else values
        if plain.ndim > 1:
            plain = plain.tolist()
        elif kind == "f" and (keep_nan or mark_nan):
            # The engine finds NaN faster than Arrow would.
            return _converted(pa, name, plain, from_pandas=False), not keep_nan
    else:
        plain = values
    if kind == "O" or isinstance(values, (list, tuple)):
        return _objects(pa, name, values), False
    if kind == "M" and type(dtype).__module__.startswith("numpy"):
        plain = numpy() if numpy is not None else values
    return _converted(pa, name, plain, from_pandas=not keep_nan), False


def _converted(pa: Any, name: str, values: Any, *, from_pandas: bool) -> Any:
    try:
        array = pa.array(values, from_pandas=from_pandas)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, TypeError) as refused:
        raise DataError(f'column "{name}": {refused}', column=name) from refused
    return _whole(pa, array)


def _plain(pa: Any, name: str, array: Any) -> Any:
    """What pandas' periods and intervals are stored as would mean nothing in a table."""
    if str(getattr(array.type, "extension_name", "")).startswith("pandas."):
        raise DataError(
            f'column "{name}": type {array.type} has no place in a table', column=name,
            hint="make periods timestamps (dt.to_timestamp), and columns of the ends of intervals",
        )
    return array


def _categories(pa: Any, name: str, backing: Any, dtype: Any) -> Any:
    if len(dtype.categories) == 0:
        return pa.nulls(len(backing))
    codes = backing.codes
    missing = codes < 0
    keys = pa.array(codes, mask=missing if missing.any() else None)
    texts, _ = _array(pa, name, dtype.categories.to_series(), keep_nan=True, mark_nan=False)
    return pa.DictionaryArray.from_arrays(keys, texts, ordered=False)


def _whole(pa: Any, array: Any) -> Any:
    if not isinstance(array, pa.ChunkedArray):
        return array
    return array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()


def _objects(pa: Any, name: str, values: Any) -> Any:
    """Python objects: all of one kind besides None, NaN, NaT and NA, which mean that there is no value."""
    plain = values.tolist() if hasattr(values, "tolist") else list(values)
    # Arrow would make a date of what has a time, and bytes of text.
    kind = _one_kind(name, plain)
    if kind.startswith("datetime") and any(getattr(value, "nanosecond", 0) for value in plain):
        # pyarrow counts microseconds when the first value does.
        import pandas

        try:
            return pa.array(pandas.to_datetime(plain, utc=True).as_unit("ns"), from_pandas=True)
        except ValueError as refused:
            raise DataError(f'column "{name}": {refused}', column=name) from refused
    try:
        array = pa.array(values if hasattr(values, "to_numpy") else plain, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        array = None
    if array is not None:
        return _whole(pa, array)
    if kind == "UUID":
        return pa.array([None if _is_missing(v) else v.bytes for v in plain], pa.binary(16))
    if kind == "ndarray":
        return _converted(pa, name, [None if _is_missing(v) else v.tolist() for v in plain], from_pandas=False)
    if kind == "int":
        for row, value in enumerate(plain):
            if not _is_missing(value) and not -(2**63) <= value < 2**63:
                raise DataError(
                    f'column "{name}", row {row}: value {value} is out of range for type LONG', column=name, row=row,
                )
    raise DataError(
        f'column "{name}": objects of type {kind} have no place in a table', column=name,
        hint="convert them to numbers, text or times",
    )


def _is_absent(value: Any) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def _is_missing(value: Any) -> bool:
    return _is_absent(value) or (isinstance(value, float) and value != value)


#: Kinds that go together without loss, and as which.
_TOGETHER = {("float", "int"): "float", ("Decimal", "int"): "Decimal"}


def _one_kind(name: str, values: list[Any]) -> str:
    """The kind of all values that are there.

    :raises DataError: names the first value of another kind than those before it
    """
    # Types first: there are few of them, and most often one.
    has_times = any(issubclass(made, dt.datetime) for made in set(map(type, values)))
    kinds = {_kind(value) for value in dict(zip(map(type, values), values)).values() if not _is_absent(value)}
    if not has_times and len(kinds) == 1:
        return kinds.pop()
    first = ""
    for row, value in enumerate(values):
        if _is_missing(value):
            continue
        kind = _kind(value)
        if not first or kind == first:
            first = kind
        elif (together := _TOGETHER.get((min(first, kind), max(first, kind)))) is not None:
            first = together
        else:
            shown = repr(value)
            shown = shown if len(shown) <= 60 else shown[:60] + "…"
            raise DataError(
                f'column "{name}", row {row}: value {shown} is of type {kind}, those before it of type {first}',
                column=name, row=row, hint="give the column one type, as astype does",
            )
    return first or "None"


def _kind(value: Any) -> str:
    """The type of a value, by name; some types are one."""
    if isinstance(value, dt.datetime):
        return "datetime" if value.tzinfo is None else "datetime with a time zone"
    for kind in (str, bool, int, float, dt.date, uuid.UUID):
        if isinstance(value, kind):
            return kind.__name__
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "bytes"
    dtype = getattr(value, "dtype", None)
    if dtype is not None and not getattr(value, "shape", ()):
        # Scalars of numpy.
        return {"b": "bool", "i": "int", "u": "int", "f": "float"}.get(dtype.kind, str(dtype))
    return "list" if isinstance(value, tuple) else type(value).__name__


def column_names(frame: Any) -> Optional[list[str]]:
    """Names of the columns, as far as they can be told without reading anything."""
    names = getattr(frame, "columns", None)
    return None if names is None else [str(name) for name in names]
