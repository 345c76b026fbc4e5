//! Parses times in the notations of files.
//!
//! Input: the text of a field and a [`TimeFormat`]. Output: an instant in UTC. [`TimeFormat::Auto`] parses ISO 8601 and
//! other unambiguous notations, [`TimeFormat::Epoch`] numbers, [`TimeFormat::Pattern`] the notation of a pattern.
//!
//! Reading order: [`flexible`] notations that need no pattern; [`pattern`] patterns of Java and of strptime; [`zone`].

mod cursor;
mod flexible;
mod instant;
mod pattern;
mod zone;

use crate::convert::Problem;
use crate::convert::decimal::parse_decimal;
use std::fmt;
use tidalite_types::TimeUnit;
use tidalite_types::time::days_from_civil;

pub(super) use flexible::{compact, read, time_of_day};
pub use instant::DateOrder;
pub(super) use instant::Instant;
pub use pattern::TimePattern;

const NANOS: i128 = 1_000_000_000;

/// The unit of a number that counts from 1970-01-01 UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EpochUnit {
    Seconds,
    Millis,
    Micros,
    Nanos,
}

impl EpochUnit {
    pub const ALL: [EpochUnit; 4] = [EpochUnit::Seconds, EpochUnit::Millis, EpochUnit::Micros, EpochUnit::Nanos];

    /// Returns the unit in which `value` is between 1973 and 5138 (nanoseconds: 2262).
    ///
    /// Returns `None` for smaller numbers, which would be in 1970 to 1973 or have another meaning.
    #[must_use]
    pub fn from_magnitude(value: i64) -> Option<EpochUnit> {
        match value.unsigned_abs() {
            0..100_000_000 => None,
            100_000_000..100_000_000_000 => Some(EpochUnit::Seconds),
            100_000_000_000..100_000_000_000_000 => Some(EpochUnit::Millis),
            100_000_000_000_000..100_000_000_000_000_000 => Some(EpochUnit::Micros),
            _ => Some(EpochUnit::Nanos),
        }
    }

    fn nanos(self) -> i128 {
        match self {
            EpochUnit::Seconds => NANOS,
            EpochUnit::Millis => 1_000_000,
            EpochUnit::Micros => 1_000,
            EpochUnit::Nanos => 1,
        }
    }

    /// Returns the unit of a column that stores such numbers without loss; seconds become microseconds.
    #[must_use]
    pub fn column_unit(self) -> TimeUnit {
        match self {
            EpochUnit::Millis => TimeUnit::Millis,
            EpochUnit::Seconds | EpochUnit::Micros => TimeUnit::Micros,
            EpochUnit::Nanos => TimeUnit::Nanos,
        }
    }

    /// Returns the unit of a column.
    #[must_use]
    pub fn from_column(unit: TimeUnit) -> EpochUnit {
        match unit {
            TimeUnit::Millis => EpochUnit::Millis,
            TimeUnit::Micros => EpochUnit::Micros,
            TimeUnit::Nanos => EpochUnit::Nanos,
        }
    }

    fn name(self) -> &'static str {
        match self {
            EpochUnit::Seconds => "epoch_s",
            EpochUnit::Millis => "epoch_ms",
            EpochUnit::Micros => "epoch_us",
            EpochUnit::Nanos => "epoch_ns",
        }
    }

    /// Returns the name of the unit.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            EpochUnit::Seconds => "seconds",
            EpochUnit::Millis => "milliseconds",
            EpochUnit::Micros => "microseconds",
            EpochUnit::Nanos => "nanoseconds",
        }
    }
}

/// The notation of the times of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimeFormat {
    /// Every unambiguous notation.
    ///
    /// These are ISO 8601 and others with the year first, names of months, days before months if separated by points,
    /// numbers whose unit follows from their magnitude. `01/02/2024` requires the order.
    Auto(Option<DateOrder>),
    Epoch(EpochUnit),
    Pattern(Box<TimePattern>),
}

impl TimeFormat {
    /// Reads the name of a format (`auto`, `dmy`, `mdy`, `epoch_s`, `epoch_ms`, `epoch_us`, `epoch_ns`) or a pattern.
    ///
    /// # Errors
    /// The string is neither the name of a format nor a pattern.
    pub fn from_text(text: &str) -> Result<TimeFormat, String> {
        let lower = text.trim().to_ascii_lowercase();
        Ok(match lower.as_str() {
            "auto" | "iso" | "iso8601" | "ymd" => TimeFormat::Auto(None),
            "dmy" => TimeFormat::Auto(Some(DateOrder::DayFirst)),
            "mdy" => TimeFormat::Auto(Some(DateOrder::MonthFirst)),
            _ => match EpochUnit::ALL.into_iter().find(|unit| unit.name() == lower) {
                Some(unit) => TimeFormat::Epoch(unit),
                None => TimeFormat::Pattern(Box::new(TimePattern::new(text)?)),
            },
        })
    }

    pub(super) fn instant(&self, text: &str) -> Result<Instant, Problem> {
        match self {
            TimeFormat::Auto(order) => match number_or_digits(text) {
                Some(instant) => instant,
                None => read(text, *order).map(|reading| reading.instant).ok_or(Problem::Syntax),
            },
            TimeFormat::Epoch(unit) => from_number(text, *unit),
            TimeFormat::Pattern(pattern) => pattern.read(text).ok_or(Problem::Syntax),
        }
    }

    /// Parses a time of the years 1 to 9999 in a unit; digits finer than the unit are dropped.
    pub(super) fn timestamp(&self, text: &str, unit: TimeUnit) -> Result<i64, Problem> {
        let Instant { seconds, nanos } = self.instant(text)?;
        let per_second = unit.per_second();
        let value = i128::from(seconds) * i128::from(per_second) + i128::from(nanos / (1_000_000_000 / per_second));
        let at = |year| i128::from(days_from_civil(year, 1, 1)) * 86_400 * i128::from(per_second);
        if (at(1)..at(10_000)).contains(&value) {
            i64::try_from(value).map_err(|_| Problem::Range)
        } else {
            Err(Problem::Range)
        }
    }

    /// Parses a time and returns the day in UTC, since 1970-01-01.
    pub(super) fn date(&self, text: &str) -> Result<i32, Problem> {
        i32::try_from(self.instant(text)?.seconds.div_euclid(86_400)).map_err(|_| Problem::Range)
    }
}

impl fmt::Display for TimeFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TimeFormat::Auto(None) => f.write_str("auto"),
            TimeFormat::Auto(Some(DateOrder::DayFirst)) => f.write_str("dmy"),
            TimeFormat::Auto(Some(DateOrder::MonthFirst)) => f.write_str("mdy"),
            TimeFormat::Epoch(unit) => f.write_str(unit.name()),
            TimeFormat::Pattern(pattern) => f.write_str(pattern.text()),
        }
    }
}

/// Interprets a number as a date without separators, else as an epoch count of a unit by magnitude.
///
/// `None` if the string is not a number.
fn number_or_digits(text: &str) -> Option<Result<Instant, Problem>> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !digits.starts_with(|c: char| c.is_ascii_digit())
        || !digits.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'))
    {
        return None;
    }
    if let Some(reading) = compact(text.as_bytes()) {
        return Some(Ok(reading.instant));
    }
    let unit = epoch_unit(text)?;
    Some(from_number(text, unit))
}

/// Returns the unit of a number by its magnitude; `None` if the text is no number, or a small one.
pub(super) fn epoch_unit(text: &str) -> Option<EpochUnit> {
    let value = match text.parse::<i64>() {
        Ok(value) => value,
        Err(_) => {
            let (digits, scale) = parse_decimal(text).ok()?;
            i64::try_from(scaled(digits, 1, scale)?).ok()?
        }
    };
    EpochUnit::from_magnitude(value)
}

/// Returns `digits * factor / 10^scale`, rounded down; `None` on overflow.
fn scaled(digits: i128, factor: i128, scale: i32) -> Option<i128> {
    let product = digits.checked_mul(factor)?;
    let power = |exponent: i32| 10_i128.checked_pow(exponent.unsigned_abs());
    if scale >= 0 {
        Some(power(scale).map_or(0, |p| product.div_euclid(p)))
    } else {
        product.checked_mul(power(scale)?)
    }
}

fn from_number(text: &str, unit: EpochUnit) -> Result<Instant, Problem> {
    let nanos = match text.parse::<i64>() {
        Ok(value) => i128::from(value) * unit.nanos(),
        Err(_) => {
            let (digits, scale) = parse_decimal(text)?;
            scaled(digits, unit.nanos(), scale).ok_or(Problem::Range)?
        }
    };
    let seconds = i64::try_from(nanos.div_euclid(NANOS)).map_err(|_| Problem::Range)?;
    Ok(Instant { seconds, nanos: nanos.rem_euclid(NANOS) as i64 })
}

#[cfg(test)]
mod tests;
