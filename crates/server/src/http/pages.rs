//! Answers that do not depend on the data.

use super::body::{Body, JSON, response, text_response};
use hyper::header::HeaderValue;
use hyper::{Response, StatusCode};

/// The InfluxDB version that is reported to InfluxDB clients.
pub const INFLUXDB_VERSION: &str = "v2.7.4";

pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// To a client that does not encrypt, on a port that does.
pub const NOT_ENCRYPTED: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\n\
    content-length: 56\r\nconnection: close\r\n\r\nthis port speaks TLS only: use https:// instead of http\n";

/// Says that line protocol and queries are accepted. Clients of InfluxDB look for its version header.
pub fn ping() -> Response<Body> {
    let mut answer = Response::new(super::body::full(""));
    *answer.status_mut() = StatusCode::NO_CONTENT;
    answer.headers_mut().insert("X-Influxdb-Version", HeaderValue::from_static(INFLUXDB_VERSION));
    answer.headers_mut().insert("X-Influxdb-Build", HeaderValue::from_static("OSS"));
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

/// The start page; the console will take its place.
pub fn start() -> Response<Body> {
    let mut answer = response(StatusCode::OK, "text/html; charset=utf-8", include_str!("start.html"));
    let policy = HeaderValue::from_static("default-src 'self'; style-src 'unsafe-inline'; script-src 'unsafe-inline'");
    answer.headers_mut().insert("Content-Security-Policy", policy);
    answer
}

pub fn not_found(path: &str) -> Response<Body> {
    let text = format!("there is nothing at {path}; see / for what is\r\n");
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

pub fn forbidden(reason: &'static str) -> Response<Body> {
    text_response(StatusCode::FORBIDDEN, reason)
}

/// A bug; the panic itself is in the log.
pub fn panicked() -> Response<Body> {
    let json = "{\"code\":\"internal error\",\"error\":\"internal error, see the server's log\",\"position\":0}";
    response(StatusCode::INTERNAL_SERVER_ERROR, JSON, json)
}
