//! The write-ahead log: what is committed, in order, durable before anybody is told.
//!
//! Reading order: [`columns`] a column as bytes; [`record`] a commit as bytes; [`gathered`] rows of many
//! commits read as one run; [`log`] files of records: appended,
//! synced, replayed, recycled; [`mark`] a lower bound of the durable log; [`checkpoint`] what lets go of old ones;
//! [`inspect`] the log read without touching it.

pub mod checkpoint;
pub mod columns;
pub mod gathered;
pub mod inspect;
pub mod log;
pub mod mark;
pub mod record;
