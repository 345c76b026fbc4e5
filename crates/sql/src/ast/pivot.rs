//! PIVOT and UNPIVOT.

use super::{Expr, Ident, Query};
use crate::Span;

/// A PIVOT clause or statement.
///
/// `PIVOT (aggregates FOR column IN (…) … [GROUP BY …])` and `PIVOT t ON column … [USING aggregates] [GROUP BY …]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Pivot {
    /// The aggregates; empty for `count(*)`.
    pub aggregates: Vec<PivotValue>,
    /// The columns whose values become columns.
    pub columns: Vec<PivotColumn>,
    /// GROUP BY.
    pub group_by: Option<Vec<Expr>>,
    /// True for the statement form.
    ///
    /// Without GROUP BY the statement groups by all columns that are not named elsewhere.
    pub is_statement: bool,
    /// Position in the statement text.
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

/// Values that become columns.
#[derive(Clone, Debug, PartialEq)]
pub enum PivotValues {
    /// All distinct values of the column.
    All,
    /// The listed values.
    List(Vec<PivotValue>),
    /// The values returned by a query.
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

/// An UNPIVOT clause or statement.
///
/// `UNPIVOT [INCLUDE NULLS] (value FOR name IN (columns))` and `UNPIVOT t ON columns [INTO NAME name VALUE value]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Unpivot {
    /// True if rows with a NULL value are kept.
    pub includes_nulls: bool,
    /// Name of the value column; `None` for the default `value`.
    pub value: Option<Ident>,
    /// Name of the name column; `None` for the default `name`.
    pub name: Option<Ident>,
    /// The columns that become rows.
    pub columns: Vec<PivotValue>,
    /// Position in the statement text.
    pub span: Span,
}
