//! Relations that a query defines: views, and materialized ones with how far they have come.
//!
//! The query is text to everybody but the room that parses it. Ranges of time are half-open, in the unit of the base's
//! designated timestamp; `i64::MIN` and `i64::MAX` stand for "from the first" and "to the last".

use crate::{TableId, Ttl, Txn};

/// What a table is beside its columns when a query defines it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// The query as it was written.
    pub sql: String,
    /// `None` for a view that holds no rows.
    pub materialized: Option<Materialized>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Materialized {
    /// The table whose changes it follows, as it was called when the view was created.
    pub base: String,
    pub schedule: Schedule,
    /// Rows that come to the base this much later than its newest one change nothing.
    pub limit: Option<Ttl>,
    /// Rows of earlier times may have left the view by its own TTL; `i64::MIN` when none have.
    pub lost_before: i64,
    pub state: ViewState,
}

/// When a materialized view is brought up to date, and how far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    pub refresh: Refresh,
    /// Whose clock a timer goes by; `None` for UTC.
    pub zone: Option<String>,
    /// Only periods that have ended are computed.
    pub period: Option<Period>,
}

/// Stretches of time that a view takes as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Period {
    /// As `1d`; `None` for the buckets of the view.
    pub length: Option<String>,
    pub zone: Option<String>,
    /// One counts as ended so many seconds after its end.
    pub delay_s: u64,
}

/// When a materialized view is brought up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refresh {
    /// When somebody asks.
    Manual,
    /// After each commit to the base.
    Immediate,
    /// Every so many seconds, counted from `start` (microseconds since 1970).
    Every { seconds: u64, start: i64 },
}

/// How far a materialized view has come.
///
/// Always: its rows are what the query gives of the base as of commit `seen`, but for the times `pending`, which are
/// to be computed again, and `frozen`, which never are; ranges of each ascend and do not touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ViewState {
    /// The table of that name: another one with the same name is not followed.
    pub base: TableId,
    pub seen: Txn,
    pub pending: Vec<(i64, i64)>,
    /// Times of which partitions of the base were dropped: what the view has of them stays.
    pub frozen: Vec<(i64, i64)>,
    /// When the last refresh ended, in microseconds since 1970; 0 for never.
    pub refreshed: i64,
    /// Why it cannot be refreshed; `None` when it can.
    pub invalid: Option<String>,
}

/// All of time.
pub const ALWAYS: (i64, i64) = (i64::MIN, i64::MAX);

impl From<Refresh> for Schedule {
    fn from(refresh: Refresh) -> Schedule {
        Schedule { refresh, zone: None, period: None }
    }
}

impl View {
    /// What errors and lists call it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        if self.materialized.is_some() { "materialized view" } else { "view" }
    }
}

/// What happened to the rows of a table at some time of theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeChange {
    /// The last commit that did.
    pub txn: Txn,
    pub lo: i64,
    pub hi: i64,
    pub kind: TimeChangeKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeChangeKind {
    /// Rows came, went or changed.
    Changed,
    /// The partition was dropped.
    Dropped,
    /// The table was emptied.
    Truncated,
}

/// Ranges in order, those that overlap or touch made one, empty ones left out.
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

/// What is in `ranges` and not in `without`; both as [`joined_ranges`] gives them.
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
