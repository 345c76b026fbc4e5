//! WINDOW JOIN by slices of time, on all threads: the fast twin of [`crate::exec::window_join`] and of the aggregation over
//! its pairs.
//!
//! In: the left side a table, the right one a table or any rows, both in order of time; windows that reach as far for each
//! left row. Out: what the aggregation gives, in order of the left rows, which are numbered so that numbers ascend.
//!
//! Each slice ([`super::window_slices`]) arranges its right rows by key, finds the stretch of them that each left row has,
//! and aggregates the pairs, a bounded number at a time, into one state for each left row: whose they are is known from
//! where they come from, nothing is looked up. Counts, and sums and means of doubles, need no pairs. The row before a window may be of an earlier slice, which hands it on.

use super::abreast::{Abreast, in_order};
use super::carry::Carry;
use super::key_numbers::{CodePair, KeyNumbers};
use super::rows::SideRows;
use super::side::{Columns, Scale, Side, unit_of};
use super::slices::{Before, given_up};
use super::window_slices::{WindowSlice, WindowSlicer};
use super::{Out, ROWS_OF_ONE_THREAD, held};
use crate::exec::pieces::Pieces;
use crate::exec::time_join::{key_types, pairs};
use crate::exec::window_join::WindowJoin;
use crate::exec::{by_time, timed};
use crate::{CancelToken, Error};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchOptions,
};
use datafusion::arrow::buffer::{BooleanBuffer, NullBuffer};
use datafusion::arrow::compute::concat;
use datafusion::arrow::datatypes::{DataType, Float64Type, Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::common::cast::as_boolean_array;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_expr::{EquivalenceProperties, GroupsAccumulatorAdapter, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{StreamExt, TryStreamExt};
use std::fmt;
use std::sync::Arc;
use tidalite_operators::time_join::{Arranged, Next, Reach, Rows, Windows, gathered, latest};

/// Pairs that are aggregated at a time.
const PAIRS: usize = 16_384;

/// What is joined and aggregated, of any inputs.
#[derive(Clone, Debug)]
pub(crate) struct WindowWhat {
    pub join: WindowJoin,
    /// In ticks of the times, which are the same on both sides.
    pub reach: Reach,
    /// If all keys are symbols that come as codes.
    pub codes: Option<Vec<CodePair>>,
    /// Whether the right side is a table that can be read by pieces.
    pub is_table: bool,
    /// Columns that come out before the aggregates, by their places in the join's own schema: of the left side, and the
    /// rows' number.
    pub groups: Vec<usize>,
    /// Columns of pairs that aggregates look at, by the same places.
    pub of_pairs: Vec<usize>,
    pub aggregates: Vec<Aggregate>,
    pub schema: SchemaRef,
}

/// An aggregate whose arguments and condition are over [`WindowWhat::of_pairs`].
#[derive(Clone, Debug)]
pub(crate) struct Aggregate {
    pub function: Arc<AggregateFunctionExpr>,
    pub arguments: Vec<Arc<dyn PhysicalExpr>>,
    pub filter: Option<Arc<dyn PhysicalExpr>>,
}

impl WindowWhat {
    fn width(&self) -> usize {
        self.join.schema.fields().len()
    }

    fn is_number(&self, column: usize) -> bool {
        column == self.width() - 2
    }

    fn is_pair(&self, column: usize) -> bool {
        column == self.width() - 1
    }
}

#[derive(Debug)]
pub(crate) struct MergedWindows {
    inputs: [Arc<dyn ExecutionPlan>; 2],
    what: Arc<WindowWhat>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl MergedWindows {
    pub fn new(inputs: [Arc<dyn ExecutionPlan>; 2], what: Arc<WindowWhat>) -> MergedWindows {
        let is_ordered = |column: &usize| what.is_number(*column) || *column == what.join.columns.times.0;
        let orders = what.groups.iter().enumerate().filter(|(_, column)| is_ordered(column));
        let orders = orders.map(|(place, _)| [by_time(&what.schema, place)]);
        let properties = PlanProperties::new(
            EquivalenceProperties::new_with_orderings(what.schema.clone(), orders),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        MergedWindows { inputs, what, properties: Arc::new(properties), metrics: ExecutionPlanMetricsSet::new() }
    }
}

impl MergedWindows {
    /// Which sides are tables that are read by pieces.
    pub fn tables(&self) -> [bool; 2] {
        [true, self.what.is_table]
    }
}

impl ExecutionPlan for MergedWindows {
    fn name(&self) -> &'static str {
        "TidaliteWindowJoin"
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
        let inputs = <[_; 2]>::try_from(children).map_err(|_| Error::internal("a WINDOW JOIN has two inputs"))?;
        Ok(Arc::new(MergedWindows::new(inputs, self.what.clone())))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let running = Arc::new(Running::new(&self.inputs, &self.what, &context)?);
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let threads = context.session_config().target_partitions();
        let rows = in_order(running, threads).inspect_ok(move |batch| metrics.record_output(batch.num_rows()));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), timed(rows.boxed(), &self.metrics))))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

impl DisplayAs for MergedWindows {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WindowWhat { join, codes, aggregates, .. } = &*self.what;
        let keys = pairs(&join.columns.keys, &self.inputs.each_ref().map(|input| input.schema()));
        let prevailing = if self.what.reach.includes_prevailing { "included" } else { "excluded" };
        let names: Vec<&str> = aggregates.iter().map(|own| own.function.name()).collect();
        let names = names.join(", ");
        let hidden = format!(" FILTER (WHERE {})", join.schema.field(self.what.width() - 1).name());
        let names = names.replace(&hidden, "");
        write!(f, "TidaliteWindowJoin: keys=[{keys}], prevailing {prevailing}, aggregates=[{names}]")?;
        if codes.is_some() { write!(f, ", by codes") } else { Ok(()) }
    }
}

/// A column of pairs.
enum OfPair {
    Side(Out),
    /// The number of the left row.
    Number,
    /// That it is a pair.
    Is,
}

/// One execution.
struct Running {
    what: Arc<WindowWhat>,
    inputs: [Arc<dyn ExecutionPlan>; 2],
    context: Arc<TaskContext>,
    left: Side,
    right: Side,
    /// `None` for the number of a row.
    groups: Vec<Option<Out>>,
    of_pairs: Vec<OfPair>,
    /// Of each aggregate.
    stretches: Vec<Option<Stretch>>,
    pair_schema: SchemaRef,
    right_types: Vec<DataType>,
    memory: MemoryReservation,
    cancel: CancelToken,
    slicer: tokio::sync::Mutex<Option<WindowSlicer>>,
}

impl Abreast for Running {
    type Slice = WindowSlice;

    async fn has_few_rows(&self) -> Result<bool> {
        Ok(self.started().await? <= ROWS_OF_ONE_THREAD)
    }

    async fn next(&self) -> Result<Option<WindowSlice>> {
        self.cancel.check()?;
        Ok(self.slicer.lock().await.as_mut().and_then(WindowSlicer::next))
    }

    async fn joined(&self, slice: WindowSlice) -> Result<Option<RecordBatch>> {
        let WindowSlice { number, left, right, before, next_from, after } = slice;
        let found = SideRows::of(&self.left, &left, &self.cancel).and_then(|left| {
            let right = SideRows::of(&self.right, &right, &self.cancel)?;
            let found = self.found(&left, &right)?;
            Ok((left, right, found))
        });
        let (left, right, Found { arranged, windows, _memory: _held }) = match found {
            Ok(found) => found,
            Err(error) => return given_up(error, after),
        };
        let before = match before {
            Before::Nothing => Ok(Arc::new(Carry::empty(&self.right_types, self.memory.new_empty()))),
            Before::Earlier(earlier, _) => {
                let part = self.right.earlier(&earlier, None, &self.cancel);
                part.and_then(|part| Carry::of(&part, self.memory.new_empty())).map(Arc::new)
            }
            Before::Slice(before) => {
                before.await.unwrap_or_else(|_| Err(Error::internal("a slice of a join that was given up")))
            }
        };
        let next = before.and_then(|before| Ok((self.handed_on(&before, &right, next_from)?, before)));
        let (next, before) = match next {
            Ok(carries) => carries,
            Err(error) => return given_up(error, after),
        };
        let _ = after.send(Ok(next));
        if left.rows == 0 {
            return Ok(None);
        }
        self.aggregated(number, &left, (&right, &arranged), &windows, &before).map(Some)
    }
}

impl Running {
    fn new(
        inputs: &[Arc<dyn ExecutionPlan>; 2],
        what: &Arc<WindowWhat>,
        context: &Arc<TaskContext>,
    ) -> Result<Running> {
        let cancel = context.session_config().get_extension::<CancelToken>().unwrap_or_default().as_ref().clone();
        let memory = MemoryConsumer::new("TidaliteWindowJoin").register(context.memory_pool());
        let WindowJoin { columns, schema: joined, .. } = &what.join;
        let schemas = inputs.each_ref().map(|input| input.schema());
        let types = key_types(&columns.keys, &schemas[0], &schemas[1]);
        let keys = Arc::new(KeyNumbers::new(types, what.codes.as_deref())?);
        let width = schemas[0].fields().len();
        let end = width + schemas[1].fields().len();
        let mut outputs = [Vec::new(), Vec::new()];
        let mut out = |column: usize| {
            let is_left = column < width;
            let (at, own) = (usize::from(!is_left), if is_left { column } else { column - width });
            let place = outputs[at].iter().position(|known| *known == own).unwrap_or_else(|| {
                outputs[at].push(own);
                outputs[at].len() - 1
            });
            Out::of(&inputs[at], (own, place), is_left, joined.field(column).data_type())
        };
        let mut groups = Vec::new();
        for column in &what.groups {
            groups.push(if what.is_number(*column) { None } else { Some(out(*column)?) });
        }
        let mut of_pairs = Vec::new();
        for column in &what.of_pairs {
            of_pairs.push(match *column {
                column if column < end => OfPair::Side(out(column)?),
                column if what.is_pair(column) => OfPair::Is,
                _ => OfPair::Number,
            });
        }
        let stretches = what.aggregates.iter().map(|aggregate| Stretch::of(aggregate, &of_pairs)).collect();
        let fields = what.of_pairs.iter().map(|column| joined.fields()[*column].clone());
        let pair_schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let right_types = outputs[1].iter().map(|column| schemas[1].field(*column).data_type().clone()).collect();
        let [of_left, of_right] = outputs;
        let side = |is_left: bool, output: Vec<usize>| {
            let at = usize::from(!is_left);
            let time = if is_left { columns.times.0 } else { columns.times.1 };
            let of_side = columns.keys.iter().map(|(left, right)| if is_left { *left } else { *right }).collect();
            let unit = unit_of(schemas[at].field(time).data_type());
            let columns = Columns { time, keys: of_side, output, unit, scale: Scale::Same };
            let table = (is_left || what.is_table).then(|| Pieces::of(&inputs[at], &cancel)).flatten();
            Side { columns, is_left, table, keys: keys.clone(), memory: memory.new_empty() }
        };
        let (left, right) = (side(true, of_left), side(false, of_right));
        Ok(Running {
            what: what.clone(),
            inputs: inputs.clone(),
            context: context.clone(),
            left,
            right,
            groups,
            of_pairs,
            stretches,
            pair_schema,
            right_types,
            memory,
            cancel,
            slicer: tokio::sync::Mutex::new(None),
        })
    }

    /// Makes the slices; how many rows they have.
    async fn started(&self) -> Result<usize> {
        let memory = self.memory.new_empty();
        let of_right = match &self.right.table {
            Some(_) => None,
            None => Some(held(&self.inputs[1], &self.context, &self.cancel, &memory).await?),
        };
        let threads = self.context.session_config().target_partitions();
        let slicer = WindowSlicer::new(&self.left, (&self.right, of_right), self.what.reach, threads, memory)?;
        let rows = slicer.rows();
        *self.slicer.lock().await = Some(slicer);
        Ok(rows)
    }

    fn found(&self, left: &SideRows, right: &SideRows) -> crate::Result<Found> {
        let (keys, bytes) = self.right.keys.count();
        self.memory.try_resize(self.memory.size().max(bytes))?;
        let memory = self.memory.new_empty();
        memory.try_grow(keys * 16 + left.rows * 16 + right.rows * 12)?;
        let of = |rows: &'_ SideRows| (rows.times.clone(), rows.keys.clone());
        let (own_left, own_right) = (of(left), of(right));
        let arranged = Arranged::new(Rows { times: &own_right.0, keys: own_right.1.as_deref() }, keys);
        let left_rows = Rows { times: &own_left.0, keys: own_left.1.as_deref() };
        let windows = arranged.windows(left_rows, self.what.reach);
        Ok(Found { arranged, windows, _memory: memory })
    }

    /// The latest right row of each key before the next slice's.
    fn handed_on(&self, before: &Arc<Carry>, right: &SideRows, next_from: i64) -> crate::Result<Arc<Carry>> {
        let count = right.times.partition_point(|time| *time < next_from);
        if !self.what.reach.includes_prevailing || count == 0 {
            return Ok(before.clone());
        }
        let (keys, _) = self.right.keys.count();
        let of_rows = right.keys.as_ref().map(|keys| &keys[..count]);
        let last = latest(Rows { times: &right.times[..count], keys: of_rows }, keys);
        before.with(&last, right, &self.right_types, self.memory.new_empty()).map(Arc::new)
    }

    fn aggregated(
        &self,
        number: i64,
        left: &SideRows,
        (right, arranged): (&SideRows, &Arranged),
        windows: &Windows,
        before: &Carry,
    ) -> Result<RecordBatch> {
        let mut places = arranged.rows.clone();
        right.lie(&mut places);
        let column = |(column, data_type)| gathered(&right.arrays(column), &places, data_type);
        let of_right = self.right_types.iter().enumerate().map(column).collect::<Result<Vec<_>, _>>()?;
        let prevailing = windows.prevailing(left.keys.as_deref(), before.places(), places.len() as u32);
        let memory = self.memory.new_empty();
        memory.try_grow(of_right.iter().map(|column| column.get_array_memory_size()).sum())?;
        let held = memory.size();
        let mut done = Vec::new();
        for stretch in &self.stretches {
            let values = |stretch: &Stretch| stretch.values(windows, &prevailing, (&of_right, before));
            done.push(stretch.as_ref().map(values).transpose()?.flatten());
        }
        let others = |at: &usize| done[*at].is_none();
        let others: Vec<usize> = (0..done.len()).filter(others).collect();
        let of_left = self.of_left(left)?;
        let others = others.into_iter().map(|at| &self.what.aggregates[at]).collect::<Vec<_>>();
        let mut states = others.iter().map(|other| other.states()).collect::<Result<Vec<_>>>()?;
        let (mut lefts, mut rights, mut next) = (Vec::with_capacity(PAIRS), Vec::with_capacity(PAIRS), Next::default());
        let mut has_more = !others.is_empty();
        while has_more {
            self.cancel.check()?;
            lefts.clear();
            rights.clear();
            has_more = windows.pairs(&prevailing, &mut next, PAIRS, (&mut lefts, &mut rights));
            let of_pairs = self.pairs(number, &of_left, (&of_right, before), (&lefts, &rights))?;
            for (aggregate, states) in others.iter().zip(&mut states) {
                aggregate.add(states.as_mut(), &of_pairs, &lefts, left.rows)?;
            }
            memory.try_resize(held + states.iter().map(|states| states.size()).sum::<usize>())?;
        }
        let group = |out: &Option<Out>| -> Result<ArrayRef> {
            match out {
                Some(out) => out.texts_of(left.column(out.place, &out.data_type)?),
                None => {
                    Ok(Arc::new(Int64Array::from_iter_values((0..left.rows as i64).map(|row| (number << 32) + row))))
                }
            }
        };
        let mut columns = self.groups.iter().map(group).collect::<Result<Vec<_>>>()?;
        let mut states = states.into_iter();
        for done in done {
            let made = || states.next().map(|mut states| states.evaluate(EmitTo::All));
            let Some(column) = done.map(Ok).or_else(made).transpose()? else { break };
            columns.push(column);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(left.rows));
        Ok(RecordBatch::try_new_with_options(self.what.schema.clone(), columns, &options)?)
    }

    /// Columns of the left side that aggregates look at.
    fn of_left(&self, left: &SideRows) -> Result<Vec<Option<ArrayRef>>> {
        let column = |of_pair: &OfPair| match of_pair {
            OfPair::Side(out) if out.is_left => left.column(out.place, &out.data_type).map(Some),
            _ => Ok(None),
        };
        self.of_pairs.iter().map(column).collect::<crate::Result<Vec<_>>>().map_err(Into::into)
    }

    /// Pairs as rows.
    fn pairs(
        &self,
        number: i64,
        of_left: &[Option<ArrayRef>],
        (of_right, before): (&[ArrayRef], &Carry),
        (lefts, rights): (&[usize], &[u32]),
    ) -> Result<RecordBatch> {
        let numbers: Vec<u32> = match of_left.iter().any(Option::is_some) {
            true => lefts.iter().map(|left| *left as u32).collect(),
            false => Vec::new(),
        };
        let column = |(of_pair, of_left): (&OfPair, &Option<ArrayRef>)| -> Result<ArrayRef> {
            Ok(match (of_pair, of_left) {
                (OfPair::Side(out), Some(own)) => {
                    out.texts_of(gathered(std::slice::from_ref(own), &numbers, &out.data_type)?)?
                }
                (OfPair::Side(out), None) => {
                    let arrays = [of_right[out.place].clone(), before.column(out.place).clone()];
                    out.texts_of(gathered(&arrays, rights, &out.data_type)?)?
                }
                (OfPair::Number, _) => {
                    Arc::new(Int64Array::from_iter_values(lefts.iter().map(|row| (number << 32) + *row as i64)))
                }
                (OfPair::Is, _) => Arc::new(BooleanArray::from(vec![true; lefts.len()])),
            })
        };
        let columns = self.of_pairs.iter().zip(of_left).map(column).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(lefts.len()));
        Ok(RecordBatch::try_new_with_options(self.pair_schema.clone(), columns, &options)?)
    }
}

/// What the times and keys of a slice tell.
struct Found {
    arranged: Arranged,
    windows: Windows,
    _memory: MemoryReservation,
}

/// Aggregates that need no pairs: windows are stretches of right rows.
#[derive(Clone, Copy, Debug)]
enum Stretch {
    Count,
    /// Of one column of doubles, by its place among those of the right side that come.
    Sum(usize),
    Mean(usize),
}

impl Stretch {
    /// `None` where pairs have to be made.
    fn of(aggregate: &Aggregate, of_pairs: &[OfPair]) -> Option<Stretch> {
        let function = &aggregate.function;
        if aggregate.filter.is_some() || function.is_distinct() {
            return None;
        }
        let [argument] = aggregate.arguments.as_slice() else { return None };
        let is_constant = argument.downcast_ref::<Literal>().is_some_and(|literal| !literal.value().is_null());
        if function.fun().name() == "count" && is_constant {
            return Some(Stretch::Count);
        }
        let OfPair::Side(out) = &of_pairs[argument.downcast_ref::<Column>()?.index()] else { return None };
        if out.is_left || out.data_type != DataType::Float64 {
            return None;
        }
        match function.fun().name() {
            "sum" => Some(Stretch::Sum(out.place)),
            "avg" => Some(Stretch::Mean(out.place)),
            _ => None,
        }
    }

    /// For each left row; `None` where there are NULLs among the values.
    fn values(
        self,
        windows: &Windows,
        prevailing: &[u32],
        (of_right, before): (&[ArrayRef], &Carry),
    ) -> Result<Option<ArrayRef>> {
        let counts = windows.counts(prevailing);
        let (Stretch::Sum(column) | Stretch::Mean(column)) = self else {
            return Ok(Some(Arc::new(Int64Array::from(counts))));
        };
        let (own, earlier) = (&of_right[column], before.column(column));
        if own.null_count() > 0 || earlier.null_count() > 0 {
            return Ok(None);
        }
        let values = if earlier.is_empty() { own.clone() } else { concat(&[own.as_ref(), earlier.as_ref()])? };
        let mut sums = windows.sums(prevailing, values.as_primitive::<Float64Type>().values());
        if let Stretch::Mean(_) = self {
            sums.iter_mut().zip(&counts).for_each(|(sum, count)| *sum /= *count as f64);
        }
        let there = NullBuffer::from_iter(counts.iter().map(|count| *count > 0));
        Ok(Some(Arc::new(Float64Array::new(sums.into(), Some(there)))))
    }
}

impl Aggregate {
    fn states(&self) -> Result<Box<dyn GroupsAccumulator>> {
        if self.function.groups_accumulator_supported() {
            return self.function.create_groups_accumulator();
        }
        let function = self.function.clone();
        Ok(Box::new(GroupsAccumulatorAdapter::new(move || function.create_accumulator())))
    }

    fn add(
        &self,
        states: &mut dyn GroupsAccumulator,
        pairs: &RecordBatch,
        lefts: &[usize],
        left_rows: usize,
    ) -> Result<()> {
        let rows = pairs.num_rows();
        let arguments = self.arguments.iter().map(|argument| argument.evaluate(pairs)?.into_array(rows));
        let arguments = arguments.collect::<Result<Vec<_>>>()?;
        let filter = self.filter.as_ref().map(|filter| filter.evaluate(pairs)?.into_array(rows)).transpose()?;
        // Without a condition it is taken for granted that every group has a row.
        let filter = match &filter {
            Some(filter) => as_boolean_array(filter)?.clone(),
            None => BooleanArray::new(BooleanBuffer::new_set(rows), None),
        };
        states.update_batch(&arguments, lefts, Some(&filter), left_rows)
    }
}
