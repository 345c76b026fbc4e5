//! `round`, `trunc`, `ceil`, `floor` of decimals, and of integers to a number of places: exact, with decimal results.
//! The stock functions handle other numbers.

use super::decimal_arithmetic::{decimal_array, wide_values};
use crate::Error;
use crate::decimal::{self, Decimal, Rescaled, arrow_decimal, as_decimal_type, decimal_type};
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type, i256};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Mode {
    /// Halves away from zero.
    Nearest,
    HalfEven,
    TowardZero,
    AwayFromZero,
    Up,
    Down,
}

const MODES: [(&str, Mode); 4] =
    [("round", Mode::Nearest), ("trunc", Mode::TowardZero), ("ceil", Mode::Up), ("floor", Mode::Down)];

#[derive(Debug, PartialEq, Eq, Hash)]
struct Rounding {
    stock: Arc<ScalarUDF>,
    mode: Mode,
    signature: Signature,
}

pub(super) fn functions() -> Vec<ScalarUDF> {
    let known = datafusion::functions::all_default_functions().into_iter().filter_map(|stock| {
        let (_, mode) = MODES.into_iter().find(|(name, _)| *name == stock.name())?;
        let signature = Signature::user_defined(Volatility::Immutable);
        Some(ScalarUDF::new_from_impl(Rounding { stock, mode, signature }))
    });
    known.collect()
}

impl Rounding {
    fn inner(&self) -> &dyn ScalarUDFImpl {
        self.stock.inner().as_ref()
    }

    /// Returns the digits kept after the point, at most `scale`; `None` if the argument is no constant.
    fn places(args: &ReturnFieldArgs, scale: i8) -> Option<i64> {
        match args.scalar_arguments.get(1) {
            None => Some(0),
            Some(Some(ScalarValue::Int64(Some(places)))) => Some((*places).clamp(0, scale.into())),
            Some(_) => None,
        }
    }
}

impl ScalarUDFImpl for Rounding {
    fn name(&self) -> &str {
        self.inner().name()
    }

    fn aliases(&self) -> &[String] {
        self.inner().aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let has_places = matches!(self.mode, Mode::Nearest | Mode::TowardZero);
        match types {
            [of] if of.is_decimal() => return Ok(vec![of.clone()]),
            [DataType::Float32] => return Ok(vec![DataType::Float64]),
            [of, places] if has_places && (places.is_integer() || places.is_null()) => {
                // With places an integer is a number of many digits, which may become larger.
                let exact = if of.is_decimal() { Some(of.clone()) } else { integer_type(of) };
                if let Some(exact) = exact {
                    return Ok(vec![exact, DataType::Int64]);
                }
            }
            _ => {}
        }
        let fields: Vec<FieldRef> = types.iter().map(|t| Arc::new(Field::new("", t.clone(), true))).collect();
        let coerced = fields_with_udf(&fields, self.stock.as_ref())?;
        Ok(coerced.iter().map(|field| field.data_type().clone()).collect())
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner().return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let Some((precision, scale)) = args.arg_fields.first().and_then(|field| decimal_type(field.data_type())) else {
            return self.inner().return_field_from_args(args);
        };
        let whole = i32::from(precision) - i32::from(scale);
        let places = Rounding::places(&args, scale).map_or(i32::from(scale), |places| places as i32);
        // The result may need one more digit: 9.9 is rounded to 10.
        Ok(Arc::new(Field::new(self.name(), arrow_decimal(whole + 1 + places, places), true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(value) = args.args.first().filter(|value| value.data_type().is_decimal()) else {
            return self.inner().invoke_with_args(args);
        };
        let is_constant = args.args.iter().all(|a| matches!(a, ColumnarValue::Scalar(_)));
        let rows = if is_constant { 1 } else { args.number_rows };
        let values = value.to_array(rows)?;
        let places = args.args.get(1).map(|places| places.to_array(rows)).transpose()?;
        let out = rounded(self.mode, &values, places.as_ref(), args.return_type())?;
        Ok(match is_constant {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&out, 0)?),
            false => ColumnarValue::Array(out),
        })
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.inner().simplify(args, info)
    }

    fn preimage(&self, args: &[Expr], literal: &Expr, info: &SimplifyContext) -> Result<PreimageResult> {
        match literal {
            Expr::Literal(value, _) if value.data_type().is_floating() => self.inner().preimage(args, literal, info),
            _ => Ok(PreimageResult::None),
        }
    }

    fn evaluate_bounds(&self, input: &[&Interval]) -> Result<Interval> {
        match input.first() {
            Some(of) if of.data_type().is_decimal() => Interval::make_unbounded(&of.data_type()),
            _ => self.inner().evaluate_bounds(input),
        }
    }

    fn output_ordering(&self, input: &[ExprProperties]) -> Result<SortProperties> {
        self.inner().output_ordering(input)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner().documentation()
    }
}

/// Returns the decimal type of a signed integer type.
fn integer_type(of: &DataType) -> Option<DataType> {
    let (precision, _) = as_decimal_type(of).filter(|_| of.is_signed_integer())?;
    Some(arrow_decimal(precision.into(), 0))
}

fn rounded(mode: Mode, values: &ArrayRef, places: Option<&ArrayRef>, to: &DataType) -> Result<ArrayRef> {
    let (Some((_, from)), Some((precision, scale))) = (decimal_type(values.data_type()), decimal_type(to)) else {
        return Err(Error::internal(format!("{to} is no decimal")).into());
    };
    let counts = places.map(|places| places.as_primitive::<Int64Type>());
    let digits = wide_values(values);
    let nulls = datafusion::arrow::buffer::NullBuffer::union(values.nulls(), counts.and_then(|counts| counts.nulls()));
    let value = |row: usize| {
        if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            return Ok(i256::ZERO);
        }
        let places = counts.map_or(0, |counts| counts.value(row)).clamp(-100, from.into()) as i32;
        let number = Decimal { digits: digits(row), scale: from.into() };
        let found = at_places(mode, number, places).and_then(|own| Some(own.rescaled(scale.into())?.floor));
        let found = found.filter(|digits| decimal::fits(*digits, precision));
        found.ok_or_else(|| decimal::overflow(&number.text(), precision, scale))
    };
    let values = (0..values.len()).map(value).collect::<crate::Result<Vec<i256>>>()?;
    decimal_array(values, nulls, to)
}

/// Rounds a number to `places` digits after the point; negative `places` round before the point.
pub(super) fn at_places(mode: Mode, number: Decimal, places: i32) -> Option<Decimal> {
    // The number is scaled so that units of 10 to the power of `-places` become ones.
    let moved = Decimal { digits: number.digits, scale: number.scale - places };
    let at = moved.rescaled(0)?;
    let is_below = number.digits.is_negative();
    let up = || if at.is_exact { at.floor } else { at.floor.wrapping_add(i256::ONE) };
    let digits = match mode {
        Mode::Nearest => at.nearest,
        Mode::HalfEven => even(moved, at)?,
        Mode::Down => at.floor,
        Mode::Up => up(),
        Mode::TowardZero => {
            if is_below {
                up()
            } else {
                at.floor
            }
        }
        Mode::AwayFromZero => {
            if is_below {
                at.floor
            } else {
                up()
            }
        }
    };
    Some(Decimal { digits, scale: places })
}

/// Returns the nearest integer, the even one of two.
fn even(moved: Decimal, at: Rescaled) -> Option<i256> {
    let two = i256::from_i128(2);
    let doubled = Decimal { digits: moved.digits.checked_mul(two)?, scale: moved.scale }.rescaled(0)?;
    let is_half = !at.is_exact && doubled.is_exact;
    let is_odd = at.floor.checked_rem(two)? != i256::ZERO;
    Some(match (is_half, is_odd) {
        (true, true) => at.floor.wrapping_add(i256::ONE),
        (true, false) => at.floor,
        (false, _) => at.nearest,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(mode: Mode, text: &str, places: i32) -> String {
        let number = Decimal::parse(text).expect("a number");
        let out = at_places(mode, number, places).expect("room");
        out.rescaled(places.max(0)).map(|at| Decimal { digits: at.floor, scale: places.max(0) }.text()).expect("room")
    }

    /// Expected values are outputs of PostgreSQL 15.
    #[test]
    fn numbers_are_rounded_as_the_function_says() {
        for (text, places, nearest, trunc, up, down) in [
            ("2.5", 0, "3", "2", "3", "2"),
            ("-2.5", 0, "-3", "-2", "-2", "-3"),
            ("1.005", 2, "1.01", "1.00", "1.01", "1.00"),
            ("150", -2, "200", "100", "200", "100"),
            ("-7", 0, "-7", "-7", "-7", "-7"),
        ] {
            let modes = [Mode::Nearest, Mode::TowardZero, Mode::Up, Mode::Down];
            let found = modes.map(|mode| shown(mode, text, places));
            assert_eq!(found, [nearest, trunc, up, down], "{text}");
        }
    }
}
