//! JSON constructors: `json_build_object('a', 1, …)`, `json_build_array(…)` and `to_json(x)`, as in PostgreSQL.

use super::scalar::{Call, Gives, Kind, PLAIN, Scalar};
use super::{identifiers, json, value_texts};
use crate::{Error, door};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringViewArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float32Type, Float64Type};
use datafusion::common::Result;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

pub(super) const FUNCTIONS: &[Scalar] = &[
    Scalar { name: "json_build_object", takes: "names and values in turn", call: objects, ..OF_VALUES },
    Scalar { name: "json_build_array", takes: "values", call: arrays, ..OF_VALUES },
    Scalar { name: "to_json", ..OF_ONE },
    Scalar { name: "to_jsonb", gives: Gives::Jsonb, call: |call| normalized(one(call)?), ..OF_ONE },
    Scalar {
        name: "array_to_json",
        takes: "an array and whether its elements stand on lines of their own",
        kinds: &[Kind::List, Kind::Any],
        call: array,
        ..OF_ONE
    },
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
    let one = |text: Option<&str>| text.map(json::normalize).transpose();
    let values = texts.as_string_view().iter().map(one).collect::<Result<Vec<_>, _>>()?;
    Ok(Arc::new(values.into_iter().collect::<StringViewArray>()))
}

/// A value as JSON.
#[derive(Clone, Debug)]
pub(crate) enum Json {
    Null,
    String(String),
    /// A text that is JSON already: a number with all its digits, a Boolean, a document.
    Raw(String),
    Array(Vec<Json>),
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Json::Null => f.write_str("null"),
            Json::String(text) => write!(f, "{}", Value::from(text.as_str())),
            Json::Raw(text) => f.write_str(text),
            Json::Array(items) => {
                f.write_str("[")?;
                for (at, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if at > 0 { "," } else { "" })?;
                }
                f.write_str("]")
            }
        }
    }
}

/// Converts the values of a column to JSON. `is_json` is true if its texts, also within arrays, are JSON already.
pub(super) fn values(column: &ArrayRef, is_json: bool) -> Result<Vec<Json>> {
    let texts = |column: &ArrayRef| -> Result<Vec<Option<String>>> {
        let texts = match column.data_type() {
            DataType::UInt32 => identifiers::ipv4_texts(column),
            DataType::FixedSizeBinary(_) => identifiers::uuid_texts(column),
            _ => cast(column, &DataType::Utf8View)?,
        };
        Ok(texts.as_string_view().iter().map(|text| text.map(str::to_owned)).collect())
    };
    let string = |text: Option<String>| text.map_or(Json::Null, Json::String);
    let raw = |text: Option<String>| text.map_or(Json::Null, Json::Raw);
    Ok(match column.data_type() {
        DataType::Null => vec![Json::Null; column.len()],
        DataType::Boolean => column.as_boolean().iter().map(|v| raw(v.map(|v| v.to_string()))).collect(),
        DataType::Float32 => {
            // The text has the digits that identify a REAL.
            let shortest = |v: f32| v.to_string().parse().map_or(f64::from(v), |double: f64| double);
            let values = column.as_primitive::<Float32Type>().iter();
            values.map(|v| v.map_or(Json::Null, |v| double(shortest(v)))).collect()
        }
        DataType::Float64 => {
            column.as_primitive::<Float64Type>().iter().map(|v| v.map_or(Json::Null, double)).collect()
        }
        DataType::UInt32 => texts(column)?.into_iter().map(string).collect(),
        t if t.is_numeric() => texts(column)?.into_iter().map(raw).collect(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View if is_json => {
            let checked = |text: Option<String>| {
                text.iter().try_for_each(|text| json::check(text))?;
                Ok(raw(text))
            };
            texts(column)?.into_iter().map(checked).collect::<Result<_>>()?
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => texts(column)?.into_iter().map(string).collect(),
        DataType::List(_) => {
            let lists = column.as_list::<i32>();
            let list = |row: usize| match lists.is_null(row) {
                true => Ok(Json::Null),
                false => values(&lists.value(row), is_json).map(Json::Array),
            };
            (0..lists.len()).map(list).collect::<Result<_>>()?
        }
        DataType::Binary | DataType::BinaryView => {
            (0..column.len()).map(|row| Ok(string(value_texts::text_of(column, row)?))).collect::<Result<_>>()?
        }
        DataType::Interval(_) | DataType::Duration(_) => {
            let lengths = super::time_casts::of_interval(column)?;
            let text = |v| super::time_casts::interval(v).to_string();
            lengths.iter().map(|v| string(v.map(text))).collect()
        }
        _ => texts(column)?.into_iter().map(string).collect(),
    })
}

/// Returns a JSON number; the names of infinities and NaN are those of PostgreSQL.
fn double(value: f64) -> Json {
    match serde_json::Number::from_f64(value) {
        Some(number) => Json::Raw(number.to_string()),
        None if value.is_nan() => Json::String("NaN".to_owned()),
        None => Json::String(value_texts::infinity(value).to_owned()),
    }
}

/// Returns the arguments of a call by row.
fn columns(call: &Call) -> Result<Vec<Vec<Json>>> {
    (0..call.columns.len()).map(|at| values_of(call, at)).collect()
}

/// Returns the values of one argument of a call.
fn values_of(call: &Call, at: usize) -> Result<Vec<Json>> {
    values(&call.columns[at], door::document_type(&call.fields[at]).is_some())
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
                Json::Null => return Err(Error::invalid("null value not allowed for object key").into()),
                Json::String(name) => name.clone(),
                other => other.to_string(),
            };
            let comma = if out.len() > 1 { ", " } else { "" };
            out.push_str(&format!("{comma}{} : {}", Json::String(name), pair[1][row]));
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

/// `array_to_json(a, true)` separates the elements by line breaks.
fn array(call: &Call) -> Result<ArrayRef> {
    let Some(lines) = call.columns.get(1) else { return one(call) };
    let Some(lines) = lines.as_boolean_opt() else {
        return Err(Error::invalid("array_to_json takes an array and a BOOLEAN").about("array_to_json").into());
    };
    let values = values_of(call, 0)?;
    let text = |row: usize| {
        if call.columns[0].is_null(row) || lines.is_null(row) {
            return None;
        }
        match &values[row] {
            Json::Array(items) if lines.value(row) => {
                let items: Vec<String> = items.iter().map(Json::to_string).collect();
                Some(format!("[{}]", items.join(",\n ")))
            }
            other => Some(other.to_string()),
        }
    };
    Ok(Arc::new((0..call.rows).map(text).collect::<StringViewArray>()))
}

fn one(call: &Call) -> Result<ArrayRef> {
    let values = values_of(call, 0)?;
    let texts = (0..call.rows).map(|row| call.columns[0].is_valid(row).then(|| values[row].to_string()));
    Ok(Arc::new(texts.collect::<StringViewArray>()))
}
