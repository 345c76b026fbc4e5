//! The state of an open transaction block.

use super::command::Variables;
use super::isolation::{Level, Modes};
use super::reply::Report;
use std::collections::BTreeSet;
use tidalite::{Database, Transaction};

/// An open transaction of a session.
pub struct Block {
    /// `None` before the first statement.
    pub(super) transaction: Option<Transaction>,
    pub(super) level: Level,
    pub(super) is_read_only: bool,
    pub(super) is_implicit: bool,
    /// Settings at the begin, for a rollback.
    pub(super) before: Variables,
    /// Settings that hold for this transaction only.
    pub(super) local: BTreeSet<String>,
    /// Savepoints, oldest first.
    pub(super) savepoints: Vec<Savepoint>,
}

/// The session state that ROLLBACK TO restores besides rows.
pub(super) struct Savepoint {
    pub(super) name: String,
    pub(super) is_read_only: bool,
    pub(super) variables: Variables,
}

impl Block {
    pub(super) fn transaction(&mut self, database: &Database) -> &Transaction {
        self.transaction.get_or_insert_with(|| database.begin(self.level.isolation))
    }

    pub(super) fn apply(&mut self, modes: Modes) -> Result<(), Report> {
        let has_begun = self.transaction.is_some();
        if let Some(level) = modes.level.filter(|level| *level != self.level) {
            if has_begun {
                let message = "SET TRANSACTION ISOLATION LEVEL must be called before any query";
                return Err(Report::error("25001", message));
            }
            self.level = level;
        }
        if let Some(is_read_only) = modes.is_read_only {
            if has_begun && self.is_read_only && !is_read_only {
                let message = "transaction read-write mode must be set before any query";
                return Err(Report::error("25001", message));
            }
            self.is_read_only = is_read_only;
        }
        Ok(())
    }
}
