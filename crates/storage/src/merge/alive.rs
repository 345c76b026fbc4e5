//! Deleted rows: omitted by a merge, and located in its result if they were deleted while it ran.

use super::merged::Merged;
use super::new_rows::NewRows;
use super::old_rows::OldRows;
use super::pieces::{Piece, push};
use super::threads::Threads;
use crate::tables::DiedSince;
use crate::{Mask, Result, Segment, TableSnapshot};
use std::sync::Arc;
use tidalite_types::SegmentId;

/// A segment is rewritten to remove its deleted rows if one in this many rows is deleted.
const RECLAIM_DIVISOR: u64 = 8;

/// Returns the segments to rewrite because of their deleted rows: `all` of them, or those for which it pays.
#[must_use]
pub fn reclaimable(table: &TableSnapshot, all: bool) -> Vec<SegmentId> {
    let pays = |s: &&Arc<Segment>| {
        let dead = table.mask(s).map_or(0, |mask| mask.dead() as u64);
        dead > 0 && (all || dead >= s.rows() / RECLAIM_DIVISOR)
    };
    // Late segments lose deleted rows when they are compacted.
    table.segments.iter().filter(|s| !s.meta().is_late).filter(pays).map(|s| s.meta().id).collect()
}

/// Returns the segments with a row that is not deleted.
pub(super) fn with_rows(segments: &[Arc<Segment>], table: &TableSnapshot) -> Vec<Arc<Segment>> {
    let is_dead = |s: &&Arc<Segment>| table.mask(s).is_some_and(|mask| mask.dead() as u64 == s.rows());
    segments.iter().filter(|s| !is_dead(s)).cloned().collect()
}

/// Returns the order of a merge without the rows that were deleted at its start.
pub(super) fn alive(plan: Vec<Piece>, table: &TableSnapshot, old: &OldRows, new: &NewRows) -> Vec<Piece> {
    let dead_old = old.mask(|segment| table.mask(segment).map(AsRef::as_ref));
    let has_dead_runs = new.has_dead();
    if dead_old.is_none() && !has_dead_runs {
        return plan;
    }
    let mut alive = Vec::with_capacity(plan.len());
    for piece in plan {
        let is_clean = if piece.is_new { !has_dead_runs } else { dead_old.is_none() };
        if is_clean {
            push(&mut alive, piece.is_new, piece.range());
            continue;
        }
        for row in piece.range() {
            let is_dead =
                if piece.is_new { new.is_dead(row) } else { dead_old.as_ref().is_some_and(|mask| mask.is_dead(row)) };
            if !is_dead {
                push(&mut alive, piece.is_new, row..row + 1);
            }
        }
    }
    alive
}

impl Merged {
    /// Returns the positions, in the written segments, of rows of `table` that were deleted since the merge began.
    pub fn moved(&self, table: &TableSnapshot, died: &DiedSince) -> Result<Vec<(SegmentId, Mask)>> {
        if let Some(compacted) = &self.compacted {
            return compacted.moved(table, died, &self.added);
        }
        let mut masks = Vec::new();
        let Some(new) = &self.new else { return Ok(masks) };
        for origin in &self.origins {
            let has_old = origin.old.iter().any(|s| died.segments.contains_key(&s.meta().id));
            if !has_old && (died.staged.dead() == 0 || origin.new.is_empty()) {
                continue;
            }
            let old = OldRows::new(&origin.old, table)?;
            let plan = alive(old.weave(&new.timestamps, origin.new.clone(), Threads::ONE)?, table, &old, new);
            let died_old = old.mask(|segment| died.segments.get(&segment.meta().id)).unwrap_or_default();
            let has_died = |piece: &Piece, row: usize| match piece.is_new {
                true => died.staged.is_dead(new.arrival(row)),
                false => died_old.is_dead(row),
            };
            let has_died = &has_died;
            let rows = plan.into_iter().flat_map(|p| p.range().map(move |row| has_died(&p, row)));
            masks.extend(masks_of(rows, &self.added[origin.added.clone()]));
        }
        Ok(masks)
    }
}

/// Returns masks of consecutive `segments`; `rows` is true for each deleted row.
pub(super) fn masks_of(mut rows: impl Iterator<Item = bool>, segments: &[Arc<Segment>]) -> Vec<(SegmentId, Mask)> {
    let mut masks = Vec::new();
    for segment in segments {
        let of_segment = rows.by_ref().take(segment.rows() as usize).enumerate();
        let mask: Mask = of_segment.filter(|(_, died)| *died).map(|(row, _)| (row, 1)).collect();
        if mask.dead() > 0 {
            masks.push((segment.meta().id, mask));
        }
    }
    masks
}
