//! Committed rows that are not in segments yet.

use std::sync::Arc;
use tidalite_types::{Column, ColumnId, Txn, Values};

/// Rows of one table from one or several adjacent commits. Immutable.
#[derive(Clone, Debug)]
pub struct Run {
    pub rows: usize,
    /// First and last commit the rows came from.
    pub txns: (Txn, Txn),
    /// Smallest and greatest designated timestamp; `(0, 0)` in a table without one.
    pub time_range: (i64, i64),
    /// Whether the rows are in order of the designated timestamp; else they are in order of arrival.
    pub is_sorted: bool,
    /// The columns the rows have values for, by id; every other column of the table is NULL.
    pub columns: Vec<(ColumnId, Arc<Column>)>,
}

impl Run {
    #[must_use]
    pub fn column(&self, id: ColumnId) -> Option<&Arc<Column>> {
        self.columns.iter().find(|(c, _)| *c == id).map(|(_, column)| column)
    }

    /// The values of the designated timestamp column `id`, which never has NULLs.
    #[must_use]
    pub fn timestamps(&self, id: ColumnId) -> &[i64] {
        match self.column(id).map(|c| &c.values) {
            Some(Values::I64(values)) => values,
            _ => &[],
        }
    }

    #[must_use]
    pub fn byte_count(&self) -> usize {
        self.columns.iter().map(|(_, c)| c.byte_count()).sum()
    }
}
