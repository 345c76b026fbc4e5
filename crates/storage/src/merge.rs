//! Weaves staged rows into the partitions of a table.
//!
//! In: a version of a table whose runs stay as they are. Out: new segments beside the old ones, synced, their names
//! too; which old ones they replace. Nothing is visible until the manifest and `tables` say so.
//!
//! The rows are brought into time order (equal timestamps in order of arrival) and cut at partition borders. In a
//! partition, segments that no new row falls into stay untouched; the others are written again together with the rows that
//! do, where whole blocks before and after the overlap are copied as they are.
//! So that segments do not stay small, a small last one before the new rows is taken in, too, in size tiers.
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
use crate::segment::{SegmentStore, SegmentSummary};
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
mod write;

pub use alive::reclaimable;

/// Text of one column that a block may have: what views can point into, with room for nothing to go wrong.
const TEXT_BYTES_MAX: usize = 1 << 30;

/// Segments are not made longer than this: the most rows that one late row makes a merge write again.
pub const SEGMENT_ROWS_MAX: usize = 16 * BLOCK_ROWS;

/// Stands for rows of a table without columns; no table ever has so many that one gets this id.
const NOBODYS_COLUMN: (ColumnId, ColumnType) = (ColumnId(u32::MAX - 1), ColumnType::Boolean);

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

/// Merges all runs of `table` and writes the segments `reclaim` again, on up to `threads` threads. `next_segment` gives ids never used before. On an error
/// nothing was changed; files written so far are removed as far as possible.
pub fn merge(
    store: &Arc<SegmentStore>,
    table: &TableSnapshot,
    reclaim: &[SegmentId],
    threads: usize,
    next_segment: &mut dyn FnMut() -> SegmentId,
) -> Result<Merged> {
    let mut damaged: Vec<Error> = Vec::new();
    loop {
        let error = match merge_beside(store, table, reclaim, threads, &damaged, next_segment) {
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

/// Leaves the segments alone that the errors `damaged` are about.
fn merge_beside(
    store: &Arc<SegmentStore>,
    table: &TableSnapshot,
    reclaim: &[SegmentId],
    threads: usize,
    damaged: &[Error],
    next_segment: &mut dyn FnMut() -> SegmentId,
) -> Result<Merged> {
    let dir = SegmentStore::dir(table.id);
    if table.segments.is_empty() {
        store.fs().create_dir_all(&dir).map_err(|e| Error::io("create", &dir, e))?;
        let parent = Path::new(SEGMENTS_FOLDER);
        store.fs().sync_dir(parent).map_err(|e| Error::io("sync", parent, e))?;
    }
    let job = Job { table, reclaim, new: NewRows::of(table)?, damaged };
    let clusters = job.clusters();
    let drafts = for_each(clusters.len(), threads, |i| job.draft(&clusters[i]))?;
    let metas: Vec<Vec<SegmentMeta>> =
        drafts.iter().map(|d| d.segments.iter().map(|s| job.meta(d, s, next_segment())).collect()).collect();
    let mut at = 0;
    let origins = clusters.iter().zip(&metas).map(|(cluster, metas)| {
        let added = at..at + metas.len();
        at = added.end;
        Origin { old: with_rows(&cluster.segments, table), new: cluster.rows.clone(), added }
    });
    let origins = origins.collect();
    let written = job.write(store, drafts, &metas, threads).and_then(|written| {
        store.fs().sync_dir(&dir).map_err(|e| Error::io("sync", &dir, e))?;
        Ok(written)
    });
    let metas = metas.into_iter().flatten();
    let written = written.inspect_err(|_| {
        metas.clone().for_each(|meta| drop(store.fs().remove(&SegmentStore::path(table.id, meta.id))));
    })?;
    let segment = |(meta, summary): (SegmentMeta, SegmentSummary)| {
        Arc::new(Segment::open(store.clone(), table.id, SegmentMeta { bytes: summary.bytes, ..meta }))
    };
    let removed: Vec<_> = clusters.iter().flat_map(|c| c.segments.iter().cloned()).collect();
    let rewritten: Vec<_> = clusters.iter().flat_map(|c| with_rows(&c.segments, table)).collect();
    Ok(Merged {
        staged_rows: job.new.rows as u64,
        rewritten_rows: rewritten.iter().map(|s| s.rows()).sum(),
        written_bytes: written.iter().map(|s| s.bytes).sum(),
        added: metas.zip(written).map(segment).collect(),
        removed,
        origins,
        new: Some(job.new),
        damaged: Vec::new(),
    })
}

struct Job<'a> {
    table: &'a TableSnapshot,
    reclaim: &'a [SegmentId],
    new: NewRows,
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
    partition: i64,
    old: OldRows,
    segments: Vec<SegmentDraft>,
}

struct SegmentDraft {
    rows: usize,
    time_range: (i64, i64),
    blocks: Vec<BlockPlan>,
}

impl Job<'_> {
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
            untouched = span.segments.end;
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
        let plan = alive(plan, self.table, &old, &self.new);
        let mut segments = Vec::new();
        for part in cut(plan, &old, cluster.is_last) {
            self.draft_segments(&old, part, &mut segments)?;
        }
        Ok(Draft { partition: cluster.partition, old, segments })
    }

    /// One segment, or several when values are so long that a block of them would be too large.
    fn draft_segments(&self, old: &OldRows, pieces: Vec<Piece>, drafts: &mut Vec<SegmentDraft>) -> Result<()> {
        let rows = row_count(&pieces);
        if rows > 1 && self.has_large_block(old, &pieces)? {
            let mut parts = split(&pieces, rows.div_ceil(2)).into_iter();
            return parts.try_for_each(|part| self.draft_segments(old, part, drafts));
        }
        let time = |is_new: bool, row: usize| match self.table.schema.designated {
            Some(_) if is_new => Ok(self.new.timestamps[row]),
            _ => old.timestamp(row),
        };
        let (first, last) = (pieces[0], pieces[pieces.len() - 1]);
        let time_range = (time(first.is_new, first.range().start)?, time(last.is_new, last.range().end - 1)?);
        let blocks = split(&pieces, BLOCK_ROWS).into_iter().map(BlockPlan::new).collect();
        drafts.push(SegmentDraft { rows, time_range, blocks });
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

    fn meta(&self, draft: &Draft, segment: &SegmentDraft, id: SegmentId) -> SegmentMeta {
        let (partition, time_range) = (draft.partition, segment.time_range);
        SegmentMeta { id, rows: segment.rows as u64, bytes: 0, partition, time_range }
    }

    fn write(
        &self,
        store: &SegmentStore,
        drafts: Vec<Draft>,
        metas: &[Vec<SegmentMeta>],
        threads: usize,
    ) -> Result<Vec<SegmentSummary>> {
        let (olds, segments): (Vec<OldRows>, Vec<_>) = drafts.into_iter().map(|d| (d.old, d.segments)).unzip();
        let mut plans = Vec::new();
        for ((old, segments), metas) in olds.iter().zip(segments).zip(metas) {
            let columns = self.columns(old);
            plans.extend(segments.into_iter().zip(metas).map(|(segment, meta)| SegmentPlan {
                path: SegmentStore::path(self.table.id, meta.id),
                columns: columns.clone(),
                blocks: segment.blocks,
                old,
            }));
        }
        write_segments(store, &plans, &self.new, threads)
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

    /// Takes in small segments right before it, in size tiers, but none before `untouched`.
    fn take_in_small(&mut self, all: &[Arc<Segment>], untouched: usize) {
        let mut rows = self.row_count(all);
        while self.segments.start > untouched {
            let before = all[self.segments.start - 1].rows() as usize;
            if before > 2 * rows || before > SEGMENT_ROWS_MAX / 2 {
                return;
            }
            rows += before;
            self.segments.start -= 1;
        }
    }
}

/// Joins neighbours that fit one segment: both are written again anyway.
fn join_spans(spans: Vec<Span>, all: &[Arc<Segment>]) -> Vec<Span> {
    let mut joined: Vec<Span> = Vec::new();
    for span in spans {
        match joined.last_mut() {
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
