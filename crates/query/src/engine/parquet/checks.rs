//! Claims of a Parquet file that are checked before upstream allocates for them.
//!
//! Limits are those of Arrow streams ([`RATIO_MAX`] to 1 past the first [`PAGE_FREE_BYTES`]), for one page. A page of
//! each column is decompressed at a time, so the largest page of each column counts for the total.

use super::thrift::{Cursor, FieldType};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use std::ops::Range;

/// Uncompressed bytes of a page without a limit of the ratio. Writers end a page at about 1 MiB.
const PAGE_FREE_BYTES: u64 = 64 << 20;
/// Uncompressed bytes of the largest pages of all columns without a limit of the ratio.
const PAGES_FREE_BYTES: u64 = 512 << 20;
/// Uncompressed bytes for each compressed one.
const RATIO_MAX: u64 = 1000;
/// Row groups of a file: upstream numbers them with 16 bits.
const ROW_GROUPS_MAX: usize = 1 << 15;
/// Nesting of columns. Upstream recurses into each level.
const SCHEMA_DEPTH_MAX: usize = 100;

/// Why a file is refused, as a part of an error's text.
pub(super) type Refusal = String;

/// Checks the bytes of a footer: structure, number of row groups, nesting of the columns.
pub(super) fn footer(bytes: &[u8]) -> Result<(), Refusal> {
    let mut refused = None;
    let mut cursor = Cursor::new(bytes);
    let read = cursor.structure(&mut |cursor, id, kind| {
        match (id, kind) {
            (2, FieldType::LIST) => refused = schema(cursor)?,
            (4, FieldType::LIST) => {
                let (count, element) = cursor.list()?;
                if count > ROW_GROUPS_MAX {
                    refused = Some(format!("it has {count} row groups, at most {ROW_GROUPS_MAX} are read"));
                    return None;
                }
                (0..count).try_for_each(|_| cursor.skip(element))?;
            }
            _ => return Some(false),
        }
        refused.is_none().then_some(true)
    });
    match (refused, read) {
        (Some(refused), _) => Err(refused),
        (None, None) => Err("its footer is damaged".to_owned()),
        (None, Some(())) => Ok(()),
    }
}

/// Reads the list of columns; returns a refusal if they are nested too deeply or are no tree.
fn schema(cursor: &mut Cursor<'_>) -> Option<Option<Refusal>> {
    let (count, element) = cursor.list()?;
    if element != FieldType::STRUCT {
        return None;
    }
    // The number of children that each open level still lacks.
    let mut open: Vec<usize> = Vec::new();
    for n in 0..count {
        let mut children = 0;
        cursor.structure(&mut |cursor, id, kind| {
            let is_count = id == 5 && kind.is_integer();
            if is_count {
                children = usize::try_from(cursor.integer()?).ok()?;
            }
            Some(is_count)
        })?;
        while open.last() == Some(&0) {
            open.pop();
        }
        match open.last_mut() {
            Some(lacking) => *lacking -= 1,
            None if n == 0 => {}
            None => return None,
        }
        // Every child is an element of its own.
        if children > count {
            return None;
        }
        if children > 0 {
            open.push(children);
        }
        if open.len() > SCHEMA_DEPTH_MAX {
            return Some(Some(format!("its columns are nested in more than {SCHEMA_DEPTH_MAX} levels")));
        }
    }
    open.iter().all(|lacking| *lacking == 0).then_some(None)
}

/// Checks the rows and the byte ranges that the footer of a file of `file_bytes` claims.
pub(super) fn metadata(metadata: &ParquetMetaData, file_bytes: u64) -> Result<(), Refusal> {
    let mut chunks = Vec::new();
    for group in metadata.row_groups() {
        let rows = group.num_rows();
        for chunk in group.columns() {
            let column = chunk.column_path().string();
            let range = chunk_range(chunk).filter(|range| range.end <= file_bytes);
            let range = range.ok_or_else(|| format!("column \"{column}\" lies outside of the file"))?;
            let is_flat = chunk.column_descr().max_rep_level() == 0;
            if rows < 0 || chunk.num_values() < 0 || (is_flat && chunk.num_values() != rows) {
                return Err(format!(
                    "column \"{column}\" claims {} values in a group of {rows} rows",
                    chunk.num_values()
                ));
            }
            chunks.push(range);
        }
    }
    chunks.sort_unstable_by_key(|range| (range.start, range.end));
    let are_apart = chunks.windows(2).all(|pair| pair[0].end <= pair[1].start);
    are_apart.then_some(()).ok_or_else(|| "columns overlap".to_owned())
}

/// The bytes of a column chunk. Upstream's function panics at negative numbers.
pub(super) fn chunk_range(chunk: &ColumnChunkMetaData) -> Option<Range<u64>> {
    let start = chunk.dictionary_page_offset().unwrap_or_else(|| chunk.data_page_offset());
    let start = u64::try_from(start).ok()?;
    let length = u64::try_from(chunk.compressed_size()).ok()?;
    Some(start..start.checked_add(length)?)
}

/// Checks the structure of a column index or an offset index.
pub(super) fn page_index(bytes: &[u8]) -> Result<(), Refusal> {
    Cursor::new(bytes).skip(FieldType::STRUCT).ok_or_else(|| "its page index is damaged".to_owned())
}

/// Sums up the pages that one fetch of a row group reads.
#[derive(Debug, Default)]
pub(super) struct Pages {
    /// Uncompressed bytes of the largest page of each chunk.
    uncompressed: u64,
    compressed: u64,
}

impl Pages {
    /// Checks the pages in `bytes`: one after the other, or those that begin at `starts`. Without compression, the
    /// claimed uncompressed sizes are not used.
    pub fn check(&mut self, bytes: &[u8], is_compressed: bool, starts: Option<&[usize]>) -> Result<(), Refusal> {
        let mut largest = 0;
        match starts {
            Some(starts) => {
                for start in starts {
                    largest = largest.max(PageHead::read(&bytes[*start..], is_compressed)?.uncompressed);
                }
            }
            None => {
                let mut rest = bytes;
                while !rest.is_empty() {
                    let page = PageHead::read(rest, is_compressed)?;
                    largest = largest.max(page.uncompressed);
                    rest = &rest[page.bytes..];
                }
            }
        }
        self.uncompressed += largest;
        self.compressed += bytes.len() as u64;
        let limit = PAGES_FREE_BYTES + RATIO_MAX * self.compressed;
        if self.uncompressed > limit {
            let (claimed, compressed) = (self.uncompressed, self.compressed);
            return Err(format!("its pages claim {claimed} uncompressed bytes of {compressed} compressed ones"));
        }
        Ok(())
    }
}

/// The sizes of a page.
struct PageHead {
    /// Bytes of the header and of the compressed page.
    bytes: usize,
    uncompressed: u64,
}

impl PageHead {
    fn read(bytes: &[u8], is_compressed: bool) -> Result<PageHead, Refusal> {
        let damaged = || "a page header is damaged".to_owned();
        let (mut uncompressed, mut compressed, mut entries) = (None, None, 0);
        let mut cursor = Cursor::new(bytes);
        let read = cursor.structure(&mut |cursor, id, kind| {
            match id {
                2 if kind.is_integer() => uncompressed = Some(cursor.integer()?),
                3 if kind.is_integer() => compressed = Some(cursor.integer()?),
                7 if kind == FieldType::STRUCT => entries = first_integer(cursor)?,
                _ => return Some(false),
            }
            Some(true)
        });
        let head = cursor.position();
        let size = |bytes: Option<i64>| u64::try_from(bytes.ok_or_else(damaged)?).map_err(|_| damaged());
        let (uncompressed, compressed) = (size(uncompressed)?, size(compressed)?);
        let end = usize::try_from(compressed).ok().and_then(|bytes| bytes.checked_add(head));
        let end = end.filter(|end| read.is_some() && *end <= bytes.len()).ok_or_else(damaged)?;
        // Upstream takes the bytes as they are.
        let uncompressed = if is_compressed { uncompressed } else { compressed };
        if uncompressed > PAGE_FREE_BYTES.max(RATIO_MAX * compressed) {
            return Err(format!("a page of {compressed} bytes claims {uncompressed} uncompressed bytes"));
        }
        // An entry of a dictionary has a byte or more.
        if u64::try_from(entries).map_or(true, |entries| entries > uncompressed) {
            return Err(format!("a dictionary of {uncompressed} bytes claims {entries} entries"));
        }
        Ok(PageHead { bytes: end, uncompressed })
    }
}

/// Reads a structure and returns its field 1, or 0.
fn first_integer(cursor: &mut Cursor<'_>) -> Option<i64> {
    let mut first = 0;
    cursor.structure(&mut |cursor, id, kind| {
        let is_first = id == 1 && kind.is_integer();
        if is_first {
            first = cursor.integer()?;
        }
        Some(is_first)
    })?;
    Some(first)
}

#[cfg(test)]
mod tests;
