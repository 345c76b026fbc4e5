//! Weaves staged rows into the partitions of a table.
//!
//! In: a version of a table whose runs stay as they are. Out: new segments beside the old ones, synced, their names
//! too; which old ones they replace. Nothing is visible until the manifest and `tables` say so.
//!
//! The rows are brought into time order (equal timestamps in order of arrival) and cut at partition borders. In a
//! partition, segments that no new row falls into stay untouched; the others are written again together with the rows that
//! do, where whole blocks before and after the overlap are copied as they are. Where a few rows fall into each of very many
//! blocks, they go to late segments beside them, which [`compact()`] weaves in when there are more of them.
//! So that segments do not stay small, small ones before the new rows are taken in, too: the smallest in size tiers,
//! larger ones when several have come together. Columns are built on several threads, block by block, into memory that
//! is used again.
//!
//! Dead rows are left behind: of staged rows all, of segments those of the segments that are written again, and some
//! segments are written again for that alone.
//!
//! A segment that cannot be read is left alone: rows that fall into it get segments beside it.
//!
//! Always: segments of one partition do not overlap afterwards, but for late ones and damaged ones; equal timestamps keep
//! the order of arrival.
//! Crash: at any point; files that no manifest names are removed at the next open.

use crate::segment::reader::SegmentMeta;
use crate::segment::store::SEGMENTS_FOLDER;
use crate::segment::{Effort, SegmentStore};
use crate::{Damage, Error, Result, Segment, TableSnapshot};
use alive::{Origin, alive, with_rows};
use clusters::Cluster;
use compact::Compacted;
use new_rows::{NewRows, ORDERED_ROWS_MIN};
use old_rows::OldRows;
use pieces::{BlockPlan, Piece, row_count, split, split_evenly};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use tidalite_types::column_type::Physical;
use tidalite_types::{BLOCK_ROWS, ColumnId, ColumnType, SegmentId};
use write::{SegmentPlan, for_each, write_segments};

mod alive;
mod build;
mod clusters;
mod compact;
mod new_rows;
mod old_rows;
mod pieces;
mod seal;
mod write;

pub use alive::reclaimable;
pub use clusters::{LATE_ROWS_MIN, tied_end};
pub use compact::compact;
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
    compacted: Option<Compacted>,
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
    /// Fewer rows are woven in wherever they fall; [`LATE_ROWS_MIN`].
    pub late_rows_min: usize,
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
    late_rows_min: usize,
    /// About segments that are left alone.
    damaged: &'a [Error],
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
    is_late: bool,
    blocks: Vec<BlockPlan>,
}

impl SegmentDraft {
    /// Without its number and length, which are not known yet.
    fn meta(&self) -> SegmentMeta {
        let SegmentDraft { partition, time_range, is_late, .. } = *self;
        SegmentMeta { id: SegmentId(0), rows: self.rows as u64, bytes: 0, partition, time_range, is_late }
    }
}

impl<'a> Job<'a> {
    /// Over all runs of a version, with nothing that a merge decides.
    fn of(table: &'a TableSnapshot, threads: Threads<'_>) -> Result<Job<'a>> {
        let new = NewRows::of(table, None, threads)?;
        Ok(Job { table, reclaim: &[], new, tail_from: None, late_rows_min: usize::MAX, damaged: &[] })
    }

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
        // Mostly there are many clusters or one.
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
        // Rows in order are a few pieces, those that interleave nearly one each.
        let threads = threads.at_most(pieces.len() / ORDERED_ROWS_MIN);
        let blocks = for_each(blocks.len(), threads, |at| Ok(BlockPlan::new(&blocks[at])))?;
        let Cluster { partition, is_late, .. } = *cluster;
        drafts.push(SegmentDraft { partition, rows, time_range, is_late, blocks });
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
        // All that the rows had was dropped. A segment counts its rows by its columns: one of NULLs stands for them.
        vec![all().next().unwrap_or(NOBODYS_COLUMN)]
    }
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
