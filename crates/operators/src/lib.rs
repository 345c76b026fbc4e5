//! Loops of operators over Arrow columns, fully optimised. Generic functions are compiled in this crate, not in
//! `query`, which is compiled for size. This crate depends on Arrow, but not on DataFusion or tables.
//!
//! [`group`] groups rows; [`sort`] sorts rows; [`time_join`] joins rows by time; [`text`] processes strings.
//! [`checked`] computes integer arithmetic, [`wide_sums`] exact sums, [`formulas`] floating-point aggregates.
#![forbid(unsafe_code)]

pub mod checked;
pub mod formulas;
pub mod group;
pub mod sort;
pub mod text;
pub mod time_join;
pub mod wide_sums;

/// Longest string that an Arrow view stores inline, in bytes.
pub(crate) const INLINE_BYTES: u32 = 12;
