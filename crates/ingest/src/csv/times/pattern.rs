//! Patterns of times: those of Java and QuestDB (`dd/MM/yyyy HH:mm:ss.SSS`), and of strptime (`%d/%m/%Y %H:%M`).
//!
//! | letters | strptime | read |
//! |---|---|---|
//! | `y`, `yyyy`, `u`; `yy` | `%Y`; `%y` | the year; of two digits 1969 to 2068 |
//! | `M`, `MM`; `MMM`, `MMMM` | `%m`; `%b`, `%B` | the month; its English name, at least three letters |
//! | `d`, `dd`; `D` | `%d`, `%e`; `%j` | the day of the month; of the year |
//! | `H`, `k`; `h`, `K`; `a` | `%H`; `%I`; `%p` | the hour of 24; of 12; AM or PM |
//! | `m`; `s`; runs of `S`, `U`, `N` | `%M`; `%S`; `%f` | minute, second, decimals of the second: 1 to 9 digits |
//! | `E` | `%a`, `%A` | the name of the weekday, which is not checked |
//! | `z`, `Z`, `x`, `X`, `V` | `%z`, `%Z` | a zone, as an offset or a name |
//!
//! Numbers may have fewer digits than the pattern has letters, unless another number follows without a separator. Text
//! in single quotes, `T` and all characters that are not letters are literals; a space matches one or more spaces.

use super::cursor::Cursor;
use super::flexible::{day, full_year};
use super::instant::Instant;
use super::zone;
use tidalite_types::time::{days_from_civil, days_in_month};

/// A parsed pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimePattern {
    text: String,
    items: Vec<Item>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Item {
    Number(TimePart, Width),
    MonthName,
    Weekday,
    HalfDay,
    Fraction,
    Zone,
    Space,
    Literal(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimePart {
    Year,
    Month,
    Day,
    DayOfYear,
    Hour,
    /// Hour of the 12-hour clock.
    HalfHour,
    Minute,
    Second,
}

/// Digits of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Width {
    Exactly(usize),
    UpTo(usize),
}

impl TimePattern {
    /// # Errors
    /// The pattern has an unknown letter, or no date.
    pub fn new(text: &str) -> Result<TimePattern, String> {
        let mut items = if text.contains('%') { from_strptime(text)? } else { from_letters(text)? };
        fix_widths(&mut items);
        let has = |part: TimePart| items.iter().any(|item| matches!(item, Item::Number(p, _) if *p == part));
        let has_month = has(TimePart::Month) || items.contains(&Item::MonthName);
        if !has(TimePart::Year) || !((has_month && has(TimePart::Day)) || has(TimePart::DayOfYear)) {
            return Err(format!("time pattern {text:?} has no year, month and day"));
        }
        if items.iter().rev().skip(1).any(|item| *item == Item::Zone) {
            return Err(format!("the zone of time pattern {text:?} is not last"));
        }
        Ok(TimePattern { text: text.to_owned(), items })
    }

    /// Returns the original pattern.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn read(&self, text: &str) -> Option<Instant> {
        let mut cursor = Cursor { rest: text.as_bytes() };
        let mut fields = TimeFields { month: 1, day: 1, ..TimeFields::default() };
        for item in &self.items {
            fields.take(*item, &mut cursor)?;
        }
        // The zone is the last item and ends the text.
        let local = fields.local()?;
        let seconds = if fields.has_zone { zone::utc(&mut cursor, local)? } else { local };
        cursor.rest.is_empty().then_some(Instant { seconds, nanos: fields.nanos })
    }
}

#[derive(Default)]
struct TimeFields {
    year: i64,
    month: i64,
    day: i64,
    day_of_year: Option<i64>,
    hour: i64,
    is_afternoon: Option<bool>,
    minute: i64,
    second: i64,
    nanos: i64,
    has_zone: bool,
}

impl TimeFields {
    fn take(&mut self, item: Item, cursor: &mut Cursor<'_>) -> Option<()> {
        match item {
            Item::Number(part, width) => {
                let value = match width {
                    Width::Exactly(count) => cursor.exactly(count)?,
                    Width::UpTo(max) => Some(cursor.digits(max)).filter(|(_, count)| *count > 0)?.0,
                };
                self.set(part, width, value);
            }
            Item::MonthName => self.month = cursor.month_name()?,
            Item::Weekday => cursor.weekday().then_some(())?,
            Item::HalfDay => self.is_afternoon = Some(cursor.half_day()?),
            Item::Fraction => self.nanos = cursor.fraction()?.0,
            Item::Zone => self.has_zone = true,
            Item::Space => cursor.spaces().then_some(())?,
            Item::Literal(byte) => cursor.take(&[byte]).map(|_| ())?,
        }
        Some(())
    }

    fn set(&mut self, part: TimePart, width: Width, value: i64) {
        match part {
            TimePart::Year => self.year = if width == Width::Exactly(2) { full_year(value) } else { value },
            TimePart::Month => self.month = value,
            TimePart::Day => self.day = value,
            TimePart::DayOfYear => self.day_of_year = Some(value),
            TimePart::Hour | TimePart::HalfHour => self.hour = value,
            TimePart::Minute => self.minute = value,
            TimePart::Second => self.second = value,
        }
    }

    /// Returns the seconds since 1970-01-01 of the local time.
    fn local(&self) -> Option<i64> {
        let days = match self.day_of_year {
            Some(n) => {
                let length = 337 + i64::from(days_in_month(self.year, 2));
                let is_day = (1..=9999).contains(&self.year) && (1..=length).contains(&n);
                is_day.then(|| days_from_civil(self.year, 1, 1) + n - 1)?
            }
            None => day(self.year, self.month, self.day)?,
        };
        let hour = match self.is_afternoon {
            Some(is_afternoon) if (1..=12).contains(&self.hour) => self.hour % 12 + if is_afternoon { 12 } else { 0 },
            Some(_) => return None,
            None => self.hour,
        };
        let is_time = hour < 24 && self.minute < 60 && self.second < 60;
        is_time.then_some(days * 86_400 + hour * 3_600 + self.minute * 60 + self.second)
    }
}

/// Fixes the width of numbers before another number to the number of letters.
fn fix_widths(items: &mut [Item]) {
    for n in 0..items.len() {
        let is_before_digits = matches!(items.get(n + 1), Some(Item::Number(..) | Item::Fraction));
        if let Item::Number(part, width @ Width::Exactly(_)) = &mut items[n]
            && !is_before_digits
            && !(*part == TimePart::Year && *width == Width::Exactly(2))
        {
            *width = Width::UpTo(match part {
                TimePart::Year => 4,
                TimePart::DayOfYear => 3,
                _ => 2,
            });
        }
    }
}

fn literal(byte: u8) -> Item {
    if byte == b' ' { Item::Space } else { Item::Literal(byte) }
}

fn from_letters(text: &str) -> Result<Vec<Item>, String> {
    let bytes = text.as_bytes();
    let (mut items, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let letter = bytes[at];
        let count = bytes[at..].iter().take_while(|b| **b == letter).count();
        let number = |part, width| Item::Number(part, Width::Exactly(width));
        let item = match (letter, count) {
            (b'\'', _) => {
                let end = bytes[at + 1..].iter().position(|b| *b == b'\'');
                let end = end.ok_or_else(|| format!("a quote in time pattern {text:?} is not closed"))?;
                // Two quotes represent one.
                let quoted = if end == 0 { &b"'"[..] } else { &bytes[at + 1..at + 1 + end] };
                items.extend(quoted.iter().map(|b| literal(*b)));
                at += end + 2;
                continue;
            }
            (b'y' | b'u', 1) => number(TimePart::Year, 4),
            (b'y' | b'u', _) => number(TimePart::Year, count),
            (b'M' | b'L', 1 | 2) => number(TimePart::Month, 2),
            (b'M' | b'L', _) => Item::MonthName,
            (b'd', _) => number(TimePart::Day, 2),
            (b'D', _) => number(TimePart::DayOfYear, 3),
            (b'H' | b'k', _) => number(TimePart::Hour, 2),
            (b'h' | b'K', _) => number(TimePart::HalfHour, 2),
            (b'm', _) => number(TimePart::Minute, 2),
            (b's', _) => number(TimePart::Second, 2),
            (b'a', _) => Item::HalfDay,
            (b'E', _) => Item::Weekday,
            (b'z' | b'Z' | b'x' | b'X' | b'V', _) => Item::Zone,
            (b'S' | b'U' | b'N', _) => {
                // `SSSUUU` and `N+` are one fraction.
                let run = bytes[at..].iter().take_while(|b| matches!(b, b'S' | b'U' | b'N' | b'+')).count();
                items.push(Item::Fraction);
                at += run;
                continue;
            }
            (b'T', _) => Item::Literal(b'T'),
            (other, _) if other.is_ascii_alphabetic() => {
                return Err(format!("letter {:?} of time pattern {text:?} has no meaning", char::from(other)));
            }
            (other, _) => {
                items.push(literal(other));
                at += if other == b' ' { count } else { 1 };
                continue;
            }
        };
        items.push(item);
        at += count;
    }
    Ok(items)
}

fn from_strptime(text: &str) -> Result<Vec<Item>, String> {
    let (mut items, mut bytes) = (Vec::new(), text.bytes());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            items.push(literal(byte));
            continue;
        }
        let mut letter = bytes.next();
        // `%-d` is without a leading zero, which is optional in any case.
        if matches!(letter, Some(b'-' | b'_' | b'0' | b'#')) {
            letter = bytes.next();
        }
        let letter = letter.ok_or_else(|| format!("time pattern {text:?} ends with %"))?;
        let number = |part, width| Item::Number(part, Width::Exactly(width));
        match letter {
            b'Y' => items.push(number(TimePart::Year, 4)),
            b'y' => items.push(number(TimePart::Year, 2)),
            b'm' => items.push(number(TimePart::Month, 2)),
            b'd' | b'e' => items.push(number(TimePart::Day, 2)),
            b'j' => items.push(number(TimePart::DayOfYear, 3)),
            b'H' | b'k' => items.push(number(TimePart::Hour, 2)),
            b'I' | b'l' => items.push(number(TimePart::HalfHour, 2)),
            b'M' => items.push(number(TimePart::Minute, 2)),
            b'S' => items.push(number(TimePart::Second, 2)),
            b'f' => items.push(Item::Fraction),
            b'p' | b'P' => items.push(Item::HalfDay),
            b'b' | b'B' | b'h' => items.push(Item::MonthName),
            b'a' | b'A' => items.push(Item::Weekday),
            b'z' | b'Z' => items.push(Item::Zone),
            b'n' | b't' => items.push(Item::Space),
            b'F' => items.extend(from_strptime("%Y-%m-%d")?),
            b'D' => items.extend(from_strptime("%m/%d/%y")?),
            b'T' => items.extend(from_strptime("%H:%M:%S")?),
            b'R' => items.extend(from_strptime("%H:%M")?),
            b'%' => items.push(Item::Literal(b'%')),
            other => return Err(format!("%{} of time pattern {text:?} has no meaning", char::from(other))),
        }
    }
    Ok(items)
}
