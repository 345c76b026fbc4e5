//! Columns of rows that were chosen by others: those of an ORDER BY … LIMIT n, read once it is known which n rows they are.
//!
//! In: rows in the order in which they come out, few, each with its place in a snapshot as the last column
//! ([`ADDRESS`](crate::scan::read::ADDRESS)). Out: the columns of a scan of that snapshot, in the same order.

use super::sliced;
use crate::cancel::CancelToken;
use crate::scan::read::{Reader, place_of};
use crate::{Error, Result};
use datafusion::arrow::array::{AsArray, RecordBatch, RecordBatchOptions, UInt32Array};
use datafusion::arrow::compute::{concat_batches, take_record_batch};
use datafusion::arrow::datatypes::{Int64Type, SchemaRef};
use datafusion::common::Result as DFResult;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, LexOrdering, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{StreamExt, TryStreamExt};
use std::fmt;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct LateRows {
    input: Arc<dyn ExecutionPlan>,
    reader: Arc<Reader>,
    /// The columns of the reader that come out.
    columns: Vec<usize>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl LateRows {
    /// `input` has one partition; `columns` of the reader come out under the fields of `schema`, in `order`.
    pub fn new(
        input: Arc<dyn ExecutionPlan>,
        reader: Arc<Reader>,
        columns: Vec<usize>,
        schema: SchemaRef,
        order: LexOrdering,
    ) -> LateRows {
        let properties = PlanProperties::new(
            EquivalenceProperties::new_with_orderings(schema, [order]),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        let metrics = ExecutionPlanMetricsSet::new();
        LateRows { input, reader, columns, properties: Arc::new(properties), metrics }
    }
}

impl ExecutionPlan for LateRows {
    fn name(&self) -> &'static str {
        "TidaliteRows"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> DFResult<TreeNodeRecursion>,
    ) -> DFResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, mut inputs: Vec<Arc<dyn ExecutionPlan>>) -> DFResult<Arc<dyn ExecutionPlan>> {
        let Some(input) = inputs.pop() else { return Ok(self) };
        let (reader, columns, properties) = (self.reader.clone(), self.columns.clone(), self.properties.clone());
        Ok(Arc::new(LateRows { input, reader, columns, properties, metrics: ExecutionPlanMetricsSet::new() }))
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> DFResult<SendableRecordBatchStream> {
        let cancel = context.session_config().get_extension::<CancelToken>().unwrap_or_default();
        let metrics = BaselineMetrics::new(&self.metrics, 0);
        let memory = MemoryConsumer::new(self.name()).register(context.memory_pool());
        let (reader, columns, schema) = (self.reader.clone(), self.columns.clone(), self.schema());
        let input = self.input.execute(0, context)?;
        let rows = async move {
            let chosen: Vec<RecordBatch> = input.try_collect().await?;
            let rows = late(&reader, &columns, &schema, &chosen, &cancel)?;
            sliced(rows, memory)
        };
        let rows = futures::stream::once(rows).try_flatten();
        let rows = rows.inspect_ok(move |batch| metrics.record_output(batch.num_rows()));
        let rows = super::timed(rows.boxed(), &self.metrics);
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

impl DisplayAs for LateRows {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schema = self.schema();
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        write!(f, "TidaliteRows: table={}, columns=[{}]", self.reader.snapshot.schema.name, names.join(", "))
    }
}

/// Columns of the rows at the places that the last column of `chosen` has.
fn late(
    reader: &Reader,
    columns: &[usize],
    schema: &SchemaRef,
    chosen: &[RecordBatch],
    cancel: &CancelToken,
) -> Result<RecordBatch> {
    let internal = |e: datafusion::arrow::error::ArrowError| Error::internal(e.to_string());
    let addresses = chosen.iter().flat_map(|batch| match batch.columns().last() {
        Some(column) => column.as_primitive::<Int64Type>().values().to_vec(),
        None => Vec::new(),
    });
    let mut places: Vec<((usize, u32), u32)> = addresses.map(place_of).zip(0..).collect();
    places.sort_unstable();
    let mut read = Vec::new();
    for of_source in places.chunk_by(|a, b| a.0.0 == b.0.0) {
        cancel.check()?;
        let rows: Vec<u32> = of_source.iter().map(|((_, row), _)| *row).collect();
        read.extend(reader.rows(of_source[0].0.0, &rows)?);
    }
    let mut order = vec![0; places.len()];
    for (at, (_, wanted)) in (0..).zip(&places) {
        order[*wanted as usize] = at;
    }
    let all = concat_batches(&reader.schema, &read).map_err(internal)?;
    let ordered = take_record_batch(&all, &UInt32Array::from(order)).map_err(internal)?;
    let out = columns.iter().map(|at| ordered.column(*at).clone()).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(ordered.num_rows()));
    RecordBatch::try_new_with_options(schema.clone(), out, &options).map_err(internal)
}
