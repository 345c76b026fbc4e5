//! Encodes floating point that was written as short decimals as integers (ALP with a single scale).
//!
//! Input: the values of a vector and a scale `s`. Output: integers `d` with value = `d / 10^s` (for negative `s`, `d ·
//! 10^-s`), rounded once, and the rows that no such `d` reproduces bit for bit: −0, NaN, infinities, numbers with more
//! digits.
//!
//! Published ALP multiplies by 10^f and then by an inexact 10^-e, so an encoder must search a pair (e, f) with few
//! misses. Division is exact instead: every decimal of up to 15 places whose digits fit 51 bits is reproduced, a single
//! scale is sufficient, and `d / 10^s` never decreases as `d` grows, so comparisons run on the integers. Division is
//! slow, so the fast path multiplies by 10^-s as a sum of two doubles, `fma(d, hi, d · lo)`, whose error before
//! rounding is below 2^-104 of the result. The quotient is either a double or at least `2^-54 · 10^-s` away from a
//! rounding boundary, and 10^15 < 2^50, so both paths round to the same double.

use crate::bitpack::{Line, Unpacker, VECTOR, Words, line_count, unpack_u16, unpack_u32, unpack_u64};
use std::mem::MaybeUninit;
use std::ops::RangeInclusive;

/// Range of the scales of a vector.
pub const SCALES: RangeInclusive<i8> = -15..=15;
/// Bound of the integers: `-INT_MAX..=INT_MAX`. Below the bound, adding [`MAGIC`] converts a double to its integer.
pub const INT_MAX: i64 = (1 << 51) - 1;

const POWERS: [f64; 16] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];
/// 2^52 + 2^51: the last bits of `MAGIC + d` are the bits of the integer `d`.
const MAGIC: f64 = 6_755_399_441_055_744.0;
const MAGIC_BITS: i64 = MAGIC.to_bits() as i64;

/// Floating-point type, `f64` or `f32`. `f32` is computed as `f64` and rounded at the end.
pub trait Decimal: Copy + sealed::Sealed {
    fn wide(self) -> f64;
    /// Rounds to the narrow type.
    fn narrow(wide: f64) -> Self;
    fn same_bits(self, other: Self) -> bool;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

impl Decimal for f64 {
    #[inline(always)]
    fn wide(self) -> f64 {
        self
    }
    #[inline(always)]
    fn narrow(wide: f64) -> f64 {
        wide
    }
    #[inline(always)]
    fn same_bits(self, other: f64) -> bool {
        self.to_bits() == other.to_bits()
    }
}

impl Decimal for f32 {
    #[inline(always)]
    fn wide(self) -> f64 {
        f64::from(self)
    }
    #[inline(always)]
    fn narrow(wide: f64) -> f32 {
        wide as f32
    }
    #[inline(always)]
    fn same_bits(self, other: f32) -> bool {
        self.to_bits() == other.to_bits()
    }
}

/// Returns the value of integer `d` at scale `scale`. This function defines the encoding.
#[inline]
#[must_use]
pub fn value<T: Decimal>(d: i64, scale: i8) -> T {
    let power = POWERS[usize::from(scale.unsigned_abs())];
    T::narrow(if scale >= 0 { d as f64 / power } else { d as f64 * power })
}

/// Unpacks the distances of a vector and appends `value(base + distance, scale)` for each. The value is unspecified if
/// a sum exceeds [`INT_MAX`].
///
/// # Panics
/// When the scale is not one of [`SCALES`], or as [`Unpacker::unpack`].
pub fn unpack<T: Decimal>(
    unpacker: &mut Unpacker,
    lines: &[Line],
    width: u32,
    (base, scale): (i64, i8),
    rows: usize,
    out: &mut Vec<T>,
) {
    assert!(SCALES.contains(&scale), "scale {scale}");
    assert!(rows <= VECTOR && width <= 64 && lines.len() >= line_count(width, rows), "{rows} rows of {width} bits");
    out.reserve(rows);
    unpack_any(unpacker.words(), lines, width, (base, scale), &mut out.spare_capacity_mut()[..rows]);
    // SAFETY: `unpack_any` has written each of the `rows` elements after the current end.
    unsafe { out.set_len(out.len() + rows) }
}

type UninitSlice<T> = [MaybeUninit<T>];

fn unpack_any<T: Decimal>(words: &mut Words, lines: &[Line], width: u32, of: (i64, i8), out: &mut UninitSlice<T>) {
    #[cfg(target_arch = "x86_64")]
    if has_fma() {
        // SAFETY: `has_fma` returned true, so the processor has the features.
        return unsafe { unpack_fma(words, lines, width, of, out) };
    }
    unpack_plain(words, lines, width, of, out);
}

fn unpack_plain<T: Decimal>(words: &mut Words, lines: &[Line], width: u32, of: (i64, i8), out: &mut UninitSlice<T>) {
    let rows = out.len();
    match width {
        0 => out.fill(MaybeUninit::new(value(of.0, of.1))),
        1..=16 => {
            unpack_u16(lines, width, rows, &mut words.u16s);
            values_plain(words.u16s.iter().map(|x| u64::from(*x)), of, out);
        }
        17..=32 => {
            unpack_u32(lines, width, rows, &mut words.u32s);
            values_plain(words.u32s.iter().map(|x| u64::from(*x)), of, out);
        }
        _ => {
            unpack_u64(lines, width, rows, &mut words.u64s);
            values_plain(words.u64s.iter().copied(), of, out);
        }
    }
}

fn values_plain<T: Decimal>(distances: impl Iterator<Item = u64>, (base, scale): (i64, i8), out: &mut UninitSlice<T>) {
    out.iter_mut().zip(distances).for_each(|(out, x)| _ = out.write(value(base.wrapping_add(x as i64), scale)));
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn has_fma() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn unpack_fma<T: Decimal>(words: &mut Words, lines: &[Line], width: u32, of: (i64, i8), out: &mut UninitSlice<T>) {
    let rows = out.len();
    match width {
        0 => out.fill(MaybeUninit::new(value(of.0, of.1))),
        1..=16 => {
            unpack_u16(lines, width, rows, &mut words.u16s);
            values_fma(words.u16s.iter().map(|x| u64::from(*x)), of, out);
        }
        17..=32 => {
            unpack_u32(lines, width, rows, &mut words.u32s);
            values_fma(words.u32s.iter().map(|x| u64::from(*x)), of, out);
        }
        _ => {
            unpack_u64(lines, width, rows, &mut words.u64s);
            values_fma(words.u64s.iter().copied(), of, out);
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2,fma")]
fn values_fma<T: Decimal>(distances: impl Iterator<Item = u64>, (base, scale): (i64, i8), out: &mut UninitSlice<T>) {
    let (hi, lo) = factor_fma(scale);
    let base = base.wrapping_add(MAGIC_BITS);
    for (out, x) in out.iter_mut().zip(distances) {
        let d = f64::from_bits(base.wrapping_add(x as i64) as u64) - MAGIC;
        out.write(T::narrow(d.mul_add(hi, d * lo)));
    }
}

/// Returns 10^-scale as a sum of two doubles, with a relative error of 2^-106.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn factor_fma(scale: i8) -> (f64, f64) {
    let power = POWERS[usize::from(scale.unsigned_abs())];
    if scale <= 0 {
        return (power, 0.0);
    }
    let hi = 1.0 / power;
    // The remainder of a division is always a double.
    (hi, (-hi).mul_add(power, 1.0) / power)
}

/// Marks a row without an integer in the output of [`integers`].
pub const MISS: i64 = i64::MIN;

/// Writes the integers of `values` at `scale` to `out`, and [`MISS`] for values that no integer reproduces.
///
/// Returns the smallest integer, the greatest integer and the number of misses. The smallest is greater than the
/// greatest if all values miss.
///
/// # Panics
/// When the scale is not one of [`SCALES`].
pub fn integers<T: Decimal>(values: &[T], scale: i8, out: &mut [i64]) -> (i64, i64, usize) {
    assert!(SCALES.contains(&scale), "scale {scale}");
    #[cfg(target_arch = "x86_64")]
    if has_fma() {
        // SAFETY: `has_fma` returned true, so the processor has the features.
        return unsafe { integers_fma(values, scale, out) };
    }
    integers_plain(values, scale, out)
}

fn integers_plain<T: Decimal>(values: &[T], scale: i8, out: &mut [i64]) -> (i64, i64, usize) {
    let (mut lo, mut hi, mut misses) = (i64::MAX, i64::MIN, 0);
    for (out, v) in out.iter_mut().zip(values) {
        *out = integer(*v, scale);
        if *out == MISS {
            misses += 1;
        } else {
            lo = lo.min(*out);
            hi = hi.max(*out);
        }
    }
    (lo, hi, misses)
}

/// Returns the integer that reproduces `v`, or [`MISS`] if there is none.
#[must_use]
pub fn integer<T: Decimal>(v: T, scale: i8) -> i64 {
    let power = POWERS[usize::from(scale.unsigned_abs())];
    let shifted = if scale >= 0 { v.wide() * power } else { v.wide() / power };
    let rounded = (shifted + MAGIC) - MAGIC;
    if rounded.is_nan() || rounded.abs() > INT_MAX as f64 {
        return MISS;
    }
    let d = rounded as i64;
    if value::<T>(d, scale).same_bits(v) { d } else { MISS }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn integers_fma<T: Decimal>(values: &[T], scale: i8, out: &mut [i64]) -> (i64, i64, usize) {
    let (hi, lo) = factor_fma(scale);
    // For the inverse factor an error in the last place is harmless: the check detects integers that are off by one.
    let up = if scale >= 0 { POWERS[scale as usize] } else { 1.0 / POWERS[usize::from(scale.unsigned_abs())] };
    let out = &mut out[..values.len()];
    for (out, v) in out.iter_mut().zip(values) {
        let moved = v.wide() * up + MAGIC;
        let d = moved - MAGIC;
        let back = T::narrow(d.mul_add(hi, d * lo));
        let is_exact = back.same_bits(*v) & (d.abs() <= INT_MAX as f64);
        *out = if is_exact { (moved.to_bits() as i64).wrapping_sub(MAGIC_BITS) } else { MISS };
    }
    // This loop is separate, because the compiler vectorizes neither part of a combined loop.
    let (mut least, mut most, mut misses) = (i64::MAX, i64::MIN, 0u64);
    for d in out {
        let is_miss = *d == MISS;
        let low = if is_miss { i64::MAX } else { *d };
        least = least.min(low);
        most = most.max(*d);
        misses += u64::from(is_miss);
    }
    (least, most, misses as usize)
}

/// Returns the smallest scale that reproduces `v`, with the integer, or `None` if no scale does.
#[must_use]
pub fn least_scale<T: Decimal>(v: T) -> Option<(i8, i64)> {
    let places = (0..=*SCALES.end()).find_map(|s| Some((s, integer(v, s))).filter(|(_, d)| *d != MISS))?;
    let (mut scale, mut d) = places;
    // Trailing zeros of a whole number would only take bits.
    while scale > *SCALES.start() && scale <= 0 && d % 10 == 0 && integer(v, scale - 1) != MISS {
        (scale, d) = (scale - 1, d / 10);
    }
    Some((scale, d))
}

/// Returns the first integer whose value is greater than `constant`, or equal to it if `or_equal` is true.
///
/// The condition holds for all integers from the returned one on. A NaN is greater than every number.
#[must_use]
pub fn first_from<T: Decimal>(constant: f64, or_equal: bool, scale: i8) -> i64 {
    let is_from = |d: i64| {
        let v = value::<T>(d, scale).wide();
        if or_equal { v >= constant } else { v > constant }
    };
    let (mut lo, mut hi) = (-INT_MAX, INT_MAX + 1);
    while lo < hi {
        let middle = lo + (hi - lo) / 2;
        if is_from(middle) { hi = middle } else { lo = middle + 1 }
    }
    lo
}

#[cfg(test)]
mod tests;
