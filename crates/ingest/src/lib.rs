//! Rows in: parsed, committed and published. Synchronous, starts no threads; the clock is an argument.
//!
//! Reading order: [`line`] and [`csv`] text to batches, [`order`] in order of time; [`convert`] a column into the table's type; [`catalog`] what the next
//! commit builds on; [`commit`] batches and commands into operations; [`wal`] operations into the log, the commit
//! point; [`apply`] operations into the versions that readers see; [`times`] what materialized views are told; [`recover`] all of it again at open.
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
