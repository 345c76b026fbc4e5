//! A column's rows of one block, as they come out of a segment.

use bytes::Bytes;
use tidalite_types::column_type::Physical;

/// At most [`tidalite_types::BLOCK_ROWS`] rows of one column, decoded. Buffers are shared with the block cache and
/// laid out as Arrow expects, aligned to at least 16 bytes, so that they travel upwards without a copy.
#[derive(Clone, Debug)]
pub struct Block {
    pub rows: usize,
    pub physical: Physical,
    pub null_count: usize,
    /// Bits, least significant first, set for values; absent when no row is NULL. `rows.div_ceil(64) * 8` bytes.
    pub validity: Option<Bytes>,
    pub data: BlockData,
}

#[derive(Clone, Debug)]
pub enum BlockData {
    /// `rows` values of the physical width, little-endian; for [`Physical::Bit`] as `validity`.
    Fixed(Bytes),
    /// 16 bytes a row as in [`tidalite_types::views`], and the data they point into.
    Views { views: Bytes, data: Bytes },
}

impl Block {
    /// Whether a row is not NULL.
    ///
    /// # Panics
    /// When there is no such row.
    #[inline]
    #[must_use]
    pub fn is_valid(&self, row: usize) -> bool {
        self.validity.as_ref().is_none_or(|valid| valid[row / 8] >> (row % 8) & 1 == 1)
    }
}

/// What is known of a column's rows without reading them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Zone {
    pub null_count: u32,
    pub bounds: Bounds,
}

/// Of a column's values, NULLs aside.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sum {
    Ints(i128),
    /// −0 of no values.
    Floats(f64),
}

/// Smallest and greatest value, NULLs aside.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bounds {
    /// Not known, or no values.
    None,
    /// For booleans, integers, dates, timestamps, decimals that fit, IPv4 (symbols have none: ids have no order).
    Int(i64, i64),
    /// A NaN among the values makes the greater bound NaN: it is greater than every number. −0 counts as 0.
    Float(f64, f64),
}
