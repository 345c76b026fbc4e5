//! Groups shared by all threads of a query, partitioned by the hash of their keys.
//!
//! Rows of a part are buffered unchanged while memory is left, and are grouped when the last batch has arrived or the
//! memory is used up. A part's table is then loaded into the cache once for many rows. A table that is requested at the
//! end is built by the thread that takes it, and freed when the thread has read it.

use super::keys::Word;
use super::rows::Rows;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tidalite_kernels::{Folds, GroupTable, by_partition};

const PART_BITS: u32 = 8;
/// Number of bisection steps of the estimate of groups per row.
const HALVINGS: usize = 20;

pub(super) struct Parts<W> {
    folds: Folds,
    seed: u64,
    parts: Vec<Part<W>>,
    are_empty: AtomicBool,
    /// Memory of the groups.
    group_bytes: AtomicUsize,
    /// Memory of the buffered rows, and its limit.
    row_bytes: AtomicUsize,
    pub(super) row_bytes_max: usize,
    /// Number of buffered rows.
    rows: AtomicUsize,
}

struct Part<W> {
    /// Rows that are not yet grouped.
    rows: Mutex<Vec<Rows<W>>>,
    groups: Mutex<GroupTable<W>>,
}

/// Groups, and rows that are not yet added to them.
pub(super) struct Lazy<W> {
    table: GroupTable<W>,
    rows: Vec<Rows<W>>,
}

impl<W> From<GroupTable<W>> for Lazy<W> {
    fn from(table: GroupTable<W>) -> Lazy<W> {
        Lazy { table, rows: Vec::new() }
    }
}

impl<W: Word> Parts<W> {
    pub fn new(folds: Folds, seed: u64, row_bytes_max: usize) -> Parts<W> {
        let part = || Part { rows: Mutex::default(), groups: Mutex::new(GroupTable::new(folds.clone(), seed)) };
        let parts = (0..1 << PART_BITS).map(|_| part()).collect();
        let [group_bytes, row_bytes, rows] = [(); 3].map(|()| AtomicUsize::new(0));
        let are_empty = AtomicBool::new(true);
        Parts { folds, seed, parts, are_empty, group_bytes, row_bytes, row_bytes_max, rows }
    }

    pub fn len(&self) -> usize {
        self.parts.len()
    }

    /// Returns true if no groups or rows were added.
    pub fn are_empty(&self) -> bool {
        self.are_empty.load(Ordering::Relaxed)
    }

    /// Returns the allocated bytes.
    pub fn bytes(&self) -> usize {
        self.group_bytes.load(Ordering::Relaxed) + self.row_bytes.load(Ordering::Relaxed)
    }

    /// Returns an upper bound of the memory of the groups after all rows are grouped.
    pub fn bytes_as_groups(&self) -> usize {
        // A list has up to twice the capacity, and a table has two to four slots per group.
        let group =
            2 * (size_of::<W>() + self.folds.words() * size_of::<u64>()) + 4 * size_of::<W>().max(size_of::<u64>());
        self.group_bytes.load(Ordering::Relaxed) + self.rows.load(Ordering::Relaxed) * group
    }

    /// Sorts row numbers by part and writes the first index of each part to `starts`.
    pub fn order(&self, keys: &[W], order: &mut Vec<u32>, starts: &mut Vec<u32>) {
        by_partition(keys, self.seed, PART_BITS, order, starts);
    }

    /// Adds rows. `groups` is scratch memory.
    pub fn add(&self, part: usize, rows: Rows<W>, groups: &mut Vec<u32>) {
        if rows.keys.is_empty() {
            return;
        }
        self.are_empty.store(false, Ordering::Relaxed);
        let (bytes, count) = (rows.bytes(), rows.keys.len());
        let mut kept = locked(&self.parts[part].rows);
        kept.push(rows);
        if self.row_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes <= self.row_bytes_max {
            self.rows.fetch_add(count, Ordering::Relaxed);
            return;
        }
        let all = std::mem::take(&mut *kept);
        drop(kept);
        self.rows.fetch_sub(all.iter().map(|rows| rows.keys.len()).sum::<usize>() - count, Ordering::Relaxed);
        self.row_bytes.fetch_sub(all.iter().map(Rows::bytes).sum(), Ordering::Relaxed);
        self.change(part, |table| all.iter().for_each(|rows| table.add(&rows.keys, &rows.folded(), groups)));
    }

    /// Adds groups given by their keys and words.
    pub fn give(&self, keys: &[W], states: &[u64]) {
        self.are_empty.store(false, Ordering::Relaxed);
        let words = self.folds.words();
        let (mut order, mut starts, mut groups) = (Vec::new(), Vec::new(), Vec::new());
        self.order(keys, &mut order, &mut starts);
        for (part, range) in starts.windows(2).enumerate() {
            let rows = &order[range[0] as usize..range[1] as usize];
            if rows.is_empty() {
                continue;
            }
            let keys: Vec<W> = rows.iter().map(|row| keys[*row as usize]).collect();
            let states: Vec<u64> =
                rows.iter().flat_map(|row| &states[*row as usize * words..][..words]).copied().collect();
            self.change(part, |table| table.join_some(&keys, &states, &mut groups));
        }
    }

    fn change(&self, part: usize, change: impl FnOnce(&mut GroupTable<W>)) {
        let mut table = locked(&self.parts[part].groups);
        let before = table.bytes();
        change(&mut table);
        self.group_bytes.fetch_add(table.bytes().saturating_sub(before), Ordering::Relaxed);
    }

    /// Takes the groups of all parts.
    pub fn take(&self) -> Vec<Lazy<W>> {
        let take = |part: &Part<W>| {
            let table = std::mem::replace(&mut *locked(&part.groups), GroupTable::new(self.folds.clone(), self.seed));
            Lazy { table, rows: std::mem::take(&mut *locked(&part.rows)) }
        };
        self.parts.iter().map(take).collect()
    }
}

impl<W: Word> Lazy<W> {
    /// Returns an upper bound of the number of groups.
    pub fn groups_max(&self) -> usize {
        self.table.len() + self.rows.iter().map(|rows| rows.keys.len()).sum::<usize>()
    }

    /// Returns the table with all rows added.
    pub fn table(self) -> GroupTable<W> {
        let Lazy { mut table, rows } = self;
        let all: usize = rows.iter().map(|rows| rows.keys.len()).sum();
        let mut groups = Vec::new();
        for (at, rows) in rows.into_iter().enumerate() {
            let (before, count) = (table.len(), rows.keys.len());
            if at == 0 {
                table.reserve(count);
            }
            table.add(&rows.keys, &rows.folded(), &mut groups);
            if at == 0 && before == 0 {
                let found = table.len();
                table.reserve(groups_expected(count, found, all).saturating_sub(found));
            }
        }
        table.settle();
        table
    }
}

/// Estimates the number of groups of `all` rows if `some` of them have `found` groups of equal probability.
///
/// Among N groups, N (1 − exp(−rows / N)) are expected to occur.
fn groups_expected(some: usize, found: usize, all: usize) -> usize {
    if found == some {
        return all;
    }
    let (some, found, all) = (some as f64, found as f64, all as f64);
    // Solves for x = some / N by bisection; x is below some / found.
    let (mut low, mut high) = (0.0, some / found);
    for _ in 0..HALVINGS {
        let x = (low + high) / 2.0;
        if -(-x).exp_m1() / x > found / some { low = x } else { high = x }
    }
    (some / high * -(-high * all / some).exp_m1()) as usize
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::groups_expected;

    #[test]
    fn groups_are_foreseen() {
        assert_eq!(groups_expected(4_000, 4_000, 40_000), 40_000);
        // Expected by the formula for 6,000 groups: 4,000 rows have 2,919 groups, 40,000 rows have 5,992.
        let expected = groups_expected(4_000, 2_919, 40_000);
        assert!((5_950..6_030).contains(&expected), "{expected}");
        // All groups have occurred already.
        assert_eq!(groups_expected(4_000, 5, 1_000_000), 5);
        assert_eq!(groups_expected(1, 1, 1), 1);
    }
}
