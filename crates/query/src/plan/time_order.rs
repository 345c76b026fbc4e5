//! Rows in order of time where that costs little.

use crate::Result;
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
        LogicalPlan::Sort(sort) => match base(&sort.input) {
            Some(base) if sort.expr.first().is_some_and(|e| is_by_time(e, &sort.input)) => {
                Ok(Some(with_ordered_scan(plan, &base)?))
            }
            _ => Ok(None),
        },
        _ => {
            let Some(base) = base(plan) else { return Ok(None) };
            let Some(time) = designated(plan) else { return Ok(None) };
            let plan = with_ordered_scan(plan, &base)?;
            Ok(Some(LogicalPlanBuilder::from(plan).sort(vec![Expr::Column(time).sort(true, false)])?.build()?))
        }
    }
}

/// The scan of one of our tables, below nothing but filters, names and (under a sort) projections.
fn base(plan: &LogicalPlan) -> Option<TableScan> {
    match plan {
        LogicalPlan::TableScan(scan) => native(scan).and_then(|table| table.designated().map(|_| scan.clone())),
        LogicalPlan::Filter(filter) if !has_subquery(&filter.predicate) => base(&filter.input),
        LogicalPlan::SubqueryAlias(alias) => base(&alias.input),
        LogicalPlan::Projection(projection) => base(&projection.input),
        _ => None,
    }
}

fn has_subquery(expr: &Expr) -> bool {
    expr.exists(|e| {
        Ok(matches!(e, Expr::InSubquery(_) | Expr::Exists(_) | Expr::ScalarSubquery(_) | Expr::SetComparison(_)))
    })
    .unwrap_or(true)
}

fn native(scan: &TableScan) -> Option<Arc<dyn datafusion::catalog::TableProvider>> {
    source_as_provider(&scan.source).ok()
}

trait AsNative {
    fn designated(&self) -> Option<String>;
}

impl AsNative for Arc<dyn datafusion::catalog::TableProvider> {
    fn designated(&self) -> Option<String> {
        self.downcast_ref::<NativeTable>()?.designated().map(str::to_owned)
    }
}

fn designated(plan: &LogicalPlan) -> Option<Column> {
    plan.schema().iter().find(|(_, field)| crate::door::is_designated(field)).map(Column::from)
}

fn is_by_time(sort: &SortExpr, input: &LogicalPlan) -> bool {
    let Expr::Column(column) = &sort.expr else { return false };
    let field = input.schema().field_from_column(column);
    sort.asc && field.is_ok_and(|field| crate::door::is_designated(field))
}

fn with_ordered_scan(plan: &LogicalPlan, scan: &TableScan) -> Result<LogicalPlan> {
    let provider = source_as_provider(&scan.source)?;
    let Some(table) = provider.downcast_ref::<NativeTable>() else { return Ok(plan.clone()) };
    let source = provider_as_source(Arc::new(table.ordered()));
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
