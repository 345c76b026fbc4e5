//! Panics of upstream's Parquet reader as errors. All of its work passes one of these two functions.

use crate::Error;
use datafusion::arrow::array::RecordBatch;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::datasource::physical_plan::ParquetSource;
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::CardinalityEffect;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{FutureExt, Stream, StreamExt};
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

fn damaged() -> Error {
    Error::invalid("could not read a Parquet file: its content is damaged")
        .with_hint("the log has the place that found it")
}

/// Awaits work of the reader. What panicked is not used again.
pub(super) async fn caught<T>(reading: impl Future<Output = Result<T>>) -> Result<T> {
    AssertUnwindSafe(reading).catch_unwind().await.unwrap_or_else(|_| Err(damaged().into()))
}

/// Passes batches of the reader on, and ends with an error if it panics.
fn caught_batches(rows: SendableRecordBatchStream) -> impl Stream<Item = Result<RecordBatch>> + Send {
    AssertUnwindSafe(rows).catch_unwind().map(|batch| batch.unwrap_or_else(|_| Err(damaged().into())))
}

/// Puts [`GuardedRead`] above the scans of Parquet files.
#[derive(Debug)]
pub(in crate::engine) struct GuardsFiles;

impl PhysicalOptimizerRule for GuardsFiles {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let scan = node.downcast_ref::<DataSourceExec>();
            if scan.and_then(|scan| scan.downcast_to_file_source::<ParquetSource>()).is_none() {
                return Ok(Transformed::no(node));
            }
            Ok(Transformed::yes(Arc::new(GuardedRead { input: node }) as Arc<_>))
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "GuardsFiles"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

#[derive(Debug)]
struct GuardedRead {
    input: Arc<dyn ExecutionPlan>,
}

impl ExecutionPlan for GuardedRead {
    fn name(&self) -> &'static str {
        "GuardedReadExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        match children.pop() {
            Some(input) => Ok(Arc::new(GuardedRead { input })),
            None => Ok(self),
        }
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let rows = self.input.execute(partition, context)?;
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), caught_batches(rows))))
    }
}

impl DisplayAs for GuardedRead {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GuardedReadExec")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::executor::block_on;

    #[test]
    fn panics_are_errors() {
        let broken = block_on(caught(async { if true { panic!("a decoder") } else { Ok(1) } }));
        assert!(broken.unwrap_err().to_string().contains("its content is damaged"));
        assert_eq!(block_on(caught(async { Ok(1) })).unwrap(), 1);
    }
}
