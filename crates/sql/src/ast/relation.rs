//! FROM: tables, sub-queries, functions, and how they are joined.

use super::{
    AsofJoin, Expr, FunctionCall, HorizonJoin, Ident, ObjectName, Pivot, Query, TypeName, Unpivot, WindowJoin,
};
use crate::Span;

/// An item of FROM: a relation and what is joined to it, from left to right.
#[derive(Clone, Debug, PartialEq)]
pub struct TableRef {
    /// The first relation.
    pub relation: Relation,
    /// What is joined to it.
    pub joins: Vec<Join>,
}

/// A relation with what stands behind it.
#[derive(Clone, Debug, PartialEq)]
pub struct Relation {
    /// What it is.
    pub kind: RelationKind,
    /// TIMESTAMP(column): the time of its rows.
    pub timestamp: Option<Ident>,
    /// TABLESAMPLE.
    pub sample: Option<TableSample>,
    /// The name it goes by.
    pub alias: Option<Alias>,
    /// Where it stands.
    pub span: Span,
}

/// The kinds of relations.
#[derive(Clone, Debug, PartialEq)]
pub enum RelationKind {
    /// A table, a view, a common table expression, or a file in quotes.
    Table {
        /// Its name.
        name: ObjectName,
    },
    /// `@name`, which DECLARE gives a meaning.
    Variable(Ident),
    /// A function that gives rows.
    Function {
        /// Whether LATERAL stands before it.
        lateral: bool,
        /// The call.
        call: Box<FunctionCall>,
        /// WITH ORDINALITY.
        with_ordinality: bool,
    },
    /// A query in parentheses.
    Query {
        /// Whether LATERAL stands before it.
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
    /// The columns; empty for their own names.
    pub columns: Vec<AliasColumn>,
}

/// A column of an alias.
#[derive(Clone, Debug, PartialEq)]
pub struct AliasColumn {
    /// The name.
    pub name: Ident,
    /// The type, as functions that return records need it.
    pub data_type: Option<TypeName>,
}

/// `TABLESAMPLE method (size) [REPEATABLE (seed)]`.
#[derive(Clone, Debug, PartialEq)]
pub struct TableSample {
    /// The method.
    pub method: Ident,
    /// How much.
    pub args: Vec<Expr>,
    /// The seed.
    pub seed: Option<Expr>,
}

/// A join and its right side.
#[derive(Clone, Debug, PartialEq)]
pub struct Join {
    /// Which join.
    pub kind: JoinKind,
    /// The right side.
    pub relation: Relation,
    /// ON or USING.
    pub condition: JoinCondition,
}

/// Which join.
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

/// How the rows of a join belong together.
#[derive(Clone, Debug, PartialEq)]
pub enum JoinCondition {
    /// Nothing is said.
    None,
    /// NATURAL: by all columns of the same name.
    Natural,
    /// `ON condition`.
    On(Expr),
    /// `USING (columns)`, and `ON (columns)` of joins by time.
    Using(Vec<Ident>),
}
