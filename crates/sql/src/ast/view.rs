//! Views and materialized views.

use super::{Expr, Ident, ObjectName, Offset, Query, TableStorage, TimeToLive};

/// CREATE VIEW and CREATE MATERIALIZED VIEW.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateView {
    /// True if OR REPLACE is given.
    pub or_replace: bool,
    /// True if IF NOT EXISTS is given.
    pub if_not_exists: bool,
    /// The name.
    pub name: ObjectName,
    /// Column names; empty to use the column names of the query.
    pub columns: Vec<Ident>,
    /// Clauses of a materialized view.
    pub materialized: Option<Box<Materialized>>,
    /// The query; its span locates the query text.
    pub query: Box<Query>,
}

/// Clauses of a materialized view other than the query.
#[derive(Clone, Debug, PartialEq)]
pub struct Materialized {
    /// WITH BASE table.
    pub base: Option<ObjectName>,
    /// REFRESH.
    pub refresh: Option<Refresh>,
    /// Storage clauses after the query.
    pub storage: TableStorage,
}

/// Refresh schedule of a materialized view.
#[derive(Clone, Debug, PartialEq)]
pub struct Refresh {
    /// Refresh mode.
    pub mode: RefreshMode,
    /// DEFERRED.
    pub deferred: bool,
    /// PERIOD.
    pub period: Option<Period>,
}

/// Refresh schedule of a materialized view.
#[derive(Clone, Debug, PartialEq)]
pub enum RefreshMode {
    /// IMMEDIATE, INCREMENTAL, or no mode.
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

/// PERIOD: a refresh includes only periods that have ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Period {
    /// (LENGTH 1d [TIME ZONE zone] [DELAY 2h]).
    Length {
        /// The length.
        length: Offset,
        /// The zone.
        zone: Option<Expr>,
        /// Delay after the end of the period.
        delay: Option<Offset>,
    },
    /// (SAMPLE BY INTERVAL).
    SampleBy,
}

/// Part of a materialized view to recompute.
#[derive(Clone, Debug, PartialEq)]
pub enum RefreshScope {
    /// INCREMENTAL, or no scope: changed rows only.
    Incremental,
    /// FULL.
    Full,
    /// RANGE FROM a TO b.
    Range {
        /// The first time.
        from: Expr,
        /// End of the range, exclusive.
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
