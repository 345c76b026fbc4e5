//! `today()`, `yesterday()`, `tomorrow()`, `interval(lo, hi)`: only after IN, where they become ranges
//! ([`crate::plan::time_ranges`]).

use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct IntervalWord {
    name: &'static str,
    signature: Signature,
}

impl IntervalWord {
    pub fn all() -> [IntervalWord; 5] {
        [(crate::dialect::INTERVAL, 1), ("today", 0), ("yesterday", 0), ("tomorrow", 0), (crate::dialect::RANGE, 2)]
            .map(|(name, count)| {
                let signature = match count {
                    0 => Signature::nullary(Volatility::Stable),
                    count => Signature::any(count, Volatility::Stable),
                };
                IntervalWord { name, signature }
            })
    }
}

impl ScalarUDFImpl for IntervalWord {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Err(crate::Error::invalid(format!("{}() is an interval and stands after IN", self.name)).into())
    }
}
