//! What functions over timestamps have in common: their types, and columns of them as counts.

use crate::Error;
use crate::calendar::Unit;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type, TimeUnit as ArrowUnit};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::ColumnarValue;
use std::sync::Arc;
use tidalite_types::TimeUnit;

/// The type an argument that has to be a timestamp is taken as.
pub(super) fn timestamp_type(given: &DataType, function: &str) -> Result<DataType> {
    match given {
        DataType::Timestamp(ArrowUnit::Second, _) => Ok(DataType::Timestamp(ArrowUnit::Millisecond, None)),
        DataType::Timestamp(unit, _) => Ok(DataType::Timestamp(*unit, None)),
        DataType::Null | DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Date32 => {
            Ok(DataType::Timestamp(ArrowUnit::Microsecond, None))
        }
        other => Err(Error::invalid(format!(
            "{function} takes a timestamp, not {}",
            crate::door::type_name(&datafusion::arrow::datatypes::Field::new("", other.clone(), true))
        ))
        .into()),
    }
}

/// Returns the type that an order of rows is taken as: a timestamp, or an integer.
pub(super) fn order_type(given: &DataType, function: &str) -> Result<DataType> {
    if given.is_integer() && *given != DataType::UInt64 { Ok(DataType::Int64) } else { timestamp_type(given, function) }
}

/// Creates the error for an aggregate over rows without an order.
pub(super) fn no_order(function: &str) -> Error {
    Error::invalid(format!("{function} needs the order of its rows"))
        .about(function.to_lowercase())
        .with_hint("rows with a designated timestamp have one; otherwise write ORDER BY within the call")
}

pub(super) fn unit(data_type: &DataType) -> Result<TimeUnit> {
    match data_type {
        DataType::Timestamp(ArrowUnit::Millisecond, _) => Ok(TimeUnit::Millis),
        DataType::Timestamp(ArrowUnit::Microsecond, _) => Ok(TimeUnit::Micros),
        DataType::Timestamp(ArrowUnit::Nanosecond, _) => Ok(TimeUnit::Nanos),
        other => Err(Error::internal(format!("{other} is no timestamp of ours")).into()),
    }
}

pub(super) fn ticks(array: &ArrayRef) -> Result<Int64Array> {
    Ok(cast(array, &DataType::Int64)?.as_primitive::<Int64Type>().clone())
}

/// Converts counts to times of a type.
pub(super) fn of_ticks(values: Int64Array, data_type: &DataType) -> Result<ArrayRef> {
    Ok(cast(&(Arc::new(values) as ArrayRef), data_type)?)
}

pub(super) fn from_ticks(values: &Int64Array, data_type: &DataType, is_scalar: bool) -> Result<ColumnarValue> {
    let array = cast(&(Arc::new(values.clone()) as ArrayRef), data_type)?;
    if is_scalar && array.len() == 1 {
        return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?));
    }
    Ok(ColumnarValue::Array(array))
}

pub(super) fn null(data_type: &DataType) -> Result<ColumnarValue> {
    Ok(ColumnarValue::Scalar(ScalarValue::try_from(data_type)?))
}

/// An argument that is one text for all rows.
pub(super) fn text(value: &ColumnarValue, what: &str) -> Result<Option<String>> {
    match value {
        ColumnarValue::Scalar(ScalarValue::Utf8(text) | ScalarValue::Utf8View(text) | ScalarValue::LargeUtf8(text)) => {
            Ok(text.clone())
        }
        ColumnarValue::Scalar(ScalarValue::Null) => Ok(None),
        _ => Err(Error::invalid(format!("{what} has to be a constant text")).into()),
    }
}

/// A unit of time by its letter.
pub(super) fn letter(value: &ColumnarValue, function: &str) -> Result<Option<Unit>> {
    text(value, &format!("the unit of {function}"))?.map(|text| unit_named(&text)).transpose()
}

pub(super) fn unit_named(text: &str) -> Result<Unit> {
    Unit::of(text).ok_or_else(|| {
        let mut error = Error::invalid(format!("\"{text}\" is no unit of time"))
            .with_hint("units are n, U, T, s, m, h, d, w, M and y");
        error.subject = Some(format!("'{text}"));
        error.into()
    })
}
