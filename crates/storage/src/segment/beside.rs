//! Co-occurrence index: the codes of one symbol column that occur with codes of another in the rows of a segment.
//!
//! Tags are correlated: a truck has one fleet, and a few drivers over time. A query for the last row of each truck of a
//! fleet knows the fleet but not its trucks, and would search for all other trucks up to the beginning of the table.
//! The index is built at the first use and stored in the block cache.
//!
//! ```text
//! words  u64: number of words per code of the other column
//! bits   as many words for NULL, then for each code of the other column: a bit for each code
//! ```

use super::buffer::{share, values_in};
use super::reader::Segment;
use super::set_lookup::CODES_MAX;
use super::vectors::OpenBlock;
use crate::cache::BlockKey;
use crate::{Error, Result};
use bytes::Bytes;
use tidalite_types::{ColumnId, VECTOR_ROWS};

/// At most one word for this many rows.
const ROWS_A_WORD: usize = 64;
/// First column number of cache keys of these indexes, counted backwards; no column has so great a number.
const BESIDE: u32 = u32::MAX - 1;

/// Bits by code of the other column and own code.
#[derive(Clone, Debug)]
pub struct CodesBeside {
    words: Bytes,
}

impl CodesBeside {
    /// Sets the bits of all own codes in rows whose other code is in `others`, or is NULL if `or_null` is true.
    ///
    /// Returns false if there are too many codes for an index.
    pub fn add_to(&self, others: &[u64], or_null: bool, codes: &mut [u64]) -> bool {
        let words = values_in::<u64>(&self.words);
        let Some((each, bits)) = words.split_first() else { return false };
        let is_asked = |at: usize| match at.checked_sub(1) {
            None => or_null,
            Some(code) => others.get(code / 64).is_some_and(|word| word >> (code % 64) & 1 == 1),
        };
        let rows = bits.chunks_exact((*each as usize).max(1)).enumerate();
        for (_, beside) in rows.filter(|(at, _)| is_asked(*at)) {
            codes.iter_mut().zip(beside).for_each(|(word, own)| *word |= own);
        }
        true
    }
}

impl Segment {
    /// Returns the index of `column` by `other` if it was built before.
    #[must_use]
    pub fn known_codes_beside(&self, column: ColumnId, other: ColumnId) -> Option<CodesBeside> {
        self.store().peek(&self.key_beside(column, other)).map(|words| CodesBeside { words })
    }

    /// Returns the index of `column` by `other`; `counts` are upper bounds of the codes of both columns.
    ///
    /// Reads both columns at the first call.
    pub fn codes_beside(&self, column: ColumnId, other: ColumnId, counts: (usize, usize)) -> Result<CodesBeside> {
        let words = self.store().cached(self.key_beside(column, other), || {
            let words = counts.0.div_ceil(64);
            let all = (counts.1 + 1).saturating_mul(words);
            if counts.0 > CODES_MAX || all > self.rows() as usize / ROWS_A_WORD {
                return Ok(Bytes::new());
            }
            let mut found = vec![0_u64; 1 + all];
            found[0] = words as u64;
            for block in 0..self.block_count() {
                self.add_beside((column, other), block, words, &mut found[1..])?;
            }
            Ok(share(found))
        })?;
        Ok(CodesBeside { words })
    }

    fn add_beside(
        &self,
        (column, other): (ColumnId, ColumnId),
        block: usize,
        words: usize,
        found: &mut [u64],
    ) -> Result<()> {
        // A column that was added later has no codes.
        let Some(own) = self.open_block(column, block)? else { return Ok(()) };
        let mut codes = own.codes()?;
        let others = self.open_block(other, block)?;
        let mut others = others.as_ref().map(OpenBlock::codes).transpose()?;
        for i in 0..self.block_rows(block).div_ceil(VECTOR_ROWS) {
            let (codes, present) = codes.vector(i);
            let (others, others_present) = others.as_mut().map_or((&[][..], None), |others| others.vector(i));
            for (row, code) in codes.iter().enumerate().filter(|(row, _)| present.is_none_or(|own| own[*row] == 1)) {
                let other = others.get(row).filter(|_| others_present.is_none_or(|other| other[row] == 1));
                let line = other.map_or(0, |other| *other as usize + 1);
                let word = (*code as usize / 64 < words).then(|| line * words + *code as usize / 64);
                let Some(word) = word.and_then(|word| found.get_mut(word)) else {
                    return Err(self.unknown_code(column, *code));
                };
                *word |= 1 << (code % 64);
            }
        }
        Ok(())
    }

    fn unknown_code(&self, column: ColumnId, code: u32) -> Error {
        Error::corrupt(format!(
            "{}: column {column:?} has symbol {code}, or one beside it, of no dictionary",
            self.path().display()
        ))
    }

    fn key_beside(&self, column: ColumnId, other: ColumnId) -> BlockKey {
        BlockKey { segment: self.meta().id, column, block: BESIDE - other.0 }
    }
}
