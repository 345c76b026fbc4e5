//! Statements about views: creation, and requests for materialized views.

use super::Session;
use super::refresh::{now_micros, refresh};
use crate::{Error, ErrorKind, Result};
use tidalite_query::statement::{CreateView, Name, NewMaterialized, RefreshScope};
use tidalite_query::{CancelToken, OutputColumn};
use tidalite_types::command::{CreateTable, CreateView as CreateCommand};
use tidalite_types::schema::fold_name;
use tidalite_types::{ColumnType, Command, PartitionBy, Refresh, TableId};

pub(super) async fn create(session: &Session, create: CreateView, cancel: &CancelToken) -> Result<&'static str> {
    let tag = if create.materialized.is_some() { "CREATE MATERIALIZED VIEW" } else { "CREATE VIEW" };
    if create.if_not_exists && session.host.snapshots(&[&create.name.text]).first().is_some_and(Option::is_some) {
        return Ok(tag);
    }
    let at = create.query_position;
    let placed = |mut error: Error| {
        error.position = error.position.map(|place| place + at);
        error
    };
    let command = match &create.materialized {
        None => plain(session, &create, cancel).await.map_err(placed)?,
        Some(materialized) => kept(session, &create, materialized, cancel).await?,
    };
    let fills_now = create.materialized.as_ref().is_some_and(|m| !m.is_deferred)
        && command.materialized.as_ref().is_some_and(|(_, schedule)| schedule.refresh == Refresh::Manual);
    session.host.command(Command::CreateView(command)).await?;
    if fills_now {
        refresh_named(session, &create.name, RefreshScope::Incremental, cancel).await?;
    }
    Ok(tag)
}

async fn plain(session: &Session, create: &CreateView, cancel: &CancelToken) -> Result<CreateCommand> {
    let engine = session.engine()?;
    let columns = engine.view_columns(&session.catalog(), &create.name.text, &create.query, cancel).await?;
    // Only for lists of columns: types that no table supports are shown as text.
    let columns = columns.into_iter().map(|c| (c.name, c.column_type.unwrap_or(ColumnType::Varchar)));
    let table = CreateTable {
        name: create.name.text.clone(),
        columns: columns.collect(),
        designated: None,
        partition_by: PartitionBy::None,
        ttl: None,
        lag_us: None,
        dedup: Vec::new(),
        if_not_exists: create.if_not_exists,
    };
    Ok(CreateCommand { table, sql: create.sql.clone(), materialized: None, or_replace: create.or_replace })
}

async fn kept(
    session: &Session,
    create: &CreateView,
    materialized: &NewMaterialized,
    cancel: &CancelToken,
) -> Result<CreateCommand> {
    let base = materialized.base.as_ref().map(|name| name.text.as_str());
    let shape = session.engine()?.materialized_shape(&session.catalog(), &create.query, base, cancel).await;
    let shape = shape.map_err(|error| {
        let mut error = Error::from(error);
        error.position = error.position.map_or(Some(create.query_position), |at| Some(at + create.query_position));
        error
    })?;
    let Some(time) = shape.columns.get(shape.timestamp) else {
        return Err(Error::new(ErrorKind::Internal, "a view without its timestamp"));
    };
    if let Some(named) = materialized.timestamp.as_ref().filter(|named| fold_name(&named.text) != fold_name(&time.name))
    {
        let message = format!("the timestamp of the view is \"{}\", by which it is sampled", time.name);
        return Err(at(Error::new(ErrorKind::Invalid, message), named));
    }
    let designated = Some(time.name.clone());
    let columns = shape.columns.iter().map(stored).collect::<Result<_>>()?;
    let table = CreateTable {
        name: create.name.text.clone(),
        columns,
        designated,
        partition_by: materialized.partitioned(shape.bucketing.seconds()),
        ttl: materialized.ttl,
        lag_us: None,
        dedup: Vec::new(),
        if_not_exists: create.if_not_exists,
    };
    let refresh = materialized.refresh.clone().from_now(now_micros(), materialized.is_deferred);
    Ok(CreateCommand { table, sql: create.sql.clone(), materialized: Some((shape.base, refresh)), or_replace: false })
}

fn stored(column: &OutputColumn) -> Result<(String, ColumnType)> {
    let refused = || {
        let message = format!("column \"{}\" is of type {}, which no table can hold", column.name, column.type_name);
        Error::new(ErrorKind::Invalid, message)
    };
    Ok((column.name.clone(), column.column_type.ok_or_else(refused)?))
}

pub(super) async fn refresh_named(
    session: &Session,
    view: &Name,
    scope: RefreshScope,
    cancel: &CancelToken,
) -> Result<u64> {
    refresh(session, find(session, view)?, scope, cancel).await
}

/// Returns the materialized view of a name.
pub(super) fn find(session: &Session, name: &Name) -> Result<TableId> {
    let found = session.host.snapshots(&[&name.text]).pop().flatten();
    let error = match found {
        Some(table) if table.schema.materialized().is_some() => return Ok(table.id),
        Some(table) => Error::new(ErrorKind::Invalid, format!("\"{}\" is not a materialized view", table.schema.name)),
        None => Error::new(ErrorKind::NotFound, format!("materialized view \"{}\" does not exist", name.text)),
    };
    Err(at(error, name))
}

fn at(mut error: Error, name: &Name) -> Error {
    error.position = Some(name.position);
    error
}
