//! Which staged rows are written together with which segments.
//!
//! In: staged rows in time order, the segments of their partitions. Out: clusters that can be written independently of each
//! other. Rows that fall into a segment make it be written again, those between two are appended to the first of them or
//! stand alone; where little would be gained for much writing, they are put beside the segments as late ones.

use super::{Job, SEGMENT_ROWS_MAX};
use crate::late::LateRanges;
use crate::rows_by_time::times_of_block;
use crate::{Error, Result, Segment};
use std::ops::Range;
use std::sync::Arc;
use tidalite_types::{BLOCK_ROWS, ColumnId};

/// Segments with fewer rows than this are taken in by what follows them unless they are much larger.
const SMALL_ROWS: usize = BLOCK_ROWS / 8;
/// Larger ones of about one size are joined when so many have come together, so that a row is written again once for
/// every eightfold growth.
const JOIN_SEGMENTS: usize = 8;
/// Rows are put beside the blocks they fall into if these have more than so many times as many rows.
const LATE_FACTOR: usize = 2;
/// At least so many, as a rule: fewer do not make a segment.
pub const LATE_ROWS_MIN: usize = 1024;
/// Unless one in so many has the same timestamp: to weave late segments in, all rows of a timestamp are taken at once.
const LATE_TIES_DIVISOR: usize = 16;

/// New rows and the segments that are written again together with them.
pub(super) struct Cluster {
    pub partition: i64,
    pub segments: Vec<Arc<Segment>>,
    pub rows: Range<usize>,
    /// Whether rows can still come in order behind it.
    pub is_last: bool,
    /// Whether the rows are put beside the segments of their times.
    pub is_late: bool,
}

impl Job<'_> {
    pub(super) fn clusters(&self) -> Result<Vec<Cluster>> {
        let (mut clusters, mut visited) = (Vec::new(), Vec::new());
        let mut at = 0;
        while at < self.new.rows {
            let end = self.partition_end(at);
            let partition = match self.table.schema.designated {
                Some(_) => self.table.schema.partition(self.new.timestamps[at]).0,
                None => i64::MIN,
            };
            self.add_clusters(partition, at, end, &mut clusters)?;
            visited.push(partition);
            at = end;
        }
        // Partitions without new rows, in order as segments are.
        let reclaimed = self.table.segments.iter().filter(|s| self.is_reclaimed(s) && !s.meta().is_late);
        let mut left: Vec<i64> = reclaimed.map(|s| s.meta().partition).filter(|p| !visited.contains(p)).collect();
        left.dedup();
        left.into_iter().try_for_each(|partition| self.add_clusters(partition, at, at, &mut clusters))?;
        Ok(clusters)
    }

    fn is_reclaimed(&self, segment: &Segment) -> bool {
        self.reclaim.contains(&segment.meta().id)
    }

    /// The end of the new rows that lie in the same partition as row `at`.
    fn partition_end(&self, at: usize) -> usize {
        if self.table.schema.designated.is_none() {
            return self.new.rows;
        }
        let (_, hi) = self.table.schema.partition(self.new.timestamps[at]);
        if hi == i64::MAX {
            return self.new.rows;
        }
        at + self.new.timestamps[at..].partition_point(|&ts| ts < hi)
    }

    fn add_clusters(&self, partition: i64, from: usize, to: usize, clusters: &mut Vec<Cluster>) -> Result<()> {
        let is_damaged = |s: &Segment| self.damaged.iter().filter_map(Error::damage).any(|d| d.segment == s.meta().id);
        let is_here = |s: &&Arc<Segment>| s.meta().partition == partition && !s.meta().is_late && !is_damaged(s);
        let segments: Vec<_> = self.table.segments.iter().filter(is_here).cloned().collect();
        let mut spans = self.spans(&segments, from, to);
        self.set_late(partition, &segments, &mut spans)?;
        let mut untouched = 0;
        for span in &mut spans {
            if !span.is_late {
                span.take_in_small(&segments, untouched);
                if !span.segments.is_empty() {
                    span.segments.end = tied_end(&segments, span.segments.end);
                }
            }
            untouched = untouched.max(span.segments.end);
        }
        clusters.extend(join_spans(spans, &segments).into_iter().map(|span| Cluster {
            partition,
            is_last: span.segments.end == segments.len() && !span.is_late,
            is_late: span.is_late,
            segments: if span.is_late { Vec::new() } else { segments[span.segments].to_vec() },
            rows: span.rows,
        }));
        Ok(())
    }

    /// Finds the spans whose rows go beside their segments: those with timestamps that late segments have, too, which came
    /// before them, and, where the partition's rows would make much be written again, those that are few for what they do.
    fn set_late(&self, partition: i64, segments: &[Arc<Segment>], spans: &mut [Span]) -> Result<()> {
        let Some(designated) = self.table.schema.designated else { return Ok(()) };
        let late = LateRanges::of(self.table, partition);
        let (mut costly, mut rows_of_costly) = (Vec::new(), 0);
        let (mut rows, mut woven) = (0, 0);
        for (at, span) in spans.iter_mut().enumerate().filter(|(_, span)| !span.rows.is_empty()) {
            let times = &self.new.timestamps[span.rows.clone()];
            span.is_late = late.touch(times[0], times[times.len() - 1]);
            if span.is_late {
                continue;
            }
            rows += times.len();
            if segments[span.segments.clone()].iter().any(|s| self.is_reclaimed(s)) {
                continue;
            }
            let woven_here = woven_rows(times, &segments[span.segments.clone()], designated)?;
            woven += woven_here;
            if woven_here > LATE_FACTOR * times.len() {
                costly.push(at);
                rows_of_costly += times.len();
            }
        }
        let times = costly.iter().flat_map(|&at| self.new.timestamps[spans[at].rows.clone()].chunk_by(|a, b| a == b));
        if woven > LATE_FACTOR * rows
            && rows_of_costly >= self.late_rows_min
            && times.map(<[i64]>::len).max().unwrap_or(0) <= rows_of_costly.div_ceil(LATE_TIES_DIVISOR)
        {
            costly.into_iter().for_each(|at| spans[at].is_late = true);
        }
        Ok(())
    }

    /// Which new rows are written together with which segments: those that fall into a segment with it, those
    /// between two segments with what was written before them or on their own. Segments without new rows stay, unless
    /// they are written again for their dead rows.
    fn spans(&self, segments: &[Arc<Segment>], from: usize, to: usize) -> Vec<Span> {
        let mut spans: Vec<Span> = Vec::new();
        let mut at = from;
        let is_reclaimed: Vec<bool> = segments.iter().map(|s| self.is_reclaimed(s)).collect();
        let mut add = |segments: Range<usize>, rows: Range<usize>| match spans.last_mut() {
            _ if rows.is_empty() && !segments.clone().any(|i| is_reclaimed[i]) => {}
            Some(last) if last.segments.end == segments.start && segments.is_empty() => last.rows.end = rows.end,
            Some(last) if last.segments.is_empty() && last.segments.end == segments.start => {
                (last.segments, last.rows.end) = (segments, rows.end);
            }
            _ => spans.push(Span { segments, rows, is_late: false }),
        };
        if self.table.schema.designated.is_some() {
            for (i, segment) in segments.iter().enumerate() {
                let (lo, hi) = segment.time_range();
                let before = at + self.new.timestamps[at..to].partition_point(|&ts| ts < lo);
                // What has the segment's last timestamp arrived later: it comes after it.
                let within = before + self.new.timestamps[before..to].partition_point(|&ts| ts < hi);
                add(i..i, at..before);
                add(i..i + 1, before..within);
                at = within;
            }
        }
        // Without timestamps a segment's number is its place: those behind one that is written again follow it.
        let first = is_reclaimed.iter().position(|is| *is).filter(|_| self.table.schema.designated.is_none());
        add(first.unwrap_or(segments.len())..segments.len(), at..to);
        spans
    }
}

/// New rows and segments, by index in their partition.
struct Span {
    segments: Range<usize>,
    rows: Range<usize>,
    /// The segments stay as they are.
    is_late: bool,
}

impl Span {
    fn row_count(&self, all: &[Arc<Segment>]) -> usize {
        self.rows.len() + all[self.segments.clone()].iter().map(|s| s.rows() as usize).sum::<usize>()
    }

    /// Takes in segments right before it, but none before `untouched`: small ones in size tiers, larger ones when
    /// several have come together.
    fn take_in_small(&mut self, all: &[Arc<Segment>], untouched: usize) {
        let mut rows = self.row_count(all);
        let rows_of = |at: usize| all[at].rows() as usize;
        while self.segments.start > untouched {
            let before = rows_of(self.segments.start - 1);
            if before > 2 * rows || before > SMALL_ROWS {
                break;
            }
            rows += before;
            self.segments.start -= 1;
        }
        loop {
            let class = size_class(rows);
            let alike = (untouched..self.segments.start).rev();
            let alike = alike.take_while(|&at| size_class(rows_of(at)) <= class && rows_of(at) <= SEGMENT_ROWS_MAX / 2);
            let count = alike.count();
            if count + 1 < JOIN_SEGMENTS {
                return;
            }
            let taken = self.segments.start - count..self.segments.start;
            rows += taken.clone().map(rows_of).sum::<usize>();
            self.segments.start = taken.start;
        }
    }
}

fn size_class(rows: usize) -> u32 {
    rows.max(1).ilog2() / 3
}

/// The end of the segments that are written again when those before `end` are: behind these, the ones of which all rows
/// have their last timestamp. Among such segments the number tells which rows came first, and numbers grow.
#[must_use]
pub fn tied_end(segments: &[Arc<Segment>], end: usize) -> usize {
    let Some((_, last)) = end.checked_sub(1).map(|at| segments[at].time_range()) else { return end };
    end + segments[end..].iter().take_while(|s| s.time_range() == (last, last)).count()
}

/// Rows of blocks that rows with these timestamps fall into.
fn woven_rows(timestamps: &[i64], segments: &[Arc<Segment>], designated: ColumnId) -> Result<usize> {
    let mut rows = 0;
    for segment in segments {
        for block in 0..segment.block_count() {
            let (lo, hi) = times_of_block(segment, designated, block)?;
            let within = &timestamps[timestamps.partition_point(|&ts| ts < lo)..];
            rows += if within.first().is_some_and(|&ts| ts < hi) { segment.block_rows(block) } else { 0 };
        }
    }
    Ok(rows)
}

/// Joins neighbours that fit one segment: both are written again anyway. Those that share segments are joined always.
fn join_spans(spans: Vec<Span>, all: &[Arc<Segment>]) -> Vec<Span> {
    let mut joined: Vec<Span> = Vec::new();
    for span in spans {
        match joined.last_mut() {
            Some(last) if last.is_late != span.is_late => joined.push(span),
            Some(last) if last.is_late && last.rows.end == span.rows.start => {
                (last.segments.end, last.rows.end) = (span.segments.end, span.rows.end);
            }
            Some(last) if last.segments.end > span.segments.start => {
                (last.segments.end, last.rows.end) = (last.segments.end.max(span.segments.end), span.rows.end);
            }
            Some(last)
                if last.segments.end == span.segments.start
                    && last.rows.end == span.rows.start
                    && last.row_count(all) + span.row_count(all) <= SEGMENT_ROWS_MAX =>
            {
                (last.segments.end, last.rows.end) = (span.segments.end, span.rows.end);
            }
            _ => joined.push(span),
        }
    }
    joined
}
