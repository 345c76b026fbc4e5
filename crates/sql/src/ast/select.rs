//! SELECT.

use super::pivot::Pivot;
use super::{Expr, Ident, LatestOn, ObjectName, SampleBy, TableRef, WindowSpec};
use crate::Span;

/// `SELECT …`, and the short forms `t WHERE …`, `FROM t …`, `TABLE t`, `PIVOT t ON …`.
#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    /// DISTINCT.
    pub distinct: Option<Distinct>,
    /// Output columns.
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
    /// PIVOT after WHERE, applied to all rows of the query.
    pub pivot: Option<Box<Pivot>>,
    /// HAVING.
    pub having: Option<Expr>,
    /// WINDOW.
    pub windows: Vec<NamedWindow>,
    /// QUALIFY.
    pub qualify: Option<Expr>,
    /// Position in the statement text.
    pub span: Span,
}

impl Select {
    /// Creates a SELECT with an output list and FROM, without other clauses.
    #[must_use]
    pub fn new(projection: Projection, from: Vec<TableRef>, span: Span) -> Select {
        Select {
            distinct: None,
            projection,
            from,
            selection: None,
            sample_by: None,
            latest_on: None,
            group_by: None,
            pivot: None,
            having: None,
            windows: Vec::new(),
            qualify: None,
            span,
        }
    }
}

/// DISTINCT and DISTINCT ON.
#[derive(Clone, Debug, PartialEq)]
pub enum Distinct {
    /// DISTINCT: removes duplicate rows.
    Rows,
    /// One row for each combination of values.
    On(Vec<Expr>),
}

/// Output columns.
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
    /// An expression with an optional alias.
    Expr {
        /// The expression.
        expr: Expr,
        /// The name.
        alias: Option<Ident>,
    },
    /// `*`, `t.*`.
    Wildcard(Wildcard),
}

/// `*` with its modifiers.
#[derive(Clone, Debug, PartialEq)]
pub struct Wildcard {
    /// Table or struct whose columns are selected; `None` for all columns.
    pub of: Option<Box<Expr>>,
    /// Modifiers, in source order.
    pub changes: Vec<WildcardChange>,
    /// Position in the statement text.
    pub span: Span,
}

/// A modifier of `*`.
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
    /// `ROLLUP (…)`; each member is one or more expressions.
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
