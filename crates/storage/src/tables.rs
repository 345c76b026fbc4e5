//! The current version of every table, by name and id, for readers and for creators of the next version.
//!
//! A version ([`TableSnapshot`]) never changes. A change replaces it under one lock that is held briefly, so that the
//! effects of a commit on several tables become visible at once. Names are compared case-insensitively.

use crate::segment::SegmentStore;
use crate::segment::reader::SegmentMeta;
use crate::staging::{Run, push_run};
use crate::{DeadRows, Mask, Segment, SymbolMap, TableSnapshot};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tidalite_types::schema::fold_name;
use tidalite_types::{ColumnId, ColumnType, SegmentId, TableId, TableSchema, Txn};

/// Dictionaries by symbol column.
pub type SymbolMaps = Arc<HashMap<ColumnId, Arc<SymbolMap>>>;

#[derive(Debug, Default)]
pub struct Tables {
    inner: RwLock<Versions>,
}

#[derive(Clone, Debug, Default)]
pub struct Versions {
    names: HashMap<String, TableId>,
    tables: BTreeMap<TableId, TableEntry>,
    /// The last visible commit.
    txn: Txn,
    staged: Staged,
    removed: Vec<Arc<Segment>>,
    /// The location of attached segments; `None` for versions that no load reaches.
    store: Option<Arc<SegmentStore>>,
}

/// Rows that are only in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Staged {
    pub rows: usize,
    pub bytes: usize,
}

impl Staged {
    #[must_use]
    pub fn of(runs: &[Arc<Run>]) -> Staged {
        Staged { rows: runs.iter().map(|r| r.rows).sum(), bytes: runs.iter().map(|r| r.byte_count()).sum() }
    }
}

#[derive(Clone, Debug)]
struct TableEntry {
    version: Arc<TableSnapshot>,
    /// Runs with commits up to this one are being merged and must not change.
    frozen: Txn,
    /// Number of statements that prevent new merges because their rows moved too often.
    holds: usize,
}

/// Input of a merge, used at its end to check that its result is still valid.
#[derive(Clone, Debug)]
pub struct MergeInput {
    pub version: Arc<TableSnapshot>,
    /// Rows from this timestamp on stay staged, because late rows are expected among them.
    pub kept_from: Option<i64>,
}

impl MergeInput {
    /// Returns the last commit whose rows are all in segments after the merge; 0 if there is none.
    #[must_use]
    pub fn merged_txn(&self) -> Txn {
        let runs = &self.version.runs;
        let (Some(from), Some(id)) = (self.kept_from, self.version.schema.designated) else {
            return runs.last().map_or(Txn(0), |run| run.txns.1);
        };
        let is_taken = |run: &Arc<Run>| {
            let times = run.timestamps(id).iter().enumerate();
            run.time_range.1 < from || times.clone().all(|(row, ts)| *ts < from || run.is_dead(row))
        };
        let mut taken = runs.iter().take_while(|run| is_taken(run)).count();
        // One commit may have created several runs.
        while (1..runs.len()).contains(&taken) && runs[taken].txns.0 <= runs[taken - 1].txns.1 {
            taken -= 1;
        }
        taken.checked_sub(1).map_or(Txn(0), |last| runs[last].txns.1)
    }
}

/// Rows that were deleted after the start of a merge, by their positions at the start.
#[derive(Clone, Debug, Default)]
pub struct DiedSince {
    pub segments: BTreeMap<SegmentId, Mask>,
    /// Positions among all staged rows, in order of arrival.
    pub staged: Mask,
}

impl DiedSince {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty() && self.staged.dead() == 0
    }
}

impl Tables {
    /// Returns consistent versions of the tables; `None` for a table that does not exist.
    #[must_use]
    pub fn snapshots(&self, names: &[&str]) -> Vec<Option<Arc<TableSnapshot>>> {
        let versions = self.read();
        names.iter().map(|name| versions.by_name(name).cloned()).collect()
    }

    /// Returns every table, in order of creation, and the last commit that they contain.
    #[must_use]
    pub fn all(&self) -> (Txn, Vec<Arc<TableSnapshot>>) {
        let versions = self.read();
        (versions.txn, versions.tables.values().map(|e| e.version.clone()).collect())
    }

    pub fn read(&self) -> RwLockReadGuard<'_, Versions> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn write(&self) -> RwLockWriteGuard<'_, Versions> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Versions {
    /// Returns no tables, to which segments of `store` can be attached.
    #[must_use]
    pub fn with_store(store: Arc<SegmentStore>) -> Versions {
        Versions { store: Some(store), ..Versions::default() }
    }

    #[must_use]
    pub fn by_name(&self, name: &str) -> Option<&Arc<TableSnapshot>> {
        self.get(*self.names.get(&fold_name(name))?)
    }

    #[must_use]
    pub fn get(&self, id: TableId) -> Option<&Arc<TableSnapshot>> {
        self.tables.get(&id).map(|e| &e.version)
    }

    /// Returns every table, in order of creation.
    pub fn all(&self) -> impl Iterator<Item = &Arc<TableSnapshot>> {
        self.tables.values().map(|entry| &entry.version)
    }

    #[must_use]
    pub fn txn(&self) -> Txn {
        self.txn
    }

    /// Inserts a version from another source.
    pub fn adopt(&mut self, version: Arc<TableSnapshot>) {
        self.adopt_frozen(version, Txn(0));
    }

    /// Inserts a version like [`Versions::adopt`], whose runs with commits up to `frozen` stay unchanged.
    ///
    /// Row positions in these runs stay valid.
    pub fn adopt_frozen(&mut self, version: Arc<TableSnapshot>, frozen: Txn) {
        let staged = Staged::of(&version.runs);
        self.staged.rows += staged.rows;
        self.staged.bytes += staged.bytes;
        self.names.insert(fold_name(&version.schema.name), version.id);
        self.tables.insert(version.id, TableEntry { version, frozen, holds: 0 });
    }

    /// Rebuilds the index of table names, see `Catalog::index_names` of the `ingest` crate.
    pub fn index_names(&mut self) {
        self.names = self.tables.iter().map(|(&id, e)| (fold_name(&e.version.schema.name), id)).collect();
    }

    /// Returns the segments that removals took out of tables since the last call.
    ///
    /// Their files may be removed when the manifest no longer names them and no reader uses them.
    pub fn take_removed(&mut self) -> Vec<Arc<Segment>> {
        std::mem::take(&mut self.removed)
    }

    #[must_use]
    pub fn has_removed(&self) -> bool {
        !self.removed.is_empty()
    }

    pub fn set_txn(&mut self, txn: Txn) {
        self.txn = txn;
    }

    /// Returns the size of the rows of all tables that are not in segments.
    #[must_use]
    pub fn staged(&self) -> Staged {
        self.staged
    }

    /// Changes a table's version and updates the size of staged rows.
    fn replace(&mut self, id: TableId, change: impl FnOnce(&mut TableEntry, TableSnapshot) -> TableSnapshot) {
        let Some(entry) = self.tables.get_mut(&id) else { return };
        let before = Staged::of(&entry.version.runs);
        let version = TableSnapshot::clone(&entry.version);
        entry.version = Arc::new(change(entry, version));
        let after = Staged::of(&entry.version.runs);
        self.staged.rows = self.staged.rows + after.rows - before.rows;
        self.staged.bytes = self.staged.bytes + after.bytes - before.bytes;
    }

    pub fn create(
        &mut self,
        id: TableId,
        schema: Arc<TableSchema>,
        symbols: SymbolMaps,
        txn: Txn,
        segments: Vec<Arc<Segment>>,
    ) {
        self.names.insert(fold_name(&schema.name), id);
        let version = TableSnapshot { txn, segments: Arc::new(segments), symbols, ..TableSnapshot::empty(id, schema) };
        self.tables.insert(id, TableEntry { version: Arc::new(version), frozen: Txn(0), holds: 0 });
    }

    pub fn drop_table(&mut self, id: TableId) {
        self.replace(id, |_, v| TableSnapshot { runs: Arc::default(), ..v });
        if let Some(entry) = self.tables.remove(&id) {
            self.removed.extend(entry.version.segments.iter().cloned());
            let name = fold_name(&entry.version.schema.name);
            if self.names.get(&name) == Some(&id) {
                self.names.remove(&name);
            }
        }
    }

    /// Replaces the schema after columns were added or dropped, or names changed.
    pub fn set_schema(&mut self, id: TableId, schema: Arc<TableSchema>, symbols: SymbolMaps, txn: Txn) {
        let Some(entry) = self.tables.get_mut(&id) else { return };
        let old = fold_name(&entry.version.schema.name);
        let new = fold_name(&schema.name);
        if old != new {
            if self.names.get(&old) == Some(&id) {
                self.names.remove(&old);
            }
            self.names.insert(new, id);
        }
        let version = Arc::make_mut(&mut entry.version);
        (version.schema, version.symbols, version.txn) = (schema, symbols, txn);
    }

    /// Publishes committed rows.
    pub fn append(&mut self, id: TableId, run: Run) {
        let Some(entry) = self.tables.get_mut(&id) else { return };
        self.staged.rows += run.rows;
        // Copied only while a reader holds the version, otherwise changed in place.
        let version = Arc::make_mut(&mut entry.version);
        version.txn = run.txns.1;
        version.arrived += run.rows as u64;
        let grown = push_run(Arc::make_mut(&mut version.runs), run, entry.frozen);
        self.staged.bytes = self.staged.bytes.saturating_add_signed(grown);
    }

    /// Publishes the segments of a load. Merges that began before are no longer current.
    pub fn attach(&mut self, id: TableId, loaded: &[SegmentMeta], txn: Txn) {
        let Some(store) = self.store.clone() else { return };
        self.replace(id, |_, v| {
            let mut segments = v.segments.to_vec();
            let known: HashSet<SegmentId> = segments.iter().map(|s| s.meta().id).collect();
            let new = loaded.iter().filter(|meta| !known.contains(&meta.id));
            segments.extend(new.map(|meta| Arc::new(Segment::open(store.clone(), id, meta.clone()))));
            sort_segments(&mut segments);
            TableSnapshot { txn, segments: Arc::new(segments), attached: txn, removals: v.removals + 1, ..v }
        });
    }

    /// Notes that the segments of a table contain loads up to commit `txn`.
    pub fn note_attached(&mut self, id: TableId, txn: Txn) {
        self.replace(id, |_, v| TableSnapshot { attached: txn, ..v });
    }

    /// Deletes rows, see [`TableSnapshot::kill`].
    pub fn kill(&mut self, id: TableId, rows: &DeadRows, txn: Txn) {
        let Some(entry) = self.tables.get_mut(&id) else { return };
        let version = Arc::make_mut(&mut entry.version);
        version.txn = version.txn.max(txn);
        version.kill(rows);
    }

    /// Removes every row; the caller removes the segments of the previous version from the manifest.
    pub fn truncate(&mut self, id: TableId, txn: Txn) {
        self.removed.extend(self.get(id).into_iter().flat_map(|t| t.segments.iter()).cloned().collect::<Vec<_>>());
        self.replace(id, |_, v| {
            let (removals, dead) = (v.removals + 1, Arc::default());
            TableSnapshot { txn, segments: Arc::default(), runs: Arc::default(), dead, removals, ..v }
        });
    }

    /// Removes the rows of the partitions with the given intervals.
    pub fn drop_partitions(&mut self, id: TableId, partitions: &[(i64, i64)], txn: Txn) {
        let is_dropped = |s: &&Arc<Segment>| partitions.iter().any(|p| p.0 == s.meta().partition);
        let removed: Vec<_> =
            self.get(id).into_iter().flat_map(|t| t.segments.iter()).filter(is_dropped).cloned().collect();
        self.removed.extend(removed);
        self.replace(id, |_, v| {
            if v.schema.designated.is_none() {
                return v;
            }
            let removals = v.removals + 1;
            let segments: Vec<_> = v.segments.iter().filter(|s| !is_dropped(s)).cloned().collect();
            let dead = masks_of(&v, &segments);
            let runs = Arc::new(runs_without(&v, partitions));
            TableSnapshot { txn, segments: Arc::new(segments), runs, dead, removals, ..v }
        });
    }

    /// Removes only the staged rows, unlike [`Versions::truncate`]: for a recovery whose segments were written later.
    pub fn truncate_staged(&mut self, id: TableId, txn: Txn) {
        self.replace(id, |_, v| TableSnapshot { txn, runs: Arc::default(), removals: v.removals + 1, ..v });
    }

    /// Removes only staged rows of partitions, unlike [`Versions::drop_partitions`].
    pub fn drop_partitions_staged(&mut self, id: TableId, partitions: &[(i64, i64)], txn: Txn) {
        self.replace(id, |_, v| {
            let runs = Arc::new(runs_without(&v, partitions));
            TableSnapshot { txn, runs, removals: v.removals + 1, ..v }
        });
    }

    /// Begins a merge of all staged rows and of segments with deleted rows.
    ///
    /// The runs are not joined with others until [`Versions::end_merge`]. Returns `None` if there is nothing to merge,
    /// or merges are on hold.
    pub fn begin_merge(&mut self, id: TableId) -> Option<MergeInput> {
        let entry = self.tables.get_mut(&id)?;
        if entry.holds > 0 || entry.version.runs.is_empty() && entry.version.dead.is_empty() {
            return None;
        }
        entry.frozen = entry.version.runs.last().map_or(entry.frozen, |r| r.txns.1);
        Some(MergeInput { version: entry.version.clone(), kept_from: None })
    }

    /// Holds merges of a table until [`Versions::let_merge`] is called as often.
    pub fn hold_merges(&mut self, id: TableId) {
        self.tables.get_mut(&id).into_iter().for_each(|entry| entry.holds += 1);
    }

    pub fn let_merge(&mut self, id: TableId) {
        self.tables.get_mut(&id).into_iter().for_each(|entry| entry.holds = entry.holds.saturating_sub(1));
    }

    /// Returns the rows of a merge's segments and runs that were deleted since its start.
    #[must_use]
    pub fn died_since(&self, input: &MergeInput) -> DiedSince {
        let mut died = DiedSince::default();
        let Some(now) = self.get(input.version.id) else { return died };
        for (&segment, mask) in now.dead.iter() {
            let before = input.version.dead.get(&segment);
            if before.is_some_and(|before| Arc::ptr_eq(before, mask)) {
                continue;
            }
            let grown = mask.since(before.map(AsRef::as_ref));
            if grown.dead() > 0 {
                died.segments.insert(segment, grown);
            }
        }
        let mut start = 0;
        for (before, run) in input.version.runs.iter().zip(now.runs.iter()) {
            let grown = run.dead.as_ref().map(|mask| mask.since(before.dead.as_deref())).unwrap_or_default();
            grown.ranges().into_iter().for_each(|(from, count)| {
                died.staged.kill_range(start + from, count);
            });
            start += before.rows;
        }
        died
    }

    /// Returns the input for rewriting segments, without the staged rows. `None` if merges are on hold.
    #[must_use]
    pub fn begin_seal(&self, id: TableId) -> Option<MergeInput> {
        let entry = self.tables.get(&id).filter(|entry| entry.holds == 0)?;
        let version = TableSnapshot { runs: Arc::default(), ..TableSnapshot::clone(&entry.version) };
        Some(MergeInput { version: Arc::new(version), kept_from: None })
    }

    /// Returns true if the result of a merge is still valid: the table exists and no rows were removed from it.
    #[must_use]
    pub fn is_current(&self, input: &MergeInput) -> bool {
        self.get(input.version.id).is_some_and(|now| now.removals == input.version.removals)
    }

    /// Replaces the merged runs and the segments `removed` by new segments.
    ///
    /// `dead` are the rows of `added` that were deleted since the start of the merge.
    pub fn end_merge(
        &mut self,
        input: &MergeInput,
        added: Vec<Arc<Segment>>,
        removed: &[Arc<Segment>],
        dead: Vec<(SegmentId, Mask)>,
    ) {
        let (merged, last) = (input.merged_txn(), input.version.runs.last().map_or(Txn(0), |r| r.txns.1));
        let kept = input.kept_from.zip(input.version.schema.designated);
        let is_removed = |s: &Arc<Segment>| removed.iter().any(|r| r.meta().id == s.meta().id);
        self.replace(input.version.id, |_, v| {
            let mut segments: Vec<_> = v.segments.iter().filter(|s| !is_removed(s)).cloned().collect();
            segments.extend(added);
            sort_segments(&mut segments);
            let mut masks = masks_of(&v, &segments);
            if !dead.is_empty() {
                Arc::make_mut(&mut masks).extend(dead.into_iter().map(|(id, mask)| (id, Arc::new(mask))));
            }
            let staged = v.runs.iter().filter(|r| r.txns.0 > merged);
            let runs = staged.map(|run| match kept {
                Some((from, id)) if run.txns.1 <= last => {
                    run.without_before(id, from).map_or_else(|| run.clone(), Arc::new)
                }
                _ => run.clone(),
            });
            // Statements that found rows in staging must search again.
            let removals = v.removals + u64::from(kept.is_some());
            TableSnapshot { segments: Arc::new(segments), runs: Arc::new(runs.collect()), dead: masks, removals, ..v }
        });
    }
}

/// Returns the runs of a version without the rows of some partitions.
fn runs_without(version: &TableSnapshot, partitions: &[(i64, i64)]) -> Vec<Arc<Run>> {
    let Some(designated) = version.schema.designated else { return version.runs.to_vec() };
    let without = |run: &Arc<Run>| {
        // The range covers rows that are not deleted; the times of deleted rows are unknown.
        let is_touched = partitions.iter().any(|&(lo, hi)| run.time_range.0 < hi && lo <= run.time_range.1);
        if is_touched || run.dead.is_some() {
            run.without_partitions(designated, partitions).map(Arc::new)
        } else {
            Some(run.clone())
        }
    };
    version.runs.iter().filter_map(without).collect()
}

/// Returns the deletion vectors of a version for `segments`.
fn masks_of(version: &TableSnapshot, segments: &[Arc<Segment>]) -> Arc<BTreeMap<SegmentId, Arc<Mask>>> {
    if version.dead.is_empty() {
        return version.dead.clone();
    }
    let masks = segments.iter().filter_map(|s| Some((s.meta().id, version.mask(s)?.clone())));
    Arc::new(masks.collect())
}

/// Sorts segments by time range, then by id, followed by the late segments by id.
///
/// This is the order of arrival of rows with equal timestamps or without timestamps.
pub fn sort_segments(segments: &mut [Arc<Segment>]) {
    segments.sort_by_key(|s| {
        let is_late = s.meta().is_late;
        (is_late, (!is_late).then(|| s.time_range()), s.meta().id)
    });
}

/// Returns the dictionaries of a schema's symbol columns: existing ones from `old`, and new ones.
#[must_use]
pub fn symbol_maps(schema: &TableSchema, old: &HashMap<ColumnId, Arc<SymbolMap>>) -> SymbolMaps {
    let symbols = schema.columns.iter().filter(|c| c.column_type == ColumnType::Symbol);
    Arc::new(symbols.map(|c| (c.id, old.get(&c.id).cloned().unwrap_or_default())).collect())
}

impl From<Versions> for Tables {
    fn from(versions: Versions) -> Tables {
        Tables { inner: RwLock::new(versions) }
    }
}
