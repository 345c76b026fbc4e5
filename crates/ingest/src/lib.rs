//! Rows in: parsed, committed and published.
#![forbid(unsafe_code)]

pub mod line;
