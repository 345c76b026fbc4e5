//! DELETE and UPDATE: rows are found in a snapshot, then changed by a commit if they have not moved.
//!
//! Statements that change rows of one table run one after another. In between, merges may move rows, and commits may
//! replace rows. The rows are then located again, finally with merges on hold.

use super::returning::rows_hit;
use super::{Changed, Session, returning};
use crate::writer::RowChange;
use crate::{Error, ErrorKind, Result};
use arrow::array::{AsArray, BooleanArray, RecordBatch, UInt32Array};
use arrow::datatypes::Int64Type;
use futures::StreamExt;
use futures::lock::{Mutex as AsyncMutex, OwnedMutexGuard};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tidalite_query::statement::{Delete, Name, Query, Update};
use tidalite_query::{CancelToken, Target, to_batch};
use tidalite_storage::{Mask, TableSnapshot};
use tidalite_types::{Batch, TableId};

/// Attempt from which on merges of the table are on hold.
pub(crate) const HOLD_FROM: usize = 2;
/// Largest number of attempts. After that only dropped partitions and replaced rows can interfere.
pub(crate) const ATTEMPTS: usize = 50;

/// Locks of tables whose rows change.
#[derive(Debug, Default)]
pub(crate) struct Changing(Mutex<HashMap<TableId, Arc<AsyncMutex<()>>>>);

impl Changing {
    pub(crate) async fn turn(&self, table: TableId) -> OwnedMutexGuard<()> {
        let turn = crate::shared::lock(&self.0).entry(table).or_default().clone();
        turn.lock_owned().await
    }
}

pub(super) async fn delete(session: &Session, delete: Delete, cancel: &CancelToken) -> Result<Changed> {
    let wanted =
        Wanted { table: &delete.table, query: delete.query.as_ref(), columns: &[], returning: &delete.returning };
    change(session, "DELETE", wanted, cancel).await
}

pub(super) async fn update(session: &Session, update: Update, cancel: &CancelToken) -> Result<Changed> {
    let (query, columns) = (Some(&update.query), &update.columns[..]);
    let wanted = Wanted { table: &update.table, query, columns, returning: &update.returning };
    change(session, "UPDATE", wanted, cancel).await
}

/// The request of a statement.
struct Wanted<'a> {
    table: &'a Name,
    query: Option<&'a Query>,
    columns: &'a [Name],
    returning: &'a Option<Query>,
}

async fn change(session: &Session, tag: &'static str, wanted: Wanted<'_>, cancel: &CancelToken) -> Result<Changed> {
    let Wanted { table, query, columns, returning } = wanted;
    // The RETURNING clause is checked before anything is changed.
    if let Some(returning) = returning {
        session.engine()?.check(&session.catalog(), returning, cancel).await?;
    }
    let found = find(session, table)?;
    super::write::refuse_view(&found.schema, table.position)?;
    let id = found.id;
    let _turn = session.shared.changing.turn(id).await;
    let mut hold = None;
    for attempt in 0..ATTEMPTS {
        if attempt == HOLD_FROM {
            hold = Some(session.host.hold_merges(id));
        }
        let seen = find(session, table)?;
        let (hit, rows) = match query {
            None => (all_rows(&seen), Vec::new()),
            Some(query) => matching(session, table, &seen, query, columns, cancel).await?,
        };
        let returned = returning.as_ref().map(|query| {
            let rows = if columns.is_empty() { rows_hit(&seen, &hit) } else { returning::table_of(&seen, &rows) };
            (query, rows)
        });
        if hit.iter().all(|mask| mask.dead() == 0) {
            return session.changed(tag, 0, &table.text, returned, cancel).await;
        }
        // Views require the times of changed rows.
        let times = if session.host.is_followed(id) { seen.times_of(&hit)? } else { Vec::new() };
        let change = RowChange { seen, hit, rows, times, is_exact: returned.is_some(), added: None, view: None };
        if let Some(changed) = session.host.change(change).await? {
            return session.changed(tag, changed, &table.text, returned, cancel).await;
        }
    }
    drop(hold);
    Err(Error::new(
        ErrorKind::Conflict,
        format!("rows of table \"{}\" were changed by others {ATTEMPTS} times while the statement ran", table.text),
    ))
}

pub(super) fn find(session: &Session, table: &Name) -> Result<Arc<TableSnapshot>> {
    let found = session.host.snapshots(&[&table.text]).pop().flatten();
    found.ok_or_else(|| {
        let mut error = Error::new(ErrorKind::NotFound, format!("table \"{}\" does not exist", table.text));
        error.position = Some(table.position);
        error
    })
}

/// Returns every row of a version that is not deleted.
pub(crate) fn all_rows(seen: &TableSnapshot) -> Vec<Mask> {
    let segments = seen.segments.iter().map(|s| (s.rows() as usize, seen.mask(s).map(AsRef::as_ref)));
    let runs = seen.runs.iter().map(|run| (run.rows, run.dead.as_deref()));
    let alive = |(rows, dead)| std::iter::once((0, rows)).collect::<Mask>().since(dead);
    segments.chain(runs).map(alive).collect()
}

/// Returns the matching rows and their new values.
async fn matching(
    session: &Session,
    table: &Name,
    seen: &Arc<TableSnapshot>,
    query: &Query,
    columns: &[Name],
    cancel: &CancelToken,
) -> Result<(Vec<Mask>, Vec<Batch>)> {
    let targets = if columns.is_empty() { Vec::new() } else { targets(seen, columns)? };
    let others: Vec<&str> = targets.iter().skip(columns.len()).map(|t| t.name.as_str()).collect();
    let engine = session.engine()?;
    let result = engine.addressed(session.catalog(), seen.clone(), &table.text, query, &others, cancel.clone()).await?;
    let mut stream = result.stream;
    let mut hit = vec![Mask::default(); seen.segments.len() + seen.runs.len()];
    let mut rows = Vec::new();
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        let addresses = batch.column(0).as_primitive::<Int64Type>().values();
        // A row that was joined with several rows occurs several times.
        let is_first = |&address: &i64| hit[(address >> 32) as usize].kill(address as u32 as usize);
        let is_first: BooleanArray = addresses.iter().map(is_first).map(Some).collect();
        if targets.is_empty() || is_first.true_count() == 0 {
            continue;
        }
        rows.push(match is_first.false_count() {
            0 => batch,
            _ => arrow::compute::filter_record_batch(&batch, &is_first).map_err(internal)?,
        });
    }
    let rows = in_order_of_arrival(rows)?;
    let mut before = 0;
    let batches = rows.into_iter().map(|batch| {
        let values = batch.project(&(1..batch.num_columns()).collect::<Vec<_>>()).map_err(internal)?;
        before += values.num_rows() as u64;
        Ok(to_batch(&values, &seen.schema.name, &targets, before - values.num_rows() as u64)?)
    });
    let batches = batches.collect::<Result<_>>()?;
    Ok((hit, batches))
}

/// Returns the assigned columns, then all others.
fn targets(table: &TableSnapshot, assigned: &[Name]) -> Result<Vec<Target>> {
    let mut targets = super::write::targets(&table.schema, assigned)?;
    let others: Vec<Target> = super::write::targets(&table.schema, &[])?
        .into_iter()
        .filter(|other| !targets.iter().any(|t| t.name == other.name))
        .collect();
    targets.extend(others);
    Ok(targets)
}

/// Sorts by address: addresses ascend with time and, for equal times, with the order of arrival, which updated rows
/// keep.
fn in_order_of_arrival(batches: Vec<RecordBatch>) -> Result<Vec<RecordBatch>> {
    let addresses = |batch: &RecordBatch| batch.column(0).as_primitive::<Int64Type>().values().to_vec();
    let all: Vec<i64> = batches.iter().flat_map(addresses).collect();
    if all.is_sorted() {
        return Ok(batches);
    }
    let Some(first) = batches.first() else { return Ok(batches) };
    let whole = arrow::compute::concat_batches(&first.schema(), &batches).map_err(internal)?;
    let mut order: Vec<u32> = (0..all.len() as u32).collect();
    order.sort_unstable_by_key(|row| all[*row as usize]);
    Ok(vec![arrow::compute::take_record_batch(&whole, &UInt32Array::from(order)).map_err(internal)?])
}

pub(super) fn internal(error: arrow::error::ArrowError) -> Error {
    Error::new(ErrorKind::Internal, error.to_string())
}
