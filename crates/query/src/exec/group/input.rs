//! Arguments of aggregates as arrays of 64 bits.

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
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
        let mut values = Values::of(array, self.is_float)?;
        if let Some(filter) = &self.filter {
            let wanted = filter.evaluate(batch)?.into_array(rows)?;
            let wanted = wanted.as_boolean();
            let is_wanted = |row: usize| wanted.is_valid(row) && wanted.value(row);
            match &mut values.present {
                Some(present) => {
                    present.iter_mut().enumerate().for_each(|(row, p)| *p &= u8::from(is_wanted(row)));
                }
                None => values.present = Some((0..rows).map(|row| u8::from(is_wanted(row))).collect()),
            }
        }
        Ok(values)
    }
}
