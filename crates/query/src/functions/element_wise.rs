//! `+ - * /` between arrays, element by element, of any number of dimensions.
//!
//! What has fewer dimensions goes with each element of the other: a number with each number, an array with each row. NULL
//! elements stay NULL; arrays of different lengths are refused.

use crate::Error;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Datum, ListArray, UInt32Array};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::error::ArrowError;
use datafusion::common::Result;
use std::sync::Arc;

pub(super) type Kernel = fn(&dyn Datum, &dyn Datum) -> Result<ArrayRef, ArrowError>;

pub(super) fn dimensions(of: &DataType) -> usize {
    match of {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            1 + dimensions(item.data_type())
        }
        _ => 0,
    }
}

/// Columns of one length.
pub(super) fn combined(left: &ArrayRef, right: &ArrayRef, kernel: Kernel) -> Result<ArrayRef> {
    let depths = (dimensions(left.data_type()), dimensions(right.data_type()));
    let lists = (left.as_list_opt::<i32>(), right.as_list_opt::<i32>());
    let (lists, rows) = match lists {
        (None, None) => return Ok(kernel(left, right)?),
        (Some(l), Some(r)) if depths.0 == depths.1 => ((Some(l), Some(r)), l.len()),
        (Some(l), _) if depths.0 > depths.1 => ((Some(l), None), l.len()),
        (_, Some(r)) => ((None, Some(r)), r.len()),
        (Some(l), None) => ((Some(l), None), l.len()),
    };
    let (mut lefts, mut rights) = (Vec::new(), Vec::new());
    let (mut lengths, mut is_valid) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
    for row in 0..rows {
        let is_known = left.is_valid(row) && right.is_valid(row);
        is_valid.push(is_known);
        if !is_known {
            lengths.push(0);
            continue;
        }
        let of = |list: &ListArray| list.value_offsets()[row] as u32..list.value_offsets()[row + 1] as u32;
        let (l, r) = (lists.0.map(of), lists.1.map(of));
        let length = l.as_ref().or(r.as_ref()).map_or(0, ExactSizeIterator::len);
        if let (Some(l), Some(r)) = (&l, &r)
            && l.len() != r.len()
        {
            let message = format!("arrays have different lengths: {} and {}", l.len(), r.len());
            return Err(Error::invalid(message).into());
        }
        let same = std::iter::repeat_n(row as u32, length);
        match l {
            Some(places) => lefts.extend(places),
            None => lefts.extend(same.clone()),
        }
        match r {
            Some(places) => rights.extend(places),
            None => rights.extend(same),
        }
        lengths.push(length);
    }
    let taken = |list: Option<&ListArray>, whole: &ArrayRef, places: Vec<u32>| {
        let values = list.map_or(whole, |list| list.values());
        take(values, &UInt32Array::from(places), None)
    };
    let inner = combined(&taken(lists.0, left, lefts)?, &taken(lists.1, right, rights)?, kernel)?;
    let (item, offsets) = (crate::door::item(inner.data_type().clone()), OffsetBuffer::from_lengths(lengths));
    Ok(Arc::new(ListArray::try_new(item, offsets, inner, Some(NullBuffer::from(is_valid)))?))
}
