//! The rows that were staged at a checkpoint, of all tables, in one file.
//!
//! Out: `checkpoint/<number>.rows`, synced, its name durable, before the manifest points at it. The file is a sequence of
//! chunks: length u32, CRC32C u32 of what follows, then a count u32 of operations and the operations, as in the log;
//! a chunk of length 0 ends it.

use super::record::{Op, decode_op, encode_op};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidalite_storage::codec::{Decoder, Encoder, Malformed};
use tidalite_storage::fs::{File, Fs};
use tidalite_storage::{Error, Result};

pub use tidalite_storage::manifest::CHECKPOINT_FOLDER as FOLDER;
const CHUNK_HEADER: usize = 8;

pub use tidalite_storage::manifest::checkpoint_path as path_of;

#[derive(Debug)]
pub struct CheckpointWriter {
    file: Arc<dyn File>,
    path: PathBuf,
    len: u64,
}

impl CheckpointWriter {
    pub fn create(fs: &dyn Fs, number: u64) -> Result<CheckpointWriter> {
        let path = path_of(number);
        // Of an attempt that failed: the manifest does not point at it.
        let _ = fs.remove(&path);
        let file = fs.create(&path).map_err(|e| Error::io("create", &path, e))?;
        Ok(CheckpointWriter { file, path, len: 0 })
    }

    pub fn write(&mut self, ops: &[Op]) -> Result<()> {
        let mut e = Encoder::new();
        e.bytes.resize(CHUNK_HEADER, 0);
        e.u32(ops.len() as u32);
        ops.iter().for_each(|op| encode_op(op, &mut e));
        let len = (e.bytes.len() - CHUNK_HEADER) as u32;
        let crc = crc32c::crc32c(&e.bytes[CHUNK_HEADER..]);
        e.bytes[..4].copy_from_slice(&len.to_le_bytes());
        e.bytes[4..8].copy_from_slice(&crc.to_le_bytes());
        self.append(&e.bytes)
    }

    /// Makes the file and its name durable.
    pub fn finish(mut self, fs: &dyn Fs) -> Result<()> {
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
    let path = path_of(number);
    let file = fs.open(&path).map_err(|e| match e.kind() {
        // The manifest names it.
        io::ErrorKind::NotFound => Error::corrupt(format!("{} is missing", path.display())),
        _ => Error::io("open", &path, e),
    })?;
    let mut at = 0;
    loop {
        let corrupt = |what: &str| Error::corrupt(format!("{} is corrupt at byte {at}: {what}", path.display()));
        let read = |len: usize, offset: u64| {
            let mut bytes = vec![0; len];
            file.read_exact_at(&mut bytes, offset).map(|()| bytes).map_err(|e| Error::io("read", &path, e))
        };
        let header = read(CHUNK_HEADER, at)?;
        let mut d = Decoder::new(&header);
        let (Ok(len), Ok(crc)) = (d.u32(), d.u32()) else { return Err(corrupt("a chunk is cut off")) };
        if len == 0 {
            return Ok(());
        }
        if u64::from(len) > file.len().map_err(|e| Error::io("read", &path, e))? {
            return Err(corrupt("a chunk is longer than the file"));
        }
        let payload = read(len as usize, at + CHUNK_HEADER as u64)?;
        if crc32c::crc32c(&payload) != crc {
            return Err(corrupt("a chunk does not match its checksum"));
        }
        let ops: Vec<Op> = decode(&payload).map_err(|e| corrupt(&e.to_string()))?;
        ops.into_iter().try_for_each(&mut visit)?;
        at += (CHUNK_HEADER + payload.len()) as u64;
    }
}

fn decode(payload: &[u8]) -> Result<Vec<Op>, Malformed> {
    let mut d = Decoder::new(payload);
    (0..d.u32()?).map(|_| decode_op(&mut d)).collect()
}
