//! Tables on disk and in staging: immutable segments, committed rows not yet in segments, and the manifest that lists
//! the segments of each table. Synchronous; starts no threads and never reads the clock.
//!
//! Reading order, each file one step above the previous ones: [`fs`] every file operation; [`block`] a column's rows as
//! read; [`value_set`] and `text_pattern` conditions of filters; [`cache`] blocks in memory by budget; [`tally`]
//! counters of reads; [`segment`] the immutable file; [`symbol`] dictionaries and [`symbol_file`] their files;
//! [`staging`] committed rows in memory; [`codec`] and [`manifest`] the switch; [`dead`] deletion vectors, [`locate`]
//! the current positions of rows; [`late`] late segments; [`snapshot`] the version that a reader pins; [`tables`] the
//! current version of every table; [`merge`] staging into partitions; [`expiry`] expired partitions.
#![forbid(unsafe_code)]

pub mod block;
pub mod cache;
pub mod codec;
pub mod dead;
pub mod error;
pub mod expiry;
pub mod fs;
pub mod late;
pub mod locate;
pub mod manifest;
pub mod merge;
pub mod rows_by_time;
pub mod segment;
pub mod snapshot;
pub mod staging;
pub mod symbol;
pub mod symbol_file;
pub mod tables;
pub mod tally;
mod text_pattern;
pub mod value_set;

pub use block::{Block, BlockData, Bounds, Sum, Zone};
pub use dead::{DeadRows, Mask};
pub use error::{Damage, Error, Result};
pub use segment::Segment;
pub use snapshot::TableSnapshot;
pub use staging::Run;
pub use symbol::SymbolMap;
pub use tables::Tables;
pub use tally::Tally;
pub use text_pattern::TextPattern;
pub use value_set::ValueSet;
