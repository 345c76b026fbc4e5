//! Changes of schema and content that are not rows: what DDL statements ask of the writer.
//!
//! A command names things; whether they exist is decided at the commit, in the order of the log.

use crate::{ColumnType, PartitionBy, Ttl};

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
    /// Rows with the same values in the columns `keys` replace each other; without keys they do not.
    SetDedup {
        table: String,
        keys: Vec<String>,
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
    /// Names of the upsert keys.
    pub dedup: Vec<String>,
    pub if_not_exists: bool,
}
