//! Counts the reads of segments on each thread, in bytes and skipped vectors, for EXPLAIN ANALYZE.
//!
//! Each thread has its own counters, collected by the caller of reads on that thread: no counters are shared, and none
//! are passed through every call for a rare statement.

use std::cell::{Cell, RefCell};
use tidalite_types::{ColumnId, VECTOR_ROWS};

/// Number of words of a vector's mask.
const VECTOR_WORDS: usize = VECTOR_ROWS / 64;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Bytes of blocks in stored form, in memory or not.
    pub stored_bytes: u64,
    /// Part of `stored_bytes` that was read from files.
    pub file_bytes: u64,
    /// Size in memory of the values that were compared or decoded.
    pub value_bytes: u64,
    /// Number of vectors of 1024 values that were requested.
    pub vectors: u64,
    /// Part of `vectors` without a wanted row, or decided by the bounds of their block.
    pub vectors_skipped: u64,
}

thread_local! {
    static TALLY: Cell<Tally> = const { Cell::new(Tally { stored_bytes: 0, file_bytes: 0, value_bytes: 0, vectors: 0, vectors_skipped: 0 }) };
    /// Columns whose blocks were read from files.
    static FROM_FILES: RefCell<Vec<ColumnId>> = const { RefCell::new(Vec::new()) };
}

/// Returns the counts of this thread since the previous call, and resets them.
#[must_use]
pub fn taken() -> Tally {
    FROM_FILES.with_borrow_mut(Vec::clear);
    TALLY.take()
}

/// Returns the columns whose blocks were read from files on this thread since the previous call of this or [`taken`].
#[must_use]
pub fn columns_from_files() -> Vec<ColumnId> {
    FROM_FILES.take()
}

pub(crate) fn from_file(column: ColumnId) {
    FROM_FILES.with_borrow_mut(|columns| {
        if !columns.contains(&column) {
            columns.push(column);
        }
    });
}

pub(crate) fn add(more: impl FnOnce(&mut Tally)) {
    let mut tally = TALLY.get();
    more(&mut tally);
    TALLY.set(tally);
}

/// Returns the number of vectors of `rows` rows.
pub(crate) fn vectors(rows: usize) -> u64 {
    rows.div_ceil(VECTOR_ROWS) as u64
}

/// Returns the number of vectors without a row in the mask.
pub(crate) fn empty_vectors(mask: &[u64]) -> u64 {
    mask.chunks(VECTOR_WORDS).filter(|words| words.iter().all(|word| *word == 0)).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_without_a_row_are_counted() {
        let mut mask = vec![0_u64; 40];
        assert_eq!((vectors(2500), empty_vectors(&mask)), (3, 3));
        mask[15] = 1 << 63;
        mask[39] = 1;
        assert_eq!(empty_vectors(&mask), 1);
    }

    #[test]
    fn a_thread_takes_its_own() {
        add(|tally| tally.file_bytes += 5);
        add(|tally| tally.file_bytes += 6);
        assert_eq!(std::thread::spawn(taken).join().expect("a thread"), Tally::default());
        assert_eq!(taken().file_bytes, 11);
        assert_eq!(taken(), Tally::default());
    }

    #[test]
    fn columns_are_of_what_was_read_since() {
        from_file(ColumnId(1));
        let _ = taken();
        [7, 3, 7].into_iter().for_each(|id| from_file(ColumnId(id)));
        assert_eq!(columns_from_files(), [ColumnId(7), ColumnId(3)]);
        assert_eq!(columns_from_files(), []);
    }
}
