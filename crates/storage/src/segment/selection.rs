//! Selected rows of a block.

use crate::tally;
use std::sync::OnceLock;
use tidalite_kernels::{count_picked, picked_numbers};
use tidalite_types::VECTOR_ROWS;

/// If at most one row in this many is selected, rows are addressed by number instead of a mask.
const SPARSE: usize = 32;

/// Rows of a block, selected once and read from several columns.
///
/// Each representation is computed when it is first requested: counting the rows needs none.
#[derive(Clone, Debug)]
pub struct Selection {
    mask: OnceLock<Vec<u64>>,
    words: usize,
    rows: usize,
    /// Row numbers in the block if the rows are few.
    numbers: OnceLock<Option<Vec<u16>>>,
    empty_vectors: OnceLock<u64>,
}

impl Selection {
    /// Selects the rows whose bit is set, least significant first; bits after the last row are clear.
    #[must_use]
    pub fn new(mask: Vec<u64>) -> Selection {
        let rows = count_picked(&mask);
        Selection::of_mask(mask, rows)
    }

    /// Creates a selection like [`Selection::new`] with a known number of rows.
    #[must_use]
    pub fn of_mask(mask: Vec<u64>, rows: usize) -> Selection {
        debug_assert_eq!(count_picked(&mask), rows);
        let words = mask.len();
        Selection { mask: mask.into(), words, rows, numbers: OnceLock::new(), empty_vectors: OnceLock::new() }
    }

    /// Selects rows by ascending numbers in a block of `rows_of_block` rows.
    #[must_use]
    pub fn of_numbers(numbers: Vec<u16>, rows_of_block: usize) -> Selection {
        let words = rows_of_block.div_ceil(64);
        if !are_few(numbers.len(), words) {
            return Selection::new(mask_of(&numbers, words));
        }
        let vector = |number: &u16| usize::from(*number) / VECTOR_ROWS;
        let with_rows = numbers.chunk_by(|a, b| vector(a) == vector(b)).count() as u64;
        let empty_vectors = tally::vectors(rows_of_block).saturating_sub(with_rows);
        let rows = numbers.len();
        Selection {
            mask: OnceLock::new(),
            words,
            rows,
            numbers: Some(numbers).into(),
            empty_vectors: empty_vectors.into(),
        }
    }

    #[must_use]
    pub fn mask(&self) -> &[u64] {
        self.mask.get_or_init(|| mask_of(self.numbers().unwrap_or_default(), self.words))
    }

    #[must_use]
    pub fn into_mask(self) -> Vec<u64> {
        let Selection { mask, words, numbers, .. } = self;
        mask.into_inner().unwrap_or_else(|| mask_of(&numbers.into_inner().flatten().unwrap_or_default(), words))
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the row numbers if they are few. If there are no numbers there is a mask, and vice versa.
    pub(super) fn numbers(&self) -> Option<&[u16]> {
        let found = || {
            let mask = self.mask.get().filter(|_| are_few(self.rows, self.words))?;
            Some(picked_numbers(mask, self.rows))
        };
        self.numbers.get_or_init(found).as_deref()
    }

    pub(super) fn empty_vectors(&self) -> u64 {
        *self.empty_vectors.get_or_init(|| tally::empty_vectors(self.mask()))
    }
}

fn are_few(rows: usize, words: usize) -> bool {
    rows * SPARSE <= words * 64
}

fn mask_of(numbers: &[u16], words: usize) -> Vec<u64> {
    let mut mask = vec![0; words];
    set(&mut mask, numbers);
    mask
}

/// Sets the bits of these rows.
pub(super) fn set(mask: &mut [u64], numbers: &[u16]) {
    numbers.iter().for_each(|row| mask[usize::from(*row) / 64] |= 1 << (row % 64));
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidalite_kernels::picked;

    #[test]
    fn rows_by_number_are_those_of_their_mask() {
        let mut random = fastrand::Rng::with_seed(6);
        for (rows, one_in) in [(1, 1), (64, 1), (1_000, 40), (65_536, 5_000), (65_536, 40), (65_536, 20), (65_536, 1)] {
            let numbers: Vec<u16> = (0..rows).filter(|_| random.usize(0..one_in) == 0).map(|row| row as u16).collect();
            let found = Selection::of_numbers(numbers.clone(), rows);
            let same = Selection::new(mask_of(&numbers, rows.div_ceil(64)));
            assert_eq!(picked(found.mask()).map(|row| row as u16).collect::<Vec<_>>(), numbers);
            assert_eq!((found.rows(), found.numbers()), (same.rows(), same.numbers()));
            assert_eq!((found.empty_vectors(), found.mask()), (same.empty_vectors(), same.mask()));
            assert_eq!(Selection::of_numbers(numbers, rows).into_mask(), same.into_mask());
        }
    }
}
