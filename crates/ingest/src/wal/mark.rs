//! The mark of the log: which file was its last and how much of the log was durable.
//!
//! A last file that is missing, truncated or zeroed resembles a log that ended earlier. The mark is a lower bound in
//! another folder: at open the log must have the file that the mark names, and every commit up to the mark's. A write
//! of the mark costs a sync, so commits do not write the mark. It is written by a rotation of the log, a release of
//! files, a clean close and the jobs thread.
//!
//! `wal-mark` has two slots, at 0 and at 4,096, written alternately: magic, sequence u64, file u64, bytes u64, commit u64,
//! CRC32C u32 of the 40 bytes before. The valid slot with the greatest sequence counts. A file without a valid slot
//! is no mark.
//!
//! Invariant: the log is synced up to the position of a slot before the slot is written. Crash: possible at any point;
//! the mark has the position before the write or the position that was being written.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidalite_storage::codec::{Decoder, Encoder};
use tidalite_storage::fs::{File, Fs};
use tidalite_storage::{Error, Result};
use tidalite_types::Txn;

/// Next to the manifest, so that a loss of the log's folder leaves the mark.
pub const PATH: &str = "wal-mark";
const MAGIC: &[u8; 8] = b"TIDEMRK1";
const SLOT_BYTES: usize = 44;
/// Slots are in different blocks of a disk.
const SLOT_DISTANCE: u64 = 4096;

/// A position of the log up to which the log is durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Durable {
    /// The number of the last file.
    pub file: u64,
    /// Bytes of that file.
    pub bytes: u64,
    /// The last commit in them or before them.
    pub txn: Txn,
}

/// Reads the mark of a folder; `None` without a file or without a valid slot.
pub fn read(fs: &dyn Fs) -> Result<Option<Durable>> {
    Ok(read_slots(fs)?.map(|(_, durable)| durable))
}

fn read_slots(fs: &dyn Fs) -> Result<Option<(u64, Durable)>> {
    let io = |e| Error::io("read", Path::new(PATH), e);
    let file = match fs.open(Path::new(PATH)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(io)?,
    };
    let len = file.len().map_err(io)?;
    let mut newest = None;
    for slot in 0..2 {
        let mut bytes = [0; SLOT_BYTES];
        if slot * SLOT_DISTANCE + SLOT_BYTES as u64 > len {
            continue;
        }
        file.read_exact_at(&mut bytes, slot * SLOT_DISTANCE).map_err(io)?;
        newest = newest.max(from_bytes(&bytes));
    }
    Ok(newest)
}

fn to_bytes(sequence: u64, durable: Durable) -> Vec<u8> {
    let mut e = Encoder::new();
    e.bytes.extend(MAGIC);
    for number in [sequence, durable.file, durable.bytes, durable.txn.0] {
        e.u64(number);
    }
    e.u32(crc32c::crc32c(&e.bytes));
    e.bytes
}

fn from_bytes(bytes: &[u8]) -> Option<(u64, Durable)> {
    let (body, crc) = bytes.split_last_chunk::<4>()?;
    if !body.starts_with(MAGIC) || crc32c::crc32c(body) != u32::from_le_bytes(*crc) {
        return None;
    }
    let mut d = Decoder::new(&body[MAGIC.len()..]);
    let mut number = || d.u64().ok();
    let (sequence, file, bytes, txn) = (number()?, number()?, number()?, number()?);
    Some((sequence, Durable { file, bytes, txn: Txn(txn) }))
}

/// Removes the mark, durably, before the log itself is removed.
pub fn remove(fs: &dyn Fs) -> Result<()> {
    match fs.remove(Path::new(PATH)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        removed => removed.map_err(|e| Error::io("remove", Path::new(PATH), e))?,
    }
    fs.sync_dir(Path::new("")).map_err(|e| Error::io("sync", Path::new("."), e))
}

/// Writes the mark, from any thread.
#[derive(Debug)]
pub struct Mark {
    fs: Arc<dyn Fs>,
    /// The durable position of the log. This lock is never held over a file operation.
    noted: Mutex<Durable>,
    writing: Mutex<Writing>,
}

#[derive(Debug)]
struct Writing {
    file: Option<Arc<dyn File>>,
    sequence: u64,
    written: Durable,
}

impl Mark {
    /// Opens the mark of a folder and reads its position.
    pub fn open(fs: Arc<dyn Fs>) -> Result<Mark> {
        let (sequence, written) = read_slots(&*fs)?.unwrap_or_default();
        let writing = Mutex::new(Writing { file: None, sequence, written });
        Ok(Mark { fs, noted: Mutex::new(written), writing })
    }

    /// Notes that the log is durable up to a position; [`Mark::write`] writes the position.
    pub fn note(&self, durable: Durable) {
        let mut noted = lock(&self.noted);
        *noted = durable.max(*noted);
    }

    /// Writes the noted position, unless the mark has it.
    pub fn write(&self) -> Result<()> {
        let mut writing = lock(&self.writing);
        let durable = *lock(&self.noted);
        if durable <= writing.written {
            return Ok(());
        }
        let io = |action: &str, e| Error::io(action, Path::new(PATH), e);
        let file = match &writing.file {
            Some(file) => file.clone(),
            None => self.file()?,
        };
        // After a failure the next attempt writes the same slot: the other slot may be the only valid one.
        let sequence = writing.sequence + 1;
        let at = sequence % 2 * SLOT_DISTANCE;
        file.write_all_at(&to_bytes(sequence, durable), at).map_err(|e| io("write", e))?;
        file.sync().map_err(|e| io("sync", e))?;
        *writing = Writing { file: Some(file), sequence, written: durable };
        Ok(())
    }

    /// Opens or creates the file; its name is durable when this returns.
    fn file(&self) -> Result<Arc<dyn File>> {
        let path = Path::new(PATH);
        let file = match self.fs.open_write(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let file = self.fs.create(path).map_err(|e| Error::io("create", path, e))?;
                file.allocate(2 * SLOT_DISTANCE).map_err(|e| Error::io("allocate space for", path, e))?;
                file
            }
            file => file.map_err(|e| Error::io("open", path, e))?,
        };
        self.fs.sync_dir(Path::new("")).map_err(|e| Error::io("sync", Path::new("."), e))?;
        Ok(file)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidalite_storage::fs::faulty::SimFs;

    fn durable(file: u64, bytes: u64, txn: u64) -> Durable {
        Durable { file, bytes, txn: Txn(txn) }
    }

    #[test]
    fn a_mark_never_goes_back_and_survives_the_loss_of_a_slot() {
        let fs: Arc<dyn Fs> = Arc::new(SimFs::new(1));
        assert_eq!(read(&*fs).unwrap(), None);
        for round in 1..6 {
            let mark = Mark::open(fs.clone()).unwrap();
            mark.note(durable(round, 64, 10 * round));
            mark.note(durable(round - 1, 900, 10 * round - 1));
            mark.write().unwrap();
            assert_eq!(read(&*fs).unwrap(), Some(durable(round, 64, 10 * round)));
        }
        let file = fs.open_write(Path::new(PATH)).unwrap();
        // Sequence 5 is in the second slot.
        file.write_all_at(&[0; SLOT_BYTES], SLOT_DISTANCE).unwrap();
        assert_eq!(read(&*fs).unwrap(), Some(durable(4, 64, 40)));
        file.write_all_at(&[7], 20).unwrap();
        assert_eq!(read(&*fs).unwrap(), None, "no slot is whole");
        remove(&*fs).unwrap();
        remove(&*fs).unwrap();
        assert_eq!(read(&*fs).unwrap(), None);
    }

    #[test]
    fn power_loss_leaves_what_was_said_before_or_what_was_being_written() {
        for operation in 0..40 {
            for seed in 0..8 {
                let sim = SimFs::new(seed);
                let fs: Arc<dyn Fs> = Arc::new(sim.clone());
                sim.crash_at(operation);
                let mut known = Durable::default();
                let mut tried = Durable::default();
                for round in 1..8 {
                    let Ok(mark) = Mark::open(fs.clone()) else { break };
                    tried = durable(round, 64, round);
                    mark.note(tried);
                    if mark.write().is_err() {
                        break;
                    }
                    known = tried;
                }
                let after: Arc<dyn Fs> = Arc::new(sim.survivor(seed));
                let found = read(&*after).unwrap().unwrap_or_default();
                assert!(found == known || found == tried, "operation {operation}: {found:?}, {known:?}, {tried:?}");
            }
        }
    }
}
