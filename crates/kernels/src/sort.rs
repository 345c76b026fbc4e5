//! Computes the order of timestamps: a stable sort that moves row numbers, not rows.

/// Largest number of rows of a permutation.
pub const ROWS_MAX: usize = u32::MAX as usize;

/// Returns true if no key is smaller than the previous key.
#[must_use]
pub fn is_sorted(keys: &[i64]) -> bool {
    // Chunks without an early exit inside are compared in parallel lanes.
    let pairs = keys.len().saturating_sub(1);
    (0..pairs).step_by(256).all(|at| {
        let len = 256.min(pairs - at);
        let (a, b) = (&keys[at..at + len], &keys[at + 1..at + 1 + len]);
        a.iter().zip(b).fold(true, |sorted, (a, b)| sorted & (a <= b))
    })
}

/// Returns the rows in order of their keys; equal keys are in order of row.
///
/// Row `permutation[i]` of the input is row `i` of the output.
///
/// # Panics
/// Panics with more than [`ROWS_MAX`] keys.
#[must_use]
pub fn sort_permutation(keys: &[i64]) -> Vec<u32> {
    assert!(keys.len() <= ROWS_MAX, "{} rows to sort", keys.len());
    if is_sorted(keys) {
        return (0..keys.len() as u32).collect();
    }
    let mut rows = vec![0; keys.len()];
    sort(keys, |row, at| rows[at as usize] = row);
    rows
}

/// Calls `tell` with each row and its position in the order.
#[inline(always)]
fn sort(keys: &[i64], tell: impl FnMut(u32, u32)) {
    let Some((lo, hi)) = crate::min_max(keys) else { return };
    let step = Divisor::of(keys, lo);
    let key_bits = 64 - step.steps(hi.wrapping_sub(lo) as u64).leading_zeros();
    let row_bits = 64 - (keys.len() as u64 - 1).leading_zeros();
    let keys = keys.iter().map(|key| step.steps(key.wrapping_sub(lo) as u64));
    if keys.len() >= RADIX_ROWS_MIN && key_bits <= DIGIT_BITS {
        sort_few(keys, tell);
    } else if key_bits + row_bits <= 64 {
        sort_packed(keys, key_bits, row_bits, tell);
    } else {
        sort_pairs(keys, key_bits, tell);
    }
}

/// The common divisor of all distances of keys. For whole seconds in nanoseconds, division by the step leaves less than
/// half of the bits and of the passes.
#[derive(Clone, Copy)]
struct Divisor {
    /// Exponent of the power of two in the step.
    twos: u32,
    /// Inverse of the odd factor modulo 2^64: the product with an exact multiple is the quotient,
    inverse: u64,
    /// and only multiples give products, rotated by `twos`, of at most this value.
    quotient_max: u64,
}

/// Smaller steps save no pass.
const STEP_MIN: u64 = 1 << DIGIT_BITS;

impl Divisor {
    const ONE: Divisor = Divisor { twos: 0, inverse: 1, quotient_max: u64::MAX };

    fn of(keys: &[i64], lo: i64) -> Divisor {
        let distance = |key: &i64| key.wrapping_sub(lo) as u64;
        let Some(mut at) = keys.iter().position(|key| *key != lo) else { return Divisor::ONE };
        let mut step = 0;
        // Only distances that are not multiples reduce the step. After a few reductions the step is final or too small.
        loop {
            step = greatest_common_divisor(step, distance(&keys[at]));
            if step < STEP_MIN {
                return Divisor::ONE;
            }
            let by = Divisor::new(step);
            match keys[at..].iter().position(|key| !by.divides(distance(key))) {
                Some(other) => at += other,
                None => return by,
            }
        }
    }

    fn new(step: u64) -> Divisor {
        let twos = step.trailing_zeros();
        let odd = step >> twos;
        // Newton's iteration doubles the number of correct bits; the square of an odd number has three correct bits.
        let inverse = (0..5).fold(odd, |x, _| x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x))));
        Divisor { twos, inverse, quotient_max: u64::MAX / step }
    }

    /// Returns true if a distance is a multiple, without a division (Warren, Hacker's Delight, 10-17).
    #[inline(always)]
    fn divides(self, distance: u64) -> bool {
        distance.wrapping_mul(self.inverse).rotate_right(self.twos) <= self.quotient_max
    }

    /// Returns the number of steps of a distance that is a multiple.
    #[inline(always)]
    fn steps(self, distance: u64) -> u64 {
        (distance >> self.twos).wrapping_mul(self.inverse)
    }
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Reference implementation of [`sort_permutation`].
#[must_use]
pub fn sort_permutation_plain(keys: &[i64]) -> Vec<u32> {
    let mut rows: Vec<u32> = (0..keys.len() as u32).collect();
    rows.sort_by_key(|row| keys[*row as usize]);
    rows
}

/// For fewer rows, a comparison sort is faster than clearing the counters.
const RADIX_ROWS_MIN: usize = 512;

/// Sorts keys of one digit by counting, without moving rows.
fn sort_few(keys: impl Iterator<Item = u64> + Clone, mut tell: impl FnMut(u32, u32)) {
    let mut starts = [0u32; BUCKETS];
    keys.clone().for_each(|key| starts[key as usize % BUCKETS] += 1);
    let mut sum = 0;
    starts.iter_mut().for_each(|start| sum += std::mem::replace(start, sum));
    for (row, key) in keys.enumerate() {
        let at = &mut starts[key as usize % BUCKETS];
        tell(row as u32, *at);
        *at += 1;
    }
}

/// Sorts words that contain key and row, with half of the memory traffic of pairs. 10 minutes of nanoseconds and 16 M
/// rows fit.
fn sort_packed(keys: impl Iterator<Item = u64>, key_bits: u32, row_bits: u32, mut tell: impl FnMut(u32, u32)) {
    let mut words: Vec<u64> = keys.enumerate().map(|(row, key)| key << row_bits | row as u64).collect();
    let row_mask = u64::MAX >> (64 - row_bits.max(1));
    if words.len() < RADIX_ROWS_MIN {
        words.sort_unstable();
        words.iter().enumerate().for_each(|(at, word)| tell((word & row_mask) as u32, at as u32));
    } else {
        radix_sort(words, row_bits, key_bits, |word| *word, |word, at| tell((word & row_mask) as u32, at));
    }
}

fn sort_pairs(keys: impl Iterator<Item = u64>, key_bits: u32, mut tell: impl FnMut(u32, u32)) {
    let mut pairs: Vec<(u64, u32)> = keys.enumerate().map(|(row, key)| (key, row as u32)).collect();
    if pairs.len() < RADIX_ROWS_MIN {
        pairs.sort_unstable();
        pairs.iter().enumerate().for_each(|(at, pair)| tell(pair.1, at as u32));
    } else {
        radix_sort(pairs, 0, key_bits, |pair| pair.0, |pair, at| tell(pair.1, at));
    }
}

/// Digits of 11 bits: the counters and the lines being written fit the first-level cache, or nearly so.
const DIGIT_BITS: u32 = 11;
const BUCKETS: usize = 1 << DIGIT_BITS;

/// Sorts stably by bits `from_bit..from_bit + bits`, least significant digit first, and skips digits that all keys
/// share.
///
/// The pass over the last digit, which is never skipped, moves nothing and calls `tell` with the position of each item.
fn radix_sort<T: Copy + Default>(
    mut items: Vec<T>,
    from_bit: u32,
    bits: u32,
    key: impl Fn(&T) -> u64,
    mut tell: impl FnMut(T, u32),
) {
    let digits = bits.div_ceil(DIGIT_BITS);
    // Digits of equal size: 40 bits are four digits of 10, not three of 11 and one of 7.
    let digit_bits = bits.div_ceil(digits);
    let mask = (1u64 << digit_bits) - 1;
    let digit_of = |item: &T, digit: u32| (key(item) >> (from_bit + digit * digit_bits) & mask) as usize % BUCKETS;
    let mut counts = vec![[0u32; BUCKETS]; digits as usize];
    for item in items.iter() {
        for (digit, counts) in counts.iter_mut().enumerate() {
            counts[digit_of(item, digit as u32)] += 1;
        }
    }
    let mut other = Vec::new();
    for (digit, counts) in counts.iter_mut().enumerate() {
        let (digit, is_last) = (digit as u32, digit + 1 == digits as usize);
        if !is_last && counts.iter().any(|count| *count as usize == items.len()) {
            continue;
        }
        let mut sum = 0;
        counts.iter_mut().for_each(|count| sum += std::mem::replace(count, sum));
        if is_last {
            for item in &items {
                let at = &mut counts[digit_of(item, digit)];
                tell(*item, *at);
                *at += 1;
            }
            return;
        }
        other.resize(items.len(), T::default());
        for item in &items {
            let at = &mut counts[digit_of(item, digit)];
            other[*at as usize] = *item;
            *at += 1;
        }
        std::mem::swap(&mut items, &mut other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permutations_are_those_of_the_stable_sort() {
        let mut rng = fastrand::Rng::with_seed(1);
        for round in 0..400 {
            let rows = [0, 1, 2, 100, 511, 512, 3_000, 20_000][round % 8];
            let bits = rng.u32(0..64);
            let base = [0, i64::MIN, i64::MAX, 1_451_606_400_000_000_000][rng.usize(..4)];
            let mut keys: Vec<i64> = (0..rows).map(|_| base.wrapping_add(rng.i64(..) >> bits)).collect();
            if round % 3 == 0 {
                let step = [1_000, 10_000_000_000, 1 << 40, 3][rng.usize(..4)];
                keys.iter_mut().for_each(|key| *key = key.wrapping_sub(key.rem_euclid(step)));
            }
            if round % 5 == 0 {
                keys.sort_unstable();
                assert!(is_sorted(&keys));
            }
            assert_eq!(is_sorted(&keys), keys.is_sorted());
            assert_eq!(sort_permutation(&keys), sort_permutation_plain(&keys), "{rows} rows, {bits} bits");
        }
    }

    #[test]
    fn disorder_is_seen_wherever_it_is() {
        for len in [2, 255, 256, 257, 258, 1000] {
            for at in 1..len {
                let mut keys: Vec<i64> = (0..len as i64).collect();
                keys[at] = -1;
                assert!(!is_sorted(&keys), "{at} of {len}");
            }
        }
    }
}
