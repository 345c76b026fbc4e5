//! Makes the rows of a series: from a start on, step by step, up to an end. Out: one column, ascending when the step is.

use super::BATCH_ROWS;
use super::operator::{Operation, Run};
use crate::calendar::stride::add_months;
use crate::door;
use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, RecordBatchOptions};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;
use futures::stream::BoxStream;
use std::fmt;
use std::sync::Arc;
use tidalite_types::{ColumnType, TimeUnit};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Number(i64),
    /// Added one after the other, each to the value before, as PostgreSQL does: a month after the 31st is the last of the
    /// month, and what follows stays there.
    Time {
        months: i64,
        days: i64,
        ticks: i64,
        unit: TimeUnit,
    },
}

impl Step {
    /// `None` past the range.
    fn after(self, value: i64) -> Option<i64> {
        match self {
            Step::Number(step) => value.checked_add(step),
            Step::Time { months, days, ticks, unit } => {
                let moved = if months == 0 { value } else { add_months(value, months, unit)? };
                moved.checked_add(days.checked_mul(86_400 * unit.per_second())?)?.checked_add(ticks)
            }
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub column_type: ColumnType,
    pub start: i64,
    pub end: i64,
    pub step: Step,
    pub takes_end: bool,
    /// Without it only rows are counted.
    pub has_column: bool,
}

impl Made {
    pub fn with_schema(self, schema: SchemaRef) -> MadeExec {
        MadeExec { made: self, schema }
    }

    /// An upper bound of the rows.
    fn rows_max(&self) -> usize {
        let step = match self.step {
            Step::Number(step) => step.unsigned_abs(),
            Step::Time { .. } => self.step.after(self.start).map_or(u64::MAX, |next| next.abs_diff(self.start)),
        };
        let steps = self.end.abs_diff(self.start).checked_div(step).unwrap_or(0);
        usize::try_from(steps).map_or(usize::MAX, |steps| steps.saturating_add(1))
    }

    fn is_ascending(&self) -> bool {
        self.step.after(self.start).is_none_or(|next| next > self.start)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct MadeExec {
    made: Made,
    schema: SchemaRef,
}

impl MadeExec {
    /// An upper bound of the rows.
    pub fn rows_max(&self) -> usize {
        self.made.rows_max()
    }
}

impl Operation for MadeExec {
    const NAME: &'static str = "SeriesExec";
    const IS_INCREMENTAL: bool = true;

    fn schema(&self, _: &[SchemaRef]) -> SchemaRef {
        self.schema.clone()
    }

    fn in_order_of(&self) -> Vec<usize> {
        Vec::new()
    }

    fn out_in_order_of(&self) -> Vec<usize> {
        if self.made.has_column && self.made.is_ascending() { vec![0] } else { Vec::new() }
    }

    fn describe(&self, _: &[SchemaRef], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ": start={}, end={}, step={:?}", self.made.start, self.made.end, self.made.step)
    }

    fn run(&self, _: Vec<SendableRecordBatchStream>, run: Run) -> BoxStream<'static, Result<RecordBatch>> {
        let (made, mut next) = (self.made.clone(), Some(self.made.start));
        let batches = std::iter::from_fn(move || {
            if let Err(error) = run.cancel.check() {
                next = None;
                return Some(Err(error.into()));
            }
            let values = made.values(&mut next);
            (!values.is_empty()).then(|| batch(&made, values, &run.schema))
        });
        futures::stream::iter(batches).boxed()
    }
}

impl Made {
    fn values(&self, next: &mut Option<i64>) -> Vec<i64> {
        let is_ascending = self.is_ascending();
        let mut out = Vec::new();
        while out.len() < BATCH_ROWS {
            let Some(value) = *next else { break };
            let is_before = if is_ascending { value < self.end } else { value > self.end };
            if !(is_before || self.takes_end && value == self.end) {
                *next = None;
                break;
            }
            out.push(value);
            // A step that leads nowhere, such as a month on that the day takes back, would never end.
            *next = self.step.after(value).filter(|after| *after != value);
        }
        out
    }
}

fn batch(made: &Made, values: Vec<i64>, schema: &SchemaRef) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(values.len()));
    let columns = if made.has_column {
        let values: ArrayRef = Arc::new(Int64Array::from(values));
        vec![cast(&values, &door::arrow_type(made.column_type))?]
    } else {
        Vec::new()
    };
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(start: i64, end: i64, step: Step, takes_end: bool) -> Vec<i64> {
        let made = Made { column_type: ColumnType::Long, start, end, step, takes_end, has_column: true };
        let mut next = Some(start);
        let mut out = Vec::new();
        loop {
            let values = made.values(&mut next);
            if values.is_empty() {
                return out;
            }
            out.extend(values);
        }
    }

    #[test]
    fn series_end_where_they_should() {
        assert_eq!(all(1, 7, Step::Number(3), true), [1, 4, 7]);
        assert_eq!(all(1, 7, Step::Number(3), false), [1, 4]);
        assert_eq!(all(3, 1, Step::Number(-1), true), [3, 2, 1]);
        assert_eq!(all(3, 1, Step::Number(1), true), Vec::<i64>::new());
        assert_eq!(all(i64::MAX - 1, i64::MAX, Step::Number(1), true), [i64::MAX - 1, i64::MAX]);
        assert_eq!(all(1, 20_000, Step::Number(1), true).len(), 20_000);
    }

    #[test]
    fn months_follow_the_calendar() {
        const DAY: i64 = 86_400_000_000;
        // 2024-01-31, 02-29, 03-29: days since 1970.
        let months = Step::Time { months: 1, days: 0, ticks: 0, unit: TimeUnit::Micros };
        assert_eq!(all(19_753 * DAY, 19_815 * DAY, months, true), [19_753 * DAY, 19_782 * DAY, 19_811 * DAY]);
    }
}
