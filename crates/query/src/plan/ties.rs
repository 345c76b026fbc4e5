//! Rows with equal keys, merged from several sorted streams, come in the order of the streams.

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use std::sync::Arc;

/// DataFusion deals ties out over the streams in turns, which would mix rows of different commits. Our scans hand out
/// their streams in order of arrival, so that taking ties from the first stream keeps it.
#[derive(Debug)]
pub(crate) struct TiesInOrder;

impl PhysicalOptimizerRule for TiesInOrder {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            Ok(match node.downcast_ref::<SortPreservingMergeExec>() {
                Some(merge) => {
                    let merge: Arc<dyn ExecutionPlan> = Arc::new(merge.clone().with_round_robin_repartition(false));
                    Transformed::yes(merge)
                }
                None => Transformed::no(node),
            })
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "TiesInOrder"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
