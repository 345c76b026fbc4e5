//! Rows in Arrow's IPC format: answers of queries, and rows to be written. What the Python package speaks.
//!
//! `POST /write/arrow?table=…` is one commit of all rows of its body, or nothing of it is kept; it is answered when they
//! are durable and visible. `/exec?fmt=arrow` answers with a stream that is computed as it is read.

use super::body::{self, BodyError};
use super::once::{self, Claimed, done_once};
use super::params::Params;
use super::response::{Body, JSON, response};
use super::state::HttpState;
use super::wire::Wire;
use crate::budget::Share;
use crate::counters::add;
use crate::errors::write_code;
use crate::json::push_string;
use arrow::array::{ArrayRef, RecordBatch};
use arrow::buffer::Buffer;
use arrow::datatypes::{Schema, SchemaRef};
use arrow::ipc::writer::StreamWriter;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Request, Response, StatusCode};
use serde_json::Value;
use std::sync::Arc;
use std::time::Instant;
use tidalite::types::{Batch, ColumnType, Command, PartitionBy};
use tidalite::{Error, ErrorKind, Parameter, Result, Rows};
use tidalite_frames::{IpcDecoder, IpcError, IpcLimits, Pieces, RowOptions, RowPlan, Symbols, compact};

const STREAM: &str = "application/vnd.apache.arrow.stream";
/// The metadata key of a column's type in SQL.
const SQL_TYPE: &str = "tidalite.sql_type";

/// The values of `$1`, `$2`, …: a JSON list of lists of a tag and a value.
pub fn parameters(json: &str) -> Result<Vec<Parameter>> {
    if json.is_empty() {
        return Ok(Vec::new());
    }
    let invalid = || Error::new(ErrorKind::Invalid, "parameter params is no list of values");
    let values: Vec<Value> = serde_json::from_str(json).map_err(|_| invalid())?;
    values.iter().map(|value| parameter(value).ok_or_else(invalid)).collect()
}

fn parameter(value: &Value) -> Option<Parameter> {
    let [tag, rest @ ..] = value.as_array()?.as_slice() else { return None };
    let text = || rest.first()?.as_str();
    Some(match tag.as_str()? {
        "null" => Parameter::Null,
        "boolean" => Parameter::Boolean(rest.first()?.as_bool()?),
        "long" => Parameter::Long(text()?.parse().ok()?),
        "double" => Parameter::Double(text()?.parse().ok()?),
        "decimal" => {
            let digits = text()?;
            let is_number =
                !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'-' | b'+' | b'.'));
            Some(Parameter::Decimal(digits.to_owned())).filter(|_| is_number)?
        }
        "text" => Parameter::Text(text()?.to_owned()),
        "bytes" => {
            let hex = text()?.as_bytes();
            let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
            Parameter::Bytes(hex.chunks(2).map(byte).collect::<Option<_>>()?)
        }
        "list" => Parameter::List(rest.first()?.as_array()?.iter().map(parameter).collect::<Option<_>>()?),
        other => Parameter::Typed(text()?.to_owned(), ColumnType::from_sql_name(other)?),
    })
}

/// Returns the rows of a query; `done` receives their number when the response ends or is dropped. If the query fails
/// later, the response is aborted after the preceding rows have been written.
///
/// # Errors
/// What the query failed with before its first rows.
pub async fn answer(rows: Rows, wire: Option<Wire>, done: impl FnOnce(u64) + Send + 'static) -> Result<Response<Body>> {
    let fields = rows.schema.fields().iter().zip(&rows.columns);
    let fields: Vec<_> = fields
        .map(|(field, column)| {
            let metadata = [(SQL_TYPE.to_owned(), column.type_name.clone())].into();
            field.as_ref().clone().with_metadata(metadata)
        })
        .collect();
    let schema = Arc::new(Schema::new(fields));
    let mut stream = rows.stream;
    let first = stream.next().await.transpose()?;
    let writer = StreamWriter::try_new(Vec::new(), &schema).map_err(internal)?;
    let has_ended = first.is_none();
    let answering =
        Answering { schema, writer, stream, first, written: 0, has_ended, is_over: false, wire, done: Some(done) };
    let chunks = stream::unfold(answering, |mut answering| async {
        let chunk = answering.chunk().await?;
        if let Err(error) = &chunk {
            tracing::warn!(%error, "a query failed after its first rows were sent");
            answering.is_over = true;
            if let Some(wire) = &answering.wire {
                wire.flushed().await;
            }
        }
        Some((chunk.map(Frame::data), answering))
    });
    let mut response = Response::new(BodyExt::boxed_unsync(StreamBody::new(chunks)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(STREAM));
    Ok(response)
}

fn internal(error: arrow::error::ArrowError) -> Error {
    Error::new(ErrorKind::Internal, format!("the answer cannot be written: {error}"))
}

struct Answering<F: FnOnce(u64)> {
    schema: SchemaRef,
    writer: StreamWriter<Vec<u8>>,
    stream: BoxStream<'static, Result<RecordBatch>>,
    first: Option<RecordBatch>,
    written: u64,
    /// The rows have ended: their stream may not be asked again.
    has_ended: bool,
    is_over: bool,
    wire: Option<Wire>,
    done: Option<F>,
}

impl<F: FnOnce(u64)> Answering<F> {
    async fn chunk(&mut self) -> Option<Result<Bytes>> {
        if self.is_over {
            return None;
        }
        let next = match self.first.take() {
            Some(first) => Some(Ok(first)),
            None if self.has_ended => None,
            None => self.stream.next().await,
        };
        match next {
            Some(Ok(batch)) => Some(self.write(&batch).map_err(internal)),
            Some(Err(error)) => Some(Err(error)),
            None => {
                self.is_over = true;
                Some(self.writer.finish().map(|()| self.text()).map_err(internal))
            }
        }
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<Bytes, arrow::error::ArrowError> {
        let columns: Vec<ArrayRef> = batch.columns().iter().map(compact).collect();
        let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        self.writer.write(&RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?)?;
        self.written += batch.num_rows() as u64;
        Ok(self.text())
    }

    fn text(&mut self) -> Bytes {
        std::mem::take(self.writer.get_mut()).into()
    }
}

impl<F: FnOnce(u64)> Drop for Answering<F> {
    fn drop(&mut self) {
        if let Some(done) = self.done.take() {
            done(self.written);
        }
    }
}

/// Why rows were refused: the status and the answer.
struct Refused(StatusCode, Vec<u8>);

pub async fn write(request: Request<Incoming>, shared: &Arc<HttpState>) -> Response<Body> {
    let started = Instant::now();
    match write_rows(request, shared).await {
        Ok(Written::Now(rows)) => {
            add(&shared.counters.http.rows, rows);
            add(&shared.counters.http.commits, 1);
            shared.counters.writes.observe(started.elapsed());
            response(StatusCode::OK, JSON, written(rows))
        }
        Ok(Written::Before(once::Answer { status, content_type, body })) => response(status, content_type, body),
        Err(Refused(status, json)) => {
            add(&shared.counters.http.errors, 1);
            tracing::info!(status = status.as_u16(), reason = %String::from_utf8_lossy(&json), "refused rows");
            response(status, JSON, json)
        }
    }
}

enum Written {
    Now(u64),
    /// By a request with the same key.
    Before(once::Answer),
}

fn written(rows: u64) -> String {
    format!("{{\"rows\":{rows}}}")
}

async fn write_rows(request: Request<Incoming>, shared: &Arc<HttpState>) -> Result<Written, Refused> {
    let (head, body) = request.into_parts();
    let params = Params::parse(head.uri.query().unwrap_or_default()).map_err(invalid)?;
    let options = RowOptions {
        table: params
            .get("table")
            .filter(|t| !t.is_empty())
            .ok_or_else(|| invalid("parameter table is missing"))?
            .to_owned(),
        at: params.get("at").map(str::to_owned),
        symbols: symbols(params.get("symbols").unwrap_or_default())
            .ok_or_else(|| invalid("parameter symbols is no JSON of true, false, or names"))?,
    };
    let by = params.get("partition_by").unwrap_or("DAY");
    let by = PartitionBy::from_sql_name(by)
        .ok_or_else(|| invalid(format!("partition_by {by:?} is not one of HOUR, DAY, WEEK, MONTH, YEAR, NONE")))?;
    let first_row =
        params.get("first_row").map_or(Ok(0), str::parse).map_err(|_| invalid("parameter first_row is no number"))?;
    // Until the rows are committed.
    let mut share = shared.bodies.share();
    let mut bytes = Vec::new();
    let mut request = once::Fingerprint::new(&head.headers, &head.uri.to_string());
    body::read(&head.headers, body, shared.body, share.watch(), |piece| {
        share.add(piece.len())?;
        request.piece(piece);
        add(&shared.counters.http.bytes, piece.len() as u64);
        bytes.extend_from_slice(piece);
        Ok(())
    })
    .await
    .map_err(Refused::from)?;
    let claim = match once::claimed(&shared.once, &head.headers, request).await.map_err(Refused::from)? {
        Some(Claimed::Before(answer)) => return Ok(Written::Before(answer)),
        Some(Claimed::First(claim)) => Some(claim),
        None => None,
    };
    let existing = shared.database.table(&options.table);
    let is_new = existing.is_none();
    // Some of a second of pure computation: not on a thread that others' sockets wait for.
    let limits = shared.body.ipc();
    let converted =
        tokio::task::spawn_blocking(move || convert(bytes, &options, existing.as_deref(), first_row, limits, share));
    let converted = converted
        .await
        .map_err(|_| Refused::from(Error::new(ErrorKind::Invalid, "the rows are not in Arrow's IPC format")))?;
    let (plan, batches, rows, share) = converted?;
    let database = shared.database.clone();
    let work = async move {
        let _held = share;
        if is_new {
            database.command(Command::CreateTable(plan.table(by))).await?;
        }
        if rows > 0 {
            database.commit(batches).await?;
        }
        Ok(rows)
    };
    let answer =
        |rows: &u64| Some(once::Answer { status: StatusCode::OK, content_type: JSON, body: written(*rows).into() });
    done_once(claim, work, answer).await.map(Written::Now).map_err(Refused::from)
}

type Converted = (RowPlan, Vec<Batch>, u64, Share);

fn convert(
    bytes: Vec<u8>,
    options: &RowOptions,
    existing: Option<&tidalite::types::TableSchema>,
    first_row: u64,
    limits: IpcLimits,
    mut share: Share,
) -> Result<Converted, Refused> {
    /// Rows that are converted before their memory is counted: few bytes may have become many.
    const ROWS_AT_ONCE: usize = 1 << 20;
    let mut buffer = Buffer::from(bytes);
    let mut decoder = IpcDecoder::new(limits);
    let mut frames = Vec::new();
    while let Some(frame) = decoder.decode(&mut buffer, &mut |bytes| share.add(bytes).map_err(Refused::from))? {
        frames.push(frame);
    }
    decoder.finish()?;
    let schema = decoder.schema().ok_or_else(|| invalid("the body has no rows in Arrow's IPC format"))?;
    let plan = RowPlan::new(&schema, options, existing)?;
    let mut pieces = Pieces::new(plan.clone(), true).from_row(first_row);
    let mut batches = Vec::new();
    let mut take = |more: Vec<Batch>| {
        batches = more;
        Ok::<(), tidalite_frames::Error>(())
    };
    for frame in frames {
        for at in (0..frame.num_rows()).step_by(ROWS_AT_ONCE) {
            pieces.push(frame.slice(at, ROWS_AT_ONCE.min(frame.num_rows() - at)), &mut take)?;
            share.grow_to(pieces.held_bytes())?;
        }
    }
    pieces.finish(&mut take)?;
    Ok((plan, batches, pieces.rows(), share))
}

/// `true` for all text, `false` for none, a list of names; nothing for dictionaries.
fn symbols(json: &str) -> Option<Symbols> {
    if json.is_empty() || json == "\"auto\"" {
        return Some(Symbols::Auto);
    }
    Some(match serde_json::from_str(json).ok()? {
        Value::Bool(true) => Symbols::All,
        Value::Bool(false) => Symbols::None,
        Value::Array(names) => {
            Symbols::Named(names.iter().map(|n| n.as_str().map(str::to_owned)).collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

fn invalid(message: impl Into<String>) -> Refused {
    Refused::from(Error::new(ErrorKind::Invalid, message))
}

impl From<BodyError> for Refused {
    fn from(error: BodyError) -> Refused {
        let status = error.status();
        Refused(status, Refused::from(error.into_error()).1)
    }
}

impl From<once::KeyError> for Refused {
    fn from(error: once::KeyError) -> Refused {
        let status = error.status();
        Refused(status, Refused::from(error.into_error()).1)
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Refused {
        let row = error.line.map(|line| line.saturating_sub(1));
        let message = row.map_or_else(|| error.message.clone(), |row| format!("{}, in row {row}", error.message));
        let json = refusal(write_code(error.kind), &message, error.hint.as_deref(), None, row);
        Refused(crate::errors::status(&error), json)
    }
}

impl From<IpcError> for Refused {
    fn from(error: IpcError) -> Refused {
        let (status, what) = match error {
            IpcError::TooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "the rows are too large"),
            IpcError::Malformed(_) => (StatusCode::BAD_REQUEST, "the rows are not in Arrow's IPC format"),
        };
        Refused(status, refusal("invalid", &format!("{what}: {error}"), None, None, None))
    }
}

impl From<tidalite_frames::Error> for Refused {
    fn from(error: tidalite_frames::Error) -> Refused {
        let json = refusal("invalid", &error.message, error.hint.as_deref(), error.column.as_deref(), error.row);
        Refused(StatusCode::BAD_REQUEST, json)
    }
}

fn refusal(code: &str, message: &str, hint: Option<&str>, column: Option<&str>, row: Option<u64>) -> Vec<u8> {
    let mut out = format!("{{\"code\":\"{code}\",\"message\":").into_bytes();
    push_string(&mut out, message.as_bytes());
    for (name, value) in [("hint", hint), ("column", column)] {
        if let Some(value) = value {
            out.extend_from_slice(format!(",\"{name}\":").as_bytes());
            push_string(&mut out, value.as_bytes());
        }
    }
    if let Some(row) = row {
        out.extend_from_slice(format!(",\"row\":{row}").as_bytes());
    }
    out.push(b'}');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_tagged_values() {
        let json = r#"[["null"],["boolean",true],["long","-5"],["double","nan"],["decimal","1.50"],["text","a'b"],
                      ["bytes","00ff"],["list",[["long","1"]]],["TIMESTAMP","2020-01-01T00:00:00Z"]]"#;
        let values = parameters(json).unwrap();
        assert_eq!(values.len(), 9);
        assert_eq!((&values[0], &values[2]), (&Parameter::Null, &Parameter::Long(-5)));
        assert_eq!(values[6], Parameter::Bytes(vec![0, 255]));
        assert_eq!(values[7], Parameter::List(vec![Parameter::Long(1)]));
        for bad in [
            "{}",
            "[1]",
            "[[]]",
            r#"[["long","x"]]"#,
            r#"[["decimal","1); drop"]]"#,
            r#"[["bytes","0g"]]"#,
            r#"[["NOTYPE","x"]]"#,
        ] {
            assert!(parameters(bad).is_err(), "{bad}");
        }
        assert!(parameters("").unwrap().is_empty());
    }

    #[test]
    fn bytes_that_are_no_rows_are_refused() {
        let options = RowOptions { table: "t".to_owned(), at: None, symbols: Symbols::Auto };
        for bytes in [
            Vec::new(),
            b"hello".to_vec(),
            vec![0xff; 64],
            vec![0xff, 0xff, 0xff, 0xff, 8, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8],
        ] {
            let budget = crate::budget::Budget::new(1 << 20, "bodies", "none");
            assert!(convert(bytes, &options, None, 0, IpcLimits::none(), budget.share()).is_err());
        }
    }
}
