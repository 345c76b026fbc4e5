//! Functions of floating point that PostgreSQL has for DOUBLE only: a REAL argument is cast.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, ExprSchemable, cast};

const OF_DOUBLE: &[&str] = &[
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "atan2", "cbrt", "cos", "cosh", "cot", "degrees", "exp", "ln",
    "log", "log10", "log2", "pow", "power", "radians", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
];

/// Returns the arguments of a call with REALs as DOUBLEs; `None` if there are none or the function takes REAL.
pub(super) fn with_wide_reals(function: &ScalarFunction, schema: &DFSchema) -> Option<Vec<Expr>> {
    let is_real = |value: &Expr| value.get_type(schema).is_ok_and(|data_type| data_type == DataType::Float32);
    if !OF_DOUBLE.contains(&function.name()) || !function.args.iter().any(is_real) {
        return None;
    }
    let wide = |value: &Expr| if is_real(value) { cast(value.clone(), DataType::Float64) } else { value.clone() };
    Some(function.args.iter().map(wide).collect())
}
