//! OFFSET without LIMIT, while sorts are removed that nothing requires.
//!
//! Workaround for DataFusion 55: `EnsureRequirements` keeps the sort below a limit that has a number of rows, and may remove
//! the sort below a limit that only skips rows, so that other rows are skipped. To try without: the sub-queries with
//! OFFSET in `select.slt`.

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::limit::GlobalLimitExec;
use std::sync::Arc;

type Plan = Arc<dyn ExecutionPlan>;

/// Rows that no result has; an offset added to them does not overflow.
const ROWS_MAX: usize = usize::MAX / 4;

/// A rule before which offsets get a number of rows, and lose it afterwards.
#[derive(Debug)]
pub(crate) struct BoundsOffsets(pub Arc<dyn PhysicalOptimizerRule + Send + Sync>);

impl PhysicalOptimizerRule for BoundsOffsets {
    fn optimize(&self, plan: Plan, config: &ConfigOptions) -> Result<Plan> {
        let bounded = with_fetch(plan, None, Some(ROWS_MAX))?;
        with_fetch(self.0.optimize(bounded, config)?, Some(ROWS_MAX), None)
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

/// Replaces the number of rows of limits.
fn with_fetch(plan: Plan, from: Option<usize>, to: Option<usize>) -> Result<Plan> {
    let replaced = |node: Plan| match node.downcast_ref::<GlobalLimitExec>() {
        Some(limit) if limit.fetch() == from => {
            let limit = GlobalLimitExec::new(limit.input().clone(), limit.skip(), to);
            Ok(Transformed::yes(Arc::new(limit) as Plan))
        }
        _ => Ok(Transformed::no(node)),
    };
    plan.transform_up(replaced).data()
}
