//! Row changes: converts a DELETE, an UPDATE or an upsert to deleted rows and new rows.
//!
//! Input: the rows that a statement found in its version. Output: operations, decided against the table after all
//! previous commits, including those of the same group, which readers do not see yet. While a [`Views`] holds its lock
//! no merge is published, so that rows do not move until the group is published.

use super::Accepted;
use crate::shared::Shared;
use crate::{Error, ErrorKind, Result, SqlState};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, MutexGuard};
use tidalite_ingest::apply::publish;
use tidalite_ingest::catalog::Catalog;
use tidalite_ingest::commit::command::{commit_command, set_view_state};
use tidalite_ingest::commit::commit_batches;
use tidalite_ingest::dedup::{self, Wins};
use tidalite_ingest::wal::record::Op;
use tidalite_storage::tables::Versions;
use tidalite_storage::{DeadRows, Mask, TableSnapshot};
use tidalite_types::{Batch, Command, TableId, TimeChange, TimeChangeKind, Txn, ViewState};

/// A change of rows that a statement found.
#[derive(Debug)]
pub(crate) struct RowChange {
    /// The version in which the rows were found.
    pub seen: Arc<TableSnapshot>,
    /// The rows: for each segment, then for each run of `seen`.
    pub hit: Vec<Mask>,
    /// Their new values; empty if they are deleted.
    pub rows: Vec<Batch>,
    /// The times of the rows, if a view depends on the table.
    pub times: Vec<(i64, i64)>,
    /// True if the change requires that all rows still exist.
    pub is_exact: bool,
    /// Times of rows that may be added; other commits must not have added rows of these times since.
    pub added: Option<Vec<i64>>,
    /// Progress of a materialized view, for a refresh, which may also add rows.
    pub view: Option<ViewState>,
}

/// The net effect of a transaction: deleted rows of its base version, schema changes, inserted rows.
#[derive(Debug)]
pub(crate) struct TransactionChange {
    /// Deleted rows, one change per table; `rows` of these are empty, and all are exact.
    pub changes: Vec<RowChange>,
    /// In order, executed after the deletions and before the insertions.
    pub commands: Vec<Command>,
    pub rows: Vec<Batch>,
    /// Tables that must be unchanged since a commit: a serializable transaction has read them.
    pub unchanged: Vec<(TableId, Txn)>,
}

impl TransactionChange {
    /// Creates a change of schemas only.
    pub fn of_commands(commands: Vec<Command>) -> TransactionChange {
        TransactionChange { changes: Vec::new(), commands, rows: Vec::new(), unchanged: Vec::new() }
    }
}

/// Tables before the next commit of a group.
pub(super) struct Views<'a> {
    shared: &'a Shared,
    gate: Option<MutexGuard<'a, ()>>,
    /// For each requested table, the number of accepted requests included in its version.
    adopted: HashMap<TableId, usize>,
    versions: Versions,
}

impl<'a> Views<'a> {
    pub fn new(shared: &'a Shared) -> Views<'a> {
        let versions = Versions::with_store(shared.store.clone());
        Views { shared, gate: None, adopted: HashMap::new(), versions }
    }

    /// Prevents the publication of merges from here on.
    pub fn lock(&mut self) {
        self.gate.get_or_insert_with(|| self.shared.lock_deletes());
    }

    /// Returns a table with the changes of `accepted`.
    pub fn table(&mut self, id: TableId, catalog: &Catalog, accepted: &[Accepted]) -> Option<Arc<TableSnapshot>> {
        self.lock();
        let applied = match self.adopted.insert(id, accepted.len()) {
            Some(applied) => applied,
            None => {
                let published = self.shared.tables.read().get(id).cloned();
                published.into_iter().for_each(|version| self.versions.adopt(version));
                0
            }
        };
        for Accepted { txn, ops, .. } in &accepted[applied..] {
            self.apply(id, catalog, *txn, ops);
        }
        self.versions.get(id).cloned()
    }

    fn apply(&mut self, id: TableId, catalog: &Catalog, txn: Txn, ops: &[Op]) {
        let of_table: Vec<Op> = ops.iter().filter(|op| op.table() == id).cloned().collect();
        publish(&mut self.versions, catalog, txn, of_table);
    }
}

/// Returns the operations of a commit with upserts resolved.
///
/// If it fails the commit is undone, and the remaining operations must also be logged. `before` is the catalog without
/// the commit, if the operations cannot be undone otherwise.
pub(super) fn upserts(
    catalog: &mut Catalog,
    ops: Vec<Op>,
    txn: Txn,
    wins: Wins,
    views: &mut Views<'_>,
    accepted: &[Accepted],
    before: Option<Catalog>,
) -> (Vec<Op>, Option<Error>) {
    if !dedup::concerns(catalog, &ops) {
        return (ops, None);
    }
    // Changes of this commit before its rows are handled separately, because it is not accepted yet.
    match dedup::resolve(catalog, &ops, txn, wins, |id| views.table(id, catalog, accepted)) {
        Ok(ops) => (ops, None),
        Err(error) => (take_back(catalog, ops, views, accepted, before), Some(error.into())),
    }
}

/// Restores tables to their state before a commit. New symbols of existing columns remain, because they have ids
/// already.
fn take_back(
    catalog: &mut Catalog,
    mut ops: Vec<Op>,
    views: &mut Views<'_>,
    accepted: &[Accepted],
    before: Option<Catalog>,
) -> Vec<Op> {
    let has_before = before.is_some();
    before.into_iter().for_each(|before| *catalog = before);
    for op in ops.iter().filter(|_| !has_before) {
        if let Op::CreateTable { table, .. } | Op::SetSchema { table, .. } = op {
            match views.table(*table, catalog, accepted) {
                Some(before) => catalog.put(*table, before.schema.clone()),
                None => catalog.remove(*table),
            }
        }
    }
    ops.retain(|op| match op {
        Op::Symbols { table, entries } => catalog.symbols(*table).contains_key(&entries.column),
        _ => false,
    });
    ops
}

/// The result of a [`RowChange`].
pub(super) enum Decided {
    /// The operations, and the number of rows they change.
    Done(Vec<Op>, u64),
    /// Some of the rows moved: the statement must search again.
    Moved,
}

pub(super) fn decide(catalog: &mut Catalog, now: &TableSnapshot, change: RowChange, txn: Txn) -> Result<Decided> {
    let Some((dead, killed)) = located(now, &change) else { return Ok(Decided::Moved) };
    let RowChange { rows, times, added, view, .. } = change;
    if killed == 0 && view.is_none() && added.is_none() {
        return Ok(Decided::Done(Vec::new(), 0));
    }
    let mut ops = Vec::new();
    let is_any = killed > 0 || !rows.is_empty();
    if killed > 0 {
        ops.push(Op::Delete { table: now.id, dead: Arc::new(dead) });
    }
    if !rows.is_empty() {
        ops.extend(commit_batches(catalog, rows, false, txn).map_err(|(error, _)| Error::from(error))?);
    }
    if is_any && catalog.is_base(now.id) {
        let change = |(lo, hi)| TimeChange { txn, lo, hi, kind: TimeChangeKind::Changed };
        ops.push(Op::Times { table: now.id, since: txn, changes: times.into_iter().map(change).collect() });
    }
    if let Some(state) = view {
        let op = set_view_state(catalog, now.id, state).ok_or_else(|| dropped(&now.schema.name))?;
        if let Op::SetSchema { table, schema } = &op {
            catalog.put(*table, schema.clone());
        }
        ops.push(op);
    }
    Ok(Decided::Done(ops, killed))
}

/// Locates the rows of a change in a version and counts those that are not deleted.
///
/// `None` if some rows moved or do not meet the conditions of the change.
fn located(now: &TableSnapshot, change: &RowChange) -> Option<(DeadRows, u64)> {
    let dead = now.locate(&change.seen, &change.hit)?;
    let killed = now.clone().kill(&dead);
    // A plain DELETE ignores rows deleted by other commits; an exact change or an UPDATE must be retried.
    if (change.is_exact || !change.rows.is_empty()) && killed != dead.rows() {
        return None;
    }
    let added = change.added.as_ref();
    (!added.is_some_and(|added| has_come(&change.seen, now, added))).then_some((dead, killed))
}

/// Plans the changes of a transaction as one commit. On failure, the caller restores the catalog.
pub(super) fn decide_transaction(
    catalog: &mut Catalog,
    transaction: TransactionChange,
    txn: Txn,
    views: &mut Views<'_>,
    accepted: &[Accepted],
) -> Result<Decided> {
    let TransactionChange { changes, commands, rows, unchanged } = transaction;
    for (table, seen) in unchanged {
        if views.table(table, catalog, accepted).is_none_or(|now| now.txn != seen) {
            return Err(not_serializable("read/write dependencies among transactions"));
        }
    }
    let (mut ops, mut killed_of_all) = (Vec::new(), 0);
    for change in changes {
        let table = change.seen.id;
        let now = views.table(table, catalog, accepted).filter(|_| catalog.get(table).is_some());
        let now = now.ok_or_else(|| not_serializable("concurrent update"))?;
        let Some((dead, killed)) = located(&now, &change) else { return Ok(Decided::Moved) };
        killed_of_all += killed;
        if killed > 0 {
            ops.push(Op::Delete { table, dead: Arc::new(dead) });
        }
        if killed > 0 && catalog.is_base(table) {
            let of = |(lo, hi)| TimeChange { txn, lo, hi, kind: TimeChangeKind::Changed };
            ops.push(Op::Times { table, since: txn, changes: change.times.into_iter().map(of).collect() });
        }
    }
    if !commands.is_empty() {
        // Upsert resolution reads these versions again, with the catalog of that time.
        let ids: Vec<TableId> = rows.iter().filter_map(|batch| catalog.id_of(&batch.table)).collect();
        ids.into_iter().for_each(|id| drop(views.table(id, catalog, accepted)));
    }
    for command in commands {
        ops.extend(commit_command(catalog, command)?);
    }
    ops.extend(commit_batches(catalog, rows, false, txn).map_err(|(error, _)| Error::from(error))?);
    Ok(Decided::Done(ops, killed_of_all))
}

/// Returns the error of a transaction that must be retried.
pub(crate) fn not_serializable(cause: &str) -> Error {
    Error::new(ErrorKind::Conflict, format!("could not serialize access due to {cause}"))
        .with_code(SqlState::SERIALIZATION_FAILURE)
        .with_hint("the transaction might succeed if it is tried again")
}

/// Returns true if a row of one of these times may have been added since a version; true if merges moved rows.
fn has_come(seen: &TableSnapshot, now: &TableSnapshot, times: &[i64]) -> bool {
    if now.txn == seen.txn || times.is_empty() {
        return false;
    }
    let Some(designated) = now.schema.designated else { return true };
    let known: HashSet<_> = seen.segments.iter().map(|segment| segment.meta().id).collect();
    if now.segments.iter().any(|segment| !known.contains(&segment.meta().id)) {
        return true;
    }
    let times: HashSet<i64> = times.iter().copied().collect();
    let since = now.runs.iter().filter(|run| run.txns.1 > seen.txn);
    since.into_iter().any(|run| run.timestamps(designated).iter().any(|time| times.contains(time)))
}

pub(crate) fn dropped(table: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("table \"{table}\" does not exist"))
}
