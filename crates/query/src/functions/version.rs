//! `version()`.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Version {
    signature: Signature,
}

impl Version {
    pub fn new() -> Version {
        Version { signature: Signature::nullary(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Version {
    fn name(&self) -> &'static str {
        "version"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(ColumnarValue::Scalar(ScalarValue::Utf8View(Some(format!(
            "Tidalite {} (PostgreSQL {})",
            env!("CARGO_PKG_VERSION"),
            tidalite_types::pg_type::SERVER_VERSION
        )))))
    }
}
