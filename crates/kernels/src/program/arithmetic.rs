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
    /// The next whole number below, or above, of floating point.
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

/// Integers of 64 bits, which go on at the other end; 0 of a division by zero.
pub fn calculate_ints(with: Arithmetic, a: Side<'_, i64>, b: Side<'_, i64>, out: &mut [i64]) {
    match with {
        Arithmetic::Plus | Arithmetic::Minus | Arithmetic::Times => combine_ints(with, a, b, out),
        Arithmetic::Over if is_short(a) && is_short(b) => divide_short(a, b, out),
        Arithmetic::Modulo if is_short(a) && is_short(b) => leave_short(a, b, out),
        Arithmetic::Over => zip(a, b, out, |a, b| if b == 0 { 0 } else { a.wrapping_div(b) }),
        Arithmetic::Modulo => zip(a, b, out, |a, b| if b == 0 { 0 } else { a.wrapping_rem(b) }),
    }
}

// Few loops a function, so that what they call is compiled along.
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
    /// The product is no greater than what is divided: doubles have all of these.
    fn leave_short(a: Side<'_, i64>, b: Side<'_, i64>, out: &mut [i64]) {
        zip(a, b, out, |a, b| whole(nearest(a) - quotient(a, b) * nearest(b)) & -i64::from(b != 0));
    }
}

/// Integers below have room in a double for what dividing them takes, and [`whole`] gives them back.
const SHORT: i64 = 1 << 50;

/// Whether all integers are shorter than 50 bits: processors divide doubles four times as fast.
fn is_short(of: Side<'_, i64>) -> bool {
    !any_outside(of, -SHORT, SHORT)
}

/// Rounded toward zero; 0 of a division by zero. The quotient of doubles is a whole number only where that of the
/// integers is: any other is further from one than rounding reaches.
#[inline(always)]
fn quotient(a: i64, b: i64) -> f64 {
    // Without a branch: zero is divided by one instead.
    let is_zero = i64::from(b == 0);
    (nearest(a & (is_zero - 1)) / nearest(b | is_zero)).trunc()
}

/// A whole double as an integer, which is short.
#[inline(always)]
fn whole(value: f64) -> i64 {
    // 2⁵² + 2⁵¹: the lower bits of what is added to it are those of the sum.
    const MAGIC: f64 = 6_755_399_441_055_744.0;
    ((value + MAGIC).to_bits().wrapping_sub(MAGIC.to_bits())).cast_signed()
}

dispatch! {
    /// Whether any row of a difference or a sum, whatever it is of, went on at the other end.
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
    /// Whether any value is outside of bounds.
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
