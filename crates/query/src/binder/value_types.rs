//! The common type of a column of VALUES whose cells have types that share an Arrow type with others: instants, JSON.
//!
//! DataFusion compares the metadata of such cells and rejects any difference.

use super::Result;
use crate::plan::is_null;
use crate::{Error, door};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::{Expr, ExprSchemable};
use std::sync::Arc;
use tidalite_sql::ast;
use tidalite_types::SqlState;

/// Casts the cells of a column to one type, if their fields differ in metadata.
///
/// # Errors
/// The cells have different types without a common one.
pub(super) fn type_column(
    rows: &[Vec<ast::Expr>],
    values: &mut [Vec<Expr>],
    column: usize,
    schema: &DFSchema,
) -> Result<()> {
    let cells = || values.iter().filter_map(|row| row.get(column));
    // The field of a plain constant has no metadata. Fields are not computed for the cells of large VALUES.
    if cells().all(|cell| matches!(cell, Expr::Literal(_, None))) {
        return Ok(());
    }
    let fields: Vec<FieldRef> = cells().map(|cell| Ok(cell.to_field(schema)?.1)).collect::<Result<_>>()?;
    if fields.windows(2).all(|pair| pair[0].metadata() == pair[1].metadata()) {
        return Ok(());
    }
    if fields.iter().all(|field| field.data_type().is_numeric()) {
        let cells = values.iter_mut().filter_map(|row| row.get_mut(column));
        cells.zip(&fields).for_each(|(cell, field)| cast(cell, &Arc::new(plain(field))));
        return Ok(());
    }
    let mut common: Option<Field> = None;
    for ((row, cell), field) in rows.iter().zip(cells()).zip(&fields) {
        if is_null(cell) {
            continue;
        }
        common = match common {
            None => Some(plain(field)),
            Some(known) => Some(merged(&known, field).ok_or_else(|| {
                let (one, other) = (door::type_name(&known), door::type_name(field));
                let error = Error::invalid(format!("VALUES types {one} and {other} cannot be matched"));
                error.with_code(SqlState::DATATYPE_MISMATCH).at(row[column].span.start as usize)
            })?),
        };
    }
    let Some(common) = common.map(Arc::new) else { return Ok(()) };
    values.iter_mut().filter_map(|row| row.get_mut(column)).for_each(|cell| cast(cell, &common));
    Ok(())
}

fn cast(cell: &mut Expr, to: &FieldRef) {
    let inner = std::mem::replace(cell, Expr::Literal(ScalarValue::Null, None));
    *cell = Expr::Cast(Cast::new_from_field(Box::new(inner), to.clone()));
}

/// Returns a field of the same type, without the metadata of a column.
fn plain(field: &Field) -> Field {
    let unnamed = || Field::new("", field.data_type().clone(), true);
    let plain = match (door::carried_pg_type(field), door::column_type(field)) {
        (Some(of), _) => door::with_pg_type(unnamed(), of),
        (None, Some(own)) if !field.data_type().is_nested() => Field::clone(&door::field("", own, true)),
        _ => unnamed(),
    };
    if door::has_instants(field) { door::of_instants(plain) } else { plain }
}

/// Returns the common type of two fields.
fn merged(one: &Field, other: &Field) -> Option<Field> {
    let other = plain(other);
    match (one.data_type(), other.data_type()) {
        (DataType::Timestamp(a, None), DataType::Timestamp(b, None)) => {
            let unit = if [a, b].contains(&&TimeUnit::Nanosecond) { TimeUnit::Nanosecond } else { *a };
            let like = if door::has_instants(one) { one } else { &other };
            Some(Field::new("", DataType::Timestamp(unit, None), true).with_metadata(like.metadata().clone()))
        }
        _ if *one == other => Some(other),
        _ => None,
    }
}
