//! Formats doubles as decimals, many at a time.
//!
//! Input: doubles. Output: the text of doubles with at most seven digits before the point and six after it, as most
//! measurements and prices have. The text has at most 13 digits, and no two numbers of up to 15 digits denote the same
//! double, so it is the shortest text of the double.

/// Size of a text buffer in bytes; longer than every such text.
pub const DECIMAL_BYTES: usize = 16;

/// Values per step. Each step is computed for all of them, so that the compiler vectorizes it.
const LANES: usize = 64;
const ZEROS: u64 = u64::from_le_bytes(*b"00000000");

crate::dispatch! {
wide
/// Writes the text of each short decimal, as `-12.5` or `3.0`, to `texts`, and its length to `lens`.
///
/// The length is 0 if the value is no short decimal (longer, below 0.001, at least 10⁷, not finite). Bytes after the
/// text are unspecified.
pub fn short_decimals(values: &[f64], texts: &mut [[u8; DECIMAL_BYTES]], lens: &mut [u8]) {
    let lines = texts.chunks_mut(LANES).zip(lens.chunks_mut(LANES));
    for (own, (texts, lens)) in values.chunks(LANES).zip(lines) {
        let mut line = [0.0_f64; LANES];
        line[..own.len()].copy_from_slice(own);
        let (mut whole, mut fraction, mut is_one) = ([0; LANES], [0; LANES], [false; LANES]);
        for i in 0..LANES {
            (whole[i], fraction[i], is_one[i]) = parts(line[i].abs());
        }
        let (mut front, mut back) = ([0; LANES], [0; LANES]);
        for i in 0..LANES {
            front[i] = eight_digits(whole[i]);
        }
        for i in 0..LANES {
            back[i] = eight_digits(fraction[i]);
        }
        let (mut point, mut len) = ([0; LANES], [0; LANES]);
        for i in 0..LANES {
            (front[i], back[i], point[i], len[i]) = shown(front[i], back[i], line[i].to_bits() >> 63);
            len[i] *= u8::from(is_one[i]);
        }
        for (i, text) in texts.iter_mut().enumerate() {
            join(front[i], back[i], point[i], text);
        }
        let count = lens.len();
        lens.copy_from_slice(&len[..count]);
    }
}
}

/// Formats one value: returns the text and its length, or `None` if the value is no such decimal.
#[inline]
#[must_use]
pub fn short_decimal(value: f64) -> Option<([u8; DECIMAL_BYTES], usize)> {
    let (whole, fraction, is_one) = parts(value.abs());
    if !is_one {
        return None;
    }
    let (front, back, point, len) = shown(eight_digits(whole), eight_digits(fraction), value.to_bits() >> 63);
    let mut text = [0; DECIMAL_BYTES];
    join(front, back, point, &mut text);
    Some((text, usize::from(len)))
}

/// Returns the whole part, the fraction in millionths times 100, and true if these are the exact value.
#[inline(always)]
fn parts(magnitude: f64) -> (u32, u32, bool) {
    let bounded = magnitude.min(1e7);
    // SAFETY: `min` returns the bound for NaN, so the value is a number from 0 to 10⁷; its fraction is below 1.
    let (full, rest) = unsafe {
        let full: i32 = bounded.to_int_unchecked();
        (full, ((bounded - f64::from(full)) * 1e6 + 0.5).to_int_unchecked::<i32>())
    };
    let carry = i32::from(rest == 1_000_000);
    let (full, rest) = (full + carry, rest - carry * 1_000_000);
    // One division of two exact numbers rounds like parsing the text.
    let is_exact = (f64::from(full) * 1e6 + f64::from(rest)) / 1e6 == magnitude;
    let is_one = is_exact & (magnitude < 1e7) & ((magnitude >= 1e-3) | (magnitude == 0.0));
    (full as u32, rest as u32 * 100, is_one)
}

/// Returns the bytes before and from the point on, the position of the point, and the length of the text.
///
/// Arguments: the digits before and after the point, and `minus`, 1 for a negative number and 0 otherwise.
#[inline(always)]
fn shown(front: u64, back: u64, minus: u64) -> (u64, u64, u8, u8) {
    // Bits of leading zeros (the last zero is kept), and the number of digits after the point.
    let first = front & front.wrapping_neg();
    let zeros = if front == 0 { 56 } else { (63 - u64::from(first.leading_zeros())) & 56 };
    let decimals = (8 - u64::from(back.leading_zeros() / 8)).max(1);
    let point = 8 - zeros / 8 + minus;
    let before = (((front + ZEROS) >> zeros) << (8 * minus)) | (u64::from(b'-') * minus);
    let behind = ((back + ZEROS) << 8) | u64::from(b'.');
    (before, behind, point as u8, (point + 1 + decimals) as u8)
}

/// Writes the text in place. Building the text elsewhere and copying it takes three times as long.
#[inline(always)]
fn join(before: u64, behind: u64, point: u8, text: &mut [u8; DECIMAL_BYTES]) {
    let at = usize::from(point).min(8);
    text[..8].copy_from_slice(&before.to_le_bytes());
    text[at..at + 8].copy_from_slice(&behind.to_le_bytes());
}

/// Returns the eight digits of `value`, including leading zeros, one per byte, the first digit in the lowest byte.
///
/// Halves are split in lanes of one word by division by 10⁴, 100 and 10. The last two divisions are multiplications
/// that are exact for the values in the lanes.
#[inline(always)]
fn eight_digits(value: u32) -> u64 {
    let fours = u64::from(value / 10_000) | (u64::from(value % 10_000) << 32);
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let twos = hundreds | ((fours - 100 * hundreds) << 16);
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | ((twos - 10 * tens) << 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(values: &[f64]) -> Vec<Option<String>> {
        let (mut texts, mut lens) = (vec![[7; DECIMAL_BYTES]; values.len()], vec![9; values.len()]);
        short_decimals(values, &mut texts, &mut lens);
        let text = |text: &[u8], len: usize| String::from_utf8(text[..len].to_vec()).unwrap();
        let many = texts.iter().zip(&lens).map(|(own, len)| (*len > 0).then(|| text(own, usize::from(*len))));
        let many: Vec<_> = many.collect();
        let alone = values.iter().map(|value| short_decimal(*value).map(|(own, len)| text(&own, len)));
        assert_eq!(alone.collect::<Vec<_>>(), many);
        many
    }

    /// Reference implementation: the shortest text that denotes the value, if it has few digits.
    fn plain(value: f64) -> Option<String> {
        let (text, magnitude) = (format!("{value:?}"), value.abs());
        let decimals = text.split_once('.').map_or(0, |(_, behind)| behind.len());
        let is_one = decimals <= 6 && ((1e-3..1e7).contains(&magnitude) || magnitude == 0.0);
        is_one.then_some(text)
    }

    #[test]
    fn decimals_are_written_and_others_are_not() {
        let cases = [
            (0.0, Some("0.0")),
            (-0.0, Some("-0.0")),
            (1.0, Some("1.0")),
            (-12.5, Some("-12.5")),
            (100.000_01, Some("100.00001")),
            (0.001, Some("0.001")),
            (-9_999_999.999_999, Some("-9999999.999999")),
            (0.999_999, Some("0.999999")),
            (0.999_999_9, None),
            (9_999_999.999_999_9, None),
            (1e7, None),
            (-1e7, None),
            (0.000_999, None),
            (0.1 + 0.2, None),
            (f64::NAN, None),
            (f64::INFINITY, None),
            (f64::NEG_INFINITY, None),
            (f64::MAX, None),
            (f64::MIN_POSITIVE, None),
        ];
        let values: Vec<f64> = cases.iter().map(|(value, _)| *value).collect();
        let expected: Vec<_> = cases.iter().map(|(_, text)| text.map(str::to_owned)).collect();
        assert_eq!(texts(&values), expected);
    }

    #[test]
    fn any_number_is_written_as_its_shortest_text() {
        let mut dice = fastrand::Rng::with_seed(11);
        for round in 0..300 {
            let mut values = Vec::new();
            for _ in 0..dice.usize(0..200) {
                let scale = 10_f64.powi(dice.i32(0..9));
                let few = dice.i64(-20_000_000_000..20_000_000_000) as f64 / scale / 1e2;
                let near = f64::from_bits(few.to_bits().wrapping_add(dice.u64(0..3)).wrapping_sub(1));
                values.push(if round % 3 == 0 {
                    f64::from_bits(dice.u64(..))
                } else if round % 3 == 1 {
                    few
                } else {
                    near
                });
            }
            assert_eq!(texts(&values), values.iter().map(|value| plain(*value)).collect::<Vec<_>>(), "{values:?}");
        }
    }
}
