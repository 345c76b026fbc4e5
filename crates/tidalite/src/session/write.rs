//! The rows of a query become a commit: INSERT and CREATE TABLE AS.
//!
//! A VALUES list is one commit. A query of more than [`COMMIT_ROWS`] rows is one commit for every so many, as in
//! QuestDB: rows that were committed stay when a later one fails. A table that CREATE TABLE AS made is dropped
//! again when it fails.

use super::Session;
use crate::{Error, ErrorKind, Result};
use futures::StreamExt;
use std::collections::HashSet;
use tidalite_query::statement::{CreateTableAs, Insert, Name};
use tidalite_query::{CancelToken, QueryResult, Target, to_batch};
use tidalite_types::command::CreateTable;
use tidalite_types::schema::fold_name;
use tidalite_types::{Command, TableSchema};

/// Rows and bytes of one commit of an INSERT … SELECT.
const COMMIT_ROWS: usize = 1_000_000;
const COMMIT_BYTES: usize = 64 << 20;

pub(super) async fn insert(session: &Session, insert: Insert, cancel: &CancelToken) -> Result<u64> {
    let found = session.host.snapshots(&[&insert.table]).pop().flatten();
    let Some(table) = found else {
        let mut error = Error::new(ErrorKind::NotFound, format!("table \"{}\" does not exist", insert.table));
        error.position = Some(insert.table_position);
        return Err(error);
    };
    let named = targets(&table.schema, &insert.columns)?;
    let types: Vec<_> = named.iter().map(|t| t.column_type).collect();
    if let Some(rows) = insert.query.literal_rows(&types) {
        let targets = checked(&insert, &table.schema, &named, rows.num_columns())?;
        let batch = to_batch(&rows, &insert.table, targets, 0)?;
        session.host.insert(vec![batch]).await?;
        return Ok(rows.num_rows() as u64);
    }
    let result = session.engine()?.query(session.catalog(), insert.query.clone(), cancel.clone()).await?;
    let targets = checked(&insert, &table.schema, &named, result.columns.len())?;
    write(session, result, &insert.table, targets, insert.query.is_values()).await
}

/// The columns that `given` expressions are for.
fn checked<'a>(insert: &Insert, schema: &TableSchema, named: &'a [Target], given: usize) -> Result<&'a [Target]> {
    let wanted = named.len();
    let refused = |message: String| Err(Error::new(ErrorKind::Invalid, message));
    if given > wanted {
        return refused(format!("INSERT has more expressions ({given}) than target columns ({wanted})"));
    }
    if given < wanted && !insert.columns.is_empty() {
        return refused(format!("INSERT has more target columns ({wanted}) than expressions ({given})"));
    }
    let targets = &named[..given];
    match schema.timestamp() {
        Some((column, _)) if !targets.iter().any(|t| t.is_designated) => {
            refused(format!("INSERT gives no value for the designated timestamp \"{}\"", column.name))
        }
        _ => Ok(targets),
    }
}

/// The columns of a table that an INSERT names; all of them when it names none.
pub(super) fn targets(schema: &TableSchema, names: &[Name]) -> Result<Vec<Target>> {
    let target = |column: &tidalite_types::ColumnSchema| Target {
        name: column.name.clone(),
        column_type: column.column_type,
        is_designated: Some(column.id) == schema.designated,
    };
    if names.is_empty() {
        return Ok(schema.columns.iter().map(target).collect());
    }
    let mut seen = HashSet::new();
    let named = names.iter().map(|name| {
        let refused = |kind, message| {
            let mut error = Error::new(kind, message);
            error.position = Some(name.position);
            error
        };
        let Some(column) = schema.column(&name.text) else {
            let message = format!("column \"{}\" of table \"{}\" does not exist", name.text, schema.name);
            return Err(refused(ErrorKind::NotFound, message));
        };
        if !seen.insert(column.id) {
            return Err(refused(ErrorKind::Invalid, format!("column \"{}\" specified more than once", name.text)));
        }
        Ok(target(column))
    });
    named.collect()
}

pub(super) async fn create_as(session: &Session, create: CreateTableAs, cancel: &CancelToken) -> Result<u64> {
    let result = session.engine()?.query(session.catalog(), create.query.clone(), cancel.clone()).await?;
    let targets = new_columns(&create, &result)?;
    let command = CreateTable {
        name: create.table.clone(),
        columns: targets.iter().map(|t| (t.name.clone(), t.column_type)).collect(),
        designated: create.designated.clone(),
        partition_by: create.partition_by,
        ttl: create.ttl,
        dedup: create.dedup.clone(),
        if_not_exists: false,
    };
    session.host.command(Command::CreateTable(command)).await?;
    let written = write(session, result, &create.table, &targets, false).await;
    if written.is_err() {
        // The first error is the one to tell; a table left behind is visible to the client.
        let _ = session.host.command(Command::DropTable { table: create.table, if_exists: true }).await;
    }
    written
}

/// The columns that a query's columns become.
fn new_columns(create: &CreateTableAs, result: &QueryResult) -> Result<Vec<Target>> {
    let mut columns: Vec<Target> = Vec::new();
    for column in &result.columns {
        let cast = create.casts.iter().find(|(name, _)| fold_name(name) == fold_name(&column.name)).map(|(_, t)| *t);
        let Some(column_type) = cast.or(column.column_type) else {
            let message =
                format!("column \"{}\" is of type {}, which no table can hold", column.name, column.type_name);
            return Err(Error::new(ErrorKind::Invalid, message));
        };
        let is_designated = create.designated.as_ref().is_some_and(|name| fold_name(name) == fold_name(&column.name));
        columns.push(Target { name: column.name.clone(), column_type, is_designated });
    }
    let unknown = create.casts.iter().find(|(name, _)| !columns.iter().any(|c| fold_name(&c.name) == fold_name(name)));
    match unknown {
        Some((name, _)) => Err(Error::new(ErrorKind::NotFound, format!("column \"{name}\" does not exist"))),
        None => Ok(columns),
    }
}

async fn write(
    session: &Session,
    result: QueryResult,
    table: &str,
    targets: &[Target],
    is_one_commit: bool,
) -> Result<u64> {
    let mut stream = result.stream;
    let (mut batches, mut rows, mut bytes, mut written) = (Vec::new(), 0, 0, 0);
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        if batch.num_rows() == 0 {
            continue;
        }
        let batch = to_batch(&batch, table, targets, written + rows as u64)?;
        rows += batch.rows;
        bytes += batch.byte_count();
        batches.push(batch);
        if !is_one_commit && (rows >= COMMIT_ROWS || bytes >= COMMIT_BYTES) {
            session.host.insert(std::mem::take(&mut batches)).await?;
            written += rows as u64;
            (rows, bytes) = (0, 0);
        }
    }
    if !batches.is_empty() {
        session.host.insert(batches).await?;
    }
    Ok(written + rows as u64)
}
