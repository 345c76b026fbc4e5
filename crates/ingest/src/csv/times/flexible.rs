//! Dates and times in notations that need no pattern.
//!
//! | date | time |
//! |---|---|
//! | `2024-01-31`, `2024/1/31`, `2024.01.31`, `2024-Jan-31` | `15:04`, `15:04:05`, `15:04:05.123456789`, `15:04:05,123` |
//! | `20240131` | `3:04 PM`, `3 pm` |
//! | `31.01.2024` | `1504`, `150405`, `150405123`, `150405.123` |
//! | `31/01/2024`, `01/31/2024`, `31-01-24` (by the order that is given) | |
//! | `31 Jan 2024`, `31-January-2024`, `Jan 31, 2024`, `Wed, 31 Jan 2024` | |
//!
//! Separators between both: a space, `T`, `;`, `,`, `_`; `-` after `20240131`; `:` after `31/Jan/2024`. A zone may
//! follow.

use super::cursor::Cursor;
use super::instant::{DateOrder, Instant};
use super::zone;
use tidalite_types::time::{days_from_civil, days_in_month};

/// Two-digit years up to this one belong to the 21st century, as in POSIX.
const SHORT_YEAR_MAX: i64 = 68;

/// A parsed instant, and the properties of its notation that type detection uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::csv) struct Reading {
    pub instant: Instant,
    pub has_time: bool,
    /// Number of digits of the fraction of a second.
    pub decimals: u8,
    /// The year has two digits.
    pub has_short_year: bool,
}

struct Date {
    /// `None` if the year follows the time.
    year: Option<i64>,
    month: i64,
    day: i64,
    has_short_year: bool,
    /// The notation, which determines the separators before the time.
    style: DateStyle,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum DateStyle {
    Digits,
    NamedBySlashes,
    Other,
}

/// Parses a complete text; `order` is the order of day and month if both are numbers and the year is last.
pub(in crate::csv) fn read(text: &str, order: Option<DateOrder>) -> Option<Reading> {
    let mut cursor = Cursor { rest: text.as_bytes() };
    if cursor.weekday() {
        cursor.take(b",");
        cursor.spaces();
    }
    let mut date = date(&mut cursor, order)?;
    let mut time = Time::default();
    let has_time = !cursor.rest.is_empty();
    if has_time {
        between(&mut cursor, date.style)?;
        if cursor.rest.first().is_some_and(u8::is_ascii_digit) {
            time = clock(&mut cursor)?;
        }
    }
    if date.year.is_none() {
        cursor.spaces();
        let mut ahead = cursor;
        // `Mon Jan 2 15:04:05 UTC 2024`
        if ahead.word().len() == 3 && ["utc", "gmt"].iter().any(|utc| ahead.word().eq_ignore_ascii_case(utc)) {
            ahead.rest = &ahead.rest[3..];
            ahead.spaces();
            cursor = ahead;
        }
        date.year = Some(cursor.exactly(4)?);
    }
    let seconds = day(date.year?, date.month, date.day)? * 86_400 + time.seconds;
    let seconds = zone::utc(&mut cursor, seconds)?;
    let instant = Instant { seconds, nanos: time.nanos };
    Some(Reading { instant, has_time, decimals: time.decimals, has_short_year: date.has_short_year })
}

/// Returns the days since 1970-01-01 of a valid date.
pub(super) fn day(year: i64, month: i64, day: i64) -> Option<i64> {
    let (month, day) = (u32::try_from(month).ok()?, u32::try_from(day).ok()?);
    let is_day =
        (1..=9999).contains(&year) && (1..=12).contains(&month) && day > 0 && day <= days_in_month(year, month);
    is_day.then(|| days_from_civil(year, month, day))
}

pub(super) fn full_year(short: i64) -> i64 {
    if short <= SHORT_YEAR_MAX { 2_000 + short } else { 1_900 + short }
}

fn date(cursor: &mut Cursor<'_>, order: Option<DateOrder>) -> Option<Date> {
    if let Some(month) = cursor.month_name() {
        return month_first_by_name(cursor, month);
    }
    let count = cursor.rest.iter().take_while(|b| b.is_ascii_digit()).count();
    let plain = |year, month, day, style| Date { year: Some(year), month, day, has_short_year: false, style };
    match count {
        8 => {
            let n = cursor.exactly(8)?;
            Some(plain(n / 10_000, n / 100 % 100, n % 100, DateStyle::Digits))
        }
        4 => {
            let year = cursor.exactly(4)?;
            let separator = cursor.take(b"-/.")?;
            let month = month(cursor)?;
            cursor.take(&[separator])?;
            let (day, _) = cursor.digits(2);
            Some(plain(year, month, day, DateStyle::Other))
        }
        1 | 2 => year_last(cursor, order),
        _ => None,
    }
}

/// Parses a number or a name.
fn month(cursor: &mut Cursor<'_>) -> Option<i64> {
    cursor.month_name().or_else(|| Some(cursor.digits(2)).filter(|(_, count)| *count > 0).map(|(value, _)| value))
}

fn year_last(cursor: &mut Cursor<'_>, order: Option<DateOrder>) -> Option<Date> {
    let (first, _) = cursor.digits(2);
    let separator = cursor.take(b"/-. ")?;
    if let Some(month) = cursor.month_name() {
        cursor.take(b",");
        if cursor.take(&[separator]).is_none() && !cursor.spaces() {
            return None;
        }
        let (year, has_short_year) = year(cursor)?;
        let style = if separator == b'/' { DateStyle::NamedBySlashes } else { DateStyle::Other };
        return Some(Date { year: Some(year), month, day: first, has_short_year, style });
    }
    let order = if separator == b'.' { DateOrder::DayFirst } else { order.filter(|_| separator != b' ')? };
    let (second, count) = cursor.digits(2);
    if count == 0 {
        return None;
    }
    cursor.take(&[separator])?;
    let (year, has_short_year) = year(cursor)?;
    let (day, month) = if order == DateOrder::DayFirst { (first, second) } else { (second, first) };
    Some(Date { year: Some(year), month, day, has_short_year, style: DateStyle::Other })
}

fn year(cursor: &mut Cursor<'_>) -> Option<(i64, bool)> {
    match cursor.digits(4) {
        (year, 4) => Some((year, false)),
        (year, 2) => Some((full_year(year), true)),
        _ => None,
    }
}

/// Parses `Jan 31, 2024`, or a date without a year, which then follows the time.
fn month_first_by_name(cursor: &mut Cursor<'_>, month: i64) -> Option<Date> {
    let separator = cursor.take(b" -/")?;
    cursor.spaces();
    let (day, count) = cursor.digits(2);
    if count == 0 {
        return None;
    }
    let style = DateStyle::Other;
    let mut ahead = *cursor;
    ahead.take(b",");
    if ahead.take(&[separator]).is_some() || ahead.spaces() {
        ahead.spaces();
        if let (year, 4) = ahead.digits(4)
            && !ahead.sees(b":")
        {
            *cursor = ahead;
            return Some(Date { year: Some(year), month, day, has_short_year: false, style });
        }
    }
    Some(Date { year: None, month, day, has_short_year: false, style })
}

/// Parses the separator between a date and a time or a zone.
fn between(cursor: &mut Cursor<'_>, style: DateStyle) -> Option<()> {
    match cursor.rest.first()? {
        b'T' | b't' | b' ' | b';' | b'_' => {
            cursor.rest = &cursor.rest[1..];
            cursor.spaces();
        }
        b',' => {
            cursor.rest = &cursor.rest[1..];
            cursor.spaces();
        }
        b'-' if style == DateStyle::Digits => cursor.rest = &cursor.rest[1..],
        b':' if style == DateStyle::NamedBySlashes => cursor.rest = &cursor.rest[1..],
        b'Z' | b'z' | b'+' => {}
        _ => return None,
    }
    Some(())
}

#[derive(Clone, Copy, Debug, Default)]
struct Time {
    seconds: i64,
    nanos: i64,
    decimals: u8,
}

/// Parses a time of day up to its zone.
fn clock(cursor: &mut Cursor<'_>) -> Option<Time> {
    let count = cursor.rest.iter().take_while(|b| b.is_ascii_digit()).count();
    let (mut hour, minute, mut second) = match count {
        1 | 2 => {
            let (hour, _) = cursor.digits(2);
            if cursor.take(b":").is_none() {
                // `3 PM` is valid, but an hour alone is not a time.
                let mut ahead = *cursor;
                ahead.half_day()?;
                (hour, 0, None)
            } else {
                let minute = cursor.exactly(2)?;
                let second = if cursor.take(b":").is_some() { Some(cursor.exactly(2)?) } else { None };
                (hour, minute, second)
            }
        }
        4 => (cursor.exactly(2)?, cursor.exactly(2)?, None),
        6..=15 => (cursor.exactly(2)?, cursor.exactly(2)?, Some(cursor.exactly(2)?)),
        _ => return None,
    };
    let (mut nanos, mut decimals) = (0, 0);
    if second.is_some() {
        let has_point = count <= 6 && cursor.take(b".,").is_some();
        // `15:04:05:123`, a notation of some trading platforms.
        let has_colon = !has_point && count <= 2 && cursor.take(b":").is_some();
        if has_point || has_colon || count > 6 {
            (nanos, decimals) = cursor.fraction()?;
        }
    }
    if let Some(is_afternoon) = cursor.half_day() {
        if !(1..=12).contains(&hour) {
            return None;
        }
        hour = hour % 12 + if is_afternoon { 12 } else { 0 };
    }
    let second = second.take().unwrap_or(0);
    let is_time = hour < 24 && minute < 60 && second < 60;
    is_time.then_some(Time { seconds: hour * 3_600 + minute * 60 + second, nanos, decimals })
}

/// Parses only a time of day without a zone, in nanoseconds since midnight.
pub(in crate::csv) fn time_of_day(text: &str) -> Option<i64> {
    let mut cursor = Cursor { rest: text.as_bytes() };
    let time = clock(&mut cursor)?;
    cursor.rest.is_empty().then_some(time.seconds * 1_000_000_000 + time.nanos)
}

/// Parses a date, or a date and a time, of digits only, with an optional point before a fraction, of the years 1900 to
/// 2100.
///
/// The notations are `yyyyMMdd`, `yyyyMMddHHmm`, `yyyyMMddHHmmss`, and the last one with 3, 6 or 9 digits of a
/// fraction.
pub(in crate::csv) fn compact(text: &[u8]) -> Option<Reading> {
    let count = text.iter().take_while(|b| b.is_ascii_digit()).count();
    let is_whole = count == text.len();
    if !(matches!(count, 8 | 12 | 14 | 17 | 20 | 23) && (is_whole || (count == 14 && text[count] == b'.'))) {
        return None;
    }
    let mut cursor = Cursor { rest: text };
    let year = cursor.exactly(4).filter(|year| (1900..=2100).contains(year))?;
    let days = day(year, cursor.exactly(2)?, cursor.exactly(2)?)?;
    let has_time = count > 8;
    let time = if has_time { clock(&mut cursor)? } else { Time::default() };
    let instant = Instant { seconds: days * 86_400 + time.seconds, nanos: time.nanos };
    cursor.rest.is_empty().then_some(Reading { instant, has_time, decimals: time.decimals, has_short_year: false })
}
