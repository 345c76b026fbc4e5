//! The position of a percentile among the values of a group, for `percentile_disc`.

use super::scalar::{Call, Gives, Kind, PLAIN, Scalar};
use crate::Error;
use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array};
use datafusion::arrow::datatypes::{Float64Type, Int64Type};
use datafusion::common::Result;
use std::sync::Arc;
use tidalite_types::SqlState;

/// The position, from 1, of the first of the ordered values whose cumulative share reaches the percentile.
pub(crate) const POSITION: &str = "__percentile_position";

pub(super) const FUNCTIONS: &[Scalar] = &[Scalar {
    name: POSITION,
    takes: "a percentile between 0 and 1, and a number of values",
    kinds: &[Kind::Double, Kind::Long],
    gives: Gives::Long,
    call: positions,
    ..PLAIN
}];

fn positions(call: &Call) -> Result<ArrayRef> {
    let shares = call.columns[0].as_primitive::<Float64Type>();
    let counts = call.columns[1].as_primitive::<Int64Type>();
    let position = |(share, count): (Option<f64>, Option<i64>)| -> Result<Option<i64>> {
        let Some((share, count)) = share.zip(count) else { return Ok(None) };
        if !(0.0..=1.0).contains(&share) {
            let error = Error::invalid(format!("percentile value {share} is not between 0 and 1"));
            return Err(error.with_code(SqlState::NUMERIC_VALUE_OUT_OF_RANGE).into());
        }
        Ok(Some(((share * count as f64).ceil() as i64).max(1)))
    };
    Ok(Arc::new(shares.iter().zip(counts).map(position).collect::<Result<Int64Array>>()?))
}
