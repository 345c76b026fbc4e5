//! Table functions about what tables take on the disk and what merging them costs: `table_metrics()`,
//! `table_storage('t')`, `storage()`.

use super::system::{Columns, all, long, one, optional_text, text};
use crate::{Catalog, Error, Result};
use datafusion::arrow::array::{ArrayRef, Float64Array, TimestampMicrosecondArray};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::UNIX_EPOCH;
use tidalite_storage::{Segment, TableSnapshot};
use tidalite_types::{ColumnSchema, TimeUnit};

fn double(values: impl IntoIterator<Item = Option<f64>>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<Float64Array>())
}

/// Since the database was opened: rows committed and what merges wrote for them. The amplification is how many times a
/// merged row was written to segments.
pub(super) fn table_metrics(catalog: &dyn Catalog, _: &[String]) -> Result<Columns> {
    let mut tables = catalog.table_metrics();
    tables.sort_by_key(|t| t.table.to_lowercase());
    let column = |value: fn(&crate::TableMetrics) -> u64| long(tables.iter().map(|t| value(t) as i64));
    let amplification = |t: &crate::TableMetrics| {
        let merged = t.work.merged_rows as f64;
        (merged > 0.0).then(|| (merged + t.work.rewritten_rows as f64) / merged)
    };
    let micros = |t: &crate::TableMetrics| {
        let since = t.work.last_merge?.duration_since(UNIX_EPOCH).ok()?;
        i64::try_from(since.as_micros()).ok()
    };
    let times: TimestampMicrosecondArray = tables.iter().map(micros).collect();
    Ok(vec![
        ("table_name", text(tables.iter().map(|t| t.table.as_str()))),
        ("rowsCommitted", column(|t| t.work.merged_rows + t.staged_rows)),
        ("bytesCommitted", column(|t| t.work.merged_bytes + t.staged_bytes)),
        ("rowsMerged", column(|t| t.work.merged_rows)),
        ("rowsRewritten", column(|t| t.work.rewritten_rows)),
        ("bytesWritten", column(|t| t.work.written_bytes)),
        ("writeAmplification", double(tables.iter().map(amplification))),
        ("merges", column(|t| t.work.merges)),
        ("stagedRows", column(|t| t.staged_rows)),
        ("stagedBytes", column(|t| t.staged_bytes)),
        ("stagedRuns", column(|t| t.staged_runs)),
        ("segments", column(|t| t.segments)),
        ("lateRows", column(|t| t.late_rows)),
        ("segmentBytes", column(|t| t.segment_bytes)),
        ("lastMerge", Arc::new(times.with_timezone("UTC"))),
        ("lastMergeMillis", column(|t| t.work.last_merge_time.as_millis() as u64)),
    ])
}

/// What one column takes in one partition.
#[derive(Clone, Debug, Default)]
struct Stored {
    table: String,
    partition: String,
    column: String,
    column_type: String,
    rows: u64,
    nulls: u64,
    blocks: u64,
    bytes: u64,
    logical_bytes: u64,
    /// Blocks by the name of their encoding.
    encodings: BTreeMap<String, u64>,
}

/// One row for each partition and column of a table.
pub(super) fn table_storage(catalog: &dyn Catalog, arguments: &[String]) -> Result<Columns> {
    Ok(columns(&stored(&*one(catalog, arguments)?)?))
}

/// One row for each table and column.
pub(super) fn storage(catalog: &dyn Catalog, arguments: &[String]) -> Result<Columns> {
    if !arguments.is_empty() {
        return table_storage(catalog, arguments);
    }
    let mut found: Vec<Stored> = Vec::new();
    for table in all(catalog) {
        let mut by_column: BTreeMap<String, Stored> = BTreeMap::new();
        for part in stored(&table)? {
            let sum = by_column.entry(part.column.clone()).or_insert_with(|| Stored {
                rows: 0,
                nulls: 0,
                blocks: 0,
                bytes: 0,
                logical_bytes: 0,
                encodings: BTreeMap::new(),
                partition: String::new(),
                ..part.clone()
            });
            sum.rows += part.rows;
            sum.nulls += part.nulls;
            sum.blocks += part.blocks;
            sum.bytes += part.bytes;
            sum.logical_bytes += part.logical_bytes;
            part.encodings.into_iter().for_each(|(name, blocks)| *sum.encodings.entry(name).or_default() += blocks);
        }
        let order = table.schema.columns.iter().filter_map(|c| by_column.remove(&c.name));
        found.extend(order);
    }
    Ok(columns(&found))
}

fn columns(found: &[Stored]) -> Columns {
    let count = |value: fn(&Stored) -> u64| long(found.iter().map(|s| value(s) as i64));
    let encodings = |s: &Stored| {
        let mut parts: Vec<(&String, &u64)> = s.encodings.iter().collect();
        parts.sort_by_key(|(_, blocks)| std::cmp::Reverse(**blocks));
        parts.iter().map(|(name, blocks)| format!("{name} {blocks}")).collect::<Vec<_>>().join(", ")
    };
    let ratio = |s: &Stored| (s.bytes > 0).then(|| s.logical_bytes as f64 / s.bytes as f64);
    let partition = |s: &Stored| (!s.partition.is_empty()).then(|| s.partition.clone());
    vec![
        ("table_name", text(found.iter().map(|s| s.table.as_str()))),
        ("partition", optional_text(found.iter().map(partition))),
        ("column", text(found.iter().map(|s| s.column.as_str()))),
        ("type", text(found.iter().map(|s| s.column_type.as_str()))),
        ("rows", count(|s| s.rows)),
        ("nulls", count(|s| s.nulls)),
        ("encoding", text(found.iter().map(encodings))),
        ("blocks", count(|s| s.blocks)),
        ("bytes", count(|s| s.bytes)),
        ("logicalBytes", count(|s| s.logical_bytes)),
        ("ratio", double(found.iter().map(ratio))),
    ]
}

fn stored(table: &TableSnapshot) -> Result<Vec<Stored>> {
    let unit = table.schema.timestamp().map_or(TimeUnit::Micros, |(_, unit)| unit);
    let mut by_place: BTreeMap<(i64, usize), Stored> = BTreeMap::new();
    for segment in table.segments.iter() {
        for (place, column) in table.schema.columns.iter().enumerate() {
            let partition = segment.meta().partition;
            let sum = by_place.entry((partition, place)).or_insert_with(|| Stored {
                table: table.schema.name.clone(),
                partition: table.schema.partition_by.name(partition, unit),
                column: column.name.clone(),
                column_type: column.column_type.to_string(),
                ..Stored::default()
            });
            add(segment, column, sum)?;
        }
    }
    Ok(by_place.into_values().collect())
}

fn add(segment: &Segment, column: &ColumnSchema, sum: &mut Stored) -> Result<()> {
    for block in 0..segment.block_count() {
        let found = segment.stored(column.id, block).map_err(Error::from)?;
        let rows = segment.block_rows(block) as u64;
        sum.rows += rows;
        let Some(found) = found else {
            sum.nulls += rows;
            continue;
        };
        sum.nulls += u64::from(found.zone.null_count);
        sum.blocks += 1;
        sum.bytes += u64::from(found.bytes);
        sum.logical_bytes += found.logical_bytes;
        *sum.encodings.entry(format!("{:?}", found.encoding).to_lowercase()).or_default() += 1;
    }
    Ok(())
}
