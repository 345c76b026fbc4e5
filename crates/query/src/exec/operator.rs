//! What all operators of ours share: one partition in, one out, inputs in order of a column, memory accounted for.
//!
//! An [`Operation`] says what is its own; [`Operator`] makes an execution plan of it.

use super::{by_time, required};
use crate::cancel::CancelToken;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{
    Distribution, EquivalenceProperties, OrderingRequirements, Partitioning, PhysicalExpr,
};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, has_same_children_properties};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use std::fmt;
use std::sync::Arc;

pub(crate) trait Operation: fmt::Debug + Clone + Send + Sync + 'static {
    /// As EXPLAIN shows it.
    const NAME: &'static str;
    /// Whether rows go out before all have come in.
    const IS_INCREMENTAL: bool;

    /// What comes out.
    fn schema(&self, inputs: &[SchemaRef]) -> SchemaRef;

    /// For each input the column that it has to be in order of; fewer where the others may come in any.
    fn in_order_of(&self) -> Vec<usize>;

    /// Columns that what comes out is in order of, each by itself.
    fn out_in_order_of(&self) -> Vec<usize>;

    fn describe(&self, inputs: &[SchemaRef], f: &mut fmt::Formatter<'_>) -> fmt::Result;

    fn run(&self, inputs: Vec<SendableRecordBatchStream>, run: Run) -> BoxStream<'static, Result<RecordBatch>>;
}

/// What one execution has.
pub(crate) struct Run {
    pub schema: SchemaRef,
    pub memory: MemoryReservation,
    pub cancel: Arc<CancelToken>,
}

#[derive(Debug)]
pub(crate) struct Operator<O: Operation> {
    operation: O,
    inputs: Vec<Arc<dyn ExecutionPlan>>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl<O: Operation> Operator<O> {
    pub fn new(operation: O, inputs: Vec<Arc<dyn ExecutionPlan>>) -> Operator<O> {
        let schema = operation.schema(&schemas(&inputs));
        let orders = operation.out_in_order_of().into_iter().map(|column| [by_time(&schema, column)]);
        let equivalences = EquivalenceProperties::new_with_orderings(schema.clone(), orders);
        let emission = if O::IS_INCREMENTAL { EmissionType::Incremental } else { EmissionType::Final };
        let properties =
            PlanProperties::new(equivalences, Partitioning::UnknownPartitioning(1), emission, Boundedness::Bounded);
        Operator { operation, inputs, properties: Arc::new(properties), metrics: ExecutionPlanMetricsSet::new() }
    }
}

impl<O: Operation> Operator<O> {
    pub fn operation(&self) -> &O {
        &self.operation
    }
}

fn schemas(inputs: &[Arc<dyn ExecutionPlan>]) -> Vec<SchemaRef> {
    inputs.iter().map(|input| input.schema()).collect()
}

impl<O: Operation> ExecutionPlan for Operator<O> {
    fn name(&self) -> &'static str {
        O::NAME
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.inputs.iter().collect()
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition; self.inputs.len()]
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        let columns = self.operation.in_order_of();
        let of = |(at, input): (usize, &Arc<dyn ExecutionPlan>)| required(&input.schema(), *columns.get(at)?);
        self.inputs.iter().enumerate().map(of).collect()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        if !has_same_children_properties(self.as_ref(), &children)? {
            return Ok(Arc::new(Operator::new(self.operation.clone(), children)));
        }
        let (operation, properties) = (self.operation.clone(), self.properties.clone());
        Ok(Arc::new(Operator { operation, inputs: children, properties, metrics: ExecutionPlanMetricsSet::new() }))
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let inputs = self.inputs.iter().map(|i| i.execute(0, context.clone())).collect::<Result<Vec<_>>>()?;
        let run = Run {
            schema: self.schema(),
            memory: MemoryConsumer::new(O::NAME).register(context.memory_pool()),
            cancel: context.session_config().get_extension::<CancelToken>().unwrap_or_default(),
        };
        let metrics = BaselineMetrics::new(&self.metrics, 0);
        let rows = self.operation.run(inputs, run).inspect_ok(move |batch| metrics.record_output(batch.num_rows()));
        let rows = super::timed(rows.boxed(), &self.metrics);
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

impl<O: Operation> DisplayAs for Operator<O> {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", O::NAME)?;
        self.operation.describe(&schemas(&self.inputs), f)
    }
}
