//! Buffers rows of series of one kind with fields of one shape.
//!
//! A row is then two copies of a few words, instead of an append to every column. Columns get the rows a hundred at a
//! time, one column after the other, while the rows are in the cache.
//!
//! Invariant: the columns of these rows have a value for each row of the table except the buffered ones, and no NULL
//! since the first buffered row.

use super::column::{ColumnBuilder, Data};

/// Number of rows that fit the first-level cache with the written parts of the columns.
const ROWS_MAX: usize = 128;
/// If fewer consecutive rows of a kind arrive than this, distributing them costs more than it saves,
const WORTH_ROWS: usize = 16;
/// and no rows are buffered for this many lines.
const PAUSE: u32 = 1024;

#[derive(Debug, Default)]
pub(super) struct WaitingRows {
    /// The kind of series whose rows may be buffered; the columns were checked to accept them.
    kind: Option<u32>,
    tag_columns: Vec<u32>,
    field_columns: Vec<u32>,
    /// Ids, row after row.
    tags: Vec<u32>,
    /// Values in the form of the shape, row after row.
    fields: Vec<u64>,
    /// Number of buffered rows.
    count: usize,
    /// Number of rows of this kind so far.
    run: usize,
    pause: u32,
}

impl WaitingRows {
    /// Returns true if rows of series of this kind are buffered.
    #[inline(always)]
    pub(super) fn are_of(&self, kind: u32) -> bool {
        self.kind == Some(kind)
    }

    /// Returns true if starting with another kind may pay.
    pub(super) fn may_begin(&mut self) -> bool {
        self.pause = self.pause.saturating_sub(1);
        self.pause == 0
    }

    /// Starts buffering rows of these tags and fields.
    pub(super) fn begin(&mut self, kind: u32, tag_columns: &[u32], field_columns: impl Iterator<Item = u32>) {
        self.kind = Some(kind);
        self.tag_columns.clear();
        self.tag_columns.extend_from_slice(tag_columns);
        self.field_columns.clear();
        self.field_columns.extend(field_columns);
    }

    #[inline(always)]
    pub(super) fn push(&mut self, tags: &[u32], fields: &[u64], columns: &mut [ColumnBuilder]) {
        self.tags.extend_from_slice(tags);
        self.fields.extend_from_slice(fields);
        self.count += 1;
        if self.count == ROWS_MAX {
            self.deal_out(columns);
        }
    }

    /// Appends the buffered rows to the columns; the next row may be of any kind.
    #[inline(always)]
    pub(super) fn end(&mut self, columns: &mut [ColumnBuilder]) {
        if self.kind.is_some() {
            self.end_run(columns);
        }
    }

    #[inline(never)]
    fn end_run(&mut self, columns: &mut [ColumnBuilder]) {
        self.deal_out(columns);
        if self.run < WORTH_ROWS {
            self.pause = PAUSE;
        }
        (self.kind, self.run) = (None, 0);
    }

    #[inline(never)]
    fn deal_out(&mut self, columns: &mut [ColumnBuilder]) {
        for (at, &column) in self.tag_columns.iter().enumerate() {
            let column = &mut columns[column as usize];
            if let Data::Symbol(ids) = &mut column.data {
                ids.extend(self.tags.chunks_exact(self.tag_columns.len()).map(|row| row[at]));
            }
            column.extend_valid(self.count);
        }
        for (at, &column) in self.field_columns.iter().enumerate() {
            let column = &mut columns[column as usize];
            let values = self.fields.chunks_exact(self.field_columns.len()).map(|row| row[at]);
            match &mut column.data {
                Data::Long(v) => v.extend(values.map(u64::cast_signed)),
                Data::Double(v) => v.extend(values.map(f64::from_bits)),
                _ => {}
            }
            column.extend_valid(self.count);
        }
        self.tags.clear();
        self.fields.clear();
        self.run += self.count;
        self.count = 0;
    }
}
