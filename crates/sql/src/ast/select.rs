//! SELECT.

use super::pivot::Pivot;
use super::{Expr, Ident, LatestOn, ObjectName, SampleBy, TableRef, WindowSpec};
use crate::Span;

/// `SELECT …`, and the short forms `t WHERE …`, `FROM t …`, `TABLE t`, `PIVOT t ON …`.
#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    /// DISTINCT.
    pub distinct: Option<Distinct>,
    /// The columns that come out.
    pub projection: Projection,
    /// FROM.
    pub from: Vec<TableRef>,
    /// WHERE.
    pub selection: Option<Expr>,
    /// SAMPLE BY.
    pub sample_by: Option<Box<SampleBy>>,
    /// LATEST ON.
    pub latest_on: Option<Box<LatestOn>>,
    /// GROUP BY.
    pub group_by: Option<GroupBy>,
    /// PIVOT behind WHERE, over all rows of the query.
    pub pivot: Option<Box<Pivot>>,
    /// HAVING.
    pub having: Option<Expr>,
    /// WINDOW.
    pub windows: Vec<NamedWindow>,
    /// QUALIFY.
    pub qualify: Option<Expr>,
    /// Where it stands.
    pub span: Span,
}

/// DISTINCT and DISTINCT ON.
#[derive(Clone, Debug, PartialEq)]
pub enum Distinct {
    /// Rows that differ.
    Rows,
    /// One row for each combination of values.
    On(Vec<Expr>),
}

/// The columns that come out.
#[derive(Clone, Debug, PartialEq)]
pub enum Projection {
    /// A list, which may be empty.
    Items(Vec<SelectItem>),
    /// All columns, because there is no list: `FROM t`, `t WHERE …`.
    Implicit,
}

/// An item of the list.
#[derive(Clone, Debug, PartialEq)]
pub enum SelectItem {
    /// An expression, with its name if it is given one.
    Expr {
        /// The expression.
        expr: Expr,
        /// The name.
        alias: Option<Ident>,
    },
    /// `*`, `t.*`.
    Wildcard(Wildcard),
}

/// `*` with what is changed of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Wildcard {
    /// The table, or a struct, whose columns are meant; `None` for all.
    pub of: Option<Box<Expr>>,
    /// What is changed.
    pub changes: Vec<WildcardChange>,
    /// Where it stands.
    pub span: Span,
}

/// What is changed of `*`.
#[derive(Clone, Debug, PartialEq)]
pub enum WildcardChange {
    /// EXCEPT and EXCLUDE.
    Exclude(Vec<ObjectName>),
    /// REPLACE (expression AS column, …).
    Replace(Vec<(Expr, Ident)>),
    /// RENAME (column AS name, …).
    Rename(Vec<(Ident, Ident)>),
    /// ILIKE 'pattern'.
    Ilike(String),
}

/// GROUP BY.
#[derive(Clone, Debug, PartialEq)]
pub enum GroupBy {
    /// Keys.
    Items(Vec<GroupItem>),
    /// `GROUP BY ALL`.
    All,
}

/// A key of GROUP BY.
#[derive(Clone, Debug, PartialEq)]
pub enum GroupItem {
    /// An expression.
    Expr(Expr),
    /// `()`: all rows are one group.
    Empty,
    /// `ROLLUP (…)`; each of its members is one or more expressions.
    Rollup(Vec<Vec<Expr>>),
    /// `CUBE (…)`.
    Cube(Vec<Vec<Expr>>),
    /// `GROUPING SETS (…)`.
    Sets(Vec<GroupItem>),
    /// `(a, b)` within GROUPING SETS.
    Set(Vec<Expr>),
}

/// `WINDOW name AS (…)`.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedWindow {
    /// The name.
    pub name: Ident,
    /// The window.
    pub spec: WindowSpec,
}
