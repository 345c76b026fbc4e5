//! The snapshot that a reader pins: one immutable version of one table.

use crate::{Damage, DeadRows, Error, Mask, Run, Segment, SymbolMap};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tidalite_types::{ColumnId, SegmentId, TableId, TableSchema, TimeUnit, Txn};

/// One version of a table.
///
/// Segments and runs together contain every row committed up to `txn` once; rows set in deletion vectors are deleted.
#[derive(Clone, Debug)]
pub struct TableSnapshot {
    pub id: TableId,
    pub schema: Arc<TableSchema>,
    pub txn: Txn,
    /// Sorted by the start of their time range, then by id; segments of one partition do not overlap. Late segments
    /// follow, sorted by id; they may overlap.
    pub segments: Arc<Vec<Arc<Segment>>>,
    /// In order of commit.
    pub runs: Arc<Vec<Arc<Run>>>,
    /// Dictionaries of the symbol columns. They may have grown since, but contain all ids of this snapshot.
    pub symbols: Arc<HashMap<ColumnId, Arc<SymbolMap>>>,
    /// The deletion vectors of segments; the deletion vector of a run is in the run.
    pub dead: Arc<BTreeMap<SegmentId, Arc<Mask>>>,
    /// Number of rows that arrived since the database was opened.
    ///
    /// If `removals` of two versions is equal, the difference of `arrived` locates the staged rows of the older version
    /// in the newer one. `removals` counts truncations, dropped partitions, attached loads, and merges that leave rows
    /// staged.
    pub arrived: u64,
    pub removals: u64,
    /// The last commit that attached the segments of a load; 0 for none.
    pub attached: Txn,
}

impl TableSnapshot {
    /// Returns a table without commits.
    #[must_use]
    pub fn empty(id: TableId, schema: Arc<TableSchema>) -> TableSnapshot {
        TableSnapshot {
            id,
            schema,
            txn: Txn(0),
            segments: Arc::default(),
            runs: Arc::default(),
            symbols: Arc::default(),
            dead: Arc::default(),
            arrived: 0,
            removals: 0,
            attached: Txn(0),
        }
    }

    #[must_use]
    pub fn row_count(&self) -> u64 {
        let dead: u64 = self.dead.values().map(|mask| mask.dead() as u64).sum();
        let segments: u64 = self.segments.iter().map(|s| s.rows()).sum();
        segments - dead + self.runs.iter().map(|r| r.alive_rows() as u64).sum::<u64>()
    }

    /// Returns the deletion vector of a segment; `None` if no row is deleted.
    #[must_use]
    pub fn mask(&self, segment: &Segment) -> Option<&Arc<Mask>> {
        self.dead.get(&segment.meta().id)
    }

    /// Deletes rows and returns the number of rows that were not deleted before.
    ///
    /// Rows of segments and runs that no longer exist are ignored.
    pub fn kill(&mut self, rows: &DeadRows) -> u64 {
        let mut killed = 0;
        for (segment, ranges) in rows.segments.iter().filter(|(_, ranges)| !ranges.is_empty()) {
            let Some(found) = self.segments.iter().find(|s| s.meta().id == *segment) else { continue };
            let mask = Arc::make_mut(Arc::make_mut(&mut self.dead).entry(*segment).or_default());
            for &(from, count) in ranges {
                let end = found.rows().min(from + count);
                killed += mask.kill_range(from as usize, end.saturating_sub(from) as usize) as u64;
            }
        }
        killed + self.kill_staged(&rows.staged)
    }

    fn kill_staged(&mut self, ranges: &[(u64, u64)]) -> u64 {
        if ranges.is_empty() {
            return 0;
        }
        let runs = Arc::make_mut(&mut self.runs);
        let (mut killed, mut behind) = (0, 0_u64);
        for run in runs.iter_mut().rev() {
            let (from, to) = (behind, behind + run.rows as u64);
            behind = to;
            for &(skip, count) in ranges {
                let (lo, hi) = (skip.max(from), (skip + count).min(to));
                if lo < hi {
                    let run = Arc::make_mut(run);
                    let mask = Arc::make_mut(run.dead.get_or_insert_default());
                    killed += mask.kill_range((to - hi) as usize, (hi - lo) as usize) as u64;
                }
            }
        }
        killed
    }

    /// Returns the smallest and the greatest designated timestamp, including deleted rows.
    ///
    /// Returns `None` if the table is empty or has no designated timestamp.
    #[must_use]
    pub fn time_range(&self) -> Option<(i64, i64)> {
        self.schema.designated?;
        let segments = self.segments.iter().map(|s| s.time_range());
        let runs = self.runs.iter().map(|r| r.time_range);
        segments.chain(runs).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    /// Adds the names of table, partition and column to an error about a damaged segment.
    #[must_use]
    pub fn named(&self, error: Error) -> Error {
        let Some(Damage { partition, column, file, offset, problem, .. }) = error.damage() else { return error };
        let column = column.map_or_else(String::new, |id| format!(", column {}", column_name(&self.schema, id)));
        let message = format!(
            "table \"{}\", partition {}{column}: {} is damaged at byte {offset}: {problem}",
            self.schema.name,
            partition_name(&self.schema, *partition),
            file.display(),
        );
        error.reworded(message)
    }
}

/// Returns the name of a partition in SHOW PARTITIONS.
#[must_use]
pub fn partition_name(schema: &TableSchema, partition: i64) -> String {
    schema.partition_by.name(partition, schema.timestamp().map_or(TimeUnit::Micros, |(_, unit)| unit))
}

/// Returns the quoted name of a column, or its number if it was dropped.
#[must_use]
pub fn column_name(schema: &TableSchema, id: ColumnId) -> String {
    schema.column_by_id(id).map_or_else(|| format!("number {id}, dropped since"), |c| format!("\"{}\"", c.name))
}
