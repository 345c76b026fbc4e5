//! Vectors calculated with, row by row.

use super::Side;
use crate::dispatch;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    Plus,
    Minus,
    Times,
    /// Of integers rounded toward zero.
    Over,
    /// What is left of a division, with the sign of what was divided.
    Modulo,
}

/// A number made of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Of integers at the other end where that is outside of 64 bits.
    Negated,
    /// Without its sign; the least integer stays.
    Magnitude,
    /// An integer whose lower bits count, with their sign.
    Wrapped(u32),
    /// Floating point as one of 32 bits has it.
    Single,
}

#[inline(always)]
fn zip<T: Copy>(a: Side<'_, T>, b: Side<'_, T>, out: &mut [T], of: impl Fn(T, T) -> T) {
    match (a, b) {
        (Side::Many(a), Side::Many(b)) => {
            for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
                *out = of(*a, *b);
            }
        }
        (Side::Many(a), Side::One(b)) => out.iter_mut().zip(a).for_each(|(out, a)| *out = of(*a, b)),
        (Side::One(a), Side::Many(b)) => out.iter_mut().zip(b).for_each(|(out, b)| *out = of(a, *b)),
        (Side::One(a), Side::One(b)) => out.fill(of(a, b)),
    }
}

#[inline(always)]
fn map<T: Copy, V: Copy>(a: Side<'_, T>, out: &mut [V], of: impl Fn(T) -> V) {
    match a {
        Side::Many(a) => out.iter_mut().zip(a).for_each(|(out, a)| *out = of(*a)),
        Side::One(a) => out.fill(of(a)),
    }
}

dispatch! {
    /// Integers of 64 bits, which go on at the other end; 0 of a division by zero.
    pub fn calculate_ints(with: Arithmetic, a: Side<'_, i64>, b: Side<'_, i64>, out: &mut [i64]) {
        match with {
            Arithmetic::Plus => zip(a, b, out, i64::wrapping_add),
            Arithmetic::Minus => zip(a, b, out, i64::wrapping_sub),
            Arithmetic::Times => zip(a, b, out, i64::wrapping_mul),
            Arithmetic::Over => zip(a, b, out, |a, b| if b == 0 { 0 } else { a.wrapping_div(b) }),
            Arithmetic::Modulo => zip(a, b, out, |a, b| if b == 0 { 0 } else { a.wrapping_rem(b) }),
        }
    }
}

dispatch! {
    pub fn calculate_floats(with: Arithmetic, a: Side<'_, f64>, b: Side<'_, f64>, out: &mut [f64]) {
        match with {
            Arithmetic::Plus => zip(a, b, out, |a, b| a + b),
            Arithmetic::Minus => zip(a, b, out, |a, b| a - b),
            Arithmetic::Times => zip(a, b, out, |a, b| a * b),
            Arithmetic::Over => zip(a, b, out, |a, b| a / b),
            Arithmetic::Modulo => zip(a, b, out, |a, b| a % b),
        }
    }
}

dispatch! {
    pub fn change_ints(change: Change, a: Side<'_, i64>, out: &mut [i64]) {
        match change {
            Change::Negated => map(a, out, i64::wrapping_neg),
            Change::Magnitude => map(a, out, i64::wrapping_abs),
            Change::Wrapped(8) => map(a, out, |a| i64::from(a as i8)),
            Change::Wrapped(16) => map(a, out, |a| i64::from(a as i16)),
            Change::Wrapped(32) => map(a, out, |a| i64::from(a as i32)),
            Change::Wrapped(_) | Change::Single => map(a, out, |a| a),
        }
    }
}

dispatch! {
    pub fn change_floats(change: Change, a: Side<'_, f64>, out: &mut [f64]) {
        match change {
            Change::Negated => map(a, out, |a| -a),
            Change::Magnitude => map(a, out, f64::abs),
            Change::Single => map(a, out, |a| f64::from(a as f32)),
            Change::Wrapped(_) => map(a, out, |a| a),
        }
    }
}

dispatch! {
    /// The nearest double of each integer.
    pub fn floats_of_ints(a: Side<'_, i64>, out: &mut [f64]) {
        map(a, out, nearest);
    }
}

/// `value as f64` out of operations that take several lanes before AVX-512 has one for it: the halves as doubles, each
/// exactly, of which the last addition alone rounds.
#[inline(always)]
fn nearest(value: i64) -> f64 {
    const LOW: u64 = 0x4330_0000_0000_0000;
    const HIGH: u64 = 0x4530_0000_8000_0000;
    // 2⁸⁴ + 2⁶³ + 2⁵²: what the upper half has too much, and the lower.
    const TOO_MUCH: f64 = f64::from_bits(0x4530_0000_8010_0000);
    let bits = value.cast_unsigned();
    let high = f64::from_bits((bits >> 32) ^ HIGH) - TOO_MUCH;
    high + f64::from_bits((bits & u64::from(u32::MAX)) | LOW)
}
