//! Operators of ours, one per file. Most are plain: correct, in memory that is accounted for, and the twins that faster
//! ones ([`group`], [`latest_scan`], [`merged_join`], [`sorted`], [`windows`]) are tested against. [`operator`] is what they share, [`keys`] how
//! they tell keys apart, [`pieces`] how tables are read by those that choose their pieces themselves.

pub(crate) mod compact;
pub(crate) mod decoded;
pub(crate) mod fill;
pub(crate) mod group;
pub(crate) mod held;
pub(crate) mod in_order;
mod keys;
pub(crate) mod late_rows;
pub(crate) mod latest_on;
pub(crate) mod latest_scan;
pub(crate) mod merged_join;
mod once;
pub(crate) mod operator;
pub(crate) mod paced;
pub(crate) mod pass_through;
mod pieces;
pub(crate) mod series;
pub(crate) mod sliced;
pub(crate) mod sorted;
mod symbols_beside;
pub(crate) mod time_join;
pub(crate) mod turned;
pub(crate) mod wide_pieces;
pub mod width;
pub(crate) mod window_join;
pub(crate) mod windows;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch};
use datafusion::arrow::compute::{SortOptions, cast, concat_batches};
use datafusion::arrow::datatypes::{DataType, Int64Type, SchemaRef, TimeUnit as ArrowUnit};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, OrderingRequirements, PhysicalSortExpr};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder};
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use std::sync::Arc;

/// Rows of a batch that goes out.
const BATCH_ROWS: usize = 8_192;

/// Ascending order of a column of a schema.
fn by_time(schema: &SchemaRef, column: usize) -> PhysicalSortExpr {
    let options = SortOptions { descending: false, nulls_first: false };
    PhysicalSortExpr::new(Arc::new(Column::new(schema.field(column).name(), column)), options)
}

fn required(schema: &SchemaRef, column: usize) -> Option<OrderingRequirements> {
    LexOrdering::new([by_time(schema, column)]).map(Into::into)
}

fn ticks(batch: &RecordBatch, column: usize) -> Result<Int64Array> {
    Ok(cast(batch.column(column), &DataType::Int64)?.as_primitive::<Int64Type>().clone())
}

/// Memory of a batch's rows, also where they are some of the rows that its memory has.
fn bytes_of(batch: &RecordBatch) -> usize {
    let of = |column: &ArrayRef| {
        let part = column.to_data().get_slice_memory_size();
        part.unwrap_or_else(|_| column.get_array_memory_size())
    };
    batch.columns().iter().map(of).sum()
}

/// Whether what failed did for want of memory.
fn is_want_of_memory(error: &DataFusionError) -> bool {
    matches!(error.find_root(), DataFusionError::ResourcesExhausted(_))
}

/// Returns true if the error asks for wider sums.
fn is_of_sum(error: &DataFusionError) -> bool {
    match error.find_root() {
        DataFusionError::External(inner) => inner.downcast_ref::<crate::Error>().is_some_and(|own| own.is_of_sum),
        _ => false,
    }
}

/// All rows of a stream as one batch, their memory reserved.
async fn collected(mut stream: SendableRecordBatchStream, memory: &mut MemoryReservation) -> Result<RecordBatch> {
    let schema = stream.schema();
    let mut batches = Vec::new();
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        // Once as it came and once beside the others.
        memory.try_grow(2 * batch.get_array_memory_size())?;
        batches.push(batch);
    }
    let all = concat_batches(&schema, &batches)?;
    debug_assert!(all.columns().iter().all(|c| c.len() == all.num_rows()));
    Ok(all)
}

/// The rows of one batch in batches of the usual size, their memory reserved until the last one is out.
fn sliced(rows: RecordBatch, memory: MemoryReservation) -> Result<impl Stream<Item = Result<RecordBatch>> + Send> {
    memory.try_grow(rows.get_array_memory_size())?;
    let count = rows.num_rows();
    let slices = (0..count).step_by(BATCH_ROWS).map(move |from| {
        let _held = &memory;
        Ok(rows.slice(from, BATCH_ROWS.min(count - from)))
    });
    Ok(futures::stream::iter(slices))
}

/// The rows as they come, with the time that they take noted for EXPLAIN ANALYZE; that of their inputs is in it.
fn timed(
    mut rows: BoxStream<'static, Result<RecordBatch>>,
    metrics: &ExecutionPlanMetricsSet,
) -> BoxStream<'static, Result<RecordBatch>> {
    let time = MetricBuilder::new(metrics).subset_time("time_with_input", 0);
    futures::stream::poll_fn(move |context| {
        let _timer = time.timer();
        rows.poll_next_unpin(context)
    })
    .boxed()
}

/// In nanoseconds, so that columns of different units compare.
fn nanos(batch: &RecordBatch, column: usize) -> Result<Vec<Option<i128>>> {
    let array = batch.column(column);
    let factor = match array.data_type() {
        DataType::Timestamp(ArrowUnit::Second, _) => 1_000_000_000,
        DataType::Timestamp(ArrowUnit::Millisecond, _) => 1_000_000,
        DataType::Timestamp(ArrowUnit::Microsecond, _) => 1_000,
        _ => 1,
    };
    let ticks = cast(array, &DataType::Int64)?;
    Ok(ticks.as_primitive::<Int64Type>().iter().map(|t| t.map(|t| i128::from(t) * factor)).collect())
}
