//! COPY: rows from files and clients to tables, and from queries to files.
//!
//! CSV is read by [`crate::import`], Parquet by an INSERT from `read_parquet`. A copy to a table is one commit; with
//! many rows it is a load ([`crate::load`]). Only to a table with upsert keys, rows beyond [`HELD_BYTES`] are committed
//! piece by piece. A file is written under a temporary name and renamed when it is complete.

use super::{Changed, Host, Session, copy_text, write};
use crate::import::{
    Bad, Compression, CsvPlan, Encoding, ImportOptions, OnBad, Progress, RATIO_MAX, Text, TextOptions, import_csv,
};
use crate::row_sink::RowSink;
use crate::{Error, ErrorKind, Result};
use futures::executor::block_on;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use std::fs::File;
use std::io::{BufWriter, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tidalite_query::statement::{Copy, CopyFormat, CopyPlace, CopyWhat, CreateTableAs, Insert, Name};
use tidalite_query::{CancelToken, CsvStyle, FileWriter, QueryResult, Statement};
use tidalite_types::command::CreateTable;
use tidalite_types::schema::same_name;
use tidalite_types::{Batch, Command, PartitionBy, TableSchema};

/// Memory of held rows before the first commit, in bytes.
const HELD_BYTES: usize = 32 << 20;
/// Number of rows of a commit of query results to a table with upsert keys.
const COMMIT_ROWS: u64 = 1_000_000;
/// Number of threads that parse one file.
const THREADS: usize = 2;
/// Number of batches that wait to be written to a file.
const BATCHES_WAITING: usize = 2;

pub(super) async fn copy(session: &Session, copy: Copy, cancel: &CancelToken) -> Result<Changed> {
    let CopyPlace::File(file) = &copy.place else {
        let message = "COPY from STDIN and to STDOUT goes over the PostgreSQL protocol";
        let mut error = Error::new(ErrorKind::Invalid, message);
        error.hint = Some("name a file, or send rows by INSERT, /imp or line protocol".to_owned());
        return Err(error);
    };
    let (is_allowed, setting) = match copy.is_from {
        true => (session.shared.reads_files, "query.reads_files"),
        false => (session.shared.writes_files, "query.writes_files"),
    };
    if !is_allowed {
        let what = if copy.is_from { "from" } else { "to" };
        let mut error = Error::new(ErrorKind::Invalid, format!("COPY {what} files is turned off on this server"));
        (error.position, error.hint) = (Some(file.position), Some(format!("{setting} turns it on")));
        return Err(error);
    }
    import_options(&copy)?;
    let file = file.clone();
    let rows = match (copy.is_from, copy.format) {
        (true, Some(CopyFormat::Parquet)) => return from_parquet(session, copy, &file, cancel).await,
        (true, _) => from_file(session, copy, file, cancel).await?,
        (false, _) => to_file(session, &copy, &file, cancel).await?,
    };
    Ok(Changed::Done { tag: "COPY", rows })
}

async fn from_file(session: &Session, copy: Copy, file: Name, cancel: &CancelToken) -> Result<u64> {
    let path = allowed(session, &file)?;
    let opened = super::upkeep::apart(move || File::open(&path).map_err(|e| unusable(&file, "read", &e))).await?;
    let (host, cancel) = (session.host.clone(), cancel.clone());
    super::upkeep::apart(move || rows_in(&host, &copy, Box::new(opened), &cancel)).await
}

/// Reads text to a table; blocks.
pub(crate) fn rows_in(
    host: &Arc<dyn Host>,
    copy: &Copy,
    text: Box<dyn Read + Send>,
    cancel: &CancelToken,
) -> Result<u64> {
    let CopyWhat::Table { table, columns } = &copy.what else {
        return Err(Error::new(ErrorKind::Internal, "rows are copied into a table"));
    };
    let options = import_options(copy)?;
    let mut text = Text::open(text, &options.text)?;
    if copy.format == Some(CopyFormat::Text) {
        let plain = copy_text::Plain::new(text.into_reader(0), copy.delimiter, copy.null.as_deref());
        text = Text::open(
            Box::new(plain),
            &TextOptions { encoding: Some(Encoding::Utf8), compression: Some(Compression::None), ratio_max: None },
        )?;
    }
    let schema = host.snapshots(&[&table.text]).pop().flatten().map(|found| found.schema.clone());
    if let Some(schema) = &schema {
        write::refuse_view(schema, table.position)?;
    }
    if text.is_whole && text.head.iter().all(u8::is_ascii_whitespace) {
        return match schema {
            Some(_) => Ok(0),
            None => Err(missing(table)),
        };
    }
    let plan = plan(copy, options, (table, columns), schema.as_deref(), &mut text)?;
    if !plan.has_rows(&text) {
        return Ok(0);
    }
    let mut sink = Sink::new(host.clone(), &plan.table, plan.create.clone(), cancel)?;
    let on_bad = plan.on_bad;
    let reader = text.into_reader(plan.skipped_bytes);
    let sink_of_pieces = &mut sink;
    let told = |_: Option<&Bad>, _: Progress| cancel.check().map_err(Error::from);
    let done = import_csv(&plan, reader, THREADS, on_bad, |batch| sink_of_pieces.push(batch), told);
    match done {
        Ok(progress) => {
            cancel.check()?;
            sink.finish()?;
            Ok(progress.rows)
        }
        Err(mut error) => {
            error.message = format!("COPY {}: {}", table.text, error.message);
            let stays = sink.has_committed && !host.is_transaction();
            error.hint = stays.then(|| "a part of the rows before it are in the table".to_owned());
            Err(error)
        }
    }
}

fn missing(table: &Name) -> Error {
    let mut error = Error::new(ErrorKind::NotFound, format!("table \"{}\" does not exist", table.text));
    error.position = Some(table.position);
    error
}

/// The options for reading a file; the defaults are those of PostgreSQL.
pub(crate) fn import_options(copy: &Copy) -> Result<ImportOptions> {
    let is_text = copy.format == Some(CopyFormat::Text);
    let is_file = matches!(copy.place, CopyPlace::File(_));
    let mut options = ImportOptions { partition_by: copy.partition_by, ..ImportOptions::default() };
    options.on_bad = if copy.skips_bad { OnBad::Skip } else { OnBad::Abort };
    options.text.ratio_max = (!is_file).then_some(RATIO_MAX);
    let known = &mut options.known;
    known.delimiter = if is_text { Some(b',') } else { copy.delimiter.or((!is_file).then_some(b',')) };
    known.has_header = copy.header.or((is_text || !is_file).then_some(false));
    known.timestamp = copy.timestamp.as_ref().map(|name| name.text.clone());
    known.is_exact = is_text || !is_file;
    known.nulls = match (&copy.null, is_text) {
        (_, true) => Some(vec![copy_text::NULL.to_owned()]),
        (Some(null), _) => Some(vec![null.clone()]),
        (None, _) => (!is_file).then(Vec::new),
    };
    Ok(options)
}

/// Plans the import from the options, then from the table, then from the content of the text.
fn plan(
    copy: &Copy,
    options: ImportOptions,
    (table, columns): (&Name, &[Name]),
    schema: Option<&TableSchema>,
    text: &mut Text,
) -> Result<CsvPlan> {
    if schema.is_none() && (matches!(copy.place, CopyPlace::Client) || !columns.is_empty()) {
        return Err(missing(table));
    }
    let narrowed = schema.map(|schema| narrowed(schema, columns)).transpose()?;
    let mut plan = options.plan(text, &table.text, narrowed.as_ref())?;
    let Some(schema) = narrowed else { return Ok(plan) };
    if !columns.is_empty() {
        if plan.detected.columns.len() != schema.columns.len() {
            let (found, wanted) = (plan.detected.columns.len(), schema.columns.len());
            let message = format!("the first record has {found} fields, and COPY names {wanted} columns");
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        // Columns are matched by position: names in a header are ignored, formats are used.
        for (column, of_table) in plan.detected.columns.iter_mut().zip(&schema.columns) {
            if column.column_type != Some(of_table.column_type) {
                (column.times, column.numbers) = (None, Default::default());
            }
            column.name.clone_from(&of_table.name);
            column.column_type = Some(of_table.column_type);
        }
        plan.detected.timestamp = schema.timestamp().map(|(column, _)| column.name.clone());
    }
    if let Some(unknown) =
        plan.detected.columns.iter().find(|c| c.added_to.is_none() && schema.column(&c.name).is_none())
    {
        let message = format!("column \"{}\" of table \"{}\" does not exist", unknown.name, schema.name);
        let mut error = Error::new(ErrorKind::NotFound, message);
        error.hint =
            Some("with HEADER columns are found by their names; COPY t (a, b, …) names them by position".to_owned());
        return Err(error);
    }
    if let Some((time, _)) = schema.timestamp()
        && !plan.detected.columns.iter().any(|c| same_name(&c.name, &time.name))
    {
        let message = format!("COPY gives no value for the designated timestamp \"{}\"", time.name);
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    Ok(plan)
}

/// Returns the table with only the named columns, in their order.
fn narrowed(schema: &TableSchema, names: &[Name]) -> Result<TableSchema> {
    if names.is_empty() {
        return Ok(schema.clone());
    }
    let targets = write::targets(schema, names)?;
    let columns: Vec<_> = targets.iter().filter_map(|t| schema.column(&t.name).cloned()).collect();
    if let Some((time, _)) = schema.timestamp()
        && !columns.iter().any(|c| c.id == time.id)
    {
        let message = format!("COPY gives no value for the designated timestamp \"{}\"", time.name);
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    Ok(TableSchema { columns, ..schema.clone() })
}

/// Commits rows to a table: all at once, or piece by piece.
struct Sink {
    host: Arc<dyn Host>,
    /// `None` if rows are committed piece by piece.
    one: Option<RowSink>,
    held: Vec<Batch>,
    bytes: usize,
    has_committed: bool,
}

impl Sink {
    /// Creates a sink for rows of an existing table, or of the table that `create` describes.
    fn new(host: Arc<dyn Host>, table: &str, create: Option<CreateTable>, cancel: &CancelToken) -> Result<Sink> {
        let one = RowSink::new(host.clone(), table, create.clone(), false, cancel.clone())?;
        if let (None, Some(create)) = (&one, create) {
            block_on(host.command(Command::CreateTable(create)))?;
        }
        Ok(Sink { host, one, held: Vec::new(), bytes: 0, has_committed: false })
    }

    fn push(&mut self, batch: Batch) -> BoxFuture<'static, Result<()>> {
        if let Some(sink) = &mut self.one {
            return futures::future::ready(sink.push(batch)).boxed();
        }
        self.bytes += batch.byte_count();
        self.held.push(batch);
        if self.bytes < HELD_BYTES && !self.has_committed {
            return futures::future::ready(Ok(())).boxed();
        }
        self.commit()
    }

    fn commit(&mut self) -> BoxFuture<'static, Result<()>> {
        if self.held.is_empty() {
            return futures::future::ready(Ok(())).boxed();
        }
        (self.has_committed, self.bytes) = (true, 0);
        self.host.insert(std::mem::take(&mut self.held)).map(|done| done.map(|_| ())).boxed()
    }

    /// Commits the rows that are not committed yet.
    fn finish(mut self) -> Result<()> {
        match self.one.take() {
            Some(sink) => sink.finish(),
            None => block_on(self.commit()),
        }
    }
}

/// Copies from Parquet, matching columns by name.
async fn from_parquet(session: &Session, copy: Copy, file: &Name, cancel: &CancelToken) -> Result<Changed> {
    let CopyWhat::Table { table, columns } = copy.what else {
        return Err(Error::new(ErrorKind::Internal, "rows are copied into a table"));
    };
    let engine = session.engine()?;
    let sql = format!("SELECT * FROM read_parquet('{}')", file.text.replace('\'', "''"));
    let Statement::Query(query) = tidalite_query::parse(&sql)? else {
        return Err(Error::new(ErrorKind::Internal, "a query of our own did not parse as one"));
    };
    let at_file = |error: tidalite_query::Error| {
        let mut error = Error::from(error);
        error.position = Some(file.position);
        error
    };
    let found = session.host.snapshots(&[&table.text]).pop().flatten();
    let has_keys = found.as_ref().is_some_and(|table| !table.schema.dedup.is_empty());
    if found.is_none() {
        let create = CreateTableAs {
            table: table.text,
            if_not_exists: false,
            query,
            casts: Vec::new(),
            partition_by: copy.partition_by.unwrap_or(match copy.timestamp {
                Some(_) => PartitionBy::Day,
                None => PartitionBy::None,
            }),
            designated: copy.timestamp.map(|name| name.text),
            ttl: None,
            lag_us: None,
            dedup: Vec::new(),
        };
        let rows = write::create_as(session, create, cancel).await?;
        return Ok(Changed::Done { tag: "COPY", rows });
    }
    let columns = match columns.is_empty() {
        false => columns,
        true => {
            let found = engine.view_columns(&session.catalog(), "", &query, cancel).await.map_err(at_file)?;
            found.into_iter().map(|c| Name { text: c.name, position: file.position }).collect()
        }
    };
    let insert = Insert {
        table_position: table.position,
        alias: table.text.clone(),
        table: table.text,
        columns,
        query,
        conflict: None,
        returning: None,
        commit_rows: has_keys.then_some(COMMIT_ROWS),
    };
    match write::insert(session, insert, cancel).await? {
        Changed::Done { rows, .. } => Ok(Changed::Done { tag: "COPY", rows }),
        other => Ok(other),
    }
}

async fn to_file(session: &Session, copy: &Copy, file: &Name, cancel: &CancelToken) -> Result<u64> {
    let Statement::Query(query) = session.engine()?.parse(&copy.query(), &[], cancel).await? else {
        return Err(Error::new(ErrorKind::Invalid, "COPY takes the rows of a query"));
    };
    let result = session.engine()?.query(session.catalog(), query, cancel.clone()).await?;
    let path = allowed(session, file)?;
    let part = Part::new(&path)?;
    let created = File::create_new(&part.path).map_err(|e| unusable(file, "written", &e))?;
    let QueryResult { schema, mut stream, .. } = result;
    let format = copy.format;
    let style = CsvStyle {
        has_header: copy.header.unwrap_or(true),
        delimiter: copy.delimiter.unwrap_or(if format == Some(CopyFormat::Text) { b'\t' } else { b',' }),
        null: copy.null.clone().unwrap_or_default(),
    };
    let (sender, mut batches) = tokio::sync::mpsc::channel::<arrow::array::RecordBatch>(BATCHES_WAITING);
    // Dropped before the end, the file is removed.
    let is_whole = Arc::new(AtomicBool::new(false));
    let at_end = is_whole.clone();
    let writing = super::upkeep::apart(move || {
        let out = BufWriter::new(created);
        let mut writer = match format {
            Some(CopyFormat::Parquet) => FileWriter::parquet(out, &schema)?,
            _ => FileWriter::csv(out, &schema, style)?,
        };
        let mut rows = 0;
        while let Some(batch) = batches.blocking_recv() {
            rows += batch.num_rows() as u64;
            writer.write(&batch)?;
        }
        if !at_end.load(Ordering::Acquire) {
            return Err(Error::new(ErrorKind::Unavailable, "the query ended early"));
        }
        let out = writer.finish()?.into_inner();
        let file = out.map_err(|e| Error::new(ErrorKind::Unavailable, format!("could not be written: {e}")))?;
        file.sync_all().map_err(|e| Error::new(ErrorKind::Unavailable, format!("could not be written: {e}")))?;
        part.finish(&path)?;
        Ok(rows)
    });
    let reading = async move {
        while let Some(batch) = stream.next().await {
            // The error of the file writer is reported.
            if sender.send(batch?).await.is_err() {
                return Ok(());
            }
        }
        is_whole.store(true, Ordering::Release);
        Ok::<(), Error>(())
    };
    let (written, read) = futures::join!(writing, reading);
    read?;
    written
}

/// Returns the path to open, if statements may use the path.
fn allowed(session: &Session, file: &Name) -> Result<PathBuf> {
    session.shared.access.path(&file.text).map_err(|error| {
        let mut error = Error::from(error);
        error.position = Some(file.position);
        error
    })
}

fn unusable(file: &Name, done: &str, error: &std::io::Error) -> Error {
    let kind = match error.kind() {
        std::io::ErrorKind::NotFound => ErrorKind::NotFound,
        _ => ErrorKind::Unavailable,
    };
    let mut unusable = Error::new(kind, format!("file '{}' could not be {done}: {error}", file.text));
    unusable.position = Some(file.position);
    unusable
}

/// An incomplete file with a temporary name.
struct Part {
    path: PathBuf,
    is_done: bool,
}

impl Part {
    fn new(path: &Path) -> Result<Part> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let Some(name) = path.file_name() else {
            let message = format!("'{}' is no name of a file", path.display());
            return Err(Error::new(ErrorKind::Invalid, message));
        };
        let mut name = name.to_owned();
        name.push(format!(".{}-{}.part", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
        Ok(Part { path: path.with_file_name(name), is_done: false })
    }

    fn finish(mut self, path: &Path) -> Result<()> {
        std::fs::rename(&self.path, path)
            .map_err(|e| Error::new(ErrorKind::Unavailable, format!("could not be written: {e}")))?;
        self.is_done = true;
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if !self.is_done {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
