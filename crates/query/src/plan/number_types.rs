//! The common type of numbers, DOUBLE if one of them is DOUBLE, and of times, as in PostgreSQL.
//!
//! Workaround for DataFusion 55: beside a DECIMAL, DataFusion converts a DOUBLE to a DECIMAL of 15 digits after the point,
//! where 1e-20 is 0 and NaN is an error (DF-77). Until its analyzer has run, a CASE and a UNION also have the type of
//! their first part (DF-78). These functions cast the parts before, so that every expression around them has its final
//! type. Literals with a point are no DOUBLE values here: beside a DECIMAL they are exact ([`super::exact_numbers`]).

use super::time_choices;
use crate::decimal::{Decimal, as_decimal_type};
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{DFSchema, Result as DFResult, ScalarValue, TableReference};
use datafusion::logical_expr::binary::type_union_coercion;
use datafusion::logical_expr::expr::{Case, Cast};
use datafusion::logical_expr::type_coercion::other::get_coerce_type_for_case_expression;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Projection, Union, cast};
use std::sync::Arc;

/// The role of an expression beside a decimal.
pub(super) enum Side {
    /// A number literal or a parameter.
    Constant(Decimal),
    Decimal(DataType),
    Integer(u8),
    Double,
    Other,
}

pub(super) fn side(expr: &Expr, schema: &DFSchema) -> Side {
    if let Expr::Literal(value, _) = expr
        && let Some(number) = Decimal::from_scalar(value)
    {
        return Side::Constant(number);
    }
    match expr.get_type(schema) {
        Ok(data_type @ (DataType::Decimal128(..) | DataType::Decimal256(..))) => Side::Decimal(data_type),
        Ok(data_type) if data_type.is_integer() => match as_decimal_type(&data_type) {
            Some((precision, _)) => Side::Integer(precision),
            None => Side::Other,
        },
        Ok(data_type) if data_type.is_floating() => Side::Double,
        _ => Side::Other,
    }
}

/// Returns true for an expression of a decimal type, also a constant.
pub(super) fn is_decimal(expr: &Expr, schema: &DFSchema) -> bool {
    match expr {
        Expr::Literal(value, _) => value.data_type().is_decimal(),
        _ => matches!(side(expr, schema), Side::Decimal(_)),
    }
}

/// Returns the expression as a double.
pub(super) fn as_double(expr: &Expr, schema: &DFSchema) -> Expr {
    match expr {
        Expr::Literal(value, _) => match value.cast_to(&DataType::Float64) {
            Ok(double) => Expr::Literal(double, None),
            Err(_) => cast(expr.clone(), DataType::Float64),
        },
        _ if expr.get_type(schema).is_ok_and(|data_type| data_type == DataType::Float64) => expr.clone(),
        _ => cast(expr.clone(), DataType::Float64),
    }
}

/// Casts all numbers to DOUBLE if there are both DECIMAL and DOUBLE values; otherwise `None`.
pub(crate) fn with_doubles(values: &[Expr], schema: &DFSchema) -> Option<Vec<Expr>> {
    let sides: Vec<Side> = values.iter().map(|value| side(value, schema)).collect();
    let has_decimals = values.iter().any(|value| is_decimal(value, schema));
    let has_doubles = sides.iter().any(|side| matches!(side, Side::Double));
    let doubles = values.iter().zip(&sides).map(|(value, side)| match side {
        Side::Other => value.clone(),
        _ => as_double(value, schema),
    });
    (has_decimals && has_doubles).then(|| doubles.collect())
}

/// Casts DECIMAL arguments of a function of arrays to DOUBLE, if there are both DECIMAL and DOUBLE values or elements and
/// one argument is an array; otherwise `None`.
pub(super) fn with_double_elements(args: &[Expr], schema: &DFSchema) -> Option<Vec<Expr>> {
    let types = args.iter().map(|arg| arg.get_type(schema).ok()).collect::<Option<Vec<_>>>()?;
    let is_number = |arg: &Expr| matches!(arg, Expr::Literal(ScalarValue::Float64(_), _));
    let has_arrays = types.iter().any(|data_type| matches!(data_type, DataType::List(_)));
    let has_decimals = types.iter().any(|data_type| leaf(data_type).is_decimal());
    let has_doubles = args.iter().zip(&types).any(|(arg, own)| leaf(own).is_floating() && !is_number(arg));
    let double = |(arg, own): (&Expr, DataType)| match &own {
        DataType::List(_) if leaf(&own).is_decimal() => cast(arg.clone(), with_leaf(&own, DataType::Float64)),
        _ if own.is_decimal() => as_double(arg, schema),
        _ => arg.clone(),
    };
    (has_arrays && has_decimals && has_doubles).then(|| args.iter().zip(types).map(double).collect())
}

/// Casts the operands of `array || array` and `array || number` to one type of elements, if that is DECIMAL or DOUBLE.
///
/// DataFusion finds no common type of a DECIMAL and another type of numbers here.
pub(super) fn with_common_elements(left: Expr, right: Expr, schema: &DFSchema) -> DFResult<(Expr, Expr)> {
    let (own, other) = (left.get_type(schema)?, right.get_type(schema)?);
    let has_lists = [&own, &other].iter().any(|data_type| matches!(data_type, DataType::List(_)));
    let (a, b) = (leaf(&own), leaf(&other));
    if !has_lists || a == b || !a.is_numeric() || !b.is_numeric() || !a.is_decimal() && !b.is_decimal() {
        return Ok((left, right));
    }
    // A literal with a point beside decimals is a decimal.
    let exact = |side: &Expr, data_type: &DataType| match side {
        Expr::Literal(value @ ScalarValue::Float64(Some(_)), _) => Decimal::from_scalar(value)
            .and_then(Decimal::constant)
            .map_or(data_type.clone(), |number| number.data_type()),
        _ => data_type.clone(),
    };
    let (a, b) = (exact(&left, a), exact(&right, b));
    let Some(common) = common_type(&a, &b).or_else(|| type_union_coercion(&a, &b)) else { return Ok((left, right)) };
    let with_elements = |side: Expr, data_type: DataType| match data_type {
        DataType::List(_) => Ok(cast(side, with_leaf(&data_type, common.clone()))),
        _ => number_as(&side, &common, schema),
    };
    Ok((with_elements(left, own)?, with_elements(right, other)?))
}

/// Returns the type of the innermost elements of an array type, or the type itself.
fn leaf(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::List(item) => leaf(item.data_type()),
        other => other,
    }
}

/// Returns an array type of the same dimensions with another element type.
fn with_leaf(data_type: &DataType, element: DataType) -> DataType {
    match data_type {
        DataType::List(item) => {
            let inner = with_leaf(item.data_type(), element);
            DataType::List(Arc::new(item.as_ref().clone().with_data_type(inner)))
        }
        _ => element,
    }
}

/// Casts the results of a CASE to their common type, if that is DECIMAL or DOUBLE and the first result has another type.
///
/// Returns true if a result was cast.
pub(super) fn type_results(case: &mut Case, schema: &DFSchema) -> DFResult<bool> {
    let type_of = |expr: &Expr| expr.get_type(schema);
    let then_types = case.when_then_expr.iter().map(|(_, then)| type_of(then)).collect::<DFResult<Vec<_>>>()?;
    let else_type = case.else_expr.as_deref().map(type_of).transpose()?;
    let mut all = then_types.iter().chain(&else_type);
    let Some(first) = all.clone().find(|data_type| !data_type.is_null()).cloned() else { return Ok(false) };
    if !all.all(|data_type| data_type.is_numeric() || data_type.is_null()) {
        return Ok(false);
    }
    let Some(common) = get_coerce_type_for_case_expression(&then_types, else_type.as_ref()) else { return Ok(false) };
    if common == first || !is_fraction(&common) {
        return Ok(false);
    }
    for result in case.when_then_expr.iter_mut().map(|(_, then)| then).chain(&mut case.else_expr) {
        **result = number_as(result, &common, schema)?;
    }
    Ok(true)
}

/// Returns a number as another type, NULL as it is.
pub(super) fn number_as(expr: &Expr, to: &DataType, schema: &DFSchema) -> DFResult<Expr> {
    let own = expr.get_type(schema)?;
    Ok(match expr {
        _ if own == *to || own.is_null() => expr.clone(),
        Expr::Literal(..) if *to == DataType::Float64 => as_double(expr, schema),
        _ => cast(expr.clone(), to.clone()),
    })
}

/// Returns the two members of a set operation with numbers and times of the same types in their columns; `by_name` relates
/// the columns by their names.
pub(crate) fn typed_members(
    left: LogicalPlan,
    right: LogicalPlan,
    by_name: bool,
) -> DFResult<(LogicalPlan, LogicalPlan)> {
    let (mut of_left, mut of_right) =
        (vec![None; left.schema().fields().len()], vec![None; right.schema().fields().len()]);
    for (a, b) in pairs(&left, &right, by_name) {
        let common = common_of_columns((&left, a), (&right, b));
        (of_left[a], of_right[b]) = (common.clone(), common);
    }
    Ok((cast_columns(left, &of_left)?, cast_columns(right, &of_right)?))
}

/// Returns true if two columns of a set operation that belong together are numbers, one of them DECIMAL or DOUBLE.
pub(crate) fn members_have_fractions(left: &LogicalPlan, right: &LogicalPlan, by_name: bool) -> bool {
    pairs(left, right, by_name).into_iter().any(|(a, b)| {
        let types = [left.schema().field(a).data_type(), right.schema().field(b).data_type()];
        types.iter().all(|data_type| data_type.is_numeric()) && types.iter().any(|data_type| is_fraction(data_type))
    })
}

/// Returns a value and the rows of a sub-query that it is compared with, both of the type of the comparison.
pub(crate) fn typed_comparison(value: Expr, schema: &DFSchema, rows: LogicalPlan) -> DFResult<(Expr, LogicalPlan)> {
    let (own, theirs) = (value.get_type(schema)?, rows.schema().field(0).data_type().clone());
    // A literal takes the type of the rows.
    let is_literal = matches!(value, Expr::Literal(..)) && theirs.is_decimal();
    match compared_type(&own, &theirs).filter(|_| !is_literal) {
        Some(both) => Ok((number_as(&value, &both, schema)?, cast_columns(rows, &[Some(both)])?)),
        None => Ok((value, rows)),
    }
}

/// Returns the common type of a DECIMAL and a DOUBLE, or of a DATE and a TIMESTAMP; `None` for other types, whose common
/// type DataFusion finds.
pub(crate) fn common_type(a: &DataType, b: &DataType) -> Option<DataType> {
    if a.is_decimal() && b.is_floating() || a.is_floating() && b.is_decimal() {
        return Some(DataType::Float64);
    }
    match [a, b].contains(&&DataType::Date32) {
        true => time_choices::type_of_dates([a, b].into_iter()),
        false => None,
    }
}

/// Returns the type in which a number of one type is compared with a number of another; `None` for the common type.
pub(crate) fn compared_type(a: &DataType, b: &DataType) -> Option<DataType> {
    match (a, b) {
        _ if is_real_and_exact(a, b) => Some(DataType::Float64),
        _ if a.is_numeric() && b.is_numeric() => common_type(a, b),
        _ => None,
    }
}

/// Returns true for REAL beside an integer or a DECIMAL.
///
/// PostgreSQL computes and compares these in DOUBLE, which has the digits of both.
pub(super) fn is_real_and_exact(a: &DataType, b: &DataType) -> bool {
    let is_exact = |data_type: &DataType| data_type.is_signed_integer() || data_type.is_decimal();
    matches!((a, b), (DataType::Float32, other) | (other, DataType::Float32) if is_exact(other))
}

/// Returns true if a REAL and an integer are compared as DOUBLE.
///
/// A constant that a REAL can be equal to is compared as a REAL, so that scans can prune by it.
pub(super) fn is_real_and_integer(left: &Expr, right: &Expr, schema: &DFSchema) -> bool {
    let is_real = |expr: &Expr| expr.get_type(schema).is_ok_and(|data_type| data_type == DataType::Float32);
    let is_integer = |expr: &Expr| expr.get_type(schema).is_ok_and(|t| t.is_signed_integer()) && !is_single(expr);
    // The right side, often a constant of a list, has a type without a search in the schema.
    is_integer(right) && is_real(left) || is_real(right) && is_integer(left)
}

/// Returns true for a constant integer of at most 24 bits, which every REAL near it can represent.
fn is_single(expr: &Expr) -> bool {
    const MAX: i64 = 1 << f32::MANTISSA_DIGITS;
    let Expr::Literal(value, _) = expr else { return false };
    let long = if value.data_type().is_signed_integer() { value.cast_to(&DataType::Int64) } else { return false };
    matches!(long, Ok(ScalarValue::Int64(Some(v))) if (-MAX..=MAX).contains(&v))
}

/// Returns true for the types of numbers with a fraction.
pub(crate) fn is_fraction(data_type: &DataType) -> bool {
    data_type.is_decimal() || data_type.is_floating()
}

/// Returns the columns of two plans that belong together.
fn pairs(left: &LogicalPlan, right: &LogicalPlan, by_name: bool) -> Vec<(usize, usize)> {
    let fields = right.schema().fields();
    let partner = |(at, name): (usize, &String)| match by_name {
        true => Some((at, fields.iter().position(|field| field.name() == name)?)),
        false => (at < fields.len()).then_some((at, at)),
    };
    left.schema().fields().iter().map(|field| field.name()).enumerate().filter_map(partner).collect()
}

/// Returns a UNION with numbers of the same types in the columns of its members and in its schema; `None` if they have
/// them.
pub(super) fn typed_union(union: &Union) -> DFResult<Option<LogicalPlan>> {
    let mut typed: Vec<LogicalPlan> = Vec::with_capacity(union.inputs.len());
    let mut is_changed = false;
    for input in &union.inputs {
        let input = input.as_ref().clone();
        let Some(first) = typed.first() else {
            typed.push(input);
            continue;
        };
        let columns = 0..first.schema().fields().len();
        let common: Vec<_> = columns.map(|at| common_of_columns((first, at), (&input, at))).collect();
        is_changed |= common.iter().any(Option::is_some);
        typed.push(input);
        typed = typed.into_iter().map(|plan| cast_columns(plan, &common)).collect::<DFResult<_>>()?;
    }
    if typed.is_empty() {
        return Ok(None);
    }
    let schema = numbers_as(&union.schema, typed[0].schema())?;
    if !is_changed && schema == *union.schema {
        return Ok(None);
    }
    let inputs = typed.into_iter().map(Arc::new).collect();
    Ok(Some(LogicalPlan::Union(Union { inputs, schema: Arc::new(schema) })))
}

/// Returns a schema whose numbers and times have the types of another schema.
fn numbers_as(schema: &DFSchema, types: &DFSchema) -> DFResult<DFSchema> {
    let retyped = |((table, field), new): ((Option<&TableReference>, &FieldRef), &FieldRef)| {
        let (own, other) = (field.data_type(), new.data_type());
        let is_alike = own.is_numeric() && other.is_numeric() || own.is_temporal() && other.is_temporal();
        let field = match is_alike && own != other {
            true => Arc::new(field.as_ref().clone().with_data_type(new.data_type().clone())),
            false => field.clone(),
        };
        (table.cloned(), field)
    };
    let fields = schema.iter().zip(types.fields()).map(retyped).collect();
    DFSchema::new_with_metadata(fields, schema.metadata().clone())
}

/// Returns the type that numbers or times of two columns are cast to; `None` if the columns have the same type.
///
/// DOUBLE literals are ignored: `2.5` takes the type of a DECIMAL in the other plan.
fn common_of_columns((left, a): (&LogicalPlan, usize), (right, b): (&LogicalPlan, usize)) -> Option<DataType> {
    let (own, other) = (left.schema().field(a).data_type(), right.schema().field(b).data_type());
    if own == other {
        return None;
    }
    if !own.is_numeric() || !other.is_numeric() {
        return common_type(own, other);
    }
    let is_double = |plan, at, data_type: &DataType| data_type.is_floating() && !is_constant(plan, at);
    if (own.is_decimal() || other.is_decimal()) && (is_double(left, a, own) || is_double(right, b, other)) {
        return Some(DataType::Float64);
    }
    type_union_coercion(own, other).filter(is_fraction)
}

/// Returns true if a column of a plan is a literal in every row.
fn is_constant(plan: &LogicalPlan, at: usize) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => projection.expr.get(at).is_some_and(|expr| literal(expr).is_some()),
        LogicalPlan::Values(values) => {
            values.values.iter().all(|row| row.get(at).is_some_and(|value| literal(value).is_some()))
        }
        LogicalPlan::Union(union) => union.inputs.iter().all(|input| is_constant(input, at)),
        _ => false,
    }
}

fn literal(expr: &Expr) -> Option<Expr> {
    let plain = expr.clone().unalias_nested().data;
    matches!(plain, Expr::Literal(..)).then_some(plain)
}

/// Casts columns of a plan to the types that are given; a literal stays a literal.
fn cast_columns(plan: LogicalPlan, types: &[Option<DataType>]) -> DFResult<LogicalPlan> {
    let fields = plan.schema().fields();
    let changed: Vec<(usize, &DataType)> = types
        .iter()
        .enumerate()
        .filter_map(|(at, to)| {
            to.as_ref().filter(|to| fields.get(at).is_some_and(|f| f.data_type() != *to)).map(|to| (at, to))
        })
        .collect();
    if changed.is_empty() {
        return Ok(plan);
    }
    let of_literals = changed.iter().all(|(at, _)| is_constant(&plan, *at));
    match &plan {
        LogicalPlan::Projection(projection) if of_literals => {
            let mut columns = projection.expr.clone();
            for (at, to) in changed {
                let (table, field) = plan.schema().qualified_field(at);
                let Some(value) = literal(&columns[at]) else { continue };
                let value = number_as(&value, to, &DFSchema::empty())?;
                columns[at] = value.alias_qualified(table.cloned(), field.name());
            }
            Ok(LogicalPlan::Projection(Projection::try_new(columns, projection.input.clone())?))
        }
        LogicalPlan::Union(union) if of_literals => {
            let inputs = union.inputs.iter().map(|input| Ok(Arc::new(cast_columns(input.as_ref().clone(), types)?)));
            let inputs = inputs.collect::<DFResult<Vec<_>>>()?;
            let schema = numbers_as(&union.schema, inputs[0].schema())?;
            Ok(LogicalPlan::Union(Union { inputs, schema: Arc::new(schema) }))
        }
        _ => cast_above(plan, types),
    }
}

/// Casts columns of a plan, in a projection above it, to the types that are given.
fn cast_above(plan: LogicalPlan, types: &[Option<DataType>]) -> DFResult<LogicalPlan> {
    let fields = plan.schema().fields().iter();
    if fields.zip(types).all(|(field, to)| to.as_ref().is_none_or(|to| to == field.data_type())) {
        return Ok(plan);
    }
    let columns = plan.schema().iter().enumerate().map(|(at, (table, field))| {
        let column = Expr::from((table, field));
        match types.get(at).and_then(Option::as_ref).filter(|to| *to != field.data_type()) {
            Some(to) => cast(column, to.clone()).alias_qualified(table.cloned(), field.name()),
            None => column,
        }
    });
    let columns: Vec<Expr> = columns.collect();
    LogicalPlanBuilder::from(plan).project(columns)?.build()
}

/// Returns the value of a constant of type DOUBLE, such as `0.07::float8`.
pub(super) fn constant_double(cast: &Cast) -> Option<f64> {
    match cast.expr.as_ref() {
        Expr::Literal(ScalarValue::Float64(Some(value)), _) if *cast.field.data_type() == DataType::Float64 => {
            Some(*value)
        }
        _ => None,
    }
}

/// Returns the number of a finite constant of type DOUBLE.
pub(super) fn constant_number(expr: &Expr) -> Option<Decimal> {
    match expr {
        Expr::Cast(cast) => constant_double(cast).and_then(Decimal::from_double),
        _ => None,
    }
}
