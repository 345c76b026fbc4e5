//! Deletion vectors: bitmaps of deleted rows of segments and runs, and sets of deleted rows for the log.
//!
//! Bits of a deletion vector are never cleared. A merge does not copy deleted rows and so frees their space.

use crate::codec::{Decoder, Encoder, Malformed};
use std::sync::Arc;
use tidalite_types::{BLOCK_ROWS, Bitmap, SegmentId};

/// Deletion vector of one segment or run, stored by block.
///
/// Blocks without deleted rows are recognized at once, and a copy for the next version shares all unchanged blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mask {
    /// A set bit is a deleted row; every bitmap has [`BLOCK_ROWS`] bits.
    blocks: Vec<Option<Arc<Bitmap>>>,
    dead: usize,
}

impl Mask {
    /// Returns the number of deleted rows.
    #[must_use]
    pub fn dead(&self) -> usize {
        self.dead
    }

    /// Returns the deleted rows of a block of [`BLOCK_ROWS`] rows as set bits; `None` if there are none.
    #[must_use]
    pub fn block(&self, block: usize) -> Option<&Bitmap> {
        self.blocks.get(block)?.as_deref()
    }

    #[must_use]
    pub fn dead_in_block(&self, block: usize) -> usize {
        self.block(block).map_or(0, Bitmap::count_ones)
    }

    #[must_use]
    pub fn is_dead(&self, row: usize) -> bool {
        self.block(row / BLOCK_ROWS).is_some_and(|bits| bits.get(row % BLOCK_ROWS))
    }

    /// Deletes a row; returns true if the row was not deleted before.
    pub fn kill(&mut self, row: usize) -> bool {
        self.kill_range(row, 1) == 1
    }

    /// Deletes rows `from..from + count`; returns the number of rows that were not deleted before.
    pub fn kill_range(&mut self, from: usize, count: usize) -> usize {
        let (mut at, end, mut killed) = (from, from + count, 0);
        while at < end {
            let block = at / BLOCK_ROWS;
            let stop = end.min((block + 1) * BLOCK_ROWS);
            if self.blocks.len() <= block {
                self.blocks.resize(block + 1, None);
            }
            let bits = self.blocks[block].get_or_insert_with(|| Arc::new(Bitmap::filled(BLOCK_ROWS, false)));
            killed += Arc::make_mut(bits).set_range(at % BLOCK_ROWS, stop - at);
            at = stop;
        }
        self.dead += killed;
        killed
    }

    /// Returns the deleted rows as ranges: first row and number of rows, ascending, with gaps between them.
    #[must_use]
    pub fn ranges(&self) -> Vec<(usize, usize)> {
        let mut ranges: Vec<(usize, usize)> = Vec::new();
        let blocks = self.blocks.iter().enumerate().filter_map(|(i, bits)| Some((i * BLOCK_ROWS, bits.as_ref()?)));
        for (start, bits) in blocks {
            for (index, word) in bits.words().iter().enumerate().filter(|(_, word)| **word != 0) {
                let mut word = *word;
                while word != 0 {
                    let from = word.trailing_zeros() as usize;
                    let count = (word >> from).trailing_ones() as usize;
                    let row = start + index * 64 + from;
                    match ranges.last_mut() {
                        Some((first, rows)) if *first + *rows == row => *rows += count,
                        _ => ranges.push((row, count)),
                    }
                    word &= if from + count == 64 { 0 } else { u64::MAX << (from + count) };
                }
            }
        }
        ranges
    }

    /// Returns the rows deleted here and not in `before`.
    #[must_use]
    pub fn since(&self, before: Option<&Mask>) -> Mask {
        let mut grown = Mask::default();
        for (block, bits) in self.blocks.iter().enumerate() {
            let Some(bits) = bits else { continue };
            let old = before.and_then(|b| b.blocks.get(block)?.as_ref());
            if old.is_some_and(|old| Arc::ptr_eq(old, bits)) {
                continue;
            }
            let old = |word: usize| old.map_or(0, |o| o.words()[word]);
            for (index, word) in bits.words().iter().enumerate() {
                let mut left = word & !old(index);
                while left != 0 {
                    grown.kill(block * BLOCK_ROWS + index * 64 + left.trailing_zeros() as usize);
                    left &= left - 1;
                }
            }
        }
        grown
    }
}

impl FromIterator<(usize, usize)> for Mask {
    fn from_iter<I: IntoIterator<Item = (usize, usize)>>(ranges: I) -> Mask {
        let mut mask = Mask::default();
        ranges.into_iter().for_each(|(from, count)| {
            mask.kill_range(from, count);
        });
        mask
    }
}

/// Ranges of rows: first row and number of rows, ascending, with gaps between them.
pub type RowRanges = Vec<(u64, u64)>;

/// Rows of one table that a commit deletes, as physical positions: replay needs no predicate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadRows {
    pub segments: Vec<(SegmentId, RowRanges)>,
    /// Staged rows, counted backwards from the newest one: for each range the number of newer rows and its length.
    ///
    /// The rows are those of the table before this commit, in order of arrival. Rows that a merge has taken are past
    /// the end of the staged rows, so a replay after the merge does nothing, independent of joins of runs.
    pub staged: RowRanges,
}

impl DeadRows {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty() && self.staged.is_empty()
    }

    #[must_use]
    pub fn rows(&self) -> u64 {
        let all = self.segments.iter().flat_map(|(_, ranges)| ranges).chain(&self.staged);
        all.map(|(_, count)| count).sum()
    }

    pub fn encode(&self, e: &mut Encoder) {
        e.u32(self.segments.len() as u32);
        for (segment, ranges) in &self.segments {
            e.u64(segment.0);
            encode_ranges(ranges, e);
        }
        encode_ranges(&self.staged, e);
    }

    pub fn decode(d: &mut Decoder<'_>) -> Result<DeadRows, Malformed> {
        let mut segments = Vec::new();
        for _ in 0..d.u32()? {
            segments.push((SegmentId(d.u64()?), decode_ranges(d)?));
        }
        Ok(DeadRows { segments, staged: decode_ranges(d)? })
    }
}

/// Writes a count, then for each range the distance from the end of the previous range and its length, as varints.
pub fn encode_ranges(ranges: &RowRanges, e: &mut Encoder) {
    e.u32(ranges.len() as u32);
    let mut end = 0;
    for &(from, count) in ranges {
        varint(from - end, e);
        varint(count, e);
        end = from + count;
    }
}

pub fn decode_ranges(d: &mut Decoder<'_>) -> Result<RowRanges, Malformed> {
    let (mut ranges, mut end) = (Vec::new(), 0_u64);
    for _ in 0..d.u32()? {
        let (gap, count) = (decode_varint(d)?, decode_varint(d)?);
        let from = end.checked_add(gap).ok_or(Malformed("rows"))?;
        end = from.checked_add(count).filter(|end| *end <= 1 << 40).ok_or(Malformed("rows"))?;
        ranges.push((from, count));
    }
    Ok(ranges)
}

/// Writes seven bits per byte, least significant first; the last byte has a clear eighth bit.
fn varint(mut value: u64, e: &mut Encoder) {
    while value >= 0x80 {
        e.u8(value as u8 | 0x80);
        value >>= 7;
    }
    e.u8(value as u8);
}

fn decode_varint(d: &mut Decoder<'_>) -> Result<u64, Malformed> {
    let mut value = 0;
    for shift in (0..63).step_by(7) {
        let byte = d.u8()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(Malformed("rows"))
}

/// Converts ascending rows to ranges.
#[must_use]
pub fn ranges_of(rows: impl IntoIterator<Item = u64>) -> RowRanges {
    let mut ranges: RowRanges = Vec::new();
    for row in rows {
        match ranges.last_mut() {
            Some((from, count)) if *from + *count == row => *count += 1,
            _ => ranges.push((row, 1)),
        }
    }
    ranges
}

/// Returns the deleted rows of a mask as ranges for the log.
#[must_use]
pub fn ranges_of_mask(mask: &Mask) -> RowRanges {
    mask.ranges().into_iter().map(|(from, count)| (from as u64, count as u64)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_is_the_set_of_the_rows_killed() {
        let mut mask = Mask::default();
        let mut model = std::collections::BTreeSet::new();
        let mut seed = 7_u64;
        for _ in 0..400 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (from, count) = ((seed >> 33) as usize % 200_000, (seed >> 20) as usize % 150);
            let before = model.len();
            model.extend(from..from + count);
            assert_eq!(mask.kill_range(from, count), model.len() - before);
        }
        assert_eq!(mask.dead(), model.len());
        let rows: Vec<usize> = mask.ranges().into_iter().flat_map(|(from, count)| from..from + count).collect();
        assert_eq!(rows, model.iter().copied().collect::<Vec<_>>());
        assert!(mask.ranges().windows(2).all(|w| w[0].0 + w[0].1 < w[1].0));
        assert!((0..200_200).all(|row| mask.is_dead(row) == model.contains(&row)));
        let before = mask.clone();
        assert!(mask.kill(199_999) || model.contains(&199_999));
        mask.kill(250_000);
        let grown: Vec<_> = mask.since(Some(&before)).ranges();
        assert_eq!(grown.last(), Some(&(250_000, 1)));
        assert_eq!(mask.since(None).ranges(), mask.ranges());
    }

    #[test]
    fn dead_rows_come_back_from_bytes_and_cut_ones_are_refused() {
        let dead = DeadRows {
            segments: vec![(SegmentId(7), vec![(0, 1), (5, 1_000_000)]), (SegmentId(u64::MAX), vec![])],
            staged: vec![(3, 2), (200, 70_000)],
        };
        let mut e = Encoder::new();
        dead.encode(&mut e);
        assert_eq!(DeadRows::decode(&mut Decoder::new(&e.bytes)), Ok(dead));
        for cut in 0..e.bytes.len() {
            assert!(DeadRows::decode(&mut Decoder::new(&e.bytes[..cut])).is_err(), "cut at {cut}");
        }
        assert!(
            decode_ranges(&mut Decoder::new(&[1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 127, 1])).is_err()
        );
    }
}
