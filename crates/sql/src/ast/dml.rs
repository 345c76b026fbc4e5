//! INSERT, UPDATE, DELETE, MERGE.

use super::{Alias, Expr, Ident, ObjectName, Query, Relation, SelectItem, TableRef, With};
use crate::Span;

/// INSERT.
#[derive(Clone, Debug, PartialEq)]
pub struct Insert {
    /// WITH clause before the statement.
    pub with: Option<With>,
    /// Commit granularity, if given.
    pub batch: Option<InsertBatch>,
    /// The table.
    pub table: ObjectName,
    /// Alias.
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
    /// One commit per `n` rows.
    Rows(String),
}

/// Source of the rows of an INSERT.
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
    /// Action for rows whose keys already exist.
    pub action: ConflictAction,
    /// Position in the statement text.
    pub span: Span,
}

/// Action for rows whose keys already exist.
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
    /// WITH clause before the statement.
    pub with: Option<With>,
    /// The table.
    pub table: ObjectName,
    /// Alias.
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
    /// WITH clause before the statement.
    pub with: Option<With>,
    /// The table.
    pub table: ObjectName,
    /// Alias.
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
    /// WITH clause before the statement.
    pub with: Option<With>,
    /// The table.
    pub table: ObjectName,
    /// Alias.
    pub alias: Option<Alias>,
    /// Source relation of the merge.
    pub source: Relation,
    /// ON.
    pub on: Expr,
    /// WHEN clauses; never empty.
    pub clauses: Vec<MergeClause>,
    /// RETURNING.
    pub returning: Vec<SelectItem>,
}

/// `WHEN [NOT] MATCHED [AND condition] THEN …`.
#[derive(Clone, Debug, PartialEq)]
pub struct MergeClause {
    /// True for MATCHED, false for NOT MATCHED.
    pub matched: bool,
    /// True for NOT MATCHED BY SOURCE.
    pub by_source: bool,
    /// The condition.
    pub condition: Option<Expr>,
    /// Action.
    pub action: MergeAction,
}

/// Action of a MERGE clause.
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
