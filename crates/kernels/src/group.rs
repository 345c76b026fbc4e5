//! Rows by key: which group a row is of ([`table`], [`dense`] where keys are alike, [`keys`] where nothing is folded,
//! [`planes`] where groups are numbered, `few` where they are a handful), and what is kept of each group ([`fold`]).
//!
//! A key is one word or two; what it stands for is its maker's to know. Rows come a batch at a time as slices. What is
//! kept of a group is one 64-bit word for each [`Fold`], so that groups are a plain array, are added to in a loop for
//! each fold, and are joined with those of another thread without being understood.

mod dense;
mod digits;
mod few;
pub mod fold;
mod keys;
pub mod planes;
pub mod table;

pub use digits::{DigitWords, Digits};
pub use fold::{Fold, FoldInput, FoldValues, Folds, Pick, float_of_order, order_of_float};
pub use planes::{GroupPlanes, add_codes, extend_bytes, run_ends};
pub use table::{GroupKey, GroupTable, by_partition};
