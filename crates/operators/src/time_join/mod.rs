//! Joins rows by time, one time slice after the other: finds the matching right rows and gathers their columns.
//!
//! Keys are codes, times are integers of one unit, and both sides are in time order. [`pass`] finds matches with an
//! array of the latest right row of each key. [`windows`] finds the right rows around a left row. [`numbers`] assigns
//! codes to keys. [`order`] merges the sources of one side. [`gather`] gathers columns by the row numbers found.

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

/// Marks a missing row or key.
pub const NONE: u32 = u32::MAX;

#[cfg(test)]
mod tests;
