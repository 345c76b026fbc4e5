//! A VALUES list of constants as a record batch, without the planner: it would take ten times as long.
//!
//! What is not a constant is left to the planner.

use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, NullArray, RecordBatch, RecordBatchOptions, StringViewArray,
};
use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::sql::sqlparser::ast::{
    CastKind, DataType, ExactNumberInfo, Expr, Query, SetExpr, TimezoneInfo, UnaryOperator, Value,
};
use std::borrow::Cow;
use std::sync::Arc;
use tidalite_types::{ColumnType, TimeUnit};

enum Cell<'a> {
    Null,
    Text(&'a str),
    Number(Cow<'a, str>),
    Bool(bool),
}

/// `types` are those of the columns the values are for: a number for a DECIMAL keeps all its digits.
pub(crate) fn literal_rows(query: &Query, types: &[ColumnType]) -> Option<RecordBatch> {
    let is_plain =
        query.with.is_none() && query.order_by.is_none() && query.limit_clause.is_none() && query.fetch.is_none();
    let SetExpr::Values(values) = query.body.as_ref() else { return None };
    let width = values.rows.first()?.len();
    if !is_plain || width == 0 || values.rows.iter().any(|row| row.len() != width) {
        return None;
    }
    let mut arrays = Vec::with_capacity(width);
    for index in 0..width {
        let of = types.get(index).copied();
        let cells: Vec<Cell> = values.rows.iter().map(|row| cell(&row[index], of)).collect::<Option<_>>()?;
        arrays.push(array(&cells, of)?);
    }
    let fields =
        arrays.iter().enumerate().map(|(i, a)| Field::new(format!("column{}", i + 1), a.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let options = RecordBatchOptions::new().with_row_count(Some(values.rows.len()));
    RecordBatch::try_new_with_options(schema, arrays, &options).ok()
}

fn cell(expr: &Expr, of: Option<ColumnType>) -> Option<Cell<'_>> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Null => Some(Cell::Null),
            Value::SingleQuotedString(text) => Some(Cell::Text(text)),
            Value::Number(text, _) => Some(Cell::Number(Cow::Borrowed(text))),
            Value::Boolean(value) => Some(Cell::Bool(*value)),
            _ => None,
        },
        Expr::Cast { kind: CastKind::Cast | CastKind::DoubleColon, expr, data_type, .. } => {
            match long_number(expr, data_type) {
                Some(digits) => Some(Cell::Number(Cow::Borrowed(digits))),
                None => cell(expr, of).filter(|cell| is_same(cell, data_type, of)),
            }
        }
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match cell(expr, of)? {
            Cell::Number(text) if !text.starts_with('-') => Some(Cell::Number(Cow::Owned(format!("-{text}")))),
            _ => None,
        },
        _ => None,
    }
}

/// Returns true if a cast of a constant to the type of its column changes nothing, as drivers write it: `$1::INTEGER`.
fn is_same(cell: &Cell, data_type: &DataType, of: Option<ColumnType>) -> bool {
    let is_whole = |text: &str| text.parse::<i64>().is_ok();
    match (cell, data_type, of) {
        (Cell::Number(text), DataType::SmallInt(None) | DataType::Int2(None), Some(ColumnType::Short))
        | (Cell::Number(text), DataType::Int(None) | DataType::Integer(None), Some(ColumnType::Int))
        | (Cell::Number(text), DataType::BigInt(None) | DataType::Int8(None), Some(ColumnType::Long)) => is_whole(text),
        (Cell::Number(_), DataType::Float(ExactNumberInfo::None) | DataType::Float8, Some(ColumnType::Double))
        | (Cell::Bool(_), DataType::Boolean | DataType::Bool, Some(ColumnType::Boolean))
        | (Cell::Text(_), DataType::Varchar(None) | DataType::Text, Some(ColumnType::Varchar | ColumnType::Symbol)) => {
            true
        }
        (Cell::Text(_), DataType::Timestamp(None, zone), Some(ColumnType::Timestamp(TimeUnit::Micros))) => {
            matches!(zone, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone)
        }
        _ => false,
    }
}

/// Returns the digits of a number literal with more digits than a double keeps.
///
/// [`crate::dialect`] casts such a literal to a decimal.
fn long_number<'a>(text: &'a Expr, data_type: &DataType) -> Option<&'a str> {
    let DataType::Decimal(ExactNumberInfo::PrecisionAndScale(precision, scale)) = data_type else { return None };
    let Expr::Value(value) = text else { return None };
    let Value::SingleQuotedString(digits) = &value.value else { return None };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_whole = |part: &str, count: i128| part.len() as i128 == count && part.bytes().all(|b| b.is_ascii_digit());
    let (precision, scale) = (i128::from(*precision), i128::from(*scale));
    (is_whole(whole, precision - scale) && is_whole(fraction, scale)).then_some(digits)
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
    // Also what is mixed: the text of a number is a number where one is wanted.
    let texts = cells.iter().map(|cell| match cell {
        Cell::Null => None,
        Cell::Text(text) => Some(*text),
        Cell::Number(text) => Some(text.as_ref()),
        Cell::Bool(value) => Some(if *value { "true" } else { "false" }),
    });
    Some(Arc::new(texts.collect::<StringViewArray>()))
}

/// Integers if all are, else doubles.
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
    // An integer too long for a LONG is the planner's to refuse or to widen.
    let is_long = |cell: &Cell| matches!(cell, Cell::Number(t) if t.parse::<i64>().is_err() && t.bytes().all(|b| b.is_ascii_digit() || b == b'-'));
    if cells.iter().any(is_long) {
        return None;
    }
    Some(Arc::new(Float64Array::from(parsed::<f64>(cells)?)))
}
