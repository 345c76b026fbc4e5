//! Values of record batches as PostgreSQL's: text or binary, each with its length before it.
//!
//! A column of a batch is brought to the form its type is sent from ([`canonical`]), looked at once ([`Cells`]); then
//! writing a value is a match and a copy. What is of another type than was announced, since a parameter's value turned
//! out to be, is cast to it.

use super::numeric::{push_binary, push_decimal, push_f32, push_f64};
use super::types::Column;
use crate::digits::{push_clock, push_day, push_fraction, push_i64, push_uuid};
use arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewArray, BooleanArray, FixedSizeBinaryArray, ListArray, StringViewArray,
};
use arrow::compute::{CastOptions, can_cast_types, cast_with_options};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Field, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, Time64MicrosecondType, TimeUnit,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, UInt32Type,
};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use std::io::Write;
use std::sync::Arc;
use tidalite::types::Interval;
use tidalite::types::pg_type::{self, PgType};
use tidalite::types::text::push_hex;
use tidalite::types::time::civil_from_days;
use tidalite::{Error, ErrorKind, Result, TimeZone};

/// Days and microseconds from 1970-01-01 to 2000-01-01, where PostgreSQL counts from.
const EPOCH_DAYS: i32 = 10_957;
const EPOCH_US: i64 = EPOCH_DAYS as i64 * 86_400_000_000;

/// The first byte of a JSONB value in the binary form.
const JSONB_VERSION: u8 = 1;

/// The values of one column of one batch.
pub struct Cells<'a> {
    array: &'a dyn Array,
    /// Whether any value is NULL.
    nulls: bool,
    values: Values<'a>,
}

enum Values<'a> {
    Bool(&'a BooleanArray),
    I16(&'a [i16]),
    I32(&'a [i32]),
    I64(&'a [i64]),
    /// Object identifiers (OIDs) of 32 bits.
    Oid(&'a [i64]),
    F32(&'a [f32]),
    F64(&'a [f64]),
    Decimal(&'a [i128], i8),
    /// Numbers sent as NUMERIC.
    NumericF64(&'a [f64]),
    /// In units of which so many are a second.
    Timestamp(&'a [i64], i64),
    /// The same, shown in a time zone.
    TimestampTz(&'a [i64], i64, TimeZone),
    Date(&'a [i32]),
    Time(&'a [i64]),
    Interval(&'a [IntervalMonthDayNano]),
    Text(&'a StringViewArray),
    /// Text with the version of its format before it in the binary form.
    Jsonb(&'a StringViewArray),
    Binary(&'a BinaryViewArray),
    Uuid(&'a FixedSizeBinaryArray),
    Ipv4(&'a [u32]),
    List(&'a ListArray, PgType, Box<Cells<'a>>),
    /// A vector of the catalog: counted from 0, and written without braces.
    Vector(&'a ListArray, PgType, Box<Cells<'a>>),
    Null,
    /// What only has a text.
    Other(ArrayFormatter<'a>),
}

/// Brings the values of a column to the form they are sent from.
///
/// # Errors
/// When they are of another type, and one of them has no value of the announced one.
pub fn canonical(column: &Column, array: &ArrayRef) -> Result<ArrayRef> {
    if column.is_ipv4 && *array.data_type() == DataType::UInt32 {
        return Ok(array.clone());
    }
    match wanted(column.pg_type, array.data_type()) {
        Some(wanted) => cast(array, &wanted),
        None => Ok(array.clone()),
    }
}

/// The Arrow type that values of a type are sent from; `None` for "as it is".
fn wanted(pg_type: PgType, now: &DataType) -> Option<DataType> {
    Some(match pg_type {
        pg_type::BOOL => DataType::Boolean,
        pg_type::INT2 => DataType::Int16,
        pg_type::INT4 => DataType::Int32,
        pg_type::INT8 => DataType::Int64,
        // Object names are sent unchanged.
        pg_type if pg_type.is_object() && now.is_integer() => DataType::Int64,
        pg_type::FLOAT4 => DataType::Float32,
        pg_type::FLOAT8 => DataType::Float64,
        pg_type::NUMERIC => match now {
            DataType::Decimal128(..) | DataType::Float64 => return None,
            DataType::Decimal32(p, s) | DataType::Decimal64(p, s) => DataType::Decimal128(*p, *s),
            DataType::Float16 | DataType::Float32 => DataType::Float64,
            // Too wide for 128 bits: sent by its text.
            DataType::Decimal256(..) => return None,
            _ => DataType::Decimal128(38, 0),
        },
        pg_type::TIMESTAMP | pg_type::TIMESTAMPTZ => match now {
            DataType::Timestamp(TimeUnit::Second, _) => DataType::Timestamp(TimeUnit::Millisecond, None),
            DataType::Timestamp(..) => return None,
            _ => DataType::Timestamp(TimeUnit::Microsecond, None),
        },
        pg_type::DATE => DataType::Date32,
        pg_type::TIME => DataType::Time64(TimeUnit::Microsecond),
        pg_type::INTERVAL => DataType::Interval(IntervalUnit::MonthDayNano),
        pg_type::BYTEA => DataType::BinaryView,
        pg_type::UUID => DataType::FixedSizeBinary(16),
        pg_type if pg_type.is_array() => return list(pg_type, now),
        // Whatever has a text is sent as that.
        _ if can_cast_types(now, &DataType::Utf8View) && !now.is_nested() => DataType::Utf8View,
        _ => return None,
    })
}

/// Lists of lists keep their depth.
fn list(pg_type: PgType, now: &DataType) -> Option<DataType> {
    let item = match now {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::ListView(item)
        | DataType::LargeListView(item) => item.data_type(),
        _ => return None,
    };
    let is_list = item.is_nested();
    let inner = if is_list { list(pg_type, item) } else { wanted(pg_type::by_oid(pg_type.element)?, item) };
    Some(DataType::List(Arc::new(Field::new_list_field(inner.unwrap_or_else(|| item.clone()), true))))
}

fn cast(array: &ArrayRef, wanted: &DataType) -> Result<ArrayRef> {
    if array.data_type() == wanted {
        return Ok(array.clone());
    }
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(array, wanted, &strict).map_err(|error| {
        let message = format!("a value is not of the type that was announced for its column: {error}");
        Error::new(ErrorKind::Invalid, message)
    })
}

impl<'a> Cells<'a> {
    /// `array` is canonical for the type.
    #[must_use]
    pub fn new(pg_type: PgType, is_ipv4: bool, array: &'a dyn Array) -> Cells<'a> {
        let values = match array.data_type() {
            DataType::Null => Values::Null,
            DataType::Boolean => Values::Bool(array.as_boolean()),
            DataType::Int16 => Values::I16(array.as_primitive::<Int16Type>().values()),
            DataType::Int32 => Values::I32(array.as_primitive::<Int32Type>().values()),
            DataType::Int64 if pg_type.is_object() => Values::Oid(array.as_primitive::<Int64Type>().values()),
            DataType::Int64 => Values::I64(array.as_primitive::<Int64Type>().values()),
            DataType::Float32 => Values::F32(array.as_primitive::<Float32Type>().values()),
            DataType::Float64 if pg_type == pg_type::NUMERIC => {
                Values::NumericF64(array.as_primitive::<Float64Type>().values())
            }
            DataType::Float64 => Values::F64(array.as_primitive::<Float64Type>().values()),
            DataType::Decimal128(_, scale) => Values::Decimal(array.as_primitive::<Decimal128Type>().values(), *scale),
            DataType::Timestamp(TimeUnit::Millisecond, _) => {
                Values::Timestamp(array.as_primitive::<TimestampMillisecondType>().values(), 1_000)
            }
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                Values::Timestamp(array.as_primitive::<TimestampMicrosecondType>().values(), 1_000_000)
            }
            DataType::Timestamp(TimeUnit::Nanosecond, _) => {
                Values::Timestamp(array.as_primitive::<TimestampNanosecondType>().values(), 1_000_000_000)
            }
            DataType::Date32 => Values::Date(array.as_primitive::<Date32Type>().values()),
            DataType::Time64(TimeUnit::Microsecond) => {
                Values::Time(array.as_primitive::<Time64MicrosecondType>().values())
            }
            DataType::Interval(IntervalUnit::MonthDayNano) => {
                Values::Interval(array.as_primitive::<IntervalMonthDayNanoType>().values())
            }
            DataType::Utf8View if pg_type == pg_type::JSONB => Values::Jsonb(array.as_string_view()),
            DataType::Utf8View => Values::Text(array.as_string_view()),
            DataType::BinaryView => Values::Binary(array.as_binary_view()),
            DataType::FixedSizeBinary(16) => Values::Uuid(array.as_fixed_size_binary()),
            DataType::UInt32 if is_ipv4 => Values::Ipv4(array.as_primitive::<UInt32Type>().values()),
            DataType::List(_) => list_cells(pg_type, array),
            _ => other(array),
        };
        let values = match values {
            Values::Timestamp(values, per_second) if pg_type == pg_type::TIMESTAMPTZ => {
                Values::TimestampTz(values, per_second, TimeZone::UTC)
            }
            other => other,
        };
        Cells { array, nulls: array.null_count() > 0, values }
    }

    /// With timestamps that have a zone shown in this one.
    #[must_use]
    pub fn in_zone(mut self, zone: Option<TimeZone>) -> Cells<'a> {
        if let (Values::TimestampTz(_, _, own), Some(zone)) = (&mut self.values, zone) {
            *own = zone;
        }
        self
    }

    #[must_use]
    pub fn is_null(&self, row: usize) -> bool {
        matches!(self.values, Values::Null) || self.nulls && self.array.is_null(row)
    }

    /// Appends length and value.
    ///
    /// # Errors
    /// On an array that PostgreSQL's cannot be like.
    pub fn write(&self, row: usize, is_binary: bool, out: &mut Vec<u8>) -> Result<()> {
        if self.is_null(row) {
            out.extend_from_slice(&(-1i32).to_be_bytes());
            return Ok(());
        }
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        if is_binary {
            self.push_bytes(row, out)?
        } else {
            self.push_text(row, out)
        }
        let length = i32::try_from(out.len() - start - 4)
            .map_err(|_| Error::new(ErrorKind::Invalid, "a value is longer than 2 GiB"))?;
        out[start..start + 4].copy_from_slice(&length.to_be_bytes());
        Ok(())
    }

    /// Appends the text of a value that is not NULL.
    pub fn push_text(&self, row: usize, out: &mut Vec<u8>) {
        match &self.values {
            Values::Bool(v) => out.push(if v.value(row) { b't' } else { b'f' }),
            Values::I16(v) => push_i64(out, i64::from(v[row])),
            Values::I32(v) => push_i64(out, i64::from(v[row])),
            Values::I64(v) | Values::Oid(v) => push_i64(out, v[row]),
            Values::F32(v) => push_f32(out, v[row]),
            Values::F64(v) | Values::NumericF64(v) => push_f64(out, v[row]),
            Values::Decimal(v, scale) => push_decimal(out, v[row], *scale),
            Values::Timestamp(v, per_second) => push_timestamp(out, v[row], *per_second),
            Values::TimestampTz(v, per_second, zone) => push_timestamp_in(out, v[row], *per_second, *zone),
            Values::Date(v) => push_date(out, i64::from(v[row])),
            Values::Time(v) => push_time(out, v[row], 1_000_000),
            Values::Interval(v) => push_interval(out, v[row]),
            Values::Text(v) | Values::Jsonb(v) => out.extend_from_slice(v.value(row).as_bytes()),
            Values::Binary(v) => {
                out.extend_from_slice(b"\\x");
                push_hex(out, v.value(row));
            }
            Values::Uuid(v) => push_uuid(out, v.value(row)),
            Values::Ipv4(v) => push_ipv4(out, v[row]),
            Values::List(v, _, items) => items.push_list_text(v, row, out),
            Values::Vector(v, _, items) => items.push_vector_text(v, row, out),
            Values::Null => {}
            Values::Other(v) => drop(write!(out, "{}", v.value(row))),
        }
    }

    /// Appends the binary form of a value that is not NULL.
    pub fn push_bytes(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        match &self.values {
            Values::Bool(v) => out.push(u8::from(v.value(row))),
            Values::I16(v) => out.extend_from_slice(&v[row].to_be_bytes()),
            Values::I32(v) => out.extend_from_slice(&v[row].to_be_bytes()),
            Values::I64(v) => out.extend_from_slice(&v[row].to_be_bytes()),
            Values::Oid(v) => out.extend_from_slice(&u32::try_from(v[row]).unwrap_or_default().to_be_bytes()),
            Values::F32(v) => out.extend_from_slice(&v[row].to_be_bytes()),
            Values::F64(v) => out.extend_from_slice(&v[row].to_be_bytes()),
            Values::Timestamp(v, per_second) | Values::TimestampTz(v, per_second, _) => {
                let us = match per_second {
                    1_000 => v[row].saturating_mul(1_000),
                    1_000_000 => v[row],
                    _ => v[row].div_euclid(1_000),
                };
                out.extend_from_slice(&us.saturating_sub(EPOCH_US).to_be_bytes());
            }
            Values::Date(v) => out.extend_from_slice(&v[row].saturating_sub(EPOCH_DAYS).to_be_bytes()),
            Values::Time(v) => out.extend_from_slice(&v[row].to_be_bytes()),
            Values::Interval(v) => {
                out.extend_from_slice(&(v[row].nanoseconds.div_euclid(1_000)).to_be_bytes());
                out.extend_from_slice(&v[row].days.to_be_bytes());
                out.extend_from_slice(&v[row].months.to_be_bytes());
            }
            Values::Binary(v) => out.extend_from_slice(v.value(row)),
            Values::Uuid(v) => out.extend_from_slice(v.value(row)),
            Values::Jsonb(v) => {
                out.push(JSONB_VERSION);
                out.extend_from_slice(v.value(row).as_bytes());
            }
            Values::List(v, element, items) => items.push_list_bytes(v, row, (*element, 1), out)?,
            Values::Vector(v, element, items) => items.push_list_bytes(v, row, (*element, 0), out)?,
            Values::Decimal(..) | Values::NumericF64(_) => self.push_numeric(row, out),
            // A Decimal256 is the one number without an array of its own here.
            Values::Other(_) if matches!(self.array.data_type(), DataType::Decimal256(..)) => {
                self.push_numeric(row, out)
            }
            Values::Text(_) | Values::Ipv4(_) | Values::Null | Values::Other(_) => self.push_text(row, out),
        }
        Ok(())
    }

    fn push_numeric(&self, row: usize, out: &mut Vec<u8>) {
        let mut text = Vec::new();
        self.push_text(row, &mut text);
        push_binary(out, &String::from_utf8_lossy(&text));
    }
}

fn list_cells(pg_type: PgType, array: &dyn Array) -> Values<'_> {
    let list = array.as_list::<i32>();
    let Some(element) = pg_type::by_oid(pg_type.element) else { return other(array) };
    // Lists within are arrays of the same type.
    let inner = if list.values().data_type().is_nested() { pg_type } else { element };
    let items = Box::new(Cells::new(inner, false, list.values().as_ref()));
    match pg_type {
        pg_type::INT2VECTOR | pg_type::OIDVECTOR => Values::Vector(list, element, items),
        _ => Values::List(list, element, items),
    }
}

impl<'a> Cells<'a> {
    /// The items of a list within a list.
    #[must_use]
    pub fn as_list(&self) -> Option<(&'a ListArray, &Cells<'a>)> {
        match &self.values {
            Values::List(list, _, items) => Some((*list, items.as_ref())),
            _ => None,
        }
    }
}

fn other(array: &dyn Array) -> Values<'_> {
    const OPTIONS: FormatOptions<'static> = FormatOptions::new().with_display_error(true);
    ArrayFormatter::try_new(array, &OPTIONS).map_or(Values::Null, Values::Other)
}

/// `2016-01-01 00:00:00.5`: the fraction has only the digits it needs.
fn push_timestamp(out: &mut Vec<u8>, value: i64, per_second: i64) {
    let per_day = per_second * 86_400;
    let is_before_christ = push_year_to_day(out, value.div_euclid(per_day));
    out.push(b' ');
    push_time(out, value.rem_euclid(per_day), per_second);
    push_era(out, is_before_christ);
}

/// `2016-01-01 02:00:00.5+02`, in the clock of a place.
fn push_timestamp_in(out: &mut Vec<u8>, value: i64, per_second: i64, zone: TimeZone) {
    let offset = zone.offset_seconds(value.div_euclid(per_second));
    let (per_day, local) = (per_second * 86_400, value.saturating_add(offset * per_second));
    let is_before_christ = push_year_to_day(out, local.div_euclid(per_day));
    out.push(b' ');
    push_time(out, local.rem_euclid(per_day), per_second);
    let (sign, ahead) = (if offset < 0 { '-' } else { '+' }, offset.abs());
    let _ = write!(out, "{sign}{:02}", ahead / 3600);
    if ahead % 3600 != 0 {
        let _ = write!(out, ":{:02}", ahead / 60 % 60);
    }
    if ahead % 60 != 0 {
        let _ = write!(out, ":{:02}", ahead % 60);
    }
    push_era(out, is_before_christ);
}

fn push_date(out: &mut Vec<u8>, day: i64) {
    let is_before_christ = push_year_to_day(out, day);
    push_era(out, is_before_christ);
}

/// There is no year 0: what comes before year 1 is 1 BC, and tells so behind everything else.
fn push_year_to_day(out: &mut Vec<u8>, day: i64) -> bool {
    let (year, month, day) = civil_from_days(day);
    push_day(out, (if year > 0 { year } else { 1 - year }, month, day));
    year <= 0
}

fn push_era(out: &mut Vec<u8>, is_before_christ: bool) {
    if is_before_christ {
        out.extend_from_slice(b" BC");
    }
}

/// `value` is the time since midnight.
fn push_time(out: &mut Vec<u8>, value: i64, per_second: i64) {
    push_clock(out, value.div_euclid(per_second));
    push_fraction(out, value.rem_euclid(per_second), per_second, true);
}

fn push_ipv4(out: &mut Vec<u8>, address: u32) {
    for (i, part) in address.to_be_bytes().into_iter().enumerate() {
        if i > 0 {
            out.push(b'.');
        }
        push_i64(out, i64::from(part));
    }
}

/// `1 year 2 mons 3 days 04:05:06.7`.
fn push_interval(out: &mut Vec<u8>, value: IntervalMonthDayNano) {
    let interval = Interval { months: value.months, days: value.days, nanos: value.nanoseconds };
    // A Vec takes all that is written.
    let _ = write!(out, "{interval}");
}

#[cfg(test)]
mod tests;
