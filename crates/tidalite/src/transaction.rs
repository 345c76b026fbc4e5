//! Transactions: statements whose changes become visible together, as one commit of the log, or never.
//!
//! The writer receives nothing from a transaction before the commit. The statements run against a
//! [`host::TransactionHost`] instead of the database: queries read the tables as of one commit ([`pinned`]) with the
//! changes of the transaction on top ([`overlay`]), and all changes apply to the overlay. The commit sends the net
//! effect ([`net`]) to the writer as one request; [`commit`] locates rows that merges have moved and detects conflicts.
//!
//! Dropping a transaction rolls it back.

mod commit;
mod frozen;
mod host;
mod isolation;
mod memory;
mod net;
mod overlay;
mod pinned;

use crate::copy::{Copy, CopyIn};
use crate::session::Sessions;
use crate::{Database, Described, QueryOptions, Response, Result};
pub(crate) use frozen::FrozenHost;
use futures::FutureExt;
use futures::future::BoxFuture;
pub(crate) use host::TransactionHost;
pub use isolation::Isolation;
pub(crate) use isolation::not_in_transaction;
pub(crate) use memory::Memory;
use std::sync::Arc;
use tidalite_types::pg_type::PgType;
use tidalite_types::{Batch, Command, Txn};

/// An open transaction; clones share it. Statements of one transaction run one after another.
#[derive(Clone, Debug)]
pub struct Transaction {
    database: Database,
    sessions: Sessions,
    host: Arc<TransactionHost>,
}

impl Transaction {
    pub(crate) fn new(database: Database, sessions: Sessions, host: TransactionHost) -> Transaction {
        Transaction { database, sessions, host: Arc::new(host) }
    }

    /// Runs one statement, as [`Database::execute`] does.
    ///
    /// After an error, the transaction refuses statements until a rollback, at least to a savepoint.
    #[must_use]
    pub fn execute(&self, sql: &str, options: QueryOptions) -> BoxFuture<'static, Result<Response>> {
        if let Err(error) = self.host.begin_statement() {
            return futures::future::ready(Err(error)).boxed();
        }
        let running = self.sessions.execute(self.host.clone(), sql, options);
        let host = self.host.clone();
        async move { running.await.inspect_err(|_| host.fail()) }.boxed()
    }

    /// Takes the rows of a `COPY … FROM STDIN`, like [`Database::copy_in`].
    ///
    /// # Errors
    /// Fails if the transaction has failed, may not write, or no thread can be started.
    pub fn copy_in(&self, sql: &str, copy: Copy, options: QueryOptions) -> Result<CopyIn> {
        self.host.begin_statement()?;
        self.sessions.copy_in(self.host.clone(), sql, copy, options)
    }

    /// Returns the parameters and the result columns of a statement, as [`Database::describe`] does.
    #[must_use]
    pub fn describe(
        &self,
        sql: &str,
        types: Vec<Option<PgType>>,
        options: QueryOptions,
    ) -> BoxFuture<'static, Result<Described>> {
        self.sessions.describe(self.host.clone(), sql, types, options)
    }

    /// Returns the schema of a table as the transaction sees it.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<Arc<tidalite_types::TableSchema>> {
        use crate::session::Host;
        self.host.snapshots(&[name]).pop().flatten().map(|table| table.schema.clone())
    }

    /// Inserts rows into existing columns of a table.
    ///
    /// # Errors
    /// Fails if a row is rejected, or the transaction has failed.
    pub fn insert(&self, batches: Vec<Batch>) -> Result<()> {
        self.host.begin_statement()?;
        self.host.insert_rows(batches)
    }

    /// Changes schemas.
    ///
    /// # Errors
    /// Fails like the equivalent statement.
    pub fn command(&self, command: Command) -> Result<()> {
        self.host.begin_statement()?;
        self.host.do_command(command)
    }

    /// Commits all changes; completes when the commit is durable (as configured) and visible.
    ///
    /// Returns the commit, or `None` if there was nothing to commit.
    ///
    /// # Errors
    /// SQLSTATE 40001 if another transaction changed the same rows: nothing is committed, and the whole transaction
    /// must be repeated. SQLSTATE 25P02 if a statement has failed before.
    #[must_use]
    pub fn commit(&self) -> BoxFuture<'static, Result<Option<Txn>>> {
        self.sessions.commit(self.host.clone(), self.database.clone())
    }

    /// Returns the change that the commit first submits to the writer; `None` if there are no changes.
    #[cfg(test)]
    pub(crate) fn first_attempt(&self) -> Result<Option<crate::writer::TransactionChange>> {
        self.host.first_attempt()
    }

    #[cfg(test)]
    pub(crate) fn change(&self, change: crate::writer::RowChange) -> Result<()> {
        self.host.begin_statement()?;
        self.host.change_rows(change)
    }

    /// Returns every table as the transaction sees it.
    #[cfg(test)]
    pub(crate) fn tables(&self) -> Vec<Arc<tidalite_storage::TableSnapshot>> {
        use crate::session::Host;
        self.host.tables().1
    }

    /// Rolls back all changes.
    pub fn roll_back(&self) {
        self.host.end();
    }

    /// Sets a savepoint.
    ///
    /// # Errors
    /// Fails if the transaction has failed or ended.
    pub fn savepoint(&self, name: &str) -> Result<()> {
        self.host.savepoint(name)
    }

    /// Rolls back to the last savepoint of that name; the savepoint remains.
    ///
    /// # Errors
    /// Fails if there is none.
    pub fn roll_back_to(&self, name: &str) -> Result<()> {
        self.host.roll_back_to(name)
    }

    /// Releases the last savepoint of that name and all later savepoints; changes remain.
    ///
    /// # Errors
    /// Fails if there is none.
    pub fn release(&self, name: &str) -> Result<()> {
        self.host.release(name)
    }
}
