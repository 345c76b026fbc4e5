//! `INTERVAL '1 day 04:05:06'`: converts PostgreSQL's input forms to the form that the planner reads.

use datafusion::sql::sqlparser::ast::{DateTimeField, Expr, Interval as Written, UnaryOperator, Value};
use tidalite_types::Interval;
use tidalite_types::interval::{IntervalField, IntervalFields};

/// Rewrites a constant interval as months, days and nanoseconds; an invalid text stays.
pub(super) fn canonical(written: &mut Written) {
    let Some(text) = constant(&written.value) else { return };
    let Ok(fields) = fields(written) else { return };
    let Ok(interval) = Interval::parse(&text, fields) else { return };
    let Interval { months, days, nanos } = interval;
    let text = format!("{months} months {days} days {nanos} nanoseconds");
    *written = Written {
        value: Box::new(Expr::Value(Value::SingleQuotedString(text).into())),
        leading_field: None,
        leading_precision: None,
        last_field: None,
        fractional_seconds_precision: None,
    };
}

fn constant(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::Number(text, _) => Some(text.clone()),
            _ => None,
        },
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match expr.as_ref() {
            Expr::Value(value) => match &value.value {
                Value::Number(text, _) => Some(format!("-{text}")),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

/// Returns the fields after the literal; an error for a field that SQL does not have.
fn fields(written: &Written) -> Result<Option<IntervalFields>, ()> {
    let field = |field: &DateTimeField| {
        let name = field.to_string();
        let singular = name.strip_suffix(['s', 'S']).unwrap_or(&name);
        IntervalField::from_sql_name(singular).ok_or(())
    };
    Ok(match (&written.leading_field, &written.last_field) {
        (Some(first), Some(last)) => Some((field(first)?, field(last)?)),
        (Some(only), None) => Some((field(only)?, field(only)?)),
        (None, _) => None,
    })
}
