//! Decoded rows of one column in one block of a segment.

use bytes::Bytes;
use tidalite_types::column_type::Physical;

/// At most [`tidalite_types::BLOCK_ROWS`] decoded rows of one column.
///
/// Buffers are shared with the block cache and have the layout of Arrow, aligned to at least 16 bytes, so that upper
/// layers use them without a copy.
#[derive(Clone, Debug)]
pub struct Block {
    pub rows: usize,
    pub physical: Physical,
    pub null_count: usize,
    /// Bits, least significant first, set for rows with a value; `None` if no row is NULL. `rows.div_ceil(64) * 8`
    /// bytes.
    pub validity: Option<Bytes>,
    pub data: BlockData,
}

#[derive(Clone, Debug)]
pub enum BlockData {
    /// `rows` values of the physical width, little-endian; for [`Physical::Bit`] in the layout of `validity`.
    Fixed(Bytes),
    /// 16 bytes per row in the layout of [`tidalite_types::views`], and the data that the views point to.
    Views { views: Bytes, data: Bytes },
}

impl Block {
    /// Returns true if a row is not NULL.
    ///
    /// # Panics
    /// Panics if the row does not exist.
    #[inline]
    #[must_use]
    pub fn is_valid(&self, row: usize) -> bool {
        self.validity.as_ref().is_none_or(|valid| valid[row / 8] >> (row % 8) & 1 == 1)
    }
}

/// Statistics of a column's rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Zone {
    pub null_count: u32,
    pub bounds: Bounds,
}

/// Sum of a column's values, ignoring NULLs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sum {
    Ints(i128),
    /// −0 if there are no values.
    Floats(f64),
}

/// Smallest and greatest value, ignoring NULLs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bounds {
    /// Unknown, or no values.
    None,
    /// For booleans, integers, dates, timestamps, decimals that fit, IPv4. Symbols have no bounds, because ids have no
    /// order.
    Int(i64, i64),
    /// If a value is NaN, the upper bound is NaN: NaN is greater than every number. −0 counts as 0.
    Float(f64, f64),
}
