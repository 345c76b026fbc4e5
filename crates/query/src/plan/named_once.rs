//! An aggregate's order names nothing twice, after expressions were simplified: of `ORDER BY coalesce(ts, ts), ts` one is
//! left. The stock accumulators count on it.

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::logical_expr::expr::Sort;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// The last of the rules for logical plans.
#[derive(Debug)]
pub(crate) struct NamedOnce;

impl OptimizerRule for NamedOnce {
    fn name(&self) -> &'static str {
        "orders_name_once"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Aggregate(aggregate) = &plan else { return Ok(Transformed::no(plan)) };
        if !aggregate.aggr_expr.iter().any(|expr| expr.exists(|e| Ok(names_twice(e))).unwrap_or(false)) {
            return Ok(Transformed::no(plan));
        }
        let names = NamePreserver::new(&plan);
        plan.map_expressions(|expr| {
            let name = names.save(&expr);
            let done = expr.transform_up(|e| Ok(once(e))).data()?;
            Ok(Transformed::yes(name.restore(done)))
        })
    }
}

fn bare(key: &Sort) -> Expr {
    key.expr.clone().unalias_nested().data
}

fn names_twice(expr: &Expr) -> bool {
    let Expr::AggregateFunction(function) = expr else { return false };
    let keys: Vec<Expr> = function.params.order_by.iter().map(bare).collect();
    keys.iter().enumerate().any(|(at, key)| keys[..at].contains(key))
}

fn once(expr: Expr) -> Transformed<Expr> {
    if !names_twice(&expr) {
        return Transformed::no(expr);
    }
    let Expr::AggregateFunction(mut function) = expr else { return Transformed::no(expr) };
    let mut known: Vec<Expr> = Vec::new();
    function.params.order_by.retain(|key| {
        let is_new = !known.contains(&bare(key));
        known.push(bare(key));
        is_new
    });
    Transformed::yes(Expr::AggregateFunction(function))
}
