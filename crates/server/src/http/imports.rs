//! `/imp`: CSV over HTTP, as the file of a form (how QuestDB's users upload) or as the body itself.
//!
//! The rows are durable when the answer comes. Nothing changes before everything that was asked for is checked, and what
//! is not large, or may not have bad records, is parsed by then. `tidalite import` sends pieces of a file here, each with
//! its names, several at once ([`turns`]).

mod form;
mod turns;

pub use turns::Turns;

use super::body;
use super::params::Params;
use super::response::{Body, JSON, response, text_response};
use super::state::HttpState;
use crate::counters::add;
use crate::errors::with_hint;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use form::{Form, boundary, charset};
use futures::FutureExt;
use futures::executor::block_on;
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::{HeaderMap, Request, Response, StatusCode};
use serde::{Deserialize, Serialize};
use std::io::{Cursor, Read};
use std::sync::Arc;
use tidalite::import::{
    Bad, CsvPlan, Encoding, ImportOptions, OPTIONS, OnBad, Progress, RATIO_MAX, Reader, Text, TextOptions, findings,
    format_of, import_csv, parse_csv,
};
use tidalite::types::command::CreateTable;
use tidalite::types::{Batch, ColumnType, Command, PartitionBy, TableSchema};
use tidalite::{Database, Error, ErrorKind, Result, RowSink};
use turns::Turn;

/// Threads that parse one large request.
const THREADS: usize = 2;
/// Text that is parsed as a whole before anything is committed.
const WHOLE_BYTES_MAX: usize = 16 << 20;
/// Records left out that an answer names, unless it was asked for all.
const REJECTED_MAX: usize = 1_000;
/// Of their text, in any case.
const REJECTED_BYTES_MAX: usize = 64 << 20;

/// The names are QuestDB's, those of `line` and below it ours.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// `OK`, or what is wrong.
    pub status: String,
    pub location: String,
    pub rows_imported: u64,
    pub rows_rejected: u64,
    pub header: bool,
    pub partition_by: String,
    pub timestamp: Option<String>,
    pub columns: Vec<AnswerColumn>,
    /// The line that `status` is about.
    pub line: Option<u64>,
    pub rejected: Vec<Rejected>,
    /// Values of rows that became NULL, and the first of them.
    pub values_nulled: u64,
    pub nulled: Vec<Rejected>,
    /// With `dryRun`: how the file is read, and the statement that would create the table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub found: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statement: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct AnswerColumn {
    pub name: String,
    #[serde(rename = "type")]
    pub type_name: String,
    pub errors: u64,
    /// Notation of the values if it is not the default, in the syntax of the parameter `columns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rejected {
    pub line: u64,
    pub position: u64,
    pub column: Option<String>,
    pub reason: String,
    pub record: Option<String>,
    /// As it was written, where that is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record_base64: Option<String>,
}

/// What was asked for.
struct Asked {
    table: String,
    options: ImportOptions,
    overwrites: bool,
    creates: bool,
    is_dry_run: bool,
    rejected_max: usize,
    /// Lines of the file before the text.
    lines_before: u64,
}

pub async fn answer(request: Request<Incoming>, shared: &Arc<HttpState>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let result = match Params::parse(head.uri.query().unwrap_or_default()) {
        Ok(params) => {
            let as_json = params.get("fmt") == Some("json");
            import(&params, &head.headers, body, shared).await.map_err(|e| (e, as_json)).map(|a| (a, as_json))
        }
        Err(message) => Err((Error::new(ErrorKind::Invalid, message).into(), false)),
    };
    match result {
        Ok((answer, as_json)) => {
            add(&shared.counters.http.rows, answer.rows_imported);
            add(&shared.counters.http.commits, 1);
            shown(StatusCode::OK, &answer, as_json)
        }
        Err((Refused(status, error), as_json)) => {
            add(&shared.counters.http.errors, 1);
            tracing::info!(%error, "refused an import");
            let answer = Answer { status: with_hint(&error), line: error.line, ..Answer::default() };
            shown(status, &answer, as_json)
        }
    }
}

fn shown(status: StatusCode, answer: &Answer, as_json: bool) -> Response<Body> {
    if as_json {
        return response(status, JSON, serde_json::to_vec(answer).unwrap_or_default());
    }
    let mut text = format!("status: {}\n", answer.status);
    if answer.status == "OK" {
        let Answer { location, rows_imported, rows_rejected, header, partition_by, timestamp, columns, .. } = answer;
        text += &format!("table: {location}\nrows imported: {rows_imported}\nrows rejected: {rows_rejected}\n");
        let timestamp = timestamp.as_deref().unwrap_or("none");
        text += &format!("header: {header}\ntimestamp: {timestamp}\npartition by: {partition_by}\n");
        for AnswerColumn { name, type_name, errors, format } in columns {
            let format = format.as_ref().map_or_else(String::new, |format| format!(" '{format}'"));
            text += &format!("column {name}: {type_name}{format}, {errors} errors\n");
        }
        for Rejected { line, position, column, reason, record, .. } in answer.rejected.iter().chain(&answer.nulled) {
            let column = column.as_ref().map_or_else(String::new, |name| format!(", column \"{name}\""));
            let record = record.as_ref().map_or_else(String::new, |text| format!(": {}", text.trim_end()));
            text += &format!("line {line}, position {position}{column}: {reason}{record}\n");
        }
        for (what, found) in &answer.found {
            text += &format!("{what}: {found}\n");
        }
        if let Some(statement) = &answer.statement {
            text += &format!("{statement}\n");
        }
    }
    text_response(status, text)
}

/// Status and reason of a refused import.
struct Refused(StatusCode, Error);

impl From<Error> for Refused {
    fn from(error: Error) -> Refused {
        Refused(crate::errors::status(&error), error)
    }
}

impl From<body::BodyError> for Refused {
    fn from(error: body::BodyError) -> Refused {
        Refused(error.status(), error.into_error())
    }
}

async fn import(
    params: &Params,
    headers: &HeaderMap,
    body: Incoming,
    shared: &Arc<HttpState>,
) -> Result<Answer, Refused> {
    // Before the body, so that a piece whose body breaks off ends the import.
    let turn = match (params.get("import"), params.get("piece")) {
        (Some(import), Some(piece)) => Some(shared.turns.enter(import, number("piece", piece)?)?),
        _ => None,
    };
    let mut share = shared.bodies.share();
    let mut bytes = Vec::new();
    let read = body::read(headers, body, shared.body, share.watch(), |piece| {
        share.add(piece.len())?;
        add(&shared.counters.http.bytes, piece.len() as u64);
        bytes.extend_from_slice(piece);
        Ok(())
    });
    read.await?;
    let content_type = headers.get(CONTENT_TYPE).and_then(|t| t.to_str().ok()).unwrap_or_default();
    let form = match boundary(content_type) {
        Some(boundary) => Form::parse(&bytes, &boundary)?,
        None => Form { data: 0..bytes.len(), ..Form::default() },
    };
    let given_type = form.content_type.as_deref().unwrap_or(content_type);
    let asked = Asked::new(params, &form, charset(given_type))?;
    let text = Bytes::from(bytes).slice(form.data);
    let (database, is_piece) = (shared.database.clone(), turn.is_some());
    let ready = blocking(move || prepare(&database, asked, text, is_piece)).await?;
    if let Some(turn) = &turn {
        turn.come().await?;
    }
    let database = shared.database.clone();
    let answer = blocking(move || finish(&database, ready, turn)).await;
    drop(share);
    Ok(answer?)
}

async fn blocking<T: Send + 'static>(run: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let done = tokio::task::spawn_blocking(run).await;
    done.unwrap_or_else(|_| Err(Error::new(ErrorKind::Internal, "the import panicked")))
}

fn number(name: &str, text: &str) -> Result<u64> {
    text.parse().map_err(|_| invalid(format!("parameter {name} is {text:?}, which is no number")))
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Invalid, message)
}

/// Request parameters that are not import options.
///
/// The last ones are QuestDB parameters without effect: rows are durable when the response is sent, so limits for
/// uncommitted rows are not needed.
const PARAMETERS: [&str; 16] = [
    "name",
    "fmt",
    "forceHeader",
    "atomicity",
    "skipLev",
    "overwrite",
    "create",
    "rejects",
    "line",
    "import",
    "piece",
    "dryRun",
    "durable",
    "maxUncommittedRows",
    "o3MaxLag",
    "commitLag",
];

impl Asked {
    fn new(params: &Params, form: &Form, charset: Option<&str>) -> Result<Asked> {
        let named = params.get("name").filter(|n| !n.is_empty()).map(str::to_owned);
        let table = named
            .or_else(|| form.file_name.clone())
            .ok_or_else(|| invalid("which table? parameter name is missing"))?;
        let text = |name: &str| params.get(name).filter(|t| !t.is_empty());
        let rejected_max = match text("rejects") {
            None => REJECTED_MAX,
            Some("all") => usize::MAX,
            Some(other) => return Err(invalid(format!("parameter rejects is {other:?}; it can be all"))),
        };
        Ok(Asked {
            table,
            options: options(params, form, charset)?,
            overwrites: params.is_on("overwrite"),
            creates: text("create").is_none() || params.is_on("create"),
            is_dry_run: params.is_on("dryRun"),
            rejected_max,
            lines_before: text("line").map_or(Ok(0), |line| number("line", line))?,
        })
    }
}

fn options(params: &Params, form: &Form, charset: Option<&str>) -> Result<ImportOptions> {
    // As in QuestDB, the default keeps as many rows as possible.
    let mut options = ImportOptions {
        on_bad: on_bad(params.get("atomicity").filter(|t| !t.is_empty()))?,
        ..ImportOptions::default()
    };
    options.text.ratio_max = Some(RATIO_MAX);
    options.known.has_header = params.is_on("forceHeader").then_some(true);
    options.ignores_extra = params.is_on("skipLev");
    for (name, value) in params.iter() {
        if PARAMETERS.contains(&name) {
            continue;
        }
        let option = OPTIONS.iter().find(|option| option.url_name() == name);
        let option = option.ok_or_else(|| invalid(format!("parameter {name} has no meaning for an import")))?;
        // An empty list of NULL strings is valid; other parameters count as missing if they are empty.
        if !value.is_empty() || name == "nulls" {
            option.set(&mut options, value).map_err(|e| invalid(format!("parameter {name}: {e}")))?;
        }
    }
    options.known.columns.extend(form.schema.columns.iter().cloned());
    options.known.formats.extend(form.schema.formats.iter().cloned());
    options.known.numbers.extend(form.schema.numbers.iter().cloned());
    if let (None, Some(charset)) = (options.text.encoding, charset) {
        // `charset=utf-8` is ignored: clients send this charset for every text.
        let named = Encoding::from_text(charset).map_err(invalid)?;
        options.text.encoding = named.filter(|encoding| *encoding != Encoding::Utf8);
    }
    Ok(options)
}

/// QuestDB's words and its default, which keeps every row it can.
fn on_bad(atomicity: Option<&str>) -> Result<OnBad> {
    match atomicity.map(str::to_ascii_lowercase).as_deref() {
        None | Some("skipcol") => Ok(OnBad::Null),
        Some("skiprow") => Ok(OnBad::Skip),
        Some("abort") => Ok(OnBad::Abort),
        Some(other) => Err(invalid(format!("parameter atomicity is {other:?}; it can be skipCol, skipRow or abort"))),
    }
}

/// Checked, and parsed if that is not left for later.
struct Ready {
    asked: Asked,
    plan: CsvPlan,
    found: Found,
    rows: Rows,
    /// Schema of the table before the import changes it.
    schema: Option<Arc<TableSchema>>,
}

enum Rows {
    Parsed(Vec<Batch>, Progress),
    /// To be parsed and committed piece by piece.
    Text(Source),
    /// With `dryRun`.
    None,
}

/// Text that can be read repeatedly from the beginning.
enum Source {
    Plain(Bytes),
    /// Bytes to decompress or decode, and the number of bytes of the text before the rows.
    Coded(Bytes, TextOptions, usize),
}

impl Source {
    fn open(&self) -> Result<Reader> {
        Ok(match self {
            Source::Plain(text) => Box::new(Cursor::new(text.clone())),
            Source::Coded(raw, options, skipped) => {
                Text::open(Box::new(Cursor::new(raw.clone())), options)?.into_reader(*skipped)
            }
        })
    }
}

/// Returns the rows of a file: the bytes, if at most `WHOLE_BYTES_MAX`, and the source to read from.
fn rows_of(raw: Bytes, text: Text, plan: &CsvPlan, options: TextOptions) -> Result<(Option<Bytes>, Source)> {
    let skipped = plan.skipped_bytes;
    if text.form.is_plain() {
        let rows = raw.slice(text.form.mark_bytes + skipped..);
        return Ok(((rows.len() <= WHOLE_BYTES_MAX).then(|| rows.clone()), Source::Plain(rows)));
    }
    let mut held = Vec::new();
    let read = text.into_reader(skipped).take(WHOLE_BYTES_MAX as u64 + 1).read_to_end(&mut held);
    read.map_err(|e| Error::new(ErrorKind::Invalid, format!("could not be read: {e}")))?;
    let source = Source::Coded(raw, options, skipped);
    Ok(((held.len() <= WHOLE_BYTES_MAX).then(|| Bytes::from(held)), source))
}

/// What was wrong with records and values.
struct Found {
    /// Of each column.
    errors: Vec<u64>,
    rejected: Vec<Rejected>,
    nulled: Vec<Rejected>,
    bytes: usize,
}

impl Found {
    fn tell(&mut self, bad: &Bad, plan: &CsvPlan, rejected_max: usize) {
        let record = &bad.record;
        let column = plan.detected.columns.iter().position(|c| record.column.as_ref() == Some(&c.name));
        column.into_iter().for_each(|c| self.errors[c] += 1);
        let (list, max) =
            if record.is_row { (&mut self.nulled, REJECTED_MAX) } else { (&mut self.rejected, rejected_max) };
        if list.len() >= max || self.bytes >= REJECTED_BYTES_MAX {
            return;
        }
        self.bytes += record.record.len() + record.reason.len();
        let is_utf8 = std::str::from_utf8(&record.record).is_ok();
        list.push(Rejected {
            line: bad.line,
            position: record.position as u64,
            column: record.column.clone(),
            reason: record.reason.clone(),
            record: (!record.is_row).then(|| String::from_utf8_lossy(&record.record).into_owned()),
            record_base64: (!is_utf8).then(|| STANDARD.encode(&record.record)),
        });
    }
}

fn prepare(database: &Database, asked: Asked, text: Bytes, is_piece: bool) -> Result<Ready> {
    let schema = database.table(&asked.table);
    if schema.is_none() && !asked.creates {
        let message = format!("table \"{}\" does not exist, and create is false", asked.table);
        return Err(Error::new(ErrorKind::NotFound, message));
    }
    let schema = schema.filter(|_| !asked.overwrites);
    let mut opened = Text::open(Box::new(Cursor::new(text.clone())), &asked.options.text).map_err(as_invalid)?;
    let mut plan = asked.options.plan(&mut opened, &asked.table, schema.as_deref()).map_err(as_invalid)?;
    plan.lines_before += asked.lines_before;
    let errors = vec![0; plan.detected.columns.len()];
    let mut found = Found { errors, rejected: Vec::new(), nulled: Vec::new(), bytes: 0 };
    if asked.is_dry_run {
        return Ok(Ready { asked, plan, found, rows: Rows::None, schema });
    }
    let (whole, source) = rows_of(text, opened, &plan, asked.options.text)?;
    let whole = match (whole, &source) {
        (None, Source::Plain(rows)) if is_piece => Some(rows.clone()),
        (whole, _) => whole,
    };
    let rows = if let Some(text) = whole {
        let told = |bad: &Bad| found.tell(bad, &plan, asked.rejected_max);
        let (batches, progress) = parse_csv(&plan, &text, plan.on_bad, told)?;
        Rows::Parsed(batches, progress)
    } else {
        if plan.on_bad == OnBad::Abort || plan.rejects_max.is_some() {
            let ready = |_| futures::future::ready(Ok(())).boxed();
            import_csv(&plan, source.open()?, THREADS, plan.on_bad, ready, |_, _| Ok(())).map_err(|mut e| {
                e.hint = None;
                e
            })?;
        }
        Rows::Text(source)
    };
    Ok(Ready { asked, plan, found, rows, schema })
}

/// Converts read errors of the request body to invalid input: the client sent these bytes.
fn as_invalid(mut error: Error) -> Error {
    if error.kind == ErrorKind::Unavailable {
        error.kind = ErrorKind::Invalid;
    }
    error
}

fn finish(database: &Database, ready: Ready, turn: Option<Turn>) -> Result<Answer> {
    let Ready { asked, plan, mut found, rows, schema } = ready;
    let mut table = Table { database, asked: &asked, plan: &plan, is_made: false };
    let done = match rows {
        Rows::None => return Ok(dry_run(&plan, schema.as_deref())),
        Rows::Parsed(batches, progress) if turn.is_none() && (asked.overwrites || plan.create.is_some()) => {
            if progress.rows > 0 {
                table.create_with(batches)?;
            }
            progress
        }
        Rows::Parsed(batches, progress) => {
            // Later chunks need the table even if all records of the first chunk are bad.
            if progress.rows > 0 || (turn.is_some() && progress.bad > 0) {
                table.make()?;
            }
            let commit = (!batches.is_empty()).then(|| database.commit(batches));
            if let Some(turn) = turn {
                turn.pass();
            }
            commit.map_or(Ok(()), |commit| block_on(commit).map(drop))?;
            progress
        }
        Rows::Text(source) => {
            let told = |bad: Option<&Bad>, _: Progress| {
                bad.into_iter().for_each(|bad| found.tell(bad, &plan, asked.rejected_max));
                Ok(())
            };
            let reader = source.open()?;
            let done = match table.sink(schema.as_deref())? {
                Some(sink) => as_one_commit(&mut table, sink, reader, told)?,
                None => {
                    let commit = |batch| match table.make() {
                        Ok(()) => database.commit(vec![batch]).map(|done| done.map(|_| ())).boxed(),
                        Err(error) => futures::future::ready(Err(error)).boxed(),
                    };
                    import_csv(&plan, reader, THREADS, plan.on_bad, commit, told)?
                }
            };
            if let Some(turn) = turn {
                turn.pass();
            }
            done
        }
    };
    if asked.overwrites && !table.is_made && database.table(&asked.table).is_some() {
        return Err(invalid(format!("the file has no rows to overwrite table \"{}\" with", asked.table)));
    }
    let schema = database.table(&asked.table);
    Ok(Answer {
        rows_imported: done.rows,
        rows_rejected: done.bad,
        partition_by: schema.as_ref().map_or(PartitionBy::None, |s| s.partition_by).to_string(),
        timestamp: schema.as_ref().and_then(|s| s.timestamp().map(|(column, _)| column.name.clone())),
        columns: columns_of(&plan, &found.errors),
        rejected: found.rejected,
        values_nulled: done.nulled,
        nulled: found.nulled,
        ..answer_of(&plan)
    })
}

/// Imports rows in one commit, which creates or replaces the table if rows come.
fn as_one_commit(
    table: &mut Table<'_>,
    mut sink: RowSink,
    reader: Reader,
    told: impl FnMut(Option<&Bad>, Progress) -> Result<()>,
) -> Result<Progress> {
    let push = |batch| futures::future::ready(sink.push(batch)).boxed();
    let imported = import_csv(table.plan, reader, THREADS, table.plan.on_bad, push, told);
    let done = imported.map_err(|mut error| {
        // The hint counts rows that were not committed.
        error.hint = None;
        error
    })?;
    if done.rows > 0 {
        sink.finish()?;
        table.is_made = true;
    }
    Ok(done)
}

fn answer_of(plan: &CsvPlan) -> Answer {
    Answer {
        status: "OK".to_owned(),
        location: plan.table.clone(),
        header: plan.detected.has_names(),
        ..Answer::default()
    }
}

fn columns_of(plan: &CsvPlan, errors: &[u64]) -> Vec<AnswerColumn> {
    let type_name = |t: Option<ColumnType>| t.map_or_else(String::new, |t| t.to_string());
    let columns = plan.detected.columns.iter().zip(errors);
    let one = |(c, errors): (&tidalite::import::CsvColumn, &u64)| AnswerColumn {
        name: c.name.clone(),
        type_name: type_name(c.column_type),
        errors: *errors,
        format: format_of(c),
    };
    columns.map(one).collect()
}

/// Returns the response to a dry run: the plan of the import.
fn dry_run(plan: &CsvPlan, schema: Option<&TableSchema>) -> Answer {
    let created = plan.create.as_ref();
    let partition_by = schema.map(|s| s.partition_by).or(created.map(|c| c.partition_by));
    Answer {
        partition_by: partition_by.unwrap_or(PartitionBy::None).to_string(),
        timestamp: plan.detected.timestamp.clone(),
        columns: columns_of(plan, &vec![0; plan.detected.columns.len()]),
        found: findings(plan),
        statement: Some(plan.statement(schema)),
        ..answer_of(plan)
    }
}

/// The target table, created only after its first rows have been validated.
struct Table<'a> {
    database: &'a Database,
    asked: &'a Asked,
    plan: &'a CsvPlan,
    is_made: bool,
}

impl Table<'_> {
    /// Returns the sink for all rows of a request; `None` if they are committed piece by piece. Adds missing columns to
    /// an existing table.
    fn sink(&self, schema: Option<&TableSchema>) -> Result<Option<RowSink>> {
        // Another request may create the table first.
        let if_not_exists = !self.asked.overwrites;
        let create = self.plan.create.clone().map(|create| CreateTable { if_not_exists, ..create });
        let sink = || self.database.row_sink(&self.plan.table, create, self.asked.overwrites);
        let has_keys = schema.is_some_and(|schema| !schema.dedup.is_empty());
        if self.plan.create.is_some() || has_keys {
            return sink();
        }
        for (column, column_type) in self.plan.new_columns(schema) {
            let table = self.plan.table.clone();
            let add = Command::AddColumn { table, column, column_type, if_not_exists: true };
            block_on(self.database.command(add))?;
        }
        sink()
    }

    /// Creates or replaces the table with these rows, in one commit.
    fn create_with(&mut self, batches: Vec<Batch>) -> Result<()> {
        let no_sink = || Error::new(ErrorKind::Internal, "a new table takes no rows at once");
        let mut sink = self.sink(None)?.ok_or_else(no_sink)?;
        batches.into_iter().try_for_each(|batch| sink.push(batch))?;
        sink.finish()?;
        self.is_made = true;
        Ok(())
    }

    fn make(&mut self) -> Result<()> {
        if self.is_made {
            return Ok(());
        }
        if self.asked.overwrites {
            let drop = Command::DropTable { table: self.asked.table.clone(), if_exists: true };
            block_on(self.database.command(drop))?;
        }
        if let Some(create) = &self.plan.create {
            // Another request may have created the table in the meantime.
            let create = CreateTable { if_not_exists: true, ..create.clone() };
            block_on(self.database.command(Command::CreateTable(create)))?;
        }
        self.is_made = true;
        Ok(())
    }
}
