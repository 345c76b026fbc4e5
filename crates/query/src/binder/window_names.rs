//! Names of window functions that differ in casts only: names omit casts, and a plan needs unique ones.

use super::Result;
use datafusion::common::Column;
use datafusion::common::tree_node::TreeNode;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use std::collections::HashMap;

/// Returns the window functions with different names, and the plan with columns for arguments that make them differ.
pub(super) fn named_apart(plan: LogicalPlan, windows: &[Expr]) -> Result<(LogicalPlan, Vec<Expr>)> {
    let mut known: HashMap<String, &Expr> = HashMap::new();
    let mut columns = Columns { taken: plan.schema().field_names(), added: Vec::new() };
    let mut own = Vec::with_capacity(windows.len());
    for window in windows {
        let is_taken = *known.entry(window.schema_name().to_string()).or_insert(window) != window;
        own.push(if is_taken { columns.moved(window.clone()) } else { window.clone() });
    }
    if columns.added.is_empty() {
        return Ok((plan, own));
    }
    let all = plan.schema().columns().into_iter().map(Expr::Column).chain(columns.added).collect::<Vec<_>>();
    Ok((LogicalPlanBuilder::from(plan).project(all)?.build()?, own))
}

/// Columns that are added to the rows.
struct Columns {
    taken: Vec<String>,
    added: Vec<Expr>,
}

impl Columns {
    /// Replaces the parts of a window function that have casts by columns.
    fn moved(&mut self, window: Expr) -> Expr {
        let Expr::WindowFunction(mut window) = window else { return window };
        let params = &mut window.params;
        let filter = params.filter.iter_mut().map(AsMut::as_mut);
        let order_by = params.order_by.iter_mut().map(|key| &mut key.expr);
        for part in params.args.iter_mut().chain(&mut params.partition_by).chain(order_by).chain(filter) {
            if has_cast(part) {
                let column = Expr::Column(Column::new_unqualified(self.new_name()));
                let expr = std::mem::replace(part, column.clone());
                self.added.push(expr.alias(column.schema_name().to_string()));
            }
        }
        Expr::WindowFunction(window)
    }

    fn new_name(&mut self) -> String {
        let mut number = self.added.len();
        loop {
            number += 1;
            let name = format!("window argument {number}");
            if !self.taken.iter().any(|taken| taken.rsplit('.').next() == Some(&name)) {
                self.taken.push(name.clone());
                return name;
            }
        }
    }
}

fn has_cast(expr: &Expr) -> bool {
    expr.exists(|e| Ok(matches!(e, Expr::Cast(_) | Expr::TryCast(_)))).unwrap_or(false)
}
