//! Dates among timestamps, as values of which one is chosen or that stand in one column: the dates become timestamps of
//! the finest unit among the others, as in PostgreSQL. The planner would take nanoseconds, which lack most years.

use super::nullif;
use datafusion::arrow::datatypes::{DataType, TimeUnit as ArrowUnit};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, ExprSchemable, cast};

/// Returns the type that a date has beside other types: that of the timestamps among them, the finest one.
pub(crate) fn type_of_dates<'t>(types: impl Iterator<Item = &'t DataType>) -> Option<DataType> {
    let fineness = |unit: &ArrowUnit| match unit {
        ArrowUnit::Second => 0,
        ArrowUnit::Millisecond => 1,
        ArrowUnit::Microsecond => 2,
        ArrowUnit::Nanosecond => 3,
    };
    let units = types.filter_map(|data_type| match data_type {
        DataType::Timestamp(unit, None) => Some(*unit),
        _ => None,
    });
    units.max_by_key(fineness).map(|unit| DataType::Timestamp(unit, None))
}

/// Casts dates to timestamps if there are both; otherwise `None`.
pub(crate) fn with_times(values: &[Expr], schema: &DFSchema) -> Option<Vec<Expr>> {
    let types: Vec<DataType> = values.iter().map(|value| value.get_type(schema)).collect::<Result<_>>().ok()?;
    let is_date = |data_type: &DataType| *data_type == DataType::Date32;
    if !types.iter().any(is_date) {
        return None;
    }
    let to = type_of_dates(types.iter())?;
    let pairs = values.iter().zip(&types);
    Some(pairs.map(|(value, own)| if is_date(own) { cast(value.clone(), to.clone()) } else { value.clone() }).collect())
}

/// Returns `nullif` of a date and a timestamp as CASE; `None` for another call.
pub(super) fn nullif(function: &ScalarFunction, schema: &DFSchema) -> Result<Option<Expr>> {
    let Some((first, second)) = nullif::arguments(function) else { return Ok(None) };
    if with_times(&function.args, schema).is_none() {
        return Ok(None);
    }
    nullif::case(first, first.clone().eq(second.clone()), schema).map(Some)
}
