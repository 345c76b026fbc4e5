//! Selects the rows of a packed vector between two bounds without decoding them.
//!
//! Every comparison with a constant is such a range or its complement. The caller converts its constant to distances.

use crate::bitpack::{Line, Unpacker, VECTOR, line_count, unpack_u16, unpack_u32, unpack_u64, width_mask, word_bits};
use crate::{Int, dispatch};

/// One bit per row of a vector, least significant first.
pub type Mask = [u64; VECTOR / 64];

/// Returns the rows whose distance is in `lo..=hi`. Bits after the last row are clear.
///
/// # Panics
/// Panics with more than [`VECTOR`] rows, a width above 64, or fewer than [`line_count`] lines.
#[must_use]
pub fn packed_in_range(unpacker: &mut Unpacker, lines: &[Line], width: u32, rows: usize, lo: u64, hi: u64) -> Mask {
    assert!(rows <= VECTOR && width <= 64 && lines.len() >= line_count(width, rows), "{rows} rows of {width} bits");
    let mut mask = [0; VECTOR / 64];
    let hi = hi.min(width_mask(width));
    if lo <= hi {
        let words = unpacker.words();
        match word_bits(width) {
            _ if width == 0 => mask.fill(u64::MAX),
            16 => compare_u16(&mut words.u16s, lines, width, rows, lo as u16, hi as u16, &mut mask),
            32 => compare_u32(&mut words.u32s, lines, width, rows, lo as u32, hi as u32, &mut mask),
            _ => compare_u64(&mut words.u64s, lines, width, rows, lo, hi, &mut mask),
        }
    }
    clear_behind(&mut mask, rows);
    mask
}

/// Largest number of ranges. For more ranges a lookup table is faster.
pub const RANGES_MAX: usize = 32;

/// Returns the rows in any of the ranges, unpacked once; `None` for more than [`RANGES_MAX`] ranges.
///
/// # Panics
/// Panics like [`packed_in_range`].
#[must_use]
pub fn packed_in_ranges(
    unpacker: &mut Unpacker,
    lines: &[Line],
    width: u32,
    rows: usize,
    ranges: &[(u64, u64)],
) -> Option<Mask> {
    assert!(rows <= VECTOR && width <= 64 && lines.len() >= line_count(width, rows), "{rows} rows of {width} bits");
    if ranges.len() > RANGES_MAX {
        return None;
    }
    let greatest = width_mask(width);
    let mut inside = [(0, 0); RANGES_MAX];
    let mut count = 0;
    for (lo, hi) in ranges.iter().filter(|(lo, hi)| lo <= hi && *lo <= greatest) {
        inside[count] = (*lo, (*hi).min(greatest));
        count += 1;
    }
    let inside = &inside[..count];
    let (mut mask, words) = ([0; VECTOR / 64], unpacker.words());
    match word_bits(width) {
        _ if count == 0 => {}
        _ if width == 0 => mask.fill(u64::MAX),
        16 => any_u16(&mut words.u16s, lines, width, rows, inside, &mut mask),
        32 => any_u32(&mut words.u32s, lines, width, rows, inside, &mut mask),
        _ => any_u64(&mut words.u64s, lines, width, rows, inside, &mut mask),
    }
    clear_behind(&mut mask, rows);
    Some(mask)
}

/// Clears the bits from row `rows` on.
#[inline(always)]
pub fn clear_behind(mask: &mut Mask, rows: usize) {
    for (i, word) in mask.iter_mut().enumerate() {
        match rows.saturating_sub(i * 64) {
            0 => *word = 0,
            left @ 1..64 => *word &= u64::MAX >> (64 - left),
            _ => {}
        }
    }
}

/// An integer type whose values can be compared 64 at a time.
pub trait Comparable: Int {
    /// Sets bit `i` if `values[i]` is in `lo..=hi`. `hi` is not smaller than `lo`.
    fn bits(values: &[Self; 64], lo: Self, hi: Self) -> u64;
}

macro_rules! comparable {
    ($($int:ty, $unsigned:ty;)*) => { $(
        impl Comparable for $int {
            #[inline(always)]
            fn bits(values: &[$int; 64], lo: $int, hi: $int) -> u64 {
                let span = hi.wrapping_sub(lo) as $unsigned;
                let mut hits = [0u8; 64];
                for (hit, value) in hits.iter_mut().zip(values) {
                    *hit = 0u8.wrapping_sub(u8::from(value.wrapping_sub(lo) as $unsigned <= span));
                }
                first_bits(&hits)
            }
        }
    )* };
}

comparable! { i8, u8; i16, u16; i32, u32; i64, u64; u8, u8; u16, u16; u32, u32; u64, u64; }

/// Returns the upper bit of each byte.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn first_bits(bytes: &[u8; 64]) -> u64 {
    use std::arch::x86_64::{_mm_loadu_si128, _mm_movemask_epi8};
    let mut bits = 0;
    for (i, sixteen) in bytes.as_chunks::<16>().0.iter().enumerate() {
        // SAFETY: every processor of this architecture has SSE2, and the load accepts any alignment.
        let mask = unsafe { _mm_movemask_epi8(_mm_loadu_si128(sixteen.as_ptr().cast())) };
        bits |= (mask as u64) << (16 * i);
    }
    bits
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn first_bits(bytes: &[u8; 64]) -> u64 {
    first_bits_plain(bytes)
}

/// Reference implementation of `first_bits`.
#[cfg(any(test, not(target_arch = "x86_64")))]
fn first_bits_plain(bytes: &[u8; 64]) -> u64 {
    bytes.iter().enumerate().fold(0, |bits, (i, byte)| bits | u64::from(byte >> 7) << i)
}

dispatch! {
    wide
    /// Returns the rows of at most [`VECTOR`] values that are in `lo..=hi`.
    #[must_use]
    pub fn values_in_range<T: Comparable>(values: &[T], lo: T, hi: T) -> Mask {
        let mut mask = [0; VECTOR / 64];
        if lo > hi {
            return mask;
        }
        let (whole, rest) = values.as_chunks::<64>();
        for (mask, values) in mask.iter_mut().zip(whole) {
            *mask = T::bits(values, lo, hi);
        }
        if !rest.is_empty() {
            let mut padded = [T::default(); 64];
            padded[..rest.len()].copy_from_slice(rest);
            mask[whole.len()] = T::bits(&padded, lo, hi) & u64::MAX >> (64 - rest.len());
        }
        mask
    }
}

macro_rules! float_in_range {
    ($(#[$doc:meta])* $name:ident, $float:ty) => {
        dispatch! {
            wide
            $(#[$doc])*
            #[must_use]
            pub fn $name(values: &[$float], lo: $float, hi: $float) -> Mask {
                let mut mask = [0; VECTOR / 64];
                for (mask, values) in mask.iter_mut().zip(values.chunks(64)) {
                    let mut padded = [0.0; 64];
                    let values = match values.as_array::<64>() {
                        Some(values) => values,
                        None => {
                            padded[..values.len()].copy_from_slice(values);
                            &padded
                        }
                    };
                    let mut hits = [0u8; 64];
                    if lo.is_nan() && !hi.is_nan() {
                        continue;
                    } else if lo.is_nan() {
                        hits.iter_mut().zip(values).for_each(|(hit, v)| *hit = 0u8.wrapping_sub(u8::from(v.is_nan())));
                    } else if hi.is_nan() {
                        // NOT less: selects numbers that are at least `lo`, and NaN.
                        let least = |v: &$float| !v.lt(&lo);
                        hits.iter_mut().zip(values).for_each(|(hit, v)| *hit = 0u8.wrapping_sub(u8::from(least(v))));
                    } else {
                        let inside = |v: &$float| lo <= *v && *v <= hi;
                        hits.iter_mut().zip(values).for_each(|(hit, v)| *hit = 0u8.wrapping_sub(u8::from(inside(v))));
                    }
                    *mask = first_bits(&hits);
                }
                clear_behind(&mut mask, values.len());
                mask
            }
        }
    };
}

float_in_range!(
    /// Returns the rows of at most [`VECTOR`] values that are in `lo..=hi`, where NaN is greater than every number.
    ///
    /// A NaN in `hi` includes NaN; a NaN in `lo` selects only NaN.
    f64_in_range, f64);
float_in_range!(/// As [`f64_in_range`].
    f32_in_range, f32);

macro_rules! any_bits {
    ($($any_bits:ident, $word:ty;)*) => { $(
        /// Sets bit `i` if `words[i]` is in any of the ranges.
        #[inline(always)]
        fn $any_bits(words: &[$word; 64], ranges: &[(u64, u64)]) -> u64 {
            let mut hits = [0 as $word; 64];
            for (lo, hi) in ranges {
                let (lo, span) = (*lo as $word, (*hi - *lo) as $word);
                for (hit, word) in hits.iter_mut().zip(words) {
                    *hit |= (0 as $word).wrapping_sub(<$word>::from(word.wrapping_sub(lo) <= span));
                }
            }
            first_bits(&hits.map(|hit| hit as u8))
        }
    )* };
}

any_bits! { any_bits_u16, u16; any_bits_u32, u32; any_bits_u64, u64; }

macro_rules! compare {
    ($compare:ident, $word:ident, $unpack:ident, $bits:path, $($bound:ident: $type:ty),*) => {
        dispatch! {
            wide
            fn $compare(
                words: &mut [$word; VECTOR],
                lines: &[Line],
                width: u32,
                rows: usize,
                $($bound: $type,)*
                mask: &mut Mask,
            ) {
                $unpack(lines, width, rows, words);
                let sixty_fours = words.as_chunks::<64>().0;
                for (mask, words) in mask.iter_mut().zip(sixty_fours).take(rows.div_ceil(64)) {
                    *mask = $bits(words, $($bound),*);
                }
            }
        }
    };
}

compare!(compare_u16, u16, unpack_u16, u16::bits, lo: u16, hi: u16);
compare!(compare_u32, u32, unpack_u32, u32::bits, lo: u32, hi: u32);
compare!(compare_u64, u64, unpack_u64, u64::bits, lo: u64, hi: u64);
compare!(any_u16, u16, unpack_u16, any_bits_u16, ranges: &[(u64, u64)]);
compare!(any_u32, u32, unpack_u32, any_bits_u32, ranges: &[(u64, u64)]);
compare!(any_u64, u64, unpack_u64, any_bits_u64, ranges: &[(u64, u64)]);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bitpack::{pack, unpack_plain};

    #[test]
    fn nan_is_greater_than_every_number() {
        let mut rng = fastrand::Rng::with_seed(4);
        let special = [f64::NAN, -f64::NAN, 0.0, -0.0, 1.0, f64::INFINITY, f64::NEG_INFINITY, 7.5];
        let at_most = |a: f64, b: f64| b.is_nan() || a <= b;
        for rows in [0, 1, 63, 64, 65, 1000, 1024] {
            let values: Vec<f64> = (0..rows).map(|_| special[rng.usize(..8)]).collect();
            let narrow: Vec<f32> = values.iter().map(|v| *v as f32).collect();
            for (lo, hi) in special.iter().flat_map(|lo| special.iter().map(|hi| (*lo, *hi))) {
                let (mask, narrow) = (f64_in_range(&values, lo, hi), f32_in_range(&narrow, lo as f32, hi as f32));
                assert_eq!(mask, narrow);
                for row in 0..VECTOR {
                    let is_hit = values.get(row).is_some_and(|v| at_most(lo, *v) && at_most(*v, hi));
                    assert_eq!(mask[row / 64] >> (row % 64) & 1 == 1, is_hit, "{lo}..{hi} {:?}", values.get(row));
                }
            }
        }
    }

    #[test]
    fn first_bits_are_those_of_the_plain_twin() {
        let mut rng = fastrand::Rng::with_seed(3);
        for _ in 0..200 {
            let mut bytes = [0; 64];
            bytes.iter_mut().for_each(|byte| *byte = rng.u8(..));
            assert_eq!(first_bits(&bytes), first_bits_plain(&bytes));
        }
    }

    fn check_values<T: Comparable + std::fmt::Debug>(values: &[T], lo: T, hi: T) {
        let mask = values_in_range(values, lo, hi);
        for row in 0..VECTOR {
            let is_hit = values.get(row).is_some_and(|v| (lo..=hi).contains(v));
            assert_eq!(mask[row / 64] >> (row % 64) & 1 == 1, is_hit, "row {row}: {values:?} {lo:?} {hi:?}");
        }
    }

    #[test]
    fn values_are_compared_with_their_sign() {
        let mut rng = fastrand::Rng::with_seed(2);
        for rows in [0, 1, 63, 64, 65, 1000, 1024] {
            let values: Vec<i64> = (0..rows).map(|_| rng.i64(..) >> rng.u32(0..64)).collect();
            let pick = |rng: &mut fastrand::Rng| values.get(rng.usize(..1024)).copied().unwrap_or(0);
            for _ in 0..20 {
                let (lo, hi) = (pick(&mut rng), pick(&mut rng));
                check_values(&values, lo, hi);
                check_values(&values, i64::MIN, hi);
                check_values(&values, lo, i64::MAX);
                check_values(&values.iter().map(|v| *v as i32).collect::<Vec<_>>(), lo as i32, hi as i32);
                check_values(&values.iter().map(|v| *v as u32).collect::<Vec<_>>(), lo as u32, hi as u32);
                check_values(&values.iter().map(|v| *v as i16).collect::<Vec<_>>(), lo as i16, hi as i16);
                check_values(&values.iter().map(|v| *v as i8).collect::<Vec<_>>(), lo as i8, hi as i8);
            }
        }
    }

    #[test]
    fn masks_say_what_each_row_says() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut unpacker = Unpacker::new();
        for width in 0..=64 {
            for rows in [1, 63, 64, 65, 900, 1023, 1024] {
                let most = width_mask(width);
                let values: Vec<u64> = (0..rows).map(|_| rng.u64(..) & most >> rng.u32(0..64)).collect();
                let mut bytes = Vec::new();
                pack(&values, 0, width, &mut bytes);
                let lines = bytes.as_chunks().0;
                let some = values[rng.usize(..rows)];
                let other = rng.u64(..) & most;
                let ranges =
                    [(0, u64::MAX), (0, 0), (some, some), (most, most), (some, other), (1, 0), (most, u64::MAX)];
                let several = &ranges[rng.usize(..7)..];
                let mask = packed_in_ranges(&mut unpacker, lines, width, rows, several).expect("a few ranges");
                for row in 0..VECTOR {
                    let distance = || unpack_plain(lines, width, row);
                    let is_hit = row < rows && several.iter().any(|(lo, hi)| (*lo..=*hi).contains(&distance()));
                    assert_eq!(mask[row / 64] >> (row % 64) & 1 == 1, is_hit, "{width} bits, row {row}, {several:?}");
                }
                for (lo, hi) in ranges {
                    let mask = packed_in_range(&mut unpacker, lines, width, rows, lo, hi);
                    for row in 0..VECTOR {
                        let is_hit = row < rows && (lo..=hi).contains(&unpack_plain(lines, width, row));
                        assert_eq!(
                            mask[row / 64] >> (row % 64) & 1 == 1,
                            is_hit,
                            "{width} bits, row {row}, {lo}..{hi}"
                        );
                    }
                }
            }
        }
    }
}
