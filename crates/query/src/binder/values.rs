//! VALUES.

use super::names::folded_parts;
use super::number_types;
use super::scope::{Env, Place};
use super::select::empty_scope;
use super::{Binder, Result, value_types};
use crate::plan::with_times;
use crate::{Error, door};
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::DFSchema;
use datafusion::common::tree_node::TreeNode;
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use tidalite_sql::ast::{self, ExprKind, Literal};
use tidalite_types::{ColumnType, SqlState, TimeUnit};

/// Digits of a second that a timestamp in microseconds has.
const MICROS_DIGITS: usize = 6;

impl Binder<'_> {
    pub(super) fn rows_of_values(&self, rows: &[Vec<ast::Expr>], env: &Env) -> Result<LogicalPlan> {
        let scope = empty_scope(env.outer);
        let place = Place::new(&scope, env);
        let mut values = rows
            .iter()
            .map(|row| row.iter().map(|cell| self.expr(cell, place)).collect::<Result<Vec<_>>>())
            .collect::<Result<Vec<_>>>()?;
        let width = width(rows)?;
        for column in 0..width {
            self.type_column(rows, &mut values, column)?;
            number_types::type_column(&mut values, column, &scope.schema)?;
            times_in_column(&mut values, column, &scope.schema);
            value_types::type_column(rows, &mut values, column, &scope.schema)?;
        }
        let is_outer = |value: &Expr| value.exists(|expr| Ok(matches!(expr, Expr::OuterReferenceColumn(..))));
        let mut has_outer = false;
        for value in values.iter().flatten() {
            has_outer |= is_outer(value)?;
        }
        if has_outer { union_of(values) } else { Ok(LogicalPlanBuilder::values(values)?.build()?) }
    }

    /// Casts the strings of a column to the type that another of its cells states, as PostgreSQL does.
    fn type_column(&self, rows: &[Vec<ast::Expr>], values: &mut [Vec<Expr>], column: usize) -> Result<()> {
        let mut known = None;
        for cell in rows.iter().filter_map(|row| row.get(column)) {
            known = self.stated_type(cell)?;
            if known.is_some() {
                break;
            }
        }
        let Some(known) = known else { return Ok(()) };
        let is_time = matches!(known.data_type(), DataType::Timestamp(..));
        let mut cells = rows.iter().filter_map(|row| row.get(column));
        let is_finer = is_time && cells.any(|cell| text(cell).is_some_and(has_nanoseconds));
        let known = if is_finer { door::field("", ColumnType::Timestamp(TimeUnit::Nanos), true) } else { known };
        for (row, bound) in rows.iter().zip(values) {
            let is_cast = row.get(column).is_some_and(|cell| is_finer || text(cell).is_some() || is_null(cell));
            if let Some(value) = bound.get_mut(column).filter(|_| is_cast) {
                let inner = std::mem::replace(value, Expr::Literal(datafusion::common::ScalarValue::Null, None));
                *value = Expr::Cast(Cast::new_from_field(Box::new(inner), known.clone()));
            }
        }
        Ok(())
    }

    /// Returns the type that a cell states: a typed string, a cast or a clock function.
    fn stated_type(&self, cell: &ast::Expr) -> Result<Option<FieldRef>> {
        Ok(match &cell.kind {
            ExprKind::Typed { data_type, .. } | ExprKind::Cast { data_type, .. } => Some(self.type_field(data_type)?),
            ExprKind::Function(call) if folded_parts(&call.name) == ["now"] => {
                Some(door::field("", ColumnType::Timestamp(TimeUnit::Micros), true))
            }
            _ => None,
        })
    }
}

/// Returns the number of cells of each row.
fn width(rows: &[Vec<ast::Expr>]) -> Result<usize> {
    let width = rows.first().map(Vec::len).unwrap_or_default();
    let Some(other) = rows.iter().find(|row| row.len() != width) else { return Ok(width) };
    let error = Error::invalid("VALUES lists must all be the same length").with_code(SqlState::SYNTAX_ERROR);
    let first = other.first().or_else(|| rows[0].first());
    Err(error.at(first.map(|cell| cell.span.start as usize).unwrap_or_default()).into())
}

/// Casts the dates of a column to timestamps if the column also has timestamps.
fn times_in_column(values: &mut [Vec<Expr>], column: usize, schema: &DFSchema) {
    let cells: Vec<Expr> = values.iter().filter_map(|row| row.get(column)).cloned().collect();
    let Some(times) = with_times(&cells, schema) else { return };
    let cells = values.iter_mut().filter_map(|row| row.get_mut(column));
    cells.zip(times).for_each(|(cell, time)| *cell = time);
}

/// Returns rows of outer columns, which VALUES cannot have.
fn union_of(rows: Vec<Vec<Expr>>) -> Result<LogicalPlan> {
    let mut plan: Option<LogicalPlan> = None;
    for row in rows {
        let named = row.into_iter().enumerate().map(|(at, value)| value.alias(format!("column{}", at + 1)));
        let row = LogicalPlanBuilder::empty(true).project(named.collect::<Vec<_>>())?.build()?;
        plan = Some(match plan {
            Some(before) => {
                let (before, row) = number_types::typed_members(before, row, false)?;
                LogicalPlanBuilder::from(before).union(row)?.build()?
            }
            None => row,
        });
    }
    plan.ok_or_else(|| Error::internal("VALUES without rows").into())
}

fn is_null(cell: &ast::Expr) -> bool {
    matches!(cell.kind, ExprKind::Literal(Literal::Null))
}

fn text(cell: &ast::Expr) -> Option<&str> {
    match &cell.kind {
        ExprKind::Literal(Literal::Text(text)) => Some(text),
        _ => None,
    }
}

/// Returns true if a time has more digits of a second than microseconds.
fn has_nanoseconds(text: &str) -> bool {
    let fraction = text.rsplit_once('.').map_or("", |(_, fraction)| fraction);
    fraction.bytes().take_while(u8::is_ascii_digit).count() > MICROS_DIGITS
}
