//! LATEST ON of a symbol, straight over a table, reads it from its end: see [`crate::exec::latest_scan`].

use crate::exec::latest_on::LatestOn;
use crate::exec::latest_scan::LatestScan;
use crate::exec::operator::Operator;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct LatestFromEnd;

impl PhysicalOptimizerRule for LatestFromEnd {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| match from_end(&node) {
            Some(scan) => Ok(Transformed::yes(Arc::new(scan) as Arc<dyn ExecutionPlan>)),
            None => Ok(Transformed::no(node)),
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "LatestFromEnd"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn from_end(node: &Arc<dyn ExecutionPlan>) -> Option<LatestScan> {
    let LatestOn { time, keys } = node.downcast_ref::<Operator<LatestOn>>()?.operation();
    let &[key] = keys.as_slice() else { return None };
    let mut input = node.children().pop()?.clone();
    // What puts threads together, a whole scan needs no more.
    if let Some(merge) = input.downcast_ref::<SortPreservingMergeExec>().filter(|merge| merge.fetch().is_none()) {
        input = merge.input().clone();
    }
    LatestScan::of(input, (*time, key), node.properties().clone())
}
