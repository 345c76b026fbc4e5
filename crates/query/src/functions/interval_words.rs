//! `today([zone])`, `yesterday([zone])`, `tomorrow([zone])`, `interval(lo, hi)`: stretches of time. After IN they become ranges
//! ([`crate::plan::time_ranges`]); elsewhere `interval_start(x)` and `interval_end(x)` take them apart.

use super::scalar::{Call, Gives, Kind, PLAIN, Scalar};
use super::times;
use super::timestamp_floor::time_zone;
use crate::calendar::{Zone, interval};
use crate::door;
use chrono::{DateTime, Utc};
use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array, StringViewArray, StructArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};
use std::sync::Arc;
use tidalite_types::TimeUnit;

pub(super) const FUNCTIONS: &[Scalar] = &[
    Scalar {
        name: "interval_start",
        takes: TAKES,
        kinds: &[Kind::Any],
        gives: Gives::Micros,
        call: |c| side(c, 0),
        ..PLAIN
    },
    Scalar {
        name: "interval_end",
        takes: TAKES,
        kinds: &[Kind::Any],
        gives: Gives::Micros,
        call: |c| side(c, 1),
        ..PLAIN
    },
    Scalar { name: "__interval_text", takes: TAKES, kinds: &[Kind::Any], gives: Gives::Text, call: text, ..PLAIN },
];
/// Whether a type is that of `today()` and its like.
pub(crate) fn is_interval(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Struct(found) if *found == fields())
}

/// The name of the function that shows one.
pub(crate) fn interval_text() -> &'static str {
    "__interval_text"
}

/// `('2024-01-01T00:00:00.000000Z', '2024-01-01T23:59:59.999999Z')`, as QuestDB shows it.
fn text(call: &Call) -> Result<ArrayRef> {
    let (from, to) = (times::ticks(&side(call, 0)?)?, times::ticks(&side(call, 1)?)?);
    let shown = |ts: i64| {
        let time = DateTime::<Utc>::from_timestamp_micros(ts)?;
        Some(time.format("%Y-%m-%dT%H:%M:%S%.6fZ").to_string())
    };
    let texts = from.iter().zip(to.iter()).map(|(from, to)| Some(format!("('{}', '{}')", shown(from?)?, shown(to?)?)));
    Ok(Arc::new(texts.collect::<StringViewArray>()))
}

const TAKES: &str = "an interval such as today() or interval(lo, hi)";

fn side(call: &Call, side: usize) -> Result<ArrayRef> {
    match call.columns[0].as_struct_opt() {
        Some(interval) if interval.num_columns() == 2 => Ok(interval.column(side).clone()),
        _ => Err(crate::Error::invalid(format!("{} takes {TAKES}", call.name)).into()),
    }
}

fn micros() -> DataType {
    DataType::Timestamp(door::arrow_unit(TimeUnit::Micros), None)
}

fn fields() -> Fields {
    ["lo", "hi"].map(|name| Field::new(name, micros(), true)).to_vec().into()
}

/// Of each pair the earlier and the later.
fn intervals(first: &ArrayRef, second: &ArrayRef) -> Result<StructArray> {
    let (first, second) = (times::ticks(&cast(first, &micros())?)?, times::ticks(&cast(second, &micros())?)?);
    let of = |pick: fn(i64, i64) -> i64| -> Result<ArrayRef> {
        let values = first.iter().zip(second.iter()).map(|(a, b)| Some(pick(a?, b?)));
        Ok(cast(&(Arc::new(values.collect::<Int64Array>()) as ArrayRef), &micros())?)
    };
    Ok(StructArray::try_new(fields(), vec![of(i64::min)?, of(i64::max)?], None)?)
}

/// Returns the day of a zone that is `days` after the one of `now`.
fn day(now: DateTime<Utc>, days: i64, zone: Zone) -> Result<ScalarValue> {
    let local = now.timestamp().saturating_add(zone.offset(now.timestamp()));
    let start = |days: i64| {
        let (start, _) = interval::day(local.saturating_mul(SECOND), days, TimeUnit::Micros);
        zone.to_utc(start.div_euclid(SECOND)).saturating_mul(SECOND)
    };
    let (lo, hi) = (start(days), start(days + 1) - 1);
    let [lo, hi] = [lo, hi].map(|ts| ScalarValue::TimestampMicrosecond(Some(ts), None).to_array());
    Ok(ScalarValue::Struct(Arc::new(intervals(&lo?, &hi?)?)))
}

/// Microseconds of a second.
const SECOND: i64 = 1_000_000;

/// Returns the zone that a constant names, UTC without arguments; `None` for arguments that are no constants.
fn zone_of(args: &[Expr]) -> Result<Option<Zone>> {
    let text = match args {
        [] => return Ok(Some(Zone::UTC)),
        [Expr::Literal(value, _)] => value,
        _ => return Ok(None),
    };
    match text.try_as_str().flatten() {
        Some(text) => Ok(Some(time_zone(text)?)),
        None => Err(crate::Error::invalid("a time zone is a text such as 'Europe/London'").into()),
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct IntervalWord {
    name: &'static str,
    signature: Signature,
}

impl IntervalWord {
    pub fn all() -> [IntervalWord; 5] {
        [(crate::dialect::INTERVAL, 1), ("today", 0), ("yesterday", 0), ("tomorrow", 0), (crate::dialect::RANGE, 2)]
            .map(|(name, count)| {
                let signature = match count {
                    0 => Signature::one_of(vec![TypeSignature::Nullary, TypeSignature::String(1)], Volatility::Stable),
                    2 => Signature::user_defined(Volatility::Stable),
                    count => Signature::any(count, Volatility::Stable),
                };
                IntervalWord { name, signature }
            })
    }
}

impl ScalarUDFImpl for IntervalWord {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Text is read as everywhere else: it may stop after any part of a time.
    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        if types.len() != 2 {
            return Err(crate::Error::invalid("interval takes two times").into());
        }
        types.iter().map(|given| times::timestamp_type(given, "interval").map(|_| micros())).collect()
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(if self.name == crate::dialect::INTERVAL { DataType::Utf8View } else { DataType::Struct(fields()) })
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let days = match self.name {
            "yesterday" => -1,
            "today" => 0,
            "tomorrow" => 1,
            _ => return Ok(ExprSimplifyResult::Original(args)),
        };
        Ok(match (info.query_execution_start_time(), zone_of(&args)?) {
            (Some(now), Some(zone)) => ExprSimplifyResult::Simplified(Expr::Literal(day(now, days, zone)?, None)),
            _ => ExprSimplifyResult::Original(args),
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [first, second] = &args.args[..] else {
            return Err(crate::Error::invalid(format!("{}() is an interval and stands after IN", self.name)).into());
        };
        let rows = args.number_rows;
        let array = intervals(&first.to_array(rows)?, &second.to_array(rows)?)?;
        Ok(ColumnarValue::Array(Arc::new(array)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On 2024-10-27 clocks in London are set back: the day has 25 hours.
    #[test]
    fn days_of_a_zone() {
        let now = DateTime::<Utc>::from_timestamp(1_730_030_400, 0).expect("2024-10-27T12:00Z");
        let london = Zone::parse("Europe/London").expect("a zone");
        let hours = |zone, days| {
            let ScalarValue::Struct(found) = day(now, days, zone).expect("a day") else { panic!("no interval") };
            let [lo, hi] = [0, 1].map(|n| times::ticks(found.column(n)).expect("times").value(0));
            ((lo - now.timestamp_micros()) / 3_600_000_000, (hi + 1 - lo) / 3_600_000_000)
        };
        assert_eq!(hours(Zone::UTC, 0), (-12, 24));
        assert_eq!([hours(london, -1), hours(london, 0), hours(london, 1)], [(-37, 24), (-13, 25), (12, 24)]);
    }
}
