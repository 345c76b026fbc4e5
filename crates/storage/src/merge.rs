//! Merges staged rows into the partitions of a table.
//!
//! Input: a version of a table whose runs stay unchanged. Output: new segments next to the old ones, synced with their
//! names, and the old segments that they replace. Nothing is visible before the manifest and `tables` are changed.
//!
//! Rows are sorted by time (equal timestamps in order of arrival) and split at partition bounds. In a partition,
//! segments that no new row falls into stay unchanged. The other segments are rewritten with the rows that fall into
//! them; complete blocks before and after the overlap are copied. If a few rows fall into each of very many blocks, the
//! rows are written to late segments, which [`compact()`] merges when there are more of them. So that segments do not
//! stay small, small segments before the new rows are included: the smallest in size tiers, larger ones when several
//! have accumulated. Columns are built by several threads, block by block, in reused memory.
//!
//! Deleted rows are not copied: of staged rows all, of segments those of the rewritten segments. Some segments are
//! rewritten only for this purpose.
//!
//! A segment that cannot be read stays unchanged: rows that fall into it are written to segments next to it.
//!
//! Invariant: afterwards the segments of a partition do not overlap, except for late and damaged segments; equal
//! timestamps keep the order of arrival. Crash: possible at any point; files that no manifest names are removed at the
//! next open.

use crate::segment::reader::SegmentMeta;
use crate::segment::store::SEGMENTS_FOLDER;
use crate::segment::{Effort, SegmentStore};
use crate::{Damage, Error, Result, Segment, TableSnapshot};
use alive::{alive, with_rows};
use clusters::Cluster;
use job::Job;
use merged::Origin;
use new_rows::NewRows;
use old_rows::OldRows;
use pieces::{BlockPlan, Piece, row_count, split, split_evenly};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use threads::{ORDERED_ROWS_MIN, for_each};
use tidalite_types::column_type::Physical;
use tidalite_types::{BLOCK_ROWS, ColumnId, ColumnType, SegmentId};
use write::{SegmentPlan, Writing, write_segments};

mod alive;
mod build;
mod clusters;
mod compact;
mod job;
mod merged;
mod new_rows;
mod old_rows;
mod pieces;
mod seal;
mod threads;
mod write;

pub use alive::reclaimable;
pub use clusters::LATE_ROWS_MIN;
pub use compact::compact;
pub use job::SEGMENT_ROWS_MAX;
pub use merged::Merged;
pub use seal::seal;
pub use threads::Threads;

/// Largest number of text bytes of one column in a block: half of the range that views can address, as a safety margin.
const TEXT_BYTES_MAX: usize = 1 << 30;

/// Represents rows of a table without columns. No table has so many columns that one gets this id.
const NOBODYS_COLUMN: (ColumnId, ColumnType) = (ColumnId(u32::MAX - 1), ColumnType::Boolean);
/// Largest number of newest rows in a tail segment. More rows would be most of the table.
const TAIL_ROWS_MAX: usize = SEGMENT_ROWS_MAX / 2;

/// Options of a merge.
#[derive(Clone, Copy)]
pub struct MergeOptions<'a> {
    pub threads: Threads<'a>,
    /// Writes the newest rows, from this timestamp on, to separate segments.
    ///
    /// Late rows will fall among them, and only these few rows will be rewritten.
    pub tail_from: Option<i64>,
    /// Rows from this timestamp on stay staged.
    pub kept_from: Option<i64>,
    /// Fewer rows than this are always merged in place; see [`LATE_ROWS_MIN`].
    pub late_rows_min: usize,
}

/// Merges the runs of `table` and rewrites the segments `reclaim`.
///
/// `next_segment` returns ids that were never used before. After an error nothing has changed; files written so far are
/// removed as far as possible.
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
            new: NewRows::of(table, options.kept_from, options.threads)?,
            tail_from: options.tail_from,
            late_rows_min: options.late_rows_min,
            damaged: &damaged,
        };
        let threads = options.threads;
        let writing = Writing { store, threads, effort: Effort::Fresh, is_cancelled: &|| false };
        let error = match job.clusters().and_then(|clusters| job.run(clusters, &writing, next_segment)) {
            Ok(merged) => return Ok(Merged { damaged, ..merged }),
            Err(error) => table.named(error),
        };
        // Retries without the unreadable segment, so that it does not keep rows in memory.
        let is_known = |d: &Damage| damaged.iter().filter_map(Error::damage).any(|old| old.segment == d.segment);
        if error.damage().is_none_or(is_known) {
            return Err(error);
        }
        damaged.push(error);
    }
}

/// The planned result of a cluster.
struct Draft {
    old: OldRows,
    segments: Vec<SegmentDraft>,
}

struct SegmentDraft {
    partition: i64,
    rows: usize,
    time_range: (i64, i64),
    is_late: bool,
    blocks: Vec<BlockPlan>,
}

impl SegmentDraft {
    /// Returns the metadata without number and length, which are not known yet.
    fn meta(&self) -> SegmentMeta {
        let SegmentDraft { partition, time_range, is_late, .. } = *self;
        SegmentMeta { id: SegmentId(0), rows: self.rows as u64, bytes: 0, partition, time_range, is_late }
    }
}

impl<'a> Job<'a> {
    /// Creates a job over all runs of a version, with the default decisions.
    fn of(table: &'a TableSnapshot, threads: Threads<'_>) -> Result<Job<'a>> {
        let new = NewRows::of(table, None, threads)?;
        Ok(Job { table, reclaim: &[], new, tail_from: None, late_rows_min: usize::MAX, damaged: &[] })
    }

    /// Writes the results of the clusters. After an error the files are removed as far as possible.
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
        // In most cases there are many clusters or one.
        let threads = Threads { count: writing.threads.count / clusters.len().max(1), ..writing.threads };
        let drafts = for_each(clusters.len(), writing.threads, |i| self.draft(&clusters[i], threads))?;
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
            compacted: None,
            damaged: Vec::new(),
        })
    }

    fn draft(&self, cluster: &Cluster, threads: Threads<'_>) -> Result<Draft> {
        let old = OldRows::new(&with_rows(&cluster.segments, self.table), self.table)?;
        let plan = old.weave(&self.new.timestamps, cluster.rows.clone(), threads)?;
        let mut plan = alive(plan, self.table, &old, &self.new);
        let tail = if cluster.is_last { self.take_tail(&old, &mut plan)? } else { Vec::new() };
        let mut segments = Vec::new();
        for part in cut(plan, &old, cluster.is_last).into_iter().chain((!tail.is_empty()).then_some(tail)) {
            self.draft_segments(cluster, &old, part, threads, &mut segments)?;
        }
        Ok(Draft { old, segments })
    }

    /// Splits the newest rows off a plan if other rows remain and the number is within the limit.
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
                // Old rows are not split: that would require their timestamps. They are taken completely with the
                // following rows.
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

    /// Plans one segment, or several if values are so long that a block of them would be too large.
    fn draft_segments(
        &self,
        cluster: &Cluster,
        old: &OldRows,
        pieces: Vec<Piece>,
        threads: Threads<'_>,
        drafts: &mut Vec<SegmentDraft>,
    ) -> Result<()> {
        let rows = row_count(&pieces);
        if rows > 1 && self.has_large_block(old, &pieces)? {
            let mut parts = split(&pieces, rows.div_ceil(2)).into_iter();
            return parts.try_for_each(|part| self.draft_segments(cluster, old, part, threads, drafts));
        }
        let time = |is_new: bool, row: usize| match self.table.schema.designated {
            Some(_) if is_new => Ok(self.new.timestamps[row]),
            _ => old.timestamp(row),
        };
        let (first, last) = (pieces[0], pieces[pieces.len() - 1]);
        let time_range = (time(first.is_new, first.range().start)?, time(last.is_new, last.range().end - 1)?);
        let blocks = split(&pieces, BLOCK_ROWS);
        // Sorted rows are a few pieces, interleaved rows nearly one piece per row.
        let threads = threads.at_most(pieces.len() / ORDERED_ROWS_MIN);
        let blocks = for_each(blocks.len(), threads, |at| Ok(BlockPlan::new(&blocks[at])))?;
        let Cluster { partition, is_late, .. } = *cluster;
        drafts.push(SegmentDraft { partition, rows, time_range, is_late, blocks });
        Ok(())
    }

    /// Returns true if a block would contain more text of one column than a block can hold.
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
                new_in_order: OnceLock::new(),
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
        // All columns of the rows were dropped. A segment counts its rows by its columns, so one column of NULLs
        // represents them.
        vec![all().next().unwrap_or(NOBODYS_COLUMN)]
    }
}

/// Distributes the pieces to segments of at most [`SEGMENT_ROWS_MAX`] rows.
///
/// The complete blocks of old rows after the last new row form separate segments, so that they can be copied. Segments
/// that may get later rows in order are filled.
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
