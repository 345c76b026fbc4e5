//! A query whose rows are sent to a client.

use super::types::{self, Column};
use arrow::array::ArrayRef;
use tidalite::Rows;

/// The rows of a query, and the part of them that was sent.
pub struct RunningQuery {
    pub rows: Rows,
    /// The columns as announced to the client.
    pub columns: Vec<Column>,
    /// The batch that is being sent in its canonical form, its number of rows, and the next row.
    pub batch: Option<(Vec<ArrayRef>, usize, usize)>,
    /// Number of sent rows.
    pub sent: u64,
    /// True if the columns of a PIVOT are not the announced columns, because the values of its sub-query changed.
    pub has_other_columns: bool,
}

impl RunningQuery {
    pub fn new(rows: Rows, announced: Option<Vec<Column>>) -> RunningQuery {
        let columns = announced.unwrap_or_else(|| types::columns(&rows.columns, &rows.schema));
        RunningQuery { rows, columns, batch: None, sent: 0, has_other_columns: false }
    }
}
