//! Parses texts by a pattern of PostgreSQL.

use super::keywords::{Field, Keyword, Piece};
use super::show::{DAYS, MONTHS, ROMAN};
use tidalite_types::TimeUnit;
use tidalite_types::time::{days_from_civil, days_in_month};

#[derive(Default)]
struct Found {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    julian: Option<i64>,
    iso: (Option<i64>, Option<i64>, Option<i64>),
    hour: i64,
    minute: i64,
    second: i64,
    second_of_day: Option<i64>,
    nanos: i64,
    is_afternoon: Option<bool>,
    is_before_christ: bool,
    offset: i64,
}

/// Parses a text to a timestamp by a pattern; `None` if the text does not match the pattern.
pub(crate) fn parsed(text: &str, pieces: &[Piece], unit: TimeUnit) -> Option<i64> {
    let mut found = Found::default();
    let mut rest = text.trim_start();
    for (at, piece) in pieces.iter().enumerate() {
        match piece {
            // Any separator matches any other, as in PostgreSQL.
            Piece::Text(separator) => {
                for c in separator.chars() {
                    match rest.chars().next() {
                        Some(own) if own == c || !own.is_alphanumeric() && !c.is_alphanumeric() => {
                            rest = &rest[own.len_utf8()..];
                        }
                        Some(own) if c.is_alphanumeric() && own.is_alphanumeric() => rest = &rest[own.len_utf8()..],
                        _ if c.is_alphanumeric() => return None,
                        _ => {}
                    }
                }
            }
            Piece::Field(field) => {
                rest = rest.trim_start();
                let is_glued = matches!(pieces.get(at + 1), Some(Piece::Field(_)));
                take(&mut rest, field, is_glued, &mut found)?;
            }
        }
    }
    if !rest.trim().is_empty() {
        return None;
    }
    found.timestamp(unit)
}

fn take(rest: &mut &str, field: &Field, is_glued: bool, found: &mut Found) -> Option<()> {
    let mut number = |width: usize, most: usize| digits(rest, if is_glued { width } else { most.max(width) });
    match field.keyword {
        Keyword::Year(4) => found.year = Some(number(4, 6)?.0),
        Keyword::Year(width) => {
            let (value, read) = number(width, 4)?;
            found.year = Some(if read < 4 { nearest(value, read) } else { value });
        }
        Keyword::YearWithComma => {
            let (thousands, _) = number(1, 3)?;
            *rest = rest.strip_prefix(',')?;
            found.year = Some(thousands * 1_000 + digits(rest, 3)?.0);
        }
        Keyword::MonthNumber => found.month = Some(number(2, 2)?.0),
        Keyword::DayOfMonth => found.day = Some(number(2, 2)?.0),
        Keyword::DayOfYear => found.day_of_year = Some(number(3, 3)?.0),
        Keyword::Hour24 => found.hour = number(2, 2)?.0,
        Keyword::Hour12 => {
            found.hour = number(2, 2)?.0;
            found.is_afternoon.get_or_insert(false);
        }
        Keyword::Minute => found.minute = number(2, 2)?.0,
        Keyword::Second => found.second = number(2, 2)?.0,
        Keyword::SecondOfDay => found.second_of_day = Some(number(5, 5)?.0),
        Keyword::Milliseconds => found.nanos = fraction(number(3, 3)?, 3),
        Keyword::Microseconds => found.nanos = fraction(number(6, 6)?, 6),
        Keyword::Nanoseconds => found.nanos = fraction(number(9, 9)?, 9),
        Keyword::Fraction(width) => found.nanos = fraction(number(width, width)?, width),
        Keyword::Julian => found.julian = Some(number(7, 7)?.0),
        Keyword::IsoYear(_) => found.iso.0 = Some(number(4, 4)?.0),
        Keyword::IsoWeek => found.iso.1 = Some(number(2, 2)?.0),
        Keyword::IsoDayOfWeek => found.iso.2 = Some(number(1, 1)?.0),
        Keyword::WeekOfYear | Keyword::WeekOfMonth | Keyword::DayOfWeek | Keyword::Quarter => {
            number(2, 2)?;
        }
        Keyword::MonthName | Keyword::MonthNameShort => found.month = Some(named(rest, &MONTHS)? + 1),
        Keyword::DayName | Keyword::DayNameShort => {
            named(rest, &DAYS)?;
        }
        Keyword::MonthRoman => {
            let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
            let at = ROMAN.iter().position(|own| own.eq_ignore_ascii_case(&rest[..end]))?;
            found.month = Some(at as i64 + 1);
            *rest = &rest[end..];
        }
        Keyword::Am { .. } => found.is_afternoon = Some(half(rest, ["a.m.", "p.m."], ["am", "pm"])?),
        Keyword::Ad { .. } => found.is_before_christ = half(rest, ["a.d.", "b.c."], ["ad", "bc"])?,
        Keyword::Offset | Keyword::OffsetHours => {
            let is_negative = rest.starts_with('-');
            *rest = rest.strip_prefix(['+', '-']).unwrap_or(rest);
            let hours = digits(rest, 2)?.0;
            let minutes = match rest.strip_prefix(':') {
                Some(after) => {
                    *rest = after;
                    digits(rest, 2)?.0
                }
                None => 0,
            };
            found.offset = (hours * 3_600 + minutes * 60) * if is_negative { -1 } else { 1 };
        }
        _ => return None,
    }
    if field.ordinal.is_some() {
        *rest = rest.get(2..)?;
    }
    Some(())
}

/// Returns the year with these last digits that is nearest to 2020.
fn nearest(value: i64, digits: usize) -> i64 {
    match digits {
        1 => 2_000 + value,
        2 if value < 70 => 2_000 + value,
        2 => 1_900 + value,
        _ if value >= 520 => 1_000 + value,
        _ => 2_000 + value,
    }
}

fn fraction((value, read): (i64, usize), width: usize) -> i64 {
    value * 10_i64.pow(9 - read.min(width).min(9) as u32)
}

fn digits(rest: &mut &str, most: usize) -> Option<(i64, usize)> {
    let count = rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
    let value = rest[..count].parse().ok()?;
    *rest = &rest[count..];
    Some((value, count))
}

fn named(rest: &mut &str, names: &[&str]) -> Option<i64> {
    let begins = |name: &str| rest.get(..name.len()).is_some_and(|own| own.eq_ignore_ascii_case(name));
    for (at, name) in names.iter().enumerate() {
        let length = if begins(name) {
            name.len()
        } else if begins(&name[..3]) {
            3
        } else {
            continue;
        };
        *rest = &rest[length..];
        return Some(at as i64);
    }
    None
}

/// Takes one of two words and returns true for the second; `None` if neither follows.
fn half(rest: &mut &str, pointed: [&str; 2], plain: [&str; 2]) -> Option<bool> {
    for words in [pointed, plain] {
        for (at, word) in words.iter().enumerate() {
            if rest.get(..word.len()).is_some_and(|own| own.eq_ignore_ascii_case(word)) {
                *rest = &rest[word.len()..];
                return Some(at == 1);
            }
        }
    }
    None
}

impl Found {
    fn timestamp(&self, unit: TimeUnit) -> Option<i64> {
        let year = match (self.year, self.is_before_christ) {
            (Some(year), true) => 1 - year,
            (Some(year), false) => year,
            (None, _) => 0,
        };
        let days = match (self.julian, self.iso, self.day_of_year) {
            (Some(julian), ..) => julian - 2_440_588,
            (None, (Some(year), week, day), _) => {
                let fourth = days_from_civil(year, 1, 4);
                let monday = fourth - (fourth + 3).rem_euclid(7);
                let (week, day) = (week.unwrap_or(1), day.unwrap_or(1));
                ((1..=53).contains(&week) && (1..=7).contains(&day)).then_some(monday + (week - 1) * 7 + day - 1)?
            }
            (None, _, Some(day)) if self.month.is_none() => {
                (1..=366).contains(&day).then_some(days_from_civil(year, 1, 1) + day - 1)?
            }
            _ => {
                let month = u32::try_from(self.month.unwrap_or(1)).ok().filter(|month| (1..=12).contains(month))?;
                let day = u32::try_from(self.day.unwrap_or(1)).ok()?;
                (1..=days_in_month(year, month)).contains(&day).then_some(days_from_civil(year, month, day))?
            }
        };
        let hour = match self.is_afternoon {
            Some(_) if !(1..=12).contains(&self.hour) => return None,
            Some(is_afternoon) => self.hour % 12 + if is_afternoon { 12 } else { 0 },
            None => self.hour,
        };
        if hour > 24 || self.minute > 59 || self.second > 59 || self.second_of_day.is_some_and(|s| s > 86_400) {
            return None;
        }
        let of_day = self.second_of_day.unwrap_or(hour * 3_600 + self.minute * 60 + self.second);
        let seconds = days.checked_mul(86_400)?.checked_add(of_day - self.offset)?;
        let per_tick = 1_000_000_000 / unit.per_second();
        seconds.checked_mul(unit.per_second())?.checked_add(self.nanos / per_tick)
    }
}
