//! Converts Arrow columns to Tidalite's: rows of a data frame to a [`Batch`](tidalite_types::Batch) or to text.
//!
//! Input: record batches of any producer, whose types are checked and whose values are trusted only as far as Arrow
//! guarantees. Output: batches for the commit ([`rows`]), or line protocol for any server ([`lines`]). Nothing is
//! rounded, truncated or replaced silently: a value that cannot be stored is an error that names column, row and value.
//! The size of converted rows is limited by the limits of one commit, independent of the size of the input.
//!
//! Reading order: [`error`]; [`ipc`] streams of record batches from clients; [`symbols`] the choice of SYMBOL columns;
//! [`rows`] conversions of types, [`values`], [`texts`], [`lists`] conversions of values, [`unpack`] dictionaries and
//! runs, [`room`] limits; [`pieces`] commits; [`lines`] text.
#![forbid(unsafe_code)]

mod digits;
pub mod error;
pub mod ipc;
pub mod lines;
mod lists;
pub mod pieces;
mod room;
pub mod rows;
pub mod symbols;
mod texts;
mod unpack;
mod values;

pub use error::{Error, Result};
pub use ipc::{IpcDecoder, IpcError, IpcLimits};
pub use lines::{At, LineOptions, LinePlan, Table};
pub use pieces::Pieces;
pub use rows::{RowOptions, RowPlan};
pub use symbols::Symbols;
pub use unpack::{byte_count, compact, is_packed, unpacked};
