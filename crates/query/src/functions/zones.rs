//! `to_timezone(ts, zone)`: what clocks of a place show at an instant. `to_utc(ts, zone)`: the instant at which they do.
//! `ts AT TIME ZONE zone`, which is `timezone(zone, ts)`: one or the other, by what the time is.

use super::scalar::{Call, Gives, Kind, PLAIN, Scalar};
use super::times;
use super::timestamp_floor::time_zone;
use crate::calendar::Zone;
use crate::{Error, door};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, IntervalMonthDayNano};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

const TAKES: &str = "a timestamp and a time zone";

pub(super) const FUNCTIONS: &[Scalar] = &[
    Scalar {
        name: "to_timezone",
        takes: TAKES,
        kinds: &[Kind::Time, Kind::Text],
        gives: Gives::Like(0),
        call: |call| moved(call, |zone, seconds| seconds.checked_add(zone.offset(seconds))),
        ..PLAIN
    },
    Scalar {
        name: "to_utc",
        takes: TAKES,
        kinds: &[Kind::Time, Kind::Text],
        gives: Gives::Like(0),
        call: |call| moved(call, |zone, seconds| Some(zone.to_utc(seconds))),
        ..PLAIN
    },
    Scalar {
        name: TO_CLOCK,
        takes: AT_TAKES,
        kinds: &[Kind::Any, Kind::Time],
        gives: Gives::Like(1),
        call: |call| at_time_zone(call.columns, call.data_type, true),
        ..PLAIN
    },
    Scalar {
        name: TO_INSTANT,
        takes: AT_TAKES,
        kinds: &[Kind::Any, Kind::Time],
        gives: Gives::Like(1),
        call: |call| at_time_zone(call.columns, call.data_type, false),
        ..PLAIN
    },
    // The argument is a time computed from instants.
    Scalar {
        name: AS_INSTANT,
        takes: "a timestamp",
        kinds: &[Kind::Time],
        gives: Gives::Instant,
        call: |call| Ok(call.columns[0].clone()),
        ..PLAIN
    },
];

const AT_TAKES: &str = "a time zone and a timestamp";
/// PostgreSQL's function for AT TIME ZONE.
pub(crate) const AT_TIME_ZONE: &str = "timezone";
/// Marks a time as an instant.
pub(crate) const AS_INSTANT: &str = "__as_instant";

/// Converts an instant to local time in a zone: AT TIME ZONE of an instant.
pub(crate) const TO_CLOCK: &str = "__clock_at";
/// Converts local time to an instant: AT TIME ZONE of a time without a zone.
pub(crate) const TO_INSTANT: &str = "__instant_at";

/// `timezone(zone, time)` before planning selects the direction.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct AtTimeZone {
    signature: Signature,
}

impl AtTimeZone {
    pub fn new() -> AtTimeZone {
        AtTimeZone { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

/// Returns true if AT TIME ZONE of a field gives local time.
///
/// Text and dates are instants, as in PostgreSQL.
pub(crate) fn is_instant(field: &Field) -> bool {
    !matches!(field.data_type(), DataType::Timestamp(..)) || door::has_instants(field)
}

impl ScalarUDFImpl for AtTimeZone {
    fn name(&self) -> &'static str {
        AT_TIME_ZONE
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [zone, time] = types else {
            return Err(Error::invalid("timezone takes a time zone and a timestamp").into());
        };
        times::timestamp_type(time, AT_TIME_ZONE)?;
        let is_text = matches!(zone, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null);
        match zone {
            _ if is_text => Ok(vec![DataType::Utf8View, time.clone()]),
            DataType::Interval(_) => Ok(types.to_vec()),
            _ => Err(Error::invalid("a time zone is a text or an interval").into()),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        types.get(1).map_or_else(|| Ok(DataType::Null), |time| times::timestamp_type(time, AT_TIME_ZONE))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let [_, time] = args.arg_fields else { return Err(Error::internal("AT TIME ZONE without a time").into()) };
        let field = Field::new(AT_TIME_ZONE, times::timestamp_type(time.data_type(), AT_TIME_ZONE)?, true);
        Ok(Arc::new(if is_instant(time) { field } else { door::of_instants(field) }))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_instant = args.arg_fields.get(1).is_some_and(|time| is_instant(time));
        let columns = ColumnarValue::values_to_arrays(&args.args)?;
        let is_constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let moved = at_time_zone(&columns, args.return_field.data_type(), is_instant)?;
        if is_constant && moved.len() == 1 {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&moved, 0)?));
        }
        Ok(ColumnarValue::Array(moved))
    }
}

/// Computes AT TIME ZONE; the columns are the zone and the time.
fn at_time_zone(columns: &[ArrayRef], to: &DataType, is_instant: bool) -> Result<ArrayRef> {
    let [zones, given] = columns else { return Err(Error::internal("AT TIME ZONE without a time").into()) };
    let time = match given.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => super::text_times::micros(given)?,
        _ => cast(given, to)?,
    };
    let lengths = matches!(zones.data_type(), DataType::Interval(_))
        .then(|| super::time_casts::of_interval(zones))
        .transpose()?;
    let zone = |row: usize| match &lengths {
        Some(lengths) => zone_of_length(lengths.value(row)),
        None => zone_of_text(zones.as_string_view().value(row)),
    };
    let per_second = times::unit(to)?.per_second();
    let ticks = times::ticks(&time)?;
    // All rows usually have the same zone.
    let mut known: Option<(usize, Zone)> = None;
    let is_same = |a: usize, b: usize| match &lengths {
        Some(lengths) => lengths.value(a) == lengths.value(b),
        None => zones.as_string_view().value(a) == zones.as_string_view().value(b),
    };
    let mut out = Vec::with_capacity(ticks.len());
    for row in 0..ticks.len() {
        if ticks.is_null(row) || zones.is_null(row) {
            out.push(None);
            continue;
        }
        let own = match known {
            Some((last, zone)) if is_same(last, row) => zone,
            _ => zone(row)?,
        };
        known = Some((row, own));
        let ts = ticks.value(row);
        let seconds = ts.div_euclid(per_second);
        let moved = if is_instant { seconds.checked_add(own.offset(seconds)) } else { Some(own.instant_of(seconds)) };
        let moved =
            moved.and_then(|s| s.checked_mul(per_second)).and_then(|s| s.checked_add(ts.rem_euclid(per_second)));
        out.push(Some(moved.ok_or_else(|| Error::invalid("timestamp out of range"))?));
    }
    times::of_ticks(Int64Array::from(out), to)
}

fn zone_of_text(text: &str) -> Result<Zone> {
    Zone::parse_postgres(text).ok_or_else(|| {
        let mut error = Error::invalid(format!("time zone \"{text}\" not recognized"))
            .with_hint("a zone is a name such as 'Europe/London', an abbreviation such as 'CET' or an offset");
        error.subject = Some(format!("'{text}"));
        error.into()
    })
}

/// Returns the zone of `AT TIME ZONE INTERVAL '-08:00'`: hours east of Greenwich.
fn zone_of_length(length: IntervalMonthDayNano) -> Result<Zone> {
    let seconds = length.nanoseconds / 1_000_000_000;
    if length.months != 0 || length.days != 0 || seconds.abs() >= 168 * 3_600 {
        return Err(Error::invalid("interval time zone must not include months or days").into());
    }
    Ok(Zone::Fixed(seconds))
}

/// Timestamps with their seconds moved by the clock of a zone.
fn moved(call: &Call, seconds: fn(Zone, i64) -> Option<i64>) -> Result<ArrayRef> {
    let per_second = times::unit(call.columns[0].data_type())?.per_second();
    let (values, zones) = (times::ticks(&call.columns[0])?, call.columns[1].as_string_view());
    // Mostly all rows are of one zone.
    let mut known: Option<(&str, Zone)> = None;
    let mut out = Vec::with_capacity(values.len());
    for row in 0..values.len() {
        if values.is_null(row) || zones.is_null(row) {
            out.push(None);
            continue;
        }
        let text = zones.value(row);
        let zone = match known {
            Some((last, zone)) if last == text => zone,
            _ => time_zone(text)?,
        };
        known = Some((text, zone));
        let ts = values.value(row);
        let moved = seconds(zone, ts.div_euclid(per_second)).and_then(|s| s.checked_mul(per_second));
        let moved = moved.and_then(|s| s.checked_add(ts.rem_euclid(per_second)));
        out.push(Some(moved.ok_or_else(|| Error::invalid("timestamp out of range"))?));
    }
    let out: ArrayRef = Arc::new(Int64Array::from(out));
    Ok(cast(&out, call.data_type)?)
}
