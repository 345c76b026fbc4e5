//! Computes how many bits the distances of a vector need.

use crate::{Int, dispatch};

/// Number of distances that need each number of bits, 0 to 64.
pub type WidthCounts = [u32; 65];

dispatch! {
    /// Counts the bits of the distances of `values` from `reference`.
    #[must_use]
    pub fn width_counts<T: Int>(values: &[T], reference: T) -> WidthCounts {
        // Four rows of counters: adjacent values mostly need the same width, and increments of one counter would wait
        // for each other.
        let mut counts = [[0u32; 65]; 4];
        let (fours, rest) = values.as_chunks::<4>();
        for four in fours {
            for (value, counts) in four.iter().zip(&mut counts) {
                counts[64 - value.distance(reference).leading_zeros() as usize] += 1;
            }
        }
        for value in rest {
            counts[0][64 - value.distance(reference).leading_zeros() as usize] += 1;
        }
        let mut sums = [0; 65];
        counts.iter().for_each(|counts| sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count));
        sums
    }
}

dispatch! {
    /// Returns the number of bits that hold every distance of `values` from `reference`.
    #[must_use]
    pub fn width_of<T: Int>(values: &[T], reference: T) -> u32 {
        let bits = values.iter().fold(0, |bits, value| bits | value.distance(reference));
        64 - bits.leading_zeros()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_distance_is_counted_at_its_width() {
        let mut rng = fastrand::Rng::with_seed(1);
        for len in 0..70 {
            let values: Vec<i64> = (0..len).map(|_| rng.i64(..) >> rng.u32(0..64)).collect();
            let reference = values.iter().copied().min().unwrap_or(0);
            let counts = width_counts(&values, reference);
            assert_eq!(counts.iter().sum::<u32>(), len);
            let greatest = counts.iter().rposition(|c| *c > 0).unwrap_or(0);
            assert_eq!(width_of(&values, reference) as usize, greatest);
            for (width, count) in counts.iter().enumerate() {
                let fits = |v: &i64| (*v as i128 - reference as i128) >> width == 0;
                let fitting = values.iter().filter(|v| fits(v)).count();
                assert_eq!(fitting, counts[..=width].iter().sum::<u32>() as usize, "{count}");
            }
        }
    }
}
