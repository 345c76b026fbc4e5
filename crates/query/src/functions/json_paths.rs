//! Parts of JSON documents by paths that are arrays: `document #> '{a,0}'`, `document #>> '{a,0}'` and `jsonb_set`, as in
//! PostgreSQL.
//!
//! A step of a path is a name in an object and a position in an array, from 0, or from the end if it is negative.

use super::json::{self, Step, normalize, unchanged};
use super::scalar::{Call, Gives, Kind, PLAIN, Scalar};
use crate::{Error, door};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringViewArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use tidalite_types::SqlState;

/// `document #> path`.
pub(crate) const PART: &str = "__json_path_part";
/// `document #>> path`.
pub(crate) const TEXT: &str = "__json_path_text";

pub(super) const FUNCTIONS: &[Scalar] = &[
    Scalar { name: PART, gives: Gives::PartOfJson, call: |call| parts(call, json::part), ..OF_PATH },
    Scalar { name: TEXT, gives: Gives::Text, call: |call| parts(call, json::found), ..OF_PATH },
    Scalar {
        name: "json_extract_path",
        gives: Gives::Json,
        call: |call| named(call, unchanged, json::part),
        ..OF_NAMES
    },
    Scalar {
        name: "jsonb_extract_path",
        gives: Gives::Jsonb,
        call: |call| named(call, normalize, json::part),
        ..OF_NAMES
    },
    Scalar {
        name: "json_extract_path_text",
        gives: Gives::Text,
        call: |call| named(call, unchanged, json::found),
        ..OF_NAMES
    },
    Scalar {
        name: "jsonb_extract_path_text",
        gives: Gives::Text,
        call: |call| named(call, normalize, json::found),
        ..OF_NAMES
    },
    Scalar {
        name: "jsonb_set",
        takes: "a JSON document, an array of names and positions, a JSON value and whether a new member is added",
        kinds: &[Kind::Text, Kind::Any, Kind::Text, Kind::Any],
        least: 3,
        gives: Gives::Jsonb,
        call: replaced,
        ..PLAIN
    },
];

const OF_PATH: Scalar =
    Scalar { takes: "a JSON text and an array of names and positions", kinds: &[Kind::Text, Kind::Any], ..PLAIN };

const OF_NAMES: Scalar = Scalar {
    takes: "a JSON text and names or positions in it",
    kinds: &[Kind::Text, Kind::Text],
    is_variadic: true,
    ..PLAIN
};

/// Returns the paths of a column of arrays, or of the texts of arrays, as arrays of texts.
fn paths(column: &ArrayRef) -> Result<ArrayRef> {
    let item = door::item(DataType::Utf8View);
    match column.data_type() {
        DataType::Null | DataType::List(_) => Ok(cast(column, &DataType::List(item))?),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            let texts = cast(column, &DataType::Utf8View)?;
            json::lists_of_texts(texts.as_string_view(), &item)
        }
        _ => Err(Error::invalid("a path in a JSON document is an array of names and positions").into()),
    }
}

/// Applies a function to each document and path.
fn parts(call: &Call, find: json::Find) -> Result<ArrayRef> {
    let documents = call.columns[0].as_string_view();
    let paths = paths(&call.columns[1])?;
    let paths = paths.as_list::<i32>();
    let part = |row: usize| {
        if documents.is_null(row) || paths.is_null(row) {
            return None;
        }
        let path = paths.value(row);
        let names = path.as_string_view().iter();
        let steps = names.map(|name| Some(Step::Name(name?.to_owned()))).collect::<Option<Vec<_>>>()?;
        find(documents.value(row), &steps).map(Cow::into_owned)
    };
    Ok(Arc::new((0..call.rows).map(part).collect::<StringViewArray>()))
}

/// Applies a function to each document, which `document` checks, and the path of the other arguments.
fn named(call: &Call, document: fn(&str) -> Result<String, Error>, find: json::Find) -> Result<ArrayRef> {
    let documents = json::documents(call, document, false)?;
    let documents = documents.as_string_view();
    let names: Vec<_> = call.columns[1..].iter().map(|column| column.as_string_view()).collect();
    let part = |row: usize| {
        if documents.is_null(row) || names.iter().any(|names| names.is_null(row)) {
            return None;
        }
        let steps: Vec<Step> = names.iter().map(|names| Step::Name(names.value(row).to_owned())).collect();
        find(documents.value(row), &steps).map(Cow::into_owned)
    };
    Ok(Arc::new((0..call.rows).map(part).collect::<StringViewArray>()))
}

fn replaced(call: &Call) -> Result<ArrayRef> {
    let (documents, values) = (call.columns[0].as_string_view(), call.columns[2].as_string_view());
    let paths = paths(&call.columns[1])?;
    let paths = paths.as_list::<i32>();
    let creates = match call.columns.get(3).map(|column| column.as_boolean_opt()) {
        Some(None) => {
            return Err(Error::invalid("the last argument of jsonb_set is a BOOLEAN").about("jsonb_set").into());
        }
        creates => creates.flatten(),
    };
    let one = |row: usize| -> Result<Option<String>> {
        let is_null = documents.is_null(row) || paths.is_null(row) || values.is_null(row);
        if is_null || creates.is_some_and(|creates| creates.is_null(row)) {
            return Ok(None);
        }
        let (document, value) = (normalize(documents.value(row))?, normalize(values.value(row))?);
        if !document.starts_with(['{', '[']) {
            let error = Error::invalid("cannot set path in scalar");
            return Err(error.with_code(SqlState::INVALID_PARAMETER_VALUE).into());
        }
        let path = paths.value(row);
        let path: Vec<Option<&str>> = path.as_string_view().iter().collect();
        let creates_member = creates.is_none_or(|creates| creates.value(row));
        let change = Change { path: &path, value: &value, creates_member };
        Ok(Some(normalize(&change.of(&document, 0)?)?))
    };
    Ok(Arc::new((0..call.rows).map(one).collect::<Result<StringViewArray>>()?))
}

/// The replacement of the part at a path.
struct Change<'a> {
    path: &'a [Option<&'a str>],
    value: &'a str,
    /// Adds a missing last member.
    creates_member: bool,
}

impl Change<'_> {
    /// Returns the text of a part with the replacement; `level` is the number of steps that lead to the part.
    fn of(&self, part: &str, level: usize) -> Result<String> {
        let Some(step) = self.path.get(level) else { return Ok(part.to_owned()) };
        let step = step.ok_or_else(|| refused(level, "is null"))?;
        match part.as_bytes().first() {
            Some(b'{') => self.of_object(part, step, level),
            Some(b'[') => self.of_array(part, step, level),
            _ => Ok(part.to_owned()),
        }
    }

    /// Returns the text of a member or element that the step at `level` leads to.
    fn of_child(&self, child: &str, level: usize) -> Result<String> {
        if self.is_last(level) { Ok(self.value.to_owned()) } else { self.of(child, level + 1) }
    }

    fn is_last(&self, level: usize) -> bool {
        level + 1 == self.path.len()
    }

    /// Returns true if a child that the step at `level` does not find is added.
    fn creates(&self, level: usize) -> bool {
        self.creates_member && self.is_last(level)
    }

    fn of_object(&self, part: &str, step: &str, level: usize) -> Result<String> {
        let members: HashMap<String, &RawValue> = serde_json::from_str(part).map_err(|_| malformed())?;
        let changed = match members.get(step) {
            Some(member) => self.of_child(member.get(), level)?,
            None if self.creates(level) => self.value.to_owned(),
            None => return Ok(part.to_owned()),
        };
        let others = members.iter().filter(|(name, _)| name.as_str() != step);
        let others = others.map(|(name, member)| (name.as_str(), member.get()));
        let members = others.chain([(step, changed.as_str())]);
        let members: Vec<String> = members.map(|(name, value)| format!("{}:{value}", Value::from(name))).collect();
        Ok(format!("{{{}}}", members.join(",")))
    }

    fn of_array(&self, part: &str, step: &str, level: usize) -> Result<String> {
        let at: i32 = step.parse().map_err(|_| refused(level, &format!("is not an integer: \"{step}\"")))?;
        let elements: Vec<&RawValue> = serde_json::from_str(part).map_err(|_| malformed())?;
        let mut out: Vec<Cow<str>> = elements.iter().map(|element| Cow::Borrowed(element.get())).collect();
        let from_start = if at < 0 { i64::from(at) + out.len() as i64 } else { i64::from(at) };
        match usize::try_from(from_start).ok().filter(|at| *at < out.len()) {
            Some(at) => out[at] = Cow::Owned(self.of_child(elements[at].get(), level)?),
            None if self.creates(level) => {
                let end = if at < 0 { 0 } else { out.len() };
                out.insert(end, Cow::Borrowed(self.value));
            }
            None => {}
        }
        Ok(format!("[{}]", out.join(",")))
    }
}

fn refused(level: usize, why: &str) -> Error {
    let error = Error::invalid(format!("path element at position {} {why}", level + 1));
    error.with_code(SqlState::INVALID_TEXT_REPRESENTATION)
}

fn malformed() -> Error {
    Error::internal("a JSONB value is no JSON")
}
