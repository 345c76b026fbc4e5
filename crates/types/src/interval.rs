//! INTERVAL: a length of time in months, days and nanoseconds, read and written as PostgreSQL does.
//!
//! The input forms are those of PostgreSQL 15, section 8.5.4: `1 year 2 mons 3 days 04:05:06.789`, `1-2`,
//! `3 4:05:06`, `@ 1 day ago`, `P1Y2M3DT4H5M6S`, `P0001-02-03T04:05:06`. Nanoseconds are an extension.

mod parse;

use std::fmt;

/// Nanoseconds of a day without a change of the clock.
pub const DAY_NANOS: i64 = 86_400_000_000_000;
/// Days that a month counts as where intervals are compared or multiplied.
pub const DAYS_PER_MONTH: i64 = 30;

/// A length of time. The three parts are independent: a month has no fixed number of days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Interval {
    /// Whole months.
    pub months: i32,
    /// Whole days.
    pub days: i32,
    /// Nanoseconds.
    pub nanos: i64,
}

/// A field of `INTERVAL '…' DAY TO SECOND`, coarse to fine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IntervalField {
    /// Twelve months.
    Year,
    /// A month.
    Month,
    /// A day.
    Day,
    /// An hour.
    Hour,
    /// A minute.
    Minute,
    /// A second and its fraction.
    Second,
}

/// The first and last field of `INTERVAL '…' DAY TO SECOND`; equal in `INTERVAL '1' DAY`.
pub type IntervalFields = (IntervalField, IntervalField);

/// The reason why a text is not an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntervalError {
    /// The text matches none of the input forms.
    Syntax,
    /// A part exceeds its range.
    Range,
}

impl IntervalField {
    /// Returns the field with a SQL name, in any case.
    #[must_use]
    pub fn from_sql_name(name: &str) -> Option<IntervalField> {
        let all = [
            ("year", IntervalField::Year),
            ("month", IntervalField::Month),
            ("day", IntervalField::Day),
            ("hour", IntervalField::Hour),
            ("minute", IntervalField::Minute),
            ("second", IntervalField::Second),
        ];
        all.into_iter().find(|(own, _)| name.eq_ignore_ascii_case(own)).map(|(_, field)| field)
    }
}

impl Interval {
    /// Returns the length in nanoseconds, with months of 30 days, by which PostgreSQL compares intervals.
    #[must_use]
    pub fn total_nanos(self) -> i128 {
        let days = i128::from(self.months) * i128::from(DAYS_PER_MONTH) + i128::from(self.days);
        days * i128::from(DAY_NANOS) + i128::from(self.nanos)
    }

    /// Returns the interval with whole days carried out of its hours, as PostgreSQL's `justify_hours`.
    #[must_use]
    pub fn justify_hours(self) -> Option<Interval> {
        let days = i64::from(self.days) + self.nanos / DAY_NANOS;
        let (mut days, mut nanos) = (days, self.nanos % DAY_NANOS);
        if days > 0 && nanos < 0 {
            (days, nanos) = (days - 1, nanos + DAY_NANOS);
        } else if days < 0 && nanos > 0 {
            (days, nanos) = (days + 1, nanos - DAY_NANOS);
        }
        Some(Interval { days: i32::try_from(days).ok()?, nanos, ..self })
    }

    /// Returns the interval with months of 30 days carried out of its days.
    ///
    /// Same as PostgreSQL's `justify_days`.
    #[must_use]
    pub fn justify_days(self) -> Option<Interval> {
        let mut months = i64::from(self.months) + i64::from(self.days) / DAYS_PER_MONTH;
        let mut days = i64::from(self.days) % DAYS_PER_MONTH;
        if months > 0 && days < 0 {
            (months, days) = (months - 1, days + DAYS_PER_MONTH);
        } else if months < 0 && days > 0 {
            (months, days) = (months + 1, days - DAYS_PER_MONTH);
        }
        Some(Interval { months: i32::try_from(months).ok()?, days: i32::try_from(days).ok()?, ..self })
    }

    /// Returns the interval with all parts of one sign, as PostgreSQL's `justify_interval`.
    #[must_use]
    pub fn justify(self) -> Option<Interval> {
        let day = i128::from(DAY_NANOS);
        let (mut months, mut days) = (i128::from(self.months), i128::from(self.days) + i128::from(self.nanos) / day);
        let mut nanos = i128::from(self.nanos) % day;
        let month = i128::from(DAYS_PER_MONTH);
        (months, days) = (months + days / month, days % month);
        if months > 0 && (days < 0 || days == 0 && nanos < 0) {
            (months, days) = (months - 1, days + month);
        } else if months < 0 && (days > 0 || days == 0 && nanos > 0) {
            (months, days) = (months + 1, days - month);
        }
        if days > 0 && nanos < 0 {
            (days, nanos) = (days - 1, nanos + day);
        } else if days < 0 && nanos > 0 {
            (days, nanos) = (days + 1, nanos - day);
        }
        let (months, days) = (i32::try_from(months).ok()?, i32::try_from(days).ok()?);
        Some(Interval { months, days, nanos: i64::try_from(nanos).ok()? })
    }
}

/// Formats as PostgreSQL with `IntervalStyle` postgres: `1 year 2 mons 3 days 04:05:06.789`.
impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut is_first, mut is_negative) = (true, false);
        let parts = [(self.months / 12, "year"), (self.months % 12, "mon"), (self.days, "day")];
        for (value, unit) in parts.into_iter().filter(|(value, _)| *value != 0) {
            let sign = if is_negative && value > 0 { "+" } else { "" };
            let (space, plural) = (if is_first { "" } else { " " }, if value == 1 { "" } else { "s" });
            write!(f, "{space}{sign}{value} {unit}{plural}")?;
            (is_first, is_negative) = (false, value < 0);
        }
        if self.nanos == 0 && !is_first {
            return Ok(());
        }
        let sign = match (self.nanos < 0, is_negative) {
            (true, _) => "-",
            (false, true) => "+",
            (false, false) => "",
        };
        let nanos = self.nanos.unsigned_abs();
        let (seconds, fraction) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
        let space = if is_first { "" } else { " " };
        write!(f, "{space}{sign}{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)?;
        if fraction == 0 {
            return Ok(());
        }
        let digits = format!("{fraction:09}");
        write!(f, ".{}", digits.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000_000_000;

    /// Expected values are outputs of PostgreSQL 15.
    #[test]
    fn text_as_postgresql_writes_it() {
        let cases = [
            ((14, 3, 14_706_789_000_000), "1 year 2 mons 3 days 04:05:06.789"),
            ((0, 0, 0), "00:00:00"),
            ((-14, 3, -HOUR), "-1 years -2 mons +3 days -01:00:00"),
            ((0, -1, HOUR), "-1 days +01:00:00"),
            ((1, 0, 0), "1 mon"),
            ((-12, 0, 0), "-1 years"),
            ((0, 0, 100 * HOUR), "100:00:00"),
        ];
        for ((months, days, nanos), text) in cases {
            assert_eq!(Interval { months, days, nanos }.to_string(), text);
        }
    }

    #[test]
    fn lengths_by_which_intervals_are_compared() {
        let of = |text| Interval::parse(text, None).map(Interval::total_nanos);
        assert_eq!(of("24 hours"), of("1 day"));
        assert_eq!(of("1 month"), of("30 days"));
        assert!(of("1 year").ok() < of("365 days").ok(), "twelve months of 30 days");
    }

    /// Expected values are outputs of PostgreSQL 15.
    #[test]
    fn parts_carried_over() {
        let of = |text| Interval::parse(text, None).ok();
        let shown = |interval: Option<Interval>| interval.map(|interval| interval.to_string()).unwrap_or_default();
        assert_eq!(shown(of("27:00:00").and_then(Interval::justify_hours)), "1 day 03:00:00");
        assert_eq!(shown(of("35 days").and_then(Interval::justify_days)), "1 mon 5 days");
        assert_eq!(shown(of("1 mon -1 hour").and_then(Interval::justify)), "29 days 23:00:00");
        assert_eq!(shown(of("-1 mon 1 hour").and_then(Interval::justify)), "-29 days -23:00:00");
    }
}
