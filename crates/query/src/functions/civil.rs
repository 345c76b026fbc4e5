//! Parts of a timestamp and lengths between two: `year(ts)`, `days_in_month(ts)`, `datediff('d', a, b)`, … All by UTC.

use super::scalar::{Call, Gives, Kind, PLAIN, Scalar};
use super::times;
use crate::Error;
use crate::calendar::civil::centuries;
use crate::calendar::{Civil, Stride, Unit, week_of};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int32Array, Int64Array};
use datafusion::common::Result;
use std::sync::Arc;
use tidalite_types::TimeUnit;
use tidalite_types::time::days_from_civil;

macro_rules! part {
    ($name:literal, $part:expr) => {
        Scalar {
            name: $name,
            takes: "a timestamp",
            kinds: &[Kind::Time],
            gives: Gives::Int,
            call: |call| parts(call, $part),
            ..PLAIN
        }
    };
}

pub(super) const FUNCTIONS: &[Scalar] = &[
    part!("year", |t| t.year),
    part!("month", |t| i64::from(t.month)),
    part!("day", |t| i64::from(t.day)),
    part!("hour", |t| t.second_of_day / 3_600),
    part!("minute", |t| t.second_of_day / 60 % 60),
    part!("second", |t| t.second_of_day % 60),
    part!("millis", |t| t.nanos / 1_000_000),
    part!("micros", |t| t.nanos / 1_000 % 1_000),
    part!("nanos", |t| t.nanos % 1_000),
    part!("quarter", |t| i64::from(t.month - 1) / 3 + 1),
    part!("decade", |t| t.year.div_euclid(10)),
    part!("century", |t| centuries(t.year, 100)),
    part!("millennium", |t| centuries(t.year, 1_000)),
    part!("day_of_week", |t| (t.days + 3).rem_euclid(7) + 1),
    part!("day_of_week_sunday_first", |t| (t.days + 4).rem_euclid(7) + 1),
    part!("day_of_year", |t| t.days - days_from_civil(t.year, 1, 1) + 1),
    part!("week_of_year", |t| week_of(t).1),
    part!("days_in_month", |t| days_in(t.year, t.month)),
    Scalar {
        name: "is_leap_year",
        takes: "a timestamp",
        kinds: &[Kind::Time],
        gives: Gives::Boolean,
        call: is_leap_year,
        ..PLAIN
    },
    // NULL gives false, as in QuestDB.
    Scalar {
        name: "is_end_of_month",
        takes: "a timestamp",
        kinds: &[Kind::Time],
        gives: Gives::Boolean,
        call: is_end_of_month,
        ..PLAIN
    },
    Scalar {
        name: "datediff",
        takes: "a unit and two timestamps",
        kinds: &[Kind::Text, Kind::Time, Kind::Time],
        gives: Gives::Long,
        call: datediff,
        ..PLAIN
    },
];

fn parts(call: &Call, part: fn(&Civil) -> i64) -> Result<ArrayRef> {
    let unit = times::unit(call.columns[0].data_type())?;
    let values = times::ticks(&call.columns[0])?;
    let parts = values.iter().map(|ts| ts.map(|ts| part(&Civil::of(ts, unit)) as i32));
    Ok(Arc::new(parts.collect::<Int32Array>()))
}

fn is_leap_year(call: &Call) -> Result<ArrayRef> {
    let unit = times::unit(call.columns[0].data_type())?;
    let values = times::ticks(&call.columns[0])?;
    let is_leap = values.iter().map(|ts| ts.map(|ts| days_in(Civil::of(ts, unit).year, 2) == 29));
    Ok(Arc::new(is_leap.collect::<BooleanArray>()))
}

fn is_end_of_month(call: &Call) -> Result<ArrayRef> {
    let unit = times::unit(call.columns[0].data_type())?;
    let values = times::ticks(&call.columns[0])?;
    let is_last = |ts: i64| {
        let time = Civil::of(ts, unit);
        i64::from(time.day) == days_in(time.year, time.month)
    };
    Ok(Arc::new(values.iter().map(|ts| Some(ts.is_some_and(is_last))).collect::<BooleanArray>()))
}

fn days_in(year: i64, month: u32) -> i64 {
    i64::from(crate::calendar::stride::days_in(year, month))
}

/// Whole units from one timestamp to the other, whichever is earlier.
fn datediff(call: &Call) -> Result<ArrayRef> {
    let letters = call.columns[0].as_string_view();
    let (first, second) = (nanos(&call.columns[1])?, nanos(&call.columns[2])?);
    let mut out = Vec::with_capacity(call.rows);
    for row in 0..call.rows {
        let (Some(a), Some(b)) = (first[row], second[row]) else {
            out.push(None);
            continue;
        };
        if letters.is_null(row) {
            out.push(None);
            continue;
        }
        let unit = times::unit_named(letters.value(row))?;
        out.push(Some(units_between(a.min(b), a.max(b), unit)?));
    }
    Ok(Arc::new(Int64Array::from(out)))
}

/// Timestamps of two units compare in nanoseconds.
fn nanos(column: &ArrayRef) -> Result<Vec<Option<i128>>> {
    let per_tick = i128::from(1_000_000_000 / times::unit(column.data_type())?.per_second());
    Ok(times::ticks(column)?.iter().map(|ts| ts.map(|ts| i128::from(ts) * per_tick)).collect())
}

fn units_between(from: i128, to: i128, unit: Unit) -> Result<i64> {
    let refused = || Error::invalid("timestamp out of range");
    if let Some(length) = unit.nanos() {
        return Ok(i64::try_from((to - from) / length).map_err(|_| refused())?);
    }
    // Months by the calendar, then one less when the last of them is not over.
    let micros = |ts: i128| i64::try_from(ts.div_euclid(1_000)).map_err(|_| refused());
    let (start, end) = (micros(from)?, micros(to)?);
    let (a, b) = (Civil::of(start, TimeUnit::Micros), Civil::of(end, TimeUnit::Micros));
    let mut months = (b.year - a.year) * 12 + i64::from(b.month) - i64::from(a.month);
    let month = Stride { count: 1, unit: Unit::Months };
    let is_whole = |months: i64| {
        let moved = month.add_to(start, months, TimeUnit::Micros);
        moved.is_some_and(|ts| (ts, from.rem_euclid(1_000)) <= (end, to.rem_euclid(1_000)))
    };
    if months > 0 && !is_whole(months) {
        months -= 1;
    }
    Ok(if unit == Unit::Years { months / 12 } else { months })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_count_when_they_are_over() {
        let at = |y, m, d| i128::from(days_from_civil(y, m, d)) * 86_400_000_000_000;
        let months = |a, b| units_between(a, b, Unit::Months).expect("in range");
        assert_eq!(months(at(2024, 1, 15), at(2024, 2, 14)), 0);
        assert_eq!(months(at(2024, 1, 15), at(2024, 2, 15)), 1);
        assert_eq!(months(at(2024, 1, 31), at(2024, 2, 29)), 1);
        assert_eq!(units_between(at(2020, 2, 29), at(2024, 2, 28), Unit::Years).expect("in range"), 3);
    }
}
