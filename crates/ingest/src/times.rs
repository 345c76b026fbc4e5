//! Records the times at which tables changed, for their materialized views.
//!
//! Input: the operations of each commit, in order. Output: for each base table of a view, the ranges of its designated
//! timestamp that changed after a commit. Ranges are never too small; they are widened to limit their number.
//!
//! Invariant: a requested change is either known or reported as unknown. Unknown changes after a restart are recomputed
//! completely.

use crate::catalog::Catalog;
use crate::wal::record::Op;
use std::collections::{HashMap, VecDeque};
use tidalite_storage::Run;
use tidalite_types::view::ALWAYS;
use tidalite_types::{ColumnId, TableId, TimeChange, TimeChangeKind, TimeUnit, Txn};

/// Rows closer together than this many seconds form one range: less than most buckets, more than most gaps.
const GRAIN_S: i64 = 60;
/// Largest number of ranges of one commit; beyond it the grain grows.
const RANGES_PER_RUN: usize = 256;
/// Largest number of recorded ranges of one table; beyond it, adjacent ranges are joined.
const RANGES_MAX: usize = 4096;
/// Largest number of commits of one table that are counted individually.
const COMMITS_MAX: usize = 100_000;

#[derive(Debug, Default)]
pub struct ChangedTimes {
    tables: HashMap<TableId, Base>,
}

/// Recorded changes of one table.
#[derive(Debug)]
struct Base {
    /// Changes by commits after this one are known.
    since: Txn,
    changes: Vec<TimeChange>,
    /// Commits that changed the table.
    commits: VecDeque<Txn>,
}

impl ChangedTimes {
    /// Starts recording the changes of a table by commits after `since`.
    pub fn follow(&mut self, table: TableId, since: Txn) {
        self.tables.entry(table).or_insert_with(|| Base { since, changes: Vec::new(), commits: VecDeque::new() });
    }

    /// Returns true if changes of a table are recorded.
    #[must_use]
    pub fn follows(&self, table: TableId) -> bool {
        self.tables.contains_key(&table)
    }

    /// Restores the result of [`ChangedTimes::op`].
    pub fn load(&mut self, table: TableId, since: Txn, changes: Vec<TimeChange>) {
        self.tables.insert(table, Base { since, changes, commits: VecDeque::new() });
    }

    /// Records the changes of a commit that `catalog` already contains. Returns true if any change was recorded.
    pub fn note(&mut self, catalog: &Catalog, txn: Txn, ops: &[Op]) -> bool {
        let mut is_of_interest = false;
        for op in ops {
            let table = op.table();
            if let Op::CreateTable { schema, .. } | Op::SetSchema { schema, .. } = op
                && let Some(view) = schema.materialized()
            {
                self.follow(view.state.base, txn);
                is_of_interest = true;
            }
            if !catalog.is_base(table) {
                continue;
            }
            is_of_interest = true;
            self.follow(table, txn);
            if let Some(base) = self.tables.get_mut(&table) {
                base.note(op, txn, catalog);
            }
        }
        is_of_interest
    }

    /// Returns the changes of a table by commits after `seen`; `None` if they are unknown.
    #[must_use]
    pub fn after(&self, table: TableId, seen: Txn) -> Option<Vec<TimeChange>> {
        let base = self.tables.get(&table).filter(|base| base.since <= seen)?;
        Some(base.changes.iter().filter(|c| c.txn > seen).copied().collect())
    }

    /// Returns the number of known commits after `seen` that changed a table.
    #[must_use]
    pub fn commits_after(&self, table: TableId, seen: Txn) -> u64 {
        let commits = self.tables.get(&table).map(|base| &base.commits);
        commits.map_or(0, |commits| (commits.len() - commits.partition_point(|txn| *txn <= seen)) as u64)
    }

    /// Forgets the changes that every view has processed: for each table, those by commits up to `seen`.
    ///
    /// If `seen` returns `None`, all changes of the table are forgotten.
    pub fn forget(&mut self, seen: impl Fn(TableId) -> Option<Txn>) {
        self.tables.retain(|table, base| {
            let Some(seen) = seen(*table) else { return false };
            base.since = base.since.max(seen);
            base.changes.retain(|c| c.txn > seen);
            let gone = base.commits.partition_point(|txn| *txn <= seen);
            base.commits.drain(..gone);
            true
        });
    }

    /// Returns the changes of a table for a checkpoint.
    #[must_use]
    pub fn op(&self, table: TableId) -> Option<Op> {
        let base = self.tables.get(&table)?;
        Some(Op::Times { table, since: base.since, changes: base.changes.clone() })
    }
}

impl Base {
    fn note(&mut self, op: &Op, txn: Txn, catalog: &Catalog) {
        let schema = catalog.get(op.table()).map(|entry| &entry.schema);
        let mut add = |lo, hi, kind| self.changes.push(TimeChange { txn, lo, hi, kind });
        match op {
            Op::Rows { run, .. } => match schema.and_then(|s| s.timestamp()) {
                Some((column, unit)) => {
                    let ranges = ranges_of(run, column.id, unit);
                    ranges.into_iter().for_each(|(lo, hi)| add(lo, hi, TimeChangeKind::Changed));
                }
                None => add(ALWAYS.0, ALWAYS.1, TimeChangeKind::Changed),
            },
            Op::Attach { segments, .. } => match schema.and_then(|s| s.timestamp()) {
                Some(_) => segments.iter().for_each(|meta| {
                    let (lo, hi) = meta.time_range;
                    add(lo, hi.saturating_add(1), TimeChangeKind::Changed);
                }),
                None => add(ALWAYS.0, ALWAYS.1, TimeChangeKind::Changed),
            },
            Op::Truncate { .. } => add(ALWAYS.0, ALWAYS.1, TimeChangeKind::Truncated),
            Op::DropPartitions { partitions, .. } => {
                partitions.iter().for_each(|&(lo, hi)| add(lo, hi, TimeChangeKind::Dropped));
            }
            Op::Times { changes, .. } => changes.iter().for_each(|c| add(c.lo, c.hi, c.kind)),
            // A separate operation has the deleted rows, or rows of the same times replace them.
            _ => return,
        }
        if self.commits.back() != Some(&txn) {
            self.commits.push_back(txn);
            if self.commits.len() > COMMITS_MAX {
                self.commits.pop_front();
            }
        }
        self.shorten();
    }

    /// Joins changes until their number is within the limit; a joined change has the last commit.
    fn shorten(&mut self) {
        // The rows of a stream usually continue the previous range.
        if let [.., before, last] = self.changes.as_mut_slice()
            && before.kind == last.kind
            && before.lo <= last.lo
            && last.lo <= before.hi
            && last.hi <= before.hi
        {
            before.txn = last.txn;
            self.changes.pop();
            return;
        }
        if self.changes.len() <= RANGES_MAX {
            return;
        }
        let (mut changed, mut rest): (Vec<TimeChange>, Vec<TimeChange>) =
            self.changes.drain(..).partition(|c| c.kind == TimeChangeKind::Changed);
        changed.sort_by_key(|c| (c.lo, c.hi));
        while changed.len() > RANGES_MAX / 2 {
            changed = halved(changed);
        }
        // Restores the order of commits; partitions are few.
        rest.extend(changed);
        rest.sort_by_key(|c| c.txn);
        self.changes = rest;
    }
}

/// Joins adjacent changes in pairs, approximately the closest first, in one pass.
fn halved(changes: Vec<TimeChange>) -> Vec<TimeChange> {
    let mut out: Vec<TimeChange> = Vec::with_capacity(changes.len() / 2 + 1);
    for pair in changes.chunks(2) {
        let joined = pair.iter().copied().reduce(|a, b| TimeChange {
            txn: a.txn.max(b.txn),
            lo: a.lo.min(b.lo),
            hi: a.hi.max(b.hi),
            kind: a.kind,
        });
        out.extend(joined);
    }
    out
}

/// Returns few half-open ranges that contain the times of a run's rows.
fn ranges_of(run: &Run, designated: ColumnId, unit: TimeUnit) -> Vec<(i64, i64)> {
    let mut grain = GRAIN_S * unit.per_second();
    let (lo, hi) = run.time_range;
    let times = run.timestamps(designated);
    loop {
        if hi.saturating_sub(lo) <= grain {
            return vec![(lo, hi.saturating_add(1))];
        }
        match clustered(times, grain) {
            Some(ranges) => return ranges,
            None => grain = grain.saturating_mul(16),
        }
    }
}

/// Returns ranges at least `grain` apart; `None` if there are too many.
fn clustered(times: &[i64], grain: i64) -> Option<Vec<(i64, i64)>> {
    let mut ranges: Vec<(i64, i64)> = Vec::new();
    for &ts in times {
        let is_near = |r: &(i64, i64)| ts >= r.0.saturating_sub(grain) && ts < r.1.saturating_add(grain);
        match ranges.last_mut().filter(|r| is_near(r)) {
            Some(range) => *range = (range.0.min(ts), range.1.max(ts.saturating_add(1))),
            None => ranges.push((ts, ts.saturating_add(1))),
        }
        if ranges.len() > 4 * RANGES_PER_RUN {
            ranges = near_joined(ranges, grain);
            if ranges.len() > RANGES_PER_RUN {
                return None;
            }
        }
    }
    let ranges = near_joined(ranges, grain);
    (ranges.len() <= RANGES_PER_RUN).then_some(ranges)
}

fn near_joined(mut ranges: Vec<(i64, i64)>, grain: i64) -> Vec<(i64, i64)> {
    ranges.sort_unstable();
    let mut out: Vec<(i64, i64)> = Vec::with_capacity(ranges.len());
    for (lo, hi) in ranges {
        match out.last_mut() {
            Some(last) if lo <= last.1.saturating_add(grain) => last.1 = last.1.max(hi),
            _ => out.push((lo, hi)),
        }
    }
    out
}

#[cfg(test)]
mod tests;
