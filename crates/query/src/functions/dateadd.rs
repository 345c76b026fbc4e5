//! `dateadd('d', n, ts)`: a timestamp so many units on; a day that its month does not have is the month's last.

use super::times::{self, letter};
use crate::Error;
use crate::calendar::Stride;
use datafusion::arrow::array::{Array, AsArray, Int64Array};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct DateAdd {
    signature: Signature,
}

impl DateAdd {
    pub fn new() -> DateAdd {
        DateAdd { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for DateAdd {
    fn name(&self) -> &'static str {
        "dateadd"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [_, _, time] = types else {
            return Err(Error::invalid("dateadd takes a unit, a number and a timestamp").into());
        };
        Ok(vec![DataType::Utf8, DataType::Int64, times::timestamp_type(time, "dateadd")?])
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        times::timestamp_type(&types[2], "dateadd")
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(unit) = letter(&args.args[0], "dateadd")? else { return times::null(args.return_type()) };
        let time_unit = times::unit(args.return_type())?;
        let is_scalar = args.args.iter().all(|a| matches!(a, ColumnarValue::Scalar(_)));
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let counts = arrays[1].as_primitive::<Int64Type>();
        let times = times::ticks(&arrays[2])?;
        let mut out = Vec::with_capacity(times.len());
        for row in 0..times.len() {
            if counts.is_null(row) || times.is_null(row) {
                out.push(None);
                continue;
            }
            let stride = Stride { count: counts.value(row), unit };
            let sum = stride.add_to(times.value(row), 1, time_unit);
            out.push(Some(sum.ok_or_else(|| Error::invalid("timestamp out of range"))?));
        }
        times::from_ticks(&Int64Array::from(out), args.return_type(), is_scalar)
    }
}
