//! Casts from and to times: numbers count the unit of the time type, and a finer time is rounded down.
//!
//! The stock casts round towards zero, which is up before 1970, and count seconds for TIMESTAMP_NS. The analyzer rule
//! [`crate::plan::time_casts`] puts [`CAST`] and [`TRY_CAST`] in their place.

use super::scalar::{Call, Gives, Kind, PLAIN, Scalar};
use super::times::{of_ticks, ticks as ticks_of};
use crate::door::timestamps::{arrow_unit_nanos, parse_date, parse_timestamp, unit_nanos};
use crate::{Error, door};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Date32Array, Int64Array, IntervalMonthDayNanoArray, StringViewArray,
};
use datafusion::arrow::compute::{CastOptions, cast, cast_with_options};
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType,
    DurationSecondType, Field, Float64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
    Time64NanosecondType, TimeUnit as ArrowUnit,
};
use datafusion::common::{DataFusionError, Result};
use std::sync::Arc;
use tidalite_types::Interval;
use tidalite_types::interval::{DAY_NANOS, IntervalError};
use tidalite_types::text::hex_digits;

/// `__cast(value, NULL of the target type)`.
pub(crate) const CAST: &str = "__cast";
/// As [`CAST`], with NULL for a value that has no counterpart.
pub(crate) const TRY_CAST: &str = "__try_cast";
/// The same as [`CAST`] between times, rounded down, and clamped to the range of the target.
pub(crate) const ROUNDED_DOWN: &str = "__time_rounded_down";
/// The same as [`ROUNDED_DOWN`], rounded up.
pub(crate) const ROUNDED_UP: &str = "__time_rounded_up";
/// The function that converts an instant to nanoseconds since 1970, to compare times of all units.
pub(crate) const INSTANT: &str = "__instant_nanos";
/// The function that converts an interval to nanoseconds, by which intervals are compared.
pub(crate) const LENGTH: &str = "__interval_nanos";

/// The function that converts bytes to hexadecimal digits in the same order, to order windows.
pub(crate) const BYTES_KEY: &str = "__bytes_key";

/// The type that holds nanoseconds of every time and interval.
pub(crate) const NANOS_TYPE: DataType = DataType::Decimal128(38, 0);

const OF_TWO: Scalar =
    Scalar { takes: "a value and a type", kinds: &[Kind::Any, Kind::Any], gives: Gives::Like(1), ..PLAIN };

pub(super) const FUNCTIONS: &[Scalar] = &[
    Scalar { name: CAST, call: |call| converted(call, false), ..OF_TWO },
    Scalar { name: TRY_CAST, call: |call| converted(call, true), ..OF_TWO },
    Scalar { name: ROUNDED_DOWN, call: |call| rounded(call, false), ..OF_TWO },
    Scalar { name: ROUNDED_UP, call: |call| rounded(call, true), ..OF_TWO },
    Scalar { name: INSTANT, takes: "a time", kinds: &[Kind::Any], gives: Gives::Nanoseconds, call: instants, ..PLAIN },
    Scalar { name: BYTES_KEY, takes: "bytes", kinds: &[Kind::Any], gives: Gives::Text, call: bytes_keys, ..PLAIN },
    Scalar {
        name: LENGTH,
        takes: "an interval",
        kinds: &[Kind::Any],
        gives: Gives::Nanoseconds,
        call: |call| {
            let lengths = of_interval(&call.columns[0])?;
            let values = lengths.iter().map(|v| v.map(|v| interval(v).total_nanos()));
            decimals(values.collect())
        },
        ..PLAIN
    },
];

/// Returns true if [`CAST`] performs a cast between two types; `None` if the types have no cast.
pub(crate) fn is_ours(from: &DataType, to: &DataType) -> Option<bool> {
    let is_time = |t: &DataType| matches!(t, DataType::Timestamp(..) | DataType::Date32 | DataType::Date64);
    let is_length = |t: &DataType| matches!(t, DataType::Interval(_) | DataType::Duration(_));
    let is_text = |t: &DataType| matches!(t, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    let is_clock = |t: &DataType| matches!(t, DataType::Time32(_) | DataType::Time64(_));
    let is_number = |t: &DataType| t.is_numeric() || *t == DataType::Boolean;
    let is_other = |t: &DataType| is_number(t) || matches!(t, DataType::FixedSizeBinary(_)) || is_binary(t);
    match (from, to) {
        (DataType::Null, _) | (_, DataType::Null) => Some(false),
        (DataType::Boolean | DataType::FixedSizeBinary(_), to) if is_time(to) => None,
        (from, DataType::Boolean | DataType::FixedSizeBinary(_)) if is_time(from) => None,
        (from, to) if is_time(from) && is_binary(to) || is_binary(from) && is_time(to) => None,
        // A difference of times has a count, an interval has no count.
        (DataType::Interval(_), to) if is_other(to) || is_time(to) => None,
        (from, DataType::Interval(_)) if is_other(from) || is_time(from) => None,
        (from, to) if is_clock(from) && (is_other(to) || is_time(to)) => None,
        (from, to) if is_clock(to) && is_other(from) => None,
        (DataType::Date32 | DataType::Date64, to) if is_clock(to) => None,
        (from, to) if is_time(from) && is_time(to) => Some(from != to),
        // Both types have the same counts.
        (DataType::Int64, DataType::Timestamp(..)) | (DataType::Timestamp(..), DataType::Int64) => Some(false),
        (from, to) if is_number(from) && is_time(to) || is_time(from) && is_number(to) => Some(true),
        (from, DataType::Timestamp(_, None) | DataType::Date32) if is_text(from) => Some(true),
        (from, to) if is_length(from) && is_text(to) || is_text(from) && is_length(to) => Some(true),
        (DataType::Duration(_), DataType::Interval(_)) => Some(true),
        _ => Some(false),
    }
}

fn is_binary(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
}

/// Casts a time to the type of the second column.
pub(super) fn cast_of(columns: &[ArrayRef; 2]) -> Result<ArrayRef> {
    times_of_times(&columns[0], columns[1].data_type(), false)
}

/// The reason why the target type has no counterpart for a value.
#[derive(Clone, Debug)]
enum Refused {
    OutOfRange,
    Syntax(String),
}

type Converted<T> = std::result::Result<T, Refused>;

fn converted(call: &Call, is_tried: bool) -> Result<ArrayRef> {
    let (from, to) = (&call.columns[0], call.data_type);
    if *from.data_type() == DataType::Null {
        return Ok(cast(from, to)?);
    }
    let text = |array: &ArrayRef| cast(array, &DataType::Utf8View);
    match (from.data_type(), to) {
        (DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View, DataType::Interval(_) | DataType::Duration(_)) => {
            intervals_of_texts(text(from)?.as_string_view(), to, is_tried)
        }
        (DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View, _) => {
            times_of_texts(text(from)?.as_string_view(), to, is_tried)
        }
        (DataType::Interval(_) | DataType::Duration(_), DataType::Interval(_)) => {
            Ok(cast(&(Arc::new(of_interval(from)?) as ArrayRef), to)?)
        }
        (DataType::Interval(_) | DataType::Duration(_), _) => {
            let texts =
                of_interval(from)?.iter().map(|v| v.map(|v| interval(v).to_string())).collect::<StringViewArray>();
            Ok(cast(&(Arc::new(texts) as ArrayRef), to)?)
        }
        (DataType::Timestamp(..) | DataType::Date32 | DataType::Date64, to) if to.is_numeric() => {
            numbers_of_times(from, to, is_tried)
        }
        (DataType::Timestamp(..) | DataType::Date32 | DataType::Date64, _) => times_of_times(from, to, is_tried),
        _ => times_of_numbers(from, to, is_tried),
    }
}

fn refused(why: &Refused, to: &DataType) -> DataFusionError {
    let name = door::type_name(&Field::new("", to.clone(), true));
    let error = match why {
        Refused::OutOfRange => Error::invalid(format!("{} out of range", name.to_lowercase())),
        Refused::Syntax(text) => Error::invalid_time(&name, text),
    };
    error.into()
}

/// Returns the value; a value without a counterpart is NULL or an error.
fn checked<T>(value: Converted<T>, to: &DataType, is_tried: bool) -> Result<Option<T>> {
    match value {
        Ok(value) => Ok(Some(value)),
        Err(_) if is_tried => Ok(None),
        Err(why) => Err(refused(&why, to)),
    }
}

/// Converts counts in the target's unit to values of the target type.
fn finished(values: Vec<Option<i64>>, to: &DataType) -> Result<ArrayRef> {
    if *to == DataType::Date32 {
        let days = values.into_iter().map(|v| v.and_then(|v| i32::try_from(v).ok()));
        return Ok(Arc::new(days.collect::<Date32Array>()));
    }
    of_ticks(Int64Array::from(values), to)
}

/// Returns the count if it is in the range of the target.
fn in_range(value: i128, to: &DataType) -> Converted<i64> {
    let (least, most) = range_of(to);
    let value = i64::try_from(value).map_err(|_| Refused::OutOfRange)?;
    (least..=most).contains(&value).then_some(value).ok_or(Refused::OutOfRange)
}

/// Returns the limits of a time type as counts.
fn range_of(to: &DataType) -> (i64, i64) {
    if *to == DataType::Date32 { (i64::from(i32::MIN), i64::from(i32::MAX)) } else { (i64::MIN, i64::MAX) }
}

fn unit_of(data_type: &DataType) -> Result<i64> {
    unit_nanos(data_type).ok_or_else(|| Error::internal(format!("{data_type} is not a time")).into())
}

fn times_of_times(from: &ArrayRef, to: &DataType, is_tried: bool) -> Result<ArrayRef> {
    let (own, target) = (unit_of(from.data_type())?, unit_of(to)?);
    let ticks = ticks_of(from)?;
    let mut out = Vec::with_capacity(ticks.len());
    for value in &ticks {
        let Some(value) = value else {
            out.push(None);
            continue;
        };
        let moved = match own.cmp(&target) {
            std::cmp::Ordering::Less => i128::from(value.div_euclid(target / own)),
            _ => i128::from(value) * i128::from(own / target),
        };
        out.push(checked(in_range(moved, to), to, is_tried)?);
    }
    finished(out, to)
}

fn rounded(call: &Call, is_up: bool) -> Result<ArrayRef> {
    let (from, to) = (&call.columns[0], call.data_type);
    let (own, target) = (i128::from(unit_of(from.data_type())?), i128::from(unit_of(to)?));
    let (least, most) = range_of(to);
    let moved = |value: i64| {
        let nanos = i128::from(value) * own;
        let whole = nanos.div_euclid(target) + i128::from(is_up && nanos.rem_euclid(target) > 0);
        i64::try_from(whole).unwrap_or(if whole < 0 { least } else { most }).clamp(least, most)
    };
    finished(ticks_of(from)?.iter().map(|value| value.map(moved)).collect(), to)
}

fn times_of_numbers(from: &ArrayRef, to: &DataType, is_tried: bool) -> Result<ArrayRef> {
    let count = |value: Converted<i128>| checked(value.and_then(|value| in_range(value, to)), to, is_tried);
    let values: Vec<Option<i64>> = match from.data_type() {
        t if t.is_floating() => {
            let wide = cast(from, &DataType::Float64)?;
            let whole = |value: f64| {
                let value = value.floor();
                // The bound is 2^126: far past every count, and an i128.
                if value.abs() < 8.5e37 { Ok(value as i128) } else { Err(Refused::OutOfRange) }
            };
            let values = wide.as_primitive::<Float64Type>().iter();
            values.map(|v| v.map_or(Ok(None), |v| count(whole(v)))).collect::<Result<_>>()?
        }
        DataType::Decimal128(_, scale) => {
            let factor = 10_i128.checked_pow(u32::from(scale.unsigned_abs())).unwrap_or(i128::MAX);
            let whole = |value: i128| match *scale >= 0 {
                true => Ok(value.div_euclid(factor)),
                false => value.checked_mul(factor).ok_or(Refused::OutOfRange),
            };
            let values = from.as_primitive::<Decimal128Type>().iter();
            values.map(|v| v.map_or(Ok(None), |v| count(whole(v)))).collect::<Result<_>>()?
        }
        _ => {
            let wide = cast(from, &DataType::Decimal128(38, 0))?;
            let values = wide.as_primitive::<Decimal128Type>().iter();
            values.map(|v| v.map_or(Ok(None), |v| count(Ok(v)))).collect::<Result<_>>()?
        }
    };
    finished(values, to)
}

fn numbers_of_times(from: &ArrayRef, to: &DataType, is_tried: bool) -> Result<ArrayRef> {
    let counts: ArrayRef = Arc::new(ticks_of(from)?);
    let options = CastOptions { safe: is_tried, ..CastOptions::default() };
    cast_with_options(&counts, to, &options).map_err(|_| refused(&Refused::OutOfRange, to))
}

/// Returns days or ticks of texts; the time of day is dropped if the target is a day.
fn times_of_texts(texts: &StringViewArray, to: &DataType, is_tried: bool) -> Result<ArrayRef> {
    let unit = if *to == DataType::Date32 { None } else { Some(super::times::unit(to)?) };
    let mut out = Vec::with_capacity(texts.len());
    for text in texts {
        let Some(text) = text else {
            out.push(None);
            continue;
        };
        let value = match unit {
            Some(unit) => parse_timestamp(text, unit).map(|(ticks, _)| ticks),
            None => parse_date(text).map(i64::from),
        };
        out.push(checked(value.ok_or_else(|| Refused::Syntax(text.to_owned())), to, is_tried)?);
    }
    finished(out, to)
}

fn intervals_of_texts(texts: &StringViewArray, to: &DataType, is_tried: bool) -> Result<ArrayRef> {
    let parsed = |text: Option<&str>| -> Result<Option<IntervalMonthDayNano>> {
        let Some(text) = text else { return Ok(None) };
        let value = Interval::parse(text, None).map_err(|why| match why {
            IntervalError::Syntax => Refused::Syntax(text.to_owned()),
            IntervalError::Range => Refused::OutOfRange,
        });
        let interval = DataType::Interval(IntervalUnit::MonthDayNano);
        Ok(checked(value, &interval, is_tried)?.map(arrow_interval))
    };
    let all = texts.iter().map(parsed).collect::<Result<IntervalMonthDayNanoArray>>()?;
    Ok(cast(&(Arc::new(all) as ArrayRef), to)?)
}

fn bytes_keys(call: &Call) -> Result<ArrayRef> {
    let bytes = cast(&call.columns[0], &DataType::BinaryView)?;
    let texts = bytes.as_binary_view().iter().map(|bytes| bytes.map(hex_digits));
    Ok(Arc::new(texts.collect::<StringViewArray>()))
}

/// Returns nanoseconds since 1970; for a time of day, nanoseconds since midnight.
fn instants(call: &Call) -> Result<ArrayRef> {
    if matches!(call.columns[0].data_type(), DataType::Time32(_) | DataType::Time64(_)) {
        let clocks = cast(&call.columns[0], &DataType::Time64(ArrowUnit::Nanosecond))?;
        let clocks = clocks.as_primitive::<Time64NanosecondType>();
        return decimals(clocks.iter().map(|v| v.map(i128::from)).collect());
    }
    let unit = i128::from(unit_of(call.columns[0].data_type())?);
    decimals(ticks_of(&call.columns[0])?.iter().map(|v| v.map(|v| i128::from(v) * unit)).collect())
}

fn decimals(values: Vec<Option<i128>>) -> Result<ArrayRef> {
    let values = datafusion::arrow::array::Decimal128Array::from(values);
    Ok(Arc::new(values.with_precision_and_scale(38, 0)?))
}

pub(crate) fn interval(value: IntervalMonthDayNano) -> Interval {
    Interval { months: value.months, days: value.days, nanos: value.nanoseconds }
}

pub(crate) fn arrow_interval(value: Interval) -> IntervalMonthDayNano {
    IntervalMonthDayNano::new(value.months, value.days, value.nanos)
}

/// Converts intervals and differences of times to intervals.
///
/// A difference has whole days beside hours, as in PostgreSQL.
pub(crate) fn of_interval(array: &ArrayRef) -> Result<IntervalMonthDayNanoArray> {
    let counts: Int64Array = match array.data_type() {
        DataType::Duration(ArrowUnit::Second) => array.as_primitive::<DurationSecondType>().reinterpret_cast(),
        DataType::Duration(ArrowUnit::Millisecond) => {
            array.as_primitive::<DurationMillisecondType>().reinterpret_cast()
        }
        DataType::Duration(ArrowUnit::Microsecond) => {
            array.as_primitive::<DurationMicrosecondType>().reinterpret_cast()
        }
        DataType::Duration(ArrowUnit::Nanosecond) => array.as_primitive::<DurationNanosecondType>().reinterpret_cast(),
        _ => {
            let wide = cast(array, &DataType::Interval(IntervalUnit::MonthDayNano))?;
            return Ok(wide.as_primitive::<IntervalMonthDayNanoType>().clone());
        }
    };
    let unit = match array.data_type() {
        DataType::Duration(unit) => i128::from(arrow_unit_nanos(*unit)),
        _ => 1,
    };
    let of = |count: i64| -> Result<IntervalMonthDayNano> {
        let nanos = i128::from(count) * unit;
        let (days, rest) = (nanos / i128::from(DAY_NANOS), nanos % i128::from(DAY_NANOS));
        let days = i32::try_from(days).map_err(|_| Error::invalid("interval out of range"))?;
        Ok(IntervalMonthDayNano::new(0, days, rest as i64))
    };
    counts.iter().map(|count| count.map(of).transpose()).collect()
}
