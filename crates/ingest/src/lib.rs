//! Parses, commits and publishes rows. Synchronous; starts no threads, and the clock is an argument.
//!
//! Reading order: [`line`] and [`csv`] text to batches, [`order`] time order; [`convert`] a column to the table's type;
//! [`catalog`] the state for the next commit; [`commit`] batches and commands to operations; [`wal`] operations to the
//! log, the commit point; [`apply`] operations to the versions that readers see; [`times`] changed times for
//! materialized views; [`recover`] the recovery at open.
#![forbid(unsafe_code)]

pub mod apply;
pub mod catalog;
pub mod commit;
pub mod convert;
pub mod csv;
pub mod dedup;
pub mod error;
pub mod line;
pub mod order;
pub mod recover;
pub mod relocate;
pub mod times;
pub mod wal;

pub use catalog::Catalog;
pub use error::{Error, Result};
