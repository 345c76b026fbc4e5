//! A file system whose changes stay in memory, on top of the files of another file system or of none.
//!
//! Shows the effect of a change without making it: a recovery for a check, a repair for a dry run.
//!
//! Invariant: the folder below is only read. Files that are written are held in memory completely.

use super::{File, Fs};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Debug)]
pub struct OverlayFs {
    /// `None` if all files are in memory.
    base: Option<Arc<dyn Fs>>,
    changes: Mutex<Changes>,
}

#[derive(Debug, Default)]
struct Changes {
    /// Current files by path; `None` for removed files.
    files: BTreeMap<PathBuf, Option<Arc<OverlayFile>>>,
    folders: BTreeSet<PathBuf>,
}

#[derive(Debug)]
struct OverlayFile {
    content: Mutex<FileContent>,
}

#[derive(Debug)]
enum FileContent {
    Below(Arc<dyn File>),
    Own(Vec<u8>),
}

impl OverlayFs {
    #[must_use]
    pub fn new(base: Arc<dyn Fs>) -> OverlayFs {
        OverlayFs { base: Some(base), changes: Mutex::default() }
    }

    /// Creates an overlay without files below it.
    #[must_use]
    pub fn in_memory() -> OverlayFs {
        OverlayFs { base: None, changes: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Changes> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, changes: &mut Changes, path: &Path) -> io::Result<Arc<OverlayFile>> {
        match changes.files.get(path) {
            Some(Some(file)) => Ok(file.clone()),
            Some(None) => Err(io::ErrorKind::NotFound.into()),
            None => {
                let base = self.base.as_ref().ok_or(io::ErrorKind::NotFound)?;
                let below = FileContent::Below(base.open(path)?);
                let file = Arc::new(OverlayFile { content: Mutex::new(below) });
                Ok(file)
            }
        }
    }
}

impl Fs for OverlayFs {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        Ok(self.find(&mut self.lock(), path)?)
    }

    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let mut changes = self.lock();
        let file = self.find(&mut changes, path)?;
        changes.files.insert(path.to_owned(), Some(file.clone()));
        Ok(file)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let mut changes = self.lock();
        if self.find(&mut changes, path).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let file = Arc::new(OverlayFile { content: Mutex::new(FileContent::Own(Vec::new())) });
        changes.files.insert(path.to_owned(), Some(file.clone()));
        Ok(file)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut changes = self.lock();
        let file = self.find(&mut changes, from)?;
        changes.files.insert(from.to_owned(), None);
        changes.files.insert(to.to_owned(), Some(file));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut changes = self.lock();
        if changes.folders.remove(path) {
            return Ok(());
        }
        self.find(&mut changes, path)?;
        changes.files.insert(path.to_owned(), None);
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let changes = self.lock();
        let mut names: BTreeSet<String> = match &self.base {
            Some(base) => base.list(dir)?.into_iter().collect(),
            None => BTreeSet::new(),
        };
        let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
        for (path, file) in changes.files.iter().filter(|(path, _)| path.parent() == Some(dir)) {
            match (name(path), file) {
                (Some(name), Some(_)) => drop(names.insert(name)),
                (Some(name), None) => drop(names.remove(&name)),
                (None, _) => {}
            }
        }
        names.extend(changes.folders.iter().filter(|path| path.parent() == Some(dir)).filter_map(|path| name(path)));
        Ok(names.into_iter().collect())
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        let mut changes = self.lock();
        for dir in dir.ancestors().filter(|dir| !dir.as_os_str().is_empty()) {
            changes.folders.insert(dir.to_owned());
        }
        Ok(())
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }
}

impl OverlayFile {
    fn lock(&self) -> MutexGuard<'_, FileContent> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the content after copying it if it still is the content of the file below.
    fn change(&self, change: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let mut content = self.lock();
        if let FileContent::Below(file) = &*content {
            let mut bytes = vec![0; file.len()? as usize];
            file.read_exact_at(&mut bytes, 0)?;
            *content = FileContent::Own(bytes);
        }
        if let FileContent::Own(bytes) = &mut *content {
            change(bytes);
        }
        Ok(())
    }
}

impl File for OverlayFile {
    fn len(&self) -> io::Result<u64> {
        match &*self.lock() {
            FileContent::Below(file) => file.len(),
            FileContent::Own(bytes) => Ok(bytes.len() as u64),
        }
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let file = match &*self.lock() {
            FileContent::Below(file) => file.clone(),
            FileContent::Own(bytes) => {
                let end = (offset as usize).checked_add(buffer.len());
                let from = end.and_then(|end| bytes.get(offset as usize..end));
                buffer.copy_from_slice(from.ok_or(io::ErrorKind::UnexpectedEof)?);
                return Ok(());
            }
        };
        file.read_exact_at(buffer, offset)
    }

    fn will_read(&self, offset: u64, bytes: u64) {
        if let FileContent::Below(file) = &*self.lock() {
            file.will_read(offset, bytes);
        }
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.change(|content| {
            let end = offset as usize + bytes.len();
            content.resize(content.len().max(end), 0);
            content[offset as usize..end].copy_from_slice(bytes);
        })
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.change(|content| content.resize(len as usize, 0))
    }

    /// Does nothing: memory is not reserved.
    fn allocate(&self, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::faulty::SimFs;

    #[test]
    fn changes_are_seen_above_and_not_below() {
        let below = SimFs::new(1);
        below.create_dir_all(Path::new("a")).unwrap();
        for name in ["a/one", "a/two", "a/three"] {
            below.create(Path::new(name)).unwrap().write_all_at(b"below", 0).unwrap();
        }
        let operations = below.operations();
        let fs = OverlayFs::new(Arc::new(below.clone()));
        fs.open_write(Path::new("a/one")).unwrap().write_all_at(b"above!", 2).unwrap();
        fs.rename(Path::new("a/two"), Path::new("a/moved")).unwrap();
        fs.remove(Path::new("a/three")).unwrap();
        fs.create(Path::new("a/new")).unwrap().set_len(3).unwrap();
        fs.create_dir_all(Path::new("a/folder/inner")).unwrap();
        assert_eq!(fs.list(Path::new("a")).unwrap(), ["folder", "moved", "new", "one"]);
        let read = |fs: &dyn Fs, path: &str| -> io::Result<Vec<u8>> {
            let file = fs.open(Path::new(path))?;
            let mut bytes = vec![0; file.len()? as usize];
            file.read_exact_at(&mut bytes, 0)?;
            Ok(bytes)
        };
        assert_eq!(read(&fs, "a/one").unwrap(), b"beabove!");
        assert_eq!(read(&fs, "a/moved").unwrap(), b"below");
        assert_eq!(read(&fs, "a/new").unwrap(), b"\0\0\0");
        assert_eq!(read(&fs, "a/three").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(fs.create(Path::new("a/moved")).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(below.list(Path::new("a")).unwrap(), ["one", "three", "two"]);
        assert_eq!(read(&below, "a/one").unwrap(), b"below");
        assert_eq!(below.operations(), operations, "nothing was changed below");
    }
}
