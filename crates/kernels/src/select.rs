//! Compacts the rows selected by a mask.
//!
//! A mask has a bit per row, least significant first, like [`crate::Mask`] for one vector. Bits after the last row are
//! clear.

use crate::dispatch;

/// Words of a mask with at most this many bits are processed bit by bit, others row by row without a branch.
const WALKED_BITS: u32 = 12;

dispatch! {
    /// Returns the number of rows selected by a mask.
    #[must_use]
    pub fn count_picked(mask: &[u64]) -> usize {
        mask.iter().map(|word| word.count_ones() as usize).sum()
    }
}

/// Returns the rows selected by a mask, in order.
pub fn picked(mask: &[u64]) -> impl Iterator<Item = usize> {
    mask.iter().enumerate().flat_map(|(at, word)| Bits(*word).map(move |bit| at * 64 + bit))
}

dispatch! {
    /// Returns the first `count` rows of [`picked`], for a mask of at most 65,536 rows with `count` bits.
    #[must_use]
    pub fn picked_numbers(mask: &[u64], count: usize) -> Vec<u16> {
        // One extra element: a row is written for every word, with or without a bit, because a branch on words with a
        // bit would be unpredictable if few rows are selected.
        let mut numbers = vec![0; count + 1];
        let mut at = 0;
        for (i, words) in mask.chunks(8).enumerate() {
            if words.iter().fold(0, |any, word| any | word) == 0 {
                continue;
            }
            for (j, &word) in words.iter().enumerate() {
                let base = (64 * (8 * i + j)) as u16;
                numbers[at] = base | (word.trailing_zeros() & 63) as u16;
                at += usize::from(word != 0);
                let mut rest = word & word.wrapping_sub(1);
                while rest != 0 && at < count {
                    numbers[at] = base | rest.trailing_zeros() as u16;
                    rest &= rest - 1;
                    at += 1;
                }
                if at >= count {
                    numbers.truncate(count);
                    return numbers;
                }
            }
        }
        numbers.truncate(at);
        numbers
    }
}

/// The positions of the set bits.
struct Bits(u64);

impl Iterator for Bits {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let bit = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        Some(bit)
    }
}

/// A value that can be copied without regard to its meaning.
pub trait Movable: Copy + Default + 'static {}
impl<T: Copy + Default + 'static> Movable for T {}

dispatch! {
    /// Appends the values whose bit is set.
    ///
    /// # Panics
    /// Panics if a bit is set after the last value.
    pub fn select<T: Movable>(values: &[T], mask: &[u64], out: &mut Vec<T>) {
        for (word, values) in mask.iter().zip(values.chunks(64)) {
            match *word {
                0 => {}
                u64::MAX => out.extend_from_slice(values),
                few if few.count_ones() <= WALKED_BITS => Bits(few).for_each(|bit| out.push(values[bit])),
                many => {
                    // Every value is written, and the next value overwrites it unless its bit is set.
                    let (mut room, mut len) = ([T::default(); 64], 0);
                    for (bit, value) in values.iter().enumerate() {
                        room[len % 64] = *value;
                        len += (many >> bit & 1) as usize;
                    }
                    out.extend_from_slice(&room[..len]);
                }
            }
        }
    }
}

dispatch! {
    /// Returns the bits of `bits` whose bit in `mask` is set, in sequence. Bits after the last one are clear.
    #[must_use]
    pub fn select_bits(bits: &[u64], mask: &[u64]) -> Vec<u64> {
        let count: usize = mask.iter().map(|word| word.count_ones() as usize).sum();
        let (mut out, mut at) = (vec![0; count.div_ceil(64) + 1], 0);
        for (bits, word) in bits.iter().zip(mask) {
            let (mut packed, count) = match *word {
                0 => continue,
                u64::MAX => (*bits, 64),
                word => (0, word.count_ones() as usize),
            };
            if count < 64 {
                Bits(*word).enumerate().for_each(|(to, from)| packed |= (bits >> from & 1) << to);
            }
            out[at / 64] |= packed << (at % 64);
            if at % 64 != 0 {
                out[at / 64 + 1] |= packed >> (64 - at % 64);
            }
            at += count;
        }
        out.truncate(count.div_ceil(64));
        out
    }
}

dispatch! {
    /// Keeps the rows of `mask` whose bit, counted among the rows of the mask, is set in `kept`.
    ///
    /// This is the inverse of [`select_bits`].
    pub fn keep_bits(mask: &mut [u64], kept: &[u64]) {
        let mut at = 0;
        for word in mask {
            let (all, mut left) = (*word, 0);
            for bit in Bits(all) {
                left |= (kept[at / 64] >> (at % 64) & 1) << bit;
                at += 1;
            }
            *word = left;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random_mask(rng: &mut fastrand::Rng, rows: usize) -> Vec<u64> {
        let mut mask: Vec<u64> = (0..rows.div_ceil(64))
            .map(|_| match rng.u32(..5) {
                0 => 0,
                1 => u64::MAX,
                2 => 1 << rng.u32(..64),
                3 => rng.u64(..) & rng.u64(..) & rng.u64(..),
                _ => rng.u64(..) | rng.u64(..),
            })
            .collect();
        if !rows.is_multiple_of(64) {
            *mask.last_mut().unwrap() &= u64::MAX >> (64 - rows % 64);
        }
        mask
    }

    #[test]
    fn picked_rows_are_those_whose_bit_is_set() {
        let mut rng = fastrand::Rng::with_seed(1);
        for rows in [1, 5, 63, 64, 65, 640, 1000, 1024] {
            for _ in 0..50 {
                let mask = random_mask(&mut rng, rows);
                let is_set = |row: &usize| mask[row / 64] >> (row % 64) & 1 == 1;
                let expected: Vec<usize> = (0..rows).filter(is_set).collect();
                assert_eq!(picked(&mask).collect::<Vec<_>>(), expected);
                assert_eq!(count_picked(&mask), expected.len());
                let numbers: Vec<u16> = expected.iter().map(|row| *row as u16).collect();
                assert_eq!(picked_numbers(&mask, numbers.len()), numbers);
                assert_eq!(picked_numbers(&mask, numbers.len() + 1), numbers);
                assert_eq!(picked_numbers(&mask, numbers.len() / 2), numbers[..numbers.len() / 2]);
                let values: Vec<u32> = (0..rows).map(|_| rng.u32(..)).collect();
                let mut out = vec![7];
                select(&values, &mask, &mut out);
                assert_eq!(out[0], 7);
                assert_eq!(out[1..], expected.iter().map(|row| values[*row]).collect::<Vec<_>>());
                let bits: Vec<u64> = mask.iter().map(|_| rng.u64(..)).collect();
                let out = select_bits(&bits, &mask);
                assert_eq!(out.len(), expected.len().div_ceil(64));
                let bit_of = |bits: &[u64], row: usize| bits[row / 64] >> (row % 64) & 1;
                for (at, row) in expected.iter().enumerate() {
                    assert_eq!(bit_of(&out, at), bit_of(&bits, *row));
                }
                assert!(expected.len().is_multiple_of(64) || out.last().unwrap() >> (expected.len() % 64) == 0);
                let mut kept = mask.clone();
                keep_bits(&mut kept, &out);
                let anded: Vec<u64> = mask.iter().zip(&bits).map(|(a, b)| a & b).collect();
                assert_eq!(kept, anded);
            }
        }
    }
}
