//! Removes field metadata from a column value: the spelling of its name, and the mark of a designated timestamp.

use super::scalar::{Call, Gives, Kind, PLAIN, Scalar};
use super::scalar_named;
use crate::Error;
use datafusion::arrow::array::ArrayRef;
use datafusion::common::Result;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::ScalarFunction;

const NAME: &str = "__own_field";

pub(super) const FUNCTIONS: &[Scalar] =
    &[Scalar { name: NAME, takes: "a value", kinds: &[Kind::Any], gives: Gives::Like(0), call: as_it_is, ..PLAIN }];

fn as_it_is(call: &Call) -> Result<ArrayRef> {
    Ok(call.columns[0].clone())
}

/// Returns the value with a new field.
///
/// # Errors
/// Fails if the function is not registered.
pub(crate) fn call(value: Expr) -> Result<Expr> {
    let function = scalar_named(NAME).ok_or_else(|| Error::internal(format!("{NAME} is not there")))?;
    Ok(Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![value])))
}
