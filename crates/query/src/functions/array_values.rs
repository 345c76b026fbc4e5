//! Arrays as in PostgreSQL: `array_dims`, `array_fill`, `trim_array`; `array_remove` and `array_replace` change all
//! equal items, where the stock functions of these names change the first.

use super::guarded::{bytes_max, too_large};
use super::scalar::{Call, Gives, Kind, PLAIN, Scalar};
use crate::Error;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListArray, StringViewArray, UInt64Array};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::{cast, interleave, take};
use datafusion::arrow::datatypes::{DataType, FieldRef, Int64Type};
use datafusion::common::Result;
use datafusion::functions_nested::{remove, replace};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};
use std::sync::Arc;

pub(super) const FUNCTIONS: &[Scalar] = &[
    Scalar {
        name: "array_dims",
        takes: "an array",
        kinds: &[Kind::List],
        gives: Gives::Text,
        call: |call| {
            let lists = call.columns[0].as_list::<i32>();
            let text = |row: usize| lists.is_valid(row).then(|| bounds(&lists.value(row))).flatten();
            Ok(Arc::new((0..call.rows).map(text).collect::<StringViewArray>()))
        },
        ..PLAIN
    },
    Scalar {
        name: "trim_array",
        takes: "an array and how many items to remove from its end",
        kinds: &[Kind::List, Kind::Long],
        gives: Gives::Like(0),
        call: trim_array,
        ..PLAIN
    },
    Scalar {
        name: "array_fill",
        takes: "a value and an array with one length",
        kinds: &[Kind::Any, Kind::List],
        returns: Some(|types, _| Ok(DataType::List(crate::door::item(types[0].clone())))),
        call: array_fill,
        ..PLAIN
    },
];

/// Returns the bounds of each dimension, such as `[1:2][1:3]`; `None` for an empty array.
fn bounds(list: &ArrayRef) -> Option<String> {
    if list.is_empty() {
        return None;
    }
    let inner = list
        .as_list_opt::<i32>()
        .and_then(|lists| (0..lists.len()).find(|row| lists.is_valid(*row)).map(|row| lists.value(row)));
    let inner = inner.and_then(|inner| bounds(&inner)).unwrap_or_default();
    Some(format!("[1:{}]{inner}", list.len()))
}

/// Builds a list column of the positions of a values array.
fn taken(values: &ArrayRef, positions: Vec<u64>, lengths: Vec<usize>, is_valid: Vec<bool>) -> Result<ArrayRef> {
    let values = take(values, &UInt64Array::from(positions), None)?;
    let item = crate::door::item(values.data_type().clone());
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(ListArray::try_new(item, offsets, values, Some(NullBuffer::from(is_valid)))?))
}

fn trim_array(call: &Call) -> Result<ArrayRef> {
    let (lists, counts) = (call.columns[0].as_list::<i32>(), call.columns[1].as_primitive::<Int64Type>());
    let (mut positions, mut lengths, mut is_valid) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..call.rows {
        is_valid.push(lists.is_valid(row) && counts.is_valid(row));
        if lists.is_null(row) || counts.is_null(row) {
            lengths.push(0);
            continue;
        }
        let length = lists.value_length(row) as usize;
        let Some(kept) = usize::try_from(counts.value(row)).ok().and_then(|count| length.checked_sub(count)) else {
            let text = format!("number of elements to trim must be between 0 and {length}");
            return Err(Error::invalid(text).about("trim_array").into());
        };
        let start = lists.value_offsets()[row] as u64;
        positions.extend(start..start + kept as u64);
        lengths.push(kept);
    }
    taken(lists.values(), positions, lengths, is_valid)
}

fn array_fill(call: &Call) -> Result<ArrayRef> {
    let (values, dims) = (&call.columns[0], call.columns[1].as_list::<i32>());
    let (mut positions, mut lengths, mut is_valid) = (Vec::new(), Vec::new(), Vec::new());
    let refused =
        || Error::invalid("array_fill takes a value and an array with one length of 0 or more").about("array_fill");
    // At least eight bytes for each item.
    let items_max = bytes_max() / 8;
    for row in 0..call.rows {
        is_valid.push(dims.is_valid(row));
        if dims.is_null(row) {
            lengths.push(0);
            continue;
        }
        let given = cast(&dims.value(row), &DataType::Int64)?;
        let given = given.as_primitive::<Int64Type>();
        if given.len() != 1 || given.is_null(0) {
            return Err(refused().into());
        }
        let length = usize::try_from(given.value(0)).map_err(|_| refused())?;
        if length.saturating_add(positions.len()) > items_max {
            return Err(too_large("array_fill").into());
        }
        positions.extend(std::iter::repeat_n(row as u64, length));
        lengths.push(length);
    }
    if values.get_array_memory_size().checked_div(values.len().max(1)).unwrap_or(0) as u128 * positions.len() as u128
        > bytes_max() as u128
    {
        return Err(too_large("array_fill").into());
    }
    taken(values, positions, lengths, is_valid)
}

/// Returns the arguments of a call with no values below NULL arrays. CASE leaves values there (DF-79).
pub(super) fn with_empty_nulls(mut args: ScalarFunctionArgs) -> Result<ScalarFunctionArgs> {
    for arg in &mut args.args {
        let ColumnarValue::Array(column) = arg else { continue };
        let Some(lists) = column.as_list_opt::<i32>().filter(|lists| lists.null_count() > 0) else { continue };
        let has_values = |row: usize| lists.is_null(row) && lists.value_length(row) > 0;
        if (0..lists.len()).any(has_values) {
            let kept = with_items(column, |_| true)?;
            *column = kept;
        }
    }
    Ok(args)
}

/// Removes the items that are NULL; the stock function returns NULL instead (DF-80).
pub(super) fn without_nulls(column: &ArrayRef) -> Result<ArrayRef> {
    let Some(lists) = column.as_list_opt::<i32>() else { return Ok(column.clone()) };
    with_items(column, |at| lists.values().is_valid(at))
}

/// Returns the lists with some of their items, and no items in lists that are NULL.
fn with_items(column: &ArrayRef, is_kept: impl Fn(usize) -> bool) -> Result<ArrayRef> {
    let Some(lists) = column.as_list_opt::<i32>() else { return Ok(column.clone()) };
    let (mut positions, mut lengths) = (Vec::new(), Vec::with_capacity(lists.len()));
    for row in 0..lists.len() {
        let before = positions.len();
        if lists.is_valid(row) {
            let (from, to) = (lists.value_offsets()[row] as usize, lists.value_offsets()[row + 1] as usize);
            positions.extend((from..to).filter(|at| is_kept(*at)).map(|at| at as u64));
        }
        lengths.push(positions.len() - before);
    }
    let is_valid = (0..lists.len()).map(|row| lists.is_valid(row)).collect();
    let found = taken(lists.values(), positions, lengths, is_valid)?;
    Ok(cast(&found, column.data_type())?)
}

/// Returns the stock functions that change all equal items under PostgreSQL's names.
pub(super) fn functions() -> [ScalarUDF; 2] {
    let renamed = |name, stock: Arc<ScalarUDF>| ScalarUDF::new_from_impl(Renamed { name, stock });
    [
        renamed("array_remove", remove::array_remove_all_udf()),
        renamed("array_replace", replace::array_replace_all_udf()),
    ]
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Renamed {
    name: &'static str,
    stock: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for Renamed {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        self.stock.signature()
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.stock.coerce_types(types)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.stock.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let field = self.stock.return_field_from_args(args)?;
        Ok(Arc::new(field.as_ref().clone().with_name(self.name)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_remove = self.name == "array_remove";
        if is_remove
            && args.args.get(1).is_some_and(|item| matches!(item, ColumnarValue::Scalar(item) if item.is_null()))
        {
            return Ok(ColumnarValue::Array(without_nulls(&args.args[0].to_array(args.number_rows)?)?));
        }
        match args.args.get(1) {
            Some(ColumnarValue::Array(items)) if is_remove && items.logical_null_count() > 0 => {
                let (rows, lists, items) = (args.number_rows, args.args[0].clone(), items.clone());
                let removed = self.stock.invoke_with_args(args)?.into_array(rows)?;
                let without = without_nulls(&lists.to_array(rows)?)?;
                let nulls = items.logical_nulls();
                let is_null = |row: usize| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
                let places: Vec<(usize, usize)> = (0..rows).map(|row| (usize::from(is_null(row)), row)).collect();
                Ok(ColumnarValue::Array(interleave(&[removed.as_ref(), without.as_ref()], &places)?))
            }
            _ => self.stock.invoke_with_args(args),
        }
    }
}
