//! Shared state of all segments: the location of their files, the block cache, and the open files.

use crate::Result;
use crate::cache::{BlockCache, BlockKey, CacheStats, Cached, Clock};
use crate::fs::{File, Fs};
use bytes::Bytes;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tidalite_memory::{Reclaim, register_reclaim};
use tidalite_types::{SegmentId, TableId};

/// Largest number of open files: thousands of segments must not exhaust the process's file limit (often 1,024).
pub const OPEN_FILES_MAX: usize = 512;

/// Contains a folder for each table.
pub const SEGMENTS_FOLDER: &str = "segments";

#[derive(Debug)]
pub struct SegmentStore {
    fs: Arc<dyn Fs>,
    cache: BlockCache,
    files: Mutex<Clock<SegmentId, Arc<dyn File>>>,
}

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    pub cache: CacheStats,
    pub open_files: usize,
}

impl Reclaim for SegmentStore {
    fn reclaim(&self, bytes: usize) -> usize {
        self.cache.evict(bytes)
    }
}

impl SegmentStore {
    /// Creates a store. `cache_bytes` is the memory limit of blocks and footers.
    #[must_use]
    pub fn new(fs: Arc<dyn Fs>, cache_bytes: usize) -> Arc<SegmentStore> {
        Arc::new(SegmentStore {
            fs,
            cache: BlockCache::new(cache_bytes),
            files: Mutex::new(Clock::new(OPEN_FILES_MAX)),
        })
    }

    /// Creates a store like [`SegmentStore::new`] with at most `open_files` open files; other files are opened for each
    /// read.
    #[must_use]
    pub fn with_open_files(fs: Arc<dyn Fs>, cache_bytes: usize, open_files: usize) -> Arc<SegmentStore> {
        let files = Mutex::new(Clock::new(open_files.clamp(1, OPEN_FILES_MAX)));
        let store = Arc::new(SegmentStore { fs, cache: BlockCache::new(cache_bytes), files });
        let cache: Arc<dyn Reclaim> = store.clone();
        register_reclaim(Arc::downgrade(&cache));
        store
    }

    /// Returns the folder of a table's segments, for [`Fs::create_dir_all`] and [`Fs::sync_dir`].
    #[must_use]
    pub fn dir(table: TableId) -> PathBuf {
        PathBuf::from(format!("{SEGMENTS_FOLDER}/{:08x}", table.0))
    }

    #[must_use]
    pub fn path(table: TableId, segment: SegmentId) -> PathBuf {
        PathBuf::from(format!("{SEGMENTS_FOLDER}/{:08x}/{:016x}.seg", table.0, segment.0))
    }

    #[must_use]
    pub fn fs(&self) -> &Arc<dyn Fs> {
        &self.fs
    }

    #[must_use]
    pub fn stats(&self) -> StoreStats {
        let open_files = self.files.lock().unwrap_or_else(PoisonError::into_inner).len();
        StoreStats { cache: self.cache.stats(), open_files }
    }

    /// Closes the file and removes the cached blocks of a segment without readers, before the file is removed.
    pub fn forget(&self, segment: SegmentId) {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).remove(&segment);
        self.cache.forget(segment);
    }

    pub(super) fn file(&self, segment: SegmentId, path: &Path) -> io::Result<Arc<dyn File>> {
        if let Some(file) = self.files.lock().unwrap_or_else(PoisonError::into_inner).get(&segment) {
            return Ok(file);
        }
        // Two readers may both open the file, which is cheaper than holding the lock during a system call.
        let file = self.fs.open(path)?;
        self.files.lock().unwrap_or_else(PoisonError::into_inner).insert(segment, file.clone(), 1);
        Ok(file)
    }

    /// Replaces the file of a segment.
    #[cfg(test)]
    pub(super) fn keep_open(&self, segment: SegmentId, file: Arc<dyn File>) {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).insert(segment, file, 1);
    }

    pub(super) fn is_cached(&self, key: &BlockKey) -> bool {
        self.cache.contains(key)
    }

    /// Returns the cached bytes of a key and marks them as used.
    pub(super) fn peek(&self, key: &BlockKey) -> Option<Bytes> {
        self.cache.peek(key)
    }

    /// Returns the bytes of a block without its derived value.
    pub(super) fn cached(&self, key: BlockKey, load: impl FnOnce() -> Result<Bytes>) -> Result<Bytes> {
        self.part(key, load, |cached| cached.bytes.clone())
    }

    pub(super) fn part<T>(
        &self,
        key: BlockKey,
        load: impl FnOnce() -> Result<Bytes>,
        part: impl Fn(&Cached) -> T,
    ) -> Result<T> {
        self.cache.part_or_load(key, load, part)
    }
}
