//! What is said of a timestamp as plain ranges, which prune: `ts IN '2018;1d'`, `ts IN today()`, BETWEEN in either order,
//! `dateadd` on the side of the column.

use super::literals::typed_text;
use super::settled::settled_expr;
use crate::calendar::{Stride, Unit, interval};
use crate::dialect::{INTERVAL, RANGE};
use crate::{Error, Result};
use chrono::{DateTime, Utc};
use datafusion::arrow::datatypes::{DataType, TimeUnit as ArrowUnit};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result as DFResult, ScalarValue};
use datafusion::logical_expr::expr::{Between, InList, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Volatility, lit};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use tidalite_types::TimeUnit;

/// `now` is the instant the statement began.
pub(crate) fn time_ranges(plan: LogicalPlan, now: DateTime<Utc>) -> Result<LogicalPlan> {
    let done = plan.transform_up_with_subqueries(|node| {
        let mut schema = DFSchema::empty();
        if let LogicalPlan::TableScan(scan) = &node {
            schema = scan.projected_schema.as_ref().clone();
        }
        node.inputs().iter().for_each(|input| schema.merge(input.schema()));
        let names = NamePreserver::new(&node);
        node.map_expressions(|expr| {
            let name = names.save(&expr);
            let done = expr.transform_up(|e| rewritten(e, &schema, now))?;
            Ok(done.update_data(|expr| name.restore(expr)))
        })
    })?;
    Ok(done.data)
}

fn rewritten(expr: Expr, schema: &DFSchema, now: DateTime<Utc>) -> DFResult<Transformed<Expr>> {
    match expr {
        Expr::InList(InList { expr, list, negated }) if list.iter().any(|e| argument(e).is_some()) => {
            let found = match &list[..] {
                [one] => argument(one).map(|given| ranges(&expr, given, schema, now)).transpose()?,
                _ => None,
            };
            let Some(found) = found else { return Err(Error::invalid("IN takes one interval, or a list").into()) };
            Ok(Transformed::yes(if negated { Expr::Not(Box::new(found)) } else { found }))
        }
        Expr::Between(between) if unit_of(&between.expr, schema).is_some() => either_order(between, schema, now),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if op.supports_propagation() => {
            let moved = match moved_dateadd(&left, &right, schema, now)? {
                Some((left, right)) => Some((left, op, right)),
                None => match op.swap() {
                    Some(op) => moved_dateadd(&right, &left, schema, now)?.map(|(l, r)| (l, op, r)),
                    None => None,
                },
            };
            match moved {
                Some((left, op, right)) => {
                    Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)))))
                }
                None => Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right }))),
            }
        }
        other => Ok(Transformed::no(other)),
    }
}

/// What the dialect put into `__interval(…)`.
fn argument(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::ScalarFunction(ScalarFunction { func, args }) if func.name() == INTERVAL => args.first(),
        _ => None,
    }
}

/// Returns true if a call is an interval in quotes without a clock in it, such as `'2018-01;1d'`.
///
/// The function is stable because of texts such as `'$now - 1h'`: an interval is fixed if it is the same at two times
/// that share no part.
pub(crate) fn is_fixed_interval(call: &ScalarFunction) -> bool {
    let [Expr::Literal(ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)), _)] = &call.args[..] else {
        return false;
    };
    // In microseconds: 1970-01-01T00:00:00 and 2027-08-15T13:47:31.5.
    let at = |now| interval::parse(text, now, TimeUnit::Micros);
    call.func.name() == INTERVAL && at(0).is_some() && at(0) == at(1_818_424_051_500_000)
}

fn unit_of(expr: &Expr, schema: &DFSchema) -> Option<TimeUnit> {
    match expr.get_type(schema).ok()? {
        DataType::Timestamp(ArrowUnit::Millisecond, None) => Some(TimeUnit::Millis),
        DataType::Timestamp(ArrowUnit::Microsecond, None) => Some(TimeUnit::Micros),
        DataType::Timestamp(ArrowUnit::Nanosecond, None) => Some(TimeUnit::Nanos),
        _ => None,
    }
}

pub(crate) fn scalar(value: i64, unit: TimeUnit) -> ScalarValue {
    match unit {
        TimeUnit::Millis => ScalarValue::TimestampMillisecond(Some(value), None),
        TimeUnit::Micros => ScalarValue::TimestampMicrosecond(Some(value), None),
        TimeUnit::Nanos => ScalarValue::TimestampNanosecond(Some(value), None),
    }
}

pub(crate) fn ticks(now: DateTime<Utc>, unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Millis => now.timestamp_millis(),
        TimeUnit::Micros => now.timestamp_micros(),
        TimeUnit::Nanos => now.timestamp_nanos_opt().unwrap_or(i64::MAX),
    }
}

fn ranges(expr: &Expr, given: &Expr, schema: &DFSchema, now: DateTime<Utc>) -> Result<Expr> {
    let Some(unit) = unit_of(expr, schema) else {
        return match given {
            Expr::Literal(..) => Ok(expr.clone().eq(given.clone())),
            _ => Err(Error::invalid("only a timestamp can be IN an interval")),
        };
    };
    let (start, now) = (now, ticks(now, unit));
    let found = match given {
        Expr::Literal(ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)), _) => {
            interval::parse(text, now, unit).ok_or_else(|| refused(text))?
        }
        // Described without its value.
        Expr::Placeholder(_) => return Ok(expr.clone().is_not_null()),
        Expr::ScalarFunction(ScalarFunction { func, args }) => match (func.name(), &args[..]) {
            ("today", []) => vec![interval::day(now, 0, unit)],
            ("yesterday", []) => vec![interval::day(now, -1, unit)],
            ("tomorrow", []) => vec![interval::day(now, 1, unit)],
            (RANGE, [low, high]) => {
                let (expr, low, high) = (Box::new(expr.clone()), Box::new(low.clone()), Box::new(high.clone()));
                return Ok(either_order(Between::new(expr, false, low, high), schema, start)?.data);
            }
            _ => return Err(Error::invalid("IN takes an interval such as '2018-01', today() or interval(lo, hi)")),
        },
        _ => return Err(Error::invalid("IN takes an interval in quotes, or a list in parentheses")),
    };
    let range = |(lo, hi): &(i64, i64)| {
        expr.clone().gt_eq(lit(scalar(*lo, unit))).and(expr.clone().lt_eq(lit(scalar(*hi, unit))))
    };
    // NULL is in no interval and not in the complement of one either.
    let nothing = || expr.clone().lt(lit(scalar(i64::MIN, unit)));
    Ok(balanced(&found.iter().map(range).collect::<Vec<_>>()).unwrap_or_else(nothing))
}

/// An OR of all, as flat as can be: every level is a recursion.
fn balanced(of: &[Expr]) -> Option<Expr> {
    match of {
        [] => None,
        [one] => Some(one.clone()),
        many => {
            let (left, right) = many.split_at(many.len() / 2);
            Some(balanced(left)?.or(balanced(right)?))
        }
    }
}

fn refused(text: &str) -> Error {
    let mut error = Error::invalid(format!("invalid interval: \"{text}\""))
        .with_hint("an interval is a date of any precision, then a length, a period and a count: '2018-01;3d;1y;2'");
    error.subject = Some(format!("'{text}"));
    error
}

/// BETWEEN of timestamps takes constant bounds in either order, as in QuestDB.
fn either_order(between: Between, schema: &DFSchema, now: DateTime<Utc>) -> DFResult<Transformed<Expr>> {
    let Between { expr, negated, low, high } = between;
    let (low, high) = (typed_text(&expr, *low, schema)?, typed_text(&expr, *high, schema)?);
    let (low, high) = (folded(low, now), folded(high, now));
    let is_swapped = match (&low, &high) {
        (Expr::Literal(a, _), Expr::Literal(b, _)) => {
            let nanos = |v: &ScalarValue| v.cast_to(&DataType::Timestamp(ArrowUnit::Nanosecond, None)).ok();
            let (a, b) = (nanos(a).unwrap_or_else(|| a.clone()), nanos(b).unwrap_or_else(|| b.clone()));
            Some(a.partial_cmp(&b).is_some_and(std::cmp::Ordering::is_gt))
        }
        _ => None,
    };
    let range = |low: &Expr, high: &Expr| {
        expr.as_ref().clone().gt_eq(low.clone()).and(expr.as_ref().clone().lt_eq(high.clone()))
    };
    let found = match is_swapped {
        Some(false) => range(&low, &high),
        Some(true) => range(&high, &low),
        // Bounds that are columns are taken as they stand, as everywhere else.
        None if !low.column_refs().is_empty() || !high.column_refs().is_empty() => range(&low, &high),
        None => range(&low, &high).or(range(&high, &low)),
    };
    Ok(Transformed::yes(if negated { Expr::Not(Box::new(found)) } else { found }))
}

/// `dateadd('h', 1, ts) > x` is `ts > x - 1h`, for units that are always of one length.
fn moved_dateadd(left: &Expr, right: &Expr, schema: &DFSchema, now: DateTime<Utc>) -> Result<Option<(Expr, Expr)>> {
    let Expr::ScalarFunction(ScalarFunction { func, args }) = left else { return Ok(None) };
    let [Expr::Literal(letter, _), count, inner @ Expr::Column(_)] = &args[..] else { return Ok(None) };
    let (Some(unit), true) = (unit_of(inner, schema), func.name() == "dateadd") else { return Ok(None) };
    let letter = match letter {
        ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)) => Unit::of(text),
        _ => None,
    };
    let Some(length) = letter.filter(|u| u.nanos().is_some()) else { return Ok(None) };
    let Expr::Literal(ScalarValue::Int64(Some(count)), _) = folded(count.clone(), now) else { return Ok(None) };
    let right = folded(typed_text(inner, right.clone(), schema)?, now);
    let Expr::Literal(value, _) = &right else { return Ok(None) };
    let per_tick = 1_000_000_000 / unit.per_second();
    // Lengths finer than the timestamps are rounded there, and values of a finer unit would be here.
    let is_whole = length.nanos().is_some_and(|nanos| (nanos * i128::from(count)) % i128::from(per_tick) == 0);
    let target = DataType::Timestamp(crate::door::arrow_unit(unit), None);
    if !is_whole || value.data_type() != target {
        return Ok(None);
    }
    let Ok(ScalarValue::Int64(Some(ts))) = value.cast_to(&DataType::Int64) else { return Ok(None) };
    let moved = count.checked_neg().and_then(|count| Stride { count, unit: length }.add_to(ts, 1, unit));
    Ok(moved.map(|ts| (inner.clone(), lit(scalar(ts, unit)))))
}

/// The value of an expression without columns; any other as it is.
pub(crate) fn folded(expr: Expr, now: DateTime<Utc>) -> Expr {
    if matches!(expr, Expr::Literal(..)) || !is_constant(&expr) {
        return expr;
    }
    let info = SimplifyContext::builder().with_query_execution_start_time(Some(now)).build();
    let simplifier = ExprSimplifier::new(info);
    let coerced = simplifier.coerce(expr.clone(), &DFSchema::empty());
    match coerced.and_then(|e| simplifier.simplify(settled_expr(e)?)) {
        Ok(Expr::Literal(value, metadata)) => Expr::Literal(value, metadata),
        _ => expr,
    }
}

fn is_constant(expr: &Expr) -> bool {
    !expr
        .exists(|e| {
            Ok(match e {
                Expr::ScalarFunction(f) => f.func.signature().volatility == Volatility::Volatile,
                Expr::Literal(..) | Expr::BinaryExpr(_) | Expr::Cast(_) | Expr::TryCast(_) | Expr::Negative(_) => false,
                _ => true,
            })
        })
        .unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::scalar_named;

    #[test]
    fn intervals_with_a_clock_are_not_fixed() {
        let call = |text: &str| {
            let interval = scalar_named(INTERVAL).expect("the function of intervals");
            ScalarFunction::new_udf(interval, vec![lit(text)])
        };
        for text in ["2018", "2018-01;1d", "2018-01-02T03;1h;1d;2", "[2025-01-01,2025-01-05]"] {
            assert!(is_fixed_interval(&call(text)), "{text}");
        }
        for text in ["$now - 1h..$now", "$today", "$yesterday", "$now", "soon", ""] {
            assert!(!is_fixed_interval(&call(text)), "{text}");
        }
    }
}
