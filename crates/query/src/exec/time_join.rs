//! Joins rows of two inputs by time: ASOF, LT, SPLICE.
//!
//! In: both sides in order of time. Out: in order of time; ASOF and LT one row for each left row. One pass over both
//! sides keeps the latest right row of each key. The right side is held in memory, the left one streams (but for SPLICE,
//! which holds both). NULL equals no key, and a row without a time has no partner.

use super::keys::{Keys, NONE};
use super::operator::{Operation, Run};
use super::{BATCH_ROWS, collected, nanos};
use crate::calendar::Stride;
use crate::plan::{Kind, TimeJoinColumns, TimeJoinSpec};
use datafusion::arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use std::fmt;

#[derive(Clone, Debug)]
pub(crate) struct TimeJoin {
    pub spec: TimeJoinSpec,
    pub columns: TimeJoinColumns,
    pub schema: SchemaRef,
}

impl Operation for TimeJoin {
    const NAME: &'static str = "TimeJoinExec";
    const IS_INCREMENTAL: bool = true;

    fn schema(&self, _: &[SchemaRef]) -> SchemaRef {
        self.schema.clone()
    }

    fn in_order_of(&self) -> Vec<usize> {
        vec![self.columns.times.0, self.columns.times.1]
    }

    /// SPLICE has rows of either side: no one column is in order.
    fn out_in_order_of(&self) -> Vec<usize> {
        if self.spec.kind == Kind::Splice { Vec::new() } else { vec![self.columns.times.0] }
    }

    fn describe(&self, inputs: &[SchemaRef], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ": kind={:?}, keys=[{}]", self.spec.kind, pairs(&self.columns.keys, inputs))?;
        match self.spec.tolerance {
            Some(Stride { count, unit }) => write!(f, ", tolerance={count} {unit:?}"),
            None => Ok(()),
        }
    }

    fn run(&self, inputs: Vec<SendableRecordBatchStream>, run: Run) -> BoxStream<'static, Result<RecordBatch>> {
        let join = self.clone();
        let rows = async move {
            let Run { mut memory, cancel, .. } = run;
            let [left, right] =
                <[_; 2]>::try_from(inputs).map_err(|_| crate::Error::internal("a join by time has two inputs"))?;
            let left_schema = left.schema();
            let right = collected(right, &mut memory).await?;
            // The left side of a SPLICE as one batch, of the others as it comes.
            let (left, whole) = if join.spec.kind == Kind::Splice {
                (futures::stream::empty().boxed(), Some(collected(left, &mut memory).await?))
            } else {
                (left.boxed(), None)
            };
            let mut join = Joiner::new(&left_schema, right, join, memory)?;
            let spliced = whole.map_or_else(|| Ok(Vec::new()), |whole| join.spliced(&whole))?;
            let joined = left.map(move |batch| {
                cancel.check()?;
                join.joined(&batch?)
            });
            let out = joined.chain(futures::stream::iter(spliced.into_iter().map(Ok)));
            Ok::<_, datafusion::common::DataFusionError>(out)
        };
        futures::stream::once(rows).try_flatten().boxed()
    }
}

/// Keys of two inputs as EXPLAIN shows them.
pub(super) fn pairs(keys: &[(usize, usize)], inputs: &[SchemaRef]) -> String {
    let pair = |(l, r): &(usize, usize)| format!("{} = {}", inputs[0].field(*l).name(), inputs[1].field(*r).name());
    keys.iter().map(pair).collect::<Vec<_>>().join(", ")
}

/// The types that keys of two inputs are compared as.
pub(super) fn key_types(keys: &[(usize, usize)], left: &SchemaRef, right: &SchemaRef) -> Vec<DataType> {
    let types = keys.iter().map(|(l, r)| {
        let (l, r) = (left.field(*l).data_type(), right.field(*r).data_type());
        comparison_coercion(l, r).unwrap_or_else(|| l.clone())
    });
    types.collect()
}

struct Joiner {
    spec: TimeJoinSpec,
    columns: TimeJoinColumns,
    schema: SchemaRef,
    right: RecordBatch,
    times: Vec<Option<i128>>,
    keys: Keys,
    right_keys: Vec<u32>,
    /// For each key the latest right row so far.
    last: Vec<u32>,
    at: usize,
    _memory: MemoryReservation,
}

impl Joiner {
    fn new(left: &SchemaRef, right: RecordBatch, join: TimeJoin, memory: MemoryReservation) -> Result<Joiner> {
        let TimeJoin { spec, columns, schema } = join;
        memory.try_grow(right.num_rows() * 36)?;
        let mut keys = Keys::new(key_types(&columns.keys, left, right.schema_ref()))?;
        let times = nanos(&right, columns.times.1)?;
        let key_columns: Vec<ArrayRef> = columns.keys.iter().map(|(_, r)| right.column(*r).clone()).collect();
        let right_keys = keys.numbered_without_null(&key_columns, right.num_rows())?;
        memory.try_grow(keys.size())?;
        let last = vec![NONE; keys.count()];
        Ok(Joiner { spec, columns, schema, right, times, keys, right_keys, last, at: 0, _memory: memory })
    }

    fn left_keys(&self, left: &RecordBatch) -> Vec<ArrayRef> {
        self.columns.keys.iter().map(|(l, _)| left.column(*l).clone()).collect()
    }

    /// The right row for a left one of this key and time; times ascend from call to call.
    fn partner(&mut self, key: u32, time: Option<i128>) -> u32 {
        let Some(time) = time else { return NONE };
        while let Some(right) = self.times.get(self.at).copied() {
            let is_earlier =
                right.is_some_and(|right| if self.spec.kind == Kind::Lt { right < time } else { right <= time });
            // Rows without a time come last.
            if !is_earlier {
                break;
            }
            let right_key = self.right_keys[self.at];
            if right_key != NONE {
                self.last[right_key as usize] = self.at as u32;
            }
            self.at += 1;
        }
        let row = if key == NONE { NONE } else { self.last[key as usize] };
        let is_too_old = |row: u32| match (self.spec.tolerance, self.times[row as usize]) {
            (Some(Stride { count, unit }), Some(right)) => time - right > unit.nanos().unwrap_or(0) * i128::from(count),
            _ => false,
        };
        if row != NONE && is_too_old(row) { NONE } else { row }
    }

    fn joined(&mut self, left: &RecordBatch) -> Result<RecordBatch> {
        let keys = self.keys.found(&self.left_keys(left), left.num_rows())?;
        let times = nanos(left, self.columns.times.0)?;
        let mut rows = Vec::with_capacity(keys.len());
        for (key, time) in keys.into_iter().zip(times) {
            let row = self.partner(key, time);
            rows.push((row != NONE).then_some(row));
        }
        let rows = UInt32Array::from(rows);
        let mut columns = left.columns().to_vec();
        for column in self.right.columns() {
            columns.push(take(column, &rows, None)?);
        }
        Ok(RecordBatch::try_new(self.schema.clone(), columns)?)
    }

    /// All rows of both sides, each with the latest of the other; a right row that is met by a left one of the same time
    /// and key is in that row already.
    fn spliced(&mut self, left: &RecordBatch) -> Result<Vec<RecordBatch>> {
        let columns = self.left_keys(left);
        let left_keys = self.keys.numbered_without_null(&columns, left.num_rows())?;
        self.last.resize(self.keys.count(), NONE);
        let left_times = nanos(left, self.columns.times.0)?;
        let mut left_last = vec![NONE; self.last.len()];
        let mut is_met = vec![false; self.right.num_rows()];
        let (mut pairs, mut l, mut r) = (Vec::<(u32, u32)>::new(), 0, 0);
        let later = |time: Option<i128>| time.unwrap_or(i128::MAX);
        while l < left_times.len() || r < self.times.len() {
            let takes_left =
                l < left_times.len() && (r >= self.times.len() || later(left_times[l]) <= later(self.times[r]));
            if takes_left {
                let (key, time) = (left_keys[l], left_times[l]);
                let row = self.partner(key, time);
                if row != NONE && self.times[row as usize] == time {
                    is_met[row as usize] = true;
                }
                pairs.push((l as u32, row));
                if key != NONE && time.is_some() {
                    left_last[key as usize] = l as u32;
                }
                l += 1;
            } else {
                let key = self.right_keys[r];
                let before = if key == NONE || self.times[r].is_none() { NONE } else { left_last[key as usize] };
                if !is_met[r] {
                    pairs.push((before, r as u32));
                }
                r += 1;
            }
        }
        pairs.chunks(BATCH_ROWS).map(|pairs| self.paired(left, pairs)).collect()
    }

    fn paired(&self, left: &RecordBatch, pairs: &[(u32, u32)]) -> Result<RecordBatch> {
        let optional = |row: u32| (row != NONE).then_some(row);
        let lefts = UInt32Array::from_iter(pairs.iter().map(|p| optional(p.0)));
        let rights = UInt32Array::from_iter(pairs.iter().map(|p| optional(p.1)));
        let columns = left.columns().iter().map(|c| take(c, &lefts, None));
        let columns = columns.chain(self.right.columns().iter().map(|c| take(c, &rights, None)));
        Ok(RecordBatch::try_new(self.schema.clone(), columns.collect::<Result<_, _>>()?)?)
    }
}
