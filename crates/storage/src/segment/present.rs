//! Indexes of symbol columns: the codes that occur in each block of a segment, and their rows.
//!
//! A zone map cannot exclude a symbol, because codes have no order. A query for the last row of a rare symbol would
//! decode every block, and a query for all its rows would compare every row. The codes of each block are therefore
//! collected at the first use and stored in the block cache, where they are evicted like blocks. The rows of each code
//! are collected for blocks with repeated lookups of few rows by code.

use super::asked;
use super::buffer::{share, values_in};
use super::encoding::EncodedBlock;
use super::reader::Segment;
use super::rows_by_code::{self, RowsByCode};
use super::selection::{self, Selection};
use super::set_lookup::CODES_MAX;
use crate::cache::BlockKey;
use crate::{Block, BlockData, Result};
use bytes::Bytes;
use tidalite_types::ColumnId;

/// Bits by block and code.
#[derive(Clone, Debug)]
pub struct CodesPresent {
    bits: Bytes,
    /// Number of 64-bit words per block.
    words: usize,
}

impl CodesPresent {
    /// Returns true if a block has one of the codes below [`CODES_MAX`] given as bits.
    #[must_use]
    pub fn has_any(&self, block: usize, codes: &[u64]) -> bool {
        let own = self.bits.get(block * self.words * 8..(block + 1) * self.words * 8).unwrap_or_default();
        let own = own.chunks_exact(8).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("chunks of eight")));
        own.zip(codes).any(|(own, wanted)| own & wanted != 0)
    }
}

impl Segment {
    /// Returns the index; reads the whole column at the first call. A segment without the column has no codes.
    pub fn codes_present(&self, column: ColumnId) -> Result<CodesPresent> {
        let key = BlockKey { segment: self.meta().id, column, block: u32::MAX };
        let bits = self.store().cached(key, || {
            let mut blocks = Vec::with_capacity(self.block_count());
            for block in 0..self.block_count() {
                blocks.push(self.read(column, block)?.map_or_else(Vec::new, |block| codes_of(&block)));
            }
            let words = blocks.iter().map(Vec::len).max().unwrap_or(0);
            blocks.iter_mut().for_each(|block| block.resize(words, 0));
            Ok(share(blocks.concat()))
        })?;
        Ok(CodesPresent { words: bits.len() / 8 / self.block_count().max(1), bits })
    }

    /// Clears the rows of `mask` that have none of these codes, including NULL rows.
    ///
    /// Returns false, without changes, if the rows of each code are unknown, or comparing is as fast.
    pub(super) fn retain_codes(
        &self,
        column: ColumnId,
        block: usize,
        encoded: &EncodedBlock,
        codes: impl Iterator<Item = usize>,
        mask: &mut [u64],
    ) -> Result<bool> {
        let known = self.store().cached(self.key_of_made(column, block), || {
            let decoded = encoded.decode();
            let decoded = decoded.map_err(|problem| self.damaged(column, block, encoded.entry.offset, &problem))?;
            Ok(share(rows_of_codes(&decoded)))
        })?;
        let known = values_in::<u16>(&known);
        let Some(mut kept) = RowsByCode::of(&known).and_then(|known| rows_of(&known, codes, encoded.rows)) else {
            return Ok(false);
        };
        kept.retain(|row| mask[usize::from(*row) / 64] >> (row % 64) & 1 == 1);
        mask.fill(0);
        selection::set(mask, &kept);
        Ok(true)
    }

    /// Returns the rows of a symbol block with one of these codes, if an index exists and the rows are few.
    ///
    /// Otherwise the rows must be compared, see [`Segment::retain`].
    #[must_use]
    pub fn known_rows(&self, column: ColumnId, block: usize, codes: &[usize]) -> Option<Selection> {
        let known = self.store().peek(&self.key_of_made(column, block))?;
        let known = values_in::<u16>(&known);
        let rows = self.block_rows(block);
        let mut found = rows_of(&RowsByCode::of(&known)?, codes.iter().copied(), rows)?;
        if codes.len() > 1 {
            found.sort_unstable();
        }
        let found = Selection::of_numbers(found, rows);
        self.decided(block, found.empty_vectors());
        Some(found)
    }
}

/// Returns the rows of the codes if they are few compared with `rows`.
fn rows_of(known: &RowsByCode<'_>, codes: impl Iterator<Item = usize>, rows: usize) -> Option<Vec<u16>> {
    let mut found: Vec<u16> = Vec::new();
    for code in codes {
        let own = known.of_codes(code..code + 1);
        if !asked::are_few(found.len() + own.len(), rows) {
            return None;
        }
        found.extend_from_slice(own);
    }
    Some(found)
}

/// Returns the codes of a block as bits.
fn codes_of(block: &Block) -> Vec<u64> {
    let mut bits: Vec<u64> = Vec::new();
    for (_, code) in rows_and_codes(block).filter(|(_, code)| *code < CODES_MAX) {
        if code / 64 >= bits.len() {
            bits.resize(code / 64 + 1, 0);
        }
        bits[code / 64] |= 1 << (code % 64);
    }
    bits
}

/// Returns the index of rows by code; empty if there are too many codes.
fn rows_of_codes(block: &Block) -> Vec<u16> {
    let codes: Vec<usize> = codes(block).collect();
    let mut known = Vec::new();
    if codes.iter().enumerate().all(|(row, code)| *code < CODES_MAX || !block.is_valid(row)) {
        let codes: Vec<u16> = codes.into_iter().map(|code| code as u16).collect();
        rows_by_code::encode(&codes, |row| block.is_valid(row), &mut known);
    }
    known
}

/// Returns the rows of a block that are not NULL, with their codes.
fn rows_and_codes(block: &Block) -> impl Iterator<Item = (usize, usize)> {
    codes(block).enumerate().filter(|(row, _)| block.is_valid(*row))
}

/// Returns the codes of all rows, including NULL rows.
fn codes(block: &Block) -> impl Iterator<Item = usize> {
    let codes: &[u8] = if let BlockData::Fixed(codes) = &block.data { codes } else { &[] };
    codes.chunks_exact(4).take(block.rows).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]]) as usize)
}
