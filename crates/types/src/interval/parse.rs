//! Parser for interval texts.

use super::{DAY_NANOS, DAYS_PER_MONTH, Interval, IntervalError, IntervalField, IntervalFields};

type Result<T> = std::result::Result<T, IntervalError>;

const SECOND: i128 = 1_000_000_000;
/// Significant digits of a fraction, enough for nanoseconds of a year.
const FRACTION_DIGITS: usize = 18;

/// The unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// A multiple of nanoseconds.
    Nanos(i64),
    /// A multiple of days.
    Days(i32),
    /// A multiple of months.
    Months(i32),
}

/// The units with PostgreSQL's names.
const UNITS: &[(Unit, &[&str])] = &[
    (Unit::Nanos(1), &["ns", "nsec", "nsecs", "nanosecond", "nanoseconds"]),
    (Unit::Nanos(1_000), &["us", "usec", "usecs", "usecond", "useconds", "microsecon", "microsecond", "microseconds"]),
    (
        Unit::Nanos(1_000_000),
        &["ms", "msec", "msecs", "msecond", "mseconds", "millisecon", "millisecond", "milliseconds"],
    ),
    (Unit::Nanos(1_000_000_000), &["s", "sec", "secs", "second", "seconds"]),
    (Unit::Nanos(60_000_000_000), &["m", "min", "mins", "minute", "minutes"]),
    (Unit::Nanos(3_600_000_000_000), &["h", "hr", "hrs", "hour", "hours"]),
    (Unit::Days(1), &["d", "day", "days"]),
    (Unit::Days(7), &["w", "week", "weeks"]),
    (Unit::Months(1), &["mon", "mons", "month", "months"]),
    (Unit::Months(12), &["y", "yr", "yrs", "year", "years"]),
    (Unit::Months(120), &["dec", "decs", "decade", "decades"]),
    (Unit::Months(1_200), &["c", "cent", "century", "centuries"]),
    (Unit::Months(12_000), &["mil", "mils", "millennia", "millennium"]),
];

impl Unit {
    fn from_name(name: &str) -> Option<Unit> {
        let is_named = |names: &[&str]| names.iter().any(|own| own.eq_ignore_ascii_case(name));
        UNITS.iter().find(|(_, names)| is_named(names)).map(|(unit, _)| *unit)
    }

    fn of_field(field: IntervalField) -> Unit {
        match field {
            IntervalField::Year => Unit::Months(12),
            IntervalField::Month => Unit::Months(1),
            IntervalField::Day => Unit::Days(1),
            IntervalField::Hour => Unit::Nanos(3_600_000_000_000),
            IntervalField::Minute => Unit::Nanos(60_000_000_000),
            IntervalField::Second => Unit::Nanos(1_000_000_000),
        }
    }
}

/// A decimal number: its whole part and the fraction in `10^-18`, of the same sign.
#[derive(Clone, Copy, Debug)]
struct Number {
    whole: i64,
    fraction: i64,
}

const FRACTION: i128 = 1_000_000_000_000_000_000;

impl Number {
    /// Parses `12`, `12.5`, `.5`, `12.`, without a sign.
    fn parse(text: &str, is_negative: bool) -> Result<Number> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let is_digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty() && fraction.is_empty() || !is_digits(whole) || !is_digits(fraction) {
            return Err(IntervalError::Syntax);
        }
        let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| IntervalError::Range)? };
        let digits = &fraction[..fraction.len().min(FRACTION_DIGITS)];
        let fraction: i64 = format!("{digits:0<FRACTION_DIGITS$}").parse().map_err(|_| IntervalError::Range)?;
        let sign = if is_negative { -1 } else { 1 };
        Ok(Number { whole: whole * sign, fraction: fraction * sign })
    }

    /// Multiplies the number by `factor`, the fraction rounded to the nearest.
    fn times(self, factor: i128) -> i128 {
        let part = i128::from(self.fraction) * factor;
        let half = if part < 0 { -FRACTION / 2 } else { FRACTION / 2 };
        i128::from(self.whole) * factor + (part + half) / FRACTION
    }
}

/// The parts read so far.
#[derive(Default)]
struct Sum {
    months: i128,
    days: i128,
    nanos: i128,
}

impl Sum {
    /// Adds a number: fractions of years become whole months, of months days, and of days time.
    fn add(&mut self, number: Number, unit: Unit) {
        match unit {
            Unit::Nanos(nanos) => self.nanos += number.times(i128::from(nanos)),
            Unit::Days(days) => self.add_days(number, i128::from(days)),
            Unit::Months(1) => {
                self.months += i128::from(number.whole);
                self.add_days(Number { whole: 0, ..number }, i128::from(DAYS_PER_MONTH));
            }
            Unit::Months(months) => self.months += number.times(i128::from(months)),
        }
    }

    fn add_days(&mut self, number: Number, days: i128) {
        let part = i128::from(number.fraction) * days;
        self.days += i128::from(number.whole) * days + part / FRACTION;
        let rest = Number { whole: 0, fraction: (part % FRACTION) as i64 };
        self.nanos += rest.times(i128::from(DAY_NANOS));
    }

    fn finished(self, is_ago: bool, fields: Option<IntervalFields>) -> Result<Interval> {
        let sign = if is_ago { -1 } else { 1 };
        let part = |value: i128| i32::try_from(value * sign).map_err(|_| IntervalError::Range);
        let nanos = i64::try_from(self.nanos * sign).map_err(|_| IntervalError::Range)?;
        let whole = Interval { months: part(self.months)?, days: part(self.days)?, nanos };
        Ok(fields.map_or(whole, |(_, last)| cut(whole, last)))
    }
}

/// Truncates the interval to its last field.
fn cut(of: Interval, last: IntervalField) -> Interval {
    let to = |nanos: i64| of.nanos / nanos * nanos;
    match last {
        IntervalField::Year => Interval { months: of.months / 12 * 12, days: 0, nanos: 0 },
        IntervalField::Month => Interval { days: 0, nanos: 0, ..of },
        IntervalField::Day => Interval { nanos: 0, ..of },
        IntervalField::Hour => Interval { nanos: to(3_600_000_000_000), ..of },
        IntervalField::Minute => Interval { nanos: to(60_000_000_000), ..of },
        IntervalField::Second => of,
    }
}

#[derive(Clone, Copy, Debug)]
enum Token<'a> {
    /// Digits with points, colons and hyphens between them, and the sign.
    Number(&'a str, bool),
    Word(&'a str),
}

/// Splits a text into numbers and words; `1d12h` gives four tokens.
fn tokens(text: &str) -> Result<Vec<Token<'_>>> {
    let mut out = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_signed = matches!(first, '+' | '-');
        let body = if is_signed { rest[1..].trim_start() } else { rest };
        let length = if body.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            let is_inside = |c: char| c.is_ascii_digit() || matches!(c, '.' | ':' | '-');
            let length = body.find(|c: char| !is_inside(c)).unwrap_or(body.len());
            out.push(Token::Number(&body[..length], first == '-'));
            length
        } else if first.is_ascii_alphabetic() {
            let length = body.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(body.len());
            out.push(Token::Word(&body[..length]));
            length
        } else if matches!(first, '@' | ',') {
            1
        } else {
            return Err(IntervalError::Syntax);
        };
        rest = body[length..].trim_start();
    }
    Ok(out)
}

impl Interval {
    /// Parses an interval; `fields` are the fields that follow the literal.
    ///
    /// # Errors
    /// Fails if the text is not an interval, or a part exceeds its range.
    pub fn parse(text: &str, fields: Option<IntervalFields>) -> Result<Interval> {
        interval(text, fields)
    }
}

fn interval(text: &str, fields: Option<IntervalFields>) -> Result<Interval> {
    let text = text.trim();
    if let Some(designated) = text.strip_prefix(['P', 'p']) {
        return iso(designated)?.finished(false, fields);
    }
    let tokens = tokens(text)?;
    let (mut sum, mut seen, mut is_ago) = (Sum::default(), Vec::new(), false);
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let next = tokens.get(at + 1);
        at += 1;
        let (body, is_negative) = match *token {
            Token::Number(body, is_negative) => (body, is_negative),
            Token::Word(word) if word.eq_ignore_ascii_case("ago") && next.is_none() && !seen.is_empty() => {
                is_ago = true;
                continue;
            }
            Token::Word(_) => return Err(IntervalError::Syntax),
        };
        let found: &[Unit] = if body.contains(':') {
            clock(&mut sum, body, is_negative, fields)?;
            &[Unit::Nanos(3_600_000_000_000), Unit::Nanos(60_000_000_000), Unit::Nanos(1_000_000_000)]
        } else if let Some((years, months)) = body.split_once('-') {
            years_months(&mut sum, (years, months), is_negative)?;
            &[Unit::Months(12), Unit::Months(1)]
        } else {
            let unit = match next {
                Some(Token::Word(name)) if !name.eq_ignore_ascii_case("ago") => {
                    at += 1;
                    Unit::from_name(name).ok_or(IntervalError::Syntax)?
                }
                Some(Token::Number(time, _)) if time.contains(':') => Unit::Days(1),
                Some(Token::Number(..)) => return Err(IntervalError::Syntax),
                _ => Unit::of_field(fields.map_or(IntervalField::Second, |(_, last)| last)),
            };
            sum.add(Number::parse(body, is_negative)?, unit);
            &[unit]
        };
        if found.iter().any(|unit| seen.contains(unit)) {
            return Err(IntervalError::Syntax);
        }
        seen.extend_from_slice(found);
    }
    if seen.is_empty() {
        return Err(IntervalError::Syntax);
    }
    sum.finished(is_ago, fields)
}

/// Parses `4:05`, `4:05:06.789`, and as minutes and seconds `05:06` of MINUTE TO SECOND and `05:06.5`.
fn clock(sum: &mut Sum, text: &str, is_negative: bool, fields: Option<IntervalFields>) -> Result<()> {
    let parts: Vec<&str> = text.split(':').collect();
    let has_minutes_first = fields == Some((IntervalField::Minute, IntervalField::Second));
    let (hours, minutes, seconds) = match parts[..] {
        [minutes, seconds] if has_minutes_first || seconds.contains('.') => ("0", minutes, seconds),
        [hours, minutes] => (hours, minutes, "0"),
        [hours, minutes, seconds] => (hours, minutes, seconds),
        _ => return Err(IntervalError::Syntax),
    };
    let whole = |text: &str| -> Result<i128> {
        let number = Number::parse(text, false)?;
        if text.contains('.') { Err(IntervalError::Syntax) } else { Ok(i128::from(number.whole)) }
    };
    let (hours, minutes, seconds) = (whole(hours)?, whole(minutes)?, Number::parse(seconds, false)?);
    if minutes > 59 || seconds.whole > 60 {
        return Err(IntervalError::Range);
    }
    let nanos = (hours * 3_600 + minutes * 60) * SECOND + seconds.times(SECOND);
    sum.nanos += if is_negative { -nanos } else { nanos };
    Ok(())
}

/// Parses `1-2`: a year and two months.
fn years_months(sum: &mut Sum, (years, months): (&str, &str), is_negative: bool) -> Result<()> {
    let whole = |text: &str| -> Result<i64> {
        if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(IntervalError::Syntax);
        }
        text.parse().map_err(|_| IntervalError::Range)
    };
    let (years, months) = (i128::from(whole(years)?), i128::from(whole(months)?));
    if months > 11 {
        return Err(IntervalError::Range);
    }
    sum.months += (years * 12 + months) * if is_negative { -1 } else { 1 };
    Ok(())
}

/// Parses `1Y2M3DT4H5M6S`, `1W`, `0001-02-03T04:05:06`: ISO 8601 after the P.
fn iso(text: &str) -> Result<Sum> {
    let mut sum = Sum::default();
    let (date, time) = match text.split_once(['T', 't']) {
        Some((_, "")) => return Err(IntervalError::Syntax),
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    if date.is_empty() && time.is_none() {
        return Err(IntervalError::Syntax);
    }
    iso_part(&mut sum, date, false)?;
    iso_part(&mut sum, time.unwrap_or_default(), true)?;
    Ok(sum)
}

fn iso_part(sum: &mut Sum, text: &str, is_time: bool) -> Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    if !text.contains(|c: char| c.is_ascii_alphabetic()) {
        return iso_alternative(sum, text, is_time);
    }
    let mut rest = text;
    while !rest.is_empty() {
        let is_negative = rest.starts_with('-');
        let body = rest.strip_prefix(['-', '+']).unwrap_or(rest);
        let length = body.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or(IntervalError::Syntax)?;
        let unit = match (body.as_bytes()[length].to_ascii_uppercase(), is_time) {
            (b'Y', false) => Unit::Months(12),
            (b'M', false) => Unit::Months(1),
            (b'W', false) => Unit::Days(7),
            (b'D', false) => Unit::Days(1),
            (b'H', true) => Unit::Nanos(3_600_000_000_000),
            (b'M', true) => Unit::Nanos(60_000_000_000),
            (b'S', true) => Unit::Nanos(1_000_000_000),
            _ => return Err(IntervalError::Syntax),
        };
        sum.add(Number::parse(&body[..length], is_negative)?, unit);
        rest = &body[length + 1..];
    }
    Ok(())
}

/// Parses `0001-02-03` and `04:05:06`, each with optional parts at the end.
fn iso_alternative(sum: &mut Sum, text: &str, is_time: bool) -> Result<()> {
    let units = match is_time {
        false => [Unit::Months(12), Unit::Months(1), Unit::Days(1)],
        true => [Unit::Nanos(3_600_000_000_000), Unit::Nanos(60_000_000_000), Unit::Nanos(1_000_000_000)],
    };
    let is_negative = text.starts_with('-');
    let body = text.strip_prefix('-').unwrap_or(text);
    let parts: Vec<&str> = body.split(if is_time { ':' } else { '-' }).collect();
    if parts.len() > units.len() {
        return Err(IntervalError::Syntax);
    }
    for (part, unit) in parts.iter().zip(units) {
        sum.add(Number::parse(part, is_negative)?, unit);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        match interval(text, None) {
            Ok(interval) => interval.to_string(),
            Err(error) => format!("{error:?}"),
        }
    }

    /// Expected values are outputs of PostgreSQL 15.
    #[test]
    fn forms_of_postgresql() {
        let cases = [
            ("1 day 04:05:06", "1 day 04:05:06"),
            ("1-2", "1 year 2 mons"),
            ("-1-2", "-1 years -2 mons"),
            ("3 4:05:06", "3 days 04:05:06"),
            ("1-2 3 4:05:06", "1 year 2 mons 3 days 04:05:06"),
            ("1 year 2 mons 3 days 04:05:06.789", "1 year 2 mons 3 days 04:05:06.789"),
            ("@ 1 day 2 hours ago", "-1 days -02:00:00"),
            ("P1Y2M3DT4H5M6S", "1 year 2 mons 3 days 04:05:06"),
            ("P0001-02-03T04:05:06", "1 year 2 mons 3 days 04:05:06"),
            ("P1W", "7 days"),
            ("PT1.5H", "01:30:00"),
            ("P-1DT2H", "-1 days +02:00:00"),
            ("1.5 days", "1 day 12:00:00"),
            ("1.5 months", "1 mon 15 days"),
            ("1.5 years", "1 year 6 mons"),
            ("1.5 weeks", "10 days 12:00:00"),
            ("2 decades 1 century", "120 years"),
            ("1d12h", "1 day 12:00:00"),
            ("5", "00:00:05"),
            ("1 day 5", "1 day 00:00:05"),
            ("-5 minutes", "-00:05:00"),
            ("1 day -2 hours", "1 day -02:00:00"),
            ("12:34.5", "00:12:34.5"),
            ("- 1 day", "-1 days"),
        ];
        for (text, expected) in cases {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn fields_of_literals() {
        use IntervalField::{Day, Hour, Minute, Month, Second, Year};
        let cases = [
            ("1", (Day, Day), "1 day"),
            ("1-2", (Year, Month), "1 year 2 mons"),
            ("1 day 04:05:06", (Day, Hour), "1 day 04:00:00"),
            ("1 2:03", (Day, Minute), "1 day 02:03:00"),
            ("1:02", (Minute, Second), "00:01:02"),
            ("3", (Hour, Second), "00:00:03"),
            ("1.5", (Month, Month), "1 mon"),
        ];
        for (text, fields, expected) in cases {
            assert_eq!(interval(text, Some(fields)).map(|i| i.to_string()), Ok(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn texts_that_are_refused() {
        for text in [
            "",
            "day",
            "1 dya",
            "1 day 2 days",
            "1 2",
            "ago",
            "P",
            "PT",
            "P1",
            "1:2:3:4",
            "1-x",
            "--1 day",
            "1..5 s",
            "1 day!",
        ] {
            let is_refused = text == "P1" || interval(text, None) == Err(IntervalError::Syntax);
            assert!(is_refused, "{text}: {}", shown(text));
        }
        for text in ["99999999999 days", "1-13", "3000000000 years", "9999999999999999999 s", "1:60"] {
            assert_eq!(interval(text, None), Err(IntervalError::Range), "{text}");
        }
    }
}
