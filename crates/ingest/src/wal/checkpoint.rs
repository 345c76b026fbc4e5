//! The staged rows of all tables at a checkpoint, in one file.
//!
//! Output: `checkpoint/<number>.rows`, synced with a durable name before the manifest refers to it. The file is a
//! sequence of chunks: length u32, CRC32C u32 of the following bytes, then a count u32 of operations and the
//! operations, as in the log; a chunk of length 0 ends the file.

use super::log::Ops;
use super::record::{Op, encode_op};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidalite_storage::codec::{Decoder, Encoder};
use tidalite_storage::fs::{File, Fs};
use tidalite_storage::{Error, Result};

pub use tidalite_storage::manifest::CHECKPOINT_FOLDER as FOLDER;
const CHUNK_HEADER: usize = 8;
/// Size of a chunk in bytes, at which it is ended: ten thousand tables with a few rows each have a hundred thousand
/// operations. Larger chunks would make more operations unreadable if one byte is damaged.
const CHUNK_BYTES: usize = 64 << 10;
/// Size of a read in bytes, or a chunk if it is larger.
const READ_BYTES: usize = 4 << 20;

pub use tidalite_storage::manifest::checkpoint_path as path_of;

#[derive(Debug)]
pub struct CheckpointWriter {
    file: Arc<dyn File>,
    path: PathBuf,
    len: u64,
    /// Space for the header, then the count, then the operations.
    chunk: Encoder,
    count: u32,
}

impl CheckpointWriter {
    pub fn create(fs: &dyn Fs, number: u64) -> Result<CheckpointWriter> {
        let path = path_of(number);
        // A file of a failed attempt, to which the manifest does not refer.
        let _ = fs.remove(&path);
        let file = fs.create(&path).map_err(|e| Error::io("create", &path, e))?;
        Ok(CheckpointWriter { file, path, len: 0, chunk: Encoder::new(), count: 0 })
    }

    pub fn write(&mut self, op: &Op) -> Result<()> {
        // Deleted rows of a run are counted from its end, so they stay in the chunk of the run.
        if self.chunk.bytes.len() >= CHUNK_BYTES && !matches!(op, Op::Delete { .. }) {
            self.end_chunk()?;
        }
        self.chunk.bytes.resize(self.chunk.bytes.len().max(CHUNK_HEADER + 4), 0);
        encode_op(op, &mut self.chunk);
        self.count += 1;
        Ok(())
    }

    fn end_chunk(&mut self) -> Result<()> {
        if self.count == 0 {
            return Ok(());
        }
        let mut bytes = std::mem::take(&mut self.chunk.bytes);
        let payload = &mut bytes[CHUNK_HEADER..];
        payload[..4].copy_from_slice(&self.count.to_le_bytes());
        let (len, crc) = (payload.len() as u32, crc32c::crc32c(payload));
        bytes[..4].copy_from_slice(&len.to_le_bytes());
        bytes[4..8].copy_from_slice(&crc.to_le_bytes());
        self.append(&bytes)?;
        bytes.clear();
        (self.chunk.bytes, self.count) = (bytes, 0);
        Ok(())
    }

    /// Makes the file and its name durable.
    pub fn finish(mut self, fs: &dyn Fs) -> Result<()> {
        self.end_chunk()?;
        self.append(&[0; CHUNK_HEADER])?;
        self.file.sync().map_err(|e| Error::io("sync", &self.path, e))?;
        fs.sync_dir(Path::new(FOLDER)).map_err(|e| Error::io("sync", Path::new(FOLDER), e))
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all_at(bytes, self.len).map_err(|e| Error::io("write", &self.path, e))?;
        self.len += bytes.len() as u64;
        Ok(())
    }
}

/// Reads the operations of a checkpoint in order.
pub fn read(fs: &dyn Fs, number: u64, mut visit: impl FnMut(Op) -> Result<()>) -> Result<()> {
    read_chunks(fs, number, |mut ops| {
        while let Some(op) = ops.next_op()? {
            visit(op)?;
        }
        Ok(())
    })
}

/// Reads the chunks of a checkpoint in order.
pub fn read_chunks(fs: &dyn Fs, number: u64, mut visit: impl FnMut(Ops<'_>) -> Result<()>) -> Result<()> {
    let path = path_of(number);
    let file = fs.open(&path).map_err(|e| match e.kind() {
        // The manifest names the file.
        io::ErrorKind::NotFound => Error::corrupt(format!("{} is missing", path.display())),
        _ => Error::io("open", &path, e),
    })?;
    let len = file.len().map_err(|e| Error::io("read", &path, e))?;
    // Bytes that were read but not used begin at `at` in the file and at `used` in `bytes`.
    let (mut bytes, mut used, mut at) = (Vec::new(), 0, 0);
    let fill = |bytes: &mut Vec<u8>, used: &mut usize, at: u64, wanted: usize| {
        if bytes.len() - *used >= wanted {
            return Ok(());
        }
        let count = (wanted.max(READ_BYTES) as u64).min(len.saturating_sub(at)).max(wanted as u64) as usize;
        bytes.resize(count, 0);
        *used = 0;
        file.read_exact_at(bytes, at).map_err(|e| Error::io("read", &path, e))
    };
    loop {
        let corrupt = |what: &str| Error::corrupt(format!("{} is corrupt at byte {at}: {what}", path.display()));
        fill(&mut bytes, &mut used, at, CHUNK_HEADER)?;
        let mut d = Decoder::new(&bytes[used..used + CHUNK_HEADER]);
        let (Ok(len_of_chunk), Ok(crc)) = (d.u32(), d.u32()) else { return Err(corrupt("a chunk is cut off")) };
        if len_of_chunk == 0 {
            return Ok(());
        }
        let whole = CHUNK_HEADER + len_of_chunk as usize;
        if at + whole as u64 > len {
            return Err(corrupt("a chunk is longer than the file"));
        }
        fill(&mut bytes, &mut used, at, whole)?;
        let payload = &bytes[used + CHUNK_HEADER..used + whole];
        if crc32c::crc32c(payload) != crc {
            return Err(corrupt("a chunk does not match its checksum"));
        }
        visit(Ops::new(payload, &path, at)?)?;
        used += whole;
        at += whole as u64;
    }
}
