//! Queries: WITH, set operations, ORDER BY, LIMIT.

use super::{Delete, Expr, Ident, Insert, Merge, ObjectName, Select, Update};
use crate::Span;

/// A query with all that may stand around its rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// DECLARE before it.
    pub declare: Vec<Declaration>,
    /// WITH before it.
    pub with: Option<With>,
    /// The rows.
    pub body: Body,
    /// ORDER BY.
    pub order_by: Option<OrderBy>,
    /// LIMIT, OFFSET and FETCH.
    pub limit: Option<Box<Limit>>,
    /// FOR UPDATE and its kin.
    pub locks: Vec<Lock>,
    /// Where it stands.
    pub span: Span,
}

/// `@name := value` of DECLARE.
#[derive(Clone, Debug, PartialEq)]
pub struct Declaration {
    /// The variable, without `@`.
    pub name: Ident,
    /// Whether OVERRIDABLE stands before it.
    pub overridable: bool,
    /// What it stands for.
    pub value: Expr,
}

/// WITH.
#[derive(Clone, Debug, PartialEq)]
pub struct With {
    /// Whether the queries may name themselves.
    pub recursive: bool,
    /// The queries, at least one.
    pub ctes: Vec<Cte>,
}

/// `name (columns) AS (query)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Cte {
    /// The name.
    pub name: Ident,
    /// The names of the columns; empty for those of the query.
    pub columns: Vec<Ident>,
    /// MATERIALIZED or NOT MATERIALIZED.
    pub materialization: Option<Materialization>,
    /// What it stands for.
    pub body: CteBody,
}

/// Whether a common table expression is computed once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Materialization {
    /// MATERIALIZED.
    Materialized,
    /// NOT MATERIALIZED.
    NotMaterialized,
}

/// What a common table expression stands for.
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
    /// UNION, EXCEPT, INTERSECT, from left to right; INTERSECT binds closer.
    Set {
        /// The first rows.
        first: Box<Body>,
        /// What is done with them, one after the other.
        rest: Vec<SetTerm>,
    },
}

/// A set operation and its right side.
#[derive(Clone, Debug, PartialEq)]
pub struct SetTerm {
    /// The operator.
    pub op: SetOperator,
    /// ALL or DISTINCT, if it is said.
    pub quantifier: Option<SetQuantifier>,
    /// Whether columns go by their names.
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

/// What becomes of equal rows.
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
        /// DESC; `None` if nothing is said.
        descending: Option<bool>,
        /// NULLS FIRST; `None` if nothing is said.
        nulls_first: Option<bool>,
    },
}

/// A key of ORDER BY.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderItem {
    /// The key.
    pub expr: Expr,
    /// DESC; `None` if nothing is said.
    pub descending: Option<bool>,
    /// NULLS FIRST; `None` if nothing is said.
    pub nulls_first: Option<bool>,
}

/// How many rows, and which.
#[derive(Clone, Debug, PartialEq)]
pub enum Limit {
    /// `LIMIT count OFFSET offset`; LIMIT ALL is no count.
    Count {
        /// How many rows.
        count: Option<Expr>,
        /// How many are passed over.
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
        /// How many rows; `None` for one.
        count: Option<Expr>,
        /// Whether the count is a percentage.
        percent: bool,
        /// Whether rows equal to the last one come, too.
        with_ties: bool,
        /// How many are passed over.
        offset: Option<Expr>,
    },
}

/// `FOR UPDATE [OF t] [NOWAIT | SKIP LOCKED]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    /// The strength as it is written, such as `UPDATE` or `NO KEY UPDATE`.
    pub strength: String,
    /// The tables; empty for all.
    pub of: Vec<ObjectName>,
}
