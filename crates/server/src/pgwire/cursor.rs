//! An open cursor: a running query and the rows that can be reached again.

use super::running_query::RunningQuery;
use super::types::Column;
use crate::budget::Share;
use arrow::array::ArrayRef;
use std::collections::VecDeque;

/// Rows of one batch, with the number of the first of them, from 1.
pub(super) struct CursorRows {
    pub(super) first: u64,
    pub(super) count: u64,
    pub(super) arrays: Vec<ArrayRef>,
}

/// An open cursor of SQL or of a portal.
pub struct Cursor {
    pub(super) running: RunningQuery,
    pub(super) is_scroll: bool,
    pub(super) is_held: bool,
    /// The current row, from 1: 0 before the first row, the number of rows plus 1 after the last.
    pub(super) position: u64,
    /// Computed rows that are kept.
    pub(super) rows: VecDeque<CursorRows>,
    /// Number of computed rows.
    pub(super) known: u64,
    pub(super) is_complete: bool,
    /// Share of the memory limit of all clients.
    pub(super) held: Share,
}

impl Cursor {
    /// Returns a cursor over rows, some of which may have been sent; it moves forward only.
    pub(super) fn new(running: RunningQuery, held: Share) -> Cursor {
        let position = running.sent;
        let mut cursor = Cursor {
            is_scroll: false,
            is_held: false,
            position,
            rows: VecDeque::new(),
            known: position,
            is_complete: false,
            held,
            running,
        };
        if let Some((arrays, rows, next)) = cursor.running.batch.take() {
            let count = rows - next;
            let arrays = arrays.iter().map(|array| array.slice(next, count)).collect();
            cursor.known += count as u64;
            cursor.rows.push_back(CursorRows { first: position + 1, count: count as u64, arrays });
        }
        cursor
    }

    pub fn is_held(&self) -> bool {
        self.is_held
    }

    /// Returns the columns as announced to the client.
    pub fn columns(&self) -> &[Column] {
        &self.running.columns
    }

    /// Drops the rows that the cursor cannot reach again, except the current row.
    pub(super) fn forget(&mut self) {
        while !self.is_scroll && self.rows.front().is_some_and(|rows| rows.first + rows.count <= self.position) {
            self.rows.pop_front();
        }
    }
}
