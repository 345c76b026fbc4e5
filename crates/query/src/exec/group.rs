//! Rows into groups: GROUP BY, DISTINCT, and aggregates without keys.
//!
//! In: any plan, each of its partitions on a thread. Out: a row for each group, in no order. Keys and arguments ([`input`])
//! are evaluated here; [`tidalite_operators::group`] does the rest.
//!
//! What cannot be packed after all, and groups that are more than memory has room for, are left to DataFusion's
//! operators: nothing has gone out by then, and everything is read again.

mod general;
mod input;

use crate::Error;
use crate::cancel::CancelToken;
use datafusion::arrow::array::{AsArray, RecordBatch, StringViewArray, UInt32Array};
use datafusion::arrow::datatypes::{DataType, FieldRef, Fields, Schema, SchemaRef};
use datafusion::common::runtime::JoinSet;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet, Time};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties};
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, TryStreamExt};
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};
use tidalite_kernels::Fold;
use tidalite_operators::group::{self, Best, Grouping, KeyKind, Output, Overflow, Part, Sought, Values};
use tokio::sync::mpsc;

pub(crate) use general::Generic;
pub(crate) use input::Input;

/// Memory of rows that are kept until they are grouped, and the share of what is free that it may be.
const KEPT_BYTES_MAX: usize = 512 << 20;
const KEPT_SHARE: usize = 4;

/// As EXPLAIN shows it.
pub(crate) const NAME: &str = "TidaliteGroup";

#[derive(Debug)]
pub(crate) struct GroupExec {
    input: Arc<dyn ExecutionPlan>,
    /// The input as DataFusion's operators want it, if that is another.
    plain: Option<Arc<dyn ExecutionPlan>>,
    what: Arc<What>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

/// What is computed, of any input.
#[derive(Clone, Debug)]
struct What {
    schema: SchemaRef,
    by: By,
    inputs: Vec<Input>,
    folds: Vec<Fold>,
    outputs: Vec<Output>,
    wanted: Wanted,
    generic: Generic,
}

/// What groups are made by.
#[derive(Clone, Debug)]
pub(crate) struct By {
    pub keys: Vec<Arc<dyn PhysicalExpr>>,
    pub kinds: Vec<KeyKind>,
    /// Whether the last key is none of those that come out: how many values it has in each group is the word behind those
    /// of the folds.
    pub counts_last: bool,
}

/// Which groups are asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Wanted {
    All,
    /// Any so many.
    Any(usize),
    /// Those that come first in an order.
    Best(Best),
}

/// Why a thread stopped before its rows did.
enum Stop {
    Failed(DataFusionError),
    /// Another operator has to do it.
    Overflow,
}

impl From<DataFusionError> for Stop {
    fn from(error: DataFusionError) -> Stop {
        if super::is_want_of_memory(&error) || super::is_of_sum(&error) { Stop::Overflow } else { Stop::Failed(error) }
    }
}

impl From<Overflow> for Stop {
    fn from(Overflow: Overflow) -> Stop {
        Stop::Overflow
    }
}

impl GroupExec {
    pub fn new(
        input: Arc<dyn ExecutionPlan>,
        schema: SchemaRef,
        by: By,
        inputs: Vec<Input>,
        (folds, outputs): (Vec<Fold>, Vec<Output>),
        wanted: Wanted,
        generic: Generic,
    ) -> GroupExec {
        let properties = properties(&schema);
        let what = What { schema, by, inputs, folds, outputs, wanted, generic };
        let (what, metrics) = (Arc::new(what), ExecutionPlanMetricsSet::new());
        GroupExec { input, plain: None, what, properties: Arc::new(properties), metrics }
    }

    pub fn input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }

    /// Each with how it is packed, with one that is only counted at the end.
    pub fn keys(&self) -> Vec<(Arc<dyn PhysicalExpr>, KeyKind)> {
        self.what.by.keys.iter().cloned().zip(self.what.by.kinds.iter().cloned()).collect()
    }

    /// Whether all rows become one.
    pub fn is_of_all_rows(&self) -> bool {
        self.what.by.those_out().is_empty()
    }

    /// Of aggregates, with their conditions.
    pub fn arguments(&self) -> impl Iterator<Item = Arc<dyn PhysicalExpr>> {
        self.what.inputs.iter().flat_map(|input| input.argument.iter().chain(&input.filter)).cloned()
    }

    /// Whether nothing is asked of groups but their keys, or how many those are.
    pub fn has_only_keys(&self) -> bool {
        self.what.folds.is_empty()
    }

    /// The same groups from an input whose keys come in another form.
    pub fn coded(&self, input: Arc<dyn ExecutionPlan>, keys: Vec<(Arc<dyn PhysicalExpr>, KeyKind)>) -> GroupExec {
        let (keys, kinds) = keys.into_iter().unzip();
        let by = By { keys, kinds, ..self.what.by };
        self.over(input, Some(self.plain().clone()), Arc::new(What { by, ..What::clone(&self.what) }))
    }

    /// The same groups with a key's codes instead of the texts, which are given beside; `None` where it is not of codes.
    pub fn giving_codes(&self, key: usize) -> Option<(GroupExec, StringViewArray)> {
        let dictionary = self.what.by.those_out().get(key)?.dictionary()?.clone();
        let field = |(at, field): (usize, &FieldRef)| match at == key {
            true => Arc::new(field.as_ref().clone().with_data_type(DataType::UInt32)),
            false => field.clone(),
        };
        let fields: Fields = self.what.schema.fields().iter().enumerate().map(field).collect();
        let schema = Arc::new(Schema::new_with_metadata(fields, self.what.schema.metadata().clone()));
        let properties = Arc::new(properties(&schema));
        let what = Arc::new(What { schema, ..What::clone(&self.what) });
        let group = GroupExec { properties, ..self.over(self.input.clone(), self.plain.clone(), what) };
        (self.what.wanted == Wanted::All).then_some((group, dictionary))
    }

    pub fn inputs(&self) -> &[Input] {
        &self.what.inputs
    }

    pub fn folds(&self) -> &[Fold] {
        &self.what.folds
    }

    /// The same groups from an input that has sums of rows, by folds that are as many.
    pub fn totalled(
        &self,
        input: Arc<dyn ExecutionPlan>,
        keys: Vec<Arc<dyn PhysicalExpr>>,
        inputs: Vec<Input>,
        folds: Vec<Fold>,
    ) -> GroupExec {
        let by = By { keys, ..self.what.by.clone() };
        self.over(input, Some(self.plain().clone()), Arc::new(What { by, inputs, folds, ..What::clone(&self.what) }))
    }

    /// What DataFusion would be asked, and over which input; `None` if not all groups are wanted.
    pub fn general(&self) -> Option<(&Generic, &Arc<dyn ExecutionPlan>)> {
        (self.what.wanted == Wanted::All).then(|| (&self.what.generic, self.plain()))
    }

    fn plain(&self) -> &Arc<dyn ExecutionPlan> {
        self.plain.as_ref().unwrap_or(&self.input)
    }

    /// The same rows come out, so that the operators above need not look again at what they know of them.
    fn over(&self, input: Arc<dyn ExecutionPlan>, plain: Option<Arc<dyn ExecutionPlan>>, what: Arc<What>) -> GroupExec {
        GroupExec { input, plain, what, properties: self.properties.clone(), metrics: ExecutionPlanMetricsSet::new() }
    }
}

/// Nothing of the input is in them.
fn properties(schema: &SchemaRef) -> PlanProperties {
    PlanProperties::new(
        EquivalenceProperties::new(schema.clone()),
        Partitioning::UnknownPartitioning(1),
        EmissionType::Final,
        Boundedness::Bounded,
    )
}

impl ExecutionPlan for GroupExec {
    fn name(&self) -> &'static str {
        NAME
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for expr in self.what.by.keys.iter().cloned().chain(self.arguments()) {
            if f(&expr)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let input = children.pop().ok_or_else(|| Error::internal("a grouping without its input"))?;
        Ok(Arc::new(self.over(input, self.plain.clone(), self.what.clone())))
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let metrics = BaselineMetrics::new(&self.metrics, 0);
        let left = MetricBuilder::new(&self.metrics).counter("left_to_generic", 0);
        let (input, what, time) = (self.input.clone(), self.what.clone(), metrics.elapsed_compute().clone());
        let plain = self.plain().clone();
        let rows = async move {
            let rows = match what.is_too_wide() {
                true => Err(Stop::Overflow),
                false => run(&input, &what, &context, &time).await,
            };
            match rows {
                Ok(rows) => Ok(rows),
                Err(Stop::Failed(error)) => Err(error),
                Err(Stop::Overflow) => {
                    left.add(1);
                    Ok(what.with_codes(general::rows(&plain, &what.generic, &context)?))
                }
            }
        };
        let rows = futures::stream::once(rows).try_flatten();
        let rows = rows.inspect_ok(move |batch| metrics.record_output(batch.num_rows()));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows.boxed())))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

impl DisplayAs for GroupExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.what.schema.fields().iter().map(|field| field.name().as_str()).collect();
        let (keys, aggregates) = names.split_at(self.what.by.those_out().len());
        let (keys, aggregates) = (keys.join(", "), aggregates.join(", "));
        write!(f, "TidaliteGroup: by=[{keys}], aggregates=[{aggregates}]")?;
        match &self.what.wanted {
            Wanted::All => Ok(()),
            Wanted::Any(groups) => write!(f, ", any {groups} groups"),
            Wanted::Best(best) => write!(f, ", best {} by {}", best.groups, Order(&best.by, &names)),
        }
    }
}

/// What groups are compared by, with the names of columns.
struct Order<'a>(&'a [group::By], &'a [&'a str]);

impl fmt::Display for Order<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, by) in self.0.iter().enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            let direction = match (by.is_descending, by.nulls_first) {
                (false, false) => "",
                (true, true) => " DESC",
                (false, true) => " NULLS FIRST",
                (true, false) => " DESC NULLS LAST",
            };
            write!(f, "{comma}{}{direction}", self.1.get(by.column).unwrap_or(&""))?;
        }
        Ok(())
    }
}

impl By {
    /// The keys that come out.
    fn those_out(&self) -> &[KeyKind] {
        &self.kinds[..self.kinds.len() - usize::from(self.counts_last)]
    }
}

impl What {
    /// As in the plan, for keys that turned out to be no symbols, or too many of them.
    fn is_too_wide(&self) -> bool {
        let kinds = &self.by.kinds;
        let (bits, has_text) = (kinds.iter().map(KeyKind::bits).sum::<u32>(), kinds.iter().any(KeyKind::is_text));
        let come_out = self.wanted == Wanted::All && !self.by.counts_last;
        bits > u128::BITS || (bits > u64::BITS && has_text && come_out)
    }

    /// Rows of the general operators, whose keys are texts, with the codes that are asked for.
    fn with_codes(&self, rows: SendableRecordBatchStream) -> Rows {
        let is_coded = |(field, kind): (&FieldRef, &KeyKind)| {
            kind.dictionary().filter(|_| *field.data_type() == DataType::UInt32).cloned()
        };
        let fields = self.schema.fields().iter().zip(self.by.those_out());
        let coded: Vec<Option<StringViewArray>> = fields.map(is_coded).collect();
        if coded.iter().all(Option::is_none) {
            return rows.boxed();
        }
        let codes = |texts: &StringViewArray| -> HashMap<String, u32> {
            texts.iter().zip(0..).filter_map(|(text, code)| Some((text?.to_owned(), code))).collect()
        };
        let codes: Vec<_> = coded.iter().map(|texts| texts.as_ref().map(codes)).collect();
        let schema = self.schema.clone();
        let of_batch = move |batch: RecordBatch| {
            let mut columns = batch.columns().to_vec();
            for (column, codes) in columns.iter_mut().zip(&codes) {
                let Some(codes) = codes else { continue };
                let code = |text: Option<&str>| match text.map(|text| codes.get(text)) {
                    Some(None) => Err(Error::internal("a symbol that no dictionary has").into()),
                    known => Ok(known.flatten().copied()),
                };
                let own = column.as_string_view().iter().map(code).collect::<Result<UInt32Array>>()?;
                *column = Arc::new(own);
            }
            Ok(RecordBatch::try_new(schema.clone(), columns)?)
        };
        rows.map(move |batch| batch.and_then(&of_batch)).boxed()
    }
}

type Rows = BoxStream<'static, Result<RecordBatch>>;

/// Of rows that are kept until they are grouped: of what memory there is, others need some.
fn kept_bytes_max(pool: &Arc<dyn MemoryPool>) -> usize {
    match pool.memory_limit() {
        MemoryLimit::Finite(limit) => KEPT_BYTES_MAX.min(limit.saturating_sub(pool.reserved()) / KEPT_SHARE),
        MemoryLimit::Infinite | MemoryLimit::Unknown => KEPT_BYTES_MAX,
    }
}

/// Boxed: the caller need not know how much it holds.
fn run<'a>(
    input: &'a Arc<dyn ExecutionPlan>,
    what: &'a Arc<What>,
    context: &'a Arc<TaskContext>,
    time: &'a Time,
) -> BoxFuture<'a, std::result::Result<Rows, Stop>> {
    async move {
        let cancel = context.session_config().get_extension::<CancelToken>().unwrap_or_default();
        let inputs = what.inputs.iter().map(|input| input.is_float).collect();
        let partitions = input.output_partitioning().partition_count();
        let seed = RandomState::new().hash_one(0);
        let sought = match what.wanted {
            _ if what.by.counts_last => Sought::CountsOfLast,
            Wanted::Any(groups) => Sought::Any(groups),
            Wanted::All | Wanted::Best(_) => Sought::All,
        };
        let kept = kept_bytes_max(context.memory_pool());
        let shared = Grouping::new(what.folds.clone(), what.by.kinds.clone(), inputs, sought, seed, kept);
        let memory = MemoryConsumer::new("TidaliteGroup").register(context.memory_pool());
        let (mut threads, mut few) = (JoinSet::new(), Vec::new());
        for partition in 0..partitions {
            let rows = input.execute(partition, context.clone())?;
            let own = MemoryConsumer::new("TidaliteGroup thread").register(context.memory_pool());
            let (what, shared, time) = (what.clone(), shared.clone(), time.clone());
            let thread = Thread { rows, what, shared, memory: own, threads: partitions, time };
            if partitions == 1 {
                few.extend(thread.work(cancel.clone()).await?);
                break;
            }
            threads.spawn(thread.work(cancel.clone()));
        }
        while let Some(done) = threads.join_next().await {
            let done = done.map_err(|e| DataFusionError::ExecutionJoin(Box::new(e)))?;
            few.extend(done?);
        }
        // Until now each thread had its share of what is shared.
        memory.try_resize(shared.bytes())?;
        let parts = shared.parts(few);
        let (shared, parts) = match what.by.counts_last {
            true => counted(parts, &shared, context.memory_pool(), &cancel, (partitions, time)).await?,
            false => (shared, parts),
        };
        // Each thread makes groups of the rows of a part.
        let of_threads = partitions * shared.bytes_as_groups() / parts.len().max(1);
        let parts = match &what.wanted {
            Wanted::Best(best) => {
                memory.try_resize(shared.bytes() + of_threads + partitions * shared.best_bytes(&parts, best))?;
                vec![first(parts, best, (&shared, what, &cancel), (partitions, time)).await?]
            }
            _ => {
                memory.try_resize(shared.bytes() + of_threads)?;
                parts
            }
        };
        Ok(finished(shared, parts, what.clone(), (memory, partitions), cancel))
    }
    .boxed()
}

/// One partition of the input.
struct Thread {
    rows: SendableRecordBatchStream,
    what: Arc<What>,
    shared: Grouping,
    memory: MemoryReservation,
    threads: usize,
    /// What grouping takes, without reading.
    time: Time,
}

impl Thread {
    /// Its rows into groups.
    fn work(self, cancel: Arc<CancelToken>) -> BoxFuture<'static, std::result::Result<Vec<Part>, Stop>> {
        async move {
            let Thread { mut rows, what, shared, memory, threads, time } = self;
            let mut worker = shared.worker();
            let mut mass = Mass::new(&what.folds, threads);
            while let Some(batch) = rows.next().await {
                let batch = batch?;
                cancel.check().map_err(DataFusionError::from)?;
                if batch.num_rows() == 0 {
                    continue;
                }
                let _timer = time.timer();
                let keys = what.by.keys.iter().map(|key| key.evaluate(&batch)?.into_array(batch.num_rows()));
                let keys = keys.collect::<Result<Vec<_>>>()?;
                let inputs = what.inputs.iter().map(|input| input.values(&batch)).collect::<Result<Vec<_>>>()?;
                mass.add(&inputs, batch.num_rows())?;
                worker.add(&keys, &inputs, batch.num_rows())?;
                memory.try_resize(worker.bytes() + shared.bytes() / threads)?;
            }
            Ok(worker.finish())
        }
        .boxed()
    }
}

/// An upper bound of the integer sums of one thread.
///
/// While the bound fits 64 bits, no sum of any groups can have overflowed, and no row is checked.
struct Mass {
    /// Each summed input, with the bound of its values.
    inputs: Vec<(usize, u64)>,
    limit: u64,
}

impl Mass {
    fn new(folds: &[Fold], threads: usize) -> Mass {
        let mut inputs: Vec<(usize, u64)> = Vec::new();
        for fold in folds {
            if let Fold::SumInt(input) = *fold
                && !inputs.iter().any(|(known, _)| *known == input)
            {
                inputs.push((input, 0));
            }
        }
        Mass { inputs, limit: i64::MAX.unsigned_abs() / threads.max(1) as u64 }
    }

    fn add(&mut self, values: &[Values], rows: usize) -> std::result::Result<(), Stop> {
        for (input, mass) in &mut self.inputs {
            let own = values.get(*input).map_or(0, Values::magnitude).saturating_mul(rows as u64);
            *mass = mass.saturating_add(own);
            if *mass > self.limit {
                return Err(Stop::Overflow);
            }
        }
        Ok(())
    }
}

/// What comes of parts, of which each thread takes the next that no other has.
async fn of_parts<T: Send + 'static>(
    parts: Vec<Part>,
    may_go_on: impl Fn() -> Result<()> + Clone + Send + 'static,
    (partitions, time): (usize, &Time),
    work: impl Fn(&mut dyn Iterator<Item = Part>) -> T + Clone + Send + 'static,
) -> Result<Vec<T>> {
    let count = partitions.min(parts.len());
    let parts = Arc::new(Mutex::new(parts));
    let worker = || {
        let (parts, time, may_go_on, work) = (parts.clone(), time.clone(), may_go_on.clone(), work.clone());
        move || {
            let _timer = time.timer();
            let mut stopped = None;
            let next = || match may_go_on() {
                Ok(()) => parts.lock().unwrap_or_else(PoisonError::into_inner).pop(),
                Err(error) => {
                    stopped = Some(error);
                    None
                }
            };
            let found = work(&mut std::iter::from_fn(next));
            stopped.map_or(Ok(found), Err)
        }
    };
    let mut found = Vec::new();
    if count > 1 {
        let mut threads = JoinSet::<Result<T>>::new();
        for work in (0..count).map(|_| worker()) {
            threads.spawn(async move { work() });
        }
        while let Some(part) = threads.join_next().await {
            found.push(part.map_err(|e| DataFusionError::ExecutionJoin(Box::new(e)))??);
        }
    } else {
        // Of one part here: handing it to a thread may take longer.
        found.push(worker()()?);
    }
    Ok(found)
}

/// The groups that come first: of those that each thread finds in the parts that it takes.
async fn first(
    parts: Vec<Part>,
    best: &Best,
    (shared, what, cancel): (&Grouping, &Arc<What>, &Arc<CancelToken>),
    threads: (usize, &Time),
) -> Result<Part> {
    let pick = {
        let (shared, what, best) = (shared.clone(), what.clone(), best.clone());
        move |parts: &mut dyn Iterator<Item = Part>| shared.best(parts, &what.outputs, &best)
    };
    let may_go_on = {
        let cancel = cancel.clone();
        move || cancel.check().map_err(DataFusionError::from)
    };
    let mut found = of_parts(parts, may_go_on, threads, pick.clone()).await?;
    Ok(match found.len() {
        1 => found.remove(0),
        _ => pick(&mut found.into_iter()),
    })
}

/// Groups without their last key, whose values are counted.
async fn counted(
    parts: Vec<Part>,
    all: &Grouping,
    pool: &Arc<dyn MemoryPool>,
    cancel: &Arc<CancelToken>,
    threads: (usize, &Time),
) -> Result<(Grouping, Vec<Part>)> {
    let fewer = all.without_last();
    let of_threads = threads.0 * all.bytes_as_groups() / parts.len().max(1);
    let may_go_on = {
        let (fewer, cancel) = (fewer.clone(), cancel.clone());
        // One thread after the other: a reservation is not resized by several at once.
        let memory = Arc::new(Mutex::new(MemoryConsumer::new("TidaliteGroup counts").register(pool)));
        move || {
            cancel.check().map_err(DataFusionError::from)?;
            memory.lock().unwrap_or_else(PoisonError::into_inner).try_resize(of_threads + fewer.bytes())
        }
    };
    let count = {
        let (all, fewer) = (all.clone(), fewer.clone());
        move |parts: &mut dyn Iterator<Item = Part>| all.count_last(parts, &fewer)
    };
    let few = of_parts(parts, may_go_on, threads, count).await?;
    let parts = fewer.parts(few.into_iter().flatten().collect());
    Ok((fewer, parts))
}

/// The groups as rows; many of them are in parts, which threads write side by side.
fn finished(
    shared: Grouping,
    parts: Vec<Part>,
    what: Arc<What>,
    (memory, partitions): (MemoryReservation, usize),
    cancel: Arc<CancelToken>,
) -> Rows {
    let parts = match <[Part; 1]>::try_from(parts) {
        Ok([part]) => {
            let batches = shared.batches(part, &what.outputs, &what.schema);
            return futures::stream::iter(batches.into_iter().map(|batch| Ok(batch?))).boxed();
        }
        Err(parts) => parts,
    };
    let parts = Arc::new(Mutex::new(parts));
    let (sender, receiver) = mpsc::channel(2 * partitions);
    let mut threads = JoinSet::new();
    for _ in 0..partitions {
        threads.spawn(write(parts.clone(), shared.clone(), what.clone(), cancel.clone(), sender.clone()).boxed());
    }
    drop(sender);
    // The threads end with the stream, and the memory is held until then.
    let state = (receiver, threads, memory);
    futures::stream::unfold(state, |(mut receiver, mut threads, memory)| async move {
        let next = match receiver.recv().await {
            Some(batch) => batch,
            // One that panicked has not sent all.
            None => match threads.join_next().await? {
                Ok(()) => return Some((None, (receiver, threads, memory))),
                Err(error) => Err(DataFusionError::ExecutionJoin(Box::new(error))),
            },
        };
        Some((Some(next), (receiver, threads, memory)))
    })
    .filter_map(futures::future::ready)
    .boxed()
}

/// Takes parts, and sends their groups, until there are none.
async fn write(
    parts: Arc<Mutex<Vec<Part>>>,
    shared: Grouping,
    what: Arc<What>,
    cancel: Arc<CancelToken>,
    sender: mpsc::Sender<Result<RecordBatch>>,
) {
    let next = || parts.lock().unwrap_or_else(PoisonError::into_inner).pop();
    while let Some(part) = next() {
        let stop = cancel.check().err().map(|error| Err(error.into()));
        let batches = shared.batches(part, &what.outputs, &what.schema).into_iter().map(|batch| Ok(batch?));
        for batch in stop.into_iter().chain(batches) {
            if sender.send(batch).await.is_err() {
                return;
            }
        }
    }
}
