//! `now()` and `now_ns()`: the instant the statement began, as a TIMESTAMP and as a TIMESTAMP_NS.
//!
//! The stock function has nanoseconds, and comparisons with microseconds would need a cast. `systimestamp()` and
//! `systimestamp_ns()` are aliases: QuestDB reads the clock for each row there.

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
    is_nanos: bool,
    signature: Signature,
    aliases: Vec<String>,
}

impl Now {
    pub fn all() -> [Now; 2] {
        let of = |is_nanos, aliases: &[&str]| Now {
            is_nanos,
            signature: Signature::nullary(Volatility::Stable),
            aliases: aliases.iter().map(|alias| (*alias).to_owned()).collect(),
        };
        [of(false, &["current_timestamp", "systimestamp", "sysdate"]), of(true, &["systimestamp_ns"])]
    }

    fn value(&self, now: DateTime<Utc>) -> ScalarValue {
        match self.is_nanos {
            // Nanoseconds of years past 2262 do not fit.
            true => ScalarValue::TimestampNanosecond(now.timestamp_nanos_opt(), None),
            false => ScalarValue::TimestampMicrosecond(Some(now.timestamp_micros()), None),
        }
    }

    fn data_type(&self) -> DataType {
        DataType::Timestamp(if self.is_nanos { TimeUnit::Nanosecond } else { TimeUnit::Microsecond }, None)
    }
}

impl ScalarUDFImpl for Now {
    fn name(&self) -> &'static str {
        if self.is_nanos { "now_ns" } else { "now" }
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.data_type())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs) -> Result<FieldRef> {
        let field = Field::new(self.name(), self.data_type(), true);
        Ok(Arc::new(door::of_instants(field)))
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        Ok(match info.query_execution_start_time() {
            Some(now) => {
                let metadata = Some(door::instant_metadata().into());
                ExprSimplifyResult::Simplified(Expr::Literal(self.value(now), metadata))
            }
            None => ExprSimplifyResult::Original(args),
        })
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Err(crate::Error::internal("now() was not replaced by the time").into())
    }
}
