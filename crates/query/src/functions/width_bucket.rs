//! `width_bucket(x, low, high, count)` and `width_bucket(x, thresholds)` of PostgreSQL.
//!
//! Bounds that are integers or decimals are exact, and doubles use PostgreSQL's arithmetic of doubles. Thresholds other
//! than integers are compared as doubles.

use super::scalar::{Call, Gives, Kind, PLAIN, Scalar, is_null};
use crate::Error;
use crate::decimal::Decimal;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int32Array, make_comparator};
use datafusion::arrow::compute::{SortOptions, cast};
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type, i256};
use datafusion::common::{Result, ScalarValue};
use std::sync::Arc;

const NAME: &str = "width_bucket";
const TAKES: &str = "a number, two bounds and a number of buckets, or a value and an array of thresholds";

pub(super) const FUNCTIONS: &[Scalar] = &[Scalar {
    name: NAME,
    takes: TAKES,
    kinds: &[Kind::Any, Kind::Any, Kind::Any, Kind::Any],
    least: 2,
    gives: Gives::Int,
    call: |call| match call.columns {
        [value, thresholds] => among(value, thresholds),
        [value, low, high, count] => between(call, [value, low, high], count),
        _ => Err(refused().into()),
    },
    ..PLAIN
}];

fn refused() -> Error {
    Error::invalid(format!("{NAME} takes {TAKES}")).about(NAME)
}

fn wrong(what: &str) -> Error {
    Error::invalid(what).about(NAME)
}

fn out_of_range() -> Error {
    wrong("integer out of range")
}

fn between(call: &Call, numbers: [&ArrayRef; 3], count: &ArrayRef) -> Result<ArrayRef> {
    let is_number = |column: &&ArrayRef| column.data_type().is_numeric() || column.data_type().is_null();
    let is_count = count.data_type().is_integer() || count.data_type().is_null();
    if !numbers.iter().all(is_number) || !is_count {
        return Err(refused().into());
    }
    let counts = cast(count, &DataType::Int64)?;
    let counts = counts.as_primitive::<Int64Type>();
    let is_exact = numbers.iter().all(|column| !column.data_type().is_floating());
    let doubles = numbers.map(|column| cast(column, &DataType::Float64));
    let [value, low, high] = doubles;
    let doubles = [value?, low?, high?];
    let doubles = doubles.each_ref().map(|column| column.as_primitive::<Float64Type>());
    let bucket = |row: usize| -> Result<Option<i32>> {
        if counts.is_null(row) || numbers.iter().any(|column| is_null(column, row)) {
            return Ok(None);
        }
        let count = counts.value(row);
        if count <= 0 {
            return Err(wrong("count must be greater than zero").into());
        }
        let count = i32::try_from(count).map_err(|_| out_of_range())?;
        if is_exact {
            let scalars = numbers.map(|column| ScalarValue::try_from_array(column, row));
            let [value, low, high] = scalars;
            let number = |scalar: ScalarValue| Decimal::from_scalar(&scalar).ok_or_else(out_of_range);
            return Ok(Some(exact(number(value?)?, number(low?)?, number(high?)?, count)?));
        }
        Ok(Some(approximate(doubles.map(|column| column.value(row)), count)?))
    };
    Ok(Arc::new((0..call.rows).map(bucket).collect::<Result<Int32Array>>()?))
}

/// Returns the bucket of numbers with an exact quotient.
fn exact(value: Decimal, low: Decimal, high: Decimal, count: i32) -> crate::Result<i32> {
    let scale = [value, low, high].iter().map(|number| number.scale).max().unwrap_or(0).max(0);
    let digits = |number: Decimal| number.rescaled(scale).map(|own| own.floor).ok_or_else(out_of_range);
    let (mut value, mut low, mut high) = (digits(value)?, digits(low)?, digits(high)?);
    if low == high {
        return Err(wrong("lower bound cannot equal upper bound"));
    }
    if low > high {
        // Buckets count down from the lower bound.
        (value, low, high) = (value.wrapping_neg(), low.wrapping_neg(), high.wrapping_neg());
    }
    if value < low {
        return Ok(0);
    }
    if value >= high {
        return count.checked_add(1).ok_or_else(out_of_range);
    }
    let product = value.wrapping_sub(low).checked_mul(i256::from_i128(i128::from(count))).ok_or_else(out_of_range)?;
    let quotient = product.checked_div(high.wrapping_sub(low)).and_then(|quotient| quotient.to_i128());
    let bucket = quotient.and_then(|quotient| i32::try_from(quotient + 1).ok());
    bucket.ok_or_else(out_of_range)
}

fn approximate(numbers: [f64; 3], count: i32) -> crate::Result<i32> {
    let [value, low, high] = numbers;
    if numbers.iter().any(|number| number.is_nan()) {
        return Err(wrong("operand, lower bound, and upper bound cannot be NaN"));
    }
    if low.is_infinite() || high.is_infinite() {
        return Err(wrong("lower and upper bounds must be finite"));
    }
    if low == high {
        return Err(wrong("lower bound cannot equal upper bound"));
    }
    let (is_below, is_above) = if low < high { (value < low, value >= high) } else { (value > low, value <= high) };
    if is_below {
        return Ok(0);
    }
    if is_above {
        return count.checked_add(1).ok_or_else(out_of_range);
    }
    // Halves keep the difference of large bounds finite.
    let part = match (high - low).is_infinite() {
        true => (value / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0),
        false => (value - low) / (high - low),
    };
    // Rounding may give the whole range for a value below its end.
    Ok((f64::from(count) * part).min(f64::from(count) - 1.0) as i32 + 1)
}

/// Returns the number of thresholds that are not greater than the value.
fn among(value: &ArrayRef, thresholds: &ArrayRef) -> Result<ArrayRef> {
    let Some(lists) = thresholds.as_list_opt::<i32>() else {
        return match thresholds.data_type().is_null() {
            true => Ok(Arc::new(Int32Array::new_null(value.len()))),
            false => Err(refused().into()),
        };
    };
    let item = lists.values().data_type().clone();
    let is_number = |of: &DataType| of.is_numeric() || of.is_null();
    let common = match (is_number(value.data_type()), is_number(&item)) {
        (true, true) if value.data_type().is_integer() && item.is_integer() => DataType::Int64,
        (true, true) => DataType::Float64,
        (false, false) => item.clone(),
        _ => return Err(refused().into()),
    };
    let values = cast(value, &common)?;
    let bucket = |row: usize| -> Result<Option<i32>> {
        if is_null(value, row) || lists.is_null(row) {
            return Ok(None);
        }
        let list = cast(&lists.value(row), &common)?;
        if list.null_count() > 0 {
            return Err(wrong("thresholds array must not contain NULLs").into());
        }
        let compare = make_comparator(list.as_ref(), values.as_ref(), SortOptions::default())?;
        // A binary search, as PostgreSQL's: the array is sorted.
        let (mut from, mut to) = (0, list.len());
        while from < to {
            let middle = from.midpoint(to);
            if compare(middle, row).is_gt() { to = middle } else { from = middle + 1 }
        }
        Ok(Some(i32::try_from(from).unwrap_or(i32::MAX)))
    };
    Ok(Arc::new((0..value.len()).map(bucket).collect::<Result<Int32Array>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values are outputs of PostgreSQL 15.
    #[test]
    fn buckets_of_equal_width() {
        let number = |text: &str| Decimal::parse(text).expect("a number");
        let found = |value, low, high, count| exact(number(value), number(low), number(high), count).expect("in range");
        assert_eq!(found("5.35", "0.024", "10.06", 5), 3);
        assert_eq!(found("0.024", "0.024", "10.06", 5), 1);
        assert_eq!([found("-1", "0", "10", 4), found("10", "0", "10", 4)], [0, 5]);
        // Bounds in descending order.
        assert_eq!([found("10", "10", "0", 4), found("0", "10", "0", 4), found("7.5", "10", "0", 4)], [1, 5, 2]);
        for ([value, low, high], count, expected) in [
            ([5.35, 0.024, 10.06], 5, 3),
            ([f64::INFINITY, 0.0, 1.0], 5, 6),
            ([f64::NEG_INFINITY, 0.0, 1.0], 5, 0),
            ([0.0, -1e308, 1e308], 10, 6),
        ] {
            assert_eq!(approximate([value, low, high], count).expect("in range"), expected, "{value}");
        }
        assert!(approximate([f64::NAN, 0.0, 1.0], 5).is_err() && approximate([1.0, 2.0, 2.0], 5).is_err());
        assert!(approximate([2.0, 0.0, 1.0], i32::MAX).is_err());
    }
}
