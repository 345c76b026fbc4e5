//! Converts batches and commands to operations: the last stage that can reject anything.
//!
//! Input: a client's request, and the catalog after all previous commits. Output: operations with ids, which only have
//! to be logged and published. There are two passes. The first pass decides everything against an overlay and may fail
//! without side effects. The second pass changes the catalog, assigns ids to symbols, and cannot fail.

use crate::catalog::Catalog;
use crate::convert::{convert, type_of_new_column};
use crate::error::{Error, Result};
use crate::wal::record::Op;
use std::sync::Arc;
use tidalite_kernels::min_max;
use tidalite_storage::Run;
use tidalite_storage::symbol_file::Entries;
use tidalite_types::schema::{name_problem, same_name};
use tidalite_types::{
    Batch, BatchColumn, COLUMNS_MAX, Column, ColumnId, ColumnSchema, ColumnType, ErrorKind, PartitionBy, TableId,
    TableSchema, Txn, Values, Views,
};
use times::{check_designated, line_times};

/// Name of the designated timestamp of a table created by line protocol.
pub const TIMESTAMP_NAME: &str = "timestamp";

/// Returns the operations of one commit of rows. `may_create` permits the creation of missing tables and columns.
///
/// If the commit is rejected, the batches are returned unchanged.
pub fn commit_batches(
    catalog: &mut Catalog,
    batches: Vec<Batch>,
    may_create: bool,
    txn: Txn,
) -> Result<Vec<Op>, (Error, Vec<Batch>)> {
    let mut overlay = Overlay { catalog, changed: Vec::new(), next_table: catalog.next_table };
    let planned: Result<Vec<Plan>> = batches.iter().map(|batch| plan(&mut overlay, batch, may_create)).collect();
    let planned = match planned {
        Ok(planned) => planned,
        Err(error) => return Err((error, batches)),
    };
    let changed = overlay.changed;
    Ok(apply(catalog, changed, batches.into_iter().zip(planned), txn))
}

/// Second pass over all batches: changes the catalog and returns the log operations.
fn apply(
    catalog: &mut Catalog,
    changed: Vec<Changed>,
    planned: impl IntoIterator<Item = (Batch, Plan)>,
    txn: Txn,
) -> Vec<Op> {
    let mut ops = Vec::new();
    for Changed { table, schema, is_new } in changed {
        catalog.put(table, schema.clone());
        ops.push(if is_new { Op::CreateTable { table, schema } } else { Op::SetSchema { table, schema } });
    }
    for (batch, plan) in planned {
        if batch.rows > 0 {
            finish(catalog, batch, plan, txn, &mut ops);
        }
    }
    ops
}

/// Returns the number of leading rows that fit if the column fails only because of the value that widened it.
fn fitting_rows(column: &BatchColumn, to: ColumnType) -> Option<usize> {
    let narrower = narrowed(column)?;
    convert(&narrower, to).is_ok().then(|| narrower.column.len())
}

/// Returns the rows before the value that widened the column.
fn narrowed(column: &BatchColumn) -> Option<BatchColumn> {
    let (column_type, values) = column.narrower.clone()?;
    let mut validity = column.column.validity.clone();
    validity.iter_mut().for_each(|v| v.truncate(values.len()));
    let name = column.name.clone();
    Some(BatchColumn {
        name,
        column_type,
        column: Column { values, validity },
        dictionary: Views::new(),
        narrower: None,
    })
}

/// Returns the line of the first row with a value in the column, for errors about the whole column.
fn line_of_column(batch: &Batch, column: &BatchColumn) -> Option<u32> {
    let row = (0..batch.rows).find(|&row| column.column.is_valid(row))?;
    batch.lines.get(row).copied()
}

/// Keeps the rows before line `line` of the request. Rows must be in order of their lines ([`crate::order::by_line`]).
pub fn truncate_at_line(batches: &mut Vec<Batch>, line: u32) {
    for batch in batches.iter_mut() {
        let rows = batch.lines.partition_point(|&l| l < line);
        let is_null = |c: &BatchColumn| c.column.null_count() == c.column.len();
        let nulls: Vec<bool> = batch.columns.iter().map(is_null).collect();
        batch.rows = rows;
        batch.lines.truncate(rows);
        for column in &mut batch.columns {
            if let Some(narrower) = narrowed(column).filter(|n| n.column.len() >= rows) {
                *column = narrower;
            }
            column.column.truncate(rows);
        }
        // Columns with values only in rejected rows must not be created.
        let mut nulls = nulls.into_iter();
        batch.columns.retain(|c| nulls.next() == Some(true) || c.column.null_count() < rows);
        if let Some(timestamps) = &mut batch.timestamps {
            timestamps.values.truncate(rows);
        }
    }
    batches.retain(|b| b.rows > 0);
}

/// Tables after the success of this commit.
struct Overlay<'a> {
    catalog: &'a Catalog,
    changed: Vec<Changed>,
    next_table: TableId,
}

#[derive(Clone)]
struct Changed {
    table: TableId,
    schema: Arc<TableSchema>,
    is_new: bool,
}

impl Overlay<'_> {
    fn find(&self, name: &str) -> Option<(TableId, Arc<TableSchema>)> {
        let changed = self.changed.iter().find(|c| same_name(&c.schema.name, name));
        if let Some(changed) = changed {
            return Some((changed.table, changed.schema.clone()));
        }
        let id = self.catalog.id_of(name)?;
        Some((id, self.catalog.get(id)?.schema.clone()))
    }

    fn put(&mut self, table: TableId, schema: TableSchema, is_new: bool) -> Arc<TableSchema> {
        let schema = Arc::new(schema);
        match self.changed.iter_mut().find(|c| c.table == table) {
            Some(changed) => changed.schema = schema.clone(),
            None => self.changed.push(Changed { table, schema: schema.clone(), is_new }),
        }
        schema
    }
}

/// Mapping of a batch to its table.
struct Plan {
    table: TableId,
    /// For each column of the batch: its id, and its values if they were converted to the type of the table.
    ///
    /// `None` for the column whose values are in `timestamps`.
    columns: Vec<Option<(ColumnId, Option<BatchColumn>)>>,
    designated: Option<ColumnId>,
    /// Timestamps converted to the table's unit, if the unit differs or a field supplies some of them.
    timestamps: Option<Vec<i64>>,
}

fn plan(overlay: &mut Overlay<'_>, batch: &Batch, may_create: bool) -> Result<Plan> {
    let first_line = batch.lines.first().copied();
    let (table, schema) = match overlay.find(&batch.table) {
        Some(found) => found,
        None if may_create => create_for(overlay, batch).map_err(|e| e.or_at_line(first_line))?,
        None => return Err(Error::new(ErrorKind::NotFound, format!("table \"{}\" does not exist", batch.table))),
    };
    let schema = add_columns(overlay, table, schema, batch, may_create).map_err(|e| e.or_at_line(first_line))?;
    let line_of = |row: usize| batch.lines.get(row).copied();
    let mut columns = Vec::with_capacity(batch.columns.len());
    let (mut given, mut from_field) = (None, None);
    for (i, column) in batch.columns.iter().enumerate() {
        let target = column_near(&schema, i, &column.name).expect("missing columns were added");
        let refused = |message: String, row: usize| {
            let message = format!("column \"{}\" of table \"{}\": {message}", target.name, schema.name);
            Error::invalid(message).at_line(line_of(row))
        };
        let times = batch.timestamps.as_ref().filter(|times| times.line.is_some());
        if let (Some(times), Some((designated, unit))) = (times, schema.timestamp())
            && designated.id == target.id
        {
            from_field = Some(line_times(Some(column), times, unit).map_err(|(message, row)| refused(message, row))?);
            columns.push(None);
            continue;
        }
        let converted = convert(column, target.column_type)
            .map_err(|e| refused(e.message, fitting_rows(column, target.column_type).unwrap_or(e.row)))?;
        check_room(overlay.catalog, table, target, converted.as_ref().unwrap_or(column))
            .map_err(|e| e.at_line(first_line))?;
        if schema.designated == Some(target.id) {
            if batch.timestamps.is_some() {
                let message =
                    format!("column \"{}\" is the designated timestamp and was given a second value", target.name);
                return Err(Error::invalid(message).at_line(line_of_column(batch, column)));
            }
            given = Some(converted.as_ref().map_or(&column.column, |c| &c.column).clone());
        }
        columns.push(Some((target.id, converted)));
    }
    let timestamps = match from_field {
        Some(times) => Some(times),
        None => check_designated(&schema, batch.timestamps.as_ref(), given.as_ref())
            .map_err(|(message, row)| Error::invalid(message).at_line(line_of(row)))?,
    };
    Ok(Plan { table, columns, designated: schema.designated, timestamps })
}

fn check_room(catalog: &Catalog, table: TableId, target: &ColumnSchema, column: &BatchColumn) -> Result<()> {
    if target.column_type != ColumnType::Symbol {
        return Ok(());
    }
    let (count, bytes) = (column.dictionary.len(), column.dictionary.data().len());
    match catalog.symbols(table).get(&target.id) {
        Some(map) if !map.has_room(count, bytes) => Err(Error::invalid(format!(
            "column \"{}\" has too many different values for a SYMBOL ({} of them); a VARCHAR has no such limit",
            target.name,
            map.len()
        ))),
        _ => Ok(()),
    }
}

/// Returns the column `name`, trying the position `index` first, since a batch often has the table's order.
fn column_near<'a>(schema: &'a TableSchema, index: usize, name: &str) -> Option<&'a ColumnSchema> {
    schema.columns.get(index).filter(|c| c.name == name).or_else(|| schema.column(name))
}

fn create_for(overlay: &mut Overlay<'_>, batch: &Batch) -> Result<(TableId, Arc<TableSchema>)> {
    if let Some(problem) = name_problem(&batch.table, "table") {
        return Err(Error::invalid(problem));
    }
    let mut schema = TableSchema {
        name: batch.table.clone(),
        columns: Vec::with_capacity(batch.columns.len() + 1),
        designated: None,
        partition_by: PartitionBy::None,
        next_column: ColumnId(0),
        ttl: None,
        lag_us: None,
        dedup: Vec::new(),
        view: None,
    };
    let times = batch.timestamps.as_ref();
    let time_type = times.map(|times| ColumnType::Timestamp(times.new_unit()));
    for column in &batch.columns {
        let is_time = times.is_some_and(|times| times.line.is_some()) && same_name(&column.name, TIMESTAMP_NAME);
        let column_type = time_type.filter(|_| is_time).unwrap_or_else(|| type_of_new_column(column.column_type));
        let pushed = push_column(&mut schema, &column.name, column_type);
        let id = pushed.map_err(|e| e.at_line(line_of_column(batch, column)))?;
        schema.designated = schema.designated.or(is_time.then_some(id));
    }
    if let Some(time_type) = time_type {
        if schema.designated.is_none() {
            let taken = batch.columns.iter().find(|c| same_name(&c.name, TIMESTAMP_NAME));
            let pushed = push_column(&mut schema, TIMESTAMP_NAME, time_type);
            schema.designated = Some(pushed.map_err(|e| e.at_line(taken.and_then(|c| line_of_column(batch, c))))?);
        }
        schema.partition_by = PartitionBy::Day;
    }
    if schema.columns.is_empty() {
        return Err(no_columns(&batch.table));
    }
    let table = overlay.next_table;
    overlay.next_table = TableId(table.0 + 1);
    Ok((table, overlay.put(table, schema, true)))
}

fn no_columns(table: &str) -> Error {
    Error::invalid(format!("table \"{table}\" has no columns"))
}

fn add_columns(
    overlay: &mut Overlay<'_>,
    table: TableId,
    schema: Arc<TableSchema>,
    batch: &Batch,
    may_create: bool,
) -> Result<Arc<TableSchema>> {
    let missing: Vec<_> =
        batch.columns.iter().enumerate().filter(|(i, c)| column_near(&schema, *i, &c.name).is_none()).collect();
    if missing.is_empty() {
        return Ok(schema);
    }
    let mut schema = TableSchema::clone(&schema);
    for (_, column) in missing {
        if !may_create {
            let message = format!("column \"{}\" of table \"{}\" does not exist", column.name, schema.name);
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        let pushed = push_column(&mut schema, &column.name, type_of_new_column(column.column_type));
        pushed.map_err(|e| e.at_line(line_of_column(batch, column)))?;
    }
    Ok(overlay.put(table, schema, false))
}

fn push_column(schema: &mut TableSchema, name: &str, column_type: ColumnType) -> Result<ColumnId> {
    if let Some(problem) = name_problem(name, "column") {
        return Err(Error::invalid(problem));
    }
    if schema.column(name).is_some() {
        return Err(Error::new(
            ErrorKind::Conflict,
            format!("column \"{name}\" of table \"{}\" already exists", schema.name),
        ));
    }
    if schema.columns.len() == COLUMNS_MAX {
        return Err(Error::invalid(format!("table \"{}\" cannot have more than {COLUMNS_MAX} columns", schema.name)));
    }
    let id = schema.next_column;
    schema.next_column = ColumnId(id.0 + 1);
    schema.columns.push(ColumnSchema { id, name: name.to_owned(), column_type });
    Ok(id)
}

/// Second pass: assigns ids to symbols and builds the run.
fn finish(catalog: &Catalog, batch: Batch, plan: Plan, txn: Txn, ops: &mut Vec<Op>) {
    let table = plan.table;
    let symbols = catalog.symbols(table);
    let mut columns = Vec::with_capacity(plan.columns.len() + 1);
    if let (Some(id), Some(timestamps)) = (plan.designated, batch.timestamps) {
        let values = plan.timestamps.unwrap_or(timestamps.values);
        columns.push((id, Arc::new(Column::new(Values::I64(values)))));
    }
    let planned = batch.columns.into_iter().zip(plan.columns);
    for (column, (id, converted)) in planned.filter_map(|(column, plan)| Some((column, plan?))) {
        let mut column = converted.unwrap_or(column);
        if let Some(map) = symbols.get(&id) {
            let (ids, before) = map.intern_all(column.dictionary.iter());
            if let Some(strings) = new_strings(&ids, before, &column.dictionary) {
                ops.push(Op::Symbols {
                    table,
                    entries: Arc::new(Entries { column: id, first: before as u32, strings }),
                });
            }
            if let Values::U32(codes) = &mut column.column.values
                && !are_ids(codes, &ids)
            {
                // Codes of NULL rows may be out of range.
                codes.iter_mut().for_each(|code| *code = ids.get(*code as usize).copied().unwrap_or(0));
            }
        }
        columns.push((id, Arc::new(column.column)));
    }
    let mut run = Run { rows: batch.rows, txns: (txn, txn), time_range: (0, 0), is_sorted: true, columns, dead: None };
    if let Some(id) = plan.designated {
        let timestamps = run.timestamps(id);
        let is_sorted = timestamps.is_sorted();
        run.time_range = min_max(timestamps).unwrap_or((i64::MAX, i64::MIN));
        run.is_sorted = is_sorted;
    }
    ops.push(Op::Rows { table, run });
}

/// Returns true if the codes of a batch equal the ids of its strings, as for a single sender with the same order.
fn are_ids(codes: &[u32], ids: &[u32]) -> bool {
    let are_known = min_max(codes).is_none_or(|(_, max)| (max as usize) < ids.len());
    are_known && ids.iter().zip(0..).all(|(id, code)| *id == code)
}

/// Returns the strings with the ids `before..`, in order of id.
fn new_strings(ids: &[u32], before: usize, dictionary: &Views) -> Option<Views> {
    let mut strings = Views::new();
    for (i, &id) in ids.iter().enumerate() {
        if id as usize == before + strings.len() {
            strings.push(dictionary.get(i));
        }
    }
    (!strings.is_empty()).then_some(strings)
}

pub mod command;
pub mod partial;
mod times;

#[cfg(test)]
mod tests;
