//! Rows on their way to a stock operator that keeps them all without saying so: their memory is reserved here.
//!
//! `count(*) OVER ()` needs every row before the first comes out. The stock operator for such windows takes what it
//! keeps from no budget. Batches pass through as they are.

use super::pass_through::{Pass, PassThroughExec};
use datafusion::arrow::array::RecordBatch;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::windows::WindowAggExec;
use futures::StreamExt;
use futures::stream::BoxStream;
use std::sync::Arc;

/// Puts [`ReserveMemory`] below the operators that need it.
#[derive(Debug)]
pub(crate) struct HoldsRows;

impl PhysicalOptimizerRule for HoldsRows {
    #[expect(
        deprecated,
        reason = "what takes its place wants to know whether properties are kept, and asks for no less"
    )]
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            if node.downcast_ref::<WindowAggExec>().is_none() {
                return Ok(Transformed::no(node));
            }
            let inputs = node.children().into_iter().cloned().map(PassThroughExec::<ReserveMemory>::above).collect();
            Ok(Transformed::yes(node.with_new_children(inputs)?))
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "HoldsRows"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Bytes of a batch and of the window's result for it.
fn bytes(batch: &RecordBatch) -> usize {
    2 * super::bytes_of(batch) + 16 * batch.num_rows()
}

/// Reserves the memory of the batches that pass.
#[derive(Debug)]
struct ReserveMemory;

impl Pass for ReserveMemory {
    const NAME: &'static str = "HeldExec";

    fn pass(batches: SendableRecordBatchStream, context: &TaskContext) -> BoxStream<'static, Result<RecordBatch>> {
        let memory = MemoryConsumer::new("window").register(context.memory_pool());
        // The operator that keeps the batches drops this stream with them.
        let reserved = batches.map(move |batch| {
            let batch = batch?;
            memory.try_grow(bytes(&batch))?;
            Ok(batch)
        });
        reserved.boxed()
    }
}
