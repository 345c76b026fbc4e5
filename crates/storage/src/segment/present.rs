//! Which codes of a symbol column each block of a segment has, and in which rows.
//!
//! A row's code is not in its zone map: codes have no order. Whoever looks for the last row of a rare symbol would decode
//! every block to find the one that has it, and whoever looks for all its rows compare every one. So what blocks have
//! is found out once, when first asked, and kept in the block cache, from where it goes when other blocks need its place.
//! Which rows have a code is found out for blocks that are asked for codes of few rows again and again.

use super::buffer::{share, values_in};
use super::encoding::EncodedBlock;
use super::reader::Segment;
use crate::cache::{BlockKey, Made};
use crate::{Block, BlockData, Result, ValueSet};
use bytes::Bytes;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tidalite_types::ColumnId;
use tidalite_types::column_type::Physical;

/// Codes from this on are not told apart: bits of so many would take more room than they spare reading.
pub const CODES_MAX: usize = 1 << 16;

/// More codes than this have more than few rows.
const WANTED_MAX: i128 = 16;
/// Rows are looked up by their codes from the ask on that follows so many: finding out takes as long as a dozen asks.
const ASKS_BEFORE: u32 = 2;
/// Where more than one row in so many has a code, comparing all is as fast.
const ROWS_A_HIT: usize = 32;
/// The place in the cache of which rows of a block have which code; segments have fewer blocks.
const ROWS: u32 = 1 << 31;

/// How often a block was asked for codes of few rows.
#[derive(Default)]
pub(super) struct Asks(AtomicU32);

impl Asks {
    pub fn of(made: &Made) -> Arc<Asks> {
        made.get_or_make(|| Ok::<_, Infallible>(Asks::default())).unwrap_or_else(|never| match never {})
    }

    /// That comparing found so many of the rows that it was asked of.
    pub fn note(&self, found: usize, asked: usize) {
        // Only counted until it is enough.
        if found * ROWS_A_HIT <= asked && !self.are_enough() {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn are_enough(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= ASKS_BEFORE
    }
}

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

    /// Clears in `mask` the rows of a block that have none of these codes, also NULL rows. False, and nothing was done, where
    /// it is not known which rows have which, or comparing is as fast.
    pub(super) fn retain_codes(
        &self,
        column: ColumnId,
        block: usize,
        encoded: &EncodedBlock,
        asks: &Asks,
        codes: impl Iterator<Item = usize>,
        mask: &mut [u64],
    ) -> Result<bool> {
        if !asks.are_enough() {
            return Ok(false);
        }
        let key = BlockKey { segment: self.meta().id, column, block: block as u32 | ROWS };
        let known = self.store().cached(key, || {
            let decoded = encoded.decode();
            let decoded = decoded.map_err(|problem| self.damaged(column, block, encoded.entry.offset, &problem))?;
            Ok(share(rows_by_code(&decoded)))
        })?;
        let known = values_in::<u16>(&known);
        let mut kept: Vec<u16> = Vec::new();
        for code in codes {
            let Some(rows) = rows_of(&known, code) else { return Ok(false) };
            if (kept.len() + rows.len()) * ROWS_A_HIT > encoded.rows {
                return Ok(false);
            }
            kept.extend(rows.iter().filter(|row| mask[usize::from(**row) / 64] >> (**row % 64) & 1 == 1));
        }
        mask.fill(0);
        kept.iter().for_each(|row| mask[usize::from(*row) / 64] |= 1 << (row % 64));
        Ok(true)
    }
}

/// The rows of each code, those of NULL rows under none: how many codes there are, where the rows of each end, and the rows.
/// Numbers of 32 bits come as two, the lower half first. Nothing where codes are too many to be told apart.
fn rows_by_code(block: &Block) -> Vec<u16> {
    let codes: Vec<(usize, usize)> = rows_and_codes(block).collect();
    let count = codes.iter().map(|(_, code)| code + 1).max().unwrap_or(0);
    if count > CODES_MAX {
        return Vec::new();
    }
    // Where the rows of each code begin; when they are dealt out, where they end.
    let mut ends = vec![0_u32; count];
    codes.iter().for_each(|(_, code)| ends[*code] += 1);
    let mut at = 0;
    ends.iter_mut().for_each(|end| at += std::mem::replace(end, at));
    let mut known = vec![0; 2 * count + 2 + codes.len()];
    let (head, rows) = known.split_at_mut(2 * count + 2);
    for (row, code) in codes {
        let at = &mut ends[code];
        rows[*at as usize] = row as u16;
        *at += 1;
    }
    for (halves, word) in head.chunks_exact_mut(2).zip(std::iter::once(count as u32).chain(ends)) {
        halves.copy_from_slice(&[word as u16, (word >> 16) as u16]);
    }
    known
}

/// The rows of a code, in order, of what [`rows_by_code`] gave.
fn rows_of(known: &[u16], code: usize) -> Option<&[u16]> {
    let word = |at: usize| Some(usize::from(*known.get(2 * at)?) | usize::from(*known.get(2 * at + 1)?) << 16);
    let count = word(0)?;
    if code >= count {
        return Some(&[]);
    }
    let from = if code == 0 { 0 } else { word(code)? };
    known.get(2 * count + 2..)?.get(from..word(code + 1)?)
}

/// The codes of a block as bits.
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

/// The rows of a block that are not NULL, with their codes.
fn rows_and_codes(block: &Block) -> impl Iterator<Item = (usize, usize)> {
    let codes: &[u8] = if let BlockData::Fixed(codes) = &block.data { codes } else { &[] };
    let is_there = |row: usize| block.validity.as_ref().is_none_or(|valid| valid[row / 8] >> (row % 8) & 1 == 1);
    let codes = codes.chunks_exact(4).take(block.rows).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]]) as usize);
    codes.enumerate().filter(move |(row, _)| is_there(*row))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidalite_types::Bitmap;

    fn block_of(codes: &[u32], valid: &[bool]) -> Block {
        let null_count = valid.iter().filter(|valid| !**valid).count();
        let validity = || share(valid.iter().copied().collect::<Bitmap>().into_words());
        let data = BlockData::Fixed(share(codes.to_vec()));
        let validity = (null_count > 0).then(validity);
        Block { rows: codes.len(), physical: Physical::U32, null_count, validity, data }
    }

    #[test]
    fn rows_are_found_by_their_codes() {
        let mut random = fastrand::Rng::with_seed(12);
        for (rows, codes, nulls) in
            [(0, 1, 0), (1, 1, 0), (1, 1, 1), (5_000, 70_000, 3), (65_536, 3, 0), (65_536, 5_000, 9)]
        {
            let codes: Vec<u32> = (0..rows).map(|_| random.u32(0..codes) & 0xFFFF).collect();
            let valid: Vec<bool> = codes.iter().map(|_| nulls == 0 || random.u32(0..nulls) > 0).collect();
            let known = rows_by_code(&block_of(&codes, &valid));
            let asked = codes.iter().take(50).copied().chain([0, 1, 65_535]);
            for code in asked {
                let own = codes.iter().zip(&valid).enumerate().filter(|(_, (own, valid))| **own == code && **valid);
                let own: Vec<u16> = own.map(|(row, _)| row as u16).collect();
                assert_eq!(rows_of(&known, code as usize), Some(&own[..]), "{rows} rows, code {code}");
            }
        }
        let known = rows_by_code(&block_of(&[1 << 16, 2], &[true, true]));
        assert_eq!((rows_of(&known, 2), known.len()), (None, 0), "too many to be told apart");
    }
}
