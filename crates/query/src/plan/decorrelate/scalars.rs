//! Sub-queries that are values and may have no row: NULL then, whatever their column says.
//!
//! The stock planner takes `(SELECT 1 FROM t LIMIT 1)` for a value that is never NULL.

use super::predicates::with_plan;
use super::{Pushed, first_column, free, one_of_each};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{ExprSchema, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, Projection, SubqueryAlias};
use std::sync::Arc;

/// The node with values that may be NULL where they are.
pub(super) fn with_nulls(plan: LogicalPlan) -> Result<LogicalPlan> {
    let names = NamePreserver::new(&plan);
    let done = plan.map_expressions(|expr| {
        let name = names.save(&expr);
        let done = expr.transform_up(|e| match e {
            Expr::ScalarSubquery(of) if is_never_null(&of.subquery)? && free(&of.subquery)?.is_empty() => {
                let column = first_column(&of.subquery)?;
                let all = Pushed { plan: of.subquery.as_ref().clone(), value: Vec::new() };
                let plan = Arc::new(one_of_each(all, &column)?.plan);
                Ok(Transformed::yes(Expr::ScalarSubquery(with_plan(&of, plan))))
            }
            other => Ok(Transformed::no(other)),
        })?;
        Ok(done.update_data(|expr| name.restore(expr)))
    })?;
    if done.transformed { done.data.recompute_schema() } else { Ok(done.data) }
}

/// Whether the column of a sub-query has no NULL and its row may not be there.
fn is_never_null(plan: &LogicalPlan) -> Result<bool> {
    let column = first_column(plan)?;
    Ok(!plan.schema().field_from_column(&column)?.is_nullable() && !has_row(plan))
}

/// Whether a sub-query has a row whatever is in its tables.
fn has_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(Projection { input, .. }) | LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. }) => {
            has_row(input)
        }
        LogicalPlan::Aggregate(Aggregate { group_expr, .. }) => group_expr.is_empty(),
        LogicalPlan::EmptyRelation(of) => of.produce_one_row,
        _ => false,
    }
}
