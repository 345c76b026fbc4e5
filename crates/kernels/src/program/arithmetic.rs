//! Arithmetic on vectors, row by row.

use super::span::Side;
use crate::dispatch;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    Plus,
    Minus,
    Times,
    /// Division. The quotient of integers is truncated toward zero.
    Over,
    /// Remainder, with the sign of the dividend.
    Modulo,
}

/// A unary calculation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Negation. Integers wrap around at 64 bits.
    Negated,
    /// Absolute value. The smallest integer is unchanged.
    Magnitude,
    /// The sign-extended lower bits of an integer.
    Wrapped(u32),
    /// Rounding to a double that `f32` can represent.
    Single,
    /// The next whole number below or above a floating-point number.
    Floor,
    Ceiling,
}

#[inline(always)]
fn zip<T: Copy>(a: Side<'_, T>, b: Side<'_, T>, out: &mut [T], of: impl Fn(T, T) -> T) {
    let rows = out.len();
    match (a, b) {
        (Side::Many(a), Side::Many(b)) => {
            let (a, b) = (&a[..rows], &b[..rows]);
            for row in 0..rows {
                out[row] = of(a[row], b[row]);
            }
        }
        (Side::Many(a), Side::One(b)) => {
            let a = &a[..rows];
            for row in 0..rows {
                out[row] = of(a[row], b);
            }
        }
        (Side::One(a), Side::Many(b)) => {
            let b = &b[..rows];
            for row in 0..rows {
                out[row] = of(a, b[row]);
            }
        }
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

/// Computes with integers of 64 bits, which wrap around. A division by zero gives 0.
pub fn calculate_ints(with: Arithmetic, a: Side<'_, i64>, b: Side<'_, i64>, out: &mut [i64]) {
    match with {
        Arithmetic::Plus | Arithmetic::Minus | Arithmetic::Times => combine_ints(with, a, b, out),
        Arithmetic::Over if is_short(a) && is_short(b) => divide_short(a, b, out),
        Arithmetic::Modulo if is_short(a) && is_short(b) => leave_short(a, b, out),
        Arithmetic::Over => zip(a, b, out, |a, b| if b == 0 { 0 } else { a.wrapping_div(b) }),
        Arithmetic::Modulo => zip(a, b, out, |a, b| if b == 0 { 0 } else { a.wrapping_rem(b) }),
    }
}

// Few loops per function, so that the called functions are inlined and compiled for the same instruction set.
dispatch! {
    fn combine_ints(with: Arithmetic, a: Side<'_, i64>, b: Side<'_, i64>, out: &mut [i64]) {
        match with {
            Arithmetic::Plus => zip(a, b, out, |a, b| a.wrapping_add(b)),
            Arithmetic::Minus => zip(a, b, out, |a, b| a.wrapping_sub(b)),
            _ => zip(a, b, out, |a, b| a.wrapping_mul(b)),
        }
    }
}

dispatch! {
    fn divide_short(a: Side<'_, i64>, b: Side<'_, i64>, out: &mut [i64]) {
        zip(a, b, out, |a, b| whole(quotient(a, b)));
    }
}

dispatch! {
    /// The product is not greater than the dividend, so a double represents it exactly.
    fn leave_short(a: Side<'_, i64>, b: Side<'_, i64>, out: &mut [i64]) {
        zip(a, b, out, |a, b| whole(nearest(a) - quotient(a, b) * nearest(b)) & -i64::from(b != 0));
    }
}

/// A double represents smaller integers and their quotients exactly enough for [`whole`] to return the integer.
const SHORT: i64 = 1 << 50;

/// Returns true if all integers are shorter than 50 bits: processors divide doubles four times as fast.
fn is_short(of: Side<'_, i64>) -> bool {
    !any_outside(of, -SHORT, SHORT)
}

/// Returns the quotient truncated toward zero; 0 for a division by zero.
///
/// The quotient of doubles is a whole number only if the quotient of the integers is one: any other quotient differs
/// from a whole number by more than the rounding error.
#[inline(always)]
fn quotient(a: i64, b: i64) -> f64 {
    // Branch-free: a zero divisor is replaced by one.
    let is_zero = i64::from(b == 0);
    (nearest(a & (is_zero - 1)) / nearest(b | is_zero)).trunc()
}

/// Converts a whole double to an integer of less than 51 bits.
#[inline(always)]
fn whole(value: f64) -> i64 {
    // 2⁵² + 2⁵¹: the lower bits of a number added to it are the lower bits of the sum.
    const MAGIC: f64 = 6_755_399_441_055_744.0;
    ((value + MAGIC).to_bits().wrapping_sub(MAGIC.to_bits())).cast_signed()
}

dispatch! {
    /// Returns true if any row of a sum or a difference wrapped around.
    #[must_use]
    pub fn any_over_end(is_sum: bool, a: Side<'_, i64>, b: Side<'_, i64>, out: &[i64]) -> bool {
        let rows = out.len();
        let mut signs = 0;
        let both = |a: i64, b: i64, out: i64| {
            let (of, other) = if is_sum { (a ^ out, b ^ out) } else { (a ^ b, a ^ out) };
            of & other
        };
        match (a, b) {
            (Side::Many(a), Side::Many(b)) => {
                let (a, b) = (&a[..rows], &b[..rows]);
                for row in 0..rows {
                    signs |= both(a[row], b[row], out[row]);
                }
            }
            (Side::Many(a), Side::One(b)) => a.iter().zip(out).for_each(|(a, out)| signs |= both(*a, b, *out)),
            (Side::One(a), Side::Many(b)) => b.iter().zip(out).for_each(|(b, out)| signs |= both(a, *b, *out)),
            (Side::One(a), Side::One(b)) => out.iter().for_each(|out| signs |= both(a, b, *out)),
        }
        signs < 0
    }
}

dispatch! {
    /// Returns true if any value is outside of `least..=most`.
    #[must_use]
    pub fn any_outside(values: Side<'_, i64>, least: i64, most: i64) -> bool {
        let is_outside = |v: i64| (v < least) | (v > most);
        match values {
            Side::Many(values) => values.iter().fold(false, |any, v| any | is_outside(*v)),
            Side::One(value) => is_outside(value),
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
            Change::Wrapped(_) | Change::Single | Change::Floor | Change::Ceiling => map(a, out, |a| a),
        }
    }
}

dispatch! {
    pub fn change_floats(change: Change, a: Side<'_, f64>, out: &mut [f64]) {
        match change {
            Change::Negated => map(a, out, |a| -a),
            Change::Magnitude => map(a, out, f64::abs),
            Change::Single => map(a, out, |a| f64::from(a as f32)),
            Change::Floor => map(a, out, f64::floor),
            Change::Ceiling => map(a, out, f64::ceil),
            Change::Wrapped(_) => map(a, out, |a| a),
        }
    }
}

dispatch! {
    /// Writes the nearest double of each integer.
    pub fn floats_of_ints(a: Side<'_, i64>, out: &mut [f64]) {
        map(a, out, nearest);
    }
}

/// Returns `value as f64`, computed with operations that are vectorized without AVX-512.
///
/// Both halves are converted to doubles exactly; only the final addition rounds.
#[inline(always)]
fn nearest(value: i64) -> f64 {
    const LOW: u64 = 0x4330_0000_0000_0000;
    const HIGH: u64 = 0x4530_0000_8000_0000;
    // 2⁸⁴ + 2⁶³ + 2⁵²: the excess of the upper half and of the lower half.
    const TOO_MUCH: f64 = f64::from_bits(0x4530_0000_8010_0000);
    let bits = value.cast_unsigned();
    let high = f64::from_bits((bits >> 32) ^ HIGH) - TOO_MUCH;
    high + f64::from_bits((bits & u64::from(u32::MAX)) | LOW)
}
