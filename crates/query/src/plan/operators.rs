//! Operators between values that DataFusion has none for: arrays element by element, timestamps and numbers, IPv4
//! addresses in networks, UUIDs and addresses put together with text.
//!
//! `ip << '10.0.0.0/8'` is strictly within, `<<=` (which [`crate::dialect`] writes `<@`) within or the same.

use super::literals::{text_as, with_text};
use super::number_types::{is_real_and_exact, with_common_elements};
use crate::door;
use crate::functions::guarded::array_has_any;
use crate::functions::value_texts::BYTES_TOGETHER;
use crate::functions::{array_operator, bit_shifts, ipv4, json, lengths, scalar_named};
use datafusion::arrow::datatypes::{DataType, IntervalUnit};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawAggregateExpr, RawBinaryExpr, RawWindowExpr};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator, cast, lit};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use tidalite_types::ColumnType;

#[derive(Debug)]
pub(crate) struct Operators;

impl ExprPlanner for Operators {
    fn plan_aggregate(&self, call: RawAggregateExpr) -> Result<PlannerResult<RawAggregateExpr>> {
        Ok(super::calls::aggregate(call)?)
    }

    fn plan_window(&self, call: RawWindowExpr) -> Result<PlannerResult<RawWindowExpr>> {
        Ok(super::calls::window(call)?)
    }

    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        if let Some(moved) = moved_time(&expr, schema) {
            return Ok(PlannerResult::Planned(moved));
        }
        let expr = match super::time_arithmetic::planned(expr, schema)? {
            PlannerResult::Original(expr) => expr,
            planned => return Ok(planned),
        };
        if let Some((name, args)) = of_addresses(&expr, schema)? {
            let Some(function) = scalar_named(name) else { return Ok(PlannerResult::Original(expr)) };
            return Ok(PlannerResult::Planned(Expr::ScalarFunction(ScalarFunction::new_udf(function, args))));
        }
        if let Some(call) = call_of(&expr).or_else(|| shifted(&expr, schema)) {
            return Ok(PlannerResult::Planned(call));
        }
        let expr = with_wide_reals(expr, schema);
        if is_comparison(&expr.op) {
            let RawBinaryExpr { op, left, right } = expr;
            let left = text_as(left, &right, schema)?;
            let right = text_as(right, &left, schema)?;
            return Ok(PlannerResult::Original(RawBinaryExpr { op, left, right }));
        }
        if expr.op == BinaryOperator::StringConcat {
            let (left, right) = (with_text(expr.left, schema)?, with_text(expr.right, schema)?);
            return Ok(PlannerResult::Original(RawBinaryExpr { left, right, ..expr }));
        }
        let expr = match scaled_length(expr, schema)? {
            PlannerResult::Original(expr) => expr,
            planned => return Ok(planned),
        };
        let Some((name, is_swapped)) = function(&expr, schema) else { return Ok(PlannerResult::Original(expr)) };
        let Some(function) = scalar_named(name) else { return Ok(PlannerResult::Original(expr)) };
        let args = if is_swapped { vec![expr.right, expr.left] } else { vec![expr.left, expr.right] };
        Ok(PlannerResult::Planned(Expr::ScalarFunction(ScalarFunction::new_udf(function, args))))
    }
}

/// Types constant texts beside arrays and bytes, before the stock planner of arrays takes any text for an item.
#[derive(Debug)]
pub(crate) struct ArrayTexts;

impl ExprPlanner for ArrayTexts {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let is_list = |side: &Expr| side.get_type(schema).is_ok_and(|t| matches!(t, DataType::List(_)));
        let RawBinaryExpr { op, left, right } = expr;
        match op {
            BinaryOperator::StringConcat => together(RawBinaryExpr { op, left, right }, schema),
            BinaryOperator::AtArrow | BinaryOperator::ArrowAt | BinaryOperator::PGOverlap => {
                let left = if is_list(&right) { text_as(left, &right, schema)? } else { left };
                let right = if is_list(&left) { text_as(right, &left, schema)? } else { right };
                Ok(PlannerResult::Original(RawBinaryExpr { op, left, right }))
            }
            op => Ok(PlannerResult::Original(RawBinaryExpr { op, left, right })),
        }
    }
}

fn is_comparison(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq, Spaceship};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | Spaceship)
}

/// Plans `||` beside arrays and bytes, where a constant text and NULL are of the type of the other operand.
fn together(expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
    let is_null = |side: &Expr| matches!(side, Expr::Literal(value, _) if value.data_type().is_null());
    let is_list = |side: &Expr| side.get_type(schema).is_ok_and(|t| matches!(t, DataType::List(_)));
    let are_bytes =
        |side: &Expr| side.get_type(schema).is_ok_and(|t| matches!(t, DataType::Binary | DataType::BinaryView));
    if is_list(&expr.left) && is_null(&expr.right) {
        return Ok(PlannerResult::Planned(expr.left));
    }
    if is_list(&expr.right) && is_null(&expr.left) {
        return Ok(PlannerResult::Planned(expr.right));
    }
    let RawBinaryExpr { op, left, right } = expr;
    let (left, right) = with_common_elements(left, right, schema)?;
    let is_typed = |side: &Expr| is_list(side) || are_bytes(side);
    let (left, right) = match (is_typed(&left), is_typed(&right)) {
        (false, true) => (text_as(left, &right, schema)?, right),
        (true, false) => {
            let right = text_as(right, &left, schema)?;
            (left, right)
        }
        _ => (left, right),
    };
    match scalar_named(BYTES_TOGETHER) {
        Some(function) if are_bytes(&left) && are_bytes(&right) => {
            let call = ScalarFunction::new_udf(function, vec![left, right]);
            Ok(PlannerResult::Planned(Expr::ScalarFunction(call)))
        }
        _ => Ok(PlannerResult::Original(RawBinaryExpr { op, left, right })),
    }
}

/// Plans PostgreSQL's `text ^@ prefix` and `array && array`.
fn call_of(expr: &RawBinaryExpr) -> Option<Expr> {
    let (left, right) = (expr.left.clone(), expr.right.clone());
    match expr.op {
        BinaryOperator::PGStartsWith => Some(datafusion::functions::string::expr_fn::starts_with(left, right)),
        BinaryOperator::PGOverlap => Some(array_has_any(left, right)),
        _ => None,
    }
}

/// Plans `integer << count` and `integer >> count`.
fn shifted(expr: &RawBinaryExpr, schema: &DFSchema) -> Option<Expr> {
    let name = match expr.op {
        BinaryOperator::PGBitwiseShiftLeft => bit_shifts::LEFT,
        BinaryOperator::PGBitwiseShiftRight => bit_shifts::RIGHT,
        _ => return None,
    };
    let is_integer = |e: &Expr| e.get_type(schema).is_ok_and(|t| t.is_signed_integer());
    let function = scalar_named(name).filter(|_| is_integer(&expr.left) && is_integer(&expr.right))?;
    let args = vec![expr.left.clone(), expr.right.clone()];
    Some(Expr::ScalarFunction(ScalarFunction::new_udf(function, args)))
}

/// Casts the operands of a calculation to DOUBLE if one is a REAL and the other an integer or a DECIMAL.
fn with_wide_reals(expr: RawBinaryExpr, schema: &DFSchema) -> RawBinaryExpr {
    use BinaryOperator::{Divide, Minus, Modulo, Multiply, Plus};
    if !matches!(expr.op, Plus | Minus | Multiply | Divide | Modulo) {
        return expr;
    }
    let (Ok(left), Ok(right)) = (expr.left.get_type(schema), expr.right.get_type(schema)) else { return expr };
    if !is_real_and_exact(&left, &right) {
        return expr;
    }
    let wide = |e: Expr| cast(e, DataType::Float64);
    RawBinaryExpr { left: wide(expr.left), right: wide(expr.right), op: expr.op }
}

/// `ts + 1000000`: a timestamp moved by so many of its units.
fn moved_time(expr: &RawBinaryExpr, schema: &DFSchema) -> Option<Expr> {
    let op = match expr.op {
        BinaryOperator::Plus => Operator::Plus,
        BinaryOperator::Minus => Operator::Minus,
        _ => return None,
    };
    let (left, right) = (expr.left.get_type(schema).ok()?, expr.right.get_type(schema).ok()?);
    let is_time = |t: &DataType| matches!(t, DataType::Timestamp(_, None));
    let (time, time_type, ticks) = if is_time(&left) && right.is_integer() {
        (&expr.left, left, &expr.right)
    } else if is_time(&right) && left.is_integer() && op == Operator::Plus {
        (&expr.right, right, &expr.left)
    } else {
        return None;
    };
    let long = |e: &Expr| cast(e.clone(), DataType::Int64);
    let sum = Expr::BinaryExpr(BinaryExpr::new(Box::new(long(time)), op, Box::new(long(ticks))));
    Some(cast(sum, time_type))
}

/// `interval '1 day' * 3`, `3 * interval '1 day'` and `interval '1 day' / 2`.
fn scaled_length(expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
    let is_length =
        |e: &Expr| e.get_type(schema).is_ok_and(|t| matches!(t, DataType::Interval(_) | DataType::Duration(_)));
    let is_number = |e: &Expr| e.get_type(schema).is_ok_and(|t| t.is_numeric());
    let length = |e: &Expr| match e.get_type(schema) {
        // The difference of two times has days and hours.
        Ok(DataType::Duration(_)) => cast(e.clone(), DataType::Interval(IntervalUnit::MonthDayNano)),
        _ => e.clone(),
    };
    let (name, args) = match expr.op {
        BinaryOperator::Multiply if is_length(&expr.left) && is_number(&expr.right) => {
            (lengths::TIMES, vec![length(&expr.left), expr.right.clone()])
        }
        BinaryOperator::Multiply if is_length(&expr.right) && is_number(&expr.left) => {
            (lengths::TIMES, vec![length(&expr.right), expr.left.clone()])
        }
        BinaryOperator::Divide if is_length(&expr.left) && is_number(&expr.right) => {
            (lengths::DIVIDED, vec![length(&expr.left), expr.right.clone()])
        }
        _ => return Ok(PlannerResult::Original(expr)),
    };
    let Some(function) = scalar_named(name) else { return Ok(PlannerResult::Original(expr)) };
    Ok(PlannerResult::Planned(Expr::ScalarFunction(ScalarFunction::new_udf(function, args))))
}

/// Plans arithmetic of IPv4 addresses, and the distance of two addresses.
fn of_addresses(expr: &RawBinaryExpr, schema: &DFSchema) -> Result<Option<(&'static str, Vec<Expr>)>> {
    let kind = |e: &Expr| e.to_field(schema).map(|(_, field)| (door::column_type(&field), field.data_type().clone()));
    let (Ok((left, left_type)), Ok((right, right_type))) = (kind(&expr.left), kind(&expr.right)) else {
        return Ok(None);
    };
    let is_address = |t: Option<ColumnType>| t == Some(ColumnType::Ipv4);
    if !is_address(left) && !is_address(right) {
        return Ok(None);
    }
    let is_number = |t: Option<ColumnType>, own: &DataType| !is_address(t) && own.is_integer();
    let (l, r) = (|| expr.left.clone(), || expr.right.clone());
    let (from_left, from_right) = (is_number(right, &right_type), is_number(left, &left_type));
    Ok(match expr.op {
        BinaryOperator::Plus if from_left => Some((ipv4::PLUS, vec![l(), r()])),
        BinaryOperator::Plus if from_right => Some((ipv4::PLUS, vec![r(), l()])),
        BinaryOperator::Minus if from_left => Some((ipv4::MINUS, vec![l(), r()])),
        // All bits of -1 are set: the planner writes `~ip` as `-1 - ip`.
        BinaryOperator::Minus if from_right && expr.left == lit(-1_i64) => Some((ipv4::NOT, vec![r()])),
        BinaryOperator::Minus if from_right => {
            return Err(crate::Error::invalid("an address cannot be subtracted from a number").into());
        }
        BinaryOperator::Minus => Some((ipv4::DISTANCE, vec![l(), r()])),
        BinaryOperator::BitwiseAnd => Some((ipv4::AND, vec![l(), r()])),
        BinaryOperator::BitwiseOr => Some((ipv4::OR, vec![l(), r()])),
        BinaryOperator::BitwiseXor | BinaryOperator::PGBitwiseXor => Some((ipv4::XOR, vec![l(), r()])),
        _ => None,
    })
}

/// The function that an operator is, and whether its arguments change places.
fn function(expr: &RawBinaryExpr, schema: &DFSchema) -> Option<(&'static str, bool)> {
    let sign = match expr.op {
        BinaryOperator::Plus => "+",
        BinaryOperator::Minus => "-",
        BinaryOperator::Multiply => "*",
        BinaryOperator::Divide => "/",
        BinaryOperator::PGBitwiseShiftLeft => "<<",
        BinaryOperator::PGBitwiseShiftRight => ">>",
        BinaryOperator::ArrowAt => "<@",
        BinaryOperator::AtArrow => "@>",
        _ => return None,
    };
    let (left, right) = (expr.left.to_field(schema).ok()?.1, expr.right.to_field(schema).ok()?.1);
    if let Some(name) = array_operator(sign) {
        let is_list =
            |t: &DataType| matches!(t, DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..));
        return (is_list(left.data_type()) || is_list(right.data_type())).then_some((name, false));
    }
    let is_json = |field: &datafusion::arrow::datatypes::Field| {
        matches!(door::column_type(field), Some(ColumnType::Json | ColumnType::Jsonb))
    };
    if matches!(sign, "<@" | "@>") && (is_json(&left) || is_json(&right)) {
        return Some((json::CONTAINS, sign == "<@"));
    }
    let is_address = |field: &datafusion::arrow::datatypes::Field| {
        door::column_type(field) == Some(ColumnType::Ipv4)
            || matches!(field.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
    };
    if !is_address(&left) || !is_address(&right) {
        return None;
    }
    match sign {
        "<<" => Some((ipv4::CONTAINS, true)),
        ">>" => Some((ipv4::CONTAINS, false)),
        "<@" => Some((ipv4::CONTAINS_OR_IS, true)),
        _ => Some((ipv4::CONTAINS_OR_IS, false)),
    }
}
