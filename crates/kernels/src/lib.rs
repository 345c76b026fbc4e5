//! Pure loops over slices: no files, no tables, no errors. A fast loop has a plain twin that defines it.
//!
//! [`min_max()`] bounds.
#![forbid(unsafe_code)]

pub mod min_max;

pub use min_max::{min_max, min_max_f32, min_max_f64};
