//! Commits the rows of a query: INSERT and CREATE TABLE AS.
//!
//! Both are one commit; with many rows they are a load ([`crate::load`]). INSERT BATCH n commits every n rows. In a
//! transaction, in tables with upsert keys and with RETURNING the rows of a statement stay in memory and are limited.

use super::{Changed, Session, returning};
use crate::load::{LoadTable, StatementRows};
use crate::writer::TransactionChange;
use crate::{Error, ErrorKind, Result, SqlState};
use futures::StreamExt;
use std::collections::HashSet;
use tidalite_ingest::commit::command::{already_exists, new_schema};
use tidalite_query::statement::{CreateTableAs, Insert, Name, OnConflict};
use tidalite_query::{CancelToken, QueryResult, Target, to_batch};
use tidalite_types::command::CreateTable;
use tidalite_types::schema::{fold_name, same_name};
use tidalite_types::{Batch, Command, TableSchema};

/// Rows and bytes that are passed on at a time if a statement may have several commits.
const COMMIT_ROWS: u64 = 1_000_000;
const COMMIT_BYTES: usize = 64 << 20;
/// Size limit in bytes of a statement that is no load: it is held in memory until it is committed, and again in the
/// log's record.
const INSERT_BYTES_MAX: usize = 512 << 20;

pub(super) async fn insert(session: &Session, insert: Insert, cancel: &CancelToken) -> Result<Changed> {
    let found = session.host.snapshots(&[&insert.table]).pop().flatten();
    let Some(table) = found else {
        let mut error = Error::new(ErrorKind::NotFound, format!("table \"{}\" does not exist", insert.table));
        error.position = Some(insert.table_position);
        return Err(error);
    };
    refuse_view(&table.schema, insert.table_position)?;
    let manner = manner(&insert, &table.schema)?;
    let is_new_only = matches!(manner, Manner::NewOnly);
    if let Some(returning) = &insert.returning {
        session.engine()?.check(&session.catalog(), returning, cancel).await?;
    }
    let named = targets(&table.schema, &insert.columns)?;
    let types: Vec<_> = named.iter().map(|t| t.column_type).collect();
    let mut sink = Sink::new(session, is_new_only, insert.commit_rows);
    sink.keeps_rows = insert.returning.is_some();
    sink.only_gathers = matches!(manner, Manner::Deciding(_));
    if table.schema.dedup.is_empty() && insert.returning.is_none() && insert.commit_rows.is_none() {
        let to = LoadTable::Existing { id: table.id, schema: table.schema.clone() };
        sink.of_any_size = StatementRows::new(session.host.clone(), to, cancel.clone());
    } else {
        sink.has_keys = !table.schema.dedup.is_empty();
    }
    if let Some(rows) = insert.query.constant_rows(&types) {
        let targets = checked(&insert, &table.schema, &named, rows.num_columns())?;
        sink.push(to_batch(&rows, &insert.table, targets, 0)?).await?;
    } else {
        let result = session.engine()?.query(session.catalog(), insert.query.clone(), cancel.clone()).await?;
        let targets = checked(&insert, &table.schema, &named, result.columns.len())?;
        fill(&mut sink, result, &insert.table, targets).await?;
    }
    if let Manner::Deciding(conflict) = manner {
        return super::conflict::insert(session, &insert, conflict, sink.batches, cancel).await;
    }
    let (rows, kept) = sink.finish().await?;
    let returned = insert.returning.as_ref().map(|query| (query, returning::table_of(&table, &kept)));
    session.changed("INSERT", rows, &insert.table, returned, cancel).await
}

/// The handling of rows whose upsert keys exist.
enum Manner<'a> {
    /// They replace existing rows, if the table has upsert keys.
    Plain,
    /// They are skipped.
    NewOnly,
    /// The existing row decides.
    Deciding(&'a OnConflict),
}

fn manner<'a>(insert: &'a Insert, schema: &TableSchema) -> Result<Manner<'a>> {
    let Some(conflict) = &insert.conflict else { return Ok(Manner::Plain) };
    let refused = |message: String, hint: &str| {
        let mut error = Error::new(ErrorKind::Invalid, message);
        (error.position, error.hint) = (Some(conflict.position), Some(hint.to_owned()));
        Err(error)
    };
    if schema.dedup.is_empty() {
        return refused(
            format!("table \"{}\" has no upsert keys, which ON CONFLICT needs", schema.name),
            "ALTER TABLE … DEDUP ENABLE UPSERT KEYS(…) gives it some",
        );
    }
    let keys: Vec<&str> =
        schema.dedup.iter().filter_map(|id| schema.column_by_id(*id)).map(|c| c.name.as_str()).collect();
    let has = |names: &[Name], name: &str| names.iter().any(|n| same_name(&n.text, name));
    let is_key = |name: &Name| keys.iter().any(|key| same_name(key, &name.text));
    let names_all = || conflict.keys.iter().all(is_key) && keys.iter().all(|k| has(&conflict.keys, k));
    if !(conflict.keys.is_empty() || names_all()) {
        return refused(
            format!("the upsert keys of table \"{}\" are ({})", schema.name, keys.join(", ")),
            "ON CONFLICT has to name all of them, or none",
        );
    }
    let Some(assigned) = &conflict.update else {
        return Ok(if insert.returning.is_some() { Manner::Deciding(conflict) } else { Manner::NewOnly });
    };
    // Assigned names must exist and be distinct.
    targets(schema, &assigned.columns)?;
    let mut others = schema.columns.iter().filter(|c| !schema.dedup.contains(&c.id));
    let is_whole = assigned.is_plain && others.all(|c| has(&assigned.columns, &c.name));
    if is_whole {
        return Ok(Manner::Plain);
    }
    if let Some(key) = assigned.columns.iter().find(|name| is_key(name)) {
        let message = format!("column \"{}\" is an upsert key, which ON CONFLICT DO UPDATE cannot assign", key.text);
        let mut error = Error::new(ErrorKind::Invalid, message);
        error.position = Some(key.position);
        return Err(error);
    }
    if insert.commit_rows.is_some() {
        return refused(
            "INSERT BATCH does not go with this ON CONFLICT DO UPDATE".to_owned(),
            "only with one that assigns every column from EXCLUDED",
        );
    }
    Ok(Manner::Deciding(conflict))
}

/// Rejects writes to a view, whose rows come from its query.
pub(super) fn refuse_view(schema: &TableSchema, position: usize) -> Result<()> {
    let Some(view) = &schema.view else { return Ok(()) };
    let message = format!("cannot change rows of {} \"{}\"", view.kind(), schema.name);
    let mut error = Error::new(ErrorKind::Invalid, message);
    error.position = Some(position);
    Err(error)
}

/// Returns the columns of `given` expressions.
fn checked<'a>(insert: &Insert, schema: &TableSchema, named: &'a [Target], given: usize) -> Result<&'a [Target]> {
    let wanted = named.len();
    let refused = |message: String| {
        let mut error = Error::new(ErrorKind::Invalid, message);
        error.code = Some(SqlState::SYNTAX_ERROR);
        Err(error)
    };
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

/// Returns the columns that an INSERT names; all columns if it names none.
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
            let mut error = refused(ErrorKind::Invalid, format!("column \"{}\" specified more than once", name.text));
            error.code = Some(SqlState::DUPLICATE_COLUMN);
            return Err(error);
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
        lag_us: create.lag_us,
        dedup: create.dedup.clone(),
        if_not_exists: false,
    };
    let mut sink = Sink::new(session, false, None);
    if session.host.is_transaction() {
        // The limit of the transaction applies.
        sink.commit_rows = Some(COMMIT_ROWS);
        session.host.command(Command::CreateTable(command)).await?;
    } else {
        check_new(session, &command)?;
        sink.has_keys = !command.dedup.is_empty();
        match sink.has_keys {
            true => sink.create = Some(command),
            false => {
                let to = LoadTable::New { create: command, replaces: false };
                sink.of_any_size = StatementRows::new(session.host.clone(), to, cancel.clone());
            }
        }
    }
    fill(&mut sink, result, &create.table, &targets).await?;
    Ok(sink.finish().await?.0)
}

/// Rejects a new table before its rows are computed.
fn check_new(session: &Session, create: &CreateTable) -> Result<()> {
    new_schema(create.clone())?;
    match session.host.snapshots(&[&create.name]).pop().flatten() {
        Some(known) => Err(already_exists(&known.schema, &create.name).into()),
        None => Ok(()),
    }
}

/// Returns the columns of the new table.
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

/// Commits the rows of a statement: all at once, as a load, or in several commits.
struct Sink<'a> {
    session: &'a Session,
    is_new_only: bool,
    commit_rows: Option<u64>,
    batches: Vec<Batch>,
    rows: u64,
    bytes: usize,
    written: u64,
    /// True if rows are only collected, and the caller commits them.
    only_gathers: bool,
    /// The rows if they may be of any size; `None` if they have to fit one request.
    of_any_size: Option<StatementRows>,
    /// The table with upsert keys that the commit creates.
    create: Option<CreateTable>,
    /// True if the table has upsert keys, for errors.
    has_keys: bool,
    /// True if the rows are returned at the end.
    keeps_rows: bool,
    kept: Vec<Batch>,
}

impl<'a> Sink<'a> {
    fn new(session: &'a Session, is_new_only: bool, commit_rows: Option<u64>) -> Sink<'a> {
        Sink {
            session,
            is_new_only,
            commit_rows,
            batches: Vec::new(),
            rows: 0,
            bytes: 0,
            written: 0,
            only_gathers: false,
            of_any_size: None,
            create: None,
            has_keys: false,
            keeps_rows: false,
            kept: Vec::new(),
        }
    }

    async fn push(&mut self, batch: Batch) -> Result<()> {
        self.rows += batch.rows as u64;
        if let Some(rows) = &mut self.of_any_size {
            return rows.push(batch).await;
        }
        self.bytes += batch.byte_count();
        self.batches.push(batch);
        match self.commit_rows {
            Some(rows) if !self.only_gathers && (self.rows >= rows || self.bytes >= COMMIT_BYTES) => {
                self.commit().await
            }
            _ if self.bytes > INSERT_BYTES_MAX => Err(self.too_large()),
            _ => Ok(()),
        }
    }

    fn too_large(&self) -> Error {
        let limit = INSERT_BYTES_MAX >> 20;
        let message = match self.has_keys {
            true => format!(
                "the rows of one statement take more than the {limit} MiB that one commit to a table with upsert keys \
                 may have"
            ),
            false => format!("the rows of one INSERT take more than the {limit} MiB that one commit may have"),
        };
        let hint = "INSERT BATCH 1000000 INTO … commits every million rows";
        Error::new(ErrorKind::Invalid, message).with_hint(hint)
    }

    async fn commit(&mut self) -> Result<()> {
        let batches = std::mem::take(&mut self.batches);
        if let Some(create) = self.create.take() {
            let commands = vec![Command::CreateTable(create)];
            let change = TransactionChange { rows: batches, ..TransactionChange::of_commands(commands) };
            self.session.host.transaction(change).await?;
            self.written += std::mem::take(&mut self.rows);
            self.bytes = 0;
            return Ok(());
        }
        if batches.is_empty() {
            return Ok(());
        }
        if self.keeps_rows {
            self.kept.extend(batches.iter().cloned());
        }
        self.written += match self.is_new_only {
            true => self.session.host.insert_new(batches).await?,
            false => self.session.host.insert(batches).await.map(|_| self.rows)?,
        };
        (self.rows, self.bytes) = (0, 0);
        Ok(())
    }

    /// Returns the number of written rows, and the rows if they were to be kept.
    async fn finish(mut self) -> Result<(u64, Vec<Batch>)> {
        if let Some(rows) = self.of_any_size.take() {
            rows.finish().await?;
            return Ok((self.rows, self.kept));
        }
        self.commit().await?;
        Ok((self.written, self.kept))
    }
}

async fn fill(sink: &mut Sink<'_>, result: QueryResult, table: &str, targets: &[Target]) -> Result<()> {
    let (mut stream, mut before) = (result.stream, 0);
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        if batch.num_rows() > 0 {
            let batch = to_batch(&batch, table, targets, before)?;
            before += batch.rows as u64;
            sink.push(batch).await?;
        }
    }
    Ok(())
}
