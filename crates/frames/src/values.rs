//! Copies the values of one column to separate memory, which the commit keeps.

use crate::digits::push_decimal;
use crate::room::Room;
use crate::texts::{dictionary_symbols, push, symbols, views};
use crate::unpack::{unpacked, without_runs};
use crate::{Error, Result, lists};
use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{
    DataType, Date32Type, Date64Type, Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, TimeUnit as ArrowUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use tidalite_types::column_type::Physical;
use tidalite_types::time::days_from_civil;
use tidalite_types::{BatchColumn, Bitmap, Column, ColumnType, TimeUnit, Values, Views};

#[derive(Clone, Debug)]
pub(crate) struct Planned {
    /// Index in the frame.
    pub index: usize,
    /// Name in the frame.
    pub name: String,
    /// Name in the table.
    pub stored_name: String,
    pub column_type: ColumnType,
    pub nan_is_null: bool,
    pub is_designated: bool,
}

/// Converts an array to a column of a batch. `rows_before` is the number of earlier rows of the frame.
pub(crate) fn column(array: &ArrayRef, planned: &Planned, rows_before: u64, room: &mut Room) -> Result<BatchColumn> {
    room.take_column(planned.column_type, array.len())?;
    // Dictionaries are kept if they become symbols.
    let is_symbol = planned.column_type == ColumnType::Symbol;
    let plain_values = if is_symbol { without_runs(array) } else { unpacked(array) };
    let array = &plain_values.map_err(|e| Error::of_column(&planned.name, e))?;
    if planned.is_designated
        && let Some(row) = array.nulls().and_then(|nulls| nulls.iter().position(|valid| !valid))
    {
        let error = Error::of_value(&planned.name, rows_before + row as u64, "the time of a row cannot be NULL");
        return Err(error.with_hint("leave such rows out, as dropna does"));
    }
    let mut dictionary = Views::new();
    let column = match planned.column_type {
        ColumnType::Symbol if matches!(array.data_type(), DataType::Dictionary(..)) => {
            let (column, strings) = dictionary_symbols(array, &planned.name, room)?;
            dictionary = strings;
            column
        }
        ColumnType::Symbol => {
            let (codes, strings) = symbols(array, &planned.name, room)?;
            dictionary = strings;
            with_nulls(Values::U32(codes), array.nulls())
        }
        ColumnType::DoubleArray { dims } => double_arrays(array, planned, dims, rows_before, room)?,
        _ => plain(array, planned, rows_before, room)?,
    };
    if planned.is_designated {
        check_years(&column, planned, rows_before)?;
    }
    Ok(BatchColumn {
        name: planned.stored_name.clone(),
        column_type: planned.column_type,
        column,
        dictionary,
        narrower: None,
    })
}

/// Checks the range of times. The commit checks again; this check precedes the creation of a new table.
fn check_years(column: &Column, planned: &Planned, rows_before: u64) -> Result<()> {
    let (ColumnType::Timestamp(unit), Values::I64(times)) = (planned.column_type, &column.values) else {
        return Ok(());
    };
    let range = years(unit);
    let Some(row) = times.iter().position(|time| !range.contains(time)) else { return Ok(()) };
    let message = format!("timestamp {} is outside the years 0001 to 9999", times[row]);
    Err(Error::of_value(&planned.name, rows_before + row as u64, message))
}

fn years(unit: TimeUnit) -> std::ops::RangeInclusive<i64> {
    let at = |year| days_from_civil(year, 1, 1).saturating_mul(86_400).saturating_mul(unit.per_second());
    at(1)..=at(10_000) - 1
}

fn plain(array: &ArrayRef, planned: &Planned, rows_before: u64, room: &mut Room) -> Result<Column> {
    let values = match array.data_type() {
        DataType::Boolean => Values::Bit(bitmap(array.as_boolean().values())),
        DataType::Int8 => Values::I8(copied::<Int8Type>(array)),
        DataType::Int16 => Values::I16(copied::<Int16Type>(array)),
        DataType::Int32 => Values::I32(copied::<Int32Type>(array)),
        DataType::Int64 => Values::I64(copied::<Int64Type>(array)),
        DataType::UInt8 => {
            Values::I16(array.as_primitive::<UInt8Type>().values().iter().map(|v| (*v).into()).collect())
        }
        DataType::UInt16 => {
            Values::I32(array.as_primitive::<UInt16Type>().values().iter().map(|v| (*v).into()).collect())
        }
        DataType::UInt32 => {
            Values::I64(array.as_primitive::<UInt32Type>().values().iter().map(|v| (*v).into()).collect())
        }
        DataType::UInt64 => Values::I64(checked::<UInt64Type, _>(array, planned, rows_before, |v| v.try_into().ok())?),
        DataType::Float16 => {
            let wide = strict_cast(array, &DataType::Float32, planned)?;
            return Ok(floats(Values::F32(copied::<Float32Type>(&wide)), array.nulls(), planned));
        }
        DataType::Float32 => return Ok(floats(Values::F32(copied::<Float32Type>(array)), array.nulls(), planned)),
        DataType::Float64 => return Ok(floats(Values::F64(copied::<Float64Type>(array)), array.nulls(), planned)),
        DataType::Timestamp(unit, _) => Values::I64(match unit {
            ArrowUnit::Second => {
                checked::<TimestampSecondType, _>(array, planned, rows_before, |v| v.checked_mul(1_000))?
            }
            ArrowUnit::Millisecond => copied::<TimestampMillisecondType>(array),
            ArrowUnit::Microsecond => copied::<TimestampMicrosecondType>(array),
            ArrowUnit::Nanosecond => copied::<TimestampNanosecondType>(array),
        }),
        DataType::Date32 if planned.is_designated => {
            Values::I64(checked::<Date32Type, _>(array, planned, rows_before, |d| i64::from(d).checked_mul(DAY_US))?)
        }
        DataType::Date64 if planned.is_designated => {
            Values::I64(checked::<Date64Type, _>(array, planned, rows_before, |ms| ms.checked_mul(1_000))?)
        }
        DataType::Date32 => Values::I32(copied::<Date32Type>(array)),
        DataType::Date64 => Values::I32(checked::<Date64Type, _>(array, planned, rows_before, |ms| {
            ms.div_euclid(DAY_MS).try_into().ok()
        })?),
        DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) | DataType::Decimal256(..) => {
            return decimals(array, planned, rows_before);
        }
        DataType::FixedSizeBinary(16) => {
            let values = array.as_fixed_size_binary();
            Values::B16((0..values.len()).map(|row| values.value(row).try_into().unwrap_or_default()).collect())
        }
        _ => Values::Views(views(array, &planned.name, room)?),
    };
    Ok(with_nulls(values, array.nulls()))
}

const DAY_MS: i64 = 86_400_000;
pub(crate) const DAY_US: i64 = 1_000 * DAY_MS;

fn copied<T: ArrowPrimitiveType>(array: &ArrayRef) -> Vec<T::Native> {
    array.as_primitive::<T>().values().to_vec()
}

/// Converts values; NULL rows become 0.
fn checked<T: ArrowPrimitiveType, Out: Default>(
    array: &ArrayRef,
    planned: &Planned,
    rows_before: u64,
    convert: impl Fn(T::Native) -> Option<Out>,
) -> Result<Vec<Out>> {
    let values = array.as_primitive::<T>();
    let mut out = Vec::with_capacity(values.len());
    for (row, value) in values.values().iter().enumerate() {
        match convert(*value) {
            Some(converted) => out.push(converted),
            None if values.is_null(row) => out.push(Out::default()),
            None => {
                let message = format!("value {value:?} is out of range for type {}", planned.column_type);
                return Err(Error::of_value(&planned.name, rows_before + row as u64, message));
            }
        }
    }
    Ok(out)
}

fn strict_cast(array: &ArrayRef, to: &DataType, planned: &Planned) -> Result<ArrayRef> {
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(array, to, &strict).map_err(|e| Error::of_column(&planned.name, e))
}

/// Converts NaN to NULL in frames without another way to mark missing values.
fn floats(values: Values, nulls: Option<&NullBuffer>, planned: &Planned) -> Column {
    let mut column = with_nulls(values, nulls);
    if !planned.nan_is_null {
        return column;
    }
    let is_number: Bitmap = match &column.values {
        Values::F64(values) => numbers(values, |v| !v.is_nan()),
        Values::F32(values) => numbers(values, |v| !v.is_nan()),
        _ => return column,
    };
    if is_number.count_zeros() > 0 {
        column.validity = Some(match &column.validity {
            None => is_number,
            Some(valid) => {
                let both = valid.words().iter().zip(is_number.words()).map(|(a, b)| a & b).collect();
                Bitmap::from_words(both, valid.len())
            }
        });
    }
    column
}

fn numbers<T: Copy>(values: &[T], is_number: impl Fn(T) -> bool) -> Bitmap {
    let word = |chunk: &[T]| chunk.iter().enumerate().fold(0, |word, (i, v)| word | u64::from(is_number(*v)) << i);
    Bitmap::from_words(values.chunks(64).map(word).collect(), values.len())
}

fn decimals(array: &ArrayRef, planned: &Planned, rows_before: u64) -> Result<Column> {
    let ColumnType::Decimal { precision, scale } = planned.column_type else {
        return Err(Error::of_column(&planned.name, "it is no decimal"));
    };
    let values: Vec<i128> = match array.data_type() {
        DataType::Decimal256(..) => {
            array.as_primitive::<Decimal256Type>().values().iter().map(|v| v.to_i128().unwrap_or(i128::MAX)).collect()
        }
        _ => copied::<Decimal128Type>(&strict_cast(array, &DataType::Decimal128(precision, scale as i8), planned)?),
    };
    let limit = 10_i128.pow(u32::from(precision));
    let out_of_range = |(row, value): (usize, &i128)| array.is_valid(row) && value.unsigned_abs() >= limit as u128;
    if let Some(row) = values.iter().enumerate().position(out_of_range) {
        let mut value = Vec::new();
        push_decimal(values[row], scale, &mut value);
        let value = match values[row] {
            // A decimal of 256 bits.
            i128::MAX => "of more than 38 digits".into(),
            _ => String::from_utf8_lossy(&value),
        };
        let message = format!("value {value} is out of range for type {}", planned.column_type);
        return Err(Error::of_value(&planned.name, rows_before + row as u64, message));
    }
    let values = values.iter().enumerate().map(|(row, v)| if array.is_valid(row) { *v } else { 0 });
    let values = match planned.column_type.physical() {
        Physical::I32 => Values::I32(values.map(|v| v as i32).collect()),
        Physical::I64 => Values::I64(values.map(|v| v as i64).collect()),
        _ => Values::I128(values.collect()),
    };
    Ok(with_nulls(values, array.nulls()))
}

fn double_arrays(array: &ArrayRef, planned: &Planned, dims: u8, rows_before: u64, room: &mut Room) -> Result<Column> {
    let mut out = Views::with_capacity(array.len());
    let (mut bytes, mut numbers) = (Vec::new(), Vec::new());
    for row in 0..array.len() {
        if array.is_null(row) {
            out.push_empty(1);
            continue;
        }
        let extents = lists::value(array, row, dims, &planned.name, rows_before + row as u64, &mut numbers, room)?;
        bytes.clear();
        extents.iter().for_each(|e| bytes.extend_from_slice(&e.to_le_bytes()));
        numbers.iter().for_each(|n| bytes.extend_from_slice(&n.to_le_bytes()));
        // Counted already, except for the extents.
        push(&mut out, &bytes, &planned.name, &mut Room::unlimited())?;
    }
    Ok(with_nulls(Values::Views(out), array.nulls()))
}

fn with_nulls(values: Values, nulls: Option<&NullBuffer>) -> Column {
    let validity = nulls.filter(|n| n.null_count() > 0).map(|n| bitmap(n.inner()));
    Column { values, validity }
}

fn bitmap(bits: &BooleanBuffer) -> Bitmap {
    Bitmap::from_words(bits.bit_chunks().iter_padded().collect(), bits.len())
}
