//! Files become rows: CSV, read in pieces, parsed on several threads, committed in the order of the file.
//!
//! In: a reader, what is known of the file, where commits go. Out: rows committed, durable as configured, one commit a
//! piece; for each record that is no row its line, the place and why. A table that does not exist is created by what
//! the file's first records show ([`CsvPlan`]), before the first row.
//!
//! Always: pieces are committed in their order, so that rows of one time keep the order they have in the file. When a
//! record is bad and that ends the import, the rows of the pieces before it stay.
//! The caller's thread commits; one thread reads and cuts, `threads` parse. Nobody waits for them when an import ends
//! early: the input may never end.
//!
//! Reading order: [`options`] options; [`text`] bytes to UTF-8; [`plan`] the import plan; [`pieces`] splits the text
//! into chunks; [`pipeline`]; [`window`] limits how far parsing runs ahead of commits.

mod options;
mod pieces;
mod pipeline;
mod plan;
mod text;
mod window;

pub use options::{GivenColumns, ImportOption, ImportOptions, OPTIONS, column_type, columns, delimiter, findings};
pub use text::{Compression, Encoding, RATIO_MAX, Text, TextForm, TextOptions};

pub use pieces::{Piece, Pieces, RECORD_BYTES_MAX, Reader};
pub use pipeline::{Bad, Progress, import_csv, parse_csv};
pub use plan::{CsvPlan, format_of};
pub use tidalite_ingest::csv::{
    CsvColumn, CsvFormat, CsvParser, DateOrder, Detected, EpochUnit, Finding, Known, NumberFormat, OnBad, Thousands,
    TimeFormat, has_rows, lines_of,
};

/// Bytes at the beginning of a file that are looked at for what it is.
pub const SAMPLE_BYTES: usize = 4 << 20;

#[cfg(test)]
mod tests;
