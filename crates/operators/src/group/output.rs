//! Writes the state of groups as columns.

use super::keys::Word;
use super::shared::Shared;
use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchOptions};
use arrow::compute::cast;
use arrow::datatypes::{DataType, SchemaRef};
use arrow::error::ArrowError;
use std::sync::Arc;
use tidalite_kernels::{GroupTable, float_of_order, order_of_float};

/// Largest number of groups of a record batch.
const BATCH_GROUPS: usize = 8_192;

/// A column of aggregates.
#[derive(Clone, Debug)]
pub struct Output {
    pub kind: OutputKind,
    pub data_type: DataType,
}

/// The words of a group from which the value is computed. The value is NULL if `present` is 0.
#[derive(Clone, Debug)]
pub enum OutputKind {
    Count(usize),
    /// The sum of integers, with `plus` added to each.
    Sum {
        sum: usize,
        present: usize,
        plus: i64,
    },
    SumOfFloats {
        sum: usize,
        present: usize,
        is_mean: bool,
    },
    /// The minimum or the maximum.
    Bound {
        bound: usize,
        present: usize,
        is_float: bool,
    },
    /// The value of the selected row.
    Picked {
        value: usize,
        present: usize,
        is_float: bool,
    },
}

pub(super) fn batches<W: Word>(
    table: &GroupTable<W>,
    shared: &Shared<W>,
    outputs: &[Output],
    schema: &SchemaRef,
) -> Vec<Result<RecordBatch, ArrowError>> {
    let words = shared.folds.words();
    let groups = (0..table.len()).step_by(BATCH_GROUPS);
    let batch = |from: usize| {
        let count = BATCH_GROUPS.min(table.len() - from);
        let states = &table.states()[from * words..(from + count) * words];
        batch(&table.keys()[from..from + count], states, shared, outputs, schema)
    };
    groups.map(batch).collect()
}

fn batch<W: Word>(
    keys: &[W],
    states: &[u64],
    shared: &Shared<W>,
    outputs: &[Output],
    schema: &SchemaRef,
) -> Result<RecordBatch, ArrowError> {
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(schema.fields().len());
    let mut shift = 0;
    for ((kind, numbered), field) in shared.kinds.iter().zip(&shared.numbered).zip(schema.fields()) {
        columns.push(kind.unpack(keys, shift, numbered.as_ref(), field.data_type())?);
        shift += kind.bits();
    }
    let groups = Groups { states, words: shared.folds.words(), count: keys.len() };
    for output in outputs {
        columns.push(output.column(&groups)?);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(keys.len()));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options)
}

impl OutputKind {
    /// Returns a value of the group that sorts like the output. −0 equals 0.
    #[inline]
    pub(super) fn value(&self, state: &[u64]) -> Option<i64> {
        match *self {
            OutputKind::Count(rows) => Some(state[rows].cast_signed()),
            OutputKind::Sum { sum, present, plus } => {
                let sum = summed(state[sum], state[present], plus)?;
                Some(i64::try_from(sum).unwrap_or(if sum < 0 { i64::MIN } else { i64::MAX }))
            }
            OutputKind::SumOfFloats { sum, present, is_mean } => {
                summed_float(state[sum], state[present], is_mean).map(|v| order_of_float(v + 0.0))
            }
            OutputKind::Bound { bound, present, is_float } => {
                let bound = Some(state[bound].cast_signed()).filter(|_| state[present] > 0)?;
                Some(if is_float && bound == order_of_float(-0.0) { order_of_float(0.0) } else { bound })
            }
            OutputKind::Picked { value, present, is_float } => {
                let value = Some(state[value]).filter(|_| state[present] > 0)?;
                Some(if is_float { order_of_float(f64::from_bits(value) + 0.0) } else { value.cast_signed() })
            }
        }
    }
}

#[inline]
fn summed(sum: u64, present: u64, plus: i64) -> Option<i128> {
    (present > 0).then(|| i128::from(sum.cast_signed()) + i128::from(plus) * i128::from(present))
}

/// Returns the sum or the mean, with every NaN replaced by the canonical one.
#[inline]
fn summed_float(sum: u64, present: u64, is_mean: bool) -> Option<f64> {
    let divisor = if is_mean { present as f64 } else { 1.0 };
    let value = f64::from_bits(sum) / divisor;
    (present > 0).then_some(if value.is_nan() { f64::NAN } else { value })
}

struct Groups<'a> {
    states: &'a [u64],
    words: usize,
    count: usize,
}

impl<'a> Groups<'a> {
    fn word(&self, at: usize) -> impl Iterator<Item = u64> + 'a {
        let (states, words) = (self.states, self.words);
        (0..self.count).map(move |group| states[group * words + at])
    }
}

impl Output {
    fn column(&self, groups: &Groups<'_>) -> Result<ArrayRef, ArrowError> {
        let column: ArrayRef = match self.kind {
            OutputKind::Count(rows) => {
                return Ok(Arc::new(Int64Array::from_iter_values(groups.word(rows).map(u64::cast_signed))));
            }
            OutputKind::Sum { sum, present, plus } => {
                let sums = groups.word(sum).zip(groups.word(present));
                let past_end = |_| ArrowError::ComputeError("value out of range: the sum does not fit LONG".to_owned());
                let long = |sum: i128| i64::try_from(sum).map_err(past_end);
                let sums = sums.map(|(sum, present)| summed(sum, present, plus).map(long).transpose());
                Arc::new(sums.collect::<Result<Int64Array, ArrowError>>()?)
            }
            OutputKind::SumOfFloats { sum, present, is_mean } => {
                let sums = groups.word(sum).zip(groups.word(present));
                Arc::new(sums.map(|(sum, present)| summed_float(sum, present, is_mean)).collect::<Float64Array>())
            }
            OutputKind::Bound { bound, present, is_float: false } => {
                let bounds = groups.word(bound).zip(groups.word(present));
                Arc::new(bounds.map(|(v, present)| (present > 0).then(|| v.cast_signed())).collect::<Int64Array>())
            }
            OutputKind::Bound { bound, present, is_float: true } => {
                let bounds = groups.word(bound).zip(groups.word(present));
                let values = bounds.map(|(v, present)| (present > 0).then(|| float_of_order(v.cast_signed())));
                Arc::new(values.collect::<Float64Array>())
            }
            OutputKind::Picked { value, present, is_float: false } => {
                let picked = groups.word(value).zip(groups.word(present));
                Arc::new(picked.map(|(v, present)| (present > 0).then(|| v.cast_signed())).collect::<Int64Array>())
            }
            OutputKind::Picked { value, present, is_float: true } => {
                let picked = groups.word(value).zip(groups.word(present));
                Arc::new(picked.map(|(v, present)| (present > 0).then(|| f64::from_bits(v))).collect::<Float64Array>())
            }
        };
        if self.data_type == DataType::Date32 {
            return cast(&cast(&column, &DataType::Int32)?, &DataType::Date32);
        }
        cast(&column, &self.data_type)
    }
}
