//! Parses CSV records to batches.
//!
//! Input: text in pieces of any size, and the definitions of its columns. Output: batches of typed columns, and for
//! each invalid record its line, the position in the record and the reason. No I/O, no clock, no threads: the reader of
//! the file splits it at the ends of records ([`Splitter`]) and distributes the pieces to any number of [`CsvParser`]s.
//!
//! The format is RFC 4180 with any delimiter of one byte. A field may be quoted; a quote within a quoted field is
//! doubled, and the field may contain delimiters and line ends. A quote within an unquoted field is a literal. An empty
//! field is NULL; a quoted empty field is the empty text. Blank lines are ignored. The end of a record depends only on
//! its quotes, even in an invalid record: the rows do not depend on the positions at which the text is split.
//!
//! Reading order: [`field`] defines the format on the general path; [`detect`] detects properties of a file that the
//! user did not give; [`Splitter`]; [`parser`] reads records into [`column`]s, with the fast paths of [`number`] for
//! plain fields. A fast path never rejects a field; it leaves doubtful fields to the general path.

mod column;
mod detect;
mod field;
mod nested;
mod nulls;
mod number;
mod numbers;
mod parser;
mod split;
mod times;

#[cfg(test)]
mod tests;

pub use detect::{Detected, Finding, Known, detect, has_rows};
pub use nulls::Nulls;
pub use numbers::{NumberFormat, Thousands};
pub use parser::{BAD_MAX, BadRecord, CsvParser, Parsed};
pub use split::{Splitter, lines_of};
pub use times::{DateOrder, EpochUnit, TimeFormat, TimePattern};

use tidalite_types::ColumnType;

/// The notation of records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvFormat {
    /// An ASCII character.
    pub delimiter: u8,
    /// An ASCII character.
    pub quote: u8,
    /// A line that begins with this ASCII character is a comment.
    pub comment: Option<u8>,
    pub nulls: Nulls,
    /// Extra fields are ignored; otherwise a record with extra fields is invalid.
    pub ignores_extra: bool,
}

impl Default for CsvFormat {
    fn default() -> CsvFormat {
        CsvFormat { delimiter: b',', quote: b'"', comment: None, nulls: Nulls::default(), ignores_extra: false }
    }
}

/// The effect of an invalid record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnBad {
    /// Reading ends.
    #[default]
    Abort,
    /// The record is reported and skipped.
    Skip,
    /// Invalid values and missing fields become NULL and are reported.
    ///
    /// A record without a designated timestamp, with too many fields or broken quotes is skipped.
    Null,
}

/// A column of the file, in file order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CsvColumn {
    pub name: String,
    /// `None` skips the column.
    pub column_type: Option<ColumnType>,
    /// The time format; without it ISO 8601, or an integer in the unit of the type.
    pub times: Option<TimeFormat>,
    pub numbers: NumberFormat,
    /// Set for a time of day, which is added to the date in this column of the file.
    pub added_to: Option<usize>,
}
