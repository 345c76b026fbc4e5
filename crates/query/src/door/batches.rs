//! Rows of a query as rows on the way in: what INSERT and CREATE TABLE AS hand to the writer.

use super::timestamps::{parse_date, parse_timestamp, unit_nanos};
use super::{array_texts, arrow_type};
use crate::decimal::{self, Decimal};
use crate::functions::casts;
use crate::functions::json;
use crate::{Error, Result};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BinaryViewArray, PrimitiveArray, RecordBatch};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::{CastOptions, cast as arrow_cast, cast_with_options};
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    UInt32Type,
};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use std::collections::HashMap;
use std::net::Ipv4Addr;
use tidalite_types::column_type::Physical;
use tidalite_types::views::NULL_ELEMENT_BITS;
use tidalite_types::{Batch, BatchColumn, Bitmap, Column, ColumnType, TimeUnit, Values, Views};

/// A column that rows are written to.
#[derive(Clone, Debug)]
pub struct Target {
    pub name: String,
    pub column_type: ColumnType,
    /// A NULL in the designated timestamp is an error.
    pub is_designated: bool,
}

/// Turns the columns of `rows`, which are as many as `targets`, into their types. `rows_before` counts the rows of
/// the statement that came before these, for error messages.
pub fn to_batch(rows: &RecordBatch, table: &str, targets: &[Target], rows_before: u64) -> Result<Batch> {
    let columns = targets.iter().zip(rows.columns()).map(|(target, array)| to_column(array, target, rows_before));
    Ok(Batch {
        table: table.to_owned(),
        rows: rows.num_rows(),
        columns: columns.collect::<Result<_>>()?,
        timestamps: None,
        lines: Vec::new(),
    })
}

fn to_column(array: &ArrayRef, target: &Target, rows_before: u64) -> Result<BatchColumn> {
    if target.is_designated
        && let Some(row) = (0..array.len()).find(|row| array.is_null(*row))
    {
        return Err(refused_for(target, rows_before + row as u64, "the designated timestamp may not be NULL"));
    }
    let mut dictionary = Views::new();
    let column = match target.column_type {
        ColumnType::Symbol => symbols(array, target, rows_before, &mut dictionary)?,
        ColumnType::Uuid => parsed(array, target, rows_before, 16, uuid_bytes, Values::B16)?,
        ColumnType::Ipv4 => parsed(array, target, rows_before, 4, ipv4_bits, Values::U32)?,
        ColumnType::DoubleArray { dims } => double_arrays(array, target, rows_before, dims)?,
        ColumnType::Json => json(array, target, rows_before)?,
        ColumnType::Jsonb => jsonb(array, target, rows_before)?,
        ColumnType::Timestamp(unit) if is_text(array) => timestamps(array, target, rows_before, unit)?,
        ColumnType::Date if is_text(array) => dates(array, target, rows_before)?,
        ColumnType::Date if array.data_type().is_integer() => days(array, target, rows_before)?,
        ColumnType::Decimal { precision, scale } => decimals(array, target, rows_before, (precision, scale))?,
        ColumnType::Binary if is_text(array) => bytes(array, target, rows_before)?,
        _ => plain(array, target, rows_before)?,
    };
    Ok(BatchColumn { name: target.name.clone(), column_type: target.column_type, column, dictionary, narrower: None })
}

/// Returns the error for a value of a row and a column, with the code of the error of the value alone.
fn refused(target: &Target, row: u64, why: &Error) -> Error {
    let mut error = Error::invalid(format!("{why} (column \"{}\", row {})", target.name, row + 1));
    error.code = why.code;
    error
}

fn refused_for(target: &Target, row: u64, why: &str) -> Error {
    refused(target, row, &Error::invalid(why))
}

/// Casts strictly; an error names the first row that has no value of the type.
fn cast(array: &ArrayRef, to: &DataType, target: &Target, rows_before: u64) -> Result<ArrayRef> {
    if array.data_type() == to {
        return Ok(array.clone());
    }
    check_kinds(array, target, rows_before)?;
    if array.data_type().is_decimal() && to.is_numeric() {
        return Ok(casts::cast(array, to, false)?);
    }
    if let Some(floored) = rounded_down(array, to) {
        return floored;
    }
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    if let Ok(array) = cast_with_options(array, to, &strict) {
        return Ok(array);
    }
    let lenient = CastOptions { safe: true, ..CastOptions::default() };
    if let Ok(out) = cast_with_options(array, to, &lenient)
        && let Some(row) = (0..array.len()).find(|row| array.is_valid(*row) && out.is_null(*row))
    {
        return Err(refused_for(target, rows_before + row as u64, &unfit(array, row, target)));
    }
    Err(mismatch(array, target))
}

/// Converts times to a coarser unit, rounded down; `None` for a finer unit.
///
/// Arrow rounds towards zero.
fn rounded_down(array: &ArrayRef, to: &DataType) -> Option<Result<ArrayRef>> {
    let (own, target) = (unit_nanos(array.data_type())?, unit_nanos(to)?);
    if own >= target {
        return None;
    }
    let counts = || {
        let ticks = arrow_cast(array, &DataType::Int64)?;
        let floored: PrimitiveArray<Int64Type> =
            ticks.as_primitive::<Int64Type>().unary(|v| v.div_euclid(target / own));
        arrow_cast(&floored, to)
    };
    Some(counts().map_err(|error| Error::invalid(error.to_string())))
}

fn mismatch(array: &ArrayRef, target: &Target) -> Error {
    let from = super::type_of(array.data_type()).map_or_else(|| array.data_type().to_string(), |t| t.to_string());
    Error::invalid(format!(
        "column \"{}\" is of type {} but expression is of type {from}",
        target.name, target.column_type
    ))
}

/// Casts that Arrow makes but an assignment does not: a number is no time and no truth, a time no number, and digits
/// after the point do not vanish.
fn check_kinds(array: &ArrayRef, target: &Target, rows_before: u64) -> Result<()> {
    let from = array.data_type();
    let is_time = |t: &DataType| matches!(t, DataType::Timestamp(..) | DataType::Date32 | DataType::Date64);
    let is_fraction = |t: &DataType| t.is_floating() || t.is_decimal();
    let to = arrow_type(target.column_type);
    let refused_kinds = (is_fraction(from) && is_time(&to))
        || (is_time(from) && (to.is_numeric() || to == DataType::Boolean))
        || (from.is_numeric() && to == DataType::Boolean)
        || (*from == DataType::Boolean && is_time(&to));
    if refused_kinds {
        return Err(mismatch(array, target));
    }
    let is_lost: Box<dyn Fn(usize) -> bool> = if from.is_floating() && to.is_integer() {
        let values = doubles(array)?;
        Box::new(move |row| values[row].fract() != 0.0)
    } else if from.is_decimal() && to.is_integer() {
        let numbers = casts::numbers(array)?;
        Box::new(move |row| !numbers(row).and_then(|number| number.rescaled(0)).is_some_and(|at| at.is_exact))
    } else if *from == DataType::Float64 && to == DataType::Float32 {
        let values = doubles(array)?;
        Box::new(move |row| casts::single(values[row]).is_none())
    } else {
        return Ok(());
    };
    let Some(row) = (0..array.len()).find(|row| array.is_valid(*row) && is_lost(*row)) else { return Ok(()) };
    // A decimal is lost only for the digits after its point.
    let has_fraction = from.is_decimal() || to.is_integer() && doubles(&array.slice(row, 1))?[0].is_finite();
    let why = match has_fraction {
        true => format!("invalid input for type {}: {}", target.column_type, shown(array, row)),
        false => out_of_range(array, row, target),
    };
    Err(refused_for(target, rows_before + row as u64, &why))
}

/// Returns why a value cannot be cast.
fn unfit(array: &ArrayRef, row: usize, target: &Target) -> String {
    let is_number = |t: &DataType| t.is_integer() || t.is_floating();
    let is_integer = || is_text(array) && crate::error::is_integer(shown(array, row).trim_matches('"'));
    match is_number(&arrow_type(target.column_type)) && (array.data_type().is_numeric() || is_integer()) {
        true => out_of_range(array, row, target),
        false => format!("invalid input for type {}: {}", target.column_type, shown(array, row)),
    }
}

fn out_of_range(array: &ArrayRef, row: usize, target: &Target) -> String {
    format!("value {} is out of range for type {}", shown(array, row), target.column_type)
}

fn doubles(array: &ArrayRef) -> Result<Vec<f64>> {
    let wide = cast_with_options(array, &DataType::Float64, &CastOptions::default());
    let wide = wide.map_err(|e| Error::internal(e.to_string()))?;
    Ok(wide.as_primitive::<Float64Type>().values().to_vec())
}

fn shown(array: &ArrayRef, row: usize) -> String {
    let text = ArrayFormatter::try_new(array.as_ref(), &FormatOptions::default()).map(|f| f.value(row).to_string());
    let text = text.unwrap_or_default();
    let short: String = text.chars().take(100).collect();
    format!("\"{short}\"")
}

fn plain(array: &ArrayRef, target: &Target, rows_before: u64) -> Result<Column> {
    let array = cast(array, &arrow_type(target.column_type), target, rows_before)?;
    let values = match target.column_type {
        ColumnType::Boolean => Values::Bit(bitmap(array.as_boolean().values())),
        ColumnType::Byte => Values::I8(values::<Int8Type>(&array)),
        ColumnType::Short => Values::I16(values::<Int16Type>(&array)),
        ColumnType::Int => Values::I32(values::<Int32Type>(&array)),
        ColumnType::Long => Values::I64(values::<Int64Type>(&array)),
        ColumnType::Float => Values::F32(values::<Float32Type>(&array)),
        ColumnType::Double => Values::F64(values::<Float64Type>(&array)),
        ColumnType::Date => Values::I32(values::<Date32Type>(&array)),
        ColumnType::Timestamp(_) => Values::I64(integers(&array, target)?),
        ColumnType::Varchar => {
            Values::Views(views(array.as_string_view().iter().map(|v| v.map(str::as_bytes)), target)?)
        }
        ColumnType::Binary => Values::Views(views(array.as_binary_view().iter(), target)?),
        other => return Err(Error::internal(format!("{other} values are not plain"))),
    };
    Ok(with_nulls(values, array.nulls()))
}

fn is_text(array: &ArrayRef) -> bool {
    matches!(array.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

fn timestamps(array: &ArrayRef, target: &Target, rows_before: u64, unit: TimeUnit) -> Result<Column> {
    let text = cast(array, &DataType::Utf8View, target, rows_before)?;
    let mut values = Vec::with_capacity(text.len());
    for (row, value) in text.as_string_view().iter().enumerate() {
        let parsed = value.map(|value| parse_timestamp(value, unit).ok_or(value)).transpose();
        let parsed = parsed.map_err(|value| {
            refused(target, rows_before + row as u64, &Error::invalid_time(&target.column_type.to_string(), value))
        })?;
        values.push(parsed.map_or(0, |(value, _)| value));
    }
    Ok(with_nulls(Values::I64(values), text.nulls()))
}

/// An integer for a DATE counts milliseconds, QuestDB's unit.
fn days(array: &ArrayRef, target: &Target, rows_before: u64) -> Result<Column> {
    let array = cast(array, &DataType::Int64, target, rows_before)?;
    let days = array.as_primitive::<Int64Type>().values().iter().map(|ms| ms.div_euclid(86_400_000) as i32);
    Ok(with_nulls(Values::I32(days.collect()), array.nulls()))
}

fn values<T: ArrowPrimitiveType>(array: &ArrayRef) -> Vec<T::Native> {
    array.as_primitive::<T>().values().to_vec()
}

fn dates(array: &ArrayRef, target: &Target, rows_before: u64) -> Result<Column> {
    let text = cast(array, &DataType::Utf8View, target, rows_before)?;
    let mut values = Vec::with_capacity(text.len());
    for (row, value) in text.as_string_view().iter().enumerate() {
        let day = value.map(|value| parse_date(value).ok_or(value)).transpose();
        let day =
            day.map_err(|value| refused(target, rows_before + row as u64, &Error::invalid_time("DATE", value)))?;
        values.push(day.unwrap_or(0));
    }
    Ok(with_nulls(Values::I32(values), text.nulls()))
}

/// Timestamps of any unit as the integers they are.
fn integers(array: &ArrayRef, target: &Target) -> Result<Vec<i64>> {
    Ok(values::<Int64Type>(&cast(array, &DataType::Int64, target, 0)?))
}

/// Converts numbers and their texts to decimals without losing a digit.
fn decimals(array: &ArrayRef, target: &Target, rows_before: u64, (precision, scale): (u8, u8)) -> Result<Column> {
    let texts = if is_text(array) { Some(cast(array, &DataType::Utf8View, target, rows_before)?) } else { None };
    if texts.is_none() && !array.data_type().is_numeric() && *array.data_type() != DataType::Null {
        return Err(mismatch(array, target));
    }
    let numbers = if texts.is_none() { Some(casts::numbers(array)?) } else { None };
    let number = |row: usize| match (&texts, &numbers) {
        (Some(texts), _) => Decimal::parse(texts.as_string_view().value(row)),
        (None, numbers) => numbers.as_ref().and_then(|numbers| numbers(row)),
    };
    let digits = |row: usize| -> Result<i128> {
        let refused = |why: &str| Err(refused_for(target, rows_before + row as u64, why));
        let Some(number) = number(row) else {
            return refused(&format!("invalid input for type {}: {}", target.column_type, shown(array, row)));
        };
        match number.rescaled(scale.into()) {
            Some(at) if at.is_exact && decimal::fits(at.floor, precision) => {
                at.floor.to_i128().ok_or_else(|| Error::internal("a decimal of more than 38 digits"))
            }
            Some(at) if !at.is_exact && decimal::fits(at.nearest, precision) => {
                let why = format!("more digits behind the point than {} keeps: {}", target.column_type, number.text());
                refused(&format!("numeric field overflow: {why}"))
            }
            _ => refused(&format!("numeric field overflow: {} does not fit {}", number.text(), target.column_type)),
        }
    };
    let values = (0..array.len()).map(|row| if array.is_valid(row) { digits(row) } else { Ok(0) });
    let values = values.collect::<Result<Vec<i128>>>()?;
    let values = match target.column_type.physical() {
        Physical::I32 => Values::I32(values.into_iter().map(|v| v as i32).collect()),
        Physical::I64 => Values::I64(values.into_iter().map(|v| v as i64).collect()),
        _ => Values::I128(values),
    };
    Ok(with_nulls(values, array.logical_nulls().as_ref()))
}

/// Converts texts to bytes.
///
/// Hexadecimal digits after `\x`, as PostgreSQL writes bytes; other texts are taken unchanged.
fn bytes(array: &ArrayRef, target: &Target, rows_before: u64) -> Result<Column> {
    let texts = cast(array, &DataType::Utf8View, target, rows_before)?;
    let one = |(row, text): (usize, Option<&str>)| {
        text.map(|text| {
            bytes_of_text(text).ok_or_else(|| {
                let why = format!("invalid input for type {}: {}", target.column_type, shown(array, row));
                refused_for(target, rows_before + row as u64, &why)
            })
        })
        .transpose()
    };
    let bytes = texts.as_string_view().iter().enumerate().map(one).collect::<Result<Vec<_>>>()?;
    let bytes = bytes.into_iter().collect::<BinaryViewArray>();
    Ok(with_nulls(Values::Views(views(bytes.iter(), target)?), bytes.nulls()))
}

/// Returns the bytes of a text; `None` if `\x` is not followed by pairs of hexadecimal digits.
pub(crate) fn bytes_of_text(text: &str) -> Option<Vec<u8>> {
    let Some(digits) = text.strip_prefix("\\x") else { return Some(text.as_bytes().to_vec()) };
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok().filter(|_| pair.len() == 2);
    let is_hexadecimal = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    digits.as_bytes().chunks(2).map(byte).collect::<Option<_>>().filter(|_| is_hexadecimal)
}

fn symbols(array: &ArrayRef, target: &Target, rows_before: u64, dictionary: &mut Views) -> Result<Column> {
    let array = cast(array, &DataType::Utf8View, target, rows_before)?;
    let strings = array.as_string_view();
    let mut known: HashMap<&str, u32> = HashMap::new();
    let mut ids = Vec::with_capacity(strings.len());
    for value in strings {
        let Some(value) = value else {
            ids.push(0);
            continue;
        };
        let next = known.len() as u32;
        let id = *known.entry(value).or_insert(next);
        if id == next {
            push(dictionary, value.as_bytes(), target)?;
        }
        ids.push(id);
    }
    Ok(with_nulls(Values::U32(ids), array.nulls()))
}

/// Values that text stands for, or that come in their own form already.
fn parsed<T: Default + FromBytes>(
    array: &ArrayRef,
    target: &Target,
    rows_before: u64,
    width: i32,
    parse: fn(&str) -> Option<T>,
    wrap: fn(Vec<T>) -> Values,
) -> Result<Column> {
    let own = match array.data_type() {
        DataType::FixedSizeBinary(n) if *n == width && target.column_type == ColumnType::Uuid => Some(array.clone()),
        t if t.is_integer() && target.column_type == ColumnType::Ipv4 => {
            Some(cast(array, &DataType::UInt32, target, rows_before)?)
        }
        _ => None,
    };
    if let Some(own) = own {
        let values = (0..own.len()).map(|row| T::at(&own, row)).collect();
        return Ok(with_nulls(wrap(values), own.nulls()));
    }
    let text = cast(array, &DataType::Utf8View, target, rows_before)?;
    let strings = text.as_string_view();
    let mut values = Vec::with_capacity(strings.len());
    for (row, value) in strings.iter().enumerate() {
        values.push(match value {
            None => T::default(),
            Some(value) => parse(value).ok_or_else(|| {
                let why = Error::invalid_text(&target.column_type.to_string(), value);
                refused(target, rows_before + row as u64, &why)
            })?,
        });
    }
    Ok(with_nulls(wrap(values), text.nulls()))
}

trait FromBytes {
    fn at(array: &ArrayRef, row: usize) -> Self;
}

impl FromBytes for [u8; 16] {
    fn at(array: &ArrayRef, row: usize) -> Self {
        array.as_fixed_size_binary().value(row).try_into().unwrap_or_default()
    }
}

impl FromBytes for u32 {
    fn at(array: &ArrayRef, row: usize) -> Self {
        array.as_primitive::<UInt32Type>().value(row)
    }
}

pub(crate) fn ipv4_bits(text: &str) -> Option<u32> {
    text.trim().parse::<Ipv4Addr>().ok().map(u32::from)
}

/// Returns the bytes of a UUID; white space around the text is ignored.
pub(crate) fn uuid_bytes(text: &str) -> Option<[u8; 16]> {
    tidalite_types::uuid::parse(text.trim())
}

fn json(array: &ArrayRef, target: &Target, rows_before: u64) -> Result<Column> {
    let text = cast(array, &DataType::Utf8View, target, rows_before)?;
    let strings = text.as_string_view();
    for (row, value) in strings.iter().enumerate() {
        value.map_or(Ok(()), json::check).map_err(|error| refused(target, rows_before + row as u64, &error))?;
    }
    Ok(with_nulls(Values::Views(views(strings.iter().map(|v| v.map(str::as_bytes)), target)?), text.nulls()))
}

/// Texts of JSON documents as JSONB values.
fn jsonb(array: &ArrayRef, target: &Target, rows_before: u64) -> Result<Column> {
    let text = cast(array, &DataType::Utf8View, target, rows_before)?;
    let normalized = text.as_string_view().iter().enumerate().map(|(row, value)| {
        let refused = |error: Error| refused(target, rows_before + row as u64, &error);
        value.map(|value| json::normalize(value).map_err(refused)).transpose()
    });
    let normalized = normalized.collect::<Result<Vec<_>>>()?;
    let values = normalized.iter().map(|v| v.as_deref().map(str::as_bytes));
    Ok(with_nulls(Values::Views(views(values, target)?), text.nulls()))
}

/// Lists of lists as extents and doubles; every list of a level must be as long as its neighbours.
fn double_arrays(array: &ArrayRef, target: &Target, rows_before: u64, dims: u8) -> Result<Column> {
    let array = if is_text(array) {
        let texts = cast(array, &DataType::Utf8View, target, rows_before)?;
        array_texts::of_texts(texts.as_string_view().iter(), usize::from(dims))
            .map_err(|malformed| refused_for(target, rows_before + malformed.row as u64, &malformed.message))?
    } else {
        cast(array, &arrow_type(target.column_type), target, rows_before)?
    };
    let mut out = Views::with_capacity(array.len());
    let mut value = Vec::new();
    for row in 0..array.len() {
        if array.is_null(row) {
            out.push_empty(1);
            continue;
        }
        let mut extents = vec![None; usize::from(dims)];
        let mut numbers = Vec::new();
        let list = array.as_list::<i32>().value(row);
        flatten(&list, 0, &mut extents, &mut numbers)
            .map_err(|why| refused_for(target, rows_before + row as u64, why))?;
        value.clear();
        extents.iter().for_each(|e| value.extend(e.unwrap_or(0_u32).to_le_bytes()));
        numbers.iter().for_each(|n: &f64| value.extend(n.to_le_bytes()));
        push(&mut out, &value, target)?;
    }
    Ok(with_nulls(Values::Views(out), array.nulls()))
}

fn flatten(
    list: &ArrayRef,
    level: usize,
    extents: &mut [Option<u32>],
    numbers: &mut Vec<f64>,
) -> Result<(), &'static str> {
    let len = u32::try_from(list.len()).map_err(|_| "an array is too long")?;
    if *extents[level].get_or_insert(len) != len {
        return Err("sub-arrays must have matching dimensions");
    }
    if level + 1 == extents.len() {
        let null = f64::from_bits(NULL_ELEMENT_BITS);
        numbers.extend(list.as_primitive::<Float64Type>().iter().map(|number| number.unwrap_or(null)));
        return Ok(());
    }
    if list.null_count() > 0 {
        return Err("a sub-array of an array may not be NULL");
    }
    (0..list.len()).try_for_each(|i| flatten(&list.as_list::<i32>().value(i), level + 1, extents, numbers))
}

fn views<'a>(values: impl Iterator<Item = Option<&'a [u8]>>, target: &Target) -> Result<Views> {
    let mut out = Views::with_capacity(values.size_hint().0);
    for value in values {
        match value {
            Some(value) => push(&mut out, value, target)?,
            None => out.push_empty(1),
        }
    }
    Ok(out)
}

fn push(out: &mut Views, value: &[u8], target: &Target) -> Result<()> {
    if !out.has_room(value.len()) {
        return Err(Error::invalid(format!("more than 2 GiB of text for column \"{}\" in one commit", target.name)));
    }
    out.push(value);
    Ok(())
}

fn with_nulls(values: Values, nulls: Option<&NullBuffer>) -> Column {
    let validity = nulls.filter(|n| n.null_count() > 0).map(|n| bitmap(n.inner()));
    Column { values, validity }
}

fn bitmap(bits: &datafusion::arrow::buffer::BooleanBuffer) -> Bitmap {
    Bitmap::from_words(bits.bit_chunks().iter_padded().collect(), bits.len())
}

#[cfg(test)]
mod tests;
