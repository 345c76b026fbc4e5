//! Tidalite as a library: opens a folder, writes rows, runs SQL.
//!
//! Reading order: [`config`] settings; [`error`] errors; [`database`] open, recover, close; `writer` the commit thread;
//! `load` statements with many rows, `row_sink` rows that become one commit; `jobs` background jobs, `views` maintenance
//! of materialized views; `machine` available memory; [`session`] statements, `syntax` syntax checks; [`transaction`]
//! several statements as one commit; [`metrics`] counters. [`import`] file imports, [`mod@copy`] COPY from clients.
//! Maintenance of a folder: `folder` the lock; [`check`] integrity checks; [`repair`]; [`destination`], [`backup`],
//! [`restore`].
#![forbid(unsafe_code)]

pub mod backup;
pub mod check;
pub mod config;
pub mod copy;
pub mod database;
pub mod destination;
pub mod error;
mod folder;
pub mod import;
mod jobs;
mod load;
mod machine;
pub mod metrics;
pub mod repair;
pub mod restore;
mod row_sink;
pub mod session;
mod shared;
mod syntax;
mod threads;
pub mod transaction;
mod views;
mod writer;

pub use config::{DatabaseConfig, running_max};
pub use database::Database;
pub use error::{Error, ErrorKind, Result, SqlState};
pub use metrics::Metrics;
pub use row_sink::RowSink;
pub use session::{
    Activity, Described, Frame, OutputColumn, Parameter, PgColumn, QueryOptions, Response, Rows, SessionContext,
    WATCHDOG,
};
pub use shared::DatabaseState;
pub use syntax::validate;
pub use threads::spawn_detached;
pub use tidalite_ingest::line;
pub use tidalite_kernels::{DECIMAL_BYTES, ask_for_long_turns, ask_for_short_turns, short_decimal, short_decimals};
pub use tidalite_query::bytes_of_rows as row_bytes;
pub use tidalite_query::{FileAccess, FrontEndCounts, Setting, SettingChange, TimeZone, settings};
pub use tidalite_types as types;
pub use transaction::{Isolation, Transaction};

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod late_tests;
#[cfg(test)]
mod load_tests;
#[cfg(test)]
mod log_end_tests;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod upkeep_tests;
#[cfg(test)]
mod view_crash_tests;
