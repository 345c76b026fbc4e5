//! A [`Host`] for the statements of a transaction: reads and changes apply to the overlay, not to the database.

use super::commit;
use super::isolation::{Isolation, not_in_transaction};
use super::memory::{Held, Memory};
use super::overlay::Overlay;
use super::pinned::Pinned;
use crate::backup::BackupReport;
use crate::check::{CheckReport, GoOn};
use crate::load::Loader;
use crate::session::{Changing, Host, RefreshNote};
use crate::shared::lock;
use crate::writer::{RowChange, TransactionChange, not_serializable};
use crate::{Error, ErrorKind, Result, SqlState};
use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use tidalite_ingest::dedup::Wins;
use tidalite_query::{OverView, TableMetrics, ViewMetrics};
use tidalite_storage::TableSnapshot;
use tidalite_types::{Batch, Command, TableId, TimeChange, Txn};

pub(crate) struct TransactionHost {
    database: Arc<dyn Host>,
    isolation: Isolation,
    inner: Mutex<Inner>,
}

struct Inner {
    /// The tables as the transaction sees them, once that is fixed.
    pinned: Option<Arc<Pinned>>,
    /// Changes of the transaction; `None` before the first change.
    overlay: Option<Overlay>,
    /// In order of creation.
    savepoints: Vec<(String, Option<Overlay>)>,
    /// Tables that a serializable transaction read, with the commit.
    reads: BTreeMap<TableId, Txn>,
    held: Held,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Failed,
    Ended,
}

impl std::fmt::Debug for TransactionHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TransactionHost").field("isolation", &self.isolation).finish_non_exhaustive()
    }
}

impl TransactionHost {
    pub(crate) fn new(database: Arc<dyn Host>, isolation: Isolation, memory: &Memory) -> TransactionHost {
        let inner = Inner {
            pinned: None,
            overlay: None,
            savepoints: Vec::new(),
            reads: BTreeMap::new(),
            held: memory.hold(),
            state: State::Open,
        };
        TransactionHost { database, isolation, inner: Mutex::new(inner) }
    }

    /// Pins the snapshot of the transaction, unless each statement reads a new snapshot.
    pub(crate) fn begin_statement(&self) -> Result<()> {
        let mut inner = self.usable()?;
        if self.isolation != Isolation::ReadCommitted {
            self.pin(&mut inner);
        }
        Ok(())
    }

    pub(super) fn fail(&self) {
        let mut inner = lock(&self.inner);
        if inner.state == State::Open {
            inner.state = State::Failed;
        }
    }

    /// Discards all changes.
    pub(super) fn end(&self) {
        let mut inner = lock(&self.inner);
        inner.state = State::Ended;
        inner.forget();
    }

    pub(super) fn savepoint(&self, name: &str) -> Result<()> {
        let mut inner = self.usable()?;
        let overlay = inner.overlay.clone();
        inner.savepoints.push((name.to_owned(), overlay));
        Ok(())
    }

    pub(super) fn roll_back_to(&self, name: &str) -> Result<()> {
        let mut inner = lock(&self.inner);
        if inner.state == State::Ended {
            return Err(ended());
        }
        let at = inner.find_savepoint(name)?;
        inner.savepoints.truncate(at + 1);
        let overlay = inner.savepoints[at].1.clone();
        let bytes = overlay.as_ref().map_or(0, Overlay::byte_count);
        (inner.overlay, inner.state) = (overlay, State::Open);
        // The memory shrinks, so the reservation cannot fail.
        inner.held.set(bytes)
    }

    pub(super) fn release(&self, name: &str) -> Result<()> {
        let mut inner = self.usable()?;
        let at = inner.find_savepoint(name)?;
        inner.savepoints.truncate(at);
        Ok(())
    }

    /// Commits; the transaction ends on success and on failure.
    pub(crate) async fn commit(&self, changing: &Changing) -> Result<Option<Txn>> {
        let (overlay, reads, _held) = {
            let mut inner = lock(&self.inner);
            let is_failed = inner.state == State::Failed;
            if inner.state == State::Ended {
                return Err(ended());
            }
            inner.state = State::Ended;
            if is_failed {
                inner.forget();
                return Err(aborted());
            }
            let overlay = inner.overlay.take();
            let reads: Vec<(TableId, Txn)> = std::mem::take(&mut inner.reads).into_iter().collect();
            let none = inner.held.empty();
            let held = std::mem::replace(&mut inner.held, none);
            inner.forget();
            (overlay, reads, held)
        };
        match overlay {
            Some(overlay) => commit::commit(&*self.database, changing, &overlay, &reads).await,
            None => Ok(None),
        }
    }

    pub(super) fn insert_rows(&self, batches: Vec<Batch>) -> Result<()> {
        self.write(|overlay| overlay.insert(batches, Wins::Last)).map(drop)
    }

    pub(super) fn do_command(&self, command: Command) -> Result<()> {
        self.write(|overlay| overlay.command(command))
    }

    #[cfg(test)]
    pub(super) fn change_rows(&self, change: RowChange) -> Result<()> {
        match self.write(|overlay| overlay.change(change))? {
            Some(_) => Ok(()),
            None => Err(Error::new(ErrorKind::Internal, "rows moved that nobody else sees")),
        }
    }

    #[cfg(test)]
    pub(super) fn first_attempt(&self) -> Result<Option<TransactionChange>> {
        let inner = lock(&self.inner);
        inner.overlay.as_ref().map(|overlay| commit::first_attempt(&*self.database, overlay)).transpose()
    }

    fn usable(&self) -> Result<MutexGuard<'_, Inner>> {
        let inner = lock(&self.inner);
        match inner.state {
            State::Open => Ok(inner),
            State::Failed => Err(aborted()),
            State::Ended => Err(ended()),
        }
    }

    fn pin(&self, inner: &mut Inner) -> Arc<Pinned> {
        inner.pinned.get_or_insert_with(|| Arc::new(Pinned::new(self.database.tables()))).clone()
    }

    /// Applies a change to the overlay and updates the memory reservation.
    fn write<T>(&self, change: impl FnOnce(&mut Overlay) -> Result<T>) -> Result<T> {
        let mut inner = self.usable()?;
        let pinned = self.pin(&mut inner);
        let inner = &mut *inner;
        let overlay = inner.overlay.get_or_insert_with(|| Overlay::new(pinned));
        let done = change(overlay);
        let bytes = overlay.byte_count();
        let done = done.and_then(|done| inner.held.set(bytes).map(|()| done));
        if done.is_err() {
            // The overlay may contain a part of the failed statement.
            inner.state = State::Failed;
        }
        done
    }

    /// Rejects, before the commit, a change of rows that other transactions have already changed.
    fn check_conflict(&self, id: TableId) -> Result<()> {
        let (base, gone) = {
            let inner = lock(&self.inner);
            let Some(overlay) = &inner.overlay else { return Ok(()) };
            let Some(touched) = overlay.touched().find(|touched| touched.base.id == id) else { return Ok(()) };
            let Some(version) = overlay.version(id) else { return Ok(()) };
            let gone = super::overlay::died(&touched.base, &touched.base, version);
            let changed: Vec<_> =
                gone.iter().zip(&touched.replaced).map(|(gone, replaced)| gone.since(Some(replaced))).collect();
            (touched.base.clone(), changed)
        };
        let now = self.database.snapshots_at(&[id]).1.pop().flatten();
        // If a merge has moved the rows, the commit detects the conflict.
        let Some((now, dead)) = now.and_then(|now| Some((now.clone(), now.locate(&base, &gone)?))) else {
            return Ok(());
        };
        match TableSnapshot::clone(&now).kill(&dead) == dead.rows() {
            true => Ok(()),
            false => Err(not_serializable("concurrent update")),
        }
    }
}

impl Inner {
    fn forget(&mut self) {
        (self.pinned, self.overlay) = (None, None);
        self.savepoints.clear();
        self.reads.clear();
        let _ = self.held.set(0);
    }

    fn find_savepoint(&self, name: &str) -> Result<usize> {
        let missing = || {
            let message = format!("savepoint \"{name}\" does not exist");
            Error::new(ErrorKind::NotFound, message).with_code(SqlState::INVALID_SAVEPOINT)
        };
        self.savepoints.iter().rposition(|(known, _)| known == name).ok_or_else(missing)
    }
}

fn aborted() -> Error {
    let message = "current transaction is aborted, commands ignored until end of transaction block";
    Error::new(ErrorKind::Conflict, message).with_code(SqlState::IN_FAILED_SQL_TRANSACTION)
}

fn ended() -> Error {
    Error::new(ErrorKind::Invalid, "the transaction has ended").with_code(SqlState::NO_ACTIVE_SQL_TRANSACTION)
}

impl Host for TransactionHost {
    fn insert(&self, batches: Vec<Batch>) -> BoxFuture<'static, Result<Txn>> {
        ready(self.insert_rows(batches).map(|()| Txn(0))).boxed()
    }

    fn insert_new(&self, batches: Vec<Batch>) -> BoxFuture<'static, Result<u64>> {
        ready(self.write(|overlay| overlay.insert(batches, Wins::First))).boxed()
    }

    fn loader(&self) -> Option<Loader> {
        None
    }

    fn command(&self, command: Command) -> BoxFuture<'static, Result<Txn>> {
        ready(self.do_command(command).map(|()| Txn(0))).boxed()
    }

    fn change(&self, change: RowChange) -> BoxFuture<'static, Result<Option<u64>>> {
        let id = change.seen.id;
        let changed = self.write(|overlay| overlay.change(change));
        ready(changed.and_then(|changed| self.check_conflict(id).map(|()| changed))).boxed()
    }

    fn transaction(&self, _change: TransactionChange) -> BoxFuture<'static, Result<Option<Txn>>> {
        ready(Err(Error::new(ErrorKind::Internal, "a transaction is not part of another"))).boxed()
    }

    fn is_transaction(&self) -> bool {
        true
    }

    /// Rows of versions that only the transaction sees do not move.
    fn hold_merges(&self, _table: TableId) -> Box<dyn Send + Sync> {
        Box::new(())
    }

    fn seal(&self, _table: &str) -> BoxFuture<'static, Result<()>> {
        ready(Err(not_in_transaction("ALTER TABLE SEAL"))).boxed()
    }

    fn snapshots(&self, names: &[&str]) -> Vec<Option<Arc<TableSnapshot>>> {
        let mut inner = lock(&self.inner);
        let found: Vec<_> = match (&inner.overlay, &inner.pinned) {
            (Some(overlay), _) => names.iter().map(|name| overlay.by_name(name)).collect(),
            (None, Some(pinned)) => names.iter().map(|name| pinned.by_name(name).cloned()).collect(),
            (None, None) => return self.database.snapshots(names),
        };
        if self.isolation == Isolation::Serializable
            && let Some(pinned) = inner.pinned.clone()
        {
            let read = found.iter().flatten().filter_map(|table| pinned.get(table.id));
            inner.reads.extend(read.map(|table| (table.id, table.txn)));
        }
        found
    }

    fn tables(&self) -> (Txn, Vec<Arc<TableSnapshot>>) {
        let inner = lock(&self.inner);
        match (&inner.overlay, &inner.pinned) {
            (Some(overlay), Some(pinned)) => (pinned.txn, overlay.all().cloned().collect()),
            (None, Some(pinned)) => (pinned.txn, pinned.all().cloned().collect()),
            _ => self.database.tables(),
        }
    }

    fn snapshots_at(&self, ids: &[TableId]) -> (Txn, Vec<Option<Arc<TableSnapshot>>>) {
        self.database.snapshots_at(ids)
    }

    /// Materialized views receive the changes of a transaction at its commit.
    fn is_followed(&self, _table: TableId) -> bool {
        false
    }

    fn changed_times(&self, table: TableId, seen: Txn) -> Option<Vec<TimeChange>> {
        self.database.changed_times(table, seen)
    }

    fn note_refresh(&self, view: TableId, note: RefreshNote) {
        self.database.note_refresh(view, note);
    }

    fn refreshed(&self) {
        self.database.refreshed();
    }

    fn view_metrics(&self) -> Vec<ViewMetrics> {
        self.database.view_metrics()
    }

    /// Materialized views may be newer than the snapshot of the transaction.
    fn views_over(&self, _base: &TableSnapshot) -> Vec<OverView> {
        Vec::new()
    }

    fn table_names(&self) -> Vec<String> {
        self.tables().1.iter().map(|table| table.schema.name.clone()).collect()
    }

    fn check(&self, table: Option<&str>, go_on: GoOn<'_>) -> Result<CheckReport> {
        self.database.check(table, go_on)
    }

    fn backup(&self, _to: &str, _go_on: GoOn<'_>) -> Result<BackupReport> {
        Err(not_in_transaction("BACKUP"))
    }

    fn table_metrics(&self) -> Vec<TableMetrics> {
        self.database.table_metrics()
    }
}
