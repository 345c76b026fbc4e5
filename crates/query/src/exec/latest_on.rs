//! Of each key the latest row.
//!
//! In: rows in order of time, those of the same time in order of arrival. Out: the last row of each key, in the order
//! they came. Rows are given up when a later one of their key comes; what is kept is written together now and then, so
//! memory follows the number of keys.

use super::{BATCH_ROWS, by_time, required};
use crate::cancel::CancelToken;
use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::compute::interleave_record_batch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{
    Distribution, EquivalenceProperties, OrderingRequirements, Partitioning, PhysicalExpr,
};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{StreamExt, TryStreamExt};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// Rows kept beyond twice the number of keys before they are written together.
const SLACK_ROWS: usize = 65_536;
/// Of a key in the map, besides its bytes.
const KEY_BYTES: usize = 64;

#[derive(Debug)]
pub(crate) struct LatestOnExec {
    input: Arc<dyn ExecutionPlan>,
    time: usize,
    keys: Vec<usize>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl LatestOnExec {
    pub fn new(input: Arc<dyn ExecutionPlan>, time: usize, keys: Vec<usize>) -> Result<LatestOnExec> {
        let schema = input.schema();
        let equivalences = EquivalenceProperties::new_with_orderings(schema.clone(), [[by_time(&schema, time)]]);
        let properties = PlanProperties::new(
            equivalences,
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        Ok(LatestOnExec {
            input,
            time,
            keys,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }
}

impl ExecutionPlan for LatestOnExec {
    fn name(&self) -> &'static str {
        "LatestOnExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition]
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        vec![required(&self.input.schema(), self.time)]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(LatestOnExec::new(children.swap_remove(0), self.time, self.keys.clone())?))
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let memory = MemoryConsumer::new("LATEST ON").register(context.memory_pool());
        let mut input = self.input.execute(0, context.clone())?;
        let (time, schema) = (self.time, self.schema());
        let mut latest = Latest::new(&schema, self.keys.clone(), memory)?;
        let cancel = context.session_config().get_extension::<CancelToken>().unwrap_or_default();
        let metrics = BaselineMetrics::new(&self.metrics, 0);
        let rows = async move {
            while let Some(batch) = input.next().await {
                cancel.check()?;
                latest.add(batch?, time)?;
            }
            latest.written_together()?;
            let batch = latest.kept.pop().unwrap_or_else(|| RecordBatch::new_empty(schema));
            metrics.record_output(batch.num_rows());
            let slices = (0..batch.num_rows()).step_by(BATCH_ROWS);
            let slices: Vec<_> =
                slices.map(|from| Ok(batch.slice(from, BATCH_ROWS.min(batch.num_rows() - from)))).collect();
            Ok::<_, datafusion::common::DataFusionError>(futures::stream::iter(slices))
        };
        let stream = futures::stream::once(rows).try_flatten().boxed();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), stream)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

impl DisplayAs for LatestOnExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schema = self.input.schema();
        let keys: Vec<&str> = self.keys.iter().map(|k| schema.field(*k).name().as_str()).collect();
        write!(f, "LatestOnExec: time={}, keys=[{}]", schema.field(self.time).name(), keys.join(", "))
    }
}

struct Latest {
    schema: SchemaRef,
    keys: Vec<usize>,
    converter: RowConverter,
    /// Where the latest row of each key is: a batch that is kept and a row of it.
    rows: HashMap<OwnedRow, (usize, usize)>,
    kept: Vec<RecordBatch>,
    kept_rows: usize,
    key_bytes: usize,
    memory: MemoryReservation,
}

impl Latest {
    fn new(schema: &SchemaRef, keys: Vec<usize>, memory: MemoryReservation) -> Result<Latest> {
        let fields = keys.iter().map(|k| SortField::new(schema.field(*k).data_type().clone())).collect();
        Ok(Latest {
            schema: schema.clone(),
            keys,
            converter: RowConverter::new(fields)?,
            rows: HashMap::new(),
            kept: Vec::new(),
            kept_rows: 0,
            key_bytes: 0,
            memory,
        })
    }

    fn add(&mut self, batch: RecordBatch, time: usize) -> Result<()> {
        let columns: Vec<ArrayRef> = self.keys.iter().map(|k| batch.column(*k).clone()).collect();
        let keys = self.converter.convert_columns(&columns)?;
        // Only the last row of each key in the batch counts.
        let mut found: HashMap<_, usize> = HashMap::new();
        for (row, key) in keys.iter().enumerate() {
            if batch.column(time).is_valid(row) {
                found.insert(key, row);
            }
        }
        let mut picked: Vec<_> = found.into_iter().map(|(key, row)| (row, key)).collect();
        picked.sort_unstable_by_key(|(row, _)| *row);
        let rows: Vec<(usize, usize)> = picked.iter().map(|(row, _)| (0, *row)).collect();
        if rows.is_empty() {
            return Ok(());
        }
        let index = self.kept.len();
        self.kept.push(interleave_record_batch(&[&batch], &rows)?);
        self.kept_rows += rows.len();
        for (place, (_, key)) in picked.into_iter().enumerate() {
            let key = key.owned();
            let bytes = key.as_ref().len() + KEY_BYTES;
            if self.rows.insert(key, (index, place)).is_none() {
                self.key_bytes += bytes;
            }
        }
        if self.kept_rows > 2 * self.rows.len() + SLACK_ROWS {
            self.written_together()?;
        }
        self.account()
    }

    fn account(&mut self) -> Result<()> {
        let kept: usize = self.kept.iter().map(RecordBatch::get_array_memory_size).sum();
        self.memory.try_resize(kept + self.key_bytes)
    }

    /// Makes one batch of the rows that still are the latest.
    fn written_together(&mut self) -> Result<()> {
        if self.kept.is_empty() {
            return Ok(());
        }
        let mut places: Vec<&mut (usize, usize)> = self.rows.values_mut().collect();
        places.sort_unstable();
        let rows: Vec<(usize, usize)> = places.iter().map(|place| **place).collect();
        let batches: Vec<&RecordBatch> = self.kept.iter().collect();
        let together = interleave_record_batch(&batches, &rows)?;
        debug_assert_eq!(together.schema(), self.schema);
        for (row, place) in places.into_iter().enumerate() {
            *place = (0, row);
        }
        self.kept = vec![together];
        self.kept_rows = rows.len();
        Ok(())
    }
}
