//! `SELECT a FROM t ORDER BY (SELECT … WHERE … = t.b)`: what a sub-query looks at to order rows, and that nobody selects.

use super::predicates::subquery_of;
use super::references::free;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::{Expr, LogicalPlan, Projection, Sort};
use std::sync::Arc;

/// The sort with such columns among those that are selected below it; as it is where there are none, or where one could
/// not be told from a column that is selected.
pub(super) fn with_looked_at(sort: Sort) -> Result<Sort> {
    let LogicalPlan::Projection(selected) = sort.input.as_ref() else { return Ok(sort) };
    let mut missing: Vec<Column> = Vec::new();
    for key in &sort.expr {
        for column in looked_at(&key.expr)? {
            let is_new = !selected.schema.has_column(&column) && !missing.contains(&column);
            if is_new && selected.input.schema().has_column(&column) {
                missing.push(column);
            }
        }
    }
    if missing.is_empty() {
        return Ok(sort);
    }
    let exprs = selected.expr.iter().cloned().chain(missing.into_iter().map(Expr::Column)).collect();
    Ok(match Projection::try_new(exprs, selected.input.clone()) {
        Ok(wider) => Sort { input: Arc::new(LogicalPlan::Projection(wider)), ..sort },
        Err(_) => sort,
    })
}

fn looked_at(expr: &Expr) -> Result<Vec<Column>> {
    let mut found = Vec::new();
    expr.apply(|e| {
        if let Some(of) = subquery_of(e) {
            found.extend(free(&of.subquery)?);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}
