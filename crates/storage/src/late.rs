//! Late segments: segments with rows that arrived too late to be merged into the segments of their times.
//!
//! A merge whose rows fall into all segments of a partition would rewrite the partition for a few rows per segment.
//! Such a merge writes the rows to late segments instead, which are in time order themselves and have any times.
//! Readers take rows of equal timestamps in the order of the segments ([`crate::tables::sort_segments`]), so late
//! segments come after the segments that existed before them, ordered by number. [`crate::merge::compact()`] merges a
//! group of late segments at once, with all segments that may share a timestamp.
//!
//! Invariant: a row in a segment that is not late arrived before every row of equal timestamp in a late segment.

use crate::segment::reader::SegmentMeta;
use crate::{Segment, TableSnapshot};
use std::sync::Arc;
use tidalite_types::SegmentId;

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

/// Returns true if a segment of a table has a greater number than a segment of a load that it overlaps or touches in
/// time.
///
/// Old rows get a new number when a merge or a compaction rewrites them during a load. Segments order rows of equal
/// timestamps by their numbers, so the load has to take new numbers before it is attached.
#[must_use]
pub fn is_outnumbered(existing: &[Arc<Segment>], loaded: &[SegmentMeta]) -> bool {
    let Some(first) = loaded.iter().map(|meta| meta.id).min() else { return false };
    existing.iter().map(|segment| segment.meta()).filter(|old| old.id > first).any(|old| {
        let touches = |new: &SegmentMeta| {
            new.partition == old.partition
                && new.time_range.0 <= old.time_range.1
                && old.time_range.0 <= new.time_range.1
        };
        loaded.iter().any(|new| old.id > new.id && touches(new))
    })
}

/// Marks those segments of a load as late that cannot be in one order with the segments of a table and with each other.
///
/// `loaded` are in the order of their numbers, which is the order of their rows, and not outnumbered
/// ([`is_outnumbered`]).
pub fn mark_late(existing: &[Arc<Segment>], loaded: &mut [SegmentMeta]) {
    struct Item {
        partition: i64,
        range: (i64, i64),
        id: SegmentId,
        is_late: bool,
        /// Index in `loaded`; `None` for a segment of the table.
        at: Option<usize>,
    }
    let of = |meta: &SegmentMeta, at| Item {
        partition: meta.partition,
        range: meta.time_range,
        id: meta.id,
        is_late: meta.is_late,
        at,
    };
    let mut items: Vec<Item> = existing.iter().map(|s| of(s.meta(), None)).collect();
    items.extend(loaded.iter().enumerate().map(|(at, meta)| of(meta, Some(at))));
    items.sort_by_key(|item| (item.partition, item.range, item.id));
    // A segment that becomes late also conflicts with segments that it only touches.
    let mut has_changed = true;
    while has_changed {
        has_changed = false;
        let mut mark = |item: &mut Item, conflicts: bool| {
            if conflicts && item.at.is_some() && !item.is_late {
                (item.is_late, has_changed) = (true, true);
            }
        };
        for items in items.chunk_by_mut(|a, b| a.partition == b.partition) {
            // The greatest time so far, and the greatest number of the segments that end with it.
            let mut before: Option<(i64, SegmentId)> = None;
            for item in items.iter_mut() {
                let (lo, hi) = item.range;
                let conflicts = before.is_some_and(|(end, id)| lo < end || lo == end && id > item.id);
                mark(item, conflicts);
                let id = if item.is_late { SegmentId(u64::MAX) } else { item.id };
                before = Some(before.map_or((hi, id), |before| before.max((hi, id))));
            }
            // The smallest time so far, and the smallest number of the segments that begin with it.
            let mut after: Option<(i64, SegmentId)> = None;
            for item in items.iter_mut().rev() {
                let (lo, hi) = item.range;
                let conflicts = after.is_some_and(|(start, id)| start < hi || start == hi && id < item.id);
                mark(item, conflicts);
                after = Some(after.map_or((lo, item.id), |after| after.min((lo, item.id))));
            }
        }
    }
    for item in items {
        if let Some(at) = item.at {
            loaded[at].is_late = item.is_late;
        }
    }
}

/// Returns the end of the segments that must be rewritten if the segments before `end` are.
///
/// These are also the following segments in which all rows have the last timestamp of the previous ones. The order
/// among such segments is the order of their numbers, and new segments have greater numbers.
#[must_use]
pub fn tied_end(segments: &[Arc<Segment>], end: usize) -> usize {
    let Some((_, last)) = end.checked_sub(1).map(|at| segments[at].time_range()) else { return end };
    end + segments[end..].iter().take_while(|s| s.time_range() == (last, last)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(id: u64, lo: i64, hi: i64) -> SegmentMeta {
        let (id, time_range) = (SegmentId(id), (lo, hi));
        SegmentMeta { id, rows: 1, bytes: 1, partition: 0, time_range, is_late: false }
    }

    fn late(loaded: &[(i64, i64)]) -> Vec<bool> {
        let mut metas: Vec<_> = loaded.iter().zip(10..).map(|(range, id)| meta(id, range.0, range.1)).collect();
        mark_late(&[], &mut metas);
        metas.into_iter().map(|meta| meta.is_late).collect()
    }

    /// Segments in ascending order may touch; in another order they must be apart.
    #[test]
    fn segments_of_a_load_that_overlap_are_late() {
        assert_eq!(late(&[(0, 5), (5, 5), (5, 9), (10, 12)]), [false; 4]);
        assert_eq!(late(&[(10, 12), (0, 5), (6, 9)]), [false; 3]);
        assert_eq!(late(&[(5, 9), (0, 5), (10, 12)]), [true, true, false]);
        assert_eq!(late(&[(0, 5), (4, 9), (20, 21)]), [true, true, false]);
        // Beside a late segment, one that touches it is late, too.
        assert_eq!(late(&[(0, 5), (4, 9), (9, 12), (13, 14)]), [true, true, true, false]);
    }

    #[test]
    fn segments_of_different_partitions_do_not_overlap() {
        let mut metas = [meta(1, 0, 9), SegmentMeta { partition: 1, ..meta(2, 5, 6) }];
        mark_late(&[], &mut metas);
        assert!(metas.iter().all(|meta| !meta.is_late));
    }
}
