//! Time cut into slices for WINDOW JOIN, which threads join side by side.
//!
//! A slice has the left rows of `(lo, hi]` and the right rows that windows of times between reach; where the row before a
//! window counts, those up to where the next slice's begin, too, so that each slice can hand on the latest of each key.
//! Right rows that several slices reach are read once. Slices are cut where pieces end, and are long beside a window where
//! that leaves enough of them for all threads.

use super::carry::Carry;
use super::side::{Cell, Side, Span};
use super::slices::{Before, Chain, Earlier, bounded, chains, rows_a_slice, table};
use crate::{Error, Result};
use datafusion::arrow::array::RecordBatch;
use datafusion::execution::memory_pool::MemoryReservation;
use std::collections::VecDeque;
use std::sync::Arc;
use tidalite_operators::time_join::Reach;
use tokio::sync::oneshot;

/// A slice is so many windows long.
const WINDOWS: i64 = 4;

#[derive(Debug)]
pub(super) struct WindowSlice {
    /// Counted from 0.
    pub number: i64,
    /// By source, sources in order of arrival.
    pub left: Vec<Vec<(Arc<Cell>, Span)>>,
    pub right: Vec<Vec<(Arc<Cell>, Span)>>,
    /// The latest right rows before the slice's, if the row before a window counts.
    pub before: Before,
    /// Right rows of earlier times are before the next slice's.
    pub next_from: i64,
    pub after: oneshot::Sender<Result<Arc<Carry>>>,
}

pub(super) struct WindowSlicer {
    left: Vec<Chain>,
    right: Vec<Chain>,
    cuts: VecDeque<i64>,
    reach: Reach,
    number: i64,
    /// The last slice's end, and where right rows go on.
    lo: Option<i64>,
    from: Option<i64>,
    before: Before,
    /// Of batches that are held.
    _memory: MemoryReservation,
}

impl WindowSlicer {
    /// The right rows are those of a table, or all of them.
    pub fn new(
        left: &Side,
        (right, held): (&Side, Option<Vec<RecordBatch>>),
        reach: Reach,
        threads: usize,
        memory: MemoryReservation,
    ) -> Result<WindowSlicer> {
        let scan = table(left)?.ok_or_else(|| Error::internal("a side without rows"))?;
        let of_left = chains(scan, left.columns.scale)?;
        let of_right = match held {
            Some(batches) => vec![Chain::of_batches(right, batches)?],
            None => table(right)?.map_or_else(|| Ok(Vec::new()), |scan| chains(scan, right.columns.scale))?,
        };
        let times = || of_left.iter().flat_map(Chain::ranges);
        let first = times().map(|(min, ..)| min).min();
        let last = times().map(|(_, max, _)| max).max();
        let mut slicer = WindowSlicer {
            left: Vec::new(),
            right: of_right,
            cuts: VecDeque::new(),
            reach,
            number: 0,
            lo: None,
            from: None,
            before: Before::Nothing,
            _memory: memory,
        };
        if let (Some(first), Some(last)) = (first, last) {
            let start = first.saturating_add(reach.lo);
            if !reach.includes_prevailing {
                slicer.from = Some(start);
            } else if right.finds_earlier() {
                let earlier = Earlier { pieces: bounded(&slicer.right), before: start };
                (slicer.before, slicer.from) = (Before::Earlier(earlier, false), Some(start));
            }
            let (keys, _) = right.keys.count();
            slicer.cuts = slicer.cuts(&of_left, (first, last), rows_a_slice(keys), threads);
        }
        slicer.left = of_left;
        Ok(slicer)
    }

    /// Rows of both sides that slices have, at most.
    pub fn rows(&self) -> usize {
        self.left.iter().chain(&self.right).flat_map(Chain::ranges).map(|(.., rows)| rows).sum()
    }

    fn cuts(&self, left: &[Chain], (first, last): (i64, i64), rows_a_slice: usize, threads: usize) -> VecDeque<i64> {
        let window = self.reach.hi.saturating_sub(self.reach.lo);
        let part = last.saturating_sub(first) / (2 * threads.max(1)) as i64;
        let length = window.saturating_mul(WINDOWS).min(part);
        let mut ends: Vec<(i64, usize)> =
            left.iter().chain(&self.right).flat_map(Chain::ranges).map(|(_, max, rows)| (max, rows)).collect();
        ends.sort_unstable();
        let mut cuts = VecDeque::new();
        let (mut rows, mut start) = (0, first);
        for (max, own) in ends.into_iter().filter(|(max, _)| (first..last).contains(max)) {
            rows += own;
            if rows >= rows_a_slice && max > start && max.saturating_sub(start) >= length {
                cuts.push_back(max);
                (rows, start) = (0, max);
            }
        }
        cuts.push_back(last);
        cuts
    }

    pub fn next(&mut self) -> Option<WindowSlice> {
        let hi = self.cuts.pop_front()?;
        let span = (self.lo.and_then(|lo| lo.checked_add(1)), hi.checked_add(1));
        let left = self.left.iter_mut().map(|chain| chain.taken(span)).collect();
        let next_from = hi.saturating_add(1).saturating_add(self.reach.lo);
        let end = hi.saturating_add(self.reach.hi);
        let end = if self.reach.includes_prevailing { end.max(next_from.saturating_sub(1)) } else { end };
        let span = (self.from, end.checked_add(1));
        let right = self.right.iter_mut().map(|chain| chain.taken(span)).collect();
        (self.lo, self.from) = (Some(hi), Some(next_from));
        let (after, before) = oneshot::channel();
        let before = if self.reach.includes_prevailing { Before::Slice(before) } else { Before::Nothing };
        let before = std::mem::replace(&mut self.before, before);
        let number = self.number;
        self.number += 1;
        Some(WindowSlice { number, left, right, before, next_from, after })
    }
}
