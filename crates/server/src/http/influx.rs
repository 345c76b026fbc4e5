//! Requests other than writes that clients of InfluxDB 1, 2 and 3 send, most of them at startup.
//!
//! There is one database. Every database or bucket name refers to this database, and `CREATE DATABASE` only stores the
//! name. Other queries in InfluxQL and Flux are refused with errors in the format of InfluxDB.

use super::body;
use super::database_names::DATABASE;
use super::pages::{INFLUXDB_VERSION, VERSION};
use super::params::Params;
use super::response::{Body, response};
use super::state::HttpState;
use crate::health::Report;
use crate::json::{push_str, push_string};
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use std::sync::Arc;

const JSON: &str = "application/json";

/// `/health` in the format of InfluxDB 2, with the checks live, ready and writable.
pub fn health(report: &Report) -> Response<Body> {
    let usual =
        if report.is_read_only { "ready for queries; the server is read-only" } else { "ready for queries and writes" };
    let problem = report.problem();
    let status = if problem.is_none() { "pass" } else { "fail" };
    let mut json = b"{\"name\":\"influxdb\",\"message\":".to_vec();
    push_string(&mut json, problem.as_deref().unwrap_or(usual).as_bytes());
    json.extend_from_slice(format!(",\"status\":\"{status}\",\"checks\":[").as_bytes());
    let checks = [("live", &report.not_live), ("ready", &report.not_ready), ("writable", &report.not_writable)];
    for (at, (name, reason)) in checks.into_iter().enumerate() {
        let status = if reason.is_none() { "pass" } else { "fail" };
        let comma = if at > 0 { "," } else { "" };
        json.extend_from_slice(format!("{comma}{{\"name\":\"{name}\",\"status\":\"{status}\"").as_bytes());
        if let Some(reason) = reason {
            json.extend_from_slice(b",\"message\":");
            push_string(&mut json, reason.as_bytes());
        }
        json.push(b'}');
    }
    json.extend_from_slice(
        format!("],\"version\":\"{INFLUXDB_VERSION}\",\"commit\":\"tidalite-{VERSION}\"}}").as_bytes(),
    );
    response(status_of(problem.is_none()), JSON, json)
}

fn status_of(is_well: bool) -> StatusCode {
    if is_well { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
}

/// `/ready` as InfluxDB 2 answers it.
pub fn ready(report: &Report) -> Response<Body> {
    match report.not_live.as_ref().or(report.not_ready.as_ref()) {
        None => response(StatusCode::OK, JSON, "{\"status\":\"ready\"}"),
        Some(reason) => error(StatusCode::SERVICE_UNAVAILABLE, "unavailable", reason),
    }
}

/// `/api/v2/buckets`: every requested bucket exists.
pub fn buckets(query: &str) -> Response<Body> {
    named(query, "name", "buckets", |name| {
        format!(",\"type\":\"user\",\"orgID\":\"{}\",\"retentionRules\":[]", id_of(name))
    })
}

/// `/api/v2/orgs`: every requested organization exists.
pub fn orgs(query: &str) -> Response<Body> {
    named(query, "org", "orgs", |_| String::new())
}

/// A list with the one entry that parameter `parameter` names.
fn named(query: &str, parameter: &str, list: &str, more: impl Fn(&str) -> String) -> Response<Body> {
    let params = match Params::parse(query) {
        Ok(params) => params,
        Err(message) => return error(StatusCode::BAD_REQUEST, "invalid", &message),
    };
    let name = params.get(parameter).filter(|name| !name.is_empty()).unwrap_or(DATABASE);
    let mut json =
        format!("{{\"links\":{{\"self\":\"/api/v2/{list}\"}},\"{list}\":[{{\"id\":\"{}\",\"name\":", id_of(name))
            .into_bytes();
    push_string(&mut json, name.as_bytes());
    json.extend_from_slice(format!("{}}}]}}", more(name)).as_bytes());
    response(StatusCode::OK, JSON, json)
}

/// InfluxDB's ids are 16 hexadecimal digits; equal names have equal ones.
fn id_of(name: &str) -> String {
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{:016x}", hash | 1)
}

/// InfluxDB 2's form of an error.
pub fn error(status: StatusCode, code: &str, message: &str) -> Response<Body> {
    let mut json = format!("{{\"code\":\"{code}\",\"message\":").into_bytes();
    push_string(&mut json, message.as_bytes());
    json.push(b'}');
    response(status, JSON, json)
}

/// Responds to all other requests of the InfluxDB API.
pub fn not_found(path: &str) -> Response<Body> {
    let path = crate::logging::cut(path);
    let message = format!(
        "path {path} is not supported; of the InfluxDB API there are /write, /query, /api/v2/write, /api/v3/write_lp, /ping \
         and /health, and SQL is at /exec"
    );
    error(StatusCode::NOT_FOUND, "not found", &message)
}

/// `/query` of InfluxDB 1.
pub async fn query(request: Request<Incoming>, shared: &Arc<HttpState>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let (mut form, mut share) = (Vec::new(), shared.bodies.share());
    let read = body::read(&head.headers, body, shared.body, share.watch(), |piece| {
        share.add(piece.len())?;
        form.extend_from_slice(piece);
        Ok(())
    });
    if let Err(error) = read.await {
        return refused(error.status(), &error.into_error().message);
    }
    let params = Params::parse(head.uri.query().unwrap_or_default()).and_then(|mut params| {
        params.add(&String::from_utf8_lossy(&form))?;
        Ok(params)
    });
    match params.and_then(|params| results(params.get("q").unwrap_or_default(), shared)) {
        Ok(json) => response(StatusCode::OK, JSON, json),
        Err(message) => refused(StatusCode::BAD_REQUEST, &message),
    }
}

/// InfluxDB 1's form of an error.
fn refused(status: StatusCode, message: &str) -> Response<Body> {
    let mut json = b"{\"error\":".to_vec();
    push_string(&mut json, message.as_bytes());
    json.push(b'}');
    response(status, JSON, json)
}

fn results(text: &str, shared: &HttpState) -> Result<Vec<u8>, String> {
    let statements = parse(text)?;
    if statements.is_empty() {
        return Err("missing required parameter \"q\"".to_owned());
    }
    let mut json = b"{\"results\":[".to_vec();
    for (id, statement) in statements.iter().enumerate() {
        json.extend_from_slice(format!("{}{{\"statement_id\":{id}", if id > 0 { "," } else { "" }).as_bytes());
        match statement {
            Statement::CreateDatabase(name) => shared.databases.add(name),
            Statement::ShowDatabases => push_series(&mut json, "databases", shared.databases.all()),
            Statement::ShowMeasurements => {
                let mut tables = shared.database.table_names();
                tables.sort_unstable();
                push_series(&mut json, "measurements", tables);
            }
        }
        json.push(b'}');
    }
    json.extend_from_slice(b"]}");
    Ok(json)
}

/// One column `name`.
fn push_series(json: &mut Vec<u8>, name: &str, values: Vec<String>) {
    json.extend_from_slice(
        format!(",\"series\":[{{\"name\":\"{name}\",\"columns\":[\"name\"],\"values\":[").as_bytes(),
    );
    for (at, value) in values.iter().enumerate() {
        json.extend_from_slice(if at > 0 { b",[" } else { b"[" });
        push_str(json, value);
        json.push(b']');
    }
    json.extend_from_slice(b"]}]");
}

/// The supported InfluxQL statements.
#[derive(Debug, PartialEq, Eq)]
enum Statement {
    CreateDatabase(String),
    ShowDatabases,
    ShowMeasurements,
}

fn parse(text: &str) -> Result<Vec<Statement>, String> {
    let tokens = tokens(text)?;
    tokens.split(|token| *token == Token::Semicolon).filter(|tokens| !tokens.is_empty()).map(statement).collect()
}

fn statement(tokens: &[Token]) -> Result<Statement, String> {
    let is = |at: usize, word: &str| matches!(tokens.get(at), Some(Token::Word(w)) if w.eq_ignore_ascii_case(word));
    if is(0, "create") && is(1, "database") {
        return match tokens {
            [_, _, Token::Word(name) | Token::Quoted(name)] => Ok(Statement::CreateDatabase(name.clone())),
            [_, _, Token::Word(_) | Token::Quoted(_), ..] => {
                Err("not supported: CREATE DATABASE with a retention policy; \
                 rows of a table are dropped after a time by ALTER TABLE … SET TTL at /exec"
                    .to_owned())
            }
            _ => Err("error parsing query: CREATE DATABASE without a name".to_owned()),
        };
    }
    if tokens.len() == 2 && is(0, "show") && is(1, "databases") {
        return Ok(Statement::ShowDatabases);
    }
    if is(0, "show") && is(1, "measurements") && (tokens.len() == 2 || tokens.len() == 4 && is(2, "on")) {
        return Ok(Statement::ShowMeasurements);
    }
    Err("not supported: InfluxQL beside CREATE DATABASE, SHOW DATABASES and SHOW MEASUREMENTS; SQL is at /exec"
        .to_owned())
}

#[derive(Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    /// In double quotes.
    Quoted(String),
    Semicolon,
    Other(char),
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let (mut tokens, mut chars) = (Vec::new(), text.chars().peekable());
    while let Some(c) = chars.next() {
        match c {
            c if c.is_whitespace() => {}
            ';' => tokens.push(Token::Semicolon),
            '"' => {
                let mut name = String::new();
                loop {
                    match chars.next() {
                        Some('"') => break,
                        Some('\\') => name.extend(chars.next()),
                        Some(c) => name.push(c),
                        None => return Err("error parsing query: a name in quotes is not closed".to_owned()),
                    }
                }
                tokens.push(Token::Quoted(name));
            }
            c if c.is_alphanumeric() || c == '_' => {
                let mut word = c.to_string();
                while let Some(c) = chars.next_if(|c| c.is_alphanumeric() || *c == '_') {
                    word.push(c);
                }
                tokens.push(Token::Word(word));
            }
            other => tokens.push(Token::Other(other)),
        }
    }
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_clients_send_at_their_start_are_understood() {
        let create = |name: &str| Statement::CreateDatabase(name.to_owned());
        for (text, expected) in [
            ("CREATE DATABASE \"telegraf\"", vec![create("telegraf")]),
            ("create database my_db;", vec![create("my_db")]),
            ("CREATE DATABASE \"a \\\"b\\\"; c\"", vec![create("a \"b\"; c")]),
            ("SHOW DATABASES; show measurements on \"x\"", vec![Statement::ShowDatabases, Statement::ShowMeasurements]),
            (" ;; ", vec![]),
        ] {
            assert_eq!(parse(text).unwrap(), expected, "{text}");
        }
        for text in [
            "SELECT * FROM cpu",
            "DROP DATABASE x",
            "CREATE DATABASE",
            "CREATE DATABASE x WITH DURATION 3d",
            "SHOW TAG KEYS",
            "CREATE DATABASE \"x",
            "SHOW",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
