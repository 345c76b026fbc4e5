//! Pure loops over slices: no files, no tables, no errors. A fast loop has a plain twin that defines it.
//!
//! [`min_max()`] bounds; [`sort`] the order of timestamps; [`gather()`] rows by number; [`merge()`] two sorted runs.
#![forbid(unsafe_code)]

pub mod gather;
pub mod merge;
pub mod min_max;
pub mod sort;

pub use gather::{gather, gather_bits, gather_slice, gather_values, rows_set};
pub use merge::{Stretch, merge, merge_columns, merge_slices};
pub use min_max::{min_max, min_max_f32, min_max_f64};
pub use sort::{is_sorted, sort_permutation};
