//! What casts and operators over text become: text as a timestamp, which may stop after any part, or as an array, and two
//! texts together.

use super::guarded::{bytes_max, too_large};
use super::scalar::{Call, Gives, Kind, PLAIN, Scalar};
use crate::Error;
use crate::door::array_texts;
use crate::door::timestamps::parse_timestamp;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringViewBuilder};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use std::sync::Arc;
use tidalite_types::TimeUnit;

pub(crate) const MICROS: &str = "__text_to_micros";
pub(crate) const NANOS: &str = "__text_to_nanos";
/// The second argument is a NULL of the array's type.
pub(crate) const DOUBLES: &str = "__text_to_doubles";
pub(crate) const TOGETHER: &str = "__together";

pub(super) const FUNCTIONS: &[Scalar] = &[
    Scalar {
        name: MICROS,
        takes: "a text",
        kinds: &[Kind::Text],
        gives: Gives::Micros,
        call: |call| times(call, TimeUnit::Micros),
        ..PLAIN
    },
    Scalar {
        name: NANOS,
        takes: "a text",
        kinds: &[Kind::Text],
        gives: Gives::Nanos,
        call: |call| times(call, TimeUnit::Nanos),
        ..PLAIN
    },
    Scalar {
        name: DOUBLES,
        takes: "a text",
        kinds: &[Kind::Text, Kind::Any],
        gives: Gives::Like(1),
        call: doubles,
        ..PLAIN
    },
    Scalar {
        name: TOGETHER,
        takes: "two texts",
        kinds: &[Kind::Text, Kind::Text],
        gives: Gives::Text,
        call: together,
        ..PLAIN
    },
];

/// Parses texts as TIMESTAMP.
pub(super) fn micros(texts: &ArrayRef) -> Result<ArrayRef> {
    let data_type = crate::door::arrow_type(tidalite_types::ColumnType::Timestamp(TimeUnit::Micros));
    of_texts(&cast(texts, &DataType::Utf8View)?, TimeUnit::Micros, &data_type)
}

fn times(call: &Call, unit: TimeUnit) -> Result<ArrayRef> {
    of_texts(&call.columns[0], unit, call.data_type)
}

fn of_texts(texts: &ArrayRef, unit: TimeUnit, data_type: &DataType) -> Result<ArrayRef> {
    let texts = texts.as_string_view();
    let mut out = Vec::with_capacity(texts.len());
    for text in texts.iter() {
        out.push(match text {
            None => None,
            Some(text) => match parse_timestamp(text, unit) {
                Some((ticks, _)) => Some(ticks),
                None => return Err(Error::invalid_time("TIMESTAMP", text).into()),
            },
        });
    }
    let out: ArrayRef = Arc::new(Int64Array::from(out));
    Ok(cast(&out, data_type)?)
}

fn doubles(call: &Call) -> Result<ArrayRef> {
    let dims = array_texts::dims(call.data_type).ok_or_else(|| Error::internal("an array of other than doubles"))?;
    let texts = call.columns[0].as_string_view();
    Ok(array_texts::of_texts(texts.iter(), dims).map_err(|malformed| Error::invalid(malformed.message))?)
}

fn together(call: &Call) -> Result<ArrayRef> {
    let (left, right) = (call.columns[0].as_string_view(), call.columns[1].as_string_view());
    let mut out = StringViewBuilder::with_capacity(call.rows);
    let (mut text, mut bytes, bytes_max) = (String::new(), 0, bytes_max());
    for row in 0..call.rows {
        if left.is_null(row) || right.is_null(row) {
            out.append_null();
            continue;
        }
        let parts = [left.value(row), right.value(row)];
        bytes += parts[0].len() + parts[1].len();
        if bytes > bytes_max {
            return Err(too_large("||").into());
        }
        text.clear();
        text.extend(parts);
        out.append_value(&text);
    }
    Ok(Arc::new(out.finish()))
}
