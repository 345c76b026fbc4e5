//! `length`, `octet_length` and `bit_length` of bytes: the stock functions know text only, and would take bytes for it.

use datafusion::arrow::array::{ArrayRef, AsArray, Int32Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use std::sync::Arc;

pub(super) fn are_bytes(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
}

/// How many units each value has, of which a byte has `units`.
pub(super) fn lengths(bytes: &ArrayRef, units: i32) -> Result<ArrayRef> {
    let bytes = cast(bytes, &DataType::BinaryView)?;
    let of = |value: &[u8]| i32::try_from(value.len()).unwrap_or(i32::MAX).saturating_mul(units);
    Ok(Arc::new(bytes.as_binary_view().iter().map(|value| value.map(of)).collect::<Int32Array>()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::BinaryViewArray;
    use datafusion::arrow::datatypes::Int32Type;

    #[test]
    fn bytes_are_counted_as_they_are() {
        let bytes: ArrayRef = Arc::new(BinaryViewArray::from_iter([Some(&b"\xff\x00\x01"[..]), None, Some(&b""[..])]));
        let counted = |units| lengths(&bytes, units).expect("bytes").as_primitive::<Int32Type>().clone();
        assert_eq!(counted(1), Int32Array::from(vec![Some(3), None, Some(0)]));
        assert_eq!(counted(8), Int32Array::from(vec![Some(24), None, Some(0)]));
    }
}
