//! Finds the rows of an older version of a table in a newer one.
//!
//! A statement that changes rows finds them in the version it began with; by the time it is committed rows arrived,
//! and merges may have taken some of those it found elsewhere. Then it has to look again.

use crate::dead::{Mask, ranges_of_mask};
use crate::{DeadRows, TableSnapshot};

impl TableSnapshot {
    /// The rows `hit` of `seen` - a mask for each of its segments, then for each of its runs - as rows to kill in this
    /// later version; `None` when some of them are not where they were or the columns are others.
    #[must_use]
    pub fn locate(&self, seen: &TableSnapshot, hit: &[Mask]) -> Option<DeadRows> {
        if self.removals != seen.removals || self.schema.columns != seen.schema.columns {
            return None;
        }
        let mut dead = DeadRows::default();
        for (segment, mask) in seen.segments.iter().zip(hit).filter(|(_, mask)| mask.dead() > 0) {
            let id = segment.meta().id;
            self.segments.iter().find(|s| s.meta().id == id)?;
            dead.segments.push((id, ranges_of_mask(mask)));
        }
        let staged: u64 = self.runs.iter().map(|run| run.rows as u64).sum();
        // Rows behind the run being looked at: those it was followed by, and those that arrived since.
        let mut behind = self.arrived - seen.arrived;
        let runs = seen.runs.iter().enumerate().rev();
        for (run, mask) in runs.map(|(i, run)| (run, hit.get(seen.segments.len() + i))) {
            let rows = run.rows as u64;
            for (from, count) in mask.map(Mask::ranges).unwrap_or_default().into_iter().rev() {
                let skip = behind + rows - (from + count) as u64;
                if skip + count as u64 > staged {
                    return None;
                }
                dead.staged.push((skip, count as u64));
            }
            behind += rows;
        }
        Some(dead)
    }
}
