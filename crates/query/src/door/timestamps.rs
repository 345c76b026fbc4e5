//! Timestamps as text: ISO 8601, cut off after any part, with a space or `T` between date and time.
//!
//! `2024`, `2024-02`, `2024-02-29`, `2024-02-29T23`, `2024-02-29 23:59`, `2024-02-29T23:59:59.999999999+01:00`.
//! What is left out is zero; without a zone the text is UTC.

use datafusion::arrow::compute::kernels::cast_utils::Parser;
use datafusion::arrow::datatypes::{DataType, Date32Type, TimeUnit as ArrowUnit};
use tidalite_types::TimeUnit;
use tidalite_types::interval::DAY_NANOS;
use tidalite_types::time::{days_from_civil, days_in_month};

/// Returns the nanoseconds of an Arrow time unit.
pub(crate) fn arrow_unit_nanos(unit: ArrowUnit) -> i64 {
    match unit {
        ArrowUnit::Second => 1_000_000_000,
        ArrowUnit::Millisecond => 1_000_000,
        ArrowUnit::Microsecond => 1_000,
        ArrowUnit::Nanosecond => 1,
    }
}

/// Returns the nanoseconds of a time type's unit; `None` for other types.
pub(crate) fn unit_nanos(data_type: &DataType) -> Option<i64> {
    Some(match data_type {
        DataType::Date32 => DAY_NANOS,
        DataType::Date64 => arrow_unit_nanos(ArrowUnit::Millisecond),
        DataType::Timestamp(unit, _) => arrow_unit_nanos(*unit),
        _ => return None,
    })
}

/// The timestamp in `unit`, rounded down, and whether it is exact; `None` when the text is none or out of range.
pub(crate) fn parse_timestamp(text: &str, unit: TimeUnit) -> Option<(i64, bool)> {
    let mut rest = Cursor(text.trim().as_bytes());
    let is_negative = rest.take(b'-');
    let year = rest.digits(4, 6)? as i64;
    let year = if is_negative { -year } else { year };
    let (mut month, mut day, mut seconds, mut nanos) = (1, 1, 0, 0);
    if rest.take(b'-') {
        month = rest.between(2, 1, 12)?;
        if rest.take(b'-') {
            day = rest.between(2, 1, days_in_month(year, month))?;
            if rest.take(b'T') || rest.take(b't') || rest.take(b' ') {
                (seconds, nanos) = time(&mut rest)?;
            }
        }
    }
    let offset = zone(&mut rest)?;
    if !rest.0.is_empty() {
        return None;
    }
    let seconds = days_from_civil(year, month, day) * 86_400 + seconds - offset;
    let per_second = unit.per_second();
    let nanos_per_unit = 1_000_000_000 / per_second;
    let value = seconds.checked_mul(per_second)?.checked_add(nanos / nanos_per_unit)?;
    Some((value, nanos % nanos_per_unit == 0))
}

/// Parses days since 1970-01-01.
///
/// The text is a timestamp, whose time of day is dropped, or a date as `20240229` and `2024-2-9`.
pub(crate) fn parse_date(text: &str) -> Option<i32> {
    match parse_timestamp(text, TimeUnit::Millis) {
        Some((ms, _)) => i32::try_from(ms.div_euclid(86_400_000)).ok(),
        None => Date32Type::parse(text.trim()),
    }
}

/// Seconds of the day and nanoseconds of the second. A leap second is the first of the next minute.
fn time(rest: &mut Cursor) -> Option<(i64, i64)> {
    let mut seconds = i64::from(rest.between(2, 0, 23)?) * 3_600;
    let mut nanos = 0;
    if rest.take(b':') {
        seconds += i64::from(rest.between(2, 0, 59)?) * 60;
        if rest.take(b':') {
            seconds += i64::from(rest.between(2, 0, 60)?);
            if rest.take(b'.') || rest.take(b',') {
                let before = rest.0.len();
                let fraction = rest.digits(1, 9)?;
                nanos = fraction as i64 * 10_i64.pow(9 - (before - rest.0.len()) as u32);
            }
        }
    }
    Some((seconds, nanos))
}

/// Seconds east of Greenwich.
fn zone(rest: &mut Cursor) -> Option<i64> {
    rest.take(b' ');
    if rest.0.is_empty() || rest.take(b'Z') || rest.take(b'z') {
        return Some(0);
    }
    let sign = if rest.take(b'+') {
        1
    } else if rest.take(b'-') {
        -1
    } else {
        return None;
    };
    let hours = i64::from(rest.between(2, 0, 18)?);
    let has_minutes = rest.take(b':') || !rest.0.is_empty();
    let minutes = if has_minutes { i64::from(rest.between(2, 0, 59)?) } else { 0 };
    Some(sign * (hours * 3_600 + minutes * 60))
}

struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn take(&mut self, byte: u8) -> bool {
        let found = self.0.first() == Some(&byte);
        if found {
            self.0 = &self.0[1..];
        }
        found
    }

    fn digits(&mut self, least: usize, most: usize) -> Option<u64> {
        let count = self.0.iter().take(most).take_while(|b| b.is_ascii_digit()).count();
        if count < least {
            return None;
        }
        let (digits, rest) = self.0.split_at(count);
        self.0 = rest;
        std::str::from_utf8(digits).ok()?.parse().ok()
    }

    fn between(&mut self, count: usize, least: u32, most: u32) -> Option<u32> {
        let value = self.digits(count, count)? as u32;
        (least..=most).contains(&value).then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_part_may_be_the_last() {
        let micros = |text| parse_timestamp(text, TimeUnit::Micros);
        let day = 1_709_164_800_000_000; // 2024-02-29
        assert_eq!(micros("2024"), Some((1_704_067_200_000_000, true)));
        assert_eq!(micros("2024-02"), Some((1_706_745_600_000_000, true)));
        assert_eq!(micros("2024-02-29"), Some((day, true)));
        assert_eq!(micros("2024-02-29T01"), Some((day + 3_600_000_000, true)));
        assert_eq!(micros("2024-02-29 00:01"), Some((day + 60_000_000, true)));
        assert_eq!(micros("2024-02-29T00:00:01.5Z"), Some((day + 1_500_000, true)));
        assert_eq!(micros("2024-02-29T00:00:00.000001001"), Some((day + 1, false)));
        assert_eq!(micros("2024-02-29T01:00:00+01:00"), Some((day, true)));
        assert_eq!(micros("2024-02-28T22:30:00-0130"), Some((day, true)));
        assert_eq!(micros("1969-12-31T23:59:59.999999"), Some((-1, true)));
    }

    #[test]
    fn what_is_no_timestamp_is_refused() {
        for text in [
            "",
            "24",
            "2024-13",
            "2023-02-29",
            "2024-02-29T24",
            "2024-02-29T00:60",
            "2024-02-29x",
            "yesterday",
            "2024-02-29T00:00:00.1234567890",
            "2024-",
        ] {
            assert_eq!(parse_timestamp(text, TimeUnit::Micros), None, "{text}");
        }
        assert_eq!(parse_timestamp("3000", TimeUnit::Nanos), None, "past the range of nanoseconds");
    }
}
