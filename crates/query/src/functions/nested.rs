//! The order of arrays and rows: element by element, where NULL equals NULL and is greater than every other value, and a
//! shorter array comes before a longer one with the same beginning, as in PostgreSQL.
//!
//! Workaround for DataFusion 55 (DF-74): the stock operators take a NULL in an array for the least value, except sorts.

use super::floats::key_values;
use super::scalar::{Call, Gives, Kind, PLAIN, Scalar};
use crate::Error;
use datafusion::arrow::array::{
    Array, ArrayRef, BooleanArray, DynComparator, Int32Array, UInt64Array, make_comparator,
};
use datafusion::arrow::compute::{SortOptions, interleave, take};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{Accumulator, ColumnarValue};
use std::cmp::Ordering;
use std::sync::Arc;

/// -1, 0 or 1 for an array or a row that is less than, equal to or greater than another; NULL if one is NULL.
pub(crate) const COMPARE: &str = "__compare";

pub(super) const FUNCTIONS: &[Scalar] = &[Scalar {
    name: COMPARE,
    takes: "two values of a type",
    kinds: &[Kind::Any, Kind::Any],
    gives: Gives::Int,
    call: compare,
    ..PLAIN
}];

/// Returns true for arrays and rows.
pub(crate) fn is_nested(data_type: &DataType) -> bool {
    matches!(data_type, DataType::List(_) | DataType::Struct(_))
}

/// Returns the order of the values of two columns, NULL last.
pub(super) fn order(left: &ArrayRef, right: &ArrayRef) -> Result<DynComparator> {
    let options = SortOptions { descending: false, nulls_first: false };
    Ok(make_comparator(&key_values(left), &key_values(right), options)?)
}

fn compare(call: &Call) -> Result<ArrayRef> {
    let [left, right] = call.columns else { return Err(Error::internal("a comparison of other than two").into()) };
    let compared = order(left, right)?;
    let is_known = |row: usize| left.is_valid(row) && right.is_valid(row);
    Ok(Arc::new((0..call.rows).map(|row| is_known(row).then(|| compared(row, row) as i32)).collect::<Int32Array>()))
}

/// Returns true for rows of two columns that are equal, NULL if one is NULL.
pub(super) fn equal(left: &ArrayRef, right: &ArrayRef) -> Result<BooleanArray> {
    let compared = order(left, right)?;
    let is_known = |row: usize| left.is_valid(row) && right.is_valid(row);
    Ok((0..left.len()).map(|row| is_known(row).then(|| compared(row, row).is_eq())).collect())
}

/// Returns the least or the greatest of the arguments in each row, without NULLs.
pub(super) fn best(args: &[ColumnarValue], rows: usize, better: Ordering) -> Result<ArrayRef> {
    let columns = args.iter().map(|arg| arg.to_array(rows)).collect::<Result<Vec<_>>>()?;
    let mut columns = columns.into_iter();
    let mut found = columns.next().ok_or_else(|| Error::internal("the best of no arguments"))?;
    for column in columns {
        let compared = order(&column, &found)?;
        let is_better = |row: usize| column.is_valid(row) && (found.is_null(row) || compared(row, row) == better);
        let places: Vec<(usize, usize)> = (0..rows).map(|row| (usize::from(is_better(row)), row)).collect();
        found = interleave(&[found.as_ref(), column.as_ref()], &places)?;
    }
    Ok(found)
}

/// The least or the greatest array or row.
#[derive(Debug)]
pub(super) struct ExtremeAccumulator {
    better: Ordering,
    /// One value, NULL without values.
    found: ArrayRef,
}

impl ExtremeAccumulator {
    pub fn try_new(data_type: &DataType, better: Ordering) -> Result<ExtremeAccumulator> {
        Ok(ExtremeAccumulator { better, found: ScalarValue::try_from(data_type)?.to_array()? })
    }
}

impl Accumulator for ExtremeAccumulator {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let values = &columns[0];
        let compared = order(values, values)?;
        let rows = (0..values.len()).filter(|row| values.is_valid(*row));
        let Some(row) = rows.reduce(|best, row| if compared(row, best) == self.better { row } else { best }) else {
            return Ok(());
        };
        let value = take(values, &UInt64Array::from(vec![row as u64]), None)?;
        if self.found.is_null(0) || order(&value, &self.found)?(0, 0) == self.better {
            self.found = value;
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        ScalarValue::try_from_array(&self.found, 0)
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.found.get_array_memory_size()
    }
}
