//! COPY.

use super::{Expr, Ident, ObjectName, Query};

/// COPY.
#[derive(Clone, Debug, PartialEq)]
pub struct Copy {
    /// Source rows, or the target table.
    pub source: CopySource,
    /// Direction of the copy.
    pub direction: CopyDirection,
    /// The file or the client.
    pub target: CopyTarget,
    /// Options, in source order.
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

/// Direction in which rows are copied.
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
    /// Option name; the words of a two-word name such as `ON ERROR` are separated by one space.
    pub name: Ident,
    /// The value.
    pub value: Option<Expr>,
}
