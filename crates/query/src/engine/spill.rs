//! Spill files of operators, in one folder and with one limit for all queries.
//!
//! Each process creates a folder `tidalite-spill-<process>-<time>` below the folder of the setting, at the first spill,
//! holds a lock in that folder and removes the folder at the end. [`clean`] removes the folders of killed processes: by
//! the names of folder and files, and only if the lock is free.

use crate::Error;
use bytes::Bytes;
use datafusion::common::{DataFusionError, Result as DataFusionResult};
use datafusion::execution::spill_file::{SpillFile, SpillWriter, TempFileFactory};
use futures::Stream;
use futures::stream::try_unfold;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use tidalite_types::{ErrorKind, SqlState};

const PREFIX: &str = "tidalite-spill-";
const LOCK: &str = "lock";
const NEW_LOCK: &str = "lock.new";
const FILE_PREFIX: &str = "spill-";
/// Bytes of one read.
const READ_BYTES: usize = 128 << 10;

/// Removes the files of killed processes from a spill folder, as far as possible. Other files stay.
pub fn clean(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if is_ours && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let _ = clean_one(&entry.path());
        }
    }
}

fn clean_one(folder: &Path) -> io::Result<()> {
    let lock = OpenOptions::new().write(true).open(folder.join(LOCK))?;
    if lock.try_lock().is_err() {
        return Ok(());
    }
    for entry in fs::read_dir(folder)?.flatten() {
        if entry.file_name().to_string_lossy().starts_with(FILE_PREFIX) {
            fs::remove_file(entry.path())?;
        }
    }
    fs::remove_file(folder.join(LOCK))?;
    fs::remove_dir(folder)
}

/// The spill files of one database.
#[derive(Debug)]
pub(super) struct Spills {
    /// The folder of the setting.
    folder: PathBuf,
    bytes_max: u64,
    used: Arc<AtomicU64>,
    next: AtomicU64,
    /// `None` before the first spill.
    own: Mutex<Option<Own>>,
}

/// The folder of this process.
#[derive(Debug)]
struct Own {
    path: PathBuf,
    _lock: File,
}

impl Spills {
    pub(super) fn new(folder: PathBuf, bytes_max: u64) -> Spills {
        Spills { folder, bytes_max, used: Arc::default(), next: AtomicU64::new(0), own: Mutex::new(None) }
    }

    fn create(&self) -> io::Result<Spilled> {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = match &*own {
            Some(own) => own.path.clone(),
            None => {
                let made = Own::new(&self.folder)?;
                own.insert(made).path.clone()
            }
        };
        drop(own);
        let path = folder.join(format!("{FILE_PREFIX}{}", self.next.fetch_add(1, Relaxed)));
        OpenOptions::new().write(true).create_new(true).open(&path)?;
        Ok(Spilled {
            path,
            bytes: Arc::default(),
            used: self.used.clone(),
            bytes_max: self.bytes_max,
            folder: self.folder.clone(),
        })
    }
}

impl Own {
    fn new(folder: &Path) -> io::Result<Own> {
        fs::create_dir_all(folder)?;
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos());
        let path = folder.join(format!("{PREFIX}{}-{nanos}", std::process::id()));
        fs::create_dir(&path)?;
        // Lock before rename: a free lock under the final name belongs to a dead process.
        let unnamed = path.join(NEW_LOCK);
        let lock = OpenOptions::new().write(true).create_new(true).open(&unnamed)?;
        lock.try_lock().map_err(io::Error::other)?;
        fs::rename(&unnamed, path.join(LOCK))?;
        Ok(Own { path, _lock: lock })
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        // Queries remove their files, and end before the engine is dropped.
        let _ = fs::remove_file(self.path.join(LOCK)).and_then(|()| fs::remove_dir(&self.path));
    }
}

/// Creates spill files for DataFusion.
#[derive(Debug)]
pub(super) struct Factory(pub(super) Arc<Spills>);

impl TempFileFactory for Factory {
    fn create_temp_file(&self, _: &str) -> DataFusionResult<Arc<dyn SpillFile>> {
        let created = self.0.create().map_err(|e| refused(&self.0.folder, self.0.bytes_max, &e))?;
        Ok(Arc::new(created))
    }
}

/// Returns the error of a file operation that failed.
fn refused(folder: &Path, bytes_max: u64, error: &io::Error) -> Error {
    let message = format!(
        "could not write a spill file in {} (setting spill.folder, at most {bytes_max} bytes by spill.bytes_max): {error}",
        folder.display()
    );
    spill_error(message)
}

fn spill_error(message: String) -> Error {
    let error = Error::new(ErrorKind::Unavailable, message).with_code(SqlState::DISK_FULL);
    error.with_hint("free disk space, change spill.folder, or raise query.memory_bytes")
}

#[derive(Debug)]
struct Spilled {
    path: PathBuf,
    bytes: Arc<AtomicU64>,
    used: Arc<AtomicU64>,
    bytes_max: u64,
    folder: PathBuf,
}

impl Drop for Spilled {
    fn drop(&mut self) {
        self.used.fetch_sub(self.bytes.load(Relaxed), Relaxed);
        let _ = fs::remove_file(&self.path);
    }
}

impl SpillFile for Spilled {
    fn path(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn size(&self) -> Option<u64> {
        Some(self.bytes.load(Relaxed))
    }

    /// Opens the file at once, so that the file may be removed during the read.
    fn read_stream(&self) -> DataFusionResult<Pin<Box<dyn Stream<Item = DataFusionResult<Bytes>> + Send>>> {
        let file = File::open(&self.path).map_err(|e| self.refused(&e))?;
        let pieces = try_unfold(file, |mut file| async move {
            let read = tokio::task::spawn_blocking(move || {
                let mut piece = vec![0; READ_BYTES];
                let count = file.read(&mut piece)?;
                piece.truncate(count);
                Ok::<_, io::Error>((piece, file))
            });
            let (piece, file) = read.await.map_err(io::Error::other)??;
            Ok::<_, DataFusionError>((!piece.is_empty()).then(|| (Bytes::from(piece), file)))
        });
        Ok(Box::pin(pieces))
    }

    fn open_writer(&self) -> DataFusionResult<Box<dyn SpillWriter>> {
        let file = OpenOptions::new().append(true).open(&self.path).map_err(|e| self.refused(&e))?;
        let Spilled { bytes, used, bytes_max, folder, .. } = self;
        let (bytes, used, folder) = (bytes.clone(), used.clone(), folder.clone());
        Ok(Box::new(Writing { file, bytes, used, bytes_max: *bytes_max, folder }))
    }
}

impl Spilled {
    fn refused(&self, error: &io::Error) -> Error {
        refused(&self.folder, self.bytes_max, error)
    }
}

struct Writing {
    file: File,
    bytes: Arc<AtomicU64>,
    used: Arc<AtomicU64>,
    bytes_max: u64,
    folder: PathBuf,
}

impl Write for Writing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len() as u64;
        let grown = |used: u64| used.checked_add(count).filter(|used| *used <= self.bytes_max);
        if self.used.fetch_update(Relaxed, Relaxed, grown).is_err() {
            let message = format!(
                "spill files of all queries may take {} bytes in {} (settings spill.bytes_max and spill.folder)",
                self.bytes_max,
                self.folder.display()
            );
            return Err(io::Error::other(spill_error(message)));
        }
        if let Err(error) = self.file.write_all(bytes) {
            self.used.fetch_sub(count, Relaxed);
            return Err(io::Error::other(refused(&self.folder, self.bytes_max, &error)));
        }
        self.bytes.fetch_add(count, Relaxed);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl SpillWriter for Writing {
    fn finish(&mut self) -> DataFusionResult<()> {
        Ok(())
    }
}

/// Returns the [`Error`] inside of an I/O error.
pub(crate) fn ours(error: &io::Error) -> Option<&Error> {
    error.get_ref()?.downcast_ref()
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::StreamExt;

    fn names(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).into_iter().flatten().flatten();
        names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn files_come_and_go_within_a_limit() {
        let folder = tempfile::tempdir().unwrap();
        let spills = Arc::new(Spills::new(folder.path().join("within"), 1000));
        assert!(names(folder.path()).is_empty(), "nothing is made before it is needed");
        let factory = Factory(spills.clone());
        let first = factory.create_temp_file("a test").unwrap();
        let second = factory.create_temp_file("a test").unwrap();
        first.open_writer().unwrap().write_all(&[7; 600]).unwrap();
        let error = second.open_writer().unwrap().write_all(&[8; 600]).unwrap_err();
        let error = ours(&error).unwrap();
        assert_eq!((error.kind(), error.code), (ErrorKind::Unavailable, Some(SqlState::DISK_FULL)));
        for part in ["1000 bytes", "spill.bytes_max", "spill.folder", "within"] {
            assert!(error.to_string().contains(part), "{error}");
        }
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let read = |file: &Arc<dyn SpillFile>| {
            let stream = file.read_stream().unwrap();
            let pieces: Vec<_> = runtime.block_on(stream.collect());
            pieces.into_iter().map(|piece| piece.unwrap().to_vec()).collect::<Vec<_>>().concat()
        };
        assert_eq!(read(&first), [7; 600]);
        drop(first);
        second.open_writer().unwrap().write_all(&[8; 600]).unwrap();
        assert_eq!((read(&second).len(), second.size()), (600, Some(600)));
        drop((second, factory, spills));
        assert!(names(&folder.path().join("within")).is_empty());
    }

    #[test]
    fn only_what_a_dead_process_left_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let alive = Spills::new(folder.path().to_owned(), 1000);
        let file = alive.create().unwrap();
        let dead = path("tidalite-spill-1-1");
        for folder in [&dead, &path("other"), &path("tidalite-spill-mine")] {
            fs::create_dir(folder).unwrap();
        }
        for file in [dead.join(LOCK), dead.join("spill-3"), path("tidalite-spill-mine/spill-notes"), path("spill-1")] {
            fs::write(file, "x").unwrap();
        }
        clean(folder.path());
        let mut left: Vec<_> =
            names(folder.path()).into_iter().filter(|n| !n.contains(&std::process::id().to_string())).collect();
        left.sort();
        assert_eq!(left, ["other", "spill-1", "tidalite-spill-mine"], "a folder without a lock is not ours");
        assert!(path("tidalite-spill-mine/spill-notes").exists() && file.path.exists());
        // A foreign file in a spill folder keeps the folder.
        fs::create_dir(&dead).unwrap();
        for file in [dead.join(LOCK), dead.join("spill-3"), dead.join("notes")] {
            fs::write(file, "x").unwrap();
        }
        clean(folder.path());
        assert!(dead.join("notes").exists() && !dead.join("spill-3").exists());
        clean(&path("not there"));
    }
}
