//! `length`, `octet_length` and `bit_length` of bytes, besides those of text: the stock functions know text only, and
//! would take bytes for it.

use super::guarded;
use datafusion::arrow::array::{ArrayRef, AsArray, Int32Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

/// The function and how many of its units a byte has.
const LENGTHS: &[(&str, i32)] = &[("character_length", 1), ("octet_length", 1), ("bit_length", 8)];

pub(super) fn functions() -> Vec<ScalarUDF> {
    let guarded = guarded::functions().into_iter().map(Arc::new);
    let all: Vec<Arc<ScalarUDF>> = guarded.chain(datafusion::functions::all_default_functions()).collect();
    let lengths = LENGTHS.iter().filter_map(|(name, units)| {
        let inner = all.iter().find(|function| function.name() == *name)?.clone();
        let signature = Signature::user_defined(Volatility::Immutable);
        Some(ScalarUDF::new_from_impl(Lengths { inner, units: *units, signature }))
    });
    lengths.collect()
}

#[derive(PartialEq, Eq, Hash)]
struct Lengths {
    /// Of text.
    inner: Arc<ScalarUDF>,
    units: i32,
    signature: Signature,
}

impl std::fmt::Debug for Lengths {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.inner.name())
    }
}

fn are_bytes(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
}

impl ScalarUDFImpl for Lengths {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        if matches!(types, [only] if are_bytes(only)) {
            return Ok(types.to_vec());
        }
        let fields: Vec<FieldRef> = types.iter().map(|t| Arc::new(Field::new("", t.clone(), true))).collect();
        let coerced = fields_with_udf(&fields, self.inner.as_ref())?;
        Ok(coerced.iter().map(|field| field.data_type().clone()).collect())
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        if types.first().is_some_and(are_bytes) { Ok(DataType::Int32) } else { self.inner.return_type(types) }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        if args.arg_fields.first().is_some_and(|field| are_bytes(field.data_type())) {
            return Ok(Arc::new(Field::new(self.name(), DataType::Int32, true)));
        }
        self.inner.return_field_from_args(args)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(bytes) = args.args.first().filter(|value| are_bytes(&value.data_type())) else {
            return self.inner.invoke_with_args(args);
        };
        let bytes = cast(&bytes.to_array(args.number_rows)?, &DataType::BinaryView)?;
        Ok(ColumnarValue::Array(lengths(&bytes, self.units)))
    }
}

fn lengths(bytes: &ArrayRef, units: i32) -> ArrayRef {
    let of = |value: &[u8]| i32::try_from(value.len()).unwrap_or(i32::MAX).saturating_mul(units);
    Arc::new(bytes.as_binary_view().iter().map(|value| value.map(of)).collect::<Int32Array>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::BinaryViewArray;

    #[test]
    fn bytes_are_counted_as_they_are() {
        let bytes: ArrayRef = Arc::new(BinaryViewArray::from_iter([Some(&b"\xff\x00\x01"[..]), None, Some(&b""[..])]));
        let counted = |units| lengths(&bytes, units).as_primitive::<datafusion::arrow::datatypes::Int32Type>().clone();
        assert_eq!(counted(1), Int32Array::from(vec![Some(3), None, Some(0)]));
        assert_eq!(counted(8), Int32Array::from(vec![Some(24), None, Some(0)]));
        assert_eq!(functions().len(), LENGTHS.len());
    }
}
