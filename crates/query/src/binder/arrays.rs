//! Arrays, rows, subscripts and parts of structs.

use super::names::folded;
use super::number_types::typed_items;
use super::operators::text;
use super::scope::Place;
use super::{Binder, Result};
use crate::functions::{array_part, json};
use crate::plan::{chosen_texts_alike, with_times};
use crate::{Error, door};
use datafusion::arrow::datatypes::{Field, FieldRef};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::planner::{PlannerResult, RawFieldAccessExpr};
use datafusion::logical_expr::{Expr, ExprSchemable, GetFieldAccess, lit};
use std::sync::Arc;
use tidalite_sql::Span;
use tidalite_sql::ast::{self, ExprKind, Ident, Literal, Subscript};
use tidalite_types::{ColumnType, pg_type};

/// Rows within rows: the stock planner derives the type of a row twice at each level.
const ROW_LEVELS_MAX: usize = 10;

/// Returns the number of rows within each other.
fn levels(value: &ast::Expr) -> usize {
    match &value.kind {
        ExprKind::Row(values) => 1 + values.iter().map(levels).max().unwrap_or(0),
        _ => 0,
    }
}

/// Gives NULL among the items of an array the type of the first other item.
fn with_typed_nulls(items: Vec<Expr>, schema: &DFSchema) -> Result<Vec<Expr>> {
    let fields = items.iter().map(|item| Ok(item.to_field(schema)?.1)).collect::<Result<Vec<_>>>()?;
    let Some(known) = fields.iter().find(|field| !field.data_type().is_null()).cloned() else { return Ok(items) };
    let typed = |(item, field): (Expr, FieldRef)| match field.data_type().is_null() {
        true => Expr::Cast(Cast::new_from_field(Box::new(item), known.clone())),
        false => item,
    };
    Ok(items.into_iter().zip(fields).map(typed).collect())
}

/// Returns the type of an array of JSON documents.
pub(super) fn document_list(item: &Field) -> Option<FieldRef> {
    match door::column_type(item) {
        Some(ColumnType::Json | ColumnType::Jsonb) => door::array_field(item).map(Arc::new),
        _ => None,
    }
}

/// Returns the function that gives an element of an array of JSON documents its type.
fn document_function(array: &Field) -> Option<&'static str> {
    match door::pg_type(array) {
        of if of.oid == pg_type::JSON.array => Some(json::AS_JSON),
        of if of.oid == pg_type::JSONB.array => Some(json::AS_JSONB),
        _ => None,
    }
}

/// Returns the type of an array of strings for an array of JSON documents: the strings are elements before they are
/// documents.
pub(super) fn texts_of_documents(array: &Field) -> Option<FieldRef> {
    document_function(array).map(|_| Arc::new(Field::new("", array.data_type().clone(), true)))
}

/// Gives an array its type, if that is one of JSON documents.
pub(super) fn with_document_type(array: Expr, field: Option<FieldRef>) -> Expr {
    match field {
        Some(field) => Expr::Cast(Cast::new_from_field(Box::new(array), field)),
        None => array,
    }
}

/// The end of a slice without an upper bound: no array is longer.
const LAST: i64 = i32::MAX as i64;

impl Binder<'_> {
    /// Binds `ARRAY[a, b]`.
    pub(super) fn array(&self, items: &[ast::Expr], place: Place) -> Result<Expr> {
        let items = self.exprs(items, place)?;
        self.array_of(items, place.scope.schema.as_ref())
    }

    pub(super) fn array_of(&self, items: Vec<Expr>, schema: &DFSchema) -> Result<Expr> {
        let mut items = with_typed_nulls(items, schema)?;
        chosen_texts_alike(items.iter_mut().collect(), schema)?;
        let documents = items.first().map(|item| item.to_field(schema)).transpose()?;
        let documents = documents.and_then(|(_, field)| document_list(&field));
        let mut items = typed_items(items, schema)?;
        items = with_times(&items, schema).unwrap_or(items);
        for planner in self.state.expr_planners() {
            match planner.plan_array_literal(items, schema)? {
                PlannerResult::Planned(expr) => return Ok(with_document_type(expr, documents)),
                PlannerResult::Original(original) => items = original,
            }
        }
        Err(Error::internal("an array was not planned").into())
    }

    /// Binds `(a, b)` as a struct.
    pub(super) fn row(&self, values: &[ast::Expr], place: Place, span: Span) -> Result<Expr> {
        if values.iter().map(levels).max() >= Some(ROW_LEVELS_MAX) {
            let message = format!("rows are nested more than {ROW_LEVELS_MAX} levels deep");
            return Err(Error::invalid(message).at(span.start as usize).into());
        }
        let mut values = self.exprs(values, place)?;
        for planner in self.state.expr_planners() {
            match planner.plan_struct_literal(values, false)? {
                PlannerResult::Planned(expr) => return Ok(expr),
                PlannerResult::Original(original) => values = original,
            }
        }
        Err(Error::internal("a row was not planned").into())
    }

    /// Binds `x[1]`, `x[1:2, 3]`, `x['part']`.
    pub(super) fn subscripts(&self, operand: &ast::Expr, subscripts: &[Subscript], place: Place) -> Result<Expr> {
        let is_slice = |subscript: &Subscript| matches!(subscript, Subscript::Slice { .. });
        let mut value = self.expr(operand, place)?;
        for (at, subscript) in subscripts.iter().enumerate() {
            // A slice before another subscript keeps the dimension.
            if is_slice(subscript) && at + 1 < subscripts.len() {
                return self.part(value, &subscripts[at..], place);
            }
            value = self.subscript(value, subscript, place)?;
        }
        Ok(value)
    }

    fn subscript(&self, value: Expr, subscript: &Subscript, place: Place) -> Result<Expr> {
        let access = match subscript {
            Subscript::Index(index) => match &index.kind {
                ExprKind::Literal(Literal::Text(name)) => {
                    GetFieldAccess::NamedStructField { name: ScalarValue::from(name.clone()) }
                }
                _ => GetFieldAccess::ListIndex { key: Box::new(self.expr(index, place)?) },
            },
            Subscript::Slice { lower, upper, stride } => {
                let (start, stop) = self.bounds(lower.as_deref(), upper.as_deref(), place)?;
                let stride = stride.as_deref().map(|stride| self.expr(stride, place)).transpose()?;
                let stride = Box::new(stride.unwrap_or_else(|| lit(1_i64)));
                GetFieldAccess::ListRange { start: Box::new(start), stop: Box::new(stop), stride }
            }
        };
        let document = match &access {
            GetFieldAccess::ListIndex { .. } => document_function(&value.to_field(&place.scope.schema)?.1),
            _ => None,
        };
        let mut raw = RawFieldAccessExpr { expr: value, field_access: access };
        for planner in self.state.expr_planners() {
            match planner.plan_field_access(raw, &place.scope.schema)? {
                PlannerResult::Planned(expr) => {
                    return match document {
                        Some(name) => self.scalar_call(name, vec![expr]),
                        None => Ok(expr),
                    };
                }
                PlannerResult::Original(original) => raw = original,
            }
        }
        Err(Error::internal("a subscript was not planned").into())
    }

    fn bounds(&self, lower: Option<&ast::Expr>, upper: Option<&ast::Expr>, place: Place) -> Result<(Expr, Expr)> {
        let lower = lower.map(|lower| self.expr(lower, place)).transpose()?;
        let upper = upper.map(|upper| self.expr(upper, place)).transpose()?;
        Ok((lower.unwrap_or_else(|| lit(1_i64)), upper.unwrap_or_else(|| lit(LAST))))
    }

    /// Binds subscripts of several dimensions that begin with a slice.
    fn part(&self, value: Expr, subscripts: &[Subscript], place: Place) -> Result<Expr> {
        let (mut kinds, mut places) = (String::new(), Vec::new());
        for subscript in subscripts {
            match subscript {
                Subscript::Index(index) => {
                    kinds.push(array_part::INDEX);
                    places.push(self.expr(index, place)?);
                }
                Subscript::Slice { lower, upper, .. } => {
                    kinds.push(array_part::SLICE);
                    let (start, stop) = self.bounds(lower.as_deref(), upper.as_deref(), place)?;
                    places.extend([start, stop]);
                }
            }
        }
        let args = [value, text(kinds)].into_iter().chain(places).collect();
        self.scalar_call(array_part::NAME, args)
    }

    /// Binds `(x).name`.
    pub(super) fn field(&self, operand: &ast::Expr, name: &Ident, place: Place) -> Result<Expr> {
        let value = self.expr(operand, place)?;
        self.scalar_call("get_field", vec![value, text(folded(name))])
    }
}
