//! Rows on their way to a stock operator that keeps them all without saying so: their memory is reserved here.
//!
//! `count(*) OVER ()` needs every row before the first comes out. The stock operator for such windows takes what it
//! keeps from no budget. Batches pass through as they are.

use datafusion::arrow::array::RecordBatch;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::CardinalityEffect;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::windows::WindowAggExec;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::StreamExt;
use std::fmt;
use std::sync::Arc;

/// Puts [`Held`] below the operators that need it.
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
            let inputs = node.children().into_iter().map(|input| Arc::new(Held { input: input.clone() }) as Arc<_>);
            let inputs: Vec<Arc<dyn ExecutionPlan>> = inputs.collect();
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

#[derive(Debug)]
struct Held {
    input: Arc<dyn ExecutionPlan>,
}

/// A batch and what a window computes of it.
fn bytes(batch: &RecordBatch) -> usize {
    2 * super::bytes_of(batch) + 16 * batch.num_rows()
}

impl ExecutionPlan for Held {
    fn name(&self) -> &'static str {
        "HeldExec"
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
            Some(input) => Ok(Arc::new(Held { input })),
            None => Ok(self),
        }
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let memory = MemoryConsumer::new("window").register(context.memory_pool());
        let rows = self.input.execute(partition, context)?;
        // Whoever keeps the rows drops this stream with them.
        let rows = rows.map(move |batch| {
            let batch = batch?;
            memory.try_grow(bytes(&batch))?;
            Ok(batch)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}

impl DisplayAs for Held {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HeldExec")
    }
}
