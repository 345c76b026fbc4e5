//! Floating point as keys: every NaN one value, and −0 the same as 0.
//!
//! Arrow orders and hashes floating point by its bits. Stored NaNs all have the same; those that arithmetic gives have
//! another sign on some processors.

use super::scalar::{Gives, Kind, PLAIN, Scalar};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListArray, StructArray};
use datafusion::arrow::datatypes::{DataType, Float32Type, Float64Type};
use std::sync::Arc;

/// Every NaN the same; −0 stays.
pub(crate) const ONE_NAN: &str = "__one_nan";
/// Every NaN the same, and −0 is 0.
pub(crate) const KEY: &str = "__float_key";

pub(super) const FUNCTIONS: &[Scalar] = &[
    Scalar {
        name: ONE_NAN,
        takes: "a number",
        kinds: &[Kind::Any],
        gives: Gives::Like(0),
        call: |call| {
            let column = &call.columns[0];
            Ok(mapped(column, |v| if v.is_nan() { f64::NAN } else { v }, |v| if v.is_nan() { f32::NAN } else { v }))
        },
        ..PLAIN
    },
    Scalar {
        name: KEY,
        takes: "a number",
        kinds: &[Kind::Any],
        gives: Gives::Like(0),
        call: |call| Ok(key_values(&call.columns[0])),
        ..PLAIN
    },
];

/// Returns floating-point values as keys: one NaN, and 0 for −0, also within arrays and rows. Other columns stay.
pub(crate) fn key_values(column: &ArrayRef) -> ArrayRef {
    let float = |v: f32| if v.is_nan() { f32::NAN } else { v + 0.0 };
    mapped(column, |v| if v.is_nan() { f64::NAN } else { v + 0.0 }, float)
}

/// Returns true for floating point and for arrays and rows with it.
pub(crate) fn is_float(data_type: &DataType) -> bool {
    match data_type {
        DataType::List(item) => is_float(item.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| is_float(field.data_type())),
        other => matches!(other, DataType::Float64 | DataType::Float32),
    }
}

fn mapped(column: &ArrayRef, double: fn(f64) -> f64, float: fn(f32) -> f32) -> ArrayRef {
    match column.data_type() {
        DataType::Float64 => Arc::new(column.as_primitive::<Float64Type>().unary::<_, Float64Type>(double)),
        DataType::Float32 => Arc::new(column.as_primitive::<Float32Type>().unary::<_, Float32Type>(float)),
        DataType::List(item) if is_float(item.data_type()) => {
            let list = column.as_list::<i32>();
            let values = mapped(list.values(), double, float);
            Arc::new(ListArray::new(item.clone(), list.offsets().clone(), values, list.nulls().cloned()))
        }
        DataType::Struct(fields) if fields.iter().any(|field| is_float(field.data_type())) => {
            let rows = column.as_struct();
            let columns = rows.columns().iter().map(|column| mapped(column, double, float)).collect();
            let nulls = rows.nulls().cloned();
            // The types stay, so that the parts fit together.
            let made = StructArray::try_new_with_length(fields.clone(), columns, nulls, rows.len());
            made.map_or_else(|_| column.clone(), |rows| Arc::new(rows) as ArrayRef)
        }
        _ => column.clone(),
    }
}
