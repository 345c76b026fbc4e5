//! LATERAL tables that look at nothing once their conditions are folded: plain tables of a join.
//!
//! The planner marks such a table, the stock rule takes it apart by what it looks at, and no operator knows the mark. When
//! `i.n = t.n AND 1 = 0` has become false, nothing is left to go by.

use super::references::free;
use super::without_marker;
use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::{LogicalPlan, SubqueryAlias};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use std::sync::Arc;

/// Before the stock rule for LATERAL, behind the one that folds conditions.
#[derive(Debug)]
pub(crate) struct Unmarked;

impl OptimizerRule for Unmarked {
    fn name(&self) -> &'static str {
        "unmarked_laterals"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Join(mut join) = plan else { return Ok(Transformed::no(plan)) };
        if !is_marked(&join.right) || !free(&join.right)?.is_empty() {
            return Ok(Transformed::no(LogicalPlan::Join(join)));
        }
        join.right = Arc::new(without_marker(&join.right)?);
        Ok(Transformed::yes(LogicalPlan::Join(join)))
    }
}

fn is_marked(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Subquery(_) => true,
        LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. }) => is_marked(input),
        _ => false,
    }
}
