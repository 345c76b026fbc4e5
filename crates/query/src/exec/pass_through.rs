//! The shell of operators with one input that pass its batches on, in their order.

use datafusion::arrow::array::RecordBatch;
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::CardinalityEffect;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::stream::BoxStream;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// The part of such an operator that is its own.
pub(crate) trait Pass: fmt::Debug + Send + Sync + 'static {
    /// The name in EXPLAIN.
    const NAME: &'static str;

    /// Returns the batches of one partition, given those of the input.
    fn pass(batches: SendableRecordBatchStream, context: &TaskContext) -> BoxStream<'static, Result<RecordBatch>>;
}

/// An operator made of a [`Pass`].
#[derive(Debug)]
pub(crate) struct PassThroughExec<P> {
    input: Arc<dyn ExecutionPlan>,
    pass: PhantomData<P>,
}

impl<P: Pass> PassThroughExec<P> {
    /// Returns the operator above an input.
    pub fn above(input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        Arc::new(PassThroughExec::<P> { input, pass: PhantomData })
    }
}

impl<P: Pass> ExecutionPlan for PassThroughExec<P> {
    fn name(&self) -> &'static str {
        P::NAME
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
            Some(input) => Ok(PassThroughExec::<P>::above(input)),
            None => Ok(self),
        }
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let batches = P::pass(self.input.execute(partition, context.clone())?, &context);
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }
}

impl<P: Pass> DisplayAs for PassThroughExec<P> {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(P::NAME)
    }
}
