//! Names of computed join keys.
//!
//! The physical planner computes a join key in a projection beside all columns of its side. A call that is named after its
//! argument, as a cast is, would take the name of that column.

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// Gives an alias to each join key that is a function call, one of the last rules for logical plans.
#[derive(Debug)]
pub(crate) struct NameJoinKeys;

impl OptimizerRule for NameJoinKeys {
    fn name(&self) -> &'static str {
        "name_join_keys"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Join(mut join) = plan else { return Ok(Transformed::no(plan)) };
        let is_call = |key: &Expr| matches!(key, Expr::ScalarFunction(_));
        if !join.on.iter().any(|(left, right)| is_call(left) || is_call(right)) {
            return Ok(Transformed::no(LogicalPlan::Join(join)));
        }
        let named = |key: Expr| {
            if !is_call(&key) {
                return key;
            }
            let name = key.to_string();
            key.alias(name)
        };
        join.on = join.on.into_iter().map(|(left, right)| (named(left), named(right))).collect();
        Ok(Transformed::yes(LogicalPlan::Join(join)))
    }
}
