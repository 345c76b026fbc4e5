//! A length of time as QuestDB's users write it: a count and a letter, `5m`, `1M`.

use tidalite_types::TimeUnit;
use tidalite_types::time::{civil_from_days, days_from_civil};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd)]
pub(crate) enum Unit {
    Nanos,
    Micros,
    Millis,
    Seconds,
    Minutes,
    Hours,
    Days,
    Weeks,
    Months,
    Years,
}

const DAY_S: i64 = 86_400;

impl Unit {
    /// The letters are told apart by case: `m` is a minute and `M` a month.
    pub fn of(letter: &str) -> Option<Unit> {
        Some(match letter {
            "n" => Unit::Nanos,
            "U" | "u" => Unit::Micros,
            "T" => Unit::Millis,
            "s" => Unit::Seconds,
            "m" => Unit::Minutes,
            "h" | "H" => Unit::Hours,
            "d" | "D" => Unit::Days,
            "w" | "W" => Unit::Weeks,
            "M" => Unit::Months,
            "y" | "Y" => Unit::Years,
            _ => return None,
        })
    }

    /// Nanoseconds of units that are always of one length; days are, on a clock that is never changed.
    pub fn nanos(self) -> Option<i128> {
        Some(match self {
            Unit::Nanos => 1,
            Unit::Micros => 1_000,
            Unit::Millis => 1_000_000,
            Unit::Seconds => 1_000_000_000,
            Unit::Minutes => 60_000_000_000,
            Unit::Hours => 3_600_000_000_000,
            Unit::Days => 86_400_000_000_000,
            Unit::Weeks => 604_800_000_000_000,
            Unit::Months | Unit::Years => return None,
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd)]
pub(crate) struct Stride {
    pub count: i64,
    pub unit: Unit,
}

impl Stride {
    /// `15m`, `-3d`, and `h` for `1h`.
    pub fn parse(text: &str) -> Option<Stride> {
        let text = text.trim();
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '-' && c != '+')?;
        let (count, letter) = text.split_at(digits);
        let unit = Unit::of(letter.trim())?;
        let count = if count.is_empty() { 1 } else { count.parse().ok()? };
        Some(Stride { count, unit })
    }

    /// `ts` and so many of the stride; days of months that have fewer are the month's last. `None` past the range.
    pub fn add_to(self, ts: i64, times: i64, time_unit: TimeUnit) -> Option<i64> {
        let count = self.count.checked_mul(times)?;
        if let Some(nanos) = self.unit.nanos() {
            let per_unit = 1_000_000_000 / i128::from(time_unit.per_second());
            return i64::try_from(i128::from(ts) + (nanos * i128::from(count)).div_euclid(per_unit)).ok();
        }
        let months = if self.unit == Unit::Years { count.checked_mul(12)? } else { count };
        add_months(ts, months, time_unit)
    }
}

/// The same time of day of a day so many months on.
pub(crate) fn add_months(ts: i64, months: i64, unit: TimeUnit) -> Option<i64> {
    let day_ticks = DAY_S * unit.per_second();
    let (days, time) = (ts.div_euclid(day_ticks), ts.rem_euclid(day_ticks));
    let (year, month, day) = civil_from_days(days);
    let index = (year * 12 + i64::from(month) - 1).checked_add(months)?;
    let (year, month) = (index.div_euclid(12), index.rem_euclid(12) as u32 + 1);
    if year.abs() > 400_000 {
        return None;
    }
    let days = days_from_civil(year, month, day.min(days_in(year, month)));
    days.checked_mul(day_ticks)?.checked_add(time)
}

pub(crate) fn days_in(year: i64, month: u32) -> u32 {
    let (next_year, next) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    (days_from_civil(next_year, next, 1) - days_from_civil(year, month, 1)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = DAY_S * 1_000_000;

    #[test]
    fn case_tells_minutes_from_months() {
        assert_eq!(Stride::parse("15m"), Some(Stride { count: 15, unit: Unit::Minutes }));
        assert_eq!(Stride::parse("1M"), Some(Stride { count: 1, unit: Unit::Months }));
        assert_eq!(Stride::parse("h"), Some(Stride { count: 1, unit: Unit::Hours }));
        assert_eq!(Stride::parse("-3d"), Some(Stride { count: -3, unit: Unit::Days }));
        assert_eq!([Stride::parse("1x"), Stride::parse(""), Stride::parse("5")], [None, None, None]);
    }

    #[test]
    fn a_month_on_is_the_same_day_or_the_last() {
        let date = |y, m, d| days_from_civil(y, m, d) * DAY;
        let month = Stride { count: 1, unit: Unit::Months };
        assert_eq!(month.add_to(date(2024, 1, 31), 1, TimeUnit::Micros), Some(date(2024, 2, 29)));
        assert_eq!(month.add_to(date(2024, 1, 31), -2, TimeUnit::Micros), Some(date(2023, 11, 30)));
        assert_eq!(month.add_to(date(1969, 12, 31) + 5, 2, TimeUnit::Micros), Some(date(1970, 2, 28) + 5));
        assert_eq!(month.add_to(i64::MAX, 1, TimeUnit::Nanos), None);
    }
}
