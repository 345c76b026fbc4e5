//! Opens a segment and reads its blocks.
//!
//! Always: bytes are checked when they enter the cache, by checksum and then by structure; what is in the cache is
//! trusted. A damaged file is an error of kind Corrupt that names file, column, block and offset.

use super::buffer::AlignedBuffer;
use super::encoding::{self, EncodedBlock};
use super::format::{self, Encoding, Entry, Footer, TRAILER_BYTES, corrupt};
use super::store::SegmentStore;
use crate::cache::BlockKey;
use crate::fs::File;
use crate::{Block, Error, Result, Zone};
use bytes::Bytes;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use tidalite_types::column_type::Physical;
use tidalite_types::{BLOCK_ROWS, ColumnId, SegmentId, TableId};

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

/// One immutable file. Its footer is read at the first need, both it and blocks come through the block cache.
pub struct Segment {
    store: Arc<SegmentStore>,
    table: TableId,
    meta: SegmentMeta,
}

impl fmt::Debug for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Segment").field("table", &self.table).field("meta", &self.meta).finish_non_exhaustive()
    }
}

/// Read at once at the end of a file: the footers of most segments fit.
const TAIL_BYTES: u64 = 16 << 10;

impl Segment {
    /// Touches no file.
    #[must_use]
    pub fn open(store: Arc<SegmentStore>, table: TableId, meta: SegmentMeta) -> Segment {
        Segment { store, table, meta }
    }

    #[must_use]
    pub fn meta(&self) -> &SegmentMeta {
        &self.meta
    }

    #[must_use]
    pub fn table(&self) -> TableId {
        self.table
    }

    #[must_use]
    pub fn path(&self) -> PathBuf {
        SegmentStore::path(self.table, self.meta.id)
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

    /// The columns the segment has, by id.
    pub fn columns(&self) -> Result<Vec<ColumnId>> {
        let footer = self.footer()?;
        Ok((0..footer.column_count()).map(|i| footer.column_id(i)).collect())
    }

    /// Null count and bounds of a column's block, from the footer; `None` when the segment has no such column
    /// (it was added later: every row is NULL).
    ///
    /// # Panics
    /// When there is no such block; so do the others.
    pub fn zone(&self, column: ColumnId, block: usize) -> Result<Option<Zone>> {
        Ok(self.find(column, block)?.map(|(_, entry)| entry.zone))
    }

    /// As [`Segment::zone`] for each vector of the block, whose bytes it reads.
    pub fn vector_zones(&self, column: ColumnId, block: usize) -> Result<Option<Vec<Zone>>> {
        let Some(encoded) = self.read_encoded(column, block)? else { return Ok(None) };
        encoding::zones::of_vectors(&encoded).map(Some).map_err(|problem| self.damaged(column, block, 0, &problem))
    }

    /// Reads, checks and decodes a column's block; `None` when the segment has no such column.
    pub fn read(&self, column: ColumnId, block: usize) -> Result<Option<Block>> {
        let Some(encoded) = self.read_encoded(column, block)? else { return Ok(None) };
        encoded.decode().map(Some).map_err(|problem| self.damaged(column, block, 0, &problem))
    }

    /// Reads and checks a column's block, and leaves it as it is: to copy it to another segment.
    pub fn read_encoded(&self, column: ColumnId, block: usize) -> Result<Option<EncodedBlock>> {
        let Some((physical, entry)) = self.find(column, block)? else { return Ok(None) };
        let mut encoded = EncodedBlock { rows: self.block_rows(block), physical, entry, bytes: Bytes::new() };
        if entry.encoding != Encoding::Nulls {
            let key = BlockKey { segment: self.meta.id, column, block: block as u32 };
            encoded.bytes = self.store.cached(key, || self.load(column, block, &encoded))?;
        }
        Ok(Some(encoded))
    }

    fn load(&self, column: ColumnId, block: usize, expected: &EncodedBlock) -> Result<Bytes> {
        let Entry { offset, bytes, crc, .. } = expected.entry;
        let damaged = |problem: &str| self.damaged(column, block, offset, problem);
        if offset.checked_add(u64::from(bytes)).is_none_or(|end| end > self.meta.bytes) {
            return Err(damaged("it lies outside of the file"));
        }
        let chunk = self.read_bytes(&*self.file()?, offset, bytes as usize)?;
        if crc32c::crc32c(&chunk) != crc {
            return Err(damaged("its checksum is wrong"));
        }
        let loaded = EncodedBlock { bytes: chunk, ..expected.clone() };
        loaded.check().map_err(|problem| damaged(&problem))?;
        Ok(loaded.bytes)
    }

    /// What the footer says of a column's block.
    fn find(&self, column: ColumnId, block: usize) -> Result<Option<(Physical, Entry)>> {
        assert!(block < self.block_count(), "block {block} of a segment of {}", self.block_count());
        let footer = self.footer()?;
        let Some(index) = footer.find(column) else { return Ok(None) };
        let damaged = |problem: String| self.damaged(column, block, 0, &problem);
        let entry = footer.entry(index, block).map_err(damaged)?;
        Ok(Some((footer.physical(index).map_err(damaged)?, entry)))
    }

    fn footer(&self) -> Result<Footer> {
        let key = BlockKey::footer(self.meta.id);
        self.store.cached(key, || Ok(self.load_footer()?.into_bytes())).map(Footer::trusted)
    }

    fn load_footer(&self) -> Result<Footer> {
        let path = self.path();
        let file = self.file()?;
        let len = file.len().map_err(|e| Error::io("read", &path, e))?;
        if len != self.meta.bytes || len < (format::HEADER_BYTES + TRAILER_BYTES) as u64 {
            return Err(corrupt(&path, &format!("it has {len} bytes, {} were written", self.meta.bytes)));
        }
        let tail_at = len.saturating_sub(TAIL_BYTES);
        let tail = self.read_bytes(&*file, tail_at, (len - tail_at) as usize)?;
        let footer_end = tail.len() - TRAILER_BYTES;
        let trailer = tail[footer_end..].try_into().expect("the tail is longer than a trailer");
        let (footer_bytes, crc) = format::read_trailer(trailer).map_err(|problem| corrupt(&path, &problem))?;
        let footer_at = (len - TRAILER_BYTES as u64)
            .checked_sub(footer_bytes)
            .ok_or_else(|| corrupt(&path, "the length of its footer is wrong"))?;
        let bytes = if footer_at >= tail_at {
            // A copy of its own, so that a footer in the cache does not keep the whole tail.
            Bytes::copy_from_slice(&tail[(footer_at - tail_at) as usize..footer_end])
        } else {
            self.read_bytes(&*file, footer_at, footer_bytes as usize)?
        };
        let footer = Footer::parse(bytes, crc).map_err(|problem| corrupt(&path, &problem))?;
        if footer.rows() != self.meta.rows {
            return Err(corrupt(
                &path,
                &format!("it has {} rows, the manifest says {}", footer.rows(), self.meta.rows),
            ));
        }
        Ok(footer)
    }

    /// Checks every byte that reading relies on, past the cache.
    pub fn verify(&self) -> Result<()> {
        let path = self.path();
        let footer = self.load_footer()?;
        let header = self.read_bytes(&*self.file()?, 0, format::HEADER_BYTES)?;
        if header[..] != format::header() {
            return Err(corrupt(&path, "its header is wrong"));
        }
        for index in 0..footer.column_count() {
            let column = footer.column_id(index);
            let physical = footer.physical(index).map_err(|problem| corrupt(&path, &problem))?;
            for block in 0..footer.block_count() {
                let entry = footer.entry(index, block).map_err(|p| self.damaged(column, block, 0, &p))?;
                self.load(
                    column,
                    block,
                    &EncodedBlock { rows: self.block_rows(block), physical, entry, bytes: Bytes::new() },
                )?;
            }
        }
        Ok(())
    }

    fn file(&self) -> Result<Arc<dyn File>> {
        self.store.file(self.meta.id, &self.path())
    }

    fn read_bytes(&self, file: &dyn File, offset: u64, len: usize) -> Result<Bytes> {
        let mut buffer = AlignedBuffer::zeroed(len);
        file.read_exact_at(buffer.as_mut_slice(), offset).map_err(|e| Error::io("read", &self.path(), e))?;
        Ok(buffer.freeze())
    }

    fn damaged(&self, column: ColumnId, block: usize, offset: u64, problem: &str) -> Error {
        corrupt(&self.path(), &format!("column {column} block {block} at offset {offset}: {problem}"))
    }
}
