//! Parts of JSON documents by paths that are arrays: `document #> '{a,0}'`, `document #>> '{a,0}'` and `jsonb_set`, as in
//! PostgreSQL.
//!
//! A step of a path is a name in an object and a position in an array, from 0, or from the end if it is negative.

use super::json::{self, Step, items};
use super::scalar::{Call, Gives, Kind, PLAIN, Scalar};
use crate::Error;
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
    Scalar { name: "json_extract_path", gives: Gives::Json, call: |call| named(call, json::part), ..OF_NAMES },
    Scalar { name: "jsonb_extract_path", gives: Gives::Jsonb, call: |call| named(call, json::part), ..OF_NAMES },
    Scalar { name: "json_extract_path_text", gives: Gives::Text, call: |call| named(call, json::found), ..OF_NAMES },
    Scalar { name: "jsonb_extract_path_text", gives: Gives::Text, call: |call| named(call, json::found), ..OF_NAMES },
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

/// Returns the steps of a path in a row, an array or the text of one; `None` for NULL.
fn path(column: &ArrayRef, row: usize) -> Result<Option<Vec<Option<String>>>> {
    match column.data_type() {
        DataType::Null => Ok(None),
        _ if column.is_null(row) => Ok(None),
        DataType::List(_) => {
            let steps = cast(&column.as_list::<i32>().value(row), &DataType::Utf8View)?;
            Ok(Some(steps.as_string_view().iter().map(|step| step.map(str::to_owned)).collect()))
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            let text = cast(&column.slice(row, 1), &DataType::Utf8View)?;
            items(text.as_string_view().value(0)).map(Some)
        }
        _ => Err(Error::invalid("a path in a JSON document is an array of names and positions").into()),
    }
}

/// Applies a function to each document and path.
fn parts(call: &Call, find: json::Find) -> Result<ArrayRef> {
    let documents = call.columns[0].as_string_view();
    let part = |row: usize| -> Result<Option<String>> {
        let Some(path) = path(&call.columns[1], row)?.filter(|_| documents.is_valid(row)) else { return Ok(None) };
        let Some(names) = path.into_iter().collect::<Option<Vec<_>>>() else { return Ok(None) };
        let steps: Vec<Step> = names.into_iter().map(Step::Name).collect();
        Ok(find(documents.value(row), &steps).map(Cow::into_owned))
    };
    Ok(Arc::new((0..call.rows).map(part).collect::<Result<StringViewArray>>()?))
}

/// Applies a function to each document and the path of the other arguments.
fn named(call: &Call, find: json::Find) -> Result<ArrayRef> {
    let texts: Vec<_> = call.columns.iter().map(|column| column.as_string_view()).collect();
    let part = |row: usize| -> Result<Option<String>> {
        if texts.iter().any(|texts| texts.is_null(row)) {
            return Ok(None);
        }
        let document = texts[0].value(row);
        json::check(document)?;
        let steps: Vec<Step> = texts[1..].iter().map(|names| Step::Name(names.value(row).to_owned())).collect();
        Ok(find(document, &steps).map(Cow::into_owned))
    };
    Ok(Arc::new((0..call.rows).map(part).collect::<Result<StringViewArray>>()?))
}

fn replaced(call: &Call) -> Result<ArrayRef> {
    let (documents, values) = (call.columns[0].as_string_view(), call.columns[2].as_string_view());
    let creates = match call.columns.get(3).map(|column| (column, column.as_boolean_opt())) {
        None => None,
        Some((_, Some(creates))) => Some(creates),
        Some(_) => return Err(Error::invalid("the last argument of jsonb_set is a BOOLEAN").about("jsonb_set").into()),
    };
    let one = |row: usize| -> Result<Option<String>> {
        let creates_member = match creates {
            Some(creates) if creates.is_null(row) => return Ok(None),
            Some(creates) => creates.value(row),
            None => true,
        };
        if documents.is_null(row) || values.is_null(row) {
            return Ok(None);
        }
        let Some(path) = path(&call.columns[1], row)? else { return Ok(None) };
        let (document, value) = (json::normalize(documents.value(row))?, json::normalize(values.value(row))?);
        if !document.starts_with(['{', '[']) {
            let error = Error::invalid("cannot set path in scalar");
            return Err(error.with_code(SqlState::INVALID_PARAMETER_VALUE).into());
        }
        let change = Change { path: &path, value: &value, creates_member };
        Ok(Some(json::normalize(&change.of(&document, 0)?)?))
    };
    Ok(Arc::new((0..call.rows).map(one).collect::<Result<StringViewArray>>()?))
}

/// The replacement of the part at a path.
struct Change<'a> {
    path: &'a [Option<String>],
    value: &'a str,
    /// Adds a missing last member.
    creates_member: bool,
}

impl Change<'_> {
    /// Returns the text of a part with the replacement; `level` is the number of steps that lead to the part.
    fn of(&self, part: &str, level: usize) -> Result<String> {
        let Some(step) = self.path.get(level) else { return Ok(part.to_owned()) };
        let step = step.as_deref().ok_or_else(|| refused(level, "is null"))?;
        let is_last = level + 1 == self.path.len();
        match part.as_bytes().first() {
            Some(b'{') => self.of_object(part, step, (level, is_last)),
            Some(b'[') => self.of_array(part, step, (level, is_last)),
            _ => Ok(part.to_owned()),
        }
    }

    fn of_object(&self, part: &str, step: &str, (level, is_last): (usize, bool)) -> Result<String> {
        let members: HashMap<String, &RawValue> = serde_json::from_str(part).map_err(|_| malformed())?;
        let mut out: Vec<(Cow<str>, Cow<str>)> = Vec::with_capacity(members.len() + 1);
        let mut is_found = false;
        for (name, value) in &members {
            let own = name == step;
            is_found |= own;
            let value = match own {
                true if is_last => Cow::Borrowed(self.value),
                true => Cow::Owned(self.of(value.get(), level + 1)?),
                false => Cow::Borrowed(value.get()),
            };
            out.push((Cow::Borrowed(name.as_str()), value));
        }
        if !is_found && is_last && self.creates_member {
            out.push((Cow::Borrowed(step), Cow::Borrowed(self.value)));
        }
        let members: Vec<String> =
            out.iter().map(|(name, value)| format!("{}:{value}", Value::from(&**name))).collect();
        Ok(format!("{{{}}}", members.join(",")))
    }

    fn of_array(&self, part: &str, step: &str, (level, is_last): (usize, bool)) -> Result<String> {
        let at: i32 = step.parse().map_err(|_| refused(level, &format!("is not an integer: \"{step}\"")))?;
        let elements: Vec<&RawValue> = serde_json::from_str(part).map_err(|_| malformed())?;
        let mut out: Vec<Cow<str>> = elements.iter().map(|element| Cow::Borrowed(element.get())).collect();
        let from_start = if at < 0 { i64::from(at) + out.len() as i64 } else { i64::from(at) };
        match usize::try_from(from_start).ok().filter(|at| *at < out.len()) {
            Some(at) if is_last => out[at] = Cow::Borrowed(self.value),
            Some(at) => out[at] = Cow::Owned(self.of(elements[at].get(), level + 1)?),
            None if is_last && self.creates_member => {
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
