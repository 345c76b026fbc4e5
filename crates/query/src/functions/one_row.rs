//! What a sub-query gives that may give one row only: its value, if there was one.

use super::scalar::{Call, Gives, Kind, PLAIN, Scalar};
use super::scalar_named;
use crate::Error;
use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::common::Result;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::ScalarFunction;
use tidalite_types::SqlState;

const NAME: &str = "__one_row";

pub(super) const FUNCTIONS: &[Scalar] = &[Scalar {
    name: NAME,
    takes: "a value and how many rows there were",
    kinds: &[Kind::Any, Kind::Long],
    gives: Gives::Like(0),
    call: checked,
    ..PLAIN
}];

fn checked(call: &Call) -> Result<ArrayRef> {
    let counts = call.columns[1].as_primitive::<Int64Type>();
    if counts.iter().flatten().any(|count| count > 1) {
        let error = Error::invalid("more than one row returned by a subquery used as an expression");
        return Err(error.with_code(SqlState::CARDINALITY_VIOLATION).into());
    }
    Ok(call.columns[0].clone())
}

/// The value, an error where there was more than one row.
pub(crate) fn call(value: Expr, rows: Expr) -> Result<Expr> {
    let function = scalar_named(NAME).ok_or_else(|| Error::internal(format!("{NAME} is not there")))?;
    Ok(Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![value, rows])))
}
