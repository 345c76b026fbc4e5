//! FETCH FIRST n ROWS WITH TIES.

use super::Result;
use crate::Error;
use datafusion::common::Column;
use datafusion::functions_window::expr_fn::{rank, row_number};
use datafusion::logical_expr::{Expr, ExprFunctionExt, LogicalPlan, LogicalPlanBuilder, Sort};
use std::sync::Arc;
use tidalite_sql::Span;

/// Returns the first `fetch` rows after `skip`, and the rows after these that ORDER BY does not tell from the last one.
pub(super) fn with_ties(plan: LogicalPlan, skip: Option<Expr>, fetch: Expr, span: Span) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Sort(sort) => ranked(sort, skip, fetch),
        // The SELECT list above keys that are not selected.
        LogicalPlan::Projection(projection) => {
            let input = with_ties(Arc::unwrap_or_clone(projection.input), skip, fetch, span)?;
            Ok(LogicalPlanBuilder::from(input).project(projection.expr)?.build()?)
        }
        _ => {
            Err(Error::invalid("WITH TIES cannot be specified without ORDER BY clause").at(span.start as usize).into())
        }
    }
}

/// Ties of row n have its rank, and all ranks of the first n rows are at most n.
fn ranked(sort: Sort, skip: Option<Expr>, fetch: Expr) -> Result<LogicalPlan> {
    let (keys, input) = (sort.expr, Arc::unwrap_or_clone(sort.input));
    let columns: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
    let rank = rank().order_by(keys.clone()).build()?;
    let number = row_number().order_by(keys.clone()).build()?;
    let value = |window: &Expr| Expr::Column(Column::new_unqualified(window.schema_name().to_string()));
    let condition = match skip {
        Some(skip) => value(&rank).lt_eq(skip.clone() + fetch).and(value(&number).gt(skip)),
        None => value(&rank).lt_eq(fetch),
    };
    let windows = LogicalPlanBuilder::window_plan(input, [rank, number])?;
    Ok(LogicalPlanBuilder::from(windows).filter(condition)?.project(columns)?.sort(keys)?.build()?)
}
