//! PostgreSQL's texts of arrays, bytes and other values, and patterns of SIMILAR TO as regular expressions.
//!
//! The functions have the names of PostgreSQL's own functions for this: `array_out`, `byteaout`, `byteain` and
//! `similar_to_escape`. Casts between text and these types call them.

use super::identifiers::uuid_texts;
use super::scalar::{Call, Gives, Kind, PLAIN, Scalar};
use crate::Error;
use crate::dialect::similar_to;
use crate::door::batches::bytes_of_text;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BinaryViewBuilder, StringViewArray, StringViewBuilder};
use datafusion::arrow::datatypes::{DataType, Float64Type, IntervalMonthDayNanoType, IntervalUnit};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::Result;
use std::sync::Arc;
use tidalite_types::Interval;
use tidalite_types::text::{hex_digits, quote_array_item};

pub(crate) const ARRAY_OUT: &str = "array_out";
pub(crate) const BYTES_OUT: &str = "byteaout";
pub(crate) const BYTES_IN: &str = "byteain";
pub(crate) const SIMILAR_TO_ESCAPE: &str = "similar_to_escape";

pub(super) const FUNCTIONS: &[Scalar] = &[
    Scalar { name: ARRAY_OUT, takes: "an array", kinds: &[Kind::List], gives: Gives::Text, call: texts, ..PLAIN },
    Scalar { name: BYTES_OUT, takes: "bytes", kinds: &[Kind::Any], gives: Gives::Text, call: texts, ..PLAIN },
    Scalar { name: BYTES_IN, takes: "a text", kinds: &[Kind::Text], gives: Gives::Bytes, call: bytes, ..PLAIN },
    Scalar {
        name: SIMILAR_TO_ESCAPE,
        takes: "a text",
        kinds: &[Kind::Text],
        gives: Gives::Text,
        call: regexes,
        ..PLAIN
    },
];

/// Returns the function of a cast between text and an array or bytes.
pub(crate) fn cast_function(from: &DataType, to: &DataType) -> Option<&'static str> {
    let is_text = |of: &DataType| matches!(of, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    let is_bytes = |of: &DataType| matches!(of, DataType::Binary | DataType::BinaryView);
    match (from, to) {
        (DataType::List(_), to) if is_text(to) => Some(ARRAY_OUT),
        (from, to) if is_bytes(from) && is_text(to) => Some(BYTES_OUT),
        (from, to) if is_text(from) && is_bytes(to) => Some(BYTES_IN),
        _ => None,
    }
}

fn texts(call: &Call) -> Result<ArrayRef> {
    let mut out = StringViewBuilder::with_capacity(call.rows);
    for row in 0..call.rows {
        out.append_option(text_of(&call.columns[0], row)?);
    }
    Ok(Arc::new(out.finish()))
}

/// Returns the text of one value; `None` for NULL.
pub(super) fn text_of(column: &ArrayRef, row: usize) -> Result<Option<String>> {
    if column.is_null(row) || *column.data_type() == DataType::Null {
        return Ok(None);
    }
    Ok(Some(match column.data_type() {
        DataType::List(_) => list(&column.as_list::<i32>().value(row))?,
        DataType::Binary => hexadecimal(column.as_binary::<i32>().value(row)),
        DataType::BinaryView => hexadecimal(column.as_binary_view().value(row)),
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let value = column.as_primitive::<IntervalMonthDayNanoType>().value(row);
            Interval { months: value.months, days: value.days, nanos: value.nanoseconds }.to_string()
        }
        DataType::FixedSizeBinary(16) => uuid_texts(&column.slice(row, 1)).as_string_view().value(0).to_owned(),
        DataType::Float64 if column.as_primitive::<Float64Type>().value(row).is_infinite() => {
            (if column.as_primitive::<Float64Type>().value(row) > 0.0 { "Infinity" } else { "-Infinity" }).to_owned()
        }
        DataType::Boolean => (if column.as_boolean().value(row) { "t" } else { "f" }).to_owned(),
        _ => ArrayFormatter::try_new(column, &FormatOptions::default())?.value(row).try_to_string()?,
    }))
}

/// Returns `{a,"b c",NULL,{…}}`.
fn list(items: &ArrayRef) -> Result<String> {
    let is_nested = matches!(items.data_type(), DataType::List(_));
    let mut out = vec![b'{'];
    for row in 0..items.len() {
        if row > 0 {
            out.push(b',');
        }
        let Some(text) = text_of(items, row)? else {
            out.extend_from_slice(b"NULL");
            continue;
        };
        let start = out.len();
        out.extend_from_slice(text.as_bytes());
        if !is_nested {
            quote_array_item(&mut out, start);
        }
    }
    out.push(b'}');
    String::from_utf8(out).map_err(|_| Error::internal("the text of an array is not UTF-8").into())
}

fn hexadecimal(bytes: &[u8]) -> String {
    format!("\\x{}", hex_digits(bytes))
}

fn bytes(call: &Call) -> Result<ArrayRef> {
    let mut out = BinaryViewBuilder::with_capacity(call.rows);
    for text in call.columns[0].as_string_view() {
        match text.map(|text| bytes_of_text(text).ok_or(text)) {
            Some(Ok(bytes)) => out.append_value(bytes),
            Some(Err(text)) => return Err(Error::invalid_text("BINARY", text).into()),
            None => out.append_null(),
        }
    }
    Ok(Arc::new(out.finish()))
}

fn regexes(call: &Call) -> Result<ArrayRef> {
    let patterns = call.columns[0].as_string_view().iter();
    let regexes = patterns.map(|pattern| pattern.map(|pattern| similar_to(pattern, Some('\\'))));
    Ok(Arc::new(regexes.collect::<StringViewArray>()))
}
