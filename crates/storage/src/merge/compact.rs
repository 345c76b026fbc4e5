//! Merges late segments into the segments of their times.
//!
//! Input: a group of segments of one partition with all late rows of its times, see [`crate::late::late_groups`].
//! Output: segments that do not overlap, with the same rows except deleted ones. Published and undone like a merge.
//!
//! The time of the group is split into slices of about one segment. The rows of a slice are a range of each source;
//! they are loaded as runs and written like a merge of these runs. A group may therefore be larger than memory.

use super::alive::{masks_of, with_rows};
use super::clusters::Cluster;
use super::job::{Job, SEGMENT_ROWS_MAX};
use super::merged::{Compacted, Merged, Slice};
use super::new_rows::NewRows;
use super::old_rows::{LastBlock, OldRows};
use super::pieces::Piece;
use super::threads::{Threads, for_each};
use super::write::Writing;
use crate::rows_by_time::times_of_block;
use crate::segment::{Effort, Segment, SegmentStore};
use crate::tables::DiedSince;
use crate::{Mask, Result, Run, TableSnapshot};
use std::ops::Range;
use std::sync::Arc;
use tidalite_types::{Column, ColumnId, ColumnType, SegmentId, Txn};

/// Approximate memory of the rows of a slice.
const SLICE_BYTES: u64 = 192 << 20;
/// Rows per slice, slightly less than a segment may have, because the number of rows of a slice is an estimate.
const SLICE_ROWS: u64 = SEGMENT_ROWS_MAX as u64 / 8 * 7;

/// Compacts `group`; the runs of `table` stay unchanged. `is_cancelled` is called between columns.
///
/// After an error nothing has changed.
pub fn compact(
    store: &Arc<SegmentStore>,
    table: &TableSnapshot,
    group: &[Arc<Segment>],
    threads: Threads<'_>,
    is_cancelled: &(dyn Fn() -> bool + Sync),
    next_segment: &mut dyn FnMut() -> SegmentId,
) -> Result<Merged> {
    // Without a timestamp no segment is late.
    if group.is_empty() || table.schema.designated.is_none() {
        return Ok(Merged::default());
    }
    let writing = Writing { store, threads, effort: Effort::Fresh, is_cancelled };
    let mut merged = Merged { removed: group.to_vec(), ..Merged::default() };
    compact_slices(table, &writing, next_segment, &mut merged).inspect_err(|_| {
        for segment in &merged.added {
            store.forget(segment.meta().id);
            let _ = store.fs().remove(&segment.path());
        }
    })?;
    Ok(merged)
}

fn compact_slices(
    table: &TableSnapshot,
    writing: &Writing<'_>,
    next_segment: &mut dyn FnMut() -> SegmentId,
    merged: &mut Merged,
) -> Result<()> {
    let sources = with_rows(&merged.removed, table);
    let (Some(first), Some(designated)) = (sources.first(), table.schema.designated) else { return Ok(()) };
    let partition = first.meta().partition;
    let old = OldRows::new(&sources, table)?;
    let columns = table.schema.columns.iter().map(|c| (c.id, c.column_type));
    let columns: Vec<(ColumnId, ColumnType)> = columns.filter(|(id, _)| old.has(*id)).collect();
    let mut ends: Vec<usize> = vec![0; sources.len()];
    let mut slices = Vec::new();
    for cut in cuts(&sources, &columns, designated)?.into_iter().map(Some).chain([None]) {
        writing.check_cancelled()?;
        let mut rows = Vec::with_capacity(sources.len());
        for (source, from) in ends.iter_mut().enumerate() {
            let end = match cut {
                Some(cut) => old.rows_before(source, cut)?.max(*from),
                None => sources[source].rows() as usize,
            };
            rows.push(std::mem::replace(from, end)..end);
        }
        let runs = runs(table, &sources, &old, &columns, &rows, writing.threads)?;
        let slice = TableSnapshot { runs: Arc::new(runs), ..table.clone() };
        let job = Job::of(&slice, writing.threads)?;
        if job.new.rows == 0 {
            continue;
        }
        let cluster =
            Cluster { partition, segments: Vec::new(), rows: 0..job.new.rows, is_last: false, is_late: false };
        let written = job.run(vec![cluster], writing, next_segment)?;
        slices.push(Slice { rows, added: merged.added.len()..merged.added.len() + written.added.len() });
        merged.added.extend(written.added);
        merged.written_bytes += written.written_bytes;
    }
    merged.rewritten_rows = sources.iter().map(|s| s.rows()).sum();
    merged.compacted = Some(Compacted { sources, slices });
    Ok(())
}

/// Returns the range of each source as a run, in order of arrival.
fn runs(
    table: &TableSnapshot,
    sources: &[Arc<Segment>],
    old: &OldRows,
    columns: &[(ColumnId, ColumnType)],
    rows: &[Range<usize>],
    threads: Threads<'_>,
) -> Result<Vec<Arc<Run>>> {
    let built = for_each(columns.len(), threads, |at| {
        let (id, column_type) = columns[at];
        let mut last = LastBlock::default();
        let column = |(source, rows): (usize, &Range<usize>)| -> Result<Option<Arc<Column>>> {
            if !old.source_has(source, id) {
                return Ok(None);
            }
            let mut column = Column::with_capacity(column_type.physical(), rows.len());
            let from = (old.start_of(source) + rows.start) as u32;
            old.append(id, Piece { is_new: false, from, rows: rows.len() as u32 }, &mut last, &mut column)?;
            Ok(Some(Arc::new(column)))
        };
        rows.iter().enumerate().map(column).collect::<Result<Vec<_>>>()
    })?;
    let run = |source: usize| {
        let of_source = columns.iter().zip(&built).filter_map(|((id, _), built)| Some((*id, built[source].clone()?)));
        let dead = table.mask(&sources[source]).map(|mask| part_of(mask, &rows[source])).filter(|mask| mask.dead() > 0);
        Arc::new(Run {
            rows: rows[source].len(),
            txns: (Txn(0), Txn(0)),
            time_range: sources[source].time_range(),
            is_sorted: true,
            columns: of_source.collect(),
            dead: dead.map(Arc::new),
        })
    };
    Ok((0..sources.len()).map(run).collect())
}

/// Returns the deleted rows of a range.
fn part_of(mask: &Mask, rows: &Range<usize>) -> Mask {
    let mut part = Mask::default();
    for (from, count) in mask.ranges() {
        let (lo, hi) = (from.max(rows.start), (from + count).min(rows.end));
        part.kill_range(lo.saturating_sub(rows.start), hi.saturating_sub(lo));
    }
    part
}

/// Returns ascending timestamps that split the rows into parts of about one slice.
fn cuts(sources: &[Arc<Segment>], columns: &[(ColumnId, ColumnType)], designated: ColumnId) -> Result<Vec<i64>> {
    let (mut blocks, mut bytes) = (Vec::new(), 0);
    for segment in sources {
        for block in 0..segment.block_count() {
            let (lo, hi) = times_of_block(segment, designated, block)?;
            blocks.push((i128::from(lo), i128::from(hi) + 1, segment.block_rows(block) as i128));
            for (id, _) in columns {
                bytes += segment.stored(*id, block)?.map_or(0, |stored| stored.logical_bytes);
            }
        }
    }
    let rows: i128 = blocks.iter().map(|block| block.2).sum();
    let slice_rows = SLICE_ROWS.min((SLICE_BYTES * rows as u64 / bytes.max(1)).max(1));
    let count = (rows as u64).div_ceil(slice_rows) as i128;
    // Assumes that the rows of a block are evenly distributed in time.
    let rows_before =
        |ts: i128| -> i128 { blocks.iter().map(|(lo, hi, rows)| rows * (ts.clamp(*lo, *hi) - lo) / (hi - lo)).sum() };
    let lo = blocks.iter().map(|block| block.0).min().unwrap_or(0);
    let hi = blocks.iter().map(|block| block.1).max().unwrap_or(0);
    let mut cuts: Vec<i64> = Vec::new();
    for at in 1..count {
        let (mut below, mut above) = (lo, hi);
        while below + 1 < above {
            let middle = (below + above) / 2;
            if rows_before(middle) < rows * at / count { below = middle } else { above = middle }
        }
        cuts.extend(i64::try_from(above));
    }
    cuts.dedup();
    Ok(cuts)
}

impl Compacted {
    /// Locates deleted rows like [`Merged::moved`].
    pub fn moved(
        &self,
        table: &TableSnapshot,
        died: &DiedSince,
        added: &[Arc<Segment>],
    ) -> Result<Vec<(SegmentId, Mask)>> {
        let Some(designated) = table.schema.designated else { return Ok(Vec::new()) };
        let died: Vec<Option<&Mask>> = self.sources.iter().map(|s| died.segments.get(&s.meta().id)).collect();
        let mut masks = Vec::new();
        for slice in &self.slices {
            let died: Vec<Option<Mask>> =
                died.iter().zip(&slice.rows).map(|(mask, rows)| mask.map(|mask| part_of(mask, rows))).collect();
            if died.iter().flatten().all(|mask| mask.dead() == 0) {
                continue;
            }
            let old = OldRows::new(&self.sources, table)?;
            let columns = [(designated, ColumnType::Long)];
            let runs = runs(table, &self.sources, &old, &columns, &slice.rows, Threads::ONE)?;
            let new = NewRows::of(&TableSnapshot { runs: Arc::new(runs), ..table.clone() }, None, Threads::ONE)?;
            let has_died = |row| {
                let place = new.place(row);
                died[place.run as usize].as_ref().is_some_and(|mask| mask.is_dead(place.row as usize))
            };
            masks.extend(masks_of((0..new.rows).map(has_died), &added[slice.added.clone()]));
        }
        Ok(masks)
    }
}
