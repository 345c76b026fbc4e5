//! Copies a database to a destination during writes, in the state of one commit.
//!
//! Input: the tables of one instant, pinned, so that none of their files is removed. Output: a backup, identified by a
//! small file that is written last. Segments are copied only if no earlier backup at the destination has them. Rows
//! that are not yet in segments are written to a file in checkpoint format. Of the log, the commits since the last
//! backup are copied, so that states between two backups can be restored.
//!
//! Files of earlier backups that a backup refers to are checked first: the backup fails if one is missing, has another
//! length or does not match its checksum.
//!
//! Crash or failure: possible at any point; files that no backup lists are ignored, and later backups use or overwrite
//! them. The database is not changed, except for a file `identity` at the first backup.

mod list;
mod verify;

pub use list::{BackupList, backups};
pub use verify::{VerifyReport, verify_backups};

use crate::check::GoOn;
use crate::destination::{self, BACKUPS, Destination, PIECE_BYTES};
use crate::jobs::{reconcile, staged_ops};
use crate::shared::Shared;
use crate::{Error, ErrorKind, Result};
pub(crate) use list::{Item, What};
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{SystemTime, UNIX_EPOCH};
use tidalite_ingest::wal::checkpoint::{self, CheckpointWriter};
use tidalite_ingest::wal::inspect::Commits;
use tidalite_ingest::wal::record::Op;
use tidalite_storage::fs::overlay::OverlayFs;
use tidalite_storage::fs::{File, Fs};
use tidalite_storage::manifest::{self, Change, Checkpoint, State};
use tidalite_storage::segment::format::TRAILER_BYTES;
use tidalite_storage::segment::verify::verify;
use tidalite_storage::{Segment, TableSnapshot, symbol_file};
use tidalite_types::time::format_timestamp;
use tidalite_types::{TableId, TimeUnit, Txn};
use verify::{problem_of, problem_of_length};

/// Identifies the database of commits: commits of another database have the same numbers and other content.
const IDENTITY: &str = "identity";
/// Number of the log file that contains the commits of the log.
pub(crate) const LOG_NUMBER: u64 = 1;

#[derive(Clone, Debug, Default)]
pub struct BackupReport {
    pub name: String,
    pub txn: u64,
    pub files_copied: u64,
    pub bytes_copied: u64,
    /// Files of earlier backups that this backup shares.
    pub files_shared: u64,
    pub bytes_shared: u64,
    /// The first commit before [`BackupReport::txn`] that can be restored from this backup's part of the log; 0 if
    /// there is none.
    pub log_from: u64,
}

/// The content to copy: none of it changes or is removed during the life of this value.
struct Pinned {
    txn: Txn,
    tables: Vec<Arc<TableSnapshot>>,
    state: State,
    persisted: HashMap<TableId, HashMap<tidalite_types::ColumnId, u32>>,
    symbols: Vec<(TableId, u64, Arc<dyn File>)>,
    /// Changes of base tables that views have not processed.
    times: HashMap<TableId, Op>,
}

/// Prevents the removal of log files during its life.
struct LogHold<'a>(&'a Shared);

impl Drop for LogHold<'_> {
    fn drop(&mut self) {
        self.0.log_readers.fetch_sub(1, SeqCst);
    }
}

pub(crate) fn backup(shared: &Shared, to: &str, go_on: GoOn<'_>) -> Result<BackupReport> {
    let path = Path::new(to.strip_prefix("file://").unwrap_or(to));
    if !to.contains("://") && !path.is_absolute() {
        return Err(Error::new(ErrorKind::Invalid, format!("{to} is no absolute path and no URL")));
    }
    let is_folder = to.starts_with("file://") || !to.contains("://");
    let allowed;
    let to = match is_folder {
        true => {
            allowed = shared.config.file_access.path(to)?.to_string_lossy().into_owned();
            &allowed
        }
        false => {
            shared.config.file_access.url(to)?;
            to
        }
    };
    let path = Path::new(to);
    let inside = |a: &Path, b: &Path| a.canonicalize().is_ok_and(|a| b.canonicalize().is_ok_and(|b| a.starts_with(b)));
    if is_folder && path.ancestors().any(|above| inside(above, &shared.config.data)) {
        return Err(Error::new(ErrorKind::Invalid, "a backup inside of the data folder would be lost with it"));
    }
    let to = destination::open(to, true)?;
    backup_to(shared, &*to, go_on)
}

/// Backs up to any destination, like [`crate::Database::backup`].
pub(crate) fn backup_to(shared: &Shared, to: &dyn Destination, go_on: GoOn<'_>) -> Result<BackupReport> {
    shared.log_readers.fetch_add(1, SeqCst);
    let hold = LogHold(shared);
    let identity = identity(&*shared.fs)?;
    let pinned = pin(shared)?;
    let earlier = backups(to)?;
    let micros = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_micros() as i64);
    let time = format_timestamp(micros, TimeUnit::Micros);
    let name = format!("{:012}-{}", pinned.txn.0, time.replace(['-', ':'], ""));
    let previous = earlier.iter().filter(|b| b.database == identity && b.txn <= pinned.txn).max_by_key(|b| b.txn);
    let mut list = BackupList {
        name: name.clone(),
        database: identity,
        txn: pinned.txn,
        time: micros,
        previous: previous.map(|b| b.name.clone()),
        tables: pinned.tables.len() as u64,
        rows: pinned.tables.iter().map(|t| t.row_count()).sum(),
        items: Vec::new(),
    };
    let mut copy = Copying::new(to, &earlier, go_on, &pinned, &mut list);
    // First, so that the log is released soon.
    copy.log(shared, previous.map_or(Txn(0), |b| b.txn), pinned.txn)?;
    drop(hold);
    copy.symbols(&pinned)?;
    copy.segments(&pinned)?;
    copy.rows_and_manifest(&pinned, &name)?;
    let report = copy.report;
    // All files that the list names are durable before the list.
    to.sync()?;
    to.put_new(&format!("{BACKUPS}/{name}"), list.to_text().as_bytes())?;
    to.sync()?;
    tracing::info!(name, to = to.name(), bytes = report.bytes_copied, "backup");
    Ok(report)
}

/// Returns the tables of one instant and their state in the manifest.
fn pin(shared: &Shared) -> Result<Pinned> {
    // While this is held, no merge is between its edit of the manifest and its publication.
    let held = shared.lock_manifest();
    let (txn, tables) = shared.tables.all();
    let mut state = held.manifest.state().clone();
    let gone: Vec<_> = state.tables.keys().filter(|id| !tables.iter().any(|t| t.id == **id)).copied().collect();
    let mut changes: Vec<Change> = gone.into_iter().map(Change::Drop).collect();
    for table in &tables {
        changes.extend(reconcile(shared.next_segment_id(), &state, table, &table.segments));
    }
    changes.push(Change::Checkpoint(Checkpoint { txn, file: 1 }));
    changes.iter().for_each(|change| state.apply(change));
    let mut symbols = Vec::new();
    for (&id, table) in state.tables.iter().filter(|(_, table)| table.symbol_bytes > 0) {
        let path = symbol_file::path_of(id);
        let file = shared.fs.open(&path).map_err(|e| tidalite_storage::Error::io("open", &path, e))?;
        symbols.push((id, table.symbol_bytes, file));
    }
    let times = {
        let known = shared.lock_times();
        tables.iter().filter_map(|t| Some((t.id, known.op(t.id)?))).collect()
    };
    Ok(Pinned { txn, tables, state, persisted: held.persisted.clone(), symbols, times })
}

/// Returns the random identity, created at the first backup.
fn identity(fs: &dyn Fs) -> Result<String> {
    let path = Path::new(IDENTITY);
    if let Ok(file) = fs.open(path) {
        let mut bytes = [0; 16];
        if file.read_exact_at(&mut bytes, 0).is_ok() && bytes.iter().all(u8::is_ascii_hexdigit) {
            return Ok(String::from_utf8_lossy(&bytes).into_owned());
        }
    }
    let identity = format!("{:016x}", RandomState::new().build_hasher().finish());
    let part = PathBuf::from("identity.new");
    let _ = fs.remove(&part);
    let io = |action: &str, e| Error::from(tidalite_storage::Error::io(action, path, e));
    let file = fs.create(&part).map_err(|e| io("create", e))?;
    file.write_all_at(identity.as_bytes(), 0).map_err(|e| io("write", e))?;
    file.sync().map_err(|e| io("sync", e))?;
    fs.rename(&part, path).map_err(|e| io("rename", e))?;
    fs.sync_dir(Path::new("")).map_err(|e| io("sync", e))?;
    Ok(identity)
}

struct Copying<'a> {
    to: &'a dyn Destination,
    /// Files of complete backups, by name.
    there: HashMap<String, Item>,
    list: &'a mut BackupList,
    report: BackupReport,
    go_on: GoOn<'a>,
    done: u64,
    total: u64,
}

impl<'a> Copying<'a> {
    fn new(
        to: &'a dyn Destination,
        earlier: &[BackupList],
        go_on: GoOn<'a>,
        pinned: &Pinned,
        list: &'a mut BackupList,
    ) -> Copying<'a> {
        let items = earlier.iter().flat_map(|b| &b.items);
        let there = items.map(|item| (item.file.clone(), item.clone())).collect();
        let report = BackupReport { name: list.name.clone(), txn: list.txn.0, ..BackupReport::default() };
        let total = pinned.tables.iter().flat_map(|t| t.segments.iter()).map(|s| s.meta().bytes).sum();
        Copying { to, there, list, report, go_on, done: 0, total }
    }

    /// Adds a file to the backup, unless an earlier backup has it.
    fn add(
        &mut self,
        what: What,
        file: String,
        bytes: u64,
        read: &mut dyn FnMut(&mut [u8], u64) -> Result<()>,
    ) -> Result<()> {
        if let Some(item) = self.there.get(&file).filter(|item| item.bytes == bytes).cloned() {
            self.check_shared(&item)?;
            self.report.files_shared += 1;
            self.report.bytes_shared += bytes;
            self.list.items.push(Item { what, ..item });
            return Ok(());
        }
        let (mut crc, mut at) = (0, 0);
        let (go_on, done, total) = (&mut *self.go_on, self.done, self.total);
        self.to.put(&file, bytes, &mut |buffer| {
            if !buffer.is_empty() {
                read(buffer, at)?;
            }
            crc = crc32c::crc32c_append(crc, buffer);
            at += buffer.len() as u64;
            go_on(done + at, total)
        })?;
        self.report.files_copied += 1;
        self.report.bytes_copied += bytes;
        self.list.items.push(Item { what, bytes, crc, file });
        Ok(())
    }

    /// Checks a file of an earlier backup that the new backup refers to. In an object store only the length is checked,
    /// because reads cost money.
    fn check_shared(&mut self, item: &Item) -> Result<()> {
        let (go_on, done, total) = (&mut *self.go_on, self.done, self.total);
        let problem = match self.to.is_near() {
            true => problem_of(self.to, item, &mut |bytes| go_on(done + bytes, total))?,
            false => problem_of_length(self.to, item)?,
        };
        let Some(problem) = problem else { return Ok(()) };
        let message = format!("file {} of earlier backups in {} {problem}", item.file, self.to.name());
        let mut error = Error::new(ErrorKind::Corrupt, message);
        error.hint = Some(
            "restore that file, or use another folder for new backups; tidalite backup --verify lists all missing and \
             damaged files"
                .to_owned(),
        );
        Err(error)
    }

    fn add_bytes(&mut self, what: What, file: String, bytes: &[u8]) -> Result<()> {
        self.add(what, file, bytes.len() as u64, &mut |buffer, at| {
            buffer.copy_from_slice(&bytes[at as usize..at as usize + buffer.len()]);
            Ok(())
        })
    }

    /// Copies the commits since the last backup, as far as the log still has them.
    fn log(&mut self, shared: &Shared, from: Txn, to: Txn) -> Result<()> {
        let commits = Commits::collect(&*shared.fs, from, to)?;
        let Some((first, _)) = commits.records.first() else { return Ok(()) };
        let first = *first;
        self.report.log_from = first.0;
        let bytes = commits.to_file(LOG_NUMBER);
        // Commits of the same numbers may belong to another database, or to a history that a restore ended.
        let file = format!("log/{}/{:012}-{:012}-{:08x}", self.list.database, first.0, to.0, crc32c::crc32c(&bytes));
        self.add_bytes(What::Log(first, to), file, &bytes)
    }

    fn symbols(&mut self, pinned: &Pinned) -> Result<()> {
        for (table, bytes, file) in &pinned.symbols {
            let path = symbol_file::path_of(*table);
            let mut read = |buffer: &mut [u8], at: u64| -> Result<()> {
                let read = file.read_exact_at(buffer, at);
                read.map_err(|e| tidalite_storage::Error::io("read", &path, e).into())
            };
            let (mut crc, mut at, mut buffer) = (0, 0u64, vec![0; PIECE_BYTES]);
            while at < *bytes {
                let piece = (*bytes - at).min(PIECE_BYTES as u64) as usize;
                read(&mut buffer[..piece], at)?;
                crc = crc32c::crc32c_append(crc, &buffer[..piece]);
                at += piece as u64;
            }
            let name = format!("symbols/{:08x}-{bytes:x}-{crc:08x}.sym", table.0);
            self.add(What::Symbols(*table), name, *bytes, &mut read)?;
        }
        Ok(())
    }

    fn segments(&mut self, pinned: &Pinned) -> Result<()> {
        for table in &pinned.tables {
            for segment in table.segments.iter() {
                self.segment(segment).map_err(|e| Error::from(table.named(e)))??;
                self.done += segment.meta().bytes;
                (self.go_on)(self.done, self.total)?;
            }
        }
        Ok(())
    }

    /// Copies a segment, identified by its number and the checksum in its trailer, which covers all other checksums.
    fn segment(&mut self, segment: &Segment) -> tidalite_storage::Result<Result<()>> {
        let (meta, path) = (segment.meta(), segment.path());
        let mut trailer = [0; TRAILER_BYTES];
        segment.read_raw(&mut trailer, meta.bytes.saturating_sub(TRAILER_BYTES as u64))?;
        let footer_crc = u32::from_le_bytes([trailer[8], trailer[9], trailer[10], trailer[11]]);
        let name =
            format!("segments/{:08x}/{:016x}-{:x}-{footer_crc:08x}.seg", segment.table().0, meta.id.0, meta.bytes);
        let is_new = self.there.get(&name).is_none_or(|item| item.bytes != meta.bytes);
        // The copied bytes are verified: a backup must not contain only damaged bytes.
        if is_new && let Some(error) = verify(segment, None, &mut |_| Ok(()))?.problems.into_iter().next() {
            return Err(error);
        }
        let mut read = |buffer: &mut [u8], at: u64| {
            segment.read_raw(buffer, at).map_err(|e| Error::new(e.kind(), format!("{}: {e}", path.display())))
        };
        Ok(self.add(What::Segment(segment.table(), meta.id), name, meta.bytes, &mut read))
    }

    fn rows_and_manifest(&mut self, pinned: &Pinned, name: &str) -> Result<()> {
        let rows = rows(pinned)?;
        self.add_bytes(What::Rows, format!("rows/{name}.rows"), &rows)?;
        self.add_bytes(What::Manifest, format!("manifests/{name}.manifest"), &manifest::to_bytes(&pinned.state))
    }
}

/// Returns the rows that are not in segments in checkpoint format.
fn rows(pinned: &Pinned) -> Result<Vec<u8>> {
    // Written to memory, whose size is limited by the limit of staging.
    let memory = OverlayFs::in_memory();
    let mut writer = CheckpointWriter::create(&memory, 1)?;
    for table in &pinned.tables {
        let persisted = pinned.persisted.get(&table.id).cloned().unwrap_or_default();
        staged_ops(table, &persisted).try_for_each(|op| writer.write(&op))?;
        let times = pinned.times.get(&table.id).cloned();
        times.into_iter().try_for_each(|op| writer.write(&op))?;
    }
    writer.finish(&memory)?;
    let path = checkpoint::path_of(1);
    let io = |e| tidalite_storage::Error::io("read", &path, e);
    let file = memory.open(&path).map_err(io)?;
    let mut bytes = vec![0; file.len().map_err(io)? as usize];
    file.read_exact_at(&mut bytes, 0).map_err(io)?;
    Ok(bytes)
}
