//! The last steps of a SELECT: projection, DISTINCT and DISTINCT ON, ORDER BY.

use super::Result;
use super::order::output_column;
use super::select::Clauses;
use crate::Error;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, UnnestOptions};
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan, LogicalPlanBuilder, SortExpr};
use tidalite_sql::ast;

/// Plans the SELECT list over rows that are grouped and windowed.
pub(super) fn projected(input: LogicalPlan, clauses: Clauses, distinct: Option<&ast::Distinct>) -> Result<LogicalPlan> {
    let elsewhere =
        clauses.having.iter().chain(&clauses.qualify).chain(&clauses.on).chain(clauses.groups.iter().flatten());
    if elsewhere.chain(clauses.order.iter().map(|key| &key.expr)).any(has_unnest) {
        let error = Error::invalid("set-returning functions are allowed only in the SELECT list and in FROM");
        return Err(error.about("unnest").into());
    }
    let Clauses { items, order, on, .. } = clauses;
    let (input, items) = unnested(input, items)?;
    let (plan, order) = match distinct {
        None if hides_column(&items, &order) => return sorted_by_hidden(input, items, order),
        None => (LogicalPlanBuilder::from(input).project(items)?.build()?, order),
        Some(ast::Distinct::Rows) => (LogicalPlanBuilder::from(input).project(items)?.distinct()?.build()?, order),
        Some(ast::Distinct::On(_)) => {
            // The sort is over the input, which has no SELECT aliases.
            let order = order.into_iter().map(|key| of_input(key, &items)).collect();
            (LogicalPlanBuilder::from(input).distinct_on(on, items, None)?.build()?, order)
        }
    };
    sorted(plan, order)
}

/// Plans the list and ORDER BY of keys that are not selected, one of which has the name of a selected column.
///
/// The keys are computed beside the list and left out after the sort.
fn sorted_by_hidden(input: LogicalPlan, items: Vec<Expr>, order: Vec<SortExpr>) -> Result<LogicalPlan> {
    let output: Vec<Expr> = items.iter().map(output_column).collect();
    let mut columns = items;
    let mut keys = Vec::with_capacity(order.len());
    for key in order {
        let known = columns.iter().find(|item| Expr::clone(item).unalias() == key.expr).map(output_column);
        let column = match known {
            Some(column) => column,
            None if output.contains(&key.expr) => key.expr.clone(),
            None => {
                let name = format!("order {}", keys.len() + 1);
                columns.push(key.expr.clone().alias(&name));
                Expr::Column(Column::new_unqualified(name))
            }
        };
        keys.push(key.with_expr(column));
    }
    Ok(LogicalPlanBuilder::from(input).project(columns)?.sort(keys)?.project(output)?.build()?)
}

/// Returns true if a key names a column of the input that has the name of a selected expression.
fn hides_column(items: &[Expr], order: &[SortExpr]) -> bool {
    let is_hidden = |column: &Column| {
        items.iter().any(|item| matches!(item, Expr::Alias(alias) if alias.name == column.name))
            && column.relation.is_some()
    };
    order.iter().any(|key| key.expr.column_refs().into_iter().any(is_hidden))
}

fn has_unnest(expr: &Expr) -> bool {
    expr.exists(|expr| Ok(matches!(expr, Expr::Unnest(_)))).unwrap_or(true)
}

/// Expands the arrays of the SELECT list to rows, all together.
pub(super) fn unnested(input: LogicalPlan, items: Vec<Expr>) -> Result<(LogicalPlan, Vec<Expr>)> {
    let mut arrays: Vec<(Expr, String)> = Vec::new();
    let mut replaced = Vec::with_capacity(items.len());
    let mut is_nested = false;
    for item in items {
        let done = item.transform_up(|expr| {
            let Expr::Unnest(unnest) = &expr else { return Ok(Transformed::no(expr)) };
            is_nested |=
                unnest.expr.column_refs().iter().any(|column| arrays.iter().any(|(_, name)| *name == column.name));
            let array = (*unnest.expr).clone();
            let known = arrays.iter().position(|(known, _)| *known == array);
            let at = known.unwrap_or_else(|| {
                arrays.push((array, format!("unnest {}", arrays.len() + 1)));
                arrays.len() - 1
            });
            Ok(Transformed::yes(Expr::Column(Column::new_unqualified(arrays[at].1.clone()))))
        });
        replaced.push(done.data()?);
    }
    if is_nested {
        let error = Error::invalid("unnest within unnest is not supported").about("unnest");
        return Err(error.with_hint("unnest twice: SELECT unnest(a) FROM (SELECT unnest(x) AS a …)").into());
    }
    if arrays.is_empty() {
        return Ok((input, replaced));
    }
    let columns = input.schema().columns().into_iter().map(Expr::Column);
    let lists = arrays.iter().map(|(array, name)| array.clone().alias(name.clone()));
    let inner: Vec<Expr> = columns.chain(lists).collect();
    let names = arrays.iter().map(|(_, name)| Column::new_unqualified(name.clone())).collect();
    let options = UnnestOptions::new().with_preserve_nulls(false);
    let plan = LogicalPlanBuilder::from(input).project(inner)?.unnest_columns_with_options(names, options)?.build()?;
    Ok((plan, replaced))
}

fn sorted(plan: LogicalPlan, order: Vec<SortExpr>) -> Result<LogicalPlan> {
    if order.is_empty() {
        return Ok(plan);
    }
    Ok(match plan {
        LogicalPlan::Distinct(Distinct::On(on)) => LogicalPlan::Distinct(Distinct::On(on.with_sort_expr(order)?)),
        plan => LogicalPlanBuilder::from(plan).sort(order)?.build()?,
    })
}

/// Replaces a SELECT alias by its expression.
fn of_input(key: SortExpr, items: &[Expr]) -> SortExpr {
    let Expr::Column(Column { relation: None, name, .. }) = &key.expr else { return key };
    let found = items.iter().find_map(|item| match item {
        Expr::Alias(alias) if alias.name == *name => Some((*alias.expr).clone()),
        _ => None,
    });
    match found {
        Some(value) => key.with_expr(value),
        None => key,
    }
}
