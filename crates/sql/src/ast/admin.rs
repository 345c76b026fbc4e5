//! EXPLAIN, SHOW, and statements about the database.

use super::{Expr, Ident, ObjectName, Statement};

/// EXPLAIN.
#[derive(Clone, Debug, PartialEq)]
pub struct Explain {
    /// ANALYZE.
    pub analyze: bool,
    /// VERBOSE.
    pub verbose: bool,
    /// Options in parentheses, each with its value.
    pub options: Vec<(Ident, Option<Expr>)>,
    /// The statement.
    pub statement: Statement,
}

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
    /// A setting; of several words, such as `TIME ZONE`, with a space between them.
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
    /// One table, which the product does not do.
    Table(ObjectName),
}

/// What CHECK verifies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckTarget {
    /// All.
    Database,
    /// One table.
    Table(ObjectName),
}

/// A statement that other databases have.
#[derive(Clone, Debug, PartialEq)]
pub struct Admin {
    /// Its first word, in upper case: VACUUM, ANALYZE, CHECKPOINT, REINDEX, LISTEN, NOTIFY, UNLISTEN, LOCK, COMMENT, CALL,
    /// DO, SNAPSHOT.
    pub verb: String,
    /// The object, where one is named.
    pub object: Option<ObjectName>,
    /// The values, where there are any.
    pub args: Vec<Expr>,
}
