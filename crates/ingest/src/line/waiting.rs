//! Rows that wait to be dealt out to their columns: of series of a kind, with fields of one shape.
//!
//! A row is two copies of a few words then, instead of a push to every column; columns get them a hundred at a time, one
//! column after the other, while they are near the processor.
//!
//! Always: columns of these rows have a value for each row of the table but these, and no NULL since the first of them.

use super::column::{ColumnBuilder, Data};

/// As many as stay in the first cache with what is written of them.
const ROWS_MAX: usize = 128;
/// Where fewer rows of a kind came in a row than these, dealing them out costs more than it saves,
const WORTH_ROWS: usize = 16;
/// and no rows wait for so many lines.
const PAUSE: u32 = 1024;

#[derive(Debug, Default)]
pub(super) struct WaitingRows {
    /// Of the series whose rows may wait; columns are known to take them.
    kind: Option<u32>,
    tag_columns: Vec<u32>,
    field_columns: Vec<u32>,
    /// Ids, row after row.
    tags: Vec<u32>,
    /// Values as the shape has them, row after row.
    fields: Vec<u64>,
    /// Rows that wait.
    count: usize,
    /// Rows of this kind so far.
    run: usize,
    pause: u32,
}

impl WaitingRows {
    /// Whether rows of series of this kind wait.
    #[inline(always)]
    pub(super) fn are_of(&self, kind: u32) -> bool {
        self.kind == Some(kind)
    }

    /// Whether it may pay to begin with another kind.
    pub(super) fn may_begin(&mut self) -> bool {
        self.pause = self.pause.saturating_sub(1);
        self.pause == 0
    }

    /// Rows of these tags and fields may wait from now on.
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

    /// Gives the columns what they lack; another row may be of any kind.
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
