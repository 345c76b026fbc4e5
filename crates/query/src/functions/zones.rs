//! `to_timezone(ts, zone)`: what clocks of a place show at an instant. `to_utc(ts, zone)`: the instant at which they do.

use super::scalar::{Call, Gives, Kind, PLAIN, Scalar};
use super::times;
use super::timestamp_floor::time_zone;
use crate::Error;
use crate::calendar::Zone;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use datafusion::arrow::compute::cast;
use datafusion::common::Result;
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
];

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
