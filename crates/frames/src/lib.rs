//! Arrow's columns as ours: rows of a data frame on their way into the database, as a [`Batch`](tidalite_types::Batch)
//! or as text.
//!
//! In: record batches of any producer, whose types are checked and whose values are not trusted beyond what Arrow says
//! of them. Out: batches for the commit ([`rows`]), or line protocol for a server that may not be ours ([`lines`]).
//! Nothing is rounded, cut or replaced silently: what has no place is an error that names column, row and value. What
//! rows become is bounded by what one commit may have, however few bytes they come in.
//!
//! Reading order: [`error`]; [`ipc`] streams of record batches from clients; [`symbols`] which columns are SYMBOLs;
//! [`rows`] what becomes of each type, [`values`], [`texts`], [`lists`] its values, [`unpack`] dictionaries and runs,
//! [`room`] how much may be; [`pieces`] commits; [`lines`] the text.
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
