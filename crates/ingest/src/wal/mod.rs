//! The write-ahead log: what is committed, in order, durable before anybody is told.
//!
//! Reading order: [`columns`] a column as bytes; [`record`] a commit as bytes; [`log`] files of records: appended,
//! synced, replayed, recycled; [`checkpoint`] what lets go of old ones.

pub mod checkpoint;
pub mod columns;
pub mod log;
pub mod record;
