//! Writes a segment.
//!
//! Input: blocks of rows with every column. Output: a file that is complete and synced when `finish` returns. Its name
//! is not durable, and no reader uses it before the caller has synced the folder and published the segment.
//!
//! Crash: possible at any point; a file that no manifest names is removed at the next open.

use super::encoding::choice::Effort;
use super::encoding::{EncodedBlock, encode};
use super::format::{self, Entry};
use crate::fs::{File, Fs};
use crate::{Error, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidalite_types::{BLOCK_ROWS, Column, ColumnId, ColumnType, ErrorKind};

/// Source of a column's rows of one block.
#[derive(Clone, Copy, Debug)]
pub enum BlockSource<'a> {
    /// Every row is NULL.
    Nulls,
    /// The rows of `column` from row `from` on.
    Rows { column: &'a Column, from: usize },
    /// A block encoded by [`encode`], or read by [`super::Segment::read_encoded`] and copied.
    Encoded(&'a EncodedBlock),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentSummary {
    pub rows: u64,
    /// Length of the file.
    pub bytes: u64,
}

#[derive(Debug)]
pub struct SegmentWriter {
    path: PathBuf,
    file: Arc<dyn File>,
    /// In the order of the caller.
    columns: Vec<(ColumnId, ColumnType)>,
    /// Indexed by column in the order of the caller, then by block.
    entries: Vec<Vec<Entry>>,
    effort: Effort,
    rows: u64,
    is_last_block_short: bool,
    /// Bytes that are not yet written; their position is `written`.
    buffer: Vec<u8>,
    written: u64,
    /// Number of written bytes that are not yet synced.
    unsynced: usize,
}

/// Approximate size of writes into which small blocks are collected.
const BUFFER_BYTES: usize = 1 << 20;
/// Approximate size of a sync: a concurrent sync of the log waits for one such piece, not for a complete segment (20 MB
/// delayed acknowledgements by 50 ms).
const SYNC_BYTES: usize = 2 << 20;

impl SegmentWriter {
    /// Creates the file `path` in an existing folder. The ids of `columns` must be distinct.
    pub fn create(fs: &dyn Fs, path: &Path, columns: &[(ColumnId, ColumnType)]) -> Result<SegmentWriter> {
        let file = fs.create(path).map_err(|e| Error::io("create", path, e))?;
        Ok(SegmentWriter {
            path: path.to_owned(),
            file,
            columns: columns.to_vec(),
            entries: vec![Vec::new(); columns.len()],
            effort: Effort::Fresh,
            rows: 0,
            is_last_block_short: false,
            buffer: format::header().to_vec(),
            written: 0,
            unsynced: 0,
        })
    }

    /// Sets the effort of encoding rows; the default is [`Effort::Fresh`].
    #[must_use]
    pub fn with_effort(mut self, effort: Effort) -> SegmentWriter {
        self.effort = effort;
        self
    }

    /// Appends a block of `rows` rows, [`BLOCK_ROWS`] in all blocks but the last.
    ///
    /// `columns` are in the order given to `create`.
    pub fn write_block(&mut self, rows: usize, columns: &[BlockSource<'_>]) -> Result<()> {
        if columns.len() != self.columns.len() || !(1..=BLOCK_ROWS).contains(&rows) || self.is_last_block_short {
            return Err(self.misused(&format!("a block of {} columns and {rows} rows", columns.len())));
        }
        for (index, source) in columns.iter().enumerate() {
            self.write_column(index, rows, source)?;
        }
        self.rows += rows as u64;
        self.is_last_block_short = rows < BLOCK_ROWS;
        Ok(())
    }

    /// Appends the next block of one column, identified by its index in the columns of `create`.
    ///
    /// Columns may be written one after the other; at the end all must have the same blocks.
    pub fn write_column_block(&mut self, index: usize, block: &EncodedBlock) -> Result<()> {
        let blocks = self.entries[index].len();
        if index == 0 {
            self.rows += block.rows as u64;
        }
        let rows_before = blocks as u64 * BLOCK_ROWS as u64;
        let rows = self.rows.saturating_sub(rows_before).min(BLOCK_ROWS as u64);
        if block.rows as u64 != rows || block.physical != self.columns[index].1.physical() {
            return Err(self.misused(&format!("block {blocks} of {} rows of {:?}", block.rows, block.physical)));
        }
        self.write_encoded(index, block)
    }

    fn write_column(&mut self, index: usize, rows: usize, source: &BlockSource<'_>) -> Result<()> {
        let column_type = self.columns[index].1;
        match source {
            BlockSource::Nulls => self.write_encoded(index, &EncodedBlock::nulls(column_type.physical(), rows)),
            BlockSource::Encoded(block) => {
                if block.rows != rows || block.physical != column_type.physical() {
                    return Err(self.misused(&format!("a block of {} rows of {:?}", block.rows, block.physical)));
                }
                self.write_encoded(index, block)
            }
            BlockSource::Rows { column, from } => {
                if column.values.physical() != column_type.physical() || column.len() < from + rows {
                    return Err(self.misused(&format!(
                        "a column of {} rows of {:?}",
                        column.len(),
                        column.values.physical()
                    )));
                }
                self.write_encoded(index, &encode(column_type, column, *from, rows, self.effort))
            }
        }
    }

    fn write_encoded(&mut self, index: usize, block: &EncodedBlock) -> Result<()> {
        let mut entry = block.entry;
        entry.offset = 0;
        if !block.bytes.is_empty() {
            self.buffer.resize(format::aligned(self.buffer.len()), 0);
            entry.offset = self.written + self.buffer.len() as u64;
            self.buffer.extend_from_slice(&block.bytes);
            if self.buffer.len() >= BUFFER_BYTES {
                self.flush()?;
            }
        }
        self.entries[index].push(entry);
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        // Padded to whole lines, so that `written` stays aligned.
        self.buffer.resize(format::aligned(self.buffer.len()), 0);
        self.file.write_all_at(&self.buffer, self.written).map_err(|e| Error::io("write", &self.path, e))?;
        self.written += self.buffer.len() as u64;
        self.unsynced += self.buffer.len();
        self.buffer.clear();
        if self.unsynced >= SYNC_BYTES {
            self.file.sync().map_err(|e| Error::io("sync", &self.path, e))?;
            self.unsynced = 0;
        }
        Ok(())
    }

    /// Writes the footer and syncs the file. The caller syncs the folder and publishes the segment.
    pub fn finish(mut self) -> Result<SegmentSummary> {
        if self.rows == 0 {
            return Err(self.misused("no rows"));
        }
        if self.entries.iter().any(|blocks| blocks.len() != self.entries[0].len()) {
            return Err(self.misused("columns of different lengths"));
        }
        let mut order: Vec<usize> = (0..self.columns.len()).collect();
        order.sort_by_key(|i| self.columns[*i].0);
        let columns: Vec<_> = order.iter().map(|i| (self.columns[*i].0, self.columns[*i].1.physical())).collect();
        let entries: Vec<Vec<Entry>> = order.iter().map(|i| std::mem::take(&mut self.entries[*i])).collect();
        self.buffer.extend(format::footer_and_trailer(self.rows, &columns, &entries, self.effort == Effort::Sealed));
        let bytes = self.written + self.buffer.len() as u64;
        self.file.write_all_at(&self.buffer, self.written).map_err(|e| Error::io("write", &self.path, e))?;
        self.file.sync().map_err(|e| Error::io("sync", &self.path, e))?;
        Ok(SegmentSummary { rows: self.rows, bytes })
    }

    fn misused(&self, given: &str) -> Error {
        Error::new(
            ErrorKind::Internal,
            format!("segment {} was given {given} at row {}", self.path.display(), self.rows),
        )
    }
}
