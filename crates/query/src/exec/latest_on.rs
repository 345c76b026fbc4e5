//! Of each key the latest row.
//!
//! In: rows in order of time, those of the same time in order of arrival. Out: the last row of each key, in the order
//! they came. Rows are given up when a later one of their key comes; what is kept is written together now and then, so
//! memory follows the number of keys.

use super::BATCH_ROWS;
use super::keys::Keys;
use super::operator::{Operation, Run};
use datafusion::arrow::array::{Array, ArrayRef, RecordBatch};
use datafusion::arrow::compute::interleave_record_batch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::MemoryReservation;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use std::fmt;

/// Rows kept beyond twice the number of keys before they are written together.
const SLACK_ROWS: usize = 65_536;
/// No batch.
const NOWHERE: (usize, usize) = (usize::MAX, 0);

/// The places of the columns.
#[derive(Clone, Debug)]
pub(crate) struct LatestOn {
    pub time: usize,
    pub keys: Vec<usize>,
}

impl Operation for LatestOn {
    const NAME: &'static str = "LatestOnExec";
    const IS_INCREMENTAL: bool = false;

    fn schema(&self, inputs: &[SchemaRef]) -> SchemaRef {
        inputs[0].clone()
    }

    fn in_order_of(&self) -> Vec<usize> {
        vec![self.time]
    }

    fn out_in_order_of(&self) -> Vec<usize> {
        vec![self.time]
    }

    fn describe(&self, inputs: &[SchemaRef], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |column: &usize| inputs[0].field(*column).name().as_str();
        let keys: Vec<&str> = self.keys.iter().map(name).collect();
        write!(f, ": time={}, keys=[{}]", name(&self.time), keys.join(", "))
    }

    fn run(&self, inputs: Vec<SendableRecordBatchStream>, run: Run) -> BoxStream<'static, Result<RecordBatch>> {
        let spec = self.clone();
        let rows = async move {
            let Run { schema, memory, cancel } = run;
            let mut inputs = inputs;
            let mut input = inputs.swap_remove(0);
            let mut latest = Latest::new(&schema, spec, memory)?;
            while let Some(batch) = input.next().await {
                cancel.check()?;
                latest.add(&batch?)?;
            }
            latest.written_together()?;
            let batch = latest.kept.pop().unwrap_or_else(|| RecordBatch::new_empty(schema));
            let slices = (0..batch.num_rows()).step_by(BATCH_ROWS);
            let slices: Vec<_> =
                slices.map(|from| Ok(batch.slice(from, BATCH_ROWS.min(batch.num_rows() - from)))).collect();
            Ok::<_, datafusion::common::DataFusionError>(futures::stream::iter(slices))
        };
        futures::stream::once(rows).try_flatten().boxed()
    }
}

struct Latest {
    schema: SchemaRef,
    spec: LatestOn,
    keys: Keys,
    /// Where the latest row of each key is: a batch that is kept and a row of it.
    places: Vec<(usize, usize)>,
    kept: Vec<RecordBatch>,
    kept_rows: usize,
    memory: MemoryReservation,
}

impl Latest {
    fn new(schema: &SchemaRef, spec: LatestOn, memory: MemoryReservation) -> Result<Latest> {
        let keys = Keys::new(spec.keys.iter().map(|k| schema.field(*k).data_type().clone()).collect())?;
        let (places, kept) = (Vec::new(), Vec::new());
        Ok(Latest { schema: schema.clone(), spec, keys, places, kept, kept_rows: 0, memory })
    }

    fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let columns: Vec<ArrayRef> = self.spec.keys.iter().map(|k| batch.column(*k).clone()).collect();
        let keys = self.keys.numbered(&columns, batch.num_rows())?;
        self.places.resize(self.keys.count(), NOWHERE);
        let time = batch.column(self.spec.time);
        // Only the last row of each key in the batch counts: the first that is met from behind.
        let index = self.kept.len();
        let mut rows = Vec::new();
        for row in (0..batch.num_rows()).rev().filter(|row| time.is_valid(*row)) {
            let place = &mut self.places[keys[row] as usize];
            if place.0 != index {
                *place = (index, row);
                rows.push(row);
            }
        }
        if rows.is_empty() {
            return Ok(());
        }
        rows.reverse();
        for (place, row) in rows.iter().enumerate() {
            self.places[keys[*row] as usize] = (index, place);
        }
        let picks: Vec<(usize, usize)> = rows.into_iter().map(|row| (0, row)).collect();
        self.kept.push(interleave_record_batch(&[batch], &picks)?);
        self.kept_rows += picks.len();
        if self.kept_rows > 2 * self.places.len() + SLACK_ROWS {
            self.written_together()?;
        }
        self.account()
    }

    fn account(&mut self) -> Result<()> {
        let kept: usize = self.kept.iter().map(RecordBatch::get_array_memory_size).sum();
        self.memory.try_resize(kept + self.keys.size() + self.places.len() * size_of::<(usize, usize)>())
    }

    /// Makes one batch of the rows that still are the latest.
    fn written_together(&mut self) -> Result<()> {
        if self.kept.is_empty() {
            return Ok(());
        }
        let mut places: Vec<&mut (usize, usize)> = self.places.iter_mut().filter(|p| **p != NOWHERE).collect();
        places.sort_unstable();
        let rows: Vec<(usize, usize)> = places.iter().map(|place| **place).collect();
        let batches: Vec<&RecordBatch> = self.kept.iter().collect();
        let together = interleave_record_batch(&batches, &rows)?;
        debug_assert_eq!(together.schema(), self.schema);
        for (row, place) in places.into_iter().enumerate() {
            *place = (0, row);
        }
        self.kept = vec![together];
        self.kept_rows = rows.len();
        Ok(())
    }
}
