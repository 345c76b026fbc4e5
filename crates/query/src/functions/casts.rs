//! Casts between numbers that differ from Arrow's, as PostgreSQL defines them.
//!
//! Floating point and decimals are rounded to integers (halves of floating point to even, halves of decimals away from
//! zero), never truncated; NaN, infinities and overflow are errors. A double becomes the decimal of its shortest text,
//! a decimal the nearest double, and a double that is out of the range of REAL an error.

use super::decimal_arithmetic::{decimal_array, wide_values};
use crate::Error;
use crate::decimal::{self, Decimal, decimal_type};
use crate::door;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float32Array, Float64Array, Int64Array};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute;
use datafusion::arrow::datatypes::{DataType, Float32Type, Float64Type, Int64Type, i256};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

#[derive(Debug, PartialEq, Eq, Hash)]
struct NumericCast {
    to: DataType,
    /// True for TRY_CAST: NULL in place of an error.
    is_tried: bool,
    signature: Signature,
}

/// Returns a call that casts a value, if Arrow's cast would differ.
pub(crate) fn call(value: Expr, from: &DataType, to: &DataType, is_tried: bool) -> Option<Expr> {
    if !is_own(from, to) {
        return None;
    }
    let udf = NumericCast { to: to.clone(), is_tried, signature: Signature::any(1, Volatility::Immutable) };
    Some(Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::new_from_impl(udf)), vec![value])))
}

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// Returns true if a cast between two types is a call of ours.
pub(crate) fn is_own(from: &DataType, to: &DataType) -> bool {
    let is_fraction = from.is_floating() || from.is_decimal();
    if from == to {
        return false;
    }
    is_fraction && to.is_signed_integer()
        || *from == DataType::Float64 && *to == DataType::Float32
        || (from.is_numeric() || is_text(from)) && is_wide_decimal(to)
        || is_wide_decimal(from) && to.is_floating()
}

fn is_wide_decimal(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Decimal128(..) | DataType::Decimal256(..))
}

impl ScalarUDFImpl for NumericCast {
    fn name(&self) -> &'static str {
        "numeric cast"
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        Ok(format!("CAST({} AS {})", args.first().map_or(String::new(), ToString::to_string), self.to))
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        // A cast is named after its argument.
        Ok(args.first().map_or(String::new(), |arg| arg.schema_name().to_string()))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(value) = args.args.first() else { return Err(Error::internal("a cast of nothing").into()) };
        Ok(match value {
            ColumnarValue::Scalar(value) => {
                let out = cast(&value.to_array()?, &self.to, self.is_tried)?;
                ColumnarValue::Scalar(ScalarValue::try_from_array(&out, 0)?)
            }
            ColumnarValue::Array(array) => ColumnarValue::Array(cast(array, &self.to, self.is_tried)?),
        })
    }
}

/// Casts `array` to another type; values without a counterpart are NULL if `is_tried`, else an error.
pub(crate) fn cast(array: &ArrayRef, to: &DataType, is_tried: bool) -> Result<ArrayRef> {
    match to {
        DataType::Float32 => to_singles(array, is_tried),
        DataType::Float64 => to_floats(array, to),
        _ if to.is_decimal() => to_decimals(array, to, is_tried),
        _ => to_integers(array, to, is_tried),
    }
}

fn out_of_range(value: &str, to: &DataType) -> Error {
    let name = door::type_of(to).map_or_else(|| to.to_string(), |own| own.to_string());
    Error::invalid(format!("value {value} is out of range for type {name}"))
}

/// Returns the number of a row.
type NumberOf<'a> = Box<dyn Fn(usize) -> Option<Decimal> + 'a>;

/// Returns the exact number of each row; `None` for NaN and infinities.
pub(crate) fn numbers(array: &ArrayRef) -> Result<NumberOf<'_>> {
    Ok(match array.data_type() {
        DataType::Float32 => {
            let values = array.as_primitive::<Float32Type>().values();
            Box::new(move |row| Decimal::from_single(values[row]))
        }
        DataType::Float64 => {
            let values = array.as_primitive::<Float64Type>().values();
            Box::new(move |row| Decimal::from_double(values[row]))
        }
        DataType::UInt64 => {
            let values = array.as_primitive::<datafusion::arrow::datatypes::UInt64Type>().values();
            Box::new(move |row| Some(Decimal::from_integer(values[row].into())))
        }
        other => match decimal_type(other) {
            Some((_, scale)) => {
                let digits = wide_values(array);
                Box::new(move |row| Some(Decimal { digits: digits(row), scale: scale.into() }))
            }
            None => {
                let longs = compute::cast(array, &DataType::Int64)?;
                let longs = longs.as_primitive::<Int64Type>().clone();
                Box::new(move |row| Some(Decimal::from_integer(longs.value(row).into())))
            }
        },
    })
}

fn shown(array: &ArrayRef, row: usize) -> String {
    match array.data_type() {
        DataType::Float64 => array.as_primitive::<Float64Type>().value(row).to_string(),
        DataType::Float32 => array.as_primitive::<Float32Type>().value(row).to_string(),
        _ => compute::cast(&array.slice(row, 1), &DataType::Utf8)
            .map_or_else(|_| String::new(), |text| text.as_string::<i32>().value(0).to_owned()),
    }
}

/// Applies NULL to rows without a value.
fn kept<T>(
    array: &ArrayRef,
    mut value: impl FnMut(usize) -> Result<T, Error>,
    is_tried: bool,
) -> Result<(Vec<T>, NullBuffer)>
where
    T: Default,
{
    let (mut values, mut valid) = (Vec::with_capacity(array.len()), Vec::with_capacity(array.len()));
    for row in 0..array.len() {
        let found = match array.is_valid(row) {
            true => match value(row) {
                Err(_) if is_tried => None,
                found => Some(found?),
            },
            false => None,
        };
        valid.push(found.is_some());
        values.push(found.unwrap_or_default());
    }
    Ok((values, valid.into()))
}

fn to_decimals(array: &ArrayRef, to: &DataType, is_tried: bool) -> Result<ArrayRef> {
    let Some((precision, scale)) = decimal_type(to) else {
        return Err(Error::internal(format!("{to} is no decimal")).into());
    };
    let texts = if is_text(array.data_type()) { Some(compute::cast(array, &DataType::Utf8View)?) } else { None };
    let known = if texts.is_none() { Some(numbers(array)?) } else { None };
    let number = |row: usize| match (&texts, &known) {
        (Some(texts), _) => {
            let text = texts.as_string_view().value(row);
            let malformed = || {
                let text = text.chars().take(100).collect::<String>();
                let mut error =
                    Error::invalid(format!("invalid input for type DECIMAL({precision},{scale}): \"{text}\""));
                error.subject = Some(format!("'{text}"));
                error
            };
            Decimal::parse(text).ok_or_else(malformed)
        }
        (None, Some(numbers)) => numbers(row).ok_or_else(|| decimal::overflow(&shown(array, row), precision, scale)),
        (None, None) => Err(Error::internal("a cast of nothing")),
    };
    let digits = |row: usize| -> Result<i256, Error> {
        let number = number(row)?;
        let digits = number.rescaled(scale.into()).map(|at| at.nearest).filter(|d| decimal::fits(*d, precision));
        digits.ok_or_else(|| decimal::overflow(&number.text(), precision, scale))
    };
    let (values, nulls) = kept(array, digits, is_tried)?;
    decimal_array(values, Some(nulls), to)
}

/// Returns the limits of a signed integer type.
fn bounds(to: &DataType) -> (i64, i64) {
    match to {
        DataType::Int8 => (i8::MIN.into(), i8::MAX.into()),
        DataType::Int16 => (i16::MIN.into(), i16::MAX.into()),
        DataType::Int32 => (i32::MIN.into(), i32::MAX.into()),
        _ => (i64::MIN, i64::MAX),
    }
}

fn to_integers(array: &ArrayRef, to: &DataType, is_tried: bool) -> Result<ArrayRef> {
    let (least, most) = bounds(to);
    let within = |value: i128| i64::try_from(value).ok().filter(|v| (least..=most).contains(v));
    let (values, nulls) = match array.data_type() {
        DataType::Decimal128(..) | DataType::Decimal256(..) => {
            let number = numbers(array)?;
            let value = |row: usize| {
                let found = number(row).and_then(|n| n.rescaled(0)?.nearest.to_i128()).and_then(within);
                found.ok_or_else(|| out_of_range(&shown(array, row), to))
            };
            kept(array, value, is_tried)?
        }
        _ => {
            let doubles = compute::cast(array, &DataType::Float64)?;
            let doubles = doubles.as_primitive::<Float64Type>();
            let value = |row: usize| {
                // The first double outside of 64 bits is exact.
                const END: f64 = 9_223_372_036_854_775_808.0;
                let rounded = doubles.value(row).round_ties_even();
                let found = (rounded >= -END && rounded < END).then_some(rounded as i128).and_then(within);
                found.ok_or_else(|| out_of_range(&shown(array, row), to))
            };
            kept(array, value, is_tried)?
        }
    };
    let longs: ArrayRef = Arc::new(Int64Array::new(values.into(), Some(nulls)));
    Ok(compute::cast(&longs, to)?)
}

/// Returns the nearest REAL; `None` for a number that would become an infinity or zero.
pub(crate) fn single(value: f64) -> Option<f32> {
    let single = value as f32;
    (single.is_infinite() == value.is_infinite() && (single == 0.0) == (value == 0.0)).then_some(single)
}

/// Casts to the nearest REAL.
fn to_singles(array: &ArrayRef, is_tried: bool) -> Result<ArrayRef> {
    let doubles = if array.data_type().is_floating() { array.clone() } else { to_floats(array, &DataType::Float64)? };
    let doubles = compute::cast(&doubles, &DataType::Float64)?;
    let doubles = doubles.as_primitive::<Float64Type>();
    let value = |row: usize| {
        let value = doubles.value(row);
        single(value).ok_or_else(|| out_of_range(&format!("{value:e}"), &DataType::Float32))
    };
    let (values, nulls) = kept(array, value, is_tried)?;
    Ok(Arc::new(Float32Array::new(values.into(), Some(nulls))))
}

fn to_floats(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let number = numbers(array)?;
    let value = |row: usize| Ok(number(row).map_or(f64::NAN, Decimal::to_double));
    let (values, nulls) = kept(array, value, false)?;
    let doubles: ArrayRef = Arc::new(Float64Array::new(values.into(), Some(nulls)));
    Ok(compute::cast(&doubles, to)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: ScalarValue, to: &DataType) -> Result<ScalarValue, String> {
        let out = value.to_array().and_then(|array| cast(&array, to, false)).map_err(|e| Error::from(e).to_string())?;
        ScalarValue::try_from_array(&out, 0).map_err(|e| e.to_string())
    }

    /// Expected values are outputs of PostgreSQL 15: `2.5::float8::int` is 2, `2.5::numeric::int` is 3.
    #[test]
    fn integers_are_rounded() {
        for (value, expected) in [(0.5, 0), (1.5, 2), (2.5, 2), (-0.5, 0), (-1.5, -2), (2147483647.4, i32::MAX)] {
            assert_eq!(of(ScalarValue::Float64(Some(value)), &DataType::Int32), Ok(ScalarValue::Int32(Some(expected))));
        }
        for (digits, expected) in [(25, 3), (-25, -3), (24, 2), (-5, -1)] {
            let value = ScalarValue::Decimal128(Some(digits), 5, 1);
            assert_eq!(of(value, &DataType::Int64), Ok(ScalarValue::Int64(Some(expected))));
        }
        for value in [f64::NAN, f64::INFINITY, 2147483647.5, -2147483649.0] {
            let error = of(ScalarValue::Float64(Some(value)), &DataType::Int32).unwrap_err();
            assert!(error.contains("out of range for type INT"), "{error}");
        }
        let end = of(ScalarValue::Float64(Some(9.223372036854775e18)), &DataType::Int64);
        assert_eq!(end, Ok(ScalarValue::Int64(Some(9223372036854774784))));
        assert!(of(ScalarValue::Float64(Some(9.223372036854776e18)), &DataType::Int64).is_err());
    }

    #[test]
    fn decimals_are_exact_or_errors() {
        let to = DataType::Decimal128(38, 18);
        let value = of(ScalarValue::Float64(Some(1.15)), &to);
        assert_eq!(value, Ok(ScalarValue::Decimal128(Some(1_150_000_000_000_000_000), 38, 18)));
        let narrow = DataType::Decimal128(5, 2);
        assert_eq!(of(ScalarValue::from("1.005"), &narrow), Ok(ScalarValue::Decimal128(Some(101), 5, 2)));
        for value in [ScalarValue::Int64(Some(1000)), ScalarValue::Float64(Some(999.995)), ScalarValue::from("1e3")] {
            let error = of(value, &narrow).unwrap_err();
            assert!(error.contains("numeric field overflow"), "{error}");
        }
        assert!(of(ScalarValue::from("abc"), &narrow).unwrap_err().contains("invalid input"));
        let back = of(ScalarValue::Decimal128(Some(123456789012345678125), 38, 3), &DataType::Float64);
        assert_eq!(back, Ok(ScalarValue::Float64(Some(123456789012345678.125))));
    }
}
