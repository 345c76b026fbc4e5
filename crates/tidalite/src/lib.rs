//! Tidalite as a library: open a folder, write rows, ask SQL.
//!
//! Reading order: [`config`] what can be set; [`error`] what can go wrong; [`database`] open, recover, close;
//! `writer` the commit thread; `jobs` what runs in the background; [`session`] statements; [`metrics`] what is counted.
#![forbid(unsafe_code)]

pub mod config;
pub mod database;
pub mod error;
mod jobs;
pub mod metrics;
pub mod session;
mod shared;
mod writer;

pub use config::DatabaseConfig;
pub use database::Database;
pub use error::{Error, ErrorKind, Result};
pub use metrics::Metrics;
pub use session::{Activity, OutputColumn, QueryOptions, Response, Rows};
pub use tidalite_ingest::line;
pub use tidalite_types as types;

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod simulation;
