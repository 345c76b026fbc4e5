//! Isolation levels, and the error of a statement that cannot run inside a transaction.

use crate::{Error, ErrorKind, SqlState};

/// Isolation level: the visibility of other commits, and the conflicts that abort a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// Each statement reads all earlier commits until the transaction writes; afterwards as
    /// [`Isolation::RepeatableRead`].
    ReadCommitted,
    /// All statements read the database as of the first statement.
    ///
    /// If two transactions change the same row, the commit of the second transaction fails.
    #[default]
    RepeatableRead,
    /// As [`Isolation::RepeatableRead`]; a writing transaction also fails if a table that was read changed.
    Serializable,
}

/// Returns the error of a statement that cannot run inside a transaction.
pub(crate) fn not_in_transaction(what: &str) -> Error {
    let message = format!("{what} cannot run inside a transaction block");
    Error::new(ErrorKind::Invalid, message).with_code(SqlState::ACTIVE_SQL_TRANSACTION)
}
