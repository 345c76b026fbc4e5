//! Verifies stored data: every byte with a checksum, and the statistics of rows.
//!
//! Input: an unused data folder, or a running database. Output: every problem with its location; nothing is changed. A
//! folder is checked completely: manifest, symbol files, checkpoint, log, a recovery on an overlay in memory, every
//! block of every segment, and files without an owner. A running database is checked in the state of a snapshot of its
//! tables. Its log can only be checked at open, because it is being written.

use crate::shared::Shared;
use crate::{Error, ErrorKind, Result, folder};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use tidalite_ingest::recover::recover;
use tidalite_ingest::wal::checkpoint;
use tidalite_ingest::wal::inspect::inspect;
use tidalite_storage::fs::Fs;
use tidalite_storage::fs::os::OsFs;
use tidalite_storage::fs::overlay::OverlayFs;
use tidalite_storage::manifest::{self, Manifest, State};
use tidalite_storage::segment::SegmentStore;
use tidalite_storage::segment::store::SEGMENTS_FOLDER;
use tidalite_storage::segment::verify::{Expected, verify};
use tidalite_storage::snapshot::{column_name, partition_name};
use tidalite_storage::tables::symbol_maps;
use tidalite_storage::{Segment, SymbolMap, TableSnapshot, symbol_file};
use tidalite_types::{ColumnId, TableId, TableSchema};

/// Progress callback: gets the bytes done and the total bytes; an error ends the work.
pub type GoOn<'a> = &'a mut dyn FnMut(u64, u64) -> Result<()>;

/// A fault in stored data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problem {
    /// Empty if the problem does not concern one table, like the next two fields.
    pub table: String,
    /// Name in SHOW PARTITIONS.
    pub partition: String,
    pub column: String,
    /// Path within the data folder.
    pub file: String,
    pub offset: u64,
    pub problem: String,
}

#[derive(Clone, Debug, Default)]
pub struct CheckReport {
    pub problems: Vec<Problem>,
    /// Files without an owner, which the next open removes.
    pub orphans: Vec<String>,
    pub tables: u64,
    pub segments: u64,
    /// Number of rows in segments.
    pub rows: u64,
    /// Number of bytes read.
    pub bytes: u64,
    /// Number of commits read from the log.
    pub commits: u64,
}

/// Checks a folder that no process uses.
///
/// # Errors
/// Fails if the folder is in use, is not a data folder, or cannot be read.
pub fn check_folder(data: &Path, go_on: GoOn<'_>) -> Result<CheckReport> {
    let _lock = folder::lock_existing(data).map_err(|mut error| {
        if error.kind == ErrorKind::Conflict {
            error.hint = Some("ask the server that runs on it: CHECK DATABASE".to_owned());
        }
        error
    })?;
    check_files(&(Arc::new(OsFs::new(data)) as Arc<dyn Fs>), go_on)
}

/// Checks the files of a folder that is not used otherwise.
///
/// # Errors
/// Fails like [`check_folder`].
pub fn check_files(fs: &Arc<dyn Fs>, go_on: GoOn<'_>) -> Result<CheckReport> {
    let mut report = CheckReport::default();
    let found = match manifest::find(&**fs) {
        Ok(Some(found)) => found,
        Ok(None) => return Err(Error::new(ErrorKind::NotFound, "this is no data folder: it has no manifest")),
        Err(error) if error.kind() != ErrorKind::Corrupt => return Err(error.into()),
        Err(error) => {
            // Without the manifest the meaning of the other files is unknown.
            report.problems.push(of_file("manifest", &error));
            return Ok(report);
        }
    };
    let state = &found.state;
    let mut tables = tables(fs, state, &mut report);
    let count = tables.len() as u64;
    let attached = check_recovery(fs, state, &mut report);
    orphans(&**fs, state, &attached, &mut report)?;
    tables.extend(attached);
    check_segments(&tables, &mut report, go_on)?;
    report.tables = count;
    Ok(report)
}

/// Returns the tables of a manifest with their readable symbols, and without staged rows.
pub(crate) fn tables(fs: &Arc<dyn Fs>, state: &State, report: &mut CheckReport) -> Vec<Arc<TableSnapshot>> {
    let store = SegmentStore::new(fs.clone(), 0);
    let mut tables = Vec::new();
    for (&id, table) in &state.tables {
        let symbols = symbol_maps(&table.schema, &HashMap::new());
        match symbol_file::read(&**fs, id, table.symbol_bytes) {
            Ok(all) => {
                for entries in all {
                    let restored = symbols.get(&entries.column).map(|map| symbol_file::restore(map, &entries));
                    if let Some(Err(error)) = restored {
                        report.problems.push(of_symbols(id, &table.schema, &error));
                    }
                }
            }
            Err(error) => report.problems.push(of_symbols(id, &table.schema, &error)),
        }
        let open = |meta: &_| Arc::new(Segment::open(store.clone(), id, Clone::clone(meta)));
        tables.push(Arc::new(TableSnapshot {
            txn: table.merged,
            segments: Arc::new(table.segments.values().map(open).collect()),
            symbols,
            ..TableSnapshot::empty(id, Arc::new(table.schema.clone()))
        }));
    }
    tables
}

/// Checks checkpoint and log by their checksums, then runs a recovery without writing. Returns the recovered tables with
/// only the segments of loads that the log attaches and the manifest does not name yet.
fn check_recovery(fs: &Arc<dyn Fs>, state: &State, report: &mut CheckReport) -> Vec<Arc<TableSnapshot>> {
    let before = report.problems.len();
    if state.checkpoint.file != 0
        && let Err(error) = checkpoint::read(&**fs, state.checkpoint.file, |_| Ok(()))
    {
        report.problems.push(of_file(&checkpoint::path_of(state.checkpoint.file).to_string_lossy(), &error));
    }
    match inspect(&**fs, state.checkpoint.txn, &mut |_, _| Ok(())) {
        Ok(log) => {
            (report.commits, report.bytes) = (log.commits, report.bytes + log.bytes);
            if let Some(damage) = log.damage {
                let file = log.files[damage.file].display().to_string();
                let problem = match damage.behind.len() {
                    0 => damage.problem,
                    n => format!("{}; {n} whole commits are behind it", damage.problem),
                };
                report.problems.push(Problem { file, offset: damage.at, problem, ..Problem::default() });
            }
        }
        Err(error) => report.problems.push(of_file("log", &error)),
    }
    if report.problems.len() > before {
        return Vec::new();
    }
    let above: Arc<dyn Fs> = Arc::new(OverlayFs::new(fs.clone()));
    let store = SegmentStore::new(above.clone(), 0);
    let opened = Manifest::open(above.clone()).and_then(|(m, _)| recover(&above, &store, &m, 4096));
    match opened {
        Ok(recovered) => recovered.versions.all().filter_map(|table| only_attached(table, state)).collect(),
        Err(error) => {
            report.problems.push(of_file("", &error));
            Vec::new()
        }
    }
}

/// Returns a table with only the segments that the manifest does not name; `None` if there are none.
fn only_attached(table: &TableSnapshot, state: &State) -> Option<Arc<TableSnapshot>> {
    let known = state.tables.get(&table.id);
    let is_known = |s: &&Arc<Segment>| known.is_some_and(|t| t.segments.contains_key(&s.meta().id));
    let segments: Vec<_> = table.segments.iter().filter(|s| !is_known(s)).cloned().collect();
    let attached = TableSnapshot { segments: Arc::new(segments), runs: Arc::default(), ..table.clone() };
    (!attached.segments.is_empty()).then(|| Arc::new(attached))
}

/// Checks the current tables of a running database.
pub(crate) fn check_online(shared: &Shared, table: Option<&str>, go_on: GoOn<'_>) -> Result<CheckReport> {
    let mut report = CheckReport::default();
    let (state, tables) = {
        // The lock keeps the manifest's file unchanged during the read.
        let held = shared.lock_manifest();
        if table.is_none()
            && let Err(error) = manifest::find(&*shared.fs)
        {
            report.problems.push(of_file("manifest", &error));
        }
        (held.manifest.state().clone(), shared.tables.all().1)
    };
    let is_meant =
        |t: &&Arc<TableSnapshot>| table.is_none_or(|name| tidalite_types::schema::same_name(&t.schema.name, name));
    let tables: Vec<_> = tables.iter().filter(is_meant).cloned().collect();
    if let Some(name) = table.filter(|_| tables.is_empty()) {
        return Err(Error::new(ErrorKind::NotFound, format!("table \"{name}\" does not exist")));
    }
    for table in &tables {
        let bytes = state.tables.get(&table.id).map_or(0, |t| t.symbol_bytes);
        if let Err(error) = symbol_file::read(&*shared.fs, table.id, bytes) {
            // A table that was dropped in the meantime has no file.
            if shared.tables.read().get(table.id).is_some() {
                report.problems.push(of_symbols(table.id, &table.schema, &error));
            }
        }
    }
    check_segments(&tables, &mut report, go_on)?;
    Ok(report)
}

fn check_segments(tables: &[Arc<TableSnapshot>], report: &mut CheckReport, go_on: GoOn<'_>) -> Result<()> {
    let bytes = |table: &Arc<TableSnapshot>| table.segments.iter().map(|s| s.meta().bytes).sum::<u64>();
    let (mut done, total) = (0, tables.iter().map(bytes).sum());
    report.tables = tables.len() as u64;
    let mut stopped = Ok(());
    for table in tables {
        let symbols = |id: ColumnId| table.symbols.get(&id).map_or(0, |map| SymbolMap::len(map));
        let expected = Expected { schema: &table.schema, symbols: &symbols };
        for segment in table.segments.iter() {
            let mut step = |bytes| {
                stopped = go_on(done + bytes, total);
                done += bytes;
                let why = |e: &Error| tidalite_storage::Error::new(e.kind, e.message.clone());
                stopped.as_ref().map_err(why).copied()
            };
            let verified = verify(segment, Some(expected), &mut step);
            stopped.clone()?;
            for error in verified?.problems {
                report.problems.push(of_segment(&table.schema, &error));
            }
            report.segments += 1;
            report.rows += segment.rows();
        }
    }
    report.bytes += done;
    Ok(())
}

pub(crate) fn of_segment(schema: &TableSchema, error: &tidalite_storage::Error) -> Problem {
    let Some(damage) = error.damage() else { return of_file("", error) };
    Problem {
        table: schema.name.clone(),
        partition: partition_name(schema, damage.partition),
        column: damage.column.map_or_else(String::new, |id| column_name(schema, id).trim_matches('"').to_owned()),
        file: damage.file.display().to_string(),
        offset: damage.offset,
        problem: damage.problem.clone(),
    }
}

fn of_symbols(table: TableId, schema: &TableSchema, error: &tidalite_storage::Error) -> Problem {
    Problem { table: schema.name.clone(), ..of_file(&symbol_file::path_of(table).to_string_lossy(), error) }
}

/// Returns a problem without a byte offset, which is in the error text.
fn of_file(file: &str, error: &tidalite_storage::Error) -> Problem {
    let problem = error.to_string();
    let at =
        problem.split("byte ").nth(1).map(|rest| rest.chars().take_while(char::is_ascii_digit).collect::<String>());
    let offset = at.and_then(|digits| digits.parse().ok()).unwrap_or(0);
    Problem { file: file.to_owned(), offset, problem, ..Problem::default() }
}

/// Finds files that neither the manifest nor an attached load names.
fn orphans(fs: &dyn Fs, state: &State, attached: &[Arc<TableSnapshot>], report: &mut CheckReport) -> Result<()> {
    let list = |dir: &str| fs.list(Path::new(dir)).map_err(|e| tidalite_storage::Error::io("list", Path::new(dir), e));
    let mut known: HashSet<String> = HashSet::new();
    let path = |path: std::path::PathBuf| path.to_string_lossy().into_owned();
    known.insert(path(checkpoint::path_of(state.checkpoint.file)));
    for (&id, table) in &state.tables {
        known.insert(path(symbol_file::path_of(id)));
        known.extend(table.segments.keys().map(|&segment| path(SegmentStore::path(id, segment))));
    }
    known.extend(attached.iter().flat_map(|table| table.segments.iter().map(|segment| path(segment.path()))));
    let mut folders = vec![checkpoint::FOLDER.to_owned(), symbol_file::FOLDER.to_owned()];
    folders.extend(list(SEGMENTS_FOLDER)?.into_iter().map(|name| format!("{SEGMENTS_FOLDER}/{name}")));
    for folder in folders {
        let names = list(&folder)?.into_iter().map(|name| format!("{folder}/{name}"));
        report.orphans.extend(names.filter(|name| !known.contains(name)));
    }
    Ok(())
}
