//! Answers that do not depend on the data.

use super::response::{Body, JSON, response, text_response};
use crate::health::{Health, Report};
use crate::logging::cut;
use hyper::header::HeaderValue;
use hyper::{Response, StatusCode};
use std::time::Duration;

/// The InfluxDB version that is reported to InfluxDB clients.
pub const INFLUXDB_VERSION: &str = "v2.7.4";

pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// To a client that does not encrypt, on a port that does.
pub const NOT_ENCRYPTED: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\n\
    content-length: 56\r\nconnection: close\r\n\r\nthis port speaks TLS only: use https:// instead of http\n";

/// `/ping`: 204 while writes and queries are accepted, otherwise 503 with the reason.
///
/// InfluxDB clients read the version header.
pub fn ping(report: &Report) -> Response<Body> {
    let mut answer = match report.problem() {
        None => {
            let mut answer = Response::new(super::response::full(""));
            *answer.status_mut() = StatusCode::NO_CONTENT;
            answer
        }
        Some(reason) => unavailable(format!("{reason}\n")),
    };
    if report.is_read_only {
        answer.headers_mut().insert("X-Tidalite-Read-Only", HeaderValue::from_static("true"));
    }
    answer.headers_mut().insert("X-Influxdb-Version", HeaderValue::from_static(INFLUXDB_VERSION));
    answer.headers_mut().insert("X-Influxdb-Build", HeaderValue::from_static("OSS"));
    answer
}

/// `/status`, `/health/live`, `/health/ready` and `/health/writable`.
pub fn state(path: &str, health: &Health) -> Response<Body> {
    let (is_well, text) = health.state(path);
    let status = if is_well { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    text_response(status, text)
}

pub fn unavailable(reason: String) -> Response<Body> {
    text_response(StatusCode::SERVICE_UNAVAILABLE, reason)
}

/// Response to writes if the server is read-only.
pub fn read_only() -> Response<Body> {
    let json = "{\"code\":\"forbidden\",\"message\":\"the server is read-only (setting read_only)\",\
                \"error\":\"the server is read-only (setting read_only)\"}";
    response(StatusCode::FORBIDDEN, "application/json", json)
}

/// Response during the wait after failed logins.
pub fn too_many_logins(wait: Duration) -> Response<Body> {
    let seconds = wait.as_secs() + 1;
    let text = format!("too many failed logins; try again in {seconds} s\r\n");
    let mut answer = text_response(StatusCode::TOO_MANY_REQUESTS, text);
    answer.headers_mut().insert("Retry-After", HeaderValue::from(seconds));
    answer
}

/// What QuestDB's clients read before they send: which versions of the protocol they may use.
pub fn settings(name_bytes_max: usize) -> Response<Body> {
    let json = format!(
        "{{\"config\":{{\"release.type\":\"OSS\",\"release.version\":\"{VERSION}\",\"release.name\":\"Tidalite\",\
         \"http.settings.readonly\":true,\"accepting.writes\":[\"http\",\"tcp\"],\
         \"line.proto.support.versions\":[1,2,3],\"ilp.proto.transports\":[\"tcp\",\"http\"],\
         \"posthog.enabled\":false,\"posthog.api.key\":null,\"cairo.max.file.name.length\":{name_bytes_max}}},\
         \"preferences.version\":0,\"preferences\":{{}}}}"
    );
    response(StatusCode::OK, JSON, json)
}

/// The page of a server that was built without the console.
pub fn start() -> Response<Body> {
    let mut answer = response(StatusCode::OK, "text/html; charset=utf-8", include_str!("start.html"));
    let policy = HeaderValue::from_static("default-src 'self'; style-src 'unsafe-inline'; script-src 'unsafe-inline'");
    answer.headers_mut().insert("Content-Security-Policy", policy);
    answer
}

pub fn not_found(path: &str) -> Response<Body> {
    let text = format!("there is nothing at {}; see / for what is\r\n", cut(path));
    text_response(StatusCode::NOT_FOUND, text)
}

/// Response to QuestDB clients that are configured with `ws::`.
pub fn no_websocket() -> Response<Body> {
    let text = "WebSocket and QuestDB's protocol over it (ws::, wss::) are not supported; use http::, https::, tcp:: or tcps::\r\n";
    text_response(StatusCode::NOT_FOUND, text)
}

pub fn method_not_allowed(method: &str, allowed: &'static str) -> Response<Body> {
    let mut answer =
        text_response(StatusCode::METHOD_NOT_ALLOWED, format!("method {method} is not supported here\r\n"));
    answer.headers_mut().insert("Allow", HeaderValue::from_static(allowed));
    answer
}

pub fn unauthorized() -> Response<Body> {
    let mut answer = text_response(StatusCode::UNAUTHORIZED, "authentication is required\r\n");
    let challenge = HeaderValue::from_static("Basic realm=\"tidalite\", charset=\"UTF-8\"");
    answer.headers_mut().insert("WWW-Authenticate", challenge);
    answer
}

pub fn forbidden(reason: String) -> Response<Body> {
    text_response(StatusCode::FORBIDDEN, reason)
}

/// A bug; the panic itself is in the log.
pub fn panicked() -> Response<Body> {
    let json = "{\"code\":\"internal error\",\"error\":\"internal error, see the server's log\",\"position\":0}";
    response(StatusCode::INTERNAL_SERVER_ERROR, JSON, json)
}
