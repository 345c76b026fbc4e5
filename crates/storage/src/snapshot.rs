//! What a reader pins: one version of one table. Nothing in it ever changes.

use crate::{Run, Segment, SymbolMap};
use std::collections::HashMap;
use std::sync::Arc;
use tidalite_types::{ColumnId, TableId, TableSchema, Txn};

/// Segments and runs together hold every row committed up to `txn`, each row once.
#[derive(Clone, Debug)]
pub struct TableSnapshot {
    pub id: TableId,
    pub schema: Arc<TableSchema>,
    pub txn: Txn,
    /// Ordered by the start of their time range, then by id. Those of one partition do not overlap.
    pub segments: Arc<Vec<Arc<Segment>>>,
    /// In order of commit.
    pub runs: Arc<Vec<Arc<Run>>>,
    /// Dictionaries of the symbol columns. They may have grown since; ids in this snapshot are in them.
    pub symbols: Arc<HashMap<ColumnId, Arc<SymbolMap>>>,
}

impl TableSnapshot {
    #[must_use]
    pub fn row_count(&self) -> u64 {
        self.segments.iter().map(|s| s.rows()).sum::<u64>() + self.runs.iter().map(|r| r.rows as u64).sum::<u64>()
    }

    /// Smallest and greatest designated timestamp; `None` when the table is empty or has no designated timestamp.
    #[must_use]
    pub fn time_range(&self) -> Option<(i64, i64)> {
        self.schema.designated?;
        let segments = self.segments.iter().map(|s| s.time_range());
        let runs = self.runs.iter().map(|r| r.time_range);
        segments.chain(runs).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }
}
