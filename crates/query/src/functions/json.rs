//! `json_extract(document, '$.a[0].b')`: a part of a JSON text. Text comes without its quotes, objects and lists as they
//! are written, null and what is not there as NULL, and so does a document that is none.

use super::scalar::{Call, Gives, Kind, PLAIN, Scalar};
use crate::{Error, Parameter};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int32Array, ListArray, StringViewArray, StringViewBuilder,
};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use tidalite_types::{SqlState, jsonb};

/// Levels of arrays and objects that functions read: the limit of `serde_json`.
pub(crate) const READ_DEPTH_MAX: usize = 127;
/// Names and places in a path. Each `[*]` of it takes a part of the stack.
const STEPS_MAX: usize = 256;

/// `document -> 'a'`: the part as JSON, text in its quotes.
pub(crate) const PART: &str = "__json_part";

pub(super) const FUNCTIONS: &[Scalar] = &[
    Scalar {
        name: "json_extract",
        takes: "a JSON text and a path such as '$.a[0]'",
        kinds: &[Kind::Text, Kind::Text],
        gives: Gives::Text,
        call: |call| parts(call, found),
        ..PLAIN
    },
    Scalar {
        name: PART,
        takes: "a JSON text and a name or a place in it",
        kinds: &[Kind::Text, Kind::Text],
        gives: Gives::PartOfJson,
        call: |call| parts(call, part),
        ..PLAIN
    },
    Scalar {
        name: CONTAINS,
        takes: "two JSON texts",
        kinds: &[Kind::Text, Kind::Text],
        gives: Gives::Boolean,
        call: contained,
        ..PLAIN
    },
    Scalar { name: TO_TEXT, gives: Gives::Text, call: |call| Ok(call.columns[0].clone()), ..OF_TEXT },
    Scalar { name: AS_JSON, gives: Gives::Json, call: |call| Ok(call.columns[0].clone()), ..OF_TEXT },
    Scalar { name: AS_JSONB, gives: Gives::Jsonb, call: |call| Ok(call.columns[0].clone()), ..OF_TEXT },
    Scalar { name: TEXT_TO_JSON, gives: Gives::Json, call: |call| documents(call, unchanged, false), ..OF_TEXT },
    Scalar { name: TRY_TEXT_TO_JSON, gives: Gives::Json, call: |call| documents(call, unchanged, true), ..OF_TEXT },
    Scalar { name: TEXT_TO_JSONB, gives: Gives::Jsonb, call: |call| documents(call, normalize, false), ..OF_TEXT },
    Scalar { name: TRY_TEXT_TO_JSONB, gives: Gives::Jsonb, call: |call| documents(call, normalize, true), ..OF_TEXT },
    Scalar { name: "json_array_length", ..ARRAY_LENGTH },
    Scalar { name: "jsonb_array_length", ..ARRAY_LENGTH },
    Scalar { name: "json_typeof", ..TYPE_OF },
    Scalar { name: "jsonb_typeof", ..TYPE_OF },
    Scalar {
        name: LIST,
        takes: "a text and a list",
        kinds: &[Kind::Text, Kind::Any],
        gives: Gives::Like(1),
        call: lists,
        ..PLAIN
    },
];

const OF_TEXT: Scalar = Scalar { takes: "a text", kinds: &[Kind::Text], ..PLAIN };

const ARRAY_LENGTH: Scalar = Scalar {
    takes: "a JSON list",
    kinds: &[Kind::Text],
    gives: Gives::Int,
    call: |call| Ok(Arc::new(each_value(call, length)?.into_iter().collect::<Int32Array>())),
    ..PLAIN
};

const TYPE_OF: Scalar = Scalar {
    takes: "a JSON text",
    kinds: &[Kind::Text],
    gives: Gives::Text,
    call: |call| {
        let kinds = each_value(call, |value| Ok(kind(value)))?;
        Ok(Arc::new(kinds.into_iter().collect::<StringViewArray>()))
    },
    ..PLAIN
};

/// The cast of a document to text, which only changes the type.
pub(crate) const TO_TEXT: &str = "__json_to_text";
/// A document that is one of several: the planner takes it for a text.
pub(crate) const AS_JSON: &str = "__json";
pub(crate) const AS_JSONB: &str = "__jsonb";
/// The casts of texts to JSON and JSONB; `try` gives NULL for other texts.
pub(crate) const TEXT_TO_JSON: &str = "__text_to_json";
pub(crate) const TRY_TEXT_TO_JSON: &str = "__try_text_to_json";
pub(crate) const TEXT_TO_JSONB: &str = "__text_to_jsonb";
pub(crate) const TRY_TEXT_TO_JSONB: &str = "__try_text_to_jsonb";

/// Converts each text of the first argument to a document.
pub(super) fn documents(call: &Call, document: fn(&str) -> Result<String, Error>, is_tried: bool) -> Result<ArrayRef> {
    let one = |text: &str| match document(text) {
        Err(_) if is_tried => Ok(None),
        found => found.map(Some),
    };
    let texts = call.columns[0].as_string_view().iter();
    let found = texts.map(|text| text.map_or(Ok(None), one)).collect::<Result<Vec<_>, Error>>()?;
    Ok(Arc::new(found.into_iter().collect::<StringViewArray>()))
}

/// Returns a text that is JSON.
pub(super) fn unchanged(text: &str) -> Result<String, Error> {
    check(text).map(|()| text.to_owned())
}

/// Checks that a text is JSON.
///
/// # Errors
/// The text is no JSON, or nested more deeply than a stored document may be.
pub(crate) fn check(text: &str) -> Result<(), Error> {
    if is_deeper(text, jsonb::DEPTH_MAX) {
        return Err(too_deep(jsonb::DEPTH_MAX));
    }
    serde_json::from_str::<&RawValue>(text).map(|_| ()).map_err(|error| invalid(text, &error))
}

/// Returns the text of a JSONB value.
pub(crate) fn normalize(text: &str) -> Result<String, Error> {
    jsonb::normalize(text).map_err(|error| match error {
        jsonb::JsonbError::Syntax => Error::invalid_text("JSONB", text),
        jsonb::JsonbError::Depth => too_deep(jsonb::DEPTH_MAX),
    })
}

/// The function for `document @> part`, as for PostgreSQL's jsonb.
pub(crate) const CONTAINS: &str = "__json_contains";
/// The function that converts a text to a list; the second argument is a NULL of the list type.
pub(crate) const LIST: &str = "__text_to_list";

/// Parses a JSON text.
pub(crate) fn parsed(text: &str) -> Result<Value> {
    if is_deeper(text, READ_DEPTH_MAX) {
        return Err(too_deep(READ_DEPTH_MAX).into());
    }
    serde_json::from_str(text).map_err(|error| invalid(text, &error).into())
}

/// Returns the error for a JSON text with more than `max` levels.
pub(crate) fn too_deep(max: usize) -> Error {
    Error::invalid(format!("JSON is nested more than {max} levels deep")).with_code(SqlState::PROGRAM_LIMIT_EXCEEDED)
}

/// Returns true if brackets and braces outside of strings are open in more than `max` levels.
pub(crate) fn is_deeper(text: &str, max: usize) -> bool {
    let (mut depth, mut is_string, mut is_escaped) = (0_usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_string => is_escaped = true,
            b'"' => is_string = !is_string,
            b'[' | b'{' if !is_string => depth += 1,
            b']' | b'}' if !is_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > max {
            return true;
        }
    }
    false
}

fn invalid(text: &str, error: &serde_json::Error) -> Error {
    let refused = Error::invalid(format!("invalid input for type JSON: {error}"));
    refused.about(format!("'{text}")).with_code(SqlState::INVALID_TEXT_REPRESENTATION)
}

/// Applies a function to each document.
fn each_value<T>(call: &Call, of: impl Fn(&Value) -> Result<T>) -> Result<Vec<Option<T>>> {
    let one = |text: Option<&str>| -> Result<Option<T>> {
        let Some(text) = text else { return Ok(None) };
        Ok(Some(of(&parsed(text)?)?))
    };
    call.columns[0].as_string_view().iter().map(one).collect()
}

fn length(value: &Value) -> Result<i32> {
    match value {
        Value::Array(items) => Ok(i32::try_from(items.len()).unwrap_or(i32::MAX)),
        Value::Object(_) => Err(Error::invalid("cannot get array length of a non-array").into()),
        _ => Err(Error::invalid("cannot get array length of a scalar").into()),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn contained(call: &Call) -> Result<ArrayRef> {
    let parsed = |column: usize, row: usize| -> Result<Option<Value>> {
        let texts = call.columns[column].as_string_view();
        if texts.is_null(row) {
            return Ok(None);
        }
        let text = texts.value(row);
        Ok(Some(parsed(text)?))
    };
    let one = |row| Ok(parsed(0, row)?.zip(parsed(1, row)?).map(|(outer, inner)| contains_at_top(&outer, &inner)));
    Ok(Arc::new((0..call.rows).map(one).collect::<Result<BooleanArray>>()?))
}

/// Returns true if `outer` contains `inner`; at the top level, a list also contains its scalar items.
fn contains_at_top(outer: &Value, inner: &Value) -> bool {
    match (outer, inner) {
        (Value::Array(items), inner) if !inner.is_array() && !inner.is_object() => {
            items.iter().any(|item| contains(item, inner))
        }
        _ => contains(outer, inner),
    }
}

fn contains(outer: &Value, inner: &Value) -> bool {
    match (outer, inner) {
        (Value::Object(outer), Value::Object(inner)) => {
            inner.iter().all(|(name, value)| outer.get(name).is_some_and(|own| contains(own, value)))
        }
        (Value::Array(outer), Value::Array(inner)) => {
            inner.iter().all(|value| outer.iter().any(|own| contains(own, value)))
        }
        (Value::Number(outer), Value::Number(inner)) => outer == inner || outer.as_f64() == inner.as_f64(),
        (outer, inner) => outer == inner,
    }
}

fn lists(call: &Call) -> Result<ArrayRef> {
    let DataType::List(item) = call.data_type else { return Err(Error::internal("a list of another kind").into()) };
    lists_of_texts(call.columns[0].as_string_view(), item)
}

/// Parses texts of arrays, `["a","b"]` and `{a,b}`, to lists with a field of items.
pub(super) fn lists_of_texts(texts: &StringViewArray, item: &FieldRef) -> Result<ArrayRef> {
    let (mut values, mut lengths, mut is_valid) = (StringViewBuilder::new(), Vec::new(), Vec::new());
    for text in texts {
        is_valid.push(text.is_some());
        let items = text.map_or_else(|| Ok(Vec::new()), items)?;
        lengths.push(items.len());
        items.iter().for_each(|item| values.append_option(item.as_deref()));
    }
    let values: ArrayRef = Arc::new(values.finish());
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    let values = cast_with_options(&values, item.data_type(), &strict)?;
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(ListArray::try_new(item.clone(), offsets, values, Some(NullBuffer::from(is_valid)))?))
}

/// Returns the items of the text of an array.
fn items(text: &str) -> Result<Vec<Option<String>>> {
    let malformed = || Error::invalid(format!("malformed array literal: \"{text}\"")).about(format!("'{text}"));
    if is_deeper(text, READ_DEPTH_MAX) {
        return Err(Error::invalid(format!("an array is nested more than {READ_DEPTH_MAX} levels deep")).into());
    }
    if text.trim_start().starts_with('[') {
        let items: Vec<Value> = serde_json::from_str(text).map_err(|_| malformed())?;
        let item = |value: Value| match value {
            Value::Null => None,
            Value::String(text) => Some(text),
            other => Some(other.to_string()),
        };
        return Ok(items.into_iter().map(item).collect());
    }
    let read = Parameter::list_of_text(text, &|text| Some(Parameter::Text(text.to_owned())));
    let Some(Parameter::List(items)) = read else { return Err(malformed().into()) };
    let item = |item| match item {
        Parameter::Text(text) => Ok(Some(text)),
        Parameter::Null => Ok(None),
        _ => Err(malformed().into()),
    };
    items.into_iter().map(item).collect()
}

/// A step of a path in a document.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    Name(String),
    /// Counted from 0, or from the end if negative.
    Index(i64),
    /// Each item of a list.
    All,
}

/// The JSON value null.
const NULL: &str = "null";

/// Returns a part of a document; `None` if the path leads to no part.
pub(super) type Find = for<'a> fn(&'a str, &[Step]) -> Option<Cow<'a, str>>;

fn parts(call: &Call, find: Find) -> Result<ArrayRef> {
    let (documents, paths) = (call.columns[0].as_string_view(), call.columns[1].as_string_view());
    let mut known: Option<(&str, Vec<Step>)> = None;
    let mut out = Vec::with_capacity(call.rows);
    for row in 0..call.rows {
        if documents.is_null(row) || paths.is_null(row) {
            out.push(None);
            continue;
        }
        let text = paths.value(row);
        let steps = match known.take() {
            Some((last, steps)) if last == text => steps,
            _ => path(text).filter(|steps| steps.len() <= STEPS_MAX).ok_or_else(|| {
                let mut error = Error::invalid(format!("invalid JSON path: \"{text}\""))
                    .with_hint("a path is up to 256 names and places: '$.a[0].b', '$.a[*]', '$[''a b'']', '/a/0'");
                error.subject = Some(format!("'{text}"));
                error
            })?,
        };
        out.push(find(documents.value(row), &steps));
        known = Some((text, steps));
    }
    Ok(Arc::new(out.into_iter().collect::<StringViewArray>()))
}

/// `$.a[0].b`, `a.b`, `.a`, `$['a']`, and as a JSON pointer `/a/0`.
fn path(text: &str) -> Option<Vec<Step>> {
    if let Some(pointer) = text.strip_prefix('/') {
        let parts = pointer.split('/').map(|part| part.replace("~1", "/").replace("~0", "~"));
        return Some(parts.map(Step::Name).collect());
    }
    let mut rest = text.trim().strip_prefix('$').unwrap_or(text.trim());
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(inside) = rest.strip_prefix('[') {
            let (step, after) = match inside.chars().next()? {
                quote @ ('\'' | '"') => {
                    let (name, after) = inside[1..].split_once(quote)?;
                    (Step::Name(name.to_owned()), after.strip_prefix(']')?)
                }
                _ => {
                    let (index, after) = inside.split_once(']')?;
                    let step = if index.trim() == "*" { Step::All } else { Step::Index(index.trim().parse().ok()?) };
                    (step, after)
                }
            };
            steps.push(step);
            rest = after;
            continue;
        }
        let name = rest.strip_prefix('.').or_else(|| steps.is_empty().then_some(rest))?;
        if let Some(quoted) = name.strip_prefix('"') {
            let (name, after) = quoted.split_once('"')?;
            steps.push(Step::Name(name.to_owned()));
            rest = after;
            continue;
        }
        let end = name.find(['.', '[']).unwrap_or(name.len());
        if end == 0 {
            return None;
        }
        steps.push(Step::Name(name[..end].to_owned()));
        rest = &name[end..];
    }
    Some(steps)
}

/// Returns a part of a document, a string without its quotes; `None` for null.
pub(super) fn found<'a>(document: &'a str, steps: &[Step]) -> Option<Cow<'a, str>> {
    let part = part(document, steps).filter(|part| *part != NULL)?;
    if part.starts_with('"') { serde_json::from_str::<String>(&part).ok().map(Cow::Owned) } else { Some(part) }
}

/// Returns a part of a document as JSON; the parts of all items as a list, without null.
pub(super) fn part<'a>(document: &'a str, steps: &[Step]) -> Option<Cow<'a, str>> {
    let mut value: &RawValue = serde_json::from_str(document).ok()?;
    for (n, step) in steps.iter().enumerate() {
        value = match (value.get().as_bytes().first()?, step) {
            (b'{', Step::Name(name)) => {
                let members: HashMap<String, &RawValue> = serde_json::from_str(value.get()).ok()?;
                members.get(name.as_str()).copied()?
            }
            (b'[', step) => {
                let items: Vec<&RawValue> = serde_json::from_str(value.get()).ok()?;
                let index = match step {
                    Step::Index(index) => *index,
                    // A JSON pointer counts places by the same sign as names.
                    Step::Name(name) => name.parse().ok()?,
                    Step::All => {
                        let each = items.iter().filter_map(|item| part(item.get(), &steps[n + 1..]));
                        let each = each.filter(|part| *part != NULL);
                        return Some(Cow::Owned(format!("[{}]", each.collect::<Vec<_>>().join(","))));
                    }
                };
                let from_start = if index < 0 { index.checked_add(i64::try_from(items.len()).ok()?)? } else { index };
                items.get(usize::try_from(from_start).ok()?).copied()?
            }
            _ => return None,
        };
    }
    Some(Cow::Borrowed(value.get()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_counted_outside_of_strings() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(!is_deeper(&nested(127), 127) && is_deeper(&nested(128), 127) && is_deeper(&"[".repeat(1 << 20), 127));
        assert!(!is_deeper(&"[],".repeat(500), 1) && is_deeper("[{}]", 1));
        assert!(!is_deeper(r#"["[[[", "\"[[["]"#, 1) && is_deeper(r#"["\\\\", [1]]"#, 1));
        assert!(parsed(&nested(127)).is_ok(), "the limit is that of the parser");
        let refused = parsed(&nested(128)).unwrap_err().to_string();
        assert!(refused.contains("nested more than 127 levels deep"), "{refused}");
        assert!(items(&"[".repeat(1 << 20)).is_err() && items(&"{".repeat(1 << 20)).is_err());
    }

    #[test]
    fn paths_lead_to_values() {
        let document = r#"{"a": [1, {"b c": "x\n\"y\""}], "n": null, "é": 1.50, "o": {"p": [ true ]}}"#;
        let at = |text: &str| path(text).and_then(|steps| found(document, &steps).map(Cow::into_owned));
        assert_eq!(at("$.a[0]").as_deref(), Some("1"));
        assert_eq!(at("$.a[1]['b c']").as_deref(), Some("x\n\"y\""));
        assert_eq!(at("/a/1/b c").as_deref(), Some("x\n\"y\""));
        assert_eq!(at("é").as_deref(), Some("1.50"), "a number keeps its digits");
        assert_eq!(at("$.a[-1].\"b c\"").as_deref(), Some("x\n\"y\""));
        assert_eq!(at("$.a[*]").as_deref(), Some(r#"[1,{"b c": "x\n\"y\""}]"#));
        assert_eq!(at("$.a[*].\"b c\"").as_deref(), Some(r#"["x\n\"y\""]"#));
        assert_eq!(part(document, &[Step::Name("é".to_owned())]).as_deref(), Some("1.50"));
        assert_eq!(at("$.o").as_deref(), Some(r#"{"p": [ true ]}"#));
        assert_eq!([at("$.n"), at("$.a[7]"), at("$.a.b"), at("$.n.x")], [None, None, None, None]);
        assert_eq!([path("$."), path("$.a["), path("$['a"), path("$..a")], [None, None, None, None]);
        assert_eq!(found("no json", &[]), None);
    }
}
