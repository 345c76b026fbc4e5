//! Casts and comparisons of times and intervals, once their types are known.
//!
//! - A cast whose stock kernel differs from PostgreSQL becomes a call of [`CAST`] or [`TRY_CAST`].
//! - Times of different units are compared as instants, without a cast that would round or overflow: with a constant,
//!   in the unit of the column, so that scans can prune; otherwise in 128-bit nanoseconds.
//! - Intervals are compared and ordered by their length: `24 hours` is `1 day`.

use super::settled::{any_of, call, is_comparison, of_lengths};
use crate::door::timestamps::unit_nanos;
use crate::functions::scalar_named;
use crate::functions::time_casts::{BYTES_KEY, CAST, INSTANT, LENGTH, ROUNDED_DOWN, ROUNDED_UP, TRY_CAST, is_ours};
use crate::{Error, door};
use datafusion::arrow::datatypes::{DataType, FieldRef, TimeUnit as ArrowUnit};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Between, Case, InList, ScalarFunction, Sort};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan, Operator, TryCast};

/// Rewrites casts of LONG to nanosecond timestamps, and window sort keys.
///
/// The planner inserts a cast to seconds into `x::timestamp_ns`. The planner cannot order intervals, times of day and
/// bytes, so windows are ordered by sortable keys.
pub(crate) fn counted_in_units(plan: LogicalPlan) -> crate::Result<LogicalPlan> {
    let done = plan.transform_up_with_subqueries(|node| {
        let names = NamePreserver::new(&node);
        let mut schema = DFSchema::empty();
        if matches!(node, LogicalPlan::Window(_)) {
            node.inputs().iter().for_each(|input| schema.merge(input.schema()));
        }
        node.map_expressions(|expr| {
            let name = names.save(&expr);
            let done = expr.transform_up(|expr| match expr {
                Expr::WindowFunction(mut window) => {
                    let keys = std::mem::take(&mut window.params.order_by).into_iter();
                    window.params.order_by = keys.map(|key| window_key(key, &schema)).collect::<Result<_>>()?;
                    Ok(Transformed::yes(Expr::WindowFunction(window)))
                }
                expr => Ok(without_seconds(expr)),
            })?;
            Ok(done.update_data(|expr| name.restore(expr)))
        })
    })?;
    Ok(done.data)
}

fn window_key(key: Sort, schema: &DFSchema) -> Result<Sort> {
    let name = match key.expr.get_type(schema) {
        Ok(DataType::Interval(_)) => LENGTH,
        Ok(DataType::Time32(_) | DataType::Time64(_)) => INSTANT,
        Ok(DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_)) => BYTES_KEY,
        _ => return Ok(key),
    };
    Ok(Sort { expr: call(name, key.expr)?, ..key })
}

fn without_seconds(expr: Expr) -> Transformed<Expr> {
    let is_of =
        |field: &FieldRef, unit: ArrowUnit| matches!(field.data_type(), DataType::Timestamp(own, _) if *own == unit);
    match expr {
        Expr::Cast(Cast { expr, field }) if is_of(&field, ArrowUnit::Nanosecond) => match *expr {
            Expr::Cast(Cast { expr, field: seconds }) if is_of(&seconds, ArrowUnit::Second) => {
                Transformed::yes(Expr::Cast(Cast { expr, field }))
            }
            expr => Transformed::no(Expr::Cast(Cast { expr: Box::new(expr), field })),
        },
        other => Transformed::no(other),
    }
}

/// Rewrites comparisons of intervals and of mixed time units, and casts that may fail.
///
/// `None` for all other expressions.
pub(super) fn compared_anew(expr: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    match expr {
        Expr::TryCast(TryCast { expr, field }) => cast_made(expr, field, true, schema),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(*op) => {
            match of_lengths(left, *op, right, schema) {
                Some(compared) => Ok(Some(compared)),
                None => compared(left, *op, right, schema),
            }
        }
        Expr::Between(range) => between(range, schema),
        Expr::InList(list) => in_list(list, schema),
        Expr::Case(choice) => case(choice, schema),
        _ => Ok(None),
    }
}

/// Returns a cast with PostgreSQL's semantics; `None` if the stock kernel has them.
///
/// # Errors
/// Fails if there is no cast between the two types.
pub(super) fn cast_made(inner: &Expr, field: &FieldRef, is_tried: bool, schema: &DFSchema) -> Result<Option<Expr>> {
    let Ok((_, given)) = inner.to_field(schema) else { return Ok(None) };
    let to = field.data_type();
    match is_ours(given.data_type(), to) {
        Some(false) => Ok(None),
        Some(true) => to_type(if is_tried { TRY_CAST } else { CAST }, inner.clone(), to).map(Some),
        None => {
            let (from, to) = (door::type_name(&given), door::type_name(field));
            Err(Error::invalid(format!("cannot cast type {from} to {to}")).into())
        }
    }
}

/// Casts a time or a text to a time type.
pub(super) fn cast_to(expr: Expr, to: &DataType, schema: &DFSchema) -> Result<Expr> {
    if expr.get_type(schema)? == *to { Ok(expr) } else { to_type(CAST, expr, to) }
}

fn to_type(name: &str, inner: Expr, to: &DataType) -> Result<Expr> {
    let function = scalar_named(name).ok_or_else(|| Error::internal(format!("function {name} is missing")))?;
    let null = Expr::Literal(ScalarValue::try_from(to)?, None);
    Ok(Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![inner, null])))
}

/// Returns the argument and the target type of a [`CAST`].
fn uncast(expr: &Expr) -> Option<(&Expr, DataType)> {
    match expr {
        Expr::ScalarFunction(ScalarFunction { func, args }) if func.name() == CAST => match &args[..] {
            [inner, Expr::Literal(null, _)] => Some((inner, null.data_type())),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the time below a cast to a finer unit, else the expression itself.
fn without_widening<'a>(expr: &'a Expr, schema: &DFSchema) -> &'a Expr {
    let Some((inner, to)) = uncast(expr) else { return expr };
    let from = inner.get_type(schema).ok().and_then(|t| unit_nanos(&t));
    match (from, unit_nanos(&to)) {
        (Some(from), Some(to)) if from > to => inner,
        _ => expr,
    }
}

/// Returns the interval or difference of times below a cast to an interval.
pub(super) fn uncast_length(expr: &Expr) -> Option<&Expr> {
    uncast(expr).filter(|(_, to)| matches!(to, DataType::Interval(_))).map(|(inner, _)| inner)
}

fn is_interval(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|t| matches!(t, DataType::Interval(_)))
}

fn has_columns(expr: &Expr) -> bool {
    expr.exists(|e| Ok(matches!(e, Expr::Column(_) | Expr::OuterReferenceColumn(..) | Expr::ScalarSubquery(_))))
        .unwrap_or(true)
        || expr.is_volatile()
}

/// Rewrites a comparison of mixed time units or of intervals; `None` for others.
fn compared(left: &Expr, op: Operator, right: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    if is_interval(left, schema) && is_interval(right, schema) {
        let (left, right) = (call(LENGTH, left.clone())?, call(LENGTH, right.clone())?);
        return Ok(Some(binary(left, op, right)));
    }
    let (own_left, own_right) = (without_widening(left, schema), without_widening(right, schema));
    if std::ptr::eq(own_left, left) && std::ptr::eq(own_right, right) {
        return Ok(None);
    }
    let types = (own_left.get_type(schema)?, own_right.get_type(schema)?);
    if unit_nanos(&types.0).is_none() || unit_nanos(&types.1).is_none() {
        return Ok(None);
    }
    let found = match (has_columns(own_left), has_columns(own_right)) {
        (true, false) => beside_constant(own_left, op, own_right, &types.0, &types.1)?,
        (false, true) => match op.swap() {
            Some(op) => beside_constant(own_right, op, own_left, &types.1, &types.0)?,
            None => None,
        },
        _ => None,
    };
    match found {
        Some(found) => Ok(Some(found)),
        None => Ok(Some(binary(call(INSTANT, own_left.clone())?, op, call(INSTANT, own_right.clone())?))),
    }
}

fn binary(left: Expr, op: Operator, right: Expr) -> Expr {
    Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)))
}

/// Compares in the unit of the side that has columns.
fn beside_constant(
    column: &Expr,
    op: Operator,
    constant: &Expr,
    own: &DataType,
    other: &DataType,
) -> Result<Option<Expr>> {
    if let Expr::Literal(value, _) = constant {
        return beside_literal(column, op, value, own, other);
    }
    let is_exact = unit_nanos(own) <= unit_nanos(other);
    let name = match op {
        Operator::Lt | Operator::GtEq => ROUNDED_UP,
        Operator::LtEq | Operator::Gt => ROUNDED_DOWN,
        // A constant past the range becomes the last time of the range.
        _ if is_exact => ROUNDED_DOWN,
        _ => return Ok(None),
    };
    Ok(Some(binary(column.clone(), op, to_type(name, constant.clone(), own)?)))
}

fn beside_literal(
    column: &Expr,
    op: Operator,
    value: &ScalarValue,
    own: &DataType,
    other: &DataType,
) -> Result<Option<Expr>> {
    if value.is_null() {
        return Ok(Some(binary(column.clone(), op, Expr::Literal(ScalarValue::try_from(own)?, None))));
    }
    let (Some(unit), Some(of_value)) = (unit_nanos(own), unit_nanos(other)) else { return Ok(None) };
    let Ok(ScalarValue::Int64(Some(ticks))) = value.cast_to(&DataType::Int64) else { return Ok(None) };
    let nanos = i128::from(ticks) * i128::from(of_value);
    let (whole, rest) = (nanos.div_euclid(i128::from(unit)), nanos.rem_euclid(i128::from(unit)));
    let literal =
        |ticks: i64| -> Result<Expr> { Ok(Expr::Literal(ScalarValue::Int64(Some(ticks)).cast_to(own)?, None)) };
    let (least, most) =
        if *own == DataType::Date32 { (i64::from(i32::MIN), i64::from(i32::MAX)) } else { (i64::MIN, i64::MAX) };
    // The condition is true, or false, for every value that is not NULL.
    let all = |is_true: bool| -> Result<Expr> {
        Ok(binary(column.clone(), if is_true { Operator::GtEq } else { Operator::Lt }, literal(least)?))
    };
    let truth = |is_true: bool| Expr::Literal(ScalarValue::Boolean(Some(is_true)), None);
    let is_before = whole < i128::from(least);
    let ticks = i64::try_from(whole).ok().filter(|ticks| (least..=most).contains(ticks));
    let (op, ticks) = match (op, ticks) {
        (Operator::Eq, Some(ticks)) if rest == 0 => (op, ticks),
        (Operator::NotEq, Some(ticks)) if rest == 0 => (op, ticks),
        (Operator::IsDistinctFrom | Operator::IsNotDistinctFrom, Some(ticks)) if rest == 0 => (op, ticks),
        (Operator::Eq, _) => return all(false).map(Some),
        (Operator::NotEq, _) => return all(true).map(Some),
        (Operator::IsDistinctFrom, _) => return Ok(Some(truth(true))),
        (Operator::IsNotDistinctFrom, _) => return Ok(Some(truth(false))),
        (Operator::Lt | Operator::LtEq, None) => return all(!is_before).map(Some),
        (Operator::Gt | Operator::GtEq, None) => return all(is_before).map(Some),
        (Operator::Lt, Some(ticks)) if rest > 0 => (Operator::LtEq, ticks),
        (Operator::GtEq, Some(ticks)) if rest > 0 => (Operator::Gt, ticks),
        (Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq, Some(ticks)) => (op, ticks),
        _ => return Ok(None),
    };
    Ok(Some(binary(column.clone(), op, literal(ticks)?)))
}

/// Returns true if an expression needs a rewritten comparison.
fn is_mixed(expr: &Expr, schema: &DFSchema) -> bool {
    is_interval(expr, schema) || !std::ptr::eq(without_widening(expr, schema), expr)
}

/// Rewrites BETWEEN of mixed time units or of intervals as two comparisons.
fn between(between: &Between, schema: &DFSchema) -> Result<Option<Expr>> {
    let Between { expr, negated, low, high } = between;
    if ![expr, low, high].iter().any(|e| is_mixed(e, schema)) {
        return Ok(None);
    }
    let part = |op, bound: &Expr| -> Result<Expr> {
        Ok(compared(expr, op, bound, schema)?.unwrap_or_else(|| binary(expr.as_ref().clone(), op, bound.clone())))
    };
    let both = part(Operator::GtEq, low)?.and(part(Operator::LtEq, high)?);
    Ok(Some(if *negated { Expr::Not(Box::new(both)) } else { both }))
}

/// Rewrites an IN list of mixed time units or of intervals as comparisons.
fn in_list(list: &InList, schema: &DFSchema) -> Result<Option<Expr>> {
    if !is_mixed(&list.expr, schema) && !list.list.iter().any(|e| is_mixed(e, schema)) {
        return Ok(None);
    }
    let any = any_of(list.clone()).transform_up(|expr| match &expr {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
            Ok(compared(left, Operator::Eq, right, schema)?
                .map_or_else(|| Transformed::no(expr.clone()), Transformed::yes))
        }
        _ => Ok(Transformed::no(expr)),
    })?;
    Ok(Some(any.data))
}

/// Rewrites `CASE x WHEN y` of such values as `CASE WHEN x = y`.
fn case(case: &Case, schema: &DFSchema) -> Result<Option<Expr>> {
    let Some(base) = &case.expr else { return Ok(None) };
    if !is_mixed(base, schema) && !case.when_then_expr.iter().any(|(when, _)| is_mixed(when, schema)) {
        return Ok(None);
    }
    let pair = |(when, then): &(Box<Expr>, Box<Expr>)| -> Result<_> {
        let equal = compared(base, Operator::Eq, when, schema)?;
        let equal = equal.unwrap_or_else(|| base.as_ref().clone().eq(when.as_ref().clone()));
        Ok((Box::new(equal), then.clone()))
    };
    let when_then_expr = case.when_then_expr.iter().map(pair).collect::<Result<_>>()?;
    Ok(Some(Expr::Case(Case { expr: None, when_then_expr, else_expr: case.else_expr.clone() })))
}

/// Returns the keys of a join equality, each over the columns of its own side.
pub(super) fn join_keys(pair: (Expr, Expr), left: &DFSchema, right: &DFSchema) -> Result<(Expr, Expr)> {
    if is_interval(&pair.0, left) && is_interval(&pair.1, right) {
        return Ok((call(LENGTH, pair.0)?, call(LENGTH, pair.1)?));
    }
    let own = (without_widening(&pair.0, left), without_widening(&pair.1, right));
    if std::ptr::eq(own.0, &pair.0) && std::ptr::eq(own.1, &pair.1) {
        return Ok(pair);
    }
    Ok((call(INSTANT, own.0.clone())?, call(INSTANT, own.1.clone())?))
}

/// Returns a sort key that orders intervals by length.
pub(super) fn sort_key(key: Sort, schema: &DFSchema) -> Result<Sort> {
    if !is_interval(&key.expr, schema) {
        return Ok(key);
    }
    Ok(Sort { expr: call(LENGTH, key.expr)?, ..key })
}
