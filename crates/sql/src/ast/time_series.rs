//! Clauses of time series: SAMPLE BY, LATEST ON, joins by time.

use super::{Expr, Ident};
use crate::Span;

/// `15m`: a number and a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Duration {
    /// The number, with its sign; 1 if none is written.
    pub count: String,
    /// The unit.
    pub unit: DurationUnit,
    /// Where it stands.
    pub span: Span,
}

/// Units of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DurationUnit {
    /// `n`, nanoseconds.
    Nanosecond,
    /// `U`, microseconds.
    Microsecond,
    /// `T`, milliseconds.
    Millisecond,
    /// `s`, seconds.
    Second,
    /// `m`, minutes.
    Minute,
    /// `h`, hours.
    Hour,
    /// `d`, days.
    Day,
    /// `w`, weeks.
    Week,
    /// `M`, months.
    Month,
    /// `y`, years.
    Year,
}

/// `SAMPLE BY stride [FROM lo] [TO hi] [FILL (…)] [ALIGN TO …]`.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleBy {
    /// The length of a bucket.
    pub stride: Offset,
    /// The start of the first bucket.
    pub from: Option<Expr>,
    /// The end of the last bucket.
    pub to: Option<Expr>,
    /// What buckets without rows have.
    pub fill: Option<Fill>,
    /// Where buckets begin; `None` for the calendar.
    pub align: Option<Alignment>,
    /// Where it stands.
    pub span: Span,
}

/// FILL.
#[derive(Clone, Debug, PartialEq)]
pub struct Fill {
    /// One for all aggregates, or one for each.
    pub values: Vec<FillValue>,
}

/// What a bucket without rows has.
#[derive(Clone, Debug, PartialEq)]
pub enum FillValue {
    /// NONE: there is no row.
    None,
    /// NULL.
    Null,
    /// PREV: the value before, of another aggregate if one is named.
    Prev(Option<Ident>),
    /// LINEAR: the value between those around.
    Linear,
    /// A constant.
    Constant(Expr),
}

/// ALIGN TO.
#[derive(Clone, Debug, PartialEq)]
pub enum Alignment {
    /// FIRST OBSERVATION: with the first row.
    FirstObservation,
    /// CALENDAR [TIME ZONE zone] [WITH OFFSET offset].
    Calendar {
        /// The zone.
        zone: Option<Expr>,
        /// How far the boundaries are moved.
        offset: Option<Expr>,
    },
}

/// `LATEST ON timestamp PARTITION BY keys`, and the older `LATEST BY keys`.
#[derive(Clone, Debug, PartialEq)]
pub struct LatestOn {
    /// The time; `None` for the designated timestamp.
    pub timestamp: Option<Expr>,
    /// The keys, at least one.
    pub keys: Vec<Expr>,
    /// Where it stands.
    pub span: Span,
}

/// ASOF, LT or SPLICE JOIN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsofJoin {
    /// Which of them.
    pub kind: AsofKind,
    /// Whether rows without a match are kept, where it is said: DuckDB's `ASOF LEFT JOIN` and `ASOF INNER JOIN`.
    pub keeps_left: Option<bool>,
    /// TOLERANCE.
    pub tolerance: Option<Duration>,
}

/// Joins to the latest row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsofKind {
    /// ASOF: not later.
    Asof,
    /// LT: earlier.
    Lt,
    /// SPLICE: both ways.
    Splice,
}

/// `WINDOW JOIN … RANGE BETWEEN lower AND upper [INCLUDE | EXCLUDE PREVAILING]`.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowJoin {
    /// The start of the window.
    pub lower: WindowBound,
    /// The end of the window.
    pub upper: WindowBound,
    /// Whether the last row before the window counts; `None` if nothing is said.
    pub includes_prevailing: Option<bool>,
}

/// A bound of the window of a WINDOW JOIN.
#[derive(Clone, Debug, PartialEq)]
pub enum WindowBound {
    /// CURRENT ROW.
    CurrentRow,
    /// So much before.
    Preceding(Offset),
    /// So much after.
    Following(Offset),
}

/// A length of time.
#[derive(Clone, Debug, PartialEq)]
pub enum Offset {
    /// A constant: `15m`, `1 minute`.
    Duration(Duration),
    /// An expression, with the unit behind it; without one it counts in the unit of the timestamps.
    Expr {
        /// The number.
        expr: Box<Expr>,
        /// The unit.
        unit: Option<DurationUnit>,
    },
}

/// `HORIZON JOIN`; of several the last has the grid.
#[derive(Clone, Debug, PartialEq)]
pub struct HorizonJoin {
    /// The offsets.
    pub grid: Option<HorizonGrid>,
    /// The name of the offset's columns.
    pub alias: Option<Ident>,
}

/// The offsets of a HORIZON JOIN.
#[derive(Clone, Debug, PartialEq)]
pub enum HorizonGrid {
    /// `RANGE FROM a TO b STEP c`.
    Range {
        /// The first offset.
        from: Offset,
        /// The last offset.
        to: Offset,
        /// The distance between them.
        step: Offset,
    },
    /// `LIST (a, b, …)`.
    List(Vec<Offset>),
}
