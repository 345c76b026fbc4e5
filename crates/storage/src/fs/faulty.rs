//! A simulated disk that fails and crashes on demand.
//!
//! The disk is in memory, and a seed determines its decisions. Operations that change the disk are counted from 0:
//! create, write, set_len, allocate, sync, rename, remove, create_dir_all and sync_dir. A test selects an operation
//! that fails, or during which the power is lost.
//!
//! After a power loss, [`SimFs::survivor`] may contain, in addition to everything that was synced:
//! - for each 512-byte sector of a file written since its last sync, independently, the old content or the content of
//!   any write since; sectors that were never written are zeros;
//! - the old length or any length since the last sync;
//! - for the changes of names in a folder since its last `sync_dir`, including names of folders: all changes, the first
//!   few, or any subset, in order. A rename within a folder is one change, a rename to another folder is two changes;
//! - no content of a file without a name, even if it was synced.
//!
//! [`SimFs::killed`] has the content that reads returned: only the process ended, and unsynced content can still be
//! lost.
//!
//! A failed sync may have written any of its sectors and forgets the other sectors: a later successful sync does not
//! make them durable, although reads return them until the power is lost (as in Linux since 4.13).

mod content;
mod names;
mod rng;

use super::{DIRECT_UNIT, File, Fs};
use content::Content;
use names::{Names, Node};
use rng::Rng;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A simulated disk. Clones are the same disk.
#[derive(Clone, Debug)]
pub struct SimFs {
    disk: Arc<Mutex<Disk>>,
}

/// An operation in the history, successful or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    pub what: &'static str,
    pub path: PathBuf,
}

/// The state of the disk until it is changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mood {
    #[default]
    Well,
    /// Files cannot grow, but reserved space can be written. Some files can still be created, empty.
    Full,
    /// All changes fail.
    ReadOnly,
    /// All reads and opens fail.
    Unreadable,
    /// One operation in `one_in` fails, including reads and opens.
    Erratic { one_in: u32 },
}

#[derive(Debug)]
struct Disk {
    rng: Rng,
    names: Names,
    files: BTreeMap<u64, Content>,
    history: Vec<Operation>,
    failures: BTreeMap<u64, io::ErrorKind>,
    crash_at: Option<u64>,
    is_crashed: bool,
    mood: Mood,
    failed: Vec<Operation>,
}

impl SimFs {
    /// Creates an empty disk.
    #[must_use]
    pub fn new(seed: u64) -> SimFs {
        SimFs::with(seed, Names::default(), BTreeMap::new())
    }

    fn with(seed: u64, names: Names, files: BTreeMap<u64, Content>) -> SimFs {
        let disk = Disk {
            rng: Rng(seed),
            names,
            files,
            history: Vec::new(),
            failures: BTreeMap::new(),
            crash_at: None,
            is_crashed: false,
            mood: Mood::Well,
            failed: Vec::new(),
        };
        SimFs { disk: Arc::new(Mutex::new(disk)) }
    }

    /// Returns the number of started operations, which is the number of the next operation.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.lock().history.len() as u64
    }

    #[must_use]
    pub fn history(&self) -> Vec<Operation> {
        self.lock().history.clone()
    }

    /// Makes operation number `operation` fail. A failed write may be partial; a failed sync loses the writes it
    /// covers.
    pub fn fail_at(&self, operation: u64, kind: io::ErrorKind) {
        self.lock().failures.insert(operation, kind);
    }

    /// Loses the power during operation number `operation`, which may be complete, partial or absent.
    ///
    /// This operation and all later operations fail, including reads.
    pub fn crash_at(&self, operation: u64) {
        self.lock().crash_at = Some(operation);
    }

    pub fn set_mood(&self, mood: Mood) {
        self.lock().mood = mood;
    }

    /// Removes all planned failures and power losses. Has no effect on a power loss in the past.
    pub fn calm(&self) {
        let mut disk = self.lock();
        (disk.mood, disk.crash_at) = (Mood::Well, None);
        disk.failures.clear();
    }

    /// Returns the operations that failed since the last call, excluding power losses.
    #[must_use]
    pub fn take_failed(&self) -> Vec<Operation> {
        std::mem::take(&mut self.lock().failed)
    }

    /// Loses the power now.
    pub fn crash(&self) {
        self.lock().is_crashed = true;
    }

    #[must_use]
    pub fn is_crashed(&self) -> bool {
        self.lock().is_crashed
    }

    /// Returns the disk after a power loss at this moment or at the past power loss. Other seeds give other disks.
    #[must_use]
    pub fn survivor(&self, seed: u64) -> SimFs {
        let disk = self.lock();
        let mut rng = Rng(seed ^ 0x7069_636b);
        let names = disk.names.survivor(&mut rng);
        let files = names.files().into_iter().map(|id| (id, disk.files[&id].survivor(&mut rng))).collect();
        SimFs::with(seed, names, files)
    }

    /// Returns the disk after the process that used it ended with the power on. The old process loses access.
    #[must_use]
    pub fn killed(&self) -> SimFs {
        let mut disk = self.lock();
        disk.is_crashed = true;
        let seed = disk.rng.next();
        let files = disk.names.reachable().into_iter().map(|id| (id, disk.files[&id].clone())).collect();
        SimFs::with(seed, disk.names.clone(), files)
    }

    fn lock(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn file(&self, id: u64, path: &Path) -> Arc<dyn File> {
        Arc::new(SimFile { fs: self.clone(), id, path: path.to_owned(), unit: 1 })
    }
}

/// The outcome of an operation.
enum Fate {
    Succeeds,
    Fails(io::Error),
    /// The power is lost; `happens` is true if the operation takes effect first.
    Crashes {
        happens: bool,
    },
}

impl Disk {
    fn check_power(&self) -> io::Result<()> {
        if self.is_crashed { Err(power_loss()) } else { Ok(()) }
    }

    /// Counts an operation and determines its outcome.
    fn begin(&mut self, what: &'static str, path: &Path, grows: bool) -> io::Result<Fate> {
        self.check_power()?;
        let number = self.history.len() as u64;
        self.history.push(Operation { what, path: path.to_owned() });
        if self.crash_at == Some(number) {
            self.is_crashed = true;
            return Ok(Fate::Crashes { happens: self.rng.next() & 1 == 1 });
        }
        let told = self.failures.remove(&number);
        let Some(kind) = told.or_else(|| self.mood_fails(what, grows)) else { return Ok(Fate::Succeeds) };
        self.failed.push(Operation { what, path: path.to_owned() });
        Ok(Fate::Fails(io::Error::new(kind, "simulated failure")))
    }

    fn mood_fails(&mut self, what: &'static str, grows: bool) -> Option<io::ErrorKind> {
        match self.mood {
            Mood::Well | Mood::Unreadable => None,
            Mood::Full if grows || what == "create" && self.rng.next() & 1 == 1 => Some(io::ErrorKind::StorageFull),
            Mood::Full => None,
            Mood::ReadOnly => Some(io::ErrorKind::ReadOnlyFilesystem),
            Mood::Erratic { one_in } => (self.rng.below(one_in as usize) == 0).then_some(io::ErrorKind::Other),
        }
    }

    /// Fails if a read operation fails. Read operations are not counted.
    fn check_read(&mut self, what: &'static str, path: &Path) -> io::Result<()> {
        self.check_power()?;
        let fails = match self.mood {
            Mood::Well | Mood::Full | Mood::ReadOnly => false,
            Mood::Unreadable => true,
            Mood::Erratic { .. } => self.mood_fails(what, false).is_some(),
        };
        if fails {
            self.failed.push(Operation { what, path: path.to_owned() });
            return Err(io::Error::other("simulated failure"));
        }
        Ok(())
    }

    /// Applies `change` unless the operation fails.
    fn change<T>(
        &mut self,
        what: &'static str,
        path: &Path,
        grows: bool,
        change: impl FnOnce(&mut Disk) -> io::Result<T>,
    ) -> io::Result<T> {
        match self.begin(what, path, grows)? {
            Fate::Succeeds => change(self),
            Fate::Fails(error) => Err(error),
            Fate::Crashes { happens } => {
                if happens {
                    // After the power loss the result of the operation is not reported.
                    let _ = change(self);
                }
                Err(power_loss())
            }
        }
    }

    fn content(&mut self, id: u64) -> &mut Content {
        self.files.get_mut(&id).expect("files stay as long as the disk, named or not")
    }
}

fn power_loss() -> io::Error {
    io::Error::other("simulated power loss")
}

impl Fs for SimFs {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let mut disk = self.lock();
        disk.check_read("open", path)?;
        Ok(self.file(disk.names.file(path)?, path))
    }

    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.open(path)
    }

    fn open_direct(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let mut disk = self.lock();
        disk.check_read("open", path)?;
        let id = disk.names.file(path)?;
        Ok(Arc::new(SimFile { fs: self.clone(), id, path: path.to_owned(), unit: DIRECT_UNIT }))
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let id = self.lock().change("create", path, false, |disk| {
            let id = disk.files.last_key_value().map_or(0, |(id, _)| id + 1);
            disk.names.create(path, Node::File(id))?;
            disk.files.insert(id, Content::default());
            Ok(id)
        })?;
        Ok(self.file(id, path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.lock().change("rename", from, false, |disk| disk.names.rename(from, to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.lock().change("remove", path, false, |disk| disk.names.remove(path))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut disk = self.lock();
        disk.check_read("list", dir)?;
        Ok(disk.names.list(dir))
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.lock().change("create_dir_all", dir, false, |disk| disk.names.create_dir_all(dir))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.lock().change("sync_dir", dir, false, |disk| disk.names.sync(dir))
    }
}

#[derive(Debug)]
struct SimFile {
    fs: SimFs,
    id: u64,
    path: PathBuf,
    unit: usize,
}

impl File for SimFile {
    fn len(&self) -> io::Result<u64> {
        let mut disk = self.fs.lock();
        disk.check_read("len", &self.path)?;
        Ok(disk.content(self.id).len())
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let mut disk = self.fs.lock();
        disk.check_read("read", &self.path)?;
        disk.content(self.id).read(buffer, offset)
    }

    fn write_unit(&self) -> usize {
        self.unit
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let places = [bytes.as_ptr().addr(), bytes.len(), offset as usize];
        assert!(places.iter().all(|place| place.is_multiple_of(self.unit)), "a direct write of {places:?}");
        let mut disk = self.fs.lock();
        let grows = offset + bytes.len() as u64 > disk.content(self.id).len();
        let (part, result) = match disk.begin("write", &self.path, grows)? {
            Fate::Succeeds => (bytes.len(), Ok(())),
            Fate::Fails(error) if disk.mood == Mood::ReadOnly => (0, Err(error)),
            Fate::Fails(error) => (disk.rng.below(bytes.len() + 1), Err(error)),
            Fate::Crashes { happens } => {
                (if happens { bytes.len() } else { disk.rng.below(bytes.len() + 1) }, Err(power_loss()))
            }
        };
        disk.content(self.id).write(&bytes[..part], offset);
        result
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.fs.lock().change("set_len", &self.path, false, |disk| {
            disk.content(self.id).set_len(len);
            Ok(())
        })
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        let mut disk = self.fs.lock();
        let grows = len > disk.content(self.id).len();
        disk.change("allocate", &self.path, grows, |disk| {
            let content = disk.content(self.id);
            content.set_len(len.max(content.len()));
            Ok(())
        })
    }

    fn sync(&self) -> io::Result<()> {
        let mut disk = self.fs.lock();
        match disk.begin("sync", &self.path, false)? {
            Fate::Succeeds | Fate::Crashes { happens: true } => disk.content(self.id).sync(),
            Fate::Crashes { happens: false } => {}
            Fate::Fails(error) => {
                let mut rng = Rng(disk.rng.next());
                disk.content(self.id).fail_sync(&mut rng);
                return Err(error);
            }
        }
        disk.check_power()
    }
}

#[cfg(test)]
mod tests;
