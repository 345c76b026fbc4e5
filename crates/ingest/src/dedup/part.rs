//! Existing rows of a block of a segment or of a run, read on demand.

use std::sync::Arc;
use tidalite_storage::segment::to_column;
use tidalite_storage::{Bounds, Mask, Result, Run, Segment, TableSnapshot};
use tidalite_types::{BLOCK_ROWS, Column, ColumnId, TableSchema, Values};

pub(crate) struct Part<'a> {
    source: Source<'a>,
    mask: Option<&'a Mask>,
    /// Position of the first row in the deletion vector.
    first: usize,
    is_sorted: bool,
    times: Times<'a>,
}

enum Source<'a> {
    Block { segment: &'a Segment, block: usize },
    Run(&'a Run),
}

enum Times<'a> {
    Owned(Vec<i64>),
    Borrowed(&'a [i64]),
}

impl<'a> Part<'a> {
    /// Returns the rows of a block; `None` if no time of the block is wanted.
    pub fn of_block(
        table: &'a TableSnapshot,
        segment: &'a Segment,
        block: usize,
        designated: ColumnId,
        may_have: impl Fn((i64, i64)) -> bool,
    ) -> Result<Option<Part<'a>>> {
        if let Some(zone) = segment.zone(designated, block)?
            && let Bounds::Int(lo, hi) = zone.bounds
            && !may_have((lo, hi))
        {
            return Ok(None);
        }
        let times = match segment.read(designated, block)?.map(|block| to_column(&block).values) {
            Some(Values::I64(times)) => times,
            _ => Vec::new(),
        };
        let mask = table.mask(segment).map(AsRef::as_ref);
        Ok(Some(Part {
            source: Source::Block { segment, block },
            mask,
            first: block * BLOCK_ROWS,
            is_sorted: true,
            times: Times::Owned(times),
        }))
    }

    pub fn of_run(run: &'a Run, designated: ColumnId) -> Part<'a> {
        let times = Times::Borrowed(run.timestamps(designated));
        Part { source: Source::Run(run), mask: run.dead.as_deref(), first: 0, is_sorted: run.is_sorted, times }
    }

    pub fn times(&self) -> &[i64] {
        match &self.times {
            Times::Owned(times) => times,
            Times::Borrowed(times) => times,
        }
    }

    pub fn is_dead(&self, row: usize) -> bool {
        self.mask.is_some_and(|mask| mask.is_dead(self.first + row))
    }

    /// Calls `found` with the rows that have one of the sorted `wanted` times.
    pub fn with_times_of(&self, wanted: &[i64], mut found: impl FnMut(usize)) {
        let times = self.times();
        let (Some(lo), Some(hi)) = (wanted.first(), wanted.last()) else { return };
        if !self.is_sorted {
            let near = times.iter().enumerate().filter(|(_, ts)| lo <= ts && ts <= &hi);
            near.filter(|(_, ts)| wanted.binary_search(ts).is_ok()).for_each(|(row, _)| found(row));
            return;
        }
        let (mut row, mut at) = (0, 0);
        while row < times.len() && at < wanted.len() {
            if times[row] < wanted[at] {
                row += skip(&times[row..], |ts| ts < wanted[at]);
            } else if wanted[at] < times[row] {
                at += skip(&wanted[at..], |ts| ts < times[row]);
            } else {
                found(row);
                row += 1;
            }
        }
    }

    pub fn column(&self, id: ColumnId) -> Result<Option<Arc<Column>>> {
        match self.source {
            Source::Run(run) => Ok(run.column(id).cloned()),
            Source::Block { segment, block } => Ok(segment.read(id, block)?.map(|block| Arc::new(to_column(&block)))),
        }
    }

    /// Returns all columns of the table.
    pub fn columns(&self, schema: &TableSchema) -> Result<Vec<(ColumnId, Option<Arc<Column>>)>> {
        schema.columns.iter().map(|c| Ok((c.id, self.column(c.id)?))).collect()
    }
}

/// Returns the number of leading values that satisfy `is_before`, which is monotonic; gallops in doubling steps.
fn skip(times: &[i64], is_before: impl Fn(i64) -> bool) -> usize {
    let mut step = 1;
    while step < times.len() && is_before(times[step]) {
        step *= 2;
    }
    let from = step / 2;
    from + times[from..times.len().min(step + 1)].partition_point(|ts| is_before(*ts))
}
