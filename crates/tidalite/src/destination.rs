//! Destinations of backups: named files that are written once completely and never changed.
//!
//! Input: bytes with a name. Output: the same. A name exists only once all of its bytes are durable. Writers of an
//! existing name write the same bytes, so the last writer may win. A folder is a destination; [`objects`] are stores
//! like S3.

mod objects;
mod open;

pub use objects::Objects;
pub use open::open;

use crate::{Error, Result};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use tidalite_storage::fs::{File, Fs};

/// Folder of the backup lists: a destination with this folder contains only files of backups.
pub const BACKUPS: &str = "backups";

/// Size in bytes of the pieces of a copy.
pub(crate) const PIECE_BYTES: usize = 1 << 20;

pub trait Destination: Send + Sync + Debug {
    /// Returns the name that the user gave.
    fn name(&self) -> String;
    /// Returns the names in a folder, sorted; empty for a missing folder.
    fn list(&self, folder: &str) -> Result<Vec<String>>;
    fn open(&self, name: &str) -> Result<Arc<dyn File>>;
    /// Opens a file like `open`; `None` if the name does not exist.
    fn find(&self, name: &str) -> Result<Option<Arc<dyn File>>>;
    /// Returns true if reads of files cost no money.
    fn is_near(&self) -> bool {
        true
    }
    /// Writes `len` bytes from `read` in order. When it returns, the name exists completely or not at all.
    /// With an empty buffer, `read` only reports cancellation.
    fn put(&self, name: &str, len: u64, read: &mut dyn FnMut(&mut [u8]) -> Result<()>) -> Result<()>;
    /// Makes all written names durable.
    fn sync(&self) -> Result<()>;

    /// Writes a name that must not exist: of two writers, one is rejected.
    fn put_new(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.put_bytes(name, bytes)
    }

    fn put_bytes(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let mut rest = bytes;
        self.put(name, bytes.len() as u64, &mut |buffer| {
            let (now, later) = rest.split_at(buffer.len());
            buffer.copy_from_slice(now);
            rest = later;
            Ok(())
        })
    }

    fn read(&self, name: &str) -> Result<Vec<u8>> {
        let file = self.open(name)?;
        let io = |e| tidalite_storage::Error::io("read", Path::new(name), e);
        let mut bytes = vec![0; file.len().map_err(io)? as usize];
        file.read_exact_at(&mut bytes, 0).map_err(io)?;
        Ok(bytes)
    }
}

/// A folder on a local or mounted disk.
#[derive(Debug)]
pub struct Folder {
    fs: Arc<dyn Fs>,
    name: String,
    /// Folders with names that are not yet durable.
    unsynced: Mutex<BTreeSet<PathBuf>>,
}

impl Folder {
    #[must_use]
    pub fn new(fs: Arc<dyn Fs>, name: String) -> Folder {
        Folder { fs, name, unsynced: Mutex::default() }
    }

    fn failed(&self, action: &str, path: &Path, error: std::io::Error) -> Error {
        tidalite_storage::Error::io(action, &Path::new(&self.name).join(path), error).into()
    }
}

impl Destination for Folder {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn list(&self, folder: &str) -> Result<Vec<String>> {
        self.fs.list(Path::new(folder)).map_err(|e| self.failed("list", Path::new(folder), e))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn File>> {
        self.fs.open(Path::new(name)).map_err(|e| self.failed("open", Path::new(name), e))
    }

    fn find(&self, name: &str) -> Result<Option<Arc<dyn File>>> {
        match self.fs.open(Path::new(name)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            found => found.map(Some).map_err(|e| self.failed("open", Path::new(name), e)),
        }
    }

    fn put(&self, name: &str, len: u64, read: &mut dyn FnMut(&mut [u8]) -> Result<()>) -> Result<()> {
        let path = Path::new(name);
        let folder = path.parent().unwrap_or(Path::new(""));
        self.fs.create_dir_all(folder).map_err(|e| self.failed("create", folder, e))?;
        let part = PathBuf::from(format!("{name}.{}.part", unique()));
        let file = self.fs.create(&part).map_err(|e| self.failed("create", &part, e))?;
        let written = write(&*file, len, read, |action, e| self.failed(action, &part, e));
        let put = written.and_then(|()| self.fs.rename(&part, path).map_err(|e| self.failed("rename", path, e)));
        if put.is_err() {
            // An incomplete file without readers.
            let _ = self.fs.remove(&part);
        }
        let mut unsynced = self.unsynced.lock().unwrap_or_else(PoisonError::into_inner);
        unsynced.extend(folder.ancestors().map(Path::to_owned));
        put
    }

    fn sync(&self) -> Result<()> {
        let folders = std::mem::take(&mut *self.unsynced.lock().unwrap_or_else(PoisonError::into_inner));
        // Inner folders first: a name is durable only in a durable folder.
        folders.iter().rev().try_for_each(|f| self.fs.sync_dir(f).map_err(|e| self.failed("sync", f, e)))
    }
}

fn write(
    file: &dyn File,
    len: u64,
    read: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    failed: impl Fn(&str, std::io::Error) -> Error,
) -> Result<()> {
    let (mut buffer, mut at) = (vec![0; PIECE_BYTES.min(len as usize)], 0);
    while at < len {
        let piece = (len - at).min(PIECE_BYTES as u64) as usize;
        read(&mut buffer[..piece])?;
        file.write_all_at(&buffer[..piece], at).map_err(|e| failed("write", e))?;
        at += piece as u64;
    }
    file.sync().map_err(|e| failed("sync", e))
}

/// Returns a name that is unique across calls, including those of other processes with the same destination.
fn unique() -> String {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos());
    format!("{}-{nanos}-{}", std::process::id(), CALLS.fetch_add(1, Relaxed))
}
