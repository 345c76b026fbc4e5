//! `array @> array`, `array <@ array` and `array && array`: a NULL element equals no element, as in PostgreSQL.
//! Workaround for DataFusion 55 (DF-72): the stock functions find a NULL element in an array with NULL.

use super::array_values::without_nulls;
use super::slow_rows::search_members;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF};
use std::sync::Arc;

/// `array_has_all(array, items)` and `array_has_any(array, items)`.
pub(super) fn has_members(args: ScalarFunctionArgs, stock: &ScalarUDF, is_all: bool) -> Result<ColumnarValue> {
    let rows = args.number_rows;
    let mut args = args;
    let nulls = args.args.iter().map(|arg| nulls(arg, rows)).collect::<Vec<_>>();
    let nulls = nulls.iter().fold(None, |all, own| NullBuffer::union(all.as_ref(), own.as_ref()));
    let mut has_null_item = None;
    if let Some(items) = args.args.get_mut(1).filter(|items| may_have_null_items(items)) {
        if is_all {
            has_null_item = Some(items.to_array(rows)?);
        } else {
            *items = match items {
                ColumnarValue::Array(array) => ColumnarValue::Array(without_nulls(array)?),
                ColumnarValue::Scalar(value) => {
                    ColumnarValue::Scalar(ScalarValue::try_from_array(&without_nulls(&value.to_array()?)?, 0)?)
                }
            };
        }
    }
    let found = search_members(args, stock, is_all)?.into_array(rows)?;
    let mut found = found.as_boolean().values().clone();
    if let Some(items) = has_null_item {
        found = (0..rows).map(|row| found.value(row) && !has_null(&items, row)).collect();
    }
    Ok(ColumnarValue::Array(Arc::new(BooleanArray::new(found, nulls))))
}

fn nulls(arg: &ColumnarValue, rows: usize) -> Option<NullBuffer> {
    match arg {
        ColumnarValue::Array(array) => array.logical_nulls(),
        ColumnarValue::Scalar(value) => value.is_null().then(|| NullBuffer::new_null(rows)),
    }
}

fn may_have_null_items(items: &ColumnarValue) -> bool {
    let has_null = |array: &ArrayRef| array.as_list_opt::<i32>().is_some_and(|lists| lists.values().null_count() > 0);
    match items {
        ColumnarValue::Array(array) => has_null(array),
        ColumnarValue::Scalar(ScalarValue::List(list)) => list.values().null_count() > 0,
        ColumnarValue::Scalar(_) => false,
    }
}

fn has_null(lists: &ArrayRef, row: usize) -> bool {
    lists.as_list_opt::<i32>().is_some_and(|lists| lists.is_valid(row) && lists.value(row).null_count() > 0)
}
