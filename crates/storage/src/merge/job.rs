//! The input of a merge.

use super::new_rows::NewRows;
use crate::{Error, TableSnapshot};
use tidalite_types::{BLOCK_ROWS, SegmentId};

/// Largest number of rows of a segment.
///
/// It is also the largest number of rows that one late row causes a merge to rewrite.
pub const SEGMENT_ROWS_MAX: usize = 16 * BLOCK_ROWS;

pub(super) struct Job<'a> {
    pub table: &'a TableSnapshot,
    pub reclaim: &'a [SegmentId],
    pub new: NewRows,
    pub tail_from: Option<i64>,
    pub late_rows_min: usize,
    /// Errors of segments that stay unchanged.
    pub damaged: &'a [Error],
}
