//! Which codes of a symbol column each block of a segment has.
//!
//! A row's code is not in its zone map: codes have no order. Whoever looks for the last row of a rare symbol would decode
//! every block to find the one that has it. So what blocks have is found out once, when first asked, and kept in the
//! block cache, from where it goes when other blocks need its place.

use super::buffer::share;
use super::reader::Segment;
use crate::cache::BlockKey;
use crate::{Block, BlockData, Result};
use bytes::Bytes;
use tidalite_types::ColumnId;

/// Codes from this on are not told apart: bits of so many would take more room than they spare reading.
pub const CODES_MAX: usize = 1 << 16;

/// Bits by block and code.
#[derive(Clone, Debug)]
pub struct CodesPresent {
    bits: Bytes,
    /// Of 64 bits, for each block.
    words: usize,
}

impl CodesPresent {
    /// Whether a block has one of some codes, given as bits; of those below [`CODES_MAX`].
    #[must_use]
    pub fn has_any(&self, block: usize, codes: &[u64]) -> bool {
        let own = self.bits.get(block * self.words * 8..(block + 1) * self.words * 8).unwrap_or_default();
        let own = own.chunks_exact(8).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("chunks of eight")));
        own.zip(codes).any(|(own, wanted)| own & wanted != 0)
    }
}

impl Segment {
    /// Reads the whole column the first time. A segment without the column has no codes.
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
}

/// The codes of a block as bits.
fn codes_of(block: &Block) -> Vec<u64> {
    let mut bits: Vec<u64> = Vec::new();
    let BlockData::Fixed(codes) = &block.data else { return bits };
    let is_there = |row: usize| block.validity.as_ref().is_none_or(|valid| valid[row / 8] >> (row % 8) & 1 == 1);
    for (row, code) in codes.chunks_exact(4).take(block.rows).enumerate() {
        let code = u32::from_le_bytes(code.try_into().expect("chunks of four")) as usize;
        if code >= CODES_MAX || (block.null_count > 0 && !is_there(row)) {
            continue;
        }
        if code / 64 >= bits.len() {
            bits.resize(code / 64 + 1, 0);
        }
        bits[code / 64] |= 1 << (code % 64);
    }
    bits
}
