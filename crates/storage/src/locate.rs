//! Finds the rows of an older version of a table in a newer one.
//!
//! A statement that changes rows finds them in the version at its start. Until its commit, rows may arrive and merges
//! may move rows that it found. In the latter case the statement searches again.

use crate::dead::{Mask, ranges_of_mask};
use crate::{DeadRows, TableSnapshot};

impl TableSnapshot {
    /// Converts the rows `hit` of `seen` to rows to delete in this later version.
    ///
    /// `hit` has a mask for each segment of `seen`, then for each run. Returns `None` if some of the rows have moved or
    /// the columns differ.
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
        // Number of rows after the current run: later runs, and rows that arrived since.
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
