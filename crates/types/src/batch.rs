//! Rows on the way in, in the form to which every protocol is converted.
//!
//! A batch contains names, not ids. The commit checks the existence of its table and columns, assigns ids to columns
//! and symbols, and converts values, so that a rejected batch leaves no trace.

use crate::{Column, ColumnType, EpochUnit, TimeUnit, Values, Views};

/// Rows for one table.
///
/// Invariant: every column and `timestamps` have `rows` rows; names of columns are distinct case-insensitively and
/// valid by [`crate::schema::name_problem`], like the name of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    pub table: String,
    pub rows: usize,
    pub columns: Vec<BatchColumn>,
    /// Values for the designated timestamp, independent of its name; `None` if it is among `columns` by name.
    ///
    /// With [`BatchTimestamps::line`] it may also be among `columns`: its values there take precedence where they are
    /// not NULL.
    pub timestamps: Option<BatchTimestamps>,
    /// For each row its line in the request, counted from 1, for error messages; may be empty.
    pub lines: Vec<u32>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct BatchColumn {
    pub name: String,
    /// Type of the values. If the table's column has another type, the commit converts them.
    pub column_type: ColumnType,
    /// Symbol columns contain indexes into `dictionary`.
    pub column: Column,
    /// The distinct strings of a symbol column of this batch; empty for other types.
    pub dictionary: Views,
    /// Set if a later value of the batch widened the type (LONG values, then a DOUBLE).
    ///
    /// Contains the type and the values of the rows before it, for a table whose column has that type.
    pub narrower: Option<(ColumnType, Values)>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct BatchTimestamps {
    pub unit: TimeUnit,
    pub values: Vec<i64>,
    /// Rules of line protocol; `None` for batches from other sources.
    pub line: Option<LineTimes>,
}

/// Time units of line protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineTimes {
    /// The unit of the designated timestamp of a table that the batch creates.
    pub new_unit: TimeUnit,
    /// The unit of integer fields for the designated timestamp.
    pub integers: EpochUnit,
}

impl BatchTimestamps {
    /// Creates times of a batch that did not arrive by line protocol.
    #[must_use]
    pub fn new(unit: TimeUnit, values: Vec<i64>) -> BatchTimestamps {
        BatchTimestamps { unit, values, line: None }
    }

    /// Returns the unit of the designated timestamp of a table that the batch creates.
    #[must_use]
    pub fn new_unit(&self) -> TimeUnit {
        match (self.line, self.unit) {
            (Some(line), _) => line.new_unit,
            (None, TimeUnit::Nanos) => TimeUnit::Nanos,
            (None, TimeUnit::Micros | TimeUnit::Millis) => TimeUnit::Micros,
        }
    }
}

impl Batch {
    /// Returns the memory of the batch without spare capacity.
    #[must_use]
    pub fn byte_count(&self) -> usize {
        let columns: usize = self
            .columns
            .iter()
            .map(|c| c.column.byte_count() + c.dictionary.len() * 16 + c.dictionary.data().len())
            .sum();
        columns + self.timestamps.as_ref().map_or(0, |t| t.values.len() * 8) + self.lines.len() * 4
    }
}
