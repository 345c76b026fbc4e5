//! A bit per row of a block, in words of 64 rows.

use tidalite_kernels::count_picked;
use tidalite_types::VECTOR_ROWS;

/// Number of words of a vector's mask.
pub(super) const WORDS: usize = VECTOR_ROWS / 64;

/// Sets the bits of rows `from..to`.
pub(super) fn set(mask: &mut [u64], from: usize, to: usize) {
    let (first, last) = (from / 64, to / 64);
    let (head, tail) = (u64::MAX << (from % 64), (1u64 << (to % 64)) - 1);
    if first == last {
        return mask[first] |= head & tail;
    }
    mask[first] |= head;
    mask[first + 1..last].fill(u64::MAX);
    if tail != 0 {
        mask[last] |= tail;
    }
}

/// Sets or clears the bit of a row.
pub(super) fn put(mask: &mut [u64], row: usize, is_inside: bool) {
    let bit = 1 << (row % 64);
    mask[row / 64] = mask[row / 64] & !bit | if is_inside { bit } else { 0 };
}

/// Returns the words of one vector for reading, like [`of_vector`].
pub(super) fn words_of(mask: &[u64], vector: usize) -> &[u64] {
    &mask[vector * WORDS..mask.len().min((vector + 1) * WORDS)]
}

/// Returns the words of one vector; the last vector may have fewer than [`WORDS`].
pub(super) fn of_vector(mask: &mut [u64], vector: usize) -> &mut [u64] {
    let end = mask.len().min((vector + 1) * WORDS);
    &mut mask[vector * WORDS..end]
}

/// Returns the number of set bits of rows `from..to`.
pub(super) fn count_between(mask: &[u64], from: usize, to: usize) -> usize {
    let (first, last) = (from / 64, to / 64);
    let (head, tail) = (u64::MAX << (from % 64), (1u64 << (to % 64)) - 1);
    if first == last {
        return (mask[first] & head & tail).count_ones() as usize;
    }
    let behind = if tail == 0 { 0 } else { (mask[last] & tail).count_ones() as usize };
    (mask[first] & head).count_ones() as usize + count_picked(&mask[first + 1..last]) + behind
}
