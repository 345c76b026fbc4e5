//! Filters handed to the readers of files that stand right below them.
//!
//! The logical plan has pushed them down already. The stock rule that does so again in the physical one, and through
//! which files learn of conditions, finds columns by their names, of which a join of `a.k` and `b.k` has two the same:
//! `b.k IS NULL` behind a LEFT JOIN would be asked of `a.k`. So it is let at nothing but a filter and its file.

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::filter_pushdown::FilterPushdown;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct FiltersOfFiles;

impl PhysicalOptimizerRule for FiltersOfFiles {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_down(|node| {
            if node.downcast_ref::<FilterExec>().is_none() || !reads_file(&node) {
                return Ok(Transformed::no(node));
            }
            let pushed = FilterPushdown::new().optimize(node, config)?;
            Ok(Transformed::new(pushed, true, TreeNodeRecursion::Jump))
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "FiltersOfFiles"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether nothing stands between a step and the file that it reads.
fn reads_file(plan: &Arc<dyn ExecutionPlan>) -> bool {
    match plan.children()[..] {
        [] => plan.name() == "DataSourceExec",
        [only] => {
            let passes_on = ["FilterExec", "RepartitionExec", "CoalescePartitionsExec", "CooperativeExec"];
            passes_on.contains(&plan.name()) && reads_file(only)
        }
        _ => false,
    }
}
