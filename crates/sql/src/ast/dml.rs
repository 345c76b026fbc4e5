//! INSERT, UPDATE, DELETE, MERGE.

use super::{Alias, Expr, Ident, ObjectName, Query, Relation, SelectItem, TableRef, With};

/// INSERT.
#[derive(Clone, Debug, PartialEq)]
pub struct Insert {
    /// WITH before it.
    pub with: Option<With>,
    /// How rows are committed, if it is said.
    pub batch: Option<InsertBatch>,
    /// The table.
    pub table: ObjectName,
    /// The name it goes by.
    pub alias: Option<Ident>,
    /// The columns; empty for all, in order.
    pub columns: Vec<Ident>,
    /// The rows.
    pub source: InsertSource,
    /// ON CONFLICT.
    pub conflict: Option<OnConflict>,
    /// RETURNING.
    pub returning: Vec<SelectItem>,
}

/// `INSERT ATOMIC`, `INSERT BATCH n [o3MaxLag t]`.
#[derive(Clone, Debug, PartialEq)]
pub enum InsertBatch {
    /// One commit.
    Atomic,
    /// A commit every so many rows.
    Rows(String),
}

/// Where the rows of an INSERT come from.
#[derive(Clone, Debug, PartialEq)]
pub enum InsertSource {
    /// VALUES or a query.
    Query(Box<Query>),
    /// DEFAULT VALUES.
    DefaultValues,
}

/// ON CONFLICT.
#[derive(Clone, Debug, PartialEq)]
pub struct OnConflict {
    /// The keys; empty if none are named.
    pub keys: Vec<Ident>,
    /// ON CONSTRAINT.
    pub constraint: Option<Ident>,
    /// What becomes of rows whose keys are there.
    pub action: ConflictAction,
}

/// What becomes of rows whose keys are there.
#[derive(Clone, Debug, PartialEq)]
pub enum ConflictAction {
    /// DO NOTHING.
    Nothing,
    /// DO UPDATE SET … [WHERE …].
    Update {
        /// The assignments.
        assignments: Vec<Assignment>,
        /// The condition.
        selection: Option<Expr>,
    },
}

/// `column = value`, `(a, b) = (x, y)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    /// The columns; more than one in parentheses.
    pub columns: Vec<ObjectName>,
    /// The value; a row or a query for several columns.
    pub value: Expr,
}

/// UPDATE.
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    /// WITH before it.
    pub with: Option<With>,
    /// The table.
    pub table: ObjectName,
    /// The name it goes by.
    pub alias: Option<Alias>,
    /// The assignments.
    pub assignments: Vec<Assignment>,
    /// FROM.
    pub from: Vec<TableRef>,
    /// WHERE.
    pub selection: Option<Expr>,
    /// RETURNING.
    pub returning: Vec<SelectItem>,
}

/// DELETE.
#[derive(Clone, Debug, PartialEq)]
pub struct Delete {
    /// WITH before it.
    pub with: Option<With>,
    /// The table.
    pub table: ObjectName,
    /// The name it goes by.
    pub alias: Option<Alias>,
    /// USING.
    pub using: Vec<TableRef>,
    /// WHERE.
    pub selection: Option<Expr>,
    /// RETURNING.
    pub returning: Vec<SelectItem>,
}

/// MERGE.
#[derive(Clone, Debug, PartialEq)]
pub struct Merge {
    /// WITH before it.
    pub with: Option<With>,
    /// The table.
    pub table: ObjectName,
    /// The name it goes by.
    pub alias: Option<Alias>,
    /// The rows that it is merged with.
    pub source: Relation,
    /// ON.
    pub on: Expr,
    /// What is done, at least one.
    pub clauses: Vec<MergeClause>,
    /// RETURNING.
    pub returning: Vec<SelectItem>,
}

/// `WHEN [NOT] MATCHED [AND condition] THEN …`.
#[derive(Clone, Debug, PartialEq)]
pub struct MergeClause {
    /// Whether it is for rows that match.
    pub matched: bool,
    /// Whether NOT MATCHED BY SOURCE is said.
    pub by_source: bool,
    /// The condition.
    pub condition: Option<Expr>,
    /// What is done.
    pub action: MergeAction,
}

/// What a clause of MERGE does.
#[derive(Clone, Debug, PartialEq)]
pub enum MergeAction {
    /// UPDATE SET.
    Update(Vec<Assignment>),
    /// DELETE.
    Delete,
    /// INSERT.
    Insert {
        /// The columns; empty for all, in order.
        columns: Vec<Ident>,
        /// The values; empty for DEFAULT VALUES.
        values: Vec<Expr>,
    },
    /// DO NOTHING.
    Nothing,
}
