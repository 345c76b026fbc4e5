//! Encodes floating point of full precision by splitting its bits: ALP for real doubles (ALP-RD).
//!
//! The left bits of adjacent values (sign, exponent, first digits) have few distinct values; the right bits are noise.
//! Input: the bits of values. Output: for each value a word of `code_bits + right_bits` bits: the code of its left part
//! in a dictionary of at most 8 entries, above its right part. Rows whose left part is not in the dictionary are misses
//! and are stored separately.

use crate::dispatch;

/// Describes the split of the values of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    pub right_bits: u8,
    /// The frequent left parts: 1, 2, 4 or 8 entries. The last entries are repeated if fewer parts occur.
    pub lefts: Vec<u16>,
}

/// Largest number of bits of a left part.
const LEFT_BITS_MAX: u8 = 16;
/// Largest number of left parts in a dictionary.
pub const LEFTS_MAX: usize = 8;
/// Size of the position of a miss, in bits. The value of a miss is stored unencoded.
const PLACE_BITS: usize = 16;

impl Split {
    /// Returns the number of bits of a word.
    #[must_use]
    pub fn word_bits(&self) -> u8 {
        self.right_bits + self.lefts.len().trailing_zeros() as u8
    }

    /// Returns the best split of values of `width` bits (32 or 64), chosen from `sample`, with the bits per value.
    ///
    /// The bits per value include misses. Returns `None` if the sample is empty.
    #[must_use]
    pub fn choose(mut sample: Vec<u64>, width: u8) -> Option<(Split, f64)> {
        // In sorted order, equal left parts are adjacent at every split.
        sample.sort_unstable();
        let splits = (width - LEFT_BITS_MAX..width)
            .map(|right_bits| Split::best_at(&sample, right_bits, usize::from(width) + PLACE_BITS));
        splits.flatten().min_by(|a, b| a.1.total_cmp(&b.1))
    }

    fn best_at(sorted: &[u64], right_bits: u8, miss_bits: usize) -> Option<(Split, f64)> {
        let runs = sorted.chunk_by(|a, b| a >> right_bits == b >> right_bits);
        let mut runs: Vec<(usize, u16)> = runs.map(|run| (run.len(), (run[0] >> right_bits) as u16)).collect();
        runs.sort_unstable_by(|a, b| b.cmp(a));
        let options = (0..=LEFTS_MAX.trailing_zeros()).map(|code_bits| {
            let hits: usize = runs.iter().take(1 << code_bits).map(|(len, _)| len).sum();
            let misses = (sorted.len() - hits) * miss_bits;
            (code_bits, f64::from(right_bits) + f64::from(code_bits) + misses as f64 / sorted.len() as f64)
        });
        let (code_bits, cost) = options.min_by(|a, b| a.1.total_cmp(&b.1))?;
        let last = runs.last()?.1;
        let mut lefts: Vec<u16> = runs.iter().take(1 << code_bits).map(|(_, left)| *left).collect();
        lefts.resize(1 << code_bits, last);
        Some((Split { right_bits, lefts }, cost))
    }

    /// Appends the words of the values of a vector, and the rows whose left part is not in the dictionary.
    pub fn split(&self, values: impl Iterator<Item = u64>, words: &mut Vec<u64>, misses: &mut Vec<u16>) {
        let mask = self.mask();
        for (row, bits) in values.enumerate() {
            let left = (bits >> self.right_bits) as u16;
            let code = self.lefts.iter().position(|l| *l == left).unwrap_or_else(|| {
                misses.push(row as u16);
                0
            });
            words.push((code as u64) << self.right_bits | bits & mask);
        }
    }

    /// Converts words to values, except for misses. All words are accepted.
    pub fn join(&self, words: &mut [u64]) {
        let mut lefts = [0; LEFTS_MAX];
        lefts.iter_mut().zip(&self.lefts).for_each(|(l, left)| *l = u64::from(*left) << self.right_bits);
        join(words, &lefts, self.right_bits, self.mask());
    }

    fn mask(&self) -> u64 {
        (1 << self.right_bits) - 1
    }
}

dispatch! {
    fn join(words: &mut [u64], lefts: &[u64; LEFTS_MAX], right_bits: u8, mask: u64) {
        for word in words {
            *word = *word & mask | lefts[(*word >> right_bits) as usize % LEFTS_MAX];
        }
    }
}

#[cfg(test)]
mod tests;
