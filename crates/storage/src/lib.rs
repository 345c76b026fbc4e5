//! Tables on disk and in staging: immutable segments, committed rows not yet in segments, and the manifest that
//! says which of them make up a table. Synchronous, starts no threads, never asks the time.
//!
//! Reading order, each file one step above the ones before it:
//! [`fs`] every file operation; [`block`] a column's rows as read; [`cache`] blocks in memory by budget;
//! [`segment`] the immutable file; [`symbol`] dictionaries; [`staging`] committed rows in memory;
//! [`manifest`] the switch; [`snapshot`] what a reader pins; [`merge`] staging into partitions.
#![forbid(unsafe_code)]

pub mod block;
pub mod cache;
pub mod error;
pub mod fs;
pub mod segment;
pub mod snapshot;
pub mod staging;
pub mod symbol;

pub use block::{Block, BlockData, Bounds, Zone};
pub use error::{Error, Result};
pub use segment::Segment;
pub use snapshot::TableSnapshot;
pub use staging::Run;
pub use symbol::SymbolMap;
