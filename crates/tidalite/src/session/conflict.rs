//! INSERT … ON CONFLICT that depends on existing rows: DO UPDATE with expressions or a condition, and DO NOTHING with
//! RETURNING.
//!
//! Like UPDATE, the rows are found in a snapshot and changed by a commit if they have not moved, and if no row of the
//! same time was inserted in the meantime. Replaced and added rows are one commit.

use super::change::{ATTEMPTS, HOLD_FROM, find, internal};
use super::{Changed, Session, returning};
use crate::writer::RowChange;
use crate::{Error, ErrorKind, Result};
use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use futures::StreamExt;
use std::sync::Arc;
use tidalite_query::statement::{Insert, Name, OnConflict};
use tidalite_query::{CancelToken, Conflicting, to_batch};
use tidalite_storage::{Mask, TableSnapshot};
use tidalite_types::{Batch, ColumnId};

/// Columns before the table's: the address of the existing row, and the number of rows with the same keys.
const BEFORE: usize = 2;

pub(super) async fn insert(
    session: &Session,
    insert: &Insert,
    conflict: &OnConflict,
    brought: Vec<Batch>,
    cancel: &CancelToken,
) -> Result<Changed> {
    let table = Name { text: insert.table.clone(), position: insert.table_position };
    let id = find(session, &table)?.id;
    let _turn = session.shared.changing.turn(id).await;
    let mut hold = None;
    for attempt in 0..ATTEMPTS {
        if attempt == HOLD_FROM {
            hold = Some(session.host.hold_merges(id));
        }
        let seen = find(session, &table)?;
        let found = found(session, insert, conflict, &seen, &brought, cancel).await?;
        let returned = insert.returning.as_ref().map(|query| (query, returning::table_of(&seen, &found.rows)));
        if found.rows.is_empty() {
            return session.changed("INSERT", 0, &insert.table, returned, cancel).await;
        }
        let times = if session.host.is_followed(id) { seen.times_of(&found.hit)? } else { Vec::new() };
        let rows: u64 = found.rows.iter().map(|batch| batch.rows as u64).sum();
        let Found { hit, rows: batches, added } = found;
        let change = RowChange { seen, hit, rows: batches, times, is_exact: true, added: Some(added), view: None };
        if session.host.change(change).await?.is_some() {
            return session.changed("INSERT", rows, &insert.table, returned, cancel).await;
        }
    }
    drop(hold);
    Err(Error::new(
        ErrorKind::Conflict,
        format!("rows of table \"{}\" were changed by others {ATTEMPTS} times while the statement ran", insert.table),
    ))
}

/// Changes of a version of the table.
struct Found {
    /// The replaced rows.
    hit: Vec<Mask>,
    /// Their new values, and the new rows.
    rows: Vec<Batch>,
    /// The times of the new rows.
    added: Vec<i64>,
}

async fn found(
    session: &Session,
    insert: &Insert,
    conflict: &OnConflict,
    seen: &Arc<TableSnapshot>,
    brought: &[Batch],
    cancel: &CancelToken,
) -> Result<Found> {
    let designated = seen.schema.designated;
    let brought = returning::table_of(seen, brought);
    let ranges = brought.runs.iter().map(|run| run.time_range);
    let times = ranges.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).filter(|_| designated.is_some());
    let rows = Conflicting { table: seen.clone(), alias: insert.alias.clone(), brought, times };
    let mut hit = vec![Mask::default(); seen.segments.len() + seen.runs.len()];
    let mut batches = Vec::new();
    let targets = super::write::targets(&seen.schema, &[])?;
    for is_there in [true, false] {
        if is_there && conflict.update.is_none() {
            continue;
        }
        let engine = session.engine()?;
        let result = engine.conflicting(session.catalog(), &rows, conflict, is_there, cancel.clone()).await?;
        let mut stream = result.stream;
        let mut before = 0;
        while let Some(batch) = stream.next().await {
            let batch = batch?;
            if conflict.update.is_some() {
                refuse_twice(&batch, conflict)?;
            }
            if is_there {
                for &address in batch.column(0).as_primitive::<Int64Type>().values() {
                    hit[(address >> 32) as usize].kill(address as u32 as usize);
                }
            }
            let values = batch.project(&(BEFORE..batch.num_columns()).collect::<Vec<_>>()).map_err(internal)?;
            if values.num_rows() > 0 {
                batches.push((is_there, to_batch(&values, &seen.schema.name, &targets, before)?));
                before += values.num_rows() as u64;
            }
        }
    }
    let new = batches.iter().filter(|(is_there, _)| !is_there);
    let added = new.flat_map(|(_, batch)| times_of(seen, designated, batch)).collect();
    Ok(Found { hit, rows: batches.into_iter().map(|(_, batch)| batch).collect(), added })
}

/// As in PostgreSQL, several rows may not update the same row: their order is undefined.
fn refuse_twice(batch: &RecordBatch, conflict: &OnConflict) -> Result<()> {
    let counts = batch.column(1).as_primitive::<Int64Type>();
    if counts.values().iter().all(|count| *count < 2) {
        return Ok(());
    }
    let mut error = Error::new(ErrorKind::Invalid, "ON CONFLICT DO UPDATE cannot change a row a second time");
    error.position = Some(conflict.position);
    error.hint = Some("of the rows to be inserted several have the same upsert keys".to_owned());
    Err(error)
}

fn times_of(seen: &Arc<TableSnapshot>, designated: Option<ColumnId>, batch: &Batch) -> Vec<i64> {
    let table = returning::table_of(seen, std::slice::from_ref(batch));
    let runs = table.runs.iter();
    runs.flat_map(|run| designated.map(|id| run.timestamps(id).to_vec()).unwrap_or_default()).collect()
}
