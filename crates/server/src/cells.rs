//! Values of record batches as text: JSON, CSV and tables for terminals.
//!
//! A column of a batch is looked at once and becomes [`Cells`]; writing a value is then a match and a copy.
//! NaN and infinities, which JSON has no words for, are `null` there, as in QuestDB.

mod number;
mod strip;
mod style;
mod time;

pub use strip::{Marks, Strips};
pub use style::Style;

use crate::digits::{push_i64, push_uuid};
use crate::json::push_str;
use arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewArray, BooleanArray, FixedSizeBinaryArray, FixedSizeListArray, ListArray,
    StringViewArray,
};
use arrow::datatypes::{
    DataType, Date32Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, IntervalMonthDayNano,
    IntervalMonthDayNanoType, IntervalUnit, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use number::{push_f32, push_f64};
use tidalite::types::Interval;
use tidalite::types::TimeUnit as Unit;
use tidalite::types::text::push_hex;
use time::Minute;

/// The values of one column of one batch.
pub struct Cells<'a> {
    array: &'a dyn Array,
    /// True if any value is NULL.
    nulls: bool,
    values: Values<'a>,
}

enum Values<'a> {
    Bool(&'a BooleanArray),
    I8(&'a [i8]),
    I16(&'a [i16]),
    I32(&'a [i32]),
    I64(&'a [i64]),
    U8(&'a [u8]),
    U16(&'a [u16]),
    U32(&'a [u32]),
    U64(&'a [u64]),
    F32(&'a [f32]),
    F64(&'a [f64]),
    Timestamp(&'a [i64], Unit, Minute),
    Seconds(&'a [i64], Minute),
    Date(&'a [i32]),
    Text(&'a StringViewArray),
    Binary(&'a BinaryViewArray),
    Uuid(&'a FixedSizeBinaryArray),
    Ipv4(&'a [u32]),
    List(&'a ListArray, Box<Cells<'a>>),
    FixedList(&'a FixedSizeListArray, Box<Cells<'a>>),
    Interval(&'a [IntervalMonthDayNano]),
    Null,
    /// Decimals and types without a writer of their own; the flag is true if JSON and CSV quote them.
    Other(ArrayFormatter<'a>, bool),
}

const UTC_FORMAT: FormatOptions<'static> = FormatOptions::new().with_display_error(true);

/// Arrow types that are brought to one of those above before [`Cells::new`]; the others pass as they are.
#[must_use]
pub fn prepared(array: &ArrayRef) -> ArrayRef {
    let target = match array.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
        DataType::Dictionary(_, value) if **value == DataType::Binary => DataType::BinaryView,
        DataType::Dictionary(_, value) if value.is_primitive() => (**value).clone(),
        DataType::Dictionary(..) => DataType::Utf8View,
        _ => return array.clone(),
    };
    arrow::compute::cast(array, &target).unwrap_or_else(|_| array.clone())
}

impl<'a> Cells<'a> {
    /// `type_name` is the SQL type, which knows more than Arrow's.
    #[must_use]
    pub fn new(array: &'a dyn Array, type_name: &str) -> Cells<'a> {
        let values = match array.data_type() {
            DataType::Null => Values::Null,
            DataType::Boolean => Values::Bool(array.as_boolean()),
            DataType::Int8 => Values::I8(array.as_primitive::<Int8Type>().values()),
            DataType::Int16 => Values::I16(array.as_primitive::<Int16Type>().values()),
            DataType::Int32 => Values::I32(array.as_primitive::<Int32Type>().values()),
            DataType::Int64 => Values::I64(array.as_primitive::<Int64Type>().values()),
            DataType::UInt8 => Values::U8(array.as_primitive::<UInt8Type>().values()),
            DataType::UInt16 => Values::U16(array.as_primitive::<UInt16Type>().values()),
            DataType::UInt32 if type_name.eq_ignore_ascii_case("ipv4") => {
                Values::Ipv4(array.as_primitive::<UInt32Type>().values())
            }
            DataType::UInt32 => Values::U32(array.as_primitive::<UInt32Type>().values()),
            DataType::UInt64 => Values::U64(array.as_primitive::<UInt64Type>().values()),
            DataType::Float32 => Values::F32(array.as_primitive::<Float32Type>().values()),
            DataType::Float64 => Values::F64(array.as_primitive::<Float64Type>().values()),
            DataType::Timestamp(unit, _) => timestamps(array, *unit),
            DataType::Date32 => Values::Date(array.as_primitive::<Date32Type>().values()),
            DataType::Utf8View => Values::Text(array.as_string_view()),
            DataType::BinaryView => Values::Binary(array.as_binary_view()),
            DataType::FixedSizeBinary(16) => Values::Uuid(array.as_fixed_size_binary()),
            DataType::Interval(IntervalUnit::MonthDayNano) => {
                Values::Interval(array.as_primitive::<IntervalMonthDayNanoType>().values())
            }
            DataType::List(_) => list(array.as_list()),
            DataType::FixedSizeList(..) => {
                let list = array.as_fixed_size_list();
                Values::FixedList(list, Box::new(Cells::new(list.values().as_ref(), "")))
            }
            _ => other(array),
        };
        Cells { array, nulls: array.null_count() > 0, values }
    }

    fn is_null(&self, row: usize) -> bool {
        matches!(self.values, Values::Null) || self.nulls && self.array.is_null(row)
    }

    /// Returns true if a row has the timestamp of the previous row; false for other types.
    fn is_time_of_row_before(&self, row: usize) -> bool {
        match &self.values {
            Values::Timestamp(values, ..) => !self.nulls && row > 0 && values[row - 1] == values[row],
            _ => false,
        }
    }

    /// # Panics
    /// When the column has no such row.
    pub fn write(&self, row: usize, style: Style, out: &mut Vec<u8>) {
        if self.is_null(row) {
            if let Style::Json { .. } = style {
                out.extend_from_slice(b"null");
            }
            return;
        }
        match &self.values {
            Values::Bool(v) => out.extend_from_slice(if v.value(row) { b"true" } else { b"false" }),
            Values::I8(v) => push_i64(out, i64::from(v[row])),
            Values::I16(v) => push_i64(out, i64::from(v[row])),
            Values::I32(v) => push_i64(out, i64::from(v[row])),
            Values::I64(v) if matches!(style, Style::Json { long_quotes: true, .. }) => {
                out.push(b'"');
                push_i64(out, v[row]);
                out.push(b'"');
            }
            Values::I64(v) => push_i64(out, v[row]),
            Values::U8(v) => push_i64(out, i64::from(v[row])),
            Values::U16(v) => push_i64(out, i64::from(v[row])),
            Values::U32(v) => push_i64(out, i64::from(v[row])),
            Values::U64(v) => out.extend_from_slice(itoa::Buffer::new().format(v[row]).as_bytes()),
            Values::F32(v) => push_f32(out, v[row], style),
            Values::F64(v) => push_f64(out, v[row], style),
            Values::Timestamp(v, unit, minute) => {
                quoted(out, style, |out| time::push_timestamp(out, v[row], *unit, minute))
            }
            Values::Seconds(v, minute) => {
                quoted(out, style, |out| time::push_timestamp(out, v[row].saturating_mul(1000), Unit::Millis, minute));
            }
            Values::Date(v) => quoted(out, style, |out| time::push_date(out, v[row], style)),
            Values::Text(v) => push_text(out, v.value(row), style),
            Values::Binary(v) => quoted(out, style, |out| push_bytes(out, v.value(row), style)),
            Values::Uuid(v) => bare_in_csv(out, style, |out| push_uuid(out, v.value(row))),
            Values::Ipv4(v) => {
                let [a, b, c, d] = v[row].to_be_bytes();
                bare_in_csv(out, style, |out| out.extend_from_slice(format!("{a}.{b}.{c}.{d}").as_bytes()));
            }
            Values::List(v, child) => {
                let offsets = v.value_offsets();
                push_list(out, style, child, offsets[row] as usize..offsets[row + 1] as usize);
            }
            Values::FixedList(v, child) => {
                let from = v.value_offset(row) as usize;
                push_list(out, style, child, from..from + v.value_length() as usize);
            }
            Values::Interval(v) => quoted(out, style, |out| push_interval(out, v[row])),
            Values::Null => {}
            Values::Other(v, quotes) => {
                let text = v.value(row).to_string();
                if *quotes { push_text(out, &text, style) } else { out.extend_from_slice(text.as_bytes()) }
            }
        }
    }
}

fn timestamps(array: &dyn Array, unit: TimeUnit) -> Values<'_> {
    let (values, unit) = match unit {
        TimeUnit::Second => {
            return Values::Seconds(array.as_primitive::<TimestampSecondType>().values(), Minute::default());
        }
        TimeUnit::Millisecond => (array.as_primitive::<TimestampMillisecondType>().values(), Unit::Millis),
        TimeUnit::Microsecond => (array.as_primitive::<TimestampMicrosecondType>().values(), Unit::Micros),
        TimeUnit::Nanosecond => (array.as_primitive::<TimestampNanosecondType>().values(), Unit::Nanos),
    };
    Values::Timestamp(values, unit, Minute::default())
}

fn list(array: &ListArray) -> Values<'_> {
    Values::List(array, Box::new(Cells::new(array.values().as_ref(), "")))
}

fn other(array: &dyn Array) -> Values<'_> {
    match ArrayFormatter::try_new(array, &UTC_FORMAT) {
        Ok(formatter) => Values::Other(formatter, true),
        Err(_) => Values::Null,
    }
}

/// In quotes, unless for people. `write` appends nothing that JSON would have to escape.
fn quoted(out: &mut Vec<u8>, style: Style, write: impl FnOnce(&mut Vec<u8>)) {
    if style == Style::Text {
        return write(out);
    }
    out.push(b'"');
    write(out);
    out.push(b'"');
}

/// Formats an interval as PostgreSQL does.
fn push_interval(out: &mut Vec<u8>, value: IntervalMonthDayNano) {
    let interval = Interval { months: value.months, days: value.days, nanos: value.nanoseconds };
    out.extend_from_slice(interval.to_string().as_bytes());
}

fn bare_in_csv(out: &mut Vec<u8>, style: Style, write: impl FnOnce(&mut Vec<u8>)) {
    let style = if style == Style::Csv { Style::Text } else { style };
    quoted(out, style, write);
}

fn push_text(out: &mut Vec<u8>, text: &str, style: Style) {
    match style {
        Style::Json { .. } => push_str(out, text),
        Style::Csv => push_csv(out, text.as_bytes()),
        Style::Text => out.extend_from_slice(text.as_bytes()),
    }
}

/// RFC 4180: in quotes, quotes doubled, nothing else changed.
pub fn push_csv(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    for (i, part) in text.split(|b| *b == b'"').enumerate() {
        if i > 0 {
            out.extend_from_slice(b"\"\"");
        }
        out.extend_from_slice(part);
    }
    out.push(b'"');
}

/// As PostgreSQL writes bytea.
fn push_bytes(out: &mut Vec<u8>, bytes: &[u8], style: Style) {
    out.extend_from_slice(if let Style::Json { .. } = style { b"\\\\x" } else { b"\\x" });
    push_hex(out, bytes);
}

/// A list is a JSON list in every style; CSV puts it in quotes.
fn push_list(out: &mut Vec<u8>, style: Style, child: &Cells<'_>, rows: std::ops::Range<usize>) {
    let json = Style::Json { long_quotes: false, not_finite_quotes: false };
    let mut text = vec![b'['];
    for row in rows.clone() {
        if row > rows.start {
            text.push(b',');
        }
        child.write(row, json, &mut text);
    }
    text.push(b']');
    if style == Style::Csv { push_csv(out, &text) } else { out.extend_from_slice(&text) }
}

#[cfg(test)]
mod tests;
