//! SQL in, record batches out. The only crate that depends on DataFusion.
//!
//! Reading order: [`dialect`] parses text to a [`statement`]; [`names`] compares names without case; [`parameters`]
//! binds values; [`binder`] builds plans of syntax trees; [`catalog`] is the view of the database that a query gets;
//! [`tables`] presents it as DataFusion's catalog, [`pg_catalog`] as PostgreSQL's; [`functions`] are our own;
//! [`engine`] plans and runs; [`plan`] rewrites plans; [`calendar`] has strides, time zones and time intervals; [`exec`] has operators; [`scan`] reads tables,
//! [`frame`] reads batches of the caller; [`access`] is which files and hosts may be reached; [`export`] writes files;
//! [`door`] converts columns to Arrow and back; [`cancel`], [`error`].
#![forbid(unsafe_code)]

pub mod access;
mod binder;
mod calendar;
pub mod cancel;
pub mod catalog;
mod decimal;
mod dialect;
pub mod door;
pub mod engine;
pub mod error;
mod exec;
pub mod export;
pub mod frame;
mod functions;
mod names;
mod parameters;
mod pg_catalog;
mod plan;
mod scan;
pub mod statement;
mod tables;

pub use access::FileAccess;
pub use calendar::zone::TimeZone;
pub use cancel::CancelToken;
pub use catalog::{
    ActivityEntry, Catalog, MergeWork, Notice, OverView, SessionContext, SettingChange, StatementStatistics,
    TableMetrics, ViewMetrics,
};
pub use dialect::{parse, parse_bound, validate};
pub use door::batches::{Target, to_batch};
pub use engine::{
    AdmissionCounts, Bucketing, Conflicting, Described, Engine, EngineConfig, FrontEndCounts, Lifted,
    MaterializedShape, OutputColumn, Part, PgColumn, QueryResult, lifted, local_micros,
};
pub use error::{Error, Result};
pub use exec::width::bytes_of_rows;
pub use export::{CsvStyle, FileWriter};
pub use frame::{Frame, renamed};
pub use parameters::Parameter;
pub use pg_catalog::{Setting, settings};
pub use statement::Statement;
pub use tables::in_schema;
pub use tidalite_sql::position_of_name;
