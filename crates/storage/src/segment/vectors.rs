//! Reads a column's block vector by vector.

use super::Segment;
use super::encoding::EncodedBlock;
pub use super::encoding::digits::DigitVectors;
pub use super::encoding::vectors::Vectors;
use super::reader::count;
use crate::{Result, Zone, tally};
use tidalite_types::ColumnId;
use tidalite_types::column_type::Physical;

/// A block in its cached form, borrowed by the readers of its vectors.
pub struct OpenBlock<'a> {
    segment: &'a Segment,
    column: ColumnId,
    block: usize,
    encoded: EncodedBlock,
}

impl Segment {
    /// Opens a block; `None` if the segment has no such column, so every row is NULL.
    ///
    /// # Panics
    /// Panics if the block does not exist.
    pub fn open_block(&self, column: ColumnId, block: usize) -> Result<Option<OpenBlock<'_>>> {
        self.open_block_among(column, block, &[u64::MAX])
    }

    /// Opens a block like [`Segment::open_block`], for readers of vectors with a row in the mask only.
    ///
    /// # Panics
    /// Panics if the block does not exist.
    pub fn open_block_among(&self, column: ColumnId, block: usize, mask: &[u64]) -> Result<Option<OpenBlock<'_>>> {
        let Some(encoded) = self.read_opened(column, block)? else { return Ok(None) };
        count(&encoded, tally::empty_vectors(mask));
        Ok(Some(OpenBlock { segment: self, column, block, encoded }))
    }
}

impl OpenBlock<'_> {
    /// Returns integers of 8 to 64 bits; other types are an error, like in the other methods.
    pub fn ints(&self) -> Result<Vectors<'_, i64>> {
        self.encoded.ints().map_err(|problem| self.damaged(&problem))
    }

    /// Returns floating point, or integers as floating point.
    pub fn floats(&self) -> Result<Vectors<'_, f64>> {
        self.encoded.floats().map_err(|problem| self.damaged(&problem))
    }

    /// Returns numbers in packed form, for sums, if they are packed.
    pub fn digits(&self, as_floats: bool) -> Result<Option<DigitVectors<'_>>> {
        self.encoded.digits(as_floats).map_err(|problem| self.damaged(&problem))
    }

    /// Returns symbol codes.
    pub fn codes(&self) -> Result<Vectors<'_, u32>> {
        self.encoded.codes().map_err(|problem| self.damaged(&problem))
    }

    /// Returns true if the values are unsigned, like codes.
    #[must_use]
    pub fn is_of_codes(&self) -> bool {
        self.encoded.physical == Physical::U32
    }

    /// Returns only the validity of the rows, for any type.
    pub fn presence(&self) -> Result<Vectors<'_, i64>> {
        self.encoded.presence().map_err(|problem| self.damaged(&problem))
    }

    /// Returns the null count and bounds of each vector.
    pub fn zones(&self) -> Result<Vec<Zone>> {
        super::encoding::zones::of_vectors(&self.encoded).map_err(|problem| self.damaged(&problem))
    }

    fn damaged(&self, problem: &str) -> crate::Error {
        self.segment.damaged(self.column, self.block, self.encoded.entry.offset, problem)
    }
}
