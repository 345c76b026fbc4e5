//! `.` of a regular expression matches line breaks too, as in PostgreSQL: patterns get the flag `(?s)`.

use super::settled::{is_text, together};
use crate::functions::guarded;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator};

/// The flag under which `.` matches every character.
const FLAG: &str = "(?s)";

/// Returns an operator or a function of regular expressions with the flag in its pattern; `None` for other expressions.
///
/// # Errors
/// When the type of the pattern is unknown.
pub(super) fn with_flag(expr: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    use Operator::{RegexIMatch, RegexMatch, RegexNotIMatch, RegexNotMatch};
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if matches!(op, RegexMatch | RegexIMatch | RegexNotMatch | RegexNotIMatch) =>
        {
            let right = flagged(right, schema)?.map(Box::new);
            Ok(right.map(|right| Expr::BinaryExpr(BinaryExpr { left: left.clone(), op: *op, right })))
        }
        Expr::ScalarFunction(function) if guarded::takes_pattern(&function.func) => {
            let [_, pattern, ..] = function.args.as_slice() else { return Ok(None) };
            let Some(pattern) = flagged(pattern, schema)? else { return Ok(None) };
            let mut args = function.args.clone();
            args[1] = pattern;
            Ok(Some(Expr::ScalarFunction(ScalarFunction::new_udf(function.func.clone(), args))))
        }
        _ => Ok(None),
    }
}

/// Returns a pattern with the flag, or `None` if the flag is there or the pattern is not text.
fn flagged(pattern: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    let literal: fn(Option<String>) -> ScalarValue = match pattern {
        Expr::Literal(ScalarValue::Utf8(Some(_)), _) => ScalarValue::Utf8,
        Expr::Literal(ScalarValue::LargeUtf8(Some(_)), _) => ScalarValue::LargeUtf8,
        Expr::Literal(ScalarValue::Utf8View(Some(_)), _) => ScalarValue::Utf8View,
        Expr::Literal(..) => return Ok(None),
        other if has_flag(other) || !is_text(&other.get_type(schema)?) => return Ok(None),
        other => {
            let flag = Expr::Literal(ScalarValue::Utf8View(Some(FLAG.to_owned())), None);
            let flagged = together(flag, other.clone(), schema)?.data;
            return flagged.cast_to(&other.get_type(schema)?, schema).map(Some);
        }
    };
    let Expr::Literal(value, metadata) = pattern else { return Ok(None) };
    let text = value.try_as_str().flatten().filter(|text| !text.starts_with(FLAG));
    Ok(text.map(|text| Expr::Literal(literal(Some(format!("{FLAG}{text}"))), metadata.clone())))
}

/// Returns true if a computed pattern begins with the flag: rules of the analyzer may run twice.
fn has_flag(pattern: &Expr) -> bool {
    match pattern {
        Expr::Literal(value, _) => value.try_as_str().flatten().is_some_and(|text| text.starts_with(FLAG)),
        Expr::Cast(cast) => has_flag(&cast.expr),
        Expr::ScalarFunction(function) => function.args.first().is_some_and(has_flag),
        _ => false,
    }
}
