//! The write-ahead log: commits in order, durable before they are acknowledged.
//!
//! Reading order: [`columns`] encoding of a column; [`record`] encoding of a commit; [`gathered`] rows of many commits
//! read as one run; [`log`] files of records: appended, synced, replayed, recycled; [`mark`] a lower bound of the
//! durable log; [`checkpoint`] the rows that replace old log files; [`inspect`] reading the log without changes.

pub mod checkpoint;
pub mod columns;
pub mod gathered;
pub mod inspect;
pub mod log;
pub mod mark;
pub mod record;
