//! `+` and `-` of dates, times and intervals with PostgreSQL's types: a date and an interval give a timestamp, a date
//! and an integer a date, two dates an integer.

use super::settled::call;
use crate::door;
use crate::functions::zones::AS_INSTANT;
use datafusion::arrow::datatypes::{DataType, IntervalUnit, TimeUnit as ArrowUnit};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::planner::{PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator, cast};
use datafusion::sql::sqlparser::ast::BinaryOperator;

const MICROS: DataType = DataType::Timestamp(ArrowUnit::Microsecond, None);
const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

/// Returns the planned expression, or the operands in the types to be added.
pub(super) fn planned(expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
    let op = match expr.op {
        BinaryOperator::Plus => Operator::Plus,
        BinaryOperator::Minus => Operator::Minus,
        _ => return Ok(PlannerResult::Original(expr)),
    };
    let (Ok((_, left)), Ok((_, right))) = (expr.left.to_field(schema), expr.right.to_field(schema)) else {
        return Ok(PlannerResult::Original(expr));
    };
    let is_length = |t: &DataType| matches!(t, DataType::Interval(_) | DataType::Duration(_));
    let is_plus = op == Operator::Plus;
    let binary = |left: Expr, right: Expr| Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)));
    let RawBinaryExpr { left: l, right: r, op: written } = expr;
    let days = |e: Expr| cast(e, DataType::Int64);
    let sum = match (left.data_type(), right.data_type()) {
        (DataType::Date32, other) if is_length(other) => binary(cast(l, MICROS), r),
        (other, DataType::Date32) if is_length(other) && is_plus => binary(l, cast(r, MICROS)),
        (DataType::Date32, other) if other.is_integer() => cast(binary(days(l), days(r)), DataType::Date32),
        (other, DataType::Date32) if other.is_integer() && is_plus => cast(binary(days(l), days(r)), DataType::Date32),
        (DataType::Date32, DataType::Date32) if !is_plus => cast(binary(days(l), days(r)), DataType::Int32),
        (DataType::Date32, DataType::Timestamp(unit, None)) if !is_plus => {
            binary(cast(l, DataType::Timestamp(*unit, None)), r)
        }
        (DataType::Timestamp(unit, None), DataType::Date32) if !is_plus => {
            binary(l, cast(r, DataType::Timestamp(*unit, None)))
        }
        (DataType::Duration(_), DataType::Interval(_)) => binary(cast(l, INTERVAL), r),
        (DataType::Interval(_), DataType::Duration(_)) => binary(l, cast(r, INTERVAL)),
        (_, other) if door::has_instants(&left) && is_length(other) => call(AS_INSTANT, binary(l, r))?,
        (other, _) if door::has_instants(&right) && is_length(other) && is_plus => call(AS_INSTANT, binary(l, r))?,
        _ => return Ok(PlannerResult::Original(RawBinaryExpr { left: l, right: r, op: written })),
    };
    Ok(PlannerResult::Planned(sum))
}
