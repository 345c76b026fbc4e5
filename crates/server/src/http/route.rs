//! Which request goes where.

use super::body::Body;
use super::params::Params;
use super::{Shared, arrow, imports, influx, pages, query, validate, write};
use crate::counters::add;
use futures::FutureExt;
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, UPGRADE};
use hyper::{HeaderMap, Method, Request, Response};
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tidalite::types::NAME_BYTES_MAX;

/// Never fails: what goes wrong is an answer too, even a bug.
pub async fn answer(request: Request<Incoming>, peer: SocketAddr, shared: &Arc<Shared>) -> Response<Body> {
    let handled = AssertUnwindSafe(dispatch(request, peer, shared)).catch_unwind().await;
    let response = handled.unwrap_or_else(|_| pages::panicked());
    let counter = match response.status().as_u16() {
        ..400 => &shared.counters.http_ok,
        400..500 => &shared.counters.http_client_errors,
        _ => &shared.counters.http_server_errors,
    };
    add(counter, 1);
    response
}

async fn dispatch(request: Request<Incoming>, peer: SocketAddr, shared: &Arc<Shared>) -> Response<Body> {
    let path = request.uri().path().to_owned();
    let method = request.method().clone();
    let reads = method == Method::GET || method == Method::HEAD;
    // Whether the server lives is no secret: load balancers ask without credentials, and QuestDB's clients for the
    // settings.
    match path.as_str() {
        "/ping" if reads => return pages::ping(),
        "/settings" if reads => return pages::settings(NAME_BYTES_MAX),
        "/health" if reads => return influx::health(),
        "/ready" if reads => return influx::ready(),
        "/ping" | "/settings" | "/health" | "/ready" => {
            return pages::method_not_allowed(method.as_str(), "GET, HEAD");
        }
        _ => {}
    }
    if asks_for_websocket(request.headers()) {
        return pages::no_websocket();
    }
    if !is_allowed(&request, shared) {
        return pages::unauthorized();
    }
    if from_elsewhere(request.headers()) {
        return pages::forbidden("requests started by pages of other sites are refused\r\n");
    }
    match path.as_str() {
        "/write" | "/api/v2/write" if method == Method::POST => write::answer(request, shared).await,
        "/api/v3/write_lp" if method == Method::POST => write::answer_v3(request, shared).await,
        "/write/arrow" if method == Method::POST => arrow::write(request, shared).await,
        "/write" | "/api/v2/write" | "/api/v3/write_lp" | "/write/arrow" => {
            pages::method_not_allowed(method.as_str(), "POST")
        }
        "/query" if reads || method == Method::POST => influx::query(request, shared).await,
        "/query" => pages::method_not_allowed(method.as_str(), "GET, POST"),
        "/api/v2/buckets" if reads => influx::buckets(request.uri().query().unwrap_or_default()),
        "/api/v2/orgs" if reads => influx::orgs(request.uri().query().unwrap_or_default()),
        "/imp" if method == Method::POST => imports::answer(request, shared).await,
        "/imp" => pages::method_not_allowed(method.as_str(), "POST"),
        "/exec" if reads || method == Method::POST => query::exec(request, peer, shared).await,
        "/exp" if reads || method == Method::POST => query::exp(request, peer, shared).await,
        "/exec" | "/exp" => pages::method_not_allowed(method.as_str(), "GET, POST"),
        "/api/v1/sql/validate" if reads || method == Method::POST => validate::answer(request, shared).await,
        "/api/v1/sql/validate" => pages::method_not_allowed(method.as_str(), "GET, POST"),
        "/chk" if reads => query::chk(&request, shared),
        "/" | "/index.html" if reads => pages::start(),
        "/chk" | "/" | "/index.html" => pages::method_not_allowed(method.as_str(), "GET, HEAD"),
        path if path.starts_with("/api/") => influx::not_found(path),
        _ => pages::not_found(&path),
    }
}

/// Returns true if the `Authorization` header, or `u` and `p` on the paths of InfluxDB 1, are valid.
fn is_allowed(request: &Request<Incoming>, shared: &Shared) -> bool {
    if shared.auth.allows(request.headers().get(AUTHORIZATION).map(|h| h.as_bytes())) {
        return true;
    }
    if !matches!(request.uri().path(), "/write" | "/query") {
        return false;
    }
    let params = Params::parse(request.uri().query().unwrap_or_default());
    params.is_ok_and(|params| match (params.get("u"), params.get("p")) {
        (Some(user), Some(password)) => shared.auth.allows_user(user, password),
        _ => false,
    })
}

fn asks_for_websocket(headers: &HeaderMap) -> bool {
    headers.get(UPGRADE).is_some_and(|protocol| protocol.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

/// A page somewhere on the web can make its reader's browser send `GET /exec?query=drop table …` to a local server.
/// Browsers say where such requests come from.
fn from_elsewhere(headers: &HeaderMap) -> bool {
    headers.get("sec-fetch-site").is_some_and(|site| site.as_bytes() == b"cross-site")
}
