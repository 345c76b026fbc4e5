//! `dateadd('d', n, ts [, zone])`: adds units to a timestamp; a day that the month lacks becomes its last.
//!
//! With a time zone, days and longer units are added to the local time of the zone: a day later is the same local time of
//! day. Units of a fixed length up to hours do not depend on the zone.

use super::times::{self, letter};
use super::timestamp_floor::time_zone;
use crate::Error;
use crate::calendar::{Stride, Zone};
use datafusion::arrow::array::{Array, AsArray, Int64Array};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};
use tidalite_types::TimeUnit;
use tidalite_types::interval::DAY_NANOS;

#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct DateAdd {
    signature: Signature,
}

impl DateAdd {
    pub fn new() -> DateAdd {
        DateAdd { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for DateAdd {
    fn name(&self) -> &'static str {
        "dateadd"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let ([_, _, time] | [_, _, time, _]) = types else {
            return Err(Error::invalid("dateadd takes a unit, a number, a timestamp and a time zone").into());
        };
        let mut taken = vec![DataType::Utf8, DataType::Int64, times::timestamp_type(time, "dateadd")?];
        taken.extend(types.get(3).map(|_| DataType::Utf8View));
        Ok(taken)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        times::timestamp_type(&types[2], "dateadd")
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(unit) = letter(&args.args[0], "dateadd")? else { return times::null(args.return_type()) };
        let time_unit = times::unit(args.return_type())?;
        let is_scalar = args.args.iter().all(|a| matches!(a, ColumnarValue::Scalar(_)));
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let counts = arrays[1].as_primitive::<Int64Type>();
        let times = times::ticks(&arrays[2])?;
        let zones = arrays.get(3).map(|zones| zones.as_string_view());
        let is_of_clock = unit.nanos().is_none_or(|nanos| nanos >= i128::from(DAY_NANOS));
        // All rows usually have the same zone.
        let mut known: Option<(&str, Zone)> = None;
        let mut out = Vec::with_capacity(times.len());
        for row in 0..times.len() {
            if counts.is_null(row) || times.is_null(row) || zones.is_some_and(|zones| zones.is_null(row)) {
                out.push(None);
                continue;
            }
            let stride = Stride { count: counts.value(row), unit };
            if let Some(text) = zones.map(|zones| zones.value(row))
                && known.is_none_or(|(last, _)| last != text)
            {
                known = Some((text, time_zone(text)?));
            }
            let sum = match known.filter(|_| is_of_clock) {
                Some((_, zone)) => added_in(zone, times.value(row), stride, time_unit),
                None => stride.add_to(times.value(row), 1, time_unit),
            };
            out.push(Some(sum.ok_or_else(|| Error::invalid("timestamp out of range"))?));
        }
        times::from_ticks(&Int64Array::from(out), args.return_type(), is_scalar)
    }
}

/// Adds a stride to the local time of a zone; `None` past the range.
fn added_in(zone: Zone, ts: i64, stride: Stride, unit: TimeUnit) -> Option<i64> {
    let per_second = unit.per_second();
    let second = ts.div_euclid(per_second);
    let local = ts.checked_add(zone.offset(second).checked_mul(per_second)?)?;
    let moved = stride.add_to(local, 1, unit)?;
    let instant = zone.to_utc(moved.div_euclid(per_second)).checked_mul(per_second)?;
    instant.checked_add(moved.rem_euclid(per_second))
}
