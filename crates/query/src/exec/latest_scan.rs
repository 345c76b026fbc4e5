//! Of each symbol the latest row, from the end of a table.
//!
//! In: a scan. Out: what [`super::latest_on::LatestOn`] gives over it, in order of time. Blocks are looked at from the
//! latest back, by their codes and times alone, as long as one may hold a symbol that has no later row: which symbols a
//! block has is known from [`CodesPresent`](tidalite_storage::segment::CodesPresent), which of them conditions leave in a
//! segment from [`SymbolsBeside`]. A block is unpacked vector by vector from its end, until every symbol has a row. Then
//! the rows found are read.

use super::sliced;
use super::symbols_beside::SymbolsBeside;
use crate::cancel::CancelToken;
use crate::scan::exec::ScanExec;
use crate::scan::filters::Wanted;
use crate::scan::prune::Piece;
use crate::scan::read::Reader;
use crate::{Error, Result};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, UInt32Array};
use datafusion::arrow::compute::{cast, concat_batches, take_record_batch};
use datafusion::arrow::datatypes::{DataType, UInt32Type};
use datafusion::common::Result as DFResult;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{StreamExt, TryStreamExt};
use std::collections::BinaryHeap;
use std::fmt;
use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::Arc;
use tidalite_kernels::{count_picked, picked};
use tidalite_storage::Bounds;
use tidalite_storage::segment::{CODES_MAX, OpenBlock};
use tidalite_types::{BLOCK_ROWS, Bitmap, ColumnId, ErrorKind, VECTOR_ROWS};

/// Pieces between two turns of others, looked at or not: to know that one need not be takes a look at its segment.
const PIECES_AT_ONCE: usize = 4;
/// Behind so many blocks it is worth finding out which symbols conditions leave in a segment.
const BLOCKS_BEFORE: usize = 2;

#[derive(Debug)]
pub(crate) struct LatestScan {
    scan: Arc<dyn ExecutionPlan>,
    reader: Arc<Reader>,
    pieces: Arc<[Piece]>,
    /// The places of the columns.
    time: usize,
    key: usize,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl LatestScan {
    pub const NAME: &str = "TidaliteLatest";

    /// Of a scan, if its columns are the designated timestamp and a symbol. `properties` are those of [`LatestOn`], which are
    /// known to operators above.
    ///
    /// [`LatestOn`]: super::latest_on::LatestOn
    pub fn of(
        scan: Arc<dyn ExecutionPlan>,
        (time, key): (usize, usize),
        properties: Arc<PlanProperties>,
    ) -> Option<LatestScan> {
        let own = scan.downcast_ref::<ScanExec>()?;
        if !own.is_designated(time) || !own.is_symbol(key) {
            return None;
        }
        let (reader, pieces) = (own.reader().clone(), own.pieces()?);
        Some(LatestScan { scan, reader, pieces, time, key, properties, metrics: ExecutionPlanMetricsSet::new() })
    }

    /// One for each symbol, at most; `None` where they cannot be read.
    pub fn rows_max(&self) -> Option<usize> {
        self.reader.symbols(self.reader.column(self.key).id).ok().map(|symbols| symbols.len())
    }
}

impl ExecutionPlan for LatestScan {
    fn name(&self) -> &'static str {
        LatestScan::NAME
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> DFResult<TreeNodeRecursion>,
    ) -> DFResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> DFResult<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> DFResult<SendableRecordBatchStream> {
        let cancel = context.session_config().get_extension::<CancelToken>().unwrap_or_default();
        let metrics = BaselineMetrics::new(&self.metrics, 0);
        let looked_at = MetricBuilder::new(&self.metrics).counter("blocks_looked_at", 0);
        let memory = MemoryConsumer::new(LatestScan::NAME).register(context.memory_pool());
        let (reader, pieces, time, key) = (self.reader.clone(), self.pieces.clone(), self.time, self.key);
        let rows = async move {
            let codes = reader.symbols(reader.column(key).id)?.len();
            memory.try_grow(codes * size_of::<(Option<Place>, u32)>())?;
            let mut from_the_end = FromTheEnd::new(&reader, &pieces, time, key)?;
            let (open, may_be_null) = reader.symbols_of(key, codes);
            let mut latest = Latest::of(open, codes, may_be_null && from_the_end.has_null);
            let mut beside = SymbolsBeside::new(&reader, reader.column(key).id, codes);
            let mut met = 0;
            while let Some((last, piece)) = from_the_end.next()? {
                cancel.check()?;
                if latest.is_complete(last) {
                    break;
                }
                met += 1;
                // The last few mostly have all, and are looked at in one go.
                if met % PIECES_AT_ONCE == 0 {
                    tokio::task::yield_now().await;
                }
                latest.enter(match piece {
                    Piece::Block { segment, .. } => beside.of_segment(segment, looked_at.value() >= BLOCKS_BEFORE)?,
                    Piece::Run { .. } => None,
                });
                if latest.may_have(&reader, piece, key)? {
                    looked_at.add(1);
                    latest.add(&reader, piece, time, key)?;
                }
            }
            let rows = latest.rows(&reader)?;
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

impl DisplayAs for LatestScan {
    fn fmt_as(&self, kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schema = self.scan.schema();
        write!(
            f,
            "{}: time={}, keys=[{}], ",
            LatestScan::NAME,
            schema.field(self.time).name(),
            schema.field(self.key).name()
        )?;
        match self.scan.downcast_ref::<ScanExec>() {
            Some(scan) => scan.fmt_as(kind, f),
            None => Ok(()),
        }
    }
}

/// Of each symbol but NULL, or only of some codes, the latest of the wanted rows before a time, in order of time. `key` and
/// `time` are places among the reader's columns; pieces come with the latest time that each may have, the latest first.
pub(super) fn latest_before(
    reader: &Reader,
    pieces: impl Iterator<Item = (i64, Piece)>,
    (time, key): (usize, usize),
    (before, codes): (i64, Option<&[u32]>),
    cancel: &CancelToken,
) -> Result<RecordBatch> {
    let count = reader.symbols(reader.column(key).id)?.len();
    let mut latest = Latest::new(count, true).without_null(before, codes);
    for (last, piece) in pieces {
        cancel.check()?;
        if latest.is_complete(last) {
            break;
        }
        if latest.may_have(reader, piece, key)? {
            latest.add(reader, piece, time, key)?;
        }
    }
    latest.rows(reader)
}

/// Pieces with the latest time that each may have; runs first, then the latest blocks. Of segments that are not reached
/// nothing is looked up.
struct FromTheEnd<'a> {
    reader: &'a Reader,
    pieces: &'a [Piece],
    time: ColumnId,
    /// The latest time, whether it is of a run, and which piece it is.
    open: BinaryHeap<(i64, bool, usize)>,
    /// Of segments the latest time, and which pieces are theirs; the latest last.
    closed: Vec<(i64, Range<usize>)>,
    /// Whether some row may have no symbol.
    has_null: bool,
}

impl<'a> FromTheEnd<'a> {
    fn new(reader: &'a Reader, pieces: &'a [Piece], time: usize, key: usize) -> Result<FromTheEnd<'a>> {
        let (time, key) = (reader.column(time).id, reader.column(key).id);
        let source = |piece: &Piece| match *piece {
            Piece::Block { segment, .. } => Some(segment),
            Piece::Run { .. } => None,
        };
        let (mut open, mut closed, mut has_null, mut from) = (BinaryHeap::new(), Vec::new(), false, 0);
        for of_source in pieces.chunk_by(|a, b| source(a) == source(b)) {
            let own = from..from + of_source.len();
            from = own.end;
            match of_source.first().and_then(source) {
                Some(index) => {
                    let segment = &reader.snapshot.segments[index];
                    has_null = has_null || segment.has_nulls(key).map_err(|e| reader.snapshot.named(e))?;
                    closed.push((segment.time_range().1, own));
                }
                None => {
                    has_null = true;
                    open.extend(own.map(|at| (i64::MAX, true, at)));
                }
            }
        }
        closed.sort_by_key(|(last, _)| *last);
        Ok(FromTheEnd { reader, pieces, time, open, closed, has_null })
    }

    fn next(&mut self) -> Result<Option<(i64, Piece)>> {
        while let Some((last, _)) = self.closed.last()
            && self.open.peek().is_none_or(|(of_open, ..)| last >= of_open)
            && let Some((_, own)) = self.closed.pop()
        {
            self.add_blocks(own)?;
        }
        Ok(self.open.pop().map(|(last, _, at)| (last, self.pieces[at])))
    }

    /// The pieces of one segment.
    fn add_blocks(&mut self, own: Range<usize>) -> Result<()> {
        let snapshot = &self.reader.snapshot;
        let named = |e| Error::from(snapshot.named(e));
        let Some(Piece::Block { segment, .. }) = self.pieces.get(own.start) else { return Ok(()) };
        let segment = &snapshot.segments[*segment];
        let zones = segment.zones().map_err(named)?;
        let times = zones.of(self.time);
        for at in own {
            let Piece::Block { block, .. } = self.pieces[at] else { continue };
            let last = match times.block(block).map_err(named)?.map(|zone| zone.bounds) {
                Some(Bounds::Int(_, max)) => max,
                _ => segment.time_range().1,
            };
            self.open.push((last, false, at));
        }
        Ok(())
    }
}

/// Where a row is; of two of one time the greater came later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    time: i64,
    /// One more than the number of the segment or, behind all segments, of the run: never 0, so
    /// that there may be no place in the room of one.
    source: NonZeroU32,
    row: u32,
}

impl Place {
    #[inline]
    fn new(time: i64, source: u32, row: u32) -> Place {
        Place { time, source: NonZeroU32::MIN.saturating_add(source), row }
    }

    fn source(&self) -> usize {
        self.source.get() as usize - 1
    }
}

struct Latest {
    /// By code; the last is that of NULL.
    found: Vec<Option<Place>>,
    /// Codes without a row so far; how many they are.
    missing: usize,
    /// Codes with a row, beside which a later one may still be found.
    recent: Vec<u32>,
    /// All codes that a row is looked for, as bits, without NULL.
    open: Vec<u64>,
    /// Those of them that the segment may have which is looked at, if that is known.
    here: Option<Vec<u64>>,
    /// Codes without a row so far that what is looked at may have.
    missing_here: usize,
    /// Only rows of earlier times count.
    before: Option<i64>,
    has_null: bool,
    /// How many codes a row is looked for, at first.
    wanted: usize,
}

impl Latest {
    /// `has_null`: whether a row without a symbol is looked for, too.
    fn new(codes: usize, has_null: bool) -> Latest {
        Latest::of(Bitmap::filled(codes, true).into_words(), codes, has_null)
    }

    /// Of some of so many codes, given as bits.
    fn of(open: Vec<u64>, codes: usize, has_null: bool) -> Latest {
        let wanted = count_picked(&open) + usize::from(has_null);
        let (found, recent) = (vec![None; codes + 1], Vec::with_capacity(wanted));
        let (here, before) = (None, None);
        Latest { found, missing: wanted, recent, open, here, missing_here: wanted, before, has_null, wanted }
    }

    /// Of symbols alone, all or some, and of times before one.
    fn without_null(self, before: i64, codes: Option<&[u32]>) -> Latest {
        let missing = self.missing - usize::from(self.has_null);
        let latest =
            Latest { missing, missing_here: missing, wanted: missing, before: Some(before), has_null: false, ..self };
        let Some(codes) = codes else { return latest };
        let mut open = vec![0; latest.open.len()];
        for code in codes {
            if let Some(word) = open.get_mut(*code as usize / 64) {
                *word |= 1_u64 << (code % 64);
            }
        }
        let missing = open.iter().map(|word| word.count_ones() as usize).sum();
        Latest { missing, missing_here: missing, wanted: missing, open, ..latest }
    }

    /// Rows of a segment come next, which may have these codes, as bits, or any, and NULL.
    fn enter(&mut self, possible: Option<Arc<[u64]>>) {
        self.here = possible.map(|possible| self.open.iter().zip(&*possible).map(|(open, own)| open & own).collect());
        self.missing_here = match &self.here {
            None => self.missing,
            Some(here) => {
                let null = self.found.len() - 1;
                let is_null_missing = self.has_null && self.found[null].is_none();
                let found = self.recent.iter().filter(|code| is_among(here, **code as usize)).count();
                count_picked(here) - found + usize::from(is_null_missing)
            }
        };
    }

    /// Whether a row of a code may still be the latest.
    fn is_open(&self, code: usize) -> bool {
        is_among(&self.open, code)
    }

    /// Whether no row up to a time can be one of those wanted.
    fn is_complete(&mut self, last: i64) -> bool {
        let (found, open) = (&self.found, &mut self.open);
        self.recent.retain(|code| {
            let is_open = found[*code as usize].is_some_and(|place| place.time <= last);
            if !is_open && let Some(word) = open.get_mut(*code as usize / 64) {
                *word &= !(1 << (code % 64));
            }
            is_open
        });
        self.missing == 0 && self.recent.is_empty()
    }

    /// Whether all that is looked for here has a row behind a time, for now: other pieces may have one that is later still.
    fn has_later(&self, last: i64) -> bool {
        let is_here = |code: &u32| {
            self.here
                .as_ref()
                .is_none_or(|here| *code as usize >= self.found.len() - 1 || is_among(here, *code as usize))
        };
        let is_later = |code: &u32| self.found[*code as usize].is_some_and(|place| place.time > last);
        self.missing_here == 0 && self.recent.iter().all(|code| is_later(code) || !is_here(code))
    }

    /// Whether a piece may have a row of a code that is looked for.
    fn may_have(&self, reader: &Reader, piece: Piece, key: usize) -> Result<bool> {
        let Piece::Block { segment, block } = piece else { return Ok(true) };
        let null = self.found.len() - 1;
        let is_none_closed = self.missing + self.recent.len() == self.wanted;
        if self.here.is_none() && is_none_closed || null > CODES_MAX {
            return Ok(true);
        }
        let (segment, column) = (&reader.snapshot.segments[segment], reader.column(key).id);
        let named = |e| reader.snapshot.named(e);
        if self.has_null && (self.found[null].is_none() || self.recent.contains(&(null as u32))) {
            let zone = segment.zone(column, block).map_err(named)?;
            if zone.is_none_or(|zone| zone.null_count > 0) {
                return Ok(true);
            }
        }
        let wanted = self.here.as_ref().unwrap_or(&self.open);
        let is_any = wanted.iter().any(|word| *word != 0);
        Ok(is_any && (is_none_closed || segment.codes_present(column).map_err(named)?.has_any(block, wanted)))
    }

    fn add(&mut self, reader: &Reader, piece: Piece, time: usize, key: usize) -> Result<()> {
        let wanted = reader.wanted(piece)?;
        if matches!(&wanted, Wanted::Some(some) if some.rows() == 0) {
            return Ok(());
        }
        if let Piece::Block { segment, block } = piece {
            let mask = if let Wanted::Some(some) = &wanted { Some(some.mask()) } else { None };
            return self.add_block(reader, (segment, block), (time, key), mask);
        }
        let times = reader.plain(piece, reader.column(time))?;
        let times = times.ok_or_else(|| Error::internal("a designated timestamp without values"))?;
        let times = cast(&times, &DataType::Int64).map_err(|e| Error::internal(e.to_string()))?;
        let codes = reader.plain(piece, reader.column(key))?;
        let rows = Rows { reader, piece, times: times.as_primitive(), codes: codes.as_ref() };
        match wanted {
            Wanted::All => self.add_rows(&rows, 0..times.len()),
            Wanted::Some(some) => self.add_rows(&rows, picked(some.mask())),
        }
    }

    /// The wanted rows of a block, those of `mask` if there is one, from the last back, as long as they can be the latest.
    fn add_block(
        &mut self,
        reader: &Reader,
        (index, block): (usize, usize),
        (time, key): (usize, usize),
        mask: Option<&[u64]>,
    ) -> Result<()> {
        const WORDS: usize = VECTOR_ROWS / 64;
        let segment = &reader.snapshot.segments[index];
        let named = |e| Error::from(reader.snapshot.named(e));
        let open = |column: usize| segment.open_block(reader.column(column).id, block).map_err(named);
        let (times, codes) = (open(time)?, open(key)?);
        let times = times.ok_or_else(|| Error::internal("a designated timestamp without values"))?;
        let mut times = times.ints().map_err(named)?;
        let mut codes = codes.as_ref().map(OpenBlock::codes).transpose().map_err(named)?;
        let (rows, null) = (segment.block_rows(block), self.found.len() - 1);
        for i in (0..rows.div_ceil(VECTOR_ROWS)).rev() {
            let picked = mask.map(|mask| &mask[i * WORDS..mask.len().min((i + 1) * WORDS)]);
            if picked.is_some_and(|words| words.iter().all(|word| *word == 0)) {
                continue;
            }
            let (times, _) = times.vector(i);
            // The rows of a block are in order of time.
            if times.last().is_some_and(|last| self.has_later(*last)) {
                return Ok(());
            }
            let (codes, present) = codes.as_mut().map_or((&[][..], None), |codes| codes.vector(i));
            let first = (block * BLOCK_ROWS + i * VECTOR_ROWS) as u32;
            if let (None, None, None, Some(codes)) = (picked, present, self.before, codes.get(..times.len())) {
                self.add_vector((times, codes), index as u32, first).map_err(|code| unknown(reader, code))?;
                continue;
            }
            let mut add = |row: usize| {
                let is_there = present.is_none_or(|present| present[row] == 1);
                let code = codes.get(row).filter(|_| is_there).map_or(null, |code| *code as usize);
                let place = Place::new(times[row], index as u32, first + row as u32);
                self.add_row(code, place).map_err(|code| unknown(reader, code))
            };
            match picked {
                None => (0..times.len()).rev().try_for_each(add)?,
                Some(words) => picked_from_the_end(words).try_for_each(&mut add)?,
            }
        }
        Ok(())
    }

    /// Rows as [`Latest::add_row`] does, from the last back; all of them have a symbol.
    fn add_vector(
        &mut self,
        (times, codes): (&[i64], &[u32]),
        source: u32,
        first: u32,
    ) -> std::result::Result<(), usize> {
        let Latest { found, open, recent, .. } = self;
        let (symbols, met) = (found.len() - 1, recent.len());
        for (row, (time, code)) in times.iter().zip(codes).enumerate().rev() {
            let at = *code as usize;
            let Some(known) = found[..symbols].get_mut(at) else { return Err(at) };
            let place = Some(Place::new(*time, source, first + row as u32));
            if is_among(open, at) && place > *known {
                if known.is_none() {
                    recent.push(*code);
                }
                *known = place;
            }
        }
        let fresh = self.recent.len() - met;
        self.missing -= fresh;
        self.missing_here = self.missing_here.saturating_sub(fresh);
        Ok(())
    }

    /// The code is an error if there is none.
    fn add_row(&mut self, code: usize, place: Place) -> std::result::Result<(), usize> {
        let null = self.found.len() - 1;
        let is_asked = if code == null { self.has_null } else { code > null || self.is_open(code) };
        if !is_asked || self.before.is_some_and(|before| place.time >= before) {
            return Ok(());
        }
        match self.found.get_mut(code) {
            Some(found) if Some(place) > *found => {
                if found.replace(place).is_none() {
                    self.missing -= 1;
                    self.missing_here = self.missing_here.saturating_sub(1);
                    self.recent.push(code as u32);
                }
                Ok(())
            }
            Some(_) => Ok(()),
            None => Err(code),
        }
    }

    fn add_rows(&mut self, rows: &Rows<'_>, wanted: impl Iterator<Item = usize>) -> Result<()> {
        let null = self.found.len() - 1;
        let codes = rows.codes.map(|codes| codes.as_primitive::<UInt32Type>());
        let (source, first) = rows.source();
        for row in wanted {
            let code = match codes {
                Some(codes) if codes.is_valid(row) => codes.value(row) as usize,
                _ => null,
            };
            let place = Place::new(rows.times.value(row), source, first + row as u32);
            self.add_row(code, place).map_err(|code| unknown(rows.reader, code))?;
        }
        Ok(())
    }

    /// The rows found, in order of time.
    fn rows(self, reader: &Reader) -> Result<RecordBatch> {
        let mut places = Vec::with_capacity(self.found.len());
        places.extend(self.found.into_iter().flatten());
        places.sort_unstable_by_key(|place| (place.source, place.row));
        let mut batches = Vec::new();
        for of_source in places.chunk_by(|a, b| a.source == b.source) {
            let rows: Vec<u32> = of_source.iter().map(|place| place.row).collect();
            batches.extend(reader.rows(of_source[0].source(), &rows)?);
        }
        if places.is_sorted() {
            // Of one source; or each has later rows than those before it.
            let all =
                if let [only] = &batches[..] { Ok(only.clone()) } else { concat_batches(&reader.schema, &batches) };
            return all.map_err(|e| Error::internal(e.to_string()));
        }
        let mut order: Vec<u32> = (0..places.len() as u32).collect();
        order.sort_unstable_by_key(|at| places[*at as usize]);
        let all = concat_batches(&reader.schema, &batches);
        let ordered = all.and_then(|all| take_record_batch(&all, &UInt32Array::from(order)));
        ordered.map_err(|e| Error::internal(e.to_string()))
    }
}

fn is_among(codes: &[u64], code: usize) -> bool {
    codes.get(code / 64).is_some_and(|word| word >> (code % 64) & 1 == 1)
}

/// The bits that are set, the greatest first.
fn picked_from_the_end(words: &[u64]) -> impl Iterator<Item = usize> {
    words.iter().enumerate().rev().flat_map(|(at, word)| {
        let mut left = *word;
        std::iter::from_fn(move || {
            let bit = left.checked_ilog2()?;
            left &= !(1 << bit);
            Some(at * 64 + bit as usize)
        })
    })
}

/// A piece's columns.
struct Rows<'a> {
    reader: &'a Reader,
    piece: Piece,
    times: &'a Int64Array,
    codes: Option<&'a ArrayRef>,
}

impl Rows<'_> {
    /// The number of the source, and that of the piece's first row there.
    fn source(&self) -> (u32, u32) {
        match self.piece {
            Piece::Block { segment, block } => (segment as u32, (block * BLOCK_ROWS) as u32),
            Piece::Run { run, from, .. } => ((self.reader.snapshot.segments.len() + run) as u32, from as u32),
        }
    }
}

fn unknown(reader: &Reader, code: usize) -> Error {
    let table = &reader.snapshot.schema.name;
    Error::new(ErrorKind::Corrupt, format!("table \"{table}\": a row has symbol {code}, which no dictionary has"))
}
