//! JSON constructors: `json_build_object('a', 1, …)`, `json_build_array(…)` and `to_json(x)`, as in PostgreSQL.

use super::scalar::{Call, Gives, Kind, PLAIN, Scalar};
use super::{identifiers, json};
use crate::Error;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringViewArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::Result;
use serde_json::Value;
use std::sync::Arc;

pub(super) const FUNCTIONS: &[Scalar] = &[
    Scalar { name: "json_build_object", takes: "names and values in turn", call: objects, ..OF_VALUES },
    Scalar { name: "json_build_array", takes: "values", call: arrays, ..OF_VALUES },
    Scalar { name: "to_json", ..OF_ONE },
    Scalar { name: "to_jsonb", gives: Gives::Jsonb, call: |call| normalized(one(call)?), ..OF_ONE },
    Scalar { name: "array_to_json", takes: "an array", kinds: &[Kind::List], ..OF_ONE },
    Scalar {
        name: "jsonb_build_object",
        takes: "names and values in turn",
        gives: Gives::Jsonb,
        call: |call| normalized(objects(call)?),
        ..OF_VALUES
    },
    Scalar {
        name: "jsonb_build_array",
        takes: "values",
        gives: Gives::Jsonb,
        call: |call| normalized(arrays(call)?),
        ..OF_VALUES
    },
];

const OF_ONE: Scalar =
    Scalar { takes: "a value", kinds: &[Kind::Any], least: 1, is_variadic: false, call: one, ..OF_VALUES };

const OF_VALUES: Scalar = Scalar { kinds: &[Kind::Any], least: 0, is_variadic: true, gives: Gives::Json, ..PLAIN };

/// Converts JSON texts to JSONB.
fn normalized(texts: ArrayRef) -> Result<ArrayRef> {
    let one = |text: Option<&str>| text.map(json::normalized).transpose();
    let values = texts.as_string_view().iter().map(one).collect::<Result<Vec<_>, _>>()?;
    Ok(Arc::new(values.into_iter().collect::<StringViewArray>()))
}

/// Converts the values of a column to JSON. `is_json` is true if its texts are JSON already.
pub(crate) fn values(column: &ArrayRef, is_json: bool) -> Result<Vec<Value>> {
    let texts = |column: &ArrayRef| -> Result<Vec<Option<String>>> {
        let texts = match column.data_type() {
            DataType::UInt32 => identifiers::ipv4_texts(column),
            DataType::FixedSizeBinary(_) => identifiers::uuid_texts(column),
            _ => cast(column, &DataType::Utf8View)?,
        };
        Ok(texts.as_string_view().iter().map(|text| text.map(str::to_owned)).collect())
    };
    let string = |text: Option<String>| text.map_or(Value::Null, Value::String);
    Ok(match column.data_type() {
        DataType::Null => vec![Value::Null; column.len()],
        DataType::Boolean => column.as_boolean().iter().map(|v| v.map_or(Value::Null, Value::Bool)).collect(),
        t if t.is_floating() => {
            let wide = cast(column, &DataType::Float64)?;
            let number =
                |v: f64| serde_json::Number::from_f64(v).map_or_else(|| Value::String(v.to_string()), Value::Number);
            wide.as_primitive::<Float64Type>().iter().map(|v| v.map_or(Value::Null, number)).collect()
        }
        DataType::UInt32 => texts(column)?.into_iter().map(string).collect(),
        // The text of a number is a JSON number with all its digits.
        t if t.is_numeric() => texts(column)?.into_iter().map(number).collect::<Result<_>>()?,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View if is_json => {
            texts(column)?.into_iter().map(number).collect::<Result<_>>()?
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => texts(column)?.into_iter().map(string).collect(),
        DataType::List(_) => {
            let lists = column.as_list::<i32>();
            let list = |row: usize| match lists.is_null(row) {
                true => Ok(Value::Null),
                false => values(&lists.value(row), false).map(Value::Array),
            };
            (0..lists.len()).map(list).collect::<Result<_>>()?
        }
        DataType::Interval(_) | DataType::Duration(_) => {
            let lengths = super::time_casts::of_interval(column)?;
            let text = |v| super::time_casts::interval(v).to_string();
            lengths.iter().map(|v| string(v.map(text))).collect()
        }
        _ => texts(column)?.into_iter().map(string).collect(),
    })
}

fn number(text: Option<String>) -> Result<Value> {
    let Some(text) = text else { return Ok(Value::Null) };
    super::json::parsed(&text)
}

/// Returns the arguments of a call by row.
fn columns(call: &Call) -> Result<Vec<Vec<Value>>> {
    call.columns.iter().map(|column| values(column, false)).collect()
}

fn objects(call: &Call) -> Result<ArrayRef> {
    if !call.columns.len().is_multiple_of(2) {
        return Err(Error::invalid("argument list must have even number of elements")
            .with_hint("json_build_object takes names and values in turn")
            .into());
    }
    let columns = columns(call)?;
    let object = |row: usize| -> Result<Option<String>> {
        let mut out = String::from("{");
        for pair in columns.chunks_exact(2) {
            let name = match &pair[0][row] {
                Value::Null => return Err(Error::invalid("null value not allowed for object key").into()),
                Value::String(name) => name.clone(),
                other => other.to_string(),
            };
            let comma = if out.len() > 1 { ", " } else { "" };
            out.push_str(&format!("{comma}{} : {}", Value::String(name), pair[1][row]));
        }
        out.push('}');
        Ok(Some(out))
    };
    Ok(Arc::new((0..call.rows).map(object).collect::<Result<StringViewArray>>()?))
}

fn arrays(call: &Call) -> Result<ArrayRef> {
    let columns = columns(call)?;
    let array = |row: usize| {
        let items: Vec<String> = columns.iter().map(|column| column[row].to_string()).collect();
        Some(format!("[{}]", items.join(", ")))
    };
    Ok(Arc::new((0..call.rows).map(array).collect::<StringViewArray>()))
}

fn one(call: &Call) -> Result<ArrayRef> {
    let values = values(&call.columns[0], false)?;
    let is_null = |row: &usize| call.columns[0].is_valid(*row);
    let texts = (0..call.rows).map(|row| Some(row).filter(is_null).map(|row| values[row].to_string()));
    Ok(Arc::new(texts.collect::<StringViewArray>()))
}
