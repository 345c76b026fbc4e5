//! A column's block that is read vector by vector.

use super::Segment;
use super::encoding::EncodedBlock;
pub use super::encoding::digits::DigitVectors;
pub use super::encoding::vectors::Vectors;
use super::reader::count;
use crate::{Result, Zone, tally};
use tidalite_types::ColumnId;
use tidalite_types::column_type::Physical;

/// As the block cache has it. What reads its vectors borrows it.
pub struct OpenBlock<'a> {
    segment: &'a Segment,
    column: ColumnId,
    block: usize,
    encoded: EncodedBlock,
}

impl Segment {
    /// `None` when the segment has no such column: every row is NULL.
    ///
    /// # Panics
    /// When there is no such block.
    pub fn open_block(&self, column: ColumnId, block: usize) -> Result<Option<OpenBlock<'_>>> {
        self.open_block_among(column, block, &[u64::MAX])
    }

    /// As [`Segment::open_block`], for those who only look at vectors of which the mask has a row.
    ///
    /// # Panics
    /// When there is no such block.
    pub fn open_block_among(&self, column: ColumnId, block: usize, mask: &[u64]) -> Result<Option<OpenBlock<'_>>> {
        let Some(encoded) = self.read_opened(column, block)? else { return Ok(None) };
        count(&encoded, tally::empty_vectors(mask));
        Ok(Some(OpenBlock { segment: self, column, block, encoded }))
    }
}

impl OpenBlock<'_> {
    /// Integers of 8 to 64 bits, others are an error; so it is of the other kinds.
    pub fn ints(&self) -> Result<Vectors<'_, i64>> {
        self.encoded.ints().map_err(|problem| self.damaged(&problem))
    }

    /// Floating point, or integers as such.
    pub fn floats(&self) -> Result<Vectors<'_, f64>> {
        self.encoded.floats().map_err(|problem| self.damaged(&problem))
    }

    /// Numbers as they are packed, where they are, for those who add them up.
    pub fn digits(&self, as_floats: bool) -> Result<Option<DigitVectors<'_>>> {
        self.encoded.digits(as_floats).map_err(|problem| self.damaged(&problem))
    }

    /// Codes of symbols.
    pub fn codes(&self) -> Result<Vectors<'_, u32>> {
        self.encoded.codes().map_err(|problem| self.damaged(&problem))
    }

    /// Whether its values are unsigned, as codes are.
    #[must_use]
    pub fn is_of_codes(&self) -> bool {
        self.encoded.physical == Physical::U32
    }

    /// Of any type, only which rows have a value.
    pub fn presence(&self) -> Result<Vectors<'_, i64>> {
        self.encoded.presence().map_err(|problem| self.damaged(&problem))
    }

    /// Null count and bounds of each vector.
    pub fn zones(&self) -> Result<Vec<Zone>> {
        super::encoding::zones::of_vectors(&self.encoded).map_err(|problem| self.damaged(&problem))
    }

    fn damaged(&self, problem: &str) -> crate::Error {
        self.segment.damaged(self.column, self.block, self.encoded.entry.offset, problem)
    }
}
