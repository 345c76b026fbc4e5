//! Formats numbers by a pattern of PostgreSQL: `to_char(1234.5, '9,999.99')`.

use crate::Error;
use datafusion::common::Result;

/// Maximum digits of a pattern, before and after the point.
const DIGITS_MAX: usize = 100;
/// The width of a number in Roman digits.
const ROMAN_WIDTH: usize = 15;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    /// `9`, or `0` if leading zeros are kept.
    Digit {
        is_kept: bool,
    },
    Point,
    Group,
    /// `SG`, and `S` after digits: + or −.
    Sign,
    Minus,
    Plus,
    Text(char),
    Ordinal {
        is_upper: bool,
    },
}

#[derive(Clone, Debug, Default)]
pub(super) struct Format {
    pieces: Vec<Piece>,
    before: usize,
    after: usize,
    /// Digits after V: the power of ten that multiplies the number.
    shift: usize,
    is_bare: bool,
    has_brackets: bool,
    has_sign: bool,
    /// True for S before the digits: + or − directly before the first digit.
    has_leading_sign: bool,
    is_roman: Option<bool>,
    is_scientific: bool,
}

/// A number to format.
pub(super) enum Digits {
    Decimal(i128, i8),
    Double(f64),
}

/// A rounded number.
struct Rounded {
    is_negative: bool,
    whole: String,
    fraction: String,
}

impl Digits {
    pub fn of_decimal(value: i128, scale: i8) -> Digits {
        Digits::Decimal(value, scale)
    }

    pub fn of_double(value: f64) -> Digits {
        Digits::Double(value)
    }

    fn double(&self) -> f64 {
        match self {
            Digits::Decimal(value, scale) => *value as f64 / 10_f64.powi(i32::from(*scale)),
            Digits::Double(value) => *value,
        }
    }

    /// Multiplies by a power of ten and rounds to `digits` after the point; `None` for NaN and infinities.
    fn rounded(&self, digits: usize, shift: usize) -> Option<Rounded> {
        let (is_negative, text) = match self {
            Digits::Double(value) if !value.is_finite() => return None,
            Digits::Double(value) => {
                let value = value * 10_f64.powi(shift as i32);
                (value < 0.0, format!("{:.digits$}", value.abs()))
            }
            Digits::Decimal(value, scale) => {
                let scale = i64::from(*scale) - shift as i64;
                (*value < 0, decimal_text(value.unsigned_abs(), scale, digits))
            }
        };
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
        let is_zero = text.bytes().all(|b| b == b'0' || b == b'.');
        let whole = match whole.trim_start_matches('0') {
            "" => "0",
            digits => digits,
        };
        Some(Rounded { is_negative: is_negative && !is_zero, whole: whole.to_owned(), fraction: fraction.to_owned() })
    }
}

/// Formats `value / 10^scale` with `digits` after the point, halves rounded up.
fn decimal_text(value: u128, scale: i64, digits: usize) -> String {
    let mut text = value.to_string();
    if scale < 0 {
        text.extend(std::iter::repeat_n('0', scale.unsigned_abs() as usize));
    }
    let scale = usize::try_from(scale).unwrap_or(0);
    let missing = (scale + 1).saturating_sub(text.len());
    let text = "0".repeat(missing) + &text;
    let (whole, fraction) = text.split_at(text.len() - scale);
    let kept = &fraction[..fraction.len().min(digits)];
    let mut all: Vec<u8> = whole.bytes().chain(kept.bytes()).collect();
    let is_up = fraction.as_bytes().get(digits).is_some_and(|b| *b >= b'5');
    if is_up {
        let carried = all.iter_mut().rev().try_for_each(|b| {
            let is_nine = *b == b'9';
            *b = if is_nine { b'0' } else { *b + 1 };
            if is_nine { Ok(()) } else { Err(()) }
        });
        if carried.is_ok() {
            all.insert(0, b'1');
        }
    }
    let whole = all.len() - kept.len();
    let mut out: String = all[..whole].iter().map(|b| char::from(*b)).collect();
    if digits > 0 {
        out.push('.');
        out.extend(all[whole..].iter().map(|b| char::from(*b)));
        out.extend(std::iter::repeat_n('0', digits - kept.len()));
    }
    out
}

impl Format {
    pub fn parse(pattern: &str) -> Result<Format> {
        let mut format = Format::default();
        let mut rest = pattern;
        let takes = |rest: &mut &str, word: &str| {
            let found = rest.get(..word.len()).is_some_and(|own| own.eq_ignore_ascii_case(word));
            if found {
                *rest = &rest[word.len()..];
            }
            found
        };
        let (mut has_point, mut has_shift) = (false, false);
        while let Some(first) = rest.chars().next() {
            let is_lower = first.is_ascii_lowercase();
            let piece = if takes(&mut rest, "FM") {
                format.is_bare = true;
                continue;
            } else if takes(&mut rest, "EEEE") {
                format.is_scientific = true;
                continue;
            } else if takes(&mut rest, "RN") {
                format.is_roman = Some(!is_lower);
                continue;
            } else if takes(&mut rest, "PR") {
                format.has_brackets = true;
                continue;
            } else if takes(&mut rest, "V") {
                has_shift = true;
                continue;
            } else if takes(&mut rest, "TH") {
                Piece::Ordinal { is_upper: !is_lower }
            } else if takes(&mut rest, "MI") {
                Piece::Minus
            } else if takes(&mut rest, "PL") {
                Piece::Plus
            } else if takes(&mut rest, "SG") {
                Piece::Sign
            } else if takes(&mut rest, "S") {
                if format.before == 0 && !has_point {
                    format.has_leading_sign = true;
                    continue;
                }
                Piece::Sign
            } else if takes(&mut rest, "B") {
                continue;
            } else if takes(&mut rest, ".") || takes(&mut rest, "D") {
                Piece::Point
            } else if takes(&mut rest, ",") || takes(&mut rest, "G") {
                Piece::Group
            } else if takes(&mut rest, "L") {
                // There is no currency sign.
                Piece::Text(' ')
            } else if first == '"' {
                let (text, after) = rest[1..].split_once('"').unwrap_or((&rest[1..], ""));
                format.pieces.extend(text.chars().map(Piece::Text));
                rest = after;
                continue;
            } else {
                rest = &rest[first.len_utf8()..];
                match first {
                    '9' => Piece::Digit { is_kept: false },
                    '0' => Piece::Digit { is_kept: true },
                    other => Piece::Text(other),
                }
            };
            match piece {
                Piece::Point if has_point => return Err(Error::invalid("multiple decimal points").into()),
                Piece::Point => has_point = true,
                Piece::Digit { .. } if has_point => format.after += 1,
                Piece::Digit { .. } => {
                    format.before += 1;
                    format.shift += usize::from(has_shift);
                }
                Piece::Sign | Piece::Minus => format.has_sign = true,
                _ => {}
            }
            format.pieces.push(piece);
        }
        if format.before + format.after > DIGITS_MAX {
            return Err(Error::invalid(format!("a pattern has at most {DIGITS_MAX} digits")).into());
        }
        Ok(format)
    }

    pub fn shown(&self, number: &Digits) -> String {
        if let Some(is_upper) = self.is_roman {
            return self.roman(number, is_upper);
        }
        if self.is_scientific {
            return self.scientific(number);
        }
        let Some(rounded) = number.rounded(self.after, self.shift) else { return self.not_finite(number) };
        let is_too_long = rounded.whole.len() > self.before;
        self.filled(&rounded, is_too_long)
    }

    fn filled(&self, number: &Rounded, is_too_long: bool) -> String {
        let is_zero_kept = |p: &&Piece| matches!(p, Piece::Digit { is_kept: true });
        let point = self.pieces.iter().position(|p| *p == Piece::Point).unwrap_or(self.pieces.len());
        let digits_before = || self.pieces[..point].iter().filter(|p| matches!(p, Piece::Digit { .. }));
        let first_zero = digits_before().position(|p| is_zero_kept(&p));
        let blanks = if is_too_long { 0 } else { self.before.saturating_sub(number.whole.len()) };
        // For example, `0.5` with pattern `9.9` is ` .5`.
        let is_zero_hidden = number.whole == "0" && self.after > 0 && first_zero.is_none() && !is_too_long;
        let kept_after = self.pieces[point..].iter().filter(|p| matches!(p, Piece::Digit { .. }));
        let least = kept_after.enumerate().filter(|(_, p)| is_zero_kept(p)).map(|(at, _)| at + 1).last().unwrap_or(0);
        let relevant = if self.is_bare && !is_too_long {
            number.fraction.trim_end_matches('0').len().max(least)
        } else {
            self.after
        };
        let mut out = String::new();
        let (mut whole, mut fraction) = (0, 0);
        let (mut has_digit, mut has_sign) = (false, self.has_sign);
        let sign = match (self.has_brackets, number.is_negative) {
            (_, is_negative) if self.has_leading_sign => {
                if is_negative {
                    "-"
                } else {
                    "+"
                }
            }
            (true, true) => "<",
            (false, true) => "-",
            (_, false) if self.is_bare => "",
            (_, false) => " ",
        };
        let blank = if self.is_bare { "" } else { " " };
        for (at, piece) in self.pieces.iter().enumerate() {
            match piece {
                Piece::Digit { .. } if at < point => {
                    let place = whole;
                    whole += 1;
                    let is_zero = place < blanks && first_zero.is_some_and(|first| place >= first);
                    if place < blanks && !is_zero {
                        out.push_str(blank);
                        continue;
                    }
                    if is_zero_hidden && !(self.is_bare && relevant == 0) {
                        out.push_str(blank);
                        continue;
                    }
                    if !std::mem::replace(&mut has_sign, true) {
                        out.push_str(sign);
                    }
                    has_digit = true;
                    match number.whole.as_bytes().get(place - blanks.min(place)) {
                        _ if is_too_long => out.push('#'),
                        _ if is_zero => out.push('0'),
                        Some(digit) => out.push(char::from(*digit)),
                        None => out.push('0'),
                    }
                }
                Piece::Digit { .. } => {
                    if fraction < relevant {
                        let digit = number.fraction.as_bytes().get(fraction).map_or('0', |b| char::from(*b));
                        out.push(if is_too_long { '#' } else { digit });
                    }
                    fraction += 1;
                }
                Piece::Point => {
                    if !std::mem::replace(&mut has_sign, true) {
                        out.push_str(sign);
                    }
                    out.push('.');
                }
                Piece::Group if has_digit => out.push(','),
                Piece::Group => out.push_str(blank),
                Piece::Sign => out.push(if number.is_negative { '-' } else { '+' }),
                Piece::Minus => out.push_str(if number.is_negative { "-" } else { blank }),
                Piece::Plus => out.push_str(if number.is_negative { blank } else { "+" }),
                Piece::Text(c) => out.push(*c),
                Piece::Ordinal { is_upper } if !number.is_negative => {
                    let ending = ordinal(&number.whole);
                    out.push_str(&if *is_upper { ending.to_ascii_uppercase() } else { ending.to_owned() });
                }
                Piece::Ordinal { .. } => {}
            }
        }
        if self.has_brackets {
            out.push_str(if number.is_negative { ">" } else { blank });
        }
        out
    }

    fn not_finite(&self, number: &Digits) -> String {
        let (text, width) = (number.double().to_string(), self.before + self.after + usize::from(self.after > 0) + 1);
        if self.is_bare { text } else { format!("{text:>width$}") }
    }

    /// Formats in scientific notation: ` 1.23e+04`.
    fn scientific(&self, number: &Digits) -> String {
        let value = number.double();
        if !value.is_finite() {
            return self.not_finite(number);
        }
        let text = format!("{:.*e}", self.after, value);
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        let sign = if exponent < 0 { '-' } else { '+' };
        let space = if self.is_bare || value < 0.0 { "" } else { " " };
        format!("{space}{mantissa}e{sign}{:02}", exponent.abs())
    }

    /// Formats a number from 1 to 3999 in Roman digits.
    fn roman(&self, number: &Digits, is_upper: bool) -> String {
        const DIGITS: [(i64, &str); 13] = [
            (1_000, "M"),
            (900, "CM"),
            (500, "D"),
            (400, "CD"),
            (100, "C"),
            (90, "XC"),
            (50, "L"),
            (40, "XL"),
            (10, "X"),
            (9, "IX"),
            (5, "V"),
            (4, "IV"),
            (1, "I"),
        ];
        let value = number.double().round();
        let mut text = String::new();
        if (1.0..=3_999.0).contains(&value) {
            let mut rest = value as i64;
            for (worth, digits) in DIGITS {
                while rest >= worth {
                    text.push_str(digits);
                    rest -= worth;
                }
            }
        } else {
            text = "#".repeat(ROMAN_WIDTH);
        }
        let text = if is_upper { text } else { text.to_ascii_lowercase() };
        if self.is_bare { text } else { format!("{text:>ROMAN_WIDTH$}") }
    }
}

fn ordinal(whole: &str) -> &'static str {
    let tens = whole.len() > 1 && whole.as_bytes()[whole.len() - 2] == b'1';
    match whole.as_bytes().last() {
        Some(b'1') if !tens => "st",
        Some(b'2') if !tens => "nd",
        Some(b'3') if !tens => "rd",
        _ => "th",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values are outputs of PostgreSQL 15.
    #[test]
    fn patterns_of_postgresql() {
        let cases = [
            (123_456, 2, "999,999.99", "   1,234.56"),
            (-123_456, 2, "FM999,999.99", "-1,234.56"),
            (12, 0, "99999", "    12"),
            (12, 0, "00000", " 00012"),
            (0, 0, "9", " 0"),
            (1, 1, "9.9", "  .1"),
            (-1, 1, "99.99", "  -.10"),
            (12, 0, "FM999.99", "12."),
            (1_234, 0, "99", " ##"),
            (485, 0, "S999", "+485"),
            (-485, 0, "999MI", "485-"),
            (-485, 0, "999PR", "<485>"),
            (485, 0, "RN", "        CDLXXXV"),
            (482, 0, "999th", " 482nd"),
            (12_345, 0, "9.99EEEE", " 1.23e+04"),
            (12, 0, "99V999", " 12000"),
            (148_500, 2, "9G999D999", " 1,485.000"),
            (5, 1, "FM0.99", "0.5"),
        ];
        for (value, scale, pattern, expected) in cases {
            let format = Format::parse(pattern).expect("a pattern");
            assert_eq!(format.shown(&Digits::of_decimal(value, scale)), expected, "{value} {scale} {pattern}");
        }
    }
}
