//! Joins rows of two inputs by time: ASOF, LT, SPLICE.
//!
//! In: both sides in order of time. Out: in order of time; ASOF and LT one row for each left row. One pass over both
//! sides keeps the latest right row of each key. The right side is held in memory, the left one streams (but for SPLICE,
//! which holds both). NULL equals no key, and a row without a time has no partner.

use super::{BATCH_ROWS, by_time, collected, required};
use crate::calendar::Stride;
use crate::cancel::CancelToken;
use crate::plan::{Kind, TimeJoinColumns, TimeJoinSpec};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array};
use datafusion::arrow::compute::{cast, take};
use datafusion::arrow::datatypes::{DataType, Int64Type, SchemaRef, TimeUnit as ArrowUnit};
use datafusion::arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
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

/// No row, or no key.
const NONE: u32 = u32::MAX;

#[derive(Debug)]
pub(crate) struct TimeJoinExec {
    left: Arc<dyn ExecutionPlan>,
    right: Arc<dyn ExecutionPlan>,
    spec: TimeJoinSpec,
    columns: TimeJoinColumns,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl TimeJoinExec {
    pub fn new(
        left: Arc<dyn ExecutionPlan>,
        right: Arc<dyn ExecutionPlan>,
        spec: TimeJoinSpec,
        columns: TimeJoinColumns,
        schema: SchemaRef,
    ) -> Result<TimeJoinExec> {
        let mut equivalences = EquivalenceProperties::new(schema.clone());
        // SPLICE has rows of either side: no one column is in order.
        if spec.kind != Kind::Splice {
            equivalences.add_ordering([by_time(&schema, columns.times.0)]);
        }
        let properties = PlanProperties::new(
            equivalences,
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let (properties, metrics) = (Arc::new(properties), ExecutionPlanMetricsSet::new());
        Ok(TimeJoinExec { left, right, spec, columns, schema, properties, metrics })
    }
}

impl ExecutionPlan for TimeJoinExec {
    fn name(&self) -> &'static str {
        "TimeJoinExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.left, &self.right]
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition, Distribution::SinglePartition]
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        let (left, right) = self.columns.times;
        vec![required(&self.left.schema(), left), required(&self.right.schema(), right)]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let [left, right] =
            <[_; 2]>::try_from(children).map_err(|_| crate::Error::internal("a join by time has two inputs"))?;
        let (spec, columns, schema) = (self.spec.clone(), self.columns.clone(), self.schema.clone());
        Ok(Arc::new(TimeJoinExec::new(left, right, spec, columns, schema)?))
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let mut memory = MemoryConsumer::new("time join").register(context.memory_pool());
        let left = self.left.execute(0, context.clone())?;
        let right = self.right.execute(0, context.clone())?;
        let (left_schema, right_schema) = (self.left.schema(), self.right.schema());
        let (spec, columns, schema) = (self.spec.clone(), self.columns.clone(), self.schema.clone());
        let cancel = context.session_config().get_extension::<CancelToken>().unwrap_or_default();
        let metrics = BaselineMetrics::new(&self.metrics, 0);
        let rows = async move {
            let right = collected(right, &right_schema, &mut memory).await?;
            let is_splice = spec.kind == Kind::Splice;
            // The left side of a SPLICE as one batch, of the others as it comes.
            let (left, whole) = if is_splice {
                (futures::stream::empty().boxed(), Some(collected(left, &left_schema, &mut memory).await?))
            } else {
                (left.boxed(), None)
            };
            let mut join = Joiner::new(&left_schema, right, spec, columns, schema, memory)?;
            let spliced = whole.map_or_else(|| Ok(Vec::new()), |whole| join.spliced(&whole))?;
            let joined = left.map(move |batch| {
                cancel.check()?;
                join.joined(&batch?)
            });
            let out = joined.chain(futures::stream::iter(spliced.into_iter().map(Ok)));
            Ok::<_, datafusion::common::DataFusionError>(out.inspect_ok(move |b| metrics.record_output(b.num_rows())))
        };
        let stream = futures::stream::once(rows).try_flatten().boxed();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), stream)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

impl DisplayAs for TimeJoinExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (left, right) = (self.left.schema(), self.right.schema());
        let pair = |(l, r): &(usize, usize)| format!("{} = {}", left.field(*l).name(), right.field(*r).name());
        let keys: Vec<String> = self.columns.keys.iter().map(pair).collect();
        write!(f, "TimeJoinExec: kind={:?}, keys=[{}]", self.spec.kind, keys.join(", "))?;
        match self.spec.tolerance {
            Some(Stride { count, unit }) => write!(f, ", tolerance={count} {unit:?}"),
            None => Ok(()),
        }
    }
}

struct Joiner {
    spec: TimeJoinSpec,
    columns: TimeJoinColumns,
    schema: SchemaRef,
    right: RecordBatch,
    /// In nanoseconds, so that sides of different units compare.
    times: Vec<Option<i128>>,
    converter: RowConverter,
    types: Vec<DataType>,
    numbers: HashMap<OwnedRow, u32>,
    right_keys: Vec<u32>,
    /// For each key the latest right row so far.
    last: Vec<u32>,
    at: usize,
    _memory: MemoryReservation,
}

impl Joiner {
    fn new(
        left: &SchemaRef,
        right: RecordBatch,
        spec: TimeJoinSpec,
        columns: TimeJoinColumns,
        schema: SchemaRef,
        memory: MemoryReservation,
    ) -> Result<Joiner> {
        memory.try_grow(right.num_rows() * 36)?;
        let types = columns.keys.iter().map(|(l, r)| {
            let (l, r) = (left.field(*l).data_type(), right.schema_ref().field(*r).data_type());
            comparison_coercion(l, r).unwrap_or_else(|| l.clone())
        });
        let types: Vec<DataType> = types.collect();
        let converter = RowConverter::new(types.iter().cloned().map(SortField::new).collect())?;
        let times = nanos(&right, columns.times.1)?;
        let numbers = HashMap::new();
        let mut join = Joiner {
            spec,
            columns,
            schema,
            right,
            times,
            converter,
            types,
            numbers,
            right_keys: Vec::new(),
            last: Vec::new(),
            at: 0,
            _memory: memory,
        };
        let places: Vec<usize> = join.columns.keys.iter().map(|(_, r)| *r).collect();
        let right = join.right.clone();
        join.right_keys = join.keys_of(&right, &places, true)?;
        join.last = vec![NONE; join.numbers.len().max(1)];
        Ok(join)
    }

    /// The numbers of the rows' keys; without key columns all have number 0.
    fn keys_of(&mut self, batch: &RecordBatch, places: &[usize], adds: bool) -> Result<Vec<u32>> {
        if places.is_empty() {
            return Ok(vec![0; batch.num_rows()]);
        }
        let columns: Vec<ArrayRef> =
            places.iter().zip(&self.types).map(|(p, t)| cast(batch.column(*p), t)).collect::<Result<_, _>>()?;
        let rows = self.converter.convert_columns(&columns)?;
        let mut out = Vec::with_capacity(batch.num_rows());
        for (row, key) in rows.iter().enumerate() {
            if columns.iter().any(|c| c.is_null(row)) {
                out.push(NONE);
                continue;
            }
            let key = key.owned();
            out.push(match self.numbers.get(&key) {
                Some(number) => *number,
                None if adds => {
                    let number = self.numbers.len() as u32;
                    self.numbers.insert(key, number);
                    number
                }
                None => NONE,
            });
        }
        Ok(out)
    }

    /// The right row for a left one of this key and time; times ascend from call to call.
    fn partner(&mut self, key: u32, time: Option<i128>) -> u32 {
        let Some(time) = time else { return NONE };
        while let Some(right) = self.times.get(self.at).copied() {
            let is_earlier =
                right.is_some_and(|right| if self.spec.kind == Kind::Lt { right < time } else { right <= time });
            // Rows without a time come last.
            if !is_earlier {
                break;
            }
            let right_key = self.right_keys[self.at];
            if right_key != NONE {
                self.last[right_key as usize] = self.at as u32;
            }
            self.at += 1;
        }
        let row = if key == NONE { NONE } else { self.last[key as usize] };
        let is_too_old = |row: u32| match (self.spec.tolerance, self.times[row as usize]) {
            (Some(Stride { count, unit }), Some(right)) => time - right > unit.nanos().unwrap_or(0) * i128::from(count),
            _ => false,
        };
        if row != NONE && is_too_old(row) { NONE } else { row }
    }

    fn joined(&mut self, left: &RecordBatch) -> Result<RecordBatch> {
        let places: Vec<usize> = self.columns.keys.iter().map(|(l, _)| *l).collect();
        let keys = self.keys_of(left, &places, false)?;
        let times = nanos(left, self.columns.times.0)?;
        let mut rows = Vec::with_capacity(keys.len());
        for (key, time) in keys.into_iter().zip(times) {
            let row = self.partner(key, time);
            rows.push((row != NONE).then_some(row));
        }
        let rows = UInt32Array::from(rows);
        let mut columns = left.columns().to_vec();
        for column in self.right.columns() {
            columns.push(take(column, &rows, None)?);
        }
        Ok(RecordBatch::try_new(self.schema.clone(), columns)?)
    }

    /// All rows of both sides, each with the latest of the other; a right row that is met by a left one of the same time
    /// and key is in that row already.
    fn spliced(&mut self, left: &RecordBatch) -> Result<Vec<RecordBatch>> {
        let places: Vec<usize> = self.columns.keys.iter().map(|(l, _)| *l).collect();
        let left_keys = self.keys_of(left, &places, true)?;
        self.last.resize(self.numbers.len().max(1), NONE);
        let left_times = nanos(left, self.columns.times.0)?;
        let mut left_last = vec![NONE; self.last.len()];
        let mut is_met = vec![false; self.right.num_rows()];
        let (mut pairs, mut l, mut r) = (Vec::<(u32, u32)>::new(), 0, 0);
        let later = |time: Option<i128>| time.unwrap_or(i128::MAX);
        while l < left_times.len() || r < self.times.len() {
            let takes_left =
                l < left_times.len() && (r >= self.times.len() || later(left_times[l]) <= later(self.times[r]));
            if takes_left {
                let (key, time) = (left_keys[l], left_times[l]);
                let row = self.partner(key, time);
                if row != NONE && self.times[row as usize] == time {
                    is_met[row as usize] = true;
                }
                pairs.push((l as u32, row));
                if key != NONE && time.is_some() {
                    left_last[key as usize] = l as u32;
                }
                l += 1;
            } else {
                let key = self.right_keys[r];
                let before = if key == NONE || self.times[r].is_none() { NONE } else { left_last[key as usize] };
                if !is_met[r] {
                    pairs.push((before, r as u32));
                }
                r += 1;
            }
        }
        pairs.chunks(BATCH_ROWS).map(|pairs| self.paired(left, pairs)).collect()
    }

    fn paired(&self, left: &RecordBatch, pairs: &[(u32, u32)]) -> Result<RecordBatch> {
        let optional = |row: u32| (row != NONE).then_some(row);
        let lefts = UInt32Array::from_iter(pairs.iter().map(|p| optional(p.0)));
        let rights = UInt32Array::from_iter(pairs.iter().map(|p| optional(p.1)));
        let columns = left.columns().iter().map(|c| take(c, &lefts, None));
        let columns = columns.chain(self.right.columns().iter().map(|c| take(c, &rights, None)));
        Ok(RecordBatch::try_new(self.schema.clone(), columns.collect::<Result<_, _>>()?)?)
    }
}

fn nanos(batch: &RecordBatch, column: usize) -> Result<Vec<Option<i128>>> {
    let array = batch.column(column);
    let factor = match array.data_type() {
        DataType::Timestamp(ArrowUnit::Second, _) => 1_000_000_000,
        DataType::Timestamp(ArrowUnit::Millisecond, _) => 1_000_000,
        DataType::Timestamp(ArrowUnit::Microsecond, _) => 1_000,
        _ => 1,
    };
    let ticks = cast(array, &DataType::Int64)?;
    Ok(ticks.as_primitive::<Int64Type>().iter().map(|t| t.map(|t| i128::from(t) * factor)).collect())
}
