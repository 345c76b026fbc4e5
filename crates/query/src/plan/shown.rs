//! How values without a type of ours are shown: an interval of time as its two ends in parentheses.

use crate::Result;
use crate::functions::{interval_text, is_interval, scalar_named};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};

/// The plan with such columns as text, at its very end.
pub(crate) fn shown(plan: LogicalPlan) -> Result<LogicalPlan> {
    let is_any = plan.schema().fields().iter().any(|field| is_interval(field.data_type()));
    let Some(function) = scalar_named(interval_text()).filter(|_| is_any) else { return Ok(plan) };
    let columns = plan.schema().iter().map(|(relation, field)| {
        let column = Expr::Column((relation, field).into());
        if !is_interval(field.data_type()) {
            return column;
        }
        let call = ScalarFunction::new_udf(function.clone(), vec![column]);
        Expr::ScalarFunction(call).alias_qualified(relation.cloned(), field.name().clone())
    });
    let columns: Vec<Expr> = columns.collect();
    Ok(LogicalPlanBuilder::from(plan).project(columns)?.build()?)
}
