//! Computes differences of adjacent values, and their sums.

use crate::{Int, dispatch};
use std::mem::MaybeUninit;

dispatch! {
    /// Writes `values[i] − values[i − 1]` for every value but the first, with wrap-around.
    pub fn deltas(values: &[i64], out: &mut [i64]) {
        for (pair, out) in values.windows(2).zip(out) {
            *out = pair[1].wrapping_sub(pair[0]);
        }
    }
}

/// Replaces differences by values: each becomes `first` plus the sum of all differences up to and including it.
#[inline]
pub fn sum_up<T: Int>(values: &mut [T], first: T) {
    let mut sum = first;
    for value in values {
        sum = sum.wrapping_plus(*value);
        *value = sum;
    }
}

dispatch! {
    /// Writes `first`, `first + step` and so on.
    fn write_steps<T: Int>(first: T, step: T, out: &mut [MaybeUninit<T>]) {
        // Sixteen adjacent values at once; each iteration adds sixteen steps to all of them.
        const LANES: usize = 16;
        let mut lanes = [first; LANES];
        (1..LANES).for_each(|lane| lanes[lane] = lanes[lane - 1].wrapping_plus(step));
        let turn = lanes[LANES - 1].wrapping_plus(step).wrapping_minus(first);
        let (turns, rest) = out.as_chunks_mut::<LANES>();
        for out in turns {
            for lane in 0..LANES {
                out[lane].write(lanes[lane]);
                lanes[lane] = lanes[lane].wrapping_plus(turn);
            }
        }
        rest.iter_mut().zip(lanes).for_each(|(out, value)| _ = out.write(value));
    }
}

/// Appends `rows` values, each `step` greater than the previous value, beginning with `first`.
pub fn extend_steps<T: Int>(first: T, step: T, rows: usize, out: &mut Vec<T>) {
    out.reserve(rows);
    write_steps(first, step, &mut out.spare_capacity_mut()[..rows]);
    // SAFETY: `write_steps` has written each of the `rows` elements after the current end.
    unsafe { out.set_len(out.len() + rows) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_follow_each_other() {
        for rows in [0, 1, 15, 16, 17, 100] {
            let mut out = vec![5u32];
            extend_steps(u32::MAX - 20, 3, rows, &mut out);
            let expected = (0..rows as u32).map(|i| (u32::MAX - 20).wrapping_add(3 * i));
            assert!(out[1..].iter().copied().eq(expected) && out[0] == 5);
        }
    }

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
