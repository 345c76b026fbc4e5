//! SHOW, and statements about the database.

use super::{Expr, ObjectName};

/// SHOW.
#[derive(Clone, Debug, PartialEq)]
pub enum Show {
    /// TABLES.
    Tables,
    /// VIEWS.
    Views,
    /// MATERIALIZED VIEWS.
    MaterializedViews,
    /// SCHEMAS, DATABASES, FUNCTIONS, PARAMETERS, …: the word in upper case.
    List(String),
    /// COLUMNS FROM table.
    Columns(ObjectName),
    /// PARTITIONS FROM table.
    Partitions(ObjectName),
    /// CREATE TABLE, CREATE VIEW, CREATE MATERIALIZED VIEW.
    Create(ObjectName),
    /// Name of a setting; the words of a longer name such as `TIME ZONE` are separated by one space.
    Setting(String),
}

/// BACKUP DATABASE TO 'folder', BACKUP TABLE t.
#[derive(Clone, Debug, PartialEq)]
pub enum Backup {
    /// The whole database.
    Database {
        /// The folder or the URL.
        to: Expr,
    },
    /// A single table; not supported by Tidalite.
    Table(ObjectName),
}

/// Object that CHECK verifies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckTarget {
    /// All.
    Database,
    /// One table.
    Table(ObjectName),
}

/// A statement of other databases that Tidalite does not implement.
#[derive(Clone, Debug, PartialEq)]
pub struct Admin {
    /// First word of the statement, in upper case.
    ///
    /// VACUUM, ANALYZE, CHECKPOINT, REINDEX, LISTEN, NOTIFY, UNLISTEN, LOCK, COMMENT, CALL, DO, SNAPSHOT.
    pub verb: String,
    /// Object of the statement, if named.
    pub object: Option<ObjectName>,
    /// Arguments; empty if omitted.
    pub args: Vec<Expr>,
}
