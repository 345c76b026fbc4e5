//! Numbers of several types in arrays, VALUES, set operations and sub-queries.
//!
//! The binder decides the types of these parts before the number literals in them are exact
//! ([`crate::plan::exact_numbers`]), so the parts are made exact first.

use super::Result;
use crate::plan::{self, exact_expr, exact_numbers, is_fraction, with_doubles};
use datafusion::common::{DFSchema, Result as DFResult};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};

/// Returns the items of an array, or the cells of a column, of one type of numbers.
pub(super) fn typed_items(items: Vec<Expr>, schema: &DFSchema) -> Result<Vec<Expr>> {
    let items = items.into_iter().map(|item| exact_expr(item, schema)).collect::<DFResult<Vec<_>>>()?;
    Ok(with_doubles(&items, schema).unwrap_or(items))
}

/// Gives the cells of a column of VALUES one type of numbers.
pub(super) fn type_column(values: &mut [Vec<Expr>], column: usize, schema: &DFSchema) -> Result<()> {
    let cells = values.iter().filter_map(|row| row.get(column)).cloned().collect();
    let typed = typed_items(cells, schema)?;
    let cells = values.iter_mut().filter_map(|row| row.get_mut(column));
    cells.zip(typed).for_each(|(cell, value)| *cell = value);
    Ok(())
}

/// Returns the members of a set operation with columns of the same types of numbers and times.
pub(super) fn typed_members(
    left: LogicalPlan,
    right: LogicalPlan,
    by_name: bool,
) -> Result<(LogicalPlan, LogicalPlan)> {
    let (left, right) = match plan::members_have_fractions(&left, &right, by_name) {
        true => (exact_numbers(left)?, exact_numbers(right)?),
        false => (left, right),
    };
    Ok(plan::typed_members(left, right, by_name)?)
}

/// Returns a value and the rows of a sub-query of one type of numbers.
pub(super) fn typed_comparison(value: Expr, schema: &DFSchema, rows: LogicalPlan) -> Result<(Expr, LogicalPlan)> {
    let theirs = rows.schema().field(0).data_type();
    if !is_fraction(&value.get_type(schema)?) && !is_fraction(theirs) {
        return Ok((value, rows));
    }
    Ok(plan::typed_comparison(exact_expr(value, schema)?, schema, exact_numbers(rows)?)?)
}
