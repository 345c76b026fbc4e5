//! The one place where the database's errors become a protocol's: HTTP statuses, the JSON of `/exec` and `/write`.

use crate::json::push_string;
use hyper::StatusCode;
use std::sync::atomic::{AtomicU64, Ordering};
use tidalite::{Error, ErrorKind, SqlState};

/// What a client should do decides: correct the request (4xx), try again (503), or tell us (500).
#[must_use]
pub fn http_status(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::Invalid | ErrorKind::NotFound | ErrorKind::Conflict => StatusCode::BAD_REQUEST,
        ErrorKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Returns the HTTP status of an error: 403 for refused writes in read-only mode, otherwise [`http_status`].
#[must_use]
pub fn status(error: &Error) -> StatusCode {
    if error.code == Some(SqlState::READ_ONLY_SQL_TRANSACTION) {
        StatusCode::FORBIDDEN
    } else {
        http_status(error.kind)
    }
}

/// The `code` of a refused write, as InfluxDB and QuestDB name them.
#[must_use]
pub fn write_code(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Invalid => "invalid",
        ErrorKind::NotFound => "not found",
        ErrorKind::Conflict => "conflict",
        ErrorKind::Unavailable => "unavailable",
        _ => "internal error",
    }
}

/// The code of PostgreSQL for an error: by its kind, and where its clients act on more, by how its text begins.
#[must_use]
pub fn sqlstate(error: &Error) -> &'static str {
    const TEXTS: &[(ErrorKind, &str, &str)] = &[
        (ErrorKind::NotFound, "table function ", "42883"),
        (ErrorKind::NotFound, "table ", "42P01"),
        (ErrorKind::NotFound, "column ", "42703"),
        (ErrorKind::NotFound, "function ", "42883"),
        (ErrorKind::NotFound, "schema ", "3F000"),
        (ErrorKind::NotFound, "there is no parameter ", "42P02"),
        (ErrorKind::NotFound, "", "42704"),
        (ErrorKind::Invalid, "syntax error", "42601"),
        (ErrorKind::Invalid, "empty statement", "42601"),
        (ErrorKind::Invalid, "not supported", "0A000"),
        (ErrorKind::Invalid, "division by zero", "22012"),
        (ErrorKind::Invalid, "divide by zero", "22012"),
        (ErrorKind::Invalid, "numeric field overflow", "22003"),
        (ErrorKind::Invalid, "value out of range", "22003"),
        (ErrorKind::Invalid, "invalid input", "22P02"),
        (ErrorKind::Invalid, "column reference ", "42702"),
        (ErrorKind::Conflict, "table ", "42P07"),
        (ErrorKind::Conflict, "column ", "42701"),
        (ErrorKind::Conflict, "", "40001"),
        (ErrorKind::Unavailable, "canceling ", "57014"),
        (ErrorKind::Unavailable, "out of memory", "53200"),
        (ErrorKind::Unavailable, "", "57P03"),
        (ErrorKind::Corrupt, "", "XX001"),
        (ErrorKind::Internal, "", "XX000"),
    ];
    if let Some(code) = error.code {
        return code.as_str();
    }
    if error.kind == ErrorKind::Invalid && error.message.contains(" not supported") {
        return "0A000";
    }
    if error.kind == ErrorKind::Invalid && error.message.contains(" out of range for type ") {
        return "22003";
    }
    // Behind the line and the column of a record.
    if error.kind == ErrorKind::Invalid && error.message.contains(": invalid input ") {
        return "22P02";
    }
    let found = TEXTS.iter().find(|(kind, text, _)| *kind == error.kind && error.message.starts_with(text));
    // What is wrong with a statement otherwise is a value of it.
    found.map_or("22023", |entry| entry.2)
}

/// The body of a refused query.
#[must_use]
pub fn query_error_json(sql: &str, error: &Error) -> Vec<u8> {
    let mut out = b"{\"query\":".to_vec();
    push_string(&mut out, sql.as_bytes());
    out.extend_from_slice(b",\"error\":");
    push_string(&mut out, with_hint(error).as_bytes());
    out.extend_from_slice(format!(",\"position\":{}}}", position(sql, error)).as_bytes());
    out
}

/// In characters, as clients count, rather than in bytes.
#[must_use]
pub fn position(sql: &str, error: &Error) -> usize {
    let at = error.position.unwrap_or(0).min(sql.len());
    sql.char_indices().take_while(|(i, _)| *i < at).count()
}

#[must_use]
pub fn with_hint(error: &Error) -> String {
    match &error.hint {
        Some(hint) => format!("{}; hint: {hint}", error.message),
        None => error.message.clone(),
    }
}

/// Returns the body of a refused write.
///
/// Clients of InfluxDB 1 read the message from `error`; clients of QuestDB receive only the members that QuestDB has.
#[must_use]
pub fn write_error_json(error: &Error, is_influxdb_1: bool) -> Vec<u8> {
    let line = error.line.unwrap_or(0);
    let reason = with_hint(error);
    let message = if line > 0 {
        format!("failed to parse line protocol:errors encountered on line(s):\nerror in line {line}: {reason}")
    } else {
        format!("failed to write line protocol: {reason}")
    };
    let mut out = format!("{{\"code\":\"{}\",\"message\":", write_code(error.kind)).into_bytes();
    push_string(&mut out, message.as_bytes());
    if is_influxdb_1 {
        out.extend_from_slice(b",\"error\":");
        push_string(&mut out, message.as_bytes());
    }
    out.extend_from_slice(format!(",\"line\":{line},\"errorId\":\"{}\"}}", next_error_id()).as_bytes());
    out
}

/// Names one error, so that what a client reports can be found in the log.
fn next_error_id() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("{:x}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_write_has_the_shape_clients_read() {
        let mut error = Error::new(ErrorKind::Invalid, "field value is missing: v");
        error.line = Some(2);
        let json: serde_json::Value = serde_json::from_slice(&write_error_json(&error, false)).unwrap();
        assert!(json["error"].is_null());
        assert_eq!(json["code"], "invalid");
        assert_eq!(json["line"], 2);
        assert_eq!(
            json["message"],
            "failed to parse line protocol:errors encountered on line(s):\nerror in line 2: field value is missing: v"
        );
        assert!(json["errorId"].as_str().is_some_and(|id| id.contains('-')));
    }

    #[test]
    fn positions_count_characters() {
        let sql = "select 'ä', nosuch";
        let mut error = Error::new(ErrorKind::NotFound, "column \"nosuch\" does not exist");
        error.position = sql.find("nosuch");
        let json: serde_json::Value = serde_json::from_slice(&query_error_json(sql, &error)).unwrap();
        assert_eq!(json["position"], 12);
        assert_eq!(json["query"], sql);
    }
}
