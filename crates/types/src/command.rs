//! Changes of schema and content other than rows: the requests of DDL statements to the commit thread.
//!
//! A command contains names; the commit checks their existence, in the order of the log.

use crate::{ColumnType, PartitionBy, Schedule, TableId, Ttl, ViewState};

#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    CreateTable(CreateTable),
    DropTable {
        table: String,
        if_exists: bool,
    },
    Truncate {
        table: String,
    },
    RenameTable {
        table: String,
        to: String,
    },
    AddColumn {
        table: String,
        column: String,
        column_type: ColumnType,
        if_not_exists: bool,
    },
    DropColumn {
        table: String,
        column: String,
        if_exists: bool,
    },
    RenameColumn {
        table: String,
        column: String,
        to: String,
    },
    /// Sets the TTL; `None` keeps rows forever.
    SetTtl {
        table: String,
        ttl: Option<Ttl>,
    },
    /// Sets the expected lateness of rows in microseconds; `None` uses the observed lateness.
    SetLag {
        table: String,
        lag_us: Option<u64>,
    },
    /// Sets the upsert keys: rows with equal values in the columns `keys` replace each other. Empty without upsert
    /// keys.
    SetDedup {
        table: String,
        keys: Vec<String>,
    },
    CreateView(CreateView),
    DropView {
        view: String,
        is_materialized: bool,
        if_exists: bool,
    },
    /// Sets the refresh schedule of a materialized view.
    SetRefresh {
        view: String,
        schedule: Schedule,
    },
    /// Sets the largest lateness of base rows that a materialized view includes; `None` for any.
    SetRefreshLimit {
        view: String,
        limit: Option<Ttl>,
    },
    /// Records the progress of a materialized view if no row changes.
    SetViewState {
        view: TableId,
        state: ViewState,
    },
    /// Drops the partitions whose interval starts at one of `partitions`, in the unit of the table's timestamp.
    DropPartitions {
        table: String,
        partitions: Vec<i64>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateTable {
    pub name: String,
    pub columns: Vec<(String, ColumnType)>,
    /// The name of the designated timestamp column.
    pub designated: Option<String>,
    pub partition_by: PartitionBy,
    pub ttl: Option<Ttl>,
    /// Expected lateness of rows in microseconds; `None` uses the observed lateness.
    pub lag_us: Option<u64>,
    /// Names of the upsert keys.
    pub dedup: Vec<String>,
    pub if_not_exists: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateView {
    /// The columns, and for a materialized view the options of its storage.
    pub table: CreateTable,
    /// The query as written.
    pub sql: String,
    /// The base table and the schedule of a materialized view.
    pub materialized: Option<(String, Schedule)>,
    /// Replaces an existing view of the name, except a materialized one.
    pub or_replace: bool,
}
