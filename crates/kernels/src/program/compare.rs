//! Compares two spans of numbers row by row; the result has one bit per row.
//!
//! Floating point is compared as in PostgreSQL: NaN equals NaN and is greater than every number, −0 equals 0.

use super::span::{SPAN, Side, Span};
use crate::dispatch;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

impl Comparison {
    /// Returns the comparison that is true if this one is false.
    #[must_use]
    pub fn opposite(self) -> Comparison {
        match self {
            Comparison::Equal => Comparison::NotEqual,
            Comparison::NotEqual => Comparison::Equal,
            Comparison::Less => Comparison::AtLeast,
            Comparison::AtMost => Comparison::Greater,
            Comparison::Greater => Comparison::AtMost,
            Comparison::AtLeast => Comparison::Less,
        }
    }

    /// Compares integers.
    #[inline(always)]
    fn of_ints(self, a: Side<'_, i64>, b: Side<'_, i64>, rows: usize, mask: &mut Span) {
        match self {
            Comparison::Equal => masked(a, b, rows, mask, |a, b| a == b),
            Comparison::NotEqual => masked(a, b, rows, mask, |a, b| a != b),
            Comparison::Less => masked(a, b, rows, mask, |a, b| a < b),
            Comparison::AtMost => masked(a, b, rows, mask, |a, b| a <= b),
            Comparison::Greater => masked(a, b, rows, mask, |a, b| a > b),
            Comparison::AtLeast => masked(a, b, rows, mask, |a, b| a >= b),
        }
    }

    #[inline(always)]
    fn of_floats(self, a: Side<'_, f64>, b: Side<'_, f64>, rows: usize, mask: &mut Span) {
        match (self, a, b) {
            // If one side is a number, the result for a NaN on the other side is known.
            (_, a, Side::One(c)) if !c.is_nan() => self.with_number(a, c, rows, mask),
            (_, Side::One(c), b) if !c.is_nan() => self.swapped().with_number(b, c, rows, mask),
            (Comparison::Equal, ..) => masked(a, b, rows, mask, equal),
            (Comparison::NotEqual, ..) => masked(a, b, rows, mask, |a, b| !equal(a, b)),
            (Comparison::Less, ..) => masked(a, b, rows, mask, less),
            (Comparison::AtMost, ..) => masked(a, b, rows, mask, at_most),
            (Comparison::Greater, ..) => masked(b, a, rows, mask, less),
            (Comparison::AtLeast, ..) => masked(b, a, rows, mask, at_most),
        }
    }

    /// Compares with a constant that is not NaN.
    #[inline(always)]
    fn with_number(self, a: Side<'_, f64>, number: f64, rows: usize, mask: &mut Span) {
        let b = Side::One(number);
        match self {
            Comparison::Equal => masked(a, b, rows, mask, |a, b| a == b),
            Comparison::NotEqual => masked(a, b, rows, mask, |a, b| a != b),
            Comparison::Less => masked(a, b, rows, mask, |a, b| a < b),
            Comparison::AtMost => masked(a, b, rows, mask, |a, b| a <= b),
            Comparison::Greater => masked(a, b, rows, mask, |a, b| !a.le(&b)),
            Comparison::AtLeast => masked(a, b, rows, mask, |a, b| !a.lt(&b)),
        }
    }

    /// Returns the equivalent comparison with exchanged sides.
    #[must_use]
    pub fn swapped(self) -> Comparison {
        match self {
            Comparison::Less => Comparison::Greater,
            Comparison::AtMost => Comparison::AtLeast,
            Comparison::Greater => Comparison::Less,
            Comparison::AtLeast => Comparison::AtMost,
            same => same,
        }
    }
}

#[inline(always)]
fn equal(a: f64, b: f64) -> bool {
    a == b || (a.is_nan() & b.is_nan())
}

#[inline(always)]
fn less(a: f64, b: f64) -> bool {
    !a.ge(&b) & !a.is_nan()
}

#[inline(always)]
fn at_most(a: f64, b: f64) -> bool {
    a.le(&b) | b.is_nan()
}

#[inline(always)]
fn masked<T: Copy + Default>(
    a: Side<'_, T>,
    b: Side<'_, T>,
    rows: usize,
    mask: &mut Span,
    test: impl Fn(T, T) -> bool + Copy,
) {
    match (a, b) {
        (Side::Many(a), Side::Many(b)) => {
            for (word, (a, b)) in mask.iter_mut().zip(a[..rows].chunks(64).zip(b[..rows].chunks(64))) {
                let (mut a_room, mut b_room) = ([T::default(); 64], [T::default(); 64]);
                let (a, b) = (whole(a, &mut a_room), whole(b, &mut b_room));
                *word = bits(|i| test(a[i], b[i]));
            }
        }
        (Side::Many(a), Side::One(b)) => {
            for (word, a) in mask.iter_mut().zip(a[..rows].chunks(64)) {
                let mut room = [T::default(); 64];
                let a = whole(a, &mut room);
                *word = bits(|i| test(a[i], b));
            }
        }
        (Side::One(a), Side::Many(b)) => {
            for (word, b) in mask.iter_mut().zip(b[..rows].chunks(64)) {
                let mut room = [T::default(); 64];
                let b = whole(b, &mut room);
                *word = bits(|i| test(a, b[i]));
            }
        }
        (Side::One(a), Side::One(b)) => mask.fill(if test(a, b) { u64::MAX } else { 0 }),
    }
    clear_behind(mask, rows);
}

/// Clears the bits from row `rows` on.
#[inline(always)]
pub(super) fn clear_behind(mask: &mut Span, rows: usize) {
    for (i, word) in mask.iter_mut().enumerate() {
        match rows.saturating_sub(i * 64) {
            0 => *word = 0,
            left @ 1..64 => *word &= u64::MAX >> (64 - left),
            _ => {}
        }
    }
}

/// Returns 64 values; a shorter slice is copied to `room`, whose other values are unspecified.
#[inline(always)]
fn whole<'a, T: Copy>(values: &'a [T], room: &'a mut [T; 64]) -> &'a [T; 64] {
    match values.as_array::<64>() {
        Some(values) => values,
        None => {
            room[..values.len()].copy_from_slice(values);
            room
        }
    }
}

/// Returns a bit per result of `test`, the first in the lowest bit. Each bit is set at its own position, so that lanes
/// need not be combined.
#[inline(always)]
fn bits(test: impl Fn(usize) -> bool) -> u64 {
    let mut word = 0;
    for i in 0..64 {
        word |= if test(i) { 1 << i } else { 0 };
    }
    word
}

dispatch! {
    /// Returns the rows for which the comparison is true. Bits after the last row are clear.
    #[must_use]
    pub fn compare_ints(comparison: Comparison, a: Side<'_, i64>, b: Side<'_, i64>, rows: usize) -> Span {
        let mut mask = [0; SPAN / 64];
        comparison.of_ints(a, b, rows, &mut mask);
        mask
    }
}

dispatch! {
    /// Compares floating point like [`compare_ints`].
    #[must_use]
    pub fn compare_floats(comparison: Comparison, a: Side<'_, f64>, b: Side<'_, f64>, rows: usize) -> Span {
        let mut mask = [0; SPAN / 64];
        comparison.of_floats(a, b, rows, &mut mask);
        mask
    }
}
