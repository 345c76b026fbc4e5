//! Repairs a damaged log: keeps the commits before the damage, and moves and reports the commits after it.
//!
//! The rows of a recovery up to the damage are written to a new checkpoint of the last commit known in the folder, so
//! that numbers of lost commits are never reused. The log is then no longer needed.

use super::quarantine::Quarantine;
use super::report::{Lost, RepairReport};
use crate::Result;
use crate::jobs::{reconcile, staged_ops};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use tidalite_ingest::recover::recover;
use tidalite_ingest::wal::checkpoint::CheckpointWriter;
use tidalite_ingest::wal::inspect::{Inspected, LogDamage, inspect};
use tidalite_ingest::wal::log::{FOLDER, OLD_FOLDER};
use tidalite_ingest::wal::mark;
use tidalite_storage::fs::Fs;
use tidalite_storage::fs::overlay::OverlayFs;
use tidalite_storage::manifest::{Change, Checkpoint, Manifest, State, TableState};
use tidalite_storage::segment::SegmentStore;
use tidalite_storage::{Error, Tables};
use tidalite_types::{SegmentId, TableId, Txn};

/// Repairs the log. `is_torn` is true if the manifest ends with an incomplete edit.
pub(super) fn repair(
    fs: &Arc<dyn Fs>,
    state: &State,
    is_torn: bool,
    aside: &Quarantine,
    report: &mut RepairReport,
) -> Result<()> {
    let found = inspect(&**fs, state.checkpoint.txn, &mut |_, _| Ok(()))?;
    let Some(damage) = &found.damage else { return Ok(()) };
    if is_torn && damage.file == 0 && damage.at == 0 {
        // Files at the front are removed only after the edit of a checkpoint.
        return Err(super::report::beyond_repair(&format!(
            "the last edit of the manifest is damaged ({})",
            damage.problem
        )));
    }
    let io = |action: &str, path: &Path, e| Error::io(action, path, e);
    let (above, tables, persisted, next_segment) = recovered(fs, &found, damage)?;
    let names: BTreeMap<TableId, String> = tables.all().1.iter().map(|t| (t.id, t.schema.name.clone())).collect();
    let (why, lost) = losses(&found, damage, state, &names);
    for file in &found.files[damage.file..] {
        aside.keep(file, &why, report)?;
    }
    // The recovered state becomes the checkpoint; from here on the log is obsolete.
    let last = last_known(&found, damage, state);
    let number = state.checkpoint.file + 1;
    let mut writer = CheckpointWriter::create(&**fs, number)?;
    let (mut manifest, _) = Manifest::open(fs.clone())?;
    let known = manifest.state().clone();
    let all = tables.all().1;
    let gone = known.tables.keys().filter(|id| !all.iter().any(|t| t.id == **id));
    let mut changes: Vec<Change> = gone.map(|id| Change::Drop(*id)).collect();
    for table in &all {
        changes.extend(reconcile(next_segment, &known, table, &table.segments));
        let persisted = persisted.get(&table.id).cloned().unwrap_or_default();
        staged_ops(table, &persisted).try_for_each(|op| writer.write(&op))?;
    }
    writer.finish(&**fs)?;
    changes.push(Change::Checkpoint(Checkpoint { txn: last, file: number }));
    manifest.edit(&changes)?;
    drop(above);
    // Before the log files, because the mark names one of them.
    mark::remove(&**fs)?;
    // The damaged files first, because the files before them are consistent by themselves.
    for file in found.files.iter().skip(damage.file).chain(found.files.iter().take(damage.file)) {
        match fs.remove(file) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            removed => removed.map_err(|e| io("remove", file, e))?,
        }
    }
    // Files of earlier builds are in a separate folder, and a folder may be missing with its files.
    for folder in [FOLDER, OLD_FOLDER].map(Path::new) {
        match fs.sync_dir(folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            synced => synced.map_err(|e| io("sync", folder, e))?,
        }
    }
    report.done.push(why.lines().next().unwrap_or_default().to_owned());
    report.lost.extend(lost);
    Ok(())
}

type Persisted = tidalite_ingest::recover::Persisted;

/// Returns the tables after a recovery of the log before the damage, on an overlay in memory, and the first unused
/// segment number.
fn recovered(
    fs: &Arc<dyn Fs>,
    found: &Inspected,
    damage: &LogDamage,
) -> Result<(Arc<dyn Fs>, Tables, Persisted, SegmentId)> {
    let above: Arc<dyn Fs> = Arc::new(OverlayFs::new(fs.clone()));
    let io = |action: &str, path: &Path, e| Error::io(action, path, e);
    // The mark covers commits that this recovery omits.
    mark::remove(&*above)?;
    for (index, path) in found.files.iter().enumerate().skip(damage.file) {
        if index == damage.file && damage.at > 0 {
            let file = above.open_write(path).map_err(|e| io("open", path, e))?;
            file.set_len(damage.at).map_err(|e| io("truncate", path, e))?;
        } else if above.open(path).is_ok() {
            above.remove(path).map_err(|e| io("remove", path, e))?;
        }
    }
    let store = SegmentStore::new(above.clone(), 0);
    let (manifest, _) = Manifest::open(above.clone())?;
    let recovered = recover(&above, &store, &manifest, 4096)?;
    Ok((above, recovered.versions.into(), recovered.persisted, recovered.next_segment))
}

/// Returns the greatest commit number that occurs anywhere.
fn last_known(found: &Inspected, damage: &LogDamage, state: &State) -> Txn {
    let of_table = |t: &TableState| [t.merged, t.taken.map_or(Txn(0), |taken| taken.upto), t.attached, t.schema_txn];
    let tables = state.tables.values().flat_map(of_table);
    let behind = damage.behind.keys().copied();
    let marked = found.mark.map(|mark| mark.txn);
    tables.chain(behind).chain(marked).chain([found.txn, state.checkpoint.txn]).max().unwrap_or(Txn(0))
}

/// Returns the text for the quarantine, and the lost rows.
fn losses(
    found: &Inspected,
    damage: &LogDamage,
    state: &State,
    names: &BTreeMap<TableId, String>,
) -> (String, Vec<Lost>) {
    let file = found.files[damage.file].display();
    let marked = found.mark.map(|mark| mark.txn);
    let last = damage.behind.keys().copied().chain(marked).chain([found.txn.next()]).max().unwrap_or_default();
    let span = if last == found.txn.next() {
        format!("commit {last}")
    } else {
        format!("commits {} to {last}", found.txn.next())
    };
    let mut why = format!("{file} is damaged at byte {}: {}; {span} moved aside\n", damage.at, damage.problem);
    let mut rows: BTreeMap<TableId, u64> = BTreeMap::new();
    let mut lost: Vec<Lost> = Vec::new();
    for (txn, tables) in &damage.behind {
        let _ = writeln!(why, "commit {txn} is whole:");
        for (table, count) in tables {
            let name = names.get(table).map_or("created behind the damage", String::as_str);
            // A merge may have preceded the damage.
            let is_merged = state.tables.get(table).is_some_and(|t| t.merged >= *txn);
            let is_kept = if is_merged { ", which are in segments" } else { "" };
            let _ = writeln!(why, "  {count} rows of table {table} ({name}){is_kept}");
            if !is_merged {
                *rows.entry(*table).or_default() += count;
            }
        }
    }
    for (txn, table) in &damage.deletions {
        let name = names.get(table).map_or("created behind the damage", String::as_str);
        let _ = writeln!(why, "commit {txn} deleted rows of table {table} ({name}), which are back if they are older");
        let of = format!("a deletion in commit {txn} of the log: rows that it deleted are back");
        lost.push(Lost { table: name.to_owned(), of, ..Lost::default() });
    }
    let unknown = unknown(found.txn, last, damage);
    if !unknown.is_empty() {
        let _ = writeln!(why, "of these nothing can be made out: commits {}", unknown.join(", "));
    }
    let of = format!("{span} of the log");
    for (table, rows) in rows {
        let table = names.get(&table).cloned().unwrap_or_else(|| format!("number {table}"));
        lost.push(Lost { table, rows, of: of.clone(), ..Lost::default() });
    }
    if !unknown.is_empty() {
        let of = format!("commits {} of the log, of which nothing can be made out", unknown.join(", "));
        lost.push(Lost { of, ..Lost::default() });
    }
    (why, lost)
}

/// Returns the commits after `from` up to `to` that the log does not have whole, as numbers and ranges of numbers.
fn unknown(from: Txn, to: Txn, damage: &LogDamage) -> Vec<String> {
    let mut spans = Vec::new();
    let mut next = from.0 + 1;
    let known = damage.behind.keys().map(|txn| txn.0).filter(|txn| *txn > from.0 && *txn <= to.0);
    for end in known.chain([to.0 + 1]) {
        match end - next {
            0 => {}
            1 => spans.push(next.to_string()),
            _ => spans.push(format!("{next} to {}", end - 1)),
        }
        next = end + 1;
    }
    spans
}
