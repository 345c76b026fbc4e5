//! The interface for files: every byte that the database reads or writes passes through this module.
//!
//! [`os`] is the operating system, [`faulty`] a simulated disk in memory that can fail, tear, lose and reorder unsynced
//! writes, [`overlay`] changes in memory on top of another folder. Paths are relative to the data folder and use `/`.
//!
//! Assumptions about a disk, which `faulty` simulates: a write is durable only after `sync` of its file has returned.
//! Before that, any subset of its 512-byte sectors may survive a crash, in any order. A new, renamed or removed name is
//! durable only after `sync_dir` of its folder. After a failed sync the state of the writes that it covered is unknown.

mod aligned;
pub mod faulty;
pub mod os;
pub mod overlay;

pub use aligned::aligned;
use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Alignment of direct writes in bytes: no disk has larger blocks.
pub const DIRECT_UNIT: usize = 4096;

/// A folder of files.
pub trait Fs: Send + Sync + Debug {
    /// Opens an existing file for reading.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>>;
    /// Opens an existing file for reading and writing.
    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn File>>;
    /// Opens a file like [`Fs::open_write`], for writes that bypass the page cache if possible.
    ///
    /// Each write begins and ends at a multiple of [`File::write_unit`].
    fn open_direct(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.open_write(path)
    }
    /// Creates an empty file; fails with `AlreadyExists` if the file exists.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>>;
    /// Renames a file and replaces the file named `to`.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Returns the names of the files and folders in a folder, sorted; a missing folder is empty.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;
    /// Creates a folder and its parents; succeeds if the folder exists.
    fn create_dir_all(&self, dir: &Path) -> io::Result<()>;
    /// Makes the names in a folder durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
}

/// An open file. Each call states its position, so a file can be shared.
pub trait File: Send + Sync + Debug {
    fn len(&self) -> io::Result<u64>;
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Fills `buffer`, or fails with `UnexpectedEof`.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
    /// Announces a read, so that the disk may prefetch the bytes. A hint only.
    fn will_read(&self, _offset: u64, _bytes: u64) {}
    /// Returns the unit of position, length and memory address of writes: 1, or [`DIRECT_UNIT`].
    fn write_unit(&self) -> usize {
        1
    }
    /// Writes all of `bytes`; the file grows if the write ends past its end.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Reserves space for `len` bytes, so that writes below `len` cannot run out of space; extends the file to `len`.
    fn allocate(&self, len: u64) -> io::Result<()>;
    /// Makes content and length durable (fdatasync).
    fn sync(&self) -> io::Result<()>;
}
