//! Line protocol over HTTP: a request is one commit over all its tables.
//!
//! `/write` and `/api/v2/write` reject a request with a bad line as a whole. `/api/v3/write_lp` commits the valid lines
//! ([`super::partial`]) unless the request disables this.

use super::body::{self, BodyError};
use super::once::{self, Claimed, Fingerprint, done_once};
use super::params::Params;
use super::partial;
use super::response::{Body, full, response};
use super::state::HttpState;
use crate::counters::add;
use crate::errors::write_error_json;
use crate::lines::{Lines, line_error};
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::{Request, Response, StatusCode};
use std::sync::Arc;
use std::time::Instant;
use tidalite::types::{Batch, EpochUnit};
use tidalite::{Error, ErrorKind};

/// `/write` of InfluxDB 1 and QuestDB, `/api/v2/write` of InfluxDB 2. Databases, buckets and their like are ignored.
pub async fn answer(request: Request<Incoming>, shared: &Arc<HttpState>) -> Response<Body> {
    let started = Instant::now();
    let (head, body) = request.into_parts();
    let written = match precision(&head, EpochUnit::Unstated) {
        Ok(unit) => write(&head, body, unit, shared).await,
        Err(error) => Err(BodyError::Refused(error)),
    };
    match written {
        Ok(rows) => done(rows, started, shared),
        Err(refused) => {
            let status = refused.status();
            // Exactly this type, without a charset: QuestDB clients compare the whole header before parsing the reason.
            let json = write_error_json(&refused.into_error(), names_database(&head));
            refuse(status, "application/json", json, shared)
        }
    }
}

/// Returns true if a request names a database, as requests of InfluxDB 1 do.
fn names_database(head: &Parts) -> bool {
    Params::parse(head.uri.query().unwrap_or_default()).is_ok_and(|params| params.get("db").is_some())
}

/// `/api/v3/write_lp` of InfluxDB 3.
pub async fn answer_v3(request: Request<Incoming>, shared: &Arc<HttpState>) -> Response<Body> {
    let started = Instant::now();
    let (head, body) = request.into_parts();
    match write_v3(&head, body, shared).await {
        Ok(partial::Written::All(rows)) => done(rows, started, shared),
        Ok(partial::Written::Part { rows, json }) => {
            if rows > 0 {
                counted(rows, started, shared);
            }
            refuse(StatusCode::BAD_REQUEST, "application/json", json, shared)
        }
        Err(refused) => {
            let status = refused.status();
            refuse(status, "application/json", partial::refusal_json(&refused.into_error()), shared)
        }
    }
}

async fn write_v3(head: &Parts, body: Incoming, shared: &Arc<HttpState>) -> Result<partial::Written, BodyError> {
    let unit = precision(head, EpochUnit::Auto).map_err(BodyError::Refused)?;
    let params = Params::parse(head.uri.query().unwrap_or_default()).map_err(invalid)?;
    let is_partial = match params.get("accept_partial") {
        Some(text) if !text.is_empty() => {
            text.parse().map_err(|_| invalid(format!("accept_partial {text:?} is not true or false")))?
        }
        _ => true,
    };
    partial::write(head, body, unit, is_partial, shared).await
}

/// Status 204: the rows are committed; `rows` is `None` if an earlier request committed them.
fn done(rows: Option<u64>, started: Instant, shared: &HttpState) -> Response<Body> {
    if let Some(rows) = rows {
        counted(rows, started, shared);
    }
    let mut answer = Response::new(full(""));
    *answer.status_mut() = StatusCode::NO_CONTENT;
    answer
}

fn counted(rows: u64, started: Instant, shared: &HttpState) {
    add(&shared.counters.http.rows, rows);
    add(&shared.counters.http.commits, 1);
    shared.counters.writes.observe(started.elapsed());
}

fn refuse(status: StatusCode, content_type: &'static str, json: Vec<u8>, shared: &HttpState) -> Response<Body> {
    add(&shared.counters.http.errors, 1);
    tracing::info!(status = status.as_u16(), reason = %String::from_utf8_lossy(&json), "refused a write");
    response(status, content_type, json)
}

/// How many rows; `None` when they were written before.
async fn write(
    head: &Parts,
    body: Incoming,
    unit: EpochUnit,
    shared: &Arc<HttpState>,
) -> Result<Option<u64>, BodyError> {
    let mut options = shared.line.clone();
    options.timestamp_unit = unit;
    let mut lines = shared.parsers.take(options);
    let result = write_lines(&mut lines, head, body, shared).await;
    shared.parsers.give_back(lines);
    result
}

async fn write_lines(
    lines: &mut Lines,
    head: &Parts,
    body: Incoming,
    shared: &Arc<HttpState>,
) -> Result<Option<u64>, BodyError> {
    // Until the rows are committed.
    let mut share = shared.bodies.share();
    let mut request = Fingerprint::new(&head.headers, &head.uri.to_string());
    body::read(&head.headers, body, shared.body, share.watch(), |piece| {
        share.add(piece.len())?;
        request.piece(piece);
        add(&shared.counters.http.bytes, piece.len() as u64);
        lines.push(piece).map_err(|e| line_error(&e))
    })
    .await?;
    lines.finish().map_err(|e| BodyError::Refused(line_error(&e)))?;
    let batches: Vec<Batch> = lines.take();
    let rows: usize = batches.iter().map(|b| b.rows).sum();
    let claim = match once::claimed(&shared.once, &head.headers, request).await? {
        Some(Claimed::Before(_)) => return Ok(None),
        Some(Claimed::First(claim)) => Some(claim),
        None => None,
    };
    let commit = (rows > 0).then(|| shared.database.commit(batches));
    let work = async move {
        let _held = share;
        match commit {
            Some(commit) => commit.await.map(drop),
            None => Ok(()),
        }
    };
    done_once(claim, work, |()| Some(no_content())).await.map_err(BodyError::Refused)?;
    Ok(Some(rows as u64))
}

/// Returns the response to a write, which is stored for repeated requests.
fn no_content() -> once::Answer {
    once::Answer { status: StatusCode::NO_CONTENT, content_type: "", body: Bytes::new() }
}

fn invalid(message: String) -> BodyError {
    BodyError::Refused(Error::new(ErrorKind::Invalid, message))
}

/// The parameter `precision`, or `default` without it.
fn precision(head: &Parts, default: EpochUnit) -> Result<EpochUnit, Error> {
    precision_of(head.uri.query().unwrap_or_default(), default)
}

fn precision_of(query: &str, default: EpochUnit) -> Result<EpochUnit, Error> {
    let invalid = |message| Error::new(ErrorKind::Invalid, message);
    let params = Params::parse(query).map_err(invalid)?;
    let Some(text) = params.get("precision").filter(|text| !text.is_empty()) else { return Ok(default) };
    let unit = EpochUnit::from_precision(text);
    unit.ok_or_else(|| invalid(format!("precision {text:?} is not one of {}", EpochUnit::NAMES)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errors::status;

    #[test]
    fn precision_has_a_default_and_an_error_that_names_what_is_allowed() {
        let read = |query: &str| precision_of(query, EpochUnit::Unstated);
        assert_eq!(read("").unwrap(), EpochUnit::Unstated);
        assert_eq!(read("bucket=x&precision=ms").unwrap(), EpochUnit::Millis);
        assert_eq!(read("db=x&precision=nanosecond").unwrap(), EpochUnit::Nanos);
        assert_eq!(read("precision=%C2%B5").unwrap(), EpochUnit::Micros);
        assert_eq!(precision_of("precision=", EpochUnit::Auto).unwrap(), EpochUnit::Auto);
        let error = read("precision=zz").unwrap_err();
        assert!(error.message.starts_with("precision \"zz\" is not one of n, ns, u, us, ms"), "{error}");
        assert_eq!(status(&error), StatusCode::BAD_REQUEST);
    }
}
