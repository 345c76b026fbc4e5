//! Files of the operating system below the data folder.
//!
//! Invariant: `sync` is fdatasync, which also makes a changed length durable; `sync_dir` is fsync of the folder.

use super::{File, Fs};
use rustix::fs::{FallocateFlags, OFlags};
use rustix::io::Errno;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file system below `root`, which exists. Paths are relative to `root`.
#[derive(Debug)]
pub struct OsFs {
    root: PathBuf,
}

impl OsFs {
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> OsFs {
        OsFs { root: root.into() }
    }

    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn open_with(&self, path: &Path, options: &OpenOptions) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(OsFile { file: options.open(self.root.join(path))?, unit: 1 }))
    }
}

impl Fs for OsFs {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.open_with(path, OpenOptions::new().read(true))
    }

    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.open_with(path, OpenOptions::new().read(true).write(true))
    }

    #[cfg(target_os = "linux")]
    fn open_direct(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        use std::os::unix::fs::OpenOptionsExt;
        let flags = OFlags::DIRECT.bits().cast_signed();
        match OpenOptions::new().read(true).write(true).custom_flags(flags).open(self.root.join(path)) {
            // Some file systems have no direct I/O.
            Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => self.open_write(path),
            file => Ok(Arc::new(OsFile { file: file?, unit: super::DIRECT_UNIT })),
        }
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.open_with(path, OpenOptions::new().read(true).write(true).create_new(true))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(self.root.join(from), self.root.join(to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let path = self.root.join(path);
        if path.is_dir() { std::fs::remove_dir(path) } else { std::fs::remove_file(path) }
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let entries = match std::fs::read_dir(self.root.join(dir)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let names: io::Result<Vec<String>> =
            entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect();
        let mut names = names?;
        names.sort_unstable();
        Ok(names)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        std::fs::create_dir_all(self.root.join(dir))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        std::fs::File::open(self.root.join(dir))?.sync_all()
    }
}

#[derive(Debug)]
struct OsFile {
    file: std::fs::File,
    unit: usize,
}

impl File for OsFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }

    #[cfg(target_os = "linux")]
    fn will_read(&self, offset: u64, bytes: u64) {
        // A file system without read-ahead reads when the bytes are requested.
        let _ = rustix::fs::fadvise(&self.file, offset, std::num::NonZeroU64::new(bytes), rustix::fs::Advice::WillNeed);
    }

    fn write_unit(&self) -> usize {
        self.unit
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        match self.file.write_all_at(bytes, offset) {
            // Other file systems reject direct I/O only at the first write.
            Err(error) if self.unit > 1 && error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {
                rustix::fs::fcntl_setfl(&self.file, OFlags::empty())?;
                self.file.write_all_at(bytes, offset)
            }
            written => written,
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        if len == 0 {
            return Ok(());
        }
        match rustix::fs::fallocate(&self.file, FallocateFlags::empty(), 0, len) {
            // Some file systems (NFS, old overlay drivers) cannot reserve space: writing zeros is the only way there.
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => self.write_zeros_to(len),
            result => Ok(result?),
        }
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

impl OsFile {
    fn write_zeros_to(&self, len: u64) -> io::Result<()> {
        let mut at = self.len()?;
        while at < len {
            let take = (len - at).min(ZEROS.len() as u64);
            self.file.write_all_at(&ZEROS[..take as usize], at)?;
            at += take;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::DIRECT_UNIT;

    #[test]
    fn what_is_written_past_the_cache_is_read_as_ever() {
        let dir = tempfile::tempdir().unwrap();
        let fs = OsFs::new(dir.path());
        fs.create(Path::new("log")).unwrap().write_all_at(&[1; 10_000], 0).unwrap();
        let file = fs.open_direct(Path::new("log")).unwrap();
        let mut bytes = Vec::new();
        let from = crate::fs::aligned(&mut bytes, file.write_unit(), DIRECT_UNIT);
        bytes[from..].fill(2);
        file.write_all_at(&bytes[from..], DIRECT_UNIT as u64).unwrap();
        file.sync().unwrap();
        let mut read = [0; 10_000];
        fs.open(Path::new("log")).unwrap().read_exact_at(&mut read, 0).unwrap();
        assert!(read[..4096] == [1; 4096] && read[4096..8192] == [2; 4096] && read[8192..] == [1; 1808]);
        // A write from an unaligned address succeeds through the page cache.
        file.write_all_at(&bytes[from..][..100], 9).unwrap();
        fs.open(Path::new("log")).unwrap().read_exact_at(&mut read, 0).unwrap();
        assert!(read[..9] == [1; 9] && read[9..109] == [2; 100] && read[109] == 1);
        assert_eq!(fs.open_direct(Path::new("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn files_grow_shrink_move_and_are_listed() {
        let dir = tempfile::tempdir().unwrap();
        let fs = OsFs::new(dir.path());
        assert_eq!(fs.list(Path::new("a")).unwrap(), Vec::<String>::new());
        fs.create_dir_all(Path::new("a/b")).unwrap();
        let file = fs.create(Path::new("a/b/one")).unwrap();
        assert_eq!(fs.create(Path::new("a/b/one")).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        file.write_all_at(b"hello", 3).unwrap();
        file.allocate(100).unwrap();
        assert_eq!(file.len().unwrap(), 100);
        file.set_len(6).unwrap();
        file.sync().unwrap();
        fs.rename(Path::new("a/b/one"), Path::new("a/two")).unwrap();
        fs.sync_dir(Path::new("a")).unwrap();
        assert_eq!(fs.list(Path::new("a")).unwrap(), ["b", "two"]);
        let mut buffer = [9; 6];
        fs.open(Path::new("a/two")).unwrap().read_exact_at(&mut buffer, 0).unwrap();
        assert_eq!(&buffer, b"\0\0\0hel");
        let past_the_end = fs.open_write(Path::new("a/two")).unwrap().read_exact_at(&mut buffer, 1);
        assert_eq!(past_the_end.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        fs.remove(Path::new("a/two")).unwrap();
        assert_eq!(fs.open(Path::new("a/two")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
