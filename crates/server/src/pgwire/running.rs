//! Rows of a statement on their way to a client.

use super::types::{self, Column};
use arrow::array::ArrayRef;
use tidalite::Rows;

/// Rows on their way to a client.
pub struct Running {
    pub rows: Rows,
    /// As they were announced.
    pub columns: Vec<Column>,
    /// The batch being sent, in the form it is sent from, how many rows it has, and the next of them.
    pub batch: Option<(Vec<ArrayRef>, usize, usize)>,
    /// Rows that were sent.
    pub sent: u64,
    /// True if the columns of a PIVOT are not the announced columns, because the values of its sub-query changed.
    pub has_other_columns: bool,
}

impl Running {
    pub fn new(rows: Rows, announced: Option<Vec<Column>>) -> Running {
        let columns = announced.unwrap_or_else(|| types::columns(&rows.columns, &rows.schema));
        Running { rows, columns, batch: None, sent: 0, has_other_columns: false }
    }
}
