//! `typeOf(x)` of QuestDB: the name of a value's type, such as `DOUBLE`.

use crate::{Error, door};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct TypeOf {
    signature: Signature,
}

impl TypeOf {
    pub fn new() -> TypeOf {
        TypeOf { signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for TypeOf {
    fn name(&self) -> &'static str {
        "typeof"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let field = args.arg_fields.first().ok_or_else(|| Error::invalid("typeOf takes a value").about("typeof"))?;
        Ok(ColumnarValue::Scalar(ScalarValue::Utf8View(Some(door::type_name(field)))))
    }
}
