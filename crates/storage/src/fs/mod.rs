//! The one seam for files: every byte that the database reads or writes passes here.
//!
//! [`os`] is the operating system, [`faulty`] a simulated disk in memory that can fail, tear, lose and reorder what
//! was not synced, [`overlay`] changes in memory above another folder. Paths are relative to the data folder, with `/`.
//!
//! What is assumed of a disk, and what `faulty` therefore may do: a write is durable only after `sync` of its file
//! returned; before that any subset of its 512-byte sectors may survive a crash, in any order. A new, renamed or
//! removed name is durable only after `sync_dir` of its folder. After a failed sync nothing is known of the
//! writes it covered.

mod aligned;
pub mod faulty;
pub mod os;
pub mod overlay;

pub use aligned::aligned;
use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Of writes past the system's cache: no disk has larger blocks.
pub const DIRECT_UNIT: usize = 4096;

/// A folder of files.
pub trait Fs: Send + Sync + Debug {
    /// Opens an existing file for reading.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>>;
    /// Opens an existing file for reading and writing.
    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn File>>;
    /// As [`Fs::open_write`], for writes that go to the disk past the system's cache where that is possible: each begins and
    /// ends at a multiple of [`File::write_unit`].
    fn open_direct(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.open_write(path)
    }
    /// Creates an empty file; fails with `AlreadyExists` when there is one.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>>;
    /// Renames, replacing what has the name `to`.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Names of the files and folders in a folder, sorted; a folder that is not there is empty.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;
    /// Creates a folder and its parents; not an error when it is there.
    fn create_dir_all(&self, dir: &Path) -> io::Result<()>;
    /// Makes the names in a folder durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
}

/// An open file. Positions are given with each call, so it can be shared.
pub trait File: Send + Sync + Debug {
    fn len(&self) -> io::Result<u64>;
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Fills `buffer`, or fails with `UnexpectedEof`.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
    /// These bytes will be read soon: a disk may begin to fetch them. Nothing depends on it.
    fn will_read(&self, _offset: u64, _bytes: u64) {}
    /// What place, length and address in memory of a write must be multiples of: 1, or [`DIRECT_UNIT`].
    fn write_unit(&self) -> usize {
        1
    }
    /// Writes all of `bytes`; past the end the file grows.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Reserves space for `len` bytes so that writes below it cannot run out of it; the length becomes at least `len`.
    fn allocate(&self, len: u64) -> io::Result<()>;
    /// Makes content and length durable (fdatasync).
    fn sync(&self) -> io::Result<()>;
}
