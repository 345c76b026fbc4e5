//! Text compared with a timestamp, a UUID, an IPv4 address or JSONB, or chosen among such, is a constant of that type.
//! Casts between text and UUIDs or addresses, and `||` of them and text, become calls of Tidalite's functions.
//!
//! The planner would cast, but knows fewer spellings of a timestamp than QuestDB's users write, no text of the two
//! others, and says less well what is wrong. And zero compared with floating point is zero of either sign.

use super::number_types::constant_double;
use super::settled::{self, call};
use super::time_choices;
use crate::door::{self, timestamps::parse_date, timestamps::parse_timestamp};
use crate::functions::{array_casts, identifiers, json};
use crate::{Error, Result};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result as DFResult, ScalarValue};
use datafusion::logical_expr::expr::{Between, InList};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan, Operator, TryCast, cast, lit};
use std::sync::Arc;
use tidalite_types::{ColumnType, TimeUnit};

/// Functions whose value is one of their arguments.
pub(crate) const CHOOSING: &[&str] = &["coalesce", "greatest", "ifnull", "least", "nullif", "nvl"];

pub(crate) fn typed_literals(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut is_retyped = false;
    let done = plan.transform_up_with_subqueries(|node| {
        let mut schema = DFSchema::empty();
        if let LogicalPlan::TableScan(scan) = &node {
            schema = scan.projected_schema.as_ref().clone();
        }
        node.inputs().iter().for_each(|input| schema.merge(input.schema()));
        // The name of a computed column has its constants in it, and plans above go by that name.
        let names = NamePreserver::new(&node);
        let mapped = node.map_expressions(|expr| {
            let name = names.save(&expr);
            let done = expr.transform_up(|e| rewritten(e, &schema, &mut is_retyped))?;
            Ok(done.update_data(|expr| name.restore(expr)))
        })?;
        if is_retyped { mapped.map_data(LogicalPlan::recompute_schema) } else { Ok(mapped) }
    })?;
    Ok(done.data)
}

/// `is_retyped` becomes true where a value is of another type than the planner told those above it.
fn rewritten(expr: Expr, schema: &DFSchema, is_retyped: &mut bool) -> DFResult<Transformed<Expr>> {
    if let Some(expr) = zero_comparison(&expr, schema) {
        return Ok(Transformed::yes(expr));
    }
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if op.supports_propagation() && (is_text(&left) != is_text(&right)) =>
        {
            let (left, right) = if is_text(&right) {
                let right = typed_text(&left, *right, schema)?;
                (*left, right)
            } else {
                let left = typed_text(&right, *left, schema)?;
                (left, *right)
            };
            Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)))))
        }
        Expr::Between(Between { expr, negated, low, high }) if is_text(&low) || is_text(&high) => {
            let (low, high) = (typed_text(&expr, *low, schema)?, typed_text(&expr, *high, schema)?);
            Ok(Transformed::yes(Expr::Between(Between::new(expr, negated, Box::new(low), Box::new(high)))))
        }
        Expr::InList(InList { expr, list, negated }) if list.iter().any(is_text) => {
            let list = list.into_iter().map(|e| typed_text(&expr, e, schema)).collect::<Result<Vec<_>>>()?;
            Ok(Transformed::yes(Expr::InList(InList::new(expr, list, negated))))
        }
        // The cast marks a DOUBLE beside decimals, whose types are settled ([`super::exact_numbers`]).
        Expr::Cast(cast) if constant_double(&cast).is_some() => Ok(Transformed::yes(*cast.expr)),
        Expr::Cast(Cast { expr, field }) if is_text(&expr) => {
            if let Some(text) = text(&expr).filter(|_| door::column_type(&field) == Some(ColumnType::Json)) {
                json::check(text)?;
            }
            if is_plain_text(&field)
                && let Expr::Literal(value, Some(_)) = expr.as_ref()
            {
                *is_retyped = true;
                return Ok(Transformed::yes(Expr::Literal(value.cast_to(field.data_type())?, None)));
            }
            let is_jsonb = door::column_type(&field) == Some(ColumnType::Jsonb);
            let constant = match text(&expr).map_or(Ok(None), |text| constant(&field, text)) {
                Err(error) if is_identifier(&field) || is_jsonb => return Err(error.into()),
                constant => constant.ok().flatten(),
            };
            // It says that a number is an address.
            let metadata = (!field.metadata().is_empty()).then(|| field.metadata().into());
            match constant {
                Some(constant) if constant.data_type() == *field.data_type() => {
                    Ok(Transformed::yes(Expr::Literal(constant, metadata)))
                }
                _ => Ok(Transformed::no(Expr::Cast(Cast { expr, field }))),
            }
        }
        Expr::Cast(Cast { expr, field }) => match own_cast(&expr, &field, false, schema)? {
            Some(call) => Ok(Transformed::yes(call)),
            None => Ok(Transformed::no(Expr::Cast(Cast { expr, field }))),
        },
        Expr::TryCast(TryCast { expr, field }) => match own_cast(&expr, &field, true, schema)? {
            Some(call) => Ok(Transformed::yes(call)),
            None => Ok(Transformed::no(Expr::TryCast(TryCast { expr, field }))),
        },
        Expr::Case(mut case) => {
            let results = case.when_then_expr.iter_mut().map(|(_, then)| then).chain(&mut case.else_expr);
            let kept = made_alike(results.map(AsMut::as_mut).collect(), schema)?;
            kept_type(Expr::Case(case), kept, is_retyped)
        }
        Expr::ScalarFunction(mut function) if CHOOSING.contains(&function.name()) => {
            if let Some(case) = time_choices::nullif(&function, schema)? {
                *is_retyped = true;
                return Ok(Transformed::yes(case));
            }
            let kept = made_alike(function.args.iter_mut().collect(), schema)?;
            kept_type(Expr::ScalarFunction(function), kept, is_retyped)
        }
        Expr::ScalarFunction(mut function) if matches!(function.name(), "concat" | "concat_ws") => {
            let args = std::mem::take(&mut function.args).into_iter().map(|arg| with_text(arg, schema));
            function.args = args.collect::<DFResult<_>>()?;
            Ok(Transformed::yes(Expr::ScalarFunction(function)))
        }
        other => Ok(Transformed::no(other)),
    }
}

/// The type of values of which one is chosen.
#[derive(Clone, Copy, PartialEq)]
enum Chosen {
    /// The planner knows the type.
    Known,
    /// They became texts, or timestamps.
    Retyped,
    /// All are of a type that the planner does not know: addresses or documents. The function gives them their type.
    Of(&'static str),
}

/// Values of which one is chosen: constant texts beside values of one type are of it, UUIDs and addresses beside texts
/// are texts.
fn made_alike(values: Vec<&mut Expr>, schema: &DFSchema) -> DFResult<Chosen> {
    let field = |value: &Expr| value.to_field(schema).ok().map(|(_, field)| field);
    let fields = values.iter().filter(|value| !is_text(value)).filter_map(|value| field(value));
    let fields: Vec<FieldRef> = fields.filter(|field| !field.data_type().is_null()).collect();
    let Some(like) = fields.first() else { return Ok(Chosen::Known) };
    let own = door::column_type(like);
    if fields.iter().any(|field| door::column_type(field) != own) {
        let all: Vec<Expr> = values.iter().map(|value| (**value).clone()).collect();
        if let Some(times) = time_choices::with_times(&all, schema) {
            values.into_iter().zip(times).for_each(|(value, time)| *value = time);
            return Ok(Chosen::Retyped);
        }
        if !fields.iter().any(|field| settled::is_text(field.data_type())) {
            return Ok(Chosen::Known);
        }
        for value in values {
            *value = with_text(std::mem::take(value), schema)?;
        }
        return Ok(Chosen::Retyped);
    }
    for value in values {
        if let Some(constant) = text(value).map(|text| constant(like, text)).transpose()?.flatten() {
            *value = Expr::Literal(constant, None);
        }
    }
    Ok(match own {
        Some(ColumnType::Ipv4) => Chosen::Of(identifiers::IPV4),
        Some(ColumnType::Json) => Chosen::Of(json::AS_JSON),
        Some(ColumnType::Jsonb) => Chosen::Of(json::AS_JSONB),
        _ => Chosen::Known,
    })
}

/// The choice, as what its values are.
fn kept_type(choice: Expr, of: Chosen, is_retyped: &mut bool) -> DFResult<Transformed<Expr>> {
    *is_retyped |= of != Chosen::Known;
    Ok(Transformed::yes(match of {
        Chosen::Of(name) => call(name, choice)?,
        Chosen::Known | Chosen::Retyped => choice,
    }))
}

/// Returns true for text without another name.
fn is_plain_text(field: &Field) -> bool {
    settled::is_text(field.data_type()) && door::column_type(field) == Some(ColumnType::Varchar)
}

fn is_identifier(field: &Field) -> bool {
    matches!(door::column_type(field), Some(ColumnType::Uuid | ColumnType::Ipv4))
}

/// A cast between text and a UUID, an IPv4 address or JSON, also of elements of arrays.
fn own_cast(expr: &Expr, field: &FieldRef, is_tried: bool, schema: &DFSchema) -> DFResult<Option<Expr>> {
    let Ok((_, given)) = expr.to_field(schema) else { return Ok(None) };
    if let (DataType::List(from), DataType::List(item)) = (given.data_type(), field.data_type()) {
        let (element, elements) = array_casts::element(from)?;
        // The type of the array alone tells that its elements are documents.
        let documents = door::document_type(field).filter(|of| door::document_type(&given) != Some(*of));
        let item = documents.map_or_else(|| item.clone(), |of| door::field("", of, true));
        let cast = own_cast(&element, &item, is_tried, &elements)?;
        return Ok(cast.map(|cast| array_casts::call(expr.clone(), from, cast, field)));
    }
    let (from, to) = (door::column_type(&given), door::column_type(field));
    if settled::is_text(field.data_type()) && matches!(from, Some(ColumnType::Uuid | ColumnType::Ipv4)) {
        let text = with_text(expr.clone(), schema)?;
        return Ok(Some(text.cast_to(field.data_type(), schema)?));
    }
    if is_plain_text(field) && matches!(from, Some(ColumnType::Json | ColumnType::Jsonb)) {
        let text = call(json::TO_TEXT, cast(expr.clone(), DataType::Utf8View))?;
        return Ok(Some(text.cast_to(field.data_type(), schema)?));
    }
    let is_from_text = matches!(from, Some(ColumnType::Varchar | ColumnType::Symbol));
    let name = match (to, is_tried) {
        (Some(ColumnType::Uuid), false) => identifiers::TEXT_TO_UUID,
        (Some(ColumnType::Uuid), true) => identifiers::TRY_TEXT_TO_UUID,
        (Some(ColumnType::Ipv4), false) => identifiers::TEXT_TO_IPV4,
        (Some(ColumnType::Ipv4), true) => identifiers::TRY_TEXT_TO_IPV4,
        (Some(ColumnType::Json), false) => json::TEXT_TO_JSON,
        (Some(ColumnType::Json), true) => json::TRY_TEXT_TO_JSON,
        (Some(ColumnType::Jsonb), false) => json::TEXT_TO_JSONB,
        (Some(ColumnType::Jsonb), true) => json::TRY_TEXT_TO_JSONB,
        _ => return Ok(None),
    };
    let is_document = to == Some(ColumnType::Jsonb) && from == Some(ColumnType::Json);
    (is_from_text || is_document).then(|| call(name, cast(expr.clone(), DataType::Utf8View))).transpose()
}

/// The text of a UUID or an IPv4 address; anything else as it is.
pub(super) fn with_text(expr: Expr, schema: &DFSchema) -> DFResult<Expr> {
    let field = expr.to_field(schema).ok().map(|(_, field)| field);
    match field.and_then(|field| door::column_type(&field)) {
        Some(ColumnType::Uuid) => call(identifiers::UUID_TO_TEXT, expr),
        Some(ColumnType::Ipv4) => call(identifiers::IPV4_TO_TEXT, expr),
        _ => Ok(expr),
    }
}

/// Arrow orders −0 before 0, PostgreSQL and we hold them equal: a comparison with zero is made with the one of the two
/// that gives the same answer for both.
fn zero_comparison(expr: &Expr, schema: &DFSchema) -> Option<Expr> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expr else { return None };
    let (value, op) = if is_zero(right) { (left, *op) } else { (right, op.swap().filter(|_| is_zero(left))?) };
    if is_zero(value) || !value.get_type(schema).is_ok_and(|t| t.is_floating()) {
        return None;
    }
    let value = || value.as_ref().clone();
    Some(match op {
        Operator::Lt => value().lt(lit(-0.0)),
        Operator::GtEq => value().gt_eq(lit(-0.0)),
        Operator::Gt => value().gt(lit(0.0)),
        Operator::LtEq => value().lt_eq(lit(0.0)),
        Operator::Eq => value().gt_eq(lit(-0.0)).and(value().lt_eq(lit(0.0))),
        Operator::NotEq => value().lt(lit(-0.0)).or(value().gt(lit(0.0))),
        _ => return None,
    })
}

fn is_zero(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(ScalarValue::Float64(Some(v)), _) => *v == 0.0,
        Expr::Literal(ScalarValue::Int64(Some(v)), _) => *v == 0,
        Expr::Negative(inner) => is_zero(inner),
        _ => false,
    }
}

/// Casts a constant text to the type of the value beside it, as PostgreSQL types such constants.
///
/// Only for types that the planner does not compare with text.
pub(crate) fn text_as(value: Expr, beside: &Expr, schema: &DFSchema) -> DFResult<Expr> {
    if !is_text(&value) || is_text(beside) {
        return Ok(value);
    }
    let Ok((_, field)) = beside.to_field(schema) else { return Ok(value) };
    if let Some(own @ (ColumnType::Json | ColumnType::Jsonb)) = door::column_type(&field) {
        return Ok(Expr::Cast(Cast::new_from_field(Box::new(value), door::field("", own, true))));
    }
    Ok(match field.data_type() {
        DataType::FixedSizeBinary(_) => {
            let constant = text(&value).map(|text| constant(&field, text)).transpose()?.flatten();
            constant.map_or(value, |constant| Expr::Literal(constant, None))
        }
        data_type if lacks_text_comparison(data_type) => Expr::Cast(Cast::new_from_field(Box::new(value), field)),
        _ => value,
    })
}

/// Returns true if the planner does not compare values of a type with text.
fn lacks_text_comparison(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Boolean | DataType::List(_) | DataType::Binary | DataType::BinaryView | DataType::Interval(_)
    )
}

/// Casts a constant text to an array of values like `beside`.
pub(crate) fn text_as_list(value: Expr, beside: &Expr, schema: &DFSchema) -> DFResult<Expr> {
    if !is_text(&value) {
        return Ok(value);
    }
    let Ok((_, item)) = beside.to_field(schema) else { return Ok(value) };
    let list = door::array_field(&item).map(Arc::new);
    let list =
        list.unwrap_or_else(|| Arc::new(Field::new("", DataType::List(door::item(item.data_type().clone())), true)));
    Ok(Expr::Cast(Cast::new_from_field(Box::new(value), list)))
}

/// Casts the constant texts among values of which one is chosen to the type of the first other value.
pub(crate) fn texts_alike(values: Vec<&mut Expr>, schema: &DFSchema) -> DFResult<()> {
    let is_known = |value: &Expr| !is_text(value) && value.get_type(schema).is_ok_and(|t| !t.is_null());
    let Some(like) = values.iter().find(|value| is_known(value)).map(|value| Expr::clone(value)) else { return Ok(()) };
    for value in values {
        *value = text_as(std::mem::take(value), &like, schema)?;
    }
    Ok(())
}

/// Casts the constant texts among values of which one is chosen, also if the other values are dates or timestamps.
pub(crate) fn chosen_texts_alike(mut values: Vec<&mut Expr>, schema: &DFSchema) -> DFResult<()> {
    let others = values.iter().filter(|value| !is_text(value)).filter_map(|value| value.get_type(schema).ok());
    let others: Vec<DataType> = others.filter(|data_type| !data_type.is_null()).collect();
    let is_time = |data_type: &DataType| matches!(data_type, DataType::Date32 | DataType::Timestamp(_, None));
    if others.iter().all(is_time)
        && let Some(to) = time_choices::type_of_dates(others.iter()).or_else(|| others.first().cloned())
    {
        for value in values.iter_mut() {
            match text(value) {
                Some(text) if to == DataType::Date32 => {
                    let day = parse_date(text).ok_or_else(|| Error::invalid_time("DATE", text))?;
                    **value = lit(ScalarValue::Date32(Some(day)));
                }
                Some(_) => **value = cast(std::mem::take(&mut **value), to.clone()),
                None => {}
            }
        }
    }
    texts_alike(values, schema)
}

/// Returns true for NULL, also of a type.
pub(crate) fn is_null(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(value, _) => value.is_null(),
        Expr::Cast(cast) => is_null(&cast.expr),
        _ => false,
    }
}

fn is_text(expr: &Expr) -> bool {
    text(expr).is_some()
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

/// `value`, when it is text, as a constant of the type of `like`, if that is one of ours.
pub(super) fn typed_text(like: &Expr, value: Expr, schema: &DFSchema) -> Result<Expr> {
    let Some(text) = text(&value) else { return Ok(value) };
    let Ok((_, field)) = like.to_field(schema) else { return Ok(value) };
    if lacks_text_comparison(field.data_type()) {
        return Ok(text_as(value, like, schema)?);
    }
    Ok(constant(&field, text)?.map_or(value, |constant| Expr::Literal(constant, None)))
}

/// `None` when the field is of another type.
pub(crate) fn constant(field: &Field, text: &str) -> Result<Option<ScalarValue>> {
    let refused = || Error::invalid_text(&door::type_name(field), text);
    Ok(match (door::column_type(field), field.data_type()) {
        (Some(ColumnType::Timestamp(unit)), DataType::Timestamp(_, None)) => {
            Some(timestamp(text, unit).ok_or_else(|| Error::invalid_time(&door::type_name(field), text))?)
        }
        (Some(ColumnType::Uuid), DataType::FixedSizeBinary(16)) => {
            let bytes = door::batches::uuid_bytes(text).ok_or_else(refused)?;
            Some(ScalarValue::FixedSizeBinary(16, Some(bytes.to_vec())))
        }
        (Some(ColumnType::Jsonb), _) => Some(ScalarValue::Utf8View(Some(json::normalize(text)?))),
        (Some(ColumnType::Ipv4), _) => {
            let address: std::net::Ipv4Addr = text.trim().parse().map_err(|_| refused())?;
            Some(ScalarValue::UInt32(Some(address.into())))
        }
        _ => None,
    })
}

/// In the column's unit; finer when the text is, so that the comparison stays exact.
fn timestamp(text: &str, unit: TimeUnit) -> Option<ScalarValue> {
    // A time past the range of the unit is compared in a coarser unit.
    let coarser = || {
        [TimeUnit::Micros, TimeUnit::Millis].into_iter().find_map(|unit| Some((parse_timestamp(text, unit)?.0, unit)))
    };
    let (value, unit) = match parse_timestamp(text, unit) {
        Some((value, true)) => (value, unit),
        Some((value, false)) => {
            parse_timestamp(text, TimeUnit::Nanos).map_or((value, unit), |(value, _)| (value, TimeUnit::Nanos))
        }
        None => coarser()?,
    };
    Some(match unit {
        TimeUnit::Millis => ScalarValue::TimestampMillisecond(Some(value), None),
        TimeUnit::Micros => ScalarValue::TimestampMicrosecond(Some(value), None),
        TimeUnit::Nanos => ScalarValue::TimestampNanosecond(Some(value), None),
    })
}
