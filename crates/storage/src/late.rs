//! Late segments: segments with rows that arrived too late to be merged into the segments of their times.
//!
//! A merge whose rows fall into all segments of a partition would rewrite the partition for a few rows per segment.
//! Such a merge writes the rows to late segments instead, which are in time order themselves and have any times.
//! Readers take rows of equal timestamps in the order of the segments ([`crate::tables::sort_segments`]), so late
//! segments come after the segments that existed before them, ordered by number. [`crate::merge::compact()`] merges a
//! group of late segments at once, with all segments that may share a timestamp.
//!
//! Invariant: a row in a segment that is not late arrived before every row of equal timestamp in a late segment.

use crate::merge::tied_end;
use crate::{Segment, TableSnapshot};
use std::sync::Arc;

/// Returns the late segments among `segments`.
pub fn late_of(segments: &[Arc<Segment>]) -> impl Iterator<Item = &Arc<Segment>> {
    segments.iter().filter(|s| s.meta().is_late)
}

/// The time ranges of the late segments of one partition.
#[derive(Debug)]
pub struct LateRanges(Vec<(i64, i64)>);

impl LateRanges {
    #[must_use]
    pub fn of(table: &TableSnapshot, partition: i64) -> LateRanges {
        let late = late_of(&table.segments).map(|s| s.meta()).filter(|meta| meta.partition == partition);
        LateRanges(late.map(|meta| meta.time_range).collect())
    }

    /// Returns true if a late segment may have a row with a time in `lo..=hi`.
    #[must_use]
    pub fn touch(&self, lo: i64, hi: i64) -> bool {
        self.0.iter().any(|range| range.0 <= hi && lo <= range.1)
    }
}

/// Returns groups of late segments with the other segments of their times.
///
/// Groups share no timestamp; each group has the segments of one partition in order of arrival.
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
