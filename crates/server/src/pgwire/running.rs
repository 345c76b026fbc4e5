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
    /// True if the statement has a PIVOT, whose columns may be those of values.
    pub has_pivot: bool,
}

impl Running {
    pub fn new(rows: Rows, announced: Option<Vec<Column>>) -> Running {
        let columns = announced.unwrap_or_else(|| types::columns(&rows.columns, &rows.schema));
        Running { rows, columns, batch: None, sent: 0, has_pivot: false }
    }

    /// Returns true if the columns of a PIVOT have other names than those announced: its values changed.
    pub fn has_other_names(&self) -> bool {
        let mut pairs = self.rows.columns.iter().zip(&self.columns);
        self.has_pivot && pairs.any(|(own, announced)| own.name != announced.name && !announced.name.contains('$'))
    }
}
