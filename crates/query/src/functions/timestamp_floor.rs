//! `timestamp_floor('5m', ts [, from [, offset [, zone]]])` and `timestamp_ceil`: the bounds of the bucket of a timestamp,
//! the ones SAMPLE BY makes.

use super::times;
use crate::Error;
use crate::calendar::{Buckets, Stride, Zone, zone};
use datafusion::arrow::array::{Array, Int64Array};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use std::sync::Arc;
use tidalite_types::TimeUnit;

#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct TimestampFloor {
    is_ceil: bool,
    signature: Signature,
}

impl TimestampFloor {
    pub fn new(is_ceil: bool) -> TimestampFloor {
        TimestampFloor { is_ceil, signature: Signature::user_defined(Volatility::Immutable) }
    }
}

const FLOOR: &str = "timestamp_floor";

/// The buckets whose starts `timestamp_floor('5m', ts)` is, of a column of times of a unit; `None` of other expressions.
pub(crate) fn buckets_of(expr: &Arc<dyn PhysicalExpr>, unit: TimeUnit) -> Option<Buckets> {
    let function = expr.downcast_ref::<ScalarFunctionExpr>()?;
    let [length, time] = function.args() else { return None };
    let is_floor = function.name() == FLOOR;
    time.downcast_ref::<Column>().filter(|_| is_floor)?;
    let ScalarValue::Utf8(Some(length)) = length.downcast_ref::<Literal>()?.value() else { return None };
    Some(Buckets { stride: stride(length).ok()?, zone: Zone::UTC, offset_s: 0, origin: None, unit })
}

/// A length of at least one unit.
pub(crate) fn stride(text: &str) -> crate::Result<Stride> {
    Stride::parse(text).filter(|s| s.count > 0).ok_or_else(|| {
        let mut error = Error::invalid(format!("\"{text}\" is no length of time"))
            .with_hint("a length is a number and one of n, U, T, s, m, h, d, w, M and y");
        error.subject = Some(format!("'{text}"));
        error
    })
}

pub(crate) fn time_zone(text: &str) -> crate::Result<Zone> {
    Zone::parse(text).ok_or_else(|| {
        let mut error = Error::invalid(format!("time zone \"{text}\" not recognized"))
            .with_hint("a zone is a name such as 'Europe/London' or an offset such as '+01:00'");
        error.subject = Some(format!("'{text}"));
        error
    })
}

pub(crate) fn offset_seconds(text: &str) -> crate::Result<i64> {
    zone::offset_seconds(text.trim()).ok_or_else(|| {
        let mut error = Error::invalid(format!("invalid offset: \"{text}\""))
            .with_hint("an offset is hours and minutes such as '+01:30'");
        error.subject = Some(format!("'{text}"));
        error
    })
}

impl ScalarUDFImpl for TimestampFloor {
    fn name(&self) -> &'static str {
        if self.is_ceil { "timestamp_ceil" } else { FLOOR }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        if !(2..=5).contains(&types.len()) {
            let usage =
                format!("{} takes a length, a timestamp and at most a start, an offset and a zone", self.name());
            return Err(Error::invalid(usage).into());
        }
        let time = times::timestamp_type(&types[1], self.name())?;
        let all = [DataType::Utf8, time.clone(), time, DataType::Utf8, DataType::Utf8];
        Ok(all[..types.len()].to_vec())
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        times::timestamp_type(&types[1], self.name())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let text = |n: usize| args.args.get(n).map_or(Ok(None), |value| times::text(value, "what a bucket is made of"));
        let Some(length) = text(0)? else { return times::null(args.return_type()) };
        // The start of the first observation comes from a sub-query: a column of one value.
        let origin = match args.args.get(2) {
            None => None,
            Some(value) => {
                let array = times::ticks(&value.to_array(args.number_rows.max(1))?)?;
                (!array.is_empty() && array.is_valid(0)).then(|| array.value(0))
            }
        };
        let buckets = Buckets {
            stride: stride(&length)?,
            zone: text(4)?.map_or(Ok(Zone::UTC), |t| time_zone(&t))?,
            offset_s: text(3)?.map_or(Ok(0), |t| offset_seconds(&t))?,
            origin,
            unit: times::unit(args.return_type())?,
        };
        let is_scalar = matches!(args.args[1], ColumnarValue::Scalar(_));
        let array = args.args[1].to_array(if is_scalar { 1 } else { args.number_rows })?;
        times::from_ticks(&bounds(&times::ticks(&array)?, &buckets, self.is_ceil), args.return_type(), is_scalar)
    }
}

/// Rows mostly come in order of time: the bucket of the last row is tried first.
fn bounds(times: &Int64Array, buckets: &Buckets, is_ceil: bool) -> Int64Array {
    let mut range = (0, 0);
    let mut bound = |ts: i64| {
        if ts < range.0 || ts >= range.1 {
            range = buckets.range(ts);
        }
        if is_ceil && ts != range.0 { range.1 } else { range.0 }
    };
    let values: Vec<i64> = times.values().iter().map(|ts| bound(*ts)).collect();
    Int64Array::new(values.into(), times.nulls().cloned())
}
