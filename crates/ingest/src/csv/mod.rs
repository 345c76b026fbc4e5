//! CSV: text of records to batches.
//!
//! In: text in pieces of any size, what its columns are. Out: batches of typed columns, and for each record that is no
//! row its line, the place in it and why. No I/O, no clock, no threads: whoever reads the file cuts it at the ends of
//! records ([`Splitter`]) and gives the pieces to as many [`CsvParser`]s as it likes.
//!
//! The format is that of RFC 4180 with any delimiter of one byte: a field may stand in quotes, a quote within them is
//! written twice, and so may hold delimiters and ends of lines; a quote within a field that does not begin with one is
//! itself. A field without a character is NULL; a quoted one is the empty text. Blank lines are none. Where a record ends
//! depends on its quotes alone, however bad it is: rows are the same wherever the text is cut.
//!
//! Reading order: [`field`] defines the format, the general way; [`detect`] finds out about a file what nobody said;
//! [`Splitter`]; [`parser`] reads records into [`column`]s, by the short ways of [`number`] where a field is plain. A
//! short way never decides that a field is bad: what it does not like goes the general way.

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

/// How records are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvFormat {
    /// An ASCII character.
    pub delimiter: u8,
    /// An ASCII character.
    pub quote: u8,
    /// A line that begins with this ASCII character is a comment.
    pub comment: Option<u8>,
    pub nulls: Nulls,
    /// Fields behind those of the columns are left out; otherwise a record that has any is bad.
    pub ignores_extra: bool,
}

impl Default for CsvFormat {
    fn default() -> CsvFormat {
        CsvFormat { delimiter: b',', quote: b'"', comment: None, nulls: Nulls::default(), ignores_extra: false }
    }
}

/// What a record that is no row does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnBad {
    /// It ends the reading.
    #[default]
    Abort,
    /// It is told and left out.
    Skip,
    /// Values that are none of their column become NULL, and so do fields that are missing; both are told. A record
    /// without a designated timestamp, with too many fields or broken quotes is left out all the same.
    Null,
}

/// A column of the file, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CsvColumn {
    pub name: String,
    /// `None` leaves the column out.
    pub column_type: Option<ColumnType>,
    /// How times are written; without it ISO 8601, or an integer that counts in the unit of the type.
    pub times: Option<TimeFormat>,
    pub numbers: NumberFormat,
    /// The column is a time of day and is added to the date in this column of the file.
    pub added_to: Option<usize>,
}
