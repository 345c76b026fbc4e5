//! The order of timestamps: a stable sort that moves row numbers, not rows.

/// Rows a permutation can name.
pub const ROWS_MAX: usize = u32::MAX as usize;

/// Whether no key is smaller than the one before it.
#[must_use]
pub fn is_sorted(keys: &[i64]) -> bool {
    // By chunks without an early exit inside, so that a chunk is compared in parallel lanes.
    let pairs = keys.len().saturating_sub(1);
    (0..pairs).step_by(256).all(|at| {
        let len = 256.min(pairs - at);
        let (a, b) = (&keys[at..at + len], &keys[at + 1..at + 1 + len]);
        a.iter().zip(b).fold(true, |sorted, (a, b)| sorted & (a <= b))
    })
}

/// The rows in order of their keys, equal keys in order of row: row `permutation[i]` of the input is row `i` of the
/// output.
///
/// # Panics
/// With more than [`ROWS_MAX`] keys.
#[must_use]
pub fn sort_permutation(keys: &[i64]) -> Vec<u32> {
    assert!(keys.len() <= ROWS_MAX, "{} rows to sort", keys.len());
    let Some((lo, hi)) = crate::min_max(keys) else { return Vec::new() };
    if is_sorted(keys) {
        return (0..keys.len() as u32).collect();
    }
    let step = Step::of(keys, lo);
    let key_bits = 64 - step.steps(hi.wrapping_sub(lo) as u64).leading_zeros();
    let row_bits = 64 - (keys.len() as u64 - 1).leading_zeros();
    let steps = |key: i64| step.steps(key.wrapping_sub(lo) as u64);
    if key_bits + row_bits <= 64 {
        sort_packed(keys, steps, key_bits, row_bits)
    } else {
        sort_pairs(keys, steps, key_bits)
    }
}

/// What all distances of keys are multiples of: of whole seconds in nanoseconds less than half of the bits are left, and
/// less than half of the passes.
#[derive(Clone, Copy)]
struct Step {
    /// Factors of two of it.
    twos: u32,
    /// What is left of it is odd; times its inverse modulo 2^64 an exact multiple becomes the quotient.
    inverse: u64,
}

/// Smaller steps save no pass.
const STEP_MIN: u64 = 1 << DIGIT_BITS;

impl Step {
    const ONE: Step = Step { twos: 0, inverse: 1 };

    fn of(keys: &[i64], lo: i64) -> Step {
        let distance = |key: &i64| key.wrapping_sub(lo) as u64;
        let (mut step, mut at) = (0, 0);
        // The first that is no multiple makes it smaller: that happens a few times, or it is soon too small.
        while let Some(other) = keys[at..].iter().position(|key| !is_multiple(distance(key), step)) {
            at += other;
            step = greatest_common_divisor(step, distance(&keys[at]));
            if step < STEP_MIN {
                return Step::ONE;
            }
        }
        if step == 0 { Step::ONE } else { Step::new(step) }
    }

    fn new(step: u64) -> Step {
        let twos = step.trailing_zeros();
        let odd = step >> twos;
        // Newton's iteration doubles the bits that are right, of which an odd number's square has three.
        let inverse = (0..5).fold(odd, |x, _| x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x))));
        Step { twos, inverse }
    }

    /// How many steps a distance is, which is a multiple.
    #[inline(always)]
    fn steps(self, distance: u64) -> u64 {
        (distance >> self.twos).wrapping_mul(self.inverse)
    }
}

fn is_multiple(distance: u64, step: u64) -> bool {
    if step == 0 { distance == 0 } else { distance.is_multiple_of(step) }
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// What defines [`sort_permutation`].
#[must_use]
pub fn sort_permutation_plain(keys: &[i64]) -> Vec<u32> {
    let mut rows: Vec<u32> = (0..keys.len() as u32).collect();
    rows.sort_by_key(|row| keys[*row as usize]);
    rows
}

/// Below this a comparison sort is faster than clearing counters.
const RADIX_ROWS_MIN: usize = 512;

/// Key and row fit one word: half of the memory traffic of pairs. 10 minutes of nanoseconds and 16 M rows do.
fn sort_packed(keys: &[i64], steps: impl Fn(i64) -> u64, key_bits: u32, row_bits: u32) -> Vec<u32> {
    let pack = |(row, key): (usize, &i64)| steps(*key) << row_bits | row as u64;
    let mut words: Vec<u64> = keys.iter().enumerate().map(pack).collect();
    if keys.len() < RADIX_ROWS_MIN {
        words.sort_unstable();
    } else {
        radix_sort(&mut words, row_bits, key_bits, |word| *word);
    }
    let row_mask = u64::MAX >> (64 - row_bits.max(1));
    words.iter().map(|word| (word & row_mask) as u32).collect()
}

fn sort_pairs(keys: &[i64], steps: impl Fn(i64) -> u64, key_bits: u32) -> Vec<u32> {
    let mut pairs: Vec<(u64, u32)> = keys.iter().enumerate().map(|(row, key)| (steps(*key), row as u32)).collect();
    if keys.len() < RADIX_ROWS_MIN {
        pairs.sort_unstable();
    } else {
        radix_sort(&mut pairs, 0, key_bits, |pair| pair.0);
    }
    pairs.iter().map(|pair| pair.1).collect()
}

/// Buckets of 11 bits: their counters and the lines being written stay in the first-level cache and nearly so.
const DIGIT_BITS: u32 = 11;
const BUCKETS: usize = 1 << DIGIT_BITS;

/// Stable, from the least significant digit of bits `from_bit..from_bit + bits` up; a digit that all share is skipped.
fn radix_sort<T: Copy + Default>(items: &mut Vec<T>, from_bit: u32, bits: u32, key: impl Fn(&T) -> u64) {
    let digits = bits.div_ceil(DIGIT_BITS);
    // As even as possible: 40 bits are four digits of 10, not three of 11 and one of 7.
    let digit_bits = bits.div_ceil(digits.max(1));
    let mask = (1u64 << digit_bits) - 1;
    let digit_of = |item: &T, digit: u32| (key(item) >> (from_bit + digit * digit_bits) & mask) as usize % BUCKETS;
    let mut counts = vec![[0u32; BUCKETS]; digits as usize];
    for item in items.iter() {
        for (digit, counts) in counts.iter_mut().enumerate() {
            counts[digit_of(item, digit as u32)] += 1;
        }
    }
    let mut other = vec![T::default(); items.len()];
    for (digit, counts) in counts.iter_mut().enumerate() {
        if counts.iter().any(|count| *count as usize == items.len()) {
            continue;
        }
        let mut sum = 0;
        counts.iter_mut().for_each(|count| sum += std::mem::replace(count, sum));
        for item in items.iter() {
            let at = &mut counts[digit_of(item, digit as u32)];
            other[*at as usize] = *item;
            *at += 1;
        }
        std::mem::swap(items, &mut other);
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
