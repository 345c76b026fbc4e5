//! `/imp`: CSV over HTTP, as the file of a form (how QuestDB's users upload) or as the body itself.
//!
//! The rows are durable when the answer comes. Nothing changes before everything that was asked for is checked, and what
//! is not large, or may not have bad records, is parsed by then. `tidalite import` sends pieces of a file here, each with
//! its names, several at once ([`turns`]).

mod form;
mod turns;

pub use turns::Turns;

use super::Shared;
use super::body::{self, Body, JSON, response, text_response};
use super::params::Params;
use crate::counters::add;
use crate::errors::{http_status, with_hint};
use crate::import::{columns, delimiter};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use form::{Form, boundary};
use futures::FutureExt;
use futures::executor::block_on;
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::{HeaderMap, Request, Response, StatusCode};
use serde::{Deserialize, Serialize};
use std::io::Cursor;
use std::sync::Arc;
use tidalite::import::{Bad, CsvPlan, Known, OnBad, Progress, SAMPLE_BYTES, import_csv, parse_csv};
use tidalite::types::command::CreateTable;
use tidalite::types::{Batch, ColumnType, Command, PartitionBy};
use tidalite::{Database, Error, ErrorKind, Result};
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
}

#[derive(Debug, Serialize, Deserialize)]
pub struct AnswerColumn {
    pub name: String,
    #[serde(rename = "type")]
    pub type_name: String,
    pub errors: u64,
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
    known: Known,
    partition_by: Option<PartitionBy>,
    on_bad: OnBad,
    overwrites: bool,
    creates: bool,
    ignores_extra: bool,
    rejected_max: usize,
    /// Lines of the file before the text.
    lines_before: u64,
}

pub async fn answer(request: Request<Incoming>, shared: &Arc<Shared>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let result = match Params::parse(head.uri.query().unwrap_or_default()) {
        Ok(params) => {
            let as_json = params.get("fmt") == Some("json");
            import(&params, &head.headers, body, shared).await.map_err(|e| (e, as_json)).map(|a| (a, as_json))
        }
        Err(message) => Err((Error::new(ErrorKind::Invalid, message), false)),
    };
    match result {
        Ok((answer, as_json)) => {
            add(&shared.counters.http.rows, answer.rows_imported);
            add(&shared.counters.http.commits, 1);
            shown(StatusCode::OK, &answer, as_json)
        }
        Err((error, as_json)) => {
            add(&shared.counters.http.errors, 1);
            tracing::info!(%error, "refused an import");
            let answer = Answer { status: with_hint(&error), line: error.line, ..Answer::default() };
            shown(http_status(error.kind), &answer, as_json)
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
        for AnswerColumn { name, type_name, errors } in columns {
            text += &format!("column {name}: {type_name}, {errors} errors\n");
        }
        for Rejected { line, position, reason, .. } in answer.rejected.iter().chain(&answer.nulled) {
            text += &format!("line {line}, position {position}: {reason}\n");
        }
    }
    text_response(status, text)
}

async fn import(params: &Params, headers: &HeaderMap, body: Incoming, shared: &Arc<Shared>) -> Result<Answer> {
    // Before the body, so that a piece whose body breaks off ends the import.
    let turn = match (params.get("import"), params.get("piece")) {
        (Some(import), Some(piece)) => Some(shared.turns.enter(import, number("piece", piece)?)?),
        _ => None,
    };
    let mut share = shared.bodies.share();
    let mut bytes = Vec::new();
    let read = body::read(headers, body, shared.body, |piece| {
        share.add(piece.len())?;
        add(&shared.counters.http.bytes, piece.len() as u64);
        bytes.extend_from_slice(piece);
        Ok(())
    });
    read.await.map_err(body::BodyError::into_error)?;
    let content_type = headers.get(CONTENT_TYPE).and_then(|t| t.to_str().ok()).unwrap_or_default();
    let form = match boundary(content_type) {
        Some(boundary) => Form::parse(&bytes, &boundary)?,
        None => Form { data: 0..bytes.len(), ..Form::default() },
    };
    let asked = Asked::of(params, &form)?;
    let text = Bytes::from(bytes).slice(form.data);
    let (database, is_piece) = (shared.database.clone(), turn.is_some());
    let ready = blocking(move || prepare(&database, asked, text, is_piece)).await?;
    if let Some(turn) = &turn {
        turn.come().await?;
    }
    let database = shared.database.clone();
    let answer = blocking(move || finish(&database, ready, turn)).await;
    drop(share);
    answer
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

impl Asked {
    fn of(params: &Params, form: &Form) -> Result<Asked> {
        let named = params.get("name").filter(|n| !n.is_empty()).map(str::to_owned);
        let table = named
            .or_else(|| form.file_name.clone())
            .ok_or_else(|| invalid("which table? parameter name is missing"))?;
        let partition_by = match params.get("partitionBy").filter(|p| !p.is_empty()) {
            None => None,
            Some(text) => Some(
                PartitionBy::from_sql_name(text)
                    .ok_or_else(|| invalid(format!("parameter partitionBy is {text:?}")))?,
            ),
        };
        let mut given = columns(params.get("columns").unwrap_or_default()).map_err(invalid)?;
        given.extend(form.schema.iter().cloned());
        let has_header = match params.get("header") {
            Some("yes" | "true") => Some(true),
            Some("no" | "false") => Some(false),
            _ => params.is_on("forceHeader").then_some(true),
        };
        let text = |name: &str| params.get(name).filter(|t| !t.is_empty());
        let rejected_max = match text("rejects") {
            None => REJECTED_MAX,
            Some("all") => usize::MAX,
            Some(other) => return Err(invalid(format!("parameter rejects is {other:?}; it can be all"))),
        };
        Ok(Asked {
            table,
            known: Known {
                delimiter: text("delimiter").map(|d| delimiter(d).map_err(invalid)).transpose()?,
                has_header,
                null: text("null").unwrap_or_default().to_owned(),
                columns: given,
                table: None,
                timestamp: text("timestamp").map(str::to_owned),
            },
            partition_by,
            on_bad: on_bad(text("atomicity"))?,
            overwrites: params.is_on("overwrite"),
            creates: text("create").is_none() || params.is_on("create"),
            ignores_extra: params.is_on("skipLev"),
            rejected_max,
            lines_before: text("line").map_or(Ok(0), |line| number("line", line))?,
        })
    }
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
}

enum Rows {
    Parsed(Vec<Batch>, Progress),
    /// To be parsed and committed piece by piece.
    Text(Bytes),
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
    let sample = &text[..text.len().min(SAMPLE_BYTES)];
    let is_whole = sample.len() == text.len();
    let known = asked.known.clone();
    let mut plan = CsvPlan::new(sample, is_whole, &asked.table, schema.as_deref(), known, asked.partition_by)?;
    plan.detected.format.ignores_extra = asked.ignores_extra;
    plan.lines_before += asked.lines_before;
    let errors = vec![0; plan.detected.columns.len()];
    let mut found = Found { errors, rejected: Vec::new(), nulled: Vec::new(), bytes: 0 };
    let text = text.slice(plan.skipped_bytes..);
    let rows = if is_piece || text.len() <= WHOLE_BYTES_MAX {
        let told = |bad: &Bad| found.tell(bad, &plan, asked.rejected_max);
        let (batches, progress) = parse_csv(&plan, &text, asked.on_bad, told)?;
        Rows::Parsed(batches, progress)
    } else {
        if asked.on_bad == OnBad::Abort {
            let ready = |_| futures::future::ready(Ok(())).boxed();
            import_csv(&plan, Box::new(Cursor::new(text.clone())), THREADS, OnBad::Abort, ready, |_, _| Ok(()))
                .map_err(|mut e| {
                    e.hint = None;
                    e
                })?;
        }
        Rows::Text(text)
    };
    Ok(Ready { asked, plan, found, rows })
}

fn finish(database: &Database, ready: Ready, turn: Option<Turn>) -> Result<Answer> {
    let Ready { asked, plan, mut found, rows } = ready;
    make_table(database, &asked, &plan)?;
    let done = match rows {
        Rows::Parsed(batches, progress) => {
            let commits: Vec<_> = batches.into_iter().map(|batch| database.commit(vec![batch])).collect();
            if let Some(turn) = turn {
                turn.pass();
            }
            commits.into_iter().try_for_each(|commit| block_on(commit).map(|_| ()))?;
            progress
        }
        Rows::Text(text) => {
            let commit = |batch| database.commit(vec![batch]).map(|done| done.map(|_| ())).boxed();
            let told = |bad: Option<&Bad>, _: Progress| {
                bad.into_iter().for_each(|bad| found.tell(bad, &plan, asked.rejected_max));
                Ok(())
            };
            import_csv(&plan, Box::new(Cursor::new(text)), THREADS, asked.on_bad, commit, told)?
        }
    };
    let schema = database.table(&asked.table);
    let type_name = |t: Option<ColumnType>| t.map_or_else(String::new, |t| t.to_string());
    let columns = plan.detected.columns.iter().zip(found.errors);
    Ok(Answer {
        status: "OK".to_owned(),
        location: plan.table.clone(),
        rows_imported: done.rows,
        rows_rejected: done.bad,
        header: plan.detected.header_bytes > 0,
        partition_by: schema.as_ref().map_or(PartitionBy::None, |s| s.partition_by).to_string(),
        timestamp: schema.as_ref().and_then(|s| s.timestamp().map(|(column, _)| column.name.clone())),
        columns: columns
            .map(|(c, errors)| AnswerColumn { name: c.name.clone(), type_name: type_name(c.column_type), errors })
            .collect(),
        line: None,
        rejected: found.rejected,
        values_nulled: done.nulled,
        nulled: found.nulled,
    })
}

fn make_table(database: &Database, asked: &Asked, plan: &CsvPlan) -> Result<()> {
    if asked.overwrites {
        block_on(database.command(Command::DropTable { table: asked.table.clone(), if_exists: true }))?;
    }
    if let Some(create) = &plan.create {
        // Another request may have made it meanwhile.
        let create = CreateTable { if_not_exists: true, ..create.clone() };
        block_on(database.command(Command::CreateTable(create)))?;
    }
    Ok(())
}
