//! `now()`: the instant the statement began, as a TIMESTAMP. The stock one has nanoseconds, and comparisons with
//! microseconds would be made after a cast.

use crate::door;
use chrono::{DateTime, Utc};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Now {
    signature: Signature,
    aliases: Vec<String>,
}

impl Now {
    pub fn new() -> Now {
        let aliases = ["current_timestamp", "systimestamp", "sysdate"].map(str::to_owned).to_vec();
        Now { signature: Signature::nullary(Volatility::Stable), aliases }
    }
}

impl ScalarUDFImpl for Now {
    fn name(&self) -> &'static str {
        "now"
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Timestamp(TimeUnit::Microsecond, None))
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs) -> Result<FieldRef> {
        let field = Field::new(self.name(), DataType::Timestamp(TimeUnit::Microsecond, None), true);
        Ok(Arc::new(door::of_instants(field)))
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        Ok(match info.query_execution_start_time() {
            Some(now) => {
                let metadata = Some(door::instant_metadata().into());
                ExprSimplifyResult::Simplified(Expr::Literal(value(now), metadata))
            }
            None => ExprSimplifyResult::Original(args),
        })
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Err(crate::Error::internal("now() was not replaced by the time").into())
    }
}

fn value(now: DateTime<Utc>) -> ScalarValue {
    ScalarValue::TimestampMicrosecond(Some(now.timestamp_micros()), None)
}
