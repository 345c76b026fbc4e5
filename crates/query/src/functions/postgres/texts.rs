//! Names and constants as SQL writes them, sizes as people read them.

use super::{Function, function};
use crate::{Error, names};
use tidalite_types::pg_type;

pub(super) const FUNCTIONS: &[Function] = &[
    function("quote_ident", (1, 1), pg_type::TEXT, |_, arguments| Ok(arguments.text(0).map(names::quoted).into())),
    function("quote_literal", (1, 1), pg_type::TEXT, |_, arguments| Ok(text_of(arguments).map(literal).into())),
    Function {
        is_strict: false,
        ..function("quote_nullable", (1, 1), pg_type::TEXT, |_, arguments| {
            Ok(text_of(arguments).map_or_else(|| "NULL".to_owned(), literal).into())
        })
    },
    function("parse_ident", (1, 2), pg_type::TEXTS, |_, arguments| {
        let text = arguments.text(0).unwrap_or_default();
        let words = names::identifiers(text);
        let refused = || Error::invalid(format!("string is not a valid identifier: \"{text}\""));
        Ok(words.ok_or_else(refused)?.into())
    }),
    function("pg_size_pretty", (1, 1), pg_type::TEXT, |_, arguments| Ok(arguments.int(0).map(pretty).into())),
    function("pg_size_bytes", (1, 1), pg_type::INT8, |_, arguments| {
        let text = arguments.text(0).unwrap_or_default();
        Ok(bytes(text).ok_or_else(|| Error::invalid(format!("invalid size: \"{text}\"")))?.into())
    }),
];

fn text_of(arguments: &super::Arguments) -> Option<String> {
    let text = arguments.text(0).map(str::to_owned);
    text.or_else(|| arguments.int(0).map(|number| number.to_string()))
        .or_else(|| arguments.flag(0).map(|flag| flag.to_string()))
}

/// A string in quotes; with a backslash in it in the form that has escapes.
fn literal(text: String) -> String {
    let quoted = text.replace('\'', "''");
    if quoted.contains('\\') { format!("E'{}'", quoted.replace('\\', "\\\\")) } else { format!("'{quoted}'") }
}

/// As PostgreSQL rounds: a unit is left only from 10,240 of it on, halves away from zero.
fn pretty(bytes: i64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    if bytes.unsigned_abs() < 10 * 1024 {
        return format!("{bytes} bytes");
    }
    // One bit more than the unit until the end, to round by.
    let mut size = bytes / 512;
    for (n, unit) in UNITS.into_iter().enumerate() {
        let rounded = (size + size.signum()) / 2;
        if size.unsigned_abs() < 20 * 1024 - 1 || n + 1 == UNITS.len() {
            return format!("{rounded} {unit}");
        }
        size /= 1024;
    }
    format!("{bytes} bytes")
}

fn bytes(text: &str) -> Option<i64> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+'))).unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    let unit: f64 = match text[end..].trim().to_ascii_lowercase().as_str() {
        "" | "b" | "bytes" => 1.0,
        "kb" => 1024.0,
        "mb" => 1024.0_f64.powi(2),
        "gb" => 1024.0_f64.powi(3),
        "tb" => 1024.0_f64.powi(4),
        "pb" => 1024.0_f64.powi(5),
        _ => return None,
    };
    let bytes = (number * unit).round();
    (bytes.abs() < 9.2e18).then_some(bytes as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values are those of PostgreSQL 15.
    #[test]
    fn sizes_are_rounded_as_in_postgresql() {
        for (size, text) in [
            (0, "0 bytes"),
            (10_239, "10239 bytes"),
            (10_240, "10 kB"),
            (10_485_247, "10239 kB"),
            (10_485_248, "10 MB"),
            (-10_240, "-10 kB"),
            (1_000_000_000, "954 MB"),
            (i64::MAX, "8192 PB"),
        ] {
            assert_eq!(pretty(size), text);
        }
        assert_eq!(
            (bytes("1.5 GB"), bytes("10kB"), bytes("7"), bytes("x")),
            (Some(1_610_612_736), Some(10_240), Some(7), None)
        );
    }

    #[test]
    fn strings_are_quoted_as_constants() {
        assert_eq!(literal("it's".to_owned()), "'it''s'");
        assert_eq!(literal("a\\b".to_owned()), "E'a\\\\b'");
    }
}
