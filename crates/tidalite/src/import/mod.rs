//! Imports CSV files: read in pieces, parsed by several threads, committed in the order of the file.
//!
//! Input: a reader, the known properties of the file, and the destination of commits. Output: committed rows, durable
//! as configured, one commit per piece; for each invalid record its line, the position and the reason. A missing table
//! is created from the file's first records ([`CsvPlan`]), before the first row.
//!
//! Invariant: pieces are committed in order, so that rows of equal times keep the order of the file. If an invalid
//! record ends the import, the rows of the previous pieces remain. The calling thread commits; one thread reads and
//! splits, `threads` threads parse. An import that ends early does not wait for them, because the input may never end.
//!
//! Reading order: [`options`] options; [`reader`], [`text`] bytes to UTF-8; [`plan`] the import plan; [`pieces`] splits
//! the text into chunks; [`pipeline`]; [`window`] limits how far parsing runs ahead of commits.

mod options;
mod pieces;
mod pipeline;
mod plan;
mod reader;
mod text;
mod window;

pub use options::{GivenColumns, ImportOption, ImportOptions, OPTIONS, column_type, columns, delimiter, findings};
pub use text::{Compression, Encoding, RATIO_MAX, Text, TextForm, TextOptions};

pub use pieces::{Piece, Pieces, RECORD_BYTES_MAX};
pub use pipeline::{Bad, Progress, import_csv, parse_csv};
pub use plan::{CsvPlan, format_of};
pub use reader::Reader;
pub use tidalite_ingest::csv::{
    CsvColumn, CsvFormat, CsvParser, DateOrder, Detected, EpochUnit, Finding, Known, NumberFormat, OnBad, Thousands,
    TimeFormat, has_rows, lines_of,
};

/// Size in bytes of the sample at the beginning of a file.
pub const SAMPLE_BYTES: usize = 4 << 20;

#[cfg(test)]
mod tests;
