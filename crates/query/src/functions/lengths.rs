//! Intervals times and divided by numbers: `interval '1 day' * 3`. Parts of a month become days, 30 to one, those of a
//! day time, as in PostgreSQL.

use super::array_casts::elements_of;
use super::scalar::{Call, Gives, Kind, PLAIN, Scalar};
use super::time_casts::{interval, of_interval};
use crate::Error;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, IntervalMonthDayNanoArray, ListArray, UInt64Array};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::{cast, take};
use datafusion::arrow::datatypes::{
    DataType, Float64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
};
use datafusion::common::Result;
use std::sync::Arc;
use tidalite_types::SqlState;

pub(crate) const TIMES: &str = "__interval_times";
pub(crate) const DIVIDED: &str = "__interval_divided";
/// An array of intervals in the order of their lengths.
pub(crate) const ORDERED: &str = "__ordered_intervals";
const DAY_S: f64 = 86_400.0;
const MICROS_PER_S: f64 = 1e6;
const NANOS_PER_MICRO: i64 = 1_000;

pub(super) const FUNCTIONS: &[Scalar] = &[
    Scalar { name: TIMES, call: |call| each(call, false), ..OF_LENGTH },
    Scalar { name: DIVIDED, call: |call| each(call, true), ..OF_LENGTH },
    Scalar {
        name: ORDERED,
        takes: "intervals, whether the order ascends and whether NULL is first",
        kinds: &[Kind::List, Kind::Any, Kind::Any],
        gives: Gives::Like(0),
        call: ordered,
        ..PLAIN
    },
];

const OF_LENGTH: Scalar =
    Scalar { takes: "an interval and a number", kinds: &[Kind::Any, Kind::Double], gives: Gives::Like(0), ..PLAIN };

fn ordered(call: &Call) -> Result<ArrayRef> {
    let lists = call.columns[0].as_list::<i32>();
    let [ascends, nulls_first] = [1, 2].map(|n| call.columns[n].as_boolean());
    let (counts, intervals) = elements_of(lists)?;
    let lengths = of_interval(&intervals)?;
    let key = |at: &u64| lengths.is_valid(*at as usize).then(|| interval(lengths.value(*at as usize)).total_nanos());
    let mut places: Vec<u64> = Vec::with_capacity(lengths.len());
    for (row, count) in counts.iter().enumerate() {
        let start = places.len() as u64;
        let mut own: Vec<u64> = (start..start + *count as u64).collect();
        own.sort_by(|a, b| match (key(a), key(b)) {
            (Some(a), Some(b)) if ascends.value(row) => a.cmp(&b),
            (Some(a), Some(b)) => b.cmp(&a),
            (a, b) if nulls_first.value(row) => a.is_some().cmp(&b.is_some()),
            (a, b) => b.is_some().cmp(&a.is_some()),
        });
        places.extend(own);
    }
    let values = take(&intervals, &UInt64Array::from(places), None)?;
    let DataType::List(item) = call.data_type else { return Err(Error::internal("an order of no list").into()) };
    let offsets = OffsetBuffer::from_lengths(counts);
    Ok(Arc::new(ListArray::try_new(item.clone(), offsets, values, lists.nulls().cloned())?))
}

fn each(call: &Call, is_quotient: bool) -> Result<ArrayRef> {
    let lengths = cast(&call.columns[0], &DataType::Interval(IntervalUnit::MonthDayNano))?;
    let lengths = lengths.as_primitive::<IntervalMonthDayNanoType>();
    let factors = call.columns[1].as_primitive::<Float64Type>();
    let product = |row: usize| -> Result<Option<IntervalMonthDayNano>> {
        if lengths.is_null(row) || factors.is_null(row) {
            return Ok(None);
        }
        if is_quotient && factors.value(row) == 0.0 {
            return Err(Error::invalid("division by zero").with_code(SqlState::DIVISION_BY_ZERO).into());
        }
        let found = scaled(lengths.value(row), factors.value(row), is_quotient);
        let out_of_range = || Error::invalid("interval out of range").with_code(SqlState::DATETIME_FIELD_OVERFLOW);
        Ok(Some(found.ok_or_else(out_of_range)?))
    };
    let all = (0..call.rows).map(product).collect::<Result<IntervalMonthDayNanoArray>>()?;
    Ok(cast(&(Arc::new(all) as ArrayRef), call.data_type)?)
}

/// Multiplies an interval, or divides it, as PostgreSQL.
///
/// Parts of a month and of a day go down, whole days that they make up go back to the days. The result is rounded to
/// microseconds, or to nanoseconds if the interval has nanoseconds; by a whole number a product is exact.
fn scaled(length: IntervalMonthDayNano, factor: f64, is_quotient: bool) -> Option<IntervalMonthDayNano> {
    let by = |value: f64| if is_quotient { value / factor } else { value * factor };
    let (of_months, of_days) = (by(f64::from(length.months)), by(f64::from(length.days)));
    let (months, whole_days) = (whole(of_months)?, whole(of_days)?);
    let month_days = to_micros((of_months - f64::from(months)) * 30.0);
    let rest = of_days - f64::from(whole_days) + month_days.fract();
    let mut seconds = to_micros(rest * DAY_S);
    let mut days = whole_days;
    if seconds.abs() >= DAY_S {
        days = days.checked_add((seconds / DAY_S) as i32)?;
        seconds %= DAY_S;
    }
    days = days.checked_add(month_days.trunc() as i32)?;
    let rest = (seconds * MICROS_PER_S).round_ties_even() as i64;
    let nanos = if !is_quotient && factor.fract() == 0.0 && factor.abs() < i64::MAX as f64 {
        length.nanoseconds.checked_mul(factor as i64)?.checked_add(rest.checked_mul(NANOS_PER_MICRO)?)?
    } else if length.nanoseconds % NANOS_PER_MICRO == 0 {
        let micros = by((length.nanoseconds / NANOS_PER_MICRO) as f64) + seconds * MICROS_PER_S;
        long(micros)?.checked_mul(NANOS_PER_MICRO)?
    } else {
        long(by(length.nanoseconds as f64))?.checked_add(rest.checked_mul(NANOS_PER_MICRO)?)?
    };
    Some(IntervalMonthDayNano::new(months, days, nanos))
}

/// Returns the whole part; `None` if it has more than 32 bits.
fn whole(value: f64) -> Option<i32> {
    const END: f64 = 2_147_483_648.0;
    (-END <= value && value < END).then_some(value.trunc() as i32)
}

/// Returns the nearest integer, halves to even; `None` if it has more than 64 bits.
fn long(value: f64) -> Option<i64> {
    (value.abs() < i64::MAX as f64).then_some(value.round_ties_even() as i64)
}

/// Rounds to six digits after the point, so that parts that make up a whole do so.
fn to_micros(value: f64) -> f64 {
    (value * MICROS_PER_S).round_ties_even() / MICROS_PER_S
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(months: i32, days: i32, nanos: i64) -> IntervalMonthDayNano {
        IntervalMonthDayNano::new(months, days, nanos)
    }

    #[test]
    fn parts_of_products() {
        assert_eq!(scaled(of(0, 1, 0), 3.0, false), Some(of(0, 3, 0)));
        assert_eq!(scaled(of(1, 1, 10), 1.5, false), Some(of(1, 16, 43_200_000_000_015)));
        assert_eq!(scaled(of(0, 0, 7), -2.0, false), Some(of(0, 0, -14)));
        let out_of_range = [scaled(of(1, 0, 0), 1e10, false), scaled(of(0, 0, i64::MAX), 2.0, false)];
        assert_eq!(out_of_range, [None, None]);
        assert_eq!(scaled(of(1, 0, 0), f64::NAN, false), None);
    }

    /// Expected values are outputs of PostgreSQL 15.
    #[test]
    fn parts_as_in_postgresql() {
        let second = 1_000_000_000;
        assert_eq!(scaled(of(0, 1, 0), 123_456.789, false), Some(of(0, 123_456, 68_169_600_000_000)));
        assert_eq!(scaled(of(0, 0, -1_000), 1.5, false), Some(of(0, 0, -2_000)));
        let length = of(14, 3, 14_706_789_000_000);
        assert_eq!(scaled(length, 3.0, true), Some(of(4, 21, 4_902_263_000_000)));
        assert_eq!(scaled(of(0, 0, 25 * 3_600 * second), 0.1, false), Some(of(0, 0, 9_000 * second)));
    }
}
