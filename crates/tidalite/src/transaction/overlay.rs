//! The uncommitted changes of a transaction, applied to the tables as of its start.
//!
//! Input: the changes of its statements. Output: the table versions that the next statement reads. The changes are
//! planned as in the writer (`ingest::commit`, `ingest::dedup`), but against a private catalog. The first change of a
//! table copies the table into the private catalog with forks of its dictionaries, so shared state does not change.
//!
//! Invariant: the runs of a table that existed before are the original runs, followed by the runs of the transaction.

use super::isolation::not_in_transaction;
use super::pinned::Pinned;
use crate::session::all_rows;
use crate::writer::RowChange;
use crate::{Error, ErrorKind, Result};
use std::collections::BTreeMap;
use std::sync::Arc;
use tidalite_ingest::apply::publish;
use tidalite_ingest::catalog::Catalog;
use tidalite_ingest::commit::command::{commit_command, is_view};
use tidalite_ingest::commit::commit_batches;
use tidalite_ingest::dedup::{self, Wins};
use tidalite_ingest::wal::record::Op;
use tidalite_storage::tables::Versions;
use tidalite_storage::{Mask, Run, SymbolMap, TableSnapshot};
use tidalite_types::{Batch, Command, TableId, Txn};

/// First id of tables that a transaction creates; no other table has such an id.
const FIRST_TABLE: TableId = TableId(1 << 30);
/// Estimated memory of a command, in bytes.
const COMMAND_BYTES: usize = 1 << 10;
/// Estimated memory of a range of deleted rows, in bytes.
const RANGE_BYTES: usize = 64;

/// The changes of a transaction. Clones share the rows.
#[derive(Clone, Debug)]
pub(super) struct Overlay {
    pinned: Arc<Pinned>,
    catalog: Catalog,
    versions: Versions,
    /// Tables that existed before and are, or were, in the private catalog.
    touched: BTreeMap<TableId, Touched>,
    commands: Vec<Command>,
    /// The number of the last private commit.
    txn: Txn,
    bytes: usize,
}

/// A table that existed at the start of the transaction.
#[derive(Clone, Debug)]
pub(super) struct Touched {
    pub base: Arc<TableSnapshot>,
    /// Rows of `base` that upserts replaced; other transactions may have replaced the same rows.
    pub replaced: Vec<Mask>,
    /// Rows whose upsert keys no other transaction may have inserted.
    pub new_only: Vec<Arc<Run>>,
}

impl Overlay {
    pub fn new(pinned: Arc<Pinned>) -> Overlay {
        let txn = pinned.txn;
        let mut catalog = Catalog::default();
        catalog.next_table = FIRST_TABLE;
        Overlay {
            pinned,
            catalog,
            versions: Versions::default(),
            touched: BTreeMap::new(),
            commands: Vec::new(),
            txn,
            bytes: 0,
        }
    }

    /// Returns the memory of the overlay, in bytes.
    pub fn byte_count(&self) -> usize {
        self.bytes
    }

    pub fn by_name(&self, name: &str) -> Option<Arc<TableSnapshot>> {
        let untouched = || self.pinned.by_name(name).filter(|table| !self.touched.contains_key(&table.id));
        self.versions.by_name(name).or_else(untouched).cloned()
    }

    /// Returns every table, in order of creation.
    pub fn all(&self) -> impl Iterator<Item = &Arc<TableSnapshot>> {
        let untouched = self.pinned.all().filter(|table| !self.touched.contains_key(&table.id));
        untouched.chain(self.versions.all())
    }

    pub fn commands(&self) -> &[Command] {
        &self.commands
    }

    pub fn touched(&self) -> impl Iterator<Item = &Touched> {
        self.touched.values()
    }

    /// Returns a changed table; `None` for a dropped one.
    pub fn version(&self, id: TableId) -> Option<&Arc<TableSnapshot>> {
        self.versions.get(id)
    }

    /// Returns the tables that were changed or created.
    pub fn versions(&self) -> impl Iterator<Item = &Arc<TableSnapshot>> {
        self.versions.all()
    }

    /// Inserts rows; returns the number of new rows, or of all rows if `wins` is `Wins::Last`.
    pub fn insert(&mut self, batches: Vec<Batch>, wins: Wins) -> Result<u64> {
        for batch in &batches {
            self.adopt(&batch.table);
            let entry = self.catalog.id_of(&batch.table).and_then(|id| self.catalog.get(id));
            if let Some((schema, view)) = entry.and_then(|e| Some((&e.schema, e.schema.view.as_ref()?))) {
                return Err(is_view(&schema.name, view).into());
            }
        }
        let txn = self.next_txn();
        let ops = commit_batches(&mut self.catalog, batches, false, txn).map_err(|(error, _)| Error::from(error))?;
        self.apply_rows(ops, txn, wins, wins == Wins::First)
    }

    /// Deletes or replaces rows; returns their number, or `None` if the rows must be located again.
    pub fn change(&mut self, change: RowChange) -> Result<Option<u64>> {
        let RowChange { seen, hit, rows, added, .. } = change;
        if self.versions.get(seen.id).is_none() {
            self.adopt(&seen.schema.name);
        }
        let Some(now) = self.versions.get(seen.id) else { return Ok(None) };
        let Some(dead) = now.locate(&seen, &hit) else { return Ok(None) };
        if TableSnapshot::clone(now).kill(&dead) != dead.rows() {
            return Ok(None);
        }
        let (txn, killed) = (self.next_txn(), dead.rows());
        self.bytes += RANGE_BYTES * (dead.staged.len() + dead.segments.iter().map(|(_, r)| r.len()).sum::<usize>());
        if killed > 0 {
            let op = Op::Delete { table: seen.id, dead: Arc::new(dead) };
            publish(&mut self.versions, &self.catalog, txn, vec![op]);
        }
        if !rows.is_empty() {
            let ops = commit_batches(&mut self.catalog, rows, false, txn).map_err(|(error, _)| Error::from(error))?;
            self.apply_rows(ops, txn, Wins::Last, added.is_some())?;
        }
        Ok(Some(killed))
    }

    /// Changes schemas, or truncates a table.
    pub fn command(&mut self, command: Command) -> Result<()> {
        names_of(&command)?.into_iter().for_each(|name| self.adopt(name));
        if let Command::Truncate { table } = &command {
            return self.truncate(table);
        }
        let txn = self.next_txn();
        let ops = commit_command(&mut self.catalog, command.clone())?;
        if !ops.is_empty() {
            self.bytes += COMMAND_BYTES;
            self.commands.push(command);
        }
        publish(&mut self.versions, &self.catalog, txn, ops);
        Ok(())
    }

    /// Deletes the rows that the transaction sees; rows inserted concurrently by other sessions remain.
    fn truncate(&mut self, table: &str) -> Result<()> {
        let Some(seen) = self.versions.by_name(table).cloned() else {
            return Err(Error::new(ErrorKind::NotFound, format!("table \"{table}\" does not exist")));
        };
        if let Some(view) = &seen.schema.view {
            return Err(is_view(&seen.schema.name, view).into());
        }
        let hit = all_rows(&seen);
        self.change(RowChange {
            seen,
            hit,
            rows: Vec::new(),
            times: Vec::new(),
            is_exact: true,
            added: None,
            view: None,
        })?;
        Ok(())
    }

    fn next_txn(&mut self) -> Txn {
        self.txn = self.txn.next();
        self.txn
    }

    /// Copies an existing table into the private catalog.
    fn adopt(&mut self, name: &str) {
        let Some(base) = self.pinned.by_name(name).filter(|table| !self.touched.contains_key(&table.id)) else {
            return;
        };
        if self.versions.by_name(name).is_some() {
            return;
        }
        let forks = base.symbols.iter().map(|(id, map)| (*id, Arc::new(SymbolMap::fork(map))));
        let symbols = Arc::new(forks.collect());
        self.catalog.adopt(base.id, base.schema.clone(), Arc::clone(&symbols));
        let version = TableSnapshot { symbols, ..TableSnapshot::clone(base) };
        self.versions.adopt_frozen(Arc::new(version), self.pinned.txn);
        let replaced = vec![Mask::default(); base.segments.len() + base.runs.len()];
        self.touched.insert(base.id, Touched { base: base.clone(), replaced, new_only: Vec::new() });
    }

    /// Publishes rows to the overlay with upserts resolved; returns the number of inserted rows.
    fn apply_rows(&mut self, ops: Vec<Op>, txn: Txn, wins: Wins, is_new_only: bool) -> Result<u64> {
        let ops = match dedup::concerns(&self.catalog, &ops) {
            false => ops,
            true => dedup::resolve(&self.catalog, &ops, txn, wins, |id| self.versions.get(id).cloned())?,
        };
        let mut rows = 0;
        let mut before = BTreeMap::new();
        for op in &ops {
            match op {
                Op::Rows { table, run } => {
                    rows += run.rows as u64;
                    self.bytes += run.byte_count();
                    if let Some(touched) = self.touched.get_mut(table).filter(|_| is_new_only) {
                        touched.new_only.push(Arc::new(run.clone()));
                    }
                }
                Op::Delete { table, .. } => {
                    before.extend(self.versions.get(*table).cloned().map(|version| (*table, version)));
                }
                _ => {}
            }
        }
        publish(&mut self.versions, &self.catalog, txn, ops);
        for (id, before) in before {
            if let (Some(touched), Some(after)) = (self.touched.get_mut(&id), self.versions.get(id)) {
                add(&mut touched.replaced, &died(&touched.base, &before, after));
            }
        }
        Ok(rows)
    }
}

/// Returns the rows of `base` that are deleted in `after` but not in `before`, both versions derived from it.
pub(super) fn died(base: &TableSnapshot, before: &TableSnapshot, after: &TableSnapshot) -> Vec<Mask> {
    let segments = base.segments.iter().map(|segment| (before.mask(segment), after.mask(segment)));
    let runs = before.runs.iter().zip(after.runs.iter()).take(base.runs.len());
    let runs = runs.map(|(before, after)| (before.dead.as_ref(), after.dead.as_ref()));
    let grown = |(before, after): (Option<&Arc<Mask>>, Option<&Arc<Mask>>)| {
        after.map(|after| after.since(before.map(AsRef::as_ref))).unwrap_or_default()
    };
    segments.chain(runs).map(grown).collect()
}

fn add(to: &mut [Mask], masks: &[Mask]) {
    for (to, mask) in to.iter_mut().zip(masks) {
        mask.ranges().into_iter().for_each(|(from, count)| {
            to.kill_range(from, count);
        });
    }
}

/// Returns the tables that a command names; an error for a command that cannot be part of a transaction.
fn names_of(command: &Command) -> Result<Vec<&str>> {
    Ok(match command {
        Command::CreateTable(create) => vec![create.name.as_str()],
        Command::CreateView(create) if create.materialized.is_none() => vec![create.table.name.as_str()],
        Command::RenameTable { table, to } => vec![table.as_str(), to.as_str()],
        Command::DropTable { table, .. }
        | Command::Truncate { table }
        | Command::AddColumn { table, .. }
        | Command::DropColumn { table, .. }
        | Command::RenameColumn { table, .. }
        | Command::SetTtl { table, .. }
        | Command::SetLag { table, .. }
        | Command::SetDedup { table, .. } => vec![table.as_str()],
        Command::DropView { view, is_materialized: false, .. } => vec![view.as_str()],
        Command::DropPartitions { .. } => return Err(not_in_transaction("ALTER TABLE DROP PARTITION")),
        Command::CreateView(_)
        | Command::DropView { .. }
        | Command::SetRefresh { .. }
        | Command::SetRefreshLimit { .. }
        | Command::SetViewState { .. } => return Err(not_in_transaction("a change of a materialized view")),
    })
}
