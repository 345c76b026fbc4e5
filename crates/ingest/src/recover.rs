//! Restores the tables from disk: manifest, checkpoint, log, in this order.
//!
//! Output: the catalog, the versions that readers see, and the end of the log. Afterwards the folder has no files
//! without an owner: files left by a crash are removed.

use crate::catalog::Catalog;
use crate::times::ChangedTimes;
use crate::wal::checkpoint;
use crate::wal::gathered::Gathered;
use crate::wal::log::{self, LogWriter, Ops, replay};
use crate::wal::record::{Front, Op, RunHead};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use tidalite_storage::fs::Fs;
use tidalite_storage::manifest::{Manifest, State, Taken};
use tidalite_storage::segment::SegmentStore;
use tidalite_storage::segment::store::SEGMENTS_FOLDER;
use tidalite_storage::tables::{Versions, sort_segments};
use tidalite_storage::{DeadRows, Error, Result, Run, Segment, symbol_file};
use tidalite_types::{ColumnId, SegmentId, TableId, Txn};

/// Number of symbols of each column in the table's symbol file.
pub type Persisted = HashMap<TableId, HashMap<ColumnId, u32>>;

#[derive(Debug)]
pub struct Recovered {
    pub catalog: Catalog,
    pub versions: Versions,
    pub log: LogWriter,
    pub txn: Txn,
    pub persisted: Persisted,
    /// Number of commits read from the log.
    pub replayed: u64,
    /// The first segment number that neither the manifest nor the log has used.
    pub next_segment: SegmentId,
    /// Changes that materialized views have not processed.
    pub times: ChangedTimes,
}

/// Restores the tables. `log_file_bytes` is the allocation size of new log files.
pub fn recover(
    fs: &Arc<dyn Fs>,
    store: &Arc<SegmentStore>,
    manifest: &Manifest,
    log_file_bytes: u64,
) -> Result<Recovered> {
    let state = manifest.state();
    create_folders(&**fs)?;
    let mut tables = Recovering {
        state,
        store,
        catalog: Catalog::default(),
        versions: Versions::with_store(store.clone()),
        next_segment: state.next_segment,
        persisted: HashMap::new(),
        times: ChangedTimes::default(),
        gathered: HashMap::new(),
    };
    tables.catalog.next_table = state.next_table;
    for &table in state.tables.keys() {
        tables.open_table(&**fs, table)?;
    }
    if state.checkpoint.file != 0 {
        checkpoint::read_chunks(&**fs, state.checkpoint.file, |ops| tables.load(state.checkpoint.txn, ops))?;
        tables.end_all()?;
    }
    tables.follow_bases();
    let mut replayed = 0;
    let end = replay(&**fs, state.checkpoint.txn, |txn, ops| {
        replayed += 1;
        tables.replay(txn, ops)
    })?;
    tables.end_all()?;
    let txn = end.txn;
    let mut log = LogWriter::begin(fs.clone(), end, log_file_bytes)?;
    // Files that a checkpoint made obsolete and that were not removed before the last close or crash.
    log.release(state.checkpoint.txn);
    let Recovering { mut catalog, mut versions, next_segment, persisted, times, .. } = tables;
    catalog.index_names();
    versions.index_names();
    versions.set_txn(txn);
    remove_strays(&**fs, state, &versions)?;
    Ok(Recovered { catalog, versions, log, txn, persisted, replayed, next_segment, times })
}

struct Recovering<'a> {
    state: &'a State,
    store: &'a Arc<SegmentStore>,
    catalog: Catalog,
    versions: Versions,
    next_segment: SegmentId,
    persisted: Persisted,
    times: ChangedTimes,
    gathered: HashMap<TableId, Gathering>,
}

/// Rows of a table collected from the log for staging.
struct Gathering {
    /// From the manifest.
    merged: Txn,
    taken: Option<Taken>,
    rows: Option<Gathered>,
}

impl Recovering<'_> {
    /// Loads the operations of a checkpoint.
    fn load(&mut self, txn: Txn, mut ops: Ops<'_>) -> Result<()> {
        while let Some(front) = ops.next_front()? {
            let op = match front {
                Front::Rows(table, head) if Gathered::is_for(&head) => {
                    self.gather(table, &head, &mut ops)?;
                    continue;
                }
                front => front.whole(&mut ops.d).map_err(|e| ops.corrupt(e))?,
            };
            if let Op::Times { table, since, changes } = op {
                self.times.load(table, since, changes);
            } else {
                self.end(op.table())?;
                self.apply(txn, op)?;
            }
        }
        Ok(())
    }

    /// Replays a commit.
    fn replay(&mut self, txn: Txn, mut ops: Ops<'_>) -> Result<()> {
        while let Some(front) = ops.next_front()? {
            let op = match front {
                Front::Rows(table, head) if Gathered::is_for(&head) && !self.catalog.is_base(table) => {
                    self.gather(table, &head, &mut ops)?;
                    continue;
                }
                front => front.whole(&mut ops.d).map_err(|e| ops.corrupt(e))?,
            };
            // Strings get their ids independently of rows; all other operations depend on the previous ones.
            if !matches!(op, Op::Symbols { .. }) {
                self.end(op.table())?;
            }
            self.times.note(&self.catalog, txn, std::slice::from_ref(&op));
            self.apply(txn, op)?;
        }
        Ok(())
    }

    /// Collects the few rows of a small commit with others of their table.
    fn gather(&mut self, table: TableId, head: &RunHead, ops: &mut Ops<'_>) -> Result<()> {
        let state = self.state;
        let of = self.gathered.entry(table).or_insert_with(|| {
            let known = state.tables.get(&table);
            Gathering { merged: known.map_or(Txn(0), |t| t.merged), taken: known.and_then(|t| t.taken), rows: None }
        });
        if head.txns.1 <= of.merged {
            return head.decode(&mut ops.d).map(drop).map_err(|e| ops.corrupt(e));
        }
        check_not_half_merged(head.txns, of.merged)?;
        if of.taken.is_some_and(|taken| head.txns.1 <= taken.upto) {
            let run = head.decode(&mut ops.d).map_err(|e| ops.corrupt(e))?;
            self.end(table)?;
            return self.append(table, run);
        }
        let taken = match &mut of.rows {
            Some(rows) => rows.append(head, &mut ops.d),
            None => Gathered::begin(head, &mut ops.d).map(|rows| of.rows = Some(rows)),
        };
        taken.map_err(|e| ops.corrupt(e))?;
        match of.rows.take_if(|rows| rows.is_full()) {
            Some(rows) => self.stage(table, rows.end()),
            None => Ok(()),
        }
    }

    /// Appends a run without the rows that a merge took out of it. For runs with later commits, the checkpoint that contains
    /// them names these rows.
    fn append(&mut self, table: TableId, run: Run) -> Result<()> {
        let known = self.state.tables.get(&table);
        let taken = known.and_then(|t| t.taken).filter(|taken| run.txns.1 <= taken.upto);
        let left = taken
            .zip(known.and_then(|t| t.schema.designated))
            .and_then(|(taken, designated)| run.without_before(designated, taken.before));
        self.stage(table, left.unwrap_or(run))
    }

    /// Puts a run into the staging of its table.
    ///
    /// # Errors
    /// A row has no designated timestamp, or a column is of another type than in the schema. Every reader of staging
    /// counts on both.
    fn stage(&mut self, table: TableId, run: Run) -> Result<()> {
        let Some(entry) = self.catalog.get(table) else { return Ok(()) };
        let of_schema: HashMap<_, _> = entry.schema.columns.iter().map(|c| (c.id, c)).collect();
        let damage = |problem: String| {
            let (first, last) = run.txns;
            Error::corrupt(format!("rows of commits {first} to {last} of table \"{}\" {problem}", entry.schema.name))
        };
        for (id, column) in &run.columns {
            // A dropped column is not in the schema. A column keeps its type for its life.
            if let Some(known) = of_schema.get(id)
                && known.column_type.physical() != column.values.physical()
            {
                let (name, known) = (&known.name, known.column_type);
                let found = column.values.physical();
                return Err(damage(format!("have {found:?} values in column \"{name}\" of type {known}")));
            }
        }
        if let Some(designated) = entry.schema.designated
            && run.rows > 0
            && run.column(designated).is_none_or(|times| times.null_count() > 0)
        {
            return Err(damage("have no designated timestamp".to_owned()));
        }
        self.versions.append(table, run);
        Ok(())
    }

    /// Moves the gathered rows of a table into its staging.
    fn end(&mut self, table: TableId) -> Result<()> {
        match self.gathered.get_mut(&table).and_then(|of| of.rows.take()) {
            Some(rows) => self.stage(table, rows.end()),
            None => Ok(()),
        }
    }

    fn end_all(&mut self) -> Result<()> {
        for (table, of) in std::mem::take(&mut self.gathered) {
            if let Some(rows) = of.rows {
                self.stage(table, rows.end())?;
            }
        }
        Ok(())
    }

    fn open_table(&mut self, fs: &dyn Fs, table: TableId) -> Result<()> {
        let Some(state) = self.state.tables.get(&table) else { return Ok(()) };
        let schema = Arc::new(state.schema.clone());
        self.catalog.put(table, schema.clone());
        let symbols = self.catalog.symbols(table);
        for entries in symbol_file::read(fs, table, state.symbol_bytes)? {
            self.persisted.entry(table).or_default().insert(entries.column, entries.end()?);
            if let Some(map) = symbols.get(&entries.column) {
                symbol_file::restore(map, &entries)?;
            }
        }
        let open = |meta: &_| Arc::new(Segment::open(self.store.clone(), table, Clone::clone(meta)));
        let mut segments: Vec<_> = state.segments.values().map(open).collect();
        sort_segments(&mut segments);
        self.versions.create(table, schema, symbols, state.schema_txn, segments);
        self.versions.note_attached(table, state.attached);
        let segments = state.dead.iter().map(|(&segment, rows)| (segment, rows.clone())).collect();
        self.versions.kill(table, &DeadRows { segments, ..DeadRows::default() }, state.schema_txn);
        Ok(())
    }

    /// Records changes of base tables of views from the beginning of the log on.
    fn follow_bases(&mut self) {
        for table in self.state.tables.values() {
            if let Some(view) = table.schema.materialized() {
                self.times.follow(view.state.base, self.state.checkpoint.txn);
            }
        }
    }

    /// Replays an operation unless the manifest already contains it.
    fn apply(&mut self, txn: Txn, op: Op) -> Result<()> {
        let table = op.table();
        let known = self.state.tables.get(&table);
        let (schema_txn, merged) = known.map_or((Txn(0), Txn(0)), |t| (t.schema_txn, t.merged));
        let taken = known.and_then(|t| t.taken).map_or(Txn(0), |taken| taken.upto);
        let attached = known.map_or(Txn(0), |t| t.attached);
        // The segments of the manifest are those after this commit.
        let placed = taken.max(attached);
        match op {
            Op::CreateTable { schema, .. } => {
                if known.is_none() {
                    self.catalog.put(table, schema.clone());
                    self.versions.create(table, schema, self.catalog.symbols(table), txn, Vec::new());
                }
                self.catalog.next_table = self.catalog.next_table.max(TableId(table.0 + 1));
            }
            Op::DropTable { .. } => {
                self.catalog.remove(table);
                self.versions.drop_table(table);
            }
            Op::SetSchema { schema, .. } => {
                if txn > schema_txn && self.catalog.get(table).is_some() {
                    self.catalog.put(table, schema.clone());
                    self.versions.set_schema(table, schema, self.catalog.symbols(table), txn);
                }
            }
            // If some of the rows are in segments, they arrived later.
            Op::Truncate { .. } if txn > merged && txn <= placed => self.versions.truncate_staged(table, txn),
            Op::Truncate { .. } if txn > merged => self.versions.truncate(table, txn),
            Op::DropPartitions { partitions, .. } if txn > merged && txn <= placed => {
                self.versions.drop_partitions_staged(table, &partitions, txn)
            }
            Op::DropPartitions { partitions, .. } if txn > merged => {
                self.versions.drop_partitions(table, &partitions, txn)
            }
            Op::Symbols { entries, .. } => {
                if let Some(map) = self.catalog.symbols(table).get(&entries.column) {
                    symbol_file::restore(map, &entries)?;
                }
            }
            Op::Rows { run, .. } if run.txns.1 > merged => {
                check_not_half_merged(run.txns, merged)?;
                self.append(table, run)?;
            }
            // The merge handled deletions of removed segments and of merged staged rows.
            Op::Delete { dead, .. } => self.versions.kill(table, &dead, txn),
            Op::Attach { segments, .. } => {
                let last = segments.iter().map(|meta| meta.id.0.saturating_add(1)).max().unwrap_or(0);
                self.next_segment = self.next_segment.max(SegmentId(last));
                if txn > attached {
                    self.versions.attach(table, &segments, txn);
                }
            }
            Op::Truncate { .. } | Op::DropPartitions { .. } | Op::Rows { .. } | Op::Times { .. } => {}
        }
        Ok(())
    }
}

/// Checks that no run is partially merged.
///
/// A merge takes complete runs. A run that begins with the last merged commit is valid: it has later rows of that
/// commit than the previous run, and did not exist at the merge, since all its rows had been removed. The removal
/// follows in the log.
fn check_not_half_merged((first, last): (Txn, Txn), merged: Txn) -> Result<()> {
    if first < merged {
        return Err(Error::corrupt(format!("a run of commits {first} to {last} is half merged at {merged}")));
    }
    Ok(())
}

/// Durably creates the folders of all files.
fn create_folders(fs: &dyn Fs) -> Result<()> {
    for folder in [log::FOLDER, checkpoint::FOLDER, symbol_file::FOLDER, SEGMENTS_FOLDER] {
        fs.create_dir_all(Path::new(folder)).map_err(|e| Error::io("create", Path::new(folder), e))?;
    }
    fs.sync_dir(Path::new("")).map_err(|e| Error::io("sync", Path::new("."), e))
}

/// Removes files that neither the manifest nor an attached load names: a crash occurred before their publication or
/// after their removal.
fn remove_strays(fs: &dyn Fs, state: &State, versions: &Versions) -> Result<()> {
    let list = |dir: &Path| fs.list(dir).map_err(|e| Error::io("list", dir, e));
    let remove = |path: &Path| fs.remove(path).map_err(|e| Error::io("remove", path, e));
    for name in list(Path::new(checkpoint::FOLDER))? {
        let path = Path::new(checkpoint::FOLDER).join(&name);
        if path != checkpoint::path_of(state.checkpoint.file) {
            remove(&path)?;
        }
    }
    let symbol_files: HashSet<_> = state.tables.keys().map(|&table| symbol_file::path_of(table)).collect();
    for name in list(Path::new(symbol_file::FOLDER))? {
        let path = Path::new(symbol_file::FOLDER).join(&name);
        if !symbol_files.contains(&path) {
            remove(&path)?;
        }
    }
    let attached = versions.all().flat_map(|table| table.segments.iter().map(|segment| segment.path()));
    let named = state.tables.iter().flat_map(|(&id, t)| t.segments.keys().map(move |&s| SegmentStore::path(id, s)));
    let known: HashSet<_> = named.chain(attached).collect();
    for folder in list(Path::new(SEGMENTS_FOLDER))? {
        let dir = Path::new(SEGMENTS_FOLDER).join(&folder);
        for name in list(&dir)? {
            let path = dir.join(&name);
            if !known.contains(&path) {
                remove(&path)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
