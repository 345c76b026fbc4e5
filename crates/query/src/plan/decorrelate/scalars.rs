//! Scalar sub-queries that may have no row, and are NULL then, even if their column is NOT NULL.
//!
//! The stock planner treats `(SELECT 1 FROM t LIMIT 1)` as never NULL.

use super::predicates::with_plan;
use super::{Pushed, first_column, free, one_of_each};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{ExprSchema, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, Projection, SubqueryAlias};
use std::sync::Arc;

/// Returns the node with such values marked as nullable.
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

/// Returns true if the column of a sub-query is NOT NULL and the sub-query may have no row.
fn is_never_null(plan: &LogicalPlan) -> Result<bool> {
    let column = first_column(plan)?;
    Ok(!plan.schema().field_from_column(&column)?.is_nullable() && !has_row(plan))
}

/// Returns true if a sub-query has a row for any table contents.
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
