//! Basic types of Tidalite: columns, tables, partitions and commits, in memory and by name.
//!
//! No files, no threads, no clock, no SQL. All other crates use this one; it uses none of them.
//!
//! Reading order: [`ids`], [`column_type`], [`pg_type`], [`time`], [`interval`], [`jsonb`], [`ttl`], [`uuid`], [`view`],
//! [`schema`], [`bitmap`], [`views`], [`column`], [`batch`], [`command`], [`text`].
#![forbid(unsafe_code)]

pub mod batch;
pub mod bitmap;
pub mod column;
pub mod column_type;
pub mod command;
pub mod error;
pub mod ids;
pub mod interval;
pub mod jsonb;
pub mod pg_type;
pub mod schema;
mod sqlstate;
pub mod text;
pub mod time;
pub mod ttl;
pub mod uuid;
pub mod view;
pub mod views;

pub use batch::{Batch, BatchColumn, BatchTimestamps, LineTimes};
pub use bitmap::Bitmap;
pub use column::{Column, Values};
pub use column_type::ColumnType;
pub use command::Command;
pub use error::ErrorKind;
pub use ids::{ColumnId, SegmentId, SymbolId, TableId, Txn};
pub use interval::Interval;
pub use schema::{ColumnSchema, TableSchema};
pub use sqlstate::SqlState;
pub use time::{EpochUnit, PartitionBy, TimeUnit};
pub use ttl::Ttl;
pub use view::{Materialized, Period, Refresh, Schedule, TimeChange, TimeChangeKind, View, ViewState};
pub use views::{Views, ViewsRef};

/// Rows in a vector: the unit of encoding, zone maps and predicate masks.
pub const VECTOR_ROWS: usize = 1024;
/// Rows in a block: 64 vectors, the unit of work of a thread.
pub const BLOCK_ROWS: usize = 64 * VECTOR_ROWS;
/// The longest table or column name, in bytes of UTF-8.
pub const NAME_BYTES_MAX: usize = 127;
/// The most columns a table may have, dropped ones not counted.
pub const COLUMNS_MAX: usize = 4096;
