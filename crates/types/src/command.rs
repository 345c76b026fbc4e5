//! Changes of schema and content that are not rows: what DDL statements ask of the writer.
//!
//! A command names things; whether they exist is decided at the commit, in the order of the log.

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
    },
    RenameColumn {
        table: String,
        column: String,
        to: String,
    },
    /// `None` keeps rows for ever.
    SetTtl {
        table: String,
        ttl: Option<Ttl>,
    },
    /// How late rows are expected to be, in microseconds; `None` goes by what is observed.
    SetLag {
        table: String,
        lag_us: Option<u64>,
    },
    /// Rows with the same values in the columns `keys` replace each other; without keys they do not.
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
    /// When a materialized view is refreshed.
    SetRefresh {
        view: String,
        schedule: Schedule,
    },
    /// How late rows of the base may be that a materialized view takes in; `None` for any.
    SetRefreshLimit {
        view: String,
        limit: Option<Ttl>,
    },
    /// How far a materialized view has come, when no row changes.
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
    /// How late rows are expected to be, in microseconds; `None` to go by what is observed.
    pub lag_us: Option<u64>,
    /// Names of the upsert keys.
    pub dedup: Vec<String>,
    pub if_not_exists: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateView {
    /// What it shows, and for one that is materialized how that is kept.
    pub table: CreateTable,
    /// The query as it was written.
    pub sql: String,
    /// The table it follows and when, when it is materialized.
    pub materialized: Option<(String, Schedule)>,
    /// A view of the name gives way; never one that is materialized.
    pub or_replace: bool,
}
