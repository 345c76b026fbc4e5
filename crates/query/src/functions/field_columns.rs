//! Functions of a field and a time, such as `date_part(field, ts)`, whose field is a column: each field that occurs is
//! computed for its rows.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, UInt32Array, new_null_array};
use datafusion::arrow::compute::{cast, interleave, take};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};
use std::collections::BTreeMap;

/// Computes a call whose first argument is a column; `call` computes one whose first argument is a constant.
pub(super) fn by_field(
    args: &ScalarFunctionArgs,
    call: impl Fn(ScalarFunctionArgs) -> Result<ColumnarValue>,
) -> Result<ColumnarValue> {
    let to = args.return_field.data_type();
    let fields = cast(&args.args[0].to_array(args.number_rows)?, &DataType::Utf8View)?;
    let mut rows_of: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    let nulls = match args.args.get(1) {
        Some(ColumnarValue::Array(times)) => times.logical_nulls(),
        Some(ColumnarValue::Scalar(time)) if time.is_null() => {
            return Ok(ColumnarValue::Array(new_null_array(to, args.number_rows)));
        }
        _ => None,
    };
    for (row, field) in fields.as_string_view().iter().enumerate() {
        if let Some(field) = field.filter(|_| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row))) {
            rows_of.entry(field).or_default().push(row as u32);
        }
    }
    // Rows without a field or a time are NULL.
    let mut found: Vec<ArrayRef> = vec![new_null_array(to, 1)];
    let mut places = vec![(0, 0); args.number_rows];
    for (field, rows) in rows_of {
        rows.iter().enumerate().for_each(|(at, row)| places[*row as usize] = (found.len(), at));
        let rows = UInt32Array::from(rows);
        let mut own = args.clone();
        own.number_rows = rows.len();
        own.args[0] = ColumnarValue::Scalar(ScalarValue::Utf8(Some(field.to_owned())));
        for arg in &mut own.args {
            if let ColumnarValue::Array(array) = arg {
                *array = take(array, &rows, None)?;
            }
        }
        found.push(cast(&call(own)?.into_array(rows.len())?, to)?);
    }
    let found: Vec<&dyn Array> = found.iter().map(AsRef::as_ref).collect();
    Ok(ColumnarValue::Array(interleave(&found, &places)?))
}
