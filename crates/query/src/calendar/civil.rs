//! The calendar fields of a timestamp, in UTC.

use tidalite_types::TimeUnit;
use tidalite_types::time::{civil_from_days, days_from_civil};

const DAY_S: i64 = 86_400;

/// The parts of a timestamp.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Civil {
    /// Days since 1970-01-01.
    pub days: i64,
    pub year: i64,
    pub month: u32,
    pub day: u32,
    pub second_of_day: i64,
    /// Nanoseconds of the second.
    pub nanos: i64,
}

impl Civil {
    pub fn of(ts: i64, unit: TimeUnit) -> Civil {
        let seconds = ts.div_euclid(unit.per_second());
        let nanos = ts.rem_euclid(unit.per_second()) * (1_000_000_000 / unit.per_second());
        let days = seconds.div_euclid(DAY_S);
        let (year, month, day) = civil_from_days(days);
        Civil { days, year, month, day, second_of_day: seconds.rem_euclid(DAY_S), nanos }
    }
}

/// Returns the period of `years` years that contains a year, such as its century.
///
/// There is no year 0: the first century is 1 to 100, the one before it 100 to 1 BC.
pub(crate) fn centuries(year: i64, years: i64) -> i64 {
    if year > 0 { (year - 1) / years + 1 } else { year / years - 1 }
}

/// Returns the ISO 8601 year and week: the first week has the year's first Thursday.
pub(crate) fn week_of(t: &Civil) -> (i64, i64) {
    let thursday = t.days - (t.days + 3).rem_euclid(7) + 3;
    let (year, ..) = civil_from_days(thursday);
    (year, (thursday - days_from_civil(year, 1, 1)) / 7 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weeks_and_centuries_begin_where_they_should() {
        let of = |y, m, d| Civil::of(days_from_civil(y, m, d) * DAY_S * 1_000, TimeUnit::Millis);
        let weeks = [(2021, 1, 3), (2021, 1, 4), (2020, 12, 31), (1969, 12, 29), (2024, 12, 30)]
            .map(|(y, m, d)| week_of(&of(y, m, d)).1);
        assert_eq!(weeks, [53, 1, 53, 1, 1]);
        assert_eq!([1, 100, 101, 2000, 2001, 0].map(|y| centuries(y, 100)), [1, 1, 2, 20, 21, -1]);
    }
}
