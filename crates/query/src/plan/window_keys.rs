//! Windows whose partitions the physical planner trips over.
//!
//! It sorts rows by what PARTITION BY computes, `strpos(s, v) > 0`, and then does not see that they are ("does not satisfy
//! order requirements"). Such a plan is made again with keys that are columns, computed below the window.

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Window};

/// `None` when all keys are columns as it is.
pub(crate) fn keys_as_columns(plan: LogicalPlan) -> Result<Option<LogicalPlan>> {
    let done = plan.transform_up(|node| {
        let LogicalPlan::Window(window) = node else { return Ok(Transformed::no(node)) };
        let mut keys = Vec::new();
        let placed = window.window_expr.iter().cloned().map(|expr| placed(expr, &mut keys));
        let exprs = placed.collect::<Result<Vec<Expr>>>()?;
        if keys.is_empty() {
            return Ok(Transformed::no(LogicalPlan::Window(window)));
        }
        Ok(Transformed::yes(below(&window, exprs, keys)?))
    })?;
    Ok(done.transformed.then_some(done.data))
}

/// With columns for the keys that are computed, which are noted.
fn placed(expr: Expr, keys: &mut Vec<Expr>) -> Result<Expr> {
    let done = expr.transform_up(|e| {
        let Expr::WindowFunction(mut function) = e else { return Ok(Transformed::no(e)) };
        for key in &mut function.params.partition_by {
            if matches!(key, Expr::Column(_)) {
                continue;
            }
            let at = keys.iter().position(|known| known == key).unwrap_or_else(|| {
                keys.push(key.clone());
                keys.len() - 1
            });
            *key = Expr::Column(Column::new_unqualified(name(at)));
        }
        Ok(Transformed::yes(Expr::WindowFunction(function)))
    })?;
    Ok(done.data)
}

fn name(at: usize) -> String {
    format!("__window_key_{at}")
}

fn below(window: &Window, exprs: Vec<Expr>, keys: Vec<Expr>) -> Result<LogicalPlan> {
    let columns = || window.input.schema().columns().into_iter().map(Expr::Column);
    let keys = keys.into_iter().enumerate().map(|(at, key)| key.alias(name(at)));
    let outputs = window.window_expr.iter().zip(&exprs).map(|(before, now)| {
        Expr::Column(Column::new_unqualified(now.schema_name().to_string())).alias(before.schema_name().to_string())
    });
    let outputs: Vec<Expr> = columns().chain(outputs).collect();
    let input = LogicalPlanBuilder::from(window.input.as_ref().clone()).project(columns().chain(keys))?;
    input.window(exprs)?.project(outputs)?.build()
}
