//! Writes the values of one column as text, row by row.

use super::escape::{is_unescaped, push_escaped, push_quoted, push_unescaped};
use crate::digits::push_decimal;
use crate::room::Room;
use crate::texts::Texts;
use crate::values::DAY_US;
use crate::{Error, Result, lists};
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch};
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimeUnit as ArrowUnit, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use std::ops::Range;

/// A column of the frame, and the text before its values, `,name=`.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub index: usize,
    pub name: String,
    pub prefix: Vec<u8>,
}

/// Checks that a field of the type can be sent.
pub(super) fn check(name: &str, data_type: &DataType, version: u8) -> Result<()> {
    let needs = |least: u8, what: &str| {
        if version >= least {
            return Ok(());
        }
        Err(Error::of_column(name, format!("{what} need version {least} of the protocol, this is {version}"))
            .with_hint("say protocol_version=… if the server knows a newer one"))
    };
    match data_type {
        DataType::Boolean | DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => Ok(()),
        t if t.is_integer() || t.is_floating() => Ok(()),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::FixedSizeBinary(16) => Ok(()),
        DataType::Dictionary(_, values) => check(name, values, version),
        DataType::RunEndEncoded(_, values) => check(name, values.data_type(), version),
        DataType::Decimal32(p, s)
        | DataType::Decimal64(p, s)
        | DataType::Decimal128(p, s)
        | DataType::Decimal256(p, s)
            if *p <= 38 && *s >= 0 =>
        {
            needs(3, "decimals")
        }
        other if lists::dims(other).is_some() => needs(2, "arrays"),
        other => Err(Error::of_column(name, format!("type {other} has no form in line protocol"))
            .with_hint("convert it to numbers or text")),
    }
}

/// Returns the values of a timestamp and their unit.
pub(super) fn times(array: &ArrayRef) -> Option<(&[i64], ArrowUnit)> {
    let DataType::Timestamp(unit, _) = array.data_type() else { return None };
    let values: &[i64] = match unit {
        ArrowUnit::Second => array.as_primitive::<TimestampSecondType>().values(),
        ArrowUnit::Millisecond => array.as_primitive::<TimestampMillisecondType>().values(),
        ArrowUnit::Microsecond => array.as_primitive::<TimestampMicrosecondType>().values(),
        ArrowUnit::Nanosecond => array.as_primitive::<TimestampNanosecondType>().values(),
    };
    Some((values, *unit))
}

/// `,name=`, appended as a copy of fixed size: two moves instead of a call.
struct Prefix {
    short: Option<([u8; Prefix::BYTES], usize)>,
    long: Vec<u8>,
}

impl Prefix {
    const BYTES: usize = 32;

    fn new(bytes: &[u8]) -> Prefix {
        let mut padded = [0; Prefix::BYTES];
        let short = padded.get_mut(..bytes.len()).map(|start| start.copy_from_slice(bytes));
        Prefix { short: short.map(|()| (padded, bytes.len())), long: bytes.to_vec() }
    }

    #[inline]
    fn push(&self, out: &mut Vec<u8>) {
        match &self.short {
            Some((padded, len)) => {
                let end = out.len() + len;
                out.extend_from_slice(padded);
                out.truncate(end);
            }
            None => out.extend_from_slice(&self.long),
        }
    }
}

/// A tag.
pub(super) struct Symbol<'a> {
    prefix: Prefix,
    nulls: Option<NullBuffer>,
    cells: SymbolCells<'a>,
}

enum SymbolCells<'a> {
    Text(Texts<'a>),
    /// All values are sent unescaped.
    Unescaped(Texts<'a>),
    /// For each row the index of its text; each text in escaped form with its name.
    Dictionary {
        keys: Vec<u32>,
        ranges: Vec<Range<usize>>,
        bytes: Vec<u8>,
    },
}

impl<'a> Symbol<'a> {
    pub fn new(part: &Part, rows: &'a RecordBatch) -> Result<Symbol<'a>> {
        let array = rows.column(part.index);
        let refused = |e: arrow::error::ArrowError| Error::of_column(&part.name, e);
        if !matches!(array.data_type(), DataType::Dictionary(..)) {
            let texts = Texts::of(array)
                .ok_or_else(|| Error::of_column(&part.name, format!("type {} is no text", array.data_type())))?;
            let (prefix, nulls) = (Prefix::new(&part.prefix), array.nulls().cloned());
            let is_unescaped = texts.whole().is_some_and(is_unescaped);
            let cells = if is_unescaped { SymbolCells::Unescaped(texts) } else { SymbolCells::Text(texts) };
            return Ok(Symbol { prefix, nulls, cells });
        }
        let dictionary = array.as_any_dictionary();
        let strings = dictionary.values();
        let texts = Texts::of(strings)
            .ok_or_else(|| Error::of_column(&part.name, format!("type {} is no text", strings.data_type())))?;
        let (mut ranges, mut bytes) = (Vec::with_capacity(strings.len()), Vec::new());
        for i in 0..strings.len() {
            let start = bytes.len();
            if strings.is_valid(i) {
                bytes.extend_from_slice(&part.prefix);
                push_escaped(&mut bytes, texts.get(i));
            }
            ranges.push(start..bytes.len());
        }
        // NULL, with any key, is one more text: the empty one.
        ranges.push(bytes.len()..bytes.len());
        let none = strings.len() as u32;
        let keys = cast(dictionary.keys(), &DataType::UInt32).map_err(refused)?;
        let keys = keys.as_primitive::<UInt32Type>();
        let keys = keys.iter().map(|key| key.filter(|k| *k < none).unwrap_or(none)).collect();
        Ok(Symbol { prefix: Prefix::new(b""), nulls: None, cells: SymbolCells::Dictionary { keys, ranges, bytes } })
    }

    #[inline]
    pub fn push(&self, row: usize, out: &mut Vec<u8>) {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            return;
        }
        match &self.cells {
            SymbolCells::Dictionary { keys, ranges, bytes } => {
                out.extend_from_slice(&bytes[ranges[keys[row] as usize].clone()]);
            }
            SymbolCells::Unescaped(texts) => {
                self.prefix.push(out);
                push_unescaped(out, texts.get(row));
            }
            SymbolCells::Text(texts) => {
                self.prefix.push(out);
                push_escaped(out, texts.get(row));
            }
        }
    }
}

/// A field.
pub(super) struct Field<'a> {
    name: &'a str,
    prefix: Prefix,
    nulls: Option<NullBuffer>,
    cells: Cells<'a>,
}

enum Cells<'a> {
    Boolean(BooleanArray),
    I8(&'a [i8]),
    I16(&'a [i16]),
    I32(&'a [i32]),
    I64(&'a [i64]),
    U8(&'a [u8]),
    U16(&'a [u16]),
    U32(&'a [u32]),
    U64(&'a [u64]),
    /// As digits, or as bytes after a prefix.
    F64(&'a [f64]),
    F64Bytes(&'a [f64]),
    F32(&'a [f32]),
    F32Bytes(&'a [f32]),
    /// Owned values of a type that was converted first.
    Doubles(Vec<f64>),
    DoublesBytes(Vec<f64>),
    Text(Texts<'a>),
    Uuid(&'a ArrayRef),
    Time {
        values: &'a [i64],
        factor: i64,
        divisor: i64,
        suffix: u8,
    },
    Day(&'a [i32]),
    Millis(Vec<i64>),
    Decimal {
        values: Vec<i128>,
        scale: u8,
    },
    Array {
        lists: &'a ArrayRef,
        dims: u8,
    },
}

impl<'a> Field<'a> {
    pub fn new(part: &'a Part, rows: &'a RecordBatch, version: u8) -> Result<Field<'a>> {
        let array = rows.column(part.index);
        let refused = |e: arrow::error::ArrowError| Error::of_column(&part.name, e);
        let nulls = array.logical_nulls();
        let is_binary = version >= 2;
        let cells = match array.data_type() {
            DataType::Boolean => Cells::Boolean(array.as_boolean().clone()),
            DataType::Int8 => Cells::I8(array.as_primitive::<Int8Type>().values()),
            DataType::Int16 => Cells::I16(array.as_primitive::<Int16Type>().values()),
            DataType::Int32 => Cells::I32(array.as_primitive::<Int32Type>().values()),
            DataType::Int64 => Cells::I64(array.as_primitive::<Int64Type>().values()),
            DataType::UInt8 => Cells::U8(array.as_primitive::<UInt8Type>().values()),
            DataType::UInt16 => Cells::U16(array.as_primitive::<UInt16Type>().values()),
            DataType::UInt32 => Cells::U32(array.as_primitive::<UInt32Type>().values()),
            DataType::UInt64 => Cells::U64(array.as_primitive::<UInt64Type>().values()),
            DataType::Float64 if is_binary => Cells::F64Bytes(array.as_primitive::<Float64Type>().values()),
            DataType::Float64 => Cells::F64(array.as_primitive::<Float64Type>().values()),
            DataType::Float32 if is_binary => Cells::F32Bytes(array.as_primitive::<Float32Type>().values()),
            DataType::Float32 => Cells::F32(array.as_primitive::<Float32Type>().values()),
            DataType::Float16 => {
                let wide = cast(array, &DataType::Float64).map_err(refused)?;
                let wide = wide.as_primitive::<Float64Type>().values().to_vec();
                if is_binary { Cells::DoublesBytes(wide) } else { Cells::Doubles(wide) }
            }
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                Cells::Text(Texts::of(array).ok_or_else(|| Error::of_column(&part.name, "it is no text"))?)
            }
            DataType::FixedSizeBinary(16) => Cells::Uuid(array),
            DataType::Timestamp(unit, _) => {
                let (values, _) = times(array).ok_or_else(|| Error::of_column(&part.name, "it is no timestamp"))?;
                let (factor, divisor, suffix) = match unit {
                    ArrowUnit::Second => (1_000_000, 1, b't'),
                    ArrowUnit::Millisecond => (1_000, 1, b't'),
                    ArrowUnit::Microsecond => (1, 1, b't'),
                    ArrowUnit::Nanosecond if is_binary => (1, 1, b'n'),
                    // Version 1 supports only microseconds.
                    ArrowUnit::Nanosecond => (1, 1_000, b't'),
                };
                Cells::Time { values, factor, divisor, suffix }
            }
            DataType::Date32 => Cells::Day(array.as_primitive::<Date32Type>().values()),
            DataType::Date64 => {
                let millis = cast(array, &DataType::Int64).map_err(refused)?;
                Cells::Millis(millis.as_primitive::<Int64Type>().values().to_vec())
            }
            DataType::Decimal32(p, s)
            | DataType::Decimal64(p, s)
            | DataType::Decimal128(p, s)
            | DataType::Decimal256(p, s) => {
                let wide = cast(array, &DataType::Decimal128(*p, *s)).map_err(refused)?;
                let values = wide.as_primitive::<Decimal128Type>().values().to_vec();
                Cells::Decimal { values, scale: u8::try_from(*s).unwrap_or(0) }
            }
            other => match lists::dims(other) {
                Some(dims) => Cells::Array { lists: array, dims },
                None => return Err(Error::of_column(&part.name, format!("type {other} has no form in line protocol"))),
            },
        };
        let mut prefix = part.prefix.clone();
        if matches!(cells, Cells::F64Bytes(_) | Cells::F32Bytes(_) | Cells::DoublesBytes(_)) {
            prefix.extend_from_slice(b"=\x10");
        }
        Ok(Field { name: &part.name, prefix: Prefix::new(&prefix), nulls, cells })
    }

    #[inline]
    pub fn push(&self, row: usize, number: u64, out: &mut Vec<u8>) -> Result<()> {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            return Ok(());
        }
        match &self.cells {
            Cells::F64(values) => self.push_digits(values[row], out),
            Cells::F64Bytes(values) => self.push_bytes(values[row], out),
            Cells::F32(values) => self.push_digits(f64::from(values[row]), out),
            Cells::F32Bytes(values) => self.push_bytes(f64::from(values[row]), out),
            Cells::Doubles(values) => self.push_digits(values[row], out),
            Cells::DoublesBytes(values) => self.push_bytes(values[row], out),
            Cells::I64(values) => self.push_long(values[row], out),
            Cells::I32(values) => self.push_long(i64::from(values[row]), out),
            Cells::I16(values) => self.push_long(i64::from(values[row]), out),
            Cells::I8(values) => self.push_long(i64::from(values[row]), out),
            Cells::U8(values) => self.push_long(i64::from(values[row]), out),
            Cells::U16(values) => self.push_long(i64::from(values[row]), out),
            Cells::U32(values) => self.push_long(i64::from(values[row]), out),
            Cells::U64(values) => match i64::try_from(values[row]) {
                Ok(value) => self.push_long(value, out),
                Err(_) => {
                    let message = format!("value {} is out of range for type LONG", values[row]);
                    return Err(Error::of_value(self.name, number, message));
                }
            },
            Cells::Boolean(values) => {
                self.prefix.push(out);
                out.push(if values.value(row) { b't' } else { b'f' });
            }
            Cells::Text(texts) => self.push_text(texts.get(row), out),
            Cells::Uuid(array) => self.push_uuid(array.as_fixed_size_binary().value(row), out),
            Cells::Time { values, factor, divisor, suffix } => {
                let time = self.micros(values[row], *factor, number)?;
                self.push_time(time.div_euclid(*divisor), *suffix, out);
            }
            Cells::Day(days) => self.push_time(self.micros(i64::from(days[row]), DAY_US, number)?, b't', out),
            Cells::Millis(millis) => self.push_time(self.micros(millis[row], 1_000, number)?, b't', out),
            Cells::Decimal { values, scale } => self.push_decimal(values[row], *scale, out),
            Cells::Array { lists, dims } => self.push_array(lists, *dims, row, number, out)?,
        }
        Ok(())
    }

    #[inline]
    fn micros(&self, value: i64, factor: i64, number: u64) -> Result<i64> {
        let out_of_range = || Error::of_value(self.name, number, "the time is out of range of microseconds");
        value.checked_mul(factor).ok_or_else(out_of_range)
    }

    #[inline]
    fn push_digits(&self, value: f64, out: &mut Vec<u8>) {
        self.prefix.push(out);
        if value.is_finite() {
            out.extend_from_slice(zmij::Buffer::new().format_finite(value).as_bytes());
        } else if value.is_nan() {
            out.extend_from_slice(b"NaN");
        } else {
            out.extend_from_slice(if value > 0.0 { b"Infinity" } else { b"-Infinity" });
        }
    }

    #[inline]
    fn push_bytes(&self, value: f64, out: &mut Vec<u8>) {
        self.prefix.push(out);
        out.extend_from_slice(&value.to_le_bytes());
    }

    #[inline]
    fn push_long(&self, value: i64, out: &mut Vec<u8>) {
        self.prefix.push(out);
        out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
        out.push(b'i');
    }

    #[inline]
    fn push_time(&self, value: i64, suffix: u8, out: &mut Vec<u8>) {
        self.prefix.push(out);
        out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
        out.push(suffix);
    }

    #[inline]
    fn push_text(&self, text: &[u8], out: &mut Vec<u8>) {
        self.prefix.push(out);
        out.push(b'"');
        push_quoted(out, text);
        out.push(b'"');
    }

    fn push_uuid(&self, bytes: &[u8], out: &mut Vec<u8>) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        self.prefix.push(out);
        out.push(b'"');
        for (i, byte) in bytes.iter().enumerate() {
            if matches!(i, 4 | 6 | 8 | 10) {
                out.push(b'-');
            }
            out.push(DIGITS[usize::from(byte >> 4)]);
            out.push(DIGITS[usize::from(byte & 15)]);
        }
        out.push(b'"');
    }

    fn push_decimal(&self, value: i128, scale: u8, out: &mut Vec<u8>) {
        self.prefix.push(out);
        push_decimal(value, scale, out);
        out.push(b'd');
    }

    fn push_array(&self, array: &ArrayRef, dims: u8, row: usize, number: u64, out: &mut Vec<u8>) -> Result<()> {
        /// The element type of doubles.
        const DOUBLE: u8 = 10;
        /// Marks an array.
        const ARRAY: u8 = 14;
        let mut numbers = Vec::new();
        let extents = lists::value(array, row, dims, self.name, number, &mut numbers, &mut Room::unlimited())?;
        self.prefix.push(out);
        out.extend_from_slice(&[b'=', ARRAY, DOUBLE, dims]);
        extents.iter().for_each(|extent| out.extend_from_slice(&extent.to_le_bytes()));
        numbers.iter().for_each(|value| out.extend_from_slice(&value.to_le_bytes()));
        Ok(())
    }
}
