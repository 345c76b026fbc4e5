//! Function calls and windows.

use super::{Duration, Expr, Ident, ObjectName, OrderItem, Query};
use crate::Span;

/// A call of a function, an aggregate or a window function.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionCall {
    /// The function.
    pub name: ObjectName,
    /// True if DISTINCT precedes the arguments.
    pub distinct: bool,
    /// The arguments.
    pub args: Vec<FunctionArg>,
    /// ORDER BY after the arguments.
    pub order_by: Vec<OrderItem>,
    /// LIMIT after the arguments.
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

impl FunctionCall {
    /// Creates a call without arguments.
    #[must_use]
    pub fn new(name: ObjectName) -> FunctionCall {
        FunctionCall {
            name,
            distinct: false,
            args: Vec::new(),
            order_by: Vec::new(),
            limit: None,
            nulls: None,
            within_group: Vec::new(),
            filter: None,
            over: None,
        }
    }
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
    /// `SELECT …` without its own parentheses.
    Query(Box<Query>),
}

/// Treatment of NULL arguments.
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

/// Content of the parentheses of a window.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowSpec {
    /// Name of the window that this one extends.
    pub base: Option<Ident>,
    /// PARTITION BY.
    pub partition_by: Vec<Expr>,
    /// ORDER BY.
    pub order_by: Vec<OrderItem>,
    /// The frame.
    pub frame: Option<WindowFrame>,
    /// Position in the statement text.
    pub span: Span,
}

/// `ROWS BETWEEN … AND … EXCLUDE …`.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowFrame {
    /// Unit of the bounds.
    pub units: FrameUnits,
    /// The first row.
    pub start: FrameBound,
    /// The last row; `None` for the current row.
    pub end: Option<FrameBound>,
    /// Rows excluded from the frame.
    pub exclusion: Option<FrameExclusion>,
}

/// Unit of the bounds of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameUnits {
    /// Rows.
    Rows,
    /// Values of the column that the window is ordered by.
    Range,
    /// Groups of peer rows in the window order.
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

/// Distance between a bound and the current row.
#[derive(Clone, Debug, PartialEq)]
pub enum FrameOffset {
    /// Number of rows, groups or value units.
    Expr(Expr),
    /// A duration.
    Duration(Duration),
}

/// Rows that EXCLUDE removes from a frame.
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

/// A call whose arguments are separated by keywords.
#[derive(Clone, Debug, PartialEq)]
pub enum SpecialCall {
    /// `EXTRACT(field FROM x)`.
    Extract {
        /// Field of the timestamp, a word or a string.
        field: Ident,
        /// The time.
        operand: Expr,
    },
    /// `POSITION(part IN x)`.
    Position {
        /// String to search for.
        part: Expr,
        /// String to search in.
        operand: Expr,
    },
    /// `SUBSTRING(x FROM start FOR length)`.
    Substring {
        /// The string.
        operand: Expr,
        /// The first character, or a pattern.
        from: Option<Expr>,
        /// The length.
        length: Option<Expr>,
    },
    /// `OVERLAY(x PLACING part FROM start FOR length)`.
    Overlay {
        /// The string.
        operand: Expr,
        /// Replacement string.
        part: Expr,
        /// The first character.
        from: Expr,
        /// Number of characters to replace.
        length: Option<Expr>,
    },
    /// `TRIM(BOTH chars FROM x)`.
    Trim {
        /// The side.
        side: TrimSide,
        /// Characters to remove.
        chars: Option<Expr>,
        /// The string.
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

/// Side on which TRIM removes characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrimSide {
    /// BOTH.
    Both,
    /// LEADING.
    Leading,
    /// TRAILING.
    Trailing,
}
