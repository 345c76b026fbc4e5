//! `pg_sleep(seconds)` of PostgreSQL and `sleep(seconds)` of QuestDB, which returns the time of its end: they wait
//! without blocking a thread, so that a cancelled statement stops at once.

use super::session::now;
use crate::{Error, door};
use async_trait::async_trait;
use datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch, StringViewArray, TimestampMicrosecondArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type, Schema, SchemaRef};
use datafusion::catalog::streaming::StreamingTable;
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{Result, ScalarValue};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::async_udf::{AsyncScalarUDF, AsyncScalarUDFImpl};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use std::sync::Arc;
use std::time::Duration;
use tidalite_types::{ColumnType, TimeUnit};

/// Maximum duration; the statement timeout is usually shorter.
const SECONDS_MAX: f64 = 86_400.0;
pub(crate) const SLEEP: &str = "sleep";

pub(super) fn functions() -> [ScalarUDF; 2] {
    [false, true].map(|shows_end| {
        let signature = Signature::exact(vec![DataType::Float64], Volatility::Volatile);
        AsyncScalarUDF::new(Arc::new(Sleep { shows_end, signature })).into_scalar_udf()
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Sleep {
    /// True for QuestDB's function.
    shows_end: bool,
    signature: Signature,
}

fn time_field(name: &str) -> FieldRef {
    door::field(name, ColumnType::Timestamp(TimeUnit::Micros), true)
}

/// Returns the duration of QuestDB's function.
fn duration(seconds: f64) -> crate::Result<Duration> {
    match (0.0..=SECONDS_MAX).contains(&seconds) {
        true => Ok(Duration::from_secs_f64(seconds)),
        false => Err(Error::invalid(format!("sleep takes 0 to {SECONDS_MAX} seconds, not {seconds}")).about(SLEEP)),
    }
}

impl ScalarUDFImpl for Sleep {
    fn name(&self) -> &'static str {
        if self.shows_end { SLEEP } else { "pg_sleep" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(if self.shows_end { time_field("").data_type().clone() } else { DataType::Utf8View })
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs) -> Result<FieldRef> {
        if self.shows_end {
            return Ok(time_field(self.name()));
        }
        Ok(Arc::new(door::pg_field(self.name(), tidalite_types::pg_type::VOID)))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Err(Error::internal(format!("{} is asynchronous", self.name())).into())
    }
}

#[async_trait]
impl AsyncScalarUDFImpl for Sleep {
    async fn invoke_async_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let seconds = args.args[0].to_array(rows)?;
        let seconds = seconds.as_primitive::<Float64Type>();
        if !self.shows_end {
            for seconds in seconds.iter().flatten().filter(|s| *s > 0.0) {
                tokio::time::sleep(Duration::from_secs_f64(seconds.min(SECONDS_MAX))).await;
            }
            let done: ArrayRef = Arc::new(StringViewArray::from_iter_values(std::iter::repeat_n("", rows)));
            return Ok(ColumnarValue::Array(done));
        }
        let mut ends = Vec::with_capacity(rows);
        for seconds in seconds {
            match seconds {
                Some(seconds) => {
                    tokio::time::sleep(duration(seconds)?).await;
                    ends.push(Some(now()));
                }
                None => ends.push(None),
            }
        }
        Ok(ColumnarValue::Array(Arc::new(TimestampMicrosecondArray::from(ends))))
    }
}

/// The table function `sleep(seconds)`: one row, with the time of its end.
#[derive(Debug)]
pub(crate) struct SleepTable;

impl TableFunctionImpl for SleepTable {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let refused = || Error::invalid("sleep takes a number of seconds").about(SLEEP);
        let [Expr::Literal(value, _)] = args.exprs() else { return Err(refused().into()) };
        let seconds = match (value.data_type().is_numeric(), value.cast_to(&DataType::Float64)) {
            (true, Ok(ScalarValue::Float64(Some(seconds)))) => seconds,
            _ => return Err(refused().into()),
        };
        let field: Field = time_field(SLEEP).as_ref().clone();
        let schema = Arc::new(Schema::new(vec![door::named(&field, SLEEP)]));
        let row = SleepRow { duration: duration(seconds)?, schema: schema.clone() };
        Ok(Arc::new(StreamingTable::try_new(schema, vec![Arc::new(row)])?))
    }
}

#[derive(Debug)]
struct SleepRow {
    duration: Duration,
    schema: SchemaRef,
}

impl PartitionStream for SleepRow {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (schema, duration) = (self.schema.clone(), self.duration);
        let row = async move {
            tokio::time::sleep(duration).await;
            let end: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![now()]));
            Ok(RecordBatch::try_new(schema, vec![end])?)
        };
        Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), futures::stream::once(row)))
    }
}
