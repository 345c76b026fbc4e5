//! Tracks the remaining capacity of one commit.
//!
//! A few bytes of a frame can represent very many: a dictionary or runs of one long text, views of the same bytes. The
//! size of converted rows is therefore counted before memory is allocated.

use crate::{Error, Result};
use tidalite_types::ColumnType;
use tidalite_types::column_type::Physical;

/// Largest size of a commit in bytes: it is held in memory, and again in the record of the log.
pub(crate) const COMMIT_BYTES_MAX: usize = 512 << 20;

#[derive(Debug)]
pub(crate) struct Room {
    left: usize,
    bytes_max: usize,
}

impl Room {
    /// Creates the capacity of a commit of at most `bytes_max` bytes, of which `used` are used.
    pub fn new(bytes_max: usize, used: usize) -> Room {
        Room { left: bytes_max.saturating_sub(used), bytes_max }
    }

    pub fn unlimited() -> Room {
        Room::new(usize::MAX, 0)
    }

    #[inline]
    pub fn take(&mut self, bytes: usize) -> Result<()> {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(too_much(self.bytes_max)),
        }
    }

    /// Counts the values of a column, without the text and bytes that its views point to.
    pub fn take_column(&mut self, column_type: ColumnType, rows: usize) -> Result<()> {
        let bytes = match column_type.physical() {
            Physical::Bit => rows.div_ceil(8),
            physical => rows.saturating_mul(physical.width().unwrap_or(16)),
        };
        self.take(bytes)
    }
}

pub(crate) fn too_much(bytes_max: usize) -> Error {
    Error::new(format!("one commit may have {} MiB, the rows are more", bytes_max >> 20))
        .with_hint("write them in parts")
}
