//! FROM: tables, sub-queries, functions and joins.

use super::{
    AsofJoin, Expr, FunctionCall, HorizonJoin, Ident, ObjectName, Pivot, Query, TypeName, Unpivot, WindowJoin,
};
use crate::Span;

/// An item of FROM: a relation and its joins, from left to right.
#[derive(Clone, Debug, PartialEq)]
pub struct TableRef {
    /// The first relation.
    pub relation: Relation,
    /// Joins, from left to right.
    pub joins: Vec<Join>,
}

/// A relation with the clauses that follow the relation.
#[derive(Clone, Debug, PartialEq)]
pub struct Relation {
    /// Kind.
    pub kind: RelationKind,
    /// TIMESTAMP(column): designated timestamp of the relation.
    pub timestamp: Option<Ident>,
    /// TABLESAMPLE.
    pub sample: Option<TableSample>,
    /// Alias.
    pub alias: Option<Alias>,
    /// Position in the statement text.
    pub span: Span,
}

impl Relation {
    /// Creates a relation without clauses.
    #[must_use]
    pub fn new(kind: RelationKind, alias: Option<Alias>, span: Span) -> Relation {
        Relation { kind, timestamp: None, sample: None, alias, span }
    }
}

/// The kinds of relations.
#[derive(Clone, Debug, PartialEq)]
pub enum RelationKind {
    /// A table, a view, a common table expression, or a file in quotes.
    Table {
        /// Its name.
        name: ObjectName,
    },
    /// `@name`, a variable defined by DECLARE.
    Variable(Ident),
    /// A table function.
    Function {
        /// True if LATERAL is given.
        lateral: bool,
        /// The call.
        call: Box<FunctionCall>,
        /// WITH ORDINALITY.
        with_ordinality: bool,
    },
    /// A query in parentheses.
    Query {
        /// True if LATERAL is given.
        lateral: bool,
        /// The query.
        query: Box<Query>,
    },
    /// Joins in parentheses.
    Nested(Box<TableRef>),
    /// `relation PIVOT (…)`.
    Pivot {
        /// The relation.
        relation: Box<Relation>,
        /// The clause.
        pivot: Box<Pivot>,
    },
    /// `relation UNPIVOT (…)`.
    Unpivot {
        /// The relation.
        relation: Box<Relation>,
        /// The clause.
        unpivot: Box<Unpivot>,
    },
}

/// A name for a relation, and for its columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Alias {
    /// The name.
    pub name: Ident,
    /// Column names; empty to keep the original names.
    pub columns: Vec<AliasColumn>,
}

/// A column of an alias.
#[derive(Clone, Debug, PartialEq)]
pub struct AliasColumn {
    /// The name.
    pub name: Ident,
    /// Type, required for functions that return records.
    pub data_type: Option<TypeName>,
}

/// `TABLESAMPLE method (size) [REPEATABLE (seed)]`.
#[derive(Clone, Debug, PartialEq)]
pub struct TableSample {
    /// The method.
    pub method: Ident,
    /// Sample size.
    pub args: Vec<Expr>,
    /// The seed.
    pub seed: Option<Expr>,
}

/// A join and its right side.
#[derive(Clone, Debug, PartialEq)]
pub struct Join {
    /// Kind of the join.
    pub kind: JoinKind,
    /// The right side.
    pub relation: Relation,
    /// ON or USING.
    pub condition: JoinCondition,
}

/// Kind of the join.
#[derive(Clone, Debug, PartialEq)]
pub enum JoinKind {
    /// `[INNER] JOIN`.
    Inner,
    /// `LEFT [OUTER] JOIN`.
    Left,
    /// `RIGHT [OUTER] JOIN`.
    Right,
    /// `FULL [OUTER] JOIN`.
    Full,
    /// CROSS JOIN.
    Cross,
    /// `[LEFT | RIGHT] SEMI JOIN`.
    Semi(JoinSide),
    /// `[LEFT | RIGHT] ANTI JOIN`.
    Anti(JoinSide),
    /// ASOF, LT and SPLICE JOIN.
    Asof(AsofJoin),
    /// WINDOW JOIN.
    Window(Box<WindowJoin>),
    /// HORIZON JOIN.
    Horizon(Box<HorizonJoin>),
}

/// A side of a join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinSide {
    /// The left one.
    Left,
    /// The right one.
    Right,
}

/// Condition of a join.
#[derive(Clone, Debug, PartialEq)]
pub enum JoinCondition {
    /// No condition.
    None,
    /// NATURAL: by all columns of the same name.
    Natural,
    /// `ON condition`.
    On(Expr),
    /// `USING (columns)`, and `ON (columns)` of time joins.
    Using(Vec<Ident>),
}
