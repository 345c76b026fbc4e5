//! ASOF and LT JOIN by slices of time, on all threads: the fast twin of [`super::time_join`].
//!
//! In: both sides in order of time, as plans; tables are read piece by piece, by whoever needs one, and symbols that are
//! keys as codes. Out: what the plain operator gives, in its order where one stream comes out; several streams take
//! slices in turns, each in order. Rows of the right side are held as long as a slice may need them, unless it is no table.
//!
//! Each slice ([`slices`]) is joined by itself: a left row finds its partner among the slice's right rows, or there is
//! none of its key yet, and then it is the latest before the slice ([`carry`]), which the slice before hands on. So no
//! row is looked at twice, and a slice waits for the one before it only with what is left. [`windows`] is of WINDOW JOIN.

mod abreast;
mod carry;
mod key_numbers;
mod rows;
mod side;
mod slices;
mod window_slices;
mod windows;

use super::pieces::Pieces;
use super::time_join::{TimeJoin, key_types, pairs};
use super::{by_time, timed};
use crate::calendar::Stride;
use crate::plan::{Kind, column_of_scan};
use crate::{CancelToken, Error};
use abreast::{Abreast, in_order};
use carry::Carry;
use datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch, RecordBatchOptions, StringViewArray};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef, UInt32Type};
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::stream::{BoxStream, try_unfold};
use futures::{StreamExt, TryStreamExt};
pub(crate) use key_numbers::CodePair;
use key_numbers::KeyNumbers;
use rows::SideRows;
use side::{Columns, Scale, Side, unit_of};
use slices::{Before, Slice, Slicer, Source, given_up};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use tidalite_operators::time_join::{NONE, Rows, missing, no_older, partners, resolve};
pub(crate) use windows::{Aggregate, MergedWindows, WindowWhat};

/// With no more rows than these another thread would not be worth its start.
const ROWS_OF_ONE_THREAD: usize = 65_536;

/// What is joined, of any inputs.
#[derive(Clone, Debug)]
pub(crate) struct What {
    pub join: TimeJoin,
    /// If all keys are symbols that come as codes.
    pub codes: Option<Vec<CodePair>>,
    /// Whether the sides are tables that can be read by pieces.
    pub are_tables: [bool; 2],
    /// Columns that come out, by their places in the join's own schema.
    pub output: Vec<usize>,
    /// How many streams come out; `None` for one in order.
    pub streams: Option<usize>,
}

#[derive(Debug)]
pub(crate) struct MergedJoin {
    inputs: [Arc<dyn ExecutionPlan>; 2],
    what: Arc<What>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
    /// What the streams of one execution share.
    running: Mutex<Option<Arc<Running>>>,
}

impl MergedJoin {
    pub fn new(inputs: [Arc<dyn ExecutionPlan>; 2], what: Arc<What>) -> MergedJoin {
        let fields = what.output.iter().map(|column| what.join.schema.fields()[*column].clone());
        let schema: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let time = what.output.iter().position(|column| *column == what.join.columns.times.0);
        let order = time.map(|time| [by_time(&schema, time)]);
        let properties = PlanProperties::new(
            EquivalenceProperties::new_with_orderings(schema.clone(), order),
            Partitioning::UnknownPartitioning(what.streams.unwrap_or(1)),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let (properties, metrics) = (Arc::new(properties), ExecutionPlanMetricsSet::new());
        MergedJoin { inputs, what, schema, properties, metrics, running: Mutex::default() }
    }

    /// Which sides are tables that are read by pieces.
    pub fn tables(&self) -> [bool; 2] {
        self.what.are_tables
    }

    fn running(&self, context: &Arc<TaskContext>) -> Result<Arc<Running>> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = &*running {
            return Ok(running.clone());
        }
        let new = Arc::new(Running::new(&self.inputs, &self.what, self.schema.clone(), context)?);
        Ok(running.insert(new).clone())
    }
}

impl ExecutionPlan for MergedJoin {
    fn name(&self) -> &'static str {
        "TidaliteTimeJoin"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.inputs.iter().collect()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let inputs = <[_; 2]>::try_from(children).map_err(|_| Error::internal("a join by time has two inputs"))?;
        Ok(Arc::new(MergedJoin::new(inputs, self.what.clone())))
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(MergedJoin::new(self.inputs.clone(), self.what.clone())))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let running = self.running(&context)?;
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let threads = context.session_config().target_partitions();
        let rows = if self.what.streams.is_some() { running.in_turns() } else { in_order(running, threads) };
        let rows = rows.inspect_ok(move |batch| metrics.record_output(batch.num_rows()));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), timed(rows.boxed(), &self.metrics))))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

impl DisplayAs for MergedJoin {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let What { join, codes, streams, .. } = &*self.what;
        let keys = pairs(&join.columns.keys, &self.inputs.each_ref().map(|input| input.schema()));
        write!(f, "TidaliteTimeJoin: kind={:?}, keys=[{keys}]", join.spec.kind)?;
        if let Some(Stride { count, unit }) = join.spec.tolerance {
            write!(f, ", tolerance={count} {unit:?}")?;
        }
        let names: Vec<&str> = self.schema.fields().iter().map(|field| field.name().as_str()).collect();
        write!(f, ", columns=[{}]", names.join(", "))?;
        if codes.is_some() {
            write!(f, ", by codes")?;
        }
        match streams {
            Some(streams) => write!(f, ", streams={streams}"),
            None => write!(f, ", in time order"),
        }
    }
}

/// A column that comes out.
#[derive(Debug)]
struct Out {
    is_left: bool,
    /// Its place among those of the side that do.
    place: usize,
    data_type: DataType,
    /// Of codes, what they stand for.
    texts: Option<StringViewArray>,
}

impl Out {
    /// Column `own` of a side that does so as its column `place`; it may come as codes of what it is to be.
    fn of(
        input: &Arc<dyn ExecutionPlan>,
        (own, place): (usize, usize),
        is_left: bool,
        to_be: &DataType,
    ) -> Result<Out> {
        let data_type = input.schema().field(own).data_type().clone();
        let is_code = data_type == DataType::UInt32 && *to_be != data_type;
        let texts = match column_of_scan(input, own).filter(|_| is_code) {
            Some((scan, column)) => Some(scan.symbols(column)?),
            None => None,
        };
        Ok(Out { is_left, place, data_type, texts })
    }

    /// Of codes their texts.
    fn texts_of(&self, column: ArrayRef) -> Result<ArrayRef> {
        Ok(match &self.texts {
            Some(texts) => take(texts, column.as_primitive::<UInt32Type>(), None)?,
            None => column,
        })
    }
}

/// What the rows of a slice tell.
struct Found {
    /// Of each left row.
    partners: Vec<u32>,
    /// For each key the latest right row.
    last: Vec<u32>,
    _memory: MemoryReservation,
}

/// One execution.
struct Running {
    inputs: [Arc<dyn ExecutionPlan>; 2],
    context: Arc<TaskContext>,
    left: Side,
    right: Side,
    output: Vec<Out>,
    right_types: Vec<DataType>,
    kind: Kind,
    /// In nanoseconds.
    tolerance: Option<i128>,
    schema: SchemaRef,
    memory: MemoryReservation,
    cancel: CancelToken,
    slicer: tokio::sync::Mutex<Option<Slicer>>,
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Running")
    }
}

impl Abreast for Running {
    type Slice = Slice;

    async fn has_few_rows(&self) -> Result<bool> {
        let mut slicer = self.slicer.lock().await;
        let slicer = self.started(&mut slicer).await?;
        Ok(slicer.rows().is_some_and(|rows| rows <= ROWS_OF_ONE_THREAD))
    }

    async fn next(&self) -> Result<Option<Slice>> {
        self.cancel.check()?;
        let mut slicer = self.slicer.lock().await;
        self.started(&mut slicer).await?.next(&self.left).await
    }

    async fn joined(&self, slice: Slice) -> Result<Option<RecordBatch>> {
        let Slice { left, right, before, after } = slice;
        let found = SideRows::of(&self.left, &left, &self.cancel).and_then(|left| {
            let right = SideRows::of(&self.right, &right, &self.cancel)?;
            let found = self.found(&left, &right)?;
            Ok((left, right, found))
        });
        let (left, right, found) = match found {
            Ok(found) => found,
            Err(error) => return given_up(error, after),
        };
        // What comes behind such a slice asks the table itself.
        let is_alone = matches!(before, Before::Earlier(_, true));
        let before = match before {
            Before::Nothing => Ok(Arc::new(Carry::empty(&self.right_types, self.memory.new_empty()))),
            Before::Earlier(earlier, is_alone) => {
                let codes = is_alone.then(|| missing(&found.partners, left.keys.as_deref().unwrap_or_default()));
                let part = self.right.earlier(&earlier, codes.as_deref(), &self.cancel);
                part.and_then(|part| Carry::of(&part, self.memory.new_empty())).map(Arc::new)
            }
            Before::Slice(before) => {
                before.await.unwrap_or_else(|_| Err(Error::internal("a slice of a join that was given up")))
            }
        };
        let next = before.and_then(|before| {
            let next = if right.rows == 0 || is_alone {
                before.clone()
            } else {
                Arc::new(before.with(&found.last, &right, &self.right_types, self.memory.new_empty())?)
            };
            Ok((before, next))
        });
        let (before, next) = match next {
            Ok(carries) => carries,
            Err(error) => return given_up(error, after),
        };
        let _ = after.send(Ok(next));
        if left.rows == 0 {
            return Ok(None);
        }
        let mut partners = found.partners;
        self.resolve(&mut partners, &left, &right, &before);
        Ok(Some(self.batch(partners, &left, &right, &before)?))
    }
}

impl Running {
    fn new(
        inputs: &[Arc<dyn ExecutionPlan>; 2],
        what: &What,
        schema: SchemaRef,
        context: &Arc<TaskContext>,
    ) -> Result<Running> {
        let cancel = context.session_config().get_extension::<CancelToken>().unwrap_or_default().as_ref().clone();
        let memory = MemoryConsumer::new("TidaliteTimeJoin").register(context.memory_pool());
        let TimeJoin { spec, columns, .. } = &what.join;
        let schemas = inputs.each_ref().map(|input| input.schema());
        let types = key_types(&columns.keys, &schemas[0], &schemas[1]);
        let keys = Arc::new(KeyNumbers::new(types, what.codes.as_deref())?);
        let width = schemas[0].fields().len();
        let unit = |side: usize, time: usize| unit_of(schemas[side].field(time).data_type());
        let units = (unit(0, columns.times.0), unit(1, columns.times.1));
        let scales = Scale::of(units.0, units.1, spec.kind);
        let side = |is_left: bool| {
            let at = usize::from(!is_left);
            let (time, unit, scale) = match is_left {
                true => (columns.times.0, units.0, scales.0),
                false => (columns.times.1, units.1, scales.1),
            };
            let own = what.output.iter().filter(|column| (**column < width) == is_left);
            let output = own.map(|column| if is_left { *column } else { column - width }).collect();
            let of_side = columns.keys.iter().map(|(left, right)| if is_left { *left } else { *right }).collect();
            let columns = Columns { time, keys: of_side, output, unit, scale };
            let table = what.are_tables[at].then(|| Pieces::of(&inputs[at], &cancel)).flatten();
            Side { columns, is_left, table, keys: keys.clone(), memory: memory.new_empty() }
        };
        let (left, right) = (side(true), side(false));
        let mut counts = [0, 0];
        let out = |column: &usize| {
            let is_left = *column < width;
            let (at, own) = (usize::from(!is_left), if is_left { *column } else { column - width });
            counts[at] += 1;
            Out::of(&inputs[at], (own, counts[at] - 1), is_left, what.join.schema.field(*column).data_type())
        };
        let output = what.output.iter().map(out).collect::<Result<Vec<_>>>()?;
        let right_types = output.iter().filter(|out| !out.is_left).map(|out| out.data_type.clone()).collect();
        let tolerance = spec.tolerance.map(|Stride { count, unit }| unit.nanos().unwrap_or(0) * i128::from(count));
        let (inputs, context, slicer) = (inputs.clone(), context.clone(), tokio::sync::Mutex::new(None));
        let kind = spec.kind;
        Ok(Running {
            inputs,
            context,
            left,
            right,
            output,
            right_types,
            kind,
            tolerance,
            schema,
            memory,
            cancel,
            slicer,
        })
    }

    /// Slices are taken by whoever is free, and joined where they are taken.
    fn in_turns(self: Arc<Running>) -> BoxStream<'static, Result<RecordBatch>> {
        let rows = try_unfold(self, |running| async move {
            loop {
                let Some(slice) = running.next().await? else { return Ok(None) };
                if let Some(batch) = running.joined(slice).await? {
                    return Ok(Some((batch, running)));
                }
            }
        });
        rows.boxed()
    }

    async fn started<'a>(&self, slicer: &'a mut Option<Slicer>) -> Result<&'a mut Slicer> {
        if slicer.is_none() {
            let memory = self.memory.new_empty();
            let right = match &self.right.table {
                Some(_) => Source::Table,
                None => Source::Held(held(&self.inputs[1], &self.context, &self.cancel, &memory).await?),
            };
            let left = match &self.left.table {
                Some(_) => Source::Table,
                None => Source::Stream(self.inputs[0].execute(0, self.context.clone())?),
            };
            let what = (self.kind, self.tolerance);
            *slicer = Some(Slicer::new((&self.left, left), (&self.right, right), what, memory)?);
        }
        slicer.as_mut().ok_or_else(|| Error::internal("slices that were made").into())
    }

    /// Partners within the slice, and for each key the latest row.
    fn found(&self, left: &SideRows, right: &SideRows) -> crate::Result<Found> {
        let (keys, bytes) = self.right.keys.count();
        self.memory.try_resize(self.memory.size().max(bytes))?;
        let memory = self.memory.new_empty();
        memory.try_grow(keys * 4 + left.rows * 4)?;
        let (mut last, mut found) = (vec![NONE; keys], Vec::new());
        let of = |rows: &'_ SideRows| (rows.times.clone(), rows.keys.clone());
        let (own_left, own_right) = (of(left), of(right));
        let left_rows = Rows { times: &own_left.0, keys: own_left.1.as_deref() };
        let right_rows = Rows { times: &own_right.0, keys: own_right.1.as_deref() };
        partners(left_rows, right_rows, self.kind == Kind::Lt, &mut last, &mut found);
        // Rows without a time have no partner.
        found.resize(left.rows, NONE);
        Ok(Found { partners: found, last, _memory: memory })
    }

    /// Those without a partner in the slice get the one before it; those that are too old, none.
    fn resolve(&self, found: &mut [u32], left: &SideRows, right: &SideRows, before: &Carry) {
        // Rows without a time are behind the others and stay as they are.
        resolve(&mut found[..left.times.len()], left.keys.as_deref(), before.places(), right.rows as u32);
        let Some(tolerance) = self.tolerance else { return };
        let (own, other) = (self.left.columns.unit, self.right.columns.unit);
        if own == other {
            let ticks = u64::try_from(tolerance / i128::from(own)).unwrap_or(u64::MAX);
            return no_older(found, &left.raw, ticks, &right.raw, before.times());
        }
        for (found, time) in found.iter_mut().zip(left.raw.iter()).filter(|(found, _)| **found != NONE) {
            let partner = i128::from(before.time(*found, right)) * i128::from(other);
            if i128::from(*time) * i128::from(own) - partner > tolerance {
                *found = NONE;
            }
        }
    }

    fn batch(&self, mut found: Vec<u32>, left: &SideRows, right: &SideRows, before: &Carry) -> Result<RecordBatch> {
        right.lie(&mut found);
        let column = |out: &Out| -> Result<ArrayRef> {
            let own = match out.is_left {
                true => left.column(out.place, &out.data_type)?,
                false => before.gathered(out.place, &found, right, &out.data_type)?,
            };
            out.texts_of(own)
        };
        let columns = self.output.iter().map(column).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(left.rows));
        Ok(RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?)
    }
}

/// All rows of a right side that is no table.
async fn held(
    input: &Arc<dyn ExecutionPlan>,
    context: &Arc<TaskContext>,
    cancel: &CancelToken,
    memory: &MemoryReservation,
) -> Result<Vec<RecordBatch>> {
    let mut stream = input.execute(0, context.clone())?;
    let mut batches = Vec::new();
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        cancel.check()?;
        memory.try_grow(batch.get_array_memory_size())?;
        batches.push(batch);
    }
    Ok(batches)
}
