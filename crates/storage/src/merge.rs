//! Weaves staged rows into the partitions of a table.
//!
//! In: a version of a table whose runs stay as they are. Out: new segments beside the old ones, synced, their names
//! too; which old ones they replace. Nothing is visible until the manifest and `tables` say so.
//!
//! The rows are brought into time order (equal timestamps in order of arrival) and cut at partition borders. In a
//! partition, segments that no new row falls into stay untouched; the others are written again together with the rows that
//! do, where whole blocks before and after the overlap are copied as they are.
//! So that segments do not stay small, small ones before the new rows are taken in, too: the smallest in size tiers,
//! larger ones when several have come together. Columns are built on several threads, block by block, into memory that
//! is used again.
//!
//! Dead rows are left behind: of staged rows all, of segments those of the segments that are written again, and some
//! segments are written again for that alone.
//!
//! A segment that cannot be read is left alone: rows that fall into it get segments beside it.
//!
//! Always: segments of one partition do not overlap afterwards, but for damaged ones; equal timestamps keep the order
//! of arrival.
//! Crash: at any point; files that no manifest names are removed at the next open.

use crate::segment::reader::SegmentMeta;
use crate::segment::store::SEGMENTS_FOLDER;
use crate::segment::{Effort, SegmentStore};
use crate::{Damage, Error, Result, Segment, TableSnapshot};
use alive::{Origin, alive, with_rows};
use new_rows::NewRows;
use old_rows::OldRows;
use pieces::{BlockPlan, Piece, row_count, split, split_evenly};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use tidalite_types::column_type::Physical;
use tidalite_types::{BLOCK_ROWS, ColumnId, ColumnType, SegmentId};
use write::{SegmentPlan, for_each, write_segments};

mod alive;
mod build;
mod new_rows;
mod old_rows;
mod pieces;
mod seal;
mod write;

pub use alive::reclaimable;
pub use seal::seal;
pub use write::Threads;

/// Text of one column that a block may have: what views can point into, with room for nothing to go wrong.
const TEXT_BYTES_MAX: usize = 1 << 30;

/// Segments are not made longer than this: the most rows that one late row makes a merge write again.
pub const SEGMENT_ROWS_MAX: usize = 16 * BLOCK_ROWS;

/// Stands for rows of a table without columns; no table ever has so many that one gets this id.
const NOBODYS_COLUMN: (ColumnId, ColumnType) = (ColumnId(u32::MAX - 1), ColumnType::Boolean);
/// More of the newest rows than this are not kept apart: it would be most of the table.
const TAIL_ROWS_MAX: usize = SEGMENT_ROWS_MAX / 2;
/// Segments with fewer rows than this are taken in by what follows them unless they are much larger.
const SMALL_ROWS: usize = BLOCK_ROWS / 8;
/// Larger ones of about one size are joined when so many have come together, so that a row is written again once for
/// every eightfold growth.
const JOIN_SEGMENTS: usize = 8;

#[derive(Debug, Default)]
pub struct Merged {
    pub added: Vec<Arc<Segment>>,
    pub removed: Vec<Arc<Segment>>,
    pub staged_rows: u64,
    /// Rows of `removed`, written again.
    pub rewritten_rows: u64,
    pub written_bytes: u64,
    /// Why segments were left alone into which new rows fall; these rows are in segments beside them.
    pub damaged: Vec<Error>,
    origins: Vec<Origin>,
    new: Option<NewRows>,
}

/// How a merge is done.
#[derive(Clone, Copy)]
pub struct MergeOptions<'a> {
    pub threads: Threads<'a>,
    /// The newest rows, from this timestamp on, go to segments of their own: late rows will fall between them, and only
    /// these few will be written again.
    pub tail_from: Option<i64>,
    /// Rows from this timestamp on are left where they are.
    pub kept_from: Option<i64>,
}

/// Merges the runs of `table`, and writes the segments `reclaim` again. `next_segment` gives ids never used before. On an
/// error nothing was changed; files written so far are removed as far as possible.
pub fn merge(
    store: &Arc<SegmentStore>,
    table: &TableSnapshot,
    reclaim: &[SegmentId],
    options: &MergeOptions<'_>,
    next_segment: &mut dyn FnMut() -> SegmentId,
) -> Result<Merged> {
    let mut damaged: Vec<Error> = Vec::new();
    loop {
        let job = Job {
            table,
            reclaim,
            new: NewRows::of(table, options.kept_from)?,
            tail_from: options.tail_from,
            damaged: &damaged,
        };
        let threads = options.threads;
        let writing = Writing { store, threads, effort: Effort::Fresh, is_cancelled: &|| false };
        let clusters = job.clusters();
        let error = match job.run(clusters, &writing, next_segment) {
            Ok(merged) => return Ok(Merged { damaged, ..merged }),
            Err(error) => table.named(error),
        };
        // Once more without the segment that cannot be read: rows must not stay in memory because of it.
        let is_known = |d: &Damage| damaged.iter().filter_map(Error::damage).any(|old| old.segment == d.segment);
        if error.damage().is_none_or(is_known) {
            return Err(error);
        }
        damaged.push(error);
    }
}

/// Where and how segments are written.
struct Writing<'a> {
    store: &'a Arc<SegmentStore>,
    threads: Threads<'a>,
    effort: Effort,
    is_cancelled: &'a (dyn Fn() -> bool + Sync),
}

impl Writing<'_> {
    fn check_cancelled(&self) -> Result<()> {
        let error = || Error::new(tidalite_types::ErrorKind::Unavailable, "it was given up for now".to_owned());
        if (self.is_cancelled)() { Err(error()) } else { Ok(()) }
    }
}

struct Job<'a> {
    table: &'a TableSnapshot,
    reclaim: &'a [SegmentId],
    new: NewRows,
    tail_from: Option<i64>,
    /// About segments that are left alone.
    damaged: &'a [Error],
}

/// New rows and the segments that are written again together with them.
struct Cluster {
    partition: i64,
    segments: Vec<Arc<Segment>>,
    rows: Range<usize>,
    /// Whether rows can still come in order behind it.
    is_last: bool,
}

/// What a cluster becomes.
struct Draft {
    old: OldRows,
    segments: Vec<SegmentDraft>,
}

struct SegmentDraft {
    partition: i64,
    rows: usize,
    time_range: (i64, i64),
    blocks: Vec<BlockPlan>,
}

impl SegmentDraft {
    /// Without its number and length, which are not known yet.
    fn meta(&self) -> SegmentMeta {
        let (rows, partition) = (self.rows as u64, self.partition);
        SegmentMeta { id: SegmentId(0), rows, bytes: 0, partition, time_range: self.time_range }
    }
}

impl Job<'_> {
    /// Writes what the clusters become; on an error the files are removed as far as possible.
    fn run(
        self,
        clusters: Vec<Cluster>,
        writing: &Writing<'_>,
        next_segment: &mut dyn FnMut() -> SegmentId,
    ) -> Result<Merged> {
        let (store, dir) = (writing.store, SegmentStore::dir(self.table.id));
        if self.table.segments.is_empty() {
            store.fs().create_dir_all(&dir).map_err(|e| Error::io("create", &dir, e))?;
            let parent = Path::new(SEGMENTS_FOLDER);
            store.fs().sync_dir(parent).map_err(|e| Error::io("sync", parent, e))?;
        }
        let drafts = for_each(clusters.len(), writing.threads, |i| self.draft(&clusters[i]))?;
        let mut at = 0;
        let origins = clusters.iter().zip(&drafts).map(|(cluster, draft)| {
            let added = at..at + draft.segments.len();
            at = added.end;
            Origin { old: with_rows(&cluster.segments, self.table), new: cluster.rows.clone(), added }
        });
        let origins = origins.collect();
        let metas: Vec<SegmentMeta> =
            drafts.iter().flat_map(|d| &d.segments).map(|s| SegmentMeta { id: next_segment(), ..s.meta() }).collect();
        let written = self.write(drafts, &metas, writing).and_then(|written| {
            store.fs().sync_dir(&dir).map_err(|e| Error::io("sync", &dir, e))?;
            Ok(written)
        });
        let written = written.inspect_err(|_| {
            for meta in &metas {
                store.forget(meta.id);
                let _ = store.fs().remove(&SegmentStore::path(self.table.id, meta.id));
            }
        })?;
        let rewritten = clusters.iter().flat_map(|c| with_rows(&c.segments, self.table)).map(|s| s.rows()).sum();
        let removed: Vec<_> = clusters.into_iter().flat_map(|c| c.segments).collect();
        Ok(Merged {
            staged_rows: self.new.rows as u64,
            rewritten_rows: rewritten,
            written_bytes: written.iter().map(|s| s.meta().bytes).sum(),
            added: written.into_iter().map(Arc::new).collect(),
            removed,
            origins,
            new: Some(self.new),
            damaged: Vec::new(),
        })
    }

    fn clusters(&self) -> Vec<Cluster> {
        let (mut clusters, mut visited) = (Vec::new(), Vec::new());
        let mut at = 0;
        while at < self.new.rows {
            let end = self.partition_end(at);
            let partition = match self.table.schema.designated {
                Some(_) => self.table.schema.partition(self.new.timestamps[at]).0,
                None => i64::MIN,
            };
            self.add_clusters(partition, at, end, &mut clusters);
            visited.push(partition);
            at = end;
        }
        // Partitions without new rows, in order as segments are.
        let reclaimed = self.table.segments.iter().filter(|s| self.is_reclaimed(s));
        let mut left: Vec<i64> = reclaimed.map(|s| s.meta().partition).filter(|p| !visited.contains(p)).collect();
        left.dedup();
        left.into_iter().for_each(|partition| self.add_clusters(partition, at, at, &mut clusters));
        clusters
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

    fn add_clusters(&self, partition: i64, from: usize, to: usize, clusters: &mut Vec<Cluster>) {
        let is_damaged = |s: &Segment| self.damaged.iter().filter_map(Error::damage).any(|d| d.segment == s.meta().id);
        let is_here = |s: &&Arc<Segment>| s.meta().partition == partition && !is_damaged(s);
        let segments: Vec<_> = self.table.segments.iter().filter(is_here).cloned().collect();
        let mut spans = self.spans(&segments, from, to);
        let mut untouched = 0;
        for span in &mut spans {
            span.take_in_small(&segments, untouched);
            if !span.segments.is_empty() {
                span.segments.end = tied_end(&segments, span.segments.end);
            }
            untouched = untouched.max(span.segments.end);
        }
        clusters.extend(join_spans(spans, &segments).into_iter().map(|span| Cluster {
            partition,
            is_last: span.segments.end == segments.len(),
            segments: segments[span.segments].to_vec(),
            rows: span.rows,
        }));
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
            _ => spans.push(Span { segments, rows }),
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

    fn draft(&self, cluster: &Cluster) -> Result<Draft> {
        let old = OldRows::new(&with_rows(&cluster.segments, self.table), self.table)?;
        let plan = old.weave(&self.new.timestamps, cluster.rows.clone())?;
        let mut plan = alive(plan, self.table, &old, &self.new);
        let tail = if cluster.is_last { self.take_tail(&old, &mut plan)? } else { Vec::new() };
        let mut segments = Vec::new();
        for part in cut(plan, &old, cluster.is_last).into_iter().chain((!tail.is_empty()).then_some(tail)) {
            self.draft_segments(cluster.partition, &old, part, &mut segments)?;
        }
        Ok(Draft { old, segments })
    }

    /// Takes the newest rows off a plan, if others stay and they are not too many.
    fn take_tail(&self, old: &OldRows, plan: &mut Vec<Piece>) -> Result<Vec<Piece>> {
        let Some(from) = self.tail_from.filter(|_| self.table.schema.designated.is_some()) else {
            return Ok(Vec::new());
        };
        let (mut tail, mut rest) = (Vec::new(), plan.clone());
        while let Some(piece) = rest.pop() {
            let rows = piece.range();
            let before = if piece.is_new {
                self.new.timestamps[rows.clone()].partition_point(|&ts| ts < from)
            } else if old.timestamp(rows.start)? >= from {
                0
            } else {
                // Old rows are not cut: that would need their timestamps, and they come whole with what follows.
                rows.len()
            };
            pieces::push(&mut rest, piece.is_new, rows.start..rows.start + before);
            tail.push(Piece { from: (rows.start + before) as u32, rows: (rows.len() - before) as u32, ..piece });
            if before > 0 {
                break;
            }
        }
        tail.retain(|p: &Piece| p.rows > 0);
        tail.reverse();
        if rest.is_empty() || row_count(&tail) > TAIL_ROWS_MAX {
            return Ok(Vec::new());
        }
        *plan = rest;
        Ok(tail)
    }

    /// One segment, or several when values are so long that a block of them would be too large.
    fn draft_segments(
        &self,
        partition: i64,
        old: &OldRows,
        pieces: Vec<Piece>,
        drafts: &mut Vec<SegmentDraft>,
    ) -> Result<()> {
        let rows = row_count(&pieces);
        if rows > 1 && self.has_large_block(old, &pieces)? {
            let mut parts = split(&pieces, rows.div_ceil(2)).into_iter();
            return parts.try_for_each(|part| self.draft_segments(partition, old, part, drafts));
        }
        let time = |is_new: bool, row: usize| match self.table.schema.designated {
            Some(_) if is_new => Ok(self.new.timestamps[row]),
            _ => old.timestamp(row),
        };
        let (first, last) = (pieces[0], pieces[pieces.len() - 1]);
        let time_range = (time(first.is_new, first.range().start)?, time(last.is_new, last.range().end - 1)?);
        let blocks = split(&pieces, BLOCK_ROWS).into_iter().map(BlockPlan::new).collect();
        drafts.push(SegmentDraft { partition, rows, time_range, blocks });
        Ok(())
    }

    /// Whether a text column has more in one block than a block can hold.
    fn has_large_block(&self, old: &OldRows, pieces: &[Piece]) -> Result<bool> {
        let columns = self.table.schema.columns.iter().filter(|c| c.column_type.physical() == Physical::Views);
        for column in columns {
            for block in split(pieces, BLOCK_ROWS) {
                let new = self.new.text_bytes(column.id, &block, TEXT_BYTES_MAX / 2);
                if new + old.text_bytes(column.id, &block)? > TEXT_BYTES_MAX {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn write(&self, drafts: Vec<Draft>, metas: &[SegmentMeta], writing: &Writing<'_>) -> Result<Vec<Segment>> {
        let (olds, segments): (Vec<OldRows>, Vec<_>) = drafts.into_iter().map(|d| (d.old, d.segments)).unzip();
        let (mut plans, mut metas_left) = (Vec::new(), metas.iter());
        for (old, segments) in olds.iter().zip(segments) {
            let columns = self.columns(old);
            plans.extend(segments.into_iter().zip(&mut metas_left).map(|(segment, meta)| SegmentPlan {
                path: SegmentStore::path(self.table.id, meta.id),
                columns: columns.clone(),
                blocks: segment.blocks,
                old,
            }));
        }
        let summaries = write_segments(&plans, &self.new, writing)?;
        let metas = metas.iter().zip(summaries).map(|(meta, s)| SegmentMeta { bytes: s.bytes, ..meta.clone() });
        let written: Vec<Segment> =
            metas.map(|meta| Segment::open(writing.store.clone(), self.table.id, meta)).collect();
        if writing.effort == Effort::Sealed {
            seal::verify(&plans, &written, self, writing)?;
        }
        Ok(written)
    }

    fn columns(&self, old: &OldRows) -> Vec<(ColumnId, ColumnType)> {
        let all = || self.table.schema.columns.iter().map(|c| (c.id, c.column_type));
        let there: Vec<_> = all().filter(|(id, _)| old.has(*id) || self.new.has(*id)).collect();
        if !there.is_empty() {
            return there;
        }
        // All that the rows had was dropped. A segment counts its rows by its columns: one of NULLs stands for them.
        vec![all().next().unwrap_or(NOBODYS_COLUMN)]
    }
}

/// New rows and segments, by index in their partition.
struct Span {
    segments: Range<usize>,
    rows: Range<usize>,
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

/// Joins neighbours that fit one segment: both are written again anyway. Those that share segments are joined always.
fn join_spans(spans: Vec<Span>, all: &[Arc<Segment>]) -> Vec<Span> {
    let mut joined: Vec<Span> = Vec::new();
    for span in spans {
        match joined.last_mut() {
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

/// Deals the pieces out to segments of at most [`SEGMENT_ROWS_MAX`] rows. The whole blocks of old rows behind the last
/// new one make segments of their own, so that they can be copied. Segments that rows can follow in order are filled.
fn cut(mut plan: Vec<Piece>, old: &OldRows, is_last: bool) -> Vec<Vec<Piece>> {
    let mut suffix = None;
    if let Some(last) = plan.last_mut().filter(|p| !p.is_new) {
        let (start, end) = (old.block_start(last.range().start), last.range().end);
        if end >= start + BLOCK_ROWS {
            suffix = Some(Piece { from: start as u32, rows: (end - start) as u32, ..*last });
            last.rows = start as u32 - last.from;
        }
    }
    plan.retain(|p| p.rows > 0);
    let mut segments = if is_last && suffix.is_none() {
        split(&plan, SEGMENT_ROWS_MAX)
    } else {
        split_evenly(&plan, SEGMENT_ROWS_MAX)
    };
    segments.extend(suffix.map(|piece| split(&[piece], SEGMENT_ROWS_MAX)).into_iter().flatten());
    segments
}

#[cfg(test)]
mod tests;
