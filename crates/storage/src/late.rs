//! Segments with rows that came too late to be woven into the segments of their times.
//!
//! A merge whose rows fall everywhere would write all of a partition again for a few rows of each segment. It puts them
//! beside it, in late segments: in time order themselves, of any times. Readers take rows of equal timestamps from the
//! segments in their order ([`crate::tables::sort_segments`]), so late ones come after those that were there before them
//! and in the order of their numbers. [`crate::merge::compact()`] weaves a group of them in, all that may have a timestamp in
//! common at once.
//!
//! Always: a row in a segment that is not late arrived before every row of equal timestamp in a late one.

use crate::merge::tied_end;
use crate::{Segment, TableSnapshot};
use std::sync::Arc;

/// Those of some segments that are late.
pub fn late_of(segments: &[Arc<Segment>]) -> impl Iterator<Item = &Arc<Segment>> {
    segments.iter().filter(|s| s.meta().is_late)
}

/// The times that late segments of one partition have.
#[derive(Debug)]
pub struct LateRanges(Vec<(i64, i64)>);

impl LateRanges {
    #[must_use]
    pub fn of(table: &TableSnapshot, partition: i64) -> LateRanges {
        let late = late_of(&table.segments).map(|s| s.meta()).filter(|meta| meta.partition == partition);
        LateRanges(late.map(|meta| meta.time_range).collect())
    }

    /// Whether a late segment may have a row of these times, the last among them.
    #[must_use]
    pub fn touch(&self, lo: i64, hi: i64) -> bool {
        self.0.iter().any(|range| range.0 <= hi && lo <= range.1)
    }
}

/// The late segments of a table with the others of their times: groups that have no timestamp in common, each the segments
/// of one partition in the order of arrival.
#[must_use]
pub fn late_groups(table: &TableSnapshot) -> Vec<Vec<Arc<Segment>>> {
    let mut late: Vec<&Arc<Segment>> = late_of(&table.segments).collect();
    let mut groups = Vec::new();
    while let Some(first) = late.first() {
        let partition = first.meta().partition;
        let others = table.segments.iter().filter(|s| !s.meta().is_late && s.meta().partition == partition);
        let others: Vec<Arc<Segment>> = others.cloned().collect();
        let (mut lo, mut hi) = first.time_range();
        let mut group: Vec<Arc<Segment>> = Vec::new();
        loop {
            let before = (group.len(), lo, hi);
            let joins =
                |s: &Arc<Segment>| s.meta().partition == partition && s.time_range().0 <= hi && lo <= s.time_range().1;
            let joining: Vec<Arc<Segment>> = late.iter().copied().filter(|s| joins(s)).cloned().collect();
            late.retain(|s| !joins(s));
            let from = others.partition_point(|s| s.time_range().1 < lo);
            let end = tied_end(&others, from + others[from..].partition_point(|s| s.time_range().0 <= hi));
            for segment in joining.iter().chain(&others[from..end]) {
                (lo, hi) = (lo.min(segment.time_range().0), hi.max(segment.time_range().1));
            }
            group.extend(joining);
            if before == (group.len(), lo, hi) {
                group.sort_unstable_by_key(|s| s.meta().id);
                group.splice(0..0, others[from..end].iter().cloned());
                break;
            }
        }
        groups.push(group);
    }
    groups
}
