//! Computes sums of slices.

use crate::{prefetch, prefetch_slice};

/// Words per cache line, and the distance of the prefetch in lines: four pages.
const LINE_WORDS: usize = 8;
const LINES_AHEAD: usize = 256;

/// Independent lanes: a single running sum would be limited by the latency of each step.
const LANES: usize = 16;

/// A type that widens to an integer of 64 bits.
pub trait Whole: Copy + Into<i64> {}
impl<T: Copy + Into<i64>> Whole for T {}

/// A type that widens to a double.
pub trait Real: Copy + Into<f64> {}
impl<T: Copy + Into<f64>> Real for T {}

crate::dispatch! {
/// Returns the sum of fewer than 2³¹ integers.
#[must_use]
pub fn sum_ints<T: Whole>(values: &[T]) -> i128 {
    if size_of::<T>() < size_of::<i64>() {
        return i128::from(values.iter().map(|value| (*value).into()).sum::<i64>());
    }
    // Sums of halves do not overflow.
    let (mut low, mut high) = ([0_i64; LINE_WORDS], [0_i64; LINE_WORDS]);
    let mut add = |lane: usize, value: T| {
        let value: i64 = value.into();
        low[lane] += value & i64::from(u32::MAX);
        high[lane] += value >> 32;
    };
    let (lines, rest) = values.as_chunks::<LINE_WORDS>();
    for (at, line) in lines.iter().enumerate() {
        // The hardware prefetcher does not cross a page.
        prefetch(lines, at + LINES_AHEAD);
        line.iter().enumerate().for_each(|(lane, value)| add(lane, *value));
    }
    rest.iter().for_each(|value| add(0, *value));
    (i128::from(high.into_iter().sum::<i64>()) << 32) + i128::from(low.into_iter().sum::<i64>())
}
}

crate::dispatch! {
/// Returns the sum of floating point; −0 for an empty slice or a slice of −0 only.
#[must_use]
pub fn sum_floats<T: Real>(values: &[T]) -> f64 {
    let mut lanes = [-0.0_f64; LANES];
    let (lines, rest) = values.as_chunks::<LANES>();
    for (at, line) in lines.iter().enumerate() {
        if let Some(ahead) = lines.get(at + LINES_AHEAD / 2) {
            prefetch_slice(ahead);
        }
        for lane in 0..LANES {
            lanes[lane] += line[lane].into();
        }
    }
    let rest = rest.iter().map(|value| (*value).into());
    lanes.into_iter().chain(rest).fold(-0.0, |sum, value| sum + value)
}
}

crate::dispatch! {
/// Returns the sum of `(a - mean_a) * (b - mean_b)` over the rows of two columns of equal length.
#[must_use]
pub fn sum_centered_products(a: &[f64], mean_a: f64, b: &[f64], mean_b: f64) -> f64 {
    let mut lanes = [0.0_f64; LANES];
    let (lines_a, rest_a) = a.as_chunks::<LANES>();
    let (lines_b, rest_b) = b.as_chunks::<LANES>();
    for (a, b) in lines_a.iter().zip(lines_b) {
        for lane in 0..LANES {
            lanes[lane] += (a[lane] - mean_a) * (b[lane] - mean_b);
        }
    }
    let rest = rest_a.iter().zip(rest_b).map(|(a, b)| (a - mean_a) * (b - mean_b));
    lanes.into_iter().chain(rest).sum()
}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_sum_up_exactly() {
        let mut random = fastrand::Rng::with_seed(1);
        for rows in [0, 1, 15, 1_000, 65_536] {
            let wide: Vec<i64> = (0..rows).map(|_| random.i64(..)).collect();
            assert_eq!(sum_ints(&wide), wide.iter().map(|v| i128::from(*v)).sum());
            let narrow: Vec<i16> = (0..rows).map(|_| random.i16(..)).collect();
            assert_eq!(sum_ints(&narrow), narrow.iter().map(|v| i128::from(*v)).sum());
        }
        assert_eq!(sum_ints(&[i64::MIN; 65_536]), i128::from(i64::MIN) * 65_536);
        assert_eq!(sum_ints(&[i64::MAX; 65_536]), i128::from(i64::MAX) * 65_536);
    }

    #[test]
    fn centered_products_of_all_lengths() {
        let mut random = fastrand::Rng::with_seed(3);
        for rows in [0, 1, 16, 17, 1_000] {
            let mut column = || (0..rows).map(|_| f64::from(random.i16(..))).collect::<Vec<f64>>();
            let (a, b) = (column(), column());
            let expected: f64 = a.iter().zip(&b).map(|(a, b)| (a - 2.0) * (b + 3.0)).sum();
            assert_eq!(sum_centered_products(&a, 2.0, &b, -3.0), expected);
        }
        assert!(sum_centered_products(&[f64::INFINITY], f64::INFINITY, &[1.0], 1.0).is_nan());
    }

    #[test]
    fn floats_sum_up_as_numbers_that_do_not_round() {
        let mut random = fastrand::Rng::with_seed(2);
        for rows in [1, 16, 17, 5_000] {
            let values: Vec<f64> = (0..rows).map(|_| f64::from(random.i32(..)) / 8.0).collect();
            assert_eq!(sum_floats(&values), values.iter().sum::<f64>());
        }
        assert!(sum_floats(&[1.0, f64::NAN, 2.0]).is_nan() && sum_floats(&[f64::INFINITY, f64::NEG_INFINITY]).is_nan());
        assert_eq!(sum_floats(&[f64::INFINITY, 1.0]), f64::INFINITY);
        for none in [&[][..], &[-0.0; 40]] {
            assert!(sum_floats::<f64>(none).is_sign_negative());
        }
        assert!(sum_floats(&[-0.0, 0.0]).is_sign_positive());
        assert_eq!(sum_floats(&[0.5_f32, 0.25]), 0.75);
    }
}
