//! A length of time so many times: `interval '1 day' * 3`. Parts of a month become days, 30 to one, those of a day time,
//! as in PostgreSQL.

use super::scalar::{Call, Gives, Kind, PLAIN, Scalar};
use crate::Error;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, IntervalMonthDayNanoArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Float64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
};
use datafusion::common::Result;
use std::sync::Arc;

pub(crate) const TIMES: &str = "__interval_times";
const DAY_NS: f64 = 86_400e9;

pub(super) const FUNCTIONS: &[Scalar] = &[Scalar {
    name: TIMES,
    takes: "an interval and a number",
    kinds: &[Kind::Any, Kind::Double],
    gives: Gives::Like(0),
    call: times,
    ..PLAIN
}];

fn times(call: &Call) -> Result<ArrayRef> {
    let lengths = cast(&call.columns[0], &DataType::Interval(IntervalUnit::MonthDayNano))?;
    let lengths = lengths.as_primitive::<IntervalMonthDayNanoType>();
    let factors = call.columns[1].as_primitive::<Float64Type>();
    let product = |row: usize| -> Result<Option<IntervalMonthDayNano>> {
        if lengths.is_null(row) || factors.is_null(row) {
            return Ok(None);
        }
        let found = scaled(lengths.value(row), factors.value(row));
        Ok(Some(found.ok_or_else(|| Error::invalid("interval out of range"))?))
    };
    let all = (0..call.rows).map(product).collect::<Result<IntervalMonthDayNanoArray>>()?;
    Ok(cast(&(Arc::new(all) as ArrayRef), call.data_type)?)
}

fn scaled(length: IntervalMonthDayNano, factor: f64) -> Option<IntervalMonthDayNano> {
    let months = f64::from(length.months) * factor;
    let days = f64::from(length.days) * factor + months.fract() * 30.0;
    // What is left of rounding is no part of a day.
    let rest = (days.fract() * DAY_NS).round();
    let whole = |v: f64| (v.abs() <= f64::from(i32::MAX)).then_some(v.trunc() as i32);
    let nanos = match factor.fract() == 0.0 && factor.abs() < i64::MAX as f64 {
        true => length.nanoseconds.checked_mul(factor as i64)?,
        false => {
            let nanos = length.nanoseconds as f64 * factor;
            (nanos.abs() < i64::MAX as f64).then_some(nanos.round() as i64)?
        }
    };
    Some(IntervalMonthDayNano::new(whole(months)?, whole(days)?, nanos.checked_add(rest as i64)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_go_down() {
        let of = |m, d, ns| IntervalMonthDayNano::new(m, d, ns);
        assert_eq!(scaled(of(0, 1, 0), 3.0), Some(of(0, 3, 0)));
        assert_eq!(scaled(of(1, 1, 10), 1.5), Some(of(1, 16, 43_200_000_000_015)));
        assert_eq!(scaled(of(0, 0, 7), -2.0), Some(of(0, 0, -14)));
        assert_eq!([scaled(of(1, 0, 0), 1e10), scaled(of(0, 0, i64::MAX), 2.0)], [None, None]);
        assert_eq!(scaled(of(1, 0, 0), f64::NAN), None);
    }
}
