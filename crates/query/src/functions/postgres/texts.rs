//! SQL quoting of names and constants, and human-readable sizes.

use super::{Function, immutable};
use crate::{Error, names};
use tidalite_types::pg_type;

pub(super) const FUNCTIONS: &[Function] = &[
    immutable("quote_ident", (1, 1), pg_type::TEXT, |_, arguments| Ok(arguments.text(0).map(names::quoted).into())),
    immutable("quote_literal", (1, 1), pg_type::TEXT, |_, arguments| Ok(text_of(arguments).map(literal).into())),
    Function {
        is_strict: false,
        ..immutable("quote_nullable", (1, 1), pg_type::TEXT, |_, arguments| {
            Ok(text_of(arguments).map_or_else(|| "NULL".to_owned(), literal).into())
        })
    },
    immutable("parse_ident", (1, 2), pg_type::TEXTS, |_, arguments| {
        let text = arguments.text(0).unwrap_or_default();
        let words = names::identifiers(text);
        let refused = || Error::invalid(format!("string is not a valid identifier: \"{text}\""));
        Ok(words.ok_or_else(refused)?.into())
    }),
    Function { is_strict: false, ..immutable("format", (1, 100), pg_type::TEXT, |_, arguments| formatted(arguments)) },
    Function {
        is_strict: false,
        ..immutable("json_build_object", (0, 100), pg_type::JSON, |_, arguments| {
            let pairs = (0..arguments.len() / 2).map(|n| {
                let key = text_at(arguments, 2 * n).unwrap_or_default();
                format!("{} : {}", json_text(&key), json_value(arguments, 2 * n + 1))
            });
            Ok(format!("{{{}}}", pairs.collect::<Vec<_>>().join(", ")).into())
        })
    },
    immutable("pg_size_pretty", (1, 1), pg_type::TEXT, |_, arguments| Ok(arguments.int(0).map(pretty).into())),
    immutable("pg_size_bytes", (1, 1), pg_type::INT8, |_, arguments| {
        let text = arguments.text(0).unwrap_or_default();
        Ok(bytes(text).ok_or_else(|| Error::invalid(format!("invalid size: \"{text}\"")))?.into())
    }),
];

/// Returns the text of the first argument as a cast gives it.
fn text_of(arguments: &super::Arguments) -> Option<String> {
    arguments.flag(0).map(|flag| flag.to_string()).or_else(|| text_at(arguments, 0))
}

fn text_at(arguments: &super::Arguments, n: usize) -> Option<String> {
    let text = arguments.text(n).map(str::to_owned);
    let text = text.or_else(|| arguments.int(n).map(|number| number.to_string()));
    let text = text.or_else(|| arguments.flag(n).map(|flag| if flag { "t" } else { "f" }.to_owned()));
    text.or_else(|| arguments.other_text(n))
}

fn json_value(arguments: &super::Arguments, n: usize) -> String {
    let number = arguments.text(n).is_none().then(|| arguments.int(n)).flatten().map(|number| number.to_string());
    let flag = || arguments.flag(n).map(|flag| flag.to_string());
    let text = || arguments.text(n).map(json_text);
    number.or_else(flag).or_else(text).unwrap_or_else(|| "null".to_owned())
}

fn json_text(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Maximum bytes of a text that is padded: a batch of 8192 rows then has at most 128 MiB.
const PADDED_MAX: usize = 16 << 10;

/// Formats a text by a pattern, as PostgreSQL's `format`.
///
/// `%s` is an argument, `%I` a name, `%L` a constant, `%%` a percent sign; `%2$s` is the second argument, `%8s` and
/// `%-8s` pad to a width.
fn formatted(arguments: &super::Arguments) -> datafusion::common::Result<crate::pg_catalog::Value> {
    let Some(format) = arguments.text(0) else { return Ok(crate::pg_catalog::Value::Null) };
    let (mut out, mut next) = (String::new(), 1);
    let mut chars = format.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut digits = String::new();
        while let Some(digit) = chars.next_if(char::is_ascii_digit) {
            digits.push(digit);
        }
        let has_position = chars.next_if_eq(&'$').is_some();
        let at = if has_position { digits.parse().unwrap_or(0) } else { next };
        if has_position {
            digits.clear();
        }
        let is_left = digits.is_empty() && chars.next_if_eq(&'-').is_some();
        while let Some(digit) = chars.next_if(char::is_ascii_digit) {
            digits.push(digit);
        }
        let width = if digits.is_empty() { 0 } else { digits.parse().unwrap_or(usize::MAX) };
        if width > 0 && out.len().saturating_add(width) > PADDED_MAX {
            return Err(Error::invalid(format!("format pads to at most {PADDED_MAX} bytes")).about("format").into());
        }
        let kind = chars.next().ok_or_else(|| Error::invalid("unterminated format() type specifier"))?;
        if kind == '%' {
            out.push('%');
            continue;
        }
        if at == 0 || at >= arguments.len() {
            return Err(Error::invalid("too few arguments for format()").into());
        }
        next = at + 1;
        let text = match (kind, text_at(arguments, at)) {
            ('s', text) => text.unwrap_or_default(),
            ('I', Some(text)) => names::quoted(&text),
            ('L', Some(text)) => literal(text),
            ('L', None) => "NULL".to_owned(),
            ('I', None) => return Err(Error::invalid("null values cannot be formatted as an SQL identifier").into()),
            (other, _) => {
                return Err(Error::invalid(format!("unrecognized format() type specifier \"{other}\"")).into());
            }
        };
        out.push_str(&if is_left { format!("{text:<width$}") } else { format!("{text:>width$}") });
    }
    Ok(out.into())
}

/// Quotes a string; a string with a backslash gets the form with escapes.
fn literal(text: String) -> String {
    let quoted = text.replace('\'', "''");
    if quoted.contains('\\') { format!("E'{}'", quoted.replace('\\', "\\\\")) } else { format!("'{quoted}'") }
}

/// Formats a size with PostgreSQL's rounding.
///
/// The next unit is used from 10,240 of a unit on; halves are rounded away from zero.
fn pretty(bytes: i64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    if bytes.unsigned_abs() < 10 * 1024 {
        return format!("{bytes} bytes");
    }
    // The value keeps one extra bit for rounding at the end.
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

    /// Expected values are outputs of PostgreSQL 15.
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
