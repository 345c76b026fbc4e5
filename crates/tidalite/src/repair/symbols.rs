//! Repairs a damaged symbol file from its intact parts, the checkpoint and the log.
//!
//! A lost string is replaced by a placeholder, because rows have its id: the rows remain, and their symbol stays
//! distinct from all others.

use super::quarantine::Quarantine;
use super::report::{Lost, RepairReport};
use crate::Result;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidalite_ingest::wal::checkpoint;
use tidalite_ingest::wal::inspect::inspect;
use tidalite_ingest::wal::record::Op;
use tidalite_storage::codec::{Decoder, Encoder};
use tidalite_storage::fs::Fs;
use tidalite_storage::manifest::{Change, Manifest, State, TableState};
use tidalite_storage::segment::SegmentStore;
use tidalite_storage::segment::verify::{Expected, verify};
use tidalite_storage::symbol_file::{self, Entries, decode_entries, encode_entries};
use tidalite_storage::{Error, Segment};
use tidalite_types::{ColumnId, ColumnType, TableId, Txn, Views};

/// Strings by column and id; `None` for unknown ones.
type Known = BTreeMap<ColumnId, Vec<Option<Vec<u8>>>>;

pub(super) fn repair(fs: &Arc<dyn Fs>, state: &State, aside: &Quarantine, report: &mut RepairReport) -> Result<()> {
    for (&id, table) in &state.tables {
        if let Err(error) = symbol_file::read(&**fs, id, table.symbol_bytes) {
            rebuild(fs, state, id, table, &error.to_string(), aside, report)?;
        }
    }
    Ok(())
}

fn rebuild(
    fs: &Arc<dyn Fs>,
    state: &State,
    id: TableId,
    table: &TableState,
    problem: &str,
    aside: &Quarantine,
    report: &mut RepairReport,
) -> Result<()> {
    let path = symbol_file::path_of(id);
    let io = |action: &str, e| Error::io(action, &path, e);
    let mut known = Known::new();
    whole_entries(&**fs, &path, table.symbol_bytes).iter().for_each(|entries| add(&mut known, entries));
    from_commits(&**fs, state, id, &mut known);
    needed_by_segments(fs, id, table, &mut known)?;
    let lost = fill(&mut known);
    let mut why = format!("{} of table \"{}\" was written anew: {problem}\n", path.display(), table.schema.name);
    for (column, ids) in &lost {
        let name = tidalite_storage::snapshot::column_name(&table.schema, *column);
        why.push_str(&format!("column {name}: {} strings are gone, with ids {ids:?}\n", ids.len()));
        let of = format!("{} strings of column {name}: rows that had them have '<lost symbol N>' now", ids.len());
        report.lost.push(Lost { table: table.schema.name.clone(), of, ..Lost::default() });
    }
    aside.keep(&path, &why, report)?;
    let bytes = to_bytes(&known, table.symbol_bytes);
    // Bytes after the valid length must not become valid when the manifest increases the length.
    if let Ok(file) = fs.open_write(&path) {
        let len = file.len().map_err(|e| io("read", e))?.min(table.symbol_bytes);
        file.set_len(len).map_err(|e| io("truncate", e))?;
        file.sync().map_err(|e| io("sync", e))?;
    }
    let part = PathBuf::from(format!("{}.new", path.display()));
    let _ = fs.remove(&part);
    let file = fs.create(&part).map_err(|e| io("create", e))?;
    file.write_all_at(&bytes, 0).map_err(|e| io("write", e))?;
    file.sync().map_err(|e| io("sync", e))?;
    let (mut manifest, _) = Manifest::open(fs.clone())?;
    let symbol_bytes = bytes.len() as u64;
    let (add, remove) = (Vec::new(), Vec::new());
    manifest.edit(&[Change::Content { table: id, add, remove, merged: Txn(0), symbol_bytes }])?;
    fs.rename(&part, &path).map_err(|e| io("rename", e))?;
    let folder = Path::new(symbol_file::FOLDER);
    fs.sync_dir(folder).map_err(|e| Error::io("sync", folder, e))?;
    report.done.push(why.lines().next().unwrap_or_default().to_owned());
    Ok(())
}

/// Returns the entries of the intact chunks, at any position.
fn whole_entries(fs: &dyn Fs, path: &Path, len: u64) -> Vec<Entries> {
    let Ok(file) = fs.open(path) else { return Vec::new() };
    let mut bytes = vec![0; file.len().unwrap_or(0).min(len) as usize];
    if file.read_exact_at(&mut bytes, 0).is_err() {
        return Vec::new();
    }
    let (mut all, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        match super::chunk::chunk_at(&bytes, at).and_then(entries) {
            Some((entries, len)) => {
                all.extend(entries);
                at += len;
            }
            None => at += 1,
        }
    }
    all
}

fn entries(payload: &[u8]) -> Option<(Vec<Entries>, usize)> {
    let (mut d, mut all) = (Decoder::new(payload), Vec::new());
    while !d.rest.is_empty() {
        all.push(decode_entries(&mut d).ok()?);
    }
    (!all.is_empty()).then_some((all, payload.len() + super::chunk::CHUNK_HEADER))
}

fn add(known: &mut Known, entries: &Entries) {
    let column = known.entry(entries.column).or_default();
    let first = entries.first as usize;
    column.resize(column.len().max(first + entries.strings.len()), None);
    for (id, string) in entries.strings.iter().enumerate() {
        column[first + id].get_or_insert_with(|| string.to_vec());
    }
}

/// Collects strings from the checkpoint and the log, which contain strings before the symbol file does.
fn from_commits(fs: &dyn Fs, state: &State, table: TableId, known: &mut Known) {
    let mut take = |op: Op| {
        if let Op::Symbols { table: of, entries } = op
            && of == table
        {
            add(known, &entries);
        }
    };
    // As far as they are readable: their damage is repaired separately.
    if state.checkpoint.file != 0 {
        let _ = checkpoint::read(fs, state.checkpoint.file, |op| {
            take(op);
            Ok(())
        });
    }
    let _ = inspect(fs, state.checkpoint.txn, &mut |_, ops| {
        ops.into_iter().for_each(&mut take);
        Ok(())
    });
}

/// Adds placeholders for every id in a segment.
fn needed_by_segments(fs: &Arc<dyn Fs>, id: TableId, table: &TableState, known: &mut Known) -> Result<()> {
    let store = SegmentStore::new(fs.clone(), 0);
    for meta in table.segments.values() {
        let segment = Segment::open(store.clone(), id, meta.clone());
        let expected = Expected { schema: &table.schema, symbols: &|_| usize::MAX };
        for (column, count) in verify(&segment, Some(expected), &mut |_| Ok(()))?.symbols_needed {
            let column = known.entry(column).or_default();
            column.resize(column.len().max(count), None);
        }
    }
    let is_symbol = |id: &ColumnId| table.schema.column_by_id(*id).is_some_and(|c| c.column_type == ColumnType::Symbol);
    known.retain(|id, _| is_symbol(id));
    Ok(())
}

/// Fills every gap; returns the filled ids.
fn fill(known: &mut Known) -> HashMap<ColumnId, Vec<usize>> {
    let mut lost = HashMap::new();
    for (&column, strings) in known {
        let mut taken: HashSet<Vec<u8>> = strings.iter().flatten().cloned().collect();
        let gaps: Vec<usize> = (0..strings.len()).filter(|id| strings[*id].is_none()).collect();
        for &id in &gaps {
            let mut string = placeholder(id);
            while !taken.insert(string.clone()) {
                string.push(b'\'');
            }
            strings[id] = Some(string);
        }
        if !gaps.is_empty() {
            lost.insert(column, gaps);
        }
    }
    lost
}

pub(super) fn placeholder(id: usize) -> Vec<u8> {
    format!("<lost symbol {id}>").into_bytes()
}

/// Returns a symbol file of at least `len` bytes: its valid length never decreases.
fn to_bytes(known: &Known, len: u64) -> Vec<u8> {
    let mut payload = Encoder::new();
    for (&column, strings) in known {
        let mut all = Views::new();
        strings.iter().flatten().for_each(|s| all.push(s));
        encode_entries(&Entries { column, first: 0, strings: all }, &mut payload);
    }
    let mut bytes = super::chunk::chunk(&payload.bytes);
    if (bytes.len() as u64) < len {
        // A column id that no table has.
        let head = super::chunk::CHUNK_HEADER + 16;
        let mut strings = Views::new();
        strings.push(&vec![0; (len as usize - bytes.len()).saturating_sub(head)]);
        let mut padding = Encoder::new();
        encode_entries(&Entries { column: ColumnId(u32::MAX), first: 0, strings }, &mut padding);
        bytes.extend(super::chunk::chunk(&padding.bytes));
    }
    bytes
}
