//! Which rows of a block are wanted.

use crate::tally;
use tidalite_kernels::{count_picked, picked};

/// Where at most one row in so many is wanted, rows are found by their numbers, not by going over a mask.
const SPARSE: usize = 32;

/// Rows of a block, found once and read of several columns.
#[derive(Clone, Debug)]
pub struct Selection {
    mask: Vec<u64>,
    rows: usize,
    /// Their numbers in the block, where they are few.
    numbers: Option<Vec<u16>>,
    empty_vectors: u64,
}

impl Selection {
    /// Those whose bit is set, least significant first; bits behind the last row are clear.
    #[must_use]
    pub fn new(mask: Vec<u64>) -> Selection {
        let rows = count_picked(&mask);
        // A block has at most 65,536 rows.
        let numbers = (rows * SPARSE <= mask.len() * 64).then(|| picked(&mask).map(|row| row as u16).collect());
        let empty_vectors = tally::empty_vectors(&mask);
        Selection { mask, rows, numbers, empty_vectors }
    }

    #[must_use]
    pub fn mask(&self) -> &[u64] {
        &self.mask
    }

    #[must_use]
    pub fn into_mask(self) -> Vec<u64> {
        self.mask
    }

    /// How many they are.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn numbers(&self) -> Option<&[u16]> {
        self.numbers.as_deref()
    }

    pub(super) fn empty_vectors(&self) -> u64 {
        self.empty_vectors
    }
}
