//! Doubles as decimals, many at a time.
//!
//! In: doubles. Out: the text of those that have at most seven digits before the point and six behind it, as most that are
//! measured or priced. These are at most 13 digits, and no two numbers of up to 15 digits mean the same double: so there is
//! no shorter text for it.

/// More than any such text has.
pub const DECIMAL_BYTES: usize = 16;

/// Values at a time: each step is done for all of them, which the compiler does many at once.
const LANES: usize = 64;
const ZEROS: u64 = u64::from_le_bytes(*b"00000000");

crate::dispatch! {
wide
/// Writes each value that is such a decimal, as `-12.5` or `3.0`, to the first bytes of `texts`, and how many they are to
/// `lens`: 0 where it is none (longer, below 0.001, from 10⁷ on, not finite). What stands behind a text means nothing.
pub fn short_decimals(values: &[f64], texts: &mut [[u8; DECIMAL_BYTES]], lens: &mut [u8]) {
    let lines = texts.chunks_mut(LANES).zip(lens.chunks_mut(LANES));
    for (own, (texts, lens)) in values.chunks(LANES).zip(lines) {
        let mut line = [0.0_f64; LANES];
        line[..own.len()].copy_from_slice(own);
        let (mut whole, mut fraction, mut is_one) = ([0_u32; LANES], [0_u32; LANES], [0_u8; LANES]);
        for i in 0..LANES {
            let magnitude = line[i].abs();
            let bounded = magnitude.min(1e7);
            // SAFETY: `min` gives the bound where there is no number, so that it is one from 0 to 10⁷; its rest is below 1.
            let (full, rest) = unsafe {
                let full: i32 = bounded.to_int_unchecked();
                (full, ((bounded - f64::from(full)) * 1e6 + 0.5).to_int_unchecked::<i32>())
            };
            let carry = i32::from(rest == 1_000_000);
            let (full, rest) = (full + carry, rest - carry * 1_000_000);
            // One division of two exact numbers rounds as reading the text would.
            let is_exact = (f64::from(full) * 1e6 + f64::from(rest)) / 1e6 == magnitude;
            is_one[i] = u8::from(is_exact & (magnitude < 1e7) & ((magnitude >= 1e-3) | (magnitude == 0.0)));
            (whole[i], fraction[i]) = (full as u32, rest as u32 * 100);
        }
        let (mut front, mut back) = ([0_u64; LANES], [0_u64; LANES]);
        for i in 0..LANES {
            front[i] = eight_digits(whole[i]);
        }
        for i in 0..LANES {
            back[i] = eight_digits(fraction[i]);
        }
        let (mut point, mut len) = ([0_u8; LANES], [0_u8; LANES]);
        for i in 0..LANES {
            let minus = line[i].to_bits() >> 63;
            // Bits of zeros before the first digit, of which one stays; how many digits follow the point.
            let first = front[i] & front[i].wrapping_neg();
            let zeros = if front[i] == 0 { 56 } else { (63 - u64::from(first.leading_zeros())) & 56 };
            let decimals = (8 - u64::from(back[i].leading_zeros() / 8)).max(1);
            front[i] = (((front[i] + ZEROS) >> zeros) << (8 * minus)) | (u64::from(b'-') * minus);
            back[i] = ((back[i] + ZEROS) << 8) | u64::from(b'.');
            let digits = 8 - zeros / 8 + minus;
            point[i] = digits as u8;
            len[i] = (digits + 1 + decimals) as u8 * is_one[i];
        }
        for (i, text) in texts.iter_mut().enumerate() {
            let (before, behind) = (front[i].to_le_bytes(), back[i].to_le_bytes());
            text[..8].copy_from_slice(&before);
            let at = usize::from(point[i]).min(8);
            text[at..at + 8].copy_from_slice(&behind);
        }
        let shown = lens.len();
        lens.copy_from_slice(&len[..shown]);
    }
}
}

/// Of a number of at most eight digits, zeros before it included: each a byte, the first the lowest. Halves are split in
/// lanes of one word, as by division by 10⁴, 100 and 10, of which the last two are multiplications that are exact for what
/// the lanes hold.
#[inline(always)]
#[must_use]
pub fn eight_digits(value: u32) -> u64 {
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
        let text =
            |(text, len): (&[u8; DECIMAL_BYTES], &u8)| String::from_utf8(text[..usize::from(*len)].to_vec()).ok();
        texts.iter().zip(&lens).map(text).map(|text| text.filter(|text| !text.is_empty())).collect()
    }

    /// As it is defined: the shortest text that means the value, if it has few digits.
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
