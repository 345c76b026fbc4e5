//! The net effect of a transaction: deleted rows of existing tables, and inserted rows.

use super::overlay::{Overlay, Touched, died};
use std::sync::Arc;
use tidalite_storage::{Mask, Run, TableSnapshot};
use tidalite_types::{Batch, BatchColumn, Column, ColumnType, Values, Views};

/// The net effect of a transaction on the rows of a table that existed at its start.
#[derive(Debug)]
pub(super) struct NetChange {
    pub base: Arc<TableSnapshot>,
    /// The name that the table has at the end.
    pub name: String,
    /// Rows that statements deleted or changed: for each segment, then for each run of `base`.
    pub changed: Vec<Mask>,
    /// Rows that upserts replaced.
    pub replaced: Vec<Mask>,
    /// Rows whose upsert keys no other transaction may have inserted.
    pub new_only: Vec<Arc<Run>>,
    /// The version whose dictionaries `new_only` uses.
    pub version: Arc<TableSnapshot>,
}

/// Returns the row changes of tables that still exist and that lose rows or have rows in `new_only`.
pub(super) fn changes(overlay: &Overlay) -> Vec<NetChange> {
    let of = |touched: &Touched| {
        let Touched { base, replaced, new_only } = touched;
        let version = overlay.version(base.id)?.clone();
        let gone = died(base, base, &version);
        let changed: Vec<Mask> = gone.iter().zip(replaced).map(|(gone, replaced)| gone.since(Some(replaced))).collect();
        let name = version.schema.name.clone();
        let (base, replaced, new_only) = (base.clone(), replaced.clone(), new_only.clone());
        let is_any = gone.iter().any(|mask| mask.dead() > 0) || !new_only.is_empty();
        is_any.then_some(NetChange { base, name, changed, replaced, new_only, version })
    };
    overlay.touched().filter_map(of).collect()
}

/// Returns the inserted rows; the rows of each table are in insertion order.
pub(super) fn batches(overlay: &Overlay) -> Vec<Batch> {
    let mut batches = Vec::new();
    for version in overlay.versions() {
        let base_runs = overlay.touched().find(|t| t.base.id == version.id).map_or(0, |t| t.base.runs.len());
        batches.extend(version.runs.iter().skip(base_runs).filter_map(|run| batch_of(version, run)));
    }
    batches
}

/// Converts a run to rows that every version of its table accepts: with column names, and symbols as strings.
///
/// Returns `None` if all its rows are deleted.
fn batch_of(table: &TableSnapshot, run: &Run) -> Option<Batch> {
    let alive = run.alive_rows();
    if alive == 0 {
        return None;
    }
    let rows = (alive < run.rows).then(|| (0..run.rows as u32).filter(|row| !run.is_dead(*row as usize)).collect());
    let rows: Option<Vec<u32>> = rows;
    let mut columns = Vec::with_capacity(run.columns.len());
    for (id, column) in &run.columns {
        // A column may have been dropped since.
        let Some(target) = table.schema.column_by_id(*id) else { continue };
        let mut column = match &rows {
            Some(rows) => tidalite_kernels::gather(column, rows),
            None => Column::clone(column),
        };
        let mut dictionary = Views::new();
        if let (ColumnType::Symbol, Some(map)) = (target.column_type, table.symbols.get(id)) {
            dictionary = own_dictionary(&mut column, &map.strings());
        }
        columns.push(BatchColumn {
            name: target.name.clone(),
            column_type: target.column_type,
            column,
            dictionary,
            narrower: None,
        });
    }
    Some(Batch { table: table.schema.name.clone(), rows: alive, columns, timestamps: None, lines: Vec::new() })
}

/// Renumbers the symbols of a column in order of first use; returns the new dictionary.
fn own_dictionary(column: &mut Column, strings: &Views) -> Views {
    let mut dictionary = Views::new();
    let mut codes = std::collections::HashMap::new();
    let validity = column.validity.clone();
    if let Values::U32(ids) = &mut column.values {
        for (row, id) in ids.iter_mut().enumerate() {
            // The value under a NULL may not be a valid symbol id.
            if validity.as_ref().is_some_and(|valid| !valid.get(row)) {
                *id = 0;
                continue;
            }
            *id = *codes.entry(*id).or_insert_with(|| {
                dictionary.push(strings.get(*id as usize));
                dictionary.len() as u32 - 1
            });
        }
    }
    dictionary
}

/// Returns a run with the symbol ids of another table version; unknown symbols get `u32::MAX`.
pub(super) fn renumbered(run: &Run, from: &TableSnapshot, to: &TableSnapshot) -> Run {
    let mut run = run.clone();
    for (id, column) in &mut run.columns {
        let (Some(own), Some(other)) = (from.symbols.get(id), to.symbols.get(id)) else { continue };
        let (strings, column) = (own.strings(), Arc::make_mut(column));
        let validity = column.validity.clone();
        let Values::U32(ids) = &mut column.values else { continue };
        for (row, id) in ids.iter_mut().enumerate() {
            if validity.as_ref().is_none_or(|valid| valid.get(row)) {
                *id = other.id_of(strings.get(*id as usize)).map_or(u32::MAX, |found| found.0);
            }
        }
    }
    run
}
