//! Line protocol over HTTP: a request is one commit over all its tables, or nothing of it is kept.

use super::Shared;
use super::body::{self, Body, BodyError, full, response};
use super::once::{self, Claimed, done_once};
use super::params::Params;
use crate::counters::add;
use crate::errors::write_error_json;
use crate::lines::{Lines, line_error};
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::{Request, Response, StatusCode};
use std::sync::Arc;
use std::time::Instant;
use tidalite::line::LineTimeUnit;
use tidalite::types::Batch;
use tidalite::{Error, ErrorKind};

pub async fn answer(request: Request<Incoming>, shared: &Arc<Shared>) -> Response<Body> {
    let started = Instant::now();
    let refused = match write(request, shared).await {
        Ok(rows) => {
            if let Some(rows) = rows {
                add(&shared.counters.http.rows, rows);
                add(&shared.counters.http.commits, 1);
                shared.counters.writes.observe(started.elapsed());
            }
            let mut answer = Response::new(full(""));
            *answer.status_mut() = StatusCode::NO_CONTENT;
            return answer;
        }
        Err(refused) => refused,
    };
    add(&shared.counters.http.errors, 1);
    let status = refused.status();
    let error = refused.into_error();
    let json = write_error_json(&error);
    tracing::info!(status = status.as_u16(), reason = %String::from_utf8_lossy(&json), "refused a write");
    // Exactly this type, without a charset: QuestDB's clients compare it as a whole before they read the reason.
    response(status, "application/json", json)
}

/// How many rows; `None` when they were written before.
async fn write(request: Request<Incoming>, shared: &Arc<Shared>) -> Result<Option<u64>, BodyError> {
    let (head, body) = request.into_parts();
    let mut options = shared.line.clone();
    options.timestamp_unit = precision(head.uri.query().unwrap_or_default()).map_err(BodyError::Refused)?;
    let mut lines = shared.parsers.take(options);
    let result = write_lines(&mut lines, &head, body, shared).await;
    shared.parsers.give_back(lines);
    result
}

async fn write_lines(
    lines: &mut Lines,
    head: &Parts,
    body: Incoming,
    shared: &Arc<Shared>,
) -> Result<Option<u64>, BodyError> {
    // Until the rows are committed.
    let mut share = shared.bodies.share();
    let mut bytes = 0;
    body::read(&head.headers, body, shared.body, |piece| {
        share.add(piece.len())?;
        bytes += piece.len();
        add(&shared.counters.http.bytes, piece.len() as u64);
        lines.push(piece).map_err(|e| line_error(&e))
    })
    .await?;
    lines.finish().map_err(|e| BodyError::Refused(line_error(&e)))?;
    let batches: Vec<Batch> = lines.take();
    let rows: usize = batches.iter().map(|b| b.rows).sum();
    if rows == 0 {
        return Ok(Some(0));
    }
    let claim = match once::claimed(&shared.once, &head.headers, &format!("{} {bytes}", head.uri)).await {
        Ok(Some(Claimed::Before(_))) => return Ok(None),
        Ok(Some(Claimed::First(claim))) => Some(claim),
        Ok(None) => None,
        Err(error) => return Err(BodyError::Refused(error)),
    };
    let commit = shared.database.commit(batches);
    let work = async move {
        let _held = share;
        commit.await
    };
    let answer = once::Answer { status: StatusCode::NO_CONTENT, content_type: "", body: Bytes::new() };
    done_once(claim, work, |_| Some(answer)).await.map_err(BodyError::Refused)?;
    Ok(Some(rows as u64))
}

fn precision(query: &str) -> Result<LineTimeUnit, Error> {
    let invalid = |message| Error::new(ErrorKind::Invalid, message);
    let params = Params::parse(query).map_err(invalid)?;
    let Some(text) = params.get("precision").filter(|p| !p.is_empty()) else { return Ok(LineTimeUnit::Nanos) };
    LineTimeUnit::from_precision(text)
        .ok_or_else(|| invalid(format!("precision {text:?} is not one of n, ns, u, us, ms, s, m, h")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errors::http_status;

    #[test]
    fn precision_defaults_to_nanoseconds_and_names_what_is_allowed() {
        assert_eq!(precision("").unwrap(), LineTimeUnit::Nanos);
        assert_eq!(precision("bucket=x&precision=ms").unwrap(), LineTimeUnit::Millis);
        let error = precision("precision=zz").unwrap_err();
        assert_eq!(error.message, "precision \"zz\" is not one of n, ns, u, us, ms, s, m, h");
        assert_eq!(http_status(error.kind), StatusCode::BAD_REQUEST);
    }
}
