//! Tables with upsert keys: existing rows are deleted when a row with the same keys arrives.
//!
//! Input: the operations of a commit, and each table after all previous commits. Output: the operations with the
//! deleted rows, and without unnecessary operations: of rows with the same keys the last one wins, and a row that
//! equals an existing row in every column is dropped. If a commit requests it, existing rows win and the new rows are
//! dropped.
//!
//! Only rows that may have the same timestamps are examined: segments, blocks and runs whose time range contains times
//! of the new rows. Rows that arrive in time order cost one comparison for each range.
//!
//! Keys are compared as SQL groups them: NULL equals NULL, NaN equals NaN, −0 equals 0; symbols are compared by id,
//! text by its bytes.

pub(crate) mod part;
pub(crate) mod value;

use crate::apply::publish;
use crate::catalog::Catalog;
use crate::wal::record::Op;
use part::Part;
use std::sync::Arc;
use tidalite_storage::dead::ranges_of;
use tidalite_storage::tables::Versions;
use tidalite_storage::{DeadRows, Result, Run, TableSnapshot};
use tidalite_types::{BLOCK_ROWS, Column, ColumnId, ColumnSchema, TableId, TableSchema, Txn};
use value::{as_key, hash_row, same_key, same_value};

/// Returns true if any operation adds rows to a table with upsert keys.
#[must_use]
pub fn concerns(catalog: &Catalog, ops: &[Op]) -> bool {
    ops.iter().any(|op| match op {
        Op::Rows { table, .. } => catalog.get(*table).is_some_and(|entry| !entry.schema.dedup.is_empty()),
        _ => false,
    })
}

/// The row that wins among rows with the same keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wins {
    Last,
    First,
}

/// Resolves duplicate keys. `view` returns a table before the commit; `None` for a table that this commit creates.
pub fn resolve(
    catalog: &Catalog,
    ops: &[Op],
    txn: Txn,
    wins: Wins,
    mut view: impl FnMut(TableId) -> Option<Arc<TableSnapshot>>,
) -> Result<Vec<Op>> {
    let mut versions = Versions::default();
    let has_keys = |id| catalog.get(id).is_some_and(|entry| !entry.schema.dedup.is_empty());
    for op in ops {
        if has_keys(op.table())
            && versions.get(op.table()).is_none()
            && let Some(version) = view(op.table())
        {
            versions.adopt(version);
        }
    }
    let mut resolved = Vec::with_capacity(ops.len());
    for (at, op) in ops.iter().enumerate() {
        let mut some = vec![op.clone()];
        if let Op::Rows { table, run } = op
            && let Some(now) = versions.get(*table)
            && !now.schema.dedup.is_empty()
        {
            let (dead, run) = upsert(now, run, wins)?;
            some.clear();
            if !dead.is_empty() {
                some.push(Op::Delete { table: *table, dead: Arc::new(dead) });
            }
            some.extend(run.map(|run| Op::Rows { table: *table, run }));
        }
        if ops[at + 1..].iter().any(|later| later.table() == op.table()) {
            publish(&mut versions, catalog, txn, some.clone());
        }
        resolved.extend(some);
    }
    Ok(resolved)
}

/// Returns the rows of `table` that `run` replaces, and the rows of `run` to append.
fn upsert(table: &TableSnapshot, run: &Run, wins: Wins) -> Result<(DeadRows, Option<Run>)> {
    let Some(designated) = table.schema.designated.filter(|_| run.rows > 0) else {
        return Ok((DeadRows::default(), Some(run.clone())));
    };
    // Sorted, so that later commits find the rows by search.
    let run = if run.is_sorted { run.clone() } else { run.sorted(designated) };
    let mut new = NewRows::of(&table.schema, &run, designated, wins);
    new.index_repeated();
    let mut dead = DeadRows::default();
    let times = new.times;
    for segment in table.segments.iter().filter(|s| may_have(times, s.time_range())) {
        let mut rows = Vec::new();
        for block in 0..segment.block_count() {
            if let Some(part) = Part::of_block(table, segment, block, designated, |range| may_have(times, range))? {
                new.replace(&part, |row| rows.push((block * BLOCK_ROWS + row) as u64))?;
            }
        }
        if !rows.is_empty() {
            dead.segments.push((segment.meta().id, ranges_of(rows)));
        }
    }
    let (mut distances, mut behind) = (Vec::new(), 0);
    for old in table.runs.iter().rev() {
        if may_have(times, old.time_range) {
            let part = Part::of_run(old, designated);
            new.replace(&part, |row| distances.push(behind + (old.rows - 1 - row) as u64))?;
        }
        behind += old.rows as u64;
    }
    distances.sort_unstable();
    dead.staged = ranges_of(distances);
    Ok((dead, new.left()))
}

/// Returns true if a row of `table` has the upsert keys of a row of `run`.
///
/// No two rows of `run` may have the same keys.
///
/// # Errors
/// A block cannot be read.
pub fn has_keys_of(table: &TableSnapshot, run: &Run) -> Result<bool> {
    let (_, left) = upsert(table, run, Wins::First)?;
    Ok(left.map_or(0, |left| left.rows) < run.rows)
}

/// Returns true if one of `times` is in the range.
pub(crate) fn may_have(times: &[i64], (lo, hi): (i64, i64)) -> bool {
    let at = times.partition_point(|ts| *ts < lo);
    times.get(at).is_some_and(|ts| *ts <= hi)
}

/// The rows of a commit, sorted by time and indexed by their keys.
struct NewRows<'a> {
    schema: &'a TableSchema,
    run: &'a Run,
    times: &'a [i64],
    /// Upsert keys besides the designated timestamp, and their columns here: `None` when all rows have NULL.
    keys: Vec<(&'a ColumnSchema, Option<Arc<Column>>)>,
    /// Rows by the hash of their time and keys, open addressing: row + 1, 0 for none. Made at the first need.
    index: Vec<u32>,
    /// Rows that are not appended: replaced by a later row of this commit, or already in the table.
    is_needless: Vec<bool>,
    needless: usize,
    wins: Wins,
}

impl<'a> NewRows<'a> {
    fn of(schema: &'a TableSchema, run: &'a Run, designated: ColumnId, wins: Wins) -> NewRows<'a> {
        let keys = schema.columns.iter().filter(|c| c.id != designated && schema.dedup.contains(&c.id));
        let keys = keys.map(|c| (c, run.column(c.id).map(|column| as_key(column, c.column_type)))).collect();
        let times = run.timestamps(designated);
        NewRows { schema, run, times, keys, index: Vec::new(), is_needless: Vec::new(), needless: 0, wins }
    }

    /// Indexes rows if some may be replaced by later rows of the same commit.
    fn index_repeated(&mut self) {
        if self.times.windows(2).any(|pair| pair[0] == pair[1]) {
            self.make_index();
        }
    }

    /// Builds the index, which contains the winning row of those with the same keys.
    fn make_index(&mut self) {
        if !self.index.is_empty() {
            return;
        }
        self.index = vec![0; (2 * self.times.len()).next_power_of_two().max(2)];
        let own: Vec<_> = self.keys.iter().map(|(_, column)| column.clone()).collect();
        let own: Vec<Option<&Column>> = own.iter().map(|column| column.as_deref()).collect();
        let count = self.times.len();
        for n in 0..count {
            let row = if self.wins == Wins::Last { count - 1 - n } else { n };
            match self.slot(self.times[row], &own, row) {
                Ok(_) => self.drop_row(row),
                Err(slot) => self.index[slot] = row as u32 + 1,
            }
        }
    }

    /// Returns the row with the given time and the keys of row `row` of `others`, or the slot for it.
    fn slot(&self, time: i64, others: &[Option<&Column>], row: usize) -> Result<usize, usize> {
        let columns = self.keys.iter().map(|(_, new)| new.as_deref()).zip(others.iter().copied());
        let hash = hash_row(time, others.iter().copied(), row);
        let mut slot = hash as usize & (self.index.len() - 1);
        loop {
            let Some(found) = (self.index[slot] as usize).checked_sub(1) else { return Err(slot) };
            if self.times[found] == time && columns.clone().all(|(new, old)| same_key(new, found, old, row)) {
                return Ok(found);
            }
            slot = (slot + 1) & (self.index.len() - 1);
        }
    }

    fn drop_row(&mut self, row: usize) {
        self.is_needless.resize(self.times.len(), false);
        self.needless += usize::from(!std::mem::replace(&mut self.is_needless[row], true));
    }

    /// Calls `kill` with every row of `part` that is not deleted and that one of these rows replaces.
    fn replace(&mut self, part: &Part<'_>, mut kill: impl FnMut(usize)) -> Result<()> {
        let mut rows = Vec::new();
        part.with_times_of(self.times, |row| rows.push(row));
        rows.retain(|row| !part.is_dead(*row));
        if rows.is_empty() {
            return Ok(());
        }
        self.make_index();
        let key = |c: &ColumnSchema| Ok(part.column(c.id)?.map(|column| as_key(&column, c.column_type)));
        let keys: Vec<_> = self.keys.iter().map(|(column, _)| key(column)).collect::<Result<_>>()?;
        let keys: Vec<Option<&Column>> = keys.iter().map(|column| column.as_deref()).collect();
        let mut others = None;
        for row in rows {
            let Ok(found) = self.slot(part.times()[row], &keys, row) else { continue };
            if self.wins == Wins::First {
                self.drop_row(found);
                continue;
            }
            let others = match &others {
                Some(others) => others,
                None => others.insert(self.beside(part.columns(self.schema)?)),
            };
            let is_same = others.iter().all(|(new, old)| same_value(*new, found, old.as_deref(), row));
            if is_same {
                self.drop_row(found);
            } else {
                kill(row);
            }
        }
        Ok(())
    }

    /// Pairs columns of the new rows with columns of others.
    fn beside<C>(&self, others: Vec<(ColumnId, C)>) -> Vec<(Option<&'a Column>, C)> {
        others.into_iter().map(|(id, old)| (self.run.column(id).map(AsRef::as_ref), old)).collect()
    }

    fn left(self) -> Option<Run> {
        if self.needless == 0 {
            return Some(self.run.clone());
        }
        let rows: Vec<u32> = (0..self.times.len() as u32).filter(|row| !self.is_needless[*row as usize]).collect();
        let (first, last) = (*rows.first()?, *rows.last()?);
        Some(self.run.taken(&rows, (self.times[first as usize], self.times[last as usize])))
    }
}

#[cfg(test)]
mod tests;
