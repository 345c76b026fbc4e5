//! VALUES of constants as a record batch, without a plan: planning would take ten times as long.
//!
//! All other rows are planned.

use crate::Parameter;
use crate::binder::{Parameters, Tree};
use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, NullArray, RecordBatch, RecordBatchOptions, StringViewArray,
};
use datafusion::arrow::datatypes::{Field, Schema};
use std::borrow::Cow;
use std::sync::Arc;
use tidalite_sql::ast::{Body, CastKind, Expr, ExprKind, Literal, TypeName, UnaryOperator};
use tidalite_types::{ColumnType, TimeUnit};

enum Cell<'a> {
    Null,
    Text(&'a str),
    Number(Cow<'a, str>),
    Bool(bool),
}

/// Returns the rows of VALUES if all values are constants.
///
/// `types` are the types of the columns that the values are for: a number for a DECIMAL keeps all digits.
pub(crate) fn constant_rows(tree: &Tree, types: &[ColumnType]) -> Option<RecordBatch> {
    let query = &tree.query;
    let Body::Values(rows) = &query.body else { return None };
    let Parameters::Values(parameters) = &tree.parameters else { return None };
    let is_plain = query.with.is_none() && query.order_by.is_none() && query.limit.is_none();
    let width = rows.first()?.len();
    if !is_plain || width == 0 || rows.iter().any(|row| row.len() != width) {
        return None;
    }
    let mut arrays = Vec::with_capacity(width);
    for index in 0..width {
        let column_type = types.get(index).copied();
        let cells = rows.iter().map(|row| cell(&row[index], parameters, column_type));
        arrays.push(array(&cells.collect::<Option<Vec<_>>>()?, column_type)?);
    }
    let field =
        |(at, array): (usize, &ArrayRef)| Field::new(format!("column{}", at + 1), array.data_type().clone(), true);
    let schema = Arc::new(Schema::new(arrays.iter().enumerate().map(field).collect::<Vec<_>>()));
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    RecordBatch::try_new_with_options(schema, arrays, &options).ok()
}

fn cell<'a>(expr: &'a Expr, parameters: &'a [Parameter], column_type: Option<ColumnType>) -> Option<Cell<'a>> {
    match &expr.kind {
        ExprKind::Literal(Literal::Null) => Some(Cell::Null),
        ExprKind::Literal(Literal::Text(text)) => Some(Cell::Text(text)),
        ExprKind::Literal(Literal::Number(digits)) if !is_hexadecimal(digits) => Some(Cell::Number(digits.into())),
        ExprKind::Literal(Literal::Boolean(value)) => Some(Cell::Bool(*value)),
        ExprKind::Parameter(number) => parameters.get((*number as usize).checked_sub(1)?).and_then(value),
        ExprKind::Cast { kind: CastKind::Cast | CastKind::DoubleColon, operand, data_type } => {
            cell(operand, parameters, column_type).filter(|cell| is_same(cell, data_type, column_type))
        }
        ExprKind::Unary { op: UnaryOperator::Minus, operand } => match cell(operand, parameters, column_type)? {
            Cell::Number(text) if !text.starts_with('-') => Some(Cell::Number(Cow::Owned(format!("-{text}")))),
            _ => None,
        },
        _ => None,
    }
}

fn is_hexadecimal(digits: &str) -> bool {
    digits.starts_with("0x") || digits.starts_with("0X")
}

fn value(parameter: &Parameter) -> Option<Cell<'_>> {
    match parameter {
        Parameter::Null => Some(Cell::Null),
        Parameter::Boolean(value) => Some(Cell::Bool(*value)),
        Parameter::Long(value) => Some(Cell::Number(Cow::Owned(value.to_string()))),
        Parameter::Double(value) if value.is_finite() => Some(Cell::Number(Cow::Owned(format!("{value:?}")))),
        Parameter::Decimal(digits) => Some(Cell::Number(digits.into())),
        Parameter::Text(text) | Parameter::Typed(text, _) | Parameter::Of(text, _) => Some(Cell::Text(text)),
        Parameter::Double(_) | Parameter::Bytes(_) | Parameter::List(_) => None,
    }
}

/// Returns true if a cast of a constant to the type of its column changes nothing, as drivers write it: `$1::INTEGER`.
fn is_same(cell: &Cell, data_type: &TypeName, column_type: Option<ColumnType>) -> bool {
    let [name] = data_type.name.parts.as_slice() else { return false };
    if !data_type.args.is_empty() || !data_type.dimensions.is_empty() || data_type.with_time_zone == Some(true) {
        return false;
    }
    let name = name.value.to_ascii_lowercase();
    let is_whole = |text: &str| text.parse::<i64>().is_ok();
    match (cell, name.as_str(), column_type) {
        (Cell::Number(text), "smallint" | "int2", Some(ColumnType::Short))
        | (Cell::Number(text), "int" | "integer" | "int4", Some(ColumnType::Int))
        | (Cell::Number(text), "bigint" | "int8", Some(ColumnType::Long)) => is_whole(text),
        (Cell::Number(_), "double" | "double precision" | "float" | "float8", Some(ColumnType::Double))
        | (Cell::Bool(_), "boolean" | "bool", Some(ColumnType::Boolean))
        | (Cell::Text(_), "varchar" | "text", Some(ColumnType::Varchar | ColumnType::Symbol))
        | (Cell::Text(_), "timestamp", Some(ColumnType::Timestamp(TimeUnit::Micros))) => true,
        _ => false,
    }
}

fn array(cells: &[Cell], column_type: Option<ColumnType>) -> Option<ArrayRef> {
    let all = |is: fn(&Cell) -> bool| cells.iter().all(|cell| matches!(cell, Cell::Null) || is(cell));
    if all(|_| false) {
        return Some(Arc::new(NullArray::new(cells.len())));
    }
    if all(|cell| matches!(cell, Cell::Bool(_))) {
        let values = cells.iter().map(|cell| if let Cell::Bool(value) = cell { Some(*value) } else { None });
        return Some(Arc::new(values.collect::<BooleanArray>()));
    }
    if all(|cell| matches!(cell, Cell::Number(_))) && !matches!(column_type, Some(ColumnType::Decimal { .. })) {
        return numbers(cells);
    }
    // The text of a number is converted like the number.
    let texts = cells.iter().map(|cell| match cell {
        Cell::Null => None,
        Cell::Text(text) => Some(*text),
        Cell::Number(text) => Some(text.as_ref()),
        Cell::Bool(value) => Some(if *value { "true" } else { "false" }),
    });
    Some(Arc::new(texts.collect::<StringViewArray>()))
}

/// Returns integers if all numbers are, else doubles.
fn numbers(cells: &[Cell]) -> Option<ArrayRef> {
    fn parsed<T: std::str::FromStr>(cells: &[Cell]) -> Option<Vec<Option<T>>> {
        let values = cells.iter().map(|cell| match cell {
            Cell::Null => Some(None),
            Cell::Number(text) => text.parse().ok().map(Some),
            _ => None,
        });
        values.collect()
    }
    if let Some(integers) = parsed::<i64>(cells) {
        return Some(Arc::new(Int64Array::from(integers)));
    }
    // The planner rejects or widens an integer that is too large for a LONG.
    let is_long = |text: &str| text.parse::<i64>().is_err() && text.bytes().all(|b| b.is_ascii_digit() || b == b'-');
    if cells.iter().any(|cell| matches!(cell, Cell::Number(text) if is_long(text))) {
        return None;
    }
    Some(Arc::new(Float64Array::from(parsed::<f64>(cells)?)))
}
