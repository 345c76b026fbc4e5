//! A value as it is, under another name: `__as(v::int, 'int')`. It is gone once a plan is optimised.

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

pub(crate) const AS: &str = "__as";

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct As {
    signature: Signature,
}

impl As {
    pub fn new() -> As {
        As { signature: Signature::any(2, Volatility::Immutable) }
    }
}

fn nothing() -> datafusion::common::DataFusionError {
    crate::Error::internal("a name of no value").into()
}

impl ScalarUDFImpl for As {
    fn name(&self) -> &str {
        AS
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        types.first().cloned().ok_or_else(nothing)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        args.arg_fields.first().cloned().ok_or_else(nothing)
    }

    fn simplify(&self, args: Vec<Expr>, _: &SimplifyContext) -> Result<ExprSimplifyResult> {
        args.into_iter().next().map(ExprSimplifyResult::Simplified).ok_or_else(nothing)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        args.args.into_iter().next().ok_or_else(nothing)
    }
}
