//! Views and materialized views.

use super::{Expr, Ident, ObjectName, Offset, Query, TableStorage, TimeToLive};

/// CREATE VIEW and CREATE MATERIALIZED VIEW.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateView {
    /// Whether OR REPLACE is said.
    pub or_replace: bool,
    /// Whether an existing view is left alone.
    pub if_not_exists: bool,
    /// The name.
    pub name: ObjectName,
    /// The names of the columns; empty for those of the query.
    pub columns: Vec<Ident>,
    /// What a materialized view says besides.
    pub materialized: Option<Box<Materialized>>,
    /// The query, whose place says what its text is.
    pub query: Box<Query>,
}

/// What a materialized view says besides its query.
#[derive(Clone, Debug, PartialEq)]
pub struct Materialized {
    /// WITH BASE table.
    pub base: Option<ObjectName>,
    /// REFRESH.
    pub refresh: Option<Refresh>,
    /// What stands behind the query.
    pub storage: TableStorage,
}

/// When a view is refreshed.
#[derive(Clone, Debug, PartialEq)]
pub struct Refresh {
    /// When.
    pub mode: RefreshMode,
    /// DEFERRED.
    pub deferred: bool,
    /// PERIOD.
    pub period: Option<Period>,
}

/// When a view is refreshed.
#[derive(Clone, Debug, PartialEq)]
pub enum RefreshMode {
    /// IMMEDIATE, INCREMENTAL, or nothing.
    Immediate,
    /// MANUAL.
    Manual,
    /// EVERY interval [START time] [TIME ZONE zone].
    Every {
        /// The interval, `10m` or `'10m'`.
        interval: Offset,
        /// The first time.
        start: Option<Expr>,
        /// The zone.
        zone: Option<Expr>,
    },
}

/// PERIOD: only what has ended is taken in.
#[derive(Clone, Debug, PartialEq)]
pub enum Period {
    /// (LENGTH 1d [TIME ZONE zone] [DELAY 2h]).
    Length {
        /// The length.
        length: Offset,
        /// The zone.
        zone: Option<Expr>,
        /// How long after its end.
        delay: Option<Offset>,
    },
    /// (SAMPLE BY INTERVAL).
    SampleBy,
}

/// The part of a view that is computed again.
#[derive(Clone, Debug, PartialEq)]
pub enum RefreshScope {
    /// INCREMENTAL, or nothing: what changed.
    Incremental,
    /// FULL.
    Full,
    /// RANGE FROM a TO b.
    Range {
        /// The first time.
        from: Expr,
        /// The time past the last.
        to: Expr,
    },
}

/// ALTER MATERIALIZED VIEW.
#[derive(Clone, Debug, PartialEq)]
pub enum AlterView {
    /// RESUME [WAL].
    Resume(ObjectName),
    /// SET TTL.
    SetTtl(ObjectName, TimeToLive),
    /// SET REFRESH LIMIT.
    SetRefreshLimit(ObjectName, TimeToLive),
    /// SET REFRESH.
    SetRefresh(ObjectName, Refresh),
}
