//! Relations defined by a query: views, and materialized views with their progress.
//!
//! The query is text to all crates except the SQL parser. Ranges of time are half-open, in the unit of the base's
//! designated timestamp; `i64::MIN` and `i64::MAX` are open bounds.

use crate::{TableId, Ttl, Txn};

/// The part of a schema that is specific to relations defined by a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// The query as written.
    pub sql: String,
    /// `None` for a view without rows.
    pub materialized: Option<Materialized>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Materialized {
    /// The base table, with its name at the creation of the view.
    pub base: String,
    pub schedule: Schedule,
    /// Rows of the base that are older than its newest row by more than this are ignored.
    pub limit: Option<Ttl>,
    /// Rows of earlier times may have been removed by the view's own TTL; `i64::MIN` if none were.
    pub lost_before: i64,
    pub state: ViewState,
}

/// The refresh schedule of a materialized view, and its limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    pub refresh: Refresh,
    /// Time zone of a timer; `None` for UTC.
    pub zone: Option<String>,
    /// Set if only complete periods are computed.
    pub period: Option<Period>,
}

/// Periods of time that a view processes as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Period {
    /// Length such as `1d`; `None` for the buckets of the view.
    pub length: Option<String>,
    pub zone: Option<String>,
    /// Number of seconds after its end at which a period is complete.
    pub delay_s: u64,
}

/// The time of a materialized view's refreshes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refresh {
    /// Only on request.
    Manual,
    /// After each commit to the base.
    Immediate,
    /// Every `seconds` seconds, counted from `start` (microseconds since 1970).
    Every { seconds: u64, start: i64 },
}

/// The progress of a materialized view.
///
/// Invariant: the rows of the view are the result of the query for the base as of commit `seen`, except for the times
/// `pending`, which must be recomputed, and `frozen`, which never are. Ranges of each ascend and do not touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ViewState {
    /// The table of that name: another table with the same name is not used.
    pub base: TableId,
    pub seen: Txn,
    pub pending: Vec<(i64, i64)>,
    /// Times of dropped partitions of the base: the view keeps its rows of these times.
    pub frozen: Vec<(i64, i64)>,
    /// End of the last refresh, in microseconds since 1970; 0 for never.
    pub refreshed: i64,
    /// The reason why the view cannot be refreshed; `None` if it can.
    pub invalid: Option<String>,
}

/// The range of all times.
pub const ALWAYS: (i64, i64) = (i64::MIN, i64::MAX);

impl From<Refresh> for Schedule {
    fn from(refresh: Refresh) -> Schedule {
        Schedule { refresh, zone: None, period: None }
    }
}

impl View {
    /// Returns the kind of the relation in errors and lists.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        if self.materialized.is_some() { "materialized view" } else { "view" }
    }
}

/// A change of rows of a table in a range of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeChange {
    /// The last commit of the change.
    pub txn: Txn,
    pub lo: i64,
    pub hi: i64,
    pub kind: TimeChangeKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeChangeKind {
    /// Rows were added, removed or changed.
    Changed,
    /// The partition was dropped.
    Dropped,
    /// The table was truncated.
    Truncated,
}

/// Sorts ranges, joins ranges that overlap or touch, and removes empty ones.
#[must_use]
pub fn joined_ranges(mut ranges: Vec<(i64, i64)>) -> Vec<(i64, i64)> {
    ranges.retain(|(lo, hi)| lo < hi);
    ranges.sort_unstable();
    let mut out: Vec<(i64, i64)> = Vec::with_capacity(ranges.len());
    for (lo, hi) in ranges {
        match out.last_mut() {
            Some((_, last)) if lo <= *last => *last = hi.max(*last),
            _ => out.push((lo, hi)),
        }
    }
    out
}

/// Returns the times in `ranges` and not in `without`; both must be results of [`joined_ranges`].
#[must_use]
pub fn ranges_without(ranges: &[(i64, i64)], without: &[(i64, i64)]) -> Vec<(i64, i64)> {
    let mut out = Vec::with_capacity(ranges.len());
    for &(lo, hi) in ranges {
        let mut from = lo;
        for &(cut_lo, cut_hi) in without.iter().filter(|(cut_lo, cut_hi)| *cut_lo < hi && lo < *cut_hi) {
            if from < cut_lo {
                out.push((from, cut_lo));
            }
            from = from.max(cut_hi);
        }
        if from < hi {
            out.push((from, hi));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_joined_where_they_touch() {
        assert_eq!(joined_ranges(vec![(5, 7), (1, 3), (3, 4), (6, 9), (2, 2)]), [(1, 4), (5, 9)]);
        assert_eq!(joined_ranges(vec![(0, 1), ALWAYS]), [ALWAYS]);
    }

    #[test]
    fn what_is_taken_out_of_ranges_may_split_them() {
        assert_eq!(ranges_without(&[(0, 10), (20, 30)], &[(2, 3), (5, 22)]), [(0, 2), (3, 5), (22, 30)]);
        assert_eq!(ranges_without(&[(0, 10)], &[(-5, 20)]), []);
        assert_eq!(ranges_without(&[(0, 10)], &[]), [(0, 10)]);
    }
}
