//! A part of an array of several dimensions: `a[1:2, 1]` is the first element of each of the first two rows.
//!
//! In: the array, a text that says of each dimension whether it is an index or a slice, and their bounds, from 1, both
//! included, from the end if negative. An index takes its dimension away; outside of the array is NULL, or nothing of a
//! slice.

use crate::Error;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array, ListArray, UInt32Array};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

pub(crate) const NAME: &str = "__array_part";
pub(crate) const INDEX: char = 'i';
pub(crate) const SLICE: char = 's';

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct ArrayPart {
    signature: Signature,
}

impl ArrayPart {
    pub fn new() -> ArrayPart {
        ArrayPart { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

fn too_deep() -> Error {
    Error::invalid("the array has fewer dimensions than subscripts")
}

impl ScalarUDFImpl for ArrayPart {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let taken = types.iter().enumerate().map(|(n, given)| match (n, given) {
            (0, DataType::LargeList(item) | DataType::FixedSizeList(item, _)) => DataType::List(item.clone()),
            (0, given) => given.clone(),
            (1, _) => DataType::Utf8,
            _ => DataType::Int64,
        });
        Ok(taken.collect())
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Err(Error::internal("the type of a part of an array is that of its subscripts").into())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let (Some(of), Some(kinds)) = (args.arg_fields.first(), args.scalar_arguments.get(1)) else {
            return Err(Error::internal("a part of an array takes one").into());
        };
        let kinds = kinds.and_then(|value| value.try_as_str().flatten()).unwrap_or_default();
        let data_type = type_of_part(of.data_type(), kinds).ok_or_else(too_deep)?;
        Ok(Arc::new(Field::new(NAME, data_type, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [of, kinds, bounds @ ..] = &args.args[..] else {
            return Err(Error::internal("a part of an array takes one").into());
        };
        let kinds = match kinds {
            ColumnarValue::Scalar(value) => value.try_as_str().flatten().unwrap_or_default().to_owned(),
            ColumnarValue::Array(_) => return Err(Error::internal("kinds of subscripts are constant").into()),
        };
        let is_constant = [of].into_iter().chain(bounds).all(|a| matches!(a, ColumnarValue::Scalar(_)));
        let rows = if is_constant { 1 } else { args.number_rows };
        let bounds = bounds.iter().map(|bound| Ok(bound.to_array(rows)?.as_primitive::<Int64Type>().clone()));
        let bounds = bounds.collect::<Result<Vec<_>>>()?;
        let of_row: Vec<usize> = (0..rows).collect();
        let found = part(&of.to_array(rows)?, &of_row, kinds.as_bytes(), &bounds)?;
        Ok(match is_constant {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&found, 0)?),
            false => ColumnarValue::Array(found),
        })
    }
}

fn type_of_part(of: &DataType, kinds: &str) -> Option<DataType> {
    let mut rest = kinds.chars();
    let Some(kind) = rest.next() else { return Some(of.clone()) };
    let (DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _)) = of else { return None };
    let inner = type_of_part(item.data_type(), rest.as_str())?;
    Some(if kind == INDEX { inner } else { DataType::List(crate::door::item(inner)) })
}

/// `of_row` says for each value whose row's bounds are its.
fn part(values: &ArrayRef, of_row: &[usize], kinds: &[u8], bounds: &[Int64Array]) -> Result<ArrayRef> {
    let Some((kind, kinds)) = kinds.split_first() else { return Ok(values.clone()) };
    let list = values.as_list_opt::<i32>().ok_or_else(too_deep)?;
    match (char::from(*kind), bounds) {
        (INDEX, [index, bounds @ ..]) => {
            let place = |(n, row): (usize, &usize)| {
                let range = range(list, n);
                let at = place(value(index, *row)?, range.len())?;
                u32::try_from(range.start + at).ok()
            };
            let places: UInt32Array = of_row.iter().enumerate().map(place).collect();
            part(&take(list.values(), &places, None)?, of_row, kinds, bounds)
        }
        (SLICE, [from, to, bounds @ ..]) => {
            let (mut places, mut rows, mut lengths) = (Vec::new(), Vec::new(), Vec::with_capacity(list.len()));
            let mut is_valid = Vec::with_capacity(list.len());
            for (n, row) in of_row.iter().enumerate() {
                let bounds = value(from, *row).zip(value(to, *row)).filter(|_| list.is_valid(n));
                is_valid.push(bounds.is_some());
                let all = range(list, n);
                let kept = bounds.map_or(0..0, |(from, to)| slice(from, to, all.len()));
                lengths.push(kept.len());
                places.extend(kept.clone().map(|at| (all.start + at) as u32));
                rows.extend(kept.map(|_| *row));
            }
            let taken = take(list.values(), &UInt32Array::from(places), None)?;
            let inner = part(&taken, &rows, kinds, bounds)?;
            let (item, offsets) = (crate::door::item(inner.data_type().clone()), OffsetBuffer::from_lengths(lengths));
            Ok(Arc::new(ListArray::try_new(item, offsets, inner, Some(NullBuffer::from(is_valid)))?))
        }
        _ => Err(Error::internal("a subscript without its bounds").into()),
    }
}

fn value(bounds: &Int64Array, row: usize) -> Option<i64> {
    bounds.is_valid(row).then(|| bounds.value(row))
}

fn range(list: &ListArray, row: usize) -> std::ops::Range<usize> {
    if list.is_null(row) {
        return 0..0;
    }
    let offsets = list.value_offsets();
    offsets[row] as usize..offsets[row + 1] as usize
}

/// Where the index is, counted from 0.
fn place(index: i64, length: usize) -> Option<usize> {
    let length = length as i64;
    let at = if index < 0 { length.checked_add(index)? } else { index - 1 };
    (0..length).contains(&at).then_some(at as usize)
}

fn slice(from: i64, to: i64, length: usize) -> std::ops::Range<usize> {
    let count = length as i64;
    let of = |bound: i64| if bound < 0 { bound.saturating_add(count + 1) } else { bound };
    let (from, to) = (of(from).max(1) - 1, of(to).min(count));
    if from < to { from as usize..to as usize } else { 0..0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_from_one_and_from_the_end() {
        assert_eq!([place(1, 3), place(3, 3), place(-1, 3)], [Some(0), Some(2), Some(2)]);
        assert_eq!([place(0, 3), place(4, 3), place(-4, 3), place(i64::MIN, 3)], [None; 4]);
        assert_eq!([slice(2, 9, 3), slice(0, 2, 3), slice(-2, -1, 3), slice(3, 2, 3)], [1..3, 0..2, 1..3, 0..0]);
    }
}
