//! Writes of InfluxDB 3 that keep the good lines of a request and report the others.
//!
//! The complete body is read first, then parsed and committed as one unit. The lines are processed one by one only if
//! this commit is refused.

use super::body::{self, BodyError};
use super::once::{self, Claimed, Fingerprint, done_once};
use super::state::HttpState;
use crate::counters::add;
use crate::json::push_string;
use crate::lines::now_ns;
use bytes::Bytes;
use hyper::StatusCode;
use hyper::body::Incoming;
use hyper::http::request::Parts;
use std::sync::Arc;
use tidalite::line::{LineError, LineOptions, LineParser, RefusedLine, ValidLines};
use tidalite::types::EpochUnit;
use tidalite::{Database, Error, ErrorKind, Result};

/// The result of a write request.
pub enum Written {
    /// Every line was committed; `None` if an earlier request with the same key committed them.
    All(Option<u64>),
    /// Some lines were refused.
    Part { rows: u64, json: Vec<u8> },
}

/// Bytes of a refused line that its report repeats.
const LINE_BYTES_MAX: usize = 1_024;

/// Longer bodies are parsed on a separate thread, so that the socket threads serve other connections.
const INLINE_BYTES_MAX: usize = 256 << 10;

/// Commits the valid lines of a request; without `is_partial`, all lines or none.
pub async fn write(
    head: &Parts,
    body: Incoming,
    unit: EpochUnit,
    is_partial: bool,
    shared: &Arc<HttpState>,
) -> Result<Written, BodyError> {
    // The memory is reserved until the rows are committed.
    let mut share = shared.bodies.share();
    let mut request = Fingerprint::new(&head.headers, &head.uri.to_string());
    let mut text = Vec::new();
    body::read(&head.headers, body, shared.body, share.watch(), |piece| {
        share.add(piece.len())?;
        request.piece(piece);
        add(&shared.counters.http.bytes, piece.len() as u64);
        text.extend_from_slice(piece);
        Ok(())
    })
    .await?;
    let claim = match once::claimed(&shared.once, &head.headers, request).await? {
        Some(Claimed::Before(answer)) if answer.status == StatusCode::NO_CONTENT => return Ok(Written::All(None)),
        Some(Claimed::Before(answer)) => return Ok(Written::Part { rows: 0, json: answer.body.to_vec() }),
        Some(Claimed::First(claim)) => Some(claim),
        None => None,
    };
    let mut options = shared.line.clone();
    options.timestamp_unit = unit;
    let database = shared.database.clone();
    let work = async move {
        let _held = share;
        write_text(text, options, is_partial, database).await
    };
    done_once(claim, work, remembered).await.map_err(BodyError::Refused)
}

/// Returns the response to store for an idempotency key.
///
/// `None` if the request committed no row: a repeated request may succeed.
fn remembered(written: &Written) -> Option<once::Answer> {
    let (status, body) = match written {
        Written::All(_) => (StatusCode::NO_CONTENT, Bytes::new()),
        Written::Part { rows: 0, .. } => return None,
        Written::Part { json, .. } => (StatusCode::BAD_REQUEST, Bytes::copy_from_slice(json)),
    };
    Some(once::Answer { status, content_type: "application/json", body })
}

async fn write_text(mut text: Vec<u8>, options: LineOptions, is_partial: bool, database: Database) -> Result<Written> {
    if text.last().is_some_and(|last| *last != b'\n') {
        text.push(b'\n');
    }
    let text = Arc::new(text);
    let parsed = parsed(&text, LineParser::new(options.clone()), |parser, text| {
        parser.parse(text, now_ns()).ok().filter(|used| *used == text.len()).map(|_| parser.take())
    });
    let mut refusal = None;
    if let Some(batches) = parsed.await? {
        let rows: usize = batches.iter().map(|batch| batch.rows).sum();
        match if rows > 0 { database.commit(batches).await.map(drop) } else { Ok(()) } {
            Ok(()) => return Ok(Written::All(Some(rows as u64))),
            // Only an error of a line permits a retry without that line.
            Err(error) if error.line.is_none() => return Err(error),
            Err(error) => refusal = Some(error),
        }
    }
    // The first value of a column in this request must not determine the type of the table column.
    let parser = LineParser::new(LineOptions { widens: false, ..options });
    let mut found = parsed_valid(&text, parser).await?;
    let rows: usize = found.batches.iter().map(|batch| batch.rows).sum();
    if !is_partial {
        if found.refused.is_empty() && refusal.is_none() {
            match database.commit(std::mem::take(&mut found.batches)).await {
                Ok(_) => return Ok(Written::All(Some(rows as u64))),
                Err(error) => refusal = Some(error),
            }
        }
        return Ok(Written::Part { rows: 0, json: first_report(&text, &found, refusal.as_ref()) });
    }
    let (_, refused) = database.commit_valid(std::mem::take(&mut found.batches)).await?;
    if found.refused.is_empty() && refused.is_empty() {
        return Ok(Written::All(Some(rows as u64)));
    }
    let rows = rows.saturating_sub(refused.len()) as u64;
    Ok(Written::Part { rows, json: report(&text, &found, &refused) })
}

async fn parsed_valid(text: &Arc<Vec<u8>>, parser: LineParser) -> Result<ValidLines> {
    parsed(text, parser, |parser, text| parser.parse_valid(text, now_ns())).await
}

async fn parsed<T: Send + 'static>(
    text: &Arc<Vec<u8>>,
    mut parser: LineParser,
    parse: impl FnOnce(&mut LineParser, &[u8]) -> T + Send + 'static,
) -> Result<T> {
    if text.len() <= INLINE_BYTES_MAX {
        return Ok(parse(&mut parser, text));
    }
    let text = text.clone();
    let parsed = tokio::task::spawn_blocking(move || parse(&mut parser, &text));
    parsed.await.map_err(|_| Error::new(ErrorKind::Internal, "the parser panicked"))
}

/// A refused line and the reason; line 0 if the reason concerns several lines.
struct Entry {
    line: u64,
    message: String,
}

impl Entry {
    fn of_refused(line: &RefusedLine) -> Entry {
        let LineError { line, position, message } = &line.error;
        Entry { line: *line, message: format!("{message}, at position {position}") }
    }

    fn of_error(error: &Error) -> Entry {
        Entry { line: error.line.unwrap_or(0), message: error.message.clone() }
    }

    fn push(&self, text: &[u8], found: &ValidLines, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"error_message\":");
        push_string(out, self.message.as_bytes());
        out.extend_from_slice(format!(",\"line_number\":{},\"original_line\":", self.line).as_bytes());
        let line = &text[found.text(text, self.line)];
        push_string(out, &line[..line.len().min(LINE_BYTES_MAX)]);
        out.push(b'}');
    }
}

/// InfluxDB 3's report of a partial write.
fn report(text: &[u8], found: &ValidLines, refused: &[Error]) -> Vec<u8> {
    let mut entries: Vec<Entry> = found.refused.iter().map(Entry::of_refused).collect();
    entries.extend(refused.iter().map(Entry::of_error));
    if found.refused_more > 0 {
        entries.push(Entry { line: 0, message: format!("{} more lines were refused", found.refused_more) });
    }
    entries.sort_by_key(|entry| (entry.line == 0, entry.line));
    let mut out = b"{\"error\":\"partial write of line protocol occurred\",\"data\":[".to_vec();
    for (at, entry) in entries.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        entry.push(text, found, &mut out);
    }
    out.extend_from_slice(b"]}");
    out
}

/// The InfluxDB 3 report of a write without any valid line: the first bad line.
fn first_report(text: &[u8], found: &ValidLines, refusal: Option<&Error>) -> Vec<u8> {
    let parse = found.refused.first().map(Entry::of_refused);
    let mut out = b"{\"error\":\"parsing failed for write_lp endpoint\",\"data\":".to_vec();
    match parse.or_else(|| refusal.map(Entry::of_error)) {
        Some(entry) => entry.push(text, found, &mut out),
        None => out.extend_from_slice(b"null"),
    }
    out.push(b'}');
    out
}

/// An error that does not concern a single line.
#[must_use]
pub fn refusal_json(error: &Error) -> Vec<u8> {
    let mut out = b"{\"error\":".to_vec();
    push_string(&mut out, crate::errors::with_hint(error).as_bytes());
    out.extend_from_slice(b",\"data\":null}");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_the_shape_of_influxdb_3() {
        let text = b"m v=1 1\nm v=x 1\n\nm v=\"a\nb\" 1\nm v=2 2\n";
        let mut parser = LineParser::new(LineOptions { widens: false, ..LineOptions::default() });
        let found = parser.parse_valid(text, 0);
        assert_eq!(found.batches.iter().map(|batch| batch.rows).sum::<usize>(), 3);
        let mut refused = Error::new(ErrorKind::Invalid, "no \"place\"");
        refused.line = Some(4);
        let json: serde_json::Value = serde_json::from_slice(&report(text, &found, &[refused])).unwrap();
        assert_eq!(json["error"], "partial write of line protocol occurred");
        let data = json["data"].as_array().unwrap();
        assert_eq!(data.len(), 2);
        assert_eq!((&data[0]["line_number"], &data[0]["original_line"]), (&2.into(), &"m v=x 1".into()));
        let message = data[0]["error_message"].as_str().unwrap();
        assert!(message.starts_with("column \"v\" of table \"m\": \"x\" is not a number"), "{message}");
        assert_eq!((&data[1]["line_number"], &data[1]["original_line"]), (&4.into(), &"m v=\"a\nb\" 1".into()));
        assert_eq!(data[1]["error_message"], "no \"place\"");
    }
}
