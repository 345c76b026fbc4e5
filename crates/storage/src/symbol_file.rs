//! A table's symbols on disk: entries in the order of their ids, appended before segments refer to them.
//!
//! The file `symbols/<table>.sym` is a sequence of chunks: length u32, CRC32C u32 of the following bytes, then entries:
//! column u32, first id u32, count u32 and the strings. The manifest contains the number of valid bytes; bytes after
//! them are from a write that was never published and are overwritten.

use crate::codec::{Decoder, Encoder};
use crate::fs::Fs;
use crate::{Error, Result, SymbolMap};
use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use tidalite_types::{ColumnId, TableId, Views};

pub const FOLDER: &str = "symbols";

#[must_use]
pub fn path_of(table: TableId) -> PathBuf {
    PathBuf::from(FOLDER).join(format!("{:08x}.sym", table.0))
}

/// Strings `first..` of a column's dictionary.
#[derive(Debug, PartialEq)]
pub struct Entries {
    pub column: ColumnId,
    pub first: u32,
    pub strings: Views,
}

/// Returns the entries of each dictionary that are not among the first `persisted` ones.
#[must_use]
pub fn pending(symbols: &HashMap<ColumnId, Arc<SymbolMap>>, persisted: &HashMap<ColumnId, u32>) -> Vec<Entries> {
    let mut all: Vec<Entries> = symbols
        .iter()
        .filter_map(|(&column, map)| {
            let first = persisted.get(&column).copied().unwrap_or(0);
            let strings = map.strings();
            if strings.len() <= first as usize {
                return None;
            }
            let mut new = Views::new();
            new.extend_from_range(strings.as_ref().as_ref(), first as usize, strings.len() - first as usize);
            Some(Entries { column, first, strings: new })
        })
        .collect();
    all.sort_by_key(|e| e.column);
    all
}

/// Appends entries after `offset`, synced, and returns the new end. The first chunk creates the file in [`FOLDER`].
pub fn append(fs: &dyn Fs, table: TableId, offset: u64, entries: &[Entries]) -> Result<u64> {
    if entries.is_empty() {
        return Ok(offset);
    }
    let mut payload = Encoder::new();
    entries.iter().for_each(|e| encode_entries(e, &mut payload));
    let mut chunk = Encoder::new();
    chunk.u32(payload.bytes.len() as u32);
    chunk.u32(crc32c::crc32c(&payload.bytes));
    chunk.bytes.extend(payload.bytes);
    let path = path_of(table);
    let file = match fs.open_write(&path) {
        Ok(file) => file,
        Err(_) => fs.create(&path).map_err(|e| Error::io("create", &path, e))?,
    };
    file.write_all_at(&chunk.bytes, offset).map_err(|e| Error::io("write", &path, e))?;
    file.sync().map_err(|e| Error::io("sync", &path, e))?;
    if offset == 0 {
        fs.sync_dir(FOLDER.as_ref()).map_err(|e| Error::io("sync", FOLDER.as_ref(), e))?;
    }
    Ok(offset + chunk.bytes.len() as u64)
}

/// Reads the first `len` bytes of the file.
pub fn read(fs: &dyn Fs, table: TableId, len: u64) -> Result<Vec<Entries>> {
    if len == 0 {
        return Ok(Vec::new());
    }
    let path = path_of(table);
    let file = fs.open(&path).map_err(|e| match e.kind() {
        // The manifest states that the file has content.
        io::ErrorKind::NotFound => Error::corrupt(format!("{} is missing", path.display())),
        _ => Error::io("open", &path, e),
    })?;
    // Checked before memory is allocated for a length that only the manifest states.
    let found = file.len().map_err(|e| Error::io("read", &path, e))?;
    if found < len {
        return Err(Error::corrupt(format!("{} has {found} bytes, {len} were written", path.display())));
    }
    let mut bytes = vec![0; len as usize];
    file.read_exact_at(&mut bytes, 0).map_err(|e| Error::io("read", &path, e))?;
    let corrupt = |rest: &[u8]| {
        Error::corrupt(format!("{} is corrupt in the chunk at byte {}", path.display(), bytes.len() - rest.len()))
    };
    let mut all = Vec::new();
    let mut chunks = Decoder::new(&bytes);
    while !chunks.rest.is_empty() {
        let start = chunks.rest;
        let mut next = || {
            let (len, crc) = (chunks.u32()? as usize, chunks.u32()?);
            chunks.take(len).map(|payload| (payload, crc))
        };
        let (payload, crc) = next().map_err(|_| corrupt(start))?;
        if crc32c::crc32c(payload) != crc {
            return Err(corrupt(start));
        }
        let mut d = Decoder::new(payload);
        while !d.rest.is_empty() {
            all.push(decode_entries(&mut d).map_err(|_| corrupt(start))?);
        }
    }
    Ok(all)
}

pub fn encode_entries(entries: &Entries, e: &mut Encoder) {
    e.u32(entries.column.0);
    e.u32(entries.first);
    e.u32(entries.strings.len() as u32);
    entries.strings.iter().for_each(|s| e.bytes(s));
}

pub fn decode_entries(d: &mut Decoder<'_>) -> Result<Entries, crate::codec::Malformed> {
    let (column, first, count) = (ColumnId(d.u32()?), d.u32()?, d.u32()?);
    let mut strings = Views::new();
    for _ in 0..count {
        strings.push(d.bytes()?);
    }
    Ok(Entries { column, first, strings })
}

impl Entries {
    /// Returns the number of strings of the column's dictionary with these entries.
    ///
    /// # Errors
    /// Fails if there are more strings than ids.
    pub fn end(&self) -> Result<u32> {
        let count = u32::try_from(self.strings.len()).ok();
        count.and_then(|count| self.first.checked_add(count)).ok_or_else(|| {
            Error::corrupt(format!("symbols of column {} begin at {}, past the last id", self.column, self.first))
        })
    }
}

/// Adds entries to a dictionary that may already contain some of them.
pub fn restore(map: &SymbolMap, entries: &Entries) -> Result<()> {
    let known = map.len();
    let first = entries.first as usize;
    if first > known {
        return Err(Error::corrupt(format!(
            "symbols of column {} begin at {first} but only {known} are known",
            entries.column
        )));
    }
    map.intern_all((known - first..entries.strings.len()).map(|i| entries.strings.get(i)));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::faulty::SimFs;
    use tidalite_types::ErrorKind;

    #[test]
    fn a_length_that_the_file_does_not_have_takes_no_memory() {
        let fs = SimFs::new(1);
        fs.create_dir_all(FOLDER.as_ref()).unwrap();
        let mut strings = Views::new();
        strings.push(b"a");
        let entries = Entries { column: ColumnId(3), first: 0, strings };
        let end = append(&fs, TableId(7), 0, std::slice::from_ref(&entries)).unwrap();
        assert_eq!(read(&fs, TableId(7), end).unwrap(), [entries]);
        for claimed in [end + 1, 1 << 40, u64::MAX] {
            assert_eq!(read(&fs, TableId(7), claimed).unwrap_err().kind(), ErrorKind::Corrupt, "{claimed}");
        }
    }

    #[test]
    fn ids_do_not_wrap_around() {
        let mut strings = Views::new();
        strings.push(b"a");
        let entries = |first| Entries { column: ColumnId(3), first, strings: strings.clone() };
        assert_eq!(entries(u32::MAX - 1).end().unwrap(), u32::MAX);
        assert_eq!(entries(u32::MAX).end().unwrap_err().kind(), ErrorKind::Corrupt);
    }
}
