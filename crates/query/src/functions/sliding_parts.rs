//! Stock aggregates over moving frames, for aggregates with one state value that cannot remove a row (`bool_and`,
//! `bit_or`): two stacks of states, as in [`tidalite_operators::formulas::sliding`], each made by the stock
//! accumulator.

use super::accumulators::AccumulatorFactory;
use crate::Error;
use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::{Accumulator, AggregateUDF};
use std::sync::Arc;

type State = Vec<ScalarValue>;

/// An aggregate over a frame: rows enter at its end and leave at its start.
#[derive(Debug)]
pub(super) struct PartStacks {
    factory: AccumulatorFactory,
    /// The states of each suffix of the older rows, the state of all of them last.
    front: Vec<State>,
    /// The newer rows, one array for each argument, and their accumulator.
    rows: Vec<Vec<ArrayRef>>,
    back: Box<dyn Accumulator>,
}

impl PartStacks {
    pub fn new(of: Arc<AggregateUDF>, args: &AccumulatorArgs) -> Result<PartStacks> {
        let factory = AccumulatorFactory::new(of, args);
        let back = factory.accumulator()?;
        Ok(PartStacks { factory, front: Vec::new(), rows: Vec::new(), back })
    }

    fn with(&self, states: &[State]) -> Result<Box<dyn Accumulator>> {
        let mut accumulator = self.factory.accumulator()?;
        for state in states {
            let arrays = state.iter().map(ScalarValue::to_array).collect::<Result<Vec<_>>>()?;
            accumulator.merge_batch(&arrays)?;
        }
        Ok(accumulator)
    }

    /// Removes the oldest row.
    fn pop(&mut self) -> Result<()> {
        if self.front.is_empty() {
            let rows = std::mem::take(&mut self.rows);
            for row in rows.into_iter().rev() {
                let mut accumulator = self.with(self.front.last().map_or(&[], std::slice::from_ref))?;
                accumulator.update_batch(&row)?;
                self.front.push(accumulator.state()?);
            }
            self.back = self.factory.accumulator()?;
        }
        let popped = self.front.pop();
        popped.map(|_| ()).ok_or_else(|| Error::internal("a row left a frame that it never entered").into())
    }
}

impl Accumulator for PartStacks {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        for row in 0..columns.first().map_or(0, |column| column.len()) {
            self.rows.push(columns.iter().map(|column| column.slice(row, 1)).collect());
        }
        self.back.update_batch(columns)
    }

    fn retract_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        (0..columns.first().map_or(0, |column| column.len())).try_for_each(|_| self.pop())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        Err(Error::internal("a sliding frame merges no states").into())
    }

    fn state(&mut self) -> Result<State> {
        let states = [self.front.last().cloned(), Some(self.back.state()?)];
        self.with(&states.into_iter().flatten().collect::<Vec<_>>())?.state()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let states = [self.front.last().cloned(), Some(self.back.state()?)];
        self.with(&states.into_iter().flatten().collect::<Vec<_>>())?.evaluate()
    }

    fn size(&self) -> usize {
        // Approximate size of an array of one value with its buffers.
        const ROW_BYTES: usize = 256;
        size_of::<Self>() + self.front.len() * 2 * size_of::<ScalarValue>() + self.rows.len() * ROW_BYTES
    }
}
