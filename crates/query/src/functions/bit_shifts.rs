//! `integer << count` and `integer >> count`: the result has the type of the integer, and bits that leave it are lost.
//!
//! The count is taken modulo 64 for LONG and modulo 32 for shorter integers, as PostgreSQL does on x86-64 and ARM.

use super::scalar::{Call, Gives, Kind, PLAIN, Scalar};
use crate::Error;
use datafusion::arrow::array::{ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use datafusion::arrow::datatypes::{DataType, Int8Type, Int16Type, Int32Type, Int64Type};
use datafusion::common::Result;
use std::sync::Arc;

pub(crate) const LEFT: &str = "__shift_left";
pub(crate) const RIGHT: &str = "__shift_right";

pub(super) const FUNCTIONS: &[Scalar] = &[
    Scalar { name: LEFT, call: |call| shifted(call, true), ..OF_INTEGER },
    Scalar { name: RIGHT, call: |call| shifted(call, false), ..OF_INTEGER },
];

const OF_INTEGER: Scalar =
    Scalar { takes: "two integers", kinds: &[Kind::Any, Kind::Long], gives: Gives::Like(0), ..PLAIN };

fn shifted(call: &Call, is_left: bool) -> Result<ArrayRef> {
    let short = |value: i32, count: i64| {
        let count = count.rem_euclid(32) as u32;
        if is_left { value << count } else { value >> count }
    };
    match call.columns[0].data_type() {
        DataType::Int8 => Ok(each::<Int8Type>(call, |value, count| short(value.into(), count) as i8)),
        DataType::Int16 => Ok(each::<Int16Type>(call, |value, count| short(value.into(), count) as i16)),
        DataType::Int32 => Ok(each::<Int32Type>(call, short)),
        DataType::Int64 => Ok(each::<Int64Type>(call, |value, count| {
            let count = count.rem_euclid(64) as u32;
            if is_left { value << count } else { value >> count }
        })),
        other => Err(Error::internal(format!("a shift of {other}")).into()),
    }
}

fn each<T: ArrowPrimitiveType>(call: &Call, shift: impl Fn(T::Native, i64) -> T::Native) -> ArrayRef {
    let (values, counts) = (call.columns[0].as_primitive::<T>(), call.columns[1].as_primitive::<Int64Type>());
    let pairs = values.iter().zip(counts);
    let shifted = pairs.map(|(value, count)| Some(shift(value?, count?)));
    Arc::new(shifted.collect::<PrimitiveArray<T>>())
}
