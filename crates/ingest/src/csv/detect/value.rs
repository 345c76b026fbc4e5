//! The types that one string could be a value of.
//!
//! The type of a column is the narrowest that every string of the column could have: the intersection of
//! [`ValueFacts::bits`].

use super::super::numbers::{NumberFormat, Thousands};
use super::super::times::{self, DateOrder, EpochUnit};
use crate::convert::text;

/// Spellings of true and false; the first pair is accepted alone, the others only if both words occur.
pub(super) const BOOLEANS: [(&str, &str); 5] =
    [("true", "false"), ("yes", "no"), ("y", "n"), ("t", "f"), ("on", "off")];

/// Formats of numbers, in the order of preference.
pub(super) const NUMBERS: [NumberFormat; 7] = [
    NumberFormat::PLAIN,
    NumberFormat { has_decimal_comma: true, thousands: Thousands::None },
    NumberFormat { has_decimal_comma: false, thousands: Thousands::Comma },
    NumberFormat { has_decimal_comma: true, thousands: Thousands::Point },
    NumberFormat { has_decimal_comma: true, thousands: Thousands::Space },
    NumberFormat { has_decimal_comma: false, thousands: Thousands::Space },
    NumberFormat { has_decimal_comma: false, thousands: Thousands::Apostrophe },
];

/// Boolean words that may also be text: all except `true` and `false`.
pub(super) const SHORT_BOOLEAN: u32 = 0b1_1110;
const NUMBER_SHIFT: u32 = 5;
/// One bit for each of [`NUMBERS`].
pub(super) const NUMBER: u32 = 0b111_1111 << NUMBER_SHIFT;
pub(super) const PLAIN_NUMBER: u32 = 1 << NUMBER_SHIFT;
pub(super) const INTEGER: u32 = 1 << 12;
/// An unambiguous time; a time that depends on the order of day and month.
pub(super) const TIME: u32 = 1 << 13;
pub(super) const DAY_FIRST: u32 = 1 << 14;
pub(super) const MONTH_FIRST: u32 = 1 << 15;
/// A date that consists of digits only.
pub(super) const COMPACT: u32 = 1 << 16;
const EPOCH_SHIFT: u32 = 17;
pub(super) const UUID: u32 = 1 << 21;
pub(super) const IPV4: u32 = 1 << 22;

/// Number of digits from which on a number with a plus sign is a telephone number.
const TELEPHONE_DIGITS: usize = 8;

pub(super) fn number_bit(n: usize) -> u32 {
    1 << (NUMBER_SHIFT + n as u32)
}

pub(super) fn epoch_bit(unit: EpochUnit) -> u32 {
    1 << (EPOCH_SHIFT + unit as u32)
}

pub(super) fn boolean_bit(family: usize) -> u32 {
    1 << family as u32
}

/// The types that a string could have, one bit each; no bit means text only.
///
/// `bits` are intersected over a column, the other members are united.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ValueFacts {
    pub bits: u32,
    pub is_true: bool,
    pub is_false: bool,
    /// A time of day follows the date.
    pub has_time: bool,
    pub decimals: u8,
    pub has_short_year: bool,
    /// Day and month can be exchanged, and the result is a different date.
    pub is_ambiguous: bool,
    /// An integer whose magnitude does not determine its unit.
    pub is_small: bool,
    /// Separators of thousands other than commas, points or apostrophes, without decimals: possibly not a number.
    pub is_spaced: bool,
}

pub(super) fn value_of(text: &str) -> ValueFacts {
    let mut value = ValueFacts::default();
    let Some(first) = text.bytes().next() else { return value };
    if first.is_ascii_alphabetic() && text.len() <= 9 {
        boolean(text, &mut value);
        if is_special_number(text) {
            value.bits |= NUMBER;
        }
        if value.bits != 0 {
            return value;
        }
    }
    if !text.bytes().any(|b| b.is_ascii_digit()) && !text::has_uuid_form(text) {
        return value;
    }
    number(text, &mut value);
    time(text, &mut value);
    if value.bits == 0 {
        if text::has_uuid_form(text) {
            value.bits |= UUID;
        } else if text::ipv4(text).is_ok() {
            value.bits |= IPV4;
        }
    }
    value
}

fn boolean(text: &str, value: &mut ValueFacts) {
    for (family, (yes, no)) in BOOLEANS.iter().enumerate() {
        let (is_true, is_false) = (text.eq_ignore_ascii_case(yes), text.eq_ignore_ascii_case(no));
        if is_true || is_false {
            value.bits |= boolean_bit(family);
            (value.is_true, value.is_false) = (is_true, is_false);
        }
    }
}

/// Returns true for infinity and NaN in Rust's notation.
fn is_special_number(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    ["inf", "infinity", "nan"].iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// Returns true if a zero precedes another digit: the string is a code (a postal code), not a number.
fn has_leading_zero(digits: &str) -> bool {
    matches!(digits.as_bytes(), [b'0', b'0'..=b'9', ..])
}

fn number(text: &str, value: &mut ValueFacts) {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_telephone =
        text.starts_with('+') && digits.len() >= TELEPHONE_DIGITS && digits.bytes().all(|b| b.is_ascii_digit());
    if is_telephone || has_leading_zero(digits) {
        return;
    }
    if is_special_number(text) {
        value.bits |= NUMBER;
        return;
    }
    if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
        value.bits |= NUMBER | INTEGER;
    } else {
        for (n, format) in NUMBERS.iter().enumerate() {
            if let Some((_, shape)) = format.plain(text) {
                value.bits |= number_bit(n);
                value.is_spaced |= format.thousands == Thousands::Space
                    && shape.is_grouped
                    && !shape.has_decimals
                    && text.contains(' ');
            }
        }
    }
    if value.bits & PLAIN_NUMBER == 0 {
        return;
    }
    match times::epoch_unit(text) {
        Some(unit) => value.bits |= epoch_bit(unit),
        None => value.is_small = true,
    }
}

fn time(text: &str, value: &mut ValueFacts) {
    if value.bits & PLAIN_NUMBER != 0 {
        if let Some(reading) = times::compact(text.as_bytes()) {
            value.bits |= COMPACT;
            (value.has_time, value.decimals, value.is_small) = (reading.has_time, reading.decimals, false);
        }
        return;
    }
    if let Some(reading) = times::compact(text.as_bytes()).or_else(|| times::read(text, None)) {
        value.bits |= TIME | DAY_FIRST | MONTH_FIRST;
        (value.has_time, value.decimals) = (reading.has_time, reading.decimals);
        value.has_short_year = reading.has_short_year;
        return;
    }
    let orders = [(DAY_FIRST, DateOrder::DayFirst), (MONTH_FIRST, DateOrder::MonthFirst)];
    let readings = orders.map(|(bit, order)| (bit, times::read(text, Some(order))));
    for (bit, reading) in readings {
        let Some(reading) = reading else { continue };
        value.bits |= bit;
        (value.has_time, value.decimals) = (reading.has_time, reading.decimals);
        value.has_short_year |= reading.has_short_year;
    }
    if let [(_, Some(a)), (_, Some(b))] = readings {
        value.is_ambiguous = a.instant != b.instant;
    }
}

/// Returns true if a string may be a column name: not a value, except short Boolean words such as `t`.
pub(super) fn is_name(text: &str) -> bool {
    let value = value_of(text);
    value.bits & !SHORT_BOOLEAN == 0 && !is_special_number(text)
}
