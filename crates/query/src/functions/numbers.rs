//! Numbers as in PostgreSQL: `div`, `sign`, `scale`, `min_scale`, `trim_scale`, `asinh` and `acosh` of large numbers,
//! trigonometry in degrees, and `num_nulls`, `num_nonnulls`, `isfinite`.

use super::decimal_arithmetic::{decimal_array, wide_values};
use super::scalar::{self, Call, Gives, Kind, PLAIN, Scalar};
use crate::Error;
use crate::decimal::{Decimal, arrow_decimal, as_decimal_type, decimal_type};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int32Array};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type, i256};
use datafusion::common::{Result, ScalarValue};
use std::sync::Arc;

const fn of_double(name: &'static str, call: fn(&Call) -> Result<ArrayRef>) -> Scalar {
    Scalar { name, takes: "a number", kinds: &[Kind::Double], call, ..PLAIN }
}

const fn of_decimal(name: &'static str, gives: Gives, call: fn(&Call) -> Result<ArrayRef>) -> Scalar {
    Scalar { name, takes: "a number", kinds: &[Kind::Any], gives, call, ..PLAIN }
}

pub(super) const FUNCTIONS: &[Scalar] = &[
    Scalar {
        name: "div",
        takes: "two numbers",
        kinds: &[Kind::Any, Kind::Any],
        returns: Some(div_type),
        call: div,
        ..PLAIN
    },
    Scalar { returns: Some(|types, _| number_type("sign", types)), ..of_decimal("sign", Gives::Double, sign) },
    of_decimal("scale", Gives::Int, |call| counts(call, |number| number.scale)),
    of_decimal("min_scale", Gives::Int, |call| counts(call, |number| trimmed(number).scale)),
    Scalar { returns: Some(trimmed_type), ..of_decimal("trim_scale", Gives::Double, trim_scale) },
    of_double("asinh", |call| each(call, |x| Ok(asinh(x)))),
    of_double("acosh", |call| each(call, |x| Ok(acosh(x)))),
    of_double("sind", |call| each(call, sind)),
    of_double("cosd", |call| each(call, cosd)),
    of_double("tand", |call| each(call, |x| Ok(sind(x)? / cosd(x)?))),
    of_double("cotd", |call| each(call, |x| Ok(cosd(x)? / sind(x)?))),
    of_double("asind", |call| each(call, |x| limited("asind", x, asind))),
    of_double("acosd", |call| each(call, |x| limited("acosd", x, acosd))),
    of_double("atand", |call| each(call, |x| Ok(x.atan() / 1_f64.atan() * 45.0))),
    Scalar {
        name: "atan2d",
        takes: "two numbers",
        kinds: &[Kind::Double, Kind::Double],
        call: |call| {
            let [y, x] = [0, 1].map(|n| call.columns[n].as_primitive::<Float64Type>());
            let value = |(y, x): (Option<f64>, Option<f64>)| Some(y?.atan2(x?) / 1_f64.atan() * 45.0);
            Ok(Arc::new(y.iter().zip(x).map(value).collect::<Float64Array>()))
        },
        ..PLAIN
    },
    Scalar {
        name: "num_nulls",
        takes: "values",
        kinds: &[Kind::Any],
        is_variadic: true,
        gives: Gives::Int,
        call: |call| Ok(nulls(call, true)),
        ..PLAIN
    },
    Scalar {
        name: "num_nonnulls",
        takes: "values",
        kinds: &[Kind::Any],
        is_variadic: true,
        gives: Gives::Int,
        call: |call| Ok(nulls(call, false)),
        ..PLAIN
    },
    // There are no infinite times.
    Scalar {
        name: "isfinite",
        takes: "a timestamp, a date or an interval",
        kinds: &[Kind::Any],
        gives: Gives::Boolean,
        call: |call| match call.columns[0].data_type() {
            DataType::Timestamp(..)
            | DataType::Date32
            | DataType::Interval(_)
            | DataType::Duration(_)
            | DataType::Null => {
                let of = &call.columns[0];
                Ok(Arc::new(
                    (0..call.rows).map(|row| (!scalar::is_null(of, row)).then_some(true)).collect::<BooleanArray>(),
                ))
            }
            _ => Err(Error::invalid("isfinite takes a timestamp, a date or an interval").about("isfinite").into()),
        },
        ..PLAIN
    },
];

fn nulls(call: &Call, is_null: bool) -> ArrayRef {
    let count =
        |row: usize| call.columns.iter().filter(|column| scalar::is_null(column, row) == is_null).count() as i32;
    Arc::new(Int32Array::from_iter_values((0..call.rows).map(count)))
}

fn refused(name: &str, takes: &str) -> datafusion::common::DataFusionError {
    Error::invalid(format!("{name} takes {takes}")).about(name).into()
}

/// Returns the result type of numbers: DOUBLE, or a decimal.
fn number_type(name: &str, types: &[DataType]) -> Result<DataType> {
    match types {
        [of] if of.is_decimal() => Ok(of.clone()),
        [of] if of.is_numeric() || of.is_null() => Ok(DataType::Float64),
        _ => Err(refused(name, "a number")),
    }
}

/// Integers and decimals have a quotient without places, doubles one of doubles.
fn div_type(types: &[DataType], _: &[Option<&ScalarValue>]) -> Result<DataType> {
    let [a, b] = types else { return Err(refused("div", "two numbers")) };
    let is_number = |t: &DataType| t.is_numeric() || t.is_null();
    if !is_number(a) || !is_number(b) {
        return Err(refused("div", "two numbers"));
    }
    match (as_decimal_type(a), as_decimal_type(b)) {
        (Some(_), Some(_)) if a.is_integer() && b.is_integer() => Ok(arrow_decimal(20, 0)),
        (Some((precision, scale)), Some((_, below))) => {
            Ok(arrow_decimal(i32::from(precision) - i32::from(scale) + i32::from(below) + 1, 0))
        }
        _ => Ok(DataType::Float64),
    }
}

fn by_zero() -> Error {
    Error::invalid("division by zero").with_code(tidalite_types::SqlState::DIVISION_BY_ZERO)
}

fn div(call: &Call) -> Result<ArrayRef> {
    let Some((precision, _)) = decimal_type(call.data_type) else {
        let [a, b] = [0, 1].map(|n| cast(&call.columns[n], &DataType::Float64));
        let (a, b) = (a?, b?);
        let quotient = |(a, b): (Option<f64>, Option<f64>)| match a.zip(b) {
            Some((_, 0.0)) => Err(by_zero()),
            Some((a, b)) => Ok(Some((a / b).trunc())),
            None => Ok(None),
        };
        let pairs = a.as_primitive::<Float64Type>().iter().zip(b.as_primitive::<Float64Type>());
        return Ok(Arc::new(pairs.map(quotient).collect::<crate::Result<Float64Array>>()?));
    };
    let too_large = || Error::invalid("value out of range: div").about("div");
    let quotient = |row: usize| {
        let (Some(a), Some(b)) = (number(&call.columns[0], row)?, number(&call.columns[1], row)?) else {
            return Ok(i256::ZERO);
        };
        let scale = a.scale.max(b.scale).max(0);
        let digits = |of: Decimal| Ok::<_, Error>(of.rescaled(scale).ok_or_else(too_large)?.floor);
        if b.digits == i256::ZERO {
            return Err(by_zero());
        }
        let found = digits(a)?.checked_div(digits(b)?);
        found.filter(|found| crate::decimal::fits(*found, precision)).ok_or_else(too_large)
    };
    let values = (0..call.rows).map(quotient).collect::<crate::Result<Vec<_>>>()?;
    decimal_array(values, valid(call), call.data_type)
}

/// Returns which rows have all arguments.
fn valid(call: &Call) -> Option<NullBuffer> {
    let is_valid = |row: usize| !call.columns.iter().any(|column| scalar::is_null(column, row));
    Some(NullBuffer::from((0..call.rows).map(is_valid).collect::<Vec<bool>>()))
}

/// Returns the exact number of a row; `None` for NULL.
fn number(column: &ArrayRef, row: usize) -> crate::Result<Option<Decimal>> {
    if scalar::is_null(column, row) {
        return Ok(None);
    }
    let value = ScalarValue::try_from_array(column, row)?;
    Decimal::from_scalar(&value).map(Some).ok_or_else(|| Error::invalid("a number is expected"))
}

fn sign(call: &Call) -> Result<ArrayRef> {
    if let Some((_, scale)) = decimal_type(call.data_type) {
        let digits = wide_values(&call.columns[0]);
        let one = crate::decimal::power(u32::from(scale.unsigned_abs())).unwrap_or(i256::ONE);
        let signs = (0..call.rows).map(|row| match digits(row) {
            own if own == i256::ZERO => i256::ZERO,
            own if own.is_negative() => one.wrapping_neg(),
            _ => one,
        });
        return decimal_array(signs.collect(), call.columns[0].nulls().cloned(), call.data_type);
    }
    let values = cast(&call.columns[0], &DataType::Float64)?;
    // As in PostgreSQL, NaN has no sign.
    let sign = |value: f64| if value.is_nan() || value == 0.0 { 0.0 } else { value.signum() };
    Ok(Arc::new(values.as_primitive::<Float64Type>().unary::<_, Float64Type>(sign)))
}

fn counts(call: &Call, count: fn(Decimal) -> i32) -> Result<ArrayRef> {
    let column = &call.columns[0];
    if !column.data_type().is_numeric() && !column.data_type().is_null() {
        return Err(refused(call.name, "a number"));
    }
    // NaN and the infinities have no digits.
    let counted = |row: usize| {
        let value = ScalarValue::try_from_array(column, row)?;
        Ok(Decimal::from_scalar(&value).map(|number| count(number).max(0)))
    };
    Ok(Arc::new((0..call.rows).map(counted).collect::<Result<Int32Array>>()?))
}

/// Returns a number without zeros at the end of its fraction.
fn trimmed(mut number: Decimal) -> Decimal {
    let ten = i256::from_i128(10);
    while number.scale > 0 && number.digits.checked_rem(ten) == Some(i256::ZERO) {
        number = Decimal { digits: number.digits.wrapping_div(ten), scale: number.scale - 1 };
    }
    number
}

/// A constant loses its zeros; a column has one scale for all its values.
fn trimmed_type(types: &[DataType], constants: &[Option<&ScalarValue>]) -> Result<DataType> {
    let own = match types {
        [of] if of.is_integer() => arrow_decimal(20, 0),
        types => number_type("trim_scale", types)?,
    };
    let number = constants.first().copied().flatten().and_then(Decimal::from_scalar);
    Ok(match (decimal_type(&own), number) {
        (Some((precision, scale)), Some(number)) => {
            let places = trimmed(number).scale;
            arrow_decimal(i32::from(precision) - i32::from(scale) + places, places)
        }
        _ => own,
    })
}

fn trim_scale(call: &Call) -> Result<ArrayRef> {
    Ok(cast(&call.columns[0], call.data_type)?)
}

fn each(call: &Call, of: fn(f64) -> Result<f64>) -> Result<ArrayRef> {
    let values = call.columns[0].as_primitive::<Float64Type>().iter();
    Ok(Arc::new(values.map(|value| value.map(of).transpose()).collect::<Result<Float64Array>>()?))
}

/// For x above this number, `asinh(x)` and `acosh(x)` equal the logarithm of 2x in all digits.
const LARGE: f64 = 1e150;

/// The functions of the standard library add a number of the size of `x` to `x`, which overflows above half of the
/// largest DOUBLE (FP-5).
fn asinh(x: f64) -> f64 {
    if x.is_finite() && x.abs() > LARGE { (x.abs().ln() + std::f64::consts::LN_2).copysign(x) } else { x.asinh() }
}

fn acosh(x: f64) -> f64 {
    if x.is_finite() && x > LARGE { x.ln() + std::f64::consts::LN_2 } else { x.acosh() }
}

fn limited(name: &str, x: f64, of: fn(f64) -> f64) -> Result<f64> {
    match x.abs() > 1.0 {
        true => Err(Error::invalid(format!("input is out of range: {name} of {x}")).about(name).into()),
        false => Ok(of(x)),
    }
}

/// Returns the sine of 0 to 30 degrees, scaled so that 30 degrees give 1/2, as PostgreSQL.
fn sin_0_30(x: f64) -> f64 {
    x.to_radians().sin() / 30_f64.to_radians().sin() / 2.0
}

/// Returns the cosine of 0 to 60 degrees, scaled so that 60 degrees give 1/2.
fn cos_0_60(x: f64) -> f64 {
    let less = |x: f64| 1.0 - x.to_radians().cos();
    1.0 - less(x) / less(60.0) / 2.0
}

/// Returns the sine of 0 to 90 degrees.
fn first_quadrant_sin(x: f64) -> f64 {
    if x <= 30.0 { sin_0_30(x) } else { cos_0_60(90.0 - x) }
}

fn finite(x: f64) -> Result<f64> {
    match x.is_infinite() {
        true => Err(Error::invalid("input is out of range").into()),
        false => Ok(x),
    }
}

fn sind(x: f64) -> Result<f64> {
    let x = finite(x)? % 360.0;
    let (x, sign) = if x < 0.0 { (-x, -1.0) } else { (x, 1.0) };
    let (x, sign) = if x > 180.0 { (360.0 - x, -sign) } else { (x, sign) };
    let x = if x > 90.0 { 180.0 - x } else { x };
    Ok(sign * first_quadrant_sin(x))
}

fn cosd(x: f64) -> Result<f64> {
    let x = (finite(x)? % 360.0).abs();
    let x = if x > 180.0 { 360.0 - x } else { x };
    let (x, sign) = if x > 90.0 { (180.0 - x, -1.0) } else { (x, 1.0) };
    Ok(sign * first_quadrant_sin(90.0 - x))
}

/// Returns the arc sine in degrees; 1/2 gives exactly 30.
fn asind(x: f64) -> f64 {
    let of = |x: f64| if x <= 0.5 { x.asin() / 0.5_f64.asin() * 30.0 } else { 90.0 - x.acos() / 0.5_f64.acos() * 60.0 };
    if x < 0.0 { -of(-x) } else { of(x) }
}

fn acosd(x: f64) -> f64 {
    let of = |x: f64| if x <= 0.5 { 90.0 - x.asin() / 0.5_f64.asin() * 30.0 } else { x.acos() / 0.5_f64.acos() * 60.0 };
    if x < 0.0 { 90.0 + asind(-x) } else { of(x) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values are outputs of PostgreSQL 15.
    #[test]
    fn angles_in_degrees_are_exact() {
        assert_eq!(
            [0.0, 30.0, 90.0, 150.0, 210.0, -30.0, 390.0].map(|x| sind(x).expect("finite")),
            [0.0, 0.5, 1.0, 0.5, -0.5, -0.5, 0.5]
        );
        assert_eq!(
            [0.0, 60.0, 90.0, 120.0, 180.0, 300.0].map(|x| cosd(x).expect("finite")),
            [1.0, 0.5, 0.0, -0.5, -1.0, 0.5]
        );
        assert_eq!([asind(0.5), asind(-1.0), acosd(0.5), acosd(-0.5), acosd(-1.0)], [30.0, -90.0, 60.0, 120.0, 180.0]);
        assert!(sind(f64::INFINITY).is_err() && sind(f64::NAN).expect("a NaN").is_nan());
    }

    #[test]
    fn zeros_at_the_end_are_trimmed() {
        let scale = |digits, scale| trimmed(Decimal { digits: i256::from_i128(digits), scale }).scale;
        assert_eq!([scale(84_100, 4), scale(0, 5), scale(5, 0), scale(100, 0)], [2, 0, 0, 0]);
    }
}
