//! Queries: WITH, set operations, ORDER BY, LIMIT.

use super::{Delete, Expr, Ident, Insert, Merge, ObjectName, Select, Update};
use crate::Span;

/// A query: the body and the clauses around the body.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// DECLARE before the query.
    pub declare: Vec<Declaration>,
    /// WITH clause before the statement.
    pub with: Option<With>,
    /// The rows.
    pub body: Body,
    /// ORDER BY.
    pub order_by: Option<OrderBy>,
    /// LIMIT, OFFSET and FETCH.
    pub limit: Option<Box<Limit>>,
    /// FOR UPDATE and the other locking clauses.
    pub locks: Vec<Lock>,
    /// Position in the statement text.
    pub span: Span,
}

impl Query {
    /// Creates a query without surrounding clauses.
    #[must_use]
    pub fn new(body: Body, span: Span) -> Query {
        Query { declare: Vec::new(), with: None, body, order_by: None, limit: None, locks: Vec::new(), span }
    }
}

/// `@name := value` of DECLARE.
#[derive(Clone, Debug, PartialEq)]
pub struct Declaration {
    /// The variable, without `@`.
    pub name: Ident,
    /// True if OVERRIDABLE is given.
    pub overridable: bool,
    /// Definition.
    pub value: Expr,
}

/// WITH.
#[derive(Clone, Debug, PartialEq)]
pub struct With {
    /// True if RECURSIVE is given.
    pub recursive: bool,
    /// The queries, at least one.
    pub ctes: Vec<Cte>,
}

/// `name (columns) AS (query)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Cte {
    /// The name.
    pub name: Ident,
    /// Column names; empty to use the column names of the query.
    pub columns: Vec<Ident>,
    /// MATERIALIZED or NOT MATERIALIZED.
    pub materialization: Option<Materialization>,
    /// Definition.
    pub body: CteBody,
}

/// Materialization hint of a common table expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Materialization {
    /// MATERIALIZED.
    Materialized,
    /// NOT MATERIALIZED.
    NotMaterialized,
}

/// Statement of a common table expression.
#[derive(Clone, Debug, PartialEq)]
pub enum CteBody {
    /// A query.
    Query(Box<Query>),
    /// An INSERT with RETURNING.
    Insert(Box<Insert>),
    /// An UPDATE with RETURNING.
    Update(Box<Update>),
    /// A DELETE with RETURNING.
    Delete(Box<Delete>),
    /// A MERGE.
    Merge(Box<Merge>),
}

/// The rows of a query.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// SELECT and its short forms.
    Select(Box<Select>),
    /// VALUES.
    Values(Vec<Vec<Expr>>),
    /// A query in parentheses.
    Query(Box<Query>),
    /// UNION, EXCEPT and INTERSECT, left-associative; INTERSECT has higher precedence.
    Set {
        /// The first rows.
        first: Box<Body>,
        /// Set operations, applied from left to right.
        rest: Vec<SetTerm>,
    },
}

/// A set operation and its right side.
#[derive(Clone, Debug, PartialEq)]
pub struct SetTerm {
    /// The operator.
    pub op: SetOperator,
    /// ALL or DISTINCT, if given.
    pub quantifier: Option<SetQuantifier>,
    /// True if BY NAME is given: columns are matched by name.
    pub by_name: bool,
    /// The right side.
    pub body: Body,
}

/// Set operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOperator {
    /// UNION.
    Union,
    /// EXCEPT.
    Except,
    /// INTERSECT.
    Intersect,
}

/// Treatment of duplicate rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetQuantifier {
    /// ALL.
    All,
    /// DISTINCT.
    Distinct,
}

/// ORDER BY of a query.
#[derive(Clone, Debug, PartialEq)]
pub enum OrderBy {
    /// Keys.
    Items(Vec<OrderItem>),
    /// `ORDER BY ALL`.
    All {
        /// True for DESC, false for ASC; `None` if omitted.
        descending: Option<bool>,
        /// True for NULLS FIRST, false for NULLS LAST; `None` if omitted.
        nulls_first: Option<bool>,
    },
}

/// A key of ORDER BY.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderItem {
    /// The key.
    pub expr: Expr,
    /// True for DESC, false for ASC; `None` if omitted.
    pub descending: Option<bool>,
    /// True for NULLS FIRST, false for NULLS LAST; `None` if omitted.
    pub nulls_first: Option<bool>,
}

/// LIMIT, OFFSET and FETCH.
#[derive(Clone, Debug, PartialEq)]
pub enum Limit {
    /// `LIMIT count OFFSET offset`; `count` is `None` for LIMIT ALL.
    Count {
        /// Number of rows.
        count: Option<Expr>,
        /// Number of rows to skip.
        offset: Option<Expr>,
    },
    /// `LIMIT lo, hi`: the rows after `lo` up to `hi`.
    Range {
        /// The row before the first.
        lo: Expr,
        /// The last row.
        hi: Expr,
    },
    /// `OFFSET offset FETCH FIRST count ROWS ONLY | WITH TIES`.
    Fetch {
        /// Number of rows; `None` for one.
        count: Option<Expr>,
        /// True if the count is a percentage.
        percent: bool,
        /// True if WITH TIES is given: peers of the last row are included.
        with_ties: bool,
        /// Number of rows to skip.
        offset: Option<Expr>,
    },
}

/// `FOR UPDATE [OF t] [NOWAIT | SKIP LOCKED]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    /// Lock strength as written, such as `UPDATE` or `NO KEY UPDATE`.
    pub strength: String,
    /// The tables; empty for all.
    pub of: Vec<ObjectName>,
}
