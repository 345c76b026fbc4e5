//! Bodies of responses.

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::header::CONTENT_TYPE;
use hyper::{Response, StatusCode};
use tidalite::Error;

pub type Body = UnsyncBoxBody<Bytes, Error>;

pub fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

pub fn response(status: StatusCode, content_type: &'static str, bytes: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(full(bytes));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(content_type));
    response
}

pub fn text_response(status: StatusCode, text: impl Into<Bytes>) -> Response<Body> {
    response(status, "text/plain; charset=utf-8", text)
}

pub const JSON: &str = "application/json; charset=utf-8";
