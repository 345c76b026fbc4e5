//! Filters handed to the readers of files that stand right below them.
//!
//! The logical plan has pushed them down already. The stock rule that does so again in the physical one, and through
//! which files learn of conditions, finds columns by their names, of which a join of `a.k` and `b.k` has two the same:
//! `b.k IS NULL` behind a LEFT JOIN would be asked of `a.k`. So it is let at nothing but a filter and its file.

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::collect_columns;
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
            let Some(filter) = node.downcast_ref::<FilterExec>() else { return Ok(Transformed::no(node)) };
            if !reads_file(&node) || has_floats(filter) {
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

/// Returns true if a filter uses floating point.
///
/// Parquet statistics leave out NaN, which is greater than every number here: `x > 6` may not skip a row group whose
/// greatest number is 6.
fn has_floats(filter: &FilterExec) -> bool {
    let schema = filter.input().schema();
    let is_float = |column: Column| schema.fields().get(column.index()).is_none_or(|f| f.data_type().is_floating());
    collect_columns(filter.predicate()).into_iter().any(is_float)
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
