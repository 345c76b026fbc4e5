//! RETURNING: the rows that a statement wrote or removed, as a table of only these rows.

use std::collections::BTreeMap;
use std::sync::Arc;
use tidalite_storage::{Mask, Run, SymbolMap, TableSnapshot};
use tidalite_types::{Batch, ColumnType, Values};

/// Returns a table with the schema of `like` and the rows of `batches`, whose values have the types of its columns.
pub(super) fn table_of(like: &TableSnapshot, batches: &[Batch]) -> Arc<TableSnapshot> {
    let symbols = like.schema.columns.iter().filter(|c| c.column_type == ColumnType::Symbol);
    let symbols = symbols.map(|c| (c.id, Arc::new(SymbolMap::new()))).collect();
    let mut table = TableSnapshot {
        segments: Arc::default(),
        runs: Arc::default(),
        symbols: Arc::new(symbols),
        dead: Arc::default(),
        ..like.clone()
    };
    let runs = batches.iter().filter(|batch| batch.rows > 0).map(|batch| Arc::new(run_of(&table, batch)));
    table.runs = Arc::new(runs.collect());
    Arc::new(table)
}

fn run_of(table: &TableSnapshot, batch: &Batch) -> Run {
    let mut columns = Vec::with_capacity(batch.columns.len());
    for given in &batch.columns {
        let Some(target) = table.schema.column(&given.name) else { continue };
        let mut column = given.column.clone();
        if let (Some(map), Values::U32(codes)) = (table.symbols.get(&target.id), &mut column.values) {
            let (ids, _) = map.intern_all(given.dictionary.iter());
            // Codes of NULL rows may be out of range.
            codes.iter_mut().for_each(|code| *code = ids.get(*code as usize).copied().unwrap_or(0));
        }
        columns.push((target.id, Arc::new(column)));
    }
    let txns = (table.txn, table.txn);
    let mut run = Run { rows: batch.rows, txns, time_range: (0, 0), is_sorted: true, columns, dead: None };
    if let Some(id) = table.schema.designated {
        let times = run.timestamps(id);
        let range = times.iter().fold((i64::MAX, i64::MIN), |(lo, hi), &ts| (lo.min(ts), hi.max(ts)));
        (run.is_sorted, run.time_range) = (times.is_sorted(), range);
    }
    run
}

/// Returns the rows `hit` of a version: a mask for each segment, then for each run.
pub(super) fn rows_hit(seen: &TableSnapshot, hit: &[Mask]) -> Arc<TableSnapshot> {
    let (mut segments, mut dead) = (Vec::new(), BTreeMap::new());
    for (segment, mask) in seen.segments.iter().zip(hit).filter(|(_, mask)| mask.dead() > 0) {
        segments.push(segment.clone());
        dead.insert(segment.meta().id, Arc::new(all_but(mask, segment.rows() as usize)));
    }
    let of_runs = hit.get(seen.segments.len()..).unwrap_or_default();
    let runs = seen.runs.iter().zip(of_runs).filter(|(_, mask)| mask.dead() > 0);
    let runs =
        runs.map(|(run, mask)| Arc::new(Run { dead: Some(Arc::new(all_but(mask, run.rows))), ..Run::clone(run) }));
    let runs = Arc::new(runs.collect());
    Arc::new(TableSnapshot { segments: Arc::new(segments), runs, dead: Arc::new(dead), ..seen.clone() })
}

fn all_but(kept: &Mask, rows: usize) -> Mask {
    let (mut dead, mut from) = (Mask::default(), 0);
    for (start, count) in kept.ranges() {
        dead.kill_range(from, start - from);
        from = start + count;
    }
    dead.kill_range(from, rows.saturating_sub(from));
    dead
}
