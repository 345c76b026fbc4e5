//! Restores a data folder from a backup, in the state of any commit that the backups of a destination cover.
//!
//! Input: a destination and the state to restore. Output: a folder that opens with the state of the database. Every
//! file is compared with the checksum of its backup's list while it is copied. The manifest is written last: a folder
//! of an interrupted restore is rejected at open.

use crate::backup::{BackupList, LOG_NUMBER, backups};
use crate::backup::{Item, What};
use crate::check::GoOn;
use crate::destination::{self, Destination, PIECE_BYTES};
use crate::{Error, ErrorKind, Result, folder};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidalite_ingest::wal::checkpoint;
use tidalite_ingest::wal::inspect::{Commits, log_path};
use tidalite_ingest::wal::log::FOLDER;
use tidalite_storage::fs::Fs;
use tidalite_storage::fs::os::OsFs;
use tidalite_storage::segment::SegmentStore;
use tidalite_storage::{manifest, symbol_file};
use tidalite_types::Txn;

/// The state to restore.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum At {
    /// The last backup.
    #[default]
    Latest,
    Backup(String),
    /// Everything up to this commit.
    Txn(u64),
    /// The last backup that began at or before this time: microseconds since 1970-01-01 UTC.
    Time(i64),
}

#[derive(Clone, Debug, Default)]
pub struct RestoreReport {
    pub backup: String,
    /// The last commit in the folder.
    pub txn: u64,
    pub files: u64,
    pub bytes: u64,
}

/// Restores into a folder that is empty or does not exist.
///
/// # Errors
/// Fails if the folder is not empty, no backup covers the requested state, or a file differs from its backup.
pub fn restore(from: &str, at: &At, data: &Path, go_on: GoOn<'_>) -> Result<RestoreReport> {
    let from = destination::open(from, false)?;
    let plan = Plan::new(&*from, at)?;
    let is_foreign = |name: &str| name != "lock";
    if data.is_dir() && OsFs::new(data).list(Path::new("")).is_ok_and(|names| names.iter().any(|n| is_foreign(n))) {
        let message = format!("data folder {} is not empty: a restore needs a folder of its own", data.display());
        return Err(Error::new(ErrorKind::Conflict, message));
    }
    let _lock = folder::create_and_lock(data)?;
    let fs: Arc<dyn Fs> = Arc::new(OsFs::new(data));
    restore_files(&*from, &plan, &*fs, go_on)
}

/// A backup and the following commits of the log.
#[derive(Debug)]
pub(crate) struct Plan {
    base: BackupList,
    commits: Commits,
    /// The segments that the commits attach, from any backup.
    attached: Vec<Item>,
}

impl Plan {
    pub(crate) fn new(from: &dyn Destination, at: &At) -> Result<Plan> {
        let all = backups(from)?;
        let nothing = |what: String| Error::new(ErrorKind::NotFound, format!("{} has no backup {what}", from.name()));
        let alone = |base: Option<&BackupList>, what: String| -> Result<Plan> {
            let base = base.cloned().ok_or_else(|| nothing(what))?;
            Ok(Plan { base, commits: Commits::default(), attached: Vec::new() })
        };
        match at {
            At::Latest => alone(all.iter().max_by_key(|b| b.time), "in it".to_owned()),
            At::Backup(name) => alone(all.iter().find(|b| b.name == *name), format!("\"{name}\"")),
            At::Time(time) => {
                let before = all.iter().filter(|b| b.time <= *time);
                alone(before.max_by_key(|b| b.time), "from before that time".to_owned())
            }
            At::Txn(txn) => {
                let databases: BTreeSet<&str> = all.iter().map(|b| b.database.as_str()).collect();
                if databases.len() > 1 {
                    let message = format!("{} has backups of several databases: give the name of one", from.name());
                    return Err(Error::new(ErrorKind::Invalid, message));
                }
                let txn = Txn(*txn);
                let before = all.iter().filter(|b| b.txn <= txn).max_by_key(|b| (b.txn, b.time));
                let base = before.cloned().ok_or_else(|| nothing(format!("that begins at or before commit {txn}")))?;
                let commits = commits(from, &all, base.txn, txn)?;
                let attached = attached(from, &all, &commits)?;
                Ok(Plan { base, commits, attached })
            }
        }
    }
}

/// Returns the commits after `from` up to `to` from the log parts of the backups.
fn commits(from: &dyn Destination, all: &[BackupList], first: Txn, to: Txn) -> Result<Commits> {
    let mut commits = Commits::default();
    let mut reached = first;
    let items = all.iter().flat_map(|b| &b.items);
    let mut pieces: Vec<(Txn, Txn, &Item)> = items
        .filter_map(|item| match item.what {
            What::Log(first, last) => Some((first, last, item)),
            _ => None,
        })
        .collect();
    pieces.sort_by_key(|(first, last, _)| (*first, *last));
    for (first, last, item) in pieces {
        if reached >= to || last <= reached || first > reached.next() {
            continue;
        }
        let bytes = from.read(&item.file)?;
        verify(item, &bytes)?;
        for (txn, payload) in Commits::from_file(&bytes, LOG_NUMBER, Path::new(&item.file))?.records {
            if txn == reached.next() && txn <= to {
                reached = txn;
                commits.records.push((txn, payload));
            }
        }
    }
    if reached == to {
        return Ok(commits);
    }
    let next = all.iter().map(|b| b.txn).find(|txn| *txn > to);
    let mut error = Error::new(
        ErrorKind::NotFound,
        format!("the log between two backups is kept only up to commit {reached}, not up to {to}"),
    );
    error.hint = Some(match next {
        Some(next) => format!("restore commit {reached}, or commit {next}, of which there is a backup"),
        None => format!("restore commit {reached}"),
    });
    Err(error)
}

/// Returns the files of the segments that the commits attach.
///
/// # Errors
/// Fails if a segment was replaced before the next backup, so that no backup has it.
fn attached(from: &dyn Destination, all: &[BackupList], commits: &Commits) -> Result<Vec<Item>> {
    let mut items = Vec::new();
    for (txn, table, meta) in commits.attached()? {
        let is_meant = |item: &&Item| item.what == What::Segment(table, meta.id) && item.bytes == meta.bytes;
        let Some(item) = all.iter().flat_map(|b| &b.items).find(is_meant) else {
            let message = format!("commit {txn} is a load whose files no backup of {} has", from.name());
            let before = txn.0 - 1;
            let hint = match all.iter().map(|b| b.txn).filter(|backup| *backup >= txn).min() {
                Some(next) => format!("restore commit {before}, or commit {next}, of which there is a backup"),
                None => format!("restore commit {before}"),
            };
            return Err(Error::new(ErrorKind::NotFound, message).with_hint(hint));
        };
        items.push(item.clone());
    }
    Ok(items)
}

fn verify(item: &Item, bytes: &[u8]) -> Result<()> {
    if bytes.len() as u64 != item.bytes || crc32c::crc32c(bytes) != item.crc {
        return Err(damaged(item));
    }
    Ok(())
}

fn damaged(item: &Item) -> Error {
    Error::new(ErrorKind::Corrupt, format!("{} of the backup does not match its checksum", item.file))
}

pub(crate) fn restore_files(
    from: &dyn Destination,
    plan: &Plan,
    fs: &dyn Fs,
    go_on: GoOn<'_>,
) -> Result<RestoreReport> {
    let Plan { base, commits, attached } = plan;
    let io = |action: &str, path: &Path, e| Error::from(tidalite_storage::Error::io(action, path, e));
    let mut report = RestoreReport { backup: base.name.clone(), txn: base.txn.0, ..RestoreReport::default() };
    let total = base.bytes() + attached.iter().map(|item| item.bytes).sum::<u64>();
    let mut state = None;
    let mut folders: BTreeSet<PathBuf> = BTreeSet::from([FOLDER.into(), "checkpoint".into(), "symbols".into()]);
    for item in base.items.iter().chain(attached) {
        let path = match item.what {
            What::Manifest => {
                let bytes = from.read(&item.file)?;
                verify(item, &bytes)?;
                state = Some(manifest::from_bytes(&bytes, Path::new(&item.file))?);
                continue;
            }
            What::Log(..) => continue,
            What::Rows => checkpoint::path_of(1),
            What::Symbols(table) => symbol_file::path_of(table),
            What::Segment(table, segment) => SegmentStore::path(table, segment),
        };
        folders.extend(path.ancestors().skip(1).filter(|dir| !dir.as_os_str().is_empty()).map(Path::to_owned));
        copy(from, item, fs, &path, &mut |bytes| go_on(report.bytes + bytes, total))?;
        report.files += 1;
        report.bytes += item.bytes;
    }
    let Some(state) = state else {
        return Err(Error::new(ErrorKind::Corrupt, format!("backup {} has no manifest", base.name)));
    };
    for folder in &folders {
        fs.create_dir_all(folder).map_err(|e| io("create", folder, e))?;
    }
    if let Some((last, _)) = commits.records.last() {
        let path = log_path(LOG_NUMBER);
        let file = fs.create(&path).map_err(|e| io("create", &path, e))?;
        file.write_all_at(&commits.to_file(LOG_NUMBER), 0).map_err(|e| io("write", &path, e))?;
        file.sync().map_err(|e| io("sync", &path, e))?;
        report.txn = last.0;
    }
    // Inner folders first, then their names.
    folders.iter().rev().try_for_each(|f| fs.sync_dir(f).map_err(|e| io("sync", f, e)))?;
    fs.sync_dir(Path::new("")).map_err(|e| io("sync", Path::new("."), e))?;
    manifest::begin(fs, &state)?;
    Ok(report)
}

/// Copies a file, whose folder is created, and checks its checksum.
fn copy(
    from: &dyn Destination,
    item: &Item,
    fs: &dyn Fs,
    path: &Path,
    go_on: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<()> {
    let failed = |action: &str, e| Error::from(tidalite_storage::Error::io(action, path, e));
    let source = from.open(&item.file)?;
    let of_source = |e| Error::from(tidalite_storage::Error::io("read", Path::new(&item.file), e));
    if source.len().map_err(of_source)? != item.bytes {
        return Err(damaged(item));
    }
    let dir = path.parent().unwrap_or(Path::new(""));
    fs.create_dir_all(dir).map_err(|e| failed("create", e))?;
    let file = fs.create(path).map_err(|e| failed("create", e))?;
    let (mut crc, mut at, mut buffer) = (0, 0, vec![0; PIECE_BYTES.min(item.bytes as usize)]);
    while at < item.bytes {
        let piece = (item.bytes - at).min(PIECE_BYTES as u64) as usize;
        source.read_exact_at(&mut buffer[..piece], at).map_err(of_source)?;
        crc = crc32c::crc32c_append(crc, &buffer[..piece]);
        file.write_all_at(&buffer[..piece], at).map_err(|e| failed("write", e))?;
        at += piece as u64;
        go_on(at)?;
    }
    if crc != item.crc {
        return Err(damaged(item));
    }
    file.sync().map_err(|e| failed("sync", e))
}
