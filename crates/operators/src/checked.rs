//! `+`, `-` and `*` of integers over slices with overflow detection.
//!
//! Overflow is detected for the whole slice in vectorized loops; only if there is one, the rows are searched for it.

use crate::group::magnitude;
use arrow::buffer::NullBuffer;
use arrow::datatypes::ArrowNativeType;
use std::borrow::Cow;
use tidalite_kernels::dispatch;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    Plus,
    Minus,
    Times,
}

/// An operand: a value for each row, or one value for all rows.
#[derive(Clone, Copy, Debug)]
pub enum Side<'a, N> {
    Many(&'a [N]),
    One(N),
}

/// An integer type with overflow-checked arithmetic.
pub trait Integer: ArrowNativeType {
    /// Computes the results of `rows` rows. Values under a NULL are undefined.
    ///
    /// # Errors
    /// Returns the operands of the first row that is not NULL and overflows.
    fn calculated(
        sign: Sign,
        a: Side<'_, Self>,
        b: Side<'_, Self>,
        rows: usize,
        nulls: Option<&NullBuffer>,
    ) -> Result<Vec<Self>, Outside<Self>>;
}

/// The operands of a row whose result overflows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outside<N>(pub N, pub N);

/// Arithmetic without branches: the result, and a negative number if it overflows.
trait Wrapping: Copy {
    fn plus(self, other: Self) -> (Self, Self);
    fn minus(self, other: Self) -> (Self, Self);
    fn times(self, other: Self) -> (Self, Self);
    /// Returns the product without a check.
    fn wrapping_times(self, other: Self) -> Self;
    /// Returns true if a look at the operands shows that no product overflows.
    fn products_fit(a: Side<'_, Self>, b: Side<'_, Self>) -> bool;
    fn or(self, other: Self) -> Self;
    fn is_negative(self) -> bool;
    const ZERO: Self;
}

macro_rules! wrapping {
    ($type:ty, $times:expr, $products_fit:expr) => {
        impl Wrapping for $type {
            #[inline(always)]
            fn plus(self, other: Self) -> (Self, Self) {
                let sum = self.wrapping_add(other);
                // The sum overflows if both operands have the other sign.
                (sum, (self ^ sum) & (other ^ sum))
            }

            #[inline(always)]
            fn minus(self, other: Self) -> (Self, Self) {
                let difference = self.wrapping_sub(other);
                (difference, (self ^ other) & (self ^ difference))
            }

            #[inline(always)]
            fn times(self, other: Self) -> (Self, Self) {
                ($times)(self, other)
            }

            #[inline(always)]
            fn wrapping_times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }

            fn products_fit(a: Side<'_, Self>, b: Side<'_, Self>) -> bool {
                ($products_fit)(a, b)
            }

            #[inline(always)]
            fn or(self, other: Self) -> Self {
                self | other
            }

            #[inline(always)]
            fn is_negative(self) -> bool {
                self < 0
            }

            const ZERO: Self = 0;
        }
    };
}

macro_rules! narrow {
    ($($type:ty),*) => {$(
        wrapping!($type, |a: $type, b: $type| {
            let product = i64::from(a) * i64::from(b);
            let kept = product as $type;
            (kept, -<$type>::from(i64::from(kept) != product))
        }, |_, _| false);
    )*};
}

narrow!(i8, i16, i32);
wrapping!(
    i64,
    |a: i64, b: i64| {
        let (product, is_over) = a.overflowing_mul(b);
        (product, -i64::from(is_over))
    },
    // Vector instructions do not detect the overflow of a product of 64 bits.
    |a: Side<'_, i64>, b: Side<'_, i64>| u128::from(bound(a)) * u128::from(bound(b)) <= i64::MAX as u128
);

/// Returns an upper bound of the magnitudes of an operand.
fn bound(side: Side<'_, i64>) -> u64 {
    match side {
        Side::Many(values) => magnitude(values),
        Side::One(value) => magnitude(&[value]),
    }
}

// One function for each type, not one generic function: a generic one is compiled in the crate that calls it, which is
// built with fewer optimizations.
macro_rules! integers {
    ($($type:ty),*) => {$(
        impl Integer for $type {
            fn calculated(
                sign: Sign,
                a: Side<'_, $type>,
                b: Side<'_, $type>,
                rows: usize,
                nulls: Option<&NullBuffer>,
            ) -> Result<Vec<$type>, Outside<$type>> {
                if sign == Sign::Times && <$type>::products_fit(a, b) {
                    return Ok(products(a, b, rows));
                }
                let (out, is_over) = folded(sign, a, b, rows);
                if is_over {
                    without_overflow(sign, a, b, rows, nulls)?;
                }
                Ok(out)
            }
        }
    )*};
}

integers!(i8, i16, i32, i64);

dispatch! {
    /// Computes all rows, and whether any of them overflows.
    fn folded<N: Wrapping>(sign: Sign, a: Side<'_, N>, b: Side<'_, N>, rows: usize) -> (Vec<N>, bool) {
        match sign {
            Sign::Plus => each(a, b, rows, N::plus),
            Sign::Minus => each(a, b, rows, N::minus),
            Sign::Times => each(a, b, rows, N::times),
        }
    }
}

dispatch! {
    fn products<N: Wrapping>(a: Side<'_, N>, b: Side<'_, N>, rows: usize) -> Vec<N> {
        each(a, b, rows, |a, b| (a.wrapping_times(b), N::ZERO)).0
    }
}

#[inline(always)]
fn each<N: Wrapping>(a: Side<'_, N>, b: Side<'_, N>, rows: usize, step: impl Fn(N, N) -> (N, N)) -> (Vec<N>, bool) {
    let mut over = N::ZERO;
    let mut step = |a: N, b: N| {
        let (value, own) = step(a, b);
        over = over.or(own);
        value
    };
    let out = match (a, b) {
        (Side::Many(a), Side::Many(b)) => a.iter().zip(b).map(|(a, b)| step(*a, *b)).collect(),
        (Side::Many(a), Side::One(b)) => a.iter().map(|a| step(*a, b)).collect(),
        (Side::One(a), Side::Many(b)) => b.iter().map(|b| step(a, *b)).collect(),
        (Side::One(a), Side::One(b)) => vec![step(a, b); rows],
    };
    (out, over.is_negative())
}

/// Returns the operands of the first row that is not NULL and overflows as an error.
fn without_overflow<N: Wrapping>(
    sign: Sign,
    a: Side<'_, N>,
    b: Side<'_, N>,
    rows: usize,
    nulls: Option<&NullBuffer>,
) -> Result<(), Outside<N>> {
    let (a, b) = (values(a, rows), values(b, rows));
    let is_valid = |row: &usize| nulls.is_none_or(|nulls| nulls.is_valid(*row));
    let step = match sign {
        Sign::Plus => N::plus,
        Sign::Minus => N::minus,
        Sign::Times => N::times,
    };
    let overflows = |row: &usize| step(a[*row], b[*row]).1.is_negative();
    match (0..rows).filter(is_valid).find(overflows) {
        Some(row) => Err(Outside(a[row], b[row])),
        None => Ok(()),
    }
}

fn values<N: Copy>(side: Side<'_, N>, rows: usize) -> Cow<'_, [N]> {
    match side {
        Side::Many(values) => Cow::Borrowed(values),
        Side::One(value) => Cow::Owned(vec![value; rows]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_row_outside_is_named() {
        let values = [1, i64::MAX, i64::MAX];
        let found = i64::calculated(Sign::Plus, Side::Many(&values), Side::One(1), 3, None);
        assert_eq!(found, Err(Outside(i64::MAX, 1)));
        let nulls = NullBuffer::from(vec![true, false, false]);
        let found = i64::calculated(Sign::Plus, Side::Many(&values), Side::One(1), 3, Some(&nulls)).map(|out| out[0]);
        assert_eq!(found, Ok(2));
        assert_eq!(
            i32::calculated(Sign::Times, Side::One(46_341), Side::Many(&[2, 3]), 2, None),
            Ok(vec![92_682, 139_023])
        );
        assert!(i8::calculated(Sign::Minus, Side::One(-128), Side::One(1), 1, None).is_err());
    }

    /// Compares with the arithmetic of the standard library, for every pair of edge values of every type.
    #[test]
    fn edges_of_all_types_are_exact() {
        macro_rules! compare {
            ($($type:ty),*) => {$({
                let edges = [<$type>::MIN, <$type>::MIN + 1, -2, -1, 0, 1, 2, 11, <$type>::MAX / 2, <$type>::MAX - 1, <$type>::MAX];
                let signs: [(Sign, fn($type, $type) -> Option<$type>); 3] = [
                    (Sign::Plus, <$type>::checked_add),
                    (Sign::Minus, <$type>::checked_sub),
                    (Sign::Times, <$type>::checked_mul),
                ];
                for (a, b) in edges.iter().flat_map(|a| edges.iter().map(move |b| (*a, *b))) {
                    for (sign, expected) in signs {
                        let expected = expected(a, b).map(|value| vec![value; 3]).ok_or(Outside(a, b));
                        let (many_a, many_b) = ([a; 3], [b; 3]);
                        for (a, b) in [
                            (Side::Many(&many_a[..]), Side::Many(&many_b[..])),
                            (Side::Many(&many_a[..]), Side::One(b)),
                            (Side::One(a), Side::Many(&many_b[..])),
                            (Side::One(a), Side::One(b)),
                        ] {
                            assert_eq!(<$type>::calculated(sign, a, b, 3, None), expected, "{sign:?} {a:?} {b:?}");
                        }
                    }
                }
            })*};
        }
        compare!(i8, i16, i32, i64);
    }
}
