//! The time to live of a table's rows.

use crate::TimeUnit;
use crate::time::{civil_from_days, days_from_civil, days_in_month};
use std::fmt;

/// A partition is dropped if its whole interval is older than this, relative to the table's newest row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ttl {
    Hours(u32),
    /// Calendar months.
    Months(u32),
}

const DAY_S: i64 = 86_400;

impl Ttl {
    /// Parses `count` of an SQL unit: `h`, `HOUR`, `HOURS`, `d`, …, `y`; `m` means months.
    ///
    /// Returns `None` if there is no such unit or the time is too long.
    #[must_use]
    pub fn from_sql(count: u64, unit: &str) -> Option<Ttl> {
        let count = u32::try_from(count).ok()?;
        let times = |n: u32| count.checked_mul(n);
        Some(match unit.to_ascii_lowercase().as_str() {
            "h" | "hour" | "hours" => Ttl::Hours(count),
            "d" | "day" | "days" => Ttl::Hours(times(24)?),
            "w" | "week" | "weeks" => Ttl::Hours(times(7 * 24)?),
            "m" | "month" | "months" => Ttl::Months(count),
            "y" | "year" | "years" => Ttl::Months(times(12)?),
            _ => return None,
        })
    }

    /// Returns the number and the unit of SHOW CREATE TABLE, in the largest exact unit: `(30, "DAY")`.
    #[must_use]
    pub fn in_units(self) -> (u32, &'static str) {
        match self {
            Ttl::Hours(hours) if hours % (7 * 24) == 0 => (hours / (7 * 24), "WEEK"),
            Ttl::Hours(hours) if hours % 24 == 0 => (hours / 24, "DAY"),
            Ttl::Hours(hours) => (hours, "HOUR"),
            Ttl::Months(months) if months % 12 == 0 => (months / 12, "YEAR"),
            Ttl::Months(months) => (months, "MONTH"),
        }
    }

    /// Returns the latest end of an expired interval if the newest row has time `newest`.
    #[must_use]
    pub fn cutoff(self, newest: i64, unit: TimeUnit) -> i64 {
        let per_second = unit.per_second();
        match self {
            Ttl::Hours(hours) => newest.saturating_sub((i64::from(hours) * 3_600).saturating_mul(per_second)),
            Ttl::Months(months) => {
                let day = DAY_S * per_second;
                let (year, month, of_month) = civil_from_days(newest.div_euclid(day));
                let before = year * 12 + i64::from(month) - 1 - i64::from(months);
                let (year, month) = (before.div_euclid(12), before.rem_euclid(12) as u32 + 1);
                // In a shorter month, the 31st becomes its last day.
                let days = days_from_civil(year, month, of_month.min(days_in_month(year, month)));
                days.saturating_mul(day).saturating_add(newest.rem_euclid(day))
            }
        }
    }
}

impl fmt::Display for Ttl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, unit) = self.in_units();
        write!(f, "{count} {unit}{}", if count == 1 { "" } else { "S" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_those_of_sql() {
        let shown = |count, unit| Ttl::from_sql(count, unit).map(|ttl| ttl.to_string());
        assert_eq!(shown(30, "DAYS").as_deref(), Some("30 DAYS"));
        assert_eq!(shown(14, "d").as_deref(), Some("2 WEEKS"));
        assert_eq!(shown(1, "M").as_deref(), Some("1 MONTH"));
        assert_eq!(shown(24, "months").as_deref(), Some("2 YEARS"));
        assert_eq!(shown(5, "h").as_deref(), Some("5 HOURS"));
        assert_eq!(shown(1, "fortnight"), None);
        assert_eq!(shown(u64::from(u32::MAX), "y"), None);
    }

    #[test]
    fn months_are_of_the_calendar() {
        let day = 86_400_000;
        let at = |y, m, d| days_from_civil(y, m, d) * day + 5;
        let back = |months, from| Ttl::Months(months).cutoff(from, TimeUnit::Millis);
        assert_eq!(back(1, at(2024, 3, 31)), at(2024, 2, 29));
        assert_eq!(back(1, at(2024, 1, 15)), at(2023, 12, 15));
        assert_eq!(back(12, at(2024, 2, 29)), at(2023, 2, 28));
        assert_eq!(Ttl::Hours(24).cutoff(at(2024, 3, 1), TimeUnit::Millis), at(2024, 2, 29));
    }
}
