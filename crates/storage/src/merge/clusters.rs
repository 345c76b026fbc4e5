//! Decides which staged rows are written together with which segments.
//!
//! Input: staged rows in time order, the segments of their partitions. Output: clusters that can be written
//! independently of each other. Rows that fall into a segment cause it to be rewritten. Rows between two segments are
//! appended to the first one or form a segment. If rewriting would be expensive for few rows, the rows are written to
//! late segments.

use super::job::{Job, SEGMENT_ROWS_MAX};
use crate::late::{LateRanges, tied_end};
use crate::rows_by_time::times_of_block;
use crate::{Error, Result, Segment};
use std::ops::Range;
use std::sync::Arc;
use tidalite_types::{BLOCK_ROWS, ColumnId};

/// Segments with fewer rows than this are merged with following rows unless they are much larger than these.
const SMALL_ROWS: usize = BLOCK_ROWS / 8;
/// Number of larger segments of similar size that are joined.
///
/// A row is rewritten once for every eightfold growth.
const JOIN_SEGMENTS: usize = 8;
/// Rows are written to late segments if the blocks they fall into have more than this many times as many rows.
const LATE_FACTOR: usize = 2;
/// Smallest number of rows of a late segment, as a rule.
pub const LATE_ROWS_MIN: usize = 1024;
/// Late segments are not used if one in this many rows has the same timestamp: compaction processes all rows of a
/// timestamp at once.
const LATE_TIES_DIVISOR: usize = 16;

/// New rows and the segments that are rewritten with them.
pub(super) struct Cluster {
    pub partition: i64,
    pub segments: Vec<Arc<Segment>>,
    pub rows: Range<usize>,
    /// True if later rows may follow this cluster in order.
    pub is_last: bool,
    /// True if the rows are written to late segments.
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
        // Partitions without new rows, in the order of the segments.
        let reclaimed = self.table.segments.iter().filter(|s| self.is_reclaimed(s) && !s.meta().is_late);
        let mut left: Vec<i64> = reclaimed.map(|s| s.meta().partition).filter(|p| !visited.contains(p)).collect();
        left.dedup();
        left.into_iter().try_for_each(|partition| self.add_clusters(partition, at, at, &mut clusters))?;
        Ok(clusters)
    }

    fn is_reclaimed(&self, segment: &Segment) -> bool {
        self.reclaim.contains(&segment.meta().id)
    }

    /// Returns the end of the new rows in the partition of row `at`.
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

    /// Selects the spans whose rows are written to late segments.
    ///
    /// These are rows whose timestamps occur in existing late segments, which arrived before, and, if the partition
    /// would require much rewriting, spans with few rows for the amount of rewriting.
    fn set_late(&self, partition: i64, segments: &[Arc<Segment>], spans: &mut [ClusterSpan]) -> Result<()> {
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

    /// Assigns new rows to segments.
    ///
    /// Rows that fall into a segment are written with it. Rows between two segments are written with the previous rows
    /// or separately. Segments without new rows stay unchanged, unless they are rewritten because of deleted rows.
    fn spans(&self, segments: &[Arc<Segment>], from: usize, to: usize) -> Vec<ClusterSpan> {
        let mut spans: Vec<ClusterSpan> = Vec::new();
        let mut at = from;
        let is_reclaimed: Vec<bool> = segments.iter().map(|s| self.is_reclaimed(s)).collect();
        let mut add = |segments: Range<usize>, rows: Range<usize>| match spans.last_mut() {
            _ if rows.is_empty() && !segments.clone().any(|i| is_reclaimed[i]) => {}
            Some(last) if last.segments.end == segments.start && segments.is_empty() => last.rows.end = rows.end,
            Some(last) if last.segments.is_empty() && last.segments.end == segments.start => {
                (last.segments, last.rows.end) = (segments, rows.end);
            }
            _ => spans.push(ClusterSpan { segments, rows, is_late: false }),
        };
        if self.table.schema.designated.is_some() {
            for (i, segment) in segments.iter().enumerate() {
                let (lo, hi) = segment.time_range();
                let before = at + self.new.timestamps[at..to].partition_point(|&ts| ts < lo);
                // Rows with the segment's last timestamp arrived later, so they follow the segment.
                let within = before + self.new.timestamps[before..to].partition_point(|&ts| ts < hi);
                add(i..i, at..before);
                add(i..i + 1, before..within);
                at = within;
            }
        }
        // Without timestamps the order of segments is their number, so segments after a rewritten one are rewritten,
        // too.
        let first = is_reclaimed.iter().position(|is| *is).filter(|_| self.table.schema.designated.is_none());
        add(first.unwrap_or(segments.len())..segments.len(), at..to);
        spans
    }
}

/// New rows and segments, by index in their partition.
struct ClusterSpan {
    segments: Range<usize>,
    rows: Range<usize>,
    /// The segments stay unchanged.
    is_late: bool,
}

impl ClusterSpan {
    fn row_count(&self, all: &[Arc<Segment>]) -> usize {
        self.rows.len() + all[self.segments.clone()].iter().map(|s| s.rows() as usize).sum::<usize>()
    }

    /// Includes the segments directly before the span, but none before `untouched`.
    ///
    /// Small segments are included in size tiers, larger ones when several have accumulated.
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

/// Returns the number of rows in the blocks that rows with these timestamps fall into.
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

/// Joins adjacent spans that fit one segment, because both are rewritten anyway. Spans that share segments are always
/// joined.
fn join_spans(spans: Vec<ClusterSpan>, all: &[Arc<Segment>]) -> Vec<ClusterSpan> {
    let mut joined: Vec<ClusterSpan> = Vec::new();
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
