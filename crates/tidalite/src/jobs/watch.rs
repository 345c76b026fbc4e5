//! Decides when each table is merged.
//!
//! Input: the versions of all tables and the time. Output: the due tables, sorted by staged bytes, largest first.
//!
//! The cost of a merge depends on the bytes written, not on the new bytes: rows that fall into segments cause these to
//! be rewritten. A table whose rows arrive in order is therefore merged soon, and a table whose rows arrive for all
//! times when it has more staged rows. The newest rows of a table with late rows stay staged while more arrive
//! ([`Watch::kept_from`]), so that late rows fall among them and no row is written twice. When the table is quiet, or
//! the rows would be too many, they are written to separate segments ([`Watch::tail_from`]).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidalite_storage::late::late_of;
use tidalite_storage::merge::reclaimable;
use tidalite_storage::tables::Staged;
use tidalite_storage::{Run, TableSnapshot};
use tidalite_types::{BLOCK_ROWS, TableId, TimeUnit, Txn};

/// Time without commits after which a table is merged, so that its rows leave memory.
const QUIET: Duration = Duration::from_millis(200);
/// Number of staged rows below which a table is a trickle...
const TRICKLE_ROWS: usize = 4096;
/// ...and is not merged more often than this when it is quiet: the same last block would be rewritten again and again.
const TRICKLE_INTERVAL: Duration = Duration::from_secs(2);
/// Largest number of trickles merged in one round: ten thousand tables with one row per second each wait in memory, and
/// a checkpoint keeps the log short.
const TRICKLES_PER_ROUND: usize = 8;
/// Largest age of staged rows; trickles are merged when it is their turn.
const STAGED_AGE_MAX: Duration = Duration::from_secs(60);
/// Divisor of the staging limit for the rows that a merge leaves staged.
const KEPT_DIVISOR: usize = 3;

/// A table to be merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Due {
    pub id: TableId,
    /// True if its newest rows may stay staged, because more are expected.
    pub keeps: bool,
}

/// State that affects all tables.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Limit of staged bytes.
    pub staging_bytes: usize,
    pub staged_bytes: usize,
    pub is_log_long: bool,
}

#[derive(Debug, Default)]
pub(super) struct Watch {
    tables: HashMap<TableId, Watched>,
}

/// Times of events of a table.
#[derive(Clone, Copy, Debug)]
struct Watched {
    txn: Txn,
    changed: Instant,
    staged_since: Option<Instant>,
    merged: Option<Instant>,
    /// Size of the staged rows after commit `txn`, for a number of runs: computing it takes a while for many tables.
    staged: (Txn, usize, Staged),
    /// Size of the rows that the last merge left.
    kept: Staged,
    /// Recent lateness of rows, in the unit of the table's timestamp.
    lag: i64,
}

impl Watch {
    /// Returns the due tables. `tables` must be sorted by id.
    pub fn due(&mut self, tables: &[Arc<TableSnapshot>], limits: Limits, now: Instant) -> Vec<Due> {
        self.tables.retain(|id, _| tables.binary_search_by_key(id, |t| t.id).is_ok());
        let mut candidates: Vec<Candidate> = tables.iter().filter_map(|t| self.look_at(t, limits, now)).collect();
        candidates.sort_unstable_by_key(|c| std::cmp::Reverse((c.is_large, c.bytes)));
        // Above this size the largest tables are merged, however small, until memory is free.
        let mut to_free = match limits.staged_bytes.checked_sub(limits.staging_bytes / 4 * 3) {
            Some(over) if over > 0 => over + limits.staging_bytes / 2,
            _ => 0,
        };
        let mut trickles = 0;
        candidates.retain(|c| {
            let frees = to_free > 0;
            to_free = to_free.saturating_sub(c.bytes);
            trickles += usize::from(c.is_trickle && c.is_due);
            c.is_large || frees || c.is_due && (!c.is_trickle || trickles <= TRICKLES_PER_ROUND)
        });
        candidates.into_iter().map(|c| Due { id: c.id, keeps: c.keeps }).collect()
    }

    fn look_at(&mut self, table: &TableSnapshot, limits: Limits, now: Instant) -> Option<Candidate> {
        let staged = (Txn(0), 0, Staged::default());
        let kept = Staged::default();
        let new = Watched { txn: table.txn, changed: now, staged_since: None, merged: None, staged, kept, lag: 0 };
        let watched = self.tables.entry(table.id).or_insert(new);
        if watched.txn != table.txn {
            (watched.txn, watched.changed) = (table.txn, now);
        }
        if table.runs.is_empty() {
            (watched.staged_since, watched.kept) = (None, Staged::default());
            let is_due = now - watched.changed >= QUIET && !reclaimable(table, false).is_empty();
            let (is_trickle, is_large, keeps) = (true, false, false);
            return is_due.then_some(Candidate { id: table.id, bytes: 0, is_trickle, is_large, is_due, keeps });
        }
        if (watched.staged.0, watched.staged.1) != (table.txn, table.runs.len()) {
            watched.staged = (table.txn, table.runs.len(), Staged::of(&table.runs));
        }
        let Staged { rows, bytes } = watched.staged.2;
        let age = now - *watched.staged_since.get_or_insert(now);
        let is_trickle = rows < TRICKLE_ROWS;
        let was_merged = watched.merged.is_some_and(|at| now - at < TRICKLE_INTERVAL);
        let is_quiet = now - watched.changed >= QUIET && !(is_trickle && was_merged);
        // Tables whose merge rewrites much wait longer: half as many merges rewrite half as much. With late segments
        // nothing is rewritten, but their number should stay small.
        let is_cheap = rewritten_rows(table) <= rows as u64;
        let is_soon = is_cheap || late_of(&table.segments).next().is_some();
        let pressure = if is_soon { limits.staging_bytes / 2 } else { limits.staging_bytes / 4 * 3 };
        let is_pressed = limits.staged_bytes > pressure || limits.is_log_long;
        // Rows left by the last merge are no reason for the next one.
        let (new_rows, new_bytes) = (rows.saturating_sub(watched.kept.rows), bytes.saturating_sub(watched.kept.bytes));
        let is_large =
            new_bytes > limits.staging_bytes / 8 && (is_pressed || is_cheap) || is_pressed && new_rows >= BLOCK_ROWS;
        let is_due = is_quiet || age >= STAGED_AGE_MAX;
        Some(Candidate { id: table.id, bytes, is_trickle, is_large, is_due, keeps: !is_due })
    }

    /// Records the end of a merge of `table`, successful or not, and the size of its staged rows.
    pub fn merged(&mut self, table: TableId, left: Staged, now: Instant) {
        if let Some(watched) = self.tables.get_mut(&table) {
            // Later rows have a separate wait.
            (watched.merged, watched.kept, watched.staged_since) = (Some(now), left, None);
        }
    }

    /// Returns the timestamp from which on a merge leaves rows staged, because late rows are expected among them.
    ///
    /// Returns `None` if too many rows would be left.
    pub fn kept_from(&self, table: &TableSnapshot, staging_bytes: usize) -> Option<i64> {
        let (from, designated) = (self.tail_from(table)?, table.schema.designated?);
        let is_taken =
            |run: &&Arc<Run>| run.time_range.1 < from || run.timestamps(designated).iter().all(|ts| *ts < from);
        // Runs are taken completely, and only those before the first one with such a row.
        let kept = table.runs.iter().skip_while(is_taken).map(|run| run.byte_count()).sum::<usize>();
        (kept <= staging_bytes / KEPT_DIVISOR).then_some(from)
    }

    /// Returns true if the table had no commits for this long.
    pub fn is_quiet(&self, table: TableId, long: Duration, now: Instant) -> bool {
        self.tables.get(&table).is_some_and(|w| now - w.changed >= long)
    }

    /// Learns the lateness of the rows that are about to be merged.
    pub fn note_lateness(&mut self, table: &TableSnapshot, lag_max: Duration) {
        let Some((_, unit)) = table.schema.timestamp() else { return };
        let Some(watched) = self.tables.get_mut(&table.id) else { return };
        let (late, has_import) = lateness(table, in_unit(lag_max, unit));
        // During an import of old rows the other rows are too few to show that the lateness decreased.
        watched.lag = late.max(if has_import { watched.lag } else { watched.lag / 4 * 3 });
    }

    /// Returns the timestamp from which on the rows of a merge are written to separate segments, because late rows are
    /// expected among them.
    pub fn tail_from(&self, table: &TableSnapshot) -> Option<i64> {
        let lag = match (table.schema.lag_us, table.schema.timestamp()) {
            (Some(lag_us), Some((_, unit))) => in_unit(Duration::from_micros(lag_us), unit),
            _ => {
                // A little more than observed, because the next row may be later.
                let lag = self.tables.get(&table.id)?.lag;
                lag.saturating_add(lag / 4)
            }
        };
        let newest = table.time_range()?.1;
        (lag > 0).then(|| newest.saturating_sub(lag))
    }
}

struct Candidate {
    id: TableId,
    bytes: usize,
    is_trickle: bool,
    is_large: bool,
    is_due: bool,
    keeps: bool,
}

/// Returns an upper bound of the rows in segments that staged rows fall into.
fn rewritten_rows(table: &TableSnapshot) -> u64 {
    if table.schema.designated.is_none() {
        return 0;
    }
    let overlaps = |lo: i64, hi: i64| table.runs.iter().any(|r| r.time_range.0 < hi && lo <= r.time_range.1);
    let touched = table.segments.iter().filter(|s| overlaps(s.time_range().0, s.time_range().1));
    touched.map(|s| s.rows()).sum()
}

/// Returns the lateness of the oldest staged row relative to the newest row before its run.
///
/// The flag is true if there is an import of old rows.
///
/// Rows later than `lag_max` are an import of old rows and are ignored, because they do not predict the next rows.
fn lateness(table: &TableSnapshot, lag_max: i64) -> (i64, bool) {
    let mut newest = table.segments.iter().map(|s| s.time_range().1).max();
    let (mut latest, mut has_import) = (0, false);
    for run in table.runs.iter() {
        let (lo, hi) = run.time_range;
        let late = newest.map_or(0, |newest| newest.saturating_sub(lo));
        if late <= lag_max {
            latest = latest.max(late);
        } else {
            has_import = true;
        }
        newest = newest.max(Some(hi));
    }
    (latest, has_import)
}

fn in_unit(duration: Duration, unit: TimeUnit) -> i64 {
    let value = match unit {
        TimeUnit::Millis => duration.as_millis(),
        TimeUnit::Micros => duration.as_micros(),
        TimeUnit::Nanos => duration.as_nanos(),
    };
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidalite_types::{Column, ColumnId, ColumnSchema, ColumnType, PartitionBy, TableSchema, Values};

    const LIMITS: Limits = Limits { staging_bytes: 64 << 20, staged_bytes: 0, is_log_long: false };
    const LAG_MAX: Duration = Duration::from_secs(10);

    fn table(id: u32, runs: &[(i64, usize)]) -> Arc<TableSnapshot> {
        let time = ColumnSchema {
            id: ColumnId(0),
            name: "ts".to_owned(),
            column_type: ColumnType::Timestamp(TimeUnit::Micros),
        };
        let schema = TableSchema {
            name: format!("t{id}"),
            columns: vec![time],
            designated: Some(ColumnId(0)),
            partition_by: PartitionBy::Day,
            next_column: ColumnId(1),
            ttl: None,
            lag_us: None,
            dedup: Vec::new(),
            view: None,
        };
        let run = |(at, &(start, rows)): (usize, &(i64, usize))| {
            let times: Vec<i64> = (start..start + rows as i64).collect();
            Arc::new(Run {
                rows,
                txns: (Txn(at as u64 + 1), Txn(at as u64 + 1)),
                time_range: (start, start + rows as i64 - 1),
                is_sorted: true,
                columns: vec![(ColumnId(0), Arc::new(Column::new(Values::I64(times))))],
                dead: None,
            })
        };
        Arc::new(TableSnapshot {
            txn: Txn(runs.len() as u64),
            runs: Arc::new(runs.iter().enumerate().map(run).collect()),
            ..TableSnapshot::empty(TableId(id), Arc::new(schema))
        })
    }

    #[test]
    fn of_ten_thousand_trickles_a_few_are_merged_at_a_time() {
        let tables: Vec<_> = (0..10_000).map(|id| table(id, &[(0, 1)])).collect();
        let (mut watch, start) = (Watch::default(), Instant::now());
        assert!(watch.due(&tables, LIMITS, start).is_empty(), "they have just changed");
        let due = watch.due(&tables, LIMITS, start + QUIET);
        assert_eq!(due.len(), TRICKLES_PER_ROUND);
        due.iter().for_each(|due| watch.merged(due.id, Staged::default(), start + QUIET));
        let next = watch.due(&tables, LIMITS, start + 2 * QUIET);
        assert!(
            next.len() == TRICKLES_PER_ROUND && next.iter().all(|next| !due.contains(next)),
            "others have their turn"
        );
    }

    #[test]
    fn when_memory_is_short_small_tables_are_merged_too() {
        let tables: Vec<_> = (0..1000).map(|id| table(id, &[(0, 100)])).collect();
        let (mut watch, start) = (Watch::default(), Instant::now());
        let bytes = Staged::of(&tables[0].runs).bytes;
        let limits = Limits { staging_bytes: 1000 * bytes, staged_bytes: 1000 * bytes, ..LIMITS };
        assert_eq!(watch.due(&tables, limits, start).len(), 750, "down to a quarter of the limit");
        let limits = Limits { staging_bytes: 2000 * bytes, staged_bytes: 1000 * bytes, ..LIMITS };
        assert!(watch.due(&tables, limits, start).is_empty());
    }

    #[test]
    fn lateness_is_learned_within_its_limit_and_forgotten() {
        let second = 1_000_000;
        let jittery = table(1, &[(10 * second, 10), (8 * second, 10)]);
        let (mut watch, start) = (Watch::default(), Instant::now());
        watch.due(std::slice::from_ref(&jittery), LIMITS, start);
        assert_eq!(watch.tail_from(&jittery), None);
        watch.note_lateness(&jittery, LAG_MAX);
        let newest = 10 * second + 9;
        let lag = 2 * second + 9;
        assert_eq!(watch.tail_from(&jittery), Some(newest - lag - lag / 4));
        watch.note_lateness(&table(1, &[(100 * second, 10), (0, 10)]), LAG_MAX);
        assert_eq!(watch.tail_from(&jittery), Some(newest - lag - lag / 4), "an import of old rows is no jitter");
        for _ in 0..100 {
            watch.note_lateness(&table(1, &[(0, 10), (10, 10)]), LAG_MAX);
        }
        assert!(watch.tail_from(&jittery).is_none_or(|from| from >= newest - 4));
    }

    #[test]
    fn a_lag_that_was_set_counts_whatever_was_seen() {
        let second = 1_000_000;
        let mut jittery = table(1, &[(10 * second, 10), (8 * second, 10)]);
        let (mut watch, start) = (Watch::default(), Instant::now());
        let set = |table: &mut Arc<TableSnapshot>, lag_us| {
            let version = Arc::make_mut(table);
            version.schema = Arc::new(TableSchema { lag_us, ..(*version.schema).clone() });
        };
        set(&mut jittery, Some(5_000_000));
        assert_eq!(watch.tail_from(&jittery), Some(5 * second + 9), "before anything was seen");
        watch.due(std::slice::from_ref(&jittery), LIMITS, start);
        watch.note_lateness(&jittery, LAG_MAX);
        assert_eq!(watch.tail_from(&jittery), Some(5 * second + 9));
        set(&mut jittery, Some(0));
        assert_eq!(watch.tail_from(&jittery), None, "nothing is kept apart");
    }
}
