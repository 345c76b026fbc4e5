//! PIVOT and UNPIVOT.

use super::{Expr, Ident, Query};
use crate::Span;

/// `PIVOT (aggregates FOR column IN (…) … [GROUP BY …])` and `PIVOT t ON column … [USING aggregates] [GROUP BY …]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Pivot {
    /// The aggregates; empty for `count(*)`.
    pub aggregates: Vec<PivotValue>,
    /// The columns whose values become columns.
    pub columns: Vec<PivotColumn>,
    /// GROUP BY.
    pub group_by: Option<Vec<Expr>>,
    /// Whether it is the form that begins a query: without GROUP BY it groups by all columns not named elsewhere.
    pub is_statement: bool,
    /// Where it stands.
    pub span: Span,
}

/// A column whose values become columns.
#[derive(Clone, Debug, PartialEq)]
pub struct PivotColumn {
    /// The column.
    pub column: Expr,
    /// Its values.
    pub values: PivotValues,
}

/// Which values become columns.
#[derive(Clone, Debug, PartialEq)]
pub enum PivotValues {
    /// Those that there are.
    All,
    /// Those listed.
    List(Vec<PivotValue>),
    /// Those that a query gives.
    Query(Box<Query>),
}

/// An expression with a name for its columns.
#[derive(Clone, Debug, PartialEq)]
pub struct PivotValue {
    /// The expression.
    pub expr: Expr,
    /// The name.
    pub alias: Option<Ident>,
}

/// `UNPIVOT [INCLUDE NULLS] (value FOR name IN (columns))` and `UNPIVOT t ON columns [INTO NAME name VALUE value]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Unpivot {
    /// Whether rows whose value is NULL are kept.
    pub includes_nulls: bool,
    /// The column of the values; `None` for `value`.
    pub value: Option<Ident>,
    /// The column of the names; `None` for `name`.
    pub name: Option<Ident>,
    /// The columns that become rows.
    pub columns: Vec<PivotValue>,
    /// Where it stands.
    pub span: Span,
}
