//! Which codes of a symbol column each block of a segment has, and each vector of a block.
//!
//! A row's code is not in its zone map: codes have no order. Whoever looks for the last row of a rare symbol would decode
//! every block to find the one that has it, and whoever looks for all its rows compare every vector. So what blocks have
//! is found out once, when first asked, and kept in the block cache, from where it goes when other blocks need its place.
//! What vectors have is found out for blocks that are asked for a few codes again and again.

use super::buffer::share;
use super::encoding::EncodedBlock;
use super::reader::Segment;
use crate::cache::{BlockKey, Made};
use crate::{Block, BlockData, Result, ValueSet};
use bytes::Bytes;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU32, Ordering};
use tidalite_types::column_type::Physical;
use tidalite_types::{ColumnId, VECTOR_ROWS};

/// Codes from this on are not told apart: bits of so many would take more room than they spare reading.
pub const CODES_MAX: usize = 1 << 16;

/// More codes than this would leave few vectors out.
const WANTED_MAX: i128 = 16;
/// Vectors of a block are told apart from the ask on that follows so many: finding out takes as long as a dozen asks.
const ASKS_BEFORE: u32 = 2;
/// The place in the cache of what the vectors of a block have; segments have fewer blocks.
const VECTORS: u32 = 1 << 31;

/// How often a block was asked for a few codes.
#[derive(Default)]
struct Asks(AtomicU32);

/// The codes of a set, if they are few.
pub(super) fn few_codes(physical: Physical, set: &ValueSet) -> Option<impl Iterator<Item = usize>> {
    let ValueSet::Ints(ranges) = set else { return None };
    // Before they are counted: a set may reach from the least integer to the greatest.
    let is_code = |(lo, hi): &(i128, i128)| *lo >= 0 && *hi < CODES_MAX as i128;
    let are_codes = physical == Physical::U32 && ranges.iter().all(is_code);
    let are_few = || ranges.iter().map(|(lo, hi)| hi - lo + 1).sum::<i128>() <= WANTED_MAX;
    (are_codes && are_few()).then(|| ranges.iter().flat_map(|(lo, hi)| *lo as usize..=*hi as usize))
}

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

    /// Clears in `mask` vectors of a block that have none of these codes, if it is known by now what its vectors have.
    pub(super) fn leave_absent(
        &self,
        column: ColumnId,
        block: usize,
        encoded: &EncodedBlock,
        made: &Made,
        codes: impl Iterator<Item = usize>,
        mask: &mut [u64],
    ) -> Result<()> {
        let asks = made.get_or_make(|| Ok::<_, Infallible>(Asks::default())).unwrap_or_else(|never| match never {});
        // Only counted until it is enough.
        if asks.0.load(Ordering::Relaxed) < ASKS_BEFORE {
            asks.0.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        let key = BlockKey { segment: self.meta().id, column, block: block as u32 | VECTORS };
        let bits = self.store().cached(key, || {
            let decoded = encoded.decode();
            let decoded = decoded.map_err(|problem| self.damaged(column, block, encoded.entry.offset, &problem))?;
            Ok(share(vectors_by_code(&decoded)))
        })?;
        if bits.is_empty() {
            return Ok(());
        }
        let of_code = |code: usize| {
            let own = bits.get(code * 8..code * 8 + 8);
            own.map_or(0, |own| u64::from_le_bytes(own.try_into().expect("eight bytes")))
        };
        let vectors = codes.map(of_code).fold(0, |all, own| all | own);
        for (vector, words) in mask.chunks_mut(VECTOR_ROWS / 64).enumerate() {
            if vectors >> vector & 1 == 0 {
                words.fill(0);
            }
        }
        Ok(())
    }
}

/// By code a bit for each vector that has it, maybe also under a NULL; nothing where most vectors have most codes.
fn vectors_by_code(block: &Block) -> Vec<u64> {
    let mut vectors: Vec<u64> = Vec::new();
    let BlockData::Fixed(codes) = &block.data else { return vectors };
    for (row, code) in codes.chunks_exact(4).take(block.rows).enumerate() {
        let code = u32::from_le_bytes(code.try_into().expect("chunks of four")) as usize;
        if code >= CODES_MAX {
            return Vec::new();
        }
        if code >= vectors.len() {
            vectors.resize(code + 1, 0);
        }
        vectors[code] |= 1 << (row / VECTOR_ROWS);
    }
    let (present, of) = vectors.iter().fold((0, 0), |(present, of), own| {
        (present + own.count_ones() as usize, of + usize::from(*own != 0) * block.rows.div_ceil(VECTOR_ROWS))
    });
    if 2 * present > of { Vec::new() } else { vectors }
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
