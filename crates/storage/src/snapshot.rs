//! What a reader pins: one version of one table. Nothing in it ever changes.

use crate::{Damage, DeadRows, Error, Mask, Run, Segment, SymbolMap};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tidalite_types::{ColumnId, SegmentId, TableId, TableSchema, TimeUnit, Txn};

/// Segments and runs together hold every row committed up to `txn`, each row once; those that masks call dead are
/// deleted.
#[derive(Clone, Debug)]
pub struct TableSnapshot {
    pub id: TableId,
    pub schema: Arc<TableSchema>,
    pub txn: Txn,
    /// Ordered by the start of their time range, then by id; those of one partition do not overlap. Behind them the late
    /// ones by id, which do.
    pub segments: Arc<Vec<Arc<Segment>>>,
    /// In order of commit.
    pub runs: Arc<Vec<Arc<Run>>>,
    /// Dictionaries of the symbol columns. They may have grown since; ids in this snapshot are in them.
    pub symbols: Arc<HashMap<ColumnId, Arc<SymbolMap>>>,
    /// The dead rows of segments; those of a run are in it.
    pub dead: Arc<BTreeMap<SegmentId, Arc<Mask>>>,
    /// Rows that arrived since the database was opened, and how often rows were removed by force: with equal
    /// `removals`, the difference of `arrived` says where the staged rows of an older version are in a newer one.
    pub arrived: u64,
    pub removals: u64,
}

impl TableSnapshot {
    /// A table in which nothing was ever committed.
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
        }
    }

    #[must_use]
    pub fn row_count(&self) -> u64 {
        let dead: u64 = self.dead.values().map(|mask| mask.dead() as u64).sum();
        let segments: u64 = self.segments.iter().map(|s| s.rows()).sum();
        segments - dead + self.runs.iter().map(|r| r.alive_rows() as u64).sum::<u64>()
    }

    /// Which rows of a segment are dead; `None` when none are.
    #[must_use]
    pub fn mask(&self, segment: &Segment) -> Option<&Arc<Mask>> {
        self.dead.get(&segment.meta().id)
    }

    /// Marks rows as dead; those of segments and runs that are not here any more are passed over. Gives how many were
    /// alive.
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

    /// Smallest and greatest designated timestamp; `None` when the table is empty or has no designated timestamp.
    /// Dead rows count, too.
    #[must_use]
    pub fn time_range(&self) -> Option<(i64, i64)> {
        self.schema.designated?;
        let segments = self.segments.iter().map(|s| s.time_range());
        let runs = self.runs.iter().map(|r| r.time_range);
        segments.chain(runs).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    /// An error about a damaged segment, in the words of the user: table, partition and column by name.
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

/// A partition as SHOW PARTITIONS calls it.
#[must_use]
pub fn partition_name(schema: &TableSchema, partition: i64) -> String {
    schema.partition_by.name(partition, schema.timestamp().map_or(TimeUnit::Micros, |(_, unit)| unit))
}

/// A column's name in quotes; the number of one that was dropped since.
#[must_use]
pub fn column_name(schema: &TableSchema, id: ColumnId) -> String {
    schema.column_by_id(id).map_or_else(|| format!("number {id}, dropped since"), |c| format!("\"{}\"", c.name))
}
