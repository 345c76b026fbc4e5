//! Converts evenly nested lists of numbers to DOUBLE[]…: the extents, then the doubles, see `tidalite_types::views`.

use crate::room::Room;
use crate::{Error, Result};
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type, UInt64Type};
use tidalite_types::views::NULL_ELEMENT_BITS;

/// Returns the number of dimensions of a list type whose innermost values are numbers.
pub(crate) fn dims(data_type: &DataType) -> Option<u8> {
    match data_type {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::ListView(item)
        | DataType::LargeListView(item) => match item.data_type() {
            inner if inner.is_integer() || inner.is_floating() => Some(1),
            inner => dims(inner)?.checked_add(1).filter(|dims| *dims <= 32),
        },
        _ => None,
    }
}

fn child(array: &ArrayRef, row: usize) -> ArrayRef {
    match array.data_type() {
        DataType::List(_) => array.as_list::<i32>().value(row),
        DataType::LargeList(_) => array.as_list::<i64>().value(row),
        DataType::ListView(_) => array.as_list_view::<i32>().value(row),
        DataType::LargeListView(_) => array.as_list_view::<i64>().value(row),
        _ => array.as_fixed_size_list().value(row),
    }
}

/// Appends the extents and numbers of one value; `row` counts over the frame.
pub(crate) fn value(
    array: &ArrayRef,
    at: usize,
    dims: u8,
    name: &str,
    row: u64,
    numbers: &mut Vec<f64>,
    room: &mut Room,
) -> Result<Vec<u32>> {
    let mut extents = vec![None; usize::from(dims)];
    numbers.clear();
    flatten(&child(array, at), 0, &mut extents, numbers, room).map_err(|why| Error::of_value(name, row, why))?;
    Ok(extents.into_iter().map(|extent| extent.unwrap_or(0)).collect())
}

fn flatten(
    list: &ArrayRef,
    level: usize,
    extents: &mut [Option<u32>],
    numbers: &mut Vec<f64>,
    room: &mut Room,
) -> Result<(), String> {
    // Lists may share their items, and may therefore be many times larger than their memory.
    room.take((list.len() + 1).saturating_mul(8)).map_err(|e| e.message)?;
    let len = u32::try_from(list.len()).map_err(|_| "the array is too long".to_owned())?;
    if *extents[level].get_or_insert(len) != len {
        return Err("sub-arrays must have matching dimensions".to_owned());
    }
    if level + 1 == extents.len() {
        check_exact(list)?;
        let doubles = cast(list, &DataType::Float64).map_err(|e| e.to_string())?;
        let null = f64::from_bits(NULL_ELEMENT_BITS);
        numbers.extend(doubles.as_primitive::<Float64Type>().iter().map(|number| number.unwrap_or(null)));
        return Ok(());
    }
    if list.null_count() > 0 {
        return Err("a sub-array of an array may not be NULL".to_owned());
    }
    (0..list.len()).try_for_each(|i| flatten(&child(list, i), level + 1, extents, numbers, room))
}

/// Checks that integers of 64 bits are exact doubles.
fn check_exact(list: &ArrayRef) -> Result<(), String> {
    let rounded = |value: i128| value as f64 as i128 != value;
    let found = match list.data_type() {
        DataType::Int64 => list.as_primitive::<Int64Type>().iter().flatten().map(i128::from).find(|v| rounded(*v)),
        DataType::UInt64 => list.as_primitive::<UInt64Type>().iter().flatten().map(i128::from).find(|v| rounded(*v)),
        _ => None,
    };
    found.map_or(Ok(()), |value| Err(format!("value {value} has more digits than a DOUBLE")))
}
