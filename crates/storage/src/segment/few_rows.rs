//! A few rows of a block, of one column after the other.
//!
//! In: a selection of few rows. Out: their values, appended where they are wanted. The footer is given by those who keep
//! it from block to block: threads that each ask the cache for it wait for one another. Where rows are found by number no
//! block is made in between: for a dozen rows that takes longer than to read them. What is not read that way is refused,
//! and left to [`Segment::take`]; the values are the same.

use super::Segment;
use super::encoding::{EncodedBlock, to_column};
use super::format::{Encoding, Footer};
use super::reader::count;
use super::selection::Selection;
use crate::{Result, Zone};
use bytes::Bytes;
use tidalite_types::{ColumnId, Values};

/// More are read vector by vector.
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
    /// `None` where the rows are many. `footer` is that of [`Segment::footer`].
    ///
    /// # Panics
    /// When there is no such block; reading may, when the selection is of another.
    #[must_use]
    pub fn few_rows<'a>(&'a self, footer: &'a Footer, block: usize, selection: &'a Selection) -> Option<FewRows<'a>> {
        let numbers = selection.numbers().filter(|numbers| numbers.len() <= ROWS_MAX)?;
        assert!(block < self.block_count(), "block {block} of a segment of {}", self.block_count());
        Some(FewRows { segment: self, footer, block, selection, numbers })
    }
}

impl FewRows<'_> {
    /// Null count and bounds of the whole block; `None` when the segment has no such column: every row is NULL.
    pub fn zone(&self, column: ColumnId) -> Result<Option<Zone>> {
        Ok(self.segment.find_in(self.footer, column, self.block)?.map(|(_, entry)| entry.zone))
    }

    /// Appends integers of 8 to 64 bits. False, and nothing is appended, where they are not there to be read this way: so
    /// it is of the others.
    pub fn ints(&self, column: ColumnId, out: &mut Vec<i64>) -> Result<bool> {
        if self.read(column, |encoded, numbers| encoded.few_ints(numbers, out))? {
            return Ok(true);
        }
        // Of times that come in runs, and others that are not found by row.
        match self.taken(column)? {
            Some(Values::I64(values)) => out.extend(values),
            Some(Values::I32(values)) => out.extend(values.into_iter().map(i64::from)),
            Some(Values::I16(values)) => out.extend(values.into_iter().map(i64::from)),
            Some(Values::I8(values)) => out.extend(values.into_iter().map(i64::from)),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Floating point of 64 bits, or integers as such.
    pub fn floats(&self, column: ColumnId, out: &mut Vec<f64>) -> Result<bool> {
        self.read(column, |encoded, numbers| encoded.few_floats(numbers, out))
    }

    /// Codes of symbols.
    pub fn codes(&self, column: ColumnId, out: &mut Vec<u32>) -> Result<bool> {
        self.read(column, |encoded, numbers| encoded.few_codes(numbers, out))
    }

    /// The values as [`Segment::take`] gives them, if none is NULL.
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
