//! `+`, `-` and `*` of integers over slices with overflow detection.

use arrow::buffer::NullBuffer;
use arrow::datatypes::ArrowNativeType;
use std::borrow::Cow;

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
                match sign {
                    Sign::Plus => calculated(a, b, rows, nulls, |a, b| a.overflowing_add(b)),
                    Sign::Minus => calculated(a, b, rows, nulls, |a, b| a.overflowing_sub(b)),
                    Sign::Times => calculated(a, b, rows, nulls, |a, b| a.overflowing_mul(b)),
                }
            }
        }
    )*};
}

integers!(i8, i16, i32, i64);

#[inline(always)]
fn calculated<N: Copy>(
    a: Side<'_, N>,
    b: Side<'_, N>,
    rows: usize,
    nulls: Option<&NullBuffer>,
    step: impl Fn(N, N) -> (N, bool) + Copy,
) -> Result<Vec<N>, Outside<N>> {
    let (out, is_over) = folded(a, b, rows, step);
    if is_over {
        let (a, b) = (values(a, rows), values(b, rows));
        let is_there = |row: &usize| nulls.is_none_or(|nulls| nulls.is_valid(*row));
        let over = (0..rows).filter(is_there).find(|row| step(a[*row], b[*row]).1);
        if let Some(row) = over {
            return Err(Outside(a[row], b[row]));
        }
    }
    Ok(out)
}

fn values<N: Copy>(side: Side<'_, N>, rows: usize) -> Cow<'_, [N]> {
    match side {
        Side::Many(values) => Cow::Borrowed(values),
        Side::One(value) => Cow::Owned(vec![value; rows]),
    }
}

#[inline(always)]
fn folded<N: Copy>(a: Side<'_, N>, b: Side<'_, N>, rows: usize, step: impl Fn(N, N) -> (N, bool)) -> (Vec<N>, bool) {
    let mut is_over = false;
    let mut step = |a: N, b: N| {
        let (value, own) = step(a, b);
        is_over |= own;
        value
    };
    let out = match (a, b) {
        (Side::Many(a), Side::Many(b)) => a.iter().zip(b).map(|(a, b)| step(*a, *b)).collect(),
        (Side::Many(a), Side::One(b)) => a.iter().map(|a| step(*a, b)).collect(),
        (Side::One(a), Side::Many(b)) => b.iter().map(|b| step(a, *b)).collect(),
        (Side::One(a), Side::One(b)) => vec![step(a, b); rows],
    };
    (out, is_over)
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
}
