//! One column of one block of the result.

use super::new_rows::NewRows;
use super::old_rows::{LastBlock, OldRows};
use super::pieces::{BlockPlan, Piece};
use crate::Result;
use crate::segment::{Effort, EncodedBlock, encode};
use tidalite_kernels::gather::gather_into;
use tidalite_types::column_type::Physical;
use tidalite_types::{Column, ColumnId, ColumnType};

/// What one thread builds blocks with. Keeps its memory from block to block: fresh memory has to be cleared by the
/// system, page by page, which takes longer than filling it.
#[derive(Debug, Default)]
pub(super) struct Builder {
    last: LastBlock,
    spare: Vec<Column>,
}

/// Longer columns are not kept: text can be large once and never again.
const SPARE_BYTES_MAX: usize = 4 << 20;

impl Builder {
    pub fn block(
        &mut self,
        (id, column_type): (ColumnId, ColumnType),
        old: &OldRows,
        new: &NewRows,
        plan: &BlockPlan,
    ) -> Result<EncodedBlock> {
        if let [piece @ Piece { is_new: false, .. }] = plan.pieces[..]
            && let Some(encoded) = old.whole_block(id, piece)?
        {
            return Ok(encoded);
        }
        let mut column = self.take(column_type.physical());
        for &piece in &plan.pieces {
            if piece.is_new {
                new.append(id, piece, &mut column);
            } else {
                old.append(id, piece, &mut self.last, &mut column)?;
            }
        }
        if let Some(picks) = &plan.picks {
            let mut picked = self.take(column_type.physical());
            gather_into(&mut column, picks, &mut picked);
            self.put_back(std::mem::replace(&mut column, picked));
        }
        let encoded = encode(column_type, &column, 0, plan.rows, Effort::Fresh);
        self.put_back(column);
        Ok(encoded)
    }

    fn take(&mut self, physical: Physical) -> Column {
        match self.spare.iter().position(|c| c.values.physical() == physical) {
            Some(at) => self.spare.swap_remove(at),
            None => Column::with_capacity(physical, tidalite_types::BLOCK_ROWS),
        }
    }

    fn put_back(&mut self, mut column: Column) {
        if column.byte_count() <= SPARE_BYTES_MAX {
            column.truncate(0);
            column.validity = None;
            self.spare.push(column);
        }
    }
}
