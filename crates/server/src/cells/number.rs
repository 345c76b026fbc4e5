//! Numbers as QuestDB's REST interface writes them: doubles in the form of Java's `Double.toString`, so that
//! `1.0`, `1.0E300` and `1.23456789E7` compare equal as text too.

use super::style::Style;
use crate::digits::{Significant, push_first, push_i64};
use tidalite::short_decimal;

pub fn push_f64(out: &mut Vec<u8>, value: f64, style: Style) {
    if let Some((text, bytes)) = short_decimal(value) {
        return push_first(out, &text, bytes);
    }
    if !value.is_finite() {
        return push_not_finite(out, value, style);
    }
    let mut buffer = zmij::Buffer::new();
    push_decimal(out, buffer.format_finite(value), value.abs());
}

pub fn push_f32(out: &mut Vec<u8>, value: f32, style: Style) {
    if !value.is_finite() {
        return push_not_finite(out, f64::from(value), style);
    }
    let mut buffer = zmij::Buffer::new();
    push_decimal(out, buffer.format_finite(value), f64::from(value.abs()));
}

fn push_not_finite(out: &mut Vec<u8>, value: f64, style: Style) {
    let name = match (value.is_nan(), value > 0.0) {
        (true, _) => "NaN",
        (_, true) => "Infinity",
        _ => "-Infinity",
    };
    match style {
        Style::Json { not_finite_quotes: false, .. } => out.extend_from_slice(b"null"),
        Style::Json { .. } => out.extend([b"\"", name.as_bytes(), b"\""].concat()),
        Style::Csv | Style::Text => out.extend_from_slice(name.as_bytes()),
    }
}

/// `text` has the shortest digits that mean the value, in any form; plain between 1e-3 and 1e7, else with exponent.
fn push_decimal(out: &mut Vec<u8>, text: &str, magnitude: f64) {
    if magnitude == 0.0 || (1e-3..1e7).contains(&magnitude) {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    let number = Significant::of(text);
    let (first, rest) = number.digits().split_at(1.min(number.digits().len()));
    if number.is_negative {
        out.push(b'-');
    }
    out.extend_from_slice(first);
    out.push(b'.');
    out.extend_from_slice(if rest.is_empty() { b"0" } else { rest });
    out.push(b'E');
    push_i64(out, i64::from(number.power));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_look_like_javas() {
        let cases = [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (1e300, "1.0E300"),
            (1e-7, "1.0E-7"),
            (0.1, "0.1"),
            (100.0, "100.0"),
            (12_345_678.9, "1.23456789E7"),
            (9_999_999.0, "9999999.0"),
            (1e7, "1.0E7"),
            (1e15, "1.0E15"),
            (1e16, "1.0E16"),
            (1e21, "1.0E21"),
            (-0.000_123, "-1.23E-4"),
            (0.001, "0.001"),
            (f64::MIN_POSITIVE, "2.2250738585072014E-308"),
            (f64::MAX, "1.7976931348623157E308"),
            (20_000_000.0, "2.0E7"),
        ];
        for (value, expected) in cases {
            let mut out = Vec::new();
            push_f64(&mut out, value, Style::Csv);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }

    #[test]
    fn every_double_comes_back() {
        let mut bits = 0x9e37_79b9_7f4a_7c15u64;
        for _ in 0..20_000 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let value = f64::from_bits(bits);
            if value.is_finite() {
                let mut out = Vec::new();
                push_f64(&mut out, value, Style::Json { long_quotes: false, not_finite_quotes: false });
                let text = String::from_utf8(out).unwrap();
                assert_eq!(text.parse::<f64>().unwrap().to_bits(), value.to_bits(), "{text}");
            }
        }
    }

    #[test]
    fn few_decimals_are_written_as_the_shortest_text_is() {
        let mut dice = 7u64;
        for round in 0..200_000 {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let decimals = 10f64.powi(round % 8);
            let value = ((dice >> 20) % 10_000_000_000) as f64 / decimals / 1e3;
            let value = if dice & 1 == 0 { value } else { -value };
            for value in [value, f64::from_bits(value.to_bits() + 1), f64::from_bits(value.to_bits() ^ 2)] {
                let (mut out, mut shortest) = (Vec::new(), Vec::new());
                push_f64(&mut out, value, Style::Csv);
                push_decimal(&mut shortest, zmij::Buffer::new().format_finite(value), value.abs());
                assert_eq!(String::from_utf8(out).unwrap(), String::from_utf8(shortest).unwrap(), "{value:e}");
            }
        }
    }

    #[test]
    fn json_has_no_word_for_what_is_not_finite() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let mut out = Vec::new();
            push_f64(&mut out, value, Style::Json { long_quotes: false, not_finite_quotes: false });
            assert_eq!(out, b"null");
            out.clear();
            push_f64(&mut out, value, Style::Json { long_quotes: false, not_finite_quotes: true });
            let name = String::from_utf8(out).unwrap();
            assert_eq!(name.trim_matches('"').parse::<f64>().unwrap().to_bits(), value.to_bits());
        }
    }
}
