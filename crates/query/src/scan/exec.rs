//! The leaf of a physical plan that reads one of our tables.
//!
//! Out of order, its partitions take pieces from one shared cursor, so that threads finish together whatever a piece
//! costs. In order of time, each partition has its own list of pieces whose times ascend, and whoever wants one
//! stream merges them, rows of one time from the first list that has some; threads read pieces of a list ahead for
//! [`crate::exec::in_order`]. Every piece asks first whether the query was cancelled.

use super::bound::{Bound, Within};
use super::groups::{GroupSpec, Groups};
use super::prune::{Counts, Piece, Pruned, Source};
use super::queue::Queue;
use super::read::{ADDRESS_COLUMN, Reader};
use super::spec::{Form, Order, ScanSpec, Total};
use super::statistics::statistics;
use super::totals::Sums;
use crate::cancel::CancelToken;
use crate::exec::wide_pieces::WidePiece;
use datafusion::arrow::array::{RecordBatch, StringViewArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::metrics::{BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use tidalite_storage::{SymbolMap, Tally, tally};
use tidalite_types::{BLOCK_ROWS, ColumnType, SegmentId};

#[derive(Debug)]
pub(crate) struct ScanExec {
    spec: ScanSpec,
    reader: Arc<Reader>,
    work: Work,
    counts: Counts,
    statistics: Known,
    /// If what comes out is not rows, but what they come to.
    groups: Option<Arc<GroupSpec>>,
    /// If only the first rows of an order are wanted.
    bound: Option<Bound>,
    /// Bytes of the batches in which wide pieces are handed out, if they are.
    hands_out: Option<usize>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

#[derive(Clone, Debug)]
enum Work {
    Shared { queue: Arc<Queue>, partitions: usize },
    PerPartition(Vec<Arc<[Piece]>>),
}

impl ScanExec {
    /// `known` are the properties of a scan like it, which it has if as many streams come out.
    pub fn new(
        spec: ScanSpec,
        reader: Reader,
        pruned: Pruned,
        partitions: usize,
        known: Option<&Arc<PlanProperties>>,
    ) -> Result<ScanExec> {
        let work = work_of(&spec, &reader, pruned.sources.iter().flat_map(|source| &source.pieces));
        let is_near = reader.expected_share().is_some() && work <= ROWS_NEAR;
        let partitions = if is_near { 1 } else { partitions };
        let work = if spec.order != Order::Free {
            Work::PerPartition(in_order(&spec, &reader, &pruned.sources)?)
        } else {
            let pieces: Arc<[Piece]> = pruned.sources.iter().flat_map(|s| s.pieces.iter().copied()).collect();
            let partitions = partitions.min(pieces.len()).max(1);
            Work::shared(pieces, partitions)
        };
        let known = known.filter(|known| known.output_partitioning().partition_count() == work.partitions());
        let properties = match known {
            Some(known) => known.clone(),
            None => Arc::new(properties(&spec, &reader, work.partitions())),
        };
        Ok(ScanExec {
            spec,
            reader: Arc::new(reader),
            work,
            counts: pruned.counts.clone(),
            statistics: Known::Of(Arc::new(pruned), Arc::default()),
            groups: None,
            bound: None,
            hands_out: None,
            properties,
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }
}

/// What is known of the rows that come out.
#[derive(Clone, Debug)]
enum Known {
    Nothing,
    /// What footers say of these pieces, looked up when somebody asks: a table has thousands.
    Of(Arc<Pruned>, Arc<OnceLock<Arc<Statistics>>>),
}

/// A scan of so few rows is one stream: another thread would take longer to wake than to read its half.
pub(crate) const ROWS_NEAR: usize = BLOCK_ROWS;
/// Pieces whose footers are read for the width of rows.
const PIECES_MEASURED: usize = 8;
/// Rows that a filter leaves out, compared as they are encoded, for one that comes out.
const ROWS_A_ROW: usize = 32;

/// What reading pieces takes, in rows that come out.
fn work_of<'a>(spec: &ScanSpec, reader: &Reader, pieces: impl Iterator<Item = &'a Piece>) -> usize {
    let rows = pieces.map(|piece| reader.rows_of(*piece)).sum::<usize>();
    match reader.expected_share().filter(|_| spec.several.is_empty()) {
        Some(share) => rows.min(rows / ROWS_A_ROW + (rows as f64 * share) as usize),
        None => rows,
    }
}

impl ScanExec {
    /// With one of its columns in another form, which is of a type.
    pub fn with_form(&self, index: usize, form: Form, data_type: DataType) -> ScanExec {
        let schema = &self.reader.schema;
        let name = match &form {
            Form::Rising(expr) => expr.to_string().replace("@0", ""),
            _ => schema.field(index).name().clone(),
        };
        let field = Arc::new(Field::new(name, data_type, schema.field(index).is_nullable()));
        let fields = schema.fields().iter().enumerate();
        let fields: Vec<_> = fields.map(|(at, own)| if at == index { field.clone() } else { own.clone() }).collect();
        self.with_reader(self.reader.with_form(index, form, Arc::new(Schema::new(fields)), &self.spec))
    }

    /// With rows left out that have the text of another; `None` where something else of its rows is asked for.
    pub fn with_texts_once(&self) -> Option<ScanExec> {
        let ScanSpec { limit: None, order: Order::Free, .. } = self.spec else { return None };
        if self.groups.is_some() || self.bound.is_some() || !matches!(self.reader.only_form(), Some(Form::Texts)) {
            return None;
        }
        Some(self.with_form(0, Form::TextsOnce, self.reader.schema.field(0).data_type().clone()))
    }

    /// With totals of columns instead of their rows, see [`super::totals`].
    pub fn with_totals(&self, totals: Vec<Total>) -> ScanExec {
        self.with_reader(self.reader.with_totals(totals, &self.spec))
    }

    /// With groups of rows instead of the rows, see [`super::groups`].
    pub fn with_groups(&self, groups: GroupSpec) -> ScanExec {
        let equivalences = EquivalenceProperties::new(groups.schema().clone());
        let properties = PlanProperties::clone(&self.properties).with_eq_properties(equivalences);
        let statistics = Known::Nothing;
        ScanExec { groups: Some(Arc::new(groups)), properties: Arc::new(properties), statistics, ..self.again() }
    }

    /// Of some of its columns, and with `is_addressed` of the place of each row behind them.
    pub fn narrowed(&self, columns: &[usize], is_addressed: bool) -> ScanExec {
        let narrow = self.with_reader(self.reader.narrowed(columns, is_addressed, &self.spec));
        let address = is_addressed.then_some(ADDRESS_COLUMN);
        let projection = columns.iter().map(|at| self.spec.projection[*at]).chain(address).collect();
        ScanExec { spec: ScanSpec { projection, ..self.spec.clone() }, ..narrow }
    }

    /// Of which only rows within a bound of column `key` are wanted: pieces that begin nearest to its better end are read
    /// first, so that the bound gets narrow soon. A plan that runs again does so without.
    pub fn bounded(&self, bound: Bound, key: usize, descending: bool) -> Result<ScanExec> {
        let work = match &self.work {
            Work::Shared { queue, partitions } => {
                Work::shared(self.reader.best_first(queue.pieces(), key, descending)?.into(), *partitions)
            }
            lists => lists.clone(),
        };
        Ok(ScanExec { work, bound: Some(bound), ..self.again() })
    }

    /// Of which only the first rows of each stream are wanted.
    pub fn limited(&self, rows: usize) -> ScanExec {
        let limit = Some(self.spec.limit.map_or(rows, |own| own.min(rows)));
        ScanExec { spec: ScanSpec { limit, ..self.spec.clone() }, statistics: Known::Nothing, ..self.again() }
    }

    /// Returns a copy whose wide pieces are handed out in batches of so many bytes, see [`crate::exec::wide_pieces`].
    pub fn handing_out(&self, batch_bytes: usize) -> ScanExec {
        ScanExec { hands_out: Some(batch_bytes), bound: self.bound.clone(), ..self.again() }
    }

    pub fn hands_out(&self) -> bool {
        self.hands_out.is_some()
    }

    /// Returns the average bytes of a row's texts, of the widest of some pieces; `None` where there are no texts.
    pub fn bytes_of_texts(&self) -> Option<usize> {
        if !self.reader.has_texts() {
            return None;
        }
        let pieces: Vec<&Piece> = self.all_pieces().collect();
        let some = pieces.iter().step_by((pieces.len() / PIECES_MEASURED).max(1));
        some.map(|piece| self.reader.bytes_of_texts(**piece) / self.reader.rows_of(**piece).max(1)).max()
    }

    fn with_reader(&self, reader: Reader) -> ScanExec {
        let properties = Arc::new(properties(&self.spec, &reader, self.work.partitions()));
        ScanExec { reader: Arc::new(reader), properties, statistics: Known::Nothing, ..self.again() }
    }

    /// The texts of a symbol column, by code.
    pub fn symbols(&self, index: usize) -> crate::Result<StringViewArray> {
        self.reader.symbols(self.spec.projection[index])
    }

    /// The dictionary of a symbol column.
    pub fn symbol_map(&self, index: usize) -> Option<&Arc<SymbolMap>> {
        self.reader.snapshot.symbols.get(&self.spec.projection[index])
    }

    pub fn is_symbol(&self, index: usize) -> bool {
        let column = self.reader.snapshot.schema.column_by_id(self.spec.projection[index]);
        column.is_some_and(|column| column.column_type == ColumnType::Symbol)
    }

    pub fn is_text(&self, index: usize) -> bool {
        let column = self.reader.snapshot.schema.column_by_id(self.spec.projection[index]);
        column.is_some_and(|column| column.column_type.is_text())
    }

    pub fn is_designated(&self, index: usize) -> bool {
        Some(self.spec.projection[index]) == self.reader.snapshot.schema.designated
    }

    pub fn reader(&self) -> &Arc<Reader> {
        &self.reader
    }

    /// Whether rows come out as they are.
    pub fn reads_rows(&self) -> bool {
        self.groups.is_none() && self.bound.is_none() && self.reader.plain_columns().is_some()
    }

    pub fn order(&self) -> Order {
        self.spec.order
    }

    /// How many streams come out.
    pub fn partitions(&self) -> usize {
        self.work.partitions()
    }

    /// With properties that are the same, but known to others.
    pub fn with_properties(self, properties: Arc<PlanProperties>) -> ScanExec {
        ScanExec { properties, ..self }
    }

    /// Every piece; `None` where some of their rows will do.
    pub fn pieces(&self) -> Option<Arc<[Piece]>> {
        if self.spec.limit.is_some() {
            return None;
        }
        Some(match &self.work {
            Work::Shared { queue, .. } => queue.pieces().clone(),
            Work::PerPartition(lists) => match lists.as_slice() {
                [only] => only.clone(),
                _ => lists.iter().flat_map(|list| list.iter().copied()).collect(),
            },
        })
    }

    /// Those of one stream.
    pub fn pieces_of(&self, partition: usize) -> Arc<[Piece]> {
        self.work.all_of(partition).into()
    }

    pub fn limit(&self) -> Option<usize> {
        self.spec.limit
    }

    pub fn is_filtered(&self) -> bool {
        self.spec.is_filtered()
    }

    /// Whether rows come out, in whatever form.
    pub fn gives_rows(&self) -> bool {
        self.groups.is_none() && self.bound.is_none() && self.reader.totals().is_none()
    }

    /// At most so many rows are looked at.
    pub fn rows_max(&self) -> usize {
        self.all_pieces().map(|piece| self.reader.rows_of(*piece)).sum()
    }

    /// What reading it takes, in rows that come out.
    pub fn work(&self) -> usize {
        work_of(&self.spec, &self.reader, self.all_pieces())
    }

    fn all_pieces(&self) -> impl Iterator<Item = &Piece> {
        (0..self.partitions()).flat_map(|partition| self.work.all_of(partition))
    }

    /// Kept and present. A table has thousands: they are only counted to be shown.
    fn partitions_read(&self) -> (usize, usize) {
        let of = |is_kept: &dyn Fn(SegmentId) -> bool| {
            let metas = self.reader.snapshot.segments.iter().map(|segment| segment.meta());
            metas.filter(|meta| is_kept(meta.id)).map(|meta| meta.partition).collect::<BTreeSet<_>>().len()
        };
        let kept: BTreeSet<SegmentId> = self.spec.segments.iter().copied().collect();
        (of(&|id| kept.contains(&id)), of(&|_| true))
    }

    /// For whoever reads the pieces in an order of its own, on any thread.
    pub fn by_piece(&self, cancel: &CancelToken) -> ByPiece {
        cancel.begins(self.rows_max());
        ByPiece {
            reader: self.reader.clone(),
            cancel: cancel.clone(),
            metrics: BaselineMetrics::new(&self.metrics, 0),
            read_counts: ReadCounts::new(&self.metrics, 0),
            counts: self.spec.is_filtered().then(|| FilterCounts::new(&self.metrics, 0)),
        }
    }

    /// What one stream makes of its rows.
    fn folded(&self, context: &TaskContext) -> Result<Folded> {
        if let Some(spec) = &self.groups {
            let memory = MemoryConsumer::new("TidaliteScan groups").register(context.memory_pool());
            memory.try_grow(spec.bytes())?;
            return Ok(Folded::Groups(Box::new(Groups::new(spec)), memory));
        }
        let rows = || self.bound.clone().map_or(Folded::Rows, |bound| Folded::First(Box::new(Within::new(bound))));
        Ok(self.reader.totals().map_or_else(rows, |totals| Folded::Sums(Sums::new(totals))))
    }

    /// From the first piece on.
    fn again(&self) -> ScanExec {
        let work = match &self.work {
            Work::Shared { queue, partitions } => Work::shared(queue.pieces().clone(), *partitions),
            lists => lists.clone(),
        };
        ScanExec {
            spec: self.spec.clone(),
            reader: self.reader.clone(),
            work,
            counts: self.counts.clone(),
            statistics: self.statistics.clone(),
            groups: self.groups.clone(),
            bound: None,
            hands_out: self.hands_out,
            properties: self.properties.clone(),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }
}

impl Work {
    fn shared(pieces: Arc<[Piece]>, partitions: usize) -> Work {
        Work::Shared { queue: Arc::new(Queue::new(pieces)), partitions }
    }

    fn partitions(&self) -> usize {
        match self {
            Work::Shared { partitions, .. } => *partitions,
            Work::PerPartition(lists) => lists.len(),
        }
    }

    /// Those that are this partition's to count: all that are shared are the first one's.
    fn all_of(&self, partition: usize) -> &[Piece] {
        match self {
            Work::Shared { queue, .. } if partition == 0 => queue.pieces(),
            Work::Shared { .. } => &[],
            Work::PerPartition(lists) => lists.get(partition).map_or(&[], |list| list),
        }
    }

    /// What one partition takes its pieces from.
    fn queue(&self, partition: usize) -> Arc<Queue> {
        match self {
            Work::Shared { queue, .. } => queue.clone(),
            Work::PerPartition(lists) => Arc::new(Queue::new(lists.get(partition).cloned().unwrap_or_default())),
        }
    }
}

/// Reads pieces of a scan, and counts as the scan does.
#[derive(Debug)]
pub(crate) struct ByPiece {
    reader: Arc<Reader>,
    cancel: CancelToken,
    metrics: BaselineMetrics,
    read_counts: ReadCounts,
    counts: Option<FilterCounts>,
}

impl ByPiece {
    /// As [`ByPiece::read`] of a piece that was read and counted before.
    pub fn read_again(&self, piece: Piece, rows_max: usize) -> crate::Result<Option<RecordBatch>> {
        self.cancel.check()?;
        let _timer = self.metrics.elapsed_compute().timer();
        self.reader.read_first(piece, rows_max)
    }

    /// The first of the wanted rows of a piece, at most so many; `None` where there are none.
    pub fn read(&self, piece: Piece, rows_max: usize) -> crate::Result<Option<RecordBatch>> {
        self.cancel.check()?;
        let _timer = self.metrics.elapsed_compute().timer();
        let _ = tally::taken();
        let batch = self.reader.read_first(piece, rows_max);
        self.cancel.has_read(self.reader.rows_of(piece));
        self.read_counts.record(tally::taken());
        let batch = batch?;
        let rows = batch.as_ref().map_or(0, RecordBatch::num_rows);
        if let Some(counts) = &self.counts {
            counts.record(self.reader.rows_of(piece), rows);
        }
        self.metrics.record_output(rows);
        Ok(batch)
    }
}

/// The wide piece that a stream hands out in small batches, if it is at one.
struct HandedOut {
    /// The rest of the piece, and how many of its rows were wanted.
    rest: Option<(WidePiece, Piece, usize)>,
    hands_out: Option<usize>,
    reader: Arc<Reader>,
    cancel: Arc<CancelToken>,
}

impl HandedOut {
    /// Begins with the rows of a piece, of which at most `rows_max` were wanted; returns the first of them, or all.
    fn begin(&mut self, batch: RecordBatch, piece: Piece, rows_max: usize) -> Result<Option<RecordBatch>> {
        let Some(batch_bytes) = self.hands_out else { return Ok(Some(batch)) };
        match WidePiece::try_new(batch, batch_bytes, self.cancel.pieces()) {
            Ok(wide) => self.rest = Some((wide, piece, rows_max)),
            Err(batch) => return Ok(Some(batch)),
        }
        self.next()
    }

    /// Returns the next rows of the piece; `None` if the stream is at none.
    fn next(&mut self) -> Result<Option<RecordBatch>> {
        let Some((wide, piece, rows_max)) = &mut self.rest else { return Ok(None) };
        let batch = wide.next(self.cancel.pieces(), || Ok(self.reader.read_first(*piece, *rows_max)?))?;
        if batch.is_none() {
            self.rest = None;
        }
        Ok(batch)
    }
}

/// What rows are made into as they are read.
enum Folded {
    Rows,
    /// Those that can still be among the first.
    First(Box<Within>),
    Groups(Box<Groups>, MemoryReservation),
    Sums(Sums),
}

impl Folded {
    /// Adds a piece. Gives what comes out by now, often nothing, and how many rows are wanted.
    /// Of rows as they are, no more than `left` are wanted.
    fn add(&mut self, reader: &Reader, piece: Piece, left: usize) -> crate::Result<(Option<RecordBatch>, usize)> {
        let counted = |batch: Option<RecordBatch>| {
            let rows = batch.as_ref().map_or(0, RecordBatch::num_rows);
            (batch, rows)
        };
        match self {
            Folded::Rows => reader.read_first(piece, left).map(counted),
            Folded::First(within) => within.read(reader, piece).map(counted),
            Folded::Groups(groups, _) => groups.add(reader, piece),
            Folded::Sums(sums) => Ok((None, sums.add(reader, piece, reader.totals().unwrap_or_default())?)),
        }
    }

    /// What is left, if anything was kept.
    fn finish(self, reader: &Reader) -> Option<crate::Result<RecordBatch>> {
        match self {
            Folded::Rows | Folded::First(_) => None,
            Folded::Groups(groups, _memory) => Some(groups.finish()),
            Folded::Sums(sums) => Some(sums.finish(&reader.schema)),
        }
    }
}

/// What EXPLAIN ANALYZE shows of a scan that filters, beside the rows that came out.
#[derive(Debug)]
struct FilterCounts {
    rows_tested: Count,
    /// Blocks without a wanted row, of which only columns with predicates were read.
    blocks_empty: Count,
    blocks_tested: Count,
}

impl FilterCounts {
    fn new(metrics: &ExecutionPlanMetricsSet, partition: usize) -> FilterCounts {
        let count = |name| MetricBuilder::new(metrics).counter(name, partition);
        FilterCounts {
            rows_tested: count("rows_tested"),
            blocks_empty: count("blocks_empty"),
            blocks_tested: count("blocks_tested"),
        }
    }

    fn record(&self, tested: usize, wanted: usize) {
        self.rows_tested.add(tested);
        self.blocks_tested.add(1);
        self.blocks_empty.add(usize::from(wanted == 0));
    }
}

/// What EXPLAIN ANALYZE shows of any scan.
#[derive(Debug)]
struct ReadCounts {
    stored: Count,
    from_files: Count,
    values: Count,
    vectors: Count,
    vectors_skipped: Count,
}

impl ReadCounts {
    fn new(metrics: &ExecutionPlanMetricsSet, partition: usize) -> ReadCounts {
        let count = |name| MetricBuilder::new(metrics).counter(name, partition);
        ReadCounts {
            stored: count("bytes_stored"),
            from_files: count("bytes_from_files"),
            values: count("bytes_of_values"),
            vectors: count("vectors"),
            vectors_skipped: count("vectors_skipped"),
        }
    }

    /// What was read on this thread.
    fn record(&self, read: Tally) {
        self.stored.add(read.stored_bytes as usize);
        self.from_files.add(read.file_bytes as usize);
        self.values.add(read.value_bytes as usize);
        self.vectors.add(read.vectors as usize);
        self.vectors_skipped.add(read.vectors_skipped as usize);
    }
}

/// Lists of pieces with ascending (or descending) times: sources whose ranges do not overlap follow one another in a
/// list.
fn in_order(spec: &ScanSpec, reader: &Reader, sources: &[Source]) -> Result<Vec<Arc<[Piece]>>> {
    let mut lists = chains(spec, reader, sources)?;
    if lists.is_empty() {
        lists.push(Vec::new());
    }
    Ok(lists.into_iter().map(Into::into).collect())
}

fn chains(spec: &ScanSpec, reader: &Reader, sources: &[Source]) -> Result<Vec<Vec<Piece>>> {
    let snapshot = &reader.snapshot;
    let Some(designated) = snapshot.schema.designated else {
        return Ok(vec![sources.iter().flat_map(|s| s.pieces.iter().copied()).collect()]);
    };
    let is_descending = spec.order == Order::Descending;
    let mut chains: Vec<(i64, Vec<Piece>)> = Vec::new();
    for at in 0..sources.len() {
        // Sources are in order of arrival, and equal times are taken from the first chain that has them: so a source goes to
        // the last chain or behind it, never to one before. Going down it is the other way round throughout.
        let source = &sources[if is_descending { sources.len() - 1 - at } else { at }];
        let (min, max) = source.kept_range(snapshot, designated)?;
        // Going down, times are counted from the end: what follows is written once.
        let (first, last) = if is_descending { (!max, !min) } else { (min, max) };
        if chains.last().is_none_or(|(end, _)| *end > first) {
            // Mostly there is one.
            let most = if chains.is_empty() { sources.iter().map(|source| source.pieces.len()).sum() } else { 0 };
            chains.push((first, Vec::with_capacity(most)));
        }
        let index = chains.len() - 1;
        let (end, pieces) = &mut chains[index];
        *end = last;
        let from = pieces.len();
        pieces.extend(&source.pieces);
        if is_descending {
            pieces[from..].reverse();
        }
    }
    Ok(chains.into_iter().map(|(_, pieces)| pieces).collect())
}

fn properties(spec: &ScanSpec, reader: &Reader, partitions: usize) -> PlanProperties {
    let mut equivalences = EquivalenceProperties::new(reader.schema.clone());
    let designated = spec.projection.iter().position(|id| Some(*id) == reader.snapshot.schema.designated);
    if let Some(index) = designated.filter(|_| spec.order != Order::Free && reader.totals().is_none()) {
        let column = Arc::new(Column::new(reader.schema.field(index).name(), index));
        let descending = spec.order == Order::Descending;
        let options = datafusion::arrow::compute::SortOptions { descending, nulls_first: descending };
        equivalences.add_ordering([PhysicalSortExpr::new(column, options)]);
    }
    let partitioning = Partitioning::UnknownPartitioning(partitions);
    PlanProperties::new(equivalences, partitioning, EmissionType::Incremental, Boundedness::Bounded)
        .with_scheduling_type(SchedulingType::Cooperative)
}

impl ExecutionPlan for ScanExec {
    fn name(&self) -> &'static str {
        "TidaliteScan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    /// A plan that runs again, as in a recursive query, reads everything again.
    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(self.again()))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let cancel = context.session_config().get_extension::<CancelToken>().unwrap_or_default();
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let reader = self.reader.clone();
        let mut left = self.spec.limit.unwrap_or(usize::MAX);
        let mut is_done = false;
        let queue = self.work.queue(partition);
        cancel.begins(self.work.all_of(partition).iter().map(|piece| reader.rows_of(*piece)).sum());
        let read_counts = ReadCounts::new(&self.metrics, partition);
        let counts = self.spec.is_filtered().then(|| FilterCounts::new(&self.metrics, partition));
        let mut folded = self.folded(&context)?;
        let is_cheap = self.spec.several.is_empty() && reader.expected_share().is_some();
        let hands_out = self.hands_out.filter(|_| matches!(folded, Folded::Rows));
        let mut wide = HandedOut { rest: None, hands_out, reader: reader.clone(), cancel: cancel.clone() };
        let mut next = move |looked_at: &mut usize| {
            if is_done || left == 0 {
                return None;
            }
            if let Err(error) = cancel.check() {
                is_done = true;
                return Some(Err(error.into()));
            }
            let _timer = metrics.elapsed_compute().timer();
            if let Some(next) = wide.next().transpose() {
                let rows = next.as_ref().map_or(0, RecordBatch::num_rows);
                left -= rows;
                metrics.record_output(rows);
                is_done = next.is_err();
                return Some(next.map(Some));
            }
            let Some((at, piece)) = queue.take() else {
                is_done = true;
                return std::mem::replace(&mut folded, Folded::Rows).finish(&reader).map(|batch| {
                    let batch = batch?;
                    metrics.record_output(batch.num_rows());
                    Ok(Some(batch))
                });
            };
            let _ = tally::taken();
            let read = folded.add(&reader, piece, left);
            let rows = reader.rows_of(piece);
            // As in `work_of`.
            *looked_at += match &read {
                Ok((_, wanted)) if is_cheap => rows / ROWS_A_ROW + wanted,
                _ => rows,
            };
            cancel.has_read(rows);
            let (from_files, taken) = (tally::columns_from_files(), tally::taken());
            read_counts.record(taken);
            let (batch, wanted) = match read {
                Ok((Some(batch), wanted)) if batch.num_rows() > left => (Some(batch.slice(0, left)), wanted.min(left)),
                Ok(read) => read,
                Err(error) => {
                    is_done = true;
                    return Some(Err(error.into()));
                }
            };
            if let Some(counts) = &counts {
                counts.record(reader.rows_of(piece), wanted);
            }
            if left > wanted && !from_files.is_empty() {
                queue.came_from_files(&reader, at, &from_files, taken.file_bytes);
            }
            let batch = batch.map_or(Ok(None), |batch| wide.begin(batch, piece, left));
            if let Ok(Some(batch)) = &batch {
                left -= batch.num_rows();
                metrics.record_output(batch.num_rows());
            }
            is_done = batch.is_err();
            Some(batch)
        };
        let batches = futures::stream::poll_fn(move |context| {
            let mut looked_at = 0;
            loop {
                let batch = match next(&mut looked_at) {
                    Some(Ok(batch)) => batch,
                    Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                    None => return Poll::Ready(None),
                };
                // Nobody wants a batch without rows; but now and then whoever ends the query must have a chance to.
                match batch {
                    Some(batch) if batch.num_rows() > 0 => return Poll::Ready(Some(Ok(batch))),
                    _ if looked_at < BLOCK_ROWS => {}
                    _ => {
                        context.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                }
            }
        });
        let stream = RecordBatchStreamAdapter::new(self.schema(), batches);
        Ok(Box::pin(cooperative(stream)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(&self, _: &[Arc<Statistics>], args: &StatisticsArgs) -> Result<Arc<Statistics>> {
        Ok(match args.partition() {
            None => match &self.statistics {
                Known::Nothing => Arc::new(Statistics::new_unknown(&self.schema())),
                Known::Of(pruned, made) => {
                    made.get_or_init(|| Arc::new(statistics(&self.spec, &self.reader, pruned))).clone()
                }
            },
            Some(_) => Arc::new(Statistics::new_unknown(&self.schema())),
        })
    }
}

impl DisplayAs for ScanExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = self.reader.schema.fields();
        let columns: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
        let Counts { segments, blocks, staged_rows } = &self.counts;
        let partitions = self.partitions_read();
        write!(
            f,
            "TidaliteScan: table={}{}, columns=[{}], partitions={}/{}, segments={}/{}, blocks={}/{}, staged rows={}/{}",
            self.reader.snapshot.schema.name,
            of_base(&self.reader.snapshot.schema),
            columns.join(", "),
            partitions.0,
            partitions.1,
            segments.0,
            segments.1,
            blocks.0,
            blocks.1,
            staged_rows.0,
            staged_rows.1,
        )?;
        write!(
            f,
            "{}",
            match (self.spec.order, self.reader.snapshot.schema.designated) {
                (Order::Free, _) => "",
                (Order::Ascending, Some(_)) => ", in time order",
                (Order::Descending, Some(_)) => ", latest first",
                (_, None) => ", in order of arrival",
            }
        )?;
        let (encoded, computed): (Vec<_>, Vec<_>) = self.spec.several.iter().partition(|several| several.is_encoded());
        let on_encoded = self.spec.predicates.iter().map(|p| &p.text).chain(encoded.into_iter().map(|s| &s.text));
        let all = |texts: Vec<&str>| texts.join(" AND ");
        let on_encoded: Vec<&str> = on_encoded.map(String::as_str).collect();
        if !on_encoded.is_empty() {
            write!(f, ", filter on encoded: {}", all(on_encoded))?;
        }
        if !computed.is_empty() {
            let how = if self.reader.is_compiled() { "compiled filter" } else { "computed filter" };
            write!(f, ", {how}: {}", all(computed.iter().map(|several| several.text.as_str()).collect()))?;
        }
        let codes = self.reader.in_codes();
        if !codes.is_empty() {
            write!(f, ", codes=[{}]", codes.join(", "))?;
        }
        if let Some(Form::TextsOnce) = self.reader.only_form() {
            write!(f, ", each text once a block")?;
        }
        if self.groups.is_some() {
            write!(f, ", grouped")?;
        }
        if let Some(bound) = &self.bound {
            write!(f, ", only what can be among the first by {}", bound.key())?;
        }
        match self.spec.limit {
            Some(limit) => write!(f, ", limit={limit}"),
            None => Ok(()),
        }
    }
}

/// Whose materialized view a table is, if it is one.
fn of_base(schema: &tidalite_types::TableSchema) -> String {
    schema.materialized().map_or_else(String::new, |kept| format!(" (a materialized view of {})", kept.base))
}
