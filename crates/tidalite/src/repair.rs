//! Repairs a damaged folder, and reports the losses.
//!
//! Input: an unused data folder. Output: a folder that can be opened and contains all intact data. Damaged files are
//! moved to `quarantine/` with a text that states the reason. The intact blocks of a damaged segment are kept as a new
//! segment; of a damaged log, the commits before the damage are kept.
//!
//! Invariant: a file that is moved is first copied durably, then an ordinary edit removes it from the manifest, and
//! then the file is removed. Crash: possible at any point; the next repair completes the work. A dry run does
//! everything on an overlay in memory.

mod chunk;
mod log;
mod quarantine;
mod report;
mod staged;
mod symbols;

use crate::check::{GoOn, of_segment, tables};
use crate::{Error, ErrorKind, Result, folder};
use quarantine::{QUARANTINE, Quarantine};
use report::beyond_repair;
pub use report::{Lost, RepairReport};
use std::collections::HashSet;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tidalite_ingest::recover::recover;
use tidalite_storage::fs::Fs;
use tidalite_storage::fs::os::OsFs;
use tidalite_storage::fs::overlay::OverlayFs;
use tidalite_storage::manifest::{self, Change, Manifest, State};
use tidalite_storage::segment::salvage::salvage;
use tidalite_storage::segment::store::SEGMENTS_FOLDER;
use tidalite_storage::segment::verify::{Expected, Verified, verify};
use tidalite_storage::segment::{SegmentMeta, SegmentStore};
use tidalite_storage::snapshot::partition_name;
use tidalite_storage::{Bounds, Segment, TableSnapshot};
use tidalite_types::time::format_timestamp;
use tidalite_types::{ColumnId, SegmentId, TimeUnit, Txn};

/// Repairs a folder that no process uses; with `is_dry` only reports the steps.
///
/// # Errors
/// Fails if the folder is in use or cannot be written, or the damaged data can only be restored from a backup.
pub fn repair_folder(data: &Path, is_dry: bool, go_on: GoOn<'_>) -> Result<RepairReport> {
    let _lock = folder::lock_existing(data)?;
    let fs: Arc<dyn Fs> = Arc::new(OsFs::new(data));
    let fs: Arc<dyn Fs> = if is_dry { Arc::new(OverlayFs::new(fs)) } else { fs };
    let millis = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_millis() as i64);
    let stamp = format_timestamp(millis, TimeUnit::Millis).replace(['-', ':'], "");
    repair_files(&fs, &stamp, go_on)
}

/// Repairs files that are not used otherwise; `stamp` names the quarantine folder.
pub(crate) fn repair_files(fs: &Arc<dyn Fs>, stamp: &str, go_on: GoOn<'_>) -> Result<RepairReport> {
    let found = manifest::find(&**fs).map_err(|e| match e.kind() {
        ErrorKind::Corrupt => beyond_repair(&e.to_string()),
        _ => e.into(),
    })?;
    let Some(found) = found else {
        return Err(Error::new(ErrorKind::NotFound, "this is no data folder: it has no manifest"));
    };
    let aside = Quarantine { fs: fs.clone(), folder: format!("{QUARANTINE}/{stamp}") };
    let mut report = RepairReport::default();
    let missing = manifest::missing_files(&**fs, &found.state);
    if found.torn_bytes > 0 {
        // An incomplete edit at the end never happened, unless files that it removed are missing for another reason
        // than an interrupted repair.
        if let Some(missing) = missing.iter().find(|path| !is_known_missing(&**fs, path)) {
            let (path, missing) = (found.path.display(), missing.display());
            return Err(beyond_repair(&format!(
                "the last edit of {path} is damaged and had happened: {missing} is gone"
            )));
        }
        manifest::cut_tail(&**fs, &found)?;
    }
    // Recorded before the first edit, so that an interrupted repair can be distinguished.
    for path in missing.iter().filter(|path| path.starts_with(SEGMENTS_FOLDER)) {
        aside.keep(path, &format!("{} is missing\n", path.display()), &mut report)?;
    }
    // Each step relies on the previous steps.
    symbols::repair(fs, &found.state, &aside, &mut report)?;
    staged::repair(fs, &state(fs)?, &aside, &mut report)?;
    log::repair(fs, &state(fs)?, found.torn_bytes > 0, &aside, &mut report)?;
    let mut problems = crate::check::CheckReport::default();
    let tables = tables(fs, &state(fs)?, &mut problems);
    if let Some(problem) = problems.problems.first() {
        return Err(beyond_repair(&problem.problem));
    }
    segments(fs, &tables, &aside, &mut report, go_on)?;
    Ok(report)
}

/// Returns true if an earlier repair recorded that this file is missing.
fn is_known_missing(fs: &dyn Fs, path: &Path) -> bool {
    let note = format!("{}.txt", path.display());
    let stamps = fs.list(Path::new(QUARANTINE)).unwrap_or_default();
    stamps.iter().any(|stamp| fs.open(&Path::new(QUARANTINE).join(stamp).join(&note)).is_ok())
}

/// Returns the current state of the manifest.
fn state(fs: &Arc<dyn Fs>) -> Result<State> {
    let found = manifest::find(&**fs)?;
    found.map(|f| f.state).ok_or_else(|| Error::new(ErrorKind::Internal, "the manifest is gone"))
}

/// Replaces damaged or missing segments by their intact blocks.
fn segments(
    fs: &Arc<dyn Fs>,
    tables: &[Arc<TableSnapshot>],
    aside: &Quarantine,
    report: &mut RepairReport,
    go_on: GoOn<'_>,
) -> Result<()> {
    let total = tables.iter().flat_map(|t| t.segments.iter()).map(|s| s.meta().bytes).sum();
    let mut done = 0;
    let (masked, unused) = recovered(fs)?;
    for table in tables {
        let symbols = |id: ColumnId| table.symbols.get(&id).map_or(0, |map| map.len());
        for segment in table.segments.iter() {
            let expected = Expected { schema: &table.schema, symbols: &symbols };
            let mut verified = verify(segment, Some(expected), &mut |_| Ok(()))?;
            if masked.contains(&segment.meta().id) {
                // Deleted rows are identified by their positions in this file: in another file they would be restored.
                verified.whole_blocks.clear();
            }
            done += segment.meta().bytes;
            go_on(done, total)?;
            if !verified.problems.is_empty() {
                replace(fs, table, segment, &verified, unused, aside, report)?;
            }
        }
    }
    Ok(())
}

/// Returns segments with rows that are deleted but still stored, and the first number that no segment has, also none
/// that only the log attaches.
fn recovered(fs: &Arc<dyn Fs>) -> Result<(HashSet<SegmentId>, SegmentId)> {
    let above: Arc<dyn Fs> = Arc::new(OverlayFs::new(fs.clone()));
    let store = SegmentStore::new(above.clone(), 0);
    let (manifest, _) = Manifest::open(above.clone())?;
    let recovered = recover(&above, &store, &manifest, 4096)?;
    let masked = recovered.versions.all().flat_map(|t| t.dead.keys().copied()).collect();
    Ok((masked, recovered.next_segment))
}

fn replace(
    fs: &Arc<dyn Fs>,
    table: &TableSnapshot,
    segment: &Segment,
    verified: &Verified,
    unused: SegmentId,
    aside: &Quarantine,
    report: &mut RepairReport,
) -> Result<()> {
    let path = segment.path();
    let kept: u64 = verified.whole_blocks.iter().map(|&block| segment.block_rows(block) as u64).sum();
    let lost = lost_blocks(table, segment, &verified.whole_blocks);
    let mut why = format!("{}: {} of {} rows were kept\n", path.display(), kept, segment.rows());
    for error in &verified.problems {
        let problem = of_segment(&table.schema, error);
        let column = if problem.column.is_empty() { String::new() } else { format!(", column \"{}\"", problem.column) };
        let (table, partition) = (problem.table, problem.partition);
        let _ = writeln!(
            why,
            "table \"{table}\", partition {partition}{column}, byte {}: {}",
            problem.offset, problem.problem
        );
    }
    for lost in &lost {
        let _ = writeln!(why, "gone: {} rows from {} to {}", lost.rows, lost.from, lost.to);
    }
    aside.keep(&path, &why, report)?;
    let (mut manifest, _) = Manifest::open(fs.clone())?;
    let next = manifest.state().next_segment.max(unused);
    let mut changes = vec![Change::NextIds { table: table.id, segment: SegmentId(next.0 + 1) }];
    let add = match &verified.whole_blocks[..] {
        [] => Vec::new(),
        blocks => vec![salvaged(fs, table, segment, blocks, next)?],
    };
    changes.push(Change::Content {
        table: table.id,
        add,
        remove: vec![segment.meta().id],
        merged: Txn(0),
        symbol_bytes: 0,
    });
    manifest.edit(&changes)?;
    // Copied before; the next open removes the rest.
    let _ = fs.remove(&path);
    report.done.push(format!(
        "{} of table \"{}\", partition {}: moved aside, {kept} of {} rows kept",
        path.display(),
        table.schema.name,
        partition_name(&table.schema, segment.meta().partition),
        segment.rows()
    ));
    report.lost.extend(lost);
    Ok(())
}

fn salvaged(
    fs: &Arc<dyn Fs>,
    table: &TableSnapshot,
    segment: &Segment,
    blocks: &[usize],
    id: SegmentId,
) -> Result<SegmentMeta> {
    // A file of an interrupted attempt.
    let _ = fs.remove(&SegmentStore::path(table.id, id));
    let meta = salvage(segment, &table.schema, blocks, id, &**fs)?;
    let dir = SegmentStore::dir(table.id);
    fs.sync_dir(&dir).map_err(|e| tidalite_storage::Error::io("sync", &dir, e))?;
    Ok(meta)
}

/// Returns the rows of the blocks that are not in `whole`, with adjacent blocks joined.
fn lost_blocks(table: &TableSnapshot, segment: &Segment, whole: &[usize]) -> Vec<Lost> {
    let mut all: Vec<(usize, (i64, i64), Lost)> = Vec::new();
    for block in (0..segment.block_count()).filter(|block| !whole.contains(block)) {
        let rows = segment.block_rows(block) as u64;
        let zone = table.schema.designated.and_then(|id| segment.zone(id, block).ok().flatten());
        let range = match zone.map(|zone| zone.bounds) {
            Some(Bounds::Int(lo, hi)) => (lo, hi),
            _ => segment.time_range(),
        };
        match all.last_mut() {
            Some((last, known, lost)) if *last + 1 == block => {
                (*last, lost.rows) = (block, lost.rows + rows);
                *known = (known.0.min(range.0), known.1.max(range.1));
            }
            _ => all.push((
                block,
                range,
                Lost {
                    table: table.schema.name.clone(),
                    partition: partition_name(&table.schema, segment.meta().partition),
                    rows,
                    of: segment.path().display().to_string(),
                    ..Lost::default()
                },
            )),
        }
    }
    let text = |ts: i64| table.schema.timestamp().map_or_else(String::new, |(_, unit)| format_timestamp(ts, unit));
    all.into_iter().map(|(_, range, lost)| Lost { from: text(range.0), to: text(range.1), ..lost }).collect()
}
