//! Handles NULL rows in encoding and decoding.
//!
//! Before encoding, NULL rows get a value of their vector, mostly the previous one, so that they do not widen bounds or
//! add distinct values or runs. After decoding, NULL rows are zeros, so that sums need no mask.

use crate::segment::buffer::collect;
use std::borrow::Cow;
use tidalite_types::{Bitmap, VECTOR_ROWS};

/// Returns rows `from..from + rows`; `None` if none of them is NULL.
pub(super) fn slice(validity: &Bitmap, from: usize, rows: usize) -> Option<Bitmap> {
    let mut own = Bitmap::new();
    own.extend_from_range(validity, from, rows);
    (own.count_ones() < rows).then_some(own)
}

/// Replaces NULL rows by the previous value of their vector.
///
/// Leading NULL rows get the first value of the vector. A vector without values gets the value before it or the first
/// value of the block.
pub(super) fn fill_with_neighbours<'a, T: Copy>(values: &'a [T], validity: Option<&Bitmap>) -> Cow<'a, [T]> {
    let Some(validity) = validity else { return Cow::Borrowed(values) };
    let mut filled = values.to_vec();
    let first_of =
        |words: &[u64]| words.iter().position(|w| *w != 0).map(|i| i * 64 + words[i].trailing_zeros() as usize);
    let Some(first) = first_of(validity.words()) else { return Cow::Owned(filled) };
    let mut filler = values[first];
    for (vector, words) in filled.chunks_mut(VECTOR_ROWS).zip(validity.words().chunks(VECTOR_ROWS / 64)) {
        filler = first_of(words).map_or(filler, |row| vector[row]);
        vector.chunks_mut(64).zip(words).for_each(|(rows, word)| filler = fill_forward(rows, *word, filler));
    }
    Cow::Owned(filled)
}

/// Replaces rows whose bit is clear by the previous value, and returns the last value.
fn fill_forward<T: Copy>(rows: &mut [T], word: u64, mut filler: T) -> T {
    match word {
        0 => rows.fill(filler),
        u64::MAX => filler = rows.last().copied().unwrap_or(filler),
        word => rows.iter_mut().enumerate().for_each(|(bit, row)| {
            filler = if word >> bit & 1 == 1 { *row } else { filler };
            *row = filler;
        }),
    }
    filler
}

/// Replaces NULL rows by `filler`.
pub(super) fn fill_with<'a, T: Copy>(values: &'a [T], validity: Option<&Bitmap>, filler: T) -> Cow<'a, [T]> {
    let Some(validity) = validity else { return Cow::Borrowed(values) };
    let mut filled = values.to_vec();
    fill_nulls(&mut filled, validity.words(), filler);
    Cow::Owned(filled)
}

/// Sets the rows whose bit is clear.
pub(super) fn fill_nulls<T: Copy>(values: &mut [T], words: &[u64], filler: T) {
    for (rows, word) in values.chunks_mut(64).zip(words) {
        match *word {
            u64::MAX => {}
            0 => rows.fill(filler),
            word => rows.iter_mut().enumerate().for_each(|(bit, row)| {
                *row = if word >> bit & 1 == 1 { *row } else { filler };
            }),
        }
    }
}

/// Sets NULL rows to zero like [`fill_nulls`], with the validity words of a chunk, which are empty if no row is NULL.
pub(super) fn zero_nulls<T: bytemuck::Zeroable + Copy>(values: &mut [T], validity: &[u8]) {
    if !validity.is_empty() {
        let words: Vec<u64> = collect(validity);
        fill_nulls(values, &words, T::zeroed());
    }
}

pub(super) fn check_validity(validity: &[u8], rows: usize, null_count: u32) -> Result<(), String> {
    if validity.is_empty() {
        return if null_count == 0 || null_count as usize == rows { Ok(()) } else { Err("no validity".to_owned()) };
    }
    let words: Vec<u64> = collect(validity);
    let valid: usize = words.iter().map(|w| w.count_ones() as usize).sum();
    let has_tail = !rows.is_multiple_of(64) && words.last().is_some_and(|w| w >> (rows % 64) != 0);
    if has_tail || valid + null_count as usize != rows { Err("wrong number of NULLs".to_owned()) } else { Ok(()) }
}

/// Returns the number of set bits in the first vector of `validity`.
pub(super) fn count_ones(validity: &[u8]) -> u32 {
    validity.iter().take(VECTOR_ROWS / 8).map(|byte| byte.count_ones()).sum()
}
