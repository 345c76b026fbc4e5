//! Finds the partitions that exceed a table's TTL.

use crate::segment::to_column;
use crate::{Result, Run, Segment, TableSnapshot};
use tidalite_types::{BLOCK_ROWS, ColumnId, TimeUnit, Values};

/// The partitions of a table that are older than its TTL.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Expired {
    /// Starts of the partitions, ascending.
    pub starts: Vec<i64>,
    /// True if only the newest partition would be left and empty partitions separate it from the others, as after one
    /// row with a wrong time.
    pub is_jump: bool,
}

/// Returns the partitions that ended more than the TTL before the table's newest row.
///
/// The reference is the time of the newest row, or `now` (nanoseconds since 1970) if `now` is earlier.
pub fn expired(table: &TableSnapshot, now: i64) -> Result<Expired> {
    let schema = &table.schema;
    let (Some(ttl), Some((column, unit))) = (schema.ttl, schema.timestamp()) else { return Ok(Expired::default()) };
    let Some((oldest, _)) = table.time_range() else { return Ok(Expired::default()) };
    let now = TimeUnit::Nanos.convert(now, unit).unwrap_or(i64::MAX);
    // In most cases no partition is too old for any newest row, so the newest row is not determined.
    if schema.partition(oldest).1 > ttl.cutoff(now, unit) {
        return Ok(Expired::default());
    }
    let Some(newest) = newest(table, column.id)? else { return Ok(Expired::default()) };
    let last = newest.min(now);
    let cutoff = ttl.cutoff(last, unit);
    let of_segments = table.segments.iter().map(|s| s.meta().partition);
    let old_runs = table.runs.iter().filter(|run| run.time_range.0 < cutoff);
    let of_runs = old_runs.flat_map(|run| run.timestamps(column.id)).filter(|ts| **ts < cutoff);
    let mut starts: Vec<i64> = of_segments.chain(of_runs.map(|ts| schema.partition(*ts).0)).collect();
    starts.sort_unstable();
    starts.dedup();
    starts.retain(|lo| schema.partition(*lo).1 <= cutoff);
    let newest_start = schema.partition(last).0;
    let has_hole = starts.last().is_some_and(|lo| schema.partition(*lo).1 < newest_start);
    let is_jump = has_hole && !has_rows_within(table, column.id, cutoff, newest_start);
    Ok(Expired { starts, is_jump })
}

/// Returns true if a partition that ends after `cutoff` and begins before `end` has rows.
fn has_rows_within(table: &TableSnapshot, designated: ColumnId, cutoff: i64, end: i64) -> bool {
    let is_within = |lo: i64| lo < end && table.schema.partition(lo).1 > cutoff;
    let of_run = |run: &Run| {
        let (first, last) = run.time_range;
        last > cutoff && first < end && run.timestamps(designated).iter().any(|ts| is_within(*ts))
    };
    table.segments.iter().any(|s| is_within(s.meta().partition)) || table.runs.iter().any(|run| of_run(run))
}

/// Returns the greatest timestamp of a row that is not deleted.
fn newest(table: &TableSnapshot, designated: ColumnId) -> Result<Option<i64>> {
    let of_runs = table.runs.iter().filter_map(|run| newest_of_run(run, designated)).max();
    let mut newest = of_runs;
    for segment in table.segments.iter().rev() {
        if newest.is_none_or(|newest| newest < segment.time_range().1) {
            newest = newest.max(newest_of_segment(table, segment, designated)?);
        }
    }
    Ok(newest)
}

fn newest_of_run(run: &Run, designated: ColumnId) -> Option<i64> {
    if run.dead.is_none() {
        return (run.rows > 0).then_some(run.time_range.1);
    }
    let times = run.timestamps(designated).iter().enumerate();
    times.filter(|(row, _)| !run.is_dead(*row)).map(|(_, ts)| *ts).max()
}

fn newest_of_segment(table: &TableSnapshot, segment: &Segment, designated: ColumnId) -> Result<Option<i64>> {
    let Some(mask) = table.mask(segment) else { return Ok(Some(segment.time_range().1)) };
    let Some(row) = (0..segment.rows() as usize).rev().find(|row| !mask.is_dead(*row)) else { return Ok(None) };
    match segment.read(designated, row / BLOCK_ROWS)?.map(|block| to_column(&block).values) {
        Some(Values::I64(times)) => Ok(times.get(row % BLOCK_ROWS).copied()),
        _ => Ok(None),
    }
}
