//! `to_str(ts, 'yyyy-MM-dd')` and `to_timestamp(text, 'dd/MM/yyyy')`: timestamps as text by a pattern of letters.
//!
//! | letters | are |
//! |---|---|
//! | `yyyy`, `yy`, `y` | the year; its last two digits, of 2000 to 2099 |
//! | `MM`, `M`, `MMM`, `MMMM` | the month as a number, `Jan`, `January` |
//! | `dd`, `d`, `E`, `EEEE` | the day of the month; of the week, `Mon`, `Monday` |
//! | `HH`, `H`, `hh`, `h`, `a` | the hour of 24, of 12; `AM` or `PM` |
//! | `mm`, `m`, `ss`, `s` | minute, second |
//! | `SSS`, `S`, `UUU`, `U`, `NNN`, `N` | milliseconds, microseconds of them, nanoseconds of those; `S+`, `U+`, `N+` the whole fraction |
//! | `Z`, `z`, `XXX` | an offset from UTC |
//! | `'text'`, and all else | itself |

use super::scalar::{Call, Gives, Kind, PLAIN, Scalar};
use super::times;
use crate::Error;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringViewArray};
use datafusion::arrow::compute::cast;
use datafusion::common::Result;
use std::fmt::Write;
use std::sync::Arc;
use tidalite_types::TimeUnit;
use tidalite_types::time::{civil_from_days, days_from_civil};

const MONTHS: [&str; 12] = [
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
const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const DAY_S: i64 = 86_400;

pub(super) const FUNCTIONS: &[Scalar] = &[
    Scalar {
        name: "to_str",
        takes: "a timestamp and a pattern",
        kinds: &[Kind::Time, Kind::Text],
        gives: Gives::Text,
        call: to_str,
        ..PLAIN
    },
    Scalar {
        name: "to_timestamp_ns",
        takes: "a text and a pattern",
        kinds: &[Kind::Text, Kind::Text],
        gives: Gives::Nanos,
        call: to_timestamp,
        ..PLAIN
    },
];

pub(super) enum Piece {
    /// A letter and how often it comes.
    Field(char, usize),
    Text(String),
}

pub(super) fn pieces(pattern: &str) -> Vec<Piece> {
    let mut out: Vec<Piece> = Vec::new();
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\'' {
            out.push(Piece::Text(chars.by_ref().take_while(|c| *c != '\'').collect()));
        } else if LETTERS.contains(c) {
            let mut count = 1;
            while chars.next_if_eq(&c).is_some() {
                count += 1;
            }
            // `S+`: as many digits as there are.
            if "SUN".contains(c) && chars.next_if_eq(&'+').is_some() {
                count = 9;
            }
            out.push(Piece::Field(c, count));
        } else {
            out.push(Piece::Text(c.to_string()));
        }
    }
    out
}

/// Letters that stand for a part of a time.
const LETTERS: &str = "yMdEHhamsSUNZzX";

/// Returns true if a pattern has letters without a meaning here, except the T between date and time.
pub(super) fn is_foreign(pattern: &str) -> bool {
    let outside = pattern.split('\'').step_by(2).flat_map(str::chars);
    outside.filter(char::is_ascii_alphabetic).any(|c| c != 'T' && !LETTERS.contains(c))
}

/// Creates the error for a text that does not match its pattern.
pub(super) fn refused(text: &str) -> datafusion::common::DataFusionError {
    let mut error = Error::invalid(format!("\"{text}\" is no timestamp of the pattern"));
    error.subject = Some(format!("'{text}"));
    error.into()
}

/// The pattern of the row before is mostly that of the next.
fn each_row<T>(
    call: &Call,
    patterns: &StringViewArray,
    is_null: impl Fn(usize) -> bool,
    mut value: impl FnMut(usize, &[Piece]) -> Result<T>,
) -> Result<Vec<Option<T>>> {
    let mut known: Option<(&str, Vec<Piece>)> = None;
    let mut out = Vec::with_capacity(call.rows);
    for row in 0..call.rows {
        if is_null(row) || patterns.is_null(row) {
            out.push(None);
            continue;
        }
        let pattern = patterns.value(row);
        let found = match known.take() {
            Some((last, found)) if last == pattern => found,
            _ => pieces(pattern),
        };
        out.push(Some(value(row, &found)?));
        known = Some((pattern, found));
    }
    Ok(out)
}

fn to_str(call: &Call) -> Result<ArrayRef> {
    let unit = times::unit(call.columns[0].data_type())?;
    let values = times::ticks(&call.columns[0])?;
    let texts = each_row(
        call,
        call.columns[1].as_string_view(),
        |row| values.is_null(row),
        |row, pieces| Ok(shown(values.value(row), unit, pieces)),
    )?;
    Ok(Arc::new(texts.into_iter().collect::<StringViewArray>()))
}

fn shown(ts: i64, unit: TimeUnit, pieces: &[Piece]) -> String {
    let seconds = ts.div_euclid(unit.per_second());
    let nanos = ts.rem_euclid(unit.per_second()) * (1_000_000_000 / unit.per_second());
    let (days, second) = (seconds.div_euclid(DAY_S), seconds.rem_euclid(DAY_S));
    let (year, month, day) = civil_from_days(days);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    let weekday = DAYS[(days + 3).rem_euclid(7) as usize];
    let name = |name: &'static str, count: usize| if count > 3 { name } else { &name[..3] };
    let mut out = String::new();
    for piece in pieces {
        let (letter, count) = match piece {
            Piece::Text(text) => {
                out.push_str(text);
                continue;
            }
            Piece::Field(letter, count) => (*letter, *count),
        };
        // Writing to a string cannot fail.
        let _ = match (letter, count) {
            ('y', 2) => write!(out, "{:02}", year.rem_euclid(100)),
            ('y', _) => write!(out, "{year:0count$}"),
            ('M', 3..) => out.write_str(name(MONTHS[month as usize - 1], count)),
            ('M', _) => write!(out, "{month:0count$}"),
            ('d', _) => write!(out, "{day:0count$}"),
            ('E', _) => out.write_str(name(weekday, count)),
            ('H', _) => write!(out, "{hour:0count$}"),
            ('h', _) => write!(out, "{:0count$}", (hour + 11) % 12 + 1),
            ('a', _) => out.write_str(if hour < 12 { "AM" } else { "PM" }),
            ('m', _) => write!(out, "{minute:0count$}"),
            ('s', _) => write!(out, "{second:0count$}"),
            ('S' | 'N', 9) => write!(out, "{nanos:09}"),
            ('U', 9) => write!(out, "{:06}", nanos / 1_000),
            ('S', _) => write!(out, "{:0count$}", nanos / 1_000_000),
            ('U', _) => write!(out, "{:0count$}", nanos / 1_000 % 1_000),
            ('N', _) => write!(out, "{:0count$}", nanos % 1_000),
            _ => out.write_str("Z"),
        };
    }
    out
}

fn to_timestamp(call: &Call) -> Result<ArrayRef> {
    let unit = times::unit(call.data_type)?;
    let texts = call.columns[0].as_string_view();
    let values = each_row(
        call,
        call.columns[1].as_string_view(),
        |row| texts.is_null(row),
        |row, pieces| {
            let text = texts.value(row);
            parsed(text, pieces, unit).ok_or_else(|| refused(text))
        },
    )?;
    let values: ArrayRef = Arc::new(Int64Array::from(values));
    Ok(cast(&values, call.data_type)?)
}

pub(super) fn parsed(text: &str, pieces: &[Piece], unit: TimeUnit) -> Option<i64> {
    let (mut year, mut month, mut day) = (1970, 1_i64, 1_i64);
    let (mut hour, mut minute, mut second, mut nanos, mut offset) = (0, 0, 0, 0, 0);
    let mut afternoon = None;
    let mut rest = text;
    for (at, piece) in pieces.iter().enumerate() {
        // Digits of a number end where the pattern says, or with the digits.
        let is_glued = matches!(pieces.get(at + 1), Some(Piece::Field(..)));
        let mut number = |count: usize, most: usize| digits(&mut rest, if is_glued { count } else { most.max(count) });
        match piece {
            Piece::Text(text) => rest = rest.strip_prefix(text.as_str())?,
            Piece::Field('y', 2) => year = 2_000 + number(2, 2)?.0,
            Piece::Field('y', count) => year = number((*count).max(4), 6)?.0,
            Piece::Field('M', 3..) => month = named(&mut rest, &MONTHS)? + 1,
            Piece::Field('E', _) => {
                named(&mut rest, &DAYS)?;
            }
            Piece::Field('M', count) => month = number(*count, 2)?.0,
            Piece::Field('d', count) => day = number(*count, 2)?.0,
            Piece::Field('H' | 'h', count) => hour = number(*count, 2)?.0,
            Piece::Field('a', _) => afternoon = Some(named(&mut rest, &["AM ", "PM "])? == 1),
            Piece::Field('m', count) => minute = number(*count, 2)?.0,
            Piece::Field('s', count) => second = number(*count, 2)?.0,
            Piece::Field(letter @ ('S' | 'U' | 'N'), count) => {
                let (value, found) = number(*count, *count)?;
                let first = match letter {
                    'S' => 9,
                    'U' => {
                        if *count == 9 {
                            9
                        } else {
                            6
                        }
                    }
                    _ => {
                        if *count == 9 {
                            9
                        } else {
                            3
                        }
                    }
                };
                nanos +=
                    value.checked_mul(10_i64.checked_pow(u32::checked_sub(first, u32::try_from(found).ok()?)?)?)?;
            }
            Piece::Field(..) => offset = zone(&mut rest)?,
        }
    }
    let is_valid = (1..=12).contains(&month)
        && (1..=i64::from(tidalite_types::time::days_in_month(year, month as u32))).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..=60).contains(&second)
        && nanos < 1_000_000_000
        && rest.is_empty();
    if !is_valid {
        return None;
    }
    if let Some(is_afternoon) = afternoon {
        hour = hour % 12 + if is_afternoon { 12 } else { 0 };
    }
    let seconds =
        days_from_civil(year, month as u32, day as u32) * DAY_S + hour * 3_600 + minute * 60 + second - offset;
    seconds.checked_mul(unit.per_second())?.checked_add(nanos / (1_000_000_000 / unit.per_second()))
}

/// A number of at most so many digits, and how many it had.
fn digits(rest: &mut &str, most: usize) -> Option<(i64, usize)> {
    let count = rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
    let (number, after) = rest.split_at(count);
    *rest = after;
    Some((number.parse().ok()?, count))
}

/// Which of the names comes next, whole or by its first three letters.
fn named(rest: &mut &str, names: &[&str]) -> Option<i64> {
    let found = names.iter().enumerate().find_map(|(index, name)| {
        [name.trim_end(), name[..3].trim_end()].into_iter().find_map(|name| {
            let head = rest.get(..name.len())?;
            head.eq_ignore_ascii_case(name).then_some((index, name.len()))
        })
    });
    let (index, length) = found?;
    *rest = &rest[length..];
    Some(index as i64)
}

fn zone(rest: &mut &str) -> Option<i64> {
    let length = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"+-:/_".contains(c)).unwrap_or(rest.len());
    let (text, after) = rest.split_at(length);
    *rest = after;
    match crate::calendar::Zone::parse(text)? {
        crate::calendar::Zone::Fixed(seconds) => Some(seconds),
        crate::calendar::Zone::Place(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_reads_back() {
        let ts = 1_583_020_799_123_456;
        for pattern in ["yyyy-MM-ddTHH:mm:ss.SSSUUUZ", "dd/MM/yyyy hh:mm:ss a S+", "EEEE d MMMM yyyy H:m:s,SSSUUU"] {
            let pieces = pieces(pattern);
            let text = shown(ts, TimeUnit::Micros, &pieces);
            assert_eq!(parsed(&text, &pieces, TimeUnit::Micros), Some(ts), "{pattern}: {text}");
        }
        assert_eq!(shown(ts, TimeUnit::Micros, &pieces("E, d MMM yy HH:mm")), "Sat, 29 Feb 20 23:59");
        assert_eq!(parsed("20200229", &pieces("yyyyMMdd"), TimeUnit::Millis), Some(1_582_934_400_000));
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for (text, pattern) in
            [("2021-02-29", "yyyy-MM-dd"), ("2021-13-01", "yyyy-MM-dd"), ("2021-01-01x", "yyyy-MM-dd"), ("x", "MMM")]
        {
            assert_eq!(parsed(text, &pieces(pattern), TimeUnit::Micros), None, "{text}");
        }
    }
}
