//! COPY.

use super::{Expr, Ident, ObjectName, Query};

/// COPY.
#[derive(Clone, Debug, PartialEq)]
pub struct Copy {
    /// The rows, or the table they go to.
    pub source: CopySource,
    /// Which way.
    pub direction: CopyDirection,
    /// The file or the client.
    pub target: CopyTarget,
    /// Options, in the order they are written.
    pub options: Vec<CopyOption>,
}

/// The database's side of a COPY.
#[derive(Clone, Debug, PartialEq)]
pub enum CopySource {
    /// A table.
    Table {
        /// The table.
        table: ObjectName,
        /// Its columns; empty for all.
        columns: Vec<Ident>,
    },
    /// A query.
    Query(Box<Query>),
}

/// Which way rows go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyDirection {
    /// FROM: into the database.
    From,
    /// TO: out of it.
    To,
}

/// The other side of a COPY.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyTarget {
    /// A file.
    File(Ident),
    /// STDIN or STDOUT.
    Client,
    /// PROGRAM.
    Program(Ident),
}

/// `name [value]`.
#[derive(Clone, Debug, PartialEq)]
pub struct CopyOption {
    /// The name; of two words, such as `ON ERROR`, with a space between them.
    pub name: Ident,
    /// The value.
    pub value: Option<Expr>,
}
