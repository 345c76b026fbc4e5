//! Shared code of the merge examples: a table with staged rows, and its merge.

use std::sync::Arc;
use tidalite_storage::merge::{MergeOptions, Merged, Threads, merge};
use tidalite_storage::segment::SegmentStore;
use tidalite_storage::{Run, TableSnapshot};
use tidalite_types::{
    Column, ColumnId, ColumnSchema, ColumnType, PartitionBy, SegmentId, TableId, TableSchema, TimeUnit, Values,
};

/// Returns a table without rows, with a designated timestamp and the given other columns, numbered from 1.
pub fn empty(unit: TimeUnit, others: impl IntoIterator<Item = (String, ColumnType)>) -> TableSnapshot {
    let columns: Vec<ColumnSchema> = std::iter::once(("ts".to_owned(), ColumnType::Timestamp(unit)))
        .chain(others)
        .zip(0..)
        .map(|((name, column_type), id)| ColumnSchema { id: ColumnId(id), name, column_type })
        .collect();
    let schema = TableSchema {
        name: "cpu".to_owned(),
        next_column: ColumnId(columns.len() as u32),
        columns,
        designated: Some(ColumnId(0)),
        partition_by: PartitionBy::Day,
        ttl: None,
        lag_us: None,
        dedup: Vec::new(),
        view: None,
    };
    TableSnapshot::empty(TableId(1), Arc::new(schema))
}

/// Stages one run with the given times and values of the other columns.
pub fn stage(table: &mut TableSnapshot, times: Vec<i64>, others: impl IntoIterator<Item = Values>) {
    let rows = times.len();
    let time_range = (times.iter().copied().min().unwrap_or(0), times.iter().copied().max().unwrap_or(0));
    let is_sorted = times.is_sorted();
    let columns = std::iter::once(Values::I64(times))
        .chain(others)
        .zip(0..)
        .map(|(values, id)| (ColumnId(id), Arc::new(Column::new(values))))
        .collect();
    let txn = table.txn.next();
    table.txn = txn;
    table.arrived += rows as u64;
    let run = Run { rows, txns: (txn, txn), time_range, is_sorted, columns, dead: None };
    Arc::make_mut(&mut table.runs).push(Arc::new(run));
}

/// Merges all staged rows into segments numbered after `last`.
pub fn merged(store: &Arc<SegmentStore>, table: &TableSnapshot, threads: Threads<'_>, last: &mut u64) -> Merged {
    let options = MergeOptions { threads, tail_from: None, kept_from: None, late_rows_min: usize::MAX };
    let merged = merge(store, table, &[], &options, &mut || {
        *last += 1;
        SegmentId(*last)
    });
    merged.expect("a merge")
}
