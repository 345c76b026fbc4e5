//! Log files of records: appended, synced, replayed at open, recycled after a checkpoint.
//!
//! A file `wal/<number>` has a header of 64 bytes (magic, number, first commit, CRC32C; epoch of its first record,
//! CRC32C), followed by records, each aligned to 8 bytes: length u32, CRC32C u32 of all following bytes, file number
//! u64, epoch u64, commit u64, payload. Files are filled with zeros in advance ([`make_spare`]) and reused under a new
//! number, so that a sync writes data but no metadata; content of an earlier use has another file number. If every
//! commit is synced, files are written past the page cache ([`LogWriter::bypass_cache`]): only recovery and backups
//! read them, and a sync has nothing left to write. The disk then requires whole blocks: the last partial block is
//! written again with the following records and padding zeros.
//!
//! Epochs record which records were synced before others were written. A record has at most the epoch of the previous
//! one plus two. All records two or more epochs before a record were synced before it was written. The first bad record
//! therefore ends the log if no later record is four epochs after the last good one; otherwise a synced record was
//! damaged, which is reported as corruption. If each group is synced before the next is written, the next group is two
//! epochs later. With overlapping syncs it is one epoch later, once all records before its predecessor's epoch are
//! durable.
//!
//! A missing or truncated last file resembles a crash: [`Mark`] has a lower bound of the durable log.
//!
//! Crash: possible at any point. Acknowledged commits exist; a record exists completely or not at all.

use super::mark::{self, Durable, Mark};
use super::record::{Front, Op, decode_front, decode_op, encode_op};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidalite_storage::codec::{Decoder, Encoder, Malformed};
use tidalite_storage::fs::{DIRECT_UNIT, File, Fs, aligned};
use tidalite_storage::{Error, Result};
use tidalite_types::{ErrorKind, Txn};

/// The files have no suffix, so that scripts that delete `*.log` do not match them.
pub const FOLDER: &str = "wal";
/// Folder of the log in earlier builds, with files `<number>.log`, which are read and released, but never written.
pub const OLD_FOLDER: &str = "log";
pub(super) const MAGIC: &[u8; 8] = b"TIDELOG1";
/// First bytes of files of every format, followed by the digit of the format.
const MAGIC_OF_ALL: &[u8; 7] = b"TIDELOG";
pub(super) const FILE_HEADER: u64 = 64;
pub(super) const RECORD_HEADER: usize = 32;
/// Largest number of released files kept as spares: as many as a typical checkpoint releases. New spares must be filled
/// with zeros.
const SPARES_MAX: usize = 8;
/// Size of the first file after an open, which is short: soon there is a spare, whose syncs are faster.
const FIRST_FILE_BYTES: u64 = 4 << 20;
/// Smallest size of a file, enough for a few commands.
const LEAST_FILE_BYTES: u64 = 1 << 20;
const NEW_SPARE: &str = "spare-new";
/// Size of a write and sync while a spare is made, because commits are synced in between.
const SPARE_STEP: usize = 1 << 20;
/// Part of a file that is reserved for commits that free space: on a full disk, tables, partitions and rows can be
/// removed. A few commits fit.
const KEPT_BYTES: u64 = 1 << 20;

/// Records that are written together.
#[derive(Debug, Default)]
pub struct Group {
    encoder: Encoder,
    /// Start of the records, after space for the end of the previous write.
    from: usize,
    /// Starts and commits of the records.
    records: Vec<(usize, Txn)>,
}

impl Group {
    /// Adds a commit.
    pub fn push(&mut self, txn: Txn, ops: &[Op]) {
        let bytes = &mut self.encoder.bytes;
        let start = bytes.len();
        self.records.push((start, txn));
        bytes.resize(start + RECORD_HEADER, 0);
        self.encoder.u32(ops.len() as u32);
        ops.iter().for_each(|op| encode_op(op, &mut self.encoder));
        let end = start + (self.encoder.bytes.len() - start).next_multiple_of(8);
        self.encoder.bytes.resize(end, 0);
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    #[must_use]
    pub fn byte_count(&self) -> usize {
        self.encoder.bytes.len() - self.from
    }

    pub fn clear(&mut self) {
        self.encoder.bytes.truncate(self.from);
        self.records.clear();
    }

    /// Clears the group, with space for `tail_bytes` in a write aligned to `unit`.
    fn begin_behind(&mut self, tail_bytes: usize, unit: usize) {
        self.records.clear();
        self.encoder.bytes.clear();
        self.from = aligned(&mut self.encoder.bytes, unit, 0) + tail_bytes;
        self.encoder.bytes.resize(self.from, 0);
    }

    /// Returns the bytes of a write: `tail`, the records, and zeros up to a multiple of `unit`.
    ///
    /// Records that [`Group::begin_behind`] has placed are not moved.
    fn behind(&mut self, tail: &[u8], unit: usize) -> &[u8] {
        let count = self.byte_count();
        let len = (tail.len() + count).next_multiple_of(unit);
        let bytes = &mut self.encoder.bytes;
        let start = aligned(bytes, unit, len);
        let from = start + tail.len();
        if from != self.from {
            bytes.copy_within(self.from..self.from + count, from);
            self.from = from;
        }
        bytes[start..from].copy_from_slice(tail);
        bytes[from + count..start + len].fill(0);
        &bytes[start..start + len]
    }

    pub(super) fn seal(&mut self, file: u64, epoch: u64) {
        let ends: Vec<usize> = self.records.iter().skip(1).map(|r| r.0).chain([self.encoder.bytes.len()]).collect();
        for (&(start, txn), end) in self.records.iter().zip(ends) {
            let record = &mut self.encoder.bytes[start..end];
            let len = (record.len() - RECORD_HEADER) as u32;
            record[0..4].copy_from_slice(&len.to_le_bytes());
            record[8..16].copy_from_slice(&file.to_le_bytes());
            record[16..24].copy_from_slice(&epoch.to_le_bytes());
            record[24..32].copy_from_slice(&txn.0.to_le_bytes());
            let crc = crc32c::crc32c(&record[8..]);
            record[4..8].copy_from_slice(&crc.to_le_bytes());
        }
    }
}

/// The end of the log. A single owner writes it.
#[derive(Debug)]
pub struct LogWriter {
    fs: Arc<dyn Fs>,
    file_bytes: u64,
    current: Current,
    /// Required files before the current one, oldest first.
    full: VecDeque<Full>,
    spares: Vec<(PathBuf, u64)>,
    next_spare: u64,
    epoch: u64,
    /// The last written commit.
    txn: Txn,
    mark: Arc<Mark>,
    bypasses_cache: bool,
    /// The reason why nothing can be written any more.
    poison: Option<String>,
}

/// A full file, which is read-only.
#[derive(Debug)]
struct Full {
    path: PathBuf,
    /// Its last commit.
    last: Txn,
    bytes: u64,
}

#[derive(Debug)]
struct Current {
    number: u64,
    file: Arc<dyn File>,
    path: PathBuf,
    len: u64,
    /// The last partial block, which is written again with the following records.
    tail: Vec<u8>,
    capacity: u64,
    /// Position up to which the file is known to be durable.
    durable: u64,
    /// Start of the records of the current epoch.
    epoch_began: u64,
}

impl Current {
    /// Appends the records of `group` and clears it.
    fn append(&mut self, group: &mut Group) -> Result<()> {
        let unit = self.file.write_unit();
        let count = group.byte_count();
        let (at, end) = (self.len - self.tail.len() as u64, self.tail.len() + count);
        let bytes = group.behind(&self.tail, unit);
        self.file.write_all_at(bytes, at).map_err(|e| Error::io("write", &self.path, e))?;
        let kept = &bytes[end - end % unit..end];
        self.tail.clear();
        self.tail.extend_from_slice(kept);
        self.len += count as u64;
        group.begin_behind(self.tail.len(), unit);
        Ok(())
    }
}

/// Written log content to be made durable by any thread.
#[derive(Clone, Debug)]
pub struct Unsynced {
    file: Arc<dyn File>,
    path: PathBuf,
    number: u64,
    len: u64,
    txn: Txn,
}

impl Unsynced {
    /// Makes the content durable, including everything written before.
    pub fn sync(&self) -> Result<()> {
        self.file.sync().map_err(|e| Error::io("sync", &self.path, e))
    }
}

impl LogWriter {
    /// Starts a new file after the result of [`replay`].
    ///
    /// Files are allocated with `file_bytes`; a larger commit makes a larger file.
    pub fn begin(fs: Arc<dyn Fs>, found: Replayed, file_bytes: u64) -> Result<LogWriter> {
        let mut spares = found.spares;
        let next_spare = spares.len() as u64 + found.number;
        let first_bytes = file_bytes.min(FIRST_FILE_BYTES);
        let epoch = found.epoch.saturating_add(2);
        let mark = Arc::new(Mark::open(fs.clone())?);
        let start = FileHeader { first: found.txn.next(), epoch: Some(epoch) };
        let mut begin = |bytes| begin_file(&*fs, &mut spares, found.number + 1, start, bytes, false);
        // With a full disk a smaller file is tried, so that a database can be opened to remove data.
        let current = match begin(first_bytes) {
            Err(error) if error.kind() == ErrorKind::Unavailable && first_bytes > LEAST_FILE_BYTES => {
                begin(LEAST_FILE_BYTES).map_err(|_| error)?
            }
            begun => begun?,
        };
        mark.note(Durable { file: current.number, bytes: FILE_HEADER, txn: found.txn });
        // The next write of the mark retries after a failure; `release` removes no file before that.
        let _ = mark.write();
        Ok(LogWriter {
            fs,
            file_bytes,
            current,
            full: found.files,
            spares,
            next_spare,
            epoch,
            txn: found.txn,
            mark,
            bypasses_cache: false,
            poison: None,
        })
    }

    /// Returns the mark of the log, which the caller writes periodically.
    #[must_use]
    pub fn mark(&self) -> &Arc<Mark> {
        &self.mark
    }

    /// Sets if files are written past the page cache, from the next file on, if they were filled before
    /// ([`make_spare`]).
    ///
    /// Without a sync of every commit, the cache is faster.
    pub fn bypass_cache(&mut self, yes: bool) {
        self.bypasses_cache = yes;
    }

    /// Reserves space for `bytes`, so that a full disk cannot prevent their write.
    ///
    /// Fails without side effects. Leaves the end of a file to commits that free space.
    pub fn reserve(&mut self, bytes: u64) -> Result<()> {
        let capacity = self.current.capacity;
        self.reserve_before(bytes, capacity - kept_bytes(capacity))
    }

    /// Reserves space for commits that free space, like [`LogWriter::reserve`].
    ///
    /// If the disk has no space for another log file, the reserved end of this file is used.
    pub fn reserve_to_free(&mut self, bytes: u64) -> Result<()> {
        self.reserve_before(bytes, self.current.capacity)
    }

    /// Reserves space in the current file if it ends before `end`, otherwise in the next file.
    fn reserve_before(&mut self, bytes: u64, end: u64) -> Result<()> {
        self.check()?;
        if self.current.len + bytes <= end {
            return Ok(());
        }
        // A file is completed only when all of it is durable, so that no later file can exist after a gap.
        self.sync()?;
        self.step_epoch();
        let capacity = match FILE_HEADER + bytes {
            usual if usual <= self.file_bytes => self.file_bytes,
            large => (large + KEPT_BYTES).next_multiple_of(4096),
        };
        let start = FileHeader { first: self.txn.next(), epoch: Some(self.epoch) };
        let number = self.current.number + 1;
        let next = begin_file(&*self.fs, &mut self.spares, number, start, capacity, self.bypasses_cache)?;
        let old = std::mem::replace(&mut self.current, next);
        self.full.push_back(Full { path: old.path, last: self.txn, bytes: old.len });
        self.mark.note(Durable { file: number, bytes: FILE_HEADER, txn: self.txn });
        // A failure leaves an older lower bound, which the next write of the mark replaces.
        let _ = self.mark.write();
        Ok(())
    }

    /// Writes the group, whose space was reserved, and clears it. Durable after [`LogWriter::sync`].
    pub fn append(&mut self, group: &mut Group) -> Result<()> {
        self.check()?;
        // Only if the reserved space was underestimated; decided commits depend on it.
        self.reserve_to_free(group.byte_count() as u64).map_err(|e| self.poisoned(e))?;
        self.step_epoch();
        group.seal(self.current.number, self.epoch);
        let last = group.records.last().map_or(self.txn, |r| r.1);
        self.current.append(group).map_err(|e| self.poisoned(e))?;
        self.txn = last;
        Ok(())
    }

    /// Returns true if everything written is known to be durable.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        self.current.durable == self.current.len
    }

    pub fn sync(&mut self) -> Result<()> {
        self.check()?;
        if !self.is_synced() {
            let unsynced = self.unsynced();
            unsynced.sync().map_err(|e| self.poisoned(e))?;
            self.note_synced(&unsynced);
        }
        Ok(())
    }

    /// Returns everything that was written and may not be durable.
    ///
    /// The syncing thread reports with [`LogWriter::note_synced`] or [`LogWriter::note_failed`], in the order of the
    /// writes: the bytes of a later sync may have been lost in a failed earlier one.
    #[must_use]
    pub fn unsynced(&self) -> Unsynced {
        let Current { number, ref file, ref path, len, .. } = self.current;
        Unsynced { file: file.clone(), path: path.clone(), number, len, txn: self.txn }
    }

    /// Records that this content, and everything before it, was synced.
    pub fn note_synced(&mut self, synced: &Unsynced) {
        if synced.number == self.current.number {
            self.current.durable = self.current.durable.max(synced.len);
            self.mark.note(Durable { file: synced.number, bytes: synced.len, txn: synced.txn });
        }
    }

    /// Records that a sync of another thread failed.
    pub fn note_failed(&mut self, why: &str) {
        self.poison.get_or_insert_with(|| why.to_owned());
    }

    /// Returns true if `bytes` fit the current file; a file may only be completed after all its syncs have ended.
    #[must_use]
    pub fn has_room(&self, bytes: u64) -> bool {
        self.current.len + bytes <= self.current.capacity - kept_bytes(self.current.capacity)
    }

    /// Advances the epoch to the next permitted one before a record is written.
    fn step_epoch(&mut self) {
        let current = &mut self.current;
        if current.len > current.epoch_began && current.durable >= current.epoch_began {
            self.epoch = self.epoch.saturating_add(if current.durable == current.len { 2 } else { 1 });
            current.epoch_began = current.len;
        }
    }

    /// Returns the bytes that a recovery would read.
    #[must_use]
    pub fn byte_count(&self) -> u64 {
        self.full.iter().map(|f| f.bytes).sum::<u64>() + self.current.len
    }

    /// Releases files without commits after `txn`. Spares are kept for reuse; a failure to keep one is harmless.
    ///
    /// Writes the mark first, so that the mark names a later file before a file is removed.
    pub fn release(&mut self, txn: Txn) {
        if self.mark.write().is_err() {
            return;
        }
        while let Some(Full { path, .. }) = self.full.pop_front_if(|full| full.last <= txn) {
            let spare = PathBuf::from(FOLDER).join(format!("spare-{:016x}", self.next_spare));
            self.next_spare += 1;
            let len = self.fs.open(&path).and_then(|f| f.len()).unwrap_or(0);
            let is_usual = len == self.file_bytes && path.starts_with(FOLDER);
            if self.spares.len() < SPARES_MAX && is_usual && self.fs.rename(&path, &spare).is_ok() {
                self.spares.push((spare, len));
            } else {
                let _ = self.fs.remove(&path);
            }
        }
    }

    /// Returns true if the next file would have to be allocated, because there is neither a file of [`make_spare`] nor
    /// a released one.
    #[must_use]
    pub fn wants_spare(&self) -> bool {
        self.spares.is_empty()
    }

    /// Adds the file of [`make_spare`].
    pub fn add_spare(&mut self) {
        self.spares.push((PathBuf::from(FOLDER).join(NEW_SPARE), self.file_bytes));
    }

    /// Returns the reason why the log refuses commits, if it does.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.poison.as_deref()
    }

    /// Fails if the log rejects commits.
    pub fn check(&self) -> Result<()> {
        match &self.poison {
            None => Ok(()),
            Some(why) => Err(Error::new(
                ErrorKind::Unavailable,
                format!("the log takes no more commits until the database is opened again: {why}"),
            )),
        }
    }

    /// Rejects all further commits: after a failed write or sync the content of the file is unknown.
    fn poisoned(&mut self, error: Error) -> Error {
        self.poison = Some(error.to_string());
        error
    }
}

/// Makes a file for later use, from any thread, for a log that wants a spare; the log must then be notified.
///
/// Its blocks are written, not only allocated: file systems record the first write to a block in their journal, which a
/// sync would have to write, too. `bypass_cache` is the setting of the log; `pause` gets the time of each disk
/// operation, and may wait.
pub fn make_spare(fs: &dyn Fs, file_bytes: u64, bypass_cache: bool, pause: impl Fn(Duration)) -> Result<()> {
    let path = PathBuf::from(FOLDER).join(NEW_SPARE);
    let _ = fs.remove(&path);
    let written = fs.create(&path).and_then(|mut file| {
        file.allocate(file_bytes)?;
        if bypass_cache && takes_direct_writes(file_bytes) {
            file = fs.open_direct(&path)?;
        }
        let mut zeros = Vec::new();
        let from = aligned(&mut zeros, file.write_unit(), SPARE_STEP);
        for at in (0..file_bytes).step_by(SPARE_STEP) {
            let began = Instant::now();
            file.write_all_at(&zeros[from..][..(file_bytes - at).min(SPARE_STEP as u64) as usize], at)?;
            file.sync()?;
            pause(began.elapsed());
        }
        Ok(())
    });
    written.map_err(|e| {
        let _ = fs.remove(&path);
        Error::io("prepare", &path, e)
    })
}

/// Returns the size of the part of a file that is reserved for commits that free space.
fn kept_bytes(capacity: u64) -> u64 {
    if capacity < LEAST_FILE_BYTES { 0 } else { KEPT_BYTES.min(capacity / 4) }
}

/// Returns true if no write to a file of this capacity is cut short by its end.
fn takes_direct_writes(capacity: u64) -> bool {
    capacity.is_multiple_of(DIRECT_UNIT as u64)
}

pub(super) fn path_of(number: u64) -> PathBuf {
    PathBuf::from(FOLDER).join(format!("{number:016x}"))
}

/// Returns the log files in order of number.
pub(super) fn files(fs: &dyn Fs) -> Result<Vec<(u64, PathBuf)>> {
    let mut files = Vec::new();
    for (folder, end) in [(OLD_FOLDER, ".log"), (FOLDER, "")] {
        let names = fs.list(Path::new(folder)).map_err(|e| Error::io("list", Path::new(folder), e))?;
        let digits = |name: &str| name.strip_suffix(end).filter(|digits| digits.len() == 16).map(str::to_owned);
        let number = |name: &String| u64::from_str_radix(&digits(name)?, 16).ok();
        files.extend(names.iter().filter_map(|n| Some((number(n)?, Path::new(folder).join(n)))));
    }
    files.sort();
    Ok(files)
}

/// Removes spares, which may have records of an earlier use.
fn remove_spares(fs: &dyn Fs) -> Result<()> {
    for folder in [OLD_FOLDER, FOLDER] {
        let names = fs.list(Path::new(folder)).map_err(|e| Error::io("list", Path::new(folder), e))?;
        for name in names.iter().filter(|n| n.starts_with("spare-")) {
            let _ = fs.remove(&Path::new(folder).join(name));
        }
    }
    Ok(())
}

/// Returns the file and the problem of a log that ends before its mark.
pub(super) fn behind_mark(mark: Option<Durable>, files: &[(u64, PathBuf)], txn: Txn) -> Option<(PathBuf, String)> {
    let mark = mark?;
    let at = |number: u64| files.iter().find(|file| file.0 == number).map(|file| file.1.clone());
    match at(mark.file) {
        None => {
            let problem = format!("it is missing, and the log had commits up to {} in it or before it", mark.txn);
            Some((path_of(mark.file), problem))
        }
        Some(path) if txn < mark.txn => {
            let problem = format!("it ends at commit {txn}, and commits up to {} had been synced", mark.txn);
            Some((path, problem))
        }
        Some(_) => None,
    }
}

/// Returns an error for a file in the format of a later release.
pub(super) fn newer(bytes: &[u8], path: &Path) -> Option<Error> {
    let version = bytes.strip_prefix(MAGIC_OF_ALL)?.first().filter(|v| v.is_ascii_digit() && **v > MAGIC[7])?;
    let message = format!(
        "{} was written by a newer release of Tidalite (format {}; this release reads format {})",
        path.display(),
        char::from(*version),
        char::from(MAGIC[7])
    );
    Some(Error::new(ErrorKind::Conflict, message))
}

fn begin_file(
    fs: &dyn Fs,
    spares: &mut Vec<(PathBuf, u64)>,
    number: u64,
    start: FileHeader,
    capacity: u64,
    bypass_cache: bool,
) -> Result<Current> {
    let path = path_of(number);
    // A file of a failed attempt, with nothing written after its header.
    let _ = fs.remove(&path);
    let spare = spares.pop_if(|s| s.1 == capacity);
    let file = match &spare {
        Some((old, _)) => fs.rename(old, &path).and_then(|()| match bypass_cache && takes_direct_writes(capacity) {
            true => fs.open_direct(&path),
            false => fs.open_write(&path),
        }),
        None => fs.create(&path),
    };
    let file = file.map_err(|e| Error::io("create", &path, e))?;
    if spare.is_none() {
        file.allocate(capacity).map_err(|e| Error::io("allocate space for", &path, e)).inspect_err(|_| {
            let _ = fs.remove(&path);
        })?;
    }
    // The name is durable before the content changes: a recycled file must not be found under its old number with the
    // header of another.
    fs.sync_dir(Path::new(FOLDER)).map_err(|e| Error::io("sync", Path::new(FOLDER), e))?;
    let (durable, epoch_began) = (FILE_HEADER, FILE_HEADER);
    let mut begun = Current { number, file, path, len: 0, tail: Vec::new(), capacity, durable, epoch_began };
    let mut header = Group::default();
    header.encoder.bytes.extend_from_slice(&start.to_bytes(number));
    begun.append(&mut header)?;
    begun.file.sync().map_err(|e| Error::io("sync", &begun.path, e))?;
    Ok(begun)
}

/// The state of the log at open.
#[derive(Debug, Default)]
pub struct Replayed {
    /// The last commit.
    pub txn: Txn,
    number: u64,
    epoch: u64,
    files: VecDeque<Full>,
    spares: Vec<(PathBuf, u64)>,
}

/// Reads every commit after `from`, in order, and makes the content that was read durable.
pub fn replay(fs: &dyn Fs, from: Txn, mut visit: impl FnMut(Txn, Ops<'_>) -> Result<()>) -> Result<Replayed> {
    let mut found = Replayed { txn: from, ..Replayed::default() };
    remove_spares(fs)?;
    let mark = mark::read(fs)?;
    let files = files(fs)?;
    let mut unsure: Vec<(Arc<dyn File>, PathBuf, Vec<u8>)> = Vec::new();
    for (i, (number, path)) in files.iter().enumerate() {
        let (number, path) = (*number, path.clone());
        let file = fs.open_write(&path).map_err(|e| Error::io("open", &path, e))?;
        let mut bytes = vec![0; file.len().map_err(|e| Error::io("read", &path, e))? as usize];
        file.read_exact_at(&mut bytes, 0).map_err(|e| Error::io("read", &path, e))?;
        found.number = number;
        let Some(header) = FileHeader::read(&bytes, number) else {
            // The header is synced before the first record is written.
            let is_record = |at: usize| is_of_file(&bytes, at, number) && read_record(&bytes, at, number).is_some();
            if let Some(error) = newer(&bytes, &path) {
                return Err(error);
            }
            let is_last = i + 1 == files.len() && mark.is_none_or(|mark| number > mark.file);
            if is_last && !(0..bytes.len()).step_by(8).any(is_record) {
                // A crash occurred between the naming of the file and the write of its header.
                let _ = fs.remove(&path);
                break;
            }
            let problem = "its header does not match its checksum";
            return Err(Error::corrupt(format!("{} is corrupt at byte 0: {problem}", path.display())));
        };
        if header.first > found.txn.next() {
            return Err(Error::corrupt(format!(
                "{} begins at commit {}, but the log before it ends at {}",
                path.display(),
                header.first,
                found.txn
            )));
        }
        // Even if the file has no record: epochs only grow.
        found.epoch = found.epoch.max(header.epoch_before().unwrap_or(0));
        let len = replay_file(&bytes, number, header, &path, &mut found, &mut visit)?;
        found.files.push_back(Full { path: path.clone(), last: found.txn, bytes: len });
        file.sync().map_err(|e| Error::io("sync", &path, e))?;
        if len > FILE_HEADER {
            // A commit is written to a file only after the commits of previous files are durable.
            unsure.clear();
        }
        bytes.truncate(len as usize);
        unsure.push((file, path, bytes));
    }
    if let Some((path, problem)) = behind_mark(mark, &files, found.txn) {
        return Err(Error::corrupt(format!("{} is corrupt: {problem}", path.display())));
    }
    // Rows that will be visible must survive a later power loss. The last file with commits may follow a failed sync,
    // as may the header of a following file that could not be started. The system may then treat bytes as written that
    // are not on the disk, and a sync writes them only if they are written again.
    for (file, path, bytes) in unsure {
        file.write_all_at(&bytes, 0).map_err(|e| Error::io("write", &path, e))?;
        file.sync().map_err(|e| Error::io("sync", &path, e))?;
    }
    Ok(found)
}

fn replay_file(
    bytes: &[u8],
    number: u64,
    header: FileHeader,
    path: &Path,
    found: &mut Replayed,
    visit: &mut impl FnMut(Txn, Ops<'_>) -> Result<()>,
) -> Result<u64> {
    let mut at = FILE_HEADER as usize;
    while let Some(record) = read_record(bytes, at, number) {
        let corrupt = |what: String| Error::corrupt(format!("{} is corrupt at byte {at}: {what}", path.display()));
        found.epoch = found.epoch.max(record.epoch);
        if record.txn > found.txn {
            if record.txn != found.txn.next() {
                return Err(corrupt(format!("commit {} follows commit {}", record.txn, found.txn)));
            }
            visit(record.txn, Ops::new(record.payload, path, at as u64)?)?;
            found.txn = record.txn;
        }
        at += RECORD_HEADER + record.payload.len();
    }
    let is_known = header.epoch.is_some() || found.epoch > 0;
    if is_hole(bytes, at, number, is_known.then_some(found.epoch)) {
        return Err(Error::corrupt(format!(
            "{} is corrupt at byte {at}: a synced commit does not match its checksum",
            path.display()
        )));
    }
    Ok(at as u64)
}

/// The remaining operations of a commit.
#[derive(Debug)]
pub struct Ops<'a> {
    pub d: Decoder<'a>,
    left: u32,
    /// Position of the record.
    path: &'a Path,
    at: u64,
}

impl<'a> Ops<'a> {
    pub(super) fn new(payload: &'a [u8], path: &'a Path, at: u64) -> Result<Ops<'a>> {
        let mut ops = Ops { d: Decoder::new(payload), left: 0, path, at };
        ops.left = ops.d.u32().map_err(|e| ops.corrupt(e))?;
        Ok(ops)
    }

    /// Returns the next operation; columns of rows are left at the front of `d` and must be consumed.
    pub fn next_front(&mut self) -> Result<Option<Front>> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        decode_front(&mut self.d).map(Some).map_err(|e| self.corrupt(e))
    }

    pub fn next_op(&mut self) -> Result<Option<Op>> {
        let Some(front) = self.next_front()? else { return Ok(None) };
        front.whole(&mut self.d).map(Some).map_err(|e| self.corrupt(e))
    }

    #[must_use]
    pub fn corrupt(&self, problem: Malformed) -> Error {
        Error::corrupt(format!("{} is corrupt at byte {}: {problem}", self.path.display(), self.at))
    }
}

pub(super) struct LogRecord<'a> {
    pub epoch: u64,
    pub txn: Txn,
    pub payload: &'a [u8],
}

pub(super) fn read_record(bytes: &[u8], at: usize, number: u64) -> Option<LogRecord<'_>> {
    let mut d = Decoder::new(bytes.get(at..at + RECORD_HEADER)?);
    let (len, crc, file) = (d.u32().ok()? as usize, d.u32().ok()?, d.u64().ok()?);
    let (epoch, txn) = (d.u64().ok()?, Txn(d.u64().ok()?));
    let payload = bytes.get(at + RECORD_HEADER..at + RECORD_HEADER + len)?;
    let is_whole = file == number && crc32c::crc32c(&bytes[at + 8..at + RECORD_HEADER + len]) == crc;
    is_whole.then_some(LogRecord { epoch, txn, payload })
}

/// Returns true if a record of this file may start here: a cheap test that is rarely true.
pub(super) fn is_of_file(bytes: &[u8], at: usize, number: u64) -> bool {
    bytes.get(at + 8..at + 16) == Some(&number.to_le_bytes())
}

/// Returns true if a record after the end of the valid part, at `at`, proves that the missing record was synced.
///
/// `epoch` is that of the last record before: the missing record has at most two more, and a record with two more than
/// that was written when the missing one was durable. If `epoch` is unknown, the first complete record after the gap
/// may have been written together with the missing one.
pub(super) fn is_hole(bytes: &[u8], at: usize, number: u64, epoch: Option<u64>) -> bool {
    let places = (at.next_multiple_of(8)..bytes.len().saturating_sub(RECORD_HEADER)).step_by(8);
    let whole = |at: usize| is_of_file(bytes, at, number).then(|| read_record(bytes, at, number)).flatten();
    let mut later = places.filter_map(|at| whole(at).map(|record| record.epoch)).peekable();
    let Some(epoch) = epoch.or_else(|| later.peek().map(|first| first.saturating_sub(2))) else { return false };
    later.any(|later| later >= epoch.saturating_add(4))
}

/// The header of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileHeader {
    /// The first commit that the file may contain.
    pub first: Txn,
    /// Epoch of its first record; `None` in files of earlier releases.
    pub epoch: Option<u64>,
}

impl FileHeader {
    pub fn to_bytes(self, number: u64) -> Vec<u8> {
        let mut header = Encoder::new();
        header.bytes.extend(MAGIC);
        header.u64(number);
        header.u64(self.first.0);
        header.u32(crc32c::crc32c(&header.bytes));
        if let Some(epoch) = self.epoch {
            header.u64(epoch);
            header.u32(crc32c::crc32c(&header.bytes));
        }
        header.bytes.resize(FILE_HEADER as usize, 0);
        header.bytes
    }

    pub fn read(bytes: &[u8], number: u64) -> Option<FileHeader> {
        let mut d = Decoder::new(bytes.get(..FILE_HEADER as usize)?);
        let (magic, found, first, crc) = (d.take(8).ok()?, d.u64().ok()?, d.u64().ok()?, d.u32().ok()?);
        if magic != MAGIC || found != number || crc32c::crc32c(&bytes[..24]) != crc {
            return None;
        }
        let (epoch, crc) = (d.u64().ok()?, d.u32().ok()?);
        let epoch = (crc32c::crc32c(&bytes[..36]) == crc).then_some(epoch);
        Some(FileHeader { first: Txn(first), epoch })
    }

    /// Returns the lower bound of the epoch of the record before its first record.
    pub fn epoch_before(self) -> Option<u64> {
        self.epoch.map(|epoch| epoch.saturating_sub(2))
    }
}

pub(super) fn decode_ops(payload: &[u8]) -> Result<Vec<Op>, tidalite_storage::codec::Malformed> {
    let mut d = Decoder::new(payload);
    (0..d.u32()?).map(|_| decode_op(&mut d)).collect()
}

#[cfg(test)]
mod tests;
