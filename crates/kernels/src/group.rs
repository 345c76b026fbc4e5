//! Groups rows by key and accumulates values per group.
//!
//! The modules find the group of a row: [`table`] by hashing, [`dense`] for similar keys, [`keys`] for keys without
//! accumulators, [`planes`] for numbered groups, `few` for at most ten groups, `runs` for adjacent rows of one group.
//! [`fold`] holds the accumulators.
//!
//! A key is one word or two words; only the caller knows its meaning. Rows arrive as slices, a batch at a time. The
//! state of a group is one 64-bit word for each [`Fold`]. Groups are therefore a plain array, are updated in one loop
//! per fold, and are merged with the groups of another thread without knowledge of their meaning.

mod dense;
mod digits;
mod few;
pub mod fold;
mod group_key;
mod keys;
pub mod planes;
mod runs;
pub mod table;

pub use digits::{DigitWords, Digits};
pub use fold::{Fold, FoldInput, FoldValues, Folds, Pick, float_of_order, order_of_float};
pub use group_key::GroupKey;
pub use planes::{GroupPlanes, add_codes, extend_bytes, run_ends};
pub use table::{GroupTable, by_partition};
