//! `nullif` as CASE, for arguments that are compared in another type than that of the result.

use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, ExprSchemable, when};

/// Returns the arguments of `nullif`, the first of which a CASE can evaluate twice; `None` for another call.
pub(super) fn arguments(function: &ScalarFunction) -> Option<(&Expr, &Expr)> {
    match function.args.as_slice() {
        [first, second] if function.name() == "nullif" && !first.is_volatile() => Some((first, second)),
        _ => None,
    }
}

/// Returns the CASE, which has the type of the first argument; `equal` compares the arguments.
pub(super) fn case(first: &Expr, equal: Expr, schema: &DFSchema) -> Result<Expr> {
    let null = Expr::Literal(ScalarValue::try_from(&first.get_type(schema)?)?, None);
    when(equal, null).otherwise(first.clone())
}
