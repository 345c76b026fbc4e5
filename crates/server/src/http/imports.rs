//! `/imp`: CSV over HTTP, as the file of a form (how QuestDB's users upload) or as the body itself.
//!
//! The rows are durable when the answer comes. `tidalite import` sends pieces of a file here, each with its names.

use super::Shared;
use super::body::{self, Body, JSON, response, text_response};
use super::params::Params;
use crate::counters::add;
use crate::errors::{http_status, with_hint};
use crate::import::{columns, delimiter};
use futures::FutureExt;
use futures::executor::block_on;
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::{HeaderMap, Request, Response, StatusCode};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tidalite::import::{Bad, CsvPlan, Known, OnBad, Progress, SAMPLE_BYTES, import_csv};
use tidalite::types::{ColumnType, Command, PartitionBy};
use tidalite::{Database, Error, ErrorKind, Result};

/// Threads that parse one request.
const THREADS: usize = 2;
/// Records left out that an answer names.
const REJECTED_MAX: usize = 1_000;

/// The names are QuestDB's, those of `line`, `rejected` and below it ours.
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
}

#[derive(Debug, Serialize, Deserialize)]
pub struct AnswerColumn {
    pub name: String,
    #[serde(rename = "type")]
    pub type_name: String,
    pub errors: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Rejected {
    pub line: u64,
    pub position: u64,
    pub column: Option<String>,
    pub reason: String,
    pub record: String,
}

/// What was asked for.
struct Asked {
    table: String,
    known: Known,
    partition_by: Option<PartitionBy>,
    on_bad: OnBad,
    overwrites: bool,
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
        for Rejected { line, position, reason, .. } in &answer.rejected {
            text += &format!("line {line}, position {position}: {reason}\n");
        }
    }
    text_response(status, text)
}

async fn import(params: &Params, headers: &HeaderMap, body: Incoming, shared: &Arc<Shared>) -> Result<Answer> {
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
    let database = shared.database.clone();
    let done = tokio::task::spawn_blocking(move || run(&database, &asked, &bytes[form.data]));
    let done = done.await.map_err(|_| Error::new(ErrorKind::Internal, "the import panicked"))?;
    drop(share);
    done
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
            // QuestDB's default keeps the rows that are good.
            on_bad: if text("atomicity") == Some("abort") { OnBad::Abort } else { OnBad::Skip },
            overwrites: params.is_on("overwrite"),
        })
    }
}

fn run(database: &Database, asked: &Asked, text: &[u8]) -> Result<Answer> {
    let Asked { table, known, partition_by, on_bad, overwrites } = asked;
    let schema = database.table(table).filter(|_| !overwrites);
    let sample = &text[..text.len().min(SAMPLE_BYTES)];
    let plan =
        CsvPlan::new(sample, sample.len() == text.len(), table, schema.as_deref(), known.clone(), *partition_by)?;
    if *overwrites {
        block_on(database.command(Command::DropTable { table: table.clone(), if_exists: true }))?;
    }
    if let Some(create) = &plan.create {
        // Another request may have made it meanwhile.
        let create = tidalite::types::command::CreateTable { if_not_exists: true, ..create.clone() };
        block_on(database.command(Command::CreateTable(create)))?;
    }
    let mut errors = vec![0; plan.detected.columns.len()];
    let mut rejected = Vec::new();
    let commit = |batch| database.commit(vec![batch]).map(|done| done.map(|_| ())).boxed();
    let told = |bad: Option<&Bad>, _: Progress| {
        if let Some(bad) = bad {
            let column = plan.detected.columns.iter().position(|c| bad.record.column.as_ref() == Some(&c.name));
            column.into_iter().for_each(|c| errors[c] += 1);
            if rejected.len() < REJECTED_MAX {
                rejected.push(Rejected {
                    line: bad.line,
                    position: bad.record.position as u64,
                    column: bad.record.column.clone(),
                    reason: bad.record.reason.clone(),
                    record: String::from_utf8_lossy(&bad.record.record).into_owned(),
                });
            }
        }
        Ok(())
    };
    let mut rest = &text[plan.skipped_bytes..];
    let done = import_csv(&plan, &mut rest, THREADS, *on_bad, commit, told)?;
    let schema = database.table(table);
    let type_name = |t: Option<ColumnType>| t.map_or_else(String::new, |t| t.to_string());
    let columns = plan.detected.columns.iter().zip(errors);
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
        rejected,
    })
}

fn boundary(content_type: &str) -> Option<String> {
    let (kind, parameters) = content_type.split_once(';')?;
    if !kind.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let value = |p: &str| Some(p.trim().strip_prefix("boundary=")?.trim_matches('"').to_owned());
    parameters.split(';').find_map(value).filter(|b| !b.is_empty())
}

/// The parts of a form.
#[derive(Debug, Default)]
struct Form {
    data: std::ops::Range<usize>,
    file_name: Option<String>,
    schema: Vec<(String, ColumnType)>,
}

impl Form {
    fn parse(body: &[u8], boundary: &str) -> Result<Form> {
        let mark = format!("--{boundary}");
        let broken = || invalid("the form is broken: a part has no end");
        let mut form = Form::default();
        let mut has_data = false;
        let mut at = memchr::memmem::find(body, mark.as_bytes()).ok_or_else(broken)? + mark.len();
        while !body[at..].starts_with(b"--") {
            let head = memchr::memmem::find(&body[at..], b"\r\n\r\n").ok_or_else(broken)?;
            let names = String::from_utf8_lossy(&body[at..at + head]).into_owned();
            let start = at + head + 4;
            let end =
                start + memchr::memmem::find(&body[start..], format!("\r\n{mark}").as_bytes()).ok_or_else(broken)?;
            at = end + 2 + mark.len();
            match attribute(&names, "name").as_deref() {
                Some("data") => {
                    form.data = start..end;
                    form.file_name = attribute(&names, "filename").filter(|n| !n.is_empty());
                    has_data = true;
                }
                Some("schema") => form.schema = schema(&body[start..end])?,
                _ => {}
            }
        }
        if has_data { Ok(form) } else { Err(invalid("the form has no part named data")) }
    }
}

/// `name="value"` of a Content-Disposition.
fn attribute(head: &str, name: &str) -> Option<String> {
    let line = head.lines().find(|l| l.to_ascii_lowercase().starts_with("content-disposition:"))?;
    let value = |p: &str| Some(p.trim().strip_prefix(name)?.strip_prefix('=')?.trim_matches('"').to_owned());
    line.split(';').find_map(value)
}

/// `[{"name": "ts", "type": "TIMESTAMP", "pattern": …}]`; patterns are not needed for ISO 8601, the only one there is.
fn schema(json: &[u8]) -> Result<Vec<(String, ColumnType)>> {
    #[derive(Deserialize)]
    struct Given {
        name: String,
        #[serde(rename = "type")]
        type_name: String,
    }
    let given: Vec<Given> =
        serde_json::from_slice(json).map_err(|e| invalid(format!("the schema is no JSON list: {e}")))?;
    let typed = |g: Given| {
        let found = ColumnType::from_sql_name(&g.type_name);
        found.map(|t| (g.name, t)).ok_or_else(|| invalid(format!("{:?} is no type", g.type_name)))
    };
    given.into_iter().map(typed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_taken_apart() {
        let body = b"preamble\r\n--x\r\nContent-Disposition: form-data; name=\"schema\"\r\n\r\n[{\"name\":\"a\",\"type\":\"SYMBOL\"}]\r\n--x\r\nContent-Disposition: form-data; name=\"data\"; filename=\"t.csv\"\r\nContent-Type: text/csv\r\n\r\na\r\n1\r\n\r\n--x--\r\n";
        let form = Form::parse(body, &boundary("multipart/form-data; charset=utf-8; boundary=\"x\"").unwrap()).unwrap();
        assert_eq!(&body[form.data], b"a\r\n1\r\n");
        assert_eq!(
            (form.file_name.as_deref(), form.schema),
            (Some("t.csv"), vec![("a".to_owned(), ColumnType::Symbol)])
        );
        assert!(boundary("text/csv").is_none() && boundary("application/x-www-form-urlencoded; a=b").is_none());
        for broken in [&b""[..], b"--x", b"--x\r\n\r\nno end", b"--x\r\n\r\nno name\r\n--x--"] {
            assert!(Form::parse(broken, "x").is_err());
        }
    }
}
