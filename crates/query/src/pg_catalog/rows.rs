//! Converts a row source to columns: NULL or the type's zero for columns that the source does not name.

use super::definitions::{ColumnDefinition, Definition};
use crate::door;
use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, ListArray, ListBuilder, RecordBatch, RecordBatchOptions,
    StringViewArray, StringViewBuilder, new_null_array,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type, Schema};
use datafusion::catalog::{MemTable, TableProvider};
use datafusion::common::Result;
use std::borrow::Cow;
use std::sync::Arc;

/// A value in a row of the catalog.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    /// Integers, object numbers, and microseconds since 1970 in timestamp columns.
    Int(i64),
    Float(f64),
    Text(Cow<'static, str>),
    Ints(Vec<i64>),
    Texts(Vec<String>),
}

macro_rules! from {
    ($($from:ty => |$value:ident| $make:expr),* $(,)?) => {
        $(impl From<$from> for Value { fn from($value: $from) -> Value { $make } })*
    };
}

from! {
    bool => |v| Value::Bool(v),
    i64 => |v| Value::Int(v),
    i32 => |v| Value::Int(i64::from(v)),
    u32 => |v| Value::Int(i64::from(v)),
    usize => |v| Value::Int(i64::try_from(v).unwrap_or(i64::MAX)),
    f64 => |v| Value::Float(v),
    &'static str => |v| Value::Text(Cow::Borrowed(v)),
    String => |v| Value::Text(Cow::Owned(v)),
    Vec<i64> => |v| Value::Ints(v),
    Vec<String> => |v| Value::Texts(v),
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, Into::into)
    }
}

/// The rows of a table, by column.
#[derive(Debug, Default)]
pub(super) struct Filled {
    rows: usize,
    columns: Vec<(&'static str, Vec<Value>)>,
}

/// A column of a row source: its name and the function that returns its value for an object.
pub(super) type Shown<T> = (&'static str, fn(&T) -> Value);

/// Returns one row for each object.
pub(super) fn fill<T>(objects: &[T], columns: &[Shown<T>]) -> Filled {
    let values = |show: fn(&T) -> Value| objects.iter().map(show).collect();
    Filled { rows: objects.len(), columns: columns.iter().map(|(name, show)| (*name, values(*show))).collect() }
}

pub(super) fn table(definition: &Definition, mut filled: Filled) -> Result<Arc<dyn TableProvider>> {
    debug_assert!(
        filled.columns.iter().all(|(name, _)| definition.columns.iter().any(|c| c.name == *name)),
        "{} has no such column: {:?}",
        definition.name,
        filled.columns.iter().map(|(name, _)| *name).collect::<Vec<_>>()
    );
    let mut fields = Vec::with_capacity(definition.columns.len());
    let mut arrays = Vec::with_capacity(definition.columns.len());
    for column in &definition.columns {
        let given = filled.columns.iter_mut().find(|(name, _)| *name == column.name);
        let values = given.map(|(_, values)| std::mem::take(values));
        let field = door::named(&door::pg_field("", column.pg_type), column.name);
        arrays.push(array(column, values, filled.rows, field.data_type())?);
        fields.push(field);
    }
    let schema = Arc::new(Schema::new(fields));
    let options = RecordBatchOptions::new().with_row_count(Some(filled.rows));
    let batch = RecordBatch::try_new_with_options(schema.clone(), arrays, &options)?;
    Ok(Arc::new(MemTable::try_new(schema, vec![vec![batch]])?))
}

fn array(column: &ColumnDefinition, values: Option<Vec<Value>>, rows: usize, data_type: &DataType) -> Result<ArrayRef> {
    let values = match values {
        Some(values) => values,
        None if column.is_nullable => return Ok(new_null_array(data_type, rows)),
        None => vec![zero(data_type); rows],
    };
    array_of(&values, data_type)
}

/// Converts values to an array of the type; values of another kind become NULL.
pub(crate) fn array_of(values: &[Value], data_type: &DataType) -> Result<ArrayRef> {
    let array: ArrayRef = match data_type {
        DataType::Boolean => Arc::new(values.iter().map(flag).collect::<BooleanArray>()),
        DataType::Utf8View => Arc::new(values.iter().map(text).collect::<StringViewArray>()),
        DataType::Float32 | DataType::Float64 => Arc::new(values.iter().map(float).collect::<Float64Array>()),
        DataType::List(item) if *item.data_type() == DataType::Utf8View => Arc::new(texts(values)),
        DataType::List(_) => Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(values.iter().map(ints))),
        _ => Arc::new(values.iter().map(int).collect::<Int64Array>()),
    };
    Ok(cast(&array, data_type)?)
}

fn flag(value: &Value) -> Option<bool> {
    if let Value::Bool(value) = value { Some(*value) } else { None }
}

fn text(value: &Value) -> Option<&str> {
    if let Value::Text(value) = value { Some(value.as_ref()) } else { None }
}

fn float(value: &Value) -> Option<f64> {
    if let Value::Float(value) = value { Some(*value) } else { None }
}

fn int(value: &Value) -> Option<i64> {
    if let Value::Int(value) = value { Some(*value) } else { None }
}

fn ints(value: &Value) -> Option<Vec<Option<i64>>> {
    if let Value::Ints(values) = value { Some(values.iter().copied().map(Some).collect()) } else { None }
}

fn texts(values: &[Value]) -> ListArray {
    let mut lists = ListBuilder::new(StringViewBuilder::new());
    for value in values {
        match value {
            Value::Texts(items) => lists.append_value(items.iter().map(Some)),
            _ => lists.append_null(),
        }
    }
    lists.finish()
}

fn zero(data_type: &DataType) -> Value {
    match data_type {
        DataType::Boolean => Value::Bool(false),
        DataType::Utf8View => Value::Text(Cow::Borrowed("")),
        DataType::Float32 | DataType::Float64 => Value::Float(0.0),
        DataType::List(_) => Value::Ints(Vec::new()),
        _ => Value::Int(0),
    }
}
