//! Numbers with a decimal comma or with separators of thousands.

use std::borrow::Cow;
use std::fmt;

/// The separator between groups of three digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Thousands {
    #[default]
    None,
    Comma,
    Point,
    /// An ASCII space, or U+00A0, U+2009, U+202F.
    Space,
    /// `'` or U+2019.
    Apostrophe,
}

/// The notation of the numbers of a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct NumberFormat {
    pub has_decimal_comma: bool,
    pub thousands: Thousands,
}

impl Thousands {
    /// # Errors
    /// The text is no separator.
    pub fn from_text(text: &str) -> Result<Thousands, String> {
        match text {
            "" | "none" => Ok(Thousands::None),
            "," | "comma" => Ok(Thousands::Comma),
            "." | "point" => Ok(Thousands::Point),
            " " | "\u{a0}" | "\u{2009}" | "\u{202f}" | "space" => Ok(Thousands::Space),
            "'" | "\u{2019}" | "apostrophe" => Ok(Thousands::Apostrophe),
            other => {
                Err(format!("{other:?} is no separator of thousands: comma, point, space, apostrophe and none are"))
            }
        }
    }

    /// Returns the length of the separator at the start of `text`.
    fn length_at(self, text: &[u8]) -> Option<usize> {
        match (self, text) {
            (Thousands::Comma, [b',', ..])
            | (Thousands::Point, [b'.', ..])
            | (Thousands::Space, [b' ', ..])
            | (Thousands::Apostrophe, [b'\'', ..]) => Some(1),
            (Thousands::Space, [0xc2, 0xa0, ..]) => Some(2),
            (Thousands::Space, [0xe2, 0x80, 0x89 | 0xaf, ..]) | (Thousands::Apostrophe, [0xe2, 0x80, 0x99, ..]) => {
                Some(3)
            }
            _ => None,
        }
    }
}

impl fmt::Display for Thousands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Thousands::None => "none",
            Thousands::Comma => "comma",
            Thousands::Point => "point",
            Thousands::Space => "space",
            Thousands::Apostrophe => "apostrophe",
        })
    }
}

/// Elements of a number in a format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct NumberShape {
    pub has_decimals: bool,
    pub has_exponent: bool,
    /// True if there are separators of thousands.
    pub is_grouped: bool,
}

/// Formats of numbers with an example of each, which is the name of the format.
const EXAMPLES: [(&str, bool, Thousands); 7] = [
    ("1.5", false, Thousands::None),
    ("1,5", true, Thousands::None),
    ("1,234.5", false, Thousands::Comma),
    ("1.234,5", true, Thousands::Point),
    ("1 234,5", true, Thousands::Space),
    ("1 234.5", false, Thousands::Space),
    ("1'234.5", false, Thousands::Apostrophe),
];

impl fmt::Display for NumberFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is = |(_, comma, thousands): &&(&str, bool, Thousands)| {
            (*comma, *thousands) == (self.has_decimal_comma, self.thousands)
        };
        f.write_str(EXAMPLES.iter().find(is).map_or("1.5", |(text, ..)| text))
    }
}

impl NumberFormat {
    /// Reads an example: `1,5`, `1.234,5`, `1,234.5`, `1 234,5`, `1 234.5`, `1'234.5`, `1.5`.
    ///
    /// # Errors
    /// The text is none of these.
    pub fn from_text(text: &str) -> Result<NumberFormat, String> {
        let found = EXAMPLES.iter().find(|(example, ..)| *example == text.trim());
        let format = |(_, has_decimal_comma, thousands): &(&str, bool, Thousands)| NumberFormat {
            has_decimal_comma: *has_decimal_comma,
            thousands: *thousands,
        };
        found
            .map(format)
            .ok_or_else(|| format!("{text:?} is no format of numbers: examples such as 1,5 or 1.234,5 or 1,234.5 are"))
    }

    /// A decimal point and no separators.
    pub const PLAIN: NumberFormat = NumberFormat { has_decimal_comma: false, thousands: Thousands::None };

    /// Returns the number in Rust's notation, and its shape; `None` for another notation.
    ///
    /// A number with a leading zero before another digit has no separators in any format.
    pub(super) fn plain<'a>(&self, text: &'a str) -> Option<(Cow<'a, str>, NumberShape)> {
        let bytes = text.as_bytes();
        let mut shape = NumberShape::default();
        let mut at = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
        let mut out = String::new();
        let first = at;
        let (mut group_digits, mut digits) = (0, 0);
        loop {
            match bytes.get(at) {
                Some(digit) if digit.is_ascii_digit() => {
                    (group_digits, digits) = (group_digits + 1, digits + 1);
                    at += 1;
                }
                Some(_) if digits > 0 => {
                    let Some(length) = self.thousands.length_at(&bytes[at..]) else { break };
                    let is_group = if shape.is_grouped { group_digits == 3 } else { group_digits <= 3 };
                    if !is_group || !bytes.get(at + length).is_some_and(u8::is_ascii_digit) {
                        return None;
                    }
                    (shape.is_grouped, group_digits) = (true, 0);
                    at += length;
                }
                _ => break,
            }
        }
        if shape.is_grouped && (group_digits != 3 || bytes[first] == b'0') {
            return None;
        }
        let whole_end = at;
        let mark = if self.has_decimal_comma { b',' } else { b'.' };
        if bytes.get(at) == Some(&mark) {
            let decimals = bytes[at + 1..].iter().take_while(|b| b.is_ascii_digit()).count();
            (shape.has_decimals, digits) = (true, digits + decimals);
            at += 1 + decimals;
        }
        let decimals_end = at;
        if digits > 0 && matches!(bytes.get(at), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
            let exponent = bytes[at + 1 + sign..].iter().take_while(|b| b.is_ascii_digit()).count();
            shape.has_exponent = exponent > 0;
            at += 1 + sign + exponent;
        }
        if digits == 0 || at != bytes.len() || (!shape.has_exponent && at != decimals_end) {
            return None;
        }
        if !shape.is_grouped && !self.has_decimal_comma {
            return Some((Cow::Borrowed(text), shape));
        }
        out.extend(text[..whole_end].chars().filter(|c| c.is_ascii_digit() || matches!(c, '+' | '-')));
        if shape.has_decimals {
            out.push('.');
            out.push_str(&text[whole_end + 1..decimals_end]);
        }
        out.push_str(&text[decimals_end..]);
        Some((Cow::Owned(out), shape))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str, has_decimal_comma: bool, thousands: Thousands) -> Option<String> {
        NumberFormat { has_decimal_comma, thousands }.plain(text).map(|(text, _)| text.into_owned())
    }

    #[test]
    fn separators_are_taken_out_where_they_belong() {
        for (text, comma, thousands, expected) in [
            ("1,234,567.89", false, Thousands::Comma, Some("1234567.89")),
            ("1234567.89", false, Thousands::Comma, Some("1234567.89")),
            ("-1.234.567,89", true, Thousands::Point, Some("-1234567.89")),
            ("1 234 567,5", true, Thousands::Space, Some("1234567.5")),
            ("1\u{a0}234,5e3", true, Thousands::Space, Some("1234.5e3")),
            ("1\u{202f}234", true, Thousands::Space, Some("1234")),
            ("1'234.5", false, Thousands::Apostrophe, Some("1234.5")),
            (",5", true, Thousands::None, Some(".5")),
            ("+3,5", true, Thousands::None, Some("+3.5")),
            ("1,23", false, Thousands::Comma, None),
            ("1234,567", false, Thousands::Comma, None),
            ("1,234,56", false, Thousands::Comma, None),
            ("1,,234", false, Thousands::Comma, None),
            ("1,234,", false, Thousands::Comma, None),
            ("0,123", false, Thousands::Comma, None),
            ("1.5", true, Thousands::None, None),
            ("1,2,3", true, Thousands::None, None),
            ("1,5x", true, Thousands::None, None),
            ("1,5e", true, Thousands::None, None),
            ("", true, Thousands::None, None),
            (",", true, Thousands::None, None),
            ("-", true, Thousands::Point, None),
        ] {
            assert_eq!(plain(text, comma, thousands).as_deref(), expected, "{text}");
        }
    }
}
