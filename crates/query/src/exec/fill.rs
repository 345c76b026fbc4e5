//! Makes up the rows of buckets that have none.
//!
//! In: rows of a bucket, keys and values, in order of the bucket. Out: for each bucket from the first to the last (or from
//! FROM to TO) a row for every key there is, keys in their order. Keys that come late have rows from the start, so all
//! rows are read before the first goes out; what goes out is made a batch at a time.

use super::{BATCH_ROWS, by_time, collected, required, ticks};
use crate::calendar::Buckets;
use crate::cancel::CancelToken;
use crate::plan::{Fill, FillSpec};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch, UInt32Array};
use datafusion::arrow::compute::{cast, interleave, take};
use datafusion::arrow::datatypes::{DataType, Float64Type, Schema, SchemaRef};
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

/// No row.
const NONE: u32 = u32::MAX;

#[derive(Debug)]
pub(crate) struct FillExec {
    input: Arc<dyn ExecutionPlan>,
    spec: FillSpec,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl FillExec {
    pub fn new(input: Arc<dyn ExecutionPlan>, spec: FillSpec) -> Result<FillExec> {
        let fields = input.schema();
        let fields = fields.fields().iter().enumerate().map(|(at, field)| spec.field(at, field));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let equivalences = EquivalenceProperties::new_with_orderings(schema.clone(), [[by_time(&schema, 0)]]);
        let properties = PlanProperties::new(
            equivalences,
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        Ok(FillExec { input, spec, properties: Arc::new(properties), metrics: ExecutionPlanMetricsSet::new() })
    }
}

impl ExecutionPlan for FillExec {
    fn name(&self) -> &'static str {
        "FillExec"
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
        vec![required(&self.input.schema(), 0)]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(FillExec::new(children.swap_remove(0), self.spec.clone())?))
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let mut memory = MemoryConsumer::new("SAMPLE BY FILL").register(context.memory_pool());
        let input = self.input.execute(0, context.clone())?;
        let (schema, filled, spec) = (self.input.schema(), self.schema(), self.spec.clone());
        let cancel = context.session_config().get_extension::<CancelToken>().unwrap_or_default();
        let metrics = BaselineMetrics::new(&self.metrics, 0);
        let rows = async move {
            let rows = collected(input, &schema, &mut memory).await?;
            let filler = Filler::new(rows, filled, spec, memory, metrics)?;
            let batches = std::iter::from_fn({
                let mut filler = filler;
                move || match cancel.check() {
                    Err(error) => Some(Err(error.into())),
                    Ok(()) => filler.batch().transpose(),
                }
            });
            Ok::<_, datafusion::common::DataFusionError>(futures::stream::iter(batches))
        };
        let stream = futures::stream::once(rows).try_flatten().boxed();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), stream)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

impl DisplayAs for FillExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FillExec: keys={}, fills={:?}", self.spec.keys, self.spec.fills)
    }
}

/// One row that goes out.
struct Cell {
    bucket: i64,
    key: u32,
    /// The row it is, or none; then the rows of the key before and after it.
    row: u32,
    before: u32,
    after: u32,
}

struct Filler {
    rows: RecordBatch,
    /// Of what goes out.
    schema: SchemaRef,
    spec: FillSpec,
    buckets: Buckets,
    times: Int64Array,
    key_of: Vec<u32>,
    /// A row of each key, in the order of the keys.
    keys: Vec<u32>,
    /// The next row of the same key.
    next: Vec<u32>,
    // Where we are: the bucket to come and its end, the row to come, for each key its last row and its row now.
    bucket: Option<i64>,
    end: i64,
    at: usize,
    last: Vec<u32>,
    now: Vec<u32>,
    key: usize,
    _memory: MemoryReservation,
    metrics: BaselineMetrics,
}

impl Filler {
    fn new(
        rows: RecordBatch,
        schema: SchemaRef,
        spec: FillSpec,
        memory: MemoryReservation,
        metrics: BaselineMetrics,
    ) -> Result<Filler> {
        memory.try_grow(rows.num_rows() * 16)?;
        let times = ticks(&rows, 0)?;
        let (key_of, keys) = numbered(&rows, spec.keys)?;
        let mut buckets = spec.buckets;
        if spec.is_first {
            buckets.origin = (!times.is_empty()).then(|| times.value(0));
        }
        let mut next = vec![NONE; key_of.len()];
        let mut later = vec![NONE; keys.len()];
        for row in (0..key_of.len()).rev() {
            let key = key_of[row] as usize;
            next[row] = std::mem::replace(&mut later[key], row as u32);
        }
        let first = (!times.is_empty()).then(|| times.value(0));
        let last = (!times.is_empty()).then(|| times.value(times.len() - 1));
        let bucket = spec.from.map(|ts| buckets.range(ts).0).or(first);
        // The bucket that holds the last instant before TO, or the last row's.
        let end = spec.to.map(|ts| ts.saturating_sub(1)).or(last).unwrap_or(i64::MIN);
        Ok(Filler {
            last: vec![NONE; keys.len()],
            now: vec![NONE; keys.len()],
            bucket: bucket.filter(|bucket| *bucket <= end),
            buckets,
            times,
            key_of,
            keys,
            next,
            end,
            at: 0,
            key: 0,
            rows,
            schema,
            spec,
            _memory: memory,
            metrics,
        })
    }

    fn batch(&mut self) -> Result<Option<RecordBatch>> {
        let mut cells = Vec::with_capacity(BATCH_ROWS);
        while cells.len() < BATCH_ROWS {
            let Some(bucket) = self.bucket else { break };
            if self.key == 0 {
                self.enter(bucket);
            }
            while self.key < self.keys.len() && cells.len() < BATCH_ROWS {
                let (key, row, before) = (self.key, self.now[self.key], self.last[self.key]);
                let after = if before == NONE { NONE } else { self.next[before as usize] };
                cells.push(Cell { bucket, key: key as u32, row, before, after });
                self.key += 1;
            }
            if self.key == self.keys.len() {
                self.leave(bucket);
            }
        }
        if cells.is_empty() {
            return Ok(None);
        }
        self.metrics.record_output(cells.len());
        self.made(&cells).map(Some)
    }

    fn enter(&mut self, bucket: i64) {
        while self.at < self.times.len() && self.times.value(self.at) <= bucket {
            self.now[self.key_of[self.at] as usize] = self.at as u32;
            self.at += 1;
        }
    }

    fn leave(&mut self, bucket: i64) {
        for (last, now) in self.last.iter_mut().zip(&mut self.now) {
            if *now != NONE {
                *last = std::mem::replace(now, NONE);
            }
        }
        self.key = 0;
        let next = self.buckets.range(bucket).1;
        // Rows have their own say, should the calendar be of another opinion.
        let next = if self.at < self.times.len() { next.min(self.times.value(self.at)) } else { next };
        self.bucket = (next > bucket && next <= self.end).then_some(next);
    }

    fn made(&self, cells: &[Cell]) -> Result<RecordBatch> {
        let times = Int64Array::from_iter_values(cells.iter().map(|c| c.bucket));
        let mut columns = vec![cast(&(Arc::new(times) as ArrayRef), self.rows.column(0).data_type())?];
        let keys = UInt32Array::from_iter_values(cells.iter().map(|c| self.keys[c.key as usize]));
        for key in 1..=self.spec.keys {
            columns.push(take(self.rows.column(key), &keys, None)?);
        }
        for (i, fill) in self.spec.fills.iter().enumerate() {
            columns.push(self.value(i, fill, cells)?);
        }
        Ok(RecordBatch::try_new(self.schema.clone(), columns)?)
    }

    fn value(&self, i: usize, fill: &Fill, cells: &[Cell]) -> Result<ArrayRef> {
        let column = |i: usize| self.rows.column(1 + self.spec.keys + i);
        let own = column(i);
        let optional = |row: u32| (row != NONE).then_some(row);
        Ok(match fill {
            Fill::Null => take(own, &UInt32Array::from_iter(cells.iter().map(|c| optional(c.row))), None)?,
            Fill::Prev(other) if *other == i => {
                let rows = cells.iter().map(|c| optional(c.row).or(optional(c.before)));
                take(own, &UInt32Array::from_iter(rows), None)?
            }
            Fill::Prev(other) => {
                let before = cells.iter().map(|c| optional(c.before));
                let before = take(column(*other), &UInt32Array::from_iter(before), None)?;
                mixed(own, &before, cells)?
            }
            Fill::Linear => mixed(own, &self.lines(own, cells)?, cells)?,
            Fill::Constant(value) => mixed(own, &value.to_array_of_size(cells.len())?, cells)?,
        })
    }

    /// For each cell the value on the line between the rows around it.
    fn lines(&self, column: &ArrayRef, cells: &[Cell]) -> Result<ArrayRef> {
        let values = cast(column, &DataType::Float64)?;
        let values = values.as_primitive::<Float64Type>();
        let line = cells.iter().map(|c| {
            if c.before == NONE
                || c.after == NONE
                || values.is_null(c.before as usize)
                || values.is_null(c.after as usize)
            {
                return None;
            }
            let (from, to) = (values.value(c.before as usize), values.value(c.after as usize));
            let (start, end) = (self.times.value(c.before as usize), self.times.value(c.after as usize));
            let part = (c.bucket as f64 - start as f64) / (end as f64 - start as f64);
            Some(from + (to - from) * part)
        });
        Ok(cast(&(Arc::new(Float64Array::from_iter(line)) as ArrayRef), column.data_type())?)
    }
}

/// Rows where there are some, else what was made up for the cell.
fn mixed(own: &ArrayRef, made_up: &ArrayRef, cells: &[Cell]) -> Result<ArrayRef> {
    let picks: Vec<(usize, usize)> =
        cells.iter().enumerate().map(|(i, c)| if c.row == NONE { (1, i) } else { (0, c.row as usize) }).collect();
    Ok(interleave(&[own.as_ref(), made_up.as_ref()], &picks)?)
}

/// For each row the number of its key, and for each key one of its rows. Numbers follow the order of the keys, NULLs
/// last. Without key columns there is one key, whether there are rows or not.
fn numbered(rows: &RecordBatch, keys: usize) -> Result<(Vec<u32>, Vec<u32>)> {
    if keys == 0 {
        return Ok((vec![0; rows.num_rows()], vec![0]));
    }
    let columns = &rows.columns()[1..=keys];
    let options = datafusion::arrow::compute::SortOptions { descending: false, nulls_first: false };
    let fields = columns.iter().map(|c| SortField::new_with_options(c.data_type().clone(), options)).collect();
    let converted = RowConverter::new(fields)?.convert_columns(columns)?;
    let mut first: HashMap<OwnedRow, u32> = HashMap::new();
    for (row, key) in converted.iter().enumerate() {
        first.entry(key.owned()).or_insert(row as u32);
    }
    let mut order: Vec<(OwnedRow, u32)> = first.into_iter().collect();
    order.sort();
    let numbers: HashMap<&OwnedRow, u32> = order.iter().enumerate().map(|(i, (key, _))| (key, i as u32)).collect();
    let key_of = converted.iter().map(|key| numbers.get(&key.owned()).copied().unwrap_or_default()).collect();
    Ok((key_of, order.iter().map(|(_, row)| *row).collect()))
}
