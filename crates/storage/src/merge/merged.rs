//! The result of a merge, and the sources of the new segments.

use super::new_rows::NewRows;
use crate::{Error, Segment};
use std::ops::Range;
use std::sync::Arc;

#[derive(Debug, Default)]
pub struct Merged {
    pub added: Vec<Arc<Segment>>,
    pub removed: Vec<Arc<Segment>>,
    pub staged_rows: u64,
    /// Rows of `removed` that were rewritten.
    pub rewritten_rows: u64,
    pub written_bytes: u64,
    /// Errors of unreadable segments into which new rows fall. These rows are in segments next to them.
    pub damaged: Vec<Error>,
    pub(super) origins: Vec<Origin>,
    pub(super) new: Option<NewRows>,
    pub(super) compacted: Option<Compacted>,
}

/// The sources of some of the new segments.
#[derive(Debug)]
pub(super) struct Origin {
    pub old: Vec<Arc<Segment>>,
    pub new: Range<usize>,
    /// The written segments, in the order of their rows: indexes in [`Merged::added`].
    pub added: Range<usize>,
}

/// The sources of the new segments.
#[derive(Debug)]
pub(super) struct Compacted {
    pub sources: Vec<Arc<Segment>>,
    pub slices: Vec<Slice>,
}

#[derive(Debug)]
pub(super) struct Slice {
    /// Range of rows in each source.
    pub rows: Vec<Range<usize>>,
    /// Indexes in [`Merged::added`].
    pub added: Range<usize>,
}
