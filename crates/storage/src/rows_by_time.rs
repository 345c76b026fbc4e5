//! Converts between rows of a version and their times.
//!
//! Masks are one per segment, then one per run of the version, as in statements that change rows.

use crate::segment::to_column;
use crate::{Bounds, Mask, Result, Run, Segment, TableSnapshot};
use tidalite_types::view::joined_ranges;
use tidalite_types::{BLOCK_ROWS, ColumnId, Values};

/// Largest number of ranges that are distinguished in one segment.
const STRETCHES_MAX: usize = 1_000;

impl TableSnapshot {
    /// Returns the rows that are not deleted with designated timestamps in one of the half-open `ranges`.
    pub fn rows_within(&self, ranges: &[(i64, i64)]) -> Result<Vec<Mask>> {
        let mut masks = vec![Mask::default(); self.segments.len() + self.runs.len()];
        let Some(designated) = self.schema.designated else { return Ok(masks) };
        let touches = |(lo, hi): (i64, i64)| ranges.iter().any(|r| r.0 <= hi && lo < r.1);
        for (segment, mask) in self.segments.iter().zip(&mut masks) {
            for block in 0..segment.block_count() {
                if !touches(segment.time_range()) || !touches(times_of_block(segment, designated, block)?) {
                    continue;
                }
                let dead = self.mask(segment);
                let first = block * BLOCK_ROWS;
                for (row, ts) in times(segment, designated, block)?.into_iter().enumerate() {
                    if touches((ts, ts)) && !dead.is_some_and(|dead| dead.is_dead(first + row)) {
                        mask.kill(first + row);
                    }
                }
            }
        }
        for (run, mask) in self.runs.iter().zip(&mut masks[self.segments.len()..]) {
            if touches(run.time_range) {
                let rows = run.timestamps(designated).iter().enumerate();
                rows.filter(|(row, ts)| touches((**ts, **ts)) && !run.is_dead(*row)).for_each(|(row, _)| {
                    mask.kill(row);
                });
            }
        }
        Ok(masks)
    }

    /// Returns half-open ranges that contain the designated timestamps of the rows `hit`, and few other times.
    pub fn times_of(&self, hit: &[Mask]) -> Result<Vec<(i64, i64)>> {
        let Some(designated) = self.schema.designated else { return Ok(Vec::new()) };
        let mut ranges = Vec::new();
        for (segment, mask) in self.segments.iter().zip(hit).filter(|(_, mask)| mask.dead() > 0) {
            let stretches = mask.ranges();
            if stretches.len() > STRETCHES_MAX || mask.dead() as u64 == segment.rows() {
                let blocks = (0..segment.block_count()).filter(|block| mask.dead_in_block(*block) > 0);
                for block in blocks {
                    let (lo, hi) = times_of_block(segment, designated, block)?;
                    ranges.push((lo, hi.saturating_add(1)));
                }
                continue;
            }
            of_stretches(segment, designated, &stretches, &mut ranges)?;
        }
        for (run, mask) in self.runs.iter().zip(hit.get(self.segments.len()..).unwrap_or_default()) {
            ranges.extend(of_run(run, designated, mask));
        }
        Ok(joined_ranges(ranges))
    }
}

/// Adds the time ranges of the rows of a segment, which are in time order.
fn of_stretches(
    segment: &Segment,
    designated: ColumnId,
    stretches: &[(usize, usize)],
    ranges: &mut Vec<(i64, i64)>,
) -> Result<()> {
    let mut read: Option<(usize, Vec<i64>)> = None;
    let mut at = |row: usize| -> Result<i64> {
        let block = row / BLOCK_ROWS;
        if read.as_ref().is_none_or(|(known, _)| *known != block) {
            read = Some((block, times(segment, designated, block)?));
        }
        let found = read.as_ref().and_then(|(_, times)| times.get(row % BLOCK_ROWS).copied());
        Ok(found.unwrap_or(segment.time_range().0))
    };
    for &(from, count) in stretches {
        let (lo, hi) = (at(from)?, at(from + count.max(1) - 1)?);
        ranges.push((lo, hi.saturating_add(1)));
    }
    Ok(())
}

fn of_run(run: &Run, designated: ColumnId, mask: &Mask) -> Vec<(i64, i64)> {
    let times = run.timestamps(designated);
    let of = |(from, count): (usize, usize)| {
        let times = times.get(from..from + count)?;
        Some((*times.iter().min()?, times.iter().max()?.saturating_add(1)))
    };
    mask.ranges().into_iter().filter_map(of).collect()
}

/// Returns the smallest and the greatest timestamp of a block.
pub(crate) fn times_of_block(segment: &Segment, designated: ColumnId, block: usize) -> Result<(i64, i64)> {
    Ok(match segment.zone(designated, block)?.map(|zone| zone.bounds) {
        Some(Bounds::Int(lo, hi)) => (lo, hi),
        _ => segment.time_range(),
    })
}

fn times(segment: &Segment, designated: ColumnId, block: usize) -> Result<Vec<i64>> {
    Ok(match segment.read(designated, block)?.map(|block| to_column(&block).values) {
        Some(Values::I64(times)) => times,
        _ => Vec::new(),
    })
}
