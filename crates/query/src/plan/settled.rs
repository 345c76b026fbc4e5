//! What expressions mean, settled once their types are known and before anything is optimised.
//!
//! - Text that becomes a timestamp is read as everywhere else: it may stop after any part. `'\x00ff'` that becomes binary
//!   is two bytes.
//! - `x IN (a, b)` with columns in the list is `x = a OR x = b`: the stock operator takes some lists for constant that
//!   are not.
//! - Every NaN is one value, and −0 is 0, where rows are compared: what can give a NaN of another sign than stored ones
//!   have is made plain, and so are the keys that rows are ordered, partitioned and told apart by.
//!   So is floating point that is compared with other floating point of its row, and so are arrays and rows with it
//!   ([`array_keys`]).
//! - A difference of times is compared with an interval by how long they are.
//! - An order names nothing twice: `ORDER BY a, b, a` is `ORDER BY a, b`. The stock aggregates count on it. Those to which
//!   no order matters have none.
//! - Lists that leave no value leave NULL ([`lists`]).
//! - `.` of a regular expression matches line breaks, too ([`regex`]).
//! - Texts put together by `||` have a limit, as those of other functions have.
//! - Elements of an array are cast as single values are ([`array_casts`]).

use super::array_keys;
use super::distinct_on::{self, each_once};
use super::lists;
use super::regex;
use super::time_casts;
use crate::door::array_texts;
use crate::door::timestamps::parse_timestamp;
use crate::functions::time_casts::LENGTH;
use crate::functions::{
    aggregates, array_casts, casts, checked, floats, guarded, json, json_agg, scalar_named, shifts, text_times,
    value_texts, zones,
};
use crate::{Error, door};
use datafusion::arrow::datatypes::{DataType, FieldRef, TimeUnit as ArrowUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{
    AggregateFunction, Between, Case, InList, NullTreatment, ScalarFunction, Sort, WindowFunction,
};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    AggregateUDF, BinaryExpr, Cast, Distinct, Expr, ExprSchemable, LogicalPlan, Operator, TryCast,
    WindowFunctionDefinition, cast,
};
use datafusion::optimizer::AnalyzerRule;
use std::sync::Arc;
use tidalite_types::TimeUnit;

/// Functions that give a NaN for arguments outside of theirs.
const GIVE_NAN: &[&str] = &[
    "sqrt", "ln", "log", "log2", "log10", "asin", "acos", "acosh", "atanh", "power", "pow", "sin", "cos", "tan", "cot",
    "nanvl",
];

/// Aggregates to which it matters in which order rows come. Others would ask for one all the same, and no two of them for
/// different ones.
const BY_ORDER: &[&str] = &[
    "array_agg",
    "string_agg",
    "first_value",
    "last_value",
    "nth_value",
    "first",
    "last",
    "first_not_null",
    "last_not_null",
    json_agg::JSON_AGG,
    json_agg::JSON_OBJECT_AGG,
    json_agg::JSONB_AGG,
    json_agg::JSONB_OBJECT_AGG,
];

/// Aggregates to which one NaN is as good as another.
const ADD_UP: &[&str] = &["sum", "avg", "count"];

#[derive(Debug)]
pub(crate) struct Settled;

impl AnalyzerRule for Settled {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let done = plan.transform_up_with_subqueries(|node| {
            let mut schema = DFSchema::empty();
            if let LogicalPlan::TableScan(scan) = &node {
                schema = scan.projected_schema.as_ref().clone();
            }
            node.inputs().iter().for_each(|input| schema.merge(input.schema()));
            let names = NamePreserver::new(&node);
            let mapped = node.map_expressions(|expr| {
                let name = names.save(&expr);
                let done = expr.transform_up(|e| settled(e, &schema))?;
                Ok(done.update_data(|expr| name.restore(expr)))
            })?;
            let mut sort = match array_keys::keys_of_node(mapped.data)? {
                LogicalPlan::Sort(sort) => sort,
                LogicalPlan::Join(mut join) => {
                    let (left, right) = (join.left.schema().clone(), join.right.schema().clone());
                    let keys = std::mem::take(&mut join.on).into_iter();
                    join.on = keys.map(|pair| time_casts::join_keys(pair, &left, &right)).collect::<Result<_>>()?;
                    return Ok(Transformed::yes(LogicalPlan::Join(join)));
                }
                LogicalPlan::Distinct(Distinct::On(on)) => return distinct_on::with_columns(on).map(Transformed::yes),
                node => return Ok(Transformed::yes(node)),
            };
            let keys = array_keys::nulls_apart(sort.expr, &schema).into_iter();
            sort.expr = keys.map(|key| time_casts::sort_key(key, &schema)).collect::<Result<_>>()?;
            // Ties of a single key have no order, and stored NaNs have one bit pattern. In an array, elements follow them.
            let has_array = sort.expr.iter().any(|key| array_keys::is_open(&key.expr, &schema));
            if sort.expr.len() > 1 || has_array || is_computed(&sort.input) {
                sort.expr = sort.expr.into_iter().map(|key| plain_key(key, &schema)).collect();
            }
            Ok(Transformed::yes(LogicalPlan::Sort(sort)))
        })?;
        Ok(done.data)
    }

    fn name(&self) -> &'static str {
        "settled"
    }
}

/// Returns a constant expression with the casts of the analyzer.
pub(super) fn settled_expr(expr: Expr) -> Result<Expr> {
    Ok(expr.transform_up(|e| settled(e, &DFSchema::empty()))?.data)
}

fn settled(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    if let Some(compared) = time_casts::compared_anew(&expr, schema)? {
        return Ok(Transformed::yes(compared));
    }
    if let Some(flagged) = regex::with_flag(&expr, schema)? {
        return Ok(Transformed::yes(flagged));
    }
    if let Some(ordered) = array_keys::ordered(&expr, schema)? {
        return Ok(Transformed::yes(ordered));
    }
    match expr {
        Expr::Cast(Cast { expr, field }) => match bytes_of_text(&expr, &field)? {
            Some(bytes) => Ok(Transformed::yes(bytes)),
            None => match own_cast(&expr, &field, false, schema)? {
                Some(call) => Ok(Transformed::yes(call)),
                None => time_of_text(*expr, field, schema),
            },
        },
        Expr::TryCast(TryCast { ref expr, ref field }) => match own_cast(expr, field, true, schema)? {
            Some(call) => Ok(Transformed::yes(call)),
            None => Ok(Transformed::no(Expr::TryCast(TryCast { expr: expr.clone(), field: field.clone() }))),
        },
        Expr::InSubquery(of) => array_keys::of_subquery(of, schema),
        Expr::InList(list) if has_columns(&list) || array_keys::is_open(&list.expr, schema) => {
            let any = any_of(list).transform_up(|e| one_zero(e, schema))?;
            Ok(Transformed::yes(any.data))
        }
        Expr::BinaryExpr(BinaryExpr { op, .. }) if is_comparison(op) => one_zero(expr, schema),
        Expr::Between(_) => one_zero(expr, schema),
        Expr::InList(list) if is_float(&list.expr, schema) => Ok(lists::with_both_zeros(list)),
        Expr::BinaryExpr(whole) if matches!(whole.op, Operator::And | Operator::Or) => lists::sound(whole, schema),
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::StringConcat, right }) => together(*left, *right, schema),
        Expr::BinaryExpr(BinaryExpr { ref op, ref right, .. })
            // Of infinity nothing is left by any number.
            if (*op == Operator::Modulo || *op == Operator::Divide && !is_number_but_zero(right))
                && is_float(&expr, schema) =>
        {
            Ok(Transformed::yes(call(floats::ONE_NAN, expr)?))
        }
        Expr::BinaryExpr(BinaryExpr { ref left, ref op, ref right })
            if matches!(op, Operator::Plus | Operator::Minus | Operator::Multiply)
                && is_open(left)
                && is_open(right)
                && is_float(&expr, schema) =>
        {
            Ok(Transformed::yes(call(floats::ONE_NAN, expr)?))
        }
        Expr::Negative(ref inner) if is_of_bits(inner) || is_integer(inner, schema) => {
            let zero = ScalarValue::new_zero(&inner.get_type(schema)?)?;
            let less = BinaryExpr::new(Box::new(Expr::Literal(zero, None)), Operator::Minus, inner.clone());
            let checked = checked::call(&less, schema);
            // An operator that cannot overflow may stay, since Tidalite's operators support it.
            let plain = if is_of_bits(inner) { Expr::BinaryExpr(less) } else { expr };
            Ok(Transformed::yes(checked.unwrap_or(plain)))
        }
        // The stock optimizer folds `x ^ x` to 0 and `x ^ (x ^ y)` to y, also for NULL: the call makes the operands
        // differ.
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::BitwiseXor, right })
            if left == right || has_xor(&left) || has_xor(&right) =>
        {
            let left = Box::new(call(floats::ONE_NAN, *left)?);
            Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op: Operator::BitwiseXor, right })))
        }
        Expr::BinaryExpr(ref whole) if matches!(whole.op, Operator::Plus | Operator::Minus | Operator::Multiply) => {
            Ok(match checked::call(whole, schema) {
                Some(call) => Transformed::yes(call),
                None => Transformed::no(expr),
            })
        }
        Expr::Negative(ref inner) if !matches!(**inner, Expr::Literal(..)) && is_float(&expr, schema) => {
            Ok(Transformed::yes(call(floats::ONE_NAN, expr)?))
        }
        Expr::ScalarFunction(ref function) if GIVE_NAN.contains(&function.name()) && is_float(&expr, schema) => {
            Ok(Transformed::yes(call(floats::ONE_NAN, expr)?))
        }
        Expr::ScalarFunction(ref function) if function.name() == zones::AT_TIME_ZONE => at_time_zone(function, schema),
        Expr::ScalarFunction(function) => plain_call(function, schema),
        Expr::Case(case) if array_keys::has_open_base(&case, schema) => {
            Ok(Transformed::yes(array_keys::searched_case(case, schema)?))
        }
        Expr::Case(Case { expr: Some(base), when_then_expr, else_expr }) if is_float(&base, schema) => {
            let base = Box::new(plain(*base)?);
            let pairs = when_then_expr.into_iter().map(|(when, then)| Ok((Box::new(plain(*when)?), then)));
            let when_then_expr = pairs.collect::<Result<_>>()?;
            Ok(Transformed::yes(Expr::Case(Case { expr: Some(base), when_then_expr, else_expr })))
        }
        Expr::AggregateFunction(mut aggregate) => {
            aggregated(&mut aggregate, schema)?;
            Ok(Transformed::yes(Expr::AggregateFunction(aggregate)))
        }
        Expr::WindowFunction(mut window) => {
            plain_window(&mut window, schema)?;
            Ok(Transformed::yes(Expr::WindowFunction(window)))
        }
        other => Ok(Transformed::no(other)),
    }
}

fn plain_call(function: ScalarFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    if let Some(case) = array_keys::nullif(&function, schema)? {
        return Ok(Transformed::yes(case));
    }
    Ok(match guarded::unfolded(&function).or_else(|| guarded::guarded_call(&function)) {
        Some(changed) => Transformed::yes(Expr::ScalarFunction(changed)),
        None => Transformed::no(Expr::ScalarFunction(function)),
    })
}

/// Returns a call that casts a number or an array, if Arrow's cast would differ.
fn own_cast(inner: &Expr, to: &FieldRef, is_tried: bool, schema: &DFSchema) -> Result<Option<Expr>> {
    let Ok((_, from)) = inner.to_field(schema) else { return Ok(None) };
    match (from.data_type(), to.data_type()) {
        (DataType::List(from), DataType::List(item)) if from.data_type() != item.data_type() => {
            array_cast(inner, from, (item, to), is_tried)
        }
        (from, to) => Ok(casts::call(inner.clone(), from, to, is_tried)),
    }
}

/// Returns a call that casts the elements of an array as single values are cast, if Arrow's cast would differ.
fn array_cast(
    array: &Expr,
    from: &FieldRef,
    (item, to): (&FieldRef, &FieldRef),
    is_tried: bool,
) -> Result<Option<Expr>> {
    let (element, elements) = array_casts::element(from)?;
    let plain = match (value_texts::cast_function(from.data_type(), item.data_type()), is_tried) {
        (Some(name), _) => call(name, element)?.cast_to(item.data_type(), &elements)?,
        (None, true) => Expr::TryCast(TryCast::new_from_field(Box::new(element), item.clone())),
        (None, false) => Expr::Cast(Cast::new_from_field(Box::new(element), item.clone())),
    };
    let element = plain.clone().transform_up(|e| settled(e, &elements))?.data;
    let is_stock = element == plain && matches!(plain, Expr::Cast(_) | Expr::TryCast(_));
    Ok((!is_stock).then(|| array_casts::call(array.clone(), from, element, to)))
}

/// Returns true for floating point and for arrays and rows with it.
pub(super) fn is_float_key(expr: &Expr, schema: &DFSchema) -> bool {
    is_float(expr, schema) || array_keys::is_open(expr, schema)
}

pub(super) fn is_float(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|t| matches!(t, DataType::Float32 | DataType::Float64))
}

fn has_xor(expr: &Expr) -> bool {
    let is_xor = |e: &Expr| matches!(e, Expr::BinaryExpr(BinaryExpr { op: Operator::BitwiseXor, .. }));
    expr.exists(|e| Ok(is_xor(e))).unwrap_or(true)
}

fn is_integer(expr: &Expr, schema: &DFSchema) -> bool {
    !matches!(expr, Expr::Literal(..)) && expr.get_type(schema).is_ok_and(|t| t.is_signed_integer())
}

/// The stock optimizer takes a minus before `&` and `|` for a NOT of bits.
fn is_of_bits(expr: &Expr) -> bool {
    matches!(expr, Expr::BinaryExpr(BinaryExpr { op: Operator::BitwiseAnd | Operator::BitwiseOr, .. }))
}

/// Whether infinity may be there, or a zero for infinity to meet: `x + 1` gives no NaN but those of `x`.
fn is_open(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(ScalarValue::Float64(Some(v)), _) => *v == 0.0 || !v.is_finite(),
        Expr::Literal(ScalarValue::Float32(Some(v)), _) => *v == 0.0 || !v.is_finite(),
        other => !is_number_but_zero(other),
    }
}

fn is_number_but_zero(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(ScalarValue::Float64(Some(v)), _) => *v != 0.0 && v.is_finite(),
        Expr::Literal(ScalarValue::Float32(Some(v)), _) => *v != 0.0 && v.is_finite(),
        Expr::Cast(cast) => matches!(&*cast.expr, Expr::Literal(value, _) if is_integer_but_zero(value)),
        _ => false,
    }
}

fn is_integer_but_zero(value: &ScalarValue) -> bool {
    value.data_type().is_integer()
        && matches!(value.cast_to(&DataType::Int64), Ok(ScalarValue::Int64(Some(v))) if v != 0)
}

pub(super) fn call(name: &str, argument: Expr) -> Result<Expr> {
    let function = scalar_named(name).ok_or_else(|| Error::internal(format!("{name} is not there")))?;
    Ok(Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![argument])))
}

/// As a key: with one zero and one NaN.
pub(super) fn plain(expr: Expr) -> Result<Expr> {
    if matches!(&expr, Expr::Literal(value, _) if !is_zero(value)) { Ok(expr) } else { call(floats::KEY, expr) }
}

pub(super) fn is_zero(value: &ScalarValue) -> bool {
    matches!(value, ScalarValue::Float64(Some(v)) if *v == 0.0)
        || matches!(value, ScalarValue::Float32(Some(v)) if *v == 0.0)
}

/// Whether aggregates are in the rows, sums of which may be NaNs of any sign.
fn is_computed(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Aggregate(_) | LogicalPlan::Window(_) => true,
        LogicalPlan::Projection(projection) => is_computed(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => is_computed(&alias.input),
        LogicalPlan::Filter(filter) => is_computed(&filter.input),
        LogicalPlan::Limit(limit) => is_computed(&limit.input),
        LogicalPlan::Sort(sort) => is_computed(&sort.input),
        LogicalPlan::Distinct(Distinct::All(input)) => is_computed(input),
        _ => false,
    }
}

fn plain_key(key: Sort, schema: &DFSchema) -> Sort {
    if !is_float_key(&key.expr, schema) {
        return key;
    }
    match plain(key.expr.clone()) {
        Ok(expr) => Sort { expr, ..key },
        Err(_) => key,
    }
}

/// Replaces `min` and `max` of intervals by the intervals with the least and the greatest length.
fn by_length(function: &mut Arc<AggregateUDF>, args: &mut Vec<Expr>, schema: &DFSchema) -> Result<()> {
    let by = match function.name() {
        "min" => "arg_min",
        "max" => "arg_max",
        _ => return Ok(()),
    };
    let [value] = &args[..] else { return Ok(()) };
    if !value.get_type(schema).is_ok_and(|t| matches!(t, DataType::Interval(_))) {
        return Ok(());
    }
    let found = aggregates().into_iter().find(|own| own.name() == by);
    *function = found.ok_or_else(|| Error::internal(format!("aggregate {by} is missing")))?;
    let length = call(LENGTH, value.clone())?;
    args.push(length);
    Ok(())
}

fn aggregated(aggregate: &mut AggregateFunction, schema: &DFSchema) -> Result<()> {
    by_length(&mut aggregate.func, &mut aggregate.params.args, schema)?;
    if !BY_ORDER.contains(&aggregate.func.name()) && !aggregate.func.supports_within_group_clause() {
        aggregate.params.order_by.clear();
    }
    let keys = each_once(std::mem::take(&mut aggregate.params.order_by), |key| &key.expr);
    let keys = array_keys::nulls_apart(keys, schema);
    aggregate.params.order_by = match keys.len() {
        // Keys of DISTINCT are its arguments.
        0 | 1 if !aggregate.params.distinct && !keys.iter().any(|key| array_keys::is_open(&key.expr, schema)) => keys,
        _ => keys.into_iter().map(|key| plain_key(key, schema)).collect(),
    };
    let keys = std::mem::take(&mut aggregate.params.order_by).into_iter();
    aggregate.params.order_by = keys.map(|key| time_casts::sort_key(key, schema)).collect::<Result<_>>()?;
    if aggregate.params.distinct {
        return plain_arguments(&mut aggregate.params.args, schema);
    }
    // What adds up does not ask which NaN it is.
    if ADD_UP.contains(&aggregate.func.name()) {
        for argument in &mut aggregate.params.args {
            let whole = std::mem::replace(argument, Expr::Literal(ScalarValue::Null, None));
            *argument = without_one_nan(whole);
        }
    }
    Ok(())
}

/// Resolves AT TIME ZONE to one of its two directions, while the type of the time is known.
fn at_time_zone(function: &ScalarFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let [zone, time] = &function.args[..] else { return Err(Error::internal("AT TIME ZONE without a time").into()) };
    // A cast to TIMESTAMP makes an instant a time without a zone.
    let field = match time {
        Expr::Cast(Cast { field, .. }) => field.clone(),
        other => other.to_field(schema)?.1,
    };
    let name = if zones::is_instant(&field) { zones::TO_CLOCK } else { zones::TO_INSTANT };
    let meaning = scalar_named(name).ok_or_else(|| Error::internal(format!("function {name} is missing")))?;
    let data_type = Expr::ScalarFunction(function.clone()).get_type(schema)?;
    let time = time_casts::cast_to(time.clone(), &data_type, schema)?;
    let moved = Expr::ScalarFunction(ScalarFunction::new_udf(meaning, vec![zone.clone(), time]));
    let is_marked = name == zones::TO_INSTANT;
    Ok(Transformed::yes(if is_marked { call(zones::AS_INSTANT, moved)? } else { moved }))
}

/// Arithmetic whose NaNs are whatever they are.
fn without_one_nan(expr: Expr) -> Expr {
    let inner = |e: Box<Expr>| Box::new(without_one_nan(*e));
    match expr {
        Expr::ScalarFunction(mut function) if function.name() == floats::ONE_NAN && function.args.len() == 1 => {
            without_one_nan(function.args.remove(0))
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if matches!(op, Operator::Plus | Operator::Minus | Operator::Multiply | Operator::Divide) =>
        {
            Expr::BinaryExpr(BinaryExpr { left: inner(left), op, right: inner(right) })
        }
        other => other,
    }
}

/// Replaces floating-point arguments of DISTINCT by keys: one zero and one NaN.
fn plain_arguments(arguments: &mut [Expr], schema: &DFSchema) -> Result<()> {
    for argument in arguments {
        if is_float_key(argument, schema) {
            *argument = plain(argument.clone())?;
        }
    }
    Ok(())
}

fn plain_window(window: &mut WindowFunction, schema: &DFSchema) -> Result<()> {
    if window.params.null_treatment == Some(NullTreatment::IgnoreNulls)
        && let WindowFunctionDefinition::WindowUDF(function) = &window.fun
        && let Some(skipping) = shifts::skipping_null(function)
    {
        window.fun = WindowFunctionDefinition::WindowUDF(skipping);
    }
    if let WindowFunctionDefinition::AggregateUDF(function) = &mut window.fun {
        by_length(function, &mut window.params.args, schema)?;
    }
    if window.params.distinct {
        plain_arguments(&mut window.params.args, schema)?;
    }
    for key in &mut window.params.partition_by {
        if is_float_key(key, schema) {
            *key = plain(key.clone())?;
        }
    }
    let keys = each_once(std::mem::take(&mut window.params.order_by), |key| &key.expr);
    let keys = array_keys::nulls_apart(keys, schema)
        .into_iter()
        .map(|key| time_casts::sort_key(plain_key(key, schema), schema));
    window.params.order_by = keys.collect::<Result<_>>()?;
    Ok(())
}

/// Floating point that is compared with other than a constant, of the same rows: Arrow orders −0 before 0.
fn one_zero(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    // What has no column becomes a constant, for which zeros are the same already.
    let has_columns = |side: &Expr| !side.column_refs().is_empty();
    let is_open = |sides: &[&Expr]| {
        sides.iter().all(|side| is_float(side, schema))
            && sides.iter().filter(|side| has_columns(side)).count() > 1
            && is_of_one_relation(sides)
    };
    let plain = |side: Box<Expr>| if has_columns(&side) { plain(*side).map(Box::new) } else { Ok(side) };
    // Also constants and keys of joins: no other rule knows of arrays.
    let array = |side: Box<Expr>| array_keys::key(*side, schema).map(Box::new);
    let is_array = |sides: &[&Expr]| sides.iter().any(|side| array_keys::is_open(side, schema));
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(op) && is_array(&[&left, &right]) => {
            let (left, right) = (array(left)?, array(right)?);
            Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right })))
        }
        Expr::Between(Between { expr, negated, low, high }) if is_array(&[&expr, &low, &high]) => {
            let [expr, low, high] = [expr, low, high].map(array);
            Ok(Transformed::yes(Expr::Between(Between { expr: expr?, negated, low: low?, high: high? })))
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(op) && is_open(&[&left, &right]) => {
            let (left, right) = (plain(left)?, plain(right)?);
            Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right })))
        }
        Expr::Between(Between { expr, negated, low, high }) if is_open(&[&expr, &low, &high]) => {
            let [expr, low, high] = [expr, low, high].map(plain);
            Ok(Transformed::yes(Expr::Between(Between { expr: expr?, negated, low: low?, high: high? })))
        }
        other => Ok(Transformed::no(other)),
    }
}

/// A difference of times compared with an interval, as lengths of time: intervals would be compared by their months,
/// then their days, then the rest. `None` where the unit of the difference is too coarse for it.
pub(super) fn of_lengths(left: &Expr, op: Operator, right: &Expr, schema: &DFSchema) -> Option<Expr> {
    let Some(difference) = time_casts::uncast_length(left) else {
        time_casts::uncast_length(right)?;
        return of_lengths(right, op.swap()?, left, schema);
    };
    let Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(interval)), _) = right else { return None };
    let DataType::Duration(unit) = difference.get_type(schema).ok()? else { return None };
    let days = 30 * i128::from(interval.months) + i128::from(interval.days);
    let nanos = days * 86_400_000_000_000 + i128::from(interval.nanoseconds);
    let (of_unit, length): (i128, fn(Option<i64>) -> ScalarValue) = match unit {
        ArrowUnit::Second => (1_000_000_000, ScalarValue::DurationSecond),
        ArrowUnit::Millisecond => (1_000_000, ScalarValue::DurationMillisecond),
        ArrowUnit::Microsecond => (1_000, ScalarValue::DurationMicrosecond),
        ArrowUnit::Nanosecond => (1, ScalarValue::DurationNanosecond),
    };
    let units = i64::try_from(nanos / of_unit).ok().filter(|_| nanos % of_unit == 0)?;
    let right = Box::new(Expr::Literal(length(Some(units)), None));
    Some(Expr::BinaryExpr(BinaryExpr { left: Box::new(difference.clone()), op, right }))
}

pub(super) fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

/// Keys of joins stay as they are.
fn is_of_one_relation(exprs: &[&Expr]) -> bool {
    let columns: Vec<_> = exprs.iter().flat_map(|expr| expr.column_refs()).collect();
    columns.windows(2).all(|two| two[0].relation == two[1].relation)
}

fn has_columns(list: &InList) -> bool {
    let has_column = |expr: &Expr| {
        let mut found = false;
        let walked = expr.apply(|e| {
            found |= matches!(e, Expr::Column(_) | Expr::OuterReferenceColumn(..));
            Ok(TreeNodeRecursion::Continue)
        });
        walked.is_ok() && found
    };
    list.list.iter().any(has_column) && !list.expr.is_volatile()
}

pub(super) fn any_of(list: InList) -> Expr {
    let equal = |item: Expr| list.expr.as_ref().clone().eq(item);
    let any = list.list.into_iter().map(equal).reduce(Expr::or);
    let any = any.unwrap_or_else(|| Expr::Literal(ScalarValue::Boolean(Some(false)), None));
    if list.negated { Expr::Not(Box::new(any)) } else { any }
}

pub(super) fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

pub(super) fn together(left: Expr, right: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let are_texts = [&left, &right].iter().all(|side| side.get_type(schema).is_ok_and(|t| is_text(&t)));
    let whole = BinaryExpr::new(Box::new(left), Operator::StringConcat, Box::new(right));
    let Some(function) = scalar_named(text_times::TOGETHER).filter(|_| are_texts) else {
        return Ok(Transformed::no(Expr::BinaryExpr(whole)));
    };
    // What is around it goes by its type.
    let given = Expr::BinaryExpr(whole.clone()).get_type(schema)?;
    let arguments = [whole.left, whole.right].map(|side| side.cast_to(&DataType::Utf8View, schema));
    let arguments = arguments.into_iter().collect::<Result<Vec<_>>>()?;
    let call = Expr::ScalarFunction(ScalarFunction::new_udf(function, arguments));
    Ok(Transformed::yes(if given == DataType::Utf8View { call } else { cast(call, given) }))
}

/// `'\x00ff'::bytea`, as PostgreSQL writes bytes.
fn bytes_of_text(inner: &Expr, field: &FieldRef) -> Result<Option<Expr>> {
    let Expr::Literal(value, _) = inner else { return Ok(None) };
    let binary: fn(Option<Vec<u8>>) -> ScalarValue = match field.data_type() {
        DataType::Binary => ScalarValue::Binary,
        DataType::BinaryView => ScalarValue::BinaryView,
        _ => return Ok(None),
    };
    let Some(text) = value.try_as_str().flatten() else { return Ok(None) };
    let Some(bytes) = door::batches::bytes_of_text(text) else {
        return Err(Error::invalid_text("BINARY", text).into());
    };
    Ok(Some(Expr::Literal(binary(Some(bytes)), None)))
}

/// `CAST(text AS timestamp)`, and as an array of doubles.
fn time_of_text(inner: Expr, field: FieldRef, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let kept = |inner: Expr, field| {
        Ok(match time_casts::cast_made(&inner, &field, false, schema)? {
            Some(made) => Transformed::yes(made),
            None => Transformed::no(Expr::Cast(Cast { expr: Box::new(inner), field })),
        })
    };
    if array_texts::dims(field.data_type()).is_some() && inner.get_type(schema).is_ok_and(|t| is_text(&t)) {
        let (null, text) = (ScalarValue::try_from(field.data_type())?, inner.cast_to(&DataType::Utf8View, schema)?);
        let function =
            scalar_named(text_times::DOUBLES).ok_or_else(|| Error::internal("texts of arrays are not read"))?;
        let call = ScalarFunction::new_udf(function, vec![text, Expr::Literal(null, None)]);
        return Ok(Transformed::yes(Expr::ScalarFunction(call)));
    }
    if let DataType::List(item) = field.data_type()
        && !matches!(item.data_type(), DataType::List(_))
        && inner.get_type(schema).is_ok_and(|t| is_text(&t))
    {
        let (null, text) = (ScalarValue::try_from(field.data_type())?, inner.cast_to(&DataType::Utf8View, schema)?);
        let function = scalar_named(json::LIST).ok_or_else(|| Error::internal("texts of lists are not read"))?;
        let call = ScalarFunction::new_udf(function, vec![text, Expr::Literal(null, None)]);
        return Ok(Transformed::yes(Expr::ScalarFunction(call)));
    }
    let DataType::Timestamp(unit, None) = *field.data_type() else { return kept(inner, field) };
    let unit = match unit {
        ArrowUnit::Millisecond => TimeUnit::Millis,
        ArrowUnit::Microsecond => TimeUnit::Micros,
        ArrowUnit::Nanosecond => TimeUnit::Nanos,
        ArrowUnit::Second => return kept(inner, field),
    };
    if let Expr::Literal(
        ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)) | ScalarValue::LargeUtf8(Some(text)),
        _,
    ) = &inner
    {
        let Some((ticks, _)) = parse_timestamp(text, unit) else {
            return Err(Error::invalid_time(&door::type_name(&field), text).into());
        };
        let value = match unit {
            TimeUnit::Millis => ScalarValue::TimestampMillisecond(Some(ticks), None),
            TimeUnit::Micros => ScalarValue::TimestampMicrosecond(Some(ticks), None),
            TimeUnit::Nanos => ScalarValue::TimestampNanosecond(Some(ticks), None),
        };
        return Ok(Transformed::yes(Expr::Literal(value, None)));
    }
    let function = match unit {
        TimeUnit::Millis => return kept(inner, field),
        TimeUnit::Micros => text_times::MICROS,
        TimeUnit::Nanos => text_times::NANOS,
    };
    if !inner.get_type(schema).is_ok_and(|t| is_text(&t)) {
        return kept(inner, field);
    }
    let inner = inner.cast_to(&DataType::Utf8View, schema)?;
    Ok(Transformed::yes(call(function, inner)?))
}
