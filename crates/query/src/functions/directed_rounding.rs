//! `round_up`, `round_down`, `round_half_even` of QuestDB: away from zero, toward zero, halves to the even digit.
//!
//! A double is rounded as the shortest decimal number that reads back as it: `round_half_even(5.55, 1)` is 5.6,
//! although the double 5.55 is a little less than 5.55.

use super::decimal_arithmetic::{decimal_array, wide_values};
use super::rounding::{Mode, at_places};
use super::scalar::{Call, Kind, PLAIN, Scalar};
use crate::Error;
use crate::decimal::{self, Decimal, arrow_decimal, decimal_type};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type, i256};
use datafusion::common::{Result, ScalarValue};
use std::sync::Arc;

/// Places outside of this range round nothing, or to zero.
const PLACES_MAX: i64 = 400;

const fn rounding(name: &'static str, call: fn(&Call) -> Result<ArrayRef>) -> Scalar {
    Scalar {
        name,
        takes: "a number and the number of places after the point",
        kinds: &[Kind::DoubleOrDecimal, Kind::Long],
        returns: Some(returns),
        call,
        ..PLAIN
    }
}

pub(super) const FUNCTIONS: &[Scalar] = &[
    rounding("round_up", |call| rounded(call, Mode::AwayFromZero)),
    rounding("round_down", |call| rounded(call, Mode::TowardZero)),
    rounding("round_half_even", |call| rounded(call, Mode::HalfEven)),
];

/// A decimal stays a decimal, with one digit more and the places that the constant names.
fn returns(types: &[DataType], constants: &[Option<&ScalarValue>]) -> Result<DataType> {
    let Some((precision, scale)) = types.first().and_then(decimal_type) else { return Ok(DataType::Float64) };
    let places = match constants.get(1).copied().flatten().map(|value| value.cast_to(&DataType::Int64)) {
        Some(Ok(ScalarValue::Int64(Some(places)))) => places.clamp(0, scale.into()) as i32,
        _ => i32::from(scale),
    };
    Ok(arrow_decimal(i32::from(precision) - i32::from(scale) + 1 + places, places))
}

fn rounded(call: &Call, mode: Mode) -> Result<ArrayRef> {
    let places = call.columns[1].as_primitive::<Int64Type>();
    if let Some((_, from)) = decimal_type(call.columns[0].data_type()) {
        return decimals(&call.columns[0], from.into(), places.iter().collect(), call.data_type, mode);
    }
    let values = call.columns[0].as_primitive::<Float64Type>();
    let value = |(value, places): (Option<f64>, Option<i64>)| match value.zip(places) {
        Some((value, places)) => double(value, places, mode).map(Some).ok_or_else(|| {
            Error::invalid(format!("value out of range: {} of {value} to {places} places", call.name)).about(call.name)
        }),
        None => Ok(None),
    };
    Ok(Arc::new(values.iter().zip(places).map(value).collect::<crate::Result<Float64Array>>()?))
}

/// Rounds a double; `None` if the result is too large.
fn double(value: f64, places: i64, mode: Mode) -> Option<f64> {
    if !value.is_finite() || value == 0.0 {
        return Some(value);
    }
    // Digits and exponent of the shortest text: value = digits × 10^exponent.
    let text = format!("{:e}", value.abs());
    let (mantissa, exponent) = text.split_once('e')?;
    let fraction = mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let digits: u64 = mantissa.replace('.', "").parse().ok()?;
    let exponent = exponent.parse::<i64>().ok()? - fraction as i64;
    let places = places.clamp(-PLACES_MAX, PLACES_MAX);
    let dropped = -places - exponent;
    if dropped <= 0 {
        return Some(value);
    }
    // Digits are fewer than 10^17.
    let unit = 10_u64.checked_pow(u32::try_from(dropped).ok()?.min(19)).unwrap_or(u64::MAX);
    let (quotient, rest) = (digits / unit, digits % unit);
    let is_up = match mode {
        Mode::AwayFromZero => rest > 0,
        Mode::HalfEven => rest > unit - rest || rest == unit - rest && quotient % 2 == 1,
        _ => false,
    };
    let found: f64 = format!("{}e{}", quotient + u64::from(is_up), -places).parse().ok()?;
    // Adding zero makes −0 the plain zero.
    found.is_finite().then(|| found.copysign(value) + 0.0)
}

fn decimals(values: &ArrayRef, from: i32, places: Vec<Option<i64>>, to: &DataType, mode: Mode) -> Result<ArrayRef> {
    let Some((precision, scale)) = decimal_type(to) else {
        return Err(Error::internal(format!("{to} is no decimal")).into());
    };
    let digits = wide_values(values);
    let known = NullBuffer::from(places.iter().map(Option::is_some).collect::<Vec<bool>>());
    let nulls = NullBuffer::union(values.nulls(), Some(&known));
    let value = |row: usize| {
        let Some(places) = places[row].filter(|_| values.is_valid(row)) else { return Ok(i256::ZERO) };
        let number = Decimal { digits: digits(row), scale: from };
        let places = places.clamp(-100, from.into()) as i32;
        let found = at_places(mode, number, places).and_then(|own| Some(own.rescaled(scale.into())?.floor));
        let found = found.filter(|digits| decimal::fits(*digits, precision));
        found.ok_or_else(|| decimal::overflow(&number.text(), precision, scale))
    };
    let out = (0..values.len()).map(value).collect::<crate::Result<Vec<i256>>>()?;
    decimal_array(out, nulls, to)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of the tables in QuestDB's documentation of these functions.
    #[test]
    fn doubles_are_rounded_by_their_decimal_digits() {
        let rows = [
            (-0.811905406, [-100.0, -10.0, -1.0, -0.9, -0.82], [0.0, 0.0, 0.0, -0.8, -0.81]),
            (-926.531695, [-1000.0, -930.0, -927.0, -926.6, -926.54], [-900.0, -920.0, -926.0, -926.5, -926.53]),
            (86.91359825, [100.0, 90.0, 87.0, 87.0, 86.92], [0.0, 80.0, 86.0, 86.9, 86.91]),
            (4.003627053, [100.0, 10.0, 5.0, 4.1, 4.01], [0.0, 0.0, 4.0, 4.0, 4.0]),
        ];
        for (value, up, down) in rows {
            for (n, places) in (-2..=2).enumerate() {
                assert_eq!(double(value, places, Mode::AwayFromZero), Some(up[n]), "{value} {places}");
                assert_eq!(double(value, places, Mode::TowardZero), Some(down[n]), "{value} {places}");
            }
        }
        assert_eq!(double(5.55, 1, Mode::HalfEven), Some(5.6));
        assert_eq!(double(5.65, 1, Mode::HalfEven), Some(5.6));
        assert_eq!(double(-64.75487334, 1, Mode::HalfEven), Some(-64.8));
    }

    #[test]
    fn edges() {
        for mode in [Mode::AwayFromZero, Mode::TowardZero, Mode::HalfEven] {
            assert_eq!(double(0.07, 2, mode), Some(0.07));
            assert_eq!(double(f64::INFINITY, 1, mode), Some(f64::INFINITY));
            assert_eq!(double(f64::MAX, i64::MAX, mode), Some(f64::MAX));
            assert_eq!(double(5e-324, 400, mode), Some(5e-324));
        }
        assert_eq!(double(f64::MAX, i64::MIN, Mode::TowardZero), Some(0.0));
        assert_eq!(double(1.0, i64::MIN, Mode::AwayFromZero), None);
        assert_eq!(double(5e-324, 0, Mode::AwayFromZero), Some(1.0));
        assert_eq!(double(9.5, 0, Mode::HalfEven), Some(10.0));
        assert_eq!(double(0.5, 0, Mode::HalfEven), Some(0.0));
    }
}
