//! Opens a segment and reads its blocks.

use crate::{Block, Result, Zone};
use tidalite_types::{BLOCK_ROWS, ColumnId, SegmentId};

/// What the manifest knows of a segment without opening its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentMeta {
    pub id: SegmentId,
    pub rows: u64,
    /// Length of the file.
    pub bytes: u64,
    /// Start of the partition's interval, as [`tidalite_types::PartitionBy::interval`] gives it.
    pub partition: i64,
    /// Smallest and greatest designated timestamp; `(0, 0)` in a table without one.
    pub time_range: (i64, i64),
}

/// One immutable file. Its footer is read at the first need, its blocks come through the block cache.
#[derive(Debug)]
pub struct Segment {
    meta: SegmentMeta,
}

impl Segment {
    #[must_use]
    pub fn meta(&self) -> &SegmentMeta {
        &self.meta
    }

    #[must_use]
    pub fn rows(&self) -> u64 {
        self.meta.rows
    }

    #[must_use]
    pub fn time_range(&self) -> (i64, i64) {
        self.meta.time_range
    }

    #[must_use]
    pub fn block_count(&self) -> usize {
        (self.meta.rows as usize).div_ceil(BLOCK_ROWS)
    }

    /// Rows of one block: [`BLOCK_ROWS`] for all but the last.
    #[must_use]
    pub fn block_rows(&self, block: usize) -> usize {
        (self.meta.rows as usize - block * BLOCK_ROWS).min(BLOCK_ROWS)
    }

    /// Null count and bounds of a column's block, from the footer; `None` when the segment has no such column
    /// (it was added later: every row is NULL).
    pub fn zone(&self, column: ColumnId, block: usize) -> Result<Option<Zone>> {
        let _ = (column, block);
        todo!()
    }

    /// Reads, checks and decodes a column's block; `None` when the segment has no such column.
    pub fn read(&self, column: ColumnId, block: usize) -> Result<Option<Block>> {
        let _ = (column, block);
        todo!()
    }
}
