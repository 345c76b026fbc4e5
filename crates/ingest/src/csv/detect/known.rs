//! Properties of a file that the user gave or that follow from the table.

use super::super::times::{DateOrder, TimeFormat};
use super::super::{NumberFormat, Thousands};
use tidalite_types::ColumnType;

/// Properties of a file that are known before the file is read; all others are detected.
#[derive(Clone, Debug, Default)]
pub struct Known {
    pub delimiter: Option<u8>,
    pub quote: Option<u8>,
    /// The first character of comment lines.
    ///
    /// Without it, `#` starts a comment before the header, and in lines whose shape differs from the other lines.
    pub comment: Option<u8>,
    /// Number of lines before the header, or before the first row.
    pub skipped_lines: usize,
    pub has_header: Option<bool>,
    /// Texts for NULL, instead of [`Nulls::usual`](crate::csv::Nulls::usual).
    pub nulls: Option<Vec<String>>,
    /// Columns given by the user.
    pub columns: Vec<(String, ColumnType)>,
    /// Time formats of columns.
    pub formats: Vec<(String, TimeFormat)>,
    /// Number formats of columns.
    pub numbers: Vec<(String, NumberFormat)>,
    /// Columns of the table in table order, if the table exists.
    pub table: Option<Vec<(String, ColumnType)>>,
    /// The designated timestamp given by the user or defined by the table.
    pub timestamp: Option<String>,
    /// Time format of the designated timestamp.
    pub timestamp_format: Option<TimeFormat>,
    /// Columns of a date and of a time of day that together are the designated timestamp.
    pub date_and_time: Option<(String, String)>,
    pub has_decimal_comma: Option<bool>,
    pub thousands: Option<Thousands>,
    pub date_order: Option<DateOrder>,
    /// Every line is the header or a row; no other lines precede the header.
    pub is_exact: bool,
    /// All types and notations are given: rows are not examined.
    pub is_complete: bool,
    /// Records with invalid values are skipped: a few other values in a column of times do not make it text.
    pub skips_bad: bool,
}
