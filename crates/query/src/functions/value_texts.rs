//! PostgreSQL's texts of arrays, bytes and other values, and patterns of SIMILAR TO as regular expressions.
//!
//! The functions have the names of PostgreSQL's own functions for this: `array_out`, `byteaout`, `byteain`,
//! `byteacat` and `similar_to_escape`. Casts between text and these types call them.

use super::array_casts::elements_of;
use super::guarded::{bytes_max, too_large};
use super::identifiers::uuid_texts;
use super::scalar::{Call, Gives, Kind, PLAIN, Scalar};
use crate::Error;
use crate::dialect::similar_to;
use crate::door::batches::bytes_of_text;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewBuilder, ListArray, StringViewArray, StringViewBuilder,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float32Type, Float64Type, IntervalMonthDayNanoType, IntervalUnit};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};
use std::sync::Arc;
use tidalite_types::Interval;
use tidalite_types::text::{hex_digits, quote_array_item};

pub(crate) const ARRAY_OUT: &str = "array_out";
pub(crate) const BYTES_OUT: &str = "byteaout";
pub(crate) const BYTES_IN: &str = "byteain";
pub(crate) const BYTES_TOGETHER: &str = "byteacat";
pub(crate) const SIMILAR_TO_ESCAPE: &str = "similar_to_escape";

pub(super) const FUNCTIONS: &[Scalar] = &[
    Scalar { name: ARRAY_OUT, takes: "an array", kinds: &[Kind::List], gives: Gives::Text, call: texts, ..PLAIN },
    Scalar { name: BYTES_OUT, takes: "bytes", kinds: &[Kind::Any], gives: Gives::Text, call: texts, ..PLAIN },
    Scalar { name: BYTES_IN, takes: "a text", kinds: &[Kind::Text], gives: Gives::Bytes, call: bytes, ..PLAIN },
    Scalar {
        name: BYTES_TOGETHER,
        takes: "two values of bytes",
        kinds: &[Kind::TextOrBytes, Kind::TextOrBytes],
        gives: Gives::Bytes,
        call: bytes_together,
        ..PLAIN
    },
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
    if let Some(infinity) = infinite(column, row) {
        return Ok(Some(infinity.to_owned()));
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
        DataType::Boolean => (if column.as_boolean().value(row) { "t" } else { "f" }).to_owned(),
        _ => ArrayFormatter::try_new(column, &FormatOptions::default())?.value(row).try_to_string()?,
    }))
}

/// Returns the text of an infinity.
pub(super) fn infinity(value: f64) -> &'static str {
    if value > 0.0 { "Infinity" } else { "-Infinity" }
}

/// Returns the text of a REAL or DOUBLE that is an infinity; `None` for other values.
fn infinite(column: &ArrayRef, row: usize) -> Option<&'static str> {
    let value = match column.data_type() {
        DataType::Float64 => column.as_primitive::<Float64Type>().value(row),
        DataType::Float32 => column.as_primitive::<Float32Type>().value(row).into(),
        _ => return None,
    };
    value.is_infinite().then(|| infinity(value))
}

/// Returns the text of an item in `array_to_string`, where a DOUBLE that is a whole number has no point.
fn item_text(column: &ArrayRef, row: usize) -> Result<Option<String>> {
    Ok(match column.data_type() {
        _ if column.is_null(row) || infinite(column, row).is_some() => text_of(column, row)?,
        DataType::Float64 => Some(column.as_primitive::<Float64Type>().value(row).to_string()),
        DataType::Float32 => Some(column.as_primitive::<Float32Type>().value(row).to_string()),
        _ => text_of(column, row)?,
    })
}

/// Returns the arguments of `array_to_string` with the texts of items in place of the items, if the stock function
/// would convert them otherwise or not at all.
pub(super) fn with_item_texts(mut args: ScalarFunctionArgs) -> Result<ScalarFunctionArgs> {
    let Some(value) = args.args.first_mut() else { return Ok(args) };
    let has_own_text = |item: &DataType| {
        use DataType::{Binary, BinaryView, Boolean, FixedSizeBinary, Float32, Float64, Interval};
        matches!(item, Boolean | Float32 | Float64 | Interval(_) | Binary | BinaryView | FixedSizeBinary(16))
    };
    let DataType::List(item) = value.data_type() else { return Ok(args) };
    if !has_own_text(item.data_type()) {
        return Ok(args);
    }
    let lists = value.to_array(if matches!(value, ColumnarValue::Scalar(_)) { 1 } else { args.number_rows })?;
    let lists = lists.as_list::<i32>();
    let (lengths, items) = elements_of(lists)?;
    let items = (0..items.len()).map(|row| item_text(&items, row));
    let items: ArrayRef = Arc::new(items.collect::<Result<StringViewArray>>()?);
    let (field, offsets) = (crate::door::item(DataType::Utf8View), OffsetBuffer::from_lengths(lengths));
    let texts = ListArray::try_new(field, offsets, items, lists.nulls().cloned())?;
    *value = match value {
        ColumnarValue::Scalar(_) => ColumnarValue::Scalar(ScalarValue::List(Arc::new(texts))),
        ColumnarValue::Array(_) => ColumnarValue::Array(Arc::new(texts)),
    };
    Ok(args)
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

fn bytes_together(call: &Call) -> Result<ArrayRef> {
    let sides = [0, 1].map(|side| cast(&call.columns[side], &DataType::BinaryView));
    let [left, right] = sides;
    let (left, right) = (left?, right?);
    let (left, right) = (left.as_binary_view(), right.as_binary_view());
    let (mut out, mut length) = (BinaryViewBuilder::with_capacity(call.rows), 0);
    for (left, right) in left.iter().zip(right) {
        let value = left.zip(right).map(|(left, right)| [left, right].concat());
        length += value.as_ref().map_or(0, Vec::len);
        if length > bytes_max() {
            return Err(too_large("||").into());
        }
        out.append_option(value);
    }
    Ok(Arc::new(out.finish()))
}

fn regexes(call: &Call) -> Result<ArrayRef> {
    let patterns = call.columns[0].as_string_view().iter();
    let regexes = patterns.map(|pattern| pattern.map(|pattern| similar_to(pattern, Some('\\'))));
    Ok(Arc::new(regexes.collect::<StringViewArray>()))
}
