//! Time-series clauses: SAMPLE BY, LATEST ON, time joins.

use super::{Expr, Ident};
use crate::Span;

/// `15m`: a number and a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Duration {
    /// Number with sign; 1 if omitted.
    pub count: String,
    /// The unit.
    pub unit: DurationUnit,
    /// Position in the statement text.
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
    /// Values of empty buckets.
    pub fill: Option<Fill>,
    /// Alignment of the buckets; `None` for the calendar.
    pub align: Option<Alignment>,
    /// Position in the statement text.
    pub span: Span,
}

/// FILL.
#[derive(Clone, Debug, PartialEq)]
pub struct Fill {
    /// One value for all aggregates, or one value per aggregate.
    pub values: Vec<FillValue>,
}

/// Value of an aggregate in an empty bucket.
#[derive(Clone, Debug, PartialEq)]
pub enum FillValue {
    /// NONE: an empty bucket produces no row.
    None,
    /// NULL.
    Null,
    /// PREV: value of the previous bucket, optionally of another aggregate.
    Prev(Option<Ident>),
    /// LINEAR: linear interpolation between the neighbouring buckets.
    Linear,
    /// A constant.
    Constant(Expr),
}

/// ALIGN TO.
#[derive(Clone, Debug, PartialEq)]
pub enum Alignment {
    /// FIRST OBSERVATION: buckets start at the first row.
    FirstObservation,
    /// CALENDAR [TIME ZONE zone] [WITH OFFSET offset].
    Calendar {
        /// The zone.
        zone: Option<Expr>,
        /// Offset of the bucket boundaries.
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
    /// Position in the statement text.
    pub span: Span,
}

/// ASOF, LT or SPLICE JOIN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsofJoin {
    /// Variant.
    pub kind: AsofKind,
    /// True for `ASOF LEFT JOIN`, false for `ASOF INNER JOIN` (DuckDB); `None` if omitted.
    pub keeps_left: Option<bool>,
    /// TOLERANCE.
    pub tolerance: Option<Duration>,
}

/// Kinds of as-of joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsofKind {
    /// ASOF: latest row that is not later than the left row.
    Asof,
    /// LT: latest row that is strictly earlier than the left row.
    Lt,
    /// SPLICE: as-of join in both directions.
    Splice,
}

/// `WINDOW JOIN … RANGE BETWEEN lower AND upper [INCLUDE | EXCLUDE PREVAILING]`.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowJoin {
    /// The start of the window.
    pub lower: WindowBound,
    /// The end of the window.
    pub upper: WindowBound,
    /// True for INCLUDE PREVAILING, false for EXCLUDE PREVAILING; `None` if omitted.
    pub includes_prevailing: Option<bool>,
}

/// A bound of the window of a WINDOW JOIN.
#[derive(Clone, Debug, PartialEq)]
pub enum WindowBound {
    /// CURRENT ROW.
    CurrentRow,
    /// Offset before the current row.
    Preceding(Offset),
    /// Offset after the current row.
    Following(Offset),
}

/// A duration.
#[derive(Clone, Debug, PartialEq)]
pub enum Offset {
    /// A constant: `15m`, `1 minute`.
    Duration(Duration),
    /// An expression followed by a unit; the default is the unit of the timestamps.
    Expr {
        /// The number.
        expr: Box<Expr>,
        /// The unit.
        unit: Option<DurationUnit>,
    },
}

/// `HORIZON JOIN`; if a query has several, the last contains the grid.
#[derive(Clone, Debug, PartialEq)]
pub struct HorizonJoin {
    /// The offsets.
    pub grid: Option<HorizonGrid>,
    /// Alias of the offset columns.
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
        /// Distance between two offsets.
        step: Offset,
    },
    /// `LIST (a, b, …)`.
    List(Vec<Offset>),
}
