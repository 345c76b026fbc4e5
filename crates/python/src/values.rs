//! Columns as lists of Python's own values, for small answers: the libraries that know every type take a quarter of a second
//! to be imported.

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, RecordBatch};
use arrow::datatypes::{
    DataType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimeUnit, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

type Value<'py> = Bound<'py, PyAny>;

/// One list for each column; `None` where a type needs more than Python's own.
pub fn lists<'py>(
    py: Python<'py>,
    types: &[&DataType],
    batches: &[RecordBatch],
) -> PyResult<Option<Vec<Bound<'py, PyList>>>> {
    if !types.iter().all(|data_type| is_plain(data_type)) {
        return Ok(None);
    }
    let list = |at: usize| {
        let list = PyList::empty(py);
        batches.iter().try_for_each(|batch| append(&list, batch.column(at)))?;
        Ok(list)
    };
    (0..types.len()).map(list).collect::<PyResult<_>>().map(Some)
}

fn is_plain(data_type: &DataType) -> bool {
    use DataType::{Boolean, LargeUtf8, Timestamp, Utf8, Utf8View};
    match data_type {
        Boolean | Utf8 | LargeUtf8 | Utf8View => true,
        Timestamp(unit, zone) => *unit != TimeUnit::Nanosecond && zone.is_none(),
        other => other.is_integer() || matches!(other, DataType::Float32 | DataType::Float64),
    }
}

fn append(list: &Bound<'_, PyList>, column: &ArrayRef) -> PyResult<()> {
    match column.data_type() {
        DataType::Boolean => column.as_boolean().iter().try_for_each(|value| list.append(value)),
        DataType::Utf8 => column.as_string::<i32>().iter().try_for_each(|value| list.append(value)),
        DataType::LargeUtf8 => column.as_string::<i64>().iter().try_for_each(|value| list.append(value)),
        DataType::Utf8View => column.as_string_view().iter().try_for_each(|value| list.append(value)),
        DataType::Int8 => numbers::<Int8Type>(list, column),
        DataType::Int16 => numbers::<Int16Type>(list, column),
        DataType::Int32 => numbers::<Int32Type>(list, column),
        DataType::Int64 => numbers::<Int64Type>(list, column),
        DataType::UInt8 => numbers::<UInt8Type>(list, column),
        DataType::UInt16 => numbers::<UInt16Type>(list, column),
        DataType::UInt32 => numbers::<UInt32Type>(list, column),
        DataType::UInt64 => numbers::<UInt64Type>(list, column),
        DataType::Float32 => numbers::<Float32Type>(list, column),
        DataType::Float64 => numbers::<Float64Type>(list, column),
        DataType::Timestamp(TimeUnit::Second, _) => times::<TimestampSecondType>(list, column, "seconds"),
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            times::<TimestampMillisecondType>(list, column, "milliseconds")
        }
        _ => times::<TimestampMicrosecondType>(list, column, "microseconds"),
    }
}

fn numbers<T: ArrowPrimitiveType>(list: &Bound<'_, PyList>, column: &ArrayRef) -> PyResult<()>
where
    T::Native: for<'py> IntoPyObject<'py>,
{
    column.as_primitive::<T>().iter().try_for_each(|value| list.append(value))
}

/// As `datetime`, without a zone. A year that it has not is its error.
fn times<T: ArrowPrimitiveType<Native = i64>>(list: &Bound<'_, PyList>, column: &ArrayRef, unit: &str) -> PyResult<()> {
    let py = list.py();
    let module = py.import("datetime")?;
    let (epoch, delta) = (module.getattr("datetime")?.call1((1970, 1, 1))?, module.getattr("timedelta")?);
    let time = |value: i64| -> PyResult<Value<'_>> {
        let since = PyDict::new(py);
        since.set_item(unit, value)?;
        epoch.add(delta.call((), Some(&since))?)
    };
    column.as_primitive::<T>().iter().try_for_each(|value| list.append(value.map(time).transpose()?))
}
