//! Fast paths for plain fields: eight digits at a time, without a previous scan of the field.
//!
//! Each function returns the value and the end of the field, or `None` for other notations, which use the general path.

use crate::line::scan::{DOUBLE_TEN_TO, TEN_TO, digits, load};
use tidalite_types::TimeUnit;
use tidalite_types::time::{days_from_civil, days_in_month};

#[inline(always)]
pub(super) fn ends(input: &[u8], at: usize, delimiter: u8) -> bool {
    input.get(at).is_some_and(|&byte| byte == delimiter || byte == b'\n')
        || (input.get(at) == Some(&b'\r') && input.get(at + 1).is_none_or(|byte| *byte == b'\n'))
}

#[inline(always)]
pub(super) fn long(input: &[u8], at: usize, delimiter: u8) -> Option<(i64, usize)> {
    let is_negative = input.get(at) == Some(&b'-');
    let start = at + usize::from(is_negative);
    let (magnitude, count) = digits(input, start)?;
    let end = start + count;
    if count == 0 || !ends(input, end, delimiter) {
        return None;
    }
    let value = i64::try_from(magnitude).ok()?;
    Some((if is_negative { -value } else { value }, end))
}

/// Parses a double exactly: one division of a mantissa below 2^53 by a power of ten up to 10^18 rounds once.
#[inline(always)]
pub(super) fn double(input: &[u8], at: usize, delimiter: u8) -> Option<(f64, usize)> {
    let is_negative = input.get(at) == Some(&b'-');
    let start = at + usize::from(is_negative);
    let (whole, whole_count) = digits(input, start)?;
    if whole_count == 0 {
        return None;
    }
    let (mut mantissa, mut scale, mut end) = (whole, 0, start + whole_count);
    if input.get(end) == Some(&b'.') {
        let (fraction, count) = digits(input, end + 1)?;
        if count == 0 || whole_count + count > 18 {
            return None;
        }
        (mantissa, scale, end) = (whole * TEN_TO[count] + fraction, count, end + 1 + count);
    }
    if mantissa >= 1 << 53 || !ends(input, end, delimiter) {
        return None;
    }
    let value = mantissa as f64 / DOUBLE_TEN_TO[scale];
    Some((if is_negative { -value } else { value }, end))
}

/// The last parsed day of a column: files in time order repeat a day many times.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LastDay {
    text: [u64; 2],
    seconds: i64,
}

/// Parses `2026-11-22T10:44:59`, with an optional space instead of the `T`, fraction and `Z`.
#[inline(always)]
pub(super) fn timestamp(
    input: &[u8],
    at: usize,
    delimiter: u8,
    unit: TimeUnit,
    last: &mut LastDay,
) -> Option<(i64, usize)> {
    let (head, day) = (load(input, at)?, load(input, at + 2)?);
    let clock = load(input, at + 11)?;
    if !matches!(input.get(at + 10), Some(b'T' | b' ')) {
        return None;
    }
    if last.text != [head, day] || last.seconds == 0 {
        last.seconds = 86_400 * date(input, at)?;
        last.text = [head, day];
    }
    // `hh:mm:ss`: the colons are replaced by zeros after they were checked.
    const COLONS: u64 = 0x0000_3a00_003a_0000;
    const COLON_BYTES: u64 = 0x0000_ff00_00ff_0000;
    if clock & COLON_BYTES != COLONS {
        return None;
    }
    let digits_only = clock & !COLON_BYTES | 0x0000_3000_0030_0000;
    if !all_digits(digits_only) {
        return None;
    }
    let pair = |byte: u32| {
        let tens = (digits_only >> (8 * byte)) & 15;
        let ones = (digits_only >> (8 * byte + 8)) & 15;
        (tens * 10 + ones) as i64
    };
    let (hour, minute, second) = (pair(0), pair(3), pair(6));
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let mut end = at + 19;
    let mut nanos = 0;
    if input.get(end) == Some(&b'.') {
        let (fraction, count) = digits(input, end + 1)?;
        if count == 0 || count > 9 {
            return None;
        }
        nanos = (fraction * TEN_TO[9 - count]) as i64;
        end += 1 + count;
    }
    if input.get(end) == Some(&b'Z') {
        end += 1;
    }
    if !ends(input, end, delimiter) {
        return None;
    }
    let seconds = last.seconds + hour * 3_600 + minute * 60 + second;
    let per_second = unit.per_second();
    let value = seconds.checked_mul(per_second)?.checked_add(nanos / (1_000_000_000 / per_second))?;
    Some((value, end))
}

#[inline(always)]
fn all_digits(word: u64) -> bool {
    let t = word ^ 0x3030_3030_3030_3030;
    (t | t.wrapping_add(0x7676_7676_7676_7676)) & 0x8080_8080_8080_8080 == 0
}

/// Parses `2026-11-22`, from year 1 on.
fn date(input: &[u8], at: usize) -> Option<i64> {
    let text = input.get(at..at + 10)?;
    let is_shaped =
        text.iter().enumerate().all(|(i, b)| if i == 4 || i == 7 { *b == b'-' } else { b.is_ascii_digit() });
    if !is_shaped {
        return None;
    }
    let number = |range: std::ops::Range<usize>| text[range].iter().fold(0, |n, b| n * 10 + u32::from(b - b'0'));
    let (year, month, day) = (i64::from(number(0..4)), number(5..7), number(8..10));
    let is_day = year > 0 && (1..=12).contains(&month) && day > 0 && day <= days_in_month(year, month);
    is_day.then(|| days_from_civil(year, month, day))
}
