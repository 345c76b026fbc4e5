//! Pairs each left row with the right rows whose time is in its window.
//!
//! In: both sides in order of time, the left one with the bounds of its windows as numbers. Out: in order of the left
//! side, a row for each pair, or one without a right side; the number of the left row; whether it is a pair. The right
//! side is held in memory, the left one streams, and so do the pairs. NULL equals no key; a row without a time, or with
//! a bound that is NULL, has no window.

use super::keys::{Keys, NONE};
use super::operator::{Operation, Run};
use super::time_join::{key_types, pairs};
use super::{BATCH_ROWS, collected, nanos, ticks};
use crate::plan::{WindowJoinColumns, WindowJoinSpec};
use datafusion::arrow::array::{Array, ArrayRef, BooleanArray, Int64Array, RecordBatch, UInt32Array};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::MemoryReservation;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(crate) struct WindowJoin {
    pub spec: WindowJoinSpec,
    pub columns: WindowJoinColumns,
    pub schema: SchemaRef,
}

impl Operation for WindowJoin {
    const NAME: &'static str = "WindowJoinExec";
    const IS_INCREMENTAL: bool = true;

    fn schema(&self, _: &[SchemaRef]) -> SchemaRef {
        self.schema.clone()
    }

    fn in_order_of(&self) -> Vec<usize> {
        vec![self.columns.times.0, self.columns.times.1]
    }

    fn out_in_order_of(&self) -> Vec<usize> {
        vec![self.columns.times.0, self.schema.fields().len() - 2]
    }

    fn describe(&self, inputs: &[SchemaRef], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prevailing = if self.spec.includes_prevailing { "included" } else { "excluded" };
        write!(f, ": keys=[{}], prevailing {prevailing}", pairs(&self.columns.keys, inputs))
    }

    fn run(&self, inputs: Vec<SendableRecordBatchStream>, run: Run) -> BoxStream<'static, Result<RecordBatch>> {
        let join = self.clone();
        let rows = async move {
            let Run { mut memory, cancel, .. } = run;
            let [left, right] =
                <[_; 2]>::try_from(inputs).map_err(|_| crate::Error::internal("a WINDOW JOIN has two inputs"))?;
            let left_schema = left.schema();
            let right = collected(right, &mut memory).await?;
            let joiner = Arc::new(Joiner::new(&left_schema, right, join, memory)?);
            let mut first = 0;
            let batches = left.map(move |batch| {
                let left = Left::of(batch?, &joiner, first)?;
                first += left.batch.num_rows() as i64;
                let cancel = cancel.clone();
                let mut left = left;
                let joiner = joiner.clone();
                Ok::<_, datafusion::common::DataFusionError>(futures::stream::iter(std::iter::from_fn(move || {
                    if let Err(error) = cancel.check() {
                        left.row = left.batch.num_rows();
                        return Some(Err(error.into()));
                    }
                    joiner.next_batch(&mut left).transpose()
                })))
            });
            Ok::<_, datafusion::common::DataFusionError>(batches.try_flatten())
        };
        futures::stream::once(rows).try_flatten().boxed()
    }
}

struct Joiner {
    join: WindowJoin,
    right: RecordBatch,
    keys: Keys,
    /// Of each key where its rows are.
    starts: Vec<u32>,
    /// Right rows by key, within one in order of time, and their times.
    rows: Vec<u32>,
    times: Vec<i128>,
    _memory: MemoryReservation,
}

/// A left batch and how far it has come.
struct Left {
    batch: RecordBatch,
    keys: Vec<u32>,
    times: Vec<Option<i128>>,
    bounds: [Int64Array; 2],
    /// The number of the batch's first row.
    first: i64,
    row: usize,
    /// What is left of the row's window, once it is known.
    window: Option<Range<usize>>,
}

impl Left {
    fn of(batch: RecordBatch, joiner: &Joiner, first: i64) -> Result<Left> {
        let columns = &joiner.join.columns;
        let key_columns: Vec<ArrayRef> = columns.keys.iter().map(|(l, _)| batch.column(*l).clone()).collect();
        let keys = joiner.keys.found(&key_columns, batch.num_rows())?;
        let times = nanos(&batch, columns.times.0)?;
        let bounds = [ticks(&batch, columns.bounds[0])?, ticks(&batch, columns.bounds[1])?];
        Ok(Left { batch, keys, times, bounds, first, row: 0, window: None })
    }
}

impl Joiner {
    fn new(left: &SchemaRef, right: RecordBatch, join: WindowJoin, memory: MemoryReservation) -> Result<Joiner> {
        memory.try_grow(right.num_rows() * 48)?;
        let columns = &join.columns;
        let mut keys = Keys::new(key_types(&columns.keys, left, right.schema_ref()))?;
        let key_columns: Vec<ArrayRef> = columns.keys.iter().map(|(_, r)| right.column(*r).clone()).collect();
        let key_of = keys.numbered_without_null(&key_columns, right.num_rows())?;
        memory.try_grow(keys.size())?;
        let all_times = nanos(&right, columns.times.1)?;
        // Rows without a time are in no window.
        let counts = |row: usize| key_of[row] != NONE && all_times[row].is_some();
        let mut starts = vec![0_u32; keys.count() + 1];
        (0..key_of.len()).filter(|row| counts(*row)).for_each(|row| starts[key_of[row] as usize + 1] += 1);
        for key in 1..starts.len() {
            starts[key] += starts[key - 1];
        }
        let mut places = starts.clone();
        let count = starts.last().copied().unwrap_or_default() as usize;
        let (mut rows, mut times) = (vec![0; count], vec![0; count]);
        for row in (0..key_of.len()).filter(|row| counts(*row)) {
            let place = &mut places[key_of[row] as usize];
            rows[*place as usize] = row as u32;
            times[*place as usize] = all_times[row].unwrap_or_default();
            *place += 1;
        }
        Ok(Joiner { join, right, keys, starts, rows, times, _memory: memory })
    }

    /// Where in `rows` the window of a left row is.
    fn window(&self, left: &Left) -> Range<usize> {
        let row = left.row;
        let (key, time) = (left.keys[row], left.times[row]);
        let (Some(time), true) = (time, key != NONE && left.bounds.iter().all(|b| b.is_valid(row))) else {
            return 0..0;
        };
        let bound = |side: usize| {
            time.saturating_add(i128::from(left.bounds[side].value(row)) * i128::from(self.join.spec.units[side]))
        };
        let (lo, hi) = (bound(0), bound(1));
        let own = self.starts[key as usize] as usize..self.starts[key as usize + 1] as usize;
        let times = &self.times[own.clone()];
        let mut from = times.partition_point(|t| *t < lo);
        let to = times.partition_point(|t| *t <= hi);
        let starts_inside = times.get(from).is_some_and(|t| *t == lo);
        if self.join.spec.includes_prevailing && from > 0 && !starts_inside && lo <= hi {
            from -= 1;
        }
        own.start + from..own.start + to.max(from)
    }

    /// The next pairs of a left batch; none at its end.
    fn next_batch(&self, left: &mut Left) -> Result<Option<RecordBatch>> {
        let (mut lefts, mut rights) = (Vec::with_capacity(BATCH_ROWS), Vec::with_capacity(BATCH_ROWS));
        while lefts.len() < BATCH_ROWS && left.row < left.batch.num_rows() {
            let row = left.row as u32;
            let (mut window, is_new) = match left.window.take() {
                Some(window) => (window, false),
                None => (self.window(left), true),
            };
            if is_new && window.is_empty() {
                lefts.push(row);
                rights.push(None);
            }
            let count = window.len().min(BATCH_ROWS - lefts.len().min(BATCH_ROWS));
            lefts.extend(std::iter::repeat_n(row, count));
            rights.extend(self.rows[window.start..window.start + count].iter().copied().map(Some));
            window.start += count;
            if window.is_empty() { left.row += 1 } else { left.window = Some(window) }
        }
        if lefts.is_empty() {
            return Ok(None);
        }
        self.paired(left, lefts, rights).map(Some)
    }

    fn paired(&self, left: &Left, lefts: Vec<u32>, rights: Vec<Option<u32>>) -> Result<RecordBatch> {
        let numbers = Int64Array::from_iter_values(lefts.iter().map(|row| left.first + i64::from(*row)));
        let are_pairs = BooleanArray::from_iter(rights.iter().map(|row| Some(row.is_some())));
        let (lefts, rights) = (UInt32Array::from(lefts), UInt32Array::from(rights));
        let columns = left.batch.columns().iter().map(|c| take(c, &lefts, None));
        let columns = columns.chain(self.right.columns().iter().map(|c| take(c, &rights, None)));
        let mut columns = columns.collect::<Result<Vec<_>, _>>()?;
        columns.push(Arc::new(numbers));
        columns.push(Arc::new(are_pairs));
        Ok(RecordBatch::try_new(self.join.schema.clone(), columns)?)
    }
}
