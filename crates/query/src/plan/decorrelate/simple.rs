//! Sub-queries that the stock rules take apart, and soundly: their condition is moved up into a join with the outer
//! rows, and groups, if any, are those of columns it compares with `=`.

use super::predicates::{has_subquery, keeps_one};
use super::references::free;
use crate::functions::casts;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column, DFSchema, Result};
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{
    BinaryExpr, Distinct, Expr, ExprSchemable, Filter, Join, LogicalPlan, Operator, Projection, Sort, Subquery,
    SubqueryAlias,
};

/// Returns true if a sub-query is an aggregate of the rows equal to the outer row: one row each.
pub(super) fn is_one_row(plan: &LogicalPlan) -> Result<bool> {
    Ok(is_told_apart(plan)? && is_aggregate(plan)?)
}

/// Returns true if a sub-query only filters rows, as EXISTS requires.
pub(super) fn has_rows(plan: &LogicalPlan) -> Result<bool> {
    Ok(is_told_apart(plan)? && are_filtered(plan)?)
}

/// The stock rule forgets what a join USING columns asks.
pub(super) fn is_lateral_for_stock(join: &Join) -> Result<bool> {
    if !join.on.is_empty() {
        return Ok(false);
    }
    let mut plan = join.right.as_ref();
    while let LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. }) = plan {
        plan = input;
    }
    let LogicalPlan::Subquery(Subquery { subquery, .. }) = plan else { return Ok(false) };
    Ok(is_told_apart(subquery)? && (is_filtered(subquery, false)? || is_aggregate(subquery)?))
}

/// Returns true if the columns of a correlated condition can be moved up with it under unique names.
///
/// Not so in `SELECT max(i.b) AS w FROM i WHERE i.w = o.w`, nor if an outer column has the same name.
fn is_told_apart(plan: &LogicalPlan) -> Result<bool> {
    let (mut moved, mut out) = (Vec::new(), Vec::new());
    let mut next = Some(plan);
    while let Some(plan) = next {
        match plan {
            LogicalPlan::Filter(Filter { predicate, .. }) => {
                let looking = split_conjunction(predicate).into_iter().filter(|part| part.contains_outer());
                looking.for_each(|part| moved.extend(part.column_refs()));
            }
            LogicalPlan::Projection(Projection { expr, .. }) => out.extend(expr),
            _ => {}
        }
        next = if let [input] = plan.inputs()[..] { Some(input) } else { None };
    }
    let is_only_one = |column: &&Column| {
        let is_other = |e: &&Expr| e.qualified_name().1 == column.name && !matches!(e, Expr::Column(c) if c == *column);
        !out.iter().any(is_other) && moved.iter().all(|other| other.name != column.name || other == column)
    };
    let outside = free(plan)?;
    Ok(moved.iter().all(|column| is_only_one(column) && !outside.contains(column)))
}

fn looks_out(exprs: &[Expr]) -> bool {
    exprs.iter().any(|e| e.contains_outer() || has_subquery(e))
}

/// One row of all.
fn is_aggregate(plan: &LogicalPlan) -> Result<bool> {
    match plan {
        LogicalPlan::Projection(Projection { expr, input, .. }) => Ok(!looks_out(expr) && is_aggregate(input)?),
        LogicalPlan::Aggregate(of) => {
            Ok(of.group_expr.is_empty() && !looks_out(&of.aggr_expr) && is_filtered(&of.input, true)?)
        }
        _ => Ok(false),
    }
}

fn are_filtered(plan: &LogicalPlan) -> Result<bool> {
    match plan {
        LogicalPlan::Projection(Projection { expr, input, .. }) => Ok(!looks_out(expr) && are_filtered(input)?),
        LogicalPlan::Distinct(Distinct::All(input)) | LogicalPlan::Sort(Sort { input, fetch: None, .. }) => {
            are_filtered(input)
        }
        LogicalPlan::Limit(limit) => Ok(keeps_one(limit) && are_filtered(&limit.input)?),
        other => is_filtered(other, false),
    }
}

/// Rows of plans that look at nothing, under conditions that may; `only_equal` allows `=` alone.
fn is_filtered(plan: &LogicalPlan, only_equal: bool) -> Result<bool> {
    if free(plan)?.is_empty() {
        return Ok(true);
    }
    match plan {
        LogicalPlan::Filter(Filter { predicate, input, .. }) => {
            let is_allowed = |part: &Expr| {
                if has_subquery(part) {
                    return is_own(part, plan);
                }
                Ok(!part.contains_outer() || !only_equal || is_equality(part, input.schema())?)
            };
            for part in split_conjunction(predicate) {
                if !is_allowed(part)? {
                    return Ok(false);
                }
            }
            is_filtered(input, only_equal)
        }
        LogicalPlan::Projection(Projection { expr, input, .. }) => {
            Ok(!looks_out(expr) && is_filtered(input, only_equal)?)
        }
        // Not a sub-query in FROM: columns of the condition would have to come through its names.
        _ => Ok(false),
    }
}

/// Whether the sub-queries of a condition look at the rows that it is a condition of, no further.
fn is_own(part: &Expr, plan: &LogicalPlan) -> Result<bool> {
    let LogicalPlan::Filter(filter) = plan else { return Ok(false) };
    let alone = LogicalPlan::Filter(Filter::new(part.clone(), filter.input.clone()));
    Ok(!part.contains_outer() && free(&alone)?.len() == free(&filter.input)?.len())
}

/// Of a column, by which the stock rule then groups.
fn is_equality(part: &Expr, schema: &DFSchema) -> Result<bool> {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = part else { return Ok(false) };
    let is_outer = |side: &Expr| side.contains_outer() && side.column_refs().is_empty();
    let is_inner = |side: &Expr| matches!(side, Expr::Column(_));
    let (inner, outer) = if is_inner(left) { (left, right) } else { (right, left) };
    if !is_inner(inner) || !is_outer(outer) {
        return Ok(false);
    }
    Ok(stays_a_column(&inner.get_type(schema)?, &outer.get_type(schema)?))
}

/// Returns true if a column that is compared with another type is not hidden by a function call.
///
/// The stock rule knows columns and their casts, not the calls that replace some of the casts.
fn stays_a_column(inner: &DataType, outer: &DataType) -> bool {
    match comparison_coercion(inner, outer) {
        Some(common) => !casts::is_own(inner, &common) && (!is_time(inner) || *inner == common),
        None => true,
    }
}

fn is_time(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Timestamp(..) | DataType::Date32)
}
