//! Number literals beside decimals: `price = 0.07` compares with exactly 0.07.
//!
//! The planner reads a number with a point as DOUBLE. Beside a decimal (operand, IN, BETWEEN, CASE, function argument),
//! the literal is taken by its digits instead: the shortest text of the double is the literal as written, up to 17
//! digits, and longer literals are casts of texts. A constant compared with a decimal gets the decimal's own type, so
//! that scans can prune and filter by it. Arithmetic of decimals becomes calls of [`decimal_arithmetic`]. Constant `+`,
//! `-` and `*` are exact: `0.1 + 0.2` is 0.3. A decimal beside a column of doubles becomes a double
//! ([`super::number_types`]).

use super::nullif;
use super::number_types::{
    self, Side, as_double, constant_number, is_decimal, is_fraction, is_real_and_integer, number_as, side,
    with_double_elements, with_doubles,
};
use crate::decimal::{self, Decimal, decimal_type};
use crate::functions::decimal_arithmetic;
use crate::{Error, Result};
use datafusion::arrow::datatypes::{DataType, FieldRef, i256};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result as DFResult, ScalarValue};
use datafusion::logical_expr::binary::type_union_coercion;
use datafusion::logical_expr::expr::{Between, Case, InList, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, ScalarUDF, cast, lit,
};

/// The function of `ARRAY[…]`.
const MAKE_ARRAY: &str = "make_array";

pub(crate) fn exact_numbers(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut is_retyped = false;
    let done = plan.transform_up_with_subqueries(|node| {
        let mut schema = DFSchema::empty();
        if let LogicalPlan::TableScan(scan) = &node {
            schema = scan.projected_schema.as_ref().clone();
        }
        node.inputs().iter().for_each(|input| schema.merge(input.schema()));
        let names = NamePreserver::new(&node);
        let mapped = node.map_expressions(|expr| {
            let name = names.save(&expr);
            let done = expr.transform_up(|e| exact(e, &schema))?;
            is_retyped |= done.transformed;
            Ok(done.update_data(|expr| name.restore(expr)))
        })?;
        // Values may have other types now than the schemas of the nodes above.
        match mapped {
            // Workaround for DataFusion 55 (DF-76): `recompute_schema` leaves the types of VALUES and UNION as they are.
            Transformed { data: LogicalPlan::Values(values), transformed: true, .. } => {
                Ok(Transformed::yes(LogicalPlanBuilder::values(values.values)?.build()?))
            }
            Transformed { data: LogicalPlan::Union(union), transformed, .. } => {
                match number_types::typed_union(&union)? {
                    Some(typed) => {
                        is_retyped = true;
                        Ok(Transformed::yes(typed))
                    }
                    None => Ok(Transformed {
                        data: LogicalPlan::Union(union),
                        transformed,
                        tnr: TreeNodeRecursion::Continue,
                    }),
                }
            }
            mapped if is_retyped => mapped.map_data(LogicalPlan::recompute_schema),
            mapped => Ok(mapped),
        }
    })?;
    Ok(done.data)
}

/// Returns an expression over columns of `schema` with exact numbers.
pub(crate) fn exact_expr(expr: Expr, schema: &DFSchema) -> DFResult<Expr> {
    Ok(expr.transform_up(|e| exact(e, schema))?.data)
}

fn exact(expr: Expr, schema: &DFSchema) -> DFResult<Transformed<Expr>> {
    let done = match &expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(*op) => compared(left, *op, right, schema)?,
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => calculated(left, *op, right, schema)?,
        Expr::Negative(inner) => match inner.as_ref() {
            Expr::Literal(ScalarValue::Float64(Some(value)), _) => Some(lit(-value)),
            Expr::Literal(value, _) if value.data_type().is_decimal() => {
                Some(Expr::Literal(value.arithmetic_negate()?, None))
            }
            _ => None,
        },
        Expr::Cast(Cast { expr: inner, field }) => constant_cast(inner, field),
        Expr::Between(between) => ranged(between, schema)?,
        Expr::InList(list) => listed(list, schema)?,
        Expr::Case(case) => chosen(case, schema)?,
        Expr::ScalarFunction(function) => called(function, schema)?,
        Expr::WindowFunction(window) => match with_decimals(&window.params.args, schema) {
            Some(args) => {
                let mut window = window.clone();
                window.params.args = args;
                Some(Expr::WindowFunction(window))
            }
            None => None,
        },
        _ => None,
    };
    Ok(done.map_or_else(|| Transformed::no(expr), Transformed::yes))
}

/// Rewrites a call whose arguments are numbers of several types.
fn called(function: &ScalarFunction, schema: &DFSchema) -> DFResult<Option<Expr>> {
    let unlike = nullif::arguments(function).filter(|(first, second)| is_real_and_integer(first, second, schema));
    if let Some((first, second)) = unlike {
        return nullif::case(first, as_doubles(first, Operator::Eq, second, schema), schema).map(Some);
    }
    let args = with_doubles(&function.args, schema)
        .filter(|_| has_one_type(&function.func))
        .or_else(|| with_double_elements(&function.args, schema))
        .or_else(|| with_decimals(&function.args, schema))
        .or_else(|| super::real_functions::with_wide_reals(function, schema));
    Ok(args.map(|args| {
        let mut function = function.clone();
        function.args = args;
        Expr::ScalarFunction(function)
    }))
}

fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

/// Folds `CAST('0.07' AS decimal)` to a constant; an invalid text stays, and its cast fails.
fn constant_cast(inner: &Expr, field: &FieldRef) -> Option<Expr> {
    let to = field.data_type();
    if let DataType::List(item) = to {
        let array = array_of_constants(inner, item)?;
        return Some(Expr::Cast(Cast::new_from_field(Box::new(array), field.clone())));
    }
    if to.is_signed_integer() {
        return whole_constant(inner, to);
    }
    let (precision, scale) = decimal_type(to)?;
    let Expr::Literal(value, _) = inner else { return None };
    let number = match value {
        ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)) | ScalarValue::LargeUtf8(Some(text)) => {
            Decimal::parse(text)?
        }
        other => Decimal::from_scalar(other)?,
    };
    let digits = number.rescaled(scale.into())?.nearest;
    let constant = typed(digits, precision, scale)?;
    (constant.data_type() == *to).then_some(Expr::Literal(constant, None))
}

/// Returns `ARRAY[2.5, x]` as an array of `item`, whose literals are folded as single literals are.
fn array_of_constants(array: &Expr, item: &FieldRef) -> Option<Expr> {
    let Expr::ScalarFunction(function) = array else { return None };
    if function.name() != MAKE_ARRAY {
        return None;
    }
    let folded: Vec<Option<Expr>> = function.args.iter().map(|arg| constant_cast(arg, item)).collect();
    if folded.iter().all(Option::is_none) {
        return None;
    }
    let plain = |arg: Expr| Expr::Cast(Cast::new_from_field(Box::new(arg), item.clone()));
    let args = std::iter::zip(&function.args, folded).map(|(arg, folded)| folded.unwrap_or_else(|| plain(arg.clone())));
    let mut function = function.clone();
    function.args = args.collect();
    Some(Expr::ScalarFunction(function))
}

/// Folds `CAST(2.5 AS INT)`: a literal is rounded like a decimal, halves away from zero.
fn whole_constant(inner: &Expr, to: &DataType) -> Option<Expr> {
    let Expr::Literal(value, _) = inner else { return None };
    if !value.data_type().is_floating() && !value.data_type().is_decimal() {
        return None;
    }
    let whole = Decimal::from_scalar(value)?.rescaled(0)?.nearest.to_i128()?;
    let whole = ScalarValue::Int64(Some(i64::try_from(whole).ok()?)).cast_to(to).ok()?;
    (!whole.is_null()).then_some(Expr::Literal(whole, None))
}

/// Returns digits as a constant of a decimal type; `None` when they do not fit.
fn typed(digits: i256, precision: u8, scale: i8) -> Option<ScalarValue> {
    if !decimal::fits(digits, precision) {
        return None;
    }
    match precision {
        ..=decimal::DIGITS => Some(ScalarValue::Decimal128(Some(digits.to_i128()?), precision, scale)),
        _ => Some(ScalarValue::Decimal256(Some(digits), precision, scale)),
    }
}

fn constant(number: Decimal) -> Option<Expr> {
    Some(Expr::Literal(number.constant()?, None))
}

fn calculated(left: &Expr, op: Operator, right: &Expr, schema: &DFSchema) -> DFResult<Option<Expr>> {
    let (a, b) = match (side(left, schema), side(right, schema)) {
        (Side::Constant(a), Side::Constant(b)) => return Ok(folded((left, a), op, (right, b))),
        (Side::Decimal(_), Side::Decimal(_) | Side::Integer(_)) | (Side::Integer(_), Side::Decimal(_)) => {
            (left.clone(), right.clone())
        }
        (Side::Decimal(_), Side::Constant(number)) => (left.clone(), operand(right, number)),
        (Side::Constant(number), Side::Decimal(_)) => (operand(left, number), right.clone()),
        _ => return Ok(None),
    };
    Ok(decimal_arithmetic::call(a, op, b))
}

/// Returns the operand of a calculation: a literal of a decimal type keeps its type, another number gets its digits.
fn operand(expr: &Expr, number: Decimal) -> Expr {
    match expr {
        Expr::Literal(value, _) if value.data_type().is_decimal() => expr.clone(),
        _ => constant(number).unwrap_or_else(|| expr.clone()),
    }
}

/// Folds two constants, at least one not an integer, if the result is a constant of the same kind.
fn folded((left, a): (&Expr, Decimal), op: Operator, (right, b): (&Expr, Decimal)) -> Option<Expr> {
    let data_type = |expr: &Expr| match expr {
        Expr::Literal(value, _) => value.data_type(),
        _ => DataType::Null,
    };
    let (of_a, of_b) = (data_type(left), data_type(right));
    if of_a.is_integer() && of_b.is_integer() {
        return None;
    }
    if of_a.is_decimal() || of_b.is_decimal() {
        return decimal_arithmetic::call(operand(left, a), op, operand(right, b));
    }
    let scale = a.scale.max(b.scale).max(0);
    let at_scale = |number: Decimal| Some(number.rescaled(scale)?.floor);
    let number = match op {
        Operator::Plus => Decimal { digits: at_scale(a)?.checked_add(at_scale(b)?)?, scale },
        Operator::Minus => Decimal { digits: at_scale(a)?.checked_sub(at_scale(b)?)?, scale },
        Operator::Multiply => Decimal { digits: a.digits.checked_mul(b.digits)?, scale: a.scale + b.scale },
        _ => return None,
    };
    let value = number.to_double();
    let is_exact = Decimal::from_double(value)?.compare(number)? == std::cmp::Ordering::Equal;
    is_exact.then(|| lit(value))
}

fn compared(left: &Expr, op: Operator, right: &Expr, schema: &DFSchema) -> DFResult<Option<Expr>> {
    if is_real_and_integer(left, right, schema) {
        return Ok(Some(as_doubles(left, op, right, schema)));
    }
    let (a, b) = (side(left, schema), side(right, schema));
    if let (Side::Decimal(of), Some(number)) = (&a, constant_number(right))
        && is_kept_by_doubles(of)
    {
        return Ok(with_constant(left, of, op, number));
    }
    if let (Some(number), Side::Decimal(of), Some(op)) = (constant_number(left), &b, op.swap())
        && is_kept_by_doubles(of)
    {
        return Ok(with_constant(right, of, op, number));
    }
    Ok(match (a, b) {
        (Side::Decimal(_), Side::Double) | (Side::Double, Side::Decimal(_)) => {
            Some(as_doubles(left, op, right, schema))
        }
        (Side::Double, Side::Constant(_)) if is_decimal(right, schema) => Some(as_doubles(left, op, right, schema)),
        (Side::Constant(_), Side::Double) if is_decimal(left, schema) => Some(as_doubles(left, op, right, schema)),
        (Side::Decimal(of), Side::Constant(number)) => with_constant(left, &of, op, number),
        (Side::Constant(number), Side::Decimal(of)) => match op.swap().or_else(|| is_symmetric(op).then_some(op)) {
            Some(op) => with_constant(right, &of, op, number),
            None => None,
        },
        (Side::Decimal(of), Side::Other) => match text(right) {
            Some(text) => with_constant(left, &of, op, number_of(text, &of)?),
            None => None,
        },
        (Side::Other, Side::Decimal(of)) => match (text(left), op.swap().or_else(|| is_symmetric(op).then_some(op))) {
            (Some(text), Some(op)) => with_constant(right, &of, op, number_of(text, &of)?),
            _ => None,
        },
        (Side::Decimal(a), Side::Decimal(b)) if a != b => widened(left, op, right, &[a, b]),
        (Side::Decimal(a), Side::Integer(precision)) | (Side::Integer(precision), Side::Decimal(a)) => {
            widened(left, op, right, &[a, DataType::Decimal128(precision, 0)])
        }
        _ => None,
    })
}

/// Returns true if doubles keep all values of a decimal type: their comparison with a double is the comparison with the
/// shortest decimal of it, which scans can prune and filter by.
fn is_kept_by_doubles(of: &DataType) -> bool {
    decimal_type(of).is_some_and(|(precision, scale)| u32::from(precision) <= f64::DIGITS && scale >= 0)
}

fn as_doubles(left: &Expr, op: Operator, right: &Expr, schema: &DFSchema) -> Expr {
    let (left, right) = (as_double(left, schema), as_double(right, schema));
    Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)))
}

fn is_symmetric(op: Operator) -> bool {
    matches!(op, Operator::IsDistinctFrom | Operator::IsNotDistinctFrom)
}

fn text(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Literal(
            ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)) | ScalarValue::LargeUtf8(Some(text)),
            _,
        ) => Some(text),
        _ => None,
    }
}

/// Parses the number of a string literal beside a decimal.
fn number_of(text: &str, of: &DataType) -> DFResult<Decimal> {
    let (precision, scale) = decimal_type(of).unwrap_or((decimal::DIGITS, 0));
    Decimal::parse(text).ok_or_else(|| {
        let shown = text.chars().take(100).collect::<String>();
        Error::invalid_text(&format!("DECIMAL({precision},{scale})"), &shown).about(format!("'{text}")).into()
    })
}

/// Compares a decimal with a number through a constant of the decimal's own type.
fn with_constant(of: &Expr, data_type: &DataType, op: Operator, number: Decimal) -> Option<Expr> {
    let (precision, scale) = decimal_type(data_type)?;
    let most = decimal::power(precision.into())?.wrapping_sub(i256::ONE);
    // Numbers of more than 256 bits are out of range, too.
    let at = number.rescaled(scale.into());
    let (digits, is_exact, is_below) = match at {
        Some(at) if at.floor > most => (most, false, false),
        Some(at) if at.floor < -most => (-most, false, true),
        Some(at) => (at.floor, at.is_exact, false),
        None if number.digits.is_negative() => (-most, false, true),
        None => (most, false, false),
    };
    let constant = Expr::Literal(typed(digits, precision, scale)?, None);
    let compared = |op| Expr::BinaryExpr(BinaryExpr::new(Box::new(of.clone()), op, Box::new(constant)));
    let null = || Expr::Literal(ScalarValue::Boolean(None), None);
    if is_exact {
        return Some(compared(op));
    }
    // The number lies between `digits` and the next value of the type, or below all values.
    Some(match op {
        Operator::Lt | Operator::LtEq if is_below => compared(Operator::Lt),
        Operator::Gt | Operator::GtEq if is_below => compared(Operator::GtEq),
        Operator::Lt | Operator::LtEq => compared(Operator::LtEq),
        Operator::Gt | Operator::GtEq => compared(Operator::Gt),
        Operator::Eq => of.clone().is_null().and(null()),
        Operator::NotEq => of.clone().is_not_null().or(null()),
        Operator::IsDistinctFrom => lit(true),
        Operator::IsNotDistinctFrom => lit(false),
        _ => return None,
    })
}

/// Casts both sides to a decimal wide enough for either, if 38 digits are too few.
fn widened(left: &Expr, op: Operator, right: &Expr, types: &[DataType]) -> Option<Expr> {
    let common = common(types)?;
    matches!(common, DataType::Decimal256(..)).then(|| {
        let (left, right) = (cast(left.clone(), common.clone()), cast(right.clone(), common));
        Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)))
    })
}

fn common(types: &[DataType]) -> Option<DataType> {
    let types: Vec<_> = types.iter().map(decimal_type).collect::<Option<_>>()?;
    let whole = types.iter().map(|(p, s)| i32::from(*p) - i32::from(*s)).max()?;
    let scale = types.iter().map(|(_, s)| i32::from(*s)).max()?;
    Some(decimal::arrow_decimal(whole + scale, scale))
}

/// Returns true if a value is compared with others of which one is a decimal, or is a REAL or integer unlike the value.
fn has_mixed_numbers<'e>(value: &Expr, mut others: impl Iterator<Item = &'e Expr>, schema: &DFSchema) -> bool {
    let is_mixed = |other: &Expr| is_decimal(other, schema) || is_real_and_integer(value, other, schema);
    is_decimal(value, schema) || others.any(is_mixed)
}

/// Casts all numbers to DOUBLE if the first is compared with the others as DOUBLE; otherwise `None`.
fn with_compared_doubles(values: &[Expr], schema: &DFSchema) -> Option<Vec<Expr>> {
    let (value, others) = values.split_first()?;
    with_doubles(values, schema).or_else(|| {
        let is_mixed = others.iter().any(|other| is_real_and_integer(value, other, schema));
        is_mixed.then(|| values.iter().map(|value| as_double(value, schema)).collect())
    })
}

/// Rewrites BETWEEN with numbers of several types as two comparisons.
fn ranged(between: &Between, schema: &DFSchema) -> DFResult<Option<Expr>> {
    let Between { expr, negated, low, high } = between;
    if !has_mixed_numbers(expr, [low.as_ref(), high.as_ref()].into_iter(), schema) {
        return Ok(None);
    }
    if expr.is_volatile() {
        let parts = [expr.as_ref().clone(), low.as_ref().clone(), high.as_ref().clone()];
        let parts = with_compared_doubles(&parts, schema);
        let Some(Ok([expr, low, high])) = parts.map(<[Expr; 3]>::try_from) else { return Ok(None) };
        return Ok(Some(Expr::Between(Between::new(Box::new(expr), *negated, Box::new(low), Box::new(high)))));
    }
    let one = |op, bound: &Expr| -> DFResult<Expr> {
        let plain = || Expr::BinaryExpr(BinaryExpr::new(expr.clone(), op, Box::new(bound.clone())));
        Ok(compared(expr, op, bound, schema)?.unwrap_or_else(plain))
    };
    let within = one(Operator::GtEq, low)?.and(one(Operator::LtEq, high)?);
    Ok(Some(if *negated { Expr::Not(Box::new(within)) } else { within }))
}

/// Rewrites IN with numbers of several types.
///
/// As in PostgreSQL, the value and the items without columns have one type; an item with a column is compared alone.
fn listed(list: &InList, schema: &DFSchema) -> DFResult<Option<Expr>> {
    let InList { expr, list: items, negated } = list;
    if !has_mixed_numbers(expr, items.iter(), schema) {
        return Ok(None);
    }
    let is_alone = |item: &&Expr| item.any_column_refs() && !expr.is_volatile();
    let (alone, together): (Vec<&Expr>, Vec<&Expr>) = items.iter().partition(is_alone);
    let mut group = vec![expr.as_ref().clone()];
    group.extend(together.iter().map(|item| (*item).clone()));
    let has_decimals = group.iter().any(|part| is_decimal(part, schema));
    let typed = match together.len() > 1 || expr.is_volatile() {
        // Several integers are of the type REAL beside a REAL.
        true if !has_decimals && together.len() > 1 => Some(group),
        true => with_compared_doubles(&group, schema),
        false => None,
    };
    let (mut found, alone) = match typed {
        Some(mut typed) => {
            let value = typed.remove(0);
            (vec![value.in_list(typed, false)], alone)
        }
        None if expr.is_volatile() => return Ok(None),
        None => (Vec::new(), items.iter().collect()),
    };
    let (mut constants, mut others): (Vec<Expr>, Vec<Expr>) = (Vec::new(), Vec::new());
    for item in alone {
        let compared = compared(expr, Operator::Eq, item, schema)?;
        match compared {
            Some(Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }))
                if left == *expr && matches!(*right, Expr::Literal(..)) =>
            {
                constants.push(*right);
            }
            Some(other) => others.push(other),
            None => others.push(expr.as_ref().clone().eq(item.clone())),
        }
    }
    found.extend((!constants.is_empty()).then(|| expr.as_ref().clone().in_list(constants, false)));
    let any = found.into_iter().chain(others).reduce(Expr::or);
    Ok(any.map(|any| if *negated { Expr::Not(Box::new(any)) } else { any }))
}

/// Returns true if a function converts a double and a decimal to the same decimal type.
fn has_one_type(function: &ScalarUDF) -> bool {
    let types = function.coerce_types(&[DataType::Float64, DataType::Decimal128(12, 3)]);
    types.is_ok_and(|types| types.iter().all(DataType::is_decimal))
}

/// Converts numbers among decimals, in CASE results or call arguments; `None` where nothing changes.
fn with_decimals(values: &[Expr], schema: &DFSchema) -> Option<Vec<Expr>> {
    let sides: Vec<Side> = values.iter().map(|value| side(value, schema)).collect();
    let has_decimals = values.iter().any(|value| is_decimal(value, schema));
    let is_double = |value: &Expr| matches!(value, Expr::Literal(ScalarValue::Float64(Some(_)), _));
    if !has_decimals || !values.iter().any(is_double) {
        return None;
    }
    let exact = values.iter().zip(sides).map(|(value, side)| match side {
        Side::Constant(number) if is_double(value) => constant(number).unwrap_or_else(|| value.clone()),
        _ => value.clone(),
    });
    Some(exact.collect())
}

/// Casts two numbers to their common type, if that is DECIMAL or DOUBLE; otherwise `None`.
///
/// An integer literal as the second number takes the type of the first.
pub(crate) fn with_common_fractions(values: [&Expr; 2], schema: &DFSchema) -> DFResult<Option<Vec<Expr>>> {
    let values = values.map(Expr::clone);
    let exact = with_doubles(&values, schema).or_else(|| with_decimals(&values, schema));
    let is_exact = exact.is_some();
    let values = exact.unwrap_or_else(|| values.to_vec());
    let types = values.iter().map(|value| value.get_type(schema)).collect::<DFResult<Vec<_>>>()?;
    let is_integer = |value: &Expr| matches!(value, Expr::Literal(value, _) if value.data_type().is_integer());
    let ([own, other], [_, second]) = (&types[..], &values[..]) else { return Ok(None) };
    if own == other {
        return Ok(is_exact.then_some(values));
    }
    if !own.is_numeric() || !other.is_numeric() || is_integer(second) {
        return Ok(None);
    }
    match type_union_coercion(own, other).filter(is_fraction) {
        Some(common) => values.iter().map(|value| number_as(value, &common, schema)).collect::<DFResult<_>>().map(Some),
        None => Ok(None),
    }
}

fn chosen(case: &Case, schema: &DFSchema) -> DFResult<Option<Expr>> {
    let parts = case.when_then_expr.iter().flat_map(|(when, then)| [when, then]);
    let mut parts = case.expr.iter().chain(parts).chain(&case.else_expr);
    if !parts.any(|part| part.get_type(schema).is_ok_and(|data_type| is_fraction(&data_type))) {
        return Ok(None);
    }
    let mut done = case.clone();
    let mut is_changed = false;
    if let Some(base) = &case.expr {
        let whens = case.when_then_expr.iter().map(|(when, _)| when.as_ref());
        let parts: Vec<Expr> = std::iter::once(base.as_ref()).chain(whens).cloned().collect();
        if has_mixed_numbers(base, parts[1..].iter(), schema) && !base.is_volatile() {
            for (when, _) in &mut done.when_then_expr {
                let plain = || base.as_ref().clone().eq(when.as_ref().clone());
                **when = compared(base, Operator::Eq, when, schema)?.unwrap_or_else(plain);
            }
            done.expr = None;
            is_changed = true;
        } else if let Some(doubles) = with_compared_doubles(&parts, schema) {
            let own = done.expr.iter_mut().chain(done.when_then_expr.iter_mut().map(|(when, _)| when));
            own.zip(doubles).for_each(|(part, double)| **part = double);
            is_changed = true;
        }
    }
    let results = done.when_then_expr.iter_mut().map(|(_, then)| then).chain(&mut done.else_expr);
    let mut results: Vec<&mut Box<Expr>> = results.collect();
    let values: Vec<Expr> = results.iter().map(|value| (***value).clone()).collect();
    if let Some(exact) = with_doubles(&values, schema).or_else(|| with_decimals(&values, schema)) {
        results.iter_mut().zip(exact).for_each(|(result, value)| ***result = value);
        is_changed = true;
    }
    is_changed |= number_types::type_results(&mut done, schema)?;
    Ok(is_changed.then_some(Expr::Case(done)))
}
