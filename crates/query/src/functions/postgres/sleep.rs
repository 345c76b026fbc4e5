//! `pg_sleep`: waits without blocking a thread.

use crate::door;
use async_trait::async_trait;
use datafusion::arrow::array::{ArrayRef, AsArray, StringViewArray};
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::Result;
use datafusion::logical_expr::async_udf::{AsyncScalarUDF, AsyncScalarUDFImpl};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use std::sync::Arc;
use std::time::Duration;

/// Maximum duration; the statement timeout is usually shorter.
const SECONDS_MAX: f64 = 86_400.0;

pub(super) fn pg_sleep() -> ScalarUDF {
    let signature = Signature::exact(vec![DataType::Float64], Volatility::Volatile);
    AsyncScalarUDF::new(Arc::new(Sleep { signature })).into_scalar_udf()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Sleep {
    signature: Signature,
}

impl ScalarUDFImpl for Sleep {
    fn name(&self) -> &'static str {
        "pg_sleep"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn return_field_from_args(
        &self,
        _: datafusion::logical_expr::ReturnFieldArgs,
    ) -> Result<datafusion::arrow::datatypes::FieldRef> {
        Ok(Arc::new(door::pg_field(self.name(), tidalite_types::pg_type::VOID)))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Err(crate::Error::internal("pg_sleep is asynchronous").into())
    }
}

#[async_trait]
impl AsyncScalarUDFImpl for Sleep {
    async fn invoke_async_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let seconds = args.args[0].to_array(args.number_rows)?;
        for seconds in seconds.as_primitive::<Float64Type>().iter().flatten().filter(|s| *s > 0.0) {
            tokio::time::sleep(Duration::from_secs_f64(seconds.min(SECONDS_MAX))).await;
        }
        let done: ArrayRef = Arc::new(StringViewArray::from_iter_values(std::iter::repeat_n("", args.number_rows)));
        Ok(ColumnarValue::Array(done))
    }
}
