//! Construction and decomposition of times and intervals, as in PostgreSQL: `make_date`, `make_timestamp`, `make_time`,
//! `make_interval`, `age`, `justify_days`, ….

use super::scalar::{Call, Gives, Kind, PLAIN, Scalar};
use super::time_casts::{arrow_interval, interval, of_interval};
use super::times;
use crate::Error;
use crate::calendar::Civil;
use crate::calendar::stride::days_in;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Date32Array, Int64Array, IntervalMonthDayNanoArray, Time64NanosecondArray,
};
use datafusion::arrow::datatypes::{Float64Type, Int64Type};
use datafusion::common::Result;
use std::sync::Arc;
use tidalite_types::time::{days_from_civil, days_in_month};
use tidalite_types::{Interval, TimeUnit};

const SECOND: i64 = 1_000_000_000;

pub(super) const FUNCTIONS: &[Scalar] = &[
    Scalar {
        name: "make_date",
        takes: "a year, a month and a day",
        kinds: &[Kind::Long, Kind::Long, Kind::Long],
        gives: Gives::Date,
        call: make_date,
        ..PLAIN
    },
    Scalar {
        name: "make_time",
        takes: "an hour, a minute and seconds",
        kinds: &[Kind::Long, Kind::Long, Kind::Double],
        gives: Gives::Time,
        call: make_time,
        ..PLAIN
    },
    Scalar {
        name: "make_timestamp",
        takes: TIMESTAMP_TAKES,
        kinds: SIX,
        gives: Gives::Micros,
        call: make_timestamp,
        ..PLAIN
    },
    Scalar {
        name: "make_timestamptz",
        takes: TIMESTAMP_TAKES,
        kinds: SIX,
        gives: Gives::Micros,
        call: make_timestamp,
        ..PLAIN
    },
    Scalar {
        name: "make_interval",
        takes: "years, months, weeks, days, hours, minutes and seconds",
        kinds: &[Kind::Long, Kind::Long, Kind::Long, Kind::Long, Kind::Long, Kind::Long, Kind::Double],
        least: 0,
        gives: Gives::Interval,
        call: make_interval,
        ..PLAIN
    },
    Scalar { name: "justify_hours", call: |call| justified(call, Interval::justify_hours), ..OF_INTERVAL },
    Scalar { name: "justify_days", call: |call| justified(call, Interval::justify_days), ..OF_INTERVAL },
    Scalar { name: "justify_interval", call: |call| justified(call, Interval::justify), ..OF_INTERVAL },
    Scalar {
        name: AGE,
        takes: "two timestamps",
        kinds: &[Kind::Time, Kind::Time],
        gives: Gives::Interval,
        call: age,
        ..PLAIN
    },
];

/// `age(later, earlier)`.
pub(crate) const AGE: &str = "age";
const TIMESTAMP_TAKES: &str = "a year, a month, a day, an hour, a minute and seconds";
const SIX: &[Kind] = &[Kind::Long, Kind::Long, Kind::Long, Kind::Long, Kind::Long, Kind::Double];
const OF_INTERVAL: Scalar = Scalar { takes: "an interval", kinds: &[Kind::Interval], gives: Gives::Interval, ..PLAIN };

/// Returns the integers of a row and then the seconds; `None` if an argument is NULL.
fn row(call: &Call, row: usize) -> Option<(Vec<i64>, f64)> {
    let (mut whole, mut seconds) = (Vec::with_capacity(call.columns.len()), 0.0);
    for column in call.columns {
        if column.is_null(row) {
            return None;
        }
        match column.as_primitive_opt::<Int64Type>() {
            Some(values) => whole.push(values.value(row)),
            None => seconds = column.as_primitive::<Float64Type>().value(row),
        }
    }
    Some((whole, seconds))
}

fn day(year: i64, month: i64, day: i64) -> Result<i64> {
    let refused = || Error::invalid(format!("date field value out of range: {year}-{month:02}-{day:02}"));
    // A year BC is negative, and there is no year 0.
    let own = if year < 0 { year + 1 } else { year };
    let month = u32::try_from(month).ok().filter(|month| (1..=12).contains(month) && year != 0).ok_or_else(refused)?;
    if own.abs() > 5_000_000 {
        return Err(refused().into());
    }
    let day =
        u32::try_from(day).ok().filter(|day| (1..=days_in_month(own, month)).contains(day)).ok_or_else(refused)?;
    Ok(days_from_civil(own, month, day))
}

/// Returns the nanoseconds since midnight.
fn clock(hour: i64, minute: i64, seconds: f64) -> Result<i64> {
    let is_valid = (0..=24).contains(&hour) && (0..60).contains(&minute) && (0.0..=60.0).contains(&seconds);
    let is_valid = is_valid && (hour < 24 || minute == 0 && seconds == 0.0);
    if !is_valid {
        return Err(Error::invalid(format!("time field value out of range: {hour}:{minute:02}:{seconds:02}")).into());
    }
    // A double has fifteen significant digits, so microseconds are exact.
    Ok((hour * 3_600 + minute * 60) * SECOND + (seconds * 1e6).round() as i64 * 1_000)
}

fn make_date(call: &Call) -> Result<ArrayRef> {
    let date = |at: usize| -> Result<Option<i32>> {
        let Some((parts, _)) = row(call, at) else { return Ok(None) };
        let days = day(parts[0], parts[1], parts[2])?;
        Ok(Some(i32::try_from(days).map_err(|_| Error::invalid("date out of range"))?))
    };
    Ok(Arc::new((0..call.rows).map(date).collect::<Result<Date32Array>>()?))
}

fn make_time(call: &Call) -> Result<ArrayRef> {
    let time = |at: usize| row(call, at).map(|(parts, seconds)| clock(parts[0], parts[1], seconds)).transpose();
    Ok(Arc::new((0..call.rows).map(time).collect::<Result<Time64NanosecondArray>>()?))
}

fn make_timestamp(call: &Call) -> Result<ArrayRef> {
    let timestamp = |at: usize| -> Result<Option<i64>> {
        let Some((parts, seconds)) = row(call, at) else { return Ok(None) };
        let days = day(parts[0], parts[1], parts[2])?;
        let micros = clock(parts[3], parts[4], seconds)? / 1_000;
        let whole = days.checked_mul(86_400_000_000).and_then(|whole| whole.checked_add(micros));
        Ok(Some(whole.ok_or_else(out_of_range)?))
    };
    times::of_ticks((0..call.rows).map(timestamp).collect::<Result<Int64Array>>()?, call.data_type)
}

fn out_of_range() -> Error {
    Error::invalid("timestamp out of range")
}

fn make_interval(call: &Call) -> Result<ArrayRef> {
    let refused = || Error::invalid("interval out of range");
    let made = |at: usize| -> Result<_> {
        let Some((parts, seconds)) = row(call, at) else { return Ok(None) };
        let part = |n: usize| i128::from(parts.get(n).copied().unwrap_or(0));
        if !seconds.is_finite() || seconds.abs() > 9e9 {
            return Err(refused().into());
        }
        let nanos = (part(4) * 3_600 + part(5) * 60) * i128::from(SECOND) + (seconds * 1e6).round() as i128 * 1_000;
        let of = Interval {
            months: i32::try_from(part(0) * 12 + part(1)).map_err(|_| refused())?,
            days: i32::try_from(part(2) * 7 + part(3)).map_err(|_| refused())?,
            nanos: i64::try_from(nanos).map_err(|_| refused())?,
        };
        Ok(Some(arrow_interval(of)))
    };
    Ok(Arc::new((0..call.rows).map(made).collect::<Result<IntervalMonthDayNanoArray>>()?))
}

fn justified(call: &Call, justify: fn(Interval) -> Option<Interval>) -> Result<ArrayRef> {
    let lengths = of_interval(&call.columns[0])?;
    let one = |value| match justify(interval(value)) {
        Some(length) => Ok(arrow_interval(length)),
        None => Err(Error::invalid("interval out of range")),
    };
    let all =
        lengths.iter().map(|value| Ok(value.map(one).transpose()?)).collect::<Result<IntervalMonthDayNanoArray>>()?;
    Ok(Arc::new(all))
}

fn age(call: &Call) -> Result<ArrayRef> {
    let micros = |column: &ArrayRef| -> Result<Int64Array> {
        let data_type = crate::door::arrow_type(tidalite_types::ColumnType::Timestamp(TimeUnit::Micros));
        times::ticks(&datafusion::arrow::compute::cast(column, &data_type)?)
    };
    let (later, earlier) = (micros(&call.columns[0])?, micros(&call.columns[1])?);
    let one = |(later, earlier): (Option<i64>, Option<i64>)| -> Result<_> {
        let (Some(later), Some(earlier)) = (later, earlier) else { return Ok(None) };
        let found = if later >= earlier { between(earlier, later) } else { between(later, earlier).map(negated) };
        Ok(Some(arrow_interval(found.ok_or_else(|| Error::invalid("interval out of range"))?)))
    };
    Ok(Arc::new(later.iter().zip(&earlier).map(one).collect::<Result<IntervalMonthDayNanoArray>>()?))
}

fn negated(of: Interval) -> Interval {
    Interval { months: -of.months, days: -of.days, nanos: -of.nanos }
}

/// Returns the difference of two times in microseconds since 1970.
///
/// Whole months come first, then whole days of the month of the earlier time, then the rest.
fn between(earlier: i64, later: i64) -> Option<Interval> {
    let (a, b) = (Civil::of(earlier, TimeUnit::Micros), Civil::of(later, TimeUnit::Micros));
    let of_day = |t: &Civil| t.second_of_day * SECOND + t.nanos;
    let mut months = (b.year - a.year) * 12 + i64::from(b.month) - i64::from(a.month);
    let mut days = i64::from(b.day) - i64::from(a.day);
    let mut nanos = of_day(&b) - of_day(&a);
    if nanos < 0 {
        (days, nanos) = (days - 1, nanos + 86_400 * SECOND);
    }
    if days < 0 {
        months -= 1;
        days += i64::from(days_in(a.year, a.month));
    }
    Some(Interval { months: i32::try_from(months).ok()?, days: i32::try_from(days).ok()?, nanos })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values are outputs of PostgreSQL 15.
    #[test]
    fn ages() {
        let at = |y, m, d| days_from_civil(y, m, d) * 86_400_000_000;
        let shown = |later, earlier| between(earlier, later).expect("in range").to_string();
        assert_eq!(shown(at(2001, 4, 10), at(1957, 6, 13)), "43 years 9 mons 27 days");
        assert_eq!(shown(at(2024, 3, 1), at(2024, 1, 31)), "1 mon 1 day");
        assert_eq!(shown(at(2024, 2, 29), at(2023, 2, 28)), "1 year 1 day");
        assert_eq!(shown(at(2024, 1, 2), at(2024, 1, 1) + 1), "23:59:59.999999");
    }
}
