//! `array_agg(x ORDER BY y)[n]` is the value of one row: no array is made of the others.
//!
//! Asked before the stock planner, which takes the stock `nth_value` whatever comes.

use crate::functions::nth_value::nth_value;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::functions_nested::extract::array_element;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawFieldAccessExpr};
use datafusion::logical_expr::{Expr, GetFieldAccess};

#[derive(Debug)]
pub(crate) struct Subscripts;

impl ExprPlanner for Subscripts {
    fn plan_field_access(&self, access: RawFieldAccessExpr, _: &DFSchema) -> Result<PlannerResult<RawFieldAccessExpr>> {
        let RawFieldAccessExpr { expr, field_access } = access;
        Ok(match (expr, field_access) {
            (Expr::AggregateFunction(mut function), GetFieldAccess::ListIndex { key })
                if function.func.name() == "array_agg" =>
            {
                let is_number = matches!(*key, Expr::Literal(ScalarValue::Int64(Some(n)), _) if n != 0);
                PlannerResult::Planned(if is_number && !function.params.distinct {
                    function.func = nth_value();
                    function.params.args.push(*key);
                    Expr::AggregateFunction(function)
                } else {
                    array_element(Expr::AggregateFunction(function), *key)
                })
            }
            (expr, field_access) => PlannerResult::Original(RawFieldAccessExpr { expr, field_access }),
        })
    }
}
