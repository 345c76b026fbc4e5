//! Arguments of aggregates as arrays of 64 bits.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::physical_expr::PhysicalExpr;
use std::sync::Arc;
use tidalite_operators::group::Values;

/// An argument and the condition that its rows have to satisfy.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    pub argument: Option<Arc<dyn PhysicalExpr>>,
    pub filter: Option<Arc<dyn PhysicalExpr>>,
    /// Whether its values are folded as floating point; `None` where only their being there is.
    pub is_float: Option<bool>,
}

impl Input {
    pub(super) fn values(&self, batch: &RecordBatch) -> Result<Values> {
        let rows = batch.num_rows();
        let array = self.argument.as_ref().map(|e| e.evaluate(batch)?.into_array(rows)).transpose()?;
        let mut present = array.as_ref().and_then(present);
        if let Some(filter) = &self.filter {
            let wanted = filter.evaluate(batch)?.into_array(rows)?;
            let wanted = wanted.as_boolean();
            let is_wanted = |row: usize| wanted.is_valid(row) && wanted.value(row);
            match &mut present {
                Some(present) => {
                    present.iter_mut().enumerate().for_each(|(row, p)| *p &= u8::from(is_wanted(row)));
                }
                None => present = Some((0..rows).map(|row| u8::from(is_wanted(row))).collect()),
            }
        }
        let wide = match (self.is_float, array) {
            (Some(is_float), Some(array)) => Some(wide(array, is_float)?),
            _ => None,
        };
        Ok(Values { array: wide, present })
    }
}

/// 1 where there is a value; `None` where there is one everywhere.
fn present(array: &ArrayRef) -> Option<Vec<u8>> {
    let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0)?;
    Some(nulls.iter().map(u8::from).collect())
}

fn wide(array: ArrayRef, is_float: bool) -> Result<ArrayRef> {
    let array = match array.data_type() {
        // Days have no way to 64 bits but through 32.
        DataType::Date32 => cast(&array, &DataType::Int32)?,
        _ => array,
    };
    Ok(cast(&array, if is_float { &DataType::Float64 } else { &DataType::Int64 })?)
}
