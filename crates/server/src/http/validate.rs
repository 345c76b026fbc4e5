//! Syntax check of a statement: `/api/v1/sql/validate`.

use super::body;
use super::params::Params;
use super::response::{Body, JSON, response};
use super::state::HttpState;
use crate::errors::{position, status};
use crate::json::push_string;
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::{Request, Response, StatusCode};
use std::sync::Arc;
use tidalite::{Error, ErrorKind};

/// Responds with `{"ok":true}`, or with error, position and hint. The statement is not executed.
pub async fn answer(request: Request<Incoming>, shared: &Arc<HttpState>) -> Response<Body> {
    match statement(request, shared).await {
        Ok(sql) => match tidalite::validate(&sql) {
            Ok(()) => response(StatusCode::OK, JSON, "{\"ok\":true}".to_owned()),
            Err(error) => response(status(&error), JSON, refusal(&sql, &error)),
        },
        Err((status, error)) => response(status, JSON, refusal("", &error)),
    }
}

/// Returns the statement: the parameter `query` of the URL or of a form, or a plain-text body.
async fn statement(request: Request<Incoming>, shared: &Arc<HttpState>) -> Result<String, (StatusCode, Error)> {
    let invalid = |message: String| (StatusCode::BAD_REQUEST, Error::new(ErrorKind::Invalid, message));
    let (head, body) = request.into_parts();
    let mut params = Params::parse(head.uri.query().unwrap_or_default()).map_err(invalid)?;
    let (mut text, mut share) = (Vec::new(), shared.bodies.share());
    let read = body::read(&head.headers, body, shared.body, share.watch(), |piece| {
        share.add(piece.len())?;
        text.extend_from_slice(piece);
        Ok(())
    });
    read.await.map_err(|e| (e.status(), e.into_error()))?;
    if !text.is_empty() {
        let text = String::from_utf8(text).map_err(|_| invalid("the request body is not UTF-8".to_owned()))?;
        let content_type = head.headers.get(CONTENT_TYPE).map_or(&b""[..], |v| v.as_bytes());
        if content_type.starts_with(b"application/x-www-form-urlencoded") {
            params.add(&text).map_err(invalid)?;
        } else if content_type.starts_with(b"application/json") {
            params.add_json(&text).map_err(invalid)?;
        } else {
            params.add_plain("query", text);
        }
    }
    Ok(params.get("query").unwrap_or_default().to_owned())
}

/// `{"error":…,"position":…,"hint":…}`; the position counts characters from 0.
fn refusal(sql: &str, error: &Error) -> Vec<u8> {
    let mut out = b"{\"error\":".to_vec();
    push_string(&mut out, error.message.as_bytes());
    out.extend_from_slice(format!(",\"position\":{}", position(sql, error)).as_bytes());
    if let Some(hint) = &error.hint {
        out.extend_from_slice(b",\"hint\":");
        push_string(&mut out, hint.as_bytes());
    }
    out.push(b'}');
    out
}
