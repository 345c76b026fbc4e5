//! Rows from the last to the first.
//!
//! In: rows in any order. Out: the same, the other way round. All are kept until the last has come.

use super::operator::{Operation, Run};
use super::{collected, sliced};
use datafusion::arrow::array::{RecordBatch, UInt32Array};
use datafusion::arrow::compute::take_record_batch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::execution::SendableRecordBatchStream;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use std::fmt;

#[derive(Clone, Debug)]
pub(crate) struct Turned;

impl Operation for Turned {
    const NAME: &'static str = "TurnedExec";
    const IS_INCREMENTAL: bool = false;

    fn schema(&self, inputs: &[SchemaRef]) -> SchemaRef {
        inputs[0].clone()
    }

    fn in_order_of(&self) -> Vec<usize> {
        Vec::new()
    }

    fn out_in_order_of(&self) -> Vec<usize> {
        Vec::new()
    }

    fn describe(&self, _: &[SchemaRef], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ": from the last to the first")
    }

    fn run(&self, mut inputs: Vec<SendableRecordBatchStream>, run: Run) -> BoxStream<'static, Result<RecordBatch>> {
        let rows = async move {
            let Run { mut memory, cancel, .. } = run;
            let rows = collected(inputs.swap_remove(0), &mut memory).await?;
            cancel.check()?;
            let backwards = UInt32Array::from_iter_values((0..rows.num_rows() as u32).rev());
            sliced(take_record_batch(&rows, &backwards)?, memory)
        };
        futures::stream::once(rows).try_flatten().boxed()
    }
}
