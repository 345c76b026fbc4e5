//! Rewrites `SELECT DISTINCT` to groups by all columns.
//!
//! The stock rule drops the DISTINCT where rows are known to be distinct, but derives that incorrectly: `g`, distinct
//! in `(SELECT DISTINCT g FROM t) s`, also counts as distinct in `SELECT s.g, q.a FROM s CROSS JOIN q GROUP BY s.g,
//! q.a`.

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::{Aggregate, Distinct, Expr, LogicalPlan};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// Rewrites DISTINCT; runs before the stock rule for DISTINCT.
#[derive(Debug)]
pub(crate) struct DistinctGroups;

impl OptimizerRule for DistinctGroups {
    fn name(&self) -> &'static str {
        "distinct_groups"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        match plan {
            LogicalPlan::Distinct(Distinct::All(input)) if !input.schema().fields().is_empty() => {
                let keys = input.schema().columns().into_iter().map(Expr::Column).collect();
                Ok(Transformed::yes(LogicalPlan::Aggregate(Aggregate::try_new(input, keys, Vec::new())?)))
            }
            other => Ok(Transformed::no(other)),
        }
    }
}
