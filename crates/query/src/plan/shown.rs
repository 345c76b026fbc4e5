//! How values without a type of ours are shown: an interval of time as its two ends in parentheses, a difference of times
//! as an interval of days and hours, as in PostgreSQL, a decimal of more than 38 digits as a DECIMAL.

use crate::Result;
use crate::decimal::{self, decimal_type};
use crate::functions::{interval_text, is_interval, scalar_named};
use datafusion::arrow::datatypes::{DataType, IntervalUnit};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast};

/// Digits behind the point that a decimal keeps where 38 are too few for all of them.
const SCALE_MIN: i32 = 18;

/// The plan with such columns as text or DECIMAL, at its very end.
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

/// The type that a column is shown as, if it is another than its own.
fn shown_type(data_type: &DataType) -> Option<DataType> {
    match data_type {
        DataType::Duration(_) => Some(DataType::Interval(IntervalUnit::MonthDayNano)),
        DataType::Decimal256(..) => narrower(data_type),
        _ => None,
    }
}

/// The DECIMAL for a decimal of more digits: with as many before the point as fit beside [`SCALE_MIN`] behind it, if there
/// are so many.
fn narrower(data_type: &DataType) -> Option<DataType> {
    let (precision, scale) = decimal_type(data_type)?;
    let (whole, scale) = (i32::from(precision) - i32::from(scale), i32::from(scale));
    let digits = i32::from(decimal::DIGITS);
    let own = scale.min((digits - whole).max(SCALE_MIN));
    Some(decimal::arrow_decimal(digits.min(whole + own), own))
}
