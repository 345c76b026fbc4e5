//! The loops of operators over Arrow's columns, fully optimised: what is generic in them is compiled here, not in
//! `query`, which is compiled for its size. Knows Arrow, neither DataFusion nor tables.
//!
//! [`group`] makes groups of rows; [`sort`] orders them; [`time_join`] joins them by time; [`text`] looks at texts.
//! [`checked`] computes integer arithmetic, [`wide_sums`] exact sums, [`formulas`] floating-point aggregates.
#![forbid(unsafe_code)]

pub mod checked;
pub mod formulas;
pub mod group;
pub mod sort;
pub mod text;
pub mod time_join;
pub mod wide_sums;

/// The longest text that a view of Arrow's holds itself.
pub(crate) const INLINE_BYTES: u32 = 12;
