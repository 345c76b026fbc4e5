//! The manifest: lists the segments and the schema of each table.
//!
//! Input: edits, each applied completely or not at all. Output: the state at open. A file `manifest-<number>` starts
//! with a snapshot of the state, followed by edits. Each record has its length, its sequence number and a CRC32C. When
//! edits outweigh the snapshot, a new file is written next to the old file, synced, renamed to its name, and the old
//! file is removed: at any time the highest number is complete.
//!
//! Invariant: a segment was synced, with its name, before the manifest names it; a file that the manifest does not name
//! belongs to no table. Crash: a torn last record is an edit that never happened. A bad record followed by a good
//! record is corruption.

use crate::codec::{Decoder, Encoder, Malformed};
use crate::dead::{RowRanges, decode_ranges, encode_ranges};
use crate::fs::{File, Fs};
use crate::segment::SegmentStore;
use crate::segment::reader::SegmentMeta;
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidalite_types::{ErrorKind, SegmentId, TableId, TableSchema, Txn};

pub const CHECKPOINT_FOLDER: &str = "checkpoint";
/// First bytes of manifests of every format, followed by the digit of the format.
const MAGIC: &[u8; 7] = b"TIDEMAN";
/// Format that is written. In format 1 the log is in another folder, so builds of format 1 must reject format 2. Formats
/// before 3 have no loads: neither [`Change::Attached`] nor the operation Attach in the log.
const VERSION: u8 = b'3';
const VERSIONS_READ: std::ops::RangeInclusive<u8> = b'1'..=VERSION;
const MAGIC_BYTES: usize = 8;
/// Names that a folder may contain before its first manifest.
const BEFORE_FIRST: [&str; 10] =
    ["checkpoint", "identity", "lock", "log", "manifest.new", "segments", "spill", "symbols", "wal", "wal-mark"];
/// Size of a record header: length u32, CRC32C u32 of the following bytes, number in the file u64.
const HEADER: usize = 16;
/// Size in bytes that edits may reach before the file is rewritten; four snapshots are always allowed.
const EDIT_BYTES_MIN: u64 = 1 << 20;

#[derive(Clone, Debug, PartialEq)]
pub struct TableState {
    pub schema: TableSchema,
    /// Commit of the schema: schema changes in the log up to this commit are included.
    pub schema_txn: Txn,
    /// Rows and removals of this table up to this commit are in `segments`; later ones are in the checkpoint and the
    /// log.
    pub merged: Txn,
    /// Rows of later commits that are also in `segments`.
    pub taken: Option<Taken>,
    /// The segments of loads up to this commit, and removals of segments up to this commit, are in `segments`.
    pub attached: Txn,
    pub segments: BTreeMap<SegmentId, SegmentMeta>,
    /// Rows of segments that were deleted before the manifest named the segment: their deletions refer to older
    /// segments.
    pub dead: BTreeMap<SegmentId, RowRanges>,
    /// Number of written and synced bytes of the symbol file.
    pub symbol_bytes: u64,
}

/// A merge that left rows staged: of commits up to `upto`, rows with a designated timestamp before `before` are in
/// segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    pub upto: Txn,
    pub before: i64,
}

/// Commits up to `txn` are in the tables' segments and in the checkpoint file; the log begins after `txn`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checkpoint {
    pub txn: Txn,
    /// Number of the file with the rows that were staged at `txn`; 0 if there is none.
    pub file: u64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    pub next_table: TableId,
    pub next_segment: SegmentId,
    pub checkpoint: Checkpoint,
    pub tables: BTreeMap<TableId, TableState>,
}

/// One step of an edit.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Creates the table or replaces its schema.
    Schema {
        table: TableId,
        schema: TableSchema,
        schema_txn: Txn,
    },
    Drop(TableId),
    /// `merged` and `symbol_bytes` never decrease.
    Content {
        table: TableId,
        add: Vec<SegmentMeta>,
        remove: Vec<SegmentId>,
        merged: Txn,
        symbol_bytes: u64,
    },
    NextIds {
        table: TableId,
        segment: SegmentId,
    },
    Checkpoint(Checkpoint),
    Taken {
        table: TableId,
        taken: Taken,
    },
    /// Rows of a new segment that were deleted while it was written.
    Dead {
        table: TableId,
        segment: SegmentId,
        rows: RowRanges,
    },
    /// The segments of loads up to `txn` are in the table, or were replaced by others.
    Attached {
        table: TableId,
        txn: Txn,
    },
}

/// The open manifest. A single owner writes it.
#[derive(Debug)]
pub struct Manifest {
    fs: Arc<dyn Fs>,
    state: State,
    number: u64,
    file: Arc<dyn File>,
    len: u64,
    snapshot_len: u64,
    records: u64,
    /// Set after a failed write or sync: the content of the file is unknown, so the next edit writes a new file.
    is_broken: bool,
}

impl Manifest {
    /// Opens the newest manifest, or creates one in an empty folder, in which case `is_new` is true.
    ///
    /// # Errors
    /// The folder is damaged (corrupt), or has an unsupported format or files of another program (conflict).
    pub fn open(fs: Arc<dyn Fs>) -> Result<(Manifest, bool)> {
        let io = |e| Error::io("list", Path::new("."), e);
        let names = fs.list(Path::new("")).map_err(io)?;
        let Some(number) = newest(&names) else {
            for folder in ["log", "wal", "segments"] {
                if !fs.list(Path::new(folder)).map_err(io)?.is_empty() {
                    return Err(Error::corrupt(format!("the folder has files in {folder} and no manifest")));
                }
            }
            refuse_foreign(&names)?;
            let (file, len) = write_snapshot(&*fs, 1, &State::default())?;
            let manifest = Manifest {
                fs,
                state: State::default(),
                number: 1,
                file,
                len,
                snapshot_len: len,
                records: 1,
                is_broken: false,
            };
            return Ok((manifest, true));
        };
        let path = path_of(number);
        let file = fs.open_write(&path).map_err(|e| Error::io("open", &path, e))?;
        let mut bytes = vec![0; file.len().map_err(|e| Error::io("read", &path, e))? as usize];
        file.read_exact_at(&mut bytes, 0).map_err(|e| Error::io("read", &path, e))?;
        let read = replay(&bytes, &path)?;
        if (bytes.len() as u64) > read.len
            && let Some(missing) = missing_files(&*fs, &read.state).first()
        {
            let (at, missing) = (read.len, missing.display());
            return Err(Error::corrupt(format!(
                "{} is corrupt at byte {at}: its last edit does not match its checksum, and had happened: {missing} is gone",
                path.display()
            )));
        }
        // The part of the tail that is no record must not become valid after the next edit.
        file.set_len(read.len).map_err(|e| Error::io("truncate", &path, e))?;
        // If the last sync of this file failed and only the process ended, the system may treat bytes as written that
        // are not on the disk: a sync does not save them unless they are written again.
        let good = &bytes[..read.len as usize];
        file.write_all_at(good, 0).map_err(|e| Error::io("write", &path, e))?;
        file.sync().map_err(|e| Error::io("sync", &path, e))?;
        // The name of this file must be durable before the other files are removed.
        fs.sync_dir(Path::new("")).map_err(|e| Error::io("sync", Path::new("."), e))?;
        for name in names.iter().filter(|n| n.starts_with("manifest-") && **n != name_of(number)) {
            fs.remove(Path::new(name)).map_err(|e| Error::io("remove", Path::new(name), e))?;
        }
        let Replayed { state, len, snapshot_len, records, version } = read;
        let mut manifest = Manifest { fs, state, number, file, len, snapshot_len, records, is_broken: false };
        if version != VERSION {
            // Before any write that builds of the older format would not find.
            manifest.rewrite(manifest.state.clone())?;
        }
        Ok((manifest, false))
    }

    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Makes the changes durable, all or none, and applies them to [`Manifest::state`].
    pub fn edit(&mut self, changes: &[Change]) -> Result<()> {
        let mut next = None;
        if self.is_broken || self.len - self.snapshot_len > EDIT_BYTES_MIN.max(4 * self.snapshot_len) {
            let mut state = self.state.clone();
            changes.iter().for_each(|change| state.apply(change));
            next = Some(state);
        }
        match next {
            Some(state) => self.rewrite(state),
            None => self.append(changes),
        }
    }

    /// Writes a new file with the previous state after a failed edit, so that the edit certainly never happened.
    pub fn mend(&mut self) -> Result<()> {
        if self.is_broken { self.rewrite(self.state.clone()) } else { Ok(()) }
    }

    fn append(&mut self, changes: &[Change]) -> Result<()> {
        let record = record(self.records, &encode_changes(changes));
        let path = path_of(self.number);
        let written = self.file.write_all_at(&record, self.len).map_err(|e| Error::io("write", &path, e));
        if let Err(error) = written.and_then(|()| self.file.sync().map_err(|e| Error::io("sync", &path, e))) {
            self.is_broken = true;
            return Err(error);
        }
        self.len += record.len() as u64;
        self.records += 1;
        changes.iter().for_each(|change| self.state.apply(change));
        Ok(())
    }

    fn rewrite(&mut self, state: State) -> Result<()> {
        // A failure may leave the new name in place without being durable: only another rewrite with another number may
        // follow.
        let number = self.number + 1;
        let old = path_of(std::mem::replace(&mut self.number, number));
        self.is_broken = true;
        let (file, len) = write_snapshot(&*self.fs, number, &state)?;
        *self =
            Manifest { fs: self.fs.clone(), state, number, file, len, snapshot_len: len, records: 1, is_broken: false };
        // A failure is harmless: the next open removes the file.
        let _ = self.fs.remove(&old);
        Ok(())
    }
}

/// The newest manifest of a folder in its current state.
#[derive(Debug)]
pub struct Found {
    pub number: u64,
    pub path: PathBuf,
    pub state: State,
    /// Bytes at the end of the file that are no record: an edit that never happened.
    pub torn_bytes: u64,
}

/// Reads the newest manifest without changes; returns `None` for a folder without one.
pub fn find(fs: &dyn Fs) -> Result<Option<Found>> {
    let Some(number) = newest(&fs.list(Path::new("")).map_err(|e| Error::io("list", Path::new("."), e))?) else {
        return Ok(None);
    };
    let path = path_of(number);
    let file = fs.open(&path).map_err(|e| Error::io("open", &path, e))?;
    let mut bytes = vec![0; file.len().map_err(|e| Error::io("read", &path, e))? as usize];
    file.read_exact_at(&mut bytes, 0).map_err(|e| Error::io("read", &path, e))?;
    let read = replay(&bytes, &path)?;
    Ok(Some(Found { number, path, state: read.state, torn_bytes: bytes.len() as u64 - read.len }))
}

/// Returns the files that the state names but that do not exist.
///
/// Files are removed only after an edit that removes them from the state. If files are missing, an incomplete edit at
/// the end was therefore complete before.
#[must_use]
pub fn missing_files(fs: &dyn Fs, state: &State) -> Vec<PathBuf> {
    let is_missing = |path: &PathBuf| fs.open(path).is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound);
    let mut paths = Vec::new();
    if state.checkpoint.file != 0 {
        paths.push(checkpoint_path(state.checkpoint.file));
    }
    for (table, t) in &state.tables {
        paths.extend(t.segments.keys().map(|segment| SegmentStore::path(*table, *segment)));
    }
    paths.retain(is_missing);
    paths
}

/// Durably removes the bytes after the last edit; the caller must know that they never were an edit.
pub fn cut_tail(fs: &dyn Fs, found: &Found) -> Result<()> {
    let file = fs.open_write(&found.path).map_err(|e| Error::io("open", &found.path, e))?;
    let len = file.len().map_err(|e| Error::io("read", &found.path, e))?;
    file.set_len(len.saturating_sub(found.torn_bytes)).map_err(|e| Error::io("truncate", &found.path, e))?;
    file.sync().map_err(|e| Error::io("sync", &found.path, e))
}

/// Returns the path of the file with the rows that were staged at a checkpoint.
#[must_use]
pub fn checkpoint_path(number: u64) -> PathBuf {
    PathBuf::from(CHECKPOINT_FOLDER).join(format!("{number:016x}.rows"))
}

/// Rejects a folder with files of other programs: names may collide, and the database removes files.
fn refuse_foreign(names: &[String]) -> Result<()> {
    // New file systems contain such names: `lost+found` and hidden files.
    let is_foreign =
        |name: &&String| !BEFORE_FIRST.contains(&&name[..]) && *name != "lost+found" && !name.starts_with('.');
    let foreign: Vec<&String> = names.iter().filter(is_foreign).collect();
    let Some(first) = foreign.first() else { return Ok(()) };
    let others = match foreign.len() - 1 {
        0 => String::new(),
        1 => " and 1 other".to_owned(),
        n => format!(" and {n} others"),
    };
    let message =
        format!("the folder is not a data folder of Tidalite: it has no manifest and holds \"{first}\"{others}");
    Err(Error::new(ErrorKind::Conflict, message))
}

fn newest(names: &[String]) -> Option<u64> {
    names.iter().filter_map(|n| n.strip_prefix("manifest-")?.parse::<u64>().ok()).max()
}

/// Encodes a manifest of one snapshot as a complete file.
#[must_use]
pub fn to_bytes(state: &State) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.push(VERSION);
    bytes.extend(record(0, &encode_changes(&state.as_changes())));
    bytes
}

/// Decodes the result of [`to_bytes`]; `path` is used in errors.
pub fn from_bytes(bytes: &[u8], path: &Path) -> Result<State> {
    replay(bytes, path).map(|read| read.state)
}

/// Writes the first manifest to a folder that has none. The files that it names must be synced before.
pub fn begin(fs: &dyn Fs, state: &State) -> Result<()> {
    write_snapshot(fs, 1, state).map(drop)
}

impl State {
    pub fn apply(&mut self, change: &Change) {
        match change {
            Change::Schema { table, schema, schema_txn } => {
                let state = self.tables.entry(*table).or_insert_with(|| TableState {
                    schema: schema.clone(),
                    schema_txn: *schema_txn,
                    merged: Txn(0),
                    taken: None,
                    attached: Txn(0),
                    segments: BTreeMap::new(),
                    dead: BTreeMap::new(),
                    symbol_bytes: 0,
                });
                state.schema = schema.clone();
                state.schema_txn = *schema_txn;
            }
            Change::Drop(table) => {
                self.tables.remove(table);
            }
            Change::Content { table, add, remove, merged, symbol_bytes } => {
                if let Some(state) = self.tables.get_mut(table) {
                    for id in remove {
                        state.segments.remove(id);
                        state.dead.remove(id);
                    }
                    state.segments.extend(add.iter().map(|meta| (meta.id, meta.clone())));
                    state.merged = state.merged.max(*merged);
                    state.symbol_bytes = state.symbol_bytes.max(*symbol_bytes);
                }
            }
            Change::NextIds { table, segment } => {
                self.next_table = self.next_table.max(*table);
                self.next_segment = self.next_segment.max(*segment);
            }
            Change::Checkpoint(checkpoint) => self.checkpoint = *checkpoint,
            Change::Taken { table, taken } => {
                if let Some(state) = self.tables.get_mut(table) {
                    state.taken = Some(*taken);
                }
            }
            Change::Dead { table, segment, rows } => {
                if let Some(state) = self.tables.get_mut(table) {
                    state.dead.insert(*segment, rows.clone());
                }
            }
            Change::Attached { table, txn } => {
                if let Some(state) = self.tables.get_mut(table) {
                    state.attached = state.attached.max(*txn);
                }
            }
        }
    }

    /// Returns the changes that create this state from an empty state.
    fn as_changes(&self) -> Vec<Change> {
        let mut changes = vec![
            Change::NextIds { table: self.next_table, segment: self.next_segment },
            Change::Checkpoint(self.checkpoint),
        ];
        for (&table, state) in &self.tables {
            let (schema, schema_txn) = (state.schema.clone(), state.schema_txn);
            changes.push(Change::Schema { table, schema, schema_txn });
            let (add, remove) = (state.segments.values().cloned().collect(), Vec::new());
            changes.push(Change::Content {
                table,
                add,
                remove,
                merged: state.merged,
                symbol_bytes: state.symbol_bytes,
            });
            changes.extend(state.taken.map(|taken| Change::Taken { table, taken }));
            changes.extend((state.attached > Txn(0)).then_some(Change::Attached { table, txn: state.attached }));
            let dead = state.dead.iter();
            changes.extend(dead.map(|(&segment, rows)| Change::Dead { table, segment, rows: rows.clone() }));
        }
        changes
    }
}

fn name_of(number: u64) -> String {
    format!("manifest-{number:012}")
}

fn path_of(number: u64) -> PathBuf {
    PathBuf::from(name_of(number))
}

fn write_snapshot(fs: &dyn Fs, number: u64, state: &State) -> Result<(Arc<dyn File>, u64)> {
    let bytes = to_bytes(state);
    let (temporary, path) = (PathBuf::from("manifest.new"), path_of(number));
    let _ = fs.remove(&temporary);
    let file = fs.create(&temporary).map_err(|e| Error::io("create", &temporary, e))?;
    file.write_all_at(&bytes, 0).map_err(|e| Error::io("write", &temporary, e))?;
    file.sync().map_err(|e| Error::io("sync", &temporary, e))?;
    // The file is synced before it is renamed, so that a manifest with a final name is always complete.
    fs.rename(&temporary, &path).map_err(|e| Error::io("rename", &path, e))?;
    fs.sync_dir(Path::new("")).map_err(|e| Error::io("sync", Path::new("."), e))?;
    Ok((file, bytes.len() as u64))
}

fn record(number: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + payload.len());
    bytes.extend((payload.len() as u32).to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend(number.to_le_bytes());
    bytes.extend_from_slice(payload);
    let crc = crc32c::crc32c(&bytes[8..]);
    bytes[4..8].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// Returns the payload of the record at the front of `bytes` if it is complete and has the number `number`.
fn read_record(bytes: &[u8], number: u64) -> Option<&[u8]> {
    let (header, rest) = bytes.split_first_chunk::<HEADER>()?;
    let mut decoder = Decoder::new(header);
    let (len, crc, found) = (decoder.u32().ok()? as usize, decoder.u32().ok()?, decoder.u64().ok()?);
    let payload = rest.get(..len)?;
    (found == number && crc32c::crc32c(&bytes[8..HEADER + len]) == crc).then_some(payload)
}

struct Replayed {
    state: State,
    len: u64,
    snapshot_len: u64,
    records: u64,
    version: u8,
}

fn replay(bytes: &[u8], path: &Path) -> Result<Replayed> {
    let corrupt = |at: usize, what: &str| Error::corrupt(format!("{} is corrupt at byte {at}: {what}", path.display()));
    let version = bytes.strip_prefix(MAGIC).and_then(|rest| rest.first().copied());
    let Some(version) = version.filter(u8::is_ascii_digit) else {
        return Err(corrupt(0, "the header is not that of a manifest"));
    };
    if !VERSIONS_READ.contains(&version) {
        let [from, to, found] = [*VERSIONS_READ.start(), VERSION, version].map(char::from);
        let message = format!(
            "the data folder was written by another release of Tidalite (format {found}, in {}); this release reads \
             formats {from} to {to}",
            path.display()
        );
        return Err(Error::new(ErrorKind::Conflict, message));
    }
    let (mut state, mut at, mut records, mut snapshot_len) = (State::default(), MAGIC_BYTES, 0, 0);
    while let Some(payload) = read_record(&bytes[at..], records) {
        let changes = decode_changes(payload).map_err(|e| corrupt(at, &e.to_string()))?;
        changes.iter().for_each(|change| state.apply(change));
        at += HEADER + payload.len();
        records += 1;
        if records == 1 {
            snapshot_len = at as u64;
        }
    }
    if records == 0 {
        return Err(corrupt(at, "the snapshot does not match its checksum"));
    }
    // Each edit is synced before the next one is written: a later good record proves that this one was once complete.
    let is_later = |from: &usize| {
        let number = bytes[from + 8..].first_chunk::<8>().map_or(0, |n| u64::from_le_bytes(*n));
        (records + 1..records + 1_000_000).contains(&number) && read_record(&bytes[*from..], number).is_some()
    };
    if (at + 1..bytes.len().saturating_sub(HEADER)).any(|from| is_later(&from)) {
        return Err(corrupt(at, "an edit does not match its checksum"));
    }
    Ok(Replayed { state, len: at as u64, snapshot_len, records, version })
}

fn encode_changes(changes: &[Change]) -> Vec<u8> {
    let mut e = Encoder::new();
    e.u32(changes.len() as u32);
    for change in changes {
        match change {
            Change::Schema { table, schema, schema_txn } => {
                e.u8(1);
                e.u32(table.0);
                e.u64(schema_txn.0);
                e.schema(schema);
            }
            Change::Drop(table) => {
                e.u8(2);
                e.u32(table.0);
            }
            Change::Content { table, add, remove, merged, symbol_bytes } => {
                // Without late segments, builds without support for late segments can read the record.
                let has_late = add.iter().any(|meta| meta.is_late);
                e.u8(if has_late { 8 } else { 3 });
                e.u32(table.0);
                e.u64(merged.0);
                e.u64(*symbol_bytes);
                e.u32(add.len() as u32);
                for meta in add {
                    encode_segment(meta, &mut e);
                    if has_late {
                        e.u8(u8::from(meta.is_late));
                    }
                }
                e.u32(remove.len() as u32);
                remove.iter().for_each(|id| e.u64(id.0));
            }
            Change::NextIds { table, segment } => {
                e.u8(4);
                e.u32(table.0);
                e.u64(segment.0);
            }
            Change::Checkpoint(checkpoint) => {
                e.u8(5);
                e.u64(checkpoint.txn.0);
                e.u64(checkpoint.file);
            }
            Change::Taken { table, taken } => {
                e.u8(7);
                e.u32(table.0);
                e.u64(taken.upto.0);
                e.i64(taken.before);
            }
            Change::Dead { table, segment, rows } => {
                e.u8(6);
                e.u32(table.0);
                e.u64(segment.0);
                encode_ranges(rows, &mut e);
            }
            Change::Attached { table, txn } => {
                e.u8(9);
                e.u32(table.0);
                e.u64(txn.0);
            }
        }
    }
    e.bytes
}

/// Appends the metadata of a segment, without the mark of a late segment.
pub fn encode_segment(meta: &SegmentMeta, e: &mut Encoder) {
    e.u64(meta.id.0);
    e.u64(meta.rows);
    e.u64(meta.bytes);
    e.i64(meta.partition);
    e.i64(meta.time_range.0);
    e.i64(meta.time_range.1);
}

/// Decodes the result of [`encode_segment`]: a segment that is not late.
pub fn decode_segment(d: &mut Decoder<'_>) -> Result<SegmentMeta, Malformed> {
    Ok(SegmentMeta {
        id: SegmentId(d.u64()?),
        rows: d.u64()?,
        bytes: d.u64()?,
        partition: d.i64()?,
        time_range: (d.i64()?, d.i64()?),
        is_late: false,
    })
}

fn decode_changes(bytes: &[u8]) -> Result<Vec<Change>, Malformed> {
    let mut d = Decoder::new(bytes);
    let mut changes = Vec::new();
    for _ in 0..d.u32()? {
        changes.push(match d.u8()? {
            1 => {
                let (table, schema_txn) = (d.table()?, Txn(d.u64()?));
                Change::Schema { table, schema: d.schema()?, schema_txn }
            }
            2 => Change::Drop(d.table()?),
            kind @ (3 | 8) => {
                let (table, merged, symbol_bytes) = (d.table()?, Txn(d.u64()?), d.u64()?);
                let (mut add, mut remove) = (Vec::new(), Vec::new());
                for _ in 0..d.u32()? {
                    let meta = decode_segment(&mut d)?;
                    add.push(SegmentMeta { is_late: kind == 8 && d.u8()? != 0, ..meta });
                }
                for _ in 0..d.u32()? {
                    remove.push(SegmentId(d.u64()?));
                }
                Change::Content { table, add, remove, merged, symbol_bytes }
            }
            4 => Change::NextIds { table: d.table()?, segment: SegmentId(d.u64()?) },
            5 => Change::Checkpoint(Checkpoint { txn: Txn(d.u64()?), file: d.u64()? }),
            6 => Change::Dead { table: d.table()?, segment: SegmentId(d.u64()?), rows: decode_ranges(&mut d)? },
            7 => Change::Taken { table: d.table()?, taken: Taken { upto: Txn(d.u64()?), before: d.i64()? } },
            9 => Change::Attached { table: d.table()?, txn: Txn(d.u64()?) },
            _ => return Err(Malformed("manifest change")),
        });
    }
    if d.rest.is_empty() { Ok(changes) } else { Err(Malformed("manifest edit")) }
}
