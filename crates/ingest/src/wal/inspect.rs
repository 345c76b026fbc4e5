//! Reads the log without changes, for checks, repairs and backups, and describes damage.
//!
//! Input: the files of the log. Output: their commits, the position of the first damage, and the readable commits after
//! it. The rules are those of [`super::log::replay`].

use super::log::{FILE_HEADER, FileHeader, RECORD_HEADER};
use super::log::{behind_mark, decode_ops, files, is_hole, is_of_file, newer, path_of, read_record};
use super::mark::{self, Durable};
use super::record::Op;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tidalite_storage::codec::Encoder;
use tidalite_storage::fs::Fs;
use tidalite_storage::segment::reader::SegmentMeta;
use tidalite_storage::{Error, Result};
use tidalite_types::{TableId, Txn};

/// The content of the log.
#[derive(Debug, Default)]
pub struct Inspected {
    /// Files in order of number.
    pub files: Vec<PathBuf>,
    /// The last commit before any damage.
    pub txn: Txn,
    /// Number of commits from the requested one to `txn`.
    pub commits: u64,
    pub bytes: u64,
    /// The mark of the log, if the folder has one.
    pub mark: Option<Durable>,
    pub damage: Option<LogDamage>,
}

#[derive(Debug)]
pub struct LogDamage {
    /// Index in [`Inspected::files`].
    pub file: usize,
    pub at: u64,
    pub problem: String,
    /// Complete commits after the damage, with their number of rows for each table; other commits are unreadable.
    pub behind: BTreeMap<Txn, BTreeMap<TableId, u64>>,
    /// Commits among them that deleted rows, with the table.
    pub deletions: Vec<(Txn, TableId)>,
}

/// Reads all commits after `from`; `visit` gets the commits before any damage.
pub fn inspect(fs: &dyn Fs, from: Txn, visit: &mut dyn FnMut(Txn, Vec<Op>) -> Result<()>) -> Result<Inspected> {
    let mark = mark::read(fs)?;
    let mut found = Inspected { txn: from, mark, ..Inspected::default() };
    let files = files(fs)?;
    found.files = files.iter().map(|(_, path)| path.clone()).collect();
    let mut end = 0;
    for (index, (number, path)) in files.iter().enumerate() {
        let (number, path) = (*number, path.clone());
        let bytes = read(fs, &path)?;
        found.bytes += bytes.len() as u64;
        match &mut found.damage {
            Some(damage) => behind(&bytes, number, 0, found.txn, damage),
            None => {
                let is_last = index + 1 == files.len() && mark.is_none_or(|mark| number > mark.file);
                let (at, problem) = inspect_file(&bytes, number, &path, is_last, &mut found, visit)?;
                end = at;
                if let Some(problem) = problem {
                    let mut damage =
                        LogDamage { file: index, at, problem, behind: BTreeMap::new(), deletions: Vec::new() };
                    behind(&bytes, number, at as usize, found.txn, &mut damage);
                    found.damage = Some(damage);
                }
            }
        }
    }
    if found.damage.is_none()
        && let Some((path, problem)) = behind_mark(mark, &files, found.txn)
    {
        // A last file is damaged from its end on, a missing file from its beginning on.
        let is_there = found.files.last() == Some(&path);
        if !is_there {
            found.files.push(path);
        }
        let (file, at) = (found.files.len() - 1, if is_there { end } else { 0 });
        found.damage = Some(LogDamage { file, at, problem, behind: BTreeMap::new(), deletions: Vec::new() });
    }
    Ok(found)
}

fn read(fs: &dyn Fs, path: &Path) -> Result<Vec<u8>> {
    let file = fs.open(path).map_err(|e| Error::io("open", path, e))?;
    let mut bytes = vec![0; file.len().map_err(|e| Error::io("read", path, e))? as usize];
    file.read_exact_at(&mut bytes, 0).map_err(|e| Error::io("read", path, e))?;
    Ok(bytes)
}

/// Returns the end of the valid part of a file, and the kind of damage if there is any.
///
/// # Errors
/// A newer release wrote the file, or `visit` fails.
fn inspect_file(
    bytes: &[u8],
    number: u64,
    path: &Path,
    is_last: bool,
    found: &mut Inspected,
    visit: &mut dyn FnMut(Txn, Vec<Op>) -> Result<()>,
) -> Result<(u64, Option<String>)> {
    let whole = |at: usize| is_of_file(bytes, at, number).then(|| read_record(bytes, at, number)).flatten();
    let Some(header) = FileHeader::read(bytes, number) else {
        if let Some(error) = newer(bytes, path) {
            return Err(error);
        }
        // A crash occurred between the naming of the last file and the write of its header.
        let is_empty = is_last && !(0..bytes.len()).step_by(8).any(|at| whole(at).is_some());
        return Ok((0, (!is_empty).then(|| "its header does not match its checksum".to_owned())));
    };
    if header.first > found.txn.next() {
        let problem = format!("it begins at commit {}, but the log before it ends at {}", header.first, found.txn);
        return Ok((0, Some(problem)));
    }
    let (mut at, mut epoch) = (FILE_HEADER as usize, header.epoch_before());
    while let Some(record) = read_record(bytes, at, number) {
        epoch = epoch.max(Some(record.epoch));
        if record.txn > found.txn {
            if record.txn != found.txn.next() {
                return Ok((at as u64, Some(format!("commit {} follows commit {}", record.txn, found.txn))));
            }
            let ops = match decode_ops(record.payload) {
                Ok(ops) => ops,
                Err(error) => return Ok((at as u64, Some(error.to_string()))),
            };
            visit(record.txn, ops)?;
            found.txn = record.txn;
            found.commits += 1;
        }
        at += RECORD_HEADER + record.payload.len();
    }
    let is_damaged = is_hole(bytes, at, number, epoch);
    Ok((at as u64, is_damaged.then(|| "a synced commit does not match its checksum".to_owned())))
}

/// Records the complete commits of a file from `from` on.
fn behind(bytes: &[u8], number: u64, from: usize, after: Txn, damage: &mut LogDamage) {
    let mut at = from.next_multiple_of(8);
    while at + RECORD_HEADER <= bytes.len() {
        let record = is_of_file(bytes, at, number).then(|| read_record(bytes, at, number)).flatten();
        let Some(record) = record else {
            at += 8;
            continue;
        };
        if record.txn > after {
            let rows = damage.behind.entry(record.txn).or_default();
            for op in decode_ops(record.payload).unwrap_or_default() {
                match op {
                    Op::Rows { table, run } => *rows.entry(table).or_default() += run.rows as u64,
                    Op::Attach { table, segments } => {
                        let count = rows.entry(table).or_default();
                        *count = segments.iter().fold(*count, |count, meta| count.saturating_add(meta.rows));
                    }
                    Op::Delete { table, .. } => damage.deletions.push((record.txn, table)),
                    _ => {}
                }
            }
        }
        at += RECORD_HEADER + record.payload.len();
    }
}

/// Commits in log format without a file, as stored in a backup.
#[derive(Clone, Debug, Default)]
pub struct Commits {
    pub records: Vec<(Txn, Vec<u8>)>,
}

impl Commits {
    /// Collects the commits after `from` up to `to` from the log files, from the first without a gap to `to`.
    ///
    /// Files may be removed and reused during the call; then the result begins later.
    pub fn collect(fs: &dyn Fs, from: Txn, to: Txn) -> Result<Commits> {
        let mut records: Vec<(Txn, Vec<u8>)> = Vec::new();
        for (number, path) in files(fs)? {
            let Ok(bytes) = read(fs, &path) else { continue };
            if FileHeader::read(&bytes, number).is_none() {
                continue;
            }
            let mut at = FILE_HEADER as usize;
            while let Some(record) = read_record(&bytes, at, number) {
                at += RECORD_HEADER + record.payload.len();
                let is_next = records.last().is_none_or(|(last, _)| record.txn == last.next());
                if record.txn > from && record.txn <= to {
                    if !is_next {
                        records.clear();
                    }
                    records.push((record.txn, record.payload.to_vec()));
                }
            }
        }
        if records.last().is_none_or(|(last, _)| *last != to) {
            records.clear();
        }
        Ok(Commits { records })
    }

    /// Returns the segments of loads that the commits attach and that no later one of them removes.
    pub fn attached(&self) -> Result<Vec<(Txn, TableId, SegmentMeta)>> {
        let mut attached: Vec<(Txn, TableId, SegmentMeta)> = Vec::new();
        for (txn, payload) in &self.records {
            let malformed = |e| Error::corrupt(format!("commit {txn} of a backup is corrupt: {e}"));
            for op in decode_ops(payload).map_err(malformed)? {
                match op {
                    Op::Attach { table, segments } => {
                        attached.extend(segments.iter().map(|meta| (*txn, table, meta.clone())));
                    }
                    Op::Truncate { table } | Op::DropTable { table } => attached.retain(|(_, of, _)| *of != table),
                    Op::DropPartitions { table, partitions } => {
                        let is_dropped = |meta: &SegmentMeta| partitions.iter().any(|(lo, _)| *lo == meta.partition);
                        attached.retain(|(_, of, meta)| *of != table || !is_dropped(meta));
                    }
                    _ => {}
                }
            }
        }
        Ok(attached)
    }

    /// Returns the commits as a log file with this number.
    ///
    /// Every commit counts as synced before the next, so that damage to any of them is detected.
    #[must_use]
    pub fn to_file(&self, number: u64) -> Vec<u8> {
        let first = self.records.first().map_or(Txn(1), |(txn, _)| *txn);
        let mut out = Encoder::new();
        out.bytes = FileHeader { first, epoch: Some(2) }.to_bytes(number);
        for (index, (txn, payload)) in self.records.iter().enumerate() {
            let start = out.bytes.len();
            out.u32(payload.len() as u32);
            out.u32(0);
            out.u64(number);
            out.u64(2 * index as u64 + 2);
            out.u64(txn.0);
            out.bytes.extend_from_slice(payload);
            let crc = crc32c::crc32c(&out.bytes[start + 8..]);
            out.bytes[start + 4..start + 8].copy_from_slice(&crc.to_le_bytes());
        }
        out.bytes
    }

    /// Reads the result of [`Commits::to_file`]; `path` is used in errors.
    pub fn from_file(bytes: &[u8], number: u64, path: &Path) -> Result<Commits> {
        let corrupt = |at: usize| Error::corrupt(format!("{} is corrupt at byte {at}", path.display()));
        if FileHeader::read(bytes, number).is_none() {
            return Err(corrupt(0));
        }
        let (mut records, mut at) = (Vec::new(), FILE_HEADER as usize);
        while at < bytes.len() {
            let record = read_record(bytes, at, number).ok_or_else(|| corrupt(at))?;
            at += RECORD_HEADER + record.payload.len();
            records.push((record.txn, record.payload.to_vec()));
        }
        Ok(Commits { records })
    }
}

/// Returns the path of the log file with this number.
#[must_use]
pub fn log_path(number: u64) -> PathBuf {
    path_of(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wal::log::{FOLDER, Group, LogWriter, replay};
    use std::sync::Arc;
    use tidalite_storage::fs::faulty::SimFs;
    use tidalite_types::ErrorKind;

    /// Returns a log of small files with one commit per sync.
    fn log(commits: u64) -> SimFs {
        let fs = SimFs::new(1);
        fs.create_dir_all(Path::new(FOLDER)).unwrap();
        let shared: Arc<dyn Fs> = Arc::new(fs.clone());
        let found = replay(&*shared, Txn(0), |_, _| Ok(())).unwrap();
        let mut log = LogWriter::begin(shared, found, 4096).unwrap();
        for txn in 1..=commits {
            let mut group = Group::default();
            group.push(Txn(txn), &[Op::DropTable { table: TableId(txn as u32) }]);
            log.reserve(group.byte_count() as u64).unwrap();
            log.append(&mut group).unwrap();
            log.sync().unwrap();
        }
        fs
    }

    #[test]
    fn any_flipped_bit_is_damage_or_the_end_and_what_is_behind_is_named() {
        let fs = log(200);
        let numbers = files(&fs).unwrap();
        assert!(numbers.len() > 2);
        let first = numbers[0].1.clone();
        let good = read(&fs, &first).unwrap();
        let file = fs.open_write(&first).unwrap();
        for at in (0..good.len()).step_by(7) {
            file.write_all_at(&[good[at] ^ 1 << (at % 8)], at as u64).unwrap();
            let mut seen = Vec::new();
            let found = inspect(&fs, Txn(0), &mut |txn, _| {
                seen.push(txn);
                Ok(())
            })
            .unwrap();
            assert!(seen.iter().enumerate().all(|(i, txn)| txn.0 == i as u64 + 1));
            assert_eq!(replay(&fs, Txn(0), |_, _| Ok(())).is_err(), found.damage.is_some(), "byte {at}");
            match found.damage {
                Some(damage) => {
                    assert!(damage.behind.keys().all(|txn| *txn > found.txn), "byte {at}");
                    // At most one record is damaged, and the header hides none.
                    assert!(found.commits + damage.behind.len() as u64 >= 199, "byte {at}");
                }
                None => assert_eq!(found.commits, 200, "byte {at}"),
            }
            file.write_all_at(&good[at..=at], at as u64).unwrap();
        }
    }

    #[test]
    fn a_file_of_a_newer_release_is_neither_damage_nor_the_end() {
        let fs = log(3);
        let (_, path) = files(&fs).unwrap().pop().unwrap();
        fs.open_write(&path).unwrap().write_all_at(b"TIDELOG2", 0).unwrap();
        let replayed = replay(&fs, Txn(0), |_, _| Ok(())).unwrap_err();
        let inspected = inspect(&fs, Txn(0), &mut |_, _| Ok(())).unwrap_err();
        assert_eq!((replayed.kind(), inspected.kind()), (ErrorKind::Conflict, ErrorKind::Conflict));
        assert_eq!(inspected.to_string(), replayed.to_string());
    }

    #[test]
    fn commits_travel_through_a_file_of_their_own() {
        let fs = log(50);
        let commits = Commits::collect(&fs, Txn(10), Txn(40)).unwrap();
        assert_eq!(commits.records.len(), 30);
        let bytes = commits.to_file(1);
        let again = Commits::from_file(&bytes, 1, Path::new("x")).unwrap();
        assert_eq!(again.records, commits.records);
        for at in (0..bytes.len()).step_by(3) {
            let mut bad = bytes.clone();
            bad[at] ^= 4;
            let read = Commits::from_file(&bad, 1, Path::new("x"));
            assert!(read.is_err() || (28..64).contains(&at), "byte {at}");
        }
        let alone = SimFs::new(2);
        alone.create_dir_all(Path::new(FOLDER)).unwrap();
        alone.create(&log_path(1)).unwrap().write_all_at(&bytes, 0).unwrap();
        let mut txns = Vec::new();
        replay(&alone, Txn(10), |txn, _| {
            txns.push(txn.0);
            Ok(())
        })
        .unwrap();
        assert_eq!(txns, (11..=40).collect::<Vec<u64>>());
        assert!(Commits::collect(&fs, Txn(10), Txn(60)).unwrap().records.is_empty(), "not there yet");
    }
}
