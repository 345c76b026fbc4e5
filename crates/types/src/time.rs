//! Units of time, and partition intervals.
//!
//! All times are UTC and proleptic Gregorian. A timestamp is an `i64` in the unit of its column.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeUnit {
    Millis,
    Micros,
    Nanos,
}

impl TimeUnit {
    #[must_use]
    pub fn per_second(self) -> i64 {
        match self {
            TimeUnit::Millis => 1_000,
            TimeUnit::Micros => 1_000_000,
            TimeUnit::Nanos => 1_000_000_000,
        }
    }

    /// Converts `value` to the unit `to`; `None` if it does not fit. A coarser unit rounds down.
    #[must_use]
    pub fn convert(self, value: i64, to: TimeUnit) -> Option<i64> {
        let (from, to) = (self.per_second(), to.per_second());
        if to >= from { value.checked_mul(to / from) } else { Some(value.div_euclid(from / to)) }
    }
}

/// The unit of a count since 1970-01-01 UTC, as stated by a client: `precision=` of line protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EpochUnit {
    /// No unit stated: nanoseconds.
    Unstated,
    Nanos,
    Micros,
    Millis,
    Seconds,
    Minutes,
    Hours,
    /// Seconds to nanoseconds, by the magnitude of each number: [`EpochUnit::detect`].
    Auto,
}

impl EpochUnit {
    /// The names that [`EpochUnit::from_precision`] accepts.
    pub const NAMES: &str = "n, ns, u, us, ms, s, m, h, nanosecond, microsecond, millisecond, second and auto";

    /// Parses the value of `precision=` in the spellings of InfluxDB 1, 2 and 3 and QuestDB.
    #[must_use]
    pub fn from_precision(text: &str) -> Option<EpochUnit> {
        Some(match text {
            "" => EpochUnit::Unstated,
            "n" | "ns" | "nanosecond" => EpochUnit::Nanos,
            "u" | "us" | "µ" | "µs" | "microsecond" => EpochUnit::Micros,
            "ms" | "millisecond" => EpochUnit::Millis,
            "s" | "second" => EpochUnit::Seconds,
            "m" | "minute" => EpochUnit::Minutes,
            "h" | "hour" => EpochUnit::Hours,
            "auto" => EpochUnit::Auto,
            _ => return None,
        })
    }

    /// Returns the unit of `count` by its magnitude, with the limits of InfluxDB 3.
    ///
    /// Below 5·10⁹ seconds, below 5·10¹² milliseconds, below 5·10¹⁵ microseconds, else nanoseconds.
    #[must_use]
    pub fn detect(count: i64) -> EpochUnit {
        match count.unsigned_abs() {
            0..5_000_000_000 => EpochUnit::Seconds,
            5_000_000_000..5_000_000_000_000 => EpochUnit::Millis,
            5_000_000_000_000..5_000_000_000_000_000 => EpochUnit::Micros,
            _ => EpochUnit::Nanos,
        }
    }

    /// Converts `count` of this unit to `to`, rounded down; `None` when the result does not fit.
    #[must_use]
    pub fn convert(self, count: i64, to: TimeUnit) -> Option<i64> {
        let (from, factor) = match self {
            EpochUnit::Unstated | EpochUnit::Nanos => (TimeUnit::Nanos, 1),
            EpochUnit::Micros => (TimeUnit::Micros, 1),
            EpochUnit::Millis => (TimeUnit::Millis, 1),
            EpochUnit::Seconds => (TimeUnit::Millis, 1_000),
            EpochUnit::Minutes => (TimeUnit::Millis, 60_000),
            EpochUnit::Hours => (TimeUnit::Millis, 3_600_000),
            EpochUnit::Auto => return EpochUnit::detect(count).convert(count, to),
        };
        from.convert(count.checked_mul(factor)?, to)
    }
}

/// The time interval of one partition of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PartitionBy {
    None,
    Hour,
    Day,
    /// Weeks start on Monday.
    Week,
    Month,
    Year,
}

impl fmt::Display for PartitionBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PartitionBy::None => "NONE",
            PartitionBy::Hour => "HOUR",
            PartitionBy::Day => "DAY",
            PartitionBy::Week => "WEEK",
            PartitionBy::Month => "MONTH",
            PartitionBy::Year => "YEAR",
        })
    }
}

const DAY_S: i64 = 86_400;

impl PartitionBy {
    #[must_use]
    pub fn from_sql_name(name: &str) -> Option<PartitionBy> {
        Some(match name.to_ascii_uppercase().as_str() {
            "NONE" => PartitionBy::None,
            "HOUR" => PartitionBy::Hour,
            "DAY" => PartitionBy::Day,
            "WEEK" => PartitionBy::Week,
            "MONTH" => PartitionBy::Month,
            "YEAR" => PartitionBy::Year,
            _ => return None,
        })
    }

    /// Returns the half-open interval `[lo, hi)` of the partition that contains `ts`, in the unit of `ts`.
    /// `hi` saturates at `i64::MAX`, which this last partition then includes; `lo` saturates at `i64::MIN`.
    #[must_use]
    pub fn interval(self, ts: i64, unit: TimeUnit) -> (i64, i64) {
        let per_second = unit.per_second();
        let (lo_s, hi_s) = match self {
            PartitionBy::None => return (i64::MIN, i64::MAX),
            PartitionBy::Hour => fixed(ts.div_euclid(per_second), 3_600, 0),
            PartitionBy::Day => fixed(ts.div_euclid(per_second), DAY_S, 0),
            // 1970-01-01 was a Thursday: the Monday before it is day -3.
            PartitionBy::Week => fixed(ts.div_euclid(per_second), 7 * DAY_S, -3 * DAY_S),
            PartitionBy::Month => {
                let (y, m, _) = civil_from_days(ts.div_euclid(per_second).div_euclid(DAY_S));
                let (ny, nm) = if m == 12 { (y + 1, 1) } else { (y, m + 1) };
                (days_from_civil(y, m, 1) * DAY_S, days_from_civil(ny, nm, 1) * DAY_S)
            }
            PartitionBy::Year => {
                let (y, _, _) = civil_from_days(ts.div_euclid(per_second).div_euclid(DAY_S));
                (days_from_civil(y, 1, 1) * DAY_S, days_from_civil(y + 1, 1, 1) * DAY_S)
            }
        };
        (lo_s.saturating_mul(per_second), hi_s.saturating_mul(per_second))
    }

    /// Returns the name of the partition that starts at `lo`, for `ALTER TABLE … DROP PARTITION LIST`:
    ///
    /// `2016-01-01T05`, `2016-01-01`, `2016-W01`, `2016-01`, `2016`, `default`.
    #[must_use]
    pub fn name(self, lo: i64, unit: TimeUnit) -> String {
        let seconds = lo.div_euclid(unit.per_second());
        let days = seconds.div_euclid(DAY_S);
        let (y, m, d) = civil_from_days(days);
        match self {
            PartitionBy::None => "default".to_owned(),
            PartitionBy::Hour => format!("{y:04}-{m:02}-{d:02}T{:02}", seconds.rem_euclid(DAY_S) / 3_600),
            PartitionBy::Day => format!("{y:04}-{m:02}-{d:02}"),
            PartitionBy::Week => {
                // ISO 8601: the week belongs to the year of its Thursday.
                let monday = (days + 3).div_euclid(7) * 7 - 3;
                let (iso_year, _, _) = civil_from_days(monday + 3);
                let week = (monday + 3 - days_from_civil(iso_year, 1, 1)) / 7 + 1;
                format!("{iso_year:04}-W{week:02}")
            }
            PartitionBy::Month => format!("{y:04}-{m:02}"),
            PartitionBy::Year => format!("{y:04}"),
        }
    }
}

fn fixed(seconds: i64, width: i64, origin: i64) -> (i64, i64) {
    let lo = (seconds - origin).div_euclid(width) * width + origin;
    (lo, lo + width)
}

/// Returns the days since 1970-01-01 of a civil date. Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
#[must_use]
pub fn days_from_civil(year: i64, month: u32, day: u32) -> i64 {
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let yoe = y.rem_euclid(400);
    let shifted = i64::from((month + 9) % 12);
    let doy = (153 * shifted + 2) / 5 + i64::from(day) - 1;
    era * 146_097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719_468
}

/// Returns the number of days of a month, 28 to 31; `month` is 1 to 12.
#[must_use]
pub fn days_in_month(year: i64, month: u32) -> u32 {
    let (next_year, next) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    (days_from_civil(next_year, next, 1) - days_from_civil(year, month, 1)) as u32
}

/// Returns year, month (1 to 12) and day (1 to 31) of days since 1970-01-01; the inverse of [`days_from_civil`].
#[must_use]
pub fn civil_from_days(days: i64) -> (i64, u32, u32) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1_460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let day = (doy - (153 * mp + 2) / 5 + 1) as u32;
    let month = if mp < 10 { mp + 3 } else { mp - 9 } as u32;
    (yoe + era * 400 + i64::from(month <= 2), month, day)
}

/// Formats ISO 8601 text with `Z`, with the fraction digits of the unit (3, 6 or 9).
#[must_use]
pub fn format_timestamp(ts: i64, unit: TimeUnit) -> String {
    let per_second = unit.per_second();
    let seconds = ts.div_euclid(per_second);
    let (y, m, d) = civil_from_days(seconds.div_euclid(DAY_S));
    let s = seconds.rem_euclid(DAY_S);
    let digits = match unit {
        TimeUnit::Millis => 3,
        TimeUnit::Micros => 6,
        TimeUnit::Nanos => 9,
    };
    format!(
        "{y:04}-{m:02}-{d:02}T{:02}:{:02}:{:02}.{:0digits$}Z",
        s / 3_600,
        s / 60 % 60,
        s % 60,
        ts.rem_euclid(per_second)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn civil_dates_agree_with_the_calendar() {
        // 2000-02-29 is day 11016 and 1969-12-31 day -1.
        assert_eq!(days_from_civil(2000, 2, 29), 11_016);
        assert_eq!(civil_from_days(-1), (1969, 12, 31));
        for days in -800_000..800_000 {
            let (y, m, d) = civil_from_days(days);
            assert_eq!(days_from_civil(y, m, d), days);
        }
    }

    #[test]
    fn partitions_hold_their_timestamp_and_are_named_by_their_start() {
        let ts = 1_451_606_400_000_000; // 2016-01-01T00:00:00Z, a Friday
        let unit = TimeUnit::Micros;
        let name = |by: PartitionBy, ts| by.name(by.interval(ts, unit).0, unit);
        assert_eq!(name(PartitionBy::Hour, ts - 1), "2015-12-31T23");
        assert_eq!(name(PartitionBy::Day, ts), "2016-01-01");
        assert_eq!(name(PartitionBy::Week, ts), "2015-W53");
        assert_eq!(name(PartitionBy::Month, ts - 1), "2015-12");
        assert_eq!(name(PartitionBy::Year, ts - 1), "2015");
        assert_eq!(PartitionBy::Week.interval(ts, unit).0, ts - 4 * DAY_S * 1_000_000);
        for by in [
            PartitionBy::None,
            PartitionBy::Hour,
            PartitionBy::Day,
            PartitionBy::Week,
            PartitionBy::Month,
            PartitionBy::Year,
        ] {
            for unit in [TimeUnit::Millis, TimeUnit::Micros, TimeUnit::Nanos] {
                for ts in [i64::MIN, -1, 0, 1, ts, i64::MAX] {
                    if unit == TimeUnit::Millis && ts.unsigned_abs() > 1 << 60 {
                        continue; // past year 290 million: outside of the range of all parsers
                    }
                    let (lo, hi) = by.interval(ts, unit);
                    assert!(lo <= ts && (ts < hi || hi == i64::MAX), "{by} {unit:?} {ts}");
                }
            }
        }
    }

    #[test]
    fn text_before_the_epoch_counts_fractions_forward() {
        assert_eq!(format_timestamp(-1, TimeUnit::Nanos), "1969-12-31T23:59:59.999999999Z");
        assert_eq!(format_timestamp(1_451_606_400_000, TimeUnit::Millis), "2016-01-01T00:00:00.000Z");
    }
}
