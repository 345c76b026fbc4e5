//! Opens a segment and reads its blocks.
//!
//! Invariant: bytes are verified when they enter the cache, first by checksum, then by structure; cached bytes are
//! trusted and not compressed. A damaged file is an error of kind Corrupt that names file, column, block and offset.

use super::asked::{Asks, MADE};
use super::buffer::AlignedBuffer;
use super::encoding::totals::Totals;
use super::encoding::{self, EncodedBlock, opened};
use super::format::{self, Encoding, Entry, Footer, TRAILER_BYTES};
use super::selection::Selection;
use super::set_lookup::{few_codes, ranges};
use super::store::SegmentStore;
use super::text_rows::{TextRows, TextsOf};
use crate::cache::{BlockKey, Cached, Made, lock};
use crate::fs::File;
use crate::{Block, Damage, Error, Result, ValueSet, Zone, tally};
use bytes::Bytes;
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tidalite_kernels::count_picked;
use tidalite_types::column_type::Physical;
use tidalite_types::{BLOCK_ROWS, ColumnId, SegmentId, TableId};

/// The manifest's description of a segment, available without opening its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentMeta {
    pub id: SegmentId,
    pub rows: u64,
    /// Length of the file.
    pub bytes: u64,
    /// Start of the partition's interval, see [`tidalite_types::PartitionBy::interval`].
    pub partition: i64,
    /// Smallest and greatest designated timestamp; `(0, 0)` in a table without one.
    pub time_range: (i64, i64),
    /// True for a late segment, which is not merged with the segments of its times; see [`crate::late`].
    pub is_late: bool,
}

/// Storage of a column's block on disk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StoredBlock {
    pub encoding: Encoding,
    pub bytes: u32,
    /// Size of the values in memory in bytes; for text the views and the stored data.
    pub logical_bytes: u64,
    pub zone: Zone,
}

/// One immutable file. The footer is read at the first use; footer and blocks are cached by the block cache.
pub struct Segment {
    store: Arc<SegmentStore>,
    table: TableId,
    meta: SegmentMeta,
    /// Columns whose NULLs were looked up, and true if some row is NULL.
    nulls: Mutex<Vec<(ColumnId, bool)>>,
}

impl fmt::Debug for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Segment").field("table", &self.table).field("meta", &self.meta).finish_non_exhaustive()
    }
}

/// The system's number for an input/output error.
const EIO: i32 = 5;

/// Returns the size of values in memory in bytes; for text the views and the stored data.
fn value_bytes(physical: Physical, rows: usize, data_bytes: u32) -> u64 {
    let rows = rows as u64;
    match physical {
        Physical::Bit => rows.div_ceil(8),
        Physical::Views => rows * 16 + u64::from(data_bytes),
        _ => rows * physical.width().unwrap_or(16) as u64,
    }
}

/// Counts a read of a block, excluding `skipped` vectors.
pub(super) fn count(encoded: &EncodedBlock, skipped: u64) {
    let vectors = tally::vectors(encoded.rows);
    let bytes = value_bytes(encoded.physical, encoded.rows, encoded.entry.data_bytes);
    tally::add(|tally| {
        tally.stored_bytes += u64::from(encoded.entry.bytes);
        tally.value_bytes += bytes * (vectors - skipped.min(vectors)) / vectors.max(1);
        tally.vectors += vectors;
        tally.vectors_skipped += skipped;
    });
}

/// Returns the bytes of a block and its derived value.
fn shared(cached: &Cached) -> (Bytes, Made) {
    (cached.bytes.clone(), cached.made.clone())
}

/// Size in bytes of the first read at the end of a file: the footers of most segments fit.
const TAIL_BYTES: u64 = 16 << 10;

impl Segment {
    /// Creates a segment without file access.
    #[must_use]
    pub fn open(store: Arc<SegmentStore>, table: TableId, meta: SegmentMeta) -> Segment {
        Segment { store, table, meta, nulls: Mutex::default() }
    }

    #[must_use]
    pub fn meta(&self) -> &SegmentMeta {
        &self.meta
    }

    pub(super) fn store(&self) -> &SegmentStore {
        &self.store
    }

    /// Returns the cache key of the auxiliary index. Each type of column has only one kind of index.
    pub(super) fn key_of_made(&self, column: ColumnId, block: usize) -> BlockKey {
        BlockKey { segment: self.meta.id, column, block: block as u32 | MADE }
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

    /// Returns the rows of one block: [`BLOCK_ROWS`] for all but the last.
    #[must_use]
    pub fn block_rows(&self, block: usize) -> usize {
        (self.meta.rows as usize - block * BLOCK_ROWS).min(BLOCK_ROWS)
    }

    /// Returns the columns of the segment, by id.
    pub fn columns(&self) -> Result<Vec<ColumnId>> {
        let footer = self.footer()?;
        Ok((0..footer.column_count()).map(|i| footer.column_id(i)).collect())
    }

    /// Returns the null count and bounds of a column's block, from the footer.
    ///
    /// Returns `None` if the segment has no such column (it was added later: every row is NULL).
    ///
    /// # Panics
    /// Panics if the block does not exist, like the other methods.
    pub fn zone(&self, column: ColumnId, block: usize) -> Result<Option<Zone>> {
        Ok(self.find(column, block)?.map(|(_, entry)| entry.zone))
    }

    /// Returns true if a row has no value in the column; true for columns that were added later. Cached after the first
    /// call.
    pub fn has_nulls(&self, column: ColumnId) -> Result<bool> {
        if let Some((_, has_nulls)) = lock(&self.nulls).iter().find(|(known, _)| *known == column) {
            return Ok(*has_nulls);
        }
        let zones = self.zones()?;
        let of_column = zones.of(column);
        let mut has_nulls = false;
        for block in 0..self.block_count() {
            has_nulls = has_nulls || of_column.block(block)?.is_none_or(|zone| zone.null_count > 0);
        }
        // Another thread may have added an equal entry; the first one is used.
        lock(&self.nulls).push((column, has_nulls));
        Ok(has_nulls)
    }

    /// Returns true if the segment was encoded for size. Reads the end of the file.
    pub fn is_sealed(&self) -> Result<bool> {
        let Some(at) = self.meta.bytes.checked_sub(TRAILER_BYTES as u64) else {
            return Err(self.damaged_file(0, "it is too short"));
        };
        let bytes = self.read_bytes(&*self.file()?, at, TRAILER_BYTES)?;
        let trailer = bytes[..].try_into().expect("as many bytes were read");
        format::read_trailer(trailer).map_err(|problem| self.damaged_file(at, &problem))?;
        Ok(format::is_sealed(trailer))
    }

    /// Returns the storage of a column's block, from the footer; `None` if the segment has no such column.
    pub fn stored(&self, column: ColumnId, block: usize) -> Result<Option<StoredBlock>> {
        let Some((physical, entry)) = self.find(column, block)? else { return Ok(None) };
        let logical_bytes = value_bytes(physical, self.block_rows(block), entry.data_bytes);
        Ok(Some(StoredBlock { encoding: entry.encoding, bytes: entry.bytes, logical_bytes, zone: entry.zone }))
    }

    /// Returns the zones of each vector of the block, like [`Segment::zone`], after reading its bytes.
    pub fn vector_zones(&self, column: ColumnId, block: usize) -> Result<Option<Vec<Zone>>> {
        let Some(encoded) = self.read_opened(column, block)? else { return Ok(None) };
        let offset = encoded.entry.offset;
        encoding::zones::of_vectors(&encoded).map(Some).map_err(|problem| self.damaged(column, block, offset, &problem))
    }

    /// Reads, verifies and decodes a column's block; `None` if the segment has no such column.
    pub fn read(&self, column: ColumnId, block: usize) -> Result<Option<Block>> {
        let Some(encoded) = self.read_opened(column, block)? else { return Ok(None) };
        let offset = encoded.entry.offset;
        count(&encoded, 0);
        encoded.decode().map(Some).map_err(|problem| self.damaged(column, block, offset, &problem))
    }

    /// Clears the rows of `mask` that are not in `set`; NULL rows remain if `with_null` is true.
    ///
    /// The bytes are read only if the zone map does not decide, and are compared in encoded form.
    pub fn retain(
        &self,
        column: ColumnId,
        block: usize,
        set: &ValueSet,
        with_null: bool,
        mask: &mut [u64],
    ) -> Result<()> {
        let described = self.described(column, block)?;
        let zone = described.as_ref().map(EncodedBlock::zone);
        let has_nulls = zone.is_none_or(|zone| zone.null_count > 0);
        let decided = zone.map_or(Some(false), |zone| set.decide(zone.bounds));
        match decided {
            Some(true) if !has_nulls || with_null => {
                self.decided(block, u64::MAX);
                Ok(())
            }
            Some(false) if !has_nulls || !with_null => {
                self.decided(block, u64::MAX);
                mask.fill(0);
                Ok(())
            }
            _ => match described {
                None => Ok(()),
                Some(described) => self.compared(column, block, described, set, with_null, mask),
            },
        }
    }

    /// Implements [`Segment::retain`] if the bounds of the block do not decide.
    fn compared(
        &self,
        column: ColumnId,
        block: usize,
        described: EncodedBlock,
        set: &ValueSet,
        with_null: bool,
        mask: &mut [u64],
    ) -> Result<()> {
        let compare = |encoded: &EncodedBlock, mask: &mut [u64]| {
            count(encoded, tally::empty_vectors(mask));
            let retained = encoded.retain(set, with_null, mask);
            retained.map_err(|problem| self.damaged(column, block, encoded.entry.offset, &problem))
        };
        let has_codes = !with_null && described.physical == Physical::U32;
        let codes = if has_codes { few_codes(set) } else { None };
        let ranges = if with_null { None } else { ranges(&described, set) };
        if codes.is_none() && ranges.is_none() {
            return compare(&self.opened(column, block, described)?, mask);
        }
        let (encoded, made) = self.opened_with(column, block, described, shared)?;
        let asks = Asks::of(&made);
        if asks.are_enough() {
            // Reading a few rows is as fast as an index lookup.
            let is_known = !encoded.is_sparse(mask)
                && match (codes, ranges) {
                    (Some(codes), _) => self.retain_codes(column, block, &encoded, codes, mask)?,
                    (_, Some(ranges)) => self.retain_values(column, block, &encoded, (set, &ranges), mask)?,
                    _ => false,
                };
            if !is_known {
                return compare(&encoded, mask);
            }
            self.decided(block, tally::empty_vectors(mask));
            return Ok(());
        }
        let asked = count_picked(mask);
        compare(&encoded, mask)?;
        asks.note(count_picked(mask), asked);
        Ok(())
    }

    /// Returns rows of a text block; `None` if the segment has no such column.
    pub fn texts(&self, column: ColumnId, block: usize, wanted: TextsOf<'_>) -> Result<Option<TextRows>> {
        let Some(described) = self.described(column, block)? else { return Ok(None) };
        let (encoded, made) = self.opened_with(column, block, described, shared)?;
        let offset = encoded.entry.offset;
        count(&encoded, wanted.selection().map_or(0, Selection::empty_vectors));
        let texts = TextRows::of(&encoded, made, wanted);
        texts.map(Some).map_err(|problem| self.damaged(column, block, offset, &problem))
    }

    /// Counts a block whose rows were selected without reading values; `skipped` vectors have no wanted row.
    pub(super) fn decided(&self, block: usize, skipped: u64) {
        let vectors = tally::vectors(self.block_rows(block));
        tally::add(|tally| {
            tally.vectors += vectors;
            tally.vectors_skipped += skipped.min(vectors);
        });
    }

    /// Reads only the rows of `selection`, like [`Segment::read`].
    pub fn take(&self, column: ColumnId, block: usize, selection: &Selection) -> Result<Option<Block>> {
        let Some(encoded) = self.read_opened(column, block)? else { return Ok(None) };
        let offset = encoded.entry.offset;
        count(&encoded, selection.empty_vectors());
        encoded.take(selection).map(Some).map_err(|problem| self.damaged(column, block, offset, &problem))
    }

    /// Returns the totals of the rows of a column's block, or of `selection`.
    ///
    /// Without a selection, the totals are taken from the footer if it has them. Returns `None` if the segment has no
    /// such column, or the column is not numeric.
    pub fn totals(&self, column: ColumnId, block: usize, selection: Option<&Selection>) -> Result<Option<Totals>> {
        let Some(described) = self.described(column, block)? else { return Ok(None) };
        if let (None, Some(sum)) = (selection, described.entry.sum) {
            return Ok(Some(Totals { present: described.rows - described.zone().null_count as usize, sum }));
        }
        let encoded = self.opened(column, block, described)?;
        let offset = encoded.entry.offset;
        count(&encoded, selection.map_or(0, Selection::empty_vectors));
        encoded.totals(selection).map_err(|problem| self.damaged(column, block, offset, &problem))
    }

    /// Reads and verifies a column's block without decoding it, for copying it to another segment.
    pub fn read_encoded(&self, column: ColumnId, block: usize) -> Result<Option<EncodedBlock>> {
        let Some(encoded) = self.described(column, block)? else { return Ok(None) };
        if opened::is_opened(encoded.entry.encoding) {
            // The cache has the opened form.
            let bytes = self.load(column, block, &encoded)?;
            return Ok(Some(EncodedBlock { bytes, ..encoded }));
        }
        self.opened(column, block, encoded).map(Some)
    }

    /// Reads and verifies a column's block in its form in memory, for decoding, comparing or partial reads.
    pub(super) fn read_opened(&self, column: ColumnId, block: usize) -> Result<Option<EncodedBlock>> {
        let Some(described) = self.described(column, block)? else { return Ok(None) };
        self.opened(column, block, described).map(Some)
    }

    /// Reads a block like [`Segment::read_opened`], after its description was read from the footer.
    pub(super) fn opened(&self, column: ColumnId, block: usize, described: EncodedBlock) -> Result<EncodedBlock> {
        Ok(self.opened_with(column, block, described, |cached| (cached.bytes.clone(), ()))?.0)
    }

    /// Reads a block like [`Segment::opened`], and returns a value that `part` computes from the cache entry.
    fn opened_with<T: Default>(
        &self,
        column: ColumnId,
        block: usize,
        described: EncodedBlock,
        asked: impl Fn(&Cached) -> (Bytes, T),
    ) -> Result<(EncodedBlock, T)> {
        let Entry { encoding, offset, .. } = described.entry;
        if encoding == Encoding::Nulls {
            return Ok((described, T::default()));
        }
        let damaged = |problem: String| self.damaged(column, block, offset, &problem);
        let load = || {
            let bytes = self.load(column, block, &described)?;
            if !opened::is_opened(encoding) {
                return Ok(bytes);
            }
            opened::open(&EncodedBlock { bytes, ..described.clone() }).map_err(damaged)
        };
        let key = BlockKey { segment: self.meta.id, column, block: block as u32 };
        let (bytes, more) = self.store.part(key, load, asked)?;
        if !opened::is_opened(encoding) {
            return Ok((EncodedBlock { bytes, ..described }, more));
        }
        opened::opened(described, &bytes).map(|opened| (opened, more)).map_err(damaged)
    }

    /// Returns the footer's description of a column's block, without its bytes.
    pub(super) fn described(&self, column: ColumnId, block: usize) -> Result<Option<EncodedBlock>> {
        let found = self.find(column, block)?;
        let rows = self.block_rows(block);
        Ok(found.map(|(physical, entry)| EncodedBlock { rows, physical, entry, bytes: Bytes::new() }))
    }

    /// Reads a block from the file, bypassing the cache.
    pub(super) fn load(&self, column: ColumnId, block: usize, expected: &EncodedBlock) -> Result<Bytes> {
        let Entry { offset, bytes, crc, .. } = expected.entry;
        let damaged = |problem: &str| self.damaged(column, block, offset, problem);
        if offset.checked_add(u64::from(bytes)).is_none_or(|end| end > self.meta.bytes) {
            return Err(damaged("it lies outside of the file"));
        }
        let read = self.file().and_then(|file| self.read_bytes(&*file, offset, bytes as usize));
        // A damage that only the system reported has the position in the file; the column is added here.
        let chunk = read.map_err(|e| match e.damage() {
            Some(damage) => damaged(&damage.problem),
            None => e,
        })?;
        if crc32c::crc32c(&chunk) != crc {
            return Err(damaged("its checksum is wrong"));
        }
        tally::add(|tally| tally.file_bytes += u64::from(bytes));
        tally::from_file(column);
        let loaded = EncodedBlock { bytes: chunk, ..expected.clone() };
        loaded.check().map_err(|problem| damaged(&problem))?;
        Ok(loaded.bytes)
    }

    /// Prefetches blocks of a column that will be read soon, except blocks in memory. Errors are reported by the reads.
    pub fn will_read(&self, column: ColumnId, blocks: Range<usize>) {
        let Ok((footer, file)) = self.footer().and_then(|footer| Ok((footer, self.file()?))) else { return };
        // Adjacent blocks are prefetched with one request.
        let mut asked: Range<u64> = 0..0;
        let mut ask = |next: Range<u64>| {
            if next.start == format::aligned(asked.end as usize) as u64 && !asked.is_empty() {
                asked.end = next.end;
                return;
            }
            let before = std::mem::replace(&mut asked, next);
            if !before.is_empty() {
                file.will_read(before.start, before.end - before.start);
            }
        };
        for block in blocks {
            let key = BlockKey { segment: self.meta.id, column, block: block as u32 };
            match self.find_in(&footer, column, block) {
                Ok(Some((_, entry))) if entry.bytes > 0 && !self.store.is_cached(&key) => {
                    ask(entry.offset..entry.offset.saturating_add(u64::from(entry.bytes)));
                }
                _ => {}
            }
        }
        ask(0..0);
    }

    /// Returns the footer's entry of a column's block.
    fn find(&self, column: ColumnId, block: usize) -> Result<Option<(Physical, Entry)>> {
        assert!(block < self.block_count(), "block {block} of a segment of {}", self.block_count());
        self.find_in(&self.footer()?, column, block)
    }

    /// Finds the entry of a column's block like [`Segment::find`], in a footer that the caller holds.
    pub(super) fn find_in(&self, footer: &Footer, column: ColumnId, block: usize) -> Result<Option<(Physical, Entry)>> {
        let Some(index) = footer.find(column) else { return Ok(None) };
        let damaged = |problem: String| self.damaged(column, block, 0, &problem);
        let entry = footer.entry(index, block).map_err(damaged)?;
        // Counts of rows are computed from the footer alone.
        if entry.zone.null_count as usize > self.block_rows(block) {
            return Err(damaged(format!("{} NULLs in {} rows", entry.zone.null_count, self.block_rows(block))));
        }
        Ok(Some((footer.physical(index).map_err(damaged)?, entry)))
    }

    /// Returns the footer, which describes all blocks.
    pub fn footer(&self) -> Result<Footer> {
        let key = BlockKey::footer(self.meta.id);
        self.store.cached(key, || Ok(self.load_footer()?.into_bytes())).map(Footer::trusted)
    }

    pub(super) fn load_footer(&self) -> Result<Footer> {
        let path = self.path();
        let file = self.file()?;
        let len = file.len().map_err(|e| Error::io("read", &path, e))?;
        if len != self.meta.bytes || len < (format::HEADER_BYTES + TRAILER_BYTES) as u64 {
            let problem = format!("it has {len} bytes, {} were written", self.meta.bytes);
            return Err(self.damaged_file(len.min(self.meta.bytes), &problem));
        }
        let trailer_at = len - TRAILER_BYTES as u64;
        let tail_at = len.saturating_sub(TAIL_BYTES);
        let tail = self.read_bytes(&*file, tail_at, (len - tail_at) as usize)?;
        let footer_end = tail.len() - TRAILER_BYTES;
        let trailer = tail[footer_end..].try_into().expect("the tail is longer than a trailer");
        let (footer_bytes, crc) =
            format::read_trailer(trailer).map_err(|problem| self.damaged_file(trailer_at, &problem))?;
        let footer_at = trailer_at
            .checked_sub(footer_bytes)
            .ok_or_else(|| self.damaged_file(trailer_at, "the length of its footer is wrong"))?;
        let bytes = if footer_at >= tail_at {
            // A separate copy, so that a cached footer does not keep the whole tail in memory.
            Bytes::copy_from_slice(&tail[(footer_at - tail_at) as usize..footer_end])
        } else {
            self.read_bytes(&*file, footer_at, footer_bytes as usize)?
        };
        let footer = Footer::parse(bytes, crc).map_err(|problem| self.damaged_file(footer_at, &problem))?;
        if footer.rows() != self.meta.rows {
            let problem = format!("it has {} rows, the manifest says {}", footer.rows(), self.meta.rows);
            return Err(self.damaged_file(footer_at, &problem));
        }
        Ok(footer)
    }

    pub(super) fn file(&self) -> Result<Arc<dyn File>> {
        self.store.file(self.meta.id, &self.path()).map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => self.damaged_file(0, "the file is missing"),
            _ => Error::io("open", &self.path(), e),
        })
    }

    pub(super) fn read_bytes(&self, file: &dyn File, offset: u64, len: usize) -> Result<Bytes> {
        let mut buffer = AlignedBuffer::zeroed(len);
        let read = file.read_exact_at(buffer.as_mut_slice(), offset);
        // An input/output error means that the disk lost the bytes: a retry does not help.
        read.map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => self.damaged_file(offset, "the file ends before"),
            _ if e.raw_os_error() == Some(EIO) => self.damaged_file(offset, &format!("it cannot be read: {e}")),
            _ => Error::io("read", &self.path(), e),
        })?;
        Ok(buffer.freeze())
    }

    /// Reads bytes of the file without verification, for copying the file.
    pub fn read_raw(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        let read = self.file()?.read_exact_at(buffer, offset);
        read.map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => self.damaged_file(offset, "the file ends before"),
            _ => Error::io("read", &self.path(), e),
        })
    }

    pub(crate) fn damaged(&self, column: ColumnId, block: usize, offset: u64, problem: &str) -> Error {
        Error::damaged(Damage {
            column: Some(column),
            block: Some(block),
            offset,
            problem: problem.to_owned(),
            ..self.damage()
        })
    }

    pub(crate) fn damaged_file(&self, offset: u64, problem: &str) -> Error {
        Error::damaged(Damage { offset, problem: problem.to_owned(), ..self.damage() })
    }

    fn damage(&self) -> Damage {
        Damage {
            table: self.table,
            segment: self.meta.id,
            partition: self.meta.partition,
            column: None,
            block: None,
            file: self.path(),
            offset: 0,
            problem: String::new(),
        }
    }
}
