//! `+`, `-` and `*` of integers that may overflow: overflow is an error, as in PostgreSQL, while Arrow's kernels wrap
//! around. Expressions that fit for all values of their columns keep the stock operators.

use crate::{Error, door};
use datafusion::arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{DataType, Int8Type, Int16Type, Int32Type, Int64Type};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Cast, ScalarFunction};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use std::sync::{Arc, LazyLock};
use tidalite_operators::checked::{Integer, Outside, Side, Sign};

/// The operators and the names of their functions.
const OPERATORS: [(Operator, &str); 3] =
    [(Operator::Plus, "checked +"), (Operator::Minus, "checked -"), (Operator::Multiply, "checked *")];

#[derive(Debug, PartialEq, Eq, Hash)]
struct Checked {
    operator: Operator,
    name: &'static str,
    signature: Signature,
}

static FUNCTIONS: LazyLock<[(Operator, Arc<ScalarUDF>); 3]> = LazyLock::new(|| {
    OPERATORS.map(|(operator, name)| {
        let checked = Checked { operator, name, signature: Signature::any(2, Volatility::Immutable) };
        (operator, Arc::new(ScalarUDF::new_from_impl(checked)))
    })
});

/// Returns the call that replaces an operator, if the result may overflow.
pub(crate) fn call(expr: &BinaryExpr, schema: &DFSchema) -> Option<Expr> {
    let (_, function) = FUNCTIONS.iter().find(|(operator, _)| *operator == expr.op)?;
    let data_type = expr.left.get_type(schema).ok()?;
    let limits = limits(&data_type)?;
    if expr.right.get_type(schema).ok()? != data_type {
        return None;
    }
    let range = range_of(expr.op, range(&expr.left, schema)?, range(&expr.right, schema)?)?;
    let fits = limits.0 <= range.0 && range.1 <= limits.1;
    let args = || vec![expr.left.as_ref().clone(), expr.right.as_ref().clone()];
    (!fits).then(|| Expr::ScalarFunction(ScalarFunction::new_udf(function.clone(), args())))
}

/// Returns the operands and the operator of a call.
pub(crate) fn operands(function: &ScalarFunction) -> Option<(&Expr, Operator, &Expr)> {
    let checked = function.func.inner().downcast_ref::<Checked>()?;
    match function.args.as_slice() {
        [left, right] => Some((left, checked.operator, right)),
        _ => None,
    }
}

/// Returns the limits of a signed integer type.
fn limits(data_type: &DataType) -> Option<(i128, i128)> {
    Some(match data_type {
        DataType::Int8 => (i8::MIN.into(), i8::MAX.into()),
        DataType::Int16 => (i16::MIN.into(), i16::MAX.into()),
        DataType::Int32 => (i32::MIN.into(), i32::MAX.into()),
        DataType::Int64 => (i64::MIN.into(), i64::MAX.into()),
        _ => return None,
    })
}

/// Returns bounds of an integer expression.
fn range(expr: &Expr, schema: &DFSchema) -> Option<(i128, i128)> {
    match expr {
        Expr::Alias(alias) => range(&alias.expr, schema),
        Expr::Literal(value, _) => match value.cast_to(&DataType::Int64) {
            Ok(ScalarValue::Int64(Some(v))) if value.data_type().is_integer() => Some((v.into(), v.into())),
            _ => limits(&value.data_type()),
        },
        Expr::Cast(Cast { expr: inner, field }) => {
            let to = limits(field.data_type())?;
            // An operand of another type may have any value of the target type.
            let within = if inner.get_type(schema).ok()?.is_signed_integer() { range(inner, schema) } else { None };
            Some(within.map_or(to, |(least, most)| (least.max(to.0), most.min(to.1))))
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let limits = limits(&expr.get_type(schema).ok()?)?;
            let own = match op {
                Operator::Plus | Operator::Minus | Operator::Multiply => {
                    range_of(*op, range(left, schema)?, range(right, schema)?)
                }
                _ => None,
            };
            Some(own.filter(|own| limits.0 <= own.0 && own.1 <= limits.1).unwrap_or(limits))
        }
        other => limits(&other.get_type(schema).ok()?),
    }
}

fn range_of(operator: Operator, a: (i128, i128), b: (i128, i128)) -> Option<(i128, i128)> {
    Some(match operator {
        Operator::Plus => (a.0.checked_add(b.0)?, a.1.checked_add(b.1)?),
        Operator::Minus => (a.0.checked_sub(b.1)?, a.1.checked_sub(b.0)?),
        _ => {
            let ends = [a.0.checked_mul(b.0)?, a.0.checked_mul(b.1)?, a.1.checked_mul(b.0)?, a.1.checked_mul(b.1)?];
            (*ends.iter().min()?, *ends.iter().max()?)
        }
    })
}

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &str {
        self.name
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

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        types.first().cloned().ok_or_else(|| Error::internal("an operator without operands").into())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [a, b] = args.args.as_slice() else { return Err(Error::internal("an operator of two operands").into()) };
        let is_constant = matches!((a, b), (ColumnarValue::Scalar(_), ColumnarValue::Scalar(_)));
        let rows = if is_constant { 1 } else { args.number_rows };
        let out = match args.return_type() {
            DataType::Int8 => computed::<Int8Type>(self.operator, a, b, rows),
            DataType::Int16 => computed::<Int16Type>(self.operator, a, b, rows),
            DataType::Int32 => computed::<Int32Type>(self.operator, a, b, rows),
            _ => computed::<Int64Type>(self.operator, a, b, rows),
        }?;
        Ok(match is_constant {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&out, 0)?),
            false => ColumnarValue::Array(out),
        })
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        Ok(match (self.operator, inputs) {
            (Operator::Plus, [a, b]) => a.sort_properties.add(&b.sort_properties),
            (Operator::Minus, [a, b]) => a.sort_properties.sub(&b.sort_properties),
            _ => SortProperties::Unordered,
        })
    }
}

fn sign(operator: Operator) -> Sign {
    match operator {
        Operator::Plus => Sign::Plus,
        Operator::Minus => Sign::Minus,
        _ => Sign::Times,
    }
}

/// A value for each row or one for all, with a validity buffer; `None` for a constant NULL.
type Operand<'a, N> = Option<(Side<'a, N>, Option<&'a NullBuffer>)>;

fn side<T: ArrowPrimitiveType>(value: &ColumnarValue) -> Result<Operand<'_, T::Native>> {
    Ok(match value {
        ColumnarValue::Array(array) => {
            let array = array.as_primitive::<T>();
            Some((Side::Many(array.values()), array.nulls()))
        }
        ColumnarValue::Scalar(value) => {
            let array = value.to_array()?;
            let array = array.as_primitive::<T>();
            array.is_valid(0).then(|| (Side::One(array.value(0)), None))
        }
    })
}

fn computed<T: ArrowPrimitiveType>(
    operator: Operator,
    a: &ColumnarValue,
    b: &ColumnarValue,
    rows: usize,
) -> Result<ArrayRef>
where
    T::Native: Integer + std::fmt::Display,
{
    let (Some((a, a_nulls)), Some((b, b_nulls))) = (side::<T>(a)?, side::<T>(b)?) else {
        return Ok(Arc::new(PrimitiveArray::<T>::new_null(rows)));
    };
    let nulls = NullBuffer::union(a_nulls, b_nulls);
    let out = T::Native::calculated(sign(operator), a, b, rows, nulls.as_ref()).map_err(|Outside(a, b)| {
        let name = door::type_of(&T::DATA_TYPE).map_or_else(String::new, |own| own.to_string());
        Error::invalid(format!("value out of range: {a} {operator} {b} does not fit {name}"))
    })?;
    Ok(Arc::new(PrimitiveArray::<T>::new(out.into(), nulls)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{Int32Array, Int64Array};

    fn of(operator: Operator, a: ArrayRef, b: ScalarValue) -> Result<ArrayRef> {
        let rows = a.len();
        let (a, b) = (ColumnarValue::Array(a), ColumnarValue::Scalar(b));
        match b.data_type() {
            DataType::Int32 => computed::<Int32Type>(operator, &a, &b, rows),
            _ => computed::<Int64Type>(operator, &a, &b, rows),
        }
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let longs = || Arc::new(Int64Array::from(vec![Some(1), None, Some(i64::MAX)])) as ArrayRef;
        let one = || ScalarValue::Int64(Some(1));
        assert!(of(Operator::Plus, longs(), one()).is_err());
        assert_eq!(
            of(Operator::Minus, longs(), one()).expect("room").as_primitive::<Int64Type>().value(2),
            i64::MAX - 1
        );
        let ints = Arc::new(Int32Array::from(vec![46_341])) as ArrayRef;
        assert!(of(Operator::Multiply, ints, ScalarValue::Int32(Some(46_341))).is_err());
    }

    #[test]
    fn what_stands_under_a_null_means_nothing() {
        let values = Int64Array::new(vec![i64::MAX, 5].into(), Some(NullBuffer::from(vec![false, true])));
        let out = of(Operator::Plus, Arc::new(values), ScalarValue::Int64(Some(1))).expect("room");
        assert_eq!(out.as_primitive::<Int64Type>().iter().collect::<Vec<_>>(), [None, Some(6)]);
        let nothing = of(Operator::Plus, out, ScalarValue::Int64(None)).expect("room");
        assert_eq!(nothing.null_count(), 2);
    }
}
