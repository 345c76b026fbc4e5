//! Several `count(DISTINCT x)` over all rows: each becomes an aggregation of its own, beside one of what needs no distinct
//! values, and their rows are put side by side. Our operator counts the values of one argument ([`super::group`]), with all
//! threads; the general one gathers those of several with one.

use super::group::{counted_by, counts_distinct, function};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Column, Result};
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, LogicalPlanBuilder};

/// The same row, if that is worth it.
pub(crate) fn counts_apart(aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
    if !aggregate.group_expr.is_empty() {
        return Ok(None);
    }
    let mut sides: Vec<(Option<&Expr>, Vec<Expr>)> = Vec::new();
    for expr in &aggregate.aggr_expr {
        let counted = function(expr).and_then(counted_by);
        match sides.iter_mut().find(|(known, _)| *known == counted) {
            Some((_, own)) => own.push(expr.clone()),
            None => sides.push((counted, vec![expr.clone()])),
        }
    }
    let counts = sides.iter().filter(|(counted, _)| counted.is_some()).count();
    if counts < 2 || !is_read_alike(&aggregate.input)? {
        return Ok(None);
    }
    let mut joined: Option<LogicalPlanBuilder> = None;
    for (counted, own) in sides {
        let side = Aggregate::try_new(aggregate.input.clone(), Vec::new(), own)?;
        if counted.is_some() && !counts_distinct(&side) {
            return Ok(None);
        }
        let side = LogicalPlan::Aggregate(side);
        joined = Some(match joined {
            None => LogicalPlanBuilder::from(side),
            Some(others) => others.cross_join(side)?,
        });
    }
    let Some(joined) = joined else { return Ok(None) };
    let columns = aggregate.schema.columns().into_iter().map(|column: Column| Expr::Column(column));
    joined.project(columns)?.build().map(Some)
}

/// Whether rows are those of tables and the same each time they are read.
fn is_read_alike(plan: &LogicalPlan) -> Result<bool> {
    let mut is_alike = true;
    plan.apply_with_subqueries(|node| {
        let is_plain = match node {
            // Some rows may be others the next time.
            LogicalPlan::TableScan(scan) => scan.fetch.is_none(),
            LogicalPlan::Projection(_) | LogicalPlan::Filter(_) | LogicalPlan::SubqueryAlias(_) => true,
            _ => false,
        };
        is_alike &= is_plain && !node.expressions().iter().any(Expr::is_volatile);
        Ok(if is_alike { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    })?;
    Ok(is_alike)
}
