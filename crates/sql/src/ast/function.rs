//! Calls of functions, and windows.

use super::{Duration, Expr, Ident, ObjectName, OrderItem, Query};
use crate::Span;

/// A call of a function, an aggregate or a window function.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionCall {
    /// The function.
    pub name: ObjectName,
    /// Whether DISTINCT stands before the arguments.
    pub distinct: bool,
    /// The arguments.
    pub args: Vec<FunctionArg>,
    /// ORDER BY behind the arguments.
    pub order_by: Vec<OrderItem>,
    /// LIMIT behind the arguments.
    pub limit: Option<Expr>,
    /// IGNORE NULLS or RESPECT NULLS.
    pub nulls: Option<NullTreatment>,
    /// WITHIN GROUP (ORDER BY …).
    pub within_group: Vec<OrderItem>,
    /// FILTER (WHERE …).
    pub filter: Option<Expr>,
    /// OVER.
    pub over: Option<Over>,
}

/// An argument of a function.
#[derive(Clone, Debug, PartialEq)]
pub enum FunctionArg {
    /// A value.
    Expr(Expr),
    /// `name => value`, `name := value`.
    Named {
        /// The parameter.
        name: Ident,
        /// The value.
        value: Expr,
    },
    /// `*`, `t.*`.
    Wildcard(Option<ObjectName>),
    /// `SELECT …` without parentheses of its own.
    Query(Box<Query>),
}

/// What becomes of NULLs among the arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NullTreatment {
    /// IGNORE NULLS.
    Ignore,
    /// RESPECT NULLS.
    Respect,
}

/// The window of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Over {
    /// `OVER w`.
    Name(Ident),
    /// `OVER (…)`.
    Spec(WindowSpec),
}

/// What stands in the parentheses of a window.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowSpec {
    /// The window that it builds on.
    pub base: Option<Ident>,
    /// PARTITION BY.
    pub partition_by: Vec<Expr>,
    /// ORDER BY.
    pub order_by: Vec<OrderItem>,
    /// The frame.
    pub frame: Option<WindowFrame>,
    /// Where it stands.
    pub span: Span,
}

/// `ROWS BETWEEN … AND … EXCLUDE …`.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowFrame {
    /// What the bounds count.
    pub units: FrameUnits,
    /// The first row.
    pub start: FrameBound,
    /// The last row; `None` for the current row.
    pub end: Option<FrameBound>,
    /// The rows that are left out.
    pub exclusion: Option<FrameExclusion>,
}

/// What the bounds of a frame count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameUnits {
    /// Rows.
    Rows,
    /// Values of the column that the window is ordered by.
    Range,
    /// Groups of rows that are equal in that order.
    Groups,
    /// `CUMULATIVE`: all rows up to the current one.
    Cumulative,
}

/// A bound of a frame.
#[derive(Clone, Debug, PartialEq)]
pub enum FrameBound {
    /// CURRENT ROW.
    CurrentRow,
    /// `n PRECEDING`, `2 hours PRECEDING`; `None` for UNBOUNDED.
    Preceding(Option<Box<FrameOffset>>),
    /// `n FOLLOWING`; `None` for UNBOUNDED.
    Following(Option<Box<FrameOffset>>),
}

/// How far a bound is from the current row.
#[derive(Clone, Debug, PartialEq)]
pub enum FrameOffset {
    /// So many rows, groups or units of the value.
    Expr(Expr),
    /// A length of time.
    Duration(Duration),
}

/// What EXCLUDE leaves out of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameExclusion {
    /// NO OTHERS.
    NoOthers,
    /// CURRENT ROW.
    CurrentRow,
    /// GROUP.
    Group,
    /// TIES.
    Ties,
}

/// A call whose arguments have words between them.
#[derive(Clone, Debug, PartialEq)]
pub enum SpecialCall {
    /// `EXTRACT(field FROM x)`.
    Extract {
        /// The part of the time, a word or a text.
        field: Ident,
        /// The time.
        operand: Expr,
    },
    /// `POSITION(part IN x)`.
    Position {
        /// The text that is looked for.
        part: Expr,
        /// The text that is looked through.
        operand: Expr,
    },
    /// `SUBSTRING(x FROM start FOR length)`.
    Substring {
        /// The text.
        operand: Expr,
        /// The first character, or a pattern.
        from: Option<Expr>,
        /// The length.
        length: Option<Expr>,
    },
    /// `OVERLAY(x PLACING part FROM start FOR length)`.
    Overlay {
        /// The text.
        operand: Expr,
        /// The text that is put into it.
        part: Expr,
        /// The first character.
        from: Expr,
        /// How many characters it replaces.
        length: Option<Expr>,
    },
    /// `TRIM(BOTH chars FROM x)`.
    Trim {
        /// The side.
        side: TrimSide,
        /// The characters that are cut off.
        chars: Option<Expr>,
        /// The text.
        operand: Expr,
    },
    /// `CEIL(x TO unit)`, `FLOOR(x TO unit)`.
    Round {
        /// The function.
        name: Ident,
        /// The time.
        operand: Expr,
        /// The unit.
        unit: Ident,
    },
    /// A function that is called without parentheses, such as CURRENT_TIMESTAMP.
    Keyword(Ident),
}

/// The side that TRIM cuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrimSide {
    /// BOTH.
    Both,
    /// LEADING.
    Leading,
    /// TRAILING.
    Trailing,
}
