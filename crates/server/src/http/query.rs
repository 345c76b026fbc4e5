//! SQL over HTTP: `/exec` as JSON, `/exp` as CSV, `/chk` whether a table exists.

use super::arrow;
use super::body::{self, answer_body};
use super::browser::Caller;
use super::frames;
use super::once::{self, Claimed, done_once};
use super::params::Params;
use super::response::{Body, JSON, response, text_response};
use super::state::HttpState;
use super::wire::Wire;
use crate::answer::{Answer, Form, JsonForm, Limit};
use crate::budget::Share;
use crate::counters::add;
use crate::errors::{query_error_json, status};
use crate::results;
use hyper::body::Incoming;
use hyper::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Request, Response, StatusCode};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tidalite::{Error, ErrorKind, Frame, QueryOptions, Response as Outcome, Result};
use tidalite_frames::IpcLimits;

pub async fn exec(request: Request<Incoming>, peer: SocketAddr, shared: &Arc<HttpState>) -> Response<Body> {
    answer(request, peer, shared, exec_form, exec_done).await
}

pub async fn exp(request: Request<Incoming>, peer: SocketAddr, shared: &Arc<HttpState>) -> Response<Body> {
    answer(request, peer, shared, exp_form, |_, _| {
        Err(Error::new(ErrorKind::Invalid, "/exp only runs statements that return rows; use /exec"))
    })
    .await
}

type MakeForm = fn(&Params) -> Result<Form>;
/// What a statement without rows answers, given its tag and how many rows it wrote.
type MakeDone = fn(&str, u64) -> Result<String>;

fn exec_form(params: &Params) -> Result<Form> {
    let console = params.get("src") == Some("con");
    Ok(Form::Json(JsonForm {
        no_metadata: params.is_on("nm"),
        count: params.is_on("count"),
        timings: params.is_on("timings"),
        explain: params.is_on("explain"),
        long_quotes: params.is_on("quoteLargeNum") || console,
        not_finite_quotes: params.is_on("quoteNotFinite"),
    }))
}

fn exec_done(tag: &str, rows: u64) -> Result<String> {
    Ok(match tag {
        "INSERT" => "{\"dml\":\"OK\"}".to_owned(),
        "UPDATE" | "DELETE" => format!("{{\"ddl\":\"OK\",\"updated\":{rows}}}"),
        _ => "{\"ddl\":\"OK\"}".to_owned(),
    })
}

fn exp_form(params: &Params) -> Result<Form> {
    let invalid = |message| Error::new(ErrorKind::Invalid, message);
    match params.get("fmt") {
        None | Some("" | "csv" | "arrow") => {}
        Some(other) => return Err(invalid(format!("parameter fmt is {other:?}; allowed are csv and arrow"))),
    }
    let delimiter = match params.get("delimiter").unwrap_or(",").as_bytes() {
        [byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\n' | b'\r') => *byte,
        _ => return Err(invalid("parameter delimiter is not one ASCII character other than a quote".to_owned())),
    };
    Ok(Form::Csv { delimiter, header: !params.is_on("nm") })
}

async fn answer(
    request: Request<Incoming>,
    peer: SocketAddr,
    shared: &Arc<HttpState>,
    form: MakeForm,
    done: MakeDone,
) -> Response<Body> {
    let started = Instant::now();
    let (head, body) = request.into_parts();
    let (params, brought) = match parameters(head.uri.query(), &head.headers, body, shared).await {
        Ok(parameters) => parameters,
        Err((status, error)) => return refused(status, "", &error),
    };
    let sql = params.get("query").unwrap_or_default().to_owned();
    let result = run(&sql, &params, brought, &head, peer, shared, form, done, started).await;
    result.unwrap_or_else(|error| {
        shared.counters.queries.observe(started.elapsed());
        tracing::debug!(%peer, sql, %error, "refused a statement");
        refused(status(&error), &sql, &error)
    })
}

fn refused(status: StatusCode, sql: &str, error: &Error) -> Response<Body> {
    response(status, JSON, query_error_json(sql, error))
}

#[expect(clippy::too_many_arguments, reason = "the parts of one request, taken apart by the only caller")]
async fn run(
    sql: &str,
    params: &Params,
    brought: Option<Brought>,
    head: &Parts,
    peer: SocketAddr,
    shared: &Arc<HttpState>,
    form: MakeForm,
    done: MakeDone,
    started: Instant,
) -> Result<Response<Body>> {
    if sql.trim().is_empty() {
        let hint = "the parameter query of the URL or of a form is the statement";
        return Err(Error::new(ErrorKind::Invalid, "empty query").with_hint(hint));
    }
    let headers = &head.headers;
    let wire = head.extensions.get::<Wire>().cloned();
    let (form, limit) = (form(params)?, limit(params)?);
    let request = fingerprint(headers, sql, params, brought.as_ref().map(|(bytes, _)| bytes.as_slice()));
    let (tables, share) = tables(brought, params, shared.body.ipc()).await?;
    let options = QueryOptions {
        timeout: timeout(params, headers)?,
        client: format!("http {peer}"),
        parameters: arrow::parameters(params.get("params").unwrap_or_default())?,
        frames: tables,
        is_read_only: head.extensions.get::<Caller>().is_some_and(|caller| caller.may_only_read()),
        session: None,
    };
    let columns: Vec<String> = params.get("cols").unwrap_or_default().split(',').map(|c| c.trim().to_owned()).collect();
    let columns: Vec<String> = columns.into_iter().filter(|c| !c.is_empty()).collect();
    let is_arrow = params.get("fmt") == Some("arrow");
    let done = move |tag: &str, rows: u64| {
        if is_arrow { Ok(format!("{{\"tag\":\"{tag}\",\"rows\":{rows}}}")) } else { done(tag, rows) }
    };
    let claim = match once::claimed(&shared.once, headers, request).await {
        Err(error) => return Ok(refused(error.status(), sql, &error.into_error())),
        Ok(claimed) => claimed,
    };
    let claim = match claim {
        Some(Claimed::Before(once::Answer { status, content_type, body })) => {
            return Ok(response(status, content_type, body));
        }
        Some(Claimed::First(claim)) => Some(claim),
        None => None,
    };
    // Rows are not remembered: asking again does no harm.
    let answer = move |outcome: &Outcome| match outcome {
        Outcome::Done { tag, rows } => {
            let body = done(tag, *rows).ok()?.into();
            Some(once::Answer { status: StatusCode::OK, content_type: JSON, body })
        }
        Outcome::Rows(_) => None,
    };
    let outcome = done_once(claim, shared.database.execute(sql, options), answer).await?;
    let outcome = match outcome {
        Outcome::Rows(rows) => {
            let (rows, watch) = results::held(rows, &shared.results);
            wire.iter().for_each(|wire| wire.sends(watch.clone()));
            Outcome::Rows(rows)
        }
        done => done,
    };
    match outcome {
        Outcome::Rows(rows) if is_arrow => {
            let counters = shared.counters.clone();
            arrow::answer(rows, wire, move |rows| {
                drop(share);
                add(&counters.query_rows, rows);
                counters.queries.observe(started.elapsed());
            })
            .await
        }
        Outcome::Done { tag, rows } => {
            shared.counters.queries.observe(started.elapsed());
            Ok(response(StatusCode::OK, JSON, done(tag, rows)?))
        }
        Outcome::Rows(rows) => {
            let csv = matches!(form, Form::Csv { .. });
            let answer = Answer::start(sql.to_owned(), rows, form, limit, &columns).await?;
            let counters = shared.counters.clone();
            let body = answer_body(answer, wire, move |rows| {
                drop(share);
                add(&counters.query_rows, rows);
                counters.queries.observe(started.elapsed());
            });
            let mut response = Response::new(body);
            let content_type = if csv { "text/csv; charset=utf-8" } else { JSON };
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
            if csv {
                response.headers_mut().insert(CONTENT_DISPOSITION, disposition(params.get("filename")));
            }
            Ok(response)
        }
    }
}

/// What a statement is, for its Idempotency-Key.
fn fingerprint(headers: &HeaderMap, sql: &str, params: &Params, frames: Option<&[u8]>) -> once::Fingerprint {
    let mut fingerprint = once::Fingerprint::new(headers, "statement");
    fingerprint.add(sql);
    ["params", "fmt", "frames"].iter().for_each(|name| fingerprint.add(params.get(name).unwrap_or_default()));
    fingerprint.add(frames.unwrap_or_default());
    fingerprint
}

/// Frames as they came, and the memory they may take.
type Brought = (Vec<u8>, Share);

async fn tables(brought: Option<Brought>, params: &Params, limits: IpcLimits) -> Result<(Vec<Frame>, Option<Share>)> {
    let Some((bytes, mut share)) = brought else { return Ok((Vec::new(), None)) };
    let list = params.get("frames").unwrap_or("[]").to_owned();
    let made = tokio::task::spawn_blocking(move || {
        let tables = frames::tables(&list, bytes, limits, &mut share)?;
        Ok((tables, Some(share)))
    });
    let broken = || Error::new(ErrorKind::Invalid, "the frames are not in Arrow's IPC format");
    made.await.unwrap_or_else(|_| Err(broken()))
}

/// Those of the URL, and behind them those of a form in the body. A body that is no form is the query itself.
async fn parameters(
    query: Option<&str>,
    headers: &HeaderMap,
    body: Incoming,
    shared: &Arc<HttpState>,
) -> Result<(Params, Option<Brought>), (StatusCode, Error)> {
    let invalid = |message: String| (StatusCode::BAD_REQUEST, Error::new(ErrorKind::Invalid, message));
    let mut params = Params::parse(query.unwrap_or_default()).map_err(invalid)?;
    let (mut text, mut share) = (Vec::new(), shared.bodies.share());
    let read = body::read(headers, body, shared.body, share.watch(), |piece| {
        share.add(piece.len())?;
        text.extend_from_slice(piece);
        Ok(())
    });
    read.await.map_err(|e| (e.status(), e.into_error()))?;
    let content_type = headers.get(CONTENT_TYPE).map_or(&b""[..], |v| v.as_bytes());
    if content_type.starts_with(frames::CONTENT_TYPE.as_bytes()) {
        let (form, bytes) = frames::split(text).map_err(|e| (StatusCode::BAD_REQUEST, e))?;
        params.add(&form).map_err(invalid)?;
        return Ok((params, Some((bytes, share))));
    }
    if !text.is_empty() {
        let text = String::from_utf8(text).map_err(|_| invalid("the request body is not UTF-8".to_owned()))?;
        if content_type.starts_with(b"text/") || content_type.starts_with(b"application/sql") {
            params.add_plain("query", text);
        } else if content_type.starts_with(b"application/json") {
            params.add_json(&text).map_err(invalid)?;
        } else {
            params.add(&text).map_err(invalid)?;
        }
    }
    Ok((params, None))
}

fn limit(params: &Params) -> Result<Limit> {
    match params.get("limit") {
        None | Some("") => Ok(Limit::ALL),
        Some(text) => Limit::parse(text).ok_or_else(|| {
            Error::new(
                ErrorKind::Invalid,
                format!("parameter limit is {text:?}; allowed is a number of rows, or lo,hi"),
            )
        }),
    }
}

/// `timeout` in seconds or with a unit, or QuestDB's header in milliseconds.
fn timeout(params: &Params, headers: &HeaderMap) -> Result<Option<Duration>> {
    let invalid = |what: &str| Error::new(ErrorKind::Invalid, format!("{what} is not a time"));
    if let Some(text) = params.get("timeout").filter(|t| !t.is_empty()) {
        let seconds = text.parse().ok().map(Duration::from_secs);
        let time = seconds.or_else(|| crate::config::duration(text)).ok_or_else(|| invalid("parameter timeout"))?;
        return Ok(Some(time).filter(|t| !t.is_zero()));
    }
    let Some(header) = headers.get("statement-timeout") else { return Ok(None) };
    let ms =
        header.to_str().ok().and_then(|t| t.trim().parse().ok()).ok_or_else(|| invalid("header Statement-Timeout"))?;
    Ok(Some(Duration::from_millis(ms)).filter(|t| !t.is_zero()))
}

fn disposition(name: Option<&str>) -> HeaderValue {
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let safe = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ' ');
    let name: String = name.unwrap_or_default().chars().filter(safe).take(100).collect();
    let name = if name.is_empty() { format!("tidalite-query-{now_ms}") } else { name };
    let value = HeaderValue::from_str(&format!("attachment; filename=\"{name}.csv\""));
    value.unwrap_or_else(|_| HeaderValue::from_static("attachment"))
}

pub fn chk(request: &Request<Incoming>, shared: &Arc<HttpState>) -> Response<Body> {
    let params = match Params::parse(request.uri().query().unwrap_or_default()) {
        Ok(params) => params,
        Err(message) => return text_response(StatusCode::BAD_REQUEST, message),
    };
    let Some(table) = params.get("j").filter(|t| !t.is_empty()) else {
        return text_response(StatusCode::OK, "table name missing");
    };
    let status = if shared.database.table(table).is_some() { "Exists" } else { "Does not exist" };
    if params.get("f") == Some("json") {
        response(StatusCode::OK, JSON, format!("{{\"status\":\"{status}\"}}"))
    } else {
        text_response(StatusCode::OK, status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_come_as_parameter_or_header() {
        let mut headers = HeaderMap::new();
        let read = |query: &str, headers: &HeaderMap| timeout(&Params::parse(query).unwrap(), headers);
        assert_eq!(read("", &headers).unwrap(), None);
        assert_eq!(read("timeout=5", &headers).unwrap(), Some(Duration::from_secs(5)));
        assert_eq!(read("timeout=50ms", &headers).unwrap(), Some(Duration::from_millis(50)));
        assert_eq!(read("timeout=0", &headers).unwrap(), None);
        assert!(read("timeout=soon", &headers).is_err());
        headers.insert("statement-timeout", HeaderValue::from_static("1500"));
        assert_eq!(read("", &headers).unwrap(), Some(Duration::from_millis(1500)));
    }

    #[test]
    fn exports_check_their_parameters() {
        let form = |query: &str| exp_form(&Params::parse(query).unwrap());
        assert_eq!(form("").unwrap(), Form::Csv { delimiter: b',', header: true });
        assert_eq!(form("delimiter=%3B&nm=true&fmt=csv").unwrap(), Form::Csv { delimiter: b';', header: false });
        assert!(form("fmt=parquet").is_err() && form("delimiter=%22").is_err() && form("delimiter=ab").is_err());
        assert_eq!(disposition(Some("foo\"\r\n")).to_str().unwrap(), "attachment; filename=\"foo.csv\"");
    }

    #[test]
    fn statements_without_rows_say_ok() {
        assert_eq!(exec_done("CREATE TABLE", 0).unwrap(), "{\"ddl\":\"OK\"}");
        assert_eq!(exec_done("INSERT", 3).unwrap(), "{\"dml\":\"OK\"}");
    }
}
