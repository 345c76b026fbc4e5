//! Which partitions a table with a TTL keeps no longer.

use crate::segment::to_column;
use crate::{Result, Run, Segment, TableSnapshot};
use tidalite_types::{BLOCK_ROWS, ColumnId, TimeUnit, Values};

/// The starts of the partitions that ended before the table's newest row, or `now` (nanoseconds since 1970) if that is
/// earlier, less its TTL.
pub fn expired_partitions(table: &TableSnapshot, now: i64) -> Result<Vec<i64>> {
    let schema = &table.schema;
    let (Some(ttl), Some((column, unit))) = (schema.ttl, schema.timestamp()) else { return Ok(Vec::new()) };
    let Some((oldest, _)) = table.time_range() else { return Ok(Vec::new()) };
    let now = TimeUnit::Nanos.convert(now, unit).unwrap_or(i64::MAX);
    // Mostly nothing is too old, whatever the newest row is: then it need not be looked for.
    if schema.partition(oldest).1 > ttl.cutoff(now, unit) {
        return Ok(Vec::new());
    }
    let Some(newest) = newest(table, column.id)? else { return Ok(Vec::new()) };
    let cutoff = ttl.cutoff(newest.min(now), unit);
    let of_segments = table.segments.iter().map(|s| s.meta().partition);
    let old_runs = table.runs.iter().filter(|run| run.time_range.0 < cutoff);
    let of_runs = old_runs.flat_map(|run| run.timestamps(column.id)).filter(|ts| **ts < cutoff);
    let mut starts: Vec<i64> = of_segments.chain(of_runs.map(|ts| schema.partition(*ts).0)).collect();
    starts.sort_unstable();
    starts.dedup();
    starts.retain(|lo| schema.partition(*lo).1 <= cutoff);
    Ok(starts)
}

/// The greatest timestamp of an alive row.
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
