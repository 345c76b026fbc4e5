//! The content of manifest edits and checkpoints for a version of a table.

use std::collections::HashMap;
use std::sync::Arc;
use tidalite_ingest::wal::record::Op;
use tidalite_storage::dead::{DeadRows, ranges_of_mask};
use tidalite_storage::manifest::{Change, State};
use tidalite_storage::{Run, Segment, TableSnapshot, symbol_file};
use tidalite_types::{ColumnId, SegmentId, TableId, Txn};

/// Returns the edits that make the manifest agree with a table's schema and segments.
pub(crate) fn reconcile(
    next_segment: SegmentId,
    state: &State,
    version: &TableSnapshot,
    segments: &[Arc<Segment>],
) -> Vec<Change> {
    let (id, known) = (version.id, state.tables.get(&version.id));
    let mut changes = vec![Change::NextIds { table: TableId(id.0 + 1), segment: next_segment }];
    if known.is_none_or(|t| t.schema != *version.schema) {
        let (schema, schema_txn) = (version.schema.as_ref().clone(), version.txn);
        changes.push(Change::Schema { table: id, schema, schema_txn });
    }
    let is_known = |s: &&Arc<Segment>| known.is_some_and(|t| t.segments.contains_key(&s.meta().id));
    let add: Vec<_> = segments.iter().filter(|s| !is_known(s)).map(|s| s.meta().clone()).collect();
    let kept: std::collections::HashSet<SegmentId> = segments.iter().map(|s| s.meta().id).collect();
    let remove: Vec<_> =
        known.into_iter().flat_map(|t| t.segments.keys()).filter(|id| !kept.contains(id)).copied().collect();
    if !add.is_empty() || !remove.is_empty() {
        changes.push(Change::Content { table: id, add, remove, merged: Txn(0), symbol_bytes: 0 });
    }
    if version.attached > known.map_or(Txn(0), |t| t.attached) {
        changes.push(Change::Attached { table: id, txn: version.attached });
    }
    changes
}

/// Returns a table's operations for a checkpoint: strings that are not yet in its symbol file, then its rows.
pub(crate) fn staged_ops(table: &TableSnapshot, persisted: &HashMap<ColumnId, u32>) -> impl Iterator<Item = Op> {
    let id = table.id;
    let symbols = symbol_file::pending(&table.symbols, persisted);
    let symbols = symbols.into_iter().map(move |e| Op::Symbols { table: id, entries: Arc::new(e) });
    symbols.chain(staged_rows(table))
}

/// Returns the rows of a table that are only in memory: staged rows, and deleted rows of runs and segments.
fn staged_rows(table: &TableSnapshot) -> impl Iterator<Item = Op> {
    let kill = |dead: DeadRows| Op::Delete { table: table.id, dead: Arc::new(dead) };
    let segments = table.dead.iter().map(|(&segment, mask)| (segment, ranges_of_mask(mask))).collect();
    let of_segments = Some(DeadRows { segments, ..DeadRows::default() }).filter(|dead| !dead.is_empty());
    // The deleted rows of a run follow it and are counted from its end.
    let runs = table.runs.iter().flat_map(move |run| {
        let ranges = run.dead.as_ref().map(|mask| mask.ranges()).unwrap_or_default().into_iter().rev();
        let staged = ranges.map(|(from, count)| ((run.rows - from - count) as u64, count as u64)).collect();
        let dead = Some(DeadRows { staged, ..DeadRows::default() }).filter(|dead| !dead.is_empty());
        let rows = Op::Rows { table: table.id, run: Run { dead: None, ..Run::clone(run) } };
        std::iter::once(rows).chain(dead.map(kill))
    });
    of_segments.map(kill).into_iter().chain(runs)
}
