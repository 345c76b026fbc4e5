//! Formats times and intervals by a pattern.

use super::keywords::{Field, Keyword, Letters, Piece};
use crate::Error;
use crate::calendar::civil::centuries;
use crate::calendar::{Civil, week_of};
use datafusion::common::Result;
use std::fmt::Write;
use tidalite_types::time::days_from_civil;
use tidalite_types::{Interval, TimeUnit};

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
pub(super) const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
pub(super) const ROMAN: [&str; 12] = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];
/// The longest name of a month or a day, to which other names are padded.
const NAME_WIDTH: usize = 9;
/// The Julian day of 1970-01-01.
const JULIAN_1970: i64 = 2_440_588;

/// The parts that patterns of times and of intervals use.
struct Parts {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    nanos: i64,
}

pub(super) fn timestamp(ts: i64, unit: TimeUnit, pieces: &[Piece]) -> String {
    let t = Civil::of(ts, unit);
    let parts = Parts {
        year: year_shown(t.year),
        month: i64::from(t.month),
        day: i64::from(t.day),
        hour: t.second_of_day / 3_600,
        minute: t.second_of_day / 60 % 60,
        second: t.second_of_day % 60,
        nanos: t.nanos,
    };
    let mut out = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Field(field) => {
                if !of_clock(&mut out, &parts, field) {
                    of_calendar(&mut out, &t, field);
                }
            }
        }
    }
    out
}

/// # Errors
/// Fails if an interval lacks a field of the pattern, such as the name of a day.
pub(super) fn length(of: Interval, pieces: &[Piece]) -> Result<String> {
    let seconds = of.nanos / 1_000_000_000;
    let parts = Parts {
        year: i64::from(of.months / 12),
        month: i64::from(of.months % 12),
        day: i64::from(of.days),
        hour: seconds / 3_600,
        minute: seconds / 60 % 60,
        second: seconds % 60,
        nanos: of.nanos % 1_000_000_000,
    };
    let mut out = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Field(field) if of_clock(&mut out, &parts, field) => {}
            Piece::Field(_) => {
                return Err(Error::invalid("invalid format specification for an interval value")
                    .with_hint("an interval has no name of a day or a month, no week and no time zone")
                    .into());
            }
        }
    }
    Ok(out)
}

/// Writes a number with at least the given number of digits, and an ordinal ending.
fn number(out: &mut String, value: i64, digits: usize, field: &Field) {
    let width = if field.is_bare { 0 } else { digits + usize::from(value < 0) };
    // Writing to a String never fails.
    let _ = write!(out, "{value:0width$}");
    let Some(letters) = field.ordinal else { return };
    let ending = match (value.unsigned_abs() % 10, value.unsigned_abs() % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    out.push_str(&if letters == Letters::Upper { ending.to_ascii_uppercase() } else { ending.to_owned() });
}

/// Writes text in the letter case of its keyword, padded on the right without FM.
fn name(out: &mut String, text: &str, width: usize, field: &Field) {
    let text = match field.letters {
        Letters::Upper => text.to_ascii_uppercase(),
        Letters::Lower => text.to_ascii_lowercase(),
        Letters::Capital => text.to_owned(),
    };
    let width = if field.is_bare { 0 } else { width };
    let _ = write!(out, "{text:width$}");
}

/// Writes a field that times and intervals have; returns false for other keywords.
fn of_clock(out: &mut String, parts: &Parts, field: &Field) -> bool {
    let Parts { year, month, day, hour, minute, second, nanos } = *parts;
    match field.keyword {
        Keyword::Hour24 => number(out, hour, 2, field),
        Keyword::Hour12 => number(out, if hour % 12 == 0 { 12 } else { hour % 12 }, 2, field),
        Keyword::Minute => number(out, minute, 2, field),
        Keyword::Second => number(out, second, 2, field),
        Keyword::Milliseconds => number(out, nanos / 1_000_000, 3, field),
        Keyword::Microseconds => number(out, nanos / 1_000, 6, field),
        Keyword::Nanoseconds => number(out, nanos, 9, field),
        Keyword::Fraction(digits) => {
            let value = nanos / 10_i64.pow(9 - digits as u32);
            let _ = write!(out, "{value:0digits$}");
        }
        Keyword::SecondOfDay => number(out, hour * 3_600 + minute * 60 + second, 0, field),
        Keyword::Am { has_points } => {
            let text = match (hour % 24 < 12, has_points) {
                (true, false) => "AM",
                (true, true) => "A.M.",
                (false, false) => "PM",
                (false, true) => "P.M.",
            };
            name(out, text, 0, field);
        }
        // For an interval, the width includes the sign, as in PostgreSQL.
        Keyword::DayOfMonth => number(out, day, 2 - usize::from(day < 0), field),
        Keyword::MonthNumber => number(out, month, 2, field),
        Keyword::Year(digits) => year_digits(out, year, digits, field),
        Keyword::YearWithComma => {
            let _ = write!(out, "{},{:03}", year / 1_000, year % 1_000);
        }
        _ => return false,
    }
    true
}

/// Returns the displayed year: the year before the year 1 is 1 BC.
fn year_shown(year: i64) -> i64 {
    if year <= 0 { 1 - year } else { year }
}

fn year_digits(out: &mut String, year: i64, digits: usize, field: &Field) {
    let value = if digits == 4 { year } else { year % 10_i64.pow(digits as u32) };
    number(out, value, digits, field);
}

/// Writes a field that only times have.
fn of_calendar(out: &mut String, t: &Civil, field: &Field) {
    let weekday = (t.days + 3).rem_euclid(7);
    let day_of_year = t.days - days_from_civil(t.year, 1, 1) + 1;
    let month = MONTHS[t.month as usize - 1];
    match field.keyword {
        Keyword::Ad { has_points } => {
            let text = match (t.year > 0, has_points) {
                (true, false) => "AD",
                (true, true) => "A.D.",
                (false, false) => "BC",
                (false, true) => "B.C.",
            };
            name(out, text, 0, field);
        }
        Keyword::Century => number(out, centuries(t.year, 100), 2, field),
        Keyword::DayName => name(out, DAYS[weekday as usize], NAME_WIDTH, field),
        Keyword::DayNameShort => name(out, &DAYS[weekday as usize][..3], 0, field),
        Keyword::MonthName => name(out, month, NAME_WIDTH, field),
        Keyword::MonthNameShort => name(out, &month[..3], 0, field),
        Keyword::MonthRoman => name(out, ROMAN[t.month as usize - 1], 4, field),
        Keyword::DayOfYear => number(out, day_of_year, 3, field),
        Keyword::DayOfWeek => number(out, (weekday + 1) % 7 + 1, 0, field),
        Keyword::IsoDayOfWeek => number(out, weekday + 1, 0, field),
        Keyword::IsoDayOfYear => {
            let (_, week) = week_of(t);
            number(out, (week - 1) * 7 + weekday + 1, 3, field);
        }
        Keyword::IsoWeek => number(out, week_of(t).1, 2, field),
        Keyword::IsoYear(digits) => year_digits(out, year_shown(week_of(t).0), digits, field),
        Keyword::Julian => number(out, t.days + JULIAN_1970, 0, field),
        Keyword::Quarter => number(out, i64::from(t.month - 1) / 3 + 1, 0, field),
        Keyword::WeekOfMonth => number(out, i64::from(t.day - 1) / 7 + 1, 0, field),
        Keyword::WeekOfYear => number(out, (day_of_year - 1) / 7 + 1, 2, field),
        // All times are UTC; a TIMESTAMP has no zone name.
        Keyword::Offset | Keyword::OffsetHours => out.push_str("+00"),
        Keyword::OffsetMinutes => out.push_str("00"),
        _ => {}
    }
}
