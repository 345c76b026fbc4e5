//! Panics of upstream's Parquet reader as errors. All of its work passes one of these two functions.

use crate::Error;
use crate::exec::pass_through::{Pass, PassThroughExec};
use datafusion::arrow::array::RecordBatch;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::datasource::physical_plan::ParquetSource;
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use futures::stream::BoxStream;
use futures::{FutureExt, Stream, StreamExt};
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
            Ok(Transformed::yes(PassThroughExec::<GuardedRead>::above(node)))
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

/// Ends with an error where the reader panics.
#[derive(Debug)]
struct GuardedRead;

impl Pass for GuardedRead {
    const NAME: &'static str = "GuardedReadExec";

    fn pass(batches: SendableRecordBatchStream, _: &TaskContext) -> BoxStream<'static, Result<RecordBatch>> {
        caught_batches(batches).boxed()
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
