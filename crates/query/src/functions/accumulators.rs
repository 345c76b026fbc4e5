//! Creates the accumulators of one aggregate call, a new one for each frame of a window.

use datafusion::arrow::datatypes::{FieldRef, Schema};
use datafusion::common::Result;
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::{Accumulator, AggregateUDF};
use datafusion::physical_expr::PhysicalExpr;
use std::sync::Arc;

/// An aggregate with the arguments of one call.
#[derive(Debug)]
pub(super) struct AccumulatorFactory {
    of: Arc<AggregateUDF>,
    result: FieldRef,
    schema: Schema,
    ignores_nulls: bool,
    is_distinct: bool,
    exprs: Vec<Arc<dyn PhysicalExpr>>,
    fields: Vec<FieldRef>,
}

impl AccumulatorFactory {
    pub fn new(of: Arc<AggregateUDF>, args: &AccumulatorArgs) -> AccumulatorFactory {
        AccumulatorFactory {
            of,
            result: args.return_field.clone(),
            schema: args.schema.clone(),
            ignores_nulls: args.ignore_nulls,
            is_distinct: args.is_distinct,
            exprs: args.exprs.to_vec(),
            fields: args.expr_fields.to_vec(),
        }
    }

    /// Returns a new accumulator for rows in any order.
    pub fn accumulator(&self) -> Result<Box<dyn Accumulator>> {
        self.of.accumulator(AccumulatorArgs {
            return_field: self.result.clone(),
            schema: &self.schema,
            ignore_nulls: self.ignores_nulls,
            order_bys: &[],
            is_reversed: false,
            name: self.of.name(),
            is_distinct: self.is_distinct,
            exprs: &self.exprs,
            expr_fields: &self.fields,
        })
    }
}
