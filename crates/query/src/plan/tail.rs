//! `LIMIT -n`: the last n rows, in the order of the query.

use super::in_time_order;
use crate::{Error, Result};
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, SortExpr};

/// The rows are sorted backwards, cut off, and sorted again; by time, the first sort is a scan from the end.
pub(crate) fn last_rows(plan: LogicalPlan, rows: u64) -> Result<LogicalPlan> {
    let rows = usize::try_from(rows).unwrap_or(usize::MAX);
    let ordered = in_time_order(plan)?;
    match cut(&ordered, rows)? {
        Some(plan) => Ok(plan),
        None => Err(Error::invalid("LIMIT -n needs an order: add ORDER BY")),
    }
}

fn cut(plan: &LogicalPlan, rows: usize) -> Result<Option<LogicalPlan>> {
    match plan {
        LogicalPlan::Projection(_) => {
            let inputs = plan.inputs();
            let Some(input) = inputs.first().map(|input| cut(input, rows)).transpose()?.flatten() else {
                return Ok(None);
            };
            Ok(Some(plan.with_new_exprs(plan.expressions(), vec![input])?))
        }
        LogicalPlan::Sort(sort) => {
            let backwards = sort.expr.iter().map(|e| SortExpr::new(e.expr.clone(), !e.asc, !e.nulls_first));
            let backwards = LogicalPlanBuilder::from(sort.input.as_ref().clone()).sort(backwards)?.build()?;
            let last = LogicalPlanBuilder::from(in_time_order(backwards)?).limit(0, Some(rows))?;
            Ok(Some(last.sort(sort.expr.clone())?.build()?))
        }
        _ => Ok(None),
    }
}
