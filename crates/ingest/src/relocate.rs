//! Finds the rows of an older version of a table in a newer one by their values.
//!
//! Input: positions of rows in a version. Output: the positions of the same rows in a later version. Rows of segments
//! that still exist have kept their positions. Other rows were moved by merges, and are found by the values of all
//! columns. Rows that are equal in every column are interchangeable. A row that was deleted or changed since is counted
//! as missing.

use crate::dedup::may_have;
use crate::dedup::part::Part;
use crate::dedup::value::{hash_row, same_value};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tidalite_kernels::gather;
use tidalite_storage::segment::to_column;
use tidalite_storage::staging::join;
use tidalite_storage::{Mask, Result, Run, Segment, TableSnapshot};
use tidalite_types::{BLOCK_ROWS, Column, ColumnId, TableSchema, Txn};

/// Number of rows that are searched at a time, which limits the memory for their values.
const ROWS_AT_ONCE: usize = BLOCK_ROWS;

/// Positions of rows in a version: a mask for each segment, then for each run.
#[derive(Debug, Default)]
pub struct Relocated {
    pub hit: Vec<Mask>,
    /// Number of rows that no longer exist.
    pub missing: u64,
}

/// Returns the rows `hit` of `seen` in `now`, a later version with the same columns.
///
/// # Errors
/// Fails if a block cannot be read.
pub fn relocate(seen: &TableSnapshot, hit: &[Mask], now: &TableSnapshot) -> Result<Relocated> {
    let mut found = Relocated { hit: vec![Mask::default(); now.segments.len() + now.runs.len()], missing: 0 };
    let mut pieces = Vec::new();
    for (segment, mask) in seen.segments.iter().zip(hit).filter(|(_, mask)| mask.dead() > 0) {
        match now.segments.iter().position(|s| s.meta().id == segment.meta().id) {
            Some(at) => {
                let alive = mask.since(now.mask(segment).map(AsRef::as_ref));
                found.missing += (mask.dead() - alive.dead()) as u64;
                found.hit[at] = alive;
            }
            None => pieces_of_segment(&seen.schema, segment, mask, &mut pieces)?,
        }
    }
    let of_runs = hit.get(seen.segments.len()..).unwrap_or_default();
    for (run, mask) in seen.runs.iter().zip(of_runs).filter(|(_, mask)| mask.dead() > 0) {
        let rows: Vec<u32> = mask.ranges().into_iter().flat_map(|(at, n)| at as u32..(at + n) as u32).collect();
        let taken = |rows| Arc::new(Run { dead: None, ..run.taken(rows, run.time_range) });
        pieces.extend(rows.chunks(ROWS_AT_ONCE).map(taken));
    }
    let known: HashSet<_> = seen.segments.iter().map(|segment| segment.meta().id).collect();
    let mut waiting = Vec::new();
    for piece in pieces {
        waiting.push(piece);
        if waiting.iter().map(|piece| piece.rows).sum::<usize>() >= ROWS_AT_ONCE {
            find(&mut waiting, now, &known, &mut found)?;
        }
    }
    find(&mut waiting, now, &known, &mut found)?;
    Ok(found)
}

/// Returns the rows of a segment in a mask, with the values of all columns.
fn pieces_of_segment(schema: &TableSchema, segment: &Segment, mask: &Mask, pieces: &mut Vec<Arc<Run>>) -> Result<()> {
    for block in (0..segment.block_count()).filter(|block| mask.dead_in_block(*block) > 0) {
        let Some(bits) = mask.block(block) else { continue };
        let rows: Vec<u32> = (0..BLOCK_ROWS as u32).filter(|row| bits.get(*row as usize)).collect();
        let mut columns = Vec::with_capacity(schema.columns.len());
        for column in &schema.columns {
            if let Some(values) = segment.read(column.id, block)? {
                columns.push((column.id, Arc::new(gather(&to_column(&values), &rows))));
            }
        }
        let time_range = segment.time_range();
        let txns = (Txn(0), Txn(0));
        pieces.push(Arc::new(Run { rows: rows.len(), txns, time_range, is_sorted: false, columns, dead: None }));
    }
    Ok(())
}

/// Searches the rows of `pieces`, and removes them.
fn find(
    pieces: &mut Vec<Arc<Run>>,
    now: &TableSnapshot,
    known: &HashSet<tidalite_types::SegmentId>,
    found: &mut Relocated,
) -> Result<()> {
    if pieces.is_empty() {
        return Ok(());
    }
    let all = join(pieces);
    pieces.clear();
    let all = match now.schema.designated {
        Some(designated) if !all.timestamps(designated).is_sorted() => all.sorted(designated),
        _ => all,
    };
    let mut wanted = Wanted::new(&now.schema, &all);
    for (at, segment) in now.segments.iter().enumerate() {
        if known.contains(&segment.meta().id) || !wanted.may_be_within(segment.time_range()) {
            continue;
        }
        for block in 0..segment.block_count() {
            wanted.find_in_block(now, segment, block, &mut found.hit[at])?;
        }
    }
    for (run, mask) in now.runs.iter().zip(&mut found.hit[now.segments.len()..]) {
        wanted.find_in_run(run, mask);
    }
    found.missing += wanted.left as u64;
    Ok(())
}

/// Rows to find, indexed by the hash of their values.
struct Wanted<'a> {
    schema: &'a TableSchema,
    times: &'a [i64],
    columns: Vec<Option<&'a Column>>,
    rows: HashMap<u64, Vec<u32>>,
    left: usize,
}

impl<'a> Wanted<'a> {
    fn new(schema: &'a TableSchema, run: &'a Run) -> Wanted<'a> {
        let columns: Vec<_> = schema.columns.iter().map(|c| run.column(c.id).map(AsRef::as_ref)).collect();
        let mut rows: HashMap<u64, Vec<u32>> = HashMap::with_capacity(run.rows);
        for row in 0..run.rows {
            let hash = hash_row(0, columns.iter().copied(), row);
            rows.entry(hash).or_default().push(row as u32);
        }
        let times = schema.designated.map_or(&[][..], |id| run.timestamps(id));
        Wanted { schema, times, columns, rows, left: run.rows }
    }

    fn may_be_within(&self, range: (i64, i64)) -> bool {
        self.left > 0 && (self.schema.designated.is_none() || may_have(self.times, range))
    }

    fn find_in_block(&mut self, table: &TableSnapshot, segment: &Segment, block: usize, mask: &mut Mask) -> Result<()> {
        let first = block * BLOCK_ROWS;
        let dead = table.mask(segment);
        let mut rows = Vec::new();
        match self.schema.designated {
            Some(designated) => {
                let part = Part::of_block(table, segment, block, designated, |range| self.may_be_within(range))?;
                let Some(part) = part else { return Ok(()) };
                part.with_times_of(self.times, |row| rows.push(row));
            }
            None => rows.extend(0..(segment.rows() as usize).saturating_sub(first).min(BLOCK_ROWS)),
        }
        rows.retain(|row| !dead.is_some_and(|dead| dead.is_dead(first + row)));
        if rows.is_empty() || self.left == 0 {
            return Ok(());
        }
        let read = |id: ColumnId| segment.read(id, block).map(|found| found.map(|block| to_column(&block)));
        let columns = self.schema.columns.iter().map(|c| read(c.id)).collect::<Result<Vec<Option<Column>>>>()?;
        let columns: Vec<Option<&Column>> = columns.iter().map(Option::as_ref).collect();
        for row in rows {
            if !mask.is_dead(first + row) && self.take(&columns, row) {
                mask.kill(first + row);
            }
        }
        Ok(())
    }

    fn find_in_run(&mut self, run: &Run, mask: &mut Mask) {
        if self.schema.designated.is_some() && !self.may_be_within(run.time_range) {
            return;
        }
        let columns: Vec<_> = self.schema.columns.iter().map(|c| run.column(c.id).map(AsRef::as_ref)).collect();
        for row in (0..run.rows).filter(|row| !run.is_dead(*row)) {
            if self.left > 0 && !mask.is_dead(row) && self.take(&columns, row) {
                mask.kill(row);
            }
        }
    }

    /// Returns true if a row with equal values is wanted, and removes that row from the wanted rows.
    fn take(&mut self, columns: &[Option<&Column>], row: usize) -> bool {
        let Some(candidates) = self.rows.get_mut(&hash_row(0, columns.iter().copied(), row)) else { return false };
        let is_same = |wanted: &u32| {
            let mut pairs = self.columns.iter().zip(columns);
            pairs.all(|(own, other)| same_value(*own, *wanted as usize, *other, row))
        };
        let Some(at) = candidates.iter().position(is_same) else { return false };
        candidates.swap_remove(at);
        self.left -= 1;
        true
    }
}
