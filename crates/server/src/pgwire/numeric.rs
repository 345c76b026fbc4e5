//! Numbers as PostgreSQL writes them: doubles in their shortest form, decimals as text and in groups of four digits.

use crate::digits::{Significant, push_i64};

/// Digits of a group of a binary NUMERIC.
const GROUP: usize = 4;

pub fn push_f64(out: &mut Vec<u8>, value: f64) {
    push_float(out, value, zmij::Buffer::new().format(value), 15);
}

pub fn push_f32(out: &mut Vec<u8>, value: f32) {
    push_float(out, f64::from(value), zmij::Buffer::new().format(value), 6);
}

/// `shortest` has the digits, in any form; with an exponent below 1e-4 and from 10 to the `digits` on.
fn push_float(out: &mut Vec<u8>, value: f64, shortest: &str, digits: i32) {
    if !value.is_finite() {
        let word: &[u8] = if value.is_nan() {
            b"NaN"
        } else if value > 0.0 {
            b"Infinity"
        } else {
            b"-Infinity"
        };
        return out.extend_from_slice(word);
    }
    let number = Significant::of(shortest);
    if number.is_negative {
        out.push(b'-');
    }
    let significant = number.digits();
    let Some((first, rest)) = significant.split_first() else { return out.push(b'0') };
    let power = number.power;
    if power < -4 || power >= digits {
        out.push(*first);
        if !rest.is_empty() {
            out.push(b'.');
            out.extend_from_slice(rest);
        }
        out.extend_from_slice(if power < 0 { b"e-" } else { b"e+" });
        if power.abs() < 10 {
            out.push(b'0');
        }
        push_i64(out, i64::from(power.abs()));
    } else if power < 0 {
        out.extend_from_slice(b"0.");
        out.extend(std::iter::repeat_n(b'0', (-power - 1) as usize));
        out.extend_from_slice(significant);
    } else {
        let whole = power as usize + 1;
        let (before, after) = significant.split_at(whole.min(significant.len()));
        out.extend_from_slice(before);
        out.extend(std::iter::repeat_n(b'0', whole - before.len()));
        if !after.is_empty() {
            out.push(b'.');
            out.extend_from_slice(after);
        }
    }
}

/// `value` times 10 to the power of `-scale`.
pub fn push_decimal(out: &mut Vec<u8>, value: i128, scale: i8) {
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(value.unsigned_abs()).as_bytes();
    if value < 0 {
        out.push(b'-');
    }
    let zeros = |out: &mut Vec<u8>, count: usize| out.extend(std::iter::repeat_n(b'0', count));
    let Ok(scale) = usize::try_from(scale) else {
        out.extend_from_slice(digits);
        return zeros(out, usize::from(scale.unsigned_abs()));
    };
    let (whole, fraction) = digits.split_at(digits.len().saturating_sub(scale));
    out.extend_from_slice(if whole.is_empty() { b"0" } else { whole });
    if scale > 0 {
        out.push(b'.');
        zeros(out, scale - fraction.len());
        out.extend_from_slice(fraction);
    }
}

/// A number in plain text, which may have an exponent or be none, in the binary form.
pub fn push_binary(out: &mut Vec<u8>, text: &str) {
    const NAN: u16 = 0xc000;
    const INFINITY: u16 = 0xd000;
    const NEGATIVE_INFINITY: u16 = 0xf000;
    const NEGATIVE: u16 = 0x4000;
    let special = match text {
        "NaN" => Some(NAN),
        "Infinity" => Some(INFINITY),
        "-Infinity" => Some(NEGATIVE_INFINITY),
        _ => None,
    };
    if let Some(sign) = special {
        [0, 0, sign, 0].iter().for_each(|part: &u16| out.extend_from_slice(&part.to_be_bytes()));
        return;
    }
    let (sign, number) = text.strip_prefix('-').map_or((0, text), |n| (NEGATIVE, n));
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let mut digits = format!("{whole}{fraction}");
    let mut point = whole.len() as i32 + exponent;
    if point < 0 {
        digits.insert_str(0, &"0".repeat(-point as usize));
        point = 0;
    }
    let point = point as usize;
    if digits.len() < point {
        digits.push_str(&"0".repeat(point - digits.len()));
    }
    let scale = digits.len() - point;
    // Groups are aligned at the point.
    let before = (GROUP - point % GROUP) % GROUP;
    let after = (GROUP - scale % GROUP) % GROUP;
    let aligned = format!("{}{digits}{}", "0".repeat(before), "0".repeat(after));
    let groups: Vec<u16> = aligned
        .as_bytes()
        .chunks(GROUP)
        .map(|group| group.iter().fold(0, |n, d| n * 10 + u16::from(d.saturating_sub(b'0'))))
        .collect();
    let first = groups.iter().position(|g| *g != 0).unwrap_or(groups.len());
    let last = groups.iter().rposition(|g| *g != 0).map_or(first, |at| at + 1);
    let weight = ((point + before) / GROUP) as i32 - 1 - first as i32;
    let weight = if first == last { 0 } else { weight };
    out.extend_from_slice(&((last - first) as u16).to_be_bytes());
    out.extend_from_slice(&(weight as i16).to_be_bytes());
    out.extend_from_slice(&if first == last { 0 } else { sign }.to_be_bytes());
    out.extend_from_slice(&(scale as u16).to_be_bytes());
    groups[first..last].iter().for_each(|group| out.extend_from_slice(&group.to_be_bytes()));
}

/// Maximum number of digits before the point and behind it: a double has up to 309 and 341, no type has more. A value of
/// ten bytes may claim 131,072 and 16,383.
const DIGITS_MAX: usize = 400;
/// Zeros behind the last digit that a scale may ask for, as many as a decimal has digits.
const ZEROS_MAX: usize = 38;

/// The text of a binary NUMERIC; `None` when it is none, or has too many digits.
#[must_use]
pub fn text_of(bytes: &[u8]) -> Option<String> {
    let mut parts = bytes.chunks_exact(2).map(|b| u16::from_be_bytes([b[0], b[1]]));
    let (count, weight, sign, scale) = (parts.next()?, parts.next()? as i16, parts.next()?, parts.next()?);
    let groups: Vec<u16> = parts.collect();
    let is_whole = bytes.len().is_multiple_of(2);
    if !is_whole || groups.len() != usize::from(count) || groups.iter().any(|g| *g > 9999) || scale > 0x3fff {
        return None;
    }
    let mut out = match sign {
        0 => String::new(),
        0x4000 => "-".to_owned(),
        0xc000 => return Some("NaN".to_owned()),
        0xd000 => return Some("Infinity".to_owned()),
        0xf000 => return Some("-Infinity".to_owned()),
        _ => return None,
    };
    let whole_groups = usize::try_from(i32::from(weight) + 1).unwrap_or(0);
    if whole_groups * GROUP > DIGITS_MAX {
        return None;
    }
    let group = |at: i32| usize::try_from(at).ok().and_then(|at| groups.get(at)).copied().unwrap_or(0);
    let mut whole = String::new();
    (0..=i32::from(weight)).for_each(|at| whole.push_str(&format!("{:04}", group(at))));
    let whole = whole.trim_start_matches('0');
    out.push_str(if whole.is_empty() { "0" } else { whole });
    // Behind the digits that are there stand zeros.
    let there = (i32::from(count) - 1 - i32::from(weight)).max(0) as usize * GROUP;
    let scale = usize::from(scale).min(there.clamp(ZEROS_MAX, DIGITS_MAX));
    if scale > 0 {
        let count = scale.div_ceil(GROUP) as i32;
        let fraction: String = (1..=count).map(|at| format!("{:04}", group(i32::from(weight) + at))).collect();
        out.push('.');
        out.push_str(&fraction[..scale]);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    /// What PostgreSQL 15 answers.
    #[test]
    fn doubles_look_like_postgresqls() {
        let cases = [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (-1.5, "-1.5"),
            (0.1, "0.1"),
            (1e15, "1e+15"),
            (1e14, "100000000000000"),
            (123_456_789_012_345_680.0, "1.2345678901234568e+17"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1e300, "1e+300"),
            (1.5e-300, "1.5e-300"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ];
        for (value, expected) in cases {
            assert_eq!(text(|out| push_f64(out, value)), expected);
        }
        assert_eq!(text(|out| push_f32(out, 1e6)), "1e+06");
        assert_eq!(text(|out| push_f32(out, 100_000.0)), "100000");
        assert_eq!(text(|out| push_f32(out, 1.1)), "1.1");
    }

    #[test]
    fn every_double_comes_back() {
        let mut bits = 0x9e37_79b9_7f4a_7c15u64;
        for _ in 0..20_000 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let value = f64::from_bits(bits);
            if value.is_finite() {
                let written = text(|out| push_f64(out, value));
                assert_eq!(written.parse::<f64>().unwrap().to_bits(), value.to_bits(), "{written}");
            }
        }
    }

    #[test]
    fn decimals_are_written_in_full() {
        let cases = [
            (12_345, 3, "12.345"),
            (-5, 3, "-0.005"),
            (0, 2, "0.00"),
            (7, 0, "7"),
            (7, -2, "700"),
            (i128::MIN, 0, "-170141183460469231731687303715884105728"),
        ];
        for (value, scale, expected) in cases {
            assert_eq!(text(|out| push_decimal(out, value, scale)), expected);
        }
    }

    #[test]
    fn binary_numerics_are_groups_of_four() {
        let mut out = Vec::new();
        push_binary(&mut out, "12345.678");
        // Three groups, 1 2345 . 6780, the first of weight 1; three digits after the point.
        assert_eq!(out, [0, 3, 0, 1, 0, 0, 0, 3, 0, 1, 9, 41, 26, 124]);
        for number in
            ["0", "0.00", "1", "-1", "10000", "0.0001", "-0.00001234", "99999999.99999999", "100000000", "NaN"]
        {
            let mut out = Vec::new();
            push_binary(&mut out, number);
            assert_eq!(text_of(&out).unwrap(), number);
        }
        let mut out = Vec::new();
        push_binary(&mut out, "1.5e-3");
        assert_eq!(text_of(&out).unwrap(), "0.0015");
        for cut in 0..out.len() {
            assert_eq!(text_of(&out[..cut]), None);
        }
    }
    #[test]
    fn claimed_digits_are_not_written() {
        let text = |weight: i16, scale: u16| text_of(&[1, weight as u16, 0, scale, 7].map(u16::to_be_bytes).concat());
        assert_eq!(text(99, 0), Some(format!("7{}", "0".repeat(396))));
        assert_eq!((text(100, 0), text(i16::MAX, 0)), (None, None));
        assert_eq!(text(0, 0x3fff), Some(format!("7.{}", "0".repeat(38))));
        assert_eq!(text(-100, 0x3fff), Some(format!("0.{}7", "0".repeat(399))));
        assert_eq!(text(i16::MIN, 0x3fff), Some(format!("0.{}", "0".repeat(400))));
    }
}
