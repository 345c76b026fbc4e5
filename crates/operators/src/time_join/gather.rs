//! Gathers columns by row numbers over several arrays.

use super::NONE;
use arrow::array::{Array, ArrayData, ArrayRef, make_array, new_null_array};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow::compute::interleave;
use arrow::datatypes::{ArrowNativeType, DataType, IntervalUnit};
use arrow::error::ArrowError;

/// Gathers rows of arrays of one type, counted over all arrays; [`NONE`] becomes NULL.
///
/// # Errors
/// Fails if the types differ, or a row is in none of the arrays.
pub fn gathered(arrays: &[ArrayRef], rows: &[u32], data_type: &DataType) -> Result<ArrayRef, ArrowError> {
    if arrays.iter().any(|array| array.data_type() != data_type) {
        return Err(ArrowError::InvalidArgumentError(format!("columns that are not all {data_type}")));
    }
    let count: usize = arrays.iter().map(|array| array.len()).sum();
    if rows.iter().any(|row| *row != NONE && *row as usize >= count) {
        return Err(ArrowError::InvalidArgumentError("a row that no array has".to_owned()));
    }
    match data_type.primitive_width() {
        Some(1) => fixed::<i8>(arrays, rows, data_type),
        Some(2) => fixed::<i16>(arrays, rows, data_type),
        Some(4) => fixed::<i32>(arrays, rows, data_type),
        // `IntervalDayTime` has a smaller alignment than its width.
        Some(8) if *data_type != DataType::Interval(IntervalUnit::DayTime) => fixed::<i64>(arrays, rows, data_type),
        _ => any(arrays, rows, data_type),
    }
}

/// Returns the starts of the arrays in the count over all arrays, and the end.
fn starts(arrays: &[ArrayRef]) -> Vec<usize> {
    let ends = arrays.iter().scan(0, |end, array| {
        *end += array.len();
        Some(*end)
    });
    std::iter::once(0).chain(ends).collect()
}

fn fixed<T: ArrowNativeType>(arrays: &[ArrayRef], rows: &[u32], data_type: &DataType) -> Result<ArrayRef, ArrowError> {
    let data: Vec<ArrayData> = arrays.iter().map(|array| array.to_data()).collect();
    let parts: Vec<ScalarBuffer<T>> =
        data.iter().map(|data| ScalarBuffer::new(data.buffers()[0].clone(), data.offset(), data.len())).collect();
    // [`NONE`] is past the end of all arrays.
    let values: Vec<T> = match parts.as_slice() {
        [] => vec![T::default(); rows.len()],
        [one] => rows.iter().map(|row| one.get(*row as usize).copied().unwrap_or_default()).collect(),
        [first, second] => {
            let value = |row: &u32| match first.get(*row as usize) {
                Some(value) => *value,
                None => second.get(*row as usize - first.len()).copied().unwrap_or_default(),
            };
            rows.iter().map(value).collect()
        }
        many => {
            let starts = starts(arrays);
            let value = |row: &u32| {
                let part = starts[1..many.len()].partition_point(|start| *start <= *row as usize);
                many[part].get(*row as usize - starts[part]).copied().unwrap_or_default()
            };
            rows.iter().map(value).collect()
        }
    };
    let builder = ArrayData::builder(data_type.clone()).len(rows.len()).add_buffer(Buffer::from_vec(values));
    Ok(make_array(builder.nulls(nulls(arrays, rows)).build()?))
}

fn nulls(arrays: &[ArrayRef], rows: &[u32]) -> Option<NullBuffer> {
    let has_nulls = arrays.iter().any(|array| array.null_count() > 0);
    if !has_nulls && !rows.contains(&NONE) {
        return None;
    }
    let starts = starts(arrays);
    let is_valid = |row: u32| {
        let part = starts[1..].partition_point(|start| *start <= row as usize);
        arrays.get(part).is_some_and(|array| array.is_valid(row as usize - starts[part]))
    };
    let valid = match has_nulls {
        true => BooleanBuffer::collect_bool(rows.len(), |at| is_valid(rows[at])),
        false => BooleanBuffer::collect_bool(rows.len(), |at| rows[at] != NONE),
    };
    Some(NullBuffer::new(valid))
}

/// Gathers columns of any type.
fn any(arrays: &[ArrayRef], rows: &[u32], data_type: &DataType) -> Result<ArrayRef, ArrowError> {
    if rows.is_empty() || arrays.is_empty() {
        return Ok(new_null_array(data_type, rows.len()));
    }
    let starts = starts(arrays);
    let none = new_null_array(data_type, 1);
    let parts: Vec<&dyn Array> = arrays.iter().chain([&none]).map(AsRef::as_ref).collect();
    let place = |row: &u32| match *row {
        NONE => (arrays.len(), 0),
        row => {
            let part = starts[1..].partition_point(|start| *start <= row as usize);
            (part, row as usize - starts[part])
        }
    };
    interleave(&parts, &rows.iter().map(place).collect::<Vec<_>>())
}
