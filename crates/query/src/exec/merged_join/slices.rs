//! Time cut into slices, which threads join side by side.
//!
//! A slice has the left rows of `(lo, hi]` and the right rows that come into question between: those that are before `hi`
//! and were not before `lo`. Slices are cut where pieces end, about [`ROWS`] rows of both sides in each. A left side that
//! is no table is cut as its batches come.
//!
//! Of what is right of no left row only the latest rows matter. Where they can be found from the latest back ([`Earlier`]),
//! that is not read: what is before the first left row, and gaps between left rows, of which each is looked at if they
//! are few.

use super::carry::Carry;
use super::side::{Cell, Scale, Side, Span};
use crate::plan::Kind;
use crate::scan::exec::ScanExec;
use crate::scan::prune::Piece;
use crate::{Error, Result};
use datafusion::arrow::array::RecordBatch;
use datafusion::common::Result as DFResult;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::MemoryReservation;
use futures::StreamExt;
use std::collections::VecDeque;
use std::sync::Arc;
use tidalite_storage::segment::CODES_MAX;
use tokio::sync::oneshot;

/// Of both sides together, in a slice; of many keys more, since each slice looks at all of them.
const ROWS: usize = 65_536;
const ROWS_MAX: usize = 1 << 20;
const ROWS_A_KEY: usize = 8;
/// Left rows are looked at one by one if there are no more, and right ones are so many times as many.
const FEW_ROWS: usize = 1 << 18;
const FEW: usize = 16;
/// What is between left rows is not read if it has so many pieces: finding the latest rows reads about one.
const GAP_PIECES: usize = 3;

/// What one thread joins at a time.
#[derive(Debug)]
pub(super) struct Slice {
    /// By source, sources in order of arrival.
    pub left: Vec<Vec<(Arc<Cell>, Span)>>,
    pub right: Vec<Vec<(Arc<Cell>, Span)>>,
    /// The latest right rows before the slice: from the slice before, or to be found.
    pub before: Before,
    pub after: oneshot::Sender<Result<Arc<Carry>>>,
}

#[derive(Debug)]
pub(super) enum Before {
    Nothing,
    /// Rows of the table before a time; alone if no other slice needs them.
    Earlier(Earlier, bool),
    Slice(oneshot::Receiver<Result<Arc<Carry>>>),
}

/// A slice that cannot be joined: the one behind it hears why, too.
pub(super) fn given_up<T>(error: Error, after: oneshot::Sender<Result<Arc<Carry>>>) -> DFResult<T> {
    // Where nobody waits for it any more, nobody has to know.
    let _ = after.send(Err(error.clone()));
    Err(error.into())
}

/// The rows of a table before a time.
#[derive(Clone, Debug)]
pub(super) struct Earlier {
    /// Those that end last come first; some may be of later times.
    pub pieces: Arc<[Bounded]>,
    pub before: i64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Bounded {
    pub min: i64,
    pub max: i64,
    pub piece: Piece,
}

/// Pieces of one source after the other; times ascend.
#[derive(Debug, Default)]
pub(super) struct Chain {
    pieces: VecDeque<Timed>,
}

#[derive(Debug)]
struct Timed {
    min: i64,
    max: i64,
    rows: usize,
    cell: Arc<Cell>,
}

impl Chain {
    /// Of batches in order, whose times are known.
    pub fn of_batches(side: &Side, batches: Vec<RecordBatch>) -> Result<Chain> {
        let mut pieces = VecDeque::new();
        for batch in batches {
            let times = times_of(side, &batch)?;
            if let (Some(min), Some(max)) = (times.first(), times.last()) {
                pieces.push_back(Timed { min: *min, max: *max, rows: batch.num_rows(), cell: Cell::of_batch(batch) });
            }
        }
        Ok(Chain { pieces })
    }

    /// Of each piece the earliest and the latest time and how many rows it has.
    pub fn ranges(&self) -> impl Iterator<Item = (i64, i64, usize)> {
        self.pieces.iter().map(|piece| (piece.min, piece.max, piece.rows))
    }

    fn forget_before(&mut self, time: Option<i64>) {
        while self.pieces.front().is_some_and(|piece| time.is_some_and(|time| piece.max < time)) {
            self.pieces.pop_front();
        }
    }

    /// The pieces that have times in a range, which later ranges follow.
    pub fn taken(&mut self, (from, to): (Option<i64>, Option<i64>)) -> Vec<(Arc<Cell>, Span)> {
        self.forget_before(from);
        let within = self.pieces.iter().take_while(|piece| to.is_none_or(|to| piece.min < to));
        within.map(|piece| (piece.cell.clone(), Span::Times(from, to))).collect()
    }
}

/// Times of a batch as they are compared, without those that are NULL.
fn times_of(side: &Side, batch: &RecordBatch) -> Result<Vec<i64>> {
    let column = batch.column(side.columns.time);
    let times = super::super::ticks(batch, side.columns.time)?;
    let valid = column.len() - column.null_count();
    Ok(times.values()[..valid].iter().map(|time| side.columns.scale.of_time(*time)).collect())
}

/// The pieces of a table by source, each with its range of times, in the order of arrival.
pub(super) fn chains(scan: &ScanExec, scale: Scale) -> Result<Vec<Chain>> {
    let reader = scan.reader();
    let runs_from = reader.snapshot.segments.len();
    let pieces = scan.pieces().ok_or_else(|| Error::internal("pieces of a scan that ends before its rows"))?;
    let mut pieces = pieces.to_vec();
    let place = |piece: &Piece| match *piece {
        Piece::Block { segment, block } => (segment, block),
        Piece::Run { run, from, .. } => (runs_from + run, from),
    };
    pieces.sort_by_key(place);
    let mut chains: Vec<Chain> = Vec::new();
    // The latest time of the last chain in its own unit: in a coarser unit, rows out of order may compare as equal.
    let mut latest = i64::MIN;
    for source in pieces.chunk_by(|a, b| place(a).0 == place(b).0) {
        let mut own = VecDeque::with_capacity(source.len());
        let mut range: Option<(i64, i64)> = None;
        for piece in source {
            if let Some((min, max)) = reader.time_range(*piece)? {
                range = Some(range.map_or((min, max), |(least, most)| (least.min(min), most.max(max))));
                let (min, max) = (scale.of_time(min), scale.of_time(max));
                own.push_back(Timed { min, max, rows: reader.rows_of(*piece), cell: Cell::of_piece(*piece) });
            }
        }
        let Some((first, last)) = range else { continue };
        // Equal times are taken from the first chain that has them: a source goes to the last one or behind it.
        match chains.last_mut() {
            Some(chain) if latest <= first => chain.pieces.extend(own),
            _ => chains.push(Chain { pieces: own }),
        }
        latest = last;
    }
    Ok(chains)
}

/// Where a side's rows come from.
pub(super) enum Source {
    /// The side has a table.
    Table,
    /// All rows, in order.
    Held(Vec<RecordBatch>),
    /// Rows as they come, in order.
    Stream(SendableRecordBatchStream),
}

/// Where a slice ends, and where it starts if that is not where the one before ends.
#[derive(Clone, Copy, Debug)]
struct Cut {
    hi: i64,
    start: Option<i64>,
    /// Whether the next one has a start of its own.
    is_alone: bool,
}

enum Left {
    /// With slices to come.
    Pieces(Vec<Chain>, VecDeque<Cut>),
    /// With batches of which slices were cut that are to come.
    Stream(SendableRecordBatchStream, VecDeque<(Arc<Cell>, std::ops::Range<usize>, i64)>),
}

/// Gives out one slice after the other.
pub(super) struct Slicer {
    left: Left,
    right: Vec<Chain>,
    kind: Kind,
    /// The last slice's `hi`, and where right rows go on.
    lo: Option<i64>,
    from: Option<i64>,
    /// How much earlier a partner may be, in the unit of comparisons, at least.
    tolerance: Option<i64>,
    /// All of the right table, if rows before a time are found by codes, from the latest back.
    earlier: Option<Arc<[Bounded]>>,
    before: Option<Before>,
    rows_a_slice: usize,
    /// Of batches that are held.
    _memory: MemoryReservation,
}

impl Slicer {
    pub fn new(
        (left, from_left): (&Side, Source),
        (right, from_right): (&Side, Source),
        (kind, tolerance): (Kind, Option<i128>),
        memory: MemoryReservation,
    ) -> Result<Slicer> {
        let of_right = match from_right {
            Source::Held(batches) => vec![Chain::of_batches(right, batches)?],
            _ => table(right)?.map_or_else(|| Ok(Vec::new()), |scan| chains(scan, right.columns.scale))?,
        };
        let (keys, _) = right.keys.count();
        let mut slicer = Slicer {
            left: Left::Pieces(Vec::new(), VecDeque::new()),
            right: of_right,
            kind,
            lo: None,
            from: None,
            tolerance: tolerance.map(|nanos| ticks(nanos, left, right)),
            earlier: None,
            before: None,
            rows_a_slice: rows_a_slice(keys),
            _memory: memory,
        };
        slicer.left = match from_left {
            Source::Stream(stream) => Left::Stream(stream, VecDeque::new()),
            _ => {
                let scan = table(left)?.ok_or_else(|| Error::internal("a side without rows"))?;
                let of_left = chains(scan, left.columns.scale)?;
                slicer.prune(&of_left);
                slicer.earlier = right.finds_earlier().then(|| bounded(&slicer.right));
                let stretches = slicer.stretches(left, &of_left, keys)?;
                let cuts = slicer.cuts(&of_left, &stretches);
                Left::Pieces(of_left, cuts)
            }
        };
        Ok(slicer)
    }

    /// Rows of both sides that slices have, at most.
    pub fn rows(&self) -> Option<usize> {
        let rows = |chains: &[Chain]| chains.iter().flat_map(|c| &c.pieces).map(|piece| piece.rows).sum::<usize>();
        match &self.left {
            Left::Pieces(chains, _) => Some(rows(chains) + rows(&self.right)),
            Left::Stream(..) => None,
        }
    }

    /// Lets go of right pieces that no left row can have a partner in.
    fn prune(&mut self, left: &[Chain]) {
        let pieces = || left.iter().flat_map(|chain| &chain.pieces);
        let Some(end) = pieces().map(|piece| piece.max).max() else { return self.right.clear() };
        let mut wanted: Vec<(i64, i64)> = match self.tolerance {
            None => vec![(i64::MIN, end)],
            Some(ticks) => pieces().map(|piece| (piece.min.saturating_sub(ticks), piece.max)).collect(),
        };
        wanted.sort_unstable();
        // Ranges that overlap as one: then their ends ascend, too.
        wanted.dedup_by(|next, before| {
            let is_one = next.0 <= before.1;
            before.1 = if is_one { before.1.max(next.1) } else { before.1 };
            is_one
        });
        let is_wanted = |piece: &Timed| {
            let at = wanted.partition_point(|range| range.1 < piece.min);
            wanted.get(at).is_some_and(|range| range.0 <= piece.max)
        };
        self.right.iter_mut().for_each(|chain| chain.pieces.retain(is_wanted));
    }

    /// Stretches of time that have left rows, without gaps in which there is much of the right side.
    fn stretches(&self, side: &Side, left: &[Chain], keys: usize) -> Result<Vec<(i64, i64)>> {
        let pieces = || left.iter().flat_map(|chain| &chain.pieces);
        let mut stretches: Vec<(i64, i64)> = pieces().map(|piece| (piece.min, piece.max)).collect();
        let rows: usize = pieces().map(|piece| piece.rows).sum();
        let of_right: usize = self.right.iter().flat_map(|chain| &chain.pieces).map(|piece| piece.rows).sum();
        if self.earlier.is_some() && keys <= CODES_MAX && rows <= FEW_ROWS && of_right / FEW > rows {
            stretches.clear();
            for piece in pieces() {
                if let Some(part) = side.part(&piece.cell)? {
                    stretches.extend(part.times.iter().map(|time| (*time, *time)));
                }
            }
        }
        stretches.sort_unstable();
        let mut ends = self.right.iter().map(|chain| chain.pieces.iter().peekable()).collect::<Vec<_>>();
        let mut is_gap = |from: i64, to: i64| {
            let mut whole = 0;
            for pieces in &mut ends {
                while pieces.next_if(|piece| piece.min <= from).is_some() {}
                while pieces.next_if(|piece| piece.max < to).is_some() {
                    whole += 1;
                }
            }
            whole >= GAP_PIECES && to < i64::MAX
        };
        let may_skip = self.earlier.is_some();
        stretches.dedup_by(|next, before| {
            let is_one = next.0 <= before.1 || !may_skip || !is_gap(before.1, next.0);
            before.1 = if is_one { before.1.max(next.1) } else { before.1 };
            is_one
        });
        Ok(stretches)
    }

    /// Where slices end: at ends of pieces and of stretches.
    fn cuts(&mut self, left: &[Chain], stretches: &[(i64, i64)]) -> VecDeque<Cut> {
        let Some((first, _)) = stretches.first() else { return VecDeque::new() };
        self.forget_too_old(*first);
        let pieces = left.iter().chain(&self.right).flat_map(|chain| &chain.pieces);
        let mut ends: Vec<(i64, usize)> = pieces.map(|piece| (piece.max, piece.rows)).collect();
        ends.sort_unstable();
        let mut ends = ends.into_iter().peekable();
        let mut cuts = VecDeque::new();
        for (start, end) in stretches {
            while ends.next_if(|(max, _)| max < start).is_some() {}
            let mut own_start = Some(*start).filter(|start| self.earlier.is_some() && *start < i64::MAX);
            let (mut rows, mut last) = (0, None);
            while let Some((max, own)) = ends.next_if(|(max, _)| max < end) {
                rows += own;
                if rows >= self.rows_a_slice && last != Some(max) {
                    cuts.push_back(Cut { hi: max, start: own_start.take(), is_alone: false });
                    (rows, last) = (0, Some(max));
                }
            }
            cuts.push_back(Cut { hi: *end, is_alone: own_start.is_some(), start: own_start });
        }
        cuts
    }

    /// The first left time is known.
    fn forget_too_old(&mut self, first: i64) {
        let oldest = self.tolerance.map(|ticks| first.saturating_sub(ticks));
        self.right.iter_mut().for_each(|chain| chain.forget_before(oldest));
        self.from = oldest;
    }

    /// Where right rows end that can be partners of left ones up to a time.
    fn end_of(&self, hi: i64) -> Option<i64> {
        if self.kind == Kind::Lt { Some(hi) } else { hi.checked_add(1) }
    }

    /// The next slice begins with a left time: of the right rows up to it only the latest matter.
    fn begin(&mut self, start: i64, is_alone: bool) {
        if let (Some(pieces), Some(before)) = (&self.earlier, self.end_of(start)) {
            let earlier = Earlier { pieces: pieces.clone(), before };
            self.before = Some(Before::Earlier(earlier, is_alone));
            self.from = Some(before);
        }
    }

    pub async fn next(&mut self, left: &Side) -> DFResult<Option<Slice>> {
        loop {
            match &mut self.left {
                Left::Pieces(chains, cuts) => {
                    let Some(Cut { hi, start, is_alone }) = cuts.pop_front() else { return Ok(None) };
                    // Behind the last slice and up to this one's end.
                    let span = (self.lo.and_then(|lo| lo.checked_add(1)), hi.checked_add(1));
                    let rows = chains.iter_mut().map(|chain| chain.taken(span)).collect();
                    if let Some(start) = start {
                        self.begin(start, is_alone);
                    }
                    return Ok(Some(self.slice(rows, hi)));
                }
                Left::Stream(stream, waiting) => {
                    if let Some((cell, rows, hi)) = waiting.pop_front() {
                        return Ok(Some(self.slice(vec![vec![(cell, Span::Rows(rows))]], hi)));
                    }
                    let Some(batch) = stream.next().await else { return Ok(None) };
                    self.cut(left, batch?)?;
                }
            }
        }
    }

    /// Slices of a batch: where right pieces end between its rows.
    fn cut(&mut self, side: &Side, batch: RecordBatch) -> Result<()> {
        let times = times_of(side, &batch)?;
        let rows = batch.num_rows();
        let cell = Cell::of_batch(batch);
        let mut slices = VecDeque::new();
        let mut at = 0;
        if let (Some(first), Some(last)) = (times.first(), times.last()) {
            if self.lo.is_none() {
                self.forget_too_old(*first);
            }
            let ends = self.right.iter().flat_map(|chain| &chain.pieces).map(|piece| (piece.max, piece.rows));
            let lo = self.lo;
            let mut ends: Vec<(i64, usize)> =
                ends.filter(|(max, _)| max < last && lo.is_none_or(|lo| *max > lo)).collect();
            ends.sort_unstable();
            let mut own = 0;
            for (max, rows) in ends {
                own += rows;
                if own >= self.rows_a_slice {
                    let to = at + times[at..].partition_point(|time| *time <= max);
                    slices.push_back((cell.clone(), at..to, max));
                    (at, own) = (to, 0);
                }
            }
        }
        // Rows without a time are in no slice but this.
        let hi = times.last().copied().or(self.lo).unwrap_or(i64::MIN);
        if at < rows {
            slices.push_back((cell, at..rows, hi));
        }
        if let Left::Stream(_, waiting) = &mut self.left {
            waiting.extend(slices);
        }
        Ok(())
    }

    fn slice(&mut self, left: Vec<Vec<(Arc<Cell>, Span)>>, hi: i64) -> Slice {
        let to = self.end_of(hi);
        let span = (self.from, to);
        let right = self.right.iter_mut().map(|chain| chain.taken(span)).collect();
        (self.lo, self.from) = (Some(hi), to);
        let (after, before) = oneshot::channel();
        let before = self.before.replace(Before::Slice(before)).unwrap_or(Before::Nothing);
        Slice { left, right, before, after }
    }
}

/// How many rows of both sides are worth a slice.
pub(super) fn rows_a_slice(keys: usize) -> usize {
    ROWS.max((keys * ROWS_A_KEY).min(ROWS_MAX))
}

/// Pieces of a table, those that end last first.
pub(super) fn bounded(chains: &[Chain]) -> Arc<[Bounded]> {
    let pieces = chains.iter().flat_map(|chain| &chain.pieces);
    let of = |piece: &Timed| Some(Bounded { min: piece.min, max: piece.max, piece: piece.cell.piece()? });
    let mut all: Vec<Bounded> = pieces.filter_map(of).collect();
    all.sort_by_key(|piece| std::cmp::Reverse(piece.max));
    all.into()
}

pub(super) fn table(side: &Side) -> Result<Option<&ScanExec>> {
    let Some(table) = &side.table else { return Ok(None) };
    table.scan().map(Some).ok_or_else(|| Error::internal("a table that is no scan"))
}

/// A length of time in the unit of comparisons, at least.
fn ticks(nanos: i128, left: &Side, right: &Side) -> i64 {
    let unit = left.columns.unit.max(right.columns.unit);
    i64::try_from(nanos / i128::from(unit) + 2).unwrap_or(i64::MAX)
}
