//! Digits as every protocol writes them: whole numbers, days, times of day, bytes in hex; and what is significant of
//! a double. What protocols write differently (eras, exponents, how many decimals) is theirs.

use tidalite::types::text::push_hex;

pub fn push_i64(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// The first `count` bytes. A copy of known length and a cut cost less than a call for a copy of a few bytes.
pub fn push_first<const N: usize>(out: &mut Vec<u8>, bytes: &[u8; N], count: usize) {
    let end = out.len() + count.min(N);
    out.extend_from_slice(bytes);
    out.truncate(end);
}

/// The digits of each number below 100.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[b'0'; 2]; 100];
    let mut at = 0;
    while at < 100 {
        pairs[at] = [b'0' + (at / 10) as u8, b'0' + (at % 10) as u8];
        at += 1;
    }
    pairs
};

/// The last two digits.
pub fn two_digits(value: u32) -> [u8; 2] {
    PAIRS[(value % 100) as usize]
}

/// `2016-01-31`; a year has at least four digits.
pub fn push_day(out: &mut Vec<u8>, (year, month, day): (i64, u32, u32)) {
    let ([m, n], [d, e]) = (two_digits(month), two_digits(day));
    match u32::try_from(year) {
        Ok(short) if short < 10_000 => {
            let ([c, b], [y, z]) = (two_digits(short / 100), two_digits(short));
            out.extend_from_slice(&[c, b, y, z, b'-', m, n, b'-', d, e]);
        }
        _ => {
            out.extend_from_slice(format!("{year:05}").as_bytes());
            out.extend_from_slice(&[b'-', m, n, b'-', d, e]);
        }
    }
}

/// `23:59:59` of a second of the day.
pub fn push_clock(out: &mut Vec<u8>, second: i64) {
    let second = second as u32;
    let ([h, i], [m, n], [s, t]) = (two_digits(second / 3600), two_digits(second / 60 % 60), two_digits(second % 60));
    out.extend_from_slice(&[h, i, b':', m, n, b':', s, t]);
}

/// `.250000`, with as many digits as the unit has; without zeros at the end, or any digit, when `is_short`. Units have up
/// to nine.
pub fn push_fraction(out: &mut Vec<u8>, fraction: i64, per_second: i64, is_short: bool) {
    if is_short && fraction == 0 {
        return;
    }
    let digits = per_second.ilog10() as usize;
    let nanos = fraction as u32 * 10_u32.pow(9 - digits as u32);
    let ([b, c], [d, e], [f, g], [h, i]) =
        (two_digits(nanos / 1_000_000), two_digits(nanos / 10_000), two_digits(nanos / 100), two_digits(nanos));
    let text = [b'.', b'0' + (nanos / 100_000_000 % 10) as u8, b, c, d, e, f, g, h, i];
    let shown = if is_short { text.iter().rposition(|digit| *digit != b'0').unwrap_or(0) } else { digits };
    push_first(out, &text, shown + 1);
}

/// `11111111-2222-3333-4444-555555555555`.
pub fn push_uuid(out: &mut Vec<u8>, bytes: &[u8]) {
    const DASHES: [usize; 4] = [4, 6, 8, 10];
    for (i, byte) in bytes.iter().enumerate() {
        if DASHES.contains(&i) {
            out.push(b'-');
        }
        push_hex(out, &[*byte]);
    }
}

/// More than any double's shortest text has.
const DIGITS_MAX: usize = 40;

/// The digits of a number from the first to the last that is not zero.
pub struct Significant {
    digits: [u8; DIGITS_MAX],
    from: usize,
    to: usize,
    /// The number is d.ddd times ten to the power.
    pub power: i32,
    pub is_negative: bool,
}

impl Significant {
    /// `text` is a number in any form. Without digits but zeros there are none.
    #[must_use]
    pub fn of(text: &str) -> Significant {
        let (is_negative, number) = text.strip_prefix('-').map_or((false, text), |n| (true, n));
        let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let mut digits = [b'0'; DIGITS_MAX];
        let bytes = whole.bytes().chain(fraction.bytes());
        digits.iter_mut().zip(bytes).for_each(|(to, digit)| *to = digit);
        let from = digits.iter().position(|d| *d != b'0').unwrap_or(0);
        let to = digits.iter().rposition(|d| *d != b'0').map_or(from, |last| last + 1);
        let exponent: i32 = exponent.parse().unwrap_or(0);
        Significant { digits, from, to, power: exponent + whole.len() as i32 - 1 - from as i32, is_negative }
    }

    #[must_use]
    pub fn digits(&self) -> &[u8] {
        &self.digits[self.from..self.to]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn days_and_times_have_fixed_widths() {
        assert_eq!(text(|out| push_day(out, (7, 2, 9))), "0007-02-09");
        assert_eq!(text(|out| push_day(out, (12_345, 12, 31))), "12345-12-31");
        assert_eq!(text(|out| push_day(out, (-44, 3, 15))), "-0044-03-15");
        assert_eq!(text(|out| push_clock(out, 0)), "00:00:00");
        assert_eq!(text(|out| push_clock(out, 86_399)), "23:59:59");
        assert_eq!(text(|out| push_fraction(out, 250, 1_000, false)), ".250");
        assert_eq!(text(|out| push_fraction(out, 250, 1_000, true)), ".25");
        assert_eq!(text(|out| push_fraction(out, 0, 1_000, true)), "");
        assert_eq!(text(|out| push_fraction(out, 0, 1_000, false)), ".000");
        assert_eq!(text(|out| push_fraction(out, 1_020, 1_000_000, false)), ".001020");
        assert_eq!(text(|out| push_fraction(out, 1_020, 1_000_000, true)), ".00102");
        assert_eq!(text(|out| push_fraction(out, 987_654_321, 1_000_000_000, false)), ".987654321");
        assert_eq!(text(|out| push_fraction(out, 100_000_000, 1_000_000_000, true)), ".1");
        assert_eq!(text(|out| push_fraction(out, 1, 1_000_000_000, true)), ".000000001");
    }

    #[test]
    fn bytes_are_two_digits_each() {
        let uuid: Vec<u8> = (0..16).collect();
        assert_eq!(text(|out| push_uuid(out, &uuid)), "00010203-0405-0607-0809-0a0b0c0d0e0f");
    }

    #[test]
    fn significant_digits_do_not_depend_on_the_form() {
        for (form, digits, power) in
            [("0.00120", "12", -3), ("12e-4", "12", -3), ("1.2e-3", "12", -3), ("1200", "12", 3), ("0.0", "", 0)]
        {
            let found = Significant::of(form);
            assert_eq!(std::str::from_utf8(found.digits()).unwrap(), digits, "{form}");
            assert!(digits.is_empty() || found.power == power, "{form}");
        }
        assert!(Significant::of("-1").is_negative);
    }
}
