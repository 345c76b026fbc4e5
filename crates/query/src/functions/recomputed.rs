//! Aggregates over moving frames that cannot remove a row: each frame is aggregated anew by a plain accumulator.
//!
//! The time is proportional to the number of rows times the frame size. The operator evaluates a batch without a pause,
//! and so the statement is checked before each piece of a frame.

use super::accumulators::AccumulatorFactory;
use crate::Error;
use crate::engine::check_current;
use crate::exec::compact::own_texts;
use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::compute::concat;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Accumulator;
use std::collections::VecDeque;

/// Maximum number of pieces of a frame; more are copied to one piece.
const PIECES_MAX: usize = 64;
/// Maximum rows of an added piece that is not copied at once; such a piece keeps its whole batch in memory.
const PIECE_ROWS_MAX: usize = 1_024;

/// The rows of a frame, in their order.
#[derive(Debug)]
pub(super) struct RecomputingAccumulator {
    factory: AccumulatorFactory,
    /// Consecutive rows, one array for each argument. No piece is empty.
    pieces: VecDeque<Vec<ArrayRef>>,
}

impl RecomputingAccumulator {
    /// # Errors
    /// The aggregate does not support its arguments.
    pub fn try_new(factory: AccumulatorFactory) -> Result<RecomputingAccumulator> {
        factory.accumulator()?;
        Ok(RecomputingAccumulator { factory, pieces: VecDeque::new() })
    }

    /// Copies all rows to one piece.
    fn join_pieces(&mut self) -> Result<()> {
        let columns = self.pieces.front().map_or(0, Vec::len);
        let whole = (0..columns).map(|n| {
            let parts: Vec<&dyn Array> = self.pieces.iter().map(|piece| piece[n].as_ref()).collect();
            Ok(own_texts(&concat(&parts)?))
        });
        let whole = whole.collect::<Result<Vec<_>>>()?;
        self.pieces = VecDeque::from([whole]);
        Ok(())
    }
}

fn row_count(columns: &[ArrayRef]) -> usize {
    columns.first().map_or(0, |column| column.len())
}

impl Accumulator for RecomputingAccumulator {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let rows = row_count(columns);
        if rows == 0 {
            return Ok(());
        }
        self.pieces.push_back(columns.to_vec());
        let is_long = self.pieces.len() > PIECES_MAX || rows > PIECE_ROWS_MAX;
        if is_long && self.pieces.len() > 1 { self.join_pieces() } else { Ok(()) }
    }

    fn retract_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let mut left = row_count(columns);
        while left > 0 {
            let Some(oldest) = self.pieces.front_mut() else {
                return Err(Error::internal("removed rows are not in the frame").into());
            };
            let rows = row_count(oldest);
            if rows > left {
                oldest.iter_mut().for_each(|column| *column = column.slice(left, rows - left));
                return Ok(());
            }
            self.pieces.pop_front();
            left -= rows;
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let mut accumulator = self.factory.accumulator()?;
        for piece in &self.pieces {
            check_current()?;
            accumulator.update_batch(piece)?;
        }
        accumulator.evaluate()
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        Err(Error::internal("a moving frame does not merge states").into())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Err(Error::internal("a moving frame has no state").into())
    }

    fn size(&self) -> usize {
        let columns = self.pieces.iter().flatten();
        size_of::<Self>() + columns.map(|column| column.get_array_memory_size()).sum::<usize>()
    }
}
