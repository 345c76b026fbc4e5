//! Joins by time, a stretch of time after the other: which right row each left one has, and the rows' columns.
//!
//! Keys are numbers, times integers of one unit, both sides in order of time. [`pass`] finds partners, the latest right
//! row of each key being in an array; [`windows`] finds those that are around a left row; [`numbers`] makes numbers of
//! keys; [`order`] weaves sources of one side; [`gather`] takes columns by the numbers found.

mod gather;
mod numbers;
mod order;
mod pass;
mod windows;

pub use gather::gathered;
pub use numbers::{IntNumbers, TextNumbers, as_one, coded, pairs};
pub use order::{as_rows, keys_in_order, times_in_order, woven};
pub use pass::{Rows, latest, missing, no_older, partners, resolve};
pub use windows::{Arranged, Next, Reach, Windows};

/// No row, or no key.
pub const NONE: u32 = u32::MAX;

#[cfg(test)]
mod tests;
