//! Transactions: statements whose changes become visible together, as one commit of the log, or never.
//!
//! Nothing of a transaction reaches the writer before its commit. Its statements run against a [`host::TransactionHost`]
//! instead of the database: queries see the tables as one commit left them ([`pinned`]) with the transaction's own changes
//! on top ([`overlay`]), and whatever they change goes there. At the commit the net effect ([`net`]) is sent to the writer
//! as one request; [`commit`] looks for rows that merges have moved meanwhile, and finds out about conflicts.
//!
//! Dropping a transaction rolls it back.

mod commit;
mod frozen;
mod host;
mod memory;
mod net;
mod overlay;
mod pinned;

use crate::copy::{Copy, CopyIn};
use crate::session::Sessions;
use crate::{Database, Described, Error, ErrorKind, QueryOptions, Response, Result, SqlState};
pub(crate) use frozen::FrozenHost;
use futures::FutureExt;
use futures::future::BoxFuture;
pub(crate) use host::TransactionHost;
pub(crate) use memory::Memory;
use std::sync::Arc;
use tidalite_types::pg_type::PgType;
use tidalite_types::{Batch, Command, Txn};

/// Isolation level: the visibility of other commits, and the conflicts that abort a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// Until the transaction has written something, each statement sees every commit before it; from then on as with
    /// [`Isolation::RepeatableRead`].
    ReadCommitted,
    /// All statements see the database as it was at the first one. Of two transactions that change the same row the second
    /// is refused at its commit.
    #[default]
    RepeatableRead,
    /// As [`Isolation::RepeatableRead`], and a transaction that writes is refused if a table that it read was changed.
    Serializable,
}

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
    /// After an error the transaction takes no more statements until it is rolled back, at least to a savepoint.
    #[must_use]
    pub fn execute(&self, sql: &str, options: QueryOptions) -> BoxFuture<'static, Result<Response>> {
        if let Err(error) = self.host.begin_statement() {
            return futures::future::ready(Err(error)).boxed();
        }
        let running = self.sessions.execute(self.host.clone(), sql, options);
        let host = self.host.clone();
        async move { running.await.inspect_err(|_| host.fail()) }.boxed()
    }

    /// Takes the rows of a `COPY … FROM STDIN`, as [`Database::copy_in`] does.
    ///
    /// # Errors
    /// When the transaction has failed, may not write, or there is no thread for it.
    pub fn copy_in(&self, sql: &str, copy: Copy, options: QueryOptions) -> Result<CopyIn> {
        self.host.begin_statement()?;
        self.sessions.copy_in(self.host.clone(), sql, copy, options)
    }

    /// Finds what a statement asks for and answers, as [`Database::describe`] does.
    #[must_use]
    pub fn describe(&self, sql: &str, types: Vec<Option<PgType>>) -> BoxFuture<'static, Result<Described>> {
        self.sessions.describe(self.host.clone(), sql, types)
    }

    /// The schema of a table as the transaction sees it.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<Arc<tidalite_types::TableSchema>> {
        use crate::session::Host;
        self.host.snapshots(&[name]).pop().flatten().map(|table| table.schema.clone())
    }

    /// Brings rows to a table whose columns are there.
    ///
    /// # Errors
    /// When a row is refused, or the transaction has failed.
    pub fn insert(&self, batches: Vec<Batch>) -> Result<()> {
        self.host.begin_statement()?;
        self.host.insert_rows(batches)
    }

    /// Changes schemas.
    ///
    /// # Errors
    /// As for the statement that does the same.
    pub fn command(&self, command: Command) -> Result<()> {
        self.host.begin_statement()?;
        self.host.do_command(command)
    }

    /// Commits all that was done; ready when it is durable (as configured) and visible. Gives the commit, or `None` when
    /// there was nothing to commit.
    ///
    /// # Errors
    /// SQLSTATE 40001 when another transaction changed the same rows: nothing is committed then, and all of the transaction
    /// has to be done again. SQLSTATE 25P02 when a statement has failed before.
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

    /// Every table as the transaction sees it.
    #[cfg(test)]
    pub(crate) fn tables(&self) -> Vec<Arc<tidalite_storage::TableSnapshot>> {
        use crate::session::Host;
        self.host.tables().1
    }

    /// Undoes all that was done.
    pub fn roll_back(&self) {
        self.host.end();
    }

    /// Notes what was done so far under a name.
    ///
    /// # Errors
    /// When the transaction has failed or ended.
    pub fn savepoint(&self, name: &str) -> Result<()> {
        self.host.savepoint(name)
    }

    /// Undoes what was done since the last savepoint of that name, which stays.
    ///
    /// # Errors
    /// When there is none.
    pub fn roll_back_to(&self, name: &str) -> Result<()> {
        self.host.roll_back_to(name)
    }

    /// Forgets the last savepoint of that name, and those after it; what was done since stays done.
    ///
    /// # Errors
    /// When there is none.
    pub fn release(&self, name: &str) -> Result<()> {
        self.host.release(name)
    }
}

/// The error of a statement that cannot be part of a transaction.
pub(crate) fn not_in_transaction(what: &str) -> Error {
    let message = format!("{what} cannot run inside a transaction block");
    Error::new(ErrorKind::Invalid, message).with_code(SqlState::ACTIVE_SQL_TRANSACTION)
}
