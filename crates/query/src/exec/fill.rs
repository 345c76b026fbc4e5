//! Makes up the rows of buckets that have none.
//!
//! In: rows of a bucket, keys and values, in order of the bucket. Out: for each bucket from the first to the last (or from
//! FROM to TO) a row for every key there is, keys in their order. Keys that come late have rows from the start, so all
//! rows are read before the first goes out; what goes out is made a batch at a time.

use super::keys::{Keys, NONE};
use super::operator::{Operation, Run};
use super::{BATCH_ROWS, collected, ticks};
use crate::calendar::Buckets;
use crate::plan::{Fill, FillSpec};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch, UInt32Array};
use datafusion::arrow::compute::{cast, interleave, take};
use datafusion::arrow::datatypes::{DataType, Float64Type, Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::MemoryReservation;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use std::fmt;
use std::sync::Arc;

impl Operation for FillSpec {
    const NAME: &'static str = "FillExec";
    const IS_INCREMENTAL: bool = false;

    fn schema(&self, inputs: &[SchemaRef]) -> SchemaRef {
        let fields = inputs[0].fields().iter().enumerate().map(|(at, field)| self.field(at, field));
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }

    fn in_order_of(&self) -> Vec<usize> {
        vec![0]
    }

    fn out_in_order_of(&self) -> Vec<usize> {
        vec![0]
    }

    fn describe(&self, _: &[SchemaRef], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ": keys={}, fills={:?}", self.keys, self.fills)
    }

    fn run(&self, inputs: Vec<SendableRecordBatchStream>, run: Run) -> BoxStream<'static, Result<RecordBatch>> {
        let spec = self.clone();
        let rows = async move {
            let Run { schema, mut memory, cancel } = run;
            let mut inputs = inputs;
            let input = inputs.swap_remove(0);
            let rows = collected(input, &mut memory).await?;
            let mut filler = Filler::new(rows, schema, spec, memory)?;
            let batches = std::iter::from_fn(move || match cancel.check() {
                Err(error) => Some(Err(error.into())),
                Ok(()) => filler.batch().transpose(),
            });
            Ok::<_, datafusion::common::DataFusionError>(futures::stream::iter(batches))
        };
        futures::stream::once(rows).try_flatten().boxed()
    }
}

/// One row that goes out.
struct Cell {
    bucket: i64,
    key: u32,
    /// The row it is, or none; then the rows of the key before and after it.
    row: u32,
    before: u32,
    after: u32,
}

struct Filler {
    rows: RecordBatch,
    /// Of what goes out.
    schema: SchemaRef,
    spec: FillSpec,
    buckets: Buckets,
    times: Int64Array,
    key_of: Vec<u32>,
    /// A row of each key, in the order of the keys.
    keys: Vec<u32>,
    /// The next row of the same key.
    next: Vec<u32>,
    // Where we are: the bucket to come and its end, the row to come, for each key its last row and its row now.
    bucket: Option<i64>,
    end: i64,
    at: usize,
    last: Vec<u32>,
    now: Vec<u32>,
    key: usize,
    _memory: MemoryReservation,
}

impl Filler {
    fn new(rows: RecordBatch, schema: SchemaRef, spec: FillSpec, memory: MemoryReservation) -> Result<Filler> {
        memory.try_grow(rows.num_rows() * 16)?;
        let times = ticks(&rows, 0)?;
        let (key_of, keys) = numbered(&rows, spec.keys)?;
        let mut buckets = spec.buckets;
        if spec.is_first {
            buckets.origin = (!times.is_empty()).then(|| times.value(0));
        }
        let mut next = vec![NONE; key_of.len()];
        let mut later = vec![NONE; keys.len()];
        for row in (0..key_of.len()).rev() {
            let key = key_of[row] as usize;
            next[row] = std::mem::replace(&mut later[key], row as u32);
        }
        let first = (!times.is_empty()).then(|| times.value(0));
        let last = (!times.is_empty()).then(|| times.value(times.len() - 1));
        let bucket = spec.from.map(|ts| buckets.range(ts).0).or(first);
        // The bucket that holds the last instant before TO, or the last row's.
        let end = spec.to.map(|ts| ts.saturating_sub(1)).or(last).unwrap_or(i64::MIN);
        Ok(Filler {
            last: vec![NONE; keys.len()],
            now: vec![NONE; keys.len()],
            bucket: bucket.filter(|bucket| *bucket <= end),
            buckets,
            times,
            key_of,
            keys,
            next,
            end,
            at: 0,
            key: 0,
            rows,
            schema,
            spec,
            _memory: memory,
        })
    }

    fn batch(&mut self) -> Result<Option<RecordBatch>> {
        let mut cells = Vec::with_capacity(BATCH_ROWS);
        while cells.len() < BATCH_ROWS {
            let Some(bucket) = self.bucket else { break };
            if self.key == 0 {
                self.enter(bucket);
            }
            while self.key < self.keys.len() && cells.len() < BATCH_ROWS {
                let (key, row, before) = (self.key, self.now[self.key], self.last[self.key]);
                let after = if before == NONE { NONE } else { self.next[before as usize] };
                cells.push(Cell { bucket, key: key as u32, row, before, after });
                self.key += 1;
            }
            if self.key == self.keys.len() {
                self.leave(bucket);
            }
        }
        if cells.is_empty() {
            return Ok(None);
        }
        self.made(&cells).map(Some)
    }

    fn enter(&mut self, bucket: i64) {
        while self.at < self.times.len() && self.times.value(self.at) <= bucket {
            self.now[self.key_of[self.at] as usize] = self.at as u32;
            self.at += 1;
        }
    }

    fn leave(&mut self, bucket: i64) {
        for (last, now) in self.last.iter_mut().zip(&mut self.now) {
            if *now != NONE {
                *last = std::mem::replace(now, NONE);
            }
        }
        self.key = 0;
        let next = self.buckets.range(bucket).1;
        // Rows have their own say, should the calendar be of another opinion.
        let next = if self.at < self.times.len() { next.min(self.times.value(self.at)) } else { next };
        self.bucket = (next > bucket && next <= self.end).then_some(next);
    }

    fn made(&self, cells: &[Cell]) -> Result<RecordBatch> {
        let times = Int64Array::from_iter_values(cells.iter().map(|c| c.bucket));
        let mut columns = vec![cast(&(Arc::new(times) as ArrayRef), self.rows.column(0).data_type())?];
        let keys = UInt32Array::from_iter_values(cells.iter().map(|c| self.keys[c.key as usize]));
        for key in 1..=self.spec.keys {
            columns.push(take(self.rows.column(key), &keys, None)?);
        }
        for (i, fill) in self.spec.fills.iter().enumerate() {
            columns.push(self.value(i, fill, cells)?);
        }
        Ok(RecordBatch::try_new(self.schema.clone(), columns)?)
    }

    fn value(&self, i: usize, fill: &Fill, cells: &[Cell]) -> Result<ArrayRef> {
        let column = |i: usize| self.rows.column(1 + self.spec.keys + i);
        let own = column(i);
        let optional = |row: u32| (row != NONE).then_some(row);
        Ok(match fill {
            Fill::Null => take(own, &UInt32Array::from_iter(cells.iter().map(|c| optional(c.row))), None)?,
            Fill::Prev(other) if *other == i => {
                let rows = cells.iter().map(|c| optional(c.row).or(optional(c.before)));
                take(own, &UInt32Array::from_iter(rows), None)?
            }
            Fill::Prev(other) => {
                let before = cells.iter().map(|c| optional(c.before));
                let before = take(column(*other), &UInt32Array::from_iter(before), None)?;
                mixed(own, &before, cells)?
            }
            Fill::Linear => mixed(own, &self.lines(own, cells)?, cells)?,
            // The column's type was not settled yet when the constant was read.
            Fill::Constant(value) => mixed(own, &cast(&value.to_array_of_size(cells.len())?, own.data_type())?, cells)?,
        })
    }

    /// Interpolates each cell linearly between the rows around it; integer results are rounded.
    fn lines(&self, column: &ArrayRef, cells: &[Cell]) -> Result<ArrayRef> {
        let values = cast(column, &DataType::Float64)?;
        let values = values.as_primitive::<Float64Type>();
        let is_integer = column.data_type().is_integer();
        let line = cells.iter().map(|c| {
            if c.before == NONE
                || c.after == NONE
                || values.is_null(c.before as usize)
                || values.is_null(c.after as usize)
            {
                return None;
            }
            let (from, to) = (values.value(c.before as usize), values.value(c.after as usize));
            let (start, end) = (self.times.value(c.before as usize), self.times.value(c.after as usize));
            let part = (c.bucket as f64 - start as f64) / (end as f64 - start as f64);
            let value = from + (to - from) * part;
            Some(if is_integer { value.round() } else { value })
        });
        Ok(cast(&(Arc::new(Float64Array::from_iter(line)) as ArrayRef), column.data_type())?)
    }
}

/// Rows where there are some, else what was made up for the cell.
fn mixed(own: &ArrayRef, made_up: &ArrayRef, cells: &[Cell]) -> Result<ArrayRef> {
    let picks: Vec<(usize, usize)> =
        cells.iter().enumerate().map(|(i, c)| if c.row == NONE { (1, i) } else { (0, c.row as usize) }).collect();
    Ok(interleave(&[own.as_ref(), made_up.as_ref()], &picks)?)
}

/// For each row the number of its key, and for each key one of its rows. Numbers follow the order of the keys, NULLs
/// last. Without key columns there is one key, whether there are rows or not.
fn numbered(rows: &RecordBatch, keys: usize) -> Result<(Vec<u32>, Vec<u32>)> {
    if keys == 0 {
        return Ok((vec![0; rows.num_rows()], vec![0]));
    }
    let columns = &rows.columns()[1..=keys];
    let mut known = Keys::new(columns.iter().map(|c| c.data_type().clone()).collect())?;
    let mut key_of = known.numbered(columns, rows.num_rows())?;
    let ranks = known.ranks();
    let mut row_of = vec![NONE; ranks.len()];
    for (row, key) in key_of.iter_mut().enumerate() {
        *key = ranks[*key as usize];
        if row_of[*key as usize] == NONE {
            row_of[*key as usize] = row as u32;
        }
    }
    Ok((key_of, row_of))
}
