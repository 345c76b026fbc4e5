//! Reads a few rows of a block, one column after the other.
//!
//! Input: a selection of few rows. Output: their values, appended to buffers of the caller. The caller keeps the footer
//! from block to block: threads that each request it from the cache would wait for each other. If rows are read by
//! number, no intermediate block is built: for a dozen rows this takes longer than reading them. Other cases are
//! rejected and left to [`Segment::take`], with the same values.

use super::Segment;
use super::encoding::{EncodedBlock, to_column};
use super::format::{Encoding, Footer};
use super::reader::count;
use super::selection::Selection;
use crate::{Result, Zone};
use bytes::Bytes;
use tidalite_types::{ColumnId, Values};

/// Above this limit rows are read vector by vector.
const ROWS_MAX: usize = 256;

/// Rows of one block.
pub struct FewRows<'a> {
    segment: &'a Segment,
    footer: &'a Footer,
    block: usize,
    selection: &'a Selection,
    numbers: &'a [u16],
}

impl Segment {
    /// Returns a reader; `None` if there are many rows. `footer` is the result of [`Segment::footer`].
    ///
    /// # Panics
    /// Panics if the block does not exist. Reading may panic if the selection is for another block.
    #[must_use]
    pub fn few_rows<'a>(&'a self, footer: &'a Footer, block: usize, selection: &'a Selection) -> Option<FewRows<'a>> {
        let numbers = selection.numbers().filter(|numbers| numbers.len() <= ROWS_MAX)?;
        assert!(block < self.block_count(), "block {block} of a segment of {}", self.block_count());
        Some(FewRows { segment: self, footer, block, selection, numbers })
    }
}

impl FewRows<'_> {
    /// Returns the null count and bounds of the block; `None` if the segment has no such column, so every row is NULL.
    pub fn zone(&self, column: ColumnId) -> Result<Option<Zone>> {
        Ok(self.segment.find_in(self.footer, column, self.block)?.map(|(_, entry)| entry.zone))
    }

    /// Appends integers of 8 to 64 bits; returns false, without appending, if they cannot be read by number.
    ///
    /// The other methods behave the same.
    pub fn ints(&self, column: ColumnId, out: &mut Vec<i64>) -> Result<bool> {
        if self.read(column, |encoded, numbers| encoded.few_ints(numbers, out))? {
            return Ok(true);
        }
        // For times in runs, and other encodings without access by row.
        match self.taken(column)? {
            Some(Values::I64(values)) => out.extend(values),
            Some(Values::I32(values)) => out.extend(values.into_iter().map(i64::from)),
            Some(Values::I16(values)) => out.extend(values.into_iter().map(i64::from)),
            Some(Values::I8(values)) => out.extend(values.into_iter().map(i64::from)),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Appends floating point of 64 bits, or integers as floating point.
    pub fn floats(&self, column: ColumnId, out: &mut Vec<f64>) -> Result<bool> {
        self.read(column, |encoded, numbers| encoded.few_floats(numbers, out))
    }

    /// Appends symbol codes.
    pub fn codes(&self, column: ColumnId, out: &mut Vec<u32>) -> Result<bool> {
        self.read(column, |encoded, numbers| encoded.few_codes(numbers, out))
    }

    /// Returns the values of [`Segment::take`] if none is NULL.
    fn taken(&self, column: ColumnId) -> Result<Option<Values>> {
        let taken = self.segment.take(column, self.block, self.selection)?.filter(|block| block.null_count == 0);
        Ok(taken.map(|block| to_column(&block).values))
    }

    fn read(
        &self,
        column: ColumnId,
        append: impl FnOnce(&EncodedBlock, &[u16]) -> std::result::Result<bool, String>,
    ) -> Result<bool> {
        let Some((physical, entry)) = self.segment.find_in(self.footer, column, self.block)? else {
            return Ok(false);
        };
        if entry.zone.null_count > 0 || entry.encoding == Encoding::Nulls {
            return Ok(false);
        }
        let rows = self.segment.block_rows(self.block);
        let described = EncodedBlock { rows, physical, entry, bytes: Bytes::new() };
        let encoded = self.segment.opened(column, self.block, described)?;
        let offset = encoded.entry.offset;
        let is_read = append(&encoded, self.numbers);
        let is_read = is_read.map_err(|problem| self.segment.damaged(column, self.block, offset, &problem))?;
        if is_read {
            count(&encoded, self.selection.empty_vectors());
        }
        Ok(is_read)
    }
}
