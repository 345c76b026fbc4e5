//! Commands into operations.

use super::{no_columns, push_column};
use crate::catalog::Catalog;
use crate::error::{Error, Result};
use crate::wal::record::Op;
use std::sync::Arc;
use tidalite_types::command::CreateTable;
use tidalite_types::schema::{column_name_problem, same_name, table_name_problem};
use tidalite_types::{ColumnId, ColumnType, Command, ErrorKind, PartitionBy, TableId, TableSchema, Ttl};

/// Makes the operations of one command; none when `IF [NOT] EXISTS` says that there is nothing to do.
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
            Some(table) => Op::DropTable { table },
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
        Command::DropColumn { table, column } => {
            let (id, mut schema) = find(catalog, &table)?;
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
        Command::SetTtl { table, ttl } => {
            let (id, mut schema) = find(catalog, &table)?;
            set_ttl(&mut schema, ttl)?;
            set(id, schema)
        }
        Command::SetDedup { table, keys } => {
            let (id, mut schema) = find(catalog, &table)?;
            set_dedup(&mut schema, &keys)?;
            set(id, schema)
        }
        Command::DropPartitions { table, partitions } => {
            let (id, schema) = find(catalog, &table)?;
            if schema.partition_by == PartitionBy::None {
                return Err(Error::invalid(format!("table \"{}\" is not partitioned", schema.name)));
            }
            let partitions = partitions.into_iter().map(|lo| schema.partition(lo)).collect();
            Op::DropPartitions { table: id, partitions }
        }
    };
    Ok(vec![op])
}

fn create_table(catalog: &Catalog, create: CreateTable) -> Result<Vec<Op>> {
    if catalog.id_of(&create.name).is_some() {
        if create.if_not_exists {
            return Ok(Vec::new());
        }
        return Err(Error::new(ErrorKind::Conflict, format!("table \"{}\" already exists", create.name)));
    }
    if let Some(problem) = table_name_problem(&create.name) {
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
        dedup: Vec::new(),
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
    set_dedup(&mut schema, &create.dedup)?;
    Ok(vec![Op::CreateTable { table: catalog.next_table, schema: Arc::new(schema) }])
}

fn set_ttl(schema: &mut TableSchema, ttl: Option<Ttl>) -> Result<()> {
    if ttl.is_some() && schema.partition_by == PartitionBy::None {
        return Err(Error::invalid(format!("table \"{}\" is not partitioned, which a TTL needs", schema.name)));
    }
    schema.ttl = ttl;
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
    if let Some(problem) = table_name_problem(&to) {
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
    if let Some(problem) = column_name_problem(&to) {
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

fn find(catalog: &Catalog, name: &str) -> Result<(TableId, TableSchema)> {
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
