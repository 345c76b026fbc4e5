//! Differences of neighbours, and their sums.

use crate::{Int, dispatch};

dispatch! {
    /// `values[i] − values[i − 1]` for every value but the first, with wrap-around.
    pub fn deltas(values: &[i64], out: &mut [i64]) {
        for (pair, out) in values.windows(2).zip(out) {
            *out = pair[1].wrapping_sub(pair[0]);
        }
    }
}

/// Turns differences into values: each becomes `first` plus all up to and with it.
#[inline]
pub fn sum_up<T: Int>(values: &mut [T], first: T) {
    let mut sum = first;
    for value in values {
        sum = sum.wrapping_plus(*value);
        *value = sum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_differences_are_the_values() {
        let mut rng = fastrand::Rng::with_seed(1);
        for len in 1..100 {
            let values: Vec<i64> = (0..len).map(|_| rng.i64(..) >> rng.u32(0..64)).collect();
            let mut out = vec![0; len - 1];
            deltas(&values, &mut out);
            for (i, delta) in out.iter().enumerate() {
                assert_eq!(*delta, values[i + 1].wrapping_sub(values[i]));
            }
            sum_up(&mut out, values[0]);
            assert_eq!(out, values[1..]);
        }
    }
}
