//! A block in its file format.

use crate::Zone;
use crate::segment::format::Entry;
use bytes::Bytes;
use tidalite_types::column_type::Physical;

/// A column block in its file format. `entry.offset` is meaningless.
#[derive(Clone, Debug)]
pub struct EncodedBlock {
    pub rows: usize,
    pub physical: Physical,
    pub entry: Entry,
    pub bytes: Bytes,
}

impl EncodedBlock {
    /// Returns a block whose rows are all NULL, without allocation.
    #[must_use]
    pub fn nulls(physical: Physical, rows: usize) -> EncodedBlock {
        EncodedBlock { rows, physical, entry: Entry::nulls(rows), bytes: Bytes::new() }
    }

    #[must_use]
    pub fn zone(&self) -> Zone {
        self.entry.zone
    }
}
