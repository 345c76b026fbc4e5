//! Converts commands to operations.

use super::{no_columns, push_column};
use crate::catalog::Catalog;
use crate::error::{Error, Result};
use crate::wal::record::Op;
use std::sync::Arc;
use tidalite_types::command::{CreateTable, CreateView};
use tidalite_types::schema::{name_problem, same_name};
use tidalite_types::view::ALWAYS;
use tidalite_types::{
    ColumnId, ColumnType, Command, ErrorKind, Materialized, PartitionBy, Schedule, TableId, TableSchema, Ttl, View,
    ViewState,
};

/// Returns the operations of one command; none if `IF [NOT] EXISTS` makes the command a no-op.
pub fn commit_command(catalog: &mut Catalog, command: Command) -> Result<Vec<Op>> {
    let ops = plan(catalog, command)?;
    for op in &ops {
        match op {
            Op::CreateTable { table, schema } | Op::SetSchema { table, schema } => catalog.put(*table, schema.clone()),
            Op::DropTable { table } => catalog.remove(*table),
            _ => {}
        }
    }
    Ok(ops)
}

fn plan(catalog: &Catalog, command: Command) -> Result<Vec<Op>> {
    let op = match command {
        Command::CreateTable(create) => return create_table(catalog, create),
        Command::DropTable { table, if_exists } => match catalog.id_of(&table) {
            Some(id) => {
                find(catalog, &table)?;
                Op::DropTable { table: id }
            }
            None if if_exists => return Ok(Vec::new()),
            None => return Err(no_table(&table)),
        },
        Command::Truncate { table } => Op::Truncate { table: find(catalog, &table)?.0 },
        Command::RenameTable { table, to } => rename_table(catalog, &table, to)?,
        Command::AddColumn { table, column, column_type, if_not_exists } => {
            let (id, mut schema) = find(catalog, &table)?;
            if if_not_exists && schema.column(&column).is_some() {
                return Ok(Vec::new());
            }
            push_column(&mut schema, &column, column_type)?;
            set(id, schema)
        }
        Command::DropColumn { table, column, if_exists } => {
            let (id, mut schema) = find(catalog, &table)?;
            if if_exists && schema.column(&column).is_none() {
                return Ok(Vec::new());
            }
            let column = find_column(&schema, &column)?;
            if schema.designated == Some(column) {
                return Err(Error::invalid(format!(
                    "the designated timestamp of table \"{}\" cannot be dropped",
                    schema.name
                )));
            }
            if schema.dedup.contains(&column) {
                return Err(Error::invalid(format!(
                    "an upsert key of table \"{}\" cannot be dropped; ALTER TABLE … DEDUP DISABLE comes first",
                    schema.name
                )));
            }
            let name = schema.columns.iter().find(|c| c.id == column).map_or("", |c| &c.name);
            if schema.columns.len() == 1 {
                return Err(Error::invalid(format!(
                    "column \"{name}\" is the only one of table \"{}\" and cannot be dropped",
                    schema.name
                )));
            }
            schema.columns.retain(|c| c.id != column);
            set(id, schema)
        }
        Command::RenameColumn { table, column, to } => rename_column(catalog, &table, &column, to)?,
        Command::CreateView(create) => return create_view(catalog, create),
        Command::DropView { view, is_materialized, if_exists } => match find_any(catalog, &view) {
            Ok((id, schema)) => {
                of_kind(&schema, is_materialized)?;
                Op::DropTable { table: id }
            }
            Err(_) if if_exists => return Ok(Vec::new()),
            Err(_) => return Err(no_view(&view, is_materialized)),
        },
        Command::SetRefresh { view, schedule } => changed_view(catalog, &view, |view| view.schedule = schedule)?,
        Command::SetRefreshLimit { view, limit } => changed_view(catalog, &view, |view| view.limit = limit)?,
        Command::SetViewState { view, state } => return Ok(set_view_state(catalog, view, state).into_iter().collect()),
        Command::SetTtl { table, ttl } => {
            let (id, mut schema) = find_any(catalog, &table)?;
            set_ttl(&mut schema, ttl)?;
            set(id, schema)
        }
        Command::SetLag { table, lag_us } => {
            let (id, mut schema) = find_any(catalog, &table)?;
            set_lag(&mut schema, lag_us)?;
            set(id, schema)
        }
        Command::SetDedup { table, keys } => {
            let (id, mut schema) = find(catalog, &table)?;
            set_dedup(&mut schema, &keys)?;
            set(id, schema)
        }
        Command::DropPartitions { table, partitions } => {
            let (id, schema) = find_any(catalog, &table)?;
            if schema.partition_by == PartitionBy::None {
                return Err(Error::invalid(format!("table \"{}\" is not partitioned", schema.name)));
            }
            let partitions: Vec<_> = partitions.into_iter().map(|lo| schema.partition(lo)).collect();
            let lost = lost(&schema, &partitions).map(|schema| set(id, schema));
            return Ok([Op::DropPartitions { table: id, partitions }].into_iter().chain(lost).collect());
        }
    };
    Ok(vec![op])
}

fn create_table(catalog: &Catalog, create: CreateTable) -> Result<Vec<Op>> {
    if let Some(known) = catalog.id_of(&create.name).and_then(|id| catalog.get(id)) {
        return if create.if_not_exists { Ok(Vec::new()) } else { Err(already_exists(&known.schema, &create.name)) };
    }
    let schema = new_schema(create)?;
    Ok(vec![Op::CreateTable { table: catalog.next_table, schema: Arc::new(schema) }])
}

/// Returns the error of a statement that creates a table whose name is taken.
#[must_use]
pub fn already_exists(known: &TableSchema, name: &str) -> Error {
    let what = known.view.as_ref().map_or("table", |view| view.kind());
    Error::new(ErrorKind::Conflict, format!("{what} \"{name}\" already exists"))
}

/// A view is a table defined by a query; a view that is not materialized has no rows.
fn create_view(catalog: &Catalog, create: CreateView) -> Result<Vec<Op>> {
    let CreateView { table, sql, materialized, or_replace } = create;
    let materialized = match materialized {
        None => None,
        Some((base, schedule)) => Some(materialized_over(catalog, base, schedule)?),
    };
    let view = Some(Arc::new(View { sql, materialized }));
    let replaced = catalog.id_of(&table.name).filter(|_| or_replace);
    let Some((id, known)) = replaced.and_then(|id| Some((id, catalog.get(id)?))) else {
        let mut ops = create_table(catalog, table)?;
        for op in &mut ops {
            if let Op::CreateTable { schema, .. } = op {
                Arc::make_mut(schema).view.clone_from(&view);
            }
        }
        return Ok(ops);
    };
    if !known.schema.is_plain_view() {
        return Err(Error::invalid(format!("\"{}\" is not a view", known.schema.name)));
    }
    Ok(vec![set(id, TableSchema { view, ..new_schema(table)? })])
}

fn materialized_over(catalog: &Catalog, base: String, schedule: Schedule) -> Result<Materialized> {
    let (id, schema) = find_any(catalog, &base)?;
    if schema.is_plain_view() {
        let message = format!("\"{}\" is a view, which a materialized view cannot follow", schema.name);
        return Err(Error::invalid(message));
    }
    if schema.timestamp().is_none() {
        let message = format!("table \"{}\" has no designated timestamp, which a materialized view needs", schema.name);
        return Err(Error::invalid(message));
    }
    let state = ViewState { base: id, pending: vec![ALWAYS], ..ViewState::default() };
    Ok(Materialized { base: schema.name, schedule, limit: None, lost_before: i64::MIN, state })
}

/// Records in a materialized view that partitions were dropped: the view no longer contains the complete result of its
/// query.
fn lost(schema: &TableSchema, partitions: &[(i64, i64)]) -> Option<TableSchema> {
    let (before, end) = (schema.materialized()?.lost_before, partitions.iter().map(|(_, hi)| *hi).max()?);
    let mut schema = schema.clone();
    change_view(&mut schema, |view| view.lost_before = end.max(before));
    (end > before).then_some(schema)
}

/// Changes a maintenance setting of a materialized view.
fn changed_view(catalog: &Catalog, view: &str, change: impl FnOnce(&mut Materialized)) -> Result<Op> {
    let (id, mut schema) = find_any(catalog, view).map_err(|_| no_view(view, true))?;
    of_kind(&schema, true)?;
    change_view(&mut schema, change);
    Ok(set(id, schema))
}

/// Returns the operation that records the progress of a materialized view; `None` if the view was dropped.
#[must_use]
pub fn set_view_state(catalog: &Catalog, view: TableId, state: ViewState) -> Option<Op> {
    let mut schema = TableSchema::clone(&catalog.get(view)?.schema);
    schema.materialized()?;
    change_view(&mut schema, |view| view.state = state);
    Some(set(view, schema))
}

fn change_view(schema: &mut TableSchema, change: impl FnOnce(&mut Materialized)) {
    if let Some(materialized) = schema.view.as_mut().and_then(|view| Arc::make_mut(view).materialized.as_mut()) {
        change(materialized);
    }
}

fn of_kind(schema: &TableSchema, is_materialized: bool) -> Result<()> {
    match (is_materialized, &schema.view) {
        (true, Some(view)) if view.materialized.is_some() => Ok(()),
        (false, Some(view)) if view.materialized.is_none() => Ok(()),
        (true, _) => Err(Error::invalid(format!("\"{}\" is not a materialized view", schema.name))),
        (false, _) => Err(Error::invalid(format!("\"{}\" is not a view", schema.name))),
    }
}

fn no_view(name: &str, is_materialized: bool) -> Error {
    let what = if is_materialized { "materialized view" } else { "view" };
    Error::new(ErrorKind::NotFound, format!("{what} \"{name}\" does not exist"))
}

/// Returns the schema of a new table.
pub fn new_schema(create: CreateTable) -> Result<TableSchema> {
    if let Some(problem) = name_problem(&create.name, "table") {
        return Err(Error::invalid(problem));
    }
    if create.columns.is_empty() {
        return Err(no_columns(&create.name));
    }
    let mut schema = TableSchema {
        name: create.name,
        columns: Vec::with_capacity(create.columns.len()),
        designated: None,
        partition_by: create.partition_by,
        next_column: ColumnId(0),
        ttl: None,
        lag_us: None,
        dedup: Vec::new(),
        view: None,
    };
    for (name, column_type) in &create.columns {
        push_column(&mut schema, name, *column_type)?;
    }
    if let Some(name) = &create.designated {
        let column = schema.column(name).ok_or_else(|| no_column(&schema, name))?;
        if !matches!(column.column_type, ColumnType::Timestamp(_)) {
            let message = format!("designated timestamp \"{name}\" is of type {}, not a timestamp", column.column_type);
            return Err(Error::invalid(message));
        }
        schema.designated = Some(column.id);
    } else if schema.partition_by != PartitionBy::None {
        return Err(Error::invalid(format!(
            "table \"{}\" cannot be partitioned without a designated timestamp",
            schema.name
        )));
    }
    set_ttl(&mut schema, create.ttl)?;
    set_lag(&mut schema, create.lag_us)?;
    set_dedup(&mut schema, &create.dedup)?;
    Ok(schema)
}

fn set_ttl(schema: &mut TableSchema, ttl: Option<Ttl>) -> Result<()> {
    if ttl.is_some() && schema.partition_by == PartitionBy::None {
        return Err(Error::invalid(format!("table \"{}\" is not partitioned, which a TTL needs", schema.name)));
    }
    schema.ttl = ttl;
    Ok(())
}

/// Sets the lag. Without a designated timestamp no row is late.
fn set_lag(schema: &mut TableSchema, lag_us: Option<u64>) -> Result<()> {
    if lag_us.is_some() && schema.designated.is_none() {
        let message = format!("table \"{}\" has no designated timestamp, which a lag needs", schema.name);
        return Err(Error::invalid(message));
    }
    schema.lag_us = lag_us;
    Ok(())
}

fn set_dedup(schema: &mut TableSchema, keys: &[String]) -> Result<()> {
    let mut dedup = Vec::with_capacity(keys.len());
    for key in keys {
        let column = find_column(schema, key)?;
        if dedup.contains(&column) {
            return Err(Error::invalid(format!("upsert key \"{key}\" specified more than once")));
        }
        dedup.push(column);
    }
    let Some((designated, _)) = schema.timestamp().filter(|_| !keys.is_empty()) else {
        if !keys.is_empty() {
            return Err(Error::invalid(format!(
                "table \"{}\" has no designated timestamp, which upsert keys need",
                schema.name
            )));
        }
        schema.dedup = dedup;
        return Ok(());
    };
    if !dedup.contains(&designated.id) {
        return Err(Error::invalid(format!(
            "the upsert keys of table \"{}\" must include its designated timestamp \"{}\"",
            schema.name, designated.name
        )));
    }
    schema.dedup = dedup;
    Ok(())
}

fn rename_table(catalog: &Catalog, table: &str, to: String) -> Result<Op> {
    let (id, mut schema) = find(catalog, table)?;
    if let Some(problem) = name_problem(&to, "table") {
        return Err(Error::invalid(problem));
    }
    if catalog.id_of(&to).is_some_and(|other| other != id) {
        return Err(Error::new(ErrorKind::Conflict, format!("table \"{to}\" already exists")));
    }
    schema.name = to;
    Ok(set(id, schema))
}

fn rename_column(catalog: &Catalog, table: &str, column: &str, to: String) -> Result<Op> {
    let (id, mut schema) = find(catalog, table)?;
    let column = find_column(&schema, column)?;
    if let Some(problem) = name_problem(&to, "column") {
        return Err(Error::invalid(problem));
    }
    if schema.columns.iter().any(|c| c.id != column && same_name(&c.name, &to)) {
        return Err(Error::new(
            ErrorKind::Conflict,
            format!("column \"{to}\" of table \"{}\" already exists", schema.name),
        ));
    }
    schema.columns.iter_mut().filter(|c| c.id == column).for_each(|c| c.name.clone_from(&to));
    Ok(set(id, schema))
}

fn set(table: TableId, schema: TableSchema) -> Op {
    Op::SetSchema { table, schema: Arc::new(schema) }
}

/// Returns a table that statements may change, which excludes views.
fn find(catalog: &Catalog, name: &str) -> Result<(TableId, TableSchema)> {
    let (id, schema) = find_any(catalog, name)?;
    match &schema.view {
        Some(view) => Err(is_view(&schema.name, view)),
        None => Ok((id, schema)),
    }
}

/// Returns the error of a statement for tables that names a view.
#[must_use]
pub fn is_view(name: &str, view: &View) -> Error {
    Error::invalid(format!("\"{name}\" is a {} and cannot be changed so", view.kind()))
}

fn find_any(catalog: &Catalog, name: &str) -> Result<(TableId, TableSchema)> {
    let id = catalog.id_of(name).ok_or_else(|| no_table(name))?;
    let entry = catalog.get(id).ok_or_else(|| no_table(name))?;
    Ok((id, TableSchema::clone(&entry.schema)))
}

fn find_column(schema: &TableSchema, name: &str) -> Result<ColumnId> {
    schema.column(name).map(|c| c.id).ok_or_else(|| no_column(schema, name))
}

fn no_table(name: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("table \"{name}\" does not exist"))
}

fn no_column(schema: &TableSchema, name: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("column \"{name}\" of table \"{}\" does not exist", schema.name))
}
