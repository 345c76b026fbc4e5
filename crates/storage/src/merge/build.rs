//! Builds one column of one block of the result.

use super::new_rows::{NewInOrder, NewRows};
use super::old_rows::{LastBlock, OldRows, append_block};
use super::pieces::{BlockPlan, Piece};
use crate::Result;
use crate::segment::{Effort, EncodedBlock, Segment, encode};
use tidalite_kernels::gather::gather_into;
use tidalite_types::column_type::Physical;
use tidalite_types::{Column, ColumnId, ColumnType, Values};

/// Builds the blocks of one thread and reuses its memory: the system clears new memory page by page, which takes longer
/// than filling it.
#[derive(Debug, Default)]
pub(super) struct Builder {
    last: LastBlock,
    spare: Vec<Column>,
    /// Columns with unspecified content.
    spare_dealt: Vec<Column>,
}

/// The new rows of a column of a segment.
#[derive(Debug)]
pub(super) struct Dealt {
    /// Index of the first row among all new rows.
    first: usize,
    pub column: Column,
}

/// Longer columns are not kept, because large strings may be rare.
const SPARE_BYTES_MAX: usize = 16 << 20;

impl Builder {
    /// Returns the encoded block. An unchanged block of a segment is copied, unless the effort is higher.
    pub fn block(
        &mut self,
        (id, column_type): (ColumnId, ColumnType),
        old: &OldRows,
        new: &NewRows,
        (plan, dealt): (&BlockPlan, Option<&Dealt>),
        effort: Effort,
    ) -> Result<EncodedBlock> {
        if let [piece @ Piece { is_new: false, .. }] = plan.pieces[..]
            && effort == Effort::Fresh
            && let Some(encoded) = old.whole_block(id, piece)?
        {
            return Ok(encoded);
        }
        let column = self.rows((id, column_type), old, new, (plan, dealt))?;
        let encoded = encode(column_type, &column, 0, plan.rows, effort);
        self.put_back(column);
        Ok(encoded)
    }

    /// Returns all new rows of a column of a segment, to be returned to [`Builder::put_dealt_back`].
    ///
    /// Returns `None` for values without a fixed width.
    pub fn dealt(
        &mut self,
        (id, column_type): (ColumnId, ColumnType),
        new: &NewRows,
        rows: &NewInOrder,
    ) -> Option<Dealt> {
        let physical = column_type.physical();
        if matches!(physical, Physical::Bit | Physical::Views) {
            return None;
        }
        let mut take = || match self.spare_dealt.iter().position(|c| c.values.physical() == physical) {
            Some(at) => self.spare_dealt.swap_remove(at),
            None => Column::with_capacity(physical, 0),
        };
        let (mut column, mut spare) = (take(), take());
        new.dealt(id, rows, &mut spare.values, &mut column);
        self.spare_dealt.push(spare);
        Some(Dealt { first: rows.first, column })
    }

    /// Keeps a column for reuse, without the size limit of [`Builder::put_back`]: the next column of the segment has as
    /// many rows.
    pub fn put_dealt_back(&mut self, dealt: Dealt) {
        self.spare_dealt.push(dealt.column);
    }

    /// Returns the rows of a block, to be returned to [`Builder::put_back`].
    pub fn rows(
        &mut self,
        (id, column_type): (ColumnId, ColumnType),
        old: &OldRows,
        new: &NewRows,
        (plan, dealt): (&BlockPlan, Option<&Dealt>),
    ) -> Result<Column> {
        let mut column = self.take(column_type.physical());
        let by_arrival = || plan.by_arrival.get_or_init(|| plan.pieces.iter().map(|p| new.by_arrival(*p)).collect());
        for (at, &piece) in plan.pieces.iter().enumerate() {
            match (piece.is_new, dealt) {
                (false, _) => old.append(id, piece, &mut self.last, &mut column)?,
                (true, Some(dealt)) => {
                    column.extend_from_range(&dealt.column, piece.range().start - dealt.first, piece.range().len());
                }
                (true, None) => new.append(id, piece, by_arrival()[at].as_ref(), &mut column),
            }
        }
        if let Some(picks) = &plan.picks {
            let mut picked = self.take(column_type.physical());
            gather_into(&mut column, picks, &mut picked);
            self.put_back(std::mem::replace(&mut column, picked));
        }
        Ok(column)
    }

    /// Returns true if a block of a segment has exactly these rows.
    pub fn is_same(&mut self, segment: &Segment, id: ColumnId, block: usize, rows: &Column) -> Result<bool> {
        let mut found = self.take(rows.values.physical());
        append_block(segment, id, block, &mut found)?;
        let is_same = same_rows(&found, rows);
        self.put_back(found);
        Ok(is_same)
    }

    fn take(&mut self, physical: Physical) -> Column {
        match self.spare.iter().position(|c| c.values.physical() == physical) {
            Some(at) => self.spare.swap_remove(at),
            None => Column::with_capacity(physical, tidalite_types::BLOCK_ROWS),
        }
    }

    pub fn put_back(&mut self, mut column: Column) {
        if column.byte_count() <= SPARE_BYTES_MAX {
            column.truncate(0);
            column.validity = None;
            self.spare.push(column);
        }
    }
}

/// Returns true if the NULLs are the same, and the bits of all other rows.
fn same_rows(a: &Column, b: &Column) -> bool {
    let rows = a.len();
    if rows != b.len() || (0..rows).any(|row| a.is_valid(row) != b.is_valid(row)) {
        return false;
    }
    let is_valid = |row: &usize| a.is_valid(*row);
    match (&a.values, &b.values) {
        (Values::Views(a), Values::Views(b)) => (0..rows).filter(is_valid).all(|row| a.get(row) == b.get(row)),
        (Values::F32(a), Values::F32(b)) => (0..rows).filter(is_valid).all(|row| a[row].to_bits() == b[row].to_bits()),
        (Values::F64(a), Values::F64(b)) => (0..rows).filter(is_valid).all(|row| a[row].to_bits() == b[row].to_bits()),
        // NULL rows of both columns have zeros.
        (a, b) => a == b,
    }
}
