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
mod number;
mod parser;
mod split;

#[cfg(test)]
mod tests;

pub use detect::{Detected, Known, detect};
pub use parser::{BAD_MAX, BadRecord, CsvParser, Parsed};
pub use split::{Splitter, lines_of};

use tidalite_types::ColumnType;

/// How records are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvFormat {
    /// An ASCII character.
    pub delimiter: u8,
    pub quote: u8,
    /// A text that stands for NULL when it is not in quotes, beside the empty one.
    pub null: Vec<u8>,
    /// Fields behind those of the columns are left out; otherwise a record that has any is bad.
    pub ignores_extra: bool,
}

impl Default for CsvFormat {
    fn default() -> CsvFormat {
        CsvFormat { delimiter: b',', quote: b'"', null: Vec::new(), ignores_extra: false }
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvColumn {
    pub name: String,
    /// `None` leaves the column out.
    pub column_type: Option<ColumnType>,
}
