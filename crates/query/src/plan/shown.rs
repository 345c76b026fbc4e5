//! Result values without a Tidalite type: a time interval is shown as its two ends in parentheses, a difference of
//! times as an interval of days and hours, as in PostgreSQL, a decimal of more than 38 digits as a DECIMAL.

use crate::Result;
use crate::decimal::{self, decimal_type};
use crate::functions::{interval_text, is_interval, scalar_named};
use datafusion::arrow::datatypes::{DataType, IntervalUnit};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast};

/// Minimum scale that a decimal keeps where 38 digits are too few.
const SCALE_MIN: i32 = 18;

/// Returns the plan with such columns cast to text or DECIMAL at its root.
pub(crate) fn shown(plan: LogicalPlan) -> Result<LogicalPlan> {
    let fields = plan.schema().fields();
    if !fields.iter().any(|field| is_interval(field.data_type()) || shown_type(field.data_type()).is_some()) {
        return Ok(plan);
    }
    let function = scalar_named(interval_text());
    let columns = plan.schema().iter().map(|(relation, field)| {
        let column = Expr::Column((relation, field).into());
        let shown = match (&function, shown_type(field.data_type())) {
            (Some(function), _) if is_interval(field.data_type()) => {
                Expr::ScalarFunction(ScalarFunction::new_udf(function.clone(), vec![column]))
            }
            (_, Some(shown_type)) => cast(column, shown_type),
            _ => return column,
        };
        shown.alias_qualified(relation.cloned(), field.name().clone())
    });
    let columns: Vec<Expr> = columns.collect();
    Ok(LogicalPlanBuilder::from(plan).project(columns)?.build()?)
}

/// Returns the type that a column is shown as, if it differs from its own type.
fn shown_type(data_type: &DataType) -> Option<DataType> {
    match data_type {
        DataType::Duration(_) => Some(DataType::Interval(IntervalUnit::MonthDayNano)),
        DataType::Decimal256(..) => narrower(data_type),
        _ => None,
    }
}

/// Returns the DECIMAL for a decimal of more than 38 digits.
///
/// The scale is reduced to make room before the point, but not below [`SCALE_MIN`].
fn narrower(data_type: &DataType) -> Option<DataType> {
    let (precision, scale) = decimal_type(data_type)?;
    let (whole, scale) = (i32::from(precision) - i32::from(scale), i32::from(scale));
    let digits = i32::from(decimal::DIGITS);
    let own = scale.min((digits - whole).max(SCALE_MIN));
    Some(decimal::arrow_decimal(digits.min(whole + own), own))
}
