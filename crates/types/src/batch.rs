//! Rows on the way in: the one form that every protocol is turned into.
//!
//! A batch knows names, not ids: whether its table and columns exist, which ids they and the symbols get and what
//! must be converted is decided at the commit, so that a rejected batch leaves no trace.

use crate::{Column, ColumnType, EpochUnit, TimeUnit, Values, Views};

/// Always: every column and `timestamps` have `rows` rows; names of columns are distinct without regard to case
/// and valid by [`crate::schema::name_problem`], the table's as well.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    pub table: String,
    pub rows: usize,
    pub columns: Vec<BatchColumn>,
    /// Values for the designated timestamp, whatever its name; `None` when it is among `columns` by name. With
    /// [`BatchTimestamps::line`] it may be among `columns` as well: its values there, where they are not NULL, win.
    pub timestamps: Option<BatchTimestamps>,
    /// For each row the line of the request it came from, counted from 1, for error messages; may be empty.
    pub lines: Vec<u32>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct BatchColumn {
    pub name: String,
    /// What the values are. If the table's column has another type they are converted at the commit.
    pub column_type: ColumnType,
    /// For a Symbol: indexes into `dictionary`.
    pub column: Column,
    /// The distinct strings of a Symbol column of this batch; empty otherwise.
    pub dictionary: Views,
    /// When a later value of the batch made the type wider (LONG values, then a DOUBLE): the type and the values of the
    /// rows before it, for a table whose column has that type.
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
    /// Memory the batch takes, without spare capacity.
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
