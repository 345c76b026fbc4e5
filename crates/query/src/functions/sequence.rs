//! `timestamp_sequence(start, step)`: the dialect makes it, over `long_sequence(n)`, the start and what lies between it and
//! the row; steps are microseconds, and may be by chance. An integer as the start counts microseconds since 1970, or
//! nanoseconds for `timestamp_sequence_ns`.

use super::scalar::{Call, Gives, Kind, PLAIN, Scalar};
use super::times;
use crate::Error;
use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::common::Result;
use std::sync::Arc;
use tidalite_types::TimeUnit;

/// A timestamp and microseconds behind it.
pub(crate) const AFTER: &str = "__after";
pub(crate) const NAMES: &[&str] = &["timestamp_sequence", "timestamp_sequence_ns"];

const fn elsewhere(name: &'static str) -> Scalar {
    Scalar {
        name,
        takes: "a start and a step",
        kinds: &[Kind::TimeOrMicros, Kind::Long],
        gives: Gives::Like(0),
        is_volatile: true,
        call: |call| Err(Error::invalid(format!("{} needs FROM long_sequence(n)", call.name)).into()),
        ..PLAIN
    }
}

pub(super) const FUNCTIONS: &[Scalar] = &[
    Scalar {
        name: AFTER,
        takes: "a timestamp and a number",
        kinds: &[Kind::TimeOrMicros, Kind::Long],
        gives: Gives::Like(0),
        call: |call| after(call, TimeUnit::Micros),
        ..PLAIN
    },
    Scalar {
        name: "__after_ns",
        takes: "a timestamp and a number",
        kinds: &[Kind::TimeOrNanos, Kind::Long],
        gives: Gives::Like(0),
        call: |call| after(call, TimeUnit::Nanos),
        ..PLAIN
    },
    elsewhere(NAMES[0]),
    elsewhere(NAMES[1]),
];

fn after(call: &Call, step: TimeUnit) -> Result<ArrayRef> {
    let unit = times::unit(call.columns[0].data_type())?;
    let starts = times::ticks(&call.columns[0])?;
    let steps = call.columns[1].as_primitive::<Int64Type>();
    let value = |(start, steps): (Option<i64>, Option<i64>)| {
        let Some((start, steps)) = start.zip(steps) else { return Ok(None) };
        let moved = step.convert(steps, unit).and_then(|steps| start.checked_add(steps));
        moved.map(Some).ok_or_else(|| Error::invalid("timestamp out of range"))
    };
    let values: ArrayRef = Arc::new(starts.iter().zip(steps.iter()).map(value).collect::<crate::Result<Int64Array>>()?);
    Ok(cast(&values, call.data_type)?)
}
