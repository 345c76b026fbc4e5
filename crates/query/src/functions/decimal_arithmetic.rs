//! `+`, `-`, `*`, `/` and `%` of decimals, in place of Arrow's kernels: Arrow's result type cannot hold a product of
//! two DECIMAL(38,18) of 100 or more.
//!
//! The result type holds every result exactly, up to 76 digits. If 76 digits are too few, the scale is reduced, at
//! least to that of both operands and [`SCALE_MIN`], and results are rounded, halves away from zero. Quotients have
//! [`QUOTIENT_DIGITS`] digits more than the dividend, or the scale of the divisor if that is larger. Overflow is an error.

use crate::Error;
use crate::decimal::{self, Decimal, WIDE_DIGITS, arrow_decimal, as_decimal_type, decimal_type, divided};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, Decimal256Array};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Decimal256Type, i256};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

/// Minimum scale that a product keeps.
const SCALE_MIN: i32 = 18;
/// Digits of a quotient beyond the scale of the dividend, as in MySQL (`div_precision_increment`) and DataFusion.
const QUOTIENT_DIGITS: i32 = 4;

#[derive(Debug, PartialEq, Eq, Hash)]
struct Arithmetic {
    operator: Operator,
    name: String,
    signature: Signature,
}

/// Returns the call for an operator between decimals, or decimals and integers.
///
/// `None` for other operators.
pub(crate) fn call(left: Expr, operator: Operator, right: Expr) -> Option<Expr> {
    use Operator::{Divide, Minus, Modulo, Multiply, Plus};
    if !matches!(operator, Plus | Minus | Multiply | Divide | Modulo) {
        return None;
    }
    let name = format!("decimal {operator}");
    let udf = Arithmetic { operator, name, signature: Signature::user_defined(Volatility::Immutable) };
    let udf = Arc::new(ScalarUDF::new_from_impl(udf));
    Some(Expr::ScalarFunction(ScalarFunction::new_udf(udf, vec![left, right])))
}

/// Returns the type of a result.
fn result_type(operator: Operator, (p1, s1): (u8, i8), (p2, s2): (u8, i8)) -> DataType {
    let [p1, s1, p2, s2] = [i32::from(p1), i32::from(s1), i32::from(p2), i32::from(s2)];
    let (whole1, whole2, scale) = (p1 - s1, p2 - s2, s1.max(s2));
    let wide = i32::from(WIDE_DIGITS);
    match operator {
        Operator::Multiply => {
            let exact = s1 + s2;
            let least = exact.min(scale.max(SCALE_MIN));
            arrow_decimal(whole1 + whole2 + exact, exact.min((wide - whole1 - whole2).max(least)))
        }
        Operator::Divide => {
            let scale = (s1 + QUOTIENT_DIGITS).max(s2);
            arrow_decimal(whole1 + s2 + scale, scale)
        }
        Operator::Modulo => arrow_decimal(whole1.min(whole2).max(1) + scale, scale),
        _ => arrow_decimal(whole1.max(whole2) + 1 + scale, scale),
    }
}

impl ScalarUDFImpl for Arithmetic {
    fn name(&self) -> &str {
        &self.name
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.iter().map(ToString::to_string).collect::<Vec<_>>().join(&format!(" {} ", self.operator)))
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let names = args.iter().map(|arg| arg.schema_name().to_string());
        Ok(names.collect::<Vec<_>>().join(&format!(" {} ", self.operator)))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let own = |given: &DataType| match as_decimal_type(given) {
            Some(_) if given.is_decimal() => Ok(given.clone()),
            Some((precision, scale)) => Ok(DataType::Decimal128(precision, scale)),
            None if *given == DataType::Null => Ok(DataType::Decimal128(1, 0)),
            None => Err(Error::invalid(format!("operator does not exist: {} of this type", self.operator)).into()),
        };
        // The type of a floating-point operand became known only later.
        match types.iter().any(DataType::is_floating) {
            true => Ok(vec![DataType::Float64; 2]),
            false => types.iter().map(own).collect(),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [a, b] if a.is_floating() || b.is_floating() => Ok(DataType::Float64),
            [a, b] => {
                let of = |t: &DataType| as_decimal_type(t).unwrap_or((1, 0));
                Ok(result_type(self.operator, of(a), of(b)))
            }
            _ => Err(Error::internal("an operator of other than two operands").into()),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_constant = args.args.iter().all(|a| matches!(a, ColumnarValue::Scalar(_)));
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let [a, b] = arrays.as_slice() else {
            return Err(Error::internal("an operator of other than two operands").into());
        };
        let out = match args.return_type() {
            DataType::Float64 => floats(self.operator, a, b)?,
            to => computed(self.operator, a, b, to)?,
        };
        Ok(match is_constant {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&out, 0)?),
            false => ColumnarValue::Array(out),
        })
    }
}

fn floats(operator: Operator, a: &ArrayRef, b: &ArrayRef) -> Result<ArrayRef> {
    use datafusion::arrow::compute::kernels::numeric;
    Ok(match operator {
        Operator::Plus => numeric::add(a, b),
        Operator::Minus => numeric::sub(a, b),
        Operator::Multiply => numeric::mul(a, b),
        Operator::Divide => numeric::div(a, b),
        _ => numeric::rem(a, b),
    }?)
}

fn computed(operator: Operator, a: &ArrayRef, b: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let of = |array: &ArrayRef| decimal_type(array.data_type());
    let (Some((_, s1)), Some((_, s2)), Some((precision, scale))) = (of(a), of(b), decimal_type(to)) else {
        return Err(Error::internal(format!("{to} is no decimal of {} and {}", a.data_type(), b.data_type())).into());
    };
    let shape = Shape { operator, left: s1.into(), right: s2.into(), precision, scale };
    let nulls = NullBuffer::union(a.nulls(), b.nulls());
    let are_small = [a.data_type(), b.data_type(), to].iter().all(|t| matches!(t, DataType::Decimal128(..)));
    let is_null = |row: usize| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
    if are_small {
        let (a, b) = (a.as_primitive::<Decimal128Type>().values(), b.as_primitive::<Decimal128Type>().values());
        let value = |row: usize| if is_null(row) { Ok(0) } else { shape.small(a[row], b[row]) };
        let values = (0..a.len()).map(value).collect::<Result<Vec<i128>>>()?;
        let out = Decimal128Array::new(values.into(), nulls.clone());
        return Ok(Arc::new(out.with_precision_and_scale(precision, scale)?));
    }
    let (left, right) = (wide_values(a), wide_values(b));
    let value = |row: usize| if is_null(row) { Ok(i256::ZERO) } else { shape.wide(left(row), right(row)) };
    let values = (0..a.len()).map(value).collect::<Result<Vec<i256>>>()?;
    decimal_array(values, nulls.clone(), to)
}

/// Returns the digits of a row of a decimal array; 0 for other arrays.
pub(super) fn wide_values(array: &ArrayRef) -> Box<dyn Fn(usize) -> i256 + '_> {
    match array.data_type() {
        DataType::Decimal128(..) => {
            let values = array.as_primitive::<Decimal128Type>().values();
            Box::new(move |row| i256::from_i128(values[row]))
        }
        DataType::Decimal256(..) => {
            let values = array.as_primitive::<Decimal256Type>().values();
            Box::new(move |row| values[row])
        }
        _ => Box::new(move |_| i256::ZERO),
    }
}

/// Creates a decimal array from digits that are known to fit its type.
pub(super) fn decimal_array(values: Vec<i256>, nulls: Option<NullBuffer>, to: &DataType) -> Result<ArrayRef> {
    match *to {
        DataType::Decimal128(precision, scale) => {
            let narrow = |(row, value): (usize, i256)| match &nulls {
                Some(nulls) if nulls.is_null(row) => Ok(0),
                _ => decimal::narrow(value, precision, scale),
            };
            let values = values.into_iter().enumerate().map(narrow).collect::<crate::Result<Vec<i128>>>()?;
            Ok(Arc::new(Decimal128Array::new(values.into(), nulls).with_precision_and_scale(precision, scale)?))
        }
        DataType::Decimal256(precision, scale) => {
            Ok(Arc::new(Decimal256Array::new(values.into(), nulls).with_precision_and_scale(precision, scale)?))
        }
        _ => Err(Error::internal(format!("{to} is no decimal")).into()),
    }
}

/// An operator, the scales of its operands and the type of its result.
struct Shape {
    operator: Operator,
    left: i32,
    right: i32,
    precision: u8,
    scale: i8,
}

impl Shape {
    fn overflow(&self, a: i256, b: i256) -> Error {
        let (a, b) = (Decimal { digits: a, scale: self.left }, Decimal { digits: b, scale: self.right });
        decimal::overflow(&format!("{} {} {}", a.text(), self.operator, b.text()), self.precision, self.scale)
    }

    fn small(&self, a: i128, b: i128) -> Result<i128> {
        let found = self.tried(a, b).filter(|digits| decimal::fits(i256::from_i128(*digits), self.precision));
        match found {
            Some(digits) => Ok(digits),
            None => {
                let wide = self.wide(i256::from_i128(a), i256::from_i128(b))?;
                Ok(decimal::narrow(wide, self.precision, self.scale)?)
            }
        }
    }

    /// Computes in 128 bits; `None` for overflow.
    fn tried(&self, a: i128, b: i128) -> Option<i128> {
        let up = |value: i128, from: i32| {
            let by = (i32::from(self.scale) - from).unsigned_abs();
            if by == 0 { Some(value) } else { value.checked_mul(10_i128.checked_pow(by)?) }
        };
        match self.operator {
            Operator::Plus => up(a, self.left)?.checked_add(up(b, self.right)?),
            Operator::Minus => up(a, self.left)?.checked_sub(up(b, self.right)?),
            Operator::Multiply => a.checked_mul(b),
            Operator::Divide if b != 0 => {
                let a = a.checked_mul(
                    10_i128.checked_pow((i32::from(self.scale) - self.left + self.right).try_into().ok()?)?,
                )?;
                let (quotient, rest) = (a.checked_div(b)?, a.checked_rem(b)?.unsigned_abs());
                let is_up = rest != 0 && rest >= b.unsigned_abs() - rest;
                let away = if (a < 0) == (b < 0) { 1 } else { -1 };
                Some(if is_up { quotient + away } else { quotient })
            }
            Operator::Modulo if b != 0 => up(a, self.left)?.checked_rem(up(b, self.right)?),
            _ => None,
        }
    }

    fn wide(&self, a: i256, b: i256) -> Result<i256> {
        if matches!(self.operator, Operator::Divide | Operator::Modulo) && b == i256::ZERO {
            return Err(Error::invalid("division by zero").into());
        }
        let found = self.tried_wide(a, b).filter(|digits| decimal::fits(*digits, self.precision));
        found.ok_or_else(|| self.overflow(a, b).into())
    }

    fn tried_wide(&self, a: i256, b: i256) -> Option<i256> {
        let scale = i32::from(self.scale);
        let at_scale = |digits: i256, from: i32| Some(Decimal { digits, scale: from }.rescaled(scale)?.nearest);
        match self.operator {
            Operator::Plus => at_scale(a, self.left)?.checked_add(at_scale(b, self.right)?),
            Operator::Minus => at_scale(a, self.left)?.checked_sub(at_scale(b, self.right)?),
            Operator::Multiply => at_scale(a.checked_mul(b)?, self.left + self.right),
            Operator::Divide => {
                let up = u32::try_from(scale - self.left + self.right).ok()?;
                divided(a.checked_mul(decimal::power(up)?)?, b)
            }
            _ => at_scale(a, self.left)?.checked_rem(at_scale(b, self.right)?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimals(values: &[&str], precision: u8, scale: i8) -> ArrayRef {
        let digits = |text: &&str| Decimal::parse(text)?.rescaled(scale.into())?.floor.to_i128();
        let array = Decimal128Array::from(values.iter().map(digits).collect::<Vec<_>>());
        Arc::new(array.with_precision_and_scale(precision, scale).expect("a type"))
    }

    fn shown(operator: Operator, a: &ArrayRef, b: &ArrayRef) -> Result<Vec<String>> {
        let of = |array: &ArrayRef| decimal_type(array.data_type()).expect("a decimal");
        let to = result_type(operator, of(a), of(b));
        let out = computed(operator, a, b, &to)?;
        let (scale, digits) = (decimal_type(&to).expect("a decimal").1.into(), wide_values(&out));
        Ok((0..out.len()).map(|row| Decimal { digits: digits(row), scale }.text()).collect())
    }

    #[test]
    fn products_of_the_widest_decimals_are_exact() {
        let a = decimals(&["12345678901234567890.123456789012345678", "-0.000000000000000001"], 38, 18);
        let found = shown(Operator::Multiply, &a, &a).expect("room");
        // Expected values are computed by Python's decimal module.
        assert_eq!(found[0], "152415787532388367504953515625666819427.831123554031397676527968299765279684");
        assert_eq!(found[1], format!("0.{}1", "0".repeat(35)));
    }

    #[test]
    fn results_are_those_of_postgresql() {
        let (a, b) = (decimals(&["7", "-7", "1", "2"], 38, 18), decimals(&["2", "2", "3", "3"], 38, 2));
        assert_eq!(shown(Operator::Plus, &a, &b).expect("room")[0], "9.000000000000000000");
        let quotients = shown(Operator::Divide, &a, &b).expect("room");
        assert_eq!(
            quotients,
            [
                "3.5000000000000000000000",
                "-3.5000000000000000000000",
                "0.3333333333333333333333",
                "0.6666666666666666666667"
            ]
        );
        let rests = shown(Operator::Modulo, &a, &b).expect("room");
        assert_eq!(rests[..2], ["1.000000000000000000", "-1.000000000000000000"]);
    }

    #[test]
    fn what_has_no_room_is_an_error() {
        let zero = decimals(&["0"], 5, 2);
        let error = shown(Operator::Divide, &zero, &zero).unwrap_err().to_string();
        assert!(error.contains("division by zero"), "{error}");
        let large = decimals(&["99999999999999999999999999999999999999"], 38, 0);
        let small = decimals(&["0.00000000000000000000000000000000000001"], 38, 38);
        let error = shown(Operator::Divide, &large, &small).unwrap_err().to_string();
        assert!(error.contains("numeric field overflow"), "{error}");
    }
}
