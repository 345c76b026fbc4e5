//! Rows in order of time where that costs little.

use crate::Result;
use crate::scan::spec::Order;
use crate::scan::table::NativeTable;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, ExprSchema};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, SortExpr, TableScan};
use std::sync::Arc;

/// Rows of a plain query over one table come in order of its designated timestamp, as QuestDB's users expect, and
/// `ORDER BY` that timestamp needs no sort. A plain query has projections, filters and limits only.
pub(crate) fn in_time_order(plan: LogicalPlan) -> Result<LogicalPlan> {
    match sorted(&plan)? {
        Some(sorted) => Ok(sorted),
        None => Ok(plan),
    }
}

fn sorted(plan: &LogicalPlan) -> Result<Option<LogicalPlan>> {
    match plan {
        LogicalPlan::Projection(_) | LogicalPlan::Limit(_) => {
            let inputs = plan.inputs();
            let Some(input) = inputs.first().map(|input| sorted(input)).transpose()?.flatten() else { return Ok(None) };
            Ok(Some(plan.with_new_exprs(plan.expressions(), vec![input])?))
        }
        LogicalPlan::Sort(sort) => match (base(&sort.input), sort.expr.first()) {
            (Some(base), Some(first)) if is_by_time(first, &sort.input) => {
                let order = if first.asc { Order::Ascending } else { Order::Descending };
                Ok(Some(with_ordered_scan(plan, &base, order)?))
            }
            _ => Ok(None),
        },
        _ => {
            let Some(base) = base(plan) else { return Ok(None) };
            let ordered = with_ordered_scan(plan, &base, Order::Ascending)?;
            match designated(plan) {
                Some(time) => {
                    let by_time = vec![Expr::Column(time).sort(true, false)];
                    Ok(Some(LogicalPlanBuilder::from(ordered).sort(by_time)?.build()?))
                }
                // A filter on several threads would lose the order of arrival again.
                None => {
                    Ok(matches!(plan, LogicalPlan::TableScan(_) | LogicalPlan::SubqueryAlias(_)).then_some(ordered))
                }
            }
        }
    }
}

/// The scan of one of our tables, below nothing but filters, names and (under a sort) projections.
fn base(plan: &LogicalPlan) -> Option<TableScan> {
    match plan {
        LogicalPlan::TableScan(scan) => {
            let provider = source_as_provider(&scan.source).ok()?;
            provider.is::<NativeTable>().then(|| scan.clone())
        }
        LogicalPlan::Filter(filter) if !has_subquery(&filter.predicate) => base(&filter.input),
        LogicalPlan::SubqueryAlias(alias) => base(&alias.input),
        LogicalPlan::Projection(projection) => base(&projection.input),
        _ => None,
    }
}

/// The same rows, read in order of time when they are those of one table.
pub(super) fn scans_in_time_order(plan: LogicalPlan) -> Result<LogicalPlan> {
    match base(&plan) {
        Some(scan) => with_ordered_scan(&plan, &scan, Order::Ascending),
        None => Ok(plan),
    }
}

fn has_subquery(expr: &Expr) -> bool {
    expr.exists(|e| {
        Ok(matches!(e, Expr::InSubquery(_) | Expr::Exists(_) | Expr::ScalarSubquery(_) | Expr::SetComparison(_)))
    })
    .unwrap_or(true)
}

fn designated(plan: &LogicalPlan) -> Option<Column> {
    plan.schema().iter().find(|(_, field)| crate::door::is_designated(field)).map(Column::from)
}

fn is_by_time(sort: &SortExpr, input: &LogicalPlan) -> bool {
    let Expr::Column(column) = &sort.expr else { return false };
    let field = input.schema().field_from_column(column);
    field.is_ok_and(|field| crate::door::is_designated(field))
}

fn with_ordered_scan(plan: &LogicalPlan, scan: &TableScan, order: Order) -> Result<LogicalPlan> {
    let provider = source_as_provider(&scan.source)?;
    let Some(table) = provider.downcast_ref::<NativeTable>() else { return Ok(plan.clone()) };
    let source = provider_as_source(Arc::new(table.ordered(order)));
    let replaced = plan.clone().transform_down(|node| {
        Ok(match node {
            LogicalPlan::TableScan(scan) => {
                let scan = TableScan { source: source.clone(), ..scan };
                Transformed::new(LogicalPlan::TableScan(scan), true, TreeNodeRecursion::Stop)
            }
            other => Transformed::no(other),
        })
    })?;
    Ok(replaced.data)
}
