//! A scan whose rows come in the order in which the first of them are asked for reads no more of them: the columns of the
//! thousands of rows that a block has besides are left alone.
//!
//! Works on the finished plan: a limit, or a merge of what threads have that keeps its first rows, right over a scan. They
//! stay: each stream of the scan ends by itself.

use crate::scan::exec::ScanExec;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct LimitedScans;

type Plan = Arc<dyn ExecutionPlan>;

impl PhysicalOptimizerRule for LimitedScans {
    fn optimize(&self, plan: Plan, _: &ConfigOptions) -> Result<Plan> {
        plan.transform_up(|node| match limited(&node) {
            Some(scan) => Ok(Transformed::yes(replace_children_if_necessary(node, vec![scan])?)),
            None => Ok(Transformed::no(node)),
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "LimitedScans"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The scan below a limit, with that.
fn limited(node: &Plan) -> Option<Plan> {
    let rows = rows_asked(node)?;
    let [input] = node.children()[..] else { return None };
    let scan = input.downcast_ref::<ScanExec>().filter(|scan| scan.reads_rows())?;
    Some(Arc::new(scan.limited(rows)))
}

/// Of each stream below.
fn rows_asked(node: &Plan) -> Option<usize> {
    if let Some(merge) = node.downcast_ref::<SortPreservingMergeExec>() {
        return merge.fetch();
    }
    if let Some(threads) = node.downcast_ref::<CoalescePartitionsExec>() {
        return threads.fetch();
    }
    if let Some(limit) = node.downcast_ref::<LocalLimitExec>() {
        return Some(limit.fetch());
    }
    let limit = node.downcast_ref::<GlobalLimitExec>()?;
    limit.fetch()?.checked_add(limit.skip())
}
