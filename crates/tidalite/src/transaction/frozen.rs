//! A [`Host`] for the parts of one statement.
//!
//! All parts read the tables as of the start of the statement; no part reads the changes of another part.

use super::pinned::Pinned;
use crate::Result;
use crate::backup::BackupReport;
use crate::check::{CheckReport, GoOn};
use crate::load::Loader;
use crate::session::{Host, RefreshNote};
use crate::writer::{RowChange, TransactionChange};
use futures::future::BoxFuture;
use std::sync::Arc;
use tidalite_query::{OverView, TableMetrics, ViewMetrics};
use tidalite_storage::TableSnapshot;
use tidalite_types::{Batch, Command, TableId, TimeChange, Txn};

/// Forwards changes to the transaction `host`; reads do not see these changes.
pub(crate) struct FrozenHost {
    host: Arc<dyn Host>,
    pinned: Pinned,
}

impl FrozenHost {
    pub(crate) fn new(host: Arc<dyn Host>) -> FrozenHost {
        FrozenHost { pinned: Pinned::new(host.tables()), host }
    }
}

impl Host for FrozenHost {
    fn insert(&self, batches: Vec<Batch>) -> BoxFuture<'static, Result<Txn>> {
        self.host.insert(batches)
    }

    fn insert_new(&self, batches: Vec<Batch>) -> BoxFuture<'static, Result<u64>> {
        self.host.insert_new(batches)
    }

    fn loader(&self) -> Option<Loader> {
        None
    }

    fn command(&self, command: Command) -> BoxFuture<'static, Result<Txn>> {
        self.host.command(command)
    }

    fn change(&self, change: RowChange) -> BoxFuture<'static, Result<Option<u64>>> {
        self.host.change(change)
    }

    fn transaction(&self, change: TransactionChange) -> BoxFuture<'static, Result<Option<Txn>>> {
        self.host.transaction(change)
    }

    fn is_transaction(&self) -> bool {
        true
    }

    fn hold_merges(&self, table: TableId) -> Box<dyn Send + Sync> {
        self.host.hold_merges(table)
    }

    fn seal(&self, table: &str) -> BoxFuture<'static, Result<()>> {
        self.host.seal(table)
    }

    fn snapshots(&self, names: &[&str]) -> Vec<Option<Arc<TableSnapshot>>> {
        // A serializable transaction records reads.
        drop(self.host.snapshots(names));
        names.iter().map(|name| self.pinned.by_name(name).cloned()).collect()
    }

    fn tables(&self) -> (Txn, Vec<Arc<TableSnapshot>>) {
        (self.pinned.txn, self.pinned.all().cloned().collect())
    }

    fn snapshots_at(&self, ids: &[TableId]) -> (Txn, Vec<Option<Arc<TableSnapshot>>>) {
        (self.pinned.txn, ids.iter().map(|id| self.pinned.get(*id).cloned()).collect())
    }

    fn is_followed(&self, table: TableId) -> bool {
        self.host.is_followed(table)
    }

    fn changed_times(&self, table: TableId, seen: Txn) -> Option<Vec<TimeChange>> {
        self.host.changed_times(table, seen)
    }

    fn note_refresh(&self, view: TableId, note: RefreshNote) {
        self.host.note_refresh(view, note);
    }

    fn refreshed(&self) {
        self.host.refreshed();
    }

    fn view_metrics(&self) -> Vec<ViewMetrics> {
        self.host.view_metrics()
    }

    fn views_over(&self, _base: &TableSnapshot) -> Vec<OverView> {
        Vec::new()
    }

    fn table_names(&self) -> Vec<String> {
        self.pinned.all().map(|table| table.schema.name.clone()).collect()
    }

    fn check(&self, table: Option<&str>, go_on: GoOn<'_>) -> Result<CheckReport> {
        self.host.check(table, go_on)
    }

    fn backup(&self, to: &str, go_on: GoOn<'_>) -> Result<BackupReport> {
        self.host.backup(to, go_on)
    }

    fn table_metrics(&self) -> Vec<TableMetrics> {
        self.host.table_metrics()
    }
}
